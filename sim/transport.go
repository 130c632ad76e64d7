package sim

import (
	"fmt"
	"time"
)

// A Transport is how a flow is sent.
type Transport int

// The transports.
const (
	UDP   Transport = iota // at a given rate; nothing is repeated
	TCP                    // NewReno with SACK
	DCTCP                  // the same, and ECN to measure congestion by
	DCQCN                  // paced by congestion notifications; go-back-N
)

var transportNames = [...]string{"udp", "tcp", "dctcp", "dcqcn"}

func (t Transport) String() string {
	if t < 0 || int(t) >= len(transportNames) {
		return fmt.Sprintf("transport %d", int(t))
	}
	return transportNames[t]
}

// ParseTransport finds a transport by its name.
func ParseTransport(name string) (Transport, error) {
	for i, n := range transportNames {
		if n == name {
			return Transport(i), nil
		}
	}
	return 0, fmt.Errorf("there is no transport %q: want udp, tcp, dctcp or dcqcn", name)
}

// protocol is the number that IP knows the transport by.
func (t Transport) protocol() uint8 {
	if t == TCP || t == DCTCP {
		return protocolTCP
	}
	return protocolUDP
}

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

// tune fills in the parameters of a flow from a NIC of some bit/s.
func (n *Network) tune(s *FlowSpec, rate int64) (Tuning, error) {
	if s.Transport < 0 || s.Transport > DCQCN {
		return Tuning{}, fmt.Errorf("there is no %v", s.Transport)
	}
	room := n.opts.MTU - ipv4Len - udpLen
	if s.Transport.protocol() == protocolTCP {
		room = n.opts.MTU - ipv4Len - tcpLen
	}
	return s.Tuning.tuned(rate, room)
}

// connect makes the two ends of a flow.
func (f *Flow) connect() error {
	rate := int64(f.Src.nic.Rate())
	t, err := f.net.tune(&f.FlowSpec, rate)
	if err != nil {
		return err
	}
	size := f.Bytes
	if size == 0 {
		size = never64
	}
	var to, from half
	switch f.Transport {
	case UDP:
		if f.Rate > 0 {
			rate = f.Rate
		}
		to = newUDPSender(&t, &f.FlowStats, size, rate, f.Src.net.now)
		if t.Poisson {
			to.(*udpSender).random = f.net.stream(fmt.Sprintf("flow %d", f.ID))
		}
		from = &udpReceiver{c: &f.FlowStats}
	case TCP, DCTCP:
		to = newTCPSender(&t, &f.FlowStats, size, f.Transport == DCTCP)
		from = newTCPReceiver(&t, &f.FlowStats)
	case DCQCN:
		to = newDCQCNSender(&t, &f.FlowStats, size, rate)
		from = newGoBackReceiver(&t, &f.FlowStats)
	}
	source := newSource(f, to)
	source.push = f.Transport == UDP || t.AtOnce && f.Transport.protocol() == protocolTCP
	f.sender, f.receiver = source, newSink(f, from)
	return nil
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
}

func newSource(f *Flow, h half) *source {
	s := &source{Flow: f, net: f.Src.net, half: h}
	s.turn = s.send
	s.timer = s.net.newTimer(f.place(sending), func() {
		h.tick(s.net.now)
		s.ask()
	})
	return s
}

func (s *source) start() { s.ask() }

func (s *source) receive(p *Packet) {
	s.half.receive(s.net.now, p)
	s.ask()
	if s.Acknowledged > 0 {
		s.sender = over{}
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
}

func newSink(f *Flow, h half) *sink { return &sink{Flow: f, net: f.Dst.net, half: h} }

func (s *sink) receive(p *Packet) {
	s.half.receive(s.net.now, p)
	s.answer()
	if complete := s.Received == s.Bytes || s.Transport == UDP && p.Last; complete && s.Finished == 0 {
		s.finish(s.net)
	}
}

func (s *sink) answer() {
	for s.half.ready(s.net.now) {
		p := s.net.NewPacket(s.Flow, Ack, 0)
		s.half.emit(s.net.now, p)
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
