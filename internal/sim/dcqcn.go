package sim

import (
	"math"
	"time"
)

// A reaction is DCQCN's reaction point (Zhu et al., SIGCOMM 2015): the rate of a flow
// falls with notifications of congestion and rises with time. As in network cards and
// the simulator of RLB's authors, a reduction happens at the end of its interval.
//
// Alpha changes once in each of its intervals. Only reductions read it, so it is updated
// lazily.
type reaction struct {
	t    *RDMA
	line float64 // bit/s

	rate, target float64 // R_C and R_T of the paper
	alpha        float64
	noticed      bool          // a notification has arrived at least once
	seen         bool          // a notification arrived in the current interval of alpha
	alphaFrom    time.Duration // start of the current interval of alpha
	cutFrom      time.Duration // start of the first interval of rate reductions
	cutAt        time.Duration // time of the next reduction, or never
	raiseAt      time.Duration // time of the next increase, or never
	raises       int           // increases by the timer since the last reduction
	byteRaises   int           // increases by the byte counter since the last reduction
	bytes        int64         // bytes sent since the last increase by the byte counter
}

func newReaction(t *RDMA, line int64) reaction {
	rate := float64(line)
	return reaction{t: t, line: rate, rate: rate, target: rate, alpha: 1, cutAt: never, raiseAt: never}
}

// notice handles a notification of congestion.
func (r *reaction) notice(now time.Duration) {
	if !r.noticed {
		r.noticed, r.alphaFrom, r.cutFrom = true, now, now
	}
	r.settle(now)
	r.seen = true
	if r.cutAt == never {
		passed := (now - r.cutFrom) / r.t.CutInterval
		r.cutAt = r.cutFrom + (passed+1)*r.t.CutInterval
	}
}

// settle updates alpha for the intervals that have passed.
func (r *reaction) settle(now time.Duration) {
	n := (now - r.alphaFrom) / r.t.AlphaInterval
	if n <= 0 {
		return
	}
	r.alphaFrom += n * r.t.AlphaInterval
	r.alpha *= math.Pow(1-r.t.Gain, float64(n))
	if r.seen {
		// Only the first of the n intervals had congestion; its contribution g decays in the
		// others.
		r.alpha += r.t.Gain * math.Pow(1-r.t.Gain, float64(n-1))
		r.seen = false
	}
}

func (r *reaction) deadline() time.Duration { return min(r.cutAt, r.raiseAt) }

// tick handles the deadlines that have passed.
func (r *reaction) tick(now time.Duration) {
	if now >= r.cutAt {
		r.cut(now)
	}
	if now >= r.raiseAt {
		r.raises++
		r.raiseAt = now + r.t.RaiseInterval
		r.raise()
	}
}

// cut reduces the rate. The target stays if the rate has not risen since the last cut.
func (r *reaction) cut(now time.Duration) {
	r.settle(now)
	if r.raises+r.byteRaises > 0 || r.raiseAt == never {
		r.target = r.rate
	}
	r.rate = max(r.rate*(1-r.alpha/2), float64(r.t.MinRate))
	r.raises, r.byteRaises, r.bytes = 0, 0, 0
	r.cutAt, r.raiseAt = never, now+r.t.RaiseInterval
}

// sent counts bytes towards a raise.
func (r *reaction) sent(bytes int64) {
	if r.raiseAt == never || r.t.RaiseBytes == never64 {
		return
	}
	for r.bytes += bytes; r.bytes >= r.t.RaiseBytes; r.bytes -= r.t.RaiseBytes {
		r.byteRaises++
		r.raise()
	}
}

// raise moves the rate halfway to the target. After fast recovery the target rises too: slowly if
// one of the two counters has passed fast recovery, quickly if both have.
func (r *reaction) raise() {
	least, most := min(r.raises, r.byteRaises), max(r.raises, r.byteRaises)
	if r.t.RaiseBytes == never64 {
		least = most
	}
	switch {
	case most <= r.t.Recovery:
	case least <= r.t.Recovery+1:
		r.target += float64(r.t.Additive)
	default:
		r.target += float64(r.t.Hyper)
	}
	r.target = min(r.target, r.line)
	r.rate = (r.rate + r.target) / 2
	if r.line-r.rate < float64(r.t.Additive)/2 {
		// The rate is close enough to the line rate: no more increases until the next reduction.
		r.rate, r.raiseAt = r.line, never
	}
}

