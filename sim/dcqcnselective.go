package sim

// What a receiver that keeps early packets (Selective, KeepEarly) tells, and what
// its sender does about it: IRN's loss recovery (Mittal et al., SIGCOMM 2018). A
// Nack says which packet came early. The sender then repeats once each packet
// that is missing below what has arrived, and goes on with new ones; it repeats
// others only after all that was on its way at the first Nack is acknowledged.

// A recovery is the sender's side of it.
type recovery struct {
	arrived ranges // early, as Nacks have told
	end     int64  // what had been sent when it began; 0: there is none
	upto    int64  // what is missing below is repeated
	at      int64  // that has been done so far
}

// heed takes in what a Nack says has arrived, and returns where the sender goes
// on. It reports whether a recovery begins.
func (r *recovery) heed(a *Packet, una, next, high int64) (int64, bool) {
	for _, early := range a.Sacks[:a.NSacks] {
		r.arrived.add(early)
	}
	r.upto = max(r.upto, r.arrived.top())
	if r.end == 0 {
		r.end, r.at = high, una
		return una, true
	}
	return min(next, max(r.at, una)), false
}

// timeout has everything repeated that is not known to have arrived.
func (r *recovery) timeout(una, high int64) { r.end, r.upto, r.at = high, high, una }

// acknowledged takes in that all before a byte has arrived.
func (r *recovery) acknowledged(una int64) {
	r.arrived.drop(una)
	if una >= r.end {
		r.end, r.upto = 0, 0
	}
}

// skip is the byte to send where it would be next, with high the end of what has
// been sent.
func (r *recovery) skip(next, high int64) int64 {
	if next >= high {
		return next
	}
	next, _ = r.arrived.gap(next, high)
	r.at = next
	if next >= r.upto {
		return high
	}
	return next
}

// keep takes in a packet that may be early, and reports whether it is new. What
// is expected moves past all that is there.
func (r *goBackReceiver) keep(p *Packet) bool {
	fresh := r.kept.add(Range{p.Seq, p.Seq + int64(p.Payload)}) > 0
	if p.Seq <= r.expected {
		if next, _ := r.kept.gap(r.expected, never64); next > r.expected {
			r.expected = next
		}
		r.kept.drop(r.expected)
	}
	return fresh
}
