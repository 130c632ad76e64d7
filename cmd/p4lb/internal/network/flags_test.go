package network

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/testbed"
)

var update = flag.Bool("update", false, "rewrite the expected flags")

// testdata/flags.txt lists the flags of all verbs: name, short name, type and default.
// Scripts of users depend on them. -update rewrites the file.
func TestFlagsAndDefaults(t *testing.T) {
	var b strings.Builder
	var list func(name string, cmd *cobra.Command)
	list = func(name string, cmd *cobra.Command) {
		fmt.Fprintf(&b, "%s\n", name)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			short := "-"
			if f.Shorthand != "" {
				short = f.Shorthand
			}
			fmt.Fprintf(&b, "  %s %s %s %q\n", f.Name, short, f.Value.Type(), f.DefValue)
		})
		for _, sub := range cmd.Commands() {
			list(name+" "+sub.Name(), sub)
		}
	}
	c, _, _ := console(t)
	for _, verb := range []func(*cli.Console) *cobra.Command{
		NewDeploy, NewDown, NewExec, NewHosts, NewInspect, NewLink, NewObserve, NewPing, NewPs, NewRegister, NewRestart, NewTopoPorts, NewTraffic,
	} {
		cmd := verb(c)
		list(cmd.Name(), cmd)
	}
	file := filepath.Join("testdata", "flags.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Split(b.String(), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(have) || have[i] != line {
			t.Fatalf("%s:%d: want %q; the verbs have\n%s", file, i+1, line, &b)
		}
	}
}

// parsed returns a deployment with the flags of a command line, and the verb.
func parsed(t *testing.T, args string) (*deployJob, *cobra.Command) {
	t.Helper()
	c, _, _ := console(t)
	j := &deployJob{c: c}
	cmd := &cobra.Command{Use: "deploy"}
	j.addFlags(cmd)
	if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return j, cmd
}

// Values at a limit are valid, and values beyond it are not.
func TestLimitsOfDeploy(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"": "", "--clock-step 0s": "", "--clock-step 1h": "", "--clock-step 1h0m0.000000001s": "--clock-step 1h0m0.000000001s: want 0s to 1h",
		"--target bmv2 --clock-step 1s": "", "--target bmv2 --attach --clock-step 1s": "--clock-step requires switches that deploy starts",
		"--timeout 1ns": "", "--takeover": "", "--backup": "", "--dry-run": "", "--diff": "", "--once": "", "--no-tasks": "", "--atomic --once": "",
		"--target p4runtime --tls-ca x": "", "--target tofino --tls-ca x": "", "--target bmv2 --tls-ca x": "--tls-ca requires --target p4runtime or tofino",
		"--topology-json x": "", "--topology-json x --any-port": "want none of --any-port, --dry-run and --diff",
		"--topology-db x --dry-run": "want none of --any-port, --dry-run and --diff", "--topology-db x --diff": "want none of --any-port, --dry-run and --diff", "--any-port": "",
		"--target tofino --tofino-api p4runtime --dry-run": "", "--target tofino --takeover --dry-run": "", "--target tofino --takeover --device-config leaf=x": "",
		"--target tofino --tofino-api p4runtime --device-config leaf=x": "",
	} {
		j, cmd := parsed(t, "--scheme ecmp --topology qall "+args)
		if err := j.check(cmd); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
	j, cmd := parsed(t, "--target bmv2 --remove --name x") // needs no scheme, but a topology
	if err := j.check(cmd); err == nil || !strings.Contains(err.Error(), "deploy requires --topology") {
		t.Errorf("--remove without a topology: %v", err)
	}
	if j, cmd = parsed(t, "--target bmv2 --remove --topology qall"); j.check(cmd) != nil {
		t.Errorf("--remove: %v", j.check(cmd))
	}
}

// The target determines the architecture of programs if the user names none.
func TestArchOfTarget(t *testing.T) {
	for _, test := range []struct{ args, arch, want string }{
		{"--arch v1model", "v1model", ""}, {"--arch tna", "tna", ""}, {"--arch t2na --bfrt", "t2na", ""}, {"", "", ""},
		{"--target tofino", "tna", ""}, {"--target tofino --arch t2na", "t2na", ""}, {"--target tofino --arch v1model", "", "--target tofino takes --arch tna or t2na"},
		{"--target tofino --arch t2na --state-path ghost", "", "--target tofino takes --state-path recirc"}, {"--arch t2na --state-path ghost", "t2na", ""},
		{"--bfrt", "", "--bfrt requires --arch tna or t2na"}, {"--bfrt --arch v1model", "", "--bfrt requires --arch tna or t2na"},
		{"--target bmv2 --arch tna", "", "--target bmv2 takes --arch v1model"}, {"--target bmv2 --arch v1model", "v1model", ""},
		{"--target p4runtime --arch tna", "tna", ""},
	} {
		j, cmd := parsed(t, test.args)
		j.bfrt = j.embedded.bfrt
		err := j.checkArch(cmd)
		if test.want == "" && (err != nil || j.request.Arch != test.arch) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %s, %v; want %s, %q", test.args, j.request.Arch, err, test.arch, test.want)
		}
	}
}