// A dcqcnSender is the sending half of an RDMA connection, paced by DCQCN. After a
// Nack or a timeout it goes back to the first missing byte. If the receiver keeps
// early packets, it repeats only the missing ones. The window only limits how much
// a broken path can lose. The timeout follows the measured round-trip time as in
// TCP, so it needs no configuration.
type dcqcnSender struct {
	t *Tuning
	c *FlowStats
	r reaction

	size  int64
	una   int64         // all bytes below are acknowledged
	next  int64         // next byte to send
	high  int64         // end of the bytes sent
	at    time.Duration // earliest time of the next packet by the pace; never: the pace does not limit packets
	rtt   roundTrip
	alarm time.Duration
	lost  recovery // used if the receiver keeps early packets
}

func newDCQCNSender(t *Tuning, c *FlowStats, size, line int64) *dcqcnSender {
	s := &dcqcnSender{t: t, c: c, r: newReaction(&t.RDMA, line), size: size, at: never, alarm: never}
	s.lost.all = t.RDMA.RepeatAll
	s.lost.ripeAt = never
	s.rtt.init(t)
	return s
}

// inherit takes over the rate of the connection's previous flow.
func (s *dcqcnSender) inherit(from half) {
	if before, ok := from.(*dcqcnSender); ok {
		s.r, s.rtt = before.r, before.rtt
	}
}

// open reports whether the sender has a packet to send, now or later.
func (s *dcqcnSender) open() bool {
	return s.next < s.size && s.next-s.una < s.t.RDMA.Window
}

func (s *dcqcnSender) ready(now time.Duration) bool {
	if now >= s.at {
		s.at = never
	}
	return s.at == never && s.open()
}

func (s *dcqcnSender) deadline() time.Duration {
	if s.una >= s.size {
		return never
	}
	d := min(s.alarm, s.r.deadline(), s.lost.ripeAt)
	if s.open() {
		d = min(d, s.at)
	}
	return d
}

// emit fills in the next packet. At line rate, the NIC sets the pace.
func (s *dcqcnSender) emit(now time.Duration, p *Packet) {
	length := min(int64(s.t.Segment), s.size-s.next)
	p.Seq, p.Payload, p.ECT, p.Stamp = s.next, int(length), true, now
	p.padding = int32(s.t.RDMA.Headers - UDPHeaders)
	s.next += length
	p.Last = s.next == s.size
	s.c.Sent++
	if p.Seq < s.high {
		p.Number = 1
		s.c.Retransmitted++
	}
	s.high = max(s.high, s.next)
	s.skip()
	if s.r.rate < s.r.line {
		bits := float64((length + int64(s.t.RDMA.Headers)) * 8)
		s.at = now + time.Duration(bits*float64(time.Second)/s.r.rate)
	}
	s.r.sent(length)
	if s.alarm == never {
		s.alarm = now + s.rtt.rto
	}
}

// receive handles an acknowledgment, a Nack or a notification.
func (s *dcqcnSender) receive(now time.Duration, a *Packet) {
	if a.Echo || a.Kind == cnp {
		s.c.Notices++
		s.r.notice(now)
	}
	if a.Kind == cnp {
		return
	}
	if a.Ack > s.una {
		s.una = a.Ack
		s.rtt.sample(now - a.Stamp)
		s.next = max(s.next, s.una)
		s.lost.acknowledged(s.una)
		s.alarm = never
		if s.una < s.high {
			s.alarm = now + s.rtt.rto
		} else if s.una == s.size {
			s.c.Acknowledged = now
		}
	}
	switch {
	case a.Kind == nack:
		s.nack(now, a)
	case s.lost.all:
		s.lost.end = 0 // the receiver holds no early packets
	}
	s.skip()
}

// nack handles a Nack. An acknowledgment may have overtaken the Nack. The receiver
// reports a missing packet only once, and may have dropped a later packet when it
// sent the Nack. So a sender that ignored the Nack would have to wait for the
// timeout.
func (s *dcqcnSender) nack(now time.Duration, a *Packet) {
	switch s.t.RDMA.Nack {
	case Patient:
		s.c.Nacks++
		s.lost.note(a)
		if s.lost.ripeAt == never {
			s.lost.ripen(now + s.t.RDMA.Reordering)
		}
	case Selective:
		s.c.Nacks++
		var began bool
		if s.next, began = s.lost.heed(a, s.una, s.next, s.high); began {
			s.c.Recoveries++
		}
	case GoBackOnExpected:
		if a.Ack == s.una {
			s.c.Nacks++
			s.goBack()
		}
	default:
		s.c.Nacks++
		s.goBack()
	}
}

