package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/native"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// A simBench is a network to measure: leaves with a scheme, four spines, and hosts, or
// a fat tree. Every host sends to a host below another leaf and receives from one.
type simBench struct {
	engine, scheme string
	leaves, hosts  int
	k              int // of the fat tree; 0: leaves and spines
}

var simBenches = []simBench{
	{engine: "p4", scheme: "ecmp", leaves: 4, hosts: 32},
	{engine: "p4", scheme: "qall-poly3", leaves: 4, hosts: 32},
	{engine: "p4", scheme: "ecmp", leaves: 8, hosts: 128},
	{engine: "p4", scheme: "ecmp", leaves: 32, hosts: 1024},
	{engine: "p4", scheme: "ecmp", leaves: 128, hosts: 1024, k: 16},
	{engine: "p4", scheme: "drill+rlb", leaves: 128, hosts: 1024, k: 16},
	{engine: "native", scheme: "ecmp", leaves: 4, hosts: 32},
	{engine: "native", scheme: "qall-poly3", leaves: 4, hosts: 32},
	{engine: "native", scheme: "ecmp", leaves: 8, hosts: 128},
	{engine: "native", scheme: "ecmp", leaves: 32, hosts: 1024},
	{engine: "native", scheme: "ecmp", leaves: 128, hosts: 1024, k: 16},
}

// benchHops is the number of packet-hops in one run. A packet-hop is the path
// of a packet through one switch.
const benchHops = 200_000

// Simulate measures the simulator on one core, with generated programs in every
// switch, deployed like to real ones, and with native models of schemes.
func Simulate(ctx context.Context, runs int) ([]Measurement, error) {
	var list []Measurement
	for _, b := range simBenches {
		m, err := b.run(ctx, runs)
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", b.name(), err)
		}
		list = append(list, m)
	}
	for _, b := range []simBench{
		{engine: "p4", scheme: "ecmp", leaves: 8, hosts: 128},
		{engine: "native", scheme: "ecmp", leaves: 8, hosts: 128},
	} {
		m, err := b.gain(ctx, runs)
		if err != nil {
			return nil, fmt.Errorf("measuring %s on two cores: %w", b.name(), err)
		}
		list = append(list, m)
	}
	for _, scheme := range []string{"ecmp", "qall-poly3"} {
		m, err := benchSimMemory(ctx, simBench{engine: "p4", scheme: scheme, leaves: 4, hosts: 32})
		if err != nil {
			return nil, fmt.Errorf("measuring the memory of packets: %w", err)
		}
		list = append(list, m)
	}
	return list, nil
}

func (b simBench) name() string {
	name := fmt.Sprintf("sim.%s.%s.%d", b.engine, b.scheme, b.hosts)
	if b.k > 0 {
		name += ".fat-tree"
	}
	return name
}

// shape describes the topology.
func (b simBench) shape() string {
	if b.k > 0 {
		return fmt.Sprintf("a fat tree with k = %d", b.k)
	}
	return fmt.Sprintf("%d leaves, 4 spines", b.leaves)
}

// run returns the median rate. All runs continue the same simulation.
func (b simBench) run(ctx context.Context, runs int) (Measurement, error) {
	n, closing, err := b.busy(ctx, 0)
	if err != nil {
		return Measurement{}, err
	}
	defer closing()
	spent, err := repeat(ctx, runs, 2*time.Second, threadTime, func() error { return hop(n, time.Microsecond) })
	if err != nil {
		return Measurement{}, err
	}
	return Measurement{b.name(), benchHops / median(spent).Seconds() / 1e6, "Mhop/s", fmt.Sprintf(
		"%s, a DCTCP flow from each of %d hosts at 10 Gbps, %s, CPU time of one core, median of %d", b.shape(), b.hosts, pages(n), len(spent))}, nil
}

// pages describes the memory of a network.
func pages(n *sim.Network) string {
	if size, err := n.HugePages(); err != nil {
		return "no huge pages (" + err.Error() + ")"
	} else {
		return fmt.Sprintf("%d MiB in huge pages", size>>20)
	}
}

// hop simulates benchHops packet-hops. It counts them after each interval.
func hop(n *sim.Network, interval time.Duration) error {
	end := n.Hops() + benchHops
	n.Every(interval, func(time.Duration) bool {
		if n.Hops() >= end {
			n.Stop()
		}
		return n.Hops() < end
	})
	return n.Run(sim.Forever)
}

// busy creates the network and starts a flow from each host.
func (b simBench) busy(ctx context.Context, cores int) (n *sim.Network, closing func(), err error) {
	if n, closing, err = b.network(ctx, 256, cores); err != nil {
		return nil, nil, err
	}
	if err = b.send(n, sim.FlowSpec{Transport: sim.DCTCP}); err == nil {
		err = n.Run(2 * time.Millisecond) // warm-up
	}
	if err != nil {
		closing()
		return nil, nil, err
	}
	runtime.GC()
	return n, closing, nil
}

