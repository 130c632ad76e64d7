package netspace

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

const (
	// HostPort is the name of a host's interface.
	HostPort = "eth0"

	// switchMTU leaves room for headers that schemes add to a full packet.
	switchMTU = 9000
)

// gateways are the next hops of hosts, by IP version. No interface has these addresses: hosts
// have static entries that map them to the MAC address of their switch.
var gateways = map[int]net.IP{4: net.IPv4(169, 254, 0, 1), 6: net.ParseIP("fe80::1")}

// An End is an end of a link in the kernel.
type End struct {
	Space *Space
	Name  string
	MAC   fabric.MAC
	MTU   int
	// Offload is the largest payload of a TCP packet that the kernel passes to the other end
	// in one piece and without a checksum; 0: every packet is complete.
	Offload int
}

// PortName returns the name of the interface of a switch's port.
func PortName(port int) string { return fmt.Sprintf("port%d", port) }

// EndOf describes an end of a topology's link: a host's interface, which has
// the given MTU, or the port of a switch.
func EndOf(t *fabric.Topology, e fabric.End, mtu int) End {
	if h := t.Host(e.Node); h != nil {
		return End{Name: HostPort, MAC: h.MAC, MTU: mtu}
	}
	end := End{Name: PortName(e.Port), MTU: switchMTU}
	for _, p := range t.Ports(e.Node) {
		if p.Number == e.Port {
			end.MAC = p.MAC
		}
	}
	return end
}

// Join creates a pair of connected interfaces. Both are up. Features that rely on hardware are
// off. An end with Offload keeps checksums and TCP segmentation.
func Join(a, b End) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = a.Name, net.HardwareAddr(a.MAC[:]), a.MTU
	err := a.Space.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs,
		PeerName:  b.Name, PeerHardwareAddr: net.HardwareAddr(b.MAC[:]), PeerMTU: uint32(b.MTU),
		PeerNamespace: netlink.NsFd(b.Space.NS),
	})
	if err != nil {
		return err
	}
	for _, e := range []End{a, b} {
		if err := e.Space.Do(func() error { return setOffloads(e.Name, e.Offload > 0) }); err != nil {
			return err
		}
		if e.Offload > 0 {
			if err := e.Space.limitOffload(e.Name, e.Offload); err != nil {
				return err
			}
		}
		if err := e.Space.up(e.Name); err != nil {
			return err
		}
	}
	return nil
}

// limitOffload sets the largest TCP packet that an interface gets from its host.
func (s *Space) limitOffload(name string, size int) error {
	dev, err := s.LinkByName(name)
	if err != nil {
		return err
	}
	return s.LinkSetGSOMaxSize(dev, size)
}

// Settle configures a host's address and its static neighbour entries. Virtual addresses of its
// subnet get their own MAC address, or otherwise the switch's.
func Settle(t *fabric.Topology, h *fabric.Host, s *Space, known Known, virtual map[netip.Addr]fabric.MAC) error {
	dev, err := s.LinkByName(HostPort)
	if err != nil {
		return err
	}
	family, gateway := netlink.FAMILY_V4, gateways[4]
	everywhere := &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: h.IP.Addr().AsSlice(), Mask: net.CIDRMask(h.IP.Bits(), h.IP.Addr().BitLen())}}
	if h.IP.Addr().Is6() {
		family, gateway = netlink.FAMILY_V6, gateways[6]
		everywhere = &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
		addr.Flags = unix.IFA_F_NODAD
		if err := s.withIPv6(HostPort); err != nil {
			return err
		}
	}
	if err := s.AddrAdd(dev, addr); err != nil {
		return err
	}
	if err := s.serveDirectly(t, h); err != nil {
		return err
	}
	index := dev.Attrs().Index
	knows := func(ip net.IP, mac fabric.MAC) error {
		return s.NeighSet(&netlink.Neigh{
			LinkIndex: index, Family: family, State: netlink.NUD_PERMANENT, IP: ip, HardwareAddr: mac[:],
		})
	}
	sw := EndOf(t, fabric.End{Node: h.Switch, Port: h.Port}, 0)
	for ip, mac := range OnLink(t, h, known, virtual) {
		if err := knows(ip.AsSlice(), mac); err != nil {
			return err
		}
	}
	if known == KnowsNobody {
		return nil
	}
	route := &netlink.Route{LinkIndex: index, Gw: gateway, Flags: int(netlink.FLAG_ONLINK)}
	if known == KnowsAll {
		route = &netlink.Route{LinkIndex: index, Dst: everywhere, Scope: netlink.SCOPE_LINK}
	} else if err := knows(gateway, sw.MAC); err != nil {
		return err
	}
	for _, other := range t.Hosts {
		same := other.IP.Addr().BitLen() == h.IP.Addr().BitLen()
		if other.Name == h.Name || !same || known != KnowsAll && !h.IP.Contains(other.IP.Addr()) {
			continue
		}
		mac := other.MAC
		if known == KnowsSwitch {
			mac = sw.MAC
		}
		if err := knows(other.IP.Addr().AsSlice(), mac); err != nil {
			return err
		}
	}
	return s.RouteAdd(route)
}

// serveDirectly adds the addresses of services that the host serves directly to its loopback
// interface. Only the switch knows that the host has these addresses.
func (s *Space) serveDirectly(t *fabric.Topology, h *fabric.Host) error {
	given := map[netip.Addr]bool{}
	for _, service := range t.Services {
		if !service.Direct || given[service.Address] || !slices.Contains(service.Servers, h.Name) {
			continue
		}
		given[service.Address] = true
		if service.Address.Is6() {
			if err := s.withIPv6("lo"); err != nil {
				return err
			}
		}
		lo, err := s.LinkByName("lo")
		if err != nil {
			return err
		}
		bits := service.Address.BitLen()
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: service.Address.AsSlice(), Mask: net.CIDRMask(bits, bits)}}
		if err := s.AddrAdd(lo, addr); err != nil {
			return fmt.Errorf("service %s: the address %v on the loopback of %s: %w", service.Name, service.Address, h.Name, err)
		}
	}
	return nil
}
