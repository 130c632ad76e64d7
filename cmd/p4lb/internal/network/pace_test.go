package network

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// chosen returns the parameters of a scheme after the choice for BMv2, from those
// of the user, and the log.
func chosen(t *testing.T, c *pacing, scheme string, set map[string]string) (values map[string]string, log string) {
	t.Helper()
	return chosenFor(t, c, targetBMv2, preset(t, "qall"), scheme, set)
}

func preset(t *testing.T, name string) *fabric.Topology {
	t.Helper()
	preset, err := fabric.PresetNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	topology, err := preset.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topology
}

// chosenFor is chosen for any target and topology.
func chosenFor(t *testing.T, c *pacing, target string, topology *fabric.Topology, scheme string, set map[string]string) (values map[string]string, log string) {
	t.Helper()
	var b bytes.Buffer
	r := cli.Request{Scheme: scheme, Set: maps.Clone(set)}
	for range 2 { // choosing again changes nothing
		if values != nil && !maps.Equal(values, r.Set) {
			t.Errorf("%s %v: after %v, another choice is %v", scheme, set, values, r.Set)
		}
		if err := c.choose(&r, topology, target, slog.New(slog.NewTextHandler(&b, nil))); err != nil {
			t.Fatal(err)
		}
		values = maps.Clone(r.Set)
	}
	return values, b.String()
}

// TestPace checks the periods for simple_switch: 2 leaves and 4 links of a switch
// between them make 2·4 probes a period, of 400 a second.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		scheme    string
		set, want map[string]string
		back      string
	}{
		{"hula", map[string]string{}, map[string]string{"tprobe": "20ms", "tfail": "60ms"}, "--set tprobe=200us --set tfail=600us has the paper's 200us"},
		{"hula", map[string]string{"tfail": "1s"}, map[string]string{"tprobe": "20ms", "tfail": "1s"}, "--set tprobe=200us has the paper's 200us"},
		{"hula", map[string]string{"tprobe": "200us"}, map[string]string{"tprobe": "200us"}, ""},
		{"hermes", map[string]string{}, map[string]string{"tpath": "20ms"}, "--set tpath=500us has the paper's 500us"},
		{"ecmp", map[string]string{}, map[string]string{}, ""},
	} {
		got, log := chosen(t, &pacing{}, c.scheme, c.set)
		if !maps.Equal(got, c.want) {
			t.Errorf("%s %v: got %v, want %v", c.scheme, c.set, got, c.want)
		}
		if !strings.Contains(log, c.back) || c.back == "" && log != "" {
			t.Errorf("%s %v: the log has no %q:\n%s", c.scheme, c.set, c.back, log)
		}
	}
}

// TestPaceEmbedded checks the periods for embedded switches: all hops of a period, of
// 6,000 a second. Package task counts 1,040 and 4,800 hops with 16
// leaves and 4 spines.
func TestPaceEmbedded(t *testing.T) {
	topology, err := fabric.LeafSpine{Leaves: 16, Spines: 4}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scheme    string
		set, want map[string]string
		log       string
	}{
		{"hula", map[string]string{}, map[string]string{"tprobe": "173ms", "tfail": "519ms"}, "probes are sent every 173ms, so that idle switches take little of a core; --set tprobe=200us --set tfail=600us has the paper's 200us"},
		{"hula", map[string]string{"tprobe": "2ms"}, map[string]string{"tprobe": "2ms"}, "level=WARN msg=\"probes with tprobe=2ms take about 177 % of a core, also without traffic; p4lb's period is 173ms\""},
		{"hula", map[string]string{"tprobe": "100ms"}, map[string]string{"tprobe": "100ms"}, ""}, // 3.5 %
		{"hermes", map[string]string{}, map[string]string{"tpath": "800ms"}, "--set tpath=500us has the paper's 500us"},
		{"pdlb", map[string]string{}, map[string]string{"tpath": "800ms", "period": "3.2s"}, "--set tpath=500us --set period=500us has the paper's 500us"},
		{"dhlb", map[string]string{}, map[string]string{"tmax": "173ms"}, "--set tmax=100ms has the paper's 100ms"},
		{"dhlb", map[string]string{"tmax": "1s"}, map[string]string{"tmax": "1s"}, ""},
		{"ecmp", map[string]string{}, map[string]string{}, ""},
	} {
		got, log := chosenFor(t, &pacing{}, targetEmbedded, topology, c.scheme, c.set)
		if !maps.Equal(got, c.want) {
			t.Errorf("%s %v: got %v, want %v", c.scheme, c.set, got, c.want)
		}
		if !strings.Contains(log, c.log) || c.log == "" && log != "" {
			t.Errorf("%s %v: the log has no %q:\n%s", c.scheme, c.set, c.log, log)
		}
	}
}

