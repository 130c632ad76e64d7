package fabric

import "net/netip"

// A Destination is a prefix all of whose hosts are at one leaf.
type Destination struct {
	Prefix netip.Prefix
	Leaf   int // Switch.Leaf
}

// Destinations lists where packets can go to, by address, whether or not there
// is a way: the subnets, or where those are spread the hosts' addresses. No two
// overlap.
func (t *Topology) Destinations() []Destination {
	list := make([]Destination, len(t.destinations))
	for i, d := range t.destinations {
		list[i] = Destination{Prefix: d.prefix, Leaf: d.leaf + 1}
	}
	return list
}
