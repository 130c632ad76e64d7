//go:build !js

package lab

import (
	"context"
	"fmt"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/sim"
)

// programsAtWork is a deployment of P4 programs: P4Runtime servers in the process,
// with data planes that the simulator runs.
type programsAtWork struct {
	target *embedded.Target
	ctl    *controller.Controller
}

func deployPrograms(ctx context.Context, r *running) (deployment, error) {
	if r.direct {
		return deployDirect(r)
	}
	chance := r.newChance()
	target := embedded.New(embedded.Options{Memory: true, Still: true, Seed: r.Seed, Load: chance.load})
	ctl, err := controller.New(ctx, r.planned, target, controller.DeployOptions{})
	if err != nil {
		target.Close()
		return nil, err
	}
	d := &programsAtWork{target, ctl}
	if err := apply(ctx, ctl); err != nil {
		d.close()
		return nil, err
	}
	for _, s := range r.planned.Switches {
		sw := target.Switch(s.Name)
		chance.seed(sw, sim.Random(r.Seed, s.Name))
		r.load(s, sw)
	}
	return d, nil
}

// apply makes the switches hold a controller's plan, and fails if one does not.
func apply(ctx context.Context, ctl *controller.Controller) error {
	report, err := ctl.Deploy(ctx)
	if err != nil {
		return fmt.Errorf("deploying: %w", err)
	}
	if !report.Verified() {
		return fmt.Errorf("deploying: not every switch holds the plan")
	}
	return nil
}

func (d *programsAtWork) change(ctx context.Context, plan *plan.Plan) error {
	if err := d.ctl.SetPlan(ctx, plan); err != nil {
		return err
	}
	return apply(ctx, d.ctl)
}

func (d *programsAtWork) close() {
	d.ctl.Close()
	d.target.Close()
}
