package dataplane

import "time"

// A Held is exclusive access to a Switch. Its methods take no lock for each packet,
// because locking took a tenth of the time of a simulated hop. All other uses of
// the Switch wait for Release, including calls of the holder itself.
type Held struct{ s *Switch }

// Hold waits until no other goroutine uses s.
func (s *Switch) Hold() Held {
	s.mu.Lock()
	return Held{s}
}

// Release ends exclusive access. The Held must not be used afterwards.
func (h Held) Release() { h.s.mu.Unlock() }

// Arrive combines Switch.Receive and Switch.Ingress, for a packet whose last extra
// bytes are not stored.
func (h Held) Arrive(port uint32, head []byte, extra int, now time.Duration, out []Outcome) (*Packet, []Outcome) {
	p := h.s.receive(port, head, extra, now)
	return p, h.s.runIngress(p, now, out)
}

// Ingress is Switch.Ingress without the lock.
func (h Held) Ingress(p *Packet, now time.Duration, out []Outcome) []Outcome {
	return h.s.runIngress(p, now, out)
}

// Enqueued is Switch.Enqueued without the lock.
func (h Held) Enqueued(p *Packet, depth int, now time.Duration) { h.s.enqueued(p, depth, now) }

// Park compresses a packet that will wait in a queue: its headers and metadata are
// mostly zeros. Leave and Egress restore it; until then it has no Bytes. It is
// worthwhile if very many packets wait in queues.
func (h Held) Park(p *Packet) { h.s.park(p) }

// Leave is Switch.Egress for a packet that usually leaves by a port. It appends the
// packet's bytes to data[:0], returns the number of extra bytes after them, and
// frees the packet. If no packet leaves, extra is -1 and data is unchanged.
func (h Held) Leave(p *Packet, depth int, now time.Duration, data []byte, out []Outcome) (_ []byte, extra int, _ []Outcome) {
	out = h.s.runEgress(p, depth, now, out)
	last := len(out) - 1
	if last < 0 || out[last].Kind != ToPort {
		return data, -1, out
	}
	data, extra = append(data[:0], p.st.Payload()...), p.extraBytes()
	h.s.release(p)
	return data, extra, out[:last]
}

// Free is Switch.Free without the lock.
func (h Held) Free(p *Packet) { h.s.release(p) }

// Shorten cuts bytes off the end of a packet between ingress and egress, so that n remain.
func (h Held) Shorten(p *Packet, n int) { p.shorten(n) }

// Passive reports whether Leave gives the same result for a packet at any time:
// the packet leaves by its port with bytes that cannot change any more. The
// caller may finish such a packet before it waits.
func (h Held) Passive(p *Packet) bool {
	return h.s.passive && p.st.Recirculate == 0 && !p.st.CloneOn
}
