package sim

import (
	"errors"
	"fmt"
	"math"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Links returns the links, in the order of the topology.
func (n *Network) Links() []*Link { return n.links }

// Down reports whether the link has failed.
func (l *Link) Down() bool { return l.A.down }

// Fail cuts the link. Packets on it and packets sent later are lost.
func (l *Link) Fail() {
	l.A.down, l.B.down = true, true
	l.A.cut()
	l.B.cut()
}

// Restore repairs the link.
func (l *Link) Restore() { l.A.down, l.B.down = false, false }

// SetRate changes the rate of the link for the next packets in both directions. Running
// flows keep pacing by the former rate of their host's link.
func (l *Link) SetRate(r fabric.Rate) error {
	if r <= 0 {
		return errors.New("a link's rate is above 0")
	}
	for _, o := range []*Port{l.A, l.B} {
		o.rate, o.remainder = int64(r), 0
		o.scale()
		if o.sw != nil {
			o.sw.reserve = 0 // headroom depends on rates: compute it again
		}
	}
	return nil
}

// SetBitErrors corrupts each bit on the link with the given probability, in both directions. The
// receiving end drops a packet with a wrong bit, because its frame check sequence fails. PFC
// frames are not affected.
func (l *Link) SetBitErrors(rate float64) error {
	if !(rate >= 0 && rate < 1) {
		return errors.New("bit errors: want a share from 0 to below 1")
	}
	for i, o := range []*Port{l.B, l.A} {
		if o.noise = nil; rate > 0 {
			o.noise = &noise{o.net.stream(fmt.Sprintf("noise/%d/%d", l.Place, i)), math.Log1p(-rate)}
		}
	}
	return nil
}

// cut drops the packets and PFC frames on the link. It ends a pause, because the peer can no
// longer end it.
func (o *Port) cut() {
	o.net.events.cancel(&o.arriving)
	o.net.events.cancel(&o.pfc.flight)
	o.pfc.pausing, o.pfc.line = false, o.pfc.line[:0]
	for o.wire.n > 0 {
		o.net.lose(o.wire.pop().p, LinkDown)
	}
	o.resume()
}

func (s *Switch) faulty() *faults {
	if s.faults == nil {
		s.faults = &faults{random: s.net.stream("faults/" + s.Name), holes: map[[2]*Host]bool{}}
	}
	return s.faults
}

// DropSilently makes the switch drop a share (0 to 1) of the arriving packets without reporting
// it.
func (s *Switch) DropSilently(share float64) error {
	if share < 0 || share > 1 {
		return errors.New("a share of packets is from 0 to 1")
	}
	s.faulty().share = share
	return nil
}

// BlackHole makes the switch drop all packets from one host to another, or stops that. Two empty
// names select the probes of switches, which have no host.
func (s *Switch) BlackHole(from, to string, on bool) error {
	a, b := s.net.Host(from), s.net.Host(to)
	if (a == nil || b == nil) && (from != "" || to != "") {
		return fmt.Errorf("a black hole from %q to %q: want two hosts", from, to)
	}
	if on {
		s.faulty().holes[[2]*Host{a, b}] = true
	} else if s.faults != nil {
		delete(s.faults.holes, [2]*Host{a, b})
	}
	return nil
}
