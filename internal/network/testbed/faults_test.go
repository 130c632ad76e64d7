//go:build linux

package testbed_test

import (
	"fmt"
	"testing"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/network/testbed"
)

// TestFaults fails a link without notifying the controller, then notifies it, and kills
// switches, which restart empty. Under ECMP a pair of hosts has one path in each
// direction, so reachability is the same each time.
func TestFaults(t *testing.T) {
	needSwitch(t)
	topology := leafSpine(t)
	target := newTarget(t, testbed.Options{Name: name(t)})
	c, err := controller.New(testContext(t), planFor(t, "ecmp", topology), target, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustDeploy(t, c)
	hosts := openHosts(t, target, topology)
	rows := []string{"state\tpings"}
	look := func(state string) {
		rows = append(rows, fmt.Sprintf("%s\t%s", state, reached(hosts)))
	}
	look("whole")
	links, err := topology.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	if err := target.SetLinks(topology.Fail(links...)); err != nil {
		t.Fatal(err)
	}
	look("l1-s1 fails")
	if err := c.SetPlan(testContext(t), planFor(t, "ecmp", topology.Fail(links...))); err != nil {
		t.Fatal(err)
	}
	mustDeploy(t, c)
	look("l1-s1 is planned around")
	if err := c.SetPlan(testContext(t), planFor(t, "ecmp", topology)); err != nil {
		t.Fatal(err)
	}
	mustDeploy(t, c)
	look("l1-s1 is back")

	back := make(chan report.Switch, 10)
	go c.Keep(testContext(t), func(r report.Switch) { back <- r })
	for _, sw := range []string{"s2", "l1"} {
		if err := target.Stop(sw); err != nil {
			t.Fatal(err)
		}
		look(sw + " is killed")
		if err := target.Restart(testContext(t), sw); err != nil {
			t.Fatal(err)
		}
		awaitVerified(t, back, sw)
		look(sw + " is back")
	}
	compareOracle(t, faultsFile, rows)
}

// reached counts the pairs of hosts that reach each other.
func reached(hosts []*host) string {
	pairs, pings := 0, 0
	for _, from := range hosts {
		for _, to := range hosts {
			if from == to {
				continue
			}
			if pairs++; from.ping(to) {
				pings++
			}
		}
	}
	return fmt.Sprintf("%d/%d", pings, pairs)
}
