package sim_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"sync"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
)

// leafSpine returns a small network.
func leafSpine(t testing.TB, o fabric.LeafSpine) *fabric.Topology {
	t.Helper()
	topo, err := o.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// compiled caches the programs of tests.
var compiled sync.Map

// pipelines generates and compiles the programs of a scheme for all roles of a
// network.
func pipelines(t testing.TB, topo *fabric.Topology, scheme string, set map[string]string) map[fabric.Role]*plan.Pipeline {
	t.Helper()
	row, err := codegen.Parse(scheme)
	if err != nil {
		t.Fatal(err)
	}
	list := map[fabric.Role]*plan.Pipeline{}
	for _, sw := range topo.Switches {
		if list[sw.Role] != nil {
			continue
		}
		made, err := codegen.Generate(row, codegen.Params{Ports: widest(topo), Role: string(sw.Role), Set: set})
		if err != nil {
			t.Fatal(err)
		}
		list[sw.Role] = &plan.Pipeline{Manifest: made.Manifest}
		out := compile(t, made.P4)
		list[sw.Role].P4Info, list[sw.Role].Config = out.P4Info, []byte(made.P4)
	}
	return list
}

func compile(t testing.TB, text string) *p4.Program {
	t.Helper()
	if out, ok := compiled.Load(text); ok {
		return out.(*p4.Program)
	}
	out, err := p4.CompileText("a.p4", []byte(text), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compiled.Store(text, out)
	return out
}

// widest is the number of paths of the largest group.
func widest(topo *fabric.Topology) int {
	n := 2
	for _, sw := range topo.Switches {
		table, _ := topo.Routes().Table(sw.Name, fabric.ByLeaf)
		for _, g := range table.Groups {
			n = max(n, len(g.Hops))
		}
	}
	return n
}

// plan computes the plan of a network.
func planned(t testing.TB, topo *fabric.Topology, scheme string, set map[string]string) *plan.Plan {
	t.Helper()
	p, err := plan.New(topo, pipelines(t, topo, scheme, set), plan.Options{Coefficients: coefficients(scheme)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// coefficients are examples for rows whose coefficients the controller sets.
func coefficients(scheme string) map[string]int64 {
	var degree int
	if fmt.Sscanf(scheme, "qall-poly%d", &degree); degree < 4 {
		return nil
	}
	list := map[string]int64{}
	for i, term := range fitting.Terms(degree) {
		list[fmt.Sprintf("c_%d_%d", term.I, term.J)] = int64(i%7-2) * 150
	}
	return list
}

// loadP4 gives each switch its program and the entries of the plan.
func loadP4(t testing.TB, n *sim.Network, p *plan.Plan) {
	t.Helper()
	for _, s := range p.Switches {
		out := compile(t, string(s.Pipeline.Config))
		sw, err := dataplane.New(out.Config, dataplane.Options{Random: sim.Random(n.Options().Seed, s.Name)})
		if err != nil {
			t.Fatal(err)
		}
		install(t, sw, s)
		node := n.Switch(s.Name)
		for _, v := range s.Pipeline.Manifest.VirtualPorts {
			node.AddVirtual(v.Port)
		}
		node.Load(sw)
		if s.Pipeline.Manifest.Header(manifest.PauseHeader) != nil {
			node.PassPFC()
		}
	}
}

// install fills the tables of a switch.
func install(t testing.TB, sw *dataplane.Switch, s *plan.Switch) {
	t.Helper()
	for _, e := range s.Entries {
		target := dataplane.Target{Action: dataplane.ActionCall{Name: qualified(sw, e.Action)}}
		for _, a := range e.Args {
			target.Action.Params = append(target.Action.Params, number(a.Value))
		}
		if e.Match == nil {
			if err := sw.Tables().SetDefault(e.Table, target); err != nil {
				t.Fatal(err)
			}
			continue
		}
		entry := dataplane.Entry{Target: target}
		key, _, err := sw.Tables().Key(e.Table)
		if err != nil {
			t.Fatal(err)
		}
		entry.Priority = math.MaxInt32 - e.Priority
		for i, m := range e.Match {
			match := dataplane.Match{Value: number(m.Value)}
			switch key[i].Kind {
			case dataplane.MatchLPM:
				match.PrefixLen = m.Bits
			case dataplane.MatchTernary:
				match.Mask = number(1<<m.Width - 1)
				if m.Mask != nil {
					match.Mask = number(*m.Mask)
				}
			}
			entry.Match = append(entry.Match, match)
		}
		if _, err := sw.Tables().Add(e.Table, entry); err != nil {
			t.Fatalf("%s: %s %+v: %v", s.Name, e.Table, e, err)
		}
	}
	for _, m := range s.Sessions {
		if err := sw.Mirrors().Set(uint32(m.ID), dataplane.MirrorSession{Port: uint32(m.Port), HasPort: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range s.Groups {
		var list []dataplane.Replica
		for _, port := range g.Ports {
			list = append(list, dataplane.Replica{Port: uint32(port)})
		}
		if err := sw.Replication().SetGroup(uint32(g.ID), list); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range s.Registers {
		if err := sw.Registers().WriteRange(c.Register, c.From, c.To, new(big.Int).SetUint64(c.Value)); err != nil {
			t.Fatal(err)
		}
	}
}

// qualified returns the name of an action with its control.
func qualified(sw *dataplane.Switch, action string) string {
	for _, a := range sw.Config().Actions {
		if a.Name == "LbIngress."+action || a.Name == "LbEgress."+action {
			return a.Name
		}
	}
	return action
}

func number(v uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, v)
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}
