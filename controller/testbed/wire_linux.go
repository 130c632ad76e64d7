package testbed

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/fabric"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const (
	hostPort = "eth0" // a host's interface
	mgmtPort = "mgmt" // a switch's, to its servers

	// switchMTU leaves room for what schemes put before a full packet.
	switchMTU = 9000
)

// gateway is where hosts send what is for elsewhere. Nobody has the address:
// the hosts know the port of their switch by its MAC.
var gateway = net.IPv4(169, 254, 0, 1)

// portName is the interface of a switch's port.
func portName(port int) string { return fmt.Sprintf("port%d", port) }

// blocks is how many blocks of 512 addresses 198.18.0.0/15 has.
const blocks = 256

// management is the address of one end of a switch's management link.
func management(block, sw, end int) netip.Addr {
	n := block<<9 | sw<<1 | end
	return netip.AddrFrom4([4]byte{198, byte(18 + n>>16), byte(n >> 8), byte(n)})
}

// managementName is the end of a management link that is not in the switch's
// namespace. Names of interfaces have 15 letters at most.
func managementName(block, sw int) string { return fmt.Sprintf("p4lb%02x-%d", block, sw) }

// freeBlock finds a block of which no address is in use on this machine, by
// another deployment or by one that the kernel is not yet done with. Each name
// begins to look elsewhere.
func freeBlock(name string) (int, error) {
	list, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return 0, fmt.Errorf("listing addresses: %w", err)
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	for i := range blocks {
		block := (int(hash.Sum32()%blocks) + i) % blocks
		first := management(block, 0, 0)
		size := netip.PrefixFrom(first, 23)
		used := false
		for _, a := range list {
			ip, _ := netip.AddrFromSlice(a.IP.To4())
			used = used || size.Contains(ip)
		}
		if !used {
			return block, nil
		}
	}
	return 0, errors.New("198.18.0.0/15 has no block of addresses that is free")
}

// A space is an open namespace.
type space struct {
	ns     netns.NsHandle
	handle *netlink.Handle
}

func openSpace(name string) (*space, error) {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return nil, fmt.Errorf("opening namespace %s: %w", name, err)
	}
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("opening namespace %s: %w", name, err)
	}
	return &space{ns, handle}, nil
}

func (s *space) close() {
	s.handle.Close()
	s.ns.Close()
}

// up puts an interface up.
func (s *space) up(name string) error {
	l, err := s.handle.LinkByName(name)
	if err != nil {
		return err
	}
	return s.handle.LinkSetUp(l)
}

// build makes the namespaces and joins them.
func (b *bed) build(p *controller.Plan) error {
	t := p.Topology
	spaces := map[string]*space{}
	defer func() {
		for _, s := range spaces {
			s.close()
		}
	}()
	for _, node := range nodes(t) {
		s, err := b.makeSpace(node)
		if err != nil {
			return err
		}
		spaces[node] = s
	}
	// The note comes before what is found by it.
	if err := b.writeNote(); err != nil {
		return err
	}
	for _, l := range t.Links {
		if err := b.join(t, l, spaces, p.Options.MTU); err != nil {
			return fmt.Errorf("making link %v: %w", l, err)
		}
	}
	for i, s := range p.Switches {
		if err := b.manage(i, spaces[s.Name]); err != nil {
			return fmt.Errorf("making the management link of %s: %w", s.Name, err)
		}
	}
	for i := range t.Hosts {
		if err := b.settle(t, &t.Hosts[i], spaces[t.Hosts[i].Name]); err != nil {
			return fmt.Errorf("setting up host %s: %w", t.Hosts[i].Name, err)
		}
	}
	return nil
}

func nodes(t *fabric.Topology) []string {
	var list []string
	for _, s := range t.Switches {
		list = append(list, s.Name)
	}
	for _, h := range t.Hosts {
		list = append(list, h.Name)
	}
	return list
}

