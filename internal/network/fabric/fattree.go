package fabric

import (
	"cmp"
	"fmt"
	"net/netip"
)

// A FatTree generates a network of three tiers from switches with K ports. It
// has K pods with K/2 top of rack switches and K/2 aggregation switches each,
// (K/2)² core switches and K³/4 hosts. Their names are t1, a1, c1, h1 and so
// on, numbered pod by pod. The address of a host is 10.pod.tor.host, with pods
// and the switches of a pod numbered from 0.
type FatTree struct {
	Name, About string
	K           int // even, 2 to 254; zero: 4
	Hosts       int // hosts per top of rack switch; zero: K/2
	Links
	Buffer Size // size of each switch's buffer
}

// Make generates the network.
func (o FatTree) Make() (*Topology, error) {
	d, err := o.draft()
	if err != nil {
		return nil, err
	}
	return d.finish("")
}

func (o FatTree) draft() (*draft, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	d, half := &draft{name: o.Name, about: o.About}, o.K/2
	tier := func(prefix string, role Role, n int) []draftSwitch {
		from := len(d.switches)
		for i := range n {
			d.switches = append(d.switches, draftSwitch{name: fmt.Sprint(prefix, i+1), role: role, buffer: o.Buffer})
		}
		return d.switches[from:len(d.switches):len(d.switches)]
	}
	tors, aggs, cores := tier("t", roleToR, o.K*half), tier("a", roleAgg, o.K*half), tier("c", roleCore, half*half)
	for i, tor := range tors {
		d.addHosts(tor.name, o.Hosts, &o.Links)
		for k := range o.Hosts {
			ip := netip.AddrFrom4([4]byte{10, byte(i / half), byte(i % half), byte(k + 1)})
			d.hosts[len(d.hosts)-o.Hosts+k].ip = netip.PrefixFrom(ip, 24)
		}
	}
	for i, tor := range tors {
		for _, agg := range aggs[i/half*half:][:half] {
			d.links = append(d.links, o.between(tor.name, agg.name))
		}
	}
	// The i-th aggregation switch of each pod is connected to the i-th group of
	// core switches, so pod p is at port p of each core switch.
	for i, agg := range aggs {
		for _, core := range cores[i%half*half:][:half] {
			d.links = append(d.links, o.between(agg.name, core.name))
		}
	}
	return d, nil
}

// complete sets defaults for zero values and checks the others.
func (o *FatTree) complete() error {
	o.K = cmp.Or(o.K, 4)
	if o.K < 2 || o.K > 254 || o.K%2 != 0 {
		return fmt.Errorf("a fat-tree of %d-port switches: want an even number from 2 to 254", o.K)
	}
	o.Hosts = cmp.Or(o.Hosts, o.K/2)
	if o.Hosts < 0 || o.Hosts > 254 {
		return fmt.Errorf("%d hosts at a top of rack: want 1 to 254", o.Hosts)
	}
	half := o.K / 2
	if n := o.K*o.K + half*half + o.K*half*o.Hosts; n > maxNodes {
		return fmt.Errorf("a fat-tree of %d-port switches with %d hosts at a top of rack has %d nodes: want at most %d", o.K, o.Hosts, n, maxNodes)
	}
	if o.Name == "" {
		o.Name = fmt.Sprint("fat-tree-", o.K)
	}
	return o.Links.complete()
}
