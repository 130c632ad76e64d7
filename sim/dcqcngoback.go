package sim

import "time"

// A dcqcnSender is the sending half of an RDMA connection: paced by DCQCN, and
// going back to the first missing byte when a Nack or a timeout says so, or where
// the receiver keeps early packets repeating what is missing. Its
// window, if it has one, only bounds what a broken path can swallow. The timeout
// follows the round trips as TCP's, in place of who would configure the card for
// the network that it is in.
type dcqcnSender struct {
	t *Tuning
	c *FlowStats
	r reaction

	size  int64
	una   int64         // all before is acknowledged
	next  int64         // to be sent next
	high  int64         // the end of what has been sent
	at    time.Duration // when the pace allows the next packet; never: it always does
	rtt   roundTrip
	alarm time.Duration
	lost  recovery // where the receiver keeps what is early
}

func newDCQCNSender(t *Tuning, c *FlowStats, size, line int64) *dcqcnSender {
	s := &dcqcnSender{t: t, c: c, r: newReaction(&t.RDMA, line), size: size, at: never, alarm: never}
	s.rtt.init(t)
	return s
}

// open reports whether there is something to send, whenever that is.
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
	d := min(s.alarm, s.r.deadline())
	if s.open() {
		d = min(d, s.at)
	}
	return d
}

// emit makes the next packet. At the rate of the line, the NIC sets the pace.
func (s *dcqcnSender) emit(now time.Duration, p *Packet) {
	length := min(int64(s.t.Segment), s.size-s.next)
	p.Seq, p.Payload, p.ECT, p.Stamp = s.next, int(length), true, now
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
		bits := float64((length + UDPHeaders) * 8)
		s.at = now + time.Duration(bits*float64(time.Second)/s.r.rate)
	}
	s.r.sent(length)
	if s.alarm == never {
		s.alarm = now + s.rtt.rto
	}
}

// receive takes in an acknowledgment, a Nack or a notification.
func (s *dcqcnSender) receive(now time.Duration, a *Packet) {
	if a.Echo || a.Kind == CNP {
		s.c.Notices++
		s.r.notice(now)
	}
	if a.Kind == CNP {
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
	if a.Kind == Nack {
		s.nack(a)
	}
	s.skip()
}

// nack takes in a Nack. One of what has been acknowledged since was overtaken by
// that acknowledgment; but the receiver may have thrown away a later packet when
// it sent the Nack, and says so once. To ignore it is to wait for the timeout.
func (s *dcqcnSender) nack(a *Packet) {
	switch s.t.RDMA.Nack {
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

// skip passes over what has arrived.
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

// tick is told that time has passed.
func (s *dcqcnSender) tick(now time.Duration) {
	s.r.tick(now)
	if now >= s.alarm {
		s.c.Timeouts++
		s.next = s.una
		s.lost.timeout(s.una, s.high)
		s.skip()
		s.rtt.backOff()
		s.alarm = now + s.rtt.rto
	}
}

// A goBackReceiver is the receiving half: it takes packets in order only, unless
// it is told to keep early ones, and is DCQCN's notification point.
type goBackReceiver struct {
	t *Tuning
	c *FlowStats

	expected int64
	highest  int64
	unacked  int           // packets since the last acknowledgment
	stamp    time.Duration // of the last packet
	noticeAt time.Duration // no notification before
	nackAt   time.Duration // no Nack for nackOf before
	nackOf   int64
	kept     ranges // what came early, if that is kept
	early    Range  // that a Nack is to tell of

	ack, nack, notice bool // to be sent
}

func newGoBackReceiver(t *Tuning, c *FlowStats) *goBackReceiver {
	return &goBackReceiver{t: t, c: c, nackOf: -1}
}

func (r *goBackReceiver) ready(time.Duration) bool { return r.ack || r.nack || r.notice }
func (r *goBackReceiver) deadline() time.Duration  { return never }
func (r *goBackReceiver) tick(time.Duration)       {}

// receive takes in data.
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
			r.ack = true // of more than this packet
		}
	case p.Seq > r.expected:
		r.c.early(p.Seq-r.expected, int64(r.t.Segment))
		r.ahead(now, p)
	default:
		r.c.Duplicates++
		r.ack = true
	}
}

// ahead deals with a packet that comes before the expected one. It asks for that,
// unless it has just done so; one that keeps early packets tells of each.
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
	if news || r.nackOf != r.expected || now >= r.nackAt {
		r.nack, r.nackOf, r.nackAt = true, r.expected, now+r.t.RDMA.NackEvery
		r.notice = r.notice || r.t.RDMA.NackNotice
	}
}

// emit makes an answer: one packet says all.
func (r *goBackReceiver) emit(_ time.Duration, a *Packet) {
	a.Ack, a.Stamp, a.Echo = r.expected, r.stamp, r.notice
	switch {
	case r.nack:
		a.Kind = Nack
		if r.t.RDMA.Nack.keeps() {
			a.Sacks[0], a.NSacks = r.early, 1
		}
	case r.ack:
		a.Kind = Ack
	default:
		a.Kind = CNP
	}
	if a.Kind != CNP {
		r.unacked = 0
	}
	r.ack, r.nack, r.notice = false, false, false
}
