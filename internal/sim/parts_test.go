package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4/p4test"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestParts runs each scheme in one part, two, and as many as there are leaves, with
// programs and with models: all results must be identical, to the last bit.
func TestParts(t *testing.T) {
	topo := leafSpine(t, fabric.LeafSpine{Leaves: 4, Spines: 3, Hosts: 3, Links: fabric.Links{
		HostRate: fabric.Gbps, Rate: 900 * fabric.Mbps, HostDelay: time.Microsecond, Delay: 2 * time.Microsecond, Queue: 40,
	}})
	schemes, counts := []string{"drill", "ecmp", "letflow", "qall-poly3", "hula", "qdaps", "dhlb", "drill+rlb"}, []int{1, 2, 4}
	if testing.Short() { // under the race detector each window takes long
		schemes, counts = schemes[:1], counts[:2]
	}
	for i, scheme := range schemes {
		p := planned(t, topo, scheme, nil)
		for name, load := range map[string]func(testing.TB, *sim.Network, *plan.Plan){"p4": loadP4, "native": loadModels} {
			for kind, o := range map[string]sim.Options{
				"drops": {}, "pfc": {PFC: sim.PFC{On: true, Pause: 20000}, ECN: sim.ECN{Min: 15000, Max: 40000, P: 0.5}},
			} {
				t.Run(scheme+"/"+name+"/"+kind, func(t *testing.T) {
					o.Ties, o.Seed = sim.ByPlace, uint64(i+1)
					var want string
					for _, cores := range counts {
						o.Cores = cores
						got := runInParts(t, topo, p, o, load)
						if want == "" {
							want = got
						} else if got != want {
							t.Errorf("%d parts: %s", cores, p4test.FirstDifference([]byte(got), []byte(want)))
						}
					}
				})
			}
		}
	}
}

// runInParts sends flows of all transports, some of which begin at the same time
// and are of the same size, cuts a link and repairs it, and returns all that there
// is to read.
func runInParts(t *testing.T, topo *fabric.Topology, p *plan.Plan, o sim.Options, load func(testing.TB, *sim.Network, *plan.Plan)) string {
	t.Helper()
	n, err := sim.New(topo, o)
	if err != nil {
		t.Fatal(err)
	}
	load(t, n, p)
	for _, s := range p.Switches {
		startTasks(n, p, s)
	}
	var out strings.Builder
	flows := make([]*sim.Flow, 90)
	random := rand.New(rand.NewPCG(7, o.Seed))
	hosts := n.Hosts()
	for i := range flows {
		at := time.Duration(random.IntN(5_000_000))
		from, to, size := random.IntN(len(hosts)), random.IntN(len(hosts)), int64(1000+random.ExpFloat64()*40000)
		if i < 24 { // all at the same time
			at, from, to, size = 0, i%12, (i+5)%12, 30000
		}
		if from == to {
			to = (to + 1) % len(hosts)
		}
		spec := sim.FlowSpec{
			From: hosts[from].Name, To: hosts[to].Name, Bytes: size, Transport: sim.Transport(i % 4),
			Done: func(f *sim.Flow) { fmt.Fprintln(&out, "done", f.ID, n.Now()) },
		}
		if spec.Transport == sim.UDP {
			spec.Rate = int64(300 * fabric.Mbps)
		}
		if err := n.PlanFlow(at, spec, &flows[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 { // three incasts of four senders each
		spec := sim.FlowSpec{From: hosts[1+random.IntN(len(hosts)-1)].Name, To: hosts[0].Name, Bytes: 20000, Transport: sim.TCP,
			Done: func(f *sim.Flow) { fmt.Fprintln(&out, "answered", f.Started, n.Now()) }}
		n.At(time.Duration(1+i/4)*time.Millisecond, func() {
			if _, err := n.StartFlow(spec); err != nil {
				t.Error(err)
			}
		})
	}
	link := slices.IndexFunc(n.Links(), func(l *sim.Link) bool { return l.A.Switch() != "" && l.B.Switch() != "" })
	n.At(2*time.Millisecond, n.Links()[link].Fail)
	n.At(3*time.Millisecond, n.Links()[link].Restore)
	n.Every(100*time.Microsecond, func(now time.Duration) bool {
		fmt.Fprintln(&out, now, n.Hops(), n.Delivered(), n.InFlight())
		return now < 10*time.Millisecond
	})
	for _, until := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 2 * time.Second} {
		if err := n.Run(until); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range flows {
		fmt.Fprintln(&out, f.ID, f.Sport, f.Started, f.Finished, f.FlowStats)
	}
	for _, s := range n.Switches() {
		fmt.Fprintln(&out, s.Name, s.Counters())
		for _, port := range s.Ports() {
			fmt.Fprintln(&out, port.Number, port.Counters())
		}
	}
	return out.String()
}
