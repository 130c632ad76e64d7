package sim

import "time"

// A tcpSender is the sending half of a TCP connection: NewReno's congestion control (RFC 5681,
// 6582), the scoreboard and loss recovery of RFC 6675 with limited transmit (or recovery without
// SACK), and the timer of RFC 6298.
//
// Four positions in the flow describe its progress, una ≤ repeat, lost ≤ high:
//
//	una     the first byte that is not acknowledged (HighACK + 1)
//	repeat  the end of the retransmitted bytes (HighRxt + 1)
//	lost    below it, bytes without a SACK count as lost
//	high    the end of the bytes sent (HighData + 1)
//
// Without loss, una = repeat = lost. If repeat < lost, the bytes between them that are not SACKed
// have left the network and wait to be sent again. If lost < repeat, two copies of the bytes
// between them are in the network. The field unsent is the first number of bytes, or minus the
// second. The RFC's pipe is therefore the number of bytes that are sent and neither acknowledged
// nor SACKed, minus unsent. A timeout counts all bytes sent as lost.
type tcpSender struct {
	t       *Tuning
	c       *FlowStats
	ecn     bool // DCTCP
	segment int64

	size              int64
	una, repeat, lost int64
	high              int64
	phase             tcpPhase
	recover           int64  // the phase ends when all bytes below are acknowledged
	sacked            ranges // SACKed bytes between una and high
	sackedBytes       int64
	unsent            int64 // lost bytes that have not been sent again
	rescued           bool  // RescueRxt is set
	first             bool  // send the first segment again, whatever the window

	window    int64 // cwnd
	threshold int64 // ssthresh
	credit    int64 // acknowledged bytes that count towards the window's next increase
	limited   int64 // bytes below this were sent when the window was the limit
	dup       int   // DupAcks
	run       int64 // consecutive acknowledgments that acknowledge nothing

	dupThreshold int // DupThresh; exceeds DupAcks after reordering
	undo         tcpUndo

	rtt    roundTrip
	alarm  time.Duration // deadline of the retransmission timer
	backed bool          // the timer has expired for the outstanding bytes

	share dctcp
}

// A tcpUndo records the changes of fast recovery, to undo them if nothing was lost.
type tcpUndo struct {
	began             time.Duration // when the first segment was sent again
	window, threshold int64
}

// A tcpPhase is the state of loss recovery.
type tcpPhase uint8

const (
	tcpOpen      tcpPhase = iota
	tcpRecovery           // fast recovery after duplicate acknowledgments
	tcpResending          // slow start from the first byte after a timeout
)

func newTCPSender(t *Tuning, c *FlowStats, size int64, ecn bool) *tcpSender {
	s := &tcpSender{t: t, c: c, ecn: ecn, size: size, threshold: never64, alarm: never}
	s.segment = int64(t.Segment)
	s.window = min(int64(t.Window)*s.segment, t.MaxWindow)
	s.dupThreshold = t.DupAcks
	s.rtt.init(t)
	if !t.AlphaFromZero {
		s.share.alpha = 1
	}
	return s
}

// inherit takes over the congestion state of the connection's previous flow. If that flow was in
// loss recovery, its window is the one that recovery ends with.
func (s *tcpSender) inherit(from half) {
	before, ok := from.(*tcpSender)
	if !ok {
		return
	}
	s.window, s.threshold, s.dupThreshold, s.rtt = before.window, before.threshold, before.dupThreshold, before.rtt
	if before.phase == tcpRecovery {
		s.window = before.threshold
	}
	s.share.alpha = before.share.alpha
}

func (s *tcpSender) deadline() time.Duration { return s.alarm }

// pipe estimates the number of bytes in the network.
func (s *tcpSender) pipe() int64 { return s.high - s.una - s.sackedBytes - s.unsent }

// ready reports whether a segment may be sent now.
func (s *tcpSender) ready(time.Duration) bool {
	if s.first {
		return true
	}
	if s.window-s.pipe() < s.segment {
		s.limited = s.high
		return false
	}
	_, length := s.pick()
	return length > 0
}

