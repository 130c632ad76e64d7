package sim

import "time"

// A tcpSender is the sending half of a TCP connection: NewReno's congestion
// control (RFC 5681, 6582) with the scoreboard and loss recovery of RFC 6675,
// which includes limited transmit, or without SACK, and the timer of RFC 6298.
//
// Four places in the flow describe its progress, una ≤ repeat, lost ≤ high:
//
//	una     the first byte that is not acknowledged (HighACK + 1)
//	repeat  the end of the retransmitted bytes (HighRxt + 1)
//	lost    below it, bytes without a SACK count as lost
//	high    the end of the bytes sent (HighData + 1)
//
// While nothing is wrong, una = repeat = lost. Bytes between repeat and lost
// that are not SACKed have left the network and wait for being sent again; of
// those between lost and repeat there are two in it. So the RFC's pipe is what
// is sent and neither acknowledged nor SACKed, less the former or plus the
// latter: owed. A timeout is the same with all that was sent counted as lost.
type tcpSender struct {
	t       *Tuning
	c       *FlowStats
	ecn     bool // DCTCP
	segment int64

	size              int64
	una, repeat, lost int64
	high              int64
	phase             tcpPhase
	recover           int64  // the phase ends when all before is acknowledged
	sacked            ranges // between una and high
	sackedBytes       int64
	owed              int64 // lost bytes that are still to be sent again
	rescued           bool  // RescueRxt is set
	first             bool  // the first segment is to go again, whatever the window

	window    int64 // cwnd
	threshold int64 // ssthresh
	credit    int64 // bytes acknowledged towards the window's next segment
	limited   int64 // bytes below it were sent when the window was the limit
	dup       int   // DupAcks
	run       int64 // acknowledgments in a row that acknowledge nothing

	patience int // DupThresh; more than DupAcks after reordering
	undo     tcpUndo

	rtt    roundTrip
	alarm  time.Duration // of the retransmission timer
	backed bool          // it has run out for the outstanding bytes

	share dctcp
}

// A tcpUndo is what fast recovery has changed, in case nothing was lost.
type tcpUndo struct {
	began             time.Duration // when the first segment went again
	window, threshold int64
}

// A tcpPhase is the state of loss recovery.
type tcpPhase uint8

const (
	tcpOpen      tcpPhase = iota
	tcpRecovery           // fast recovery: from duplicate acknowledgments
	tcpResending          // slow start from the first byte after a timeout
)

func newTCPSender(t *Tuning, c *FlowStats, size int64, ecn bool) *tcpSender {
	s := &tcpSender{t: t, c: c, ecn: ecn, size: size, threshold: never64, alarm: never}
	s.segment = int64(t.Segment)
	s.window = min(int64(t.Window)*s.segment, t.MaxWindow)
	s.patience = t.DupAcks
	s.rtt.init(t)
	if !t.AlphaFromZero {
		s.share.alpha = 1
	}
	return s
}

// inherit takes over the congestion state of a connection's previous flow. A flow in
// loss recovery leaves the window that recovery ends with.
func (s *tcpSender) inherit(from half) {
	before, ok := from.(*tcpSender)
	if !ok {
		return
	}
	s.window, s.threshold, s.patience, s.rtt = before.window, before.threshold, before.patience, before.rtt
	if before.phase == tcpRecovery {
		s.window = before.threshold
	}
	s.share.alpha = before.share.alpha
}

func (s *tcpSender) deadline() time.Duration { return s.alarm }

// pipe estimates the bytes in the network.
func (s *tcpSender) pipe() int64 { return s.high - s.una - s.sackedBytes - s.owed }

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

// emit makes the segment that ready has promised.
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
	s.owed -= length
	if s.rescue(seq) {
		s.rescued = true
	} else {
		s.repeat = seq + length
	}
	if s.phase == tcpRecovery {
		s.alarm = now + s.rtt.rto // RFC 6675, Section 6: the careful variant
	}
}

// rescue reports whether NextSeg's rule 4 retransmits at seq.
func (s *tcpSender) rescue(seq int64) bool {
	return seq >= max(s.lost, s.sacked.top())
}

// pick is NextSeg of RFC 6675: the next bytes to send. Its rule 4, the rescue of
// a tail without any information, is omitted for retransmissions in
// this recovery, where it would only send a copy.
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

// receive takes in an acknowledgment.
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
		// This is a duplicate acknowledgment for readers without SACK:
		// the measure of reordering that papers print.
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
		s.owe()
	}
}

