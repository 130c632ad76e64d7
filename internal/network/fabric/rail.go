package fabric

import (
	"cmp"
	"fmt"
	"slices"
)

// A Rail generates a rail-optimised network: NIC i of each server is a host at leaf
// i. Each plane is a separate network with one leaf for each rail, and spines. A
// host has a port in each plane. The hosts of a server are consecutive.
type Rail struct {
	Name, About    string
	Rails, Servers int // zero: 2
	Spines         int // spines of each plane; zero: 2
	Planes         int // zero: 1
	Links
	Buffer Size // size of each switch's buffer
}

// maxPlanes is the largest number of ports of a host.
const maxPlanes = 16

// Make generates the network.
func (o Rail) Make() (*Topology, error) {
	for _, n := range []*int{&o.Rails, &o.Servers, &o.Spines} {
		*n = cmp.Or(*n, 2)
	}
	o.Planes = cmp.Or(o.Planes, 1)
	o.Name = cmp.Or(o.Name, "rail")
	if err := o.complete(); err != nil {
		return nil, err
	}
	d := &draft{name: o.Name, about: o.About}
	leaf := func(plane, rail int) string { return fmt.Sprint("l", plane*o.Rails+rail+1) }
	for i := range o.Planes * o.Rails {
		d.switches = append(d.switches, draftSwitch{name: fmt.Sprint("l", i+1), role: Leaf, buffer: o.Buffer})
	}
	for i := range o.Planes * o.Spines {
		d.switches = append(d.switches, draftSwitch{name: fmt.Sprint("s", i+1), role: Spine, buffer: o.Buffer})
	}
	for range o.Servers {
		for rail := range o.Rails {
			d.addHosts(leaf(0, rail), 1, &o.Links)
		}
	}
	hosts := slices.Clone(d.hosts)
	for plane := 1; plane < o.Planes; plane++ {
		for i, h := range hosts {
			d.addPort(h.name, plane+1, leaf(plane, i%o.Rails), &o.Links)
		}
	}
	for plane := range o.Planes {
		for rail := range o.Rails {
			for spine := range o.Spines {
				d.links = append(d.links, o.between(leaf(plane, rail), fmt.Sprint("s", plane*o.Spines+spine+1)))
			}
		}
	}
	return d.finish("")
}

func (o *Rail) complete() error {
	switch {
	case min(o.Rails, o.Servers, o.Spines, o.Planes) < 0:
		return fmt.Errorf("%d rails, %d servers, %d spines, %d planes: want numbers above 0", o.Rails, o.Servers, o.Spines, o.Planes)
	case o.Planes > maxPlanes:
		return fmt.Errorf("%d planes: want at most %d, the ports of a host", o.Planes, maxPlanes)
	case o.Rails > MaxPort:
		return fmt.Errorf("%d rails: a spine has at most %d ports", o.Rails, MaxPort)
	case o.Servers > MaxPort || o.Spines > MaxPort || o.Servers+o.Spines > MaxPort:
		return fmt.Errorf("%d servers and %d spines at a leaf: want at most %d ports", o.Servers, o.Spines, MaxPort)
	}
	if n := o.Planes * (o.Rails + o.Spines + o.Rails*o.Servers); n > maxNodes {
		return fmt.Errorf("%d rails of %d servers with %d spines in %d planes have %d nodes: want at most %d", o.Rails, o.Servers, o.Spines, o.Planes, n, maxNodes)
	}
	return o.Links.complete()
}

// addPort connects an additional port of a host to a leaf.
func (d *draft) addPort(host string, number int, leaf string, links *Links) {
	name := fmt.Sprintf("%s.%d", host, number)
	d.hosts = append(d.hosts, draftHost{name: name, nic: host})
	d.links = append(d.links, links.toHost(name, leaf))
}

// nics checks hosts that are additional ports of other hosts.
func (f *finisher) nics() {
	f.sameNIC = map[int][]int{}
	first := map[string]bool{}
	for i, h := range f.hosts {
		if h.nic == "" {
			first[h.name] = true
			if i > 0 && f.hosts[i-1].nic != "" {
				f.errorf(h.line, "host %s is behind %s, a further port of %s: want hosts with nic last", h.name, f.hosts[i-1].name, f.hosts[i-1].nic)
			}
			continue
		}
		if !first[h.nic] {
			f.errorf(h.line, "host %s: nic: there is no host %s above, without nic", h.name, h.nic)
			continue
		}
		a, b := f.nodes[h.nic], f.nodes[h.name]
		f.sameNIC[a], f.sameNIC[b] = append(f.sameNIC[a], b), append(f.sameNIC[b], a)
	}
}

// NICs returns the number of hosts without additional ports. They come first in
// Hosts.
func (t *Topology) NICs() int {
	n := len(t.Hosts)
	for n > 0 && t.Hosts[n-1].NIC != "" {
		n--
	}
	return n
}

// HostPorts returns, for each host, the indices in Hosts of all its ports, the
// first port first.
func (t *Topology) HostPorts() [][]int {
	ports := make([][]int, t.NICs())
	at := map[string]int{}
	for i, h := range t.Hosts {
		nic := i
		if h.NIC != "" {
			nic = at[h.NIC]
		}
		at[h.Name] = nic
		ports[nic] = append(ports[nic], i)
	}
	return ports
}

// Plane returns the switches of a plane, counted from 1: the leaves that connect
// this port of hosts, and the spines that connect only these leaves.
func (t *Topology) Plane(plane int) ([]string, error) {
	only, most := map[string]bool{}, 1 // by leaf
	for _, ports := range t.HostPorts() {
		most = max(most, len(ports))
		for k, h := range ports {
			leaf := t.Hosts[h].Switch
			before, seen := only[leaf]
			only[leaf] = (before || !seen) && k+1 == plane
		}
	}
	if plane < 1 || plane > most {
		return nil, fmt.Errorf("plane %d: the hosts of %s have %d ports", plane, t.Name, most)
	}
	if most == 1 {
		return nil, fmt.Errorf("plane %d: the hosts of %s have one port, want a topology with planes or dual-tor", plane, t.Name)
	}
	for grown := true; grown; {
		grown = false
		for _, s := range t.Switches {
			if _, ok := only[s.Name]; ok {
				continue
			}
			below, all := 0, true
			for _, p := range t.Ports(s.Name) {
				if p.PeerTier > 0 && p.PeerTier < s.Role.Tier() {
					below++
					all = all && only[p.Peer]
				}
			}
			if below > 0 && all {
				only[s.Name], grown = true, true
			}
		}
	}
	var names []string
	for _, s := range t.Switches {
		if only[s.Name] {
			names = append(names, s.Name)
		}
	}
	return names, nil
}
