package sim_test

import (
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestRDMAHeaders: each packet of data takes the headers that it is to have, each
// answer its length, with programs as with models.
func TestRDMAHeaders(t *testing.T) {
	const bytes, segment = 300_000, 1000
	engines := map[string]func(testing.TB, *sim.Network, *plan.Plan){"p4": loadP4, "native": loadModels}
	topo := leafSpine(t, twoByTwo())
	p := planned(t, topo, "drill", nil)
	took := map[string]time.Duration{}
	for _, c := range []struct{ headers, answer, perData, perAnswer int64 }{{0, 0, 42, 42}, {48, 60, 48, 60}, {58, 62, 58, 62}} {
		for name, load := range engines {
			n, err := sim.New(topo, sim.Options{Seed: 2, PFC: sim.PFC{On: true}})
			if err != nil {
				t.Fatal(err)
			}
			load(t, n, p)
			u := sim.Tuning{Segment: segment, RDMA: sim.RDMA{Headers: int(c.headers), Answer: int(c.answer)}}
			f, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h5", Bytes: bytes, Transport: sim.DCQCN, Tuning: &u})
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Run(time.Second); err != nil {
				t.Fatal(err)
			}
			to, back := n.Host("h1").NIC().Counters(), n.Host("h5").NIC().Counters()
			if f.Acknowledged == 0 || to.Bytes != to.Packets*(segment+c.perData) || back.Bytes != back.Packets*c.perAnswer {
				t.Errorf("%s, headers %d, answer %d: %d bytes in %d packets, and %d in %d back", name, c.headers, c.answer, to.Bytes, to.Packets, back.Bytes, back.Packets)
			}
			if other, ok := took[name]; ok && f.Acknowledged <= other {
				t.Errorf("%s: with headers of %d bytes a flow took %v, with shorter ones %v", name, c.perData, f.Acknowledged, other)
			}
			took[name] = f.Acknowledged
		}
		if took["p4"] != took["native"] {
			t.Errorf("headers of %d bytes: %v with programs, %v with models", c.perData, took["p4"], took["native"])
		}
	}
	n, err := sim.New(topo, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []sim.Tuning{{RDMA: sim.RDMA{Headers: 41}}, {RDMA: sim.RDMA{Answer: 129}}, {Segment: 1472, RDMA: sim.RDMA{Headers: 43}}} {
		if _, err := n.StartFlow(sim.FlowSpec{From: "h1", To: "h5", Transport: sim.DCQCN, Tuning: &u}); err == nil {
			t.Errorf("%+v was taken", u.RDMA)
		}
	}
}
