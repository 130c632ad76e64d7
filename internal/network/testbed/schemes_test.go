//go:build linux

package testbed_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/testbed"
)

var update = flag.Bool("update", false, "rewrite testdata/oracle/bmv2-deploy.tsv and bmv2-faults.tsv")

// The recorded answers of a real switch.
const (
	schemesFile = "../../../testdata/oracle/bmv2-deploy.tsv"
	faultsFile  = "../../../testdata/oracle/bmv2-faults.tsv"
)

// schemes are the tested schemes: all that a paper proposes or compares with, and some
// guarded ones.
var schemes = []string{
	"ecmp", "wcmp", "rps", "drb", "letflow", "presto", "drill", "conga", "hula", "hermes", "flowbender", "clove",
	"qall-pkt", "qall-flowlet", "qall-linear", "qall-poly2", "qall-poly3", "qdaps", "qdaps-star", "pdlb", "dhlb",
	"drill+rlb", "presto+rlb", "letflow+rlb", "hermes+rlb", "drill+rlb-star",
}

// settings returns parameters that differ from the papers': simple_switch cannot
// forward a probe of every switch or path every 200 or 500 us.
func settings(row codegen.Row) map[string]string {
	rare := map[string]string{"tprobe": "20ms", "tpath": "20ms", "tfail": "100ms"}
	set := map[string]string{}
	for _, p := range row.Parameters() {
		if rare[p.Name] != "" {
			set[p.Name] = rare[p.Name]
		}
	}
	return set
}

// TestSchemes deploys schemes one after the other on a network of real switches. Every
// host pings every other and sends it bytes over TCP: as deployed, with a failed link,
// and with the link restored. The results are compared with the record.
func TestSchemes(t *testing.T) {
	needSwitch(t)
	topology := leafSpine(t)
	target := newTarget(t, testbed.Options{Name: name(t)})
	rows := []string{"scheme\tset\tpings\ttransfers\tpings, l1-s1 failed\ttransfers, l1-s1 failed\tpings, restored\ttransfers, restored\twritten by the second deploy"}
	if err := target.Start(testContext(t), planFor(t, schemes[0], topology)); err != nil {
		t.Fatal(err)
	}
	hosts := openHosts(t, target, topology)
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			c, err := controller.New(testContext(t), planFor(t, scheme, topology), target, controller.DeployOptions{Takeover: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			rows = append(rows, scheme+"\t"+setText(t, scheme)+"\t"+try(t, c, scheme, topology, hosts))
		})
	}
	compareOracle(t, schemesFile, rows)
}

// setText lists the set parameters, "-" for none.
func setText(t *testing.T, scheme string) string {
	set := settings(parse(t, scheme))
	var list []string
	for _, k := range slices.Sorted(maps.Keys(set)) {
		list = append(list, k+"="+set[k])
	}
	return cmp.Or(strings.Join(list, " "), "-")
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
		if err := c.SetPlan(testContext(t), planFor(t, scheme, now)); err != nil {
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

// runTasks runs the scheme's controller tasks until stop is called.
func runTasks(t *testing.T, c *controller.Controller) (stop func()) {
	t.Helper()
	tasks, err := task.ForPlan(c.Plan(), task.Options{})
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

// allPairs returns the numbers of answered pings and successful transfers.
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
				continue
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

// compareOracle compares rows with a file and keeps its comments.
func compareOracle(t *testing.T, oracleFile string, rows []string) {
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
