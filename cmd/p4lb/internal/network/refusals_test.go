package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Each verb about a deployed network takes the name of its state, and names it if there is
// no such network.
func TestStateFlag(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	file := filepath.Join(t.TempDir(), "nothing.json")
	for args, verb := range map[string]func(*cli.Console) *cobra.Command{
		"down l1-s1": NewLink, "up l1-s1": NewLink, "set l1-s1 --delay 1ms": NewLink, "l1": NewRestart, "": NewHosts, " ": NewDown,
		"h1 -- true": NewExec, "  ": NewTraffic, "   ": NewInspect, "-o x.csv": NewObserve, "read l1 r": NewRegister, "write l1 r 1 1": NewRegister, "h1 h2": NewPing,
	} {
		line := strings.Fields(args)
		at := len(line)
		if i := strings.Index(args, "--"); i >= 0 && verb(cli.New(t.Context(), nil, strings.NewReader(""), os.Stderr, os.Stderr)).Name() == "exec" {
			at = 0
		}
		line = append(line[:at:at], append([]string{"--state", file}, line[at:]...)...)
		_, code, err := try(t, verb, line...)
		if err == nil || code == cli.ExitUsage || !errors.Is(err, deployed.ErrNothing) && !errors.Is(err, errNoOwner) {
			t.Errorf("%q: %v with exit code %d", line, err, code)
		}
	}
}

// Tasks that send packets are named when switches serve BfRt, each once.
func TestWarnOfPackets(t *testing.T) {
	tasks := func(kinds ...manifest.TaskKind) *plan.Switch {
		p := &plan.Pipeline{}
		for _, k := range kinds {
			p.Manifest.Tasks = append(p.Manifest.Tasks, manifest.Task{Kind: k})
		}
		return &plan.Switch{Pipeline: p}
	}
	for _, test := range []struct {
		list []*plan.Switch
		want string
	}{
		{[]*plan.Switch{tasks(), tasks(manifest.RateFilter)}, ""},
		{[]*plan.Switch{tasks(manifest.SendFrame, manifest.RateFilter), tasks(manifest.ProbeFlood, manifest.SendFrame)}, fmt.Sprintf(`"%s, %s"`, manifest.SendFrame, manifest.ProbeFlood)},
		{[]*plan.Switch{tasks(manifest.PathProbe)}, string(manifest.PathProbe)},
	} {
		c, _, errs := console(t)
		(&deployJob{c: c}).warnOfPackets(&plan.Plan{Switches: test.list})
		if got := errs.String(); test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%q, want %s", got, test.want)
		}
	}
}

// Compiler output for hardware is read for each role of the topology, in the form of the API.
func TestDeviceConfigs(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	pipeline, other := file("pipeline.pb.bin", "stratum"), file("x.txt", "x")
	for _, test := range []struct {
		j    deployJob
		want string // "": accepted
	}{
		{deployJob{tofino: tofinoFlags{configs: []string{"leaf=" + pipeline, "spine=" + pipeline}}}, ""},
		{deployJob{tofino: tofinoFlags{configs: []string{"leaf=" + pipeline}}}, "there is no --device-config for the role spine"},
		{deployJob{dryRun: true}, ""},
		{deployJob{bfrt: true}, ""}, // the switches may run their programs already
		{deployJob{tofino: tofinoFlags{configs: []string{"core=" + pipeline}}}, "--device-config core=" + pipeline + ": want ROLE=FILE with a role of the topology: leaf, spine"},
		{deployJob{tofino: tofinoFlags{configs: []string{pipeline}}}, "want ROLE=FILE"},
		{deployJob{tofino: tofinoFlags{configs: []string{"leaf=" + filepath.Join(dir, "none")}}}, "no such file"},
		{deployJob{bfrt: true, tofino: tofinoFlags{configs: []string{"leaf=" + other}}}, "want the .conf that p4c writes, or the .json that p4lb compile -o does"},
		{deployJob{bfrt: true, tofino: tofinoFlags{configs: []string{"leaf=" + filepath.Join(dir, "none.conf")}}}, "no such file"},
	} {
		all := map[fabric.Role]*plan.Pipeline{fabric.Leaf: {Config: []byte("p4lb")}, fabric.Spine: {Config: []byte("p4lb")}}
		err := test.j.loadDeviceConfigs(all)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v: %v, want %q", test.j.tofino.configs, err, test.want)
		}
		if got := string(all[fabric.Leaf].Config); err == nil && (got == "stratum") != (len(test.j.tofino.configs) > 0) || got == "p4lb" {
			t.Errorf("%v: the leaf has the program %q", test.j.tofino.configs, got)
		}
	}
}

