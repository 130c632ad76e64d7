package network

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/network/hosts"
)

// A running network is one that this process deploys and keeps.
type running struct {
	t     *testing.T
	k     *keeper
	state string
	dir   string
	log   *upLog
}

// square is a network of two leaves with two hosts and two spines.
const square = `
name: square
switches:
  l1: {role: leaf}
  l2: {role: leaf}
  s1: {role: spine}
  s2: {role: spine}
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.2.1/24}}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l2], rate: 1G}
  - {ends: [l1, s1], rate: 1G}
  - {ends: [l1, s2], rate: 1G}
  - {ends: [l2, s1], rate: 1G}
  - {ends: [l2, s2], rate: 1G}
`

// An upLog keeps a log. await waits for texts in it.
type upLog struct {
	mu    sync.Mutex
	grown sync.Cond // more text, or the end
	text  bytes.Buffer
	ended bool
}

func newUpLog() *upLog {
	l := &upLog{}
	l.grown.L = &l.mu
	return l
}

// await waits until the log contains text a number of times. It reports whether the log
// does; otherwise the log has ended.
func (l *upLog) await(text string, times int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.ended && bytes.Count(l.text.Bytes(), []byte(text)) < times {
		l.grown.Wait()
	}
	return bytes.Count(l.text.Bytes(), []byte(text)) >= times
}

// close ends the log.
func (l *upLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.grown.Broadcast()
}

func (l *upLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.grown.Broadcast()
	return l.text.Write(b)
}

func (l *upLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// deployNetwork deploys a network as p4lb deploy does, without hosts, and keeps it until the
// test ends.
func deployNetwork(t *testing.T, args string) *running {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	r := &running{t: t, dir: t.TempDir()}
	t.Chdir(r.dir)
	if err := os.WriteFile("net.yaml", []byte(square), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs := &bytes.Buffer{}, newUpLog()
	c := cli.New(t.Context(), nil, strings.NewReader(""), out, errs)
	c.SetUp()
	j := &deployJob{c: c}
	cmd := &cobra.Command{Use: "deploy"}
	j.addFlags(cmd)
	if err := cmd.ParseFlags(strings.Fields("--topology net.yaml --any-port --hosts=false --rates=false " + args)); err != nil {
		t.Fatal(err)
	}
	if err := j.check(cmd); err != nil {
		t.Fatal(err)
	}
	j.dir = r.dir
	if err := findState(&j.state); err != nil {
		t.Fatal(err)
	}
	r.state, r.log = j.state, errs
	ctx, end := context.WithCancel(t.Context())
	if handed, err := j.own(ctx); handed || err != nil {
		t.Fatal(handed, err)
	}
	p, err := j.plan(ctx)
	if err != nil {
		t.Fatal(err, errs)
	}
	to, err := j.openTarget(p)
	if err != nil {
		t.Fatal(err)
	}
	r.k = &keeper{c: c, job: j, target: to, plan: p}
	ended := make(chan error, 1)
	go func() {
		ended <- r.k.deploy(ctx)
		errs.close()
	}()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Errorf("the network ends with %v\n%s%s", err, out, errs)
		}
		to.Close()
		j.disown()
		if _, err := os.Stat(r.state); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the network leaves its state: %v", err)
		}
	})
	if !errs.await("keeping the switches", 1) {
		err := <-ended
		ended <- err
		t.Fatalf("the network does not come up: %v", err)
	}
	return r
}

// asks executes a command line in the network's process, as for another process.
func (r *running) asks(args ...string) (out, errs string, code int) {
	r.t.Helper()
	files := make([]*os.File, 3)
	for i := range files {
		var err error
		if files[i], err = os.CreateTemp(r.t.TempDir(), "stream"); err != nil {
			r.t.Fatal(err)
		}
		defer files[i].Close()
	}
	code = r.k.answer(r.t.Context(), hosts.Call{Args: args, Dir: r.dir, In: files[0], Out: files[1], Err: files[2]})
	text := func(f *os.File) string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			r.t.Fatal(err)
		}
		return string(b)
	}
	return text(files[1]), text(files[2]), code
}