// A project has its own network and program: flags that select others are refused.
func TestFlagsOfProjects(t *testing.T) {
	const app = "--p4app x.json "
	for args, want := range map[string]string{
		"": "", "--program y.p4": "", "--target bmv2": "", "--clock-step 1s": "", "--hosts": "", "--detach": "",
		"--scheme x": "--scheme", "--topology x": "--topology", "--file x": "--file", "--set a=1": "--set", "--coeffs x": "--coeffs", "--arch tna": "--arch", "--atomic": "--atomic",
		"--diff": "--diff", "--dry-run": "--dry-run", "--once": "--once", "--device-config a=b": "--device-config", "--keep": "--keep", "--remove": "--remove", "--attach": "--attach",
		"--target p4runtime": "--p4app is for --target embedded and bmv2", "--target tofino": "--p4app is for --target embedded and bmv2",
		"--listen 127.0.0.1:0": "--p4app goes without --listen", "--clock-step -1s": "--clock-step -1s: want 0s to 1h", "--name x": "for --target bmv2",
		"--target bmv2 --hosts": "--hosts",
	} {
		j, cmd := parsed(t, app+args)
		if err := j.check(cmd); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// Each target opens its own kind of switches. Certificates that cannot be read, and
// addresses in use, are errors of all.
func TestOpenTarget(t *testing.T) {
	top := load(t)
	for i := range top.Switches {
		top.Switches[i].GRPC = "127.0.0.1:0"
	}
	for args, want := range map[string]string{
		"--once": "embedded", "--target p4runtime": "p4runtime", "--target tofino": "tofino", "--target tofino --tofino-api p4runtime": "tofino", "--target bmv2": "bmv2", "--target bmv2 --attach": "bmv2",
	} {
		j, _ := parsed(t, args)
		j.bfrt = j.target == targetTofino && j.tofino.speaksBfRt()
		got, err := j.openTarget(&plan.Plan{Topology: top})
		if err != nil || got.Name() != want {
			t.Errorf("%s: %v, %v", args, got, err)
			continue
		}
		_, here := got.(*embedded.Target)
		_, spaces := got.(*testbed.Target)
		if here != (j.target == targetEmbedded) || spaces != (args == "--target bmv2") {
			t.Errorf("%s: a %T", args, got)
		}
	}
	j, _ := parsed(t, "--target p4runtime --tls-ca none.pem")
	if _, err := j.openTarget(&plan.Plan{Topology: top}); err == nil {
		t.Error("certificates that do not exist")
	}
}

// The graph of the network is written in both formats that are asked for.
func TestWriteGraph(t *testing.T) {
	dir := t.TempDir()
	j, _ := parsed(t, "--topology-json "+filepath.Join(dir, "topology.json"))
	p := &plan.Plan{Topology: load(t), Switches: []*plan.Switch{{Name: "l1", CPUPort: 77}, {Name: "l2"}, {Name: "s1"}}}
	if err := j.writeGraph(p); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "topology.json"))
	if err != nil || !strings.Contains(string(text), `"l1"`) || !strings.Contains(string(text), "77") {
		t.Errorf("%v: %s", err, text)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("%d files", len(list))
	}
	if j, _ = parsed(t, "--topology-db "+filepath.Join(dir, "topology.db")); j.writeGraph(p) != nil {
		t.Error("topology.db is not written")
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("%d files", len(list))
	}
	if j, _ = parsed(t, "--topology-json "+filepath.Join(dir, "none", "x")); j.writeGraph(p) == nil {
		t.Error("a folder that does not exist")
	}
}

