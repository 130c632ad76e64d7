package network

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/network/ping"
)

// refusing is a target that refuses changes of its links.
type refusing struct{ target.Target }

func (refusing) LinkDown(fabric.Link) (bool, error) { return false, nil }

func (refusing) SetLink(fabric.Link, target.Random) error { return errors.New("no such interface") }

// A deployment of a running network reports links that it cannot restore, and goes on.
// Another deployment with a mistake, or one that is rolled back, leaves the network alone.
func TestRedeployFailures(t *testing.T) {
	r := deployNetwork(t, "--scheme letflow --timeout 2s")
	r.want("link set l1-s1 --loss 50%", 0)
	r.inside(func(ctx context.Context) {
		inner := r.k.target
		r.k.target = refusing{inner}
		defer func() { r.k.target = inner }()
		if _, err := r.k.redeploy(ctx, r.k.job); err != nil || len(r.k.links) > 0 {
			t.Errorf("with a link that cannot change: %v, %d links", err, len(r.k.links))
		}
	})
	if text := r.log.String(); !strings.Contains(text, "error: no such interface\n") {
		t.Errorf("the log lacks the link:\n%s", text)
	}
	const same = "deploy --scheme ecmp --topology net.yaml --any-port --hosts=false --rates=false "
	if err := os.WriteFile("other.yaml", []byte(oneLeaf), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, code := range map[string]int{
		"deploy --scheme ecmp --topology none.yaml --any-port --hosts=false --rates=false":        cli.ExitInput,
		"deploy --scheme ecmp --topology none.yaml --any-port --hosts=false --rates=false --diff": cli.ExitInput,
		"deploy --scheme ecmp --topology other.yaml --any-port --hosts=false --rates=false":       cli.ExitRefused,
	} {
		r.want(args, code, "error: ")
		if d := r.note(); d.Scheme != "letflow" {
			t.Errorf("%s: the scheme is %s", args, d.Scheme)
		}
	}
	here := r.k.target.(*embedded.Target)
	if err := here.Stop("s2"); err != nil {
		t.Fatal(err)
	}
	r.want(same+"--atomic --timeout 100ms", cli.ExitRefused, "s2: ", "cannot be reached")
	if d := r.note(); d.Scheme != "letflow" {
		t.Errorf("after a rollback the scheme is %s", d.Scheme)
	}
	r.inside(func(context.Context) {
		if r.k.plan.Scheme != "letflow" || r.k.job.request.Scheme != "letflow" {
			t.Errorf("after a rollback the plan is of %s, the request for %s", r.k.plan.Scheme, r.k.job.request.Scheme)
		}
	})
	r.want("link down l1-s1", cli.ExitRefused, "s2: ", "cannot be reached")
	r.want("switch restart s2", 0, "restarted s2; 4 switches verified, ")
	r.want(same+"--atomic", 0, "4 switches verified")
	// A request ends with its caller, also while the network is busy.
	started, hold := make(chan struct{}), make(chan struct{})
	go r.inside(func(context.Context) {
		close(started)
		<-hold
	})
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := r.k.answer(ctx, hosts.Call{Args: []string{"link", "down", "l1-s1"}, Dir: r.dir, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}); code == 0 {
		t.Error("a request whose caller has gone is executed")
	}
	close(hold)
	if err := os.WriteFile("net.yaml", []byte("switches: 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.want("link down l1-s1", cli.ExitInput, "net.yaml:1")
	r.inside(func(context.Context) {
		if len(r.k.links) > 0 {
			t.Errorf("links have changed: %v", r.k.links)
		}
	})
}

// A network checks which hosts reach each other, and names the switches that drop packets.
func TestLeafCutOff(t *testing.T) {
	r := deployNetwork(t, "--scheme ecmp")
	r.inside(func(ctx context.Context) {
		here := r.k.target.(*embedded.Target)
		set := func(down bool) {
			for _, l := range r.k.plan.Topology.Links {
				if l.Down = down; l.A.Node == "l1" {
					if err := here.SetLink(l, target.Random{}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		set(true)
		checked := &report.Report{}
		lost := r.k.verify(ctx, checked)
		if lost.err != nil || lost.pairs != 2 || len(lost.failed) != 2 || !strings.Contains(lost.drops, "l1 dropped ") || checked.Elapsed == 0 {
			t.Errorf("with all links of a leaf down: %+v in %v", lost, checked.Elapsed)
		}
		err := r.k.job.lossError(lost)
		if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitRefused || !strings.Contains(f.Hint, lost.drops+"; p4lb ping --all") {
			t.Errorf("the error is %v, %+v", err, f)
		}
		set(false)
		if lost := r.k.verify(ctx, checked); lost.err != nil || len(lost.failed) > 0 || lost.drops != "" {
			t.Errorf("with the links again: %+v", lost)
		}
	})
	if got := lostAt([]ping.Result{{From: "h1", To: "h2", Path: []string{"l1", "s1", "l1"}}}); got != "the packet from h1 to h2 goes round: l1-s1-l1-…; " {
		t.Errorf("a short loop: %q", got)
	}
}

// hostsHere runs in this process what hosts do. One of them does not exist.
type hostsHere struct{ missing string }

func (h hostsHere) In(host string, f func() error) error {
	if host == h.missing {
		return errors.New("no such host")
	}
	return f()
}

// If no ping arrives, connections show whether the program forwards TCP. Pairs fail only if they
// have no connection either.
func TestOverTCP(t *testing.T) {
	address := netip.MustParsePrefix("127.0.0.1/32")
	a, b, gone := &fabric.Host{Name: "a", IP: address}, &fabric.Host{Name: "b", IP: address}, &fabric.Host{Name: "gone", IP: address}
	pairs := []ping.Pair{{From: a, To: b}, {From: a, To: gone}, {From: b, To: a}}
	list := []ping.Result{{From: "a", To: "b"}, {From: "a", To: "gone"}, {From: "b", To: "a"}}
	for missing, want := range map[string]string{"gone": "[a-gone]", "a": "[a-b a-gone b-a]", "": "[]"} {
		c, _, errs := console(t)
		var got []string
		for _, r := range (&keeper{c: c}).overTCP(t.Context(), hostsHere{missing}, pairs, list) {
			got = append(got, r.From+"-"+r.To)
		}
		if fmt.Sprint(got) != want || strings.Contains(errs.String(), "the program drops ICMP") != (missing != "a") {
			t.Errorf("without %q: %v, want %s\n%s", missing, got, want, errs)
		}
	}
}

// A hang-up signal deploys the current topology. A task that is slower than a period of the
// user gets advice, and another period only if the network can be planned.
func TestHangUpAndAdvice(t *testing.T) {
	r := deployNetwork(t, "--scheme hula --set tprobe=1ms")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.log.await("deployed again", 1)
	late := controller.Slowness{Task: "probe", Period: time.Millisecond, Lately: 35 * time.Millisecond}
	r.inside(func(ctx context.Context) { r.k.adapt(ctx, late) })
	if text := r.log.String(); !strings.Contains(text, "the task probe runs every 35ms instead of 1ms: deploy with --set tprobe=70ms --set tfail=210ms") || strings.Contains(text, "deployed again with a longer period") {
		t.Errorf("no advice in\n%s", text)
	}
	r.inside(func(ctx context.Context) {
		r.k.job.pacing.papers["tprobe"] = "200us"
		r.k.job.topology = "none.yaml"
		before := r.k.job
		r.k.adapt(ctx, late)
		if r.k.job != before || r.k.job.pacing.least != 0 {
			t.Errorf("the period is %v", r.k.job.pacing.least)
		}
		r.k.job.topology = "net.yaml"
	})
	if text := r.log.String(); !strings.Contains(text, "none.yaml") || strings.Contains(text, "deployed again with a longer period") {
		t.Errorf("no error in\n%s", text)
	}
}

// The state of a deployment that cannot be removed is reported.
func TestStateStays(t *testing.T) {
	c, _, errs := console(t)
	j := &deployJob{c: c, state: filepath.Join(t.TempDir(), "x.json"), ended: true}
	if handed, err := j.own(t.Context()); handed || err != nil {
		t.Fatal(handed, err)
	}
	if err := os.MkdirAll(filepath.Join(j.state, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if j.disown(); !strings.Contains(errs.String(), "the state of the deployment stays behind") {
		t.Errorf("log %q", errs)
	}
}

// The state names the namespaces of BMv2 networks. The network's links are the links of the plan,
// with the changes since.
func TestStateOfKeeper(t *testing.T) {
	for _, test := range []struct {
		target string
		flags  bmv2Flags
		want   string
	}{{targetBMv2, bmv2Flags{}, "test"}, {targetBMv2, bmv2Flags{name: "other"}, "other"}, {targetBMv2, bmv2Flags{attach: true}, ""}, {targetServers, bmv2Flags{}, ""}} {
		top := load(t)
		top.Name = "test"
		k := &keeper{job: &deployJob{target: test.target, bmv2: test.flags, state: filepath.Join(t.TempDir(), "x.json")}, plan: &plan.Plan{Topology: top}, target: &linkTarget{}}
		if err := k.writeNote(); err != nil {
			t.Fatal(err)
		}
		if d, _, err := deployed.Read(k.job.state); err != nil || d.Name != test.want || d.Control != "" {
			t.Errorf("%s %+v: the name is %q, %v; want %q", test.target, test.flags, d.Name, err, test.want)
		}
	}
	k := &keeper{plan: &plan.Plan{Topology: load(t).Fail(3)}}
	up, down := k.plan.Topology.Links[3], k.plan.Topology.Links[4]
	up.Down, down.Down = false, true
	k.links = map[int]linkChange{3: {link: up}, 4: {link: down}}
	if links := k.actual().Links; links[3].Down || !links[4].Down {
		t.Errorf("links %v and %v", links[3], links[4])
	}
}

// A program of a folder has its own architecture. Tables without entries are named. If hosts do
// not reach each other, the deployment fails, or reports it if the network stays.
func TestOwnProgram(t *testing.T) {
	const from = "../../../../internal/controller/tofino/testdata/profiles."
	program, err1 := os.ReadFile(from + "p4")
	manifest, err2 := os.ReadFile(from + "manifest.yaml")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	marks := bytes.Index(manifest, []byte("- name: I.kinds"))
	routes := bytes.Index(manifest, []byte("- name: I.routes"))
	inFolder(t, map[string]string{"net.yaml": square})
	for name, text := range map[string][]byte{"mine": manifest[:marks], "silent": append(bytes.Clone(manifest[:routes]), manifest[marks:]...)} {
		if err := errors.Join(os.Mkdir(name, 0o700), os.WriteFile(filepath.Join(name, name+".p4"), program, 0o600), os.WriteFile(filepath.Join(name, name+".manifest.yaml"), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const args = " --topology net.yaml --any-port --hosts=false"
	out, _, err := try(t, NewDeploy, strings.Fields("--scheme ./mine --once"+args)...)
	if err != nil || !strings.Contains(out, "; packets pass between 2 of 2 pairs of hosts\n") || !strings.Contains(out, "nothing fills a table") || !strings.Contains(out, "table=I.kinds") {
		t.Errorf("%v\n%s", err, out)
	}
	const lost = "no packets pass between 2 of 2 pairs of hosts: h1 to h2, h2 to h1"
	out, code, err := try(t, NewDeploy, strings.Fields("--scheme ./silent --once"+args)...)
	if err == nil || err.Error() != lost || code != cli.ExitRefused || !strings.Contains(out, "4 switches programmed in ") || !strings.Contains(out, "; packets pass between 0 of 2 pairs of hosts\n") {
		t.Errorf("%v with exit code %d\n%s", err, code, out)
	}
	deployHere(t, "--scheme ./silent"+args).printed(t, "error: "+lost)
}

// Switches over BfRt are read by their own protocol, which has no tables for inspect, and
// name their front-panel ports.
func TestReadOverBfRt(t *testing.T) {
	inFolder(t, map[string]string{"net.yaml": square})
	deployHere(t, "--scheme drill --arch tna --bfrt --topology net.yaml --any-port --hosts=false --no-tasks")
	state := ""
	if err := findState(&state); err != nil {
		t.Fatal(err)
	}
	d, _, err := deployed.Read(state)
	if err != nil {
		t.Fatal(err)
	}
	if out, _, err := try(t, NewInspect, "l1", "--no-flows"); err != nil || !strings.Contains(out, "l1") {
		t.Errorf("inspect: %v\n%s", err, out)
	}
	if _, _, err := try(t, NewInspect, "l1", "--no-flows", "--contents"); err == nil || err.Error() != "l1: tables and counters are read by P4Runtime, which it does not speak" {
		t.Errorf("inspect --contents: %v", err)
	}
	address := d.Switches[0].GRPC
	if out, _, err := try(t, NewTopoPorts, "--bfrt", address); err != nil || !strings.HasPrefix(out, "front-panel: {") {
		t.Errorf("topo ports: %v\n%s", err, out)
	}
	for args, want := range map[string]string{
		"": "topo ports requires --bfrt ADDR", "--bfrt 127.0.0.1:1": "reading ports of 127.0.0.1:1", "--tls-key x --bfrt " + address: "--tls-cert and --tls-key want --tls-ca",
	} {
		if _, _, err := try(t, NewTopoPorts, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("topo ports %s: %v, want %s", args, err, want)
		}
	}
}

// A single switch is named by its addresses and the manifest of its program. Registers are
// read and written over Thrift; over P4Runtime only the primary controller may write.
func TestOneSwitch(t *testing.T) {
	inFolder(t, map[string]string{"net.yaml": square})
	s, p := serve(t)
	e, err := s.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := p.Switch("l1").Pipeline.Manifest.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("m.json", manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := try(t, NewDeploy, strings.Fields("--scheme letflow --topology net.yaml --target p4runtime --once")...); err != nil {
		t.Fatal(err)
	}
	register := p.Switch("l1").Pipeline.Manifest.Registers[0].Name
	over := map[string]string{
		"thrift": " --manifest m.json --thrift " + e.Thrift, "grpc": " --manifest m.json --device-id " + fmt.Sprint(e.Device) + " --grpc " + e.Address,
		"both": " --manifest m.json --thrift 127.0.0.1:1 --device-id " + fmt.Sprint(e.Device) + " --grpc " + e.Address, // one does not answer
	}
	for _, test := range []struct {
		args, over, want, fails string
	}{
		{"write any " + register + " 3 9", "thrift", "", ""},
		{"read any " + register + " 3", "thrift", " 9  ", ""},
		{"read any " + register + " 3", "grpc", " 9  ", ""},
		{"read any " + register + " 3", "both", " 9  ", ""},
		{"write any " + register + " 3 8", "grpc", "", e.Address + ": "},
	} {
		out, _, err := try(t, NewRegister, strings.Fields(test.args+over[test.over])...)
		if (err == nil) != (test.fails == "") || err != nil && !strings.HasPrefix(err.Error(), test.fails) || !strings.Contains(out, test.want) {
			t.Errorf("%s over %s: %v, want %q\n%s", test.args, test.over, err, test.fails, out)
		}
		if f, ok := errors.AsType[*cli.Failure](err); err != nil && (!ok || !strings.Contains(f.Hint, "only its primary controller write")) {
			t.Errorf("%s over %s: no hint in %+v", test.args, test.over, f)
		}
	}
	if _, code, err := try(t, NewInspect, strings.Fields("--no-flows --contents"+over["thrift"])...); err == nil || code == 0 {
		t.Errorf("contents over Thrift: %v", err)
	}
	if err := s.Stop("s2"); err != nil {
		t.Fatal(err)
	}
	const reach = "--no-flows --topology net.yaml --scheme letflow"
	out, _, err := try(t, NewInspect, strings.Fields(reach)...)
	if err != nil || !strings.Contains(out, "error: s2: cannot be reached") || strings.Contains(out, "error: l") {
		t.Errorf("without one of the switches: %v\n%s", err, out)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, code, err := try(t, NewInspect, strings.Fields(reach)...)
	if err == nil || code != cli.ExitRefused || strings.Count(out, "cannot be reached")+strings.Count(err.Error(), "cannot be reached") != 4 {
		t.Errorf("without switches: %v with exit code %d\n%s", err, code, out)
	}
	for _, args := range []string{"read any " + register, "write any " + register + " 3 9"} {
		if _, code, err := try(t, NewRegister, strings.Fields(args+over["grpc"])...); err == nil || code != cli.ExitRefused {
			t.Errorf("%s: %v with exit code %d", args, err, code)
		}
	}
}

// observe ends with the rows that were asked for.
func TestObserveRows(t *testing.T) {
	r := deployNetwork(t, "--scheme qall-pkt")
	ended := make(chan error, 1)
	var out string
	go func() {
		var err error
		out, _, err = try(t, NewObserve, strings.Fields("l1 -o x.csv --rows 3 --every 1ms")...)
		ended <- err
	}()
	for err := error(io.EOF); err != nil; {
		select {
		case err = <-ended:
			if err != nil {
				t.Fatal(err)
			}
		default:
			r.want("ping h1 h2 --count 20", 0)
		}
	}
	text, err := os.ReadFile("x.csv")
	if err != nil || strings.Count(string(text), "\n") != 4 || strings.Count(string(text), ",l1,") != 3 || !strings.Contains(out, "rows=3") || strings.Contains(out, "no port") {
		t.Errorf("%s, %v\n%s", text, err, out)
	}
	if _, _, err := try(t, NewObserve, "-o", "none/x.csv"); err == nil || !strings.Contains(err.Error(), "none/x.csv") {
		t.Errorf("a folder that does not exist: %v", err)
	}
	for name, verb := range map[string]*cobra.Command{"inspect": NewInspect(cli.New(t.Context(), nil, nil, io.Discard, io.Discard)), "observe": NewObserve(cli.New(t.Context(), nil, nil, io.Discard, io.Discard))} {
		if names, how := verb.ValidArgsFunction(verb, nil, ""); strings.Join(names, " ") != "l1 l2 s1 s2" || how != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%s completes %q", name, names)
		}
	}
}

// Switches without the registers of a dataset are refused.
func TestObserveNothing(t *testing.T) {
	deployNetwork(t, "--scheme ecmp")
	_, _, err := try(t, NewObserve, "-o", "x.csv")
	if err == nil || !strings.HasPrefix(err.Error(), "l1: ") {
		t.Errorf("observe: %v", err)
	}
	if _, err := os.Stat("x.csv"); err == nil {
		t.Error("a file is left")
	}
}

// Output that cannot be written is an error, and does not look like success.
func TestFullOutput(t *testing.T) {
	j := &deployJob{format: cli.Table, target: targetBMv2}
	r := &report.Report{Switches: []report.Switch{{Name: "l1", Verified: true}}}
	for name, print := range map[string]func() error{
		"report":   func() error { return j.show(r, nil) },
		"hosts":    func() error { return (&keeper{job: j, plan: &plan.Plan{Topology: load(t)}}).howTo() },
		"programs": func() error { return j.showApp([]*appSwitch{{}}) },
	} {
		j.c = cli.New(t.Context(), nil, strings.NewReader(""), fullWriter{}, io.Discard)
		j.c.SetUp()
		if err := print(); err == nil || err.Error() != "writing to standard output: no space left on device" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A full disk ends a recording and a dataset with an error.
func TestFullDisk(t *testing.T) {
	deployNetwork(t, "--scheme qall-pkt")
	if err := os.Symlink("/dev/full", "full.csv"); err != nil {
		t.Fatal(err)
	}
	for args, verb := range map[string]func(*cli.Console) *cobra.Command{"--no-flows --record full.csv --every 1ms": NewInspect, "-o full.csv --every 1ms": NewObserve} {
		if _, _, err := try(t, verb, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), "full.csv: no space left on device") {
			t.Errorf("%s: %v", args, err)
		}
	}
	if n := unreadBy(t.Context(), cli.New(t.Context(), nil, nil, io.Discard, io.Discard), "none.json"); n != 0 {
		t.Errorf("%d packets of no deployment are unread", n)
	}
	if got := readCPU(); got.busy <= 0 || got.idle < 0 {
		t.Errorf("processor times %+v", got)
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// writeKeys writes ca.pem, a certificate of 127.0.0.1 that signs itself, and key.pem, its key.
func writeKeys(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err1 := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	secret, err2 := x509.MarshalECPrivateKey(key)
	if err := errors.Join(err1, err2,
		os.WriteFile("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
		os.WriteFile("key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// A switch whose server uses TLS is read with the certificates of --tls-ca, and not without.
func TestSwitchOverTLS(t *testing.T) {
	inFolder(t, map[string]string{"net.yaml": square})
	writeKeys(t)
	s, p := serve(t)
	e, err := s.Endpoint("l1")
	if err != nil {
		t.Fatal(err)
	}
	pipeline := p.Switch("l1").Pipeline
	text, err := pipeline.Manifest.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("m.json", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := try(t, NewDeploy, strings.Fields("--scheme letflow --topology net.yaml --target p4runtime --once")...); err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair("ca.pem", "key.pem")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go forward(l, e.Address)
	args := "any " + pipeline.Manifest.Registers[0].Name + " 3 --manifest m.json --device-id " + fmt.Sprint(e.Device) + " --grpc " + l.Addr().String()
	read := func(flags string) (string, error) {
		out, _, err := try(t, NewRegister, strings.Fields("read "+args+flags)...)
		return out, err
	}
	if out, err := read(" --tls-ca ca.pem"); err != nil || !strings.Contains(out, " 0  ") {
		t.Errorf("with the certificate: %v\n%s", err, out)
	}
	if out, err := read(""); err == nil {
		t.Errorf("a server with TLS was read without\n%s", out)
	}
}

// forward passes the bytes of each connection on to an address.
func forward(l net.Listener, address string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", address)
		if err != nil {
			in.Close()
			continue
		}
		for _, c := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				io.Copy(c[0], c[1])
				c[0].Close()
			}()
		}
	}
}

// Clients verify servers with the given certificates and present their own.
func TestClientKeys(t *testing.T) {
	inFolder(t, nil)
	writeKeys(t)
	c, _, _ := console(t)
	for _, test := range []struct {
		flags clientTLS
		keys  int
		fails string
	}{
		{clientTLS{ca: "ca.pem"}, 0, ""},
		{clientTLS{ca: "ca.pem", cert: "ca.pem", key: "key.pem"}, 1, ""},
		{clientTLS{ca: "ca.pem", cert: "ca.pem"}, 0, "reading the key : "},
		{clientTLS{ca: "ca.pem", key: "key.pem"}, 0, "reading the certificate : "},
		{clientTLS{ca: "ca.pem", cert: "key.pem", key: "key.pem"}, 0, "reading the certificate key.pem and its key: "},
	} {
		config, err := test.flags.config(c)
		if test.fails != "" {
			if err == nil || !strings.HasPrefix(err.Error(), test.fails) {
				t.Errorf("%+v: %v, want %q", test.flags, err, test.fails)
			}
			continue
		}
		if err != nil || len(config.Certificates) != test.keys || config.RootCAs.Equal(x509.NewCertPool()) {
			t.Errorf("%+v: %v, %v", test.flags, config, err)
		}
	}
}

// Metrics alone are served to other machines if the command line allows plain text.
func TestServeMetricsAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, _, errs := console(t)
	j := &inspectJob{c: c, plaintext: true}
	j.page.Listen, j.page.Listener = "192.0.2.1:9464", l
	show := j.serve(t.Context(), nil, func(err error) { t.Error(err) })
	if err := show(round()); err != nil {
		t.Fatal(err)
	}
	read := func(path string) (int, string) {
		r, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	if code, text := read("/metrics"); code != http.StatusOK || !strings.Contains(text, `switch="l1"`) || !strings.Contains(errs.String(), "serving metrics") {
		t.Errorf("metrics: %d %s\n%s", code, text, errs)
	}
	if code, text := read("/"); code == http.StatusOK && strings.Contains(text, "<html") {
		t.Errorf("the page is served, too: %s", text)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	j.page.Listener = closed
	failed := make(chan error, 1)
	j.serve(t.Context(), nil, func(err error) { failed <- err })
	if err := <-failed; err == nil {
		t.Error("a server that cannot accept has failed without an error")
	}
}

// ps lists readable states, with their logs; down ends another process.
func TestOtherProcesses(t *testing.T) {
	inFolder(t, nil)
	state, end := ownElsewhere(t)
	d := deployed.New(&plan.Plan{Topology: load(t)}, &linkTarget{})
	d.Kept, d.Began = true, time.Now().Add(-90*time.Minute)
	if err := errors.Join(d.Write(state), os.WriteFile(deployed.LogFile(state), nil, 0o600), os.WriteFile(filepath.Join(filepath.Dir(state), "x.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	out, _, err := try(t, NewPs)
	if err != nil || !strings.Contains(out, deployed.LogFile(state)) || !strings.Contains(out, " 2h ") || !strings.Contains(out, "x.json") || strings.Count(out, "running") != 1 {
		t.Errorf("ps: %v\n%s", err, out)
	}
	if out, _, err := try(t, NewDown); err != nil || !strings.Contains(out, "the network is down") {
		t.Errorf("down: %v\n%s", err, out)
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state stays: %v", err)
	}
	end()
	// A process that was killed before it wrote its state leaves other files.
	if err := os.WriteFile(deployed.LogFile(state), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := try(t, NewHosts); !errors.Is(err, deployed.ErrNothing) {
		t.Errorf("without a state: %v", err)
	}
	if _, err := os.Stat(deployed.LogFile(state)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log stays: %v", err)
	}
	if err := os.WriteFile(state, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := try(t, NewHosts); err == nil || !strings.Contains(err.Error(), "reading the state: ") {
		t.Errorf("a broken state: %v", err)
	}
	if err := d.Write(state); err != nil {
		t.Fatal(err)
	}
	for name, verb := range map[string]func(*cli.Console) *cobra.Command{"hosts": NewHosts, "inspect": NewInspect} {
		if err := d.Write(state); err != nil {
			t.Fatal(err)
		}
		if _, _, err := try(t, verb); !errors.Is(err, hosts.ErrGone) {
			t.Errorf("%s of a process that was killed: %v", name, err)
		}
		if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the state of a killed process stays: %v", name, err)
		}
	}
	if out, _, err := try(t, NewPs, "-o", "json"); err != nil || !strings.Contains(out, "[]") {
		t.Errorf("ps: %v\n%s", err, out)
	}
}

// A project on BMv2 gets its entries over P4Runtime, and the settings that BMv2 has only
// over Thrift; a refused entry is named by its file and line.
func TestProjectOverThrift(t *testing.T) {
	inFolder(t, project(t))
	read, err := p4app.Read("topology.json", nil, fabric.Imports{})
	if err != nil {
		t.Fatal(err)
	}
	c, _, _ := console(t)
	j := &deployJob{c: c, mtu: 1500}
	switches, err := j.loadApp(read)
	if err != nil {
		t.Fatal(err)
	}
	planned := appPlan(read, switches, j.mtu)
	s := embedded.New(embedded.Options{AnyPort: true, Log: c.Log})
	defer s.Close()
	if err := s.Start(t.Context(), planned); err != nil {
		t.Fatal(err)
	}
	app := &bmv2App{Target: s, plan: planned, options: controller.DeployOptions{Timeout: 5 * time.Second, Log: c.Log}}
	for _, sw := range switches {
		if err := app.begin(t.Context(), sw); err != nil {
			t.Fatal(err)
		}
	}
	e, err := app.inner().Endpoint("s2")
	if err != nil {
		t.Fatal(err)
	}
	regs, err := connect(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	defer regs.(io.Closer).Close()
	if cells, err := regs.Read(t.Context(), "Forward.mark", 0, 4, nil); err != nil || fmt.Sprint(cells) != "[0 0 7 0]" {
		t.Errorf("register mark: %v, %v", cells, err)
	}
	const other, again = "table_add route forward 10.0.3.0/24 => 08:00:00:00:01:00 2\n", "table_add route forward 10.0.2.2/32 => 08:00:00:00:01:00 2\n"
	for text, want := range map[string]string{"# routes\n" + other + again: "twice.txt:3: ", again + other: "twice.txt:1: "} {
		if err := os.WriteFile("twice.txt", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		twice, err := c.Entries("twice.txt", switches[1].info)
		if err != nil {
			t.Fatal(err)
		}
		sw := *switches[1]
		sw.entries = append(slices.Clone(sw.entries), twice)
		if err = app.begin(t.Context(), &sw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an entry that exists: %v, want %s", err, want)
		}
	}
	s.Close()
	app.options.Timeout = 50 * time.Millisecond
	if err := app.begin(t.Context(), switches[0]); err == nil {
		t.Error("a switch that is gone has its entries")
	}
}

// Commands of a project run on its hosts before the network is up. A command that fails is
// a warning with its output.
func TestProjectCommands(t *testing.T) {
	if !hosts.Capable() {
		t.Skip("network namespaces want root, or a user namespace around the test")
	}
	files := project(t)
	top := files["topology.json"]
	for _, cmd := range []string{"route add default gw 10.0.1.10 dev eth0", "arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00"} {
		if !strings.Contains(top, cmd) {
			t.Fatalf("no command %s", cmd)
		}
	}
	top = strings.Replace(top, "route add default gw 10.0.1.10 dev eth0", "touch ran-$P4LB_HOST", 1)
	top = strings.Replace(top, "arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00", "echo first; echo second; exit 3", 1)
	top = strings.Replace(top, "route add default gw 10.0.2.20 dev eth0", "true", 1)
	files["topology.json"] = strings.Replace(top, "arp -i eth0 -s 10.0.2.20 08:00:00:00:02:00", "exit 4", 1)
	inFolder(t, files)
	u := deployHere(t, "--p4app topology.json --program router.p4 --any-port -o json")
	u.printed(t, `"program": "router.p4"`, `error="first: second: exit status 3"`, `error="exit status 4"`)
	if n := strings.Count(u.out.String(), "a command of the project fails"); n != 2 {
		t.Errorf("%d commands fail:\n%s", n, u.out)
	}
	if list, err := filepath.Glob("ran-*"); err != nil || len(list) != 1 {
		t.Errorf("commands left %q, %v", list, err)
	}
}

// traffic draws its flows as an experiment with its load, sizes, times and seeds does.
func TestExperimentOfTraffic(t *testing.T) {
	d := deployed.New(&plan.Plan{Topology: load(t)}, &linkTarget{})
	for _, test := range []struct {
		cut, list string
		load      string
	}{{"", "", "0.25"}, {"10KB", "", "0.75"}, {"", "list.txt", "0.5"}} {
		j := &trafficJob{load: test.load, cut: test.cut, list: test.list, metrics: []string{"unfinished"}, seeds: 3, duration: 2 * time.Second, drain: 7 * time.Second}
		j.flows.Workload, j.flows.LoadOf, j.flows.Pattern = "websearch", spec.OfHosts, spec.Halves
		inFolder(t, map[string]string{"list.txt": "h1 h3 100 0\n"})
		x, err := j.experiment(&cobra.Command{}, d)
		if err != nil {
			t.Fatal(err)
		}
		var want spec.LoadLevel
		cut := spec.Uncut
		if err := want.Parse(test.load); err != nil {
			t.Fatal(err)
		}
		if test.cut != "" {
			if err := cut.Parse(test.cut); err != nil {
				t.Fatal(err)
			}
		}
		flows := x.Traffic[0]
		if len(x.Seeds) != 3 || time.Duration(x.Duration) != 2*time.Second || time.Duration(x.Drain) != 7*time.Second || len(x.Traffic) != 1 || flows.File != test.list {
			t.Errorf("%+v: %+v", test, x)
		}
		if test.list == "" && (len(x.Loads) != 1 || x.Loads[0] != want || flows.Cut != cut || flows.Pattern != spec.Halves) || test.list != "" && flows.Pattern != spec.List {
			t.Errorf("%+v: loads %v, flows %+v, want cut %v", test, x.Loads, flows, cut)
		}
	}
}

// traffic names mistakes before it sends.
func TestTrafficMistakes(t *testing.T) {
	inFolder(t, map[string]string{"one.yaml": strings.Replace(strings.Replace(oneLeaf, ", h2: {ip: 10.0.1.2/24}", "", 1), ", {ends: [h2, l1], rate: 1G}", "", 1), "file": ""})
	state := ""
	if err := findState(&state); err != nil {
		t.Fatal(err)
	}
	write := func(top *fabric.Topology) {
		t.Helper()
		d := deployed.New(&plan.Plan{Topology: top}, &linkTarget{})
		d.Control = "@p4lb/nothing/here"
		if err := d.Write(state); err != nil {
			t.Fatal(err)
		}
	}
	write(load(t))
	for args, want := range map[string]string{
		"--load 7": "--load: ", "--load x": "--load: ", "--cut x": "--cut: ", "--flows none.txt": "none.txt", "--workload none": "none", "--metrics none": "none",
		"--duration 1ms": hosts.ErrGone.Error(),
	} {
		_, code, err := try(t, NewTraffic, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || (code == cli.ExitUsage) != strings.HasSuffix(want, ": ") {
			t.Errorf("traffic %s: %v with exit code %d, want %s", args, err, code, want)
		}
	}
	text, err := os.ReadFile("one.yaml")
	if err != nil {
		t.Fatal(err)
	}
	top, err := fabric.Load("one.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	write(top)
	if _, _, err := try(t, NewTraffic); err == nil || err.Error() != "the topology one has 1 hosts: traffic wants two" {
		t.Errorf("traffic with one host: %v", err)
	}
	var none bytes.Buffer
	c := cli.New(t.Context(), nil, strings.NewReader(""), &none, &none)
	c.SetUp()
	k := &keeper{c: c, job: &deployJob{c: c}, plan: &plan.Plan{Topology: top}, target: &linkTarget{}, calls: make(chan *call)}
	go func() {
		call := <-k.calls
		call.do(t.Context())
		close(call.done)
	}()
	if err := k.ping(t.Context(), &pingJob{hostJob: hostJob{c: c}, all: true, count: 1}, true, nil); err == nil || err.Error() != "the deployment on target test has no hosts of p4lb's" {
		t.Errorf("ping: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := k.ping(ended, &pingJob{}, true, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ping of a caller that has gone: %v", err)
	}
}
