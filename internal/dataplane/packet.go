package dataplane

import (
	"math"
	"math/bits"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Packet is a packet inside the switch: what the program sees of it, and what
// the switch knows besides. Packets belong to the Switch that made them and go
// back to it with Free.
type Packet struct {
	st     vector.State
	extra  int    // bytes that follow, of which only the number is known
	parked []byte // the packet without its storage; see Park
	tm     *forTM // of Tofino alone

	ingressPort uint32
	egressPort  uint32
	priority    int
	rounds      rounds
}

// slack is the room behind a packet's bytes, so that eight bytes can be loaded
// at any of them.
const slack = 16

// storage is the large part of a packet, which it has only while it is worked
// on. What was given back last is used first: it is still in the cache.
type storage struct {
	w   []uint64
	buf []byte
}

// newPacket returns a packet with zero headers and metadata and room for n
// bytes.
func (s *Switch) newPacket(n int) *Packet {
	var p *Packet
	if last := len(s.free) - 1; last >= 0 {
		p = s.free[last]
		s.free = s.free[:last]
		*p = Packet{parked: p.parked[:0], tm: p.tm}
	} else {
		p = s.arch.newPacket()
	}
	s.equip(p, n)
	clear(p.st.W)
	p.st.Scratch, p.st.Limit = &s.prog.Scratch, math.MaxInt
	s.nextID++
	p.st.ID = s.nextID
	return p
}

// equip gives a packet its storage, with room for n bytes.
func (s *Switch) equip(p *Packet, n int) {
	if last := len(s.spare) - 1; last >= 0 {
		p.st.W, p.st.Buf = s.spare[last].w, s.spare[last].buf
		s.spare = s.spare[:last]
	} else {
		p.st.W = s.arch.vector()
	}
	if need := s.headroom + n + slack; len(p.st.Buf) < need {
		p.st.Buf = make([]byte, roundUp(need))
	}
	p.st.Start = s.headroom
	p.st.Head, p.st.End = p.st.Start, p.st.Start+n
}

// strip takes a packet's storage.
func (s *Switch) strip(p *Packet) {
	if p.st.Buf != nil {
		s.spare = append(s.spare, storage{p.st.W, p.st.Buf})
		p.st.W, p.st.Buf = nil, nil
	}
}

// roundUp makes the sizes of buffers few, so that packets of other lengths can
// have them, and small.
func roundUp(n int) int {
	if n <= 512 {
		return (n + 63) &^ 63
	}
	return 1 << bits.Len(uint(n-1))
}

// Free gives a packet back to its switch. Its bytes must not be used
// afterwards.
func (s *Switch) Free(p *Packet) {
	s.mu.Lock()
	s.release(p)
	s.mu.Unlock()
}

func (s *Switch) release(p *Packet) {
	s.strip(p)
	s.free = append(s.free, p)
}

// ID numbers the packets of a switch, copies included.
func (p *Packet) ID() uint64 { return p.st.ID }

// Bytes is what is left to parse, or the payload, or after Egress the packet
// to send.
func (p *Packet) Bytes() []byte { return p.st.Payload() }

// Len is the length of the packet as simple_switch counts it for queues and
// metadata: that received, plus headers added, minus headers removed.
func (p *Packet) Len() int { return p.st.Length }

// Extra is the number of bytes that follow Bytes on the wire but are not there:
// those of Held.Arrive, less what truncate cuts off.
func (p *Packet) Extra() int { return min(p.extra, max(0, p.st.Limit-(p.st.End-p.st.Head))) }

// IngressPort is where the packet, or what it was copied from, came in. The
// metadata of that name is 0 after a recirculation.
func (p *Packet) IngressPort() uint32 { return p.ingressPort }

// shorten cuts the bytes from the end so that n are left; 0 leaves all. What
// the headers take cannot be cut before they are written: limit sees to that.
func (p *Packet) shorten(n int) {
	surplus := p.st.Length - n
	if n == 0 || surplus <= 0 {
		return
	}
	p.st.Length, p.st.IngressLength = n, min(n, p.st.IngressLength)
	absent := min(surplus, p.extra)
	p.extra -= absent
	surplus -= absent
	present := min(surplus, p.st.End-p.st.Head)
	p.st.End -= present
	if surplus > present {
		p.st.Truncate(uint64(n))
	}
}

// copyBytes returns a new packet with the bytes from p.buf[from] on.
func (s *Switch) copyBytes(p *Packet, from int) *Packet {
	c := s.newPacket(p.st.End - from)
	copy(c.st.Buf[c.st.Start:], p.st.Buf[from:p.st.End])
	c.extra = p.extra
	c.ingressPort, c.st.IngressLength = p.ingressPort, p.st.IngressLength
	return c
}

// copyHeaders returns a new packet with the payload, the headers and the
// metadata of p. What p holds in invalid headers does not come along.
func (s *Switch) copyHeaders(p *Packet) *Packet {
	c := s.copyBytes(p, p.st.Head)
	copy(c.st.W, p.st.W)
	for _, h := range s.prog.Layout.Headers {
		if !h.IsValid(&p.st) {
			clear(c.st.W[h.Base : h.Base+h.Type.Size])
		}
	}
	c.st.Length = p.st.Length
	return c
}

// resetMetadata sets all metadata to zero.
func (s *Switch) resetMetadata(p *Packet) {
	clear(p.st.W[s.prog.Layout.Metadata[0]:s.prog.Layout.Metadata[1]])
}

// Queue returns the queue that a program for Tofino has picked for the packet; 0 for
// other programs.
func (p *Packet) Queue() uint8 {
	if p.tm == nil {
		return 0
	}
	return p.tm.qid
}

// An OutcomeKind is what is to be done with the packet of an Outcome.
type OutcomeKind byte

// The kinds of outcome.
const (
	// ToQueue: queue it for Port and Priority, call Enqueued, later Egress; or
	// Free it if the queue is full.
	ToQueue OutcomeKind = iota
	// ToIngress: Ingress again, before packets that come from outside. It has
	// been resubmitted or recirculated.
	ToIngress
	// ToPort: send Packet.Bytes out of Port, then Free it.
	ToPort
	// ToScheduler: pause or resume the queue Queue of Port. There is no Packet.
	ToScheduler
)

// An Outcome is a packet and what is to be done with it.
type Outcome struct {
	Kind     OutcomeKind
	Packet   *Packet
	Port     uint32
	Priority int
	// Of ToScheduler: the queue of the port, which is Priority if the switch has so many.
	Queue uint8
	Pause bool
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func btoi(b bool) int { return int(b2u(b)) }

// forTM is what goes with the bytes of a packet through the traffic manager.
type forTM struct {
	enqTime     time.Duration
	enqDepth    int
	rid         uint16
	ridFirst    bool
	qid, cos    uint8
	bypass      bool // egress
	resubmitted bool
}

// An architecture is what a packet meets between the ends of a Switch: the steps of
// simple_switch or of Tofino. They see what the Switch has done already: the bytes
// are there, the locks taken, events told.
type architecture interface {
	// newPacket makes a packet, and vector the words that it gets as storage.
	newPacket() *Packet
	vector() []uint64
	arrive(p *Packet, now time.Duration)
	ingress(p *Packet, now time.Duration, out []Outcome) []Outcome
	// enqueued notes that p waits; tells is whether that writes registers.
	enqueued(p *Packet, depth int, now time.Duration)
	tells(p *Packet) bool
	egress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome
	// hasPriority is whether packets can be sent to a queue of a priority.
	hasPriority(priority int) bool
}
