package lab

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestDirect runs every row with direct deployment and with the controller over
// P4Runtime: the results are the same, with a link that fails and comes back.
func TestDirect(t *testing.T) {
	leftToPlainRun(t)
	names := codegen.Names()
	names = append(names, "wcmp@tna", "drill+rlb@tna", "qall-poly3@t2na", "conga@t2na")
	const spines, tree = "l1-s1", "a1-c1"
	networks := map[string]string{
		spines: "leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 5us, host-delay: 5us, queue: 64}",
		tree:   "fat-tree: {k: 4, rate: 1G, delay: 5us, queue: 64}",
	}
	for _, name := range append(names, "conga "+tree, "drill+rlb "+tree, "hula "+tree) {
		name, link, ok := strings.Cut(name, " ")
		if !ok {
			link = spines
		}
		text := `topology: {` + networks[link] + `}
schemes: [` + name + `]
traffic: [{workload: websearch, cut: 200KB}]
loads: [0.6]
seeds: 1
duration: 15ms
faults:
  - {at: 4ms, until: 10ms, link: ` + link + `, down: true}
`
		run := func(by deployer) (string, error) {
			x, err := spec.Load("experiment", []byte(text), spec.NoFiles, &scheme.Library{})
			if err != nil {
				return "", err
			}
			c, err := (&Runner{deploy: by}).Run(context.Background(), x)
			if err != nil {
				return "", err
			}
			out, err := json.Marshal(c.Rows[0].Runs)
			return string(out), err
		}
		want, wrong := run(deployOverP4Runtime)
		got, err := run(nil)
		switch {
		case wrong != nil && strings.Contains(wrong.Error(), "leaves its polynomial to the controller"):
			if err == nil {
				t.Errorf("%s: without P4Runtime it runs without a polynomial", name)
			}
		case wrong != nil || err != nil:
			t.Errorf("%s: with P4Runtime %v, without %v", name, wrong, err)
		case got != want:
			t.Errorf("%s: without P4Runtime\n%s\nwith it\n%s", name, got, want)
		}
	}
}

// TestFilledTables: if no flow finishes because of a fault, no table is reported as
// empty, with programs and with models.
func TestFilledTables(t *testing.T) {
	for _, engine := range []string{"p4", "native"} {
		x := load(t, `topology: {leaf-spine: {leaves: 2, spines: 1, hosts: 2, rate: 1G, host-rate: 1G, delay: 5us, host-delay: 5us, queue: 64}}
schemes: [ecmp]
engine: `+engine+`
traffic: [{workload: websearch, cut: 200KB}]
loads: [0.6]
seeds: 1
duration: 5ms
drain: 1ms
faults: [{at: 0s, link: l1-s1, down: true}]
`)
		r := run(t, &Runner{}, x).Rows[0].Runs[0]
		if r.Metrics["unfinished"] != 100 {
			t.Fatalf("%s: %g %% of the flows are unfinished, want all", engine, r.Metrics["unfinished"])
		}
		for _, alert := range r.Alerts {
			if strings.Contains(alert, "nothing fills") {
				t.Errorf("%s: %s", engine, alert)
			}
		}
	}
}

// programsAtWork is a deployment by the controller: P4Runtime servers in the process,
// with data planes that the simulator runs.
type programsAtWork struct {
	target *embedded.Target
	ctl    *controller.Controller
}

func deployOverP4Runtime(ctx context.Context, r *running) (deployment, error) {
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
