package lab

import (
	"context"
	"fmt"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/model"
	"github.com/p4lb/p4lb/sim"
)

// modelsAtWork is the deployment of models: the same plan, put into the switches
// directly, since models speak no P4Runtime.
type modelsAtWork struct {
	r   *running
	now *controller.Plan
}

func deployModels(r *running, plan *controller.Plan) (deployment, error) {
	for _, s := range plan.Switches {
		m, err := ModelOf(&s.Pipeline.Manifest, r.setup.polynomial)
		if err != nil {
			return nil, err
		}
		r.Case.Switches.vary(&m)
		sw := r.net.Switch(s.Name)
		if err := sw.LoadModel(m, TablesOf(s)); err != nil {
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

func (d *modelsAtWork) plan() *controller.Plan { return d.now }

func (d *modelsAtWork) change(_ context.Context, t *fabric.Topology) error {
	plan, err := d.r.plan(t)
	if err != nil {
		return err
	}
	d.now = plan
	for _, s := range plan.Switches {
		if err := d.r.net.Switch(s.Name).SetTables(TablesOf(s)); err != nil {
			return err
		}
	}
	return nil
}

func (d *modelsAtWork) close() {}

// ModelOf is the model of what a manifest describes. poly finds the polynomial
// of a degree, for schemes whose signal is fitted.
func ModelOf(m *codegen.Manifest, poly func(degree int) *fitting.Poly) (sim.Model, error) {
	out := sim.Model{
		Config: model.Config{
			Granularity: m.Granularity, Signal: m.Signal, Choice: m.Choice, Guard: m.Guard,
			Paths: m.Paths, Edge: m.Role == "leaf" || m.Role == "tor", Direct: m.StatePath == "shared", Ghost: m.StatePath == "ghost",
		},
		ReportLen: headerLen(m, "report"), OverlayLen: headerLen(m, "overlay"), NoticeLen: headerLen(m, "cnm"), BridgeLen: headerLen(m, "bridge"),
		Cells: map[string]int{},
	}
	if m.Hardware != nil {
		out.Hardware = HardwareOf(m)
		if len(m.Recirculation) > 0 {
			out.AgainLen, out.AgainPort = headerLen(m, "again"), m.Recirculation[0]
		}
		for _, s := range m.MirrorSessions {
			out.MirrorLen = s.Bytes
		}
	}
	for _, r := range m.Registers {
		out.Cells[r.Name] = r.Size
	}
	for _, v := range m.Parameters {
		switch {
		case v.Name == "degree" && m.Signal == "fitted":
			out.Poly = poly(int(v.Int))
		case v.Name == "ecnk":
			out.ProbeMark = int(v.Int)
			if out.Hardware != nil { // in cells, of packets of full length
				out.ProbeMark = int(v.Int) * 1500 / out.Hardware.Cell
			}
		}
		if err := out.Set(v.Name, v.Int); err != nil {
			return out, fmt.Errorf("the model of %s: %w", m.Scheme, err)
		}
	}
	return out, nil
}

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

// HardwareOf is what a manifest says of the hardware that its program is for.
func HardwareOf(m *codegen.Manifest) *model.Hardware {
	h := &model.Hardware{Cell: codegen.CellBytes(m.Arch)}
	for _, b := range m.Baked {
		if b.Values != nil {
			h.Index = b.Values
		} else {
			h.Weights, h.Zero = b.Weights, b.Zero
		}
	}
	for _, r := range m.Registers {
		if r.Index == "flow" {
			h.Flows = r.Size
		}
	}
	return h
}

// headerLen is the length of a header, 0 where there is none of that name.
func headerLen(m *codegen.Manifest, name string) int {
	bits := 0
	for _, h := range m.Headers {
		if h.Name == name {
			for _, f := range h.Fields {
				bits += f.Width
			}
		}
	}
	return bits / 8
}

// TablesOf are what a plan puts into a switch that runs a model.
func TablesOf(s *controller.SwitchPlan) sim.Tables {
	t := sim.Tables{Sessions: map[int]int{}, Multicast: map[int][]int{}}
	for _, e := range s.Entries {
		entry := sim.Entry{Table: e.Table, Action: e.Action, Args: map[string]uint64{}}
		for _, m := range e.Match {
			entry.Key = append(entry.Key, sim.Key{Value: m.Value, Bits: m.Bits})
		}
		for _, a := range e.Args {
			entry.Args[a.Name] = a.Value
		}
		t.Entries = append(t.Entries, entry)
	}
	for _, c := range s.Sessions {
		t.Sessions[c.ID] = c.Port
	}
	for _, g := range s.Groups {
		t.Multicast[g.ID] = g.Ports
	}
	return t
}