// want executes a command line and compares the exit code and parts of the output.
func (r *running) want(line string, code int, parts ...string) (out string) {
	r.t.Helper()
	out, errs, got := r.asks(strings.Fields(line)...)
	if got != code {
		r.t.Errorf("%s: exit code %d, want %d\n%s%s", line, got, code, out, errs)
	}
	for _, p := range parts {
		if !strings.Contains(out+errs, p) {
			r.t.Errorf("%s: no %q in\n%s%s", line, p, out, errs)
		}
	}
	return out
}

// note returns the state that other processes read.
func (r *running) note() *deployed.Note {
	r.t.Helper()
	d, _, err := deployed.Read(r.state)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// Links of a running network go down and come up, with and without new routes, and change.
func TestLinksOfRunningNetwork(t *testing.T) {
	r := deployNetwork(t, "--scheme letflow")
	lost := func(what string, want bool) {
		t.Helper()
		_, errs, code := r.asks("ping", "h1", "h2", "--count", "1")
		if (code != 0) != want {
			t.Errorf("%s: ping ends with %d, want it to fail: %v\n%s", what, code, want, errs)
		}
	}
	lost("at first", false)
	r.want("link down l1-s1", 0, "link l1:2-s1:1: down", "4 switches verified, ", " changes written")
	lost("around a link that is down", false)
	r.want("link down s2-l1", 0, "down")
	lost("with no way", true)
	r.want("link up l1-s2", 0, "up", "4 switches verified")
	lost("with a way again", false)
	r.want("link up l1-s1", 0, "up")
	before := r.note()
	out := r.want("link down l1-s1 l1-s2 --no-reroute", 0, "down")
	if strings.Contains(out, "verified") || strings.Count(out, "down") != 2 {
		t.Errorf("without new routes:\n%s", out)
	}
	lost("with routes over links that are down", true)
	r.want("link up l1-s1 l1-s2 --no-reroute", 0, "up")
	lost("with the links again", false)
	if after := r.note(); after.Began != before.Began || after.Scheme != before.Scheme || after.Folder != r.dir || !after.Kept {
		t.Errorf("the state is %+v, was %+v", after, before)
	}
	r.want("link set l1-s1 --rate 10Mbps --delay 5ms --loss 1.5% --jitter 1ms", 0, "link l1:2-s1:1: up, 10Mbps, delay 5ms ± 1ms, loss 1.5 %")
	r.want("link set l1-s1 --delay 7ms", 0, "link l1:2-s1:1: up, 10Mbps, delay 7ms ± 1ms, loss 1.5 %")
	r.want("link set l1-s1 --loss 0 --jitter 0s", 0, "link l1:2-s1:1: up, 10Mbps, delay 7ms\n")
	r.want("link set l1-s1 --delay 0s", 0, "link l1:2-s1:1: up, 10Mbps, delay 0s")
	r.want("link down l1-x9", cli.ExitInput, "x9")
	r.want("link down l1-s1 l1-x9", cli.ExitInput, "x9")
	lost("after a mistake", false)
	r.want("link", cli.ExitUsage, "link needs a verb")
	r.want("link set l1-s1", cli.ExitUsage, "wants --rate")
	// A new deployment restores the links.
	r.want("link set l1-s1 --loss 100%", 0, "loss 100 %")
	r.want("deploy --scheme letflow --topology net.yaml --any-port --hosts=false --rates=false", 0, "4 switches verified")
	lost("deployed again", false)
	if len(r.k.links) != 0 {
		t.Errorf("links still changed: %+v", r.k.links)
	}
}

// Requests of other processes are executed, or refused with the reason and exit code 3.
func TestRequestsOfRunningNetwork(t *testing.T) {
	r := deployNetwork(t, "--scheme letflow")
	r.want("ping h1 h2 --count 2", 0, "h1", "h2")
	r.want("ping --all --count 1", 0, "h1 -> h2")
	r.want("ping --all -o csv", 0, "h1,h2,1,", "h2,h1,1,")
	r.want("ping h1 h2 -o csv", 0, "h1,h2,5,")
	r.want("ping h1 h9", cli.ExitInput, "there is no host h9")
	r.want("switch restart l1 s2", 0, "restarted l1, s2; 4 switches verified, ")
	r.want("ping h1 h2 --count 1", 0)
	r.want("switch restart x9", cli.ExitInput, `there is no switch "x9"`, "l1, l2, s1, s2")
	const same = "deploy --scheme ecmp --topology net.yaml --any-port --hosts=false --rates=false "
	r.want(same+"--diff", 0, "l1")
	if d := r.note(); d.Scheme != "letflow" {
		t.Errorf("after --diff the scheme is %s", d.Scheme)
	}
	r.want(same, 0, "4 switches verified")
	if d := r.note(); d.Scheme != "ecmp" {
		t.Errorf("the scheme is %s", d.Scheme)
	}
	r.want(same+"--diff", 0)
	for flags, why := range map[string]string{
		"--target p4runtime":   "has other switches than --target p4runtime",
		"--arch tna --bfrt":    "has other switches than --target embedded",
		"--listen 127.0.0.1:0": "--listen cannot begin now",
		"--pcap x":             "--pcap cannot begin now",
		"--takeover":           "it is the controller of the switches already",
		"--backup":             "it is the controller of the switches already",
	} {
		line := same + flags
		if strings.Contains(flags, "p4runtime") {
			line = "deploy --scheme ecmp --topology net.yaml " + flags
		}
		r.want(line, cli.ExitRefused, fmt.Sprintf("process %d runs this network: ", os.Getpid()), why, "p4lb down ends it")
	}
	r.want("deploy --scheme ecmp --topology net.yaml --any-port --hosts", cli.ExitRefused, "--hosts and --rates cannot change now")
	r.want("deploy --scheme ecmp --topology net.yaml --any-port --hosts=false --rates=true", cli.ExitRefused, "--hosts and --rates cannot change now")
	r.want("deploy --scheme nothing --topology net.yaml --any-port --hosts=false --rates=false", cli.ExitInput, "nothing")
	r.want("deploy", cli.ExitUsage, "deploy requires --scheme")
	r.want("dance", cli.ExitInput)
	if d := r.note(); d.Scheme != "ecmp" {
		t.Errorf("after refusals the scheme is %s", d.Scheme)
	}
}

// A ping of all pairs needs two hosts.
func TestPingOfOneHost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one.yaml")
	if err := os.WriteFile(file, []byte("name: one\nswitches: {l1: {role: leaf}}\nhosts: {h1: {ip: 10.0.1.1/24}}\nlinks: [{ends: [h1, l1], rate: 1G}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := deployNetwork(t, "--scheme ecmp --topology "+file)
	r.want("ping --all", cli.ExitInput, "the topology one has 1 hosts: want two")
}

// Verbs read a running network from its state: by the folder, or by the name of the file.
func TestVerbsOfRunningNetwork(t *testing.T) {
	r := deployNetwork(t, "--scheme qall-poly3")
	verb := func(make func(*cli.Console) *cobra.Command, args ...string) string {
		t.Helper()
		out, _, err := try(t, make, args...)
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		return out
	}
	for _, args := range [][]string{nil, {"--state", r.state}} {
		if len(args) > 0 {
			t.Chdir(t.TempDir())
		}
		if out := verb(NewHosts, args...); !strings.Contains(out, "10.0.1.1/24") || !strings.Contains(out, "l2") || strings.Count(out, "\n") != 3 {
			t.Errorf("hosts:\n%s", out)
		}
		var rows []map[string]any
		if err := json.Unmarshal([]byte(verb(NewHosts, append([]string{"-o", "json"}, args...)...)), &rows); err != nil || len(rows) != 2 || rows[1]["name"] != "h2" || rows[1]["address"] != "10.0.2.1/24" || rows[1]["switch"] != "l2" || rows[1]["port"] != 1.0 {
			t.Errorf("hosts in JSON: %v, %v", rows, err)
		}
		if out := verb(NewInspect, args...); !strings.Contains(out, "l1") {
			t.Errorf("inspect:\n%s", out)
		}
		if out := verb(NewInspect, append([]string{"l2", "-o", "json"}, args...)...); !strings.Contains(out, `"l2"`) || strings.Contains(out, `"switch": "l1"`) {
			t.Errorf("inspect of one switch:\n%.600s", out)
		}
		register := "fl_port"
		for _, x := range r.note().Manifests["leaf"].Registers {
			if x.Size > 3 && x.Width >= 8 {
				register = x.Name
			}
		}
		verb(NewRegister, append([]string{"write", "l1", register, "2", "0x2a"}, args...)...)
		if out := verb(NewRegister, append([]string{"read", "l1", register, "2"}, args...)...); !strings.Contains(out, "42") || !strings.Contains(out, "0x2a") {
			t.Errorf("register read:\n%s", out)
		}
		verb(NewRegister, append([]string{"write", "l1", register, "1-3", "7", "--yes"}, args...)...)
		var cells []cellView
		if err := json.Unmarshal([]byte(verb(NewRegister, append([]string{"read", "l1", register, "0-3", "-o", "json"}, args...)...)), &cells); err != nil || fmt.Sprint(cells) != "[{1 7} {2 7} {3 7}]" {
			t.Errorf("cells %v, %v", cells, err)
		}
		verb(NewRegister, append([]string{"write", "l1", register, "all", "0", "--yes"}, args...)...)
		if out := verb(NewRegister, append([]string{"read", "l1", register}, args...)...); !strings.HasPrefix(out, "all ") || !strings.HasSuffix(out, " cells are 0\n") {
			t.Errorf("register read:\n%s", out)
		}
		for line, want := range map[string]string{
			"read l9 " + register:                             `there is no switch "l9"`,
			"read l1 nothing":                                 `there is no register "nothing"`,
			"write l1 " + register + " 2 many":                `value "many" is not a number`,
			"write l1 " + register + " 2 0x1ffffffffffffffff": "is not a number",
			"write l1 " + register + " 0-1 5":                 "",
		} {
			if _, _, err := try(t, NewRegister, append(strings.Fields(line), args...)...); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("register %s: %v, want %s", line, err, want)
			}
		}
		for _, x := range r.note().Manifests["leaf"].Registers {
			if x.Width > 0 && x.Width < 64 {
				most := uint64(1)<<x.Width - 1
				verb(NewRegister, append([]string{"write", "l1", x.Name, "0", fmt.Sprint(most)}, args...)...)
				if _, _, err := try(t, NewRegister, append([]string{"write", "l1", x.Name, "0", fmt.Sprint(most + 1)}, args...)...); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("have %d bits", x.Width)) {
					t.Errorf("%s of %d bits takes %d: %v", x.Name, x.Width, most+1, err)
				}
				verb(NewRegister, append([]string{"write", "l1", x.Name, "0", "0"}, args...)...)
			}
		}
		file := filepath.Join(t.TempDir(), "x.csv")
		if out := verb(NewObserve, append([]string{"-o", file, "--for", "20ms", "--every", "1ms"}, args...)...); !strings.Contains(out, "no port has been reported: is there traffic?") {
			t.Errorf("observe without traffic:\n%s", out)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "switch") {
			t.Errorf("observations %q, %v", text, err)
		}
		out := verb(NewPs, "-o", "json")
		var list []deployment
		if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].PID != os.Getpid() || list[0].Status != "running" || list[0].State != r.state || list[0].Folder != r.dir || len(list[0].Switches) != 4 || list[0].Topology != "square" {
			t.Errorf("ps: %s, %v", out, err)
		}
		if _, code, err := try(t, NewExec, append(args, "h1", "--", "true")...); err == nil || code == 0 {
			t.Errorf("a command on a host that was not made: %d, %v", code, err)
		}
		if _, _, err := try(t, NewExec, append(args, "h9", "--", "true")...); err == nil || !strings.Contains(err.Error(), "there is no host h9") {
			t.Errorf("a command on no host: %v", err)
		}
		if _, _, err := try(t, NewDown, args...); err == nil || !strings.Contains(err.Error(), "this process runs the deployment") {
			t.Errorf("down: %v", err)
		}
	}
	// A dry run needs neither the network nor its lock.
	t.Chdir(r.dir)
	if out := verb(NewDeploy, "--scheme", "drill", "--topology", "net.yaml", "--dry-run"); !strings.Contains(out, "drill for the role leaf") {
		t.Errorf("a dry run:\n%.300s", out)
	}
}

