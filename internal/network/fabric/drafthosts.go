package fabric

import "net/netip"

// hostData sets the switch and the addresses of each host.
func (f *finisher) hostData() {
	for i := range f.t.Hosts {
		h := &f.t.Hosts[i]
		l := f.t.Links[f.links[len(f.switches)+i][0]]
		end := l.A
		if end.Node == h.Name {
			end = l.B
		}
		h.Switch, h.Port = end.Node, end.Port
	}
	if f.assignIPs(); len(f.found) == 0 {
		used := map[MAC]string{}
		for i := range f.t.Links {
			for _, e := range []End{f.t.Links[i].A, f.t.Links[i].B} {
				if !f.isHost(e.Node) {
					used[portMAC(f.nodes[e.Node], e.Port)] = e.String()
				}
			}
		}
		for i, h := range f.hosts {
			mac := hostMAC(f.t.Hosts[i].IP.Addr())
			if h.mac != nil {
				mac = *h.mac
			}
			if other, ok := used[mac]; ok {
				f.errorf(h.line, "host %s has the MAC %s of %s: want another", h.name, mac, other)
			}
			if !mac.unicast() {
				f.errorf(h.line, "host %s: %s is not the MAC of one interface: want one such as %s", h.name, mac, hostMAC(f.t.Hosts[i].IP.Addr()))
			}
			used[mac] = h.name
			f.t.Hosts[i].MAC = mac
		}
	}
}

func (f *finisher) assignIPs() {
	used := map[netip.Addr]string{}
	for _, h := range f.hosts {
		if !h.ip.IsValid() {
			continue
		}
		if other, ok := used[h.ip.Addr()]; ok {
			f.errorf(h.line, "host %s has the address %s of host %s: want another", h.name, h.ip.Addr(), other)
		}
		used[h.ip.Addr()] = h.name
	}
	if len(used) == len(f.hosts) {
		return
	}
	leaf, most := f.countLeaves()
	p, err := planFor(len(leaf), most+len(used)) // given addresses may be in the range
	if err != nil {
		f.errorf(0, "%v", err)
		return
	}
	next := map[string]int{}
	for i := range f.t.Hosts {
		h := &f.t.Hosts[i]
		next[h.Switch]++
		if h.IP.IsValid() {
			continue
		}
		h.IP = p.host(leaf[h.Switch], next[h.Switch])
		for used[h.IP.Addr()] != "" {
			next[h.Switch]++
			h.IP = p.host(leaf[h.Switch], next[h.Switch])
		}
		used[h.IP.Addr()] = h.Name
	}
}

// countLeaves numbers the switches with hosts from 1 in their order, like
// Topology, and returns the largest number of hosts at a switch.
func (f *finisher) countLeaves() (number map[string]int, most int) {
	hosts := map[string]int{}
	for _, h := range f.t.Hosts {
		hosts[h.Switch]++
	}
	number = map[string]int{}
	for _, s := range f.switches {
		if n := hosts[s.name]; n > 0 {
			number[s.name] = len(number) + 1
			most = max(most, n)
		}
	}
	return number, most
}
