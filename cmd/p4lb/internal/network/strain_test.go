package network

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestStrain: loads beyond the machine's switches are reported in advance, and a
// saturated machine afterwards.
func TestStrain(t *testing.T) {
	for text, warned := range map[string]bool{
		"topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 10Mbps, host-rate: 10Mbps}}\nduration: 5s": false,
		"topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 64, rate: 400G, host-rate: 400G}}\nduration: 20ms":  true,
	} {
		x, err := spec.Load("x.yaml", []byte(text+"\nschemes: [ecmp]\nseeds: 1\nloads: [0.9]\n"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		net, err := x.Cases[0].Network(spec.NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		c := cli.New(t.Context(), nil, strings.NewReader(""), io.Discard, &said)
		if err := warnOfStrain(c, x, net, lab.Embedded); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said.String(), "the machine is the bottleneck") != warned {
			t.Errorf("%s: %q", text, said.String())
		}
	}
	var said bytes.Buffer
	c := cli.New(t.Context(), nil, strings.NewReader(""), io.Discard, &said)
	a, b := parseCPU("cpu  100 0 50 1000 0 0 0 0 0 0"), parseCPU("cpu  280 0 60 1010 0 0 0 0 0 0")
	if warnOfBusy(c, a, b); !strings.Contains(said.String(), "busy 95 % of the time") {
		t.Errorf("%v, %v: %q", a, b, said.String())
	}
	said.Reset()
	if warnOfBusy(c, a, parseCPU("cpu  200 0 60 1100 0 0 0 0 0 0")); said.Len() > 0 {
		t.Errorf("%q", said.String())
	}
}

// inspect showed the rates of an overloaded machine without a warning.
func TestStrainOfInspectedSwitches(t *testing.T) {
	round := func(unread float64) *view.Round {
		return &view.Round{Switches: []inspect.Result{{Switch: "l1", Snapshot: &inspect.Snapshot{Readings: []inspect.Reading{
			{Quantity: inspect.Drops + ": queue full", Value: 7},
			{Quantity: inspect.Drops + ": not read in time", Value: unread},
			{Quantity: inspect.InRate, Value: 1e6},
		}}}}}
	}
	var said bytes.Buffer
	w := &strainWatch{c: cli.New(t.Context(), nil, strings.NewReader(""), io.Discard, &said)}
	if w.see(round(0), time.Time{}, func() cpuTime { return cpuTime{} }); said.Len() > 0 {
		t.Errorf("nothing was lost: %q", said.String())
	}
	one := &strainWatch{c: w.c}
	if one.see(round(1), time.Time{}, func() cpuTime { return cpuTime{} }); !strings.Contains(said.String(), "did not read 1 packet") {
		t.Errorf("a packet was not read in time: %q", said.String())
	}
	said.Reset()
	if w.see(round(3), time.Time{}, func() cpuTime { return cpuTime{} }); !strings.Contains(said.String(), "did not read 3 packets in time") {
		t.Errorf("3 packets were not read in time: %q", said.String())
	}
	said.Reset()
	if w.see(round(4), time.Time{}, func() cpuTime { return cpuTime{} }); said.Len() > 0 {
		t.Errorf("warned twice: %q", said.String())
	}
}

// Processors that are busy while switches forward packets are reported once, from times
// that are at least a second apart. Without traffic nothing is reported.
func TestStrainOfProcessors(t *testing.T) {
	type step struct {
		at         time.Duration
		busy, idle float64 // ticks since the start
		rate       float64
		warns      bool
	}
	for name, steps := range map[string][]step{
		"busy":             {{0, 0, 0, 5, false}, {time.Second, 99, 1, 5, true}, {2 * time.Second, 199, 1, 5, false}},
		"too early":        {{0, 0, 0, 5, false}, {time.Second - 1, 99, 1, 5, false}, {time.Second, 100, 1, 5, true}},
		"no traffic":       {{0, 0, 0, 0, false}, {time.Second, 99, 1, 0, false}, {2 * time.Second, 198, 2, 5, true}},
		"idle, then busy":  {{0, 0, 0, 5, false}, {time.Second, 1, 99, 5, false}, {2 * time.Second, 100, 100, 5, true}},
		"busy before":      {{0, 9000, 0, 5, false}, {time.Second, 9001, 99, 5, false}},
		"first is no base": {{0, 0, 0, 5, false}, {500 * time.Millisecond, 0, 100, 5, false}, {time.Second, 100, 101, 5, false}},
	} {
		var said bytes.Buffer
		w := &strainWatch{c: cli.New(t.Context(), nil, strings.NewReader(""), io.Discard, &said)}
		for i, s := range steps {
			said.Reset()
			w.see(&view.Round{Switches: []inspect.Result{
				{Switch: "l1", Snapshot: &inspect.Snapshot{Readings: []inspect.Reading{{Quantity: inspect.InRate}, {Quantity: inspect.InRate, Value: s.rate}}}},
				{Switch: "l2"},
			}}, time.Unix(1000, 0).Add(s.at), func() cpuTime { return cpuTime{s.busy, s.idle} })
			if strings.Contains(said.String(), "its processors were busy 99 % of the time") != s.warns || !s.warns && said.Len() > 0 {
				t.Errorf("%s, round %d: %q, want a warning: %v", name, i, said.String(), s.warns)
			}
		}
	}
}
