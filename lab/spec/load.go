package spec

import (
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/fabric"
)

// rate is the number of arrivals per second: ρ·base / (8·E(F)).
func (d *flowMaker) rate(load float64) (float64, error) {
	if d.Rate > 0 {
		return d.Rate, nil
	}
	if d.Load > 0 {
		load = d.Load
	} else if d.Share > 0 {
		load *= d.Share
	}
	base, err := d.capacity()
	if err != nil {
		return 0, err
	}
	r := load * base / (8 * d.Mean())
	if !(r > 0) {
		return 0, fmt.Errorf("load %g of %g bit/s: there would be no flow", load, base)
	}
	return r, nil
}

// capacity is what a load of 1 means in bit/s, all flows counted.
func (d *flowMaker) capacity() (float64, error) {
	switch d.LoadOf {
	case OfHosts, "":
		return d.hostRate(), nil
	case OfFabric:
		return d.fabricRate() / d.crossing() / max(1, d.Grown), nil
	}
	r, err := fabric.ParseRate(d.LoadOf)
	return float64(r), err
}

// hostRate is what the hosts that send could send.
func (d *flowMaker) hostRate() float64 {
	sum := 0.0
	for _, h := range uniq(d.from) {
		sum += float64(hostRate(d.t, h))
	}
	return sum
}

// fabricRate is what the links upwards carry of those leaves that send.
func (d *flowMaker) fabricRate() float64 {
	sum := 0.0
	for _, name := range d.SendingLeaves() {
		for _, p := range d.t.Ports(name) {
			if p.PeerTier > 0 && !p.Down {
				sum += float64(p.Rate)
			}
		}
	}
	return sum
}

func (d *flowMaker) SendingLeaves() []string {
	var names []string
	for _, h := range d.from {
		names = append(names, d.t.Hosts[h].Switch)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// crossing is the share of the flows that leave their leaf.
func (d *flowMaker) crossing() float64 {
	if d.Pattern == Permutation || d.Pattern == Incast {
		return 1
	}
	cross, all := 0, 0
	count := func(a, b int) {
		if a != b {
			all++
			if d.leaf[a] != d.leaf[b] {
				cross++
			}
		}
	}
	for _, p := range d.pairs {
		count(p[0], p[1])
	}
	if d.Pattern != Pairs {
		for _, a := range d.from {
			for _, b := range d.to {
				count(a, b)
			}
		}
	}
	if cross == 0 {
		return 1
	}
	return float64(cross) / float64(all)
}

// Expected is how many flows a traffic makes, and their mean size.
func (tr *Traffic) Expected(t *fabric.Topology, load float64, length time.Duration) (flows, mean float64, err error) {
	if tr.Pattern == List {
		for _, f := range tr.flows {
			mean += float64(f.Bytes) / float64(len(tr.flows))
		}
		return float64(len(tr.flows)), mean, nil
	}
	d, err := tr.Maker(t)
	if err != nil {
		return 0, 0, err
	}
	mean = d.Mean()
	switch {
	case tr.Pattern == Pairs && len(tr.At) > 0:
		return float64(len(tr.At) * len(d.pairs)), mean, nil
	case tr.Pattern == Burst:
		return float64(len(tr.At)*len(d.from)) * float64(max(tr.Degree, 1)), mean, nil
	}
	rate, err := d.rate(load)
	if err != nil {
		return 0, 0, err
	}
	stop := length
	if s := time.Duration(tr.Stop); s > 0 {
		stop = min(stop, s)
	}
	flows = rate * max(0, stop-time.Duration(tr.Start)).Seconds()
	if tr.Flows > 0 {
		flows = float64(tr.Flows)
	}
	if tr.Pattern == Incast { // a request's size is that of all answers
		answers := float64(min(max(tr.Degree, 1), len(d.from)))
		return flows * answers, mean / answers, nil
	}
	return flows, mean, nil
}

// An Offer is what a run's flows ask for: how many there are, and the shares of
// what the hosts' links and the links upwards of the leaves could carry.
type Offer struct {
	Flows, Hosts, Fabric float64
}

// Offer is that of a case at a load; false where flows are given one by one.
func (c *Case) Offer(t *fabric.Topology, load float64) (Offer, bool) {
	var o Offer
	length := c.Length()
	for i := range c.Traffic {
		tr := &c.Traffic[i]
		if tr.Pattern == List || tr.Pattern == Burst || len(tr.At) > 0 || tr.background() {
			return o, false
		}
		flows, mean, err := tr.Expected(t, load, length)
		if err != nil {
			return o, false
		}
		d, err := tr.Maker(t)
		if err != nil {
			return o, false
		}
		o.Flows += flows
		bits := flows * mean * 8 / length.Seconds()
		o.Hosts += bits / d.hostRate()
		if rate := d.fabricRate(); rate > 0 {
			o.Fabric += bits * d.crossing() / rate
		}
	}
	return o, o.Flows > 0
}

// Maker makes flows of a traffic that no run has: for who asks what it would be.
func (tr *Traffic) Maker(t *fabric.Topology) (*flowMaker, error) {
	return newDraw(tr, t, NewRandom(1, 0))
}
