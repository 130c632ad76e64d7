package sim

import (
	"cmp"
	"fmt"
	"time"
)

// StartFlow starts a flow now.
func (n *Network) StartFlow(s FlowSpec) (*Flow, error) {
	f, err := n.newFlow(s)
	if err != nil {
		return nil, err
	}
	return f, f.begin()
}

// PlanFlow starts a flow at a given time. If to is not nil, *to is set to the flow when it
// starts.
func (n *Network) PlanFlow(at time.Duration, s FlowSpec, to **Flow) error {
	at = max(at, n.now)
	if !n.placed() {
		if err := n.checkFlow(&s); err != nil {
			return err
		}
		n.At(at, func() {
			f, _ := n.StartFlow(s) // s has been checked above
			if to != nil {
				*to = f
			}
		})
		return nil
	}
	f, err := n.newFlow(s)
	if err != nil {
		return err
	}
	b := &beginning{flow: f, to: to}
	b.ev.what = b
	f.Src.net.events.planAs(&b.ev, at, uint64(f.place(sending)))
	return nil
}

// A beginning starts a planned flow in the part of the network that its source belongs to.
type beginning struct {
	ev   event
	flow *Flow
	to   **Flow
}

func (b *beginning) soon(bool) {}

func (b *beginning) fire() {
	if b.to != nil {
		*b.to = b.flow
	}
	if err := b.flow.begin(); err != nil {
		panic(err) // the flow has been checked when it was planned
	}
}

// checkFlow returns the reason why a flow is invalid.
func (n *Network) checkFlow(s *FlowSpec) error {
	src, dst := n.Host(s.From), n.Host(s.To)
	if src == nil || dst == nil || src == dst {
		return fmt.Errorf("a flow from %q to %q: want two hosts", s.From, s.To)
	}
	if s.Service != nil {
		if err := s.Service.check(n, src); err != nil {
			return err
		}
		if s.usesRoCE() {
			return fmt.Errorf("a flow to service %s with bth: an RDMA connection has one host: want bth: false", s.Service.Name)
		}
	}
	if src.first != src || dst.first != dst {
		return fmt.Errorf("a flow from %q to %q: want hosts, not their further ports", s.From, s.To)
	}
	_, err := n.tune(s, src.rate(s.Tuning))
	return err
}

// newFlow makes a flow with its number and ports, but without endpoints.
func (n *Network) newFlow(s FlowSpec) (*Flow, error) {
	if err := n.checkFlow(&s); err != nil {
		return nil, err
	}
	f := &Flow{FlowSpec: s, FlowStats: s.Stats, net: n, Src: n.Host(s.From), Dst: n.Host(s.To)}
	if f.FlowStats == nil {
		f.FlowStats = new(FlowStats)
	}
	n.flows++
	f.ID = n.flows
	if n.ns3 != nil {
		n.ns3.ports(f)
	}
	if f.PortSeed != 0 {
		f.Sport = f.port(0)
	}
	f.Sport = cmp.Or(f.Sport, uint16(firstPort+f.ID%sourcePorts))
	if f.Service != nil {
		f.Dport = cmp.Or(f.Dport, f.Service.Port)
	}
	if f.usesRoCE() {
		f.Dport = rocePort
	}
	f.Dport = cmp.Or(f.Dport, 5001)
	return f, nil
}

// begin starts the flow.
func (f *Flow) begin() error {
	f.Started = f.Src.net.now
	protocol := f.Transport.protocol()
	to := f.Dst
	if f.Service != nil {
		to = f.Service.address(f.Src)
	}
	from, into := f.Dport, f.Sport // ports for packets from the destination to the source
	if f.usesRoCE() {
		from, into = into, from
	}
	f.ahead = newHeaders(f.Src, to, protocol, f.Sport, f.Dport)
	f.back = newHeaders(f.Dst, f.Src, protocol, from, into)
	dscp := uint8(0)
	if f.Transport == UltraEthernet {
		dscp = f.Src.net.opts.TrimmableDSCP
	}
	f.ahead.dscp = dscp
	if n := f.planeCount(); n > 1 {
		planes := make([][2]headers, n-1)
		for k := range planes {
			a, b := f.Src.ports[k+1], f.Dst.ports[k+1]
			planes[k] = [2]headers{newHeaders(a, b, protocol, f.Sport, f.Dport), newHeaders(b, a, protocol, from, into)}
			planes[k][0].dscp = dscp
		}
		f.planes = &planes
	}
	if f.usesRoCE() {
		t, err := f.net.tune(&f.FlowSpec, f.Src.rate(f.Tuning))
		if err != nil {
			return err
		}
		f.roce = &roce{segment: int64(t.Segment), pair: uint32(f.ID) & 0xFFFFFF, last: never64}
		if f.Bytes > 0 {
			f.roce.last = (f.Bytes - 1) / f.roce.segment * f.roce.segment
		}
	}
	if err := f.connect(); err != nil {
		return err
	}
	f.sender.start()
	return nil
}

// usesRoCE reports whether switches see the headers of RoCE.
func (s *FlowSpec) usesRoCE() bool {
	return s.Transport == DCQCN && s.Tuning != nil && s.Tuning.RDMA.BTH
}

