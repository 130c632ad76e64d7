package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/netspace"
)

// An upVerb is a verb that runs in the background.
type upVerb struct {
	out  *upLog       // output and errors
	end  func() error // interrupts the verb, and returns its error
	wait func() error // waits until the verb ends
}

// inFolder changes to a new folder with files, and separates the test's deployments from others.
func inFolder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// start runs a verb in the current folder, until it has printed text a number of times. The
// verb ends with the test at the latest.
func start(t *testing.T, verb func(*cli.Console) *cobra.Command, args, text string, times int) *upVerb {
	t.Helper()
	u := &upVerb{out: newUpLog()}
	line := strings.Fields(args)
	c := cli.New(t.Context(), line, strings.NewReader(""), u.out, u.out)
	c.SetUp()
	cmd := verb(c)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(line)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- errors.Join(cmd.ExecuteContext(ctx), c.Out.Flush())
		u.out.close()
	}()
	u.wait = func() error {
		err := <-ended
		ended <- err
		return err
	}
	u.end = func() error {
		cancel()
		return u.wait()
	}
	t.Cleanup(func() {
		if err := u.end(); err != nil {
			t.Errorf("%s %s: %v\n%s", cmd.Name(), args, err, u.out)
		}
	})
	if !u.out.await(text, times) {
		t.Fatalf("%s %s: %v\n%s", cmd.Name(), args, u.wait(), u.out)
	}
	return u
}

// deployHere deploys a network that stays.
func deployHere(t *testing.T, args string) *upVerb {
	t.Helper()
	return start(t, NewDeploy, args, "until Ctrl-C", 1)
}

// printed checks that the verb has printed texts.
func (u *upVerb) printed(t *testing.T, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if text := u.out.String(); !strings.Contains(text, p) {
			t.Errorf("no %q:\n%s", p, text)
		}
	}
}

// Verbs run commands on the hosts of a network and send flows between them, with TCP and
// with RoCEv2.
func TestHostsOfNetwork(t *testing.T) {
	if !hosts.Capable() {
		t.Skip("network namespaces want root, or a user namespace around the test")
	}
	inFolder(t, map[string]string{"net.yaml": square, "list.txt": "h1 h2 10000 0\nh2 h1 3000 0.01\n"})
	u := deployHere(t, "--scheme ecmp --topology net.yaml --any-port --pcap captures")
	u.printed(t, "packets pass between 2 of 2 pairs of hosts\n", "2 hosts; a command on h1: p4lb exec h1 -- ping 10.0.2.1\n")
	for _, test := range []struct {
		args string
		code int
		want string // in the error
	}{
		{"h1 -- true", 0, ""},
		{"h1 true", 0, ""},
		{"h1 -- false", 1, ""},
		{"h2 -- sh -c exit${IFS}3", 3, ""},
		{"h1 -- no-such-program", 127, "on host h1: "},
	} {
		_, code, err := try(t, NewExec, strings.Fields(test.args)...)
		if (err == nil) != (test.code == 0) || code != test.code || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("exec %s: %v with exit code %d, want %q with %d", test.args, err, code, test.want, test.code)
		}
	}
	for _, args := range []string{"", "--rdma"} {
		dir := filepath.Join(t.TempDir(), "flows")
		out, _, err := try(t, NewTraffic, strings.Fields("--flows list.txt --metrics unfinished,fct-mean --format csv -o "+dir+" "+args)...)
		if err != nil || !strings.Contains(out, "METRIC,VALUE,UNIT,ABOUT\nunfinished,0,%,") || !strings.Contains(out, "\nfct-mean,") {
			t.Errorf("traffic %s: %v\n%s", args, err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "flows-1.csv"))
		if err != nil || !strings.Contains(string(text), "h1,h2,10000,") || !strings.Contains(string(text), "h2,h1,3000,") {
			t.Errorf("traffic %s: the flows are %s, %v", args, text, err)
		}
	}
	if _, _, err := try(t, NewTraffic, "--flows", "list.txt", "-o", "list.txt/flows"); err == nil || !strings.HasPrefix(err.Error(), "making list.txt/flows: ") {
		t.Errorf("traffic with a folder below a file: %v", err)
	}
	out, _, err := try(t, NewTraffic, strings.Fields("--seeds 2 --duration 20ms --cut 20KB --load 0.02 --to h2 --metrics unfinished,retransmitted --format json")...)
	if err != nil || strings.Count(out, `"runs": 2`) != 2 || strings.Count(out, `"half_interval": `) != 2 {
		t.Errorf("traffic with two seeds: %v\n%s", err, out)
	}
}