// makeSpace makes the namespace of a node. Without IPv6, nothing is on the
// links but what hosts and switches send on purpose.
func (b *bed) makeSpace(node string) (*space, error) {
	name := namespace(b.name, node)
	if err := makeNamespace(name); err != nil {
		return nil, err
	}
	err := inNamespace(name, func() error {
		for _, which := range []string{"all", "default"} {
			err := os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/disable_ipv6", []byte("1"), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
				return fmt.Errorf("switching IPv6 off: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s, err := openSpace(name)
	if err != nil {
		return nil, err
	}
	return s, s.up("lo")
}

// join makes a link.
func (b *bed) join(t *fabric.Topology, l fabric.Link, spaces map[string]*space, mtu int) error {
	nameA, macA, mtuA := endOf(t, l.A, mtu)
	nameB, macB, mtuB := endOf(t, l.B, mtu)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = nameA, net.HardwareAddr(macA[:]), mtuA
	attrs.Namespace = netlink.NsFd(spaces[l.A.Node].ns)
	err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs,
		PeerName:  nameB, PeerHardwareAddr: net.HardwareAddr(macB[:]), PeerMTU: uint32(mtuB),
		PeerNamespace: netlink.NsFd(spaces[l.B.Node].ns),
	})
	if err != nil {
		return err
	}
	for _, end := range []struct{ node, name string }{{l.A.Node, nameA}, {l.B.Node, nameB}} {
		err := inNamespace(namespace(b.name, end.node), func() error { return offloadsOff(end.name) })
		if err != nil {
			return err
		}
		if err := spaces[end.node].up(end.name); err != nil {
			return err
		}
	}
	return nil
}

// endOf says what an end of a link is in the kernel.
func endOf(t *fabric.Topology, e fabric.End, mtu int) (name string, mac fabric.MAC, mtuOf int) {
	if h := t.Host(e.Node); h != nil {
		return hostPort, h.MAC, mtu
	}
	for _, p := range t.Ports(e.Node) {
		if p.Number == e.Port {
			mac = p.MAC
		}
	}
	return portName(e.Port), mac, switchMTU
}

// manage joins a switch to this process' own namespace.
func (b *bed) manage(i int, s *space) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = managementName(b.note.Block, i)
	err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: mgmtPort, PeerNamespace: netlink.NsFd(s.ns)})
	if err != nil {
		return err
	}
	here, err := netlink.LinkByName(attrs.Name)
	if err != nil {
		return err
	}
	there, err := s.handle.LinkByName(mgmtPort)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(here, pointToPoint(management(b.note.Block, i, 0))); err != nil {
		return err
	}
	if err := s.handle.AddrAdd(there, pointToPoint(management(b.note.Block, i, 1))); err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetUp(here), s.handle.LinkSetUp(there))
}

func pointToPoint(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(31, 32)}}
}

// settle gives a host its address, and the MAC of its switch for every address
// that it can send to: nobody answers ARP.
func (b *bed) settle(t *fabric.Topology, h *fabric.Host, s *space) error {
	dev, err := s.handle.LinkByName(hostPort)
	if err != nil {
		return err
	}
	addr := &net.IPNet{IP: h.IP.Addr().AsSlice(), Mask: net.CIDRMask(h.IP.Bits(), 32)}
	if err := s.handle.AddrAdd(dev, &netlink.Addr{IPNet: addr}); err != nil {
		return err
	}
	index := dev.Attrs().Index
	_, mac, _ := endOf(t, fabric.End{Node: h.Switch, Port: h.Port}, 0)
	known := []net.IP{gateway}
	for _, other := range t.Hosts {
		if other.Name != h.Name && h.IP.Contains(other.IP.Addr()) {
			known = append(known, other.IP.Addr().AsSlice())
		}
	}
	for _, ip := range known {
		err := s.handle.NeighSet(&netlink.Neigh{
			LinkIndex: index, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT, IP: ip, HardwareAddr: mac[:],
		})
		if err != nil {
			return err
		}
	}
	return s.handle.RouteAdd(&netlink.Route{LinkIndex: index, Gw: gateway, Flags: int(netlink.FLAG_ONLINK)})
}
