package controller_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest/manifesttest"
)

// TestMeaningsAreForPeople replaces every sentence of the manifests by an x: plans,
// tasks, inspection and observation stay the same.
func TestMeaningsAreForPeople(t *testing.T) {
	leftToPlainRun(t)
	for _, arch := range []string{"v1model", "tna", "t2na"} {
		for _, row := range codegen.RowsFor(arch) {
			if row.Signal == "fitted" && row.Name != "qall-poly3" {
				continue // all of them are alike
			}
			scheme := row.Name + "@" + arch
			top := plan.DevicePorts(leafSpine(t, 10*time.Microsecond), arch)
			t.Run(scheme, func(t *testing.T) { compareWithout(t, top, scheme) })
		}
	}
}

func compareWithout(t *testing.T, top *fabric.Topology, scheme string) {
	with, without := newVirtualNet(t, top, scheme, nil), newVirtualNet(t, top, scheme, nil)
	without.plan = planWithout(t, top, without.plan)
	if diff := cmp.Diff(with.plan.Rows(), without.plan.Rows()); diff != "" {
		t.Errorf("the plans differ:\n%s", diff)
	}
	for _, n := range []*virtualNet{with, without} {
		n.play(n.tasks(task.Options{}), n.now+3*ms)
	}
	for _, sw := range []string{"l1", "s1"} {
		a, b := looksAt(t, with, sw), looksAt(t, without, sw)
		if len(a.Readings) != len(b.Readings) {
			t.Fatalf("%s: %d readings, without meanings %d", sw, len(a.Readings), len(b.Readings))
		}
		for i := range a.Readings {
			x, y := a.Readings[i], b.Readings[i]
			x.Meaning, y.Meaning = "", ""
			if x != y {
				t.Errorf("%s: %+v\nwithout meanings %+v", sw, x, y)
			}
		}
		if diff := cmp.Diff(a.Flows, b.Flows); diff != "" {
			t.Errorf("%s: the flows differ:\n%s", sw, diff)
		}
	}
	for i, n := range with.plan.Nodes() {
		x, y := controllerNews(t, with, n), controllerNews(t, without, without.plan.Nodes()[i])
		if diff := cmp.Diff(x, y); diff != "" {
			t.Errorf("%s: the ages of news differ:\n%s", n.Name, diff)
		}
		if diff := cmp.Diff(observations(with, n), observations(without, without.plan.Nodes()[i])); diff != "" {
			t.Errorf("%s: observations differ:\n%s", n.Name, diff)
		}
	}
}

// looksAt is a snapshot of everything.
func looksAt(t *testing.T, n *virtualNet, sw string) *inspect.Snapshot {
	t.Helper()
	return snapshot(t, n.inspector(sw, inspect.Options{Everything: true}))
}

// controllerNews returns the age of a switch's information.
func controllerNews(t *testing.T, n *virtualNet, node *plan.Node) map[int]time.Duration {
	t.Helper()
	news := inspect.NewsOf(node)
	if news == nil {
		return nil
	}
	ages := map[int]time.Duration{}
	err := news.Ages(func(register string, dst []uint64) ([]uint64, error) {
		return n.ReadRegister(node.Name, register, 0, node.Manifest.Register(register).Size, dst)
	}, n.now, func(i int, age time.Duration) { ages[i] = age })
	if err != nil {
		t.Fatal(err)
	}
	return ages
}

// observations returns the observations of a switch, or the error.
func observations(n *virtualNet, node *plan.Node) any {
	o, err := inspect.NewObserver(node, n.registers(node.Name))
	if err != nil {
		return err.Error()
	}
	list, err := o.Sample(n.t.Context(), nil)
	if err != nil {
		return err.Error()
	}
	return list
}

// planWithout plans the same programs again, without sentences.
func planWithout(t *testing.T, top *fabric.Topology, p *plan.Plan) *plan.Plan {
	t.Helper()
	made := map[fabric.Role]*plan.Pipeline{}
	for _, s := range p.Switches {
		if made[s.Role] == nil {
			bare, err := manifesttest.Wipe(&s.Pipeline.Manifest)
			if err != nil {
				t.Fatal(err)
			}
			made[s.Role] = &plan.Pipeline{Manifest: *bare, P4Info: s.Pipeline.P4Info, Config: s.Pipeline.Config}
		}
	}
	plan, err := plan.New(top, made, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
