package dataplane

import (
	"time"
)

// A packet passes the switch in steps, so that callers can have their own
// queues:
//
//	Receive → Ingress → (a queue per Outcome; Enqueued) → Egress → (send)
//
// Ingress and Egress take ownership of the packet. They return the outcomes of
// the packet and its copies, in simple_switch's order.

// Receive creates a packet from a copy of data.
func (s *Switch) Receive(port uint32, data []byte, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receive(port, data, 0, now)
}

// receive creates a packet of which only the first bytes are stored; extra bytes
// follow. All lengths include the extra bytes. For the program they are payload: a
// parser that reads them finds the packet too short, and checksums over the payload
// omit them.
func (s *Switch) receive(port uint32, data []byte, extra int, now time.Duration) *Packet {
	p := s.newPacket(len(data))
	p.rounds.left = s.opts.Rounds
	copy(p.st.Buf[p.st.Start:], data)
	length := len(data) + extra
	p.extra, p.ingressPort, p.st.IngressLength, p.st.Length = extra, port, length, length
	s.arch.arrive(p, now)
	return p
}

// Ingress parses p and runs the ingress control. It appends the outcomes to
// out.
func (s *Switch) Ingress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runIngress(p, now, out)
}

func (s *Switch) runIngress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	s.now = now
	return s.arch.ingress(p, now, out)
}

// Enqueued records in p that the queue had depth packets (cells if there is a
// CellSize) when p joined it.
func (s *Switch) Enqueued(p *Packet, depth int, now time.Duration) {
	if s.arch.hasGhost(p) {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	s.enqueued(p, depth, now)
}

func (s *Switch) enqueued(p *Packet, depth int, now time.Duration) {
	if s.opts.Trace != nil {
		s.prog.Trace(&p.st, Event{Kind: EventEnqueue, Value: int64(p.egressPort), Depth: depth})
	}
	s.arch.enqueued(p, depth, now)
}

// Egress runs the egress control on a packet that leaves its queue, with depth
// packets (or cells) still in it. It appends the outcomes to out.
func (s *Switch) Egress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runEgress(p, depth, now, out)
}

func (s *Switch) runEgress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
	if p.st.Buf == nil {
		// Restore the bytes of a parked packet.
		s.equip(p, p.st.End)
		rest := readWords(p.st.W, p.parked)
		copy(p.st.Buf[p.st.Start:], rest)
	}
	return s.arch.egress(p, depth, now, out)
}