// adapt raises the threshold of duplicate acknowledgments when bytes arrive
// late that were not sent again, as far as later ones were ahead of them: what
// Linux does. If fast recovery has sent them again meanwhile, the timestamp that
// comes back shows it (RFC 3522), and its change to the window is undone (RFC
// 4015).
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
	if ahead := (s.sacked.top() - late) / s.segment; ahead > int64(s.patience) {
		s.patience = int(min(ahead, int64(s.t.MaxDupAcks)))
	}
}

// score is Update of RFC 6675; it returns how many bytes are SACKed for the
// first time.
func (s *tcpSender) score(a *Packet) (fresh int64) {
	for _, r := range a.Sacks[:a.NSacks] {
		r.From, r.To = max(r.From, s.una, a.Ack), min(r.To, s.high)
		fresh += s.sacked.add(r)
	}
	s.sackedBytes += fresh
	return fresh
}

// advance moves the window to a cumulative acknowledgment.
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
			// Fast recovery without SACK ends: what duplicates have added to the window
			// goes, and no burst follows.
			s.window = min(s.threshold, max(s.high-s.una, s.segment)+s.segment)
		}
		s.phase, s.owed, s.credit = tcpOpen, 0, 0
		s.rescued = false
		s.repeat, s.lost = s.una, s.una
	}
}

// duplicate takes in an acknowledgment with new SACK information: what RFC 6675
// calls a duplicate.
func (s *tcpSender) duplicate(now time.Duration) {
	lost := s.sacked.lost(s.patience, s.segment)
	switch s.phase {
	case tcpRecovery:
		s.lost = max(s.lost, lost)
	case tcpOpen:
		s.dup++
		if s.dup >= s.patience || lost > s.una {
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

// owe counts lost bytes that have not been sent again. It is negative for bytes that were
// sent again without being lost.
func (s *tcpSender) owe() {
	if s.repeat <= s.lost {
		s.owed = s.lost - s.repeat - s.sacked.within(s.repeat, s.lost)
	} else {
		s.owed = -(s.repeat - s.lost - s.sacked.within(s.lost, s.repeat))
	}
}

// grow opens the window (RFC 5681, Section 3.1), unless it was not what held
// the sender back (RFC 7661).
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
		// RFC 5681, equation 4: only the first time. SACKed bytes have left
		// the network, though it counts in the RFC's FlightSize: after a
		// retransmission was lost, that is all that was sent since.
		s.threshold = max((s.high-s.una-s.sackedBytes)/2, 2*s.segment)
	}
	s.backed = true
	s.window, s.credit, s.dup, s.first = s.segment, 0, 0, false
	s.phase, s.recover = tcpResending, s.high
	s.repeat, s.lost = s.una, s.high
	s.owe()
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
		s.window = min(s.window+s.segment, s.t.MaxWindow) // for the segment that has left the network
	case s.phase == tcpOpen:
		if s.dup++; s.dup == s.patience {
			s.recovery(now, s.una)
			s.window += int64(s.patience) * s.segment
			s.rescued = true // nothing is sent again but by partial acknowledgments
		}
	}
}

// A roundTrip estimates the round-trip time and sets the retransmission timer
// (RFC 6298). Every acknowledgment echoes when the segment left that it answers,
// as with timestamps, so that segments which were sent again count as well.
type roundTrip struct {
	smooth, varies time.Duration // SRTT, RTTVAR
	rto            time.Duration
	least, most    time.Duration
}

func (r *roundTrip) init(t *Tuning) {
	r.least, r.most, r.rto = t.MinRTO, t.MaxRTO, t.FirstRTO
}

// sample takes in a measurement; it undoes what backOff did.
func (r *roundTrip) sample(rtt time.Duration) {
	if r.smooth == 0 {
		r.smooth, r.varies = rtt, rtt/2
	} else {
		r.varies += (max(rtt-r.smooth, r.smooth-rtt) - r.varies) / 4
		r.smooth += (rtt - r.smooth) / 8
	}
	r.rto = min(max(r.smooth+4*r.varies, r.least), r.most)
}

// backOff doubles the time.
func (r *roundTrip) backOff() { r.rto = min(2*r.rto, r.most) }

// A dctcp is what DCTCP adds to a TCP sender (RFC 8257): it estimates which
// share of the bytes met congestion, and takes off so much of the window.
type dctcp struct {
	alpha         float64
	acked, marked int64
	until         int64 // the end of the window that is being counted
	reduced       int64 // no second reduction before this is acknowledged
}

// congested takes in an acknowledgment for some bytes and its echo of
// congestion.
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

// reducing reports whether the window must not grow by an acknowledgment: by RFC
// 8257 it does not where one echoes congestion, nor for the rest of a window of data
// of which one did.
func (s *tcpSender) reducing(a *Packet) bool {
	return s.ecn && !s.t.CutEachWindow && (a.Echo || s.una <= s.share.reduced)
}