// skip moves next past the bytes that have arrived.
func (s *dcqcnSender) skip() {
	if s.t.RDMA.Nack.keeps() {
		s.next = s.lost.skip(s.next, s.high)
	}
}

func (s *dcqcnSender) goBack() {
	if s.next > s.una {
		s.c.Recoveries++
		s.next = s.una
	}
}

// tick handles the deadlines that have passed.
func (s *dcqcnSender) tick(now time.Duration) {
	s.r.tick(now)
	if now >= s.lost.ripeAt {
		s.ripe(now)
	}
	if now >= s.alarm {
		s.c.Timeouts++
		s.next = s.una
		// Repeat all bytes that have not been reported as received.
		s.lost.end, s.lost.upto, s.lost.at = s.high, s.high, s.una
		s.skip()
		s.rtt.backOff()
		s.alarm = now + s.rtt.rto
	}
}

// A goBackReceiver is the receiving half and DCQCN's notification point. It accepts
// packets in order only, unless its policy keeps early ones.
type goBackReceiver struct {
	t *Tuning
	c *FlowStats

	expected int64
	highest  int64
	unacked  int           // packets received since the last acknowledgment
	stamp    time.Duration // Stamp of the last packet
	noticeAt time.Duration // earliest time of the next notification
	nackAt   time.Duration // earliest time of another Nack for nackOf
	nackOf   int64
	kept     ranges // the early packets, if the policy keeps them
	early    Range  // the early packet that the next Nack reports

	ack, nack, notice bool // answers to send
}

func newGoBackReceiver(t *Tuning, c *FlowStats) *goBackReceiver {
	return &goBackReceiver{t: t, c: c, nackOf: -1}
}

func (r *goBackReceiver) ready(time.Duration) bool { return r.ack || r.nack || r.notice }
func (r *goBackReceiver) deadline() time.Duration  { return never }
func (r *goBackReceiver) tick(time.Duration)       {}

// receive handles data.
func (r *goBackReceiver) receive(now time.Duration, p *Packet) {
	r.stamp = p.Stamp
	if p.CE {
		r.c.Marked++
		if now >= r.noticeAt {
			r.notice, r.noticeAt = true, now+r.t.RDMA.NoticeEvery
		}
	}
	end := p.Seq + int64(p.Payload)
	if p.Seq < r.highest && p.Number == 0 {
		r.c.Overtaken++
	}
	r.highest = max(r.highest, end)
	switch {
	case p.Seq == r.expected:
		r.expected = end
		r.c.Received += int64(p.Payload)
		r.unacked++
		r.ack = p.Last || r.unacked >= r.t.RDMA.AckEvery
		if len(r.kept) > 0 {
			r.keep(p)
			r.ack = true // the acknowledgment covers more than this packet
			r.still(p)
		}
	case p.Seq > r.expected:
		r.c.early(p.Seq-r.expected, int64(r.t.Segment))
		r.ahead(now, p)
	default:
		r.c.Duplicates++
		r.ack = true
		r.still(p)
	}
	if r.t.RDMA.Answered && !r.ack && !r.nack {
		r.notice = false
	}
}

// ahead handles a packet beyond the expected one. It sends a Nack unless it sent one shortly
// before. A receiver that keeps early packets sends a Nack for each of them.
func (r *goBackReceiver) ahead(now time.Duration, p *Packet) {
	news := false
	if r.t.RDMA.Nack.keeps() {
		if news = r.keep(p); news {
			r.c.Received += int64(p.Payload)
		} else {
			r.c.Duplicates++
		}
		r.early = Range{p.Seq, p.Seq + int64(p.Payload)}
	}
	if r.t.RDMA.Nack == KeepEarly {
		return
	}
	other := r.nackOf != r.expected && !r.t.RDMA.RepeatAll
	if news || other || now >= r.nackAt {
		r.nack, r.nackOf, r.nackAt = true, r.expected, now+r.t.RDMA.NackEvery
		r.notice = r.notice || r.t.RDMA.NackNotice
	}
}

// still turns an acknowledgment into a Nack while early packets are kept, if the sender ends its
// recovery at an ACK.
func (r *goBackReceiver) still(p *Packet) {
	if r.t.RDMA.RepeatAll && len(r.kept) > 0 {
		r.nack, r.early = true, Range{p.Seq, p.Seq + int64(p.Payload)}
	}
}

