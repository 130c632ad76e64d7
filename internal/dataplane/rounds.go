package dataplane

import (
	"fmt"
	"strings"
)

// A program may send a packet round for ever: resubmit or recirculate it each
// time, or clone each clone; and where a round makes two of one, a hundred
// rounds are more packets than there is memory for. So a packet comes with a
// number of rounds that it and all that becomes of it share. A resubmission, a
// recirculation and a clone take one. A clone gets half of what is left, or all
// of it where the packet itself leaves the switch, and the members of a multicast
// group get equal parts. Who has none left ends at the next
// round, as a drop for the reason "rounds". The parts of a packet need no common
// counter that way, and what becomes of one packet ends by itself: it makes no
// more copies than it had rounds.

// DefaultRounds is how many rounds a packet has where Options say nothing.
// Programs take one or two; a multicast group of all ports of a switch still
// leaves each copy some.
const DefaultRounds = 4096

// A turn is one step of a packet's way back into the switch.
type turn struct {
	kind EventKind // EventRecirculate, EventResubmit or EventClone
	at   uint32    // the port or the session
}

// String is the step as a message has it.
func (t turn) String() string {
	switch t.kind {
	case EventResubmit:
		return fmt.Sprintf("resubmitted from port %d", t.at)
	case EventClone:
		return fmt.Sprintf("cloned to session %d", t.at)
	}
	return fmt.Sprintf("recirculated by port %d", t.at)
}

// rounds are what a packet may go still, and the last of those that it went.
type rounds struct {
	left int
	gone int
	copy bool    // it is a clone or a mirror, or comes of one
	way  [4]turn // the last, by gone modulo its length
}

// An Ended is a packet that had no round left.
type Ended struct {
	Port   uint32 // it came by, or what it was made of did
	Rounds int    // that it went, its own and those of what it was made of
	Way    string // the last steps, the first one first
}

// String says it in one line.
func (e Ended) String() string {
	return fmt.Sprintf("a packet of port %d has no round left after %d: … %s", e.Port, e.Rounds, e.Way)
}

// split gives a copy its part of the rounds of p.
func (p *Packet) split(c *Packet, parts int) {
	c.rounds = p.rounds
	c.rounds.left = p.rounds.left / parts
}

// share gives a clone its rounds: all that p has where p leaves the switch, half
// of them where p may go on.
func (p *Packet) share(c *Packet, leaves bool) {
	c.rounds = p.rounds
	c.rounds.copy = true
	if !leaves {
		c.rounds.left /= 2
	}
	p.rounds.left -= c.rounds.left
}

// turns takes a round from p for a step. It reports whether p had one.
func (s *Switch) turns(p *Packet, t turn) bool {
	r := &p.rounds
	r.way[r.gone%len(r.way)] = t
	r.gone++
	if r.left <= 0 {
		s.ended++
		if s.opts.Ended != nil {
			n := min(r.gone, len(r.way))
			list := make([]string, 0, n)
			for i := r.gone - n; i < r.gone; i++ {
				list = append(list, r.way[i%len(r.way)].String())
			}
			s.opts.Ended(Ended{p.ingressPort, r.gone, strings.Join(list, ", ")})
		}
		return false
	}
	r.left--
	return true
}

// Ended is the number of packets that had no round left.
func (s *Switch) Ended() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}
