package codegen

import (
	"fmt"
	"slices"
	"strings"
)

// ipv6 is the part that the parameter IPv6 adds to all programs.
const ipv6 = "ipv6"

// addIPv6 adds the part for IPv6. The text of a user's block may assume IPv4 headers.
func (v *view) addIPv6() error {
	for _, b := range v.blocks {
		if b.outside && strings.Contains(b.file.body(), "hdr.ipv4.") {
			return fmt.Errorf("ipv6: %v reads hdr.ipv4, which IPv6 packets do not have: use .Source, .Destination, .Protocol and .IsIP instead (%s)", b, b.file.name)
		}
	}
	added := v.arch.lookup(part, ipv6)
	kept := v.blocks
	v.blocks = nil
	for _, b := range v.arch.blocks { // the order in which they contribute
		if b == added || slices.Contains(kept, b) {
			v.blocks = append(v.blocks, b)
		}
	}
	return nil
}

// of46 returns the name of a value that headers of both versions of IP have.
func (v *view) of46(ipv4, both string) string {
	if v.In(ipv6) {
		return both
	}
	return ipv4
}

// Versions lists the versions of IP that the program forwards, as its headers are named.
func (v *view) Versions() []string {
	if v.In(ipv6) {
		return []string{"ipv4", ipv6}
	}
	return []string{"ipv4"}
}

// RouteSize returns the number of prefixes that a table by addresses holds. On Tofino
// 1024 IPv6 prefixes take as many blocks of TCAM as 3072 of IPv4.
func (v *view) RouteSize(version string) int {
	if version == ipv6 && !v.arch.software {
		return 1024
	}
	return 4096
}

// LeafTable names the table that finds the leaf of an address.
func (v *view) LeafTable(version string) string {
	if version == ipv6 {
		return "leaf_of_ipv6"
	}
	return "leaf_of"
}

// Source returns the source address of the packet.
func (v *view) Source() string { return v.of46("hdr.ipv4.src", "meta.src") }

// Destination returns the destination address of the packet.
func (v *view) Destination() string { return v.of46("hdr.ipv4.dst", "meta.dst") }

// Protocol returns the number of the protocol above IP.
func (v *view) Protocol() string { return v.of46("hdr.ipv4.protocol", "meta.protocol") }

// IsIP returns the condition for IP packets.
func (v *view) IsIP() string {
	return v.of46("hdr.ipv4.isValid()", "(hdr.ipv4.isValid() || hdr.ipv6.isValid())")
}

// DSCP returns the DSCP of the packet.
func (v *view) DSCP() string { return v.of46("hdr.ipv4.dscp", "dscp") }

// CopyBytes returns the length of the headers in copies that become reports.
func (v *view) CopyBytes() int {
	bytes := 34 // Ethernet and IPv4
	if v.In("overlay") {
		bytes = 64
	}
	if v.In(ipv6) {
		bytes += 20
	}
	return bytes
}
