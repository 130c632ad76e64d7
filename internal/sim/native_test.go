package sim_test

import (
	"testing"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/native"
	"github.com/p4lb/p4lb/internal/sim"
)

// loadModels gives each switch the model of its scheme, with the same plan as
// loadP4.
func loadModels(t testing.TB, n *sim.Network, p *plan.Plan) {
	t.Helper()
	for _, s := range p.Switches {
		node := n.Switch(s.Name)
		man := &s.Pipeline.Manifest
		for _, v := range man.VirtualPorts {
			node.AddVirtual(v.Port)
		}
		m, err := native.ModelOf(man, paperPoly)
		if err != nil {
			t.Fatal(err)
		}
		if err := node.LoadModel(m, native.TablesOf(s)); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.Registers {
			if err := node.WriteRegister(c.Register, c.From, c.To, c.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// paperPoly is the polynomial that programs are generated with.
func paperPoly(degree int, tau int64) *fitting.Poly {
	if poly, ok := fitting.Paper(degree, false); ok {
		poly = poly.WithTau(tau)
		return &poly
	}
	return nil
}
