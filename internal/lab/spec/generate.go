package spec

import (
	"cmp"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Generate makes the flows of a run, sorted by start time. The same seed and load give the same
// flows for every scheme.
func Generate(t *fabric.Topology, list []Traffic, load float64, length time.Duration, seed uint64) ([]Flow, error) {
	all, _, err := ofTraffic(t, list, load, length, seed)
	return byStart(all), err
}

// ofTraffic makes the flows of a run, one traffic after the other, and returns the largest
// connection number.
func ofTraffic(t *fabric.Topology, list []Traffic, load float64, length time.Duration, seed uint64) ([]Flow, int32, error) {
	var all []Flow
	groups, connections := 0, int32(0)
	for i := range list {
		d, err := newDraw(&list[i], t, NewRandom(seed, uint64(i)+1))
		if err != nil {
			return nil, 0, err
		}
		d.base = groups
		flows, err := d.make(load, length)
		if err != nil {
			return nil, 0, err
		}
		first := len(all)
		if all == nil && d.Pattern == Collective {
			all = flows // a million flows need no copy
		} else {
			all = append(all, flows...)
		}
		most := connections
		var list *Instance
		if d.Pattern == List {
			list = new(Instance)
		}
		pairs := hostPairConnections{}
		for j := range all[first:] {
			f := &all[first+j]
			f.Class, f.Kind, f.Rate = d.Class, d.Kind, d.Speed
			f.Background = d.background()
			if err := f.settle(t); err != nil {
				return nil, 0, err
			}
			f.Instance = cmp.Or(f.Instance, list)
			pairs.connect(d.Traffic, f)
			groups = max(groups, f.Group)
			if f.Connection > 0 {
				f.Connection += connections
				most = max(most, f.Connection)
			}
			if f.Waits != nil {
				f.Waits = f.Waits.moved(func(i int32) int32 { return i + int32(first) })
			}
		}
		connections = most
	}
	return all, connections, nil
}

// A hostPairConnections maps each pair of hosts to the number of its connection,
// within one entry of traffic.
type hostPairConnections map[[2]int]int32

// connect assigns a flow to the connection of its hosts, if the traffic has connections.
// Collectives assign connections themselves.
func (c hostPairConnections) connect(tr *Traffic, f *Flow) {
	if tr.Pattern == Collective || tr.Connections == "" || tr.Connections == messageConnections || f.Compute || f.Connection > 0 {
		return
	}
	pair := [2]int{f.Src, f.Dst}
	if c[pair] == 0 {
		c[pair] = int32(len(c) + 1)
	}
	f.Connection, f.QueuePair = c[pair], tr.Connections == queuePair
}

// byStart sorts flows by start time, and adjusts the indices of predecessors.
func byStart(flows []Flow) []Flow {
	earlier := func(a, b Flow) int { return cmp.Compare(a.Start, b.Start) }
	if slices.IsSortedFunc(flows, earlier) {
		return flows
	}
	order := sequence(0, len(flows))
	slices.SortStableFunc(order, func(i, j int) int { return earlier(flows[i], flows[j]) })
	place := make([]int32, len(flows))
	for to, from := range order {
		place[from] = int32(to)
	}
	sorted := make([]Flow, len(flows))
	for to, from := range order {
		sorted[to] = flows[from]
		if w := flows[from].Waits; w != nil {
			sorted[to].Waits = w.moved(func(i int32) int32 { return place[i] })
		}
	}
	return sorted
}

// make makes the flows of one traffic.
func (d *flowMaker) make(load float64, length time.Duration) ([]Flow, error) {
	switch {
	case d.Pattern == List:
		return d.flows, nil
	case d.Pattern == Collective:
		return d.collective(), nil
	case d.Pattern == burst || d.Pattern == pairs && len(d.At) > 0:
		return d.timed(), nil
	}
	rate, err := d.rate(load)
	if err != nil {
		return nil, err
	}
	stop := length
	if s := time.Duration(d.Stop); s > 0 {
		stop = min(stop, s)
	}
	var flows []Flow
	at := float64(d.Start)
	for n := 0; d.Flows == 0 || n < d.Flows; n++ {
		at += d.rng.ExpFloat64() / rate * 1e9
		if d.Flows == 0 && at >= float64(stop) {
			break
		}
		flows = d.arrive(flows, time.Duration(at), n)
	}
	return flows, nil
}
