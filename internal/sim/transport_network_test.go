package sim

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// A dumbbell is two leaves with a spine between them: traffic from the first
// four hosts, or more, to the others shares one link.
type dumbbell struct {
	*Network
	hosts int
	flows []*Flow
}

const dumbbellRate = 10 * fabric.Gbps

// newDumbbell returns a dumbbell with an RTT of 100 µs.
func newDumbbell(t testing.TB, hosts int, o Options) *dumbbell {
	t.Helper()
	n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 1, Hosts: hosts, Buffer: 9e6, Links: fabric.Links{
		HostRate: dumbbellRate, Rate: dumbbellRate, HostDelay: 2 * time.Microsecond, Delay: 20 * time.Microsecond, Queue: 256,
	}}, model.Config{Granularity: "flow", Signal: "none", Choice: "hash"}, o)
	return &dumbbell{Network: n, hosts: hosts}
}

// leftToPlainRun skips a long simulation in the short form, which is for the race
// detector.
func leftToPlainRun(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a simulation in one part has one goroutine: the race detector has nothing to see")
	}
}

// newNetwork returns a network in which all switches run a model that only needs routes.
func newNetwork(t testing.TB, shape fabric.LeafSpine, scheme model.Config, o Options) *Network {
	t.Helper()
	topo, err := shape.Make()
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(topo, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range n.Switches() {
		scheme.Edge, scheme.Paths = s.Name[0] == 'l', 2
		routes, _ := topo.Routes().Table(s.Name, fabric.ByLeaf)
		for _, g := range routes.Groups {
			scheme.Paths = max(scheme.Paths, len(g.Hops))
		}
		if err := s.LoadModel(Model{Config: scheme}, routeEntries(routes)); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// routeEntries are the routes of a switch as a controller would install them.
func routeEntries(table fabric.Table) Tables {
	var list Tables
	for _, r := range table.Routes {
		ip := r.Prefix.Addr().As4()
		e := Entry{
			Table: "ipv4_route", Action: "set_port", Args: map[string]uint64{"port": uint64(r.Hop.Port)},
			Key: []Key{{Value: uint64(binary.BigEndian.Uint32(ip[:])), Bits: r.Prefix.Bits()}},
		}
		if r.Group != 0 {
			e.Action, e.Args = "set_group", map[string]uint64{"gid": uint64(r.Group)}
		}
		list.Entries = append(list.Entries, e)
	}
	for _, g := range table.Groups {
		for slot, hop := range g.Hops {
			list.Entries = append(list.Entries, Entry{
				Table: "member", Key: []Key{{Value: uint64(g.ID)}, {Value: uint64(slot)}},
				Args: map[string]uint64{"port": uint64(hop.Port)},
			})
		}
	}
	return list
}

// start starts endless flows of the first senders.
func (d *dumbbell) start(t testing.TB, senders int, s FlowSpec) {
	t.Helper()
	for i := range senders {
		s.From, s.To = fmt.Sprint("h", i+1), fmt.Sprint("h", d.hosts+i+1)
		f, err := d.StartFlow(s)
		if err != nil {
			t.Fatal(err)
		}
		d.flows = append(d.flows, f)
	}
}

// bottleneck is the port that the flows share.
func (d *dumbbell) bottleneck(t testing.TB) *Port {
	t.Helper()
	for _, p := range d.Switch("l1").Ports() {
		if peer, _ := p.Peer(); peer == "s1" {
			return p
		}
	}
	t.Fatal("no port to s1")
	return nil
}

func (d *dumbbell) run(t testing.TB, until time.Duration) {
	t.Helper()
	if err := d.Run(until); err != nil {
		t.Fatal(err)
	}
}

// received runs until a time and returns the bytes of each flow that arrived
// meanwhile.
func (d *dumbbell) received(t testing.TB, until time.Duration) []float64 {
	t.Helper()
	var list []float64
	for _, f := range d.flows {
		list = append(list, -float64(f.Received))
	}
	d.run(t, until)
	for i, f := range d.flows {
		list[i] += float64(f.Received)
	}
	return list
}

// jain is the fairness index of shares.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// ecnAt returns a marking threshold in packets.
func ecnAt(packets int) ECN {
	k := fabric.Size(packets * 1514)
	return ECN{Min: k, Max: k}
}

// transports lists the transports with congestion control.
var transports = []struct {
	transport Transport
	options   Options
}{
	{TCP, Options{}},
	{DCTCP, Options{ECN: ecnAt(65)}},
	{DCQCN, Options{ECN: ECN{Min: 100e3, Max: 400e3, P: 0.2}, PFC: PFC{On: true, Pause: 256e3}}},
}

// TestUtilization has one flow, and two, fill the link and share it evenly.
func TestUtilization(t *testing.T) {
	leftToPlainRun(t)
	for _, c := range transports {
		for _, senders := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%v/%d", c.transport, senders), func(t *testing.T) {
				d := newDumbbell(t, 4, c.options)
				d.start(t, senders, FlowSpec{Transport: c.transport})
				d.run(t, 20*time.Millisecond)
				before := d.bottleneck(t).Counters().Bytes
				shares := d.received(t, 170*time.Millisecond)
				sent := d.bottleneck(t).Counters().Bytes - before
				used := float64(sent*8) / (float64(dumbbellRate) * 0.15)
				t.Logf("used %.4f, Jain %.4f, %.3v, queue %d", used, jain(shares), shares, d.bottleneck(t).Counters().MaxQueue)
				if used < 0.95 || used > 1.0001 {
					t.Errorf("%.1f %% of the link used", used*100)
				}
				if jain(shares) < 0.98 {
					t.Errorf("shares %v: Jain's index is %.3f", shares, jain(shares))
				}
			})
		}
	}
}