// emit fills in the segment that ready has announced.
func (s *tcpSender) emit(now time.Duration, p *Packet) {
	seq, length := s.pick()
	p.Seq, p.Payload, p.ECT, p.Stamp = seq, int(length), s.ecn, now
	p.Last = seq+length == s.size
	s.first = false
	s.c.Sent++
	if seq == s.high {
		s.high += length
	} else {
		p.Number = 1
		s.c.Retransmitted++
		s.again(now, seq, length)
	}
	if s.alarm == never {
		s.alarm = now + s.rtt.rto
	}
}

// again accounts for a retransmission. A rescue does not move repeat.
func (s *tcpSender) again(now time.Duration, seq, length int64) {
	s.unsent -= length
	if s.rescue(seq) {
		s.rescued = true
	} else {
		s.repeat = seq + length
	}
	if s.phase == tcpRecovery {
		s.alarm = now + s.rtt.rto // RFC 6675, Section 6: the conservative variant
	}
}

// rescue reports whether NextSeg's rule 4 retransmits at seq.
func (s *tcpSender) rescue(seq int64) bool {
	return seq >= max(s.lost, s.sacked.top())
}

// pick implements NextSeg of RFC 6675: it returns the next bytes to send. Rule 4, the rescue
// retransmission, is omitted for bytes repeated in this recovery, because it would only send a
// copy.
func (s *tcpSender) pick() (seq, length int64) {
	if s.phase == tcpOpen {
		return s.high, min(s.segment, s.size-s.high)
	}
	seq, end := s.sacked.gap(max(s.repeat, s.una), s.high)
	switch {
	case seq < s.lost: // rule 1
	case s.high < s.size: // rule 2
		return s.high, min(s.segment, s.size-s.high)
	case s.phase != tcpRecovery:
		return seq, 0
	case seq < s.sacked.top(): // rule 3
	case seq < s.high && !s.rescued: // rule 4
		seq = max(seq, s.high-1-(s.high-1)%s.segment)
		end = s.high
	default:
		return seq, 0
	}
	return seq, min(s.segment, end-seq)
}

// receive handles an acknowledgment.
func (s *tcpSender) receive(now time.Duration, a *Packet) {
	if s.t.MaxDupAcks > 0 {
		s.adapt(a)
	}
	flight, before := s.high-s.una, s.una+s.sackedBytes
	fresh := s.score(a)
	acked := a.Ack - s.una
	if acked > 0 {
		s.advance(now, a, acked)
	} else if acked == 0 && flight > 0 {
		// RFC 5681 calls this a duplicate acknowledgment; papers report it as a measure of
		// reordering.
		s.run++
		s.c.DupAcks++
		s.c.DupRun = max(s.c.DupRun, s.run)
	}
	if s.ecn {
		s.congested(s.una+s.sackedBytes-before, a.Echo)
	}
	if acked > 0 && s.phase != tcpRecovery && !s.reducing(a) {
		s.grow(acked, flight)
	}
	switch {
	case s.t.NewReno:
		s.withoutSACK(now, acked, flight)
	case fresh > 0:
		s.duplicate(now)
	}
	if s.phase != tcpOpen {
		s.countUnsent()
	}
}

// adapt raises the threshold of duplicate acknowledgments when late bytes arrive that were not
// sent again, to the distance by which later bytes were ahead of them, as Linux does. If fast
// recovery has sent these bytes again, the echoed timestamp shows it (RFC 3522), and the change
// to the window is undone (RFC 4015).
func (s *tcpSender) adapt(a *Packet) {
	late := s.sacked.top()
	for _, r := range a.Sacks[:a.NSacks] {
		if from, _ := s.sacked.gap(max(r.From, s.repeat), r.To); from < r.To {
			late = min(late, from)
		}
	}
	switch {
	case a.Ack <= s.una:
	case s.phase == tcpOpen:
		late = min(late, s.una)
	case s.phase == tcpRecovery && a.Stamp < s.undo.began:
		late = min(late, s.una)
		s.window, s.threshold = max(s.window, s.undo.window), max(s.threshold, s.undo.threshold)
		s.recover = a.Ack
	}
	if ahead := (s.sacked.top() - late) / s.segment; ahead > int64(s.dupThreshold) {
		s.dupThreshold = int(min(ahead, int64(s.t.MaxDupAcks)))
	}
}

