package task

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// PDLB's sizes belong to groups: delays of one group do not change the size of another, and
// a size is written only if the switch has another one.
func TestGranularityOfGroups(t *testing.T) {
	top, err := fabric.Load("t", []byte(`
switches: {l1: {role: leaf}, l2: {role: leaf}, l3: {role: leaf}, s1: {role: spine}, s2: {role: spine}}
hosts: {h1: {ip: 10.0.1.1/24}, h2: {ip: 10.0.2.1/24}, h3: {ip: 10.0.3.1/24}}
links:
  - {ends: [h1, l1], rate: 1G}
  - {ends: [h2, l2], rate: 1G}
  - {ends: [h3, l3], rate: 1G}
  - {ends: [l1, s1], rate: 1G}
  - {ends: [l2, s1], rate: 1G}
  - {ends: [l3, s1], rate: 1G}
  - {ends: [l1, s2], rate: 1G}
  - {ends: [l2, s2], rate: 1G}
  - {ends: [l3, s2], rate: 1G}
`))
	if err != nil {
		t.Fatal(err)
	}
	n := node(manifest.Task{Kind: manifest.Granular, Period: manifest.Duration(time.Millisecond), Registers: map[manifest.Part]string{
		manifest.PartDelay: "rtt", manifest.PartMoment: "heard", manifest.PartSize: "size",
	}})
	n.Ports[1].Queue, n.Ports[2].Queue = 48, 32
	rtt, heard := numbers("rtt", 64, manifest.ByPath), numbers("heard", 64, manifest.ByPath)
	rtt.Kind, rtt.Unit, heard.Kind, heard.Unit = manifest.Delay, manifest.Microseconds, manifest.Moment, manifest.Microseconds
	n.Manifest.Registers = []manifest.Register{rtt, heard, numbers("size", 4, manifest.ByGroup)}
	hops := []fabric.Hop{{Port: 2}, {Port: 3}}
	n.Groups = []fabric.Group{{ID: 2, Hops: hops}, {ID: 3, Hops: hops}}
	list, err := New(top, []*plan.Node{n}, Options{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d tasks, %v", len(list), err)
	}
	f := &fakeFabric{clock: time.Millisecond, registers: map[string][]uint64{"rtt": make([]uint64, 64), "heard": make([]uint64, 64), "size": make([]uint64, 4)}}
	run := func() {
		t.Helper()
		f.written = nil
		if next, err := list[0].Run(time.Second, f); err != nil || next != time.Second+time.Millisecond {
			t.Fatalf("next at %v, %v", next, err)
		}
	}
	size := func(least, most float64, bad int) uint64 {
		model := fitting.PDLB{C: 1e9 / 8 / 1500, Buffer: 48, Size: fitting.PDLBFlow, Flows: 1, M: 2, Bad: bad, Good: least, X: most / least}
		g, _, err := model.Granularity()
		if err != nil {
			t.Fatal(err)
		}
		return uint64(g)
	}
	if run(); len(f.written) != 0 {
		t.Errorf("without delays: %v", f.written)
	}
	set := func(group int, a, b uint64) {
		copy(f.registers["rtt"][group*manifest.MaxPaths:], []uint64{a, b})
		copy(f.registers["heard"][group*manifest.MaxPaths:], []uint64{900, 900})
	}
	set(2, 100, 300)
	run()
	if want := []uint64{0, 0, size(100e-6, 300e-6, 1), 0}; !slices.Equal(f.registers["size"], want) || len(f.written) != 1 {
		t.Errorf("sizes %v after %v, want %v", f.registers["size"], f.written, want)
	}
	if run(); len(f.written) != 0 {
		t.Errorf("the same sizes are written again: %v", f.written)
	}
	set(3, 100, 150)
	run()
	if want := []uint64{0, 0, size(100e-6, 300e-6, 1), size(100e-6, 150e-6, 0)}; !slices.Equal(f.registers["size"], want) || len(f.written) != 1 {
		t.Errorf("sizes %v after %v, want %v", f.registers["size"], f.written, want)
	}
	f.registers["size"][2] = 0 // the switch restarted
	if run(); f.registers["size"][2] == 0 || len(f.written) != 1 {
		t.Errorf("a size that was lost: %v", f.written)
	}
	n.Groups = nil
	list, err = New(top, []*plan.Node{n}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if next, err := list[0].Run(0, f); next != Never || err != nil {
		t.Errorf("without groups: %v, %v", next, err)
	}
}

// A task whose register cannot be read reports it and is due again after its period.
func TestUnreadableRegisters(t *testing.T) {
	period := manifest.Duration(time.Millisecond)
	for _, task := range []manifest.Task{
		{Kind: manifest.Rezero, Period: period, Registers: map[manifest.Part]string{manifest.PartQueue: "queue"}},
		{Kind: manifest.Rezero, Period: period, Registers: map[manifest.Part]string{manifest.PartIn: "in", manifest.PartOut: "out", manifest.PartGone: "gone"}},
		{Kind: manifest.RecircLimit, Period: period, Limit: 7, Incast: 3, Rate: 8e9, Pause: 100_000, Registers: map[manifest.Part]string{
			manifest.PartQueue: "queue", manifest.PartRoundTime: "time", manifest.PartLimit: "limit",
		}},
		{Kind: manifest.RecircLimit, Period: period, Limit: 7, Incast: 3, Rate: 8e9, Pause: 100_000, Registers: map[manifest.Part]string{
			manifest.PartIn: "in", manifest.PartOut: "out", manifest.PartRoundTime: "time", manifest.PartLimit: "limit",
		}},
		{Kind: manifest.Expire, Period: period, Registers: map[manifest.Part]string{manifest.PartMoment: "heard", manifest.PartBest: "best"}},
	} {
		names := slices.Sorted(maps.Values(task.Registers))
		n := node(task, names...)
		n.Groups = []fabric.Group{{ID: 1}}
		for i := range n.Manifest.Registers {
			if n.Manifest.Registers[i].Name == "heard" {
				n.Manifest.Registers[i].Kind, n.Manifest.Registers[i].Unit = manifest.Moment, manifest.Microseconds
			}
		}
		list, err := New(nil, []*plan.Node{n}, Options{})
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d tasks, %v", task.Kind, len(list), err)
		}
		all := func() *fakeFabric {
			f := &fakeFabric{registers: map[string][]uint64{}}
			for _, name := range names {
				f.registers[name] = make([]uint64, 4)
			}
			return f
		}
		if next, err := list[0].Run(time.Second, all()); err != nil || next != time.Second+time.Millisecond {
			t.Errorf("%s: next at %v, %v", task.Kind, next, err)
		}
		for _, name := range names {
			f := all()
			delete(f.registers, name)
			if next, err := list[0].Run(time.Second, f); err == nil || next != time.Second+time.Millisecond || len(f.written) > 0 {
				t.Errorf("%s without %s: next at %v, %v, wrote %v", task.Kind, name, next, err, f.written)
			}
		}
	}
}
