package dataplane

import (
	"math"
	"math/bits"
)

// A Packet is a packet inside the switch: what the program sees of it, and what
// the switch knows besides. Packets belong to the Switch that made them and go
// back to it with Free.
type Packet struct {
	State
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
		p = new(Packet)
		if s.tofino != nil {
			p.tm = new(forTM)
		}
	}
	s.equip(p, n)
	clear(p.w)
	p.ex, p.limit = &s.ex, math.MaxInt
	s.nextID++
	p.id = s.nextID
	return p
}

// equip gives a packet its storage, with room for n bytes.
func (s *Switch) equip(p *Packet, n int) {
	if last := len(s.spare) - 1; last >= 0 {
		p.w, p.buf = s.spare[last].w, s.spare[last].buf
		s.spare = s.spare[:last]
	} else if s.tofino == nil {
		p.w = make([]uint64, s.lay.words)
	}
	if need := s.headroom + n + slack; len(p.buf) < need {
		p.buf = make([]byte, roundUp(need))
	}
	p.start = s.headroom
	p.head, p.end = p.start, p.start+n
}

// strip takes a packet's storage.
func (s *Switch) strip(p *Packet) {
	if p.buf != nil {
		s.spare = append(s.spare, storage{p.w, p.buf})
		p.w, p.buf = nil, nil
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
func (p *Packet) ID() uint64 { return p.id }

// Bytes is what is left to parse, or the payload, or after Egress the packet
// to send.
func (p *Packet) Bytes() []byte { return p.payload() }

// Len is the length of the packet as simple_switch counts it for queues and
// metadata: that received, plus headers added, minus headers removed.
func (p *Packet) Len() int { return p.length }

// Extra is the number of bytes that follow Bytes on the wire but are not there:
// those of ReceiveHead, less what truncate cuts off.
func (p *Packet) Extra() int { return min(p.extra, max(0, p.limit-(p.end-p.head))) }

// IngressPort is where the packet, or what it was copied from, came in. The
// metadata of that name is 0 after a recirculation.
func (p *Packet) IngressPort() uint32 { return p.ingressPort }

// EgressPort is the port that the packet is queued for.
func (p *Packet) EgressPort() uint32 { return p.egressPort }

// Priority is the queue of the port that the packet is queued in.
func (p *Packet) Priority() int { return p.priority }

// shorten cuts the bytes from the end so that n are left; 0 leaves all. What
// the headers take cannot be cut before they are written: limit sees to that.
func (p *Packet) shorten(n int) {
	surplus := p.length - n
	if n == 0 || surplus <= 0 {
		return
	}
	p.length, p.ingressLength = n, min(n, p.ingressLength)
	absent := min(surplus, p.extra)
	p.extra -= absent
	surplus -= absent
	present := min(surplus, p.end-p.head)
	p.end -= present
	if surplus > present {
		p.truncate(uint64(n))
	}
}

// copyBytes returns a new packet with the bytes from p.buf[from] on.
func (s *Switch) copyBytes(p *Packet, from int) *Packet {
	c := s.newPacket(p.end - from)
	copy(c.buf[c.start:], p.buf[from:p.end])
	c.extra = p.extra
	c.ingressPort, c.ingressLength = p.ingressPort, p.ingressLength
	return c
}

// copyHeaders returns a new packet with the payload, the headers and the
// metadata of p. What p holds in invalid headers does not come along.
func (s *Switch) copyHeaders(p *Packet) *Packet {
	c := s.copyBytes(p, p.head)
	copy(c.w, p.w)
	for _, h := range s.lay.headers {
		if !h.isValid(&p.State) {
			clear(c.w[h.base : h.base+h.typ.size])
		}
	}
	c.length = p.length
	return c
}

// resetMetadata sets all metadata to zero.
func (s *Switch) resetMetadata(p *Packet) { clear(p.w[s.lay.metadata[0]:s.lay.metadata[1]]) }
