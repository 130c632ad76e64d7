package fabric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Links are the properties of generated links, to hosts and between switches.
type Links struct {
	HostRate, Rate   Rate // zero: 10 Gbps, and like HostRate
	HostDelay, Delay time.Duration
	Queue            int // capacity in packets of a port between switches or to a host
}

func (l *Links) complete() error {
	l.HostRate = cmp.Or(l.HostRate, 10*Gbps)
	l.Rate = cmp.Or(l.Rate, l.HostRate)
	switch {
	case min(l.Rate, l.HostRate) < 0:
		return fmt.Errorf("rate %v: want more than 0", min(l.Rate, l.HostRate))
	case min(l.Delay, l.HostDelay) < 0 || max(l.Delay, l.HostDelay) > maxDelay:
		return fmt.Errorf("delays %v and %v: want 0 to %v", l.HostDelay, l.Delay, maxDelay)
	case l.Queue < 0:
		return fmt.Errorf("queue %d: want a number of packets, or 0 for the target's default", l.Queue)
	}
	return nil
}

// toHost returns a link to a host; between returns a link between switches.
func (l *Links) toHost(host, leaf string) draftLink {
	return draftLink{a: End{Node: host}, b: End{Node: leaf}, rate: l.HostRate, delay: l.HostDelay, queue: l.Queue}
}

func (l *Links) between(lower, upper string) draftLink {
	return draftLink{a: End{Node: lower}, b: End{Node: upper}, rate: l.Rate, delay: l.Delay, queue: l.Queue}
}

// A LeafSpine generates a network of two tiers in which each leaf is connected
// to each spine. Leaves are l1, l2 and so on, spines s1, hosts h1, numbered
// leaf by leaf or with Rails in turn. A leaf's first ports lead to its hosts.
type LeafSpine struct {
	Name, About    string
	Leaves, Spines int // zero: 2
	Parallel       int // links between a leaf and a spine; zero: 1
	Hosts          int // per leaf; zero: 2
	// Rails numbers hosts across leaves: leaf i is rail i, and the first Leaves hosts are
	// the NICs of the first server, one on each rail.
	Rails bool
	// DualToR connects each host to two leaves: hosts at l1 have a second port at l2, and
	// so on. Leaves is even.
	DualToR bool
	Links
	Buffer Size // size of each switch's buffer

	// Oversubscription is the ratio of the total host rate of a leaf to the
	// total rate of its links to spines. It determines Rate if Rate is zero.
	Oversubscription float64
}

// Make generates the network.
func (o LeafSpine) Make() (*Topology, error) {
	d, err := o.draft()
	if err != nil {
		return nil, err
	}
	return d.finish("")
}

func (o LeafSpine) draft() (*draft, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	d := &draft{name: o.Name, about: o.About}
	for i := range o.Leaves {
		d.switches = append(d.switches, draftSwitch{name: fmt.Sprint("l", i+1), role: Leaf, buffer: o.Buffer})
	}
	for i := range o.Spines {
		d.switches = append(d.switches, draftSwitch{name: fmt.Sprint("s", i+1), role: Spine, buffer: o.Buffer})
	}
	each, rounds := o.Hosts, 1
	if o.Rails {
		each, rounds = 1, o.Hosts
	}
	step := 1
	if o.DualToR {
		step = 2
	}
	for range rounds {
		for i := 0; i < o.Leaves; i += step {
			d.addHosts(d.switches[i].name, each, &o.Links)
		}
	}
	if o.DualToR {
		for i := range len(d.hosts) {
			first := slices.IndexFunc(d.switches, func(s draftSwitch) bool { return s.name == d.links[i].b.Node })
			d.addPort(d.hosts[i].name, 2, d.switches[first+1].name, &o.Links)
		}
	}
	for _, leaf := range d.switches[:o.Leaves] {
		for _, spine := range d.switches[o.Leaves:] {
			d.links = append(d.links, slices.Repeat([]draftLink{o.between(leaf.name, spine.name)}, o.Parallel)...)
		}
	}
	return d, nil
}

// addHosts adds n hosts to a leaf.
func (d *draft) addHosts(leaf string, n int, links *Links) {
	for range n {
		name := fmt.Sprint("h", len(d.hosts)+1)
		d.hosts = append(d.hosts, draftHost{name: name})
		d.links = append(d.links, links.toHost(name, leaf))
	}
}

// complete sets defaults for zero values and checks the others.
func (o *LeafSpine) complete() error {
	for _, n := range []*int{&o.Leaves, &o.Spines, &o.Hosts} {
		*n = cmp.Or(*n, 2)
	}
	o.Parallel = max(o.Parallel, 1)
	o.Name = cmp.Or(o.Name, "leaf-spine")
	derived := o.Rate == 0
	if err := o.Links.complete(); err != nil {
		return err
	}
	switch {
	case min(o.Leaves, o.Spines, o.Hosts) < 0:
		return fmt.Errorf("%d leaves, %d spines, %d hosts: want numbers above 0", o.Leaves, o.Spines, o.Hosts)
	case o.DualToR && o.Leaves%2 != 0:
		return fmt.Errorf("dual-tor with %d leaves: want an even number", o.Leaves)
	case o.Hosts+o.Spines*o.Parallel > MaxPort:
		return fmt.Errorf("%d hosts and %d×%d links to spines at a leaf: want at most %d ports", o.Hosts, o.Spines, o.Parallel, MaxPort)
	case o.Leaves*o.Parallel > MaxPort:
		return fmt.Errorf("%d×%d links to leaves at a spine: want at most %d ports", o.Leaves, o.Parallel, MaxPort)
	}
	return o.oversubscribe(derived)
}

// oversubscribe sets the rate from the oversubscription, or checks that both
// agree.
func (o *LeafSpine) oversubscribe(derived bool) error {
	if o.Oversubscription == 0 {
		return nil
	}
	if !(o.Oversubscription > 0) || math.IsInf(o.Oversubscription, 1) {
		return fmt.Errorf("oversubscription %g: want a number above 0", o.Oversubscription)
	}
	rate := float64(o.Hosts) * float64(o.HostRate) / float64(o.Spines*o.Parallel) / o.Oversubscription
	if rate < 1 || rate > math.MaxInt64/2 {
		return fmt.Errorf("oversubscription %g makes links of %g bit/s: want another", o.Oversubscription, rate)
	}
	if derived {
		o.Rate = Rate(math.Round(rate))
	} else if math.Abs(rate-float64(o.Rate)) > 1 {
		return fmt.Errorf("oversubscription %g requires links of %v, not %v: omit one of them", o.Oversubscription, Rate(math.Round(rate)), o.Rate)
	}
	return nil
}
