package lab

import (
	"context"

	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/lab/native"
)

// modelsAtWork is the deployment of models: the same plan, put into the switches
// directly, since models speak no P4Runtime.
type modelsAtWork struct {
	r   *running
	now *plan.Plan
}

func deployModels(r *running, plan *plan.Plan) (deployment, error) {
	for _, s := range plan.Switches {
		m, err := native.ModelOf(&s.Pipeline.Manifest, r.setup.polynomial)
		if err != nil {
			return nil, err
		}
		r.Case.Switches.Vary(&m)
		sw := r.net.Switch(s.Name)
		if err := sw.LoadModel(m, native.TablesOf(s)); err != nil {
			return nil, err
		}
		if m.Hardware != nil {
			continue // a model knows which paths a group has without cells that stand for the others
		}
		for _, c := range s.Registers {
			if err := sw.WriteRegister(c.Register, c.From, c.To, c.Value); err != nil {
				return nil, err
			}
		}
	}
	return &modelsAtWork{r, plan}, nil
}

func (d *modelsAtWork) plan() *plan.Plan { return d.now }

func (d *modelsAtWork) change(_ context.Context, t *fabric.Topology) error {
	plan, err := d.r.plan(t)
	if err != nil {
		return err
	}
	d.now = plan
	for _, s := range plan.Switches {
		if err := d.r.net.Switch(s.Name).SetTables(native.TablesOf(s)); err != nil {
			return err
		}
	}
	return nil
}

func (d *modelsAtWork) close() {}

// polynomial is the one that the programs are generated with.
func (u *setup) polynomial(degree int) *fitting.Poly {
	if u.poly != nil {
		return u.poly
	}
	if p, ok := fitting.Paper(degree, u.scheme.Errata == "printed"); ok {
		return &p
	}
	return nil
}