// TestTurns has the flows of a host take turns at its NIC, also flows that
// started later or have more to ask for.
func TestTurns(t *testing.T) {
	d := newDumbbell(t, 4, Options{})
	for i, window := range []int{400, 400, 2000, 8000} {
		d.At(time.Duration(i)*time.Millisecond, func() {
			f, err := d.StartFlow(FlowSpec{From: "h1", To: fmt.Sprint("h", 5+i), Transport: TCP, Tuning: &Tuning{Window: window}})
			if err != nil {
				t.Error(err)
			}
			d.flows = append(d.flows, f)
		})
	}
	d.run(t, 5*time.Millisecond)
	shares := d.received(t, 55*time.Millisecond)
	if jain(shares) < 0.9999 {
		t.Errorf("shares %v", shares)
	}
}

// TestDCTCPQueue has the queue hover at the threshold: never empty, seldom far
// above.
func TestDCTCPQueue(t *testing.T) {
	const k = 65
	d := newDumbbell(t, 4, Options{ECN: ecnAt(k)})
	d.start(t, 4, FlowSpec{Transport: DCTCP})
	d.run(t, 20*time.Millisecond)
	port, least, most, sum, n := d.bottleneck(t), 1<<30, 0, 0, 0
	d.Every(10*time.Microsecond, func(time.Duration) bool {
		q := port.QueuePackets()
		least, most, sum = min(least, q), max(most, q), sum+q
		n++
		return true
	})
	d.run(t, 120*time.Millisecond)
	mean := float64(sum) / float64(n)
	t.Logf("queue of %d to %d packets, %.1f on average", least, most, mean)
	if mean < 0.7*k || mean > 1.1*k || least == 0 || most > 2*k {
		t.Errorf("a queue of %d to %d packets, %.1f on average, with K = %d", least, most, mean, k)
	}
	if port.Counters().Dropped > 0 {
		t.Errorf("%d packets dropped", port.Counters().Dropped)
	}
}

