package dataplane

import (
	"math"
	"math/bits"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Packet is a packet inside the switch: the state that the program sees, and
// the switch's own data. Packets belong to the Switch that created them and
// return to it with Free.
type Packet struct {
	st     vector.State
	extra  int    // number of bytes that follow but are not stored
	parked []byte // the compressed packet: see Park
	tm     *forTM // data for the traffic manager; only for Tofino

	ingressPort uint32
	egressPort  uint32
	priority    int
	rounds      rounds
}

// slack is the room after the bytes of a packet, so that eight bytes can be loaded
// from any position.
const slack = 16

// storage is the large part of a packet, which it has only while it is
// processed. The storage freed last is used first, because it is still in the
// cache.
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
		parked, tm := p.parked[:0], p.tm
		*p = Packet{}
		p.parked, p.tm = parked, tm
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

// equip attaches storage to a packet, with room for at least n bytes.
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

// strip detaches the storage of a packet.
func (s *Switch) strip(p *Packet) {
	if p.st.Buf != nil {
		s.spare = append(s.spare, storage{p.st.W, p.st.Buf})
		p.st.W, p.st.Buf = nil, nil
	}
}

// roundUp keeps the number of buffer sizes small, so that packets of different
// lengths can share buffers.
func roundUp(n int) int {
	if n <= 512 {
		return (n + 63) &^ 63
	}
	return 1 << bits.Len(uint(n-1))
}

// Free returns a packet to its switch. Its bytes must not be used afterwards.
func (s *Switch) Free(p *Packet) {
	s.mu.Lock()
	s.release(p)
	s.mu.Unlock()
}

func (s *Switch) release(p *Packet) {
	s.strip(p)
	s.free = append(s.free, p)
}

// Bytes returns the bytes that are not parsed yet, the payload, or after Egress
// the packet to send.
func (p *Packet) Bytes() []byte { return p.st.Payload() }

// Len returns the length of the packet as simple_switch counts it for queues
// and metadata: the bytes received, plus headers added, minus headers removed.
func (p *Packet) Len() int { return p.st.Length }

// Sent returns the length of the packet without the bytes that truncate removes.
func (p *Packet) Sent() int { return min(p.st.Length, p.st.Limit) }

// extraBytes returns the number of bytes that follow Bytes on the wire but are not
// present: the extra bytes of Held.Arrive, minus the bytes that truncate removes.
func (p *Packet) extraBytes() int { return min(p.extra, max(0, p.st.Limit-(p.st.End-p.st.Head))) }

// shorten removes bytes from the end so that n remain; 0 keeps all. Headers are
// bytes only after the deparser, so it sets a limit for the deparser.
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
// metadata of p. It does not copy invalid headers.
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

// Queue returns the queue of the packet that a program for Tofino has selected; 0
// for other programs.
func (p *Packet) Queue() uint8 {
	if p.tm == nil {
		return 0
	}
	return p.tm.qid
}

// An OutcomeKind is the next step for a packet, to be taken by the caller.
type OutcomeKind byte

// The kinds of outcome.
const (
	// ToQueue: queue the packet for Port and Priority, call Enqueued, later
	// Egress; or call Free if the queue is full.
	ToQueue OutcomeKind = iota
	// ToIngress: call Ingress again, before packets from outside. The packet
	// was resubmitted or recirculated.
	ToIngress
	// ToPort: send Packet.Bytes out of Port, then call Free.
	ToPort
	// ToScheduler: pause or resume the queue Queue of Port. There is no Packet.
	ToScheduler
)

// An Outcome is a packet and the next step for it.
type Outcome struct {
	Packet   *Packet
	Priority int
	Port     uint32
	Kind     OutcomeKind
	// For ToScheduler: the queue of the port. It equals Priority if the switch has as many
	// queues.
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

// forTM is the metadata that accompanies the bytes of a packet through the
// traffic manager.
type forTM struct {
	enqTime     time.Duration
	enqDepth    int
	rid         uint16
	ridFirst    bool
	qid, cos    uint8
	bypass      bool // skip egress
	resubmitted bool
}

// An architecture implements the steps of simple_switch or of Tofino inside a
// Switch. Before it calls them, the Switch has prepared the bytes, taken the
// locks and reported trace events.
type architecture interface {
	// newPacket creates a packet, and vector the words of its storage.
	newPacket() *Packet
	vector() []uint64
	arrive(p *Packet, now time.Duration)
	ingress(p *Packet, now time.Duration, out []Outcome) []Outcome
	// enqueued records that p waits in a queue. hasGhost reports whether this writes registers.
	enqueued(p *Packet, depth int, now time.Duration)
	hasGhost(p *Packet) bool
	egress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome
	// hasPriority reports whether packets can be sent to a queue of a priority.
	hasPriority(priority int) bool
}
