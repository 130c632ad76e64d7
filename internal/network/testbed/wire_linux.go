package testbed

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/vishvananda/netlink"
)

// mgmtPort is a switch's interface to its servers.
const mgmtPort = "mgmt"

// blocks is the number of blocks of 512 addresses in 198.18.0.0/15.
const blocks = 256

// management returns the address of one end of a switch's management link.
func management(block, sw, end int) netip.Addr {
	n := block<<9 | sw<<1 | end
	return netip.AddrFrom4([4]byte{198, byte(18 + n>>16), byte(n >> 8), byte(n)})
}

// managementName returns the name of the management interface outside of the switch's namespace.
// Names of interfaces have at most 15 characters.
func managementName(block, sw int) string { return fmt.Sprintf("p4lb%02x-%d", block, sw) }

// freeBlock returns a block of addresses that are all unused on this machine, by
// other deployments or by remains in the kernel. The search starts at a position
// derived from the name.
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

// build creates the namespaces and links. It records the deployment when everything
// exists, so that no process takes over the remains of a killed one.
func (b *bed) build(p *plan.Plan) error {
	t := p.Topology
	spaces := map[string]*netspace.Space{}
	defer func() {
		for _, s := range spaces {
			s.Close()
		}
	}()
	for _, node := range nodes(t) {
		s, err := netspace.New(namespace(b.name, node))
		if err != nil {
			return err
		}
		spaces[node] = s
	}
	for _, l := range t.Links {
		if err := join(t, l, spaces, p.Options.MTU); err != nil {
			return fmt.Errorf("making link %v: %w", l, err)
		}
	}
	for i, s := range p.Switches {
		if err := b.manage(i, spaces[s.Name]); err != nil {
			return fmt.Errorf("making the management link of %s: %w", s.Name, err)
		}
	}
	for i := range t.Hosts {
		if err := netspace.Settle(t, &t.Hosts[i], spaces[t.Hosts[i].Name], b.o.Known, b.note.Virtual); err != nil {
			return fmt.Errorf("setting up host %s: %w", t.Hosts[i].Name, err)
		}
	}
	return nil
}

func nodes(t *fabric.Topology) []string {
	list := lists.Map(t.Switches, func(s fabric.Switch) string { return s.Name })
	for _, h := range t.Hosts {
		list = append(list, h.Name)
	}
	return list
}

// join creates a link.
func join(t *fabric.Topology, l fabric.Link, spaces map[string]*netspace.Space, mtu int) error {
	a, b := netspace.EndOf(t, l.A, mtu), netspace.EndOf(t, l.B, mtu)
	a.Space, b.Space = spaces[l.A.Node], spaces[l.B.Node]
	return netspace.Join(a, b)
}

// manage connects a switch to this process's namespace.
func (b *bed) manage(i int, s *netspace.Space) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = managementName(b.note.Block, i)
	err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: mgmtPort, PeerNamespace: netlink.NsFd(s.NS)})
	if err != nil {
		return err
	}
	here, err := netlink.LinkByName(attrs.Name)
	if err != nil {
		return err
	}
	there, err := s.LinkByName(mgmtPort)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(here, pointToPoint(management(b.note.Block, i, 0))); err != nil {
		return err
	}
	if err := s.AddrAdd(there, pointToPoint(management(b.note.Block, i, 1))); err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetUp(here), s.LinkSetUp(there))
}

func pointToPoint(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(31, 32)}}
}