// The end of a deployment reports errors of its hosts.
func TestEndOfHosts(t *testing.T) {
	if !hosts.Capable() {
		t.Skip("network namespaces want root, or a user namespace around the test")
	}
	for _, ended := range []bool{false, true} {
		c, _, _ := console(t)
		f := hostFlags{wanted: true, given: true}
		if err := f.open(c, &plan.Plan{Topology: load(t)}, netspace.Known(0)); err != nil {
			t.Fatal(err)
		}
		if ended {
			if err := f.network.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.close(); (err != nil) != ended {
			t.Errorf("the hosts have ended before: %v; error %v", ended, err)
		}
	}
}

// project returns the files of a project that the script for --p4app uses, too.
func project(t *testing.T) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile("../../testdata/script/p4app.txt")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range a.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

// A project runs with its entries and settings. Its switches are read like others, with
// tables and counters, but cannot be restarted, or deployed to.
func TestProject(t *testing.T) {
	inFolder(t, project(t))
	u := deployHere(t, "--p4app topology.json --any-port --hosts=false --topology-json graph.json")
	u.printed(t, "SWITCH  PROGRAM    ENTRIES\ns1      router.p4  2\ns2      router.p4  5\n", "the project is up, until Ctrl-C")
	if text, err := os.ReadFile("graph.json"); err != nil || !strings.Contains(string(text), `"s2"`) {
		t.Errorf("the graph is %s, %v", text, err)
	}
	out, _, err := try(t, NewInspect)
	for _, want := range []string{"s1      Forward.route  2 of 64", "s2      Forward.route  2 of 64", "s2      cell 2  7\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("inspect: %v, want %q in\n%s", err, want, out)
		}
	}
	if strings.Contains(out, "wide") || strings.Contains(out, "no traffic") {
		t.Errorf("inspect prints a register with cells of 80 bits, or idle switches:\n%s", out)
	}
	if out, _, err := try(t, NewInspect, "s2", "--register", "Forward.mark"); err != nil || strings.Contains(out, "Forward.route") || !strings.Contains(out, "7") {
		t.Errorf("inspect --register: %v\n%s", err, out)
	}
	state := ""
	if err := findState(&state); err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[string]int{"switch restart s1": cli.ExitInput, "deploy --p4app topology.json --any-port --hosts=false": cli.ExitRefused} {
		c := cli.New(t.Context(), strings.Fields(verb), strings.NewReader(""), u.out, u.out)
		if f, ok := errors.AsType[*cli.Failure](ask(t.Context(), c, state)); !ok || f.Code != want {
			t.Errorf("%s: %v, want exit code %d", verb, f, want)
		}
	}
}

// A mistake in a project is reported with its file and line, and nothing stays.
func TestProjectMistakes(t *testing.T) {
	files := project(t)
	files["wrong.json"] = strings.Replace(files["topology.json"], "s2-commands.txt", "wrong.txt", 1)
	files["none.json"] = strings.Replace(files["topology.json"], "s2-commands.txt", "none.txt", 1)
	inFolder(t, files)
	for args, want := range map[string]string{
		"wrong.json":                               "wrong.txt:7: there is no table rout; did you mean Forward.route?",
		"none.json":                                "none.txt",
		"nowhere.json":                             "reading nowhere.json: no such file or directory",
		"topology.json --program s9=router.p4":     "topology.json: no switch s9 to run router.p4",
		"topology.json --program s2=none.p4":       "none.p4",
		"topology.json --topology-json none/graph": "none/graph",
		"topology.json --pcap router.p4":           "router.p4",
	} {
		out, _, err := try(t, NewDeploy, strings.Fields("--any-port --hosts=false --p4app "+args)...)
		if err == nil || !strings.Contains(out+err.Error(), want) {
			t.Errorf("%s: %v, want %q\n%s", args, err, want, out)
		}
	}
	states, err := deployed.States()
	if err != nil || len(states) > 0 {
		t.Errorf("states %q, %v", states, err)
	}
}