// TestOnlyTheLostIsSentAgain overloads a short queue: where nothing is
// reordered, each packet that was dropped is sent again, and no other.
func TestOnlyTheLostIsSentAgain(t *testing.T) {
	for _, transport := range []Transport{TCP, DCTCP} {
		n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 1, Hosts: 8, Buffer: 9e6, Links: fabric.Links{
			HostRate: 10 * fabric.Gbps, Rate: 5 * fabric.Gbps, HostDelay: 2 * time.Microsecond, Delay: 20 * time.Microsecond, Queue: 32,
		}}, model.Config{Granularity: "flow", Signal: "none", Choice: "hash"}, Options{Seed: 1, ECN: ecnAt(20)})
		d := &dumbbell{Network: n, hosts: 8}
		d.start(t, 8, FlowSpec{Transport: transport, Bytes: 5e6})
		d.run(t, Forever)
		var sum FlowStats
		for _, f := range d.flows {
			sum.Retransmitted += f.Retransmitted
			sum.Duplicates += f.Duplicates
		}
		dropped := d.bottleneck(t).Counters().Dropped
		t.Logf("%v: %d dropped, %d sent again", transport, dropped, sum.Retransmitted)
		if dropped == 0 || sum.Retransmitted != dropped+sum.Duplicates || sum.Duplicates > 2 {
			t.Errorf("%v: %d dropped, %d sent again, %d copies arrived", transport, dropped, sum.Retransmitted, sum.Duplicates)
		}
	}
}

// TestNoAllocation: sending allocates nothing once the pools are full.
func TestNoAllocation(t *testing.T) {
	leftToPlainRun(t)
	for _, c := range transports {
		d := newDumbbell(t, 4, c.options)
		d.start(t, 4, FlowSpec{Transport: c.transport})
		d.run(t, 100*time.Millisecond)
		sent := d.flows[0].Sent
		allocs := testing.AllocsPerRun(5, func() { d.run(t, d.Now()+5*time.Millisecond) })
		if d.flows[0].Sent == sent {
			t.Errorf("%v: nothing sent", c.transport)
		}
		// The audit at the end of a run may allocate, packets may not.
		if allocs > 10 {
			t.Errorf("%v: %.0f allocations in 5 ms", c.transport, allocs)
		}
	}
}

// TestMG1PS compares flows that share a NIC with the theory of processor sharing: for any
// distribution of sizes, each flow takes on average 1/(1-ρ) times its time alone.
func TestMG1PS(t *testing.T) {
	leftToPlainRun(t)
	const load, rate, short, long, shorts = 0.6, 1e9, 20, 200, 0.9
	n := newNetwork(t, fabric.LeafSpine{Leaves: 2, Spines: 1, Hosts: 1, Links: fabric.Links{HostRate: rate, Rate: 10 * rate}},
		model.Config{Granularity: "flow", Signal: "none", Choice: "hash"}, Options{})
	random := stream(1, "arrivals")
	tuning := &Tuning{Window: 1000} // only the NIC limits a flow
	alone := func(segments float64) float64 { return segments * 1514 * 8 / rate * float64(time.Second) }
	transit := alone(1) + 2*alone(0.1) // of a packet, behind the NIC
	mean := shorts*short + (1-shorts)*long
	var sum, flows [2]float64
	for at := 0.0; at < 6*float64(time.Second); at += random.ExpFloat64() * alone(mean) / load {
		kind, segments := 0, int64(short)
		if random.Float64() >= shorts {
			kind, segments = 1, long
		}
		n.At(time.Duration(at), func() {
			_, err := n.StartFlow(FlowSpec{From: "h1", To: "h2", Bytes: segments * 1460, Transport: TCP, Tuning: tuning, Done: func(f *Flow) {
				sum[kind] += float64(f.Finished-f.Started) - transit
				flows[kind]++
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := n.Run(Forever); err != nil {
		t.Fatal(err)
	}
	total := (sum[0] + sum[1]) / (flows[0]*alone(short) + flows[1]*alone(long)) * (1 - load)
	t.Logf("%v flows; short ones take %.3f, long ones %.3f, all %.3f of what theory says", flows,
		sum[0]/flows[0]/alone(short)*(1-load), sum[1]/flows[1]/alone(long)*(1-load), total)
	if total < 0.97 || total > 1.03 {
		t.Errorf("flows take %.3f of what theory says", total)
	}
}
