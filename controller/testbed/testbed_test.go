//go:build linux

package testbed_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/controller/testbed"
	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/p4"
)

var update = flag.Bool("update", false, "rewrite testdata/oracle/bmv2-deploy.tsv")

// patience is how long a test waits for something that must come.
const patience = 120 * time.Second

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

// leafSpine is two leaves with two hosts each and two spines, slow enough that
// the queues are those of the switches.
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

func plan(t *testing.T, scheme string, topology *fabric.Topology) *controller.Plan {
	t.Helper()
	row, err := codegen.Parse(scheme)
	if err != nil {
		t.Fatal(err)
	}
	most, highest := controller.Sizes(topology)
	all := map[fabric.Role]*controller.Pipeline{}
	for _, s := range topology.Switches {
		if all[s.Role] == nil {
			g, err := codegen.Generate(row, codegen.Params{Ports: most, MaxPort: highest, Role: string(s.Role)})
			if err != nil {
				t.Fatal(err)
			}
			all[s.Role] = compile(t, g)
		}
	}
	p, err := controller.NewPlan(topology, all, controller.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compile(t *testing.T, g *codegen.Program) *controller.Pipeline {
	t.Helper()
	c, err := p4.Compile(fstest.MapFS{"x.p4": {Data: []byte(g.P4)}}, "x.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &controller.Pipeline{Manifest: g.Manifest, P4Info: c.P4Info, Config: c.JSON()}
}

// newTarget is a testbed of the test's own, which is gone afterwards.
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

// name is a deployment's that no other test has, nor another run.
func name(t *testing.T) string {
	return fmt.Sprintf("t%d_%s", os.Getpid(), strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
}

// report is what there is to say of a deployment that went wrong.
func mustDeploy(t *testing.T, c *controller.Controller) *controller.Report {
	t.Helper()
	r, err := c.Deploy(testContext(t))
	if err != nil || !r.Verified() {
		t.Fatalf("not verified: %v", err)
	}
	return r
}

// oracleFile has what a real switch answered.
const oracleFile = "../../testdata/oracle/bmv2-deploy.tsv"

// schemes are one of each kind of state: none, flows, queues by recirculation
// and by a shared register, piggybacked, by probes, by the controller, guarded.
var schemes = []string{
	"ecmp", "wcmp", "rps", "drb", "letflow", "presto", "drill", "conga", "hula", "hermes",
	"qall-pkt", "qall-poly3", "qdaps", "qdaps-star", "pdlb", "dhlb", "letflow+rlb", "drill+rlb-star",
}

// TestSchemes deploys schemes one after the other on a network of real switches,
// and has every host ping every other and send it bytes by TCP: as deployed,
// with a link failed, and with that link restored. What the switches do is held
// against what they did when it was recorded.
func TestSchemes(t *testing.T) {
	needSwitch(t)
	topology := leafSpine(t)
	target := newTarget(t, testbed.Options{Name: name(t)})
	rows := []string{"scheme\tpings\ttransfers\tpings, l1-s1 failed\ttransfers, l1-s1 failed\tpings, restored\ttransfers, restored\twritten by the second deploy"}
	var hosts []*host
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			c, err := controller.New(testContext(t), plan(t, scheme, topology), target, controller.DeployOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if hosts == nil {
				hosts = openHosts(t, target, topology)
			}
			rows = append(rows, scheme+"\t"+try(t, c, scheme, topology, hosts))
		})
	}
	compareOracle(t, rows)
}

// try is the row of a scheme.
func try(t *testing.T, c *controller.Controller, scheme string, topology *fabric.Topology, hosts []*host) string {
	mustDeploy(t, c)
	defer runTasks(t, c)()
	var cells []string
	cells = append(cells, allPairs(t, hosts)...)

	links, err := topology.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []*fabric.Topology{topology.Fail(links...), topology} {
		if err := c.SetPlan(testContext(t), plan(t, scheme, now)); err != nil {
			t.Fatal(err)
		}
		for _, s := range mustDeploy(t, c).Switches {
			if s.Pushed {
				t.Errorf("%s: a link makes no other program", s.Name)
			}
		}
		cells = append(cells, allPairs(t, hosts)...)
	}
	return strings.Join(append(cells, fmt.Sprint(mustDeploy(t, c).Written())), "\t")
}

// runTasks does what the scheme wants of a controller, until the function is
// called.
func runTasks(t *testing.T, c *controller.Controller) (stop func()) {
	t.Helper()
	tasks, err := controller.Tasks(c.Plan(), controller.TaskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Loop(ctx, tasks, controller.LoopOptions{})
	}()
	return func() {
		cancel()
		<-done
	}
}

// transferSize is some twenty full packets.
const transferSize = 30_000

// allPairs is how many pings were answered and how many transfers went well.
func allPairs(t *testing.T, hosts []*host) []string {
	t.Helper()
	pairs, pings, transfers := 0, 0, 0
	for _, from := range hosts {
		for _, to := range hosts {
			if from == to {
				continue
			}
			pairs++
			if from.ping(to) {
				pings++
			} else {
				t.Logf("%s does not reach %s", from.Name, to.Name)
			}
			if err := from.transfer(t.Context(), to, transferSize); err == nil {
				transfers++
			} else {
				t.Logf("%s to %s: %v", from.Name, to.Name, err)
			}
		}
	}
	return []string{fmt.Sprintf("%d/%d", pings, pairs), fmt.Sprintf("%d/%d", transfers, pairs)}
}

// compareOracle holds rows against the file, whose comments it leaves alone.
func compareOracle(t *testing.T, rows []string) {
	t.Helper()
	text, err := os.ReadFile(oracleFile)
	if err != nil && !(*update && errors.Is(err, os.ErrNotExist)) {
		t.Fatal(err)
	}
	var comments, want []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			comments = append(comments, line)
		} else {
			want = append(want, line)
		}
	}
	if *update {
		all := strings.Join(append(comments, rows...), "\n") + "\n"
		if err := os.WriteFile(oracleFile, []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	recorded := strings.Join(want, "\n")
	for _, row := range rows {
		if !strings.Contains(recorded+"\n", row+"\n") {
			t.Errorf("the switches do otherwise than recorded: %s", row)
		}
	}
}
