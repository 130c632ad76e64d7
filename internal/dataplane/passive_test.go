package dataplane

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// Packets of passive programs leave with the same bytes at once and after
// waiting behind others.
func TestPassive(t *testing.T) {
	passive := 0
	for name, doc := range programs(t) {
		at := func() *Switch { return busy(t, doc, Options{}).sw }
		once, later := at(), at()
		if once.passive {
			passive++
		}
		r := rand.New(rand.NewPCG(1, 2))
		for n := range 200 {
			packet := udp(64+r.IntN(64), r.Uint32(), 0x0a000000|r.Uint32N(1<<16), uint16(r.Uint32()), 80)
			port, now := uint32(r.IntN(4)), time.Duration(n)*time.Microsecond
			p, out := once.Hold().Arrive(port, packet, 100, now, nil)
			once.mu.Unlock()
			q, other := later.Hold().Arrive(port, packet, 100, now, nil)
			later.mu.Unlock()
			if len(out) != 1 || out[0].Kind != ToQueue || out[0].Packet != p || len(other) != 1 {
				continue
			}
			h := once.Hold()
			if h.Passive(p) {
				later.Enqueued(q, 30, now)
				l := later.Hold()
				a, extra, rest := h.Leave(p, 0, now, nil, nil)
				b, more, _ := l.Leave(q, 20, now+time.Second, nil, nil)
				l.Release()
				if extra != more || extra < 0 || len(rest) > 0 || !bytes.Equal(a, b) {
					t.Errorf("%s: packet %d leaves as %x and %d more, after it has waited as %x and %d more", name, n, a, extra, b, more)
				}
			} else {
				h.Free(p)
				later.Free(q)
			}
			h.Release()
		}
	}
	if passive < 3 {
		t.Errorf("%d programs are passive, want some", passive)
	}
}

// A checksum over the queueing time, or an egress control, keeps a program from
// being passive.
func TestNotPassive(t *testing.T) {
	load := func(change func(*bmv2.Config)) bool {
		c, err := bmv2.Load(programs(t)["testdata/router.json"])
		if err != nil {
			t.Fatal(err)
		}
		change(c)
		s, err := New(c, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s.passive
	}
	if !load(func(*bmv2.Config) {}) {
		t.Error("router.p4, which has no egress control, is not passive")
	}
	waited := bmv2.FieldOf("standard_metadata", "deq_qdepth")
	if load(func(c *bmv2.Config) {
		for _, sum := range c.Checksums {
			sum.IfCond = &bmv2.Expr{Type: bmv2.TypeExpression, Op: "==", Left: waited, Right: waited}
		}
	}) {
		t.Error("a program whose checksum depends on the queue is passive")
	}
	c, err := bmv2.Load(programs(t)["testdata/feedback.json"])
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.passive {
		t.Error("feedback.p4, which clones at egress, is passive")
	}
}