// score implements Update of RFC 6675. It returns the number of newly SACKed bytes.
func (s *tcpSender) score(a *Packet) (fresh int64) {
	for _, r := range a.Sacks[:a.NSacks] {
		r.From, r.To = max(r.From, s.una, a.Ack), min(r.To, s.high)
		fresh += s.sacked.add(r)
	}
	s.sackedBytes += fresh
	return fresh
}

// advance handles a cumulative acknowledgment.
func (s *tcpSender) advance(now time.Duration, a *Packet, acked int64) {
	s.una = a.Ack
	s.sackedBytes -= s.sacked.drop(s.una)
	s.repeat, s.lost = max(s.repeat, s.una), max(s.lost, s.una)
	s.dup, s.run, s.backed, s.first = 0, 0, false, false
	s.rtt.sample(now - a.Stamp)
	s.alarm = never
	if s.una < s.high {
		s.alarm = now + s.rtt.rto
	} else if s.una == s.size {
		s.c.Acknowledged = now
	}
	if s.phase != tcpOpen && s.una >= s.recover {
		if s.t.NewReno && s.phase == tcpRecovery {
			// Fast recovery without SACK ends: the window loses the growth by duplicates, so that
			// no burst follows.
			s.window = min(s.threshold, max(s.high-s.una, s.segment)+s.segment)
		}
		s.phase, s.unsent, s.credit = tcpOpen, 0, 0
		s.rescued = false
		s.repeat, s.lost = s.una, s.una
	}
}

// duplicate handles an acknowledgment with new SACK information, which RFC 6675 calls a
// duplicate.
func (s *tcpSender) duplicate(now time.Duration) {
	lost := s.sacked.lost(s.dupThreshold, s.segment)
	switch s.phase {
	case tcpRecovery:
		s.lost = max(s.lost, lost)
	case tcpOpen:
		s.dup++
		if s.dup >= s.dupThreshold || lost > s.una {
			s.recovery(now, lost)
		}
	}
}

// recovery starts fast recovery. The first segment goes again at once.
func (s *tcpSender) recovery(now time.Duration, lost int64) {
	s.c.Recoveries++
	s.phase, s.recover = tcpRecovery, s.high
	s.undo = tcpUndo{now, s.window, s.threshold}
	s.threshold = max((s.high-s.una)/2, 2*s.segment)
	s.window = s.threshold
	s.repeat, s.rescued, s.first = s.una, false, true
	_, end := s.sacked.gap(s.una, s.high)
	s.lost = max(lost, min(end, s.una+s.segment))
	s.alarm = now + s.rtt.rto
}

// countUnsent computes the number of lost bytes that have not been sent again. It is negative if bytes
// were sent again without being lost.
func (s *tcpSender) countUnsent() {
	if s.repeat <= s.lost {
		s.unsent = s.lost - s.repeat - s.sacked.within(s.repeat, s.lost)
	} else {
		s.unsent = -(s.repeat - s.lost - s.sacked.within(s.lost, s.repeat))
	}
}

// grow increases the window (RFC 5681, Section 3.1), unless the window was not the limit (RFC
// 7661).
func (s *tcpSender) grow(acked, flight int64) {
	slow := s.window < s.threshold
	if held := s.una-acked <= s.limited || slow && s.window < 2*flight; !held {
		return
	}
	if slow {
		s.window += min(acked, s.segment)
	} else if s.credit += acked; s.credit >= s.window {
		s.credit -= s.window
		s.window += s.segment
	}
	s.window = min(s.window, s.t.MaxWindow)
}

// tick handles the deadline of the timer.
func (s *tcpSender) tick(now time.Duration) {
	if now < s.alarm {
		return
	}
	s.c.Timeouts++
	if !s.backed {
		// RFC 5681, equation 4, only the first time. SACKed bytes have left the network, although
		// the RFC's FlightSize counts them.
		s.threshold = max((s.high-s.una-s.sackedBytes)/2, 2*s.segment)
	}
	s.backed = true
	s.window, s.credit, s.dup, s.first = s.segment, 0, 0, false
	s.phase, s.recover = tcpResending, s.high
	s.repeat, s.lost = s.una, s.high
	s.countUnsent()
	s.rtt.backOff()
	s.alarm = now + s.rtt.rto
}