// inside runs f in the goroutine that serves the network.
func (r *running) inside(f func(ctx context.Context)) {
	r.t.Helper()
	done := make(chan struct{})
	r.k.calls <- &call{do: f, done: done}
	<-done
}

// A network gets a longer period if a task is too slow, and the topology of its file on
// SIGHUP. A topology with a mistake changes nothing, and neither does one that is the same.
func TestAdaptAndReload(t *testing.T) {
	r := deployNetwork(t, "--scheme hula")
	period := func() string {
		t.Helper()
		for _, p := range r.note().Manifests["leaf"].Parameters {
			if p.Name == "tprobe" {
				return p.Text
			}
		}
		t.Fatal("hula has no tprobe")
		return ""
	}
	logged := func(parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(r.log.String(), p) {
				t.Errorf("the log has no %q:\n%s", p, r.log)
			}
		}
	}
	before := period()
	r.inside(func(ctx context.Context) {
		r.k.adapt(ctx, controller.Slowness{Task: "threshold", Period: 1, Lately: 3})
	})
	if period() != before {
		t.Errorf("a task without a parameter changes the period to %s", period())
	}
	if strings.Contains(r.log.String(), "deployed again with a longer period") {
		t.Error("deployed again without a longer period")
	}
	var slow chan<- controller.Slowness
	r.inside(func(context.Context) { slow = r.k.slow })
	slow <- controller.Slowness{Task: "probe", Period: 20 * time.Millisecond, Lately: 35 * time.Millisecond}
	r.log.await("deployed again with a longer period", 1)
	if got := period(); got != "70ms" {
		t.Errorf("the period is %s, want twice the time of a round, 70ms", got)
	}
	logged("deployed again with a longer period", "period=70ms verified=true")
	r.want("ping h1 h2 --count 1", 0)

	r.inside(r.k.reload)
	if got := period(); got != "70ms" {
		t.Errorf("after a reload the period is %s", got)
	}
	write := func(old, new string) {
		t.Helper()
		if err := os.WriteFile("net.yaml", []byte(strings.Replace(square, old, new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		r.inside(r.k.reload)
	}
	write("ends: [h1, l1]", "ends: [h1, l7]")
	logged("l7")
	r.want("ping h1 h2 --count 1", 0)
	write("- {ends: [l1, s1], rate: 1G}", "- {ends: [l1, s1], rate: 500M}")
	rate := 0.0
	r.inside(func(context.Context) {
		for _, l := range r.k.plan.Topology.Links {
			if l.A.Node == "l1" && l.B.Node == "s1" {
				rate = float64(l.Rate)
			}
		}
	})
	if rate != 500e6 {
		t.Errorf("after a reload the link l1-s1 has %g bit/s, want 500 Mbit/s", rate)
	}
	r.want("ping h1 h2 --count 1", 0)
}