// Hosts are left out, with a warning, if there are none or many, unless they are asked for.
func TestHostsLeftOut(t *testing.T) {
	many := fabric.LeafSpine{Name: "many", Leaves: 2, Spines: 1, Hosts: mostHosts/2 + 1}
	large, err := many.Make()
	if err != nil {
		t.Fatal(err)
	}
	none := load(t)
	none.Hosts = nil
	for _, test := range []struct {
		f     hostFlags
		top   *fabric.Topology
		warns string
		err   string
	}{
		{hostFlags{}, large, "", ""},
		{hostFlags{wanted: true}, none, "no hosts: the topology " + none.Name + " has none", ""},
		{hostFlags{wanted: true, given: true}, none, "", "the topology has no hosts"},
		{hostFlags{wanted: true}, large, fmt.Sprintf("no hosts: %d are many", len(large.Hosts)), ""},
	} {
		c, _, errs := console(t)
		err := test.f.open(c, &plan.Plan{Topology: test.top}, netspace.Known(0))
		if test.err == "" && err != nil || test.err != "" && (err == nil || err.Error() != test.err) {
			t.Errorf("%+v: %v, want %q", test.f, err, test.err)
		}
		if got := errs.String(); test.warns == "" && got != "" || !strings.Contains(got, test.warns) {
			t.Errorf("%+v: %q, want %q", test.f, got, test.warns)
		}
		if test.f.wanted && test.err == "" || test.f.network != nil {
			t.Errorf("%+v: still wanted", test.f)
		}
	}
	for args, want := range map[string]string{
		"--detach --once": "--detach and --once exclude each other", "--detach --dry-run": "--detach and --dry-run exclude each other", "--detach --diff": "--detach and --diff exclude each other", "--detach": "",
	} {
		cmd := &cobra.Command{Use: "deploy"}
		j := &deployJob{}
		j.addFlags(cmd)
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := j.hosts.check(cmd, targetEmbedded); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// A round of readings fails only if no switch answers; then with the first reason.
func TestSilence(t *testing.T) {
	away := fmt.Errorf("l1: %w", target.ErrUnreachable)
	for _, test := range []struct {
		list []inspect.Result
		code int
	}{
		{[]inspect.Result{{Switch: "l1", Snapshot: &inspect.Snapshot{}}}, 0},
		{[]inspect.Result{{Switch: "l1", Err: away}, {Switch: "l2", Snapshot: &inspect.Snapshot{}}}, 0},
		{[]inspect.Result{{Switch: "l1", Err: away}, {Switch: "l2", Err: errors.New("other")}}, cli.ExitRefused},
		{[]inspect.Result{{Switch: "l1", Err: errors.New("other")}, {Switch: "l2", Err: away}}, cli.ExitInput},
	} {
		err := silence(&view.Round{Switches: test.list})
		f, ok := errors.AsType[*cli.Failure](err)
		if test.code == 0 && err != nil || test.code != 0 && (!ok || f.Code != test.code || !errors.Is(err, test.list[0].Err)) {
			t.Errorf("%+v: %v, want exit code %d", test.list, err, test.code)
		}
	}
}

// The hint of an error about a switch is kept, unless the switch cannot be reached.
func TestVanished(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		hint string
	}{
		{errors.New("other"), cli.ExitInput, ""},
		{&plan.Error{Err: errors.New("other"), Hint: "do this"}, cli.ExitInput, "do this"},
		{&plan.Error{Err: target.ErrUnreachable, Hint: "do this"}, cli.ExitRefused, "check that the switch is running; embedded switches run as long as p4lb deploy"},
	} {
		f, ok := errors.AsType[*cli.Failure](vanished(test.err))
		if !ok || f.Code != test.code || f.Hint != test.hint {
			t.Errorf("%v: %+v, want exit code %d and hint %q", test.err, f, test.code, test.hint)
		}
	}
}

// A verb goes on with the reachable switches, and reports each other. Without any, it fails with
// the last.
func TestReachable(t *testing.T) {
	for list, want := range map[string]struct {
		left     string
		reported int
		err      string
	}{
		"l1 l2":       {"l1 l2", 0, ""},
		"l1 !l2":      {"l1", 1, ""},
		"!l1 !l2 s1":  {"s1", 2, ""},
		"!l1 s1 s2":   {"s1 s2", 1, ""},
		"!l1":         {"", 0, "l1: cannot be reached"},
		"!l1 !l2":     {"", 1, "l2: cannot be reached"},
		"!l1 !l2 !s1": {"", 2, "s1: cannot be reached"},
	} {
		s := &site{}
		for _, name := range strings.Fields(list) {
			name, away := strings.CutPrefix(name, "!")
			sw := &reached{node: &plan.Node{Name: name}}
			if away {
				sw.err = target.ErrUnreachable
			}
			s.switches = append(s.switches, sw)
		}
		c, _, errs := console(t)
		err := s.reachable(c)
		var left []string
		for _, sw := range s.switches {
			left = append(left, sw.node.Name)
		}
		if got := strings.Join(left, " "); got != want.left || strings.Count(errs.String(), "cannot be reached") != want.reported {
			t.Errorf("%s: %q left, reported %q; want %q and %d reports", list, got, errs, want.left, want.reported)
		}
		if want.err == "" && err != nil || want.err != "" && (err == nil || !strings.HasPrefix(err.Error(), want.err)) {
			t.Errorf("%s: %v, want %q", list, err, want.err)
		}
	}
}

// Rounds of readings begin at the requested interval; the first begins at once.
func TestPauseOfRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &surveySource{site: &site{}, survey: inspect.NewSurvey(nil), every: 3 * time.Second, begun: true}
		start := time.Now()
		for i := range 3 {
			if _, err := s.next(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), time.Duration(i)*s.every; got != want {
				t.Errorf("round %d begins after %v, want %v", i, got, want)
			}
		}
	})
}

