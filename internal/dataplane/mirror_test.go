package dataplane

import (
	"testing"
	"time"
)

// A clone of a parsed packet is shortened from the end: first the missing
// bytes, then the payload, and the headers when the clone is sent.
func TestEgressCloneIsShortened(t *testing.T) {
	for _, c := range []struct{ length, want, extra int }{
		{0, 100, 40}, {1000, 100, 40}, {80, 80, 20}, {60, 60, 0}, {50, 50, 0}, {20, 20, 0},
	} {
		s := feedback(t).Switch()
		must(t, s.Mirrors().Set(7, MirrorSession{Port: 100, HasPort: true, Length: c.length}))
		p := s.receiveHead(4, udp(60, 1, 0x0a000001, 3, 4), 40, time.Millisecond)
		out := s.Ingress(p, time.Millisecond, nil)
		if len(out) != 1 {
			t.Fatalf("outcomes %v", out)
		}
		out = s.Egress(out[0].Packet, 0, 2*time.Millisecond, nil)
		if len(out) != 2 || out[0].Kind != ToQueue || out[0].Port != 100 {
			t.Fatalf("outcomes %v", out)
		}
		if clone := out[0].Packet; clone.Len() != c.want || clone.extraBytes() != c.extra {
			t.Errorf("cut to %d: the clone has %d bytes, %d of them to follow", c.length, clone.Len(), clone.extraBytes())
		}
		if whole := out[1].Packet; whole.Len() != 100 || len(whole.Bytes()) != 60 {
			t.Errorf("the packet itself has %d bytes", whole.Len())
		}
	}
}

func TestMirrorPriorities(t *testing.T) {
	s := feedback(t).Switch()
	for _, m := range []MirrorSession{{Priority: 1}, {Priority: -1}, {Length: -1}} {
		if s.Mirrors().Set(1, m) == nil {
			t.Errorf("%+v is accepted by a switch with one priority", m)
		}
	}
	s = load(t, "feedback", Options{Priorities: 64})
	if s.Mirrors().Set(1, MirrorSession{Priority: 63}) == nil {
		t.Error("a priority is accepted that the program's field cannot have")
	}
}
