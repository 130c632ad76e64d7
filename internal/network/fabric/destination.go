package fabric

import "slices"

import "net/netip"

// A Destination is a prefix all of whose hosts are at one leaf.
type Destination struct {
	Prefix netip.Prefix
	Leaf   int // Switch.Leaf
}

// Destinations lists where packets can go to, by address, whether or not there
// is a way: the subnets, or where those are spread the hosts' addresses. No two
// overlap.
func (t *Topology) Destinations() []Destination { return slices.Clone(t.destinations) }
