package fabric

import "slices"

import "net/netip"

// A Destination is a prefix; all its hosts are at one leaf.
type Destination struct {
	Prefix netip.Prefix
	Leaf   int // Switch.Leaf
}

// Destinations returns the possible destinations of packets in order of their
// addresses, whether or not they are reachable: the subnets, or the addresses
// of the hosts in subnets that are spread over several leaves. They do not
// overlap.
func (t *Topology) Destinations() []Destination { return slices.Clone(t.destinations) }