// emit builds one answer that covers everything due.
func (r *goBackReceiver) emit(_ time.Duration, a *Packet) {
	a.Ack, a.Stamp, a.Echo = r.expected, r.stamp, r.notice
	a.padding = int32(r.t.RDMA.Answer - UDPHeaders)
	switch {
	case r.nack:
		a.Kind = nack
		if r.t.RDMA.Nack.keeps() {
			a.Sacks[0], a.NSacks = r.early, 1
		}
	case r.ack:
		a.Kind = Ack
	default:
		a.Kind = cnp
	}
	if a.Kind != cnp {
		r.unacked = 0
	}
	r.ack, r.nack, r.notice = false, false, false
}

// The following is IRN's loss recovery (Mittal et al., SIGCOMM 2018), for receivers that
// keep early packets (Selective, KeepEarly). A Nack names the packet that came early.
// The sender then repeats each missing packet below it once, and continues with new
// ones. It repeats packets again only after all packets that were in flight at the
// first Nack are acknowledged.
//
// With RDMA.RepeatAll the sender behaves like conweave-ns3. At the first Nack it goes back to the
// first missing byte and sends everything from there on, except the first range that has arrived.
// The recovery ends at an ACK, which the receiver sends when it holds no early packets. It also
// ends when all bytes sent before it are acknowledged. The next Nack then starts another one.

// A recovery is the sender's state of IRN's loss recovery.
type recovery struct {
	arrived ranges // early packets that Nacks have reported
	end     int64  // end of the bytes sent when the recovery began; 0: no recovery
	upto    int64  // missing bytes below this are repeated
	at      int64  // missing bytes below this have been repeated
	all     bool   // RDMA.RepeatAll

	ripeAt  time.Duration // Patient: when the missing bytes below ripeTop count as lost
	ripeTop int64
	began   time.Duration
}

// heed adds the ranges of a Nack. It returns the byte at which the sender continues, and whether
// a recovery begins.
func (r *recovery) heed(a *Packet, una, next, high int64) (int64, bool) {
	r.note(a)
	r.upto = max(r.upto, r.arrived.top())
	if r.all {
		if r.end > 0 {
			return next, false
		}
		r.end = next
		return una, true
	}
	return r.continueAt(una, next, high)
}

// note adds the ranges of a Nack.
func (r *recovery) note(a *Packet) {
	for _, early := range a.Sacks[:a.NSacks] {
		r.arrived.add(early)
	}
}

// continueAt returns the byte at which the sender continues, and whether a recovery begins.
func (r *recovery) continueAt(una, next, high int64) (int64, bool) {
	if r.end == 0 {
		r.end, r.at = high, una
		return una, true
	}
	return min(next, max(r.at, una)), false
}

// ripen records the currently missing bytes, which count as lost at the given time.
func (r *recovery) ripen(at time.Duration) { r.ripeAt, r.ripeTop = at, r.arrived.top() }

// ripe repeats packets that Patient considers lost: those still missing below the highest byte
// that had arrived Reordering ago. It repeats a packet again after two round trips.
func (s *dcqcnSender) ripe(now time.Duration) {
	r := &s.lost
	if s.una < r.ripeTop {
		if now-r.began > 2*s.rtt.smooth+s.t.RDMA.Reordering {
			r.end = 0
		}
		if r.end == 0 {
			r.began = now
		}
		r.upto = max(r.upto, r.ripeTop)
		var began bool
		if s.next, began = r.continueAt(s.una, s.next, s.high); began {
			s.c.Recoveries++
		}
		s.skip()
	}
	if r.arrived.top() > s.una {
		r.ripen(now + s.t.RDMA.Reordering)
	} else {
		r.ripeAt = never
	}
}

// acknowledged handles a cumulative acknowledgment.
func (r *recovery) acknowledged(una int64) {
	r.arrived.drop(una)
	if una >= r.end {
		r.end, r.upto = 0, 0
	}
}

// skip returns the first byte to send, at or after next. high is the end of the bytes sent.
func (r *recovery) skip(next, high int64) int64 {
	if next >= high {
		return next
	}
	if r.all {
		if len(r.arrived) > 0 && r.arrived[0].From == next {
			next = r.arrived[0].To
			r.arrived.drop(next)
		}
		return next
	}
	next, _ = r.arrived.gap(next, high)
	r.at = next
	if next >= r.upto {
		return high
	}
	return next
}

// keep stores an early or expected packet and reports whether it is new. The expected byte moves
// past the stored ranges.
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