// oneLeaf is a network without pairs of leaves.
const oneLeaf = `
name: one
switches: {l1: {role: leaf}}
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.1.2/24}}
links: [{ends: [h1, l1], rate: 1G}, {ends: [h2, l1], rate: 1G}]
`

// deploy --once brings a network up, checks it, prints the result and leaves nothing. Plans
// and differences are printed without a deployment.
func TestDeployOnce(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	inFolder(t, map[string]string{
		"net.yaml": square, "one.yaml": oneLeaf, "role.yaml": "scheme: ecmp\nrole: leaf\n", "all.yaml": "all: true\n",
		"broken.yaml": strings.Replace(square, "s1: {role: spine}", "s1: {role: spine, grpc: here}", 1),
		"taken.yaml":  strings.Replace(square, "s1: {role: spine}", fmt.Sprintf("s1: {role: spine, grpc: %q}", taken.Addr()), 1),
		"far.yaml":    strings.Replace(square, "s1: {role: spine}", "s1: {role: spine, grpc: '127.0.0.1:1'}", 1),
	})
	passes := "; packets pass between 2 of 2 pairs of hosts\n"
	for _, test := range []struct {
		args string
		code int
		want []string
		not  string
	}{
		{"--scheme hula --topology net.yaml --any-port --once", 0, []string{"4 switches verified in ", passes, "running tasks"}, "BfRt"},
		{"--scheme ecmp --topology one.yaml --any-port --once", 0, []string{"1 switches verified in ", " changes written\n", "no switch has more than one path"}, "pairs"},
		{"--scheme ecmp --topology net.yaml --any-port --once", 0, []string{passes}, "no switch has more than one path"},
		{"--scheme hula --arch tna --bfrt --topology net.yaml --any-port --once", 0, []string{passes, "BfRt carries no packets: what these tasks would send", "tasks=probe"}, ""},
		{"--scheme ecmp --arch t2na --topology net.yaml --any-port --once", 0, []string{passes, "the ports of the topology are front ports", "l1:1 is device port 8"}, "BfRt"},
		{"--scheme ecmp --topology net.yaml --any-port --diff", 0, []string{"ecmp for the role spine"}, "verified"},
		{"--scheme ecmp --topology net.yaml --any-port --diff -o json", 0, []string{`"verified": false`}, "SWITCH"},
		{"--scheme ecmp --topology net.yaml --ipv6 --dry-run", 0, []string{"fd00::"}, "10.0.1.0"},
		{"--scheme wcmp --topology net.yaml --fail l1-s1 --dry-run", 0, []string{"l1"}, "error"},
		{"--scheme ecmp --topology net.yaml --fail l1-l9 --dry-run", cli.ExitInput, []string{"l9"}, ""},
		{"--scheme ecmp --topology none.yaml --dry-run", cli.ExitInput, []string{"none.yaml"}, ""},
		{"--scheme ecmp --topology broken.yaml --dry-run", cli.ExitInput, []string{"broken.yaml:6: switch s1: grpc"}, ""},
		{"--scheme hula --topology net.yaml --set cpu=3 --dry-run", cli.ExitInput, []string{"port 3 has a link and is also the controller's port"}, ""},
		{"--scheme ecmp --topology net.yaml --set nothing=3 --dry-run", cli.ExitInput, []string{"nothing"}, ""},
		{"--scheme ./none --topology net.yaml --dry-run", cli.ExitInput, []string{"./none"}, ""},
		{"-f role.yaml --topology net.yaml --dry-run", cli.ExitUsage, []string{"role and ports follow from the topology: leave them out of role.yaml"}, ""},
		{"-f all.yaml --topology net.yaml --dry-run", cli.ExitUsage, []string{"deploy is for one scheme, not for all"}, ""},
		{"--scheme ecmp --arch dpdk --topology net.yaml", cli.ExitUsage, []string{"--arch dpdk: want v1model, tna, t2na"}, ""},
		{"--scheme ecmp --topology net.yaml --topology-json none/graph --once", cli.ExitInput, []string{"none/graph"}, ""},
		{"--scheme ecmp --topology net.yaml --listen 192.0.2.1:1 --any-port --hosts=false --listen-token x", cli.ExitRefused, []string{"192.0.2.1:1"}, ""},
		{"--scheme ecmp --topology taken.yaml --hosts=false", cli.ExitRefused, []string{"the addresses of the topology are in use: ", taken.Addr().String() + " (s1)"}, ""},
		{"--scheme ecmp --topology far.yaml --target p4runtime --once --timeout 100ms", cli.ExitRefused, []string{"kept", "failed", "s1: cannot be reached at 127.0.0.1:1: connection refused"}, "verified"},
		{"--target bmv2 --remove --topology none.yaml", cli.ExitInput, []string{"none.yaml"}, ""},
	} {
		out, code, err := try(t, NewDeploy, strings.Fields(test.args)...)
		if err != nil {
			out += err.Error()
			code = max(code, cli.ExitInput)
		}
		if code != test.code || test.not != "" && strings.Contains(out, test.not) {
			t.Errorf("deploy %s: exit code %d, want %d without %q:\n%s", test.args, code, test.code, test.not, out)
		}
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("deploy %s: no %q in\n%s", test.args, want, out)
			}
		}
	}
	states, err := deployed.States()
	if err != nil || len(states) > 0 {
		t.Errorf("states %q, %v", states, err)
	}
}

