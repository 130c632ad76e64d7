package fabric

import (
	"fmt"
	"net/netip"
	"slices"
)

// ipv6Bits is the length of the prefix that ToIPv6 puts before IPv4 addresses.
const ipv6Bits = 96

// HasIPv6 reports whether a host has an IPv6 address.
func (t *Topology) HasIPv6() bool {
	return slices.ContainsFunc(t.Hosts, func(h Host) bool { return h.IP.Addr().Is6() })
}

// ToIPv6 returns the topology with IPv6 addresses only: the IPv4 address 10.0.1.1/24
// becomes fd00::10.0.1.1/120.
func (t *Topology) ToIPv6() (*Topology, error) {
	u := t.clone()
	u.Switches, u.Links = slices.Clone(t.Switches), slices.Clone(t.Links)
	u.Hosts, u.Services = slices.Clone(t.Hosts), slices.Clone(t.Services)
	owners := map[netip.Addr]string{}
	for i := range u.Hosts {
		h := &u.Hosts[i]
		if h.IP.Addr().Is4() {
			h.IP = netip.PrefixFrom(toIPv6(h.IP.Addr()), ipv6Bits+h.IP.Bits())
		}
		if other := owners[h.IP.Addr()]; other != "" {
			return nil, fmt.Errorf("hosts %s and %s would both have the address %v, as IPv4 addresses move to fd00::/%d: want another address for one of them", other, h.Name, h.IP.Addr(), ipv6Bits)
		}
		owners[h.IP.Addr()] = h.Name
	}
	for i := range u.Services {
		if s := &u.Services[i]; s.Address.Is4() {
			s.Address = toIPv6(s.Address)
		}
	}
	u.index()
	return u, nil
}

func toIPv6(ip netip.Addr) netip.Addr {
	b := [16]byte{0: 0xfd}
	copy(b[12:], ip.AsSlice())
	return netip.AddrFrom16(b)
}
