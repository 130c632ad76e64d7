package fabric

import "slices"

// Renumber returns the topology with other port numbers of the switches. number
// maps old to new port numbers; it must be injective. The result has no names of ports.
func (t *Topology) Renumber(number func(port int) int) *Topology {
	u := t.clone()
	u.Switches, u.Hosts, u.Links = slices.Clone(t.Switches), slices.Clone(t.Hosts), slices.Clone(t.Links)
	for i := range u.Switches {
		u.Switches[i].Front = nil
	}
	for i := range u.Hosts {
		u.Hosts[i].Port = number(u.Hosts[i].Port)
	}
	for i := range u.Links {
		for _, e := range []*End{&u.Links[i].A, &u.Links[i].B} {
			if _, ok := t.switchIndex(e.Node); ok {
				e.Port = number(e.Port)
			}
		}
	}
	u.index()
	return u
}
