package dataplane

import "time"

// A Held is a Switch that one caller has for itself: packets go through it
// without a lock each, which would be a tenth of what a simulated hop costs.
// Whoever else wants something of the Switch waits for Release, the caller too,
// if it does not use the Held.
type Held struct{ s *Switch }

// Hold waits until nobody else is at work in s.
func (s *Switch) Hold() Held {
	s.mu.Lock()
	return Held{s}
}

// Release lets others at the Switch. The Held must not be used afterwards.
func (h Held) Release() { h.s.mu.Unlock() }

// Arrive is Switch.Receive and Switch.Ingress at once, of a packet of which extra more
// bytes follow than are there.
func (h Held) Arrive(port uint32, head []byte, extra int, now time.Duration, out []Outcome) (*Packet, []Outcome) {
	p := h.s.receive(port, head, extra, now)
	return p, h.s.runIngress(p, now, out)
}

// Ingress is Switch.Ingress.
func (h Held) Ingress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	return h.s.runIngress(p, now, out)
}

// Enqueued is Switch.Enqueued.
func (h Held) Enqueued(p *Packet, depth int, now time.Duration) { h.s.enqueued(p, depth, now) }

// Park makes a packet small that is to wait in a queue: its headers and metadata
// are mostly zeros. Leave and Egress make it large again; until then it has no
// Bytes. It is for those who have very many packets in queues.
func (h Held) Park(p *Packet) { h.s.park(p) }

// Leave is Switch.Egress, and takes what leaves by a port at once: its bytes
// replace data, extra more follow, and the packet is free instead of an outcome.
// If nothing leaves, extra is -1 and data as it was.
func (h Held) Leave(p *Packet, depth int, now time.Duration, data []byte, out []Outcome) (_ []byte, extra int, _ []Outcome) {
	out = h.s.runEgress(p, depth, now, out)
	last := len(out) - 1
	if last < 0 || out[last].Kind != ToPort {
		return data, -1, out
	}
	data, extra = append(data[:0], p.st.Payload()...), p.Extra()
	h.s.release(p)
	return data, extra, out[:last]
}

// Free is Switch.Free.
func (h Held) Free(p *Packet) { h.s.release(p) }

// Passive reports whether Leave makes the same of a packet whenever it is called:
// it leaves by its port, with bytes that nothing can change any more. Such a
// packet may be finished before it waits.
func (h Held) Passive(p *Packet) bool {
	return h.s.passive && p.st.Recirculate == 0 && !p.st.CloneOn
}
