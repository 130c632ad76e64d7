package netspace

// Known is what a host knows of others when it begins.
type Known int

const (
	// KnowsSwitch: the MAC of its switch, for every address that it can send to.
	// Nobody need answer ARP.
	KnowsSwitch Known = iota
	// KnowsHosts: the MACs of the hosts of its own subnet, and its switch for
	// what is beyond.
	KnowsHosts
	// KnowsNobody: it asks by ARP, and has no way beyond its subnet.
	KnowsNobody
	// KnowsAll: the MACs of all hosts, whatever their subnet, as if they were on one
	// link: switches forward by them.
	KnowsAll
)

// In is what hosts know in a network: where switches forward by the MACs of hosts, that
// of their switch is of no use to them.
func (k Known) In(byMAC bool) Known {
	if k == KnowsSwitch && byMAC {
		return KnowsAll
	}
	return k
}