// Switches carry 400 probes a second on BMv2, and 6,000 hops a second in this process.
func TestBudgets(t *testing.T) {
	for _, test := range []struct {
		n, budget int
		want      time.Duration
	}{{1000, probeBudget, 2500 * time.Millisecond}, {6000, hopBudget, time.Second}, {12000, hopBudget, 2 * time.Second}, {0, hopBudget, time.Millisecond}} {
		if got := periodOf(test.n, test.budget); got != test.want {
			t.Errorf("%d a period, %d a second: %v, want %v", test.n, test.budget, got, test.want)
		}
	}
}

// A period that the switches carry exactly stays the paper's: 3 leaves and 66 spines have
// about 600 hops a period, which is 100 ms at 6,000 a second.
func TestPaceKept(t *testing.T) {
	topology, err := fabric.LeafSpine{Leaves: 3, Spines: 66}.Make()
	if err != nil {
		t.Fatal(err)
	}
	if got, log := chosenFor(t, &pacing{}, targetEmbedded, topology, "dhlb", nil); len(got) > 0 || log != "" {
		t.Errorf("chosen %v: %s", got, log)
	}
}

// TestPaceAdapts checks that a slow task gets twice the time that it took, HULA's
// paths fail after three periods, and a period of the user stays.
func TestPaceAdapts(t *testing.T) {
	var c pacing
	chosen(t, &c, "hula", map[string]string{})
	late := controller.Slowness{Task: "probe", Period: 20 * time.Millisecond, Lately: 35 * time.Millisecond}
	period, advice := c.slower(late)
	if period != 70*time.Millisecond || advice != "" {
		t.Errorf("got %v and %q, want 70ms", period, advice)
	}
	c.least = period
	got, log := chosen(t, &c, "hula", map[string]string{})
	if want := map[string]string{"tprobe": "70ms", "tfail": "210ms"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := "probes are sent every 70ms, which the tasks can keep; --set tprobe=200us --set tfail=600us"; !strings.Contains(log, want) {
		t.Errorf("the log has no %q:\n%s", want, log)
	}
	for _, s := range []controller.Slowness{
		{Task: "probe", Period: longestPeriod, Lately: 3 * longestPeriod}, // as slow as it gets
		{Task: "threshold", Period: 1, Lately: 3},                         // no parameter
	} {
		if period, advice := c.slower(s); period != 0 || advice != "" {
			t.Errorf("%+v: got %v and %q, want nothing", s, period, advice)
		}
	}

	c = pacing{}
	chosen(t, &c, "hula", map[string]string{"tprobe": "200us"})
	period, advice = c.slower(controller.Slowness{Task: "probe", Period: 200 * time.Microsecond, Lately: 1500 * time.Microsecond})
	if want := "deploy with --set tprobe=3ms --set tfail=9ms"; period != 0 || advice != want {
		t.Errorf("got %v and %q, want %q", period, advice, want)
	}
}

// A period of the user is reported if its probes take more than 5 % of a core without
// traffic: 1,000 hops of 3.4 us each in less than 68 ms.
func TestWarnOfCost(t *testing.T) {
	for value, want := range map[string]string{
		"68ms": "", "1s": "", "67ms": "probes with tprobe=67ms take about 5 % of a core, also without traffic; p4lb's period is 167ms",
		"3400us": "take about 100 % of a core", "0s": "", "-1ms": "", "fast": "",
	} {
		var b bytes.Buffer
		warnOfCost(slog.New(slog.NewTextHandler(&b, nil)), "tprobe", value, 1000)
		if got := b.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// Periods are whole milliseconds, at least one.
func TestPeriodOf(t *testing.T) {
	for _, c := range []struct {
		packets, perSecond int
		want               time.Duration
	}{{8, 400, 20 * time.Millisecond}, {0, 400, time.Millisecond}, {1, 6000, time.Millisecond}, {9, 6000, 2 * time.Millisecond}, {8, 6000, time.Millisecond}} {
		if got := periodOf(c.packets, c.perSecond); got != c.want {
			t.Errorf("%d packets, %d a second: %v, want %v", c.packets, c.perSecond, got, c.want)
		}
	}
}

// A slow task gets a period between a millisecond and a second.
func TestSlowerLimits(t *testing.T) {
	c := pacing{papers: map[string]string{"tprobe": "200us"}}
	for _, test := range []struct{ period, lately, want time.Duration }{
		{10 * time.Microsecond, 20 * time.Microsecond, time.Millisecond},
		{10 * time.Millisecond, 15 * time.Millisecond, 30 * time.Millisecond},
		{30 * time.Millisecond, 15 * time.Millisecond, 0}, // its period is long enough
		{10 * time.Millisecond, 700 * time.Millisecond, longestPeriod},
	} {
		got, advice := c.slower(controller.Slowness{Task: "probe", Period: test.period, Lately: test.lately})
		if got != test.want || advice != "" {
			t.Errorf("%v runs every %v: %v, %q; want %v", test.period, test.lately, got, advice, test.want)
		}
	}
}

// A scheme that does not exist is an error.
func TestPaceWithoutScheme(t *testing.T) {
	var c pacing
	if err := c.choose(&cli.Request{Scheme: "none"}, preset(t, "qall"), targetBMv2, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("no error")
	}
}
