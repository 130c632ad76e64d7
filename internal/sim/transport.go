package sim

import (
	"math/rand/v2"
	"time"
)

// A half is one end of a flow: a state machine without a clock or a network. A driver passes it
// packets and the time, and asks it for packets to send. The drivers are the network's source and
// sink, and tests.
type half interface {
	// receive handles a packet from the other half.
	receive(now time.Duration, p *Packet)
	// ready reports whether there is a packet to send now.
	ready(now time.Duration) bool
	// emit fills in that packet. The driver calls it only after ready has returned true.
	emit(now time.Duration, p *Packet)
	// deadline returns when to call tick, or never.
	deadline() time.Duration
	// tick handles a deadline that has passed. Before the deadline it does nothing.
	tick(now time.Duration)
}

// A source drives the sending half. It gives the NIC a packet when the NIC's queue is
// empty, in turn with the other flows of the host. The window and the pace therefore
// limit the packets in the network, not the queue in the host.
type source struct {
	*Flow
	half  half
	timer *Timer

	entropy  *entropySource // nil: all packets use one port
	timeouts int64          // number of timeouts passed on to entropy
	credit   *credit        // nil: the transport needs no credit
	port     uint16         // source port of the last packet
	drawn    bool           // port and plane of the next packet have been chosen
	plane    uint8
	waiting  bool // it waits for its turn at the NIC
	push     bool // it does not wait for turns: UDP, or if the window goes to the NIC at once
}

func newSource(f *Flow, h half) *source {
	s := &source{Flow: f, half: h}
	s.timer = f.Src.net.newTimer(f.place(sending), s)
	return s
}

// now returns the time in the part of the network that the sending host belongs to.
func (s *source) now() time.Duration { return s.Src.net.now }

func (s *source) start() { s.ask() }

// ring handles the deadline of the transport.
func (s *source) ring() {
	s.half.tick(s.now())
	if s.entropy != nil && s.Timeouts > s.timeouts {
		s.timeouts = s.Timeouts
		s.entropy.heed(s.now(), s.port, pathTimeout)
	}
	s.ask()
}

func (s *source) receive(p *Packet) {
	if s.entropy != nil && p.Kind != grant {
		met := pathGood
		switch {
		case p.Trimmed == trimmedEarlier:
			met = pathTrimmed
		case p.Spoiled:
			met = pathMarked
		}
		s.entropy.heed(s.now(), p.Entropy, met)
	}
	s.half.receive(s.now(), p)
	s.ask()
	if s.Acknowledged > 0 {
		s.sender = over{}
		s.timer.drop()
		if s.step != nil {
			s.step.acknowledged(s.Src.net, s.Flow)
		}
		if !s.net.placed() { // without places, the receiver may be in another part
			s.Flow.receiver = over{}
		}
	}
}

// ask registers with the NIC if there is a packet to send.
func (s *source) ask() {
	switch {
	case s.waiting || !s.half.ready(s.now()):
	case s.push:
		s.send()
		return
	default:
		s.waiting = true
		if s.planeCount() > 1 {
			s.draw()
			s.Src.ports[s.plane].whenBelow(planeQueue*s.net.frame(), s)
		} else if s.Transport == DCQCN || s.Transport == UltraEthernet { // RDMA NICs select a packet when they can send it
			s.Src.whenFree(s)
		} else {
			s.Src.whenBelow(1, s)
		}
	}
	setTimer(s.timer, s.half.deadline())
}

// send sends a packet when it is the flow's turn.
func (s *source) send() {
	s.waiting = false
	if now := s.now(); s.half.ready(now) {
		p := s.Src.net.flowPacket(s.Flow, data, 0)
		if s.credit != nil {
			s.credit.flows = int64(s.Src.drained.n) + 1
		}
		s.half.emit(now, p)
		s.draw()
		if s.entropy != nil {
			p.Entropy = s.port
		}
		s.drawn = false
		s.sendOver(p, s.livePlane(s.Src, s.Dst, s.plane))
	}
	s.ask()
}

// draw chooses the source port and the plane of the next packet once.
func (s *source) draw() {
	if s.drawn {
		return
	}
	s.drawn = true
	if s.entropy != nil {
		s.port = s.entropy.next(s.now())
	}
	n := s.planeCount()
	if n == 1 {
		return
	}
	key := uint32(s.Sport) * 2654435761 >> 16 // spreads consecutive flows instead of alternating them
	if s.entropy != nil {
		key = uint32(s.port)
	}
	s.plane = s.livePlane(s.Src, s.Dst, uint8(key%uint32(n)))
}

// A sink drives the receiving half. It gives answers to the NIC at once.
type sink struct {
	*Flow
	net   *Network // part of the network that the receiving host belongs to
	half  half
	timer *Timer // nil: not needed yet

	entropy uint16 // Entropy of the last packet
	spoiled bool   // the last packet met congestion
	plane   uint8  // plane of the last packet

	creditor *creditor // nil: the host grants no credit
	padding  int32     // padding of a grant in bytes
}

func (s *sink) receive(p *Packet) {
	s.entropy, s.spoiled, s.plane = p.Entropy, p.CE, p.plane
	s.half.receive(s.net.now, p)
	s.answer()
	if s.creditor != nil {
		s.creditor.heed(p)
	}
	switch {
	case s.Transport == UDP:
		s.account(s.net, p)
	case s.Received == s.Bytes && s.Finished == 0:
		s.finish(s.net)
	}
}

// grant sends the total credit of the flow to its sender.
func (s *sink) grant(total int64) {
	p := s.net.flowPacket(s.Flow, grant, 0)
	p.Ack, p.Entropy = total, s.entropy
	p.padding, p.priority = s.padding, true
	s.sendOver(p, s.livePlane(s.Dst, s.Src, s.plane))
}

func (s *sink) answer() {
	for s.half.ready(s.net.now) {
		p := s.net.flowPacket(s.Flow, Ack, 0)
		s.half.emit(s.net.now, p)
		p.Entropy, p.Spoiled = s.entropy, s.spoiled
		s.sendOver(p, s.livePlane(s.Dst, s.Src, s.plane))
	}
	at := s.half.deadline()
	if s.timer == nil {
		if at == never {
			return
		}
		s.timer = s.net.newTimer(s.place(receiving), s)
	}
	setTimer(s.timer, at)
}

// ring handles the deadline of the transport.
func (s *sink) ring() {
	s.half.tick(s.net.now)
	s.answer()
}

// over replaces both ends of a flow after its last acknowledgment, which frees their state.
// Copies of packets may still arrive.
type over struct{}

func (over) start() {}

func (over) receive(p *Packet) {
	if p.Kind == data {
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

// A udpSender sends at a fixed rate: at equal intervals, or as a Poisson process if it has a
// source of random numbers.
type udpSender struct {
	t      *Tuning
	c      *FlowStats
	random *rand.Rand

	size, next int64
	rate       int64 // payload in bit/s
	at         time.Duration
	rest       int64 // remainder of the last division by rate
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

// emit fills in the next packet. The following packet is due one interval after this one was due,
// even if this one is late.
func (s *udpSender) emit(now time.Duration, p *Packet) {
	length := min(int64(s.t.Segment), s.size-s.next)
	p.Seq, p.Payload, p.Stamp = s.next, int(length), now
	s.next += length
	p.Last = s.next == s.size
	s.c.Sent++
	s.at += s.interval(length)
}

// interval returns the time to the next packet.
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

// A udpReceiver counts packets and sends no answers.
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