// A scheme with a topology, or the manifest of a program, describe switches that no
// deployment of this folder has.
func TestFindSwitches(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("net.yaml", []byte(twoLeaves), 0o600); err != nil {
		t.Fatal(err)
	}
	find := func(args string) (*site, []string, error) {
		c, _, _ := console(t)
		r := &reach{}
		cmd := &cobra.Command{Use: "inspect"}
		r.addFlags(cmd)
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := r.check(cmd, c); err != nil {
			t.Fatal(err)
		}
		s, endpoints, err := r.find(c)
		var list []string
		if err == nil {
			for _, sw := range s.switches {
				e := endpoints[sw.node.Name]
				list = append(list, fmt.Sprintf("%s %s %s %d %s %v", sw.node.Name, sw.node.Role, e.Address, e.Device, e.Thrift, e.Speak != nil))
			}
		}
		return s, list, err
	}
	top, err := fabric.Load("net.yaml", []byte(twoLeaves))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, sw := range top.Switches {
		want = append(want, fmt.Sprintf("%s %s %s %d %s false", sw.Name, sw.Role, sw.GRPC, sw.ID, sw.Thrift))
	}
	for _, arch := range []string{"v1model", "tna"} {
		s, got, err := find("--topology net.yaml --scheme qall-poly3 --arch " + arch)
		if err != nil || !slices.Equal(got, want) || s.scheme != "qall-poly3" || s.fabric != top.Name || s.project {
			t.Errorf("%s: %q, %v; want %q", arch, got, err, want)
			continue
		}
		for _, sw := range s.switches {
			if string(sw.node.Manifest.Arch) != arch || sw.node.Manifest.Role != string(sw.node.Role) {
				t.Errorf("%s has the manifest of a %s for %s", sw.node.Name, sw.node.Manifest.Role, sw.node.Manifest.Arch)
			}
		}
	}
	// Front ports are device ports of the hardware, which has no port for the 481st.
	if err := os.WriteFile("many.yaml", []byte(strings.Replace(twoLeaves, "[h1, l1]", "[h1, 'l1:481']", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := find("--topology many.yaml --scheme qall-poly3 --arch t2na"); err == nil || !strings.Contains(err.Error(), "port 520: want at most") {
		t.Errorf("port 481: %v", err)
	}
	for _, args := range []string{"--topology none.yaml --scheme ecmp", "--topology net.yaml --scheme none"} {
		if _, _, err := find(args); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
	s, _, err := find("--topology net.yaml --scheme qall-poly3")
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.switches[0].node.Manifest.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("m.json", text, 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--thrift a:1 --grpc b:2 --device-id 7": "a:1 leaf b:2 7 a:1 false", "--grpc b:2": "b:2 leaf b:2 1  false", "--bfrt c:3": "c:3 leaf c:3 0  true",
	} {
		s, got, err := find("--manifest m.json " + args)
		if err != nil || len(got) != 1 || got[0] != want || s.scheme != "qall-poly3" || s.topology != nil {
			t.Errorf("%s: %q, %v; want %q", args, got, err, want)
		}
	}
	for _, file := range []string{"none.json", "net.yaml"} {
		if _, _, err := find("--grpc x --manifest " + file); err == nil {
			t.Errorf("%s: no error", file)
		}
	}
}

// Switches are selected by name, in the order of the topology.
func TestOnly(t *testing.T) {
	make := func() *site {
		return newSite("x", load(t), []*plan.Node{{Name: "l1"}, {Name: "l2"}, {Name: "s1"}})
	}
	for names, want := range map[string]string{"": "l1 l2 s1", "s1 l1": "l1 s1", "l2": "l2"} {
		s := make()
		if err := s.only(strings.Fields(names)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, sw := range s.switches {
			got = append(got, sw.node.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
	s := make()
	if err := s.only([]string{"l1", "l9"}); err == nil || err.Error() != `there is no switch "l9"` || len(s.switches) != 3 {
		t.Errorf("an unknown switch: %v, %d left", err, len(s.switches))
	}
}

// Switches of a deployment are offered to the shell; without a deployment none are.
func TestSwitchNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	r := &reach{state: file}
	if got := r.switchNames(); got != nil {
		t.Errorf("without a deployment: %q", got)
	}
	p := &plan.Plan{Topology: load(t), Switches: []*plan.Switch{{Name: "l1", Pipeline: &plan.Pipeline{}}, {Name: "s1", Pipeline: &plan.Pipeline{}}}}
	if err := deployed.New(p, &linkTarget{}).Write(file); err != nil {
		t.Fatal(err)
	}
	if got := r.switchNames(); !slices.Equal(got, []string{"l1", "s1"}) {
		t.Errorf("%q", got)
	}
}
