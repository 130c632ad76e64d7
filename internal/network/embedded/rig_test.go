package embedded_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// patience is the time that a test waits for an expected event.
const patience = 3 * time.Minute

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// programs caches compiled programs while a test uses them; all of them take some
// hundred MB.
var programs sync.Map // of weak.Pointer[plan.Pipeline]

type programKey struct {
	scheme string
	role   fabric.Role
	ports  int
	max    int
	ipv6   bool
}

// pipelines compiles a scheme for the roles of a topology: drill, or drill@tna
// for Tofino.
func pipelines(t testing.TB, scheme string, topology *fabric.Topology) map[fabric.Role]*plan.Pipeline {
	t.Helper()
	most, highest := plan.Sizes(topology)
	all := map[fabric.Role]*plan.Pipeline{}
	for _, s := range topology.Switches {
		if all[s.Role] != nil {
			continue
		}
		key := programKey{scheme: scheme, role: s.Role, ports: most, max: highest, ipv6: topology.HasIPv6()}
		if known, ok := programs.Load(key); ok {
			all[s.Role] = known.(weak.Pointer[plan.Pipeline]).Value()
		}
		if all[s.Role] == nil {
			all[s.Role] = compile(t, key)
			programs.Store(key, weak.Make(all[s.Role]))
		}
	}
	return all
}

func compile(t testing.TB, key programKey) *plan.Pipeline {
	t.Helper()
	name, arch, _ := strings.Cut(key.scheme, "@")
	arch, state, _ := strings.Cut(arch, "/")
	row, err := codegen.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := scheme.Of(row).Build(codegen.Params{Arch: arch, StatePath: state, Ports: key.ports, MaxPort: key.max, Role: string(key.role), IPv6: key.ipv6})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Compiled(g)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func preset(t testing.TB, name string) *fabric.Topology {
	t.Helper()
	p, err := fabric.PresetNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	topology, err := p.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// coefficients are examples for schemes whose coefficients the controller sets: the index
// rises with the queue.
func coefficients(all map[fabric.Role]*plan.Pipeline) map[string]int64 {
	set := map[string]int64{}
	for _, p := range all {
		for _, a := range p.P4Info.GetActions() {
			for _, param := range a.GetParams() {
				if param.GetName()[0] == 'c' {
					set[param.GetName()] = 0
				}
			}
		}
	}
	set["c_1_0"] = 700
	set["c_0_1"] = -300
	return set
}

func planFor(t testing.TB, scheme string, topology *fabric.Topology) *plan.Plan {
	t.Helper()
	all := pipelines(t, scheme, topology)
	p, err := plan.New(topology, all, plan.Options{Coefficients: coefficients(all)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newTarget(t testing.TB, o embedded.Options) *embedded.Target {
	target := embedded.New(o)
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Errorf("closing the target: %v", err)
		}
	})
	return target
}

func deploy(t testing.TB, p *plan.Plan, target target.Target, o controller.DeployOptions) *report.Report {
	t.Helper()
	r, err := controller.Deploy(testContext(t), p, target, o)
	if err != nil {
		var list plan.Errors
		if errors.As(err, &list) {
			t.Fatal(list)
		}
		t.Fatal(err)
	}
	if !r.Verified() {
		t.Fatalf("not verified: %+v", r)
	}
	return r
}
