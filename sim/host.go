package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/fabric"
)

// A Host is a host. Its NIC sends what it is given in that order, at the rate
// of its link, and never drops.
type Host struct {
	Name string
	IP   uint32

	net     *Network
	place   int // among the hosts
	mac     fabric.MAC
	gateway fabric.MAC
	nic     *Port
	drained []drain
}

// A drain is a function that waits for the NIC to hold less, or with 0 to be about
// to send what it is given.
type drain struct {
	below int
	f     func()
}

func newHost(n *Network, h *fabric.Host) *Host {
	a := h.IP.Addr().As4()
	return &Host{Name: h.Name, IP: binary.BigEndian.Uint32(a[:]), net: n, place: len(n.hosts), mac: h.MAC}
}

// NIC is the port of the host.
func (h *Host) NIC() *Port { return h.nic }

// Queued is the number of bytes that the NIC has not begun to send.
func (h *Host) Queued() int { return int(h.nic.bytes) }

// WhenBelow calls f once, as soon as the NIC holds fewer bytes. Who waits
// longest is called first. A function that gives the NIC a packet and waits
// anew, each time, shares it evenly with others that do the same.
func (h *Host) WhenBelow(bytes int, f func()) {
	if int(h.nic.bytes) < bytes && len(h.drained) == 0 {
		f()
		return
	}
	h.drained = append(h.drained, drain{bytes, f})
}

// WhenFree calls f once, as soon as the NIC could send a packet at once, in turn
// with those of WhenBelow: so what is sent is decided on no sooner than it can be.
func (h *Host) WhenFree(f func()) {
	o := h.nic
	if len(h.drained) == 0 && o.free <= h.net.now && o.queue.head == nil && !o.paused {
		f()
		return
	}
	h.drained = append(h.drained, drain{0, f})
	o.wake()
}

// wanted reports whether somebody waits for the NIC to be free, and no packet.
func (h *Host) wanted() bool {
	o := h.nic
	return o.queue.head == nil && !o.paused && len(h.drained) > 0 && h.drained[0].below == 0
}

// freed calls who waits for the NIC to be free, until it is not.
func (h *Host) freed() {
	for h.wanted() && h.nic.free <= h.net.now {
		h.next()
	}
}

// next calls who waits longest.
func (h *Host) next() {
	f := h.drained[0].f
	h.drained = append(h.drained[:0], h.drained[1:]...)
	f()
}

// Send gives a packet to the NIC.
func (h *Host) Send(p *Packet) {
	p.Sent = h.net.now
	d := p.Flow.toward(p.Kind)
	p.Size = d.n + p.Payload
	if h.net.bytes {
		d.write(p)
	}
	p.CE = false
	h.net.begin(p)
	if h.net.urgent(p) {
		h.nic.hasten(p)
		return
	}
	h.nic.accept(p)
}

// depart lets a packet leave the NIC.
func (h *Host) depart(p *Packet, o *Port) {
	o.transmit(p)
	for len(h.drained) > 0 && int(o.bytes) < h.drained[0].below {
		h.next()
	}
}

// receive takes in a packet.
func (h *Host) receive(p *Packet) {
	n := h.net
	switch {
	case p.Flow == nil:
		// A switch's notice to the one upstream: hosts know none.
		n.lose(p, Consumed)
		return
	case p.Dst != h:
		n.lose(p, Stray)
		return
	}
	n.ledger.delivered.add(p)
	if n.bytes && !p.CE {
		p.CE = marked(p.head)
	}
	if p.Kind == Data {
		p.Flow.receiver.receive(p)
	} else {
		p.Flow.sender.receive(p)
	}
	n.release(p)
}

// A FlowSpec is what a flow is to be.
type FlowSpec struct {
	From, To  string // hosts
	Bytes     int64  // payload; 0: without end
	Transport Transport
	Tuning    *Tuning // of the transport; nil: as usual
	// Sport and Dport are its ports; zero: some that depend on its number.
	Sport, Dport uint16
	// Rate is that of the transports that keep one, of payload, in bit/s; zero:
	// that of the NIC.
	Rate int64
	// Done is called when the flow has finished, if not nil.
	Done func(*Flow)
}

// A Flow is a number of bytes on their way from one host to another.
type Flow struct {
	FlowSpec
	ID       int // counts from 1 in the order of StartFlow
	Src, Dst *Host

	Started  time.Duration
	Finished time.Duration // when the last byte arrived, or was lost with UDP; 0: not yet

	FlowStats

	net         *Network
	ahead, back headers
	sender      sender
	receiver    endpoint
}

// An endpoint is one end of a flow. It must not keep the packet.
type endpoint interface{ receive(p *Packet) }

// A sender begins to send when told so.
type sender interface {
	endpoint
	start()
}

// StartFlow starts a flow now.
func (n *Network) StartFlow(s FlowSpec) (*Flow, error) {
	f, err := n.newFlow(s)
	if err != nil {
		return nil, err
	}
	return f, f.begin()
}

// PlanFlow has a flow start at a time; to is set to it then.
func (n *Network) PlanFlow(at time.Duration, s FlowSpec, to **Flow) error {
	at = max(at, n.now)
	if !n.placed() {
		if err := n.checkFlow(&s); err != nil {
			return err
		}
		n.At(at, func() { *to, _ = n.StartFlow(s) }) // which has been checked
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

// A beginning is a flow that begins in the part of the network that it comes from.
type beginning struct {
	ev   event
	flow *Flow
	to   **Flow
}

func (b *beginning) soon(bool) {}

func (b *beginning) fire() {
	*b.to = b.flow
	if err := b.flow.begin(); err != nil {
		panic(err) // it has been checked
	}
}

// checkFlow says why a flow cannot be.
func (n *Network) checkFlow(s *FlowSpec) error {
	src, dst := n.Host(s.From), n.Host(s.To)
	if src == nil || dst == nil || src == dst {
		return fmt.Errorf("a flow from %q to %q: want two hosts", s.From, s.To)
	}
	_, err := n.tune(s, int64(src.nic.Rate()))
	return err
}

// newFlow makes a flow that has its number and its ports, and no ends.
func (n *Network) newFlow(s FlowSpec) (*Flow, error) {
	if err := n.checkFlow(&s); err != nil {
		return nil, err
	}
	f := &Flow{FlowSpec: s, net: n, Src: n.Host(s.From), Dst: n.Host(s.To)}
	n.flows++
	f.ID = n.flows
	if n.ns3 != nil {
		n.ns3.ports(f)
	}
	if f.Sport == 0 {
		f.Sport = uint16(10000 + f.ID%50000)
	}
	if f.Dport == 0 {
		f.Dport = 5001
	}
	return f, nil
}

// begin lets the flow begin.
func (f *Flow) begin() error {
	f.Started = f.Src.net.now
	protocol := f.Transport.protocol()
	f.ahead = newHeaders(f.Src, f.Dst, protocol, f.Sport, f.Dport)
	f.back = newHeaders(f.Dst, f.Src, protocol, f.Dport, f.Sport)
	if err := f.connect(); err != nil {
		return err
	}
	f.sender.start()
	return nil
}

// toward is the headers of packets of a kind.
func (f *Flow) toward(k Kind) *headers {
	if k == Data {
		return &f.ahead
	}
	return &f.back
}

// finish notes that the flow is over, which the part n of the network has seen. It
// is called once.
func (f *Flow) finish(n *Network) {
	f.Finished = n.now
	switch {
	case f.Done == nil:
	case n.placed():
		n.defers(f.place(receiving), func() { f.Done(f) })
	default:
		n.outside(func() { f.Done(f) })
	}
}