// gain measures how much faster a run is on two cores. Runs on one core and on two
// alternate, and all of a kind continue the same simulation.
func (b simBench) gain(ctx context.Context, runs int) (Measurement, error) {
	var networks [2]*sim.Network
	for i := range networks {
		n, closing, err := b.busy(ctx, i+1)
		if err != nil {
			return Measurement{}, err
		}
		defer closing()
		networks[i] = n
	}
	var ratios []float64
	for len(ratios) < runs && ctx.Err() == nil {
		var spent [2]time.Duration
		for i, n := range networks {
			began := time.Now()
			if err := hop(n, 20*time.Microsecond); err != nil {
				return Measurement{}, err
			}
			spent[i] = time.Since(began)
		}
		ratios = append(ratios, spent[0].Seconds()/spent[1].Seconds())
	}
	if err := ctx.Err(); err != nil {
		return Measurement{}, err
	}
	slices.Sort(ratios)
	return Measurement{b.name() + ".two-cores", ratios[len(ratios)/2], "times", fmt.Sprintf(
		"speed on two of %d cores as a multiple of the speed on one: %s, a DCTCP flow from each of %d hosts at 10 Gbps, elapsed time, median of %d",
		runtime.GOMAXPROCS(0), b.shape(), b.hosts, len(ratios))}, nil
}

// network creates the network with queues of the given size and deploys the
// scheme. With cores, ties are decided by place.
func (b simBench) network(ctx context.Context, queue, cores int) (n *sim.Network, closing func(), err error) {
	topo, err := b.topology(queue)
	if err != nil {
		return nil, nil, err
	}
	const threshold = 65 * 1514 // K of DCTCP
	o := sim.Options{Seed: 1, ECN: sim.ECN{Min: threshold, Max: threshold}, Cores: cores}
	if cores > 0 {
		o.Ties = sim.ByPlace
	}
	if n, err = sim.New(topo, o); err != nil {
		return nil, nil, err
	}
	uplinks := 4
	if b.k > 0 {
		uplinks = b.k / 2
	}
	plan, err := planOf(b.scheme, codegen.Params{Ports: uplinks}, topo)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range plan.Switches {
		for _, v := range s.Pipeline.Manifest.VirtualPorts {
			n.Switch(s.Name).AddVirtual(v.Port)
		}
	}
	if b.engine == "native" {
		return n, func() {}, loadSimModels(n, plan)
	}
	closing, err = loadSimPrograms(ctx, n, plan)
	return n, closing, err
}

// topology makes the network's topology with queues of the given size. Links between
// switches carry the traffic of all hosts.
func (b simBench) topology(queue int) (*fabric.Topology, error) {
	links := fabric.Links{
		HostRate: 10 * fabric.Gbps, Rate: 10 * fabric.Gbps,
		HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: queue,
	}
	if b.k > 0 {
		return fabric.FatTree{K: b.k, Links: links}.Make()
	}
	below := b.hosts / b.leaves
	links.Rate = fabric.Rate(below) * 5 / 2 * fabric.Gbps
	return fabric.LeafSpine{Leaves: b.leaves, Spines: 4, Hosts: below, Links: links}.Make()
}

// loadSimPrograms deploys over P4Runtime within this process.
func loadSimPrograms(ctx context.Context, n *sim.Network, plan *plan.Plan) (closing func(), err error) {
	target := embedded.New(embedded.Options{Memory: true, Still: true, Seed: 1})
	c, err := controller.New(ctx, plan, target, controller.DeployOptions{})
	if err != nil {
		return nil, errors.Join(err, target.Close())
	}
	closing = func() {
		c.Close()
		target.Close()
	}
	report, err := c.Deploy(ctx)
	if err == nil && !report.Verified() {
		err = errors.New("some switches do not hold the plan")
	}
	if err != nil {
		closing()
		return nil, err
	}
	for _, s := range plan.Switches {
		n.Switch(s.Name).Load(target.Switch(s.Name))
	}
	return closing, nil
}

// loadSimModels gives the switches native models of their programs.
func loadSimModels(n *sim.Network, plan *plan.Plan) error {
	poly := func(degree int, tau int64) *fitting.Poly {
		if p, ok := fitting.Paper(degree, false); ok {
			p = p.WithTau(tau)
			return &p
		}
		return nil
	}
	for _, s := range plan.Switches {
		m, err := native.ModelOf(&s.Pipeline.Manifest, poly)
		if err != nil {
			return err
		}
		if err := n.Switch(s.Name).LoadModel(m, native.TablesOf(s)); err != nil {
			return err
		}
	}
	return nil
}

// send starts a flow from each host to the host with the same number below
// another leaf.
func (b simBench) send(n *sim.Network, spec sim.FlowSpec) error {
	below := b.hosts / b.leaves
	for i := range b.hosts {
		to := (i + below*(1+i%(b.leaves-1))) % b.hosts
		spec.From, spec.To = n.Hosts()[i].Name, n.Hosts()[to].Name
		if _, err := n.StartFlow(spec); err != nil {
			return err
		}
	}
	return nil
}

// benchSimMemory measures the memory of a packet queued in a switch: all hosts
// send to one.
func benchSimMemory(ctx context.Context, b simBench) (Measurement, error) {
	n, closing, err := b.network(ctx, 1<<20, 0)
	if err != nil {
		return Measurement{}, err
	}
	defer closing()
	for _, h := range n.Hosts()[1:] {
		if _, err := n.StartFlow(sim.FlowSpec{From: h.Name, To: n.Hosts()[0].Name, Rate: int64(10 * fabric.Gbps)}); err != nil {
			return Measurement{}, err
		}
	}
	heap := func(until time.Duration) (int64, error) {
		err := n.Run(until)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), err
	}
	before, err := heap(100 * time.Microsecond)
	if err != nil {
		return Measurement{}, err
	}
	packets := n.InFlight().Packets
	after, err := heap(2 * time.Millisecond)
	if err != nil {
		return Measurement{}, err
	}
	packets = n.InFlight().Packets - packets
	return Measurement{"sim.packet." + b.scheme, float64(after-before) / float64(packets), "B",
		fmt.Sprintf("heap per packet for %d packets queued in switches with programs", packets)}, nil
}
