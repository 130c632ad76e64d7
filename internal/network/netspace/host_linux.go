package netspace

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

const (
	// HostPort is the interface of a host.
	HostPort = "eth0"

	// switchMTU leaves room for what schemes put before a full packet.
	switchMTU = 9000
)

// gateway is the next hop of hosts. No interface has the address: hosts have a static
// entry with the MAC address of their switch.
var gateway = net.IPv4(169, 254, 0, 1)

var everywhere = &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}

// An End is an end of a link in the kernel.
type End struct {
	Space *Space
	Name  string
	MAC   fabric.MAC
	MTU   int
}

// PortName is the interface of a switch's port.
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

// Join makes a pair of interfaces, which are up and leave nothing to hardware
// that is not there.
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
		if err := e.Space.Do(func() error { return OffloadsOff(e.Name) }); err != nil {
			return err
		}
		if err := e.Space.Up(e.Name); err != nil {
			return err
		}
	}
	return nil
}

// Settle gives a host its address and its static neighbour entries.
func Settle(t *fabric.Topology, h *fabric.Host, s *Space, known Known) error {
	dev, err := s.LinkByName(HostPort)
	if err != nil {
		return err
	}
	addr := &net.IPNet{IP: h.IP.Addr().AsSlice(), Mask: net.CIDRMask(h.IP.Bits(), 32)}
	if err := s.AddrAdd(dev, &netlink.Addr{IPNet: addr}); err != nil {
		return err
	}
	if known == KnowsNobody {
		return nil
	}
	index := dev.Attrs().Index
	knows := func(ip net.IP, mac fabric.MAC) error {
		return s.NeighSet(&netlink.Neigh{
			LinkIndex: index, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT, IP: ip, HardwareAddr: mac[:],
		})
	}
	sw := EndOf(t, fabric.End{Node: h.Switch, Port: h.Port}, 0)
	route := &netlink.Route{LinkIndex: index, Gw: gateway, Flags: int(netlink.FLAG_ONLINK)}
	if known == KnowsAll {
		route = &netlink.Route{LinkIndex: index, Dst: everywhere, Scope: netlink.SCOPE_LINK}
	} else if err := knows(gateway, sw.MAC); err != nil {
		return err
	}
	for _, other := range t.Hosts {
		if other.Name == h.Name || known != KnowsAll && !h.IP.Contains(other.IP.Addr()) {
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
