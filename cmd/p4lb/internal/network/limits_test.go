package network

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// Values at a limit pass the checks of a verb, which then finds no network. Values beyond
// it end with exit code 2.
func TestLimitsOfVerbs(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		verb         func(*cli.Console) *cobra.Command
		args, beyond string
	}{
		{NewPing, "h1 h2 --count 1", "h1 h2 --count 0"},
		{NewPing, "h1 h2 --count 1000", "h1 h2 --count 1001"},
		{NewPing, "h1 h2 --wait 1ns", "h1 h2 --wait 0s"},
		{NewPing, "--all", "--all h1"},
		{NewPing, "h1 h2", "h1"},
		{NewTraffic, "--seeds 1", "--seeds 0"},
		{NewTraffic, "--seeds 1000", "--seeds 1001"},
		{NewTraffic, "--duration 1ns --drain 1ns", "--duration 1ns --drain 0s"},
		{NewTraffic, "--rdma", "--rdma --congestion reno"},
		{NewTraffic, "--to h1 --pattern all-to-all", "--to h1 --pattern halves"},
		{NewTraffic, "--to h1 --pattern incast", "--to h1 --pattern permutation"},
		{NewLink, "set l1-s1 --delay 0s", "set l1-s1 --delay -1ns"},
		{NewLink, "set l1-s1 --jitter 0s", "set l1-s1 --jitter -1ns"},
		{NewLink, "set l1-s1 --loss 0", "set l1-s1 --loss -1%"},
		{NewLink, "set l1-s1 --rate 1K", "set l1-s1 --rate 0M"},
		{NewLink, "set l1-s1 --rate 10Mbps", "set l1-s1"},
		{NewInspect, "--watch --every 1ns", "--watch --every 0s"},
		{NewInspect, "--for 0s", "--for -1ns"},
		{NewInspect, "--record x.csv", "--record x"},
		{NewInspect, "--every 1s --for 1s", "--every 1s"},
	} {
		_, code, err := try(t, test.verb, strings.Fields(test.args)...)
		if err == nil || code == cli.ExitUsage || !errors.Is(err, deployed.ErrNothing) && !errors.Is(err, errNoOwner) {
			t.Errorf("%s: %v with exit code %d, want %v", test.args, err, code, deployed.ErrNothing)
		}
		if _, code, err := try(t, test.verb, strings.Fields(test.beyond)...); err == nil || code != cli.ExitUsage {
			t.Errorf("%s: %v with exit code %d, want %d", test.beyond, err, code, cli.ExitUsage)
		}
	}
}

// The shell completes the patterns and flow sizes that traffic takes.
func TestCompletionsOfTraffic(t *testing.T) {
	c, _, _ := console(t)
	cmd := NewTraffic(c)
	for flag, want := range map[string][]string{"pattern": {spec.Halves, spec.AllToAll, "permutation", spec.Incast}, "workload": spec.Workloads()} {
		words, ok := cmd.GetFlagCompletionFunc(flag)
		if !ok {
			t.Fatalf("--%s has no completion", flag)
		}
		got, _ := words(cmd, nil, "")
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("--%s completes %q, want %q", flag, got, want)
		}
	}
}

// A process that owns a deployment does not own it twice. Dry runs and comparisons own
// nothing.
func TestOwn(t *testing.T) {
	state := t.TempDir() + "/state"
	first, _ := parsed(t, "")
	first.state = state
	if handed, err := first.own(t.Context()); handed || err != nil || first.lock == nil {
		t.Fatalf("handed over %v, %v", handed, err)
	}
	second, _ := parsed(t, "")
	second.state = state
	if handed, err := second.own(t.Context()); handed || !errors.As(err, new(*deployed.OwnedError)) {
		t.Errorf("twice: handed over %v, %v", handed, err)
	}
	for _, args := range []string{"--dry-run", "--diff"} {
		j, _ := parsed(t, args)
		j.state = state
		if handed, err := j.own(t.Context()); handed || err != nil || j.lock != nil {
			t.Errorf("%s: handed over %v, %v, lock %v", args, handed, err, j.lock)
		}
		j.disown()
	}
	first.disown()
	if _, err := second.own(t.Context()); err != nil || second.lock == nil {
		t.Errorf("after its end: %v", err)
	}
	second.disown()
}

// A switch that returns is logged, with an error if it does not hold the plan.
func TestRestored(t *testing.T) {
	for _, test := range []struct {
		r    report.Switch
		want []string
	}{
		{report.Switch{Name: "l1", Pushed: true, Written: 7}, []string{"a switch is back", "l1", "pushed=true", "written=7"}},
		{report.Switch{Name: "l2", Err: errors.New("because")}, []string{"a switch does not hold the plan", "l2", "because"}},
	} {
		c, _, errs := console(t)
		k := &keeper{c: c}
		k.restored(test.r)
		for _, want := range test.want {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s: %q, want %q", test.r.Name, errs, want)
			}
		}
	}
}