// withoutSACK detects losses by acknowledgment numbers alone: it counts duplicates, and a
// partial acknowledgment reports one more lost segment (RFC 6582). A round trip therefore
// repairs one loss.
func (s *tcpSender) withoutSACK(now time.Duration, acked, flight int64) {
	switch {
	case acked > 0 && s.phase == tcpRecovery:
		s.window -= min(s.window, acked)
		if acked >= s.segment {
			s.window += s.segment
		}
		s.repeat, s.lost, s.first = s.una, min(s.una+s.segment, s.high), true
	case acked != 0 || flight == 0:
	case s.phase == tcpRecovery:
		s.window = min(s.window+s.segment, s.t.MaxWindow) // one segment has left the network
	case s.phase == tcpOpen:
		if s.dup++; s.dup == s.dupThreshold {
			s.recovery(now, s.una)
			s.window += int64(s.dupThreshold) * s.segment
			s.rescued = true // only partial acknowledgments cause retransmissions
		}
	}
}

// A roundTrip estimates the round-trip time and sets the retransmission timeout (RFC 6298).
// Acknowledgments echo the time at which the acknowledged segment was sent, like timestamps, so
// retransmitted segments count as well.
type roundTrip struct {
	smooth, varies time.Duration // SRTT, RTTVAR
	rto            time.Duration
	least, most    time.Duration
}

func (r *roundTrip) init(t *Tuning) {
	r.least, r.most, r.rto = t.MinRTO, t.MaxRTO, t.FirstRTO
}

// sample adds a measurement, and resets the exponential backoff.
func (r *roundTrip) sample(rtt time.Duration) {
	if r.smooth == 0 {
		r.smooth, r.varies = rtt, rtt/2
	} else {
		r.varies += (max(rtt-r.smooth, r.smooth-rtt) - r.varies) / 4
		r.smooth += (rtt - r.smooth) / 8
	}
	r.rto = min(max(r.smooth+4*r.varies, r.least), r.most)
}

// backOff doubles the timeout.
func (r *roundTrip) backOff() { r.rto = min(2*r.rto, r.most) }

// A dctcp is DCTCP's addition to a TCP sender (RFC 8257). It estimates the share of bytes that
// met congestion, and reduces the window by this share.
type dctcp struct {
	alpha         float64
	acked, marked int64
	until         int64 // end of the window of data that is being counted
	reduced       int64 // no further reduction until this is acknowledged
}

// congested handles an acknowledgment of some bytes and its echo of congestion.
func (s *tcpSender) congested(bytes int64, echo bool) {
	d := &s.share
	d.acked += bytes
	if echo {
		d.marked += bytes
	}
	if s.una > d.until && d.acked > 0 {
		share := float64(d.marked) / float64(d.acked)
		d.alpha += s.t.Gain * (share - d.alpha)
		d.acked, d.marked, d.until = 0, 0, s.high
		if s.t.CutEachWindow && d.alpha > 0 {
			s.cut()
		}
	}
	switch {
	case !echo:
	case s.t.CutEachWindow:
		s.threshold = min(s.threshold, s.window)
	case s.una > d.reduced && s.phase != tcpRecovery:
		s.cut()
		d.reduced = s.high
	}
}

// cut reduces the window by the estimate.
func (s *tcpSender) cut() {
	s.window = max(s.window-int64(float64(s.window)*s.share.alpha/2), 2*s.segment)
	s.threshold = s.window
	if !s.t.CutEachWindow {
		s.credit = 0
	}
}

// reducing reports whether an acknowledgment must not increase the window. By RFC 8257, this is
// so if it echoes congestion, and for the rest of the window of data in which an acknowledgment
// did.
func (s *tcpSender) reducing(a *Packet) bool {
	return s.ecn && !s.t.CutEachWindow && (a.Echo || s.una <= s.share.reduced)
}