// tune returns the parameters of a flow whose NIC sends rate bit/s. Flows share them, so callers
// must not change them.
func (n *Network) tune(s *FlowSpec, rate int64) (*Tuning, error) {
	key := tuningKey{kind: s.Transport, none: s.Tuning == nil, rate: rate}
	if s.Tuning != nil {
		key.given = *s.Tuning
	}
	n.tunings.mu.Lock()
	defer n.tunings.mu.Unlock()
	if t := n.tunings.made[key]; t != nil {
		return t, nil
	}
	t, err := n.newTuning(s, rate)
	if err != nil {
		return nil, err
	}
	n.tunings.made[key] = &t
	return &t, nil
}

// newTuning fills in the parameters that a flow does not set.
func (n *Network) newTuning(s *FlowSpec, rate int64) (Tuning, error) {
	if s.Transport < 0 || s.Transport > UltraEthernet {
		return Tuning{}, fmt.Errorf("there is no %v", s.Transport)
	}
	room := n.opts.MTU - n.ipLen() - udpLen
	switch {
	case s.Transport.protocol() == protocolTCP:
		room = n.opts.MTU - n.ipLen() - tcpLen
	case s.Transport == DCQCN && s.Tuning != nil:
		headers := s.Tuning.RDMA.Headers
		if s.usesRoCE() {
			headers = cmp.Or(headers, RoCEHeaders)
		}
		room -= max(0, headers-UDPHeaders)
		if s.Tuning.RDMA.Nack == Patient {
			return n.patient(*s.Tuning, rate).tuned(rate, room)
		}
	case s.Transport == UltraEthernet:
		var t Tuning
		if s.Tuning != nil {
			t = *s.Tuning
		}
		t.UEC.tune()
		room -= t.UEC.Headers - UDPHeaders
		d := n.measure(t.UEC.Answer)
		fill(&t.UEC.BaseRTT, d.rtt)
		fill(&t.MinRTO, d.timeout(rate))
		t.UEC.window = t.Window
		t, err := t.tuned(rate, room)
		if err == nil {
			t.law = newWindowLaw(&t, rate)
		}
		return t, err
	}
	return s.Tuning.tuned(rate, room)
}

// patient fills in the parameters that IRN derives from the network: a window of one round trip,
// and the fixed timeout of Ultra Ethernet.
func (n *Network) patient(t Tuning, rate int64) *Tuning {
	d := n.measure(UECHeaders)
	r := &t.RDMA
	fill(&r.BaseRTT, d.rtt)
	fill(&r.Reordering, r.BaseRTT)
	fill(&r.Window, int64(r.BaseRTT.Seconds()*float64(rate)/8))
	fill(&t.MinRTO, d.timeout(rate))
	fill(&t.FirstRTO, t.MinRTO)
	fill(&t.MaxRTO, t.MinRTO)
	return &t
}

// connect makes the two endpoints of a flow.
func (f *Flow) connect() error {
	rate := f.Src.rate(f.Tuning)
	t, err := f.net.tune(&f.FlowSpec, rate)
	if err != nil {
		return err
	}
	size := cmp.Or(f.Bytes, never64)
	var to, from half
	switch f.Transport {
	case UDP:
		if f.Rate > 0 {
			rate = f.Rate
		}
		to = newUDPSender(t, f.FlowStats, size, rate, f.Src.net.now)
		if t.Poisson {
			to.(*udpSender).random = f.net.stream(fmt.Sprintf("flow %d", f.ID))
		}
		from = &udpReceiver{c: f.FlowStats}
	case TCP, DCTCP:
		to = newTCPSender(t, f.FlowStats, size, f.Transport == DCTCP)
		from = newTCPReceiver(t, f.FlowStats)
	case DCQCN:
		to = newDCQCNSender(t, f.FlowStats, size, rate)
		from = newGoBackReceiver(t, f.FlowStats)
	case UltraEthernet:
		to = newUECSender(t, f.FlowStats, size)
		from = newUECReceiver(t, f.FlowStats)
	}
	source := newSource(f, to)
	if t.Entropy != EntropyFlow {
		source.entropy = newEntropySource(t, f.net.stream(fmt.Sprintf("entropy/%d", f.ID)))
	}
	if f.step != nil {
		f.step.connect(source)
	}
	source.push = f.Transport == UDP || t.AtOnce && f.Transport.protocol() == protocolTCP
	sink := &sink{Flow: f, net: f.Dst.net, half: from}
	if u, ok := to.(*uecSender); ok && u.credit != nil {
		source.credit = u.credit
		sink.padding = int32(t.UEC.Answer - UDPHeaders)
		sink.creditor = &creditor{flow: f, send: sink.grant, most: u.w.most}
		if t.UEC.Oversubscription > 1 {
			sink.creditor.throttled = &t.UEC
		}
	}
	f.sender, f.receiver = source, sink
	return nil
}

// check returns the reason why a flow cannot go to the service.
func (s *Service) check(n *Network, from *Host) error {
	for _, name := range s.Servers {
		switch h := n.Host(name); h {
		case nil:
			return fmt.Errorf("service %s: there is no host %q", s.Name, name)
		case from:
			return fmt.Errorf("service %s: %s is one of its servers: want a flow from another host", s.Name, name)
		}
	}
	return nil
}

// address returns a Host with the address of the service, for the headers of packets that the
// host from sends to it.
func (s *Service) address(from *Host) *Host {
	return &Host{Name: s.Name, IP: s.IP, mac: from.gateway, net: from.net}
}

// Server returns the name of the server that serves a flow to a service. It is empty until a
// packet has reached a server.
func (f *Flow) Server() string {
	if f.Service == nil || !f.served {
		return ""
	}
	return f.Dst.Name
}
