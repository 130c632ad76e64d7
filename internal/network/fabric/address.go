package fabric

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"strings"
)

// A MAC is an Ethernet address.
type MAC [6]byte

// parseMAC parses an address such as 02:00:0a:00:01:01.
func parseMAC(text string) (MAC, error) {
	var m MAC
	b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(b) != len(m) || len(text) != 17 || MAC(b).String() != strings.ToLower(text) {
		return MAC{}, fmt.Errorf("%q: want an Ethernet address such as 02:00:0a:00:01:01", text)
	}
	return MAC(b), nil
}

// String formats the address in the usual way.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// MarshalText implements encoding.TextMarshaler.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *MAC) UnmarshalText(text []byte) (err error) {
	*m, err = parseMAC(string(text))
	return err
}

// unicast reports whether an interface can have the address.
func (m MAC) unicast() bool { return m[0]&1 == 0 && m != MAC{} }

// All derived MACs are locally administered. They differ in the first
// byte.
const (
	hostMACs = 0x02 // followed by the IPv4 address
	portMACs = 0x06 // followed by the numbers of the switch and the port

	host6MACs = 0x0a // followed by a hash of the IPv6 address
)

// hostMAC derives a MAC from the address. The MAC of an IPv4 host contains its address,
// so table entries show which host they concern.
func hostMAC(ip netip.Addr) MAC {
	if ip.Is6() {
		b := ip.As16()
		h := fnv.New64a()
		h.Write(b[:])
		m := MAC(binary.BigEndian.AppendUint64(nil, h.Sum64())[2:])
		m[0] = host6MACs
		return m
	}
	m := MAC{hostMACs}
	a := ip.As4()
	copy(m[2:], a[:])
	return m
}

// portMAC returns the MAC of a port of the switch at an index of
// Topology.Switches.
func portMAC(place, port int) MAC {
	m := MAC{portMACs}
	binary.BigEndian.PutUint16(m[2:], uint16(place+1))
	binary.BigEndian.PutUint16(m[4:], uint16(port))
	return m
}

// parseHostIP parses an address with a prefix length.
func parseHostIP(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	a := p.Addr()
	if err != nil || a.Is4In6() || a.Is6() && !a.IsGlobalUnicast() || p.Bits() < 8 || a.IsMulticast() || a.IsLoopback() || a.IsUnspecified() {
		return netip.Prefix{}, fmt.Errorf("%q: want an address with the length of its prefix such as 10.0.1.1/24 or 2001:db8:1::1/64", text)
	}
	return p, nil
}

// A plan gives each leaf a subnet of 10.0.0.0/8. Leaf 3 has 10.0.3.0/24, or a
// larger subnet if a leaf has more hosts than a /24 holds.
type plan struct{ bits int } // number of bits in the host's part

// planFor returns the plan for the given numbers of leaves and of hosts per
// leaf.
func planFor(leaves, hosts int) (plan, error) {
	p := plan{max(8, bits.Len(uint(hosts+1)))}
	if leaves>>(24-p.bits) != 0 {
		return plan{}, fmt.Errorf("%d leaves with up to %d hosts do not fit into 10.0.0.0/8: give the hosts addresses", leaves, hosts)
	}
	return p, nil
}

// host returns the address of a host by the numbers of its leaf and of the host
// at it, both counted from 1.
func (p plan) host(leaf, host int) netip.Prefix {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 10<<24|uint32(leaf)<<p.bits|uint32(host))
	return netip.PrefixFrom(netip.AddrFrom4(a), 32-p.bits)
}
