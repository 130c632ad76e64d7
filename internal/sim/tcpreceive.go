package sim

import "time"

// A tcpReceiver is the receiving half of a TCP connection. It reassembles the bytes and sends
// acknowledgments, with SACK (RFC 2018) and an echo of congestion for every packet (RFC 8257).
type tcpReceiver struct {
	t *Tuning
	c *FlowStats

	expected int64  // all bytes below have arrived (RCV.NXT)
	highest  int64  // end of the highest packet
	held     ranges // ranges received beyond expected
	recent   [3]int64
	nrecent  int // number of entries in recent: starts of the latest ranges, latest first

	ce      bool          // CE of the last packet
	stamp   time.Duration // Sent of the packet to be acknowledged
	unacked int           // packets that are not acknowledged
	now     bool          // send the acknowledgment at once
	early   bool          // first acknowledge the packets before a change of CE
	alarm   time.Duration // deadline of a delayed acknowledgment
	prior   tcpAnswer     // contents of the acknowledgment for early
}

// A tcpAnswer is the contents of an acknowledgment, saved before later packets change them.
type tcpAnswer struct {
	ack   int64
	stamp time.Duration
}

func newTCPReceiver(t *Tuning, c *FlowStats) *tcpReceiver {
	return &tcpReceiver{t: t, c: c, alarm: never}
}

func (r *tcpReceiver) deadline() time.Duration  { return r.alarm }
func (r *tcpReceiver) ready(time.Duration) bool { return r.now || r.early }

// receive handles data.
func (r *tcpReceiver) receive(now time.Duration, p *Packet) {
	if p.CE {
		r.c.Marked++
	}
	if p.CE != r.ce {
		// RFC 8257, Section 3.2: acknowledge the previous CE before it changes.
		r.early = r.unacked > 0
		r.prior = tcpAnswer{r.expected, r.stamp}
		r.ce, r.unacked = p.CE, 0
	}
	end := p.Seq + int64(p.Payload)
	inOrder := p.Seq == r.expected && len(r.held) == 0
	r.judge(p)
	if inOrder {
		r.expected = end
		r.c.Received += int64(p.Payload)
	} else {
		r.hold(p.Seq, end)
	}
	r.highest = max(r.highest, end)
	if r.unacked == 0 {
		r.stamp = p.Stamp
	}
	r.unacked++
	r.schedule(now, inOrder)
}

// judge records how far the packet's position differs from the expected one.
func (r *tcpReceiver) judge(p *Packet) {
	if p.Seq > r.expected {
		r.c.early(p.Seq-r.expected, int64(r.t.Segment))
	}
	if p.Seq < r.highest && p.Number == 0 {
		r.c.Overtaken++
	}
}

// hold handles a packet that is out of order, is a copy, or fills a gap.
func (r *tcpReceiver) hold(from, to int64) {
	fresh := r.held.add(Range{max(from, r.expected), to})
	if fresh == 0 {
		r.c.Duplicates++
		return
	}
	r.c.Received += fresh
	if r.held[0].From <= r.expected {
		r.expected = r.held[0].To
		r.held.drop(r.expected)
	} else {
		r.remember(from)
	}
}

// remember stores the positions of the latest packets out of order.
func (r *tcpReceiver) remember(from int64) {
	r.nrecent = min(r.nrecent+1, len(r.recent))
	copy(r.recent[1:r.nrecent], r.recent[:r.nrecent-1])
	r.recent[0] = from
}

// schedule decides when to acknowledge the packet. It delays the acknowledgment only if delays
// are configured, no other packet waits for one, and nothing is out of order (RFC 5681, Section
// 4.2). Otherwise it sends it at once.
func (r *tcpReceiver) schedule(now time.Duration, inOrder bool) {
	if r.t.DelayedAck == 0 || r.unacked >= 2 || !inOrder {
		r.now = true
	} else if r.alarm == never {
		r.alarm = now + r.t.DelayedAck
	}
}

// emit fills in an acknowledgment.
func (r *tcpReceiver) emit(_ time.Duration, a *Packet) {
	a.Kind = Ack
	if r.early {
		r.early = false
		a.Ack, a.Stamp, a.Echo = r.prior.ack, r.prior.stamp, !r.ce
		return
	}
	a.Ack, a.Stamp, a.Echo = r.expected, r.stamp, r.ce
	if len(r.held) > 0 && !r.t.NewReno {
		r.blocks(a)
	}
	r.now, r.unacked, r.alarm = false, 0, never
}

// blocks reports the held ranges: first the one with the latest packet, then
// those reported before it, then any others.
func (r *tcpReceiver) blocks(a *Packet) {
	for _, x := range r.recent[:r.nrecent] {
		if i := r.held.find(x); i < len(r.held) && r.held[i].From <= x {
			report(a, r.held[i])
		}
	}
	for i := len(r.held) - 1; i >= 0 && int(a.NSacks) < len(a.Sacks); i-- {
		report(a, r.held[i])
	}
}

// report adds a block to an acknowledgment unless it has it.
func report(a *Packet, block Range) {
	for _, b := range a.Sacks[:a.NSacks] {
		if b == block {
			return
		}
	}
	if int(a.NSacks) < len(a.Sacks) {
		a.Sacks[a.NSacks] = block
		a.NSacks++
	}
}

// tick handles the deadline of the timer.
func (r *tcpReceiver) tick(now time.Duration) {
	if now >= r.alarm {
		r.now, r.alarm = true, never
	}
}
