package sim

import (
	"math/rand/v2"
	"time"
)

// A half is one end of a flow as a state machine without clock or network: it
// is told of packets and of the time, and asked for packets. The network's
// Flow drives two of them; the tests do so without a network.
type half interface {
	// receive takes in a packet from the other half.
	receive(now time.Duration, p *Packet)
	// ready reports whether there is a packet to be sent now.
	ready(now time.Duration) bool
	// emit makes that packet. It is called only if ready has just said so.
	emit(now time.Duration, p *Packet)
	// deadline is when tick wants to be called, or never.
	deadline() time.Duration
	// tick tells that time has passed. Before the deadline it does nothing.
	tick(now time.Duration)
}

// A source drives the sending half. It gives the NIC a packet whenever nothing
// waits there, in turn with the other flows of the host: so the window and the
// pace decide how much is on its way, not how much waits at home.
type source struct {
	*Flow
	net     *Network // the part that the sending host is in
	half    half
	timer   *Timer
	waiting bool // for its turn
	turn    func()
	push    bool // it waits for nobody: UDP, or a window that goes to the NIC at once

	entropy  *entropySource // nil: one port for all packets
	port     uint16         // of the last packet
	timeouts int64          // that entropy has been told of
}

func newSource(f *Flow, h half) *source {
	s := &source{Flow: f, net: f.Src.net, half: h}
	s.turn = s.send
	s.timer = s.net.newTimer(f.place(sending), func() {
		h.tick(s.net.now)
		if s.entropy != nil && s.Timeouts > s.timeouts {
			s.timeouts = s.Timeouts
			s.entropy.heed(s.net.now, s.port, pathTimeout)
		}
		s.ask()
	})
	return s
}

func (s *source) start() { s.ask() }

func (s *source) receive(p *Packet) {
	if s.entropy != nil {
		met := pathGood
		if p.Spoiled {
			met = pathMarked
		}
		s.entropy.heed(s.net.now, p.Entropy, met)
	}
	s.half.receive(s.net.now, p)
	s.ask()
	if s.Acknowledged > 0 {
		s.sender = over{}
		if s.step != nil {
			s.step.acknowledged(s.net)
		}
		if !s.net.placed() { // else the receiver may be elsewhere
			s.Flow.receiver = over{}
		}
	}
}

// ask queues for the NIC if there is something to send.
func (s *source) ask() {
	switch {
	case s.waiting || !s.half.ready(s.net.now):
	case s.push:
		s.send()
		return
	default:
		s.waiting = true
		if s.Transport == DCQCN { // whose cards go through what is to be sent when they can send
			s.Src.WhenFree(s.turn)
		} else {
			s.Src.WhenBelow(1, s.turn)
		}
	}
	setTimer(s.timer, s.half.deadline())
}

// send is called when it is the flow's turn.
func (s *source) send() {
	s.waiting = false
	if s.half.ready(s.net.now) {
		p := s.net.NewPacket(s.Flow, Data, 0)
		s.half.emit(s.net.now, p)
		if s.entropy != nil {
			s.port = s.entropy.next(s.net.now)
			p.Entropy = s.port
		}
		s.Src.Send(p)
	}
	s.ask()
}

// A sink drives the receiving half. What it answers goes to the NIC at once.
type sink struct {
	*Flow
	net   *Network // the part that the receiving host is in
	half  half
	timer *Timer // nil: until it is needed

	entropy uint16 // of the last packet
	spoiled bool   // it has met congestion
}

func (s *sink) receive(p *Packet) {
	s.entropy, s.spoiled = p.Entropy, p.CE
	s.half.receive(s.net.now, p)
	s.answer()
	switch {
	case s.Transport == UDP:
		s.account(s.net, p)
	case s.Received == s.Bytes && s.Finished == 0:
		s.finish(s.net)
	}
}

func (s *sink) answer() {
	for s.half.ready(s.net.now) {
		p := s.net.NewPacket(s.Flow, Ack, 0)
		s.half.emit(s.net.now, p)
		p.Entropy, p.Spoiled = s.entropy, s.spoiled
		s.Dst.Send(p)
	}
	at := s.half.deadline()
	if s.timer == nil {
		if at == never {
			return
		}
		s.timer = s.net.newTimer(s.place(receiving), func() {
			s.half.tick(s.net.now)
			s.answer()
		})
	}
	setTimer(s.timer, at)
}

// over is both ends of a flow whose bytes have arrived and are acknowledged: the
// state is given up, copies may still come.
type over struct{}

func (over) start() {}

func (over) receive(p *Packet) {
	if p.Kind == Data {
		p.Flow.Duplicates++
	}
}

func setTimer(t *Timer, at time.Duration) {
	if at == never {
		t.Stop()
	} else {
		t.Set(at)
	}
}

// A udpSender sends at a rate, whatever becomes of it: at equal intervals, or
// as a Poisson process if it has a source of random numbers.
type udpSender struct {
	t      *Tuning
	c      *FlowStats
	random *rand.Rand

	size, next int64
	rate       int64 // of payload, bit/s
	at         time.Duration
	rest       int64 // of the last division by rate
}

func newUDPSender(t *Tuning, c *FlowStats, size, rate int64, now time.Duration) *udpSender {
	return &udpSender{t: t, c: c, size: size, rate: rate, at: now}
}

func (s *udpSender) receive(time.Duration, *Packet) {}
func (s *udpSender) tick(time.Duration)             {}
func (s *udpSender) ready(now time.Duration) bool   { return now >= s.at && s.next < s.size }

func (s *udpSender) deadline() time.Duration {
	if s.next >= s.size {
		return never
	}
	return s.at
}

// emit makes the next packet. The one after is due an interval after this was,
// even if this was late.
func (s *udpSender) emit(now time.Duration, p *Packet) {
	length := min(int64(s.t.Segment), s.size-s.next)
	p.Seq, p.Payload, p.Stamp = s.next, int(length), now
	s.next += length
	p.Last = s.next == s.size
	s.c.Sent++
	s.at += s.interval(length)
}

// interval is the time to the next packet.
func (s *udpSender) interval(length int64) time.Duration {
	if s.random != nil {
		mean := float64(length*8) * float64(time.Second) / float64(s.rate)
		return time.Duration(s.random.ExpFloat64() * mean)
	}
	bits := length*8*int64(time.Second) + s.rest
	d := bits / s.rate
	s.rest = bits - d*s.rate
	return time.Duration(d)
}

// A udpReceiver counts what arrives.
type udpReceiver struct {
	c       *FlowStats
	highest int64
}

func (r *udpReceiver) ready(time.Duration) bool    { return false }
func (r *udpReceiver) emit(time.Duration, *Packet) {}
func (r *udpReceiver) deadline() time.Duration     { return never }
func (r *udpReceiver) tick(time.Duration)          {}

func (r *udpReceiver) receive(_ time.Duration, p *Packet) {
	r.c.Received += int64(p.Payload)
	if p.CE {
		r.c.Marked++
	}
	if p.Seq < r.highest {
		r.c.Overtaken++
	}
	r.highest = max(r.highest, p.Seq+int64(p.Payload))
}
