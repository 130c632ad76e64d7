package netspace

// Known selects the static neighbour entries of a host.
type Known int

const (
	// KnowsSwitch: the MAC address of its switch for every address, so that no ARP
	// is needed.
	KnowsSwitch Known = iota
	// KnowsHosts: the MAC addresses of the hosts in its subnet, and its switch for
	// other addresses.
	KnowsHosts
	// KnowsNobody: the host uses ARP, and has no route beyond its subnet.
	KnowsNobody
	// KnowsAll: the MACs of all hosts, whatever their subnet, as if they were on one
	// link: switches forward by them.
	KnowsAll
)

// In returns what hosts know in a network. If switches forward by the hosts' MAC addresses, hosts
// must not send to the switch's MAC address.
func (k Known) In(byMAC bool) Known {
	if k == KnowsSwitch && byMAC {
		return KnowsAll
	}
	return k
}
