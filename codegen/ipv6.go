package codegen

import (
	"fmt"
	"slices"
	"strings"
)

// addresses describes the IP versions of a program.
type addresses struct{ *composition }

// ipv6 is the part that the parameter IPv6 adds to all programs.
const ipv6 = "ipv6"

// Versions lists the IP versions that the program forwards, by their header names.
func (a addresses) Versions() []string {
	if a.In(ipv6) {
		return []string{"ipv4", ipv6}
	}
	return []string{"ipv4"}
}

// RouteSize returns the number of prefixes in a routing table. On Tofino, 1024 IPv6
// prefixes need as many TCAM blocks as 3072 IPv4 prefixes.
func (a addresses) RouteSize(version string) int {
	if version == ipv6 && !a.arch.software {
		return 1024
	}
	return 4096
}

// LeafTable returns the name of the table that maps an address to a leaf.
func (a addresses) LeafTable(version string) string {
	if version == ipv6 {
		return "leaf_of_ipv6"
	}
	return "leaf_of"
}

// DSCP returns the expression for the packet's DSCP.
func (a addresses) DSCP() string { return a.of46("hdr.ipv4.dscp", "dscp") }

// addIPv6 adds the part for IPv6. It refuses users' blocks whose text assumes IPv4
// headers.
func (c *composition) addIPv6() error {
	for _, b := range c.blocks {
		if b.outside && strings.Contains(b.file.body(), "hdr.ipv4.") {
			return fmt.Errorf("ipv6: %v reads hdr.ipv4, which IPv6 packets do not have: use .Source, .Destination, .Protocol and .IsIP instead (%s)", b, b.file.name)
		}
	}
	added := c.arch.lookup(part, ipv6)
	kept := c.blocks
	c.blocks = nil
	for _, b := range c.arch.blocks { // keep the blocks in the order in which they contribute
		if b == added || slices.Contains(kept, b) {
			c.blocks = append(c.blocks, b)
		}
	}
	return nil
}

// of46 returns ipv4, or in programs for both IP versions, both.
func (c *composition) of46(ipv4, both string) string {
	if c.In(ipv6) {
		return both
	}
	return ipv4
}

// Source returns the expression for the packet's source address.
func (c *composition) Source() string { return c.of46("hdr.ipv4.src", "meta.src") }

// Destination returns the expression for the packet's destination address.
func (c *composition) Destination() string { return c.of46("hdr.ipv4.dst", "meta.dst") }

// Protocol returns the expression for the protocol number.
func (c *composition) Protocol() string { return c.of46("hdr.ipv4.protocol", "meta.protocol") }

// IsIP returns the condition that the packet is IP.
func (c *composition) IsIP() string {
	return c.of46("hdr.ipv4.isValid()", "(hdr.ipv4.isValid() || hdr.ipv6.isValid())")
}
