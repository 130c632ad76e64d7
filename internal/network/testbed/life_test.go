//go:build linux

package testbed_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/testbed"
)

// leftovers are the namespaces of a deployment.
func leftovers(t *testing.T, name string) []string {
	t.Helper()
	list, err := filepath.Glob("/run/netns/p4lb-" + strings.ToLower(name) + "-*")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func deployOn(t *testing.T, target target.Target, p *plan.Plan) *report.Report {
	t.Helper()
	c, err := controller.New(testContext(t), p, target, controller.DeployOptions{Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return mustDeploy(t, c)
}

// TestKeep keeps a network and takes it over: the switches are the same, and nothing is
// written to them, not even rates of queues.
func TestKeep(t *testing.T) {
	needSwitch(t)
	p := planFor(t, "qall-poly3", leafSpine(t))
	first := testbed.New(testbed.Options{Name: name(t), Keep: true})
	r := deployOn(t, first, p)
	if r.Written() == 0 {
		t.Error("nothing was written to new switches")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	// Another plan of the same network: links may have failed meanwhile.
	second := newTarget(t, testbed.Options{Name: name(t)})
	for _, s := range deployOn(t, second, p).Switches {
		if s.Written != 0 || s.Pushed {
			t.Errorf("%s: %d changes, pushed %v: %v", s.Name, s.Written, s.Pushed, s.Changes)
		}
	}
	hosts := openHosts(t, second, p.Topology)
	if !hosts[0].ping(hosts[3]) {
		t.Error("the hosts do not reach each other")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, name(t)); len(left) > 0 {
		t.Errorf("closed without Keep, and left %v", left)
	}
	if files, _ := filepath.Glob(filepath.Join(testbed.RunDir, strings.ToLower(name(t))+"*")); len(files) > 0 {
		t.Errorf("closed without Keep, and left %v", files)
	}
}

// TestRemove removes a kept network.
func TestRemove(t *testing.T) {
	needSwitch(t)
	target := testbed.New(testbed.Options{Name: name(t), Keep: true})
	deployOn(t, target, planFor(t, "ecmp", leafSpine(t)))
	var busy *plan.Error
	if _, err := testbed.Remove(name(t)); !errors.Is(err, testbed.ErrBusy) || !errors.As(err, &busy) || busy.Hint == "" {
		t.Errorf("removing what a process holds: %v", err)
	}
	other := testbed.New(testbed.Options{Name: name(t)})
	if err := other.Start(testContext(t), planFor(t, "ecmp", leafSpine(t))); !errors.Is(err, testbed.ErrBusy) {
		t.Errorf("starting what a process holds: %v", err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		if ok, err := testbed.Remove(name(t)); err != nil || ok != want {
			t.Errorf("removal %d: %v, %v", i, ok, err)
		}
	}
	if left := leftovers(t, name(t)); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestOtherTopology: another network of the same name replaces a kept one.
func TestOtherTopology(t *testing.T) {
	needSwitch(t)
	target := testbed.New(testbed.Options{Name: name(t), Keep: true})
	deployOn(t, target, planFor(t, "ecmp", leafSpine(t)))
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
	small, err := fabric.LeafSpine{Name: "small", Leaves: 2, Spines: 1, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	second := newTarget(t, testbed.Options{Name: name(t)})
	deployOn(t, second, planFor(t, "ecmp", small))
	if got := len(leftovers(t, name(t))); got != 5 {
		t.Errorf("%d namespaces, want 5", got)
	}
	hosts := openHosts(t, second, small)
	if !hosts[0].ping(hosts[1]) {
		t.Error("the hosts do not reach each other")
	}
	if err := second.Start(testContext(t), planFor(t, "ecmp", leafSpine(t))); err == nil {
		t.Error("started another network on switches that run")
	}
}

// crashEnv has the name that TestVictim deploys under.
const crashEnv = "P4LB_TEST_CRASH"

// TestVictim is the process that TestCrash kills: it starts a network, reports it, and
// waits.
func TestVictim(t *testing.T) {
	name := os.Getenv(crashEnv)
	if name == "" {
		t.Skip("only for TestCrash")
	}
	target := newTarget(t, testbed.Options{Name: name})
	deployOn(t, target, planFor(t, "ecmp", leafSpine(t)))
	fmt.Println("up")
	<-t.Context().Done()
}

// TestCrash kills a process that has a network up: its switches die with it,
// and the next run removes the rest.
func TestCrash(t *testing.T) {
	needSwitch(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(testContext(t), self, "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), crashEnv+"="+name(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	if n, err := out.Read(line); err != nil || string(line[:n]) != "up\n" {
		t.Fatalf("the process says %q, %v", line[:n], err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if len(leftovers(t, name(t))) == 0 {
		t.Error("killed, and yet nothing is left: this test tests nothing")
	}
	target := newTarget(t, testbed.Options{Name: name(t)})
	topology := leafSpine(t)
	r := deployOn(t, target, planFor(t, "ecmp", topology))
	for _, s := range r.Switches {
		if !s.Pushed {
			t.Errorf("%s has outlived the process that it belonged to", s.Name)
		}
	}
	hosts := openHosts(t, target, topology)
	if !hosts[0].ping(hosts[3]) {
		t.Error("the hosts do not reach each other")
	}
}

// TestLostLink keeps a network and removes one of its links. The network is then
// rebuilt instead of taken over.
func TestLostLink(t *testing.T) {
	needSwitch(t)
	topology := leafSpine(t)
	first := testbed.New(testbed.Options{Name: name(t), Keep: true})
	deployOn(t, first, planFor(t, "ecmp", topology))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	shell := testbed.Shell(name(t), topology.Hosts[0].Name)
	if out, err := exec.Command(shell[0], append(shell[1:], "ip", "link", "delete", "eth0")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	second := newTarget(t, testbed.Options{Name: name(t)})
	deployOn(t, second, planFor(t, "ecmp", topology))
	hosts := openHosts(t, second, topology)
	if !hosts[0].ping(hosts[3]) {
		t.Error("the hosts do not reach each other")
	}
}

// TestRestart kills switches and starts them again, empty, while a controller runs.
func TestRestart(t *testing.T) {
	needSwitch(t)
	topology := leafSpine(t)
	target := newTarget(t, testbed.Options{Name: name(t)})
	c, err := controller.New(testContext(t), planFor(t, "letflow", topology), target, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustDeploy(t, c)
	hosts := openHosts(t, target, topology)
	back := make(chan report.Switch, 10)
	go c.Keep(testContext(t), func(r report.Switch) { back <- r })
	for _, name := range []string{"l1", "s2"} {
		if err := target.Stop(name); err != nil {
			t.Fatal(err)
		}
		if name == "l1" && hosts[0].ping(hosts[1]) {
			t.Error("a switch forwards although it was stopped")
		}
		if err := target.Restart(testContext(t), name); err != nil {
			t.Fatal(err)
		}
		awaitVerified(t, back, name)
		for _, to := range hosts[1:] {
			if !hosts[0].ping(to) {
				t.Errorf("%s restarted: %s is not reached", name, to.Name)
			}
		}
	}
}

func awaitVerified(t *testing.T, back <-chan report.Switch, name string) {
	t.Helper()
	ctx := testContext(t)
	for {
		select {
		case r := <-back:
			if r.Name == name && r.Verified {
				if !r.Pushed || r.Written == 0 {
					t.Errorf("%s was empty, and got %d changes", name, r.Written)
				}
				return
			}
		case <-ctx.Done():
			t.Fatalf("%s does not come back", name)
		}
	}
}

// TestAttach deploys to switches of another target, at addresses that a topology can
// name.
func TestAttach(t *testing.T) {
	needSwitch(t)
	topology := leafSpine(t)
	owner := newTarget(t, testbed.Options{Name: name(t)})
	if err := owner.Start(testContext(t), planFor(t, "wcmp", topology)); err != nil {
		t.Fatal(err)
	}
	text := string(topology.YAML())
	for _, s := range topology.Switches {
		e, err := owner.Endpoint(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, "grpc: "+s.GRPC+", thrift: "+s.Thrift, "grpc: "+e.Address+", thrift: "+e.Thrift, 1)
	}
	placed, err := fabric.Load("placed.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	target := target.AttachBMv2(target.ServersOptions{})
	defer target.Close()
	p := planFor(t, "wcmp", placed)
	if deployOn(t, target, p).Written() == 0 {
		t.Error("nothing was written to new switches")
	}
	if n := deployOn(t, target, p).Written(); n != 0 {
		t.Errorf("the second deploy writes %d changes", n)
	}
	hosts := openHosts(t, owner, topology)
	if !hosts[0].ping(hosts[3]) {
		t.Error("the hosts do not reach each other")
	}
}

// TestRegisters reaches the registers and the clock of a switch.
func TestRegisters(t *testing.T) {
	needSwitch(t)
	topology := leafSpine(t)
	target := newTarget(t, testbed.Options{Name: name(t)})
	deployOn(t, target, planFor(t, "letflow", topology))
	e, err := target.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	if now, err := e.Registers.Clock(ctx); err != nil || now <= 0 {
		t.Errorf("clock %v, %v", now, err)
	}
	used := func() (n int) {
		cells, err := e.Registers.Read(ctx, "fl_port", 0, 65536, nil)
		if err != nil || len(cells) != 65536 {
			t.Fatalf("%d cells, %v", len(cells), err)
		}
		for _, v := range cells {
			if v != 0 {
				n++
			}
		}
		return n
	}
	if n := used(); n != 0 {
		t.Errorf("%d flows before any packet", n)
	}
	hosts := openHosts(t, target, topology)
	if !hosts[0].ping(hosts[3]) {
		t.Fatal("the hosts do not reach each other")
	}
	if n := used(); n == 0 {
		t.Error("a ping is no flow")
	}
	if err := e.Registers.Write(ctx, "fl_port", 10, 20, 7); err != nil {
		t.Error(err)
	}
	got, err := e.Registers.Read(ctx, "fl_port", 10, 12, []uint64{1})
	if err != nil || fmt.Sprint(got) != "[1 7 7]" {
		t.Errorf("read %v, %v", got, err)
	}
	for _, bad := range []struct {
		name     string
		from, to int
	}{{"none", 0, 1}, {"none", 0, 100}, {"fl_port", 0, 65537}, {"fl_port", 65536, 65537}} {
		if _, err := e.Registers.Read(ctx, bad.name, bad.from, bad.to, nil); err == nil {
			t.Errorf("read cells %d to %d of %s", bad.from, bad.to, bad.name)
		}
	}
}

// TestRates: the rates of queues match the links of the topology.
func TestRates(t *testing.T) {
	needSwitch(t)
	topology, err := fabric.LeafSpine{
		Name: "slow", Spines: 1, Hosts: 1, Links: fabric.Links{HostRate: 4 * fabric.Mbps, Rate: 100 * fabric.Mbps},
	}.Make()
	if err != nil {
		t.Fatal(err)
	}
	target := newTarget(t, testbed.Options{Name: name(t)})
	deployOn(t, target, planFor(t, "ecmp", topology))
	hosts := openHosts(t, target, topology)
	const size = 300_000
	begin := time.Now()
	if err := hosts[0].transfer(t.Context(), hosts[1], size); err != nil {
		t.Fatal(err)
	}
	least := time.Duration(size * 8 / 4e6 * float64(time.Second))
	if took := time.Since(begin); took < least*8/10 {
		t.Errorf("%d bytes over a link of 4 Mbps took %v, less than %v", size, took, least)
	}
}
