package netspace

// Known selects the static neighbour entries of a host.
type Known int

const (
	// KnowsSwitch: every address maps to the switch's MAC address, so no ARP is
	// needed.
	KnowsSwitch Known = iota
	// KnowsHosts: addresses in the host's subnet map to the hosts' MAC addresses,
	// other addresses to the switch's.
	KnowsHosts
	// KnowsNobody: the host uses ARP, and has no route beyond its subnet.
	KnowsNobody
	// KnowsAll: the MACs of all hosts, whatever their subnet, as if they were on
	// one link, because switches forward by them.
	KnowsAll
)

// In adapts Known to a network. If switches forward by the hosts' MAC addresses,
// hosts must not send to the switch's MAC address.
func (k Known) In(byMAC bool) Known {
	if k == KnowsSwitch && byMAC {
		return KnowsAll
	}
	return k
}
