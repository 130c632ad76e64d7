package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/native"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4/p4test"
	"github.com/p4lb/p4lb/internal/scheme/model"
	"github.com/p4lb/p4lb/internal/sim"
)

// woven are the constants of ConWeave for links of 1 us.
var woven = model.ConWeave{Reply: 4_000, PathBusy: 16_000, Resume: 16_000, Inactive: 300_000, Wait: 200_000, Queues: 24}

// loadWoven returns a function that gives each switch ConWeave, for a plan of ECMP.
func loadWoven(c model.ConWeave) func(testing.TB, *sim.Network, *plan.Plan) {
	return func(t testing.TB, n *sim.Network, p *plan.Plan) {
		t.Helper()
		for _, s := range p.Switches {
			m, err := native.ModelOf(&s.Pipeline.Manifest, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.Extend, m.OverlayLen = sim.ConWeave(c), 4
			if err := n.Switch(s.Name).LoadModel(m, native.TablesOf(s)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A wovenRun is the result of a run over paths of different rates.
type wovenRun struct {
	mean                time.Duration
	overtaken, early    int64
	held, timeouts      int64
	queues, unfinished  int
	deliveredTimesBytes string
}

// runWoven sends flows between the hosts of two leaves, of whose four spines the first
// link is slow.
func runWoven(t *testing.T, topo *fabric.Topology, load func(testing.TB, *sim.Network, *plan.Plan), o sim.Options) (r wovenRun) {
	t.Helper()
	n, err := sim.New(topo, o)
	if err != nil {
		t.Fatal(err)
	}
	load(t, n, planned(t, topo, "ecmp", nil))
	hosts := n.Hosts()
	random := rand.New(rand.NewPCG(1, 2))
	flows := make([]*sim.Flow, 120)
	for i := range flows {
		from := hosts[random.IntN(len(hosts)/2)]
		to := hosts[len(hosts)/2+random.IntN(len(hosts)/2)]
		if i%2 == 1 {
			from, to = to, from
		}
		spec := sim.FlowSpec{From: from.Name, To: to.Name, Bytes: int64(2000 + random.ExpFloat64()*300_000), Transport: sim.DCQCN}
		n.At(time.Duration(random.IntN(800_000)), func() {
			var err error
			if flows[i], err = n.StartFlow(spec); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := n.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	for _, f := range flows {
		if f.Finished == 0 || f.Received != f.Bytes {
			r.unfinished++
			continue
		}
		r.mean += (f.Finished - f.Started) / time.Duration(len(flows))
		r.overtaken += f.Overtaken
		r.early += f.OutOfOrder
		r.deliveredTimesBytes += fmt.Sprintln(f.ID, f.Finished, f.Acknowledged, f.Sent)
	}
	for _, s := range n.Switches() {
		c := s.Counters()
		r.held += c.Reordered
		r.timeouts += c.ReorderingTimeouts
		r.queues = max(r.queues, c.MaxReordering)
		if s.Buffered() != 0 {
			t.Errorf("%s has %d bytes left", s.Name, s.Buffered())
		}
	}
	return r
}

// unequalPaths is two leaves with four spines. The links of the first spine are slower.
func unequalPaths(t *testing.T) *fabric.Topology {
	t.Helper()
	topo := leafSpine(t, fabric.LeafSpine{Leaves: 2, Spines: 4, Hosts: 8, Links: fabric.Links{
		HostRate: 100 * fabric.Gbps, Rate: 100 * fabric.Gbps, HostDelay: time.Microsecond, Delay: time.Microsecond,
	}, Buffer: 9 << 20})
	for i := range topo.Links {
		if l := &topo.Links[i]; l.A.Node == "s1" || l.B.Node == "s1" {
			l.Rate = 25 * fabric.Gbps
		}
	}
	return topo
}

// TestConWeave checks ConWeave's properties on paths of different rates: flows leave the
// slow path within round trips, packets overtake each other between the leaves, and hosts
// receive them in order.
func TestConWeave(t *testing.T) {
	topo := unequalPaths(t)
	o := sim.Options{PFC: sim.PFC{On: true}, ECN: sim.ECN{Min: 100e3, Max: 400e3, P: 0.2}}
	ecmp := runWoven(t, topo, loadModels, o)
	with := runWoven(t, topo, loadWoven(woven), o)
	t.Logf("ECMP %v, ConWeave %v: %d packets were held, in %d queues at once, %d queues timed out", ecmp.mean, with.mean, with.held, with.queues, with.timeouts)
	switch {
	case ecmp.unfinished > 0 || with.unfinished > 0:
		t.Errorf("%d and %d flows have not finished", ecmp.unfinished, with.unfinished)
	case with.overtaken != 0 || with.early != 0:
		t.Errorf("hosts saw %d packets overtaken and %d early", with.overtaken, with.early)
	case with.held == 0 || with.queues == 0 || with.timeouts > 0:
		t.Errorf("%d packets in %d queues, %d timeouts: want packets that waited for a TAIL", with.held, with.queues, with.timeouts)
	case float64(with.mean) > 0.9*float64(ecmp.mean):
		t.Errorf("flows took %v, and %v with ECMP: want a tenth less at least", with.mean, ecmp.mean)
	}

	none := woven
	none.Queues = 0
	if bare := runWoven(t, topo, loadWoven(none), o); bare.overtaken == 0 || bare.held != 0 {
		t.Errorf("without queues for reordering hosts saw %d packets overtaken, and %d were held", bare.overtaken, bare.held)
	}
	hasty := woven
	hasty.Resume, hasty.Wait = 0, 0
	if hasty := runWoven(t, topo, loadWoven(hasty), o); hasty.timeouts == 0 || hasty.unfinished > 0 {
		t.Errorf("with a short theta_resume_extra %d queues timed out, %d flows have not finished", hasty.timeouts, hasty.unfinished)
	}
}

// TestConWeaveIRN loses packets, TAILs among them: all flows finish.
func TestConWeaveIRN(t *testing.T) {
	topo := unequalPaths(t)
	for i := range topo.Switches {
		topo.Switches[i].Buffer = 60_000
	}
	r := runWoven(t, topo, loadWoven(woven), sim.Options{})
	if r.unfinished > 0 || r.held == 0 || r.timeouts == 0 {
		t.Errorf("%d flows have not finished, %d packets were held, %d queues timed out", r.unfinished, r.held, r.timeouts)
	}
}

// TestConWeaveParts runs on one part and on several, with a link that fails.
func TestConWeaveParts(t *testing.T) {
	topo := leafSpine(t, fabric.LeafSpine{Leaves: 4, Spines: 3, Hosts: 3, Links: fabric.Links{
		HostRate: fabric.Gbps, Rate: 900 * fabric.Mbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 40,
	}})
	o := sim.Options{Ties: sim.ByPlace, Seed: 3, PFC: sim.PFC{On: true, Pause: 20000}, ECN: sim.ECN{Min: 15000, Max: 40000, P: 0.5}}
	var want string
	for _, cores := range []int{1, 2, 4} {
		o.Cores = cores
		got := runInParts(t, topo, planned(t, topo, "ecmp", nil), o, loadWoven(woven))
		if want == "" {
			want = got
		} else if got != want {
			t.Errorf("%d parts: %s", cores, p4test.FirstDifference([]byte(got), []byte(want)))
		}
	}
}

// TestConWeaveFatTree uses paths with a choice in two switches.
func TestConWeaveFatTree(t *testing.T) {
	topo, err := fabric.FatTree{K: 4, Links: fabric.Links{HostRate: 10 * fabric.Gbps, Rate: 10 * fabric.Gbps, HostDelay: time.Microsecond, Delay: time.Microsecond}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Links {
		if l := &topo.Links[i]; l.A.Node == "c1" || l.B.Node == "c1" {
			l.Rate = fabric.Gbps
		}
	}
	r := runWoven(t, topo, loadWoven(woven), sim.Options{PFC: sim.PFC{On: true}, ECN: sim.ECN{Min: 20e3, Max: 80e3, P: 0.2}})
	if r.unfinished > 0 || r.held == 0 || r.overtaken != 0 && r.timeouts == 0 {
		t.Errorf("%d flows have not finished, %d packets were held, %d overtaken, %d queues timed out", r.unfinished, r.held, r.overtaken, r.timeouts)
	}
}