// Switches without a requested register are left out, unless all lack it.
func TestSurvey(t *testing.T) {
	node := func(name string, list ...string) *reached {
		m := &manifest.Manifest{Scheme: "x"}
		for _, r := range list {
			m.Registers = append(m.Registers, manifest.Register{Name: r, Size: 4, Width: 8})
		}
		return &reached{node: &plan.Node{Name: name, Manifest: m}, registers: struct{ registers.Access }{}}
	}
	j := &inspectJob{registers: []string{"depth"}}
	survey, err := j.survey(&site{switches: []*reached{node("l1", "depth"), node("s1", "other")}})
	if err != nil || len(survey.Inspectors()) != 1 || survey.Inspectors()[0].Node().Name != "l1" {
		t.Errorf("%v, %v", survey, err)
	}
	_, err = j.survey(&site{switches: []*reached{node("s1", "other"), node("s2", "more")}})
	if err == nil || !strings.Contains(err.Error(), "s1") || !strings.Contains(err.Error(), "depth") {
		t.Errorf("a register that no switch has: %v", err)
	}
}

// Processors that are busy for more than 90 % of the time limit a measurement.
func TestBusyProcessors(t *testing.T) {
	for _, test := range []struct {
		busy, idle float64
		want       bool
	}{{89, 11, false}, {90, 10, false}, {91, 9, true}, {0, 0, false}, {100, 0, true}} {
		c, _, errs := console(t)
		before := cpuTime{busy: 1000, idle: 500}
		if got := warnOfBusy(c, before, cpuTime{before.busy + test.busy, before.idle + test.idle}); got != test.want || (errs.Len() > 0) != test.want {
			t.Errorf("busy %v, idle %v: %v, %q", test.busy, test.idle, got, errs)
		}
	}
	if got := parseCPU("cpu  1 2 4 8 16 32 64 128 256 512"); got != (cpuTime{busy: 1 + 2 + 4 + 32 + 64 + 128, idle: 8 + 16}) {
		t.Errorf("times %+v", got)
	}
	c, _, errs := console(t)
	warnOfUnread(c, 0)
	if errs.Len() > 0 {
		t.Errorf("no packet: %q", errs)
	}
	if warnOfUnread(c, 1); !strings.Contains(errs.String(), "did not read 1 packets") {
		t.Errorf("one packet: %q", errs)
	}
}
