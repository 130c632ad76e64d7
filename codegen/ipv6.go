package codegen

import (
	"fmt"
	"slices"
	"strings"
)

// ipv6 is the part that the parameter IPv6 adds to all programs.
const ipv6 = "ipv6"

// addIPv6 adds the part for IPv6. It refuses users' blocks whose text assumes IPv4
// headers.
func (v *view) addIPv6() error {
	for _, b := range v.blocks {
		if b.outside && strings.Contains(b.file.body(), "hdr.ipv4.") {
			return fmt.Errorf("ipv6: %v reads hdr.ipv4, which IPv6 packets do not have: use .Source, .Destination, .Protocol and .IsIP instead (%s)", b, b.file.name)
		}
	}
	added := v.arch.lookup(part, ipv6)
	kept := v.blocks
	v.blocks = nil
	for _, b := range v.arch.blocks { // keep the blocks in the order in which they contribute
		if b == added || slices.Contains(kept, b) {
			v.blocks = append(v.blocks, b)
		}
	}
	return nil
}

// of46 returns ipv4, or in programs for both IP versions, both.
func (v *view) of46(ipv4, both string) string {
	if v.In(ipv6) {
		return both
	}
	return ipv4
}

// Versions lists the IP versions that the program forwards, by their header names.
func (v *view) Versions() []string {
	if v.In(ipv6) {
		return []string{"ipv4", ipv6}
	}
	return []string{"ipv4"}
}

// RouteSize returns the number of prefixes in a routing table. On Tofino, 1024 IPv6
// prefixes need as many TCAM blocks as 3072 IPv4 prefixes.
func (v *view) RouteSize(version string) int {
	if version == ipv6 && !v.arch.software {
		return 1024
	}
	return 4096
}

// LeafTable returns the name of the table that maps an address to a leaf.
func (v *view) LeafTable(version string) string {
	if version == ipv6 {
		return "leaf_of_ipv6"
	}
	return "leaf_of"
}

// Source returns the expression for the packet's source address.
func (v *view) Source() string { return v.of46("hdr.ipv4.src", "meta.src") }

// Destination returns the expression for the packet's destination address.
func (v *view) Destination() string { return v.of46("hdr.ipv4.dst", "meta.dst") }

// Protocol returns the expression for the protocol number.
func (v *view) Protocol() string { return v.of46("hdr.ipv4.protocol", "meta.protocol") }

// IsIP returns the condition that the packet is IP.
func (v *view) IsIP() string {
	return v.of46("hdr.ipv4.isValid()", "(hdr.ipv4.isValid() || hdr.ipv6.isValid())")
}

// DSCP returns the expression for the packet's DSCP.
func (v *view) DSCP() string { return v.of46("hdr.ipv4.dscp", "dscp") }

// CopyBytes returns the length of the headers that copies for reports must contain.
func (v *view) CopyBytes() int {
	bytes := 34 // Ethernet and IPv4 headers
	if v.In("overlay") {
		bytes = 64
	}
	if v.In(ipv6) {
		bytes += 20
	}
	return bytes
}