// serve starts the switches of net.yaml without a controller. The topology names their
// addresses then.
func serve(t *testing.T) (*embedded.Target, *plan.Plan) {
	t.Helper()
	j, _ := parsed(t, "--scheme letflow --topology net.yaml")
	p, err := j.plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := embedded.New(embedded.Options{AnyPort: true, Log: j.c.Log})
	t.Cleanup(func() { s.Close() })
	if err := s.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	text := square
	for _, sw := range p.Switches {
		e, err := s.Endpoint(sw.Name)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, sw.Name+": {role", fmt.Sprintf("%s: {grpc: %q, thrift: %q, role", sw.Name, e.Address, e.Thrift), 1)
	}
	if err := os.WriteFile("net.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, p
}

// Switches of other processes are deployed to by their addresses, and stay. Only one
// controller writes to them: others are refused, wait, or take over.
func TestDeployToServers(t *testing.T) {
	inFolder(t, map[string]string{"net.yaml": square})
	serve(t)
	const args = "--scheme letflow --topology net.yaml --target p4runtime "
	deploy := func(more string, code int, want ...string) {
		t.Helper()
		out, got, err := try(t, NewDeploy, strings.Fields(args+more)...)
		if err != nil {
			out += err.Error()
			got = max(got, cli.ExitInput)
		}
		if f, ok := errors.AsType[*cli.Failure](err); ok {
			out += f.Hint
		}
		if got != code {
			t.Errorf("deploy %s: exit code %d, want %d:\n%s", more, got, code, out)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("deploy %s: no %q in\n%s", more, w, out)
			}
		}
	}
	deploy("--once", 0, "4 switches verified in ", "pushed")
	deploy("--once", 0, "4 switches verified in ", ", 0 changes written\n")
	deploy("--diff", 0, "nothing differs\n")
	deploy("--diff --fail l1-s1", 0, "delete")
	if out, _, err := try(t, NewPs); err != nil || !strings.Contains(out, "unattended") {
		t.Errorf("ps: %v\n%s", err, out)
	}
	if out, _, err := try(t, NewInspect, "l1", "--no-flows"); err != nil || !strings.HasPrefix(out, "letflow keeps nothing in registers") {
		t.Errorf("inspect: %v\n%s", err, out)
	}
	if _, _, err := try(t, NewDown); err == nil || err.Error() != "the switches of target p4runtime are not p4lb's to end" {
		t.Errorf("down: %v", err)
	}
	if _, _, err := try(t, NewTraffic); err == nil || err.Error() != "the deployment on target p4runtime has no hosts of p4lb's" {
		t.Errorf("traffic: %v", err)
	}
	first := deployHere(t, args+"--no-tasks")
	other := "--once --state " + filepath.Join(t.TempDir(), "other.json") + " "
	deploy(other, cli.ExitRefused, "another controller is primary", "--backup waits until the other disconnects")
	waits := start(t, NewDeploy, args+other+"--backup", "another controller is primary: waiting until it disconnects", 4)
	if err := first.end(); err != nil {
		t.Error(err)
	}
	if err := waits.wait(); err != nil {
		t.Error(err)
	}
	waits.printed(t, "4 switches verified in ")
	second := deployHere(t, args+"--no-tasks")
	deploy(other+"--takeover", 0, "4 switches verified in ")
	if err := second.end(); err != nil {
		t.Error(err)
	}
	second.printed(t, "another controller has taken over; this one leaves it the switch")
}

