package sim_test

import (
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/model"
	"github.com/p4lb/p4lb/sim"
)

// loadModels gives each switch the model of its scheme, with the same plan as
// loadP4.
func loadModels(t testing.TB, n *sim.Network, p *controller.Plan) {
	t.Helper()
	for _, s := range p.Switches {
		node := n.Switch(s.Name)
		man := &s.Pipeline.Manifest
		for _, v := range man.VirtualPorts {
			node.AddVirtual(v.Port)
		}
		if err := node.LoadModel(newModel(t, man), tables(s)); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.Registers {
			if err := node.WriteRegister(c.Register, c.From, c.To, c.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// newModel is the model of what a manifest describes.
func newModel(t testing.TB, man *codegen.Manifest) sim.Model {
	t.Helper()
	m := sim.Model{Config: model.Config{
		Granularity: man.Granularity, Signal: man.Signal, Choice: man.Choice, Guard: man.Guard,
		Paths: man.Paths, Edge: man.Role == "leaf" || man.Role == "tor", Direct: man.StatePath == "shared",
	}}
	m.Cells = map[string]int{}
	for _, r := range man.Registers {
		m.Cells[r.Name] = r.Size
	}
	for _, v := range man.Parameters {
		if v.Name == "degree" && man.Signal == "fitted" {
			if poly, ok := fitting.Paper(int(v.Int), false); ok {
				m.Poly = &poly
			}
		}
		if v.Name == "ecnk" {
			m.ProbeMark = int(v.Int)
		}
		if err := m.Set(v.Name, v.Int); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range man.Headers {
		if h.Name == "report" {
			for _, f := range h.Fields {
				m.ReportLen += f.Width
			}
			m.ReportLen /= 8
		}
	}
	return m
}

// tables are what a plan puts into a switch.
func tables(s *controller.SwitchPlan) sim.Tables {
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
	for _, x := range s.Sessions {
		t.Sessions[x.ID] = x.Port
	}
	for _, g := range s.Groups {
		t.Multicast[g.ID] = g.Ports
	}
	return t
}
