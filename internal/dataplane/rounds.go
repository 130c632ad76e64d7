package dataplane

import (
	"fmt"
	"strings"
	"time"
)

// A program may process a packet endlessly: resubmit or recirculate it each time, or clone each
// clone. If each round doubles the number of packets, a hundred rounds exhaust any memory.
//
// So a packet starts with a number of rounds, which it shares with all packets
// derived from it. A resubmission, a recirculation and a clone cost one. A clone
// gets half of the remaining rounds, or all of them if the packet itself leaves the
// switch. The members of a multicast group get equal parts. A packet without rounds
// is dropped at its next round, for the reason "rounds".
//
// The packets need no common counter, and the total is bounded: a packet causes
// at most as many copies as it had rounds.
//
// Programs for Tofino use a recirculating packet as a timer: it returns until an event, which
// takes thousands of rounds. An Engine therefore delays a packet that has recirculated often
// without a copy (loopGap), and a delayed round costs nothing, up to mostDelayed times.

// DefaultRounds is the number of rounds of a packet without Options.Rounds.
// Programs need one or two. Even after a multicast to all ports of a switch, each
// copy has some rounds left.
const DefaultRounds = 4096

const (
	patience    = 64      // recirculations without a copy before a packet is delayed
	mostDelayed = 1 << 17 // delayed rounds of a packet
	// loopGap is the time between two delayed packets of a queue to a port in loopback. It
	// bounds the work for packets that recirculate endlessly.
	loopGap = 50 * time.Microsecond
	// endless is the length of a chain of clones for which Options.Endless is called.
	endless = 64
)

// A turn is one return of a packet to the switch.
type turn struct {
	kind EventKind // one of EventRecirculate, EventResubmit and EventClone
	at   uint32    // the port or the clone session
}

// String returns the turn as it appears in messages.
func (t turn) String() string {
	switch t.kind {
	case EventResubmit:
		return fmt.Sprintf("resubmitted from port %d", t.at)
	case EventClone:
		return fmt.Sprintf("cloned to session %d", t.at)
	}
	return fmt.Sprintf("recirculated by port %d", t.at)
}

// A rounds holds the rounds that a packet has left and its last turns.
type rounds struct {
	left  int
	taken int
	copy  bool    // a clone or mirror copy, or derived from one
	way   [4]turn // the last turns: turn number taken is at taken modulo 4

	cloned  int  // clones since the last recirculation or resubmission
	alone   int  // recirculations since the last copy
	delayed int  // delayed rounds
	waits   bool // the next recirculation ends a delayed round
}

// An Ended is a packet that ran out of rounds, or that has been cloned too often.
type Ended struct {
	Port   uint32 // port at which it, or its original, arrived
	Rounds int    // rounds of the packet and of its originals
	Way    string // the last turns, in order
}

// String describes the packet in one line.
func (e Ended) String() string {
	return fmt.Sprintf("a packet of port %d has no round left after %d: … %s", e.Port, e.Rounds, e.Way)
}

// Endless describes a packet of Options.Endless in one line.
func (e Ended) Endless() string {
	return fmt.Sprintf("a packet of port %d has been cloned %d times, each time from the clone before: … %s: want a program that does not clone its clones", e.Port, endless, e.Way)
}

// split gives a copy its share of p's rounds.
func (p *Packet) split(c *Packet, parts int) {
	p.rounds.alone = 0
	c.rounds = p.rounds
	c.rounds.left = p.rounds.left / parts
}

// share gives a clone all rounds of p if p leaves the switch, and half of them
// if p may continue.
func (p *Packet) share(c *Packet, leaves bool) {
	p.rounds.alone = 0
	c.rounds = p.rounds
	c.rounds.copy = true
	if !leaves {
		c.rounds.left /= 2
	}
	p.rounds.left -= c.rounds.left
}

// turns charges p one round for a turn. It reports whether p had one.
func (s *Switch) turns(p *Packet, t turn) bool {
	r := &p.rounds
	r.way[r.taken%len(r.way)] = t
	r.taken++
	if t.kind == EventClone {
		if r.cloned++; r.cloned == endless && !s.told && s.opts.Endless != nil {
			s.told = true
			s.ends = s.opts.Endless(r.end(p))
		}
	} else {
		r.cloned = 0
	}
	if t.kind == EventRecirculate {
		r.alone++
		if r.waits {
			r.waits = false
			r.delayed++
			return true
		}
	}
	if r.left <= 0 || s.ends && r.cloned >= endless {
		s.ended++
		if s.opts.Ended != nil {
			s.opts.Ended(r.end(p))
		}
		return false
	}
	r.left--
	return true
}

// end describes a packet with its last turns.
func (r *rounds) end(p *Packet) Ended {
	n := min(r.taken, len(r.way))
	list := make([]string, 0, n)
	for i := r.taken - n; i < r.taken; i++ {
		list = append(list, r.way[i%len(r.way)].String())
	}
	return Ended{p.ingressPort, r.taken, strings.Join(list, ", ")}
}

// delay reports whether a packet that goes to a port in loopback is delayed.
func (r *rounds) delay() bool {
	r.waits = r.alone >= patience && r.delayed < mostDelayed
	return r.waits
}

// Ended returns the number of packets that ran out of rounds.
func (s *Switch) Ended() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}
