package dataplane

import (
	"strings"
	"testing"
	"time"
)

// A probe returns the entry that a packet would hit, follows changes, and changes nothing.
func TestProbe(t *testing.T) {
	s := router(t).sw
	probe, err := s.Probe("I.routes")
	must(t, err)
	for i, want := range map[uint64]bool{0x0a000001: true, 0x0a0003ff: true, 0x0b000001: false} {
		if _, ok := probe.Find(i); ok != want {
			t.Errorf("%#x: found %v, want %v", i, ok, want)
		}
	}
	h, err := s.Tables().Add("I.routes", Entry{
		Match: []Match{{Value: be(0x0a000001, 4), PrefixLen: 32}}, Target: act("I.drop"),
	})
	must(t, err)
	if got, ok := probe.Find(0x0a000001); !ok || got != h {
		t.Errorf("found %v %v, want the new entry %v", got, ok, h)
	}
	if out := NewEngine(s).Process(0, udp(64, 1, 0x0a000001, 1, 2), time.Second); len(out) != 0 {
		t.Error("the packet does not hit the entry that the probe finds")
	}
	must(t, s.Tables().Delete("I.routes", h))
	if got, ok := probe.Find(0x0a000001); !ok || got == h {
		t.Errorf("found %v %v after the entry is gone", got, ok)
	}
	if _, ok := probe.Find(); ok {
		t.Error("a key without fields is found")
	}
	if _, err := s.Probe("I.nothing"); err == nil || !strings.Contains(err.Error(), `unknown table "I.nothing"`) {
		t.Errorf("got %v", err)
	}
}

// A probe puts each of several key fields at its place in the index.
func TestProbeFields(t *testing.T) {
	s := flowlet(t).sw
	probe, err := s.Probe("I.members")
	must(t, err)
	for i := range uint64(6) {
		if _, ok := probe.Find(1, i); ok != (i < 4) {
			t.Errorf("member %d: found %v", i, ok)
		}
		if _, ok := probe.Find(i+2, 0); ok {
			t.Errorf("a member of group %d is found", i+2)
		}
	}
}