// ownFile makes this test a process that owns the deployment with the state of that name.
const ownFile = "P4LB_TEST_OWN"

func TestMain(m *testing.M) {
	if state := os.Getenv(ownFile); state != "" {
		_, err := deployed.Own(state)
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ownElsewhere makes another process the owner of this folder's deployment, until end is called.
func ownElsewhere(t *testing.T) (state string, end func()) {
	t.Helper()
	if err := findState(&state); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownFile+"="+state)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { in.Close(); cmd.Wait() })
	t.Cleanup(end)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatalf("the other process: %q, %v", line, err)
	}
	return state, end
}

// A verb about a running network passes its command line to the process that runs it, and
// ends with its exit code.
func TestHandOver(t *testing.T) {
	inFolder(t, map[string]string{"net.yaml": square})
	state, _ := ownElsewhere(t)
	asked := make(chan []string, 1)
	var code atomic.Int32
	door, err := hosts.Serve(nil, func(_ context.Context, call hosts.Call) int {
		asked <- call.Args
		return int(code.Load())
	})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	write := func(control string) {
		t.Helper()
		d := deployed.New(&plan.Plan{Topology: load(t)}, &linkTarget{})
		d.Control, d.Kept = control, true
		if err := d.Write(state); err != nil {
			t.Fatal(err)
		}
	}
	write(door.Address)
	const deploy = "--scheme ecmp --topology net.yaml --any-port"
	for args, verb := range map[string]func(*cli.Console) *cobra.Command{
		deploy: NewDeploy, deploy + " --diff": NewDeploy, deploy + " --detach": NewDeploy, "h1 h2": NewPing, "l1": NewRestart, "down l1-s1": NewLink,
	} {
		for want := range 4 {
			code.Store(int32(want))
			_, got, err := try(t, verb, strings.Fields(args)...)
			if call := strings.Join(<-asked, " "); call != args || got != want || (err == nil) != (want == 0) {
				t.Errorf("%s: the other process gets %q and ends with %d; exit code %d, %v", args, call, want, got, err)
			}
		}
	}
	out, _, err := try(t, NewDeploy, strings.Fields(deploy+" --dry-run")...)
	if err != nil || len(asked) > 0 || !strings.Contains(out, "ecmp for the role leaf") {
		t.Errorf("a dry run: %v, %d requests\n%s", err, len(asked), out)
	}
	if out, _, err := try(t, NewPs); err != nil || !strings.Contains(out, "running") {
		t.Errorf("ps: %v\n%s", err, out)
	}
	write("") // as on systems without such sockets
	if _, _, err := try(t, NewPing, "h1", "h2"); err == nil || err.Error() != "a process already runs the network, and cannot receive requests on this system" {
		t.Errorf("without a socket: %v", err)
	}
}

