package embedded_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestForward deploys schemes on topologies and sends packets between hosts,
// with a link failed and restored. All schemes run on two networks, a few on
// all; P4LB_ALL=1 has all schemes run on all networks, which takes some minutes.
// With -short it is the few on the two.
func TestForward(t *testing.T) {
	everywhere := []string{"wcmp", "hula", "drill+rlb"}
	small := []string{"qall", "dhlb"}
	all := os.Getenv("P4LB_ALL") != ""
	for _, p := range fabric.Presets() {
		for _, scheme := range codegen.Names() {
			few, here := slices.Contains(everywhere, scheme), slices.Contains(small, p.Name)
			if all || few && here || !testing.Short() && (few || here) {
				t.Run(p.Name+"/"+scheme, func(t *testing.T) { forward(t, p.Name, scheme) })
			}
		}
	}
}

// TestForwardHardware does the same with the programs for Tofino 1, and those for
// Tofino 2 unless -short is given: all that exist.
func TestForwardHardware(t *testing.T) {
	archs, some := []string{"tna", "t2na"}, []string{"drill", "conga", "letflow+rlb"}
	if testing.Short() {
		archs = archs[:1]
	}
	for _, arch := range archs {
		for _, scheme := range hardwareSchemes(t, arch) {
			if !testing.Short() || slices.Contains(some, scheme) {
				t.Run(arch+"/"+scheme, func(t *testing.T) { forward(t, "qall", scheme+"@"+arch) })
			}
		}
	}
	t.Run("ghost", func(t *testing.T) { forward(t, "qall", "drill@t2na/ghost") })
}

// hardwareSchemes lists the schemes of an architecture. It contains one of QALL's
// polynomials, which differ only in table entries.
func hardwareSchemes(t *testing.T, arch string) []string {
	var list []string
	for _, row := range codegen.RowsFor(arch) {
		if row.Signal != "fitted" || row.Name == "qall-poly3" {
			list = append(list, row.Name)
		}
	}
	if len(list) < 15 {
		t.Errorf("only %d schemes exist for %s: %q", len(list), arch, list)
	}
	return list
}

// TestForwardIPv6 does the same between hosts with IPv6 addresses.
func TestForwardIPv6(t *testing.T) {
	for i, scheme := range []string{"conga", "ecmp", "letflow", "hula", "qall-poly3", "drill+rlb", "conga@tna", "presto@tna", "letflow+rlb@t2na"} {
		if testing.Short() && i%4 > 0 {
			continue // three are enough for the race detector
		}
		t.Run(scheme, func(t *testing.T) {
			topology, err := preset(t, "qall").ToIPv6()
			if err != nil {
				t.Fatal(err)
			}
			forwardOn(t, topology, scheme)
		})
	}
}

func forward(t *testing.T, name, scheme string) {
	t.Helper()
	forwardOn(t, preset(t, name), scheme)
}

func forwardOn(t *testing.T, topology *fabric.Topology, scheme string) {
	t.Helper()
	_, arch, hardware := strings.Cut(scheme, "@")
	arch, _, _ = strings.Cut(arch, "/") // from how state reaches ingress
	topology = plan.DevicePorts(topology, arch)
	if group, _ := plan.Sizes(topology); group > codegen.MaxPaths {
		t.Skipf("groups of %d next hops, programs are for %d", group, codegen.MaxPaths)
	}
	most := 100 // pairs of hosts, each with two flows
	if os.Getenv("P4LB_ALL") != "" {
		most = 10_000 // all of them, of up to 100 hosts
	}
	target := newTarget(t, embedded.Options{Memory: true, Still: true, Seed: 1})
	p := planFor(t, scheme, topology)
	c, err := controller.New(testContext(t), p, target, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	step := func(topology *fabric.Topology) *report.Report {
		t.Helper()
		r, err := c.Deploy(testContext(t))
		if err != nil || !r.Verified() {
			t.Fatalf("%v", err)
		}
		newNetwork(t, topology, target).ping(t, most)
		return r
	}
	step(topology)
	if hardware {
		// What packets have done to registers is no reason to write them.
		if r, err := c.Deploy(testContext(t)); err != nil || r.Written() != 0 {
			t.Errorf("the second deployment has written %d objects (%v): %+v", r.Written(), err, r.Switches[0].Changes)
		}
	}
	broken, changed := failOne(t, topology)
	if err := c.SetPlan(testContext(t), planFor(t, scheme, broken)); err != nil {
		t.Fatal(err)
	}
	for _, s := range step(broken).Switches {
		if s.Pushed {
			t.Errorf("%s: a failed link makes no other program", s.Name)
		}
		if s.Written > 0 && len(p.Switch(s.Name).Groups) == 0 && p.Grouping == fabric.ByHops && !slices.Contains(changed, s.Name) {
			t.Errorf("%s: %d changes, but the link does not concern it: %v", s.Name, s.Written, s.Changes)
		}
	}
	if err := c.SetPlan(testContext(t), p); err != nil {
		t.Fatal(err)
	}
	step(topology)
}

// failOne takes down the first link between switches that is not a host's only path,
// and returns the switches with changed routes.
func failOne(t *testing.T, topology *fabric.Topology) (*fabric.Topology, []string) {
	t.Helper()
	for i, l := range topology.Links {
		if l.Down || topology.Switch(l.A.Node) == nil || topology.Switch(l.B.Node) == nil {
			continue
		}
		broken := topology.Fail(i)
		return broken, broken.Routes().Changed(topology.Routes(), fabric.ByHops)
	}
	t.Fatal("there is no link between switches")
	return nil, nil
}
