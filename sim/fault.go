package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

func errNoProgram(name string) error {
	return fmt.Errorf("switch %s has neither program nor model", name)
}

// faults are what is wrong with a switch, unknown to its control plane.
type faults struct {
	random *rand.Rand
	share  float64
	holes  map[[2]*Host]bool
}

func (s *Switch) faulty() *faults {
	if s.faults == nil {
		s.faults = &faults{random: s.net.stream("faults/" + s.Name), holes: map[[2]*Host]bool{}}
	}
	return s.faults
}

// DropSilently makes the switch lose a share of the packets that come in, 0 to
// 1.
func (s *Switch) DropSilently(share float64) error {
	if share < 0 || share > 1 {
		return errors.New("a share of packets is from 0 to 1")
	}
	s.faulty().share = share
	return nil
}

// BlackHole makes the switch lose all packets from one host to another, or ends
// that.
func (s *Switch) BlackHole(from, to string, on bool) error {
	a, b := s.net.Host(from), s.net.Host(to)
	if a == nil || b == nil {
		return fmt.Errorf("a black hole from %q to %q: want two hosts", from, to)
	}
	if on {
		s.faulty().holes[[2]*Host{a, b}] = true
	} else if s.faults != nil {
		delete(s.faults.holes, [2]*Host{a, b})
	}
	return nil
}

// strike decides whether a packet that comes in is lost.
func (f *faults) strike(p *Packet) (Reason, bool) {
	if len(f.holes) > 0 && f.holes[[2]*Host{p.Src, p.Dst}] {
		return BlackHole, true
	}
	if f.share > 0 && f.random.Float64() < f.share {
		return Silent, true
	}
	return 0, false
}