// A verb waits for a network that another process brings up, and deploy for one that is
// ending; both give up after 10 seconds or an interrupt.
func TestHandOverWaits(t *testing.T) {
	inFolder(t, nil)
	state, end := ownElsewhere(t)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, _, _ := console(t)
		err := ask(t.Context(), c, state)
		if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitRefused || !strings.Contains(f.Error(), " has been bringing the network up for 10s") || time.Since(began).Round(time.Second) != bringUp {
			t.Errorf("a network that does not come up: %v after %v", err, time.Since(began))
		}
		if err := ask(interrupted, c, state); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
		d := deployed.New(&plan.Plan{Topology: load(t)}, &linkTarget{})
		d.Control = "@p4lb/nothing/here"
		if err := d.Write(state); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		j := &deployJob{c: c, state: state}
		handed, err := j.handOver(t.Context())
		if !handed || !errors.Is(err, hosts.ErrGone) || time.Since(began).Round(time.Second) != bringUp {
			t.Errorf("a network that does not end: handed over %v, %v after %v", handed, err, time.Since(began))
		}
		if handed, err := j.own(interrupted); !handed || !errors.Is(err, context.Canceled) || j.lock != nil {
			t.Errorf("interrupted: handed over %v, %v", handed, err)
		}
		end()
		if handed, err := j.handOver(t.Context()); handed || err != nil {
			t.Errorf("after the end of the other process: handed over %v, %v", handed, err)
		}
		if err := ask(t.Context(), c, state); !errors.Is(err, errNoOwner) {
			t.Errorf("after the end of the other process: %v", err)
		}
	})
}

// inspect records rounds and plays them, prints them as they come, adds tables and counters,
// and serves metrics.
func TestInspectAgain(t *testing.T) {
	inFolder(t, map[string]string{"net.yaml": square})
	deployHere(t, "--scheme qall-poly3 --topology net.yaml --any-port --hosts=false --no-tasks")
	inspect := func(args string) string {
		t.Helper()
		out, _, err := try(t, NewInspect, strings.Fields(args)...)
		if err != nil {
			t.Errorf("inspect %s: %v\n%s", args, err, out)
		}
		return out
	}
	const round = "switch,clock_us,"
	for _, file := range []string{"x.csv", "x.parquet"} {
		if err := start(t, NewInspect, "--watch -o csv --no-flows --every 1ms --record "+file, round, 3).end(); err != nil {
			t.Error(err)
		}
		out := inspect("--replay " + file + " l2 -o csv")
		if n := strings.Count(out, round); n != 1 || !strings.Contains(out, "\nl2,") || strings.Contains(out, "\nl1,") {
			t.Errorf("replay of %s prints %d rounds:\n%.300s", file, n, out)
		}
		if n := strings.Count(inspect("--replay "+file+" --watch -o csv"), round); n < 3 {
			t.Errorf("replay --watch of %s prints %d rounds", file, n)
		}
	}
	if out := inspect("l1 --contents --no-flows"); !strings.Contains(out, "TABLE") || !strings.Contains(out, "LbIngress.") {
		t.Errorf("--contents:\n%s", out)
	}
	if out := inspect("l1 --no-flows"); strings.Contains(out, "TABLE") {
		t.Errorf("without --contents:\n%s", out)
	}
	for args, want := range map[string]string{
		"--replay none.csv":    "reading none.csv: no such file or directory",
		"--replay net.yaml":    "net.yaml:1: no column time_us",
		"--replay .":           "reading .: ",
		"--register nothing":   "nothing",
		"l9":                   `there is no switch "l9"`,
		"--record none/x.csv":  "none/x.csv",
		"--listen 192.0.2.1:1": "anyone could connect from other machines",
		"--state net.yaml":     "reading the state: net.yaml",
		"--replay x.csv --watch --listen 192.0.2.1:1 --remote-plaintext": "serving metrics at 192.0.2.1:1",
	} {
		if _, _, err := try(t, NewInspect, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("inspect %s: %v, want %q", args, err, want)
		}
	}
	u := start(t, NewInspect, "--listen 127.0.0.1:0 --watch -o csv --no-flows --every 1h", round, 1)
	r, err := http.Get(regexp.MustCompile(`http://[^/]*/metrics`).FindString(u.out.String()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	for _, want := range []string{`switch="l1"`, `switch="s2"`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %s in the metrics: %v\n%.500s", want, err, text)
		}
	}
}
