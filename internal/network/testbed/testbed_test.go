//go:build linux

package testbed_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/testbed"
	"github.com/p4lb/p4lb/internal/scheme"
)

// patience is the time that a test waits for an expected event.
const patience = 3 * time.Minute

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// needSwitch skips the test where a real switch cannot be run.
func needSwitch(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces want root")
	}
	if _, err := exec.LookPath(testbed.Program); err != nil {
		t.Skipf("no %s on PATH", testbed.Program)
	}
}

// leafSpine has two leaves with two hosts each and two spines. It is slow enough that
// packets queue in the switches.
func leafSpine(t *testing.T) *fabric.Topology {
	t.Helper()
	topology, err := fabric.LeafSpine{
		Name: "test", Links: fabric.Links{HostRate: 100 * fabric.Mbps, Rate: 100 * fabric.Mbps},
	}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

func parse(t *testing.T, scheme string) codegen.Row {
	t.Helper()
	row, err := codegen.Parse(scheme)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func planFor(t *testing.T, name string, topology *fabric.Topology) *plan.Plan {
	t.Helper()
	row := parse(t, name)
	most, highest := plan.Sizes(topology)
	all := map[fabric.Role]*plan.Pipeline{}
	for _, s := range topology.Switches {
		if all[s.Role] == nil {
			g, err := scheme.Of(row).Build(codegen.Params{
				Ports: most, MaxPort: highest, Role: string(s.Role), Set: settings(row),
			})
			if err != nil {
				t.Fatal(err)
			}
			all[s.Role] = compile(t, g)
		}
	}
	p, err := plan.New(topology, all, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compile(t *testing.T, g *scheme.Program) *plan.Pipeline {
	t.Helper()
	c, err := g.Compiled()
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Pipeline{Manifest: g.Manifest, P4Info: c.P4Info, Config: c.JSON()}
}

// newTarget returns a testbed for the test and removes it afterwards.
func newTarget(t *testing.T, o testbed.Options) *testbed.Target {
	t.Helper()
	target := testbed.New(o)
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Errorf("closing the target: %v", err)
		}
	})
	return target
}

// name is a deployment name that no other test uses. The next run uses the same name and
// removes the leftovers of a killed run.
func name(t *testing.T) string { return t.Name() }

// mustDeploy deploys the plan and fails the test on an error.
func mustDeploy(t *testing.T, c *controller.Controller) *report.Report {
	t.Helper()
	r, err := c.Deploy(testContext(t))
	if err != nil || !r.Verified() {
		t.Fatalf("not verified: %v", err)
	}
	return r
}
