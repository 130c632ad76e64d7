package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// New makes a network from a topology. Its switches drop all packets until a program or model is
// loaded.
func New(t *fabric.Topology, o Options) (*Network, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	n := &Network{topology: t, opts: o, byName: map[string]any{}}
	n.whole, n.parts, n.distance = n, []*Network{n}, new(distance)
	n.tunings = &tunings{made: map[tuningKey]*Tuning{}}
	var err error
	if n.upper, err = commonUpper(t); err != nil {
		return nil, err
	}
	for i := range t.Switches {
		s := newSwitch(n, &t.Switches[i])
		n.switches = append(n.switches, s)
		n.byName[s.Name] = s
	}
	for i := range t.Hosts {
		h := newHost(n, &t.Hosts[i])
		n.hosts = append(n.hosts, h)
		n.byName[h.Name] = h
	}
	for i := range t.Links {
		if l := &t.Links[i]; t.Switch(l.A.Node) != nil && t.Switch(l.B.Node) != nil {
			n.fastest = max(n.fastest, l.Rate)
		}
	}
	for i := range t.Links {
		n.links = append(n.links, n.connect(i, &t.Links[i]))
	}
	for _, h := range n.hosts {
		h.gateway = h.nic.peer.mac
	}
	if err := n.joinPorts(); err != nil {
		return nil, err
	}
	if o.ECN.ByBDP {
		n.opts.ECN.Min, n.opts.ECN.Max = n.measure(UECHeaders).thresholds(n.frame())
	}
	n.events.fetches = len(n.hosts) > fitsCache
	if o.Hash == HashNS3 {
		n.ns3 = newNS3Numbers(n)
	}
	if o.Draws == DrawsNS3 {
		n.draws = newNS3Random(uint32(o.Seed))
	}
	if o.Ties == ByPlace {
		n.divide(max(1, o.Cores))
	}
	return n, nil
}

// CheckAddresses returns an error for hosts that the simulator cannot address. It identifies
// hosts by the last 32 bits of their addresses.
func CheckAddresses(t *fabric.Topology) error {
	_, err := commonUpper(t)
	return err
}

// commonUpper returns the leading bytes that the IPv6 addresses of all hosts share, or nil for
// IPv4.
func commonUpper(t *fabric.Topology) (common *[12]byte, err error) {
	if !t.HasIPv6() {
		return nil, nil
	}
	for i := range t.Hosts {
		h := &t.Hosts[i]
		if !h.IP.Addr().Is6() {
			return nil, fmt.Errorf("host %s has the address %v: the simulator takes one version of IP: want IPv6, as other hosts have it", h.Name, h.IP.Addr())
		}
		b := h.IP.Addr().As16()
		upper := [12]byte(b[:12])
		if common == nil {
			common = &upper
		}
		if upper != *common || h.IP.Bits() < 96 {
			return nil, fmt.Errorf("host %s has the address %v: the simulator wants IPv6 addresses of one subnet of 96 bits, as ipv6: true makes them of IPv4 addresses", h.Name, h.IP)
		}
	}
	for _, s := range t.Services {
		if b := s.Address.As16(); [12]byte(b[:12]) != *common {
			return nil, fmt.Errorf("service %s has the address %v: the simulator wants it in the subnet of 96 bits of the hosts, such as %v", s.Name, s.Address, t.Hosts[0].IP.Masked())
		}
	}
	return common, nil
}

// fitsCache is the largest number of hosts for which all packets and flows fit in the cache.
// Prefetching would then cost a seventh of the time of a hop.
const fitsCache = 64

func newSwitch(n *Network, spec *fabric.Switch) *Switch {
	s := &Switch{Name: spec.Name, Role: spec.Role, net: n, buffer: int(spec.Buffer), macs: map[int]fabric.MAC{}}
	s.random = n.stream("ecn/" + s.Name)
	for _, p := range n.topology.Ports(s.Name) {
		s.macs[p.Number] = p.MAC
	}
	s.share = s.buffer / max(1, len(s.macs))
	s.cpu = n.newPort(n.opts.CPU)
	s.cpu.sw = s
	s.loop = s.virtual(-1)
	s.engine = idle{s}
	return s
}

// virtual makes a port for recirculation.
func (s *Switch) virtual(number int) *Port {
	o := s.net.newPort(number)
	o.sw = s
	o.rate, o.delay = int64(s.net.opts.Virtual.Rate), s.net.opts.Virtual.Latency
	o.limit = clampQueue(s.net.opts.queue(0))
	return o
}

// AddVirtual adds recirculation ports with the given numbers. Packets that the program sends to
// them and recirculates pass ingress again.
func (s *Switch) AddVirtual(ports ...int) {
	for _, number := range ports {
		if s.ports[number] == nil {
			s.ports[number] = s.virtual(number)
		}
	}
}

func newHost(n *Network, h *fabric.Host) *Host {
	a := h.IP.Addr().AsSlice()
	host := &Host{Name: h.Name, IP: binary.BigEndian.Uint32(a[len(a)-4:]), net: n, place: len(n.hosts), mac: h.MAC}
	host.first = host
	return host
}

func (n *Network) newPort(number int) *Port {
	p := &Port{Number: number, rateShare: 1, net: n, far: n, place: n.newPlace()}
	p.serving.what = (*serveHandler)(p)
	p.arriving.what = (*arriveHandler)(p)
	return p
}

// connect makes the link with index i in the topology.
func (n *Network) connect(i int, l *fabric.Link) *Link {
	link := &Link{Place: i}
	link.A, link.B = n.end(l.A, l), n.end(l.B, l)
	link.A.peer, link.B.peer = link.B, link.A
	link.A.link, link.B.link = link, link
	link.A.down, link.B.down = l.Down, l.Down
	for _, o := range []*Port{link.A, link.B} {
		o.fullLimit = o.limit
		o.scale()
	}
	return link
}

// end makes the port at one end of a link.
func (n *Network) end(e fabric.End, l *fabric.Link) *Port {
	p := n.newPort(e.Port)
	p.rate, p.delay = int64(l.Rate), l.Delay
	p.limit = clampQueue(n.opts.queue(0))
	switch node := n.byName[e.Node].(type) {
	case *Host:
		p.host, node.nic = node, p
		p.mac = node.mac
	case *Switch:
		p.sw, node.ports[e.Port] = node, p
		p.mac = node.macs[e.Port]
		p.limit = clampQueue(n.opts.queue(node.share))
	}
	if l.Queue > 0 {
		p.limit = clampQueue(l.Queue * n.frame())
	}
	return p
}
