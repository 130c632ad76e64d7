package dataplane

import (
	"time"
)

// The way of a packet is cut where a caller may want queues of its own:
//
//	Receive → Ingress → (a queue per Outcome; Enqueued) → Egress → (send)
//
// Ingress and Egress take the packet over and return what becomes of it, and
// of its copies, in the order in which simple_switch acts.

// Receive takes in a packet; data is copied.
func (s *Switch) Receive(port uint32, data []byte, now time.Duration) *Packet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receive(port, data, 0, now)
}

// receive takes in a packet of which only the first bytes are there, and
// the number of those that follow. All lengths count them. To the program they
// are payload: a parser that wants to extract or look at them finds that the
// packet ends too soon, and checksums with payload leave them out.
func (s *Switch) receive(port uint32, data []byte, extra int, now time.Duration) *Packet {
	p := s.newPacket(len(data))
	p.rounds.left = s.opts.Rounds
	copy(p.st.Buf[p.st.Start:], data)
	length := len(data) + extra
	p.extra, p.ingressPort, p.st.IngressLength, p.st.Length = extra, port, length, length
	s.arch.arrive(p, now)
	return p
}

// Ingress parses p and runs the ingress control. The outcomes are appended to
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

// Enqueued notes in p that it has been put into its queue behind depth
// packets, or cells where there is a CellSize.
func (s *Switch) Enqueued(p *Packet, depth int, now time.Duration) {
	if s.arch.tells(p) {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	s.enqueued(p, depth, now)
}

func (s *Switch) enqueued(p *Packet, depth int, now time.Duration) {
	if s.opts.Trace != nil {
		s.prog.Trace(p.st.ID, Event{Kind: EventEnqueue, Value: int64(p.egressPort), Depth: depth})
	}
	s.arch.enqueued(p, depth, now)
}

// Egress runs the egress control on a packet that leaves its queue, with depth
// packets (or cells) still in it. The outcomes are appended to out.
func (s *Switch) Egress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runEgress(p, depth, now, out)
}

func (s *Switch) runEgress(p *Packet, depth int, now time.Duration, out []Outcome) []Outcome {
	if p.st.Buf == nil {
		// The bytes of a packet that was parked come back from its words.
		s.equip(p, p.st.End)
		rest := readWords(p.st.W, p.parked)
		copy(p.st.Buf[p.st.Start:], rest)
	}
	return s.arch.egress(p, depth, now, out)
}
