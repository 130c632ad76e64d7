package lab

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/inspect"
)

const progressTest = `
name: progress
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 100G, host-rate: 100G, delay: 500ns, host-delay: 500ns, queue: 100}}
schemes: [ecmp]
transport: {kind: dcqcn, rdma: {nack: selective}}
mtu: 4160
engine: native
seeds: 1
traffic: [{collective: all-reduce, size: 4MB, ranks: 4}]
metrics: [cct]
`

// TestProgress looks at a ring of four ranks under one leaf. Nothing delays its messages
// of 1 MB, so that each of six steps takes the time of a message alone.
func TestProgress(t *testing.T) {
	step := time.Duration(alone(1e6) * 1e6)
	var early, late *CollectiveProgress
	begin := func(v *View) error {
		v.Net.At(step/2, func() { early = v.Progress() })
		v.Net.At(5*step/2, func() { late = v.Progress() })
		return nil
	}
	x := load(t, progressTest)
	run(t, &Runner{Begin: begin}, x)
	for want, p := range map[string]*CollectiveProgress{
		"0 of 1 collectives and 0 of 24 messages have ended": early,
		"0 of 1 collectives and 8 of 24 messages have ended": late,
	} {
		if p.Text != want {
			t.Errorf("%q, want %q", p.Text, want)
		}
	}
	var names []string
	for _, f := range late.Figures {
		names = append(names, f.Name)
	}
	if want := []string{"progress", "tail", "steps-ecmp"}; !reflect.DeepEqual(names, want) {
		t.Fatalf("the figures are %v, want %v: a ring under a leaf uses no links upwards", names, want)
	}
	so, ideal := late.Figures[0].Series[0], late.Figures[0].Series[1]
	if so.Label != "under way" || !(math.Abs(so.Y[0]-2.5*alone(1e6)) <= 1e-5) || ideal.Y[0] < 5.9*alone(1e6) || ideal.Y[0] > 6*alone(1e6) {
		t.Errorf("%s for %v ms of %v, want 2.5 of 6 times %g ms", so.Label, so.Y, ideal.Y, alone(1e6))
	}
	going := 0
	for k, s := range late.Figures[2].Series {
		for i, shade := range s.Shade {
			if shade < 0.5 {
				if going++; k != 2 || !(math.Abs(s.To[i]-2.5*alone(1e6)) <= 1e-5) {
					t.Errorf("step %d is under way until %g ms", k, s.To[i])
				}
			}
		}
	}
	if going != 4 {
		t.Errorf("%d messages are under way, want one of each rank", going)
	}
}

// TestProgressAside: a run that is watched has the same result. Snapshots go on until the
// collective has ended, after the duration of the experiment too.
func TestProgressAside(t *testing.T) {
	x := load(t, progressTest+"duration: 100us\ndrain: 1s\n")
	alone := run(t, &Runner{}, x).Results[0]
	var view *View
	var at []time.Duration
	watch := Watch(0, func(v *View) { view = v }, func(list []*inspect.Snapshot) error {
		at = append(at, list[0].Time)
		view.Progress()
		return nil
	})
	watched := run(t, &Runner{Record: watch}, x).Results[0]
	if !reflect.DeepEqual(alone, watched) {
		t.Errorf("alone: %v, watched: %v", alone.Metrics, watched.Metrics)
	}
	if len(at) < 20 || at[0] != 10*time.Microsecond || at[len(at)-1] != watched.Elapsed {
		t.Errorf("snapshots at %v, want them every 10us, and at the end after %v", at, watched.Elapsed)
	}
}
