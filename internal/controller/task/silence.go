package task

import (
	"time"

	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A silence detects paths whose probes do not return, for programs that store RTTs without times.
// An RTT that has not changed for as long as missed probes take is suspicious. The silence then
// overwrites it with the largest number. Packets then treat the path as too slow, as in programs
// that detect overdue probes. The next returning probe replaces the number.
type silence struct {
	sw     string
	period time.Duration // period of the probes
	rtts   *registers.Array
	groups []fabric.Group

	next  time.Duration // time of the next check
	paths map[[2]int]*watched
	cells []uint64
}

// A watched is the RTT of a path.
type watched struct {
	rtt   uint64
	since time.Duration // when the value was first seen
}

const (
	// missed is the number of consecutive probes of a path that must be missing for the path to
	// have failed, as in programs for software switches.
	missed = 16
	// looks is the number of comparisons of an RTT in that time.
	looks = 4
	// overwritten is an RTT that no probe can have: the largest 16-bit number.
	overwritten = 1<<16 - 1
)

// look compares all RTTs with the previous ones.
func (s *silence) look(now time.Duration, f Fabric) error {
	if now < s.next {
		return nil
	}
	s.next = now + missed/looks*s.period
	for _, g := range s.groups {
		for slot := range g.Hops {
			if err := s.compare(now, f, g.ID, slot); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare compares the RTT of one path.
func (s *silence) compare(now time.Duration, f Fabric, group, slot int) (err error) {
	register, cell := s.rtts.Parts[0].Register.Name, group*manifest.MaxPaths+slot
	if len(s.rtts.Parts) > 1 {
		register, cell = s.rtts.Parts[slot].Register.Name, group
	}
	if s.cells, err = f.ReadRegister(s.sw, register, cell, cell+1, s.cells[:0]); err != nil {
		return err
	}
	key := [2]int{group, slot}
	w := s.paths[key]
	switch {
	case w == nil || w.rtt != s.cells[0]:
		s.paths[key] = &watched{s.cells[0], now}
	case w.rtt != overwritten && now-w.since >= missed*s.period:
		s.paths[key] = &watched{overwritten, now}
		return f.WriteRegister(s.sw, register, cell, cell+1, overwritten)
	}
	return nil
}

// behind reports whether no probe returns on any path through a port: their RTTs were overwritten
// no later than in the last check but one.
func (s *silence) behind(port int) bool {
	found := false
	for _, g := range s.groups {
		for slot, hop := range g.Hops {
			if hop.Port != port {
				continue
			}
			w := s.paths[[2]int{g.ID, slot}]
			if w == nil || w.rtt != overwritten || s.next-w.since < 2*missed/looks*s.period {
				return false
			}
			found = true
		}
	}
	return found
}

// avoided returns the port of the silent path that packets waiting for a port avoid: the first
// silent path after the port's, in the order of slots. It returns 0 if there is none.
func (s *silence) avoided(port int) int {
	for _, g := range s.groups {
		for slot, hop := range g.Hops {
			if hop.Port != port {
				continue
			}
			for turn := range g.Hops {
				if other := g.Hops[(slot+turn)%len(g.Hops)].Port; s.behind(other) {
					return other
				}
			}
		}
	}
	return 0
}
