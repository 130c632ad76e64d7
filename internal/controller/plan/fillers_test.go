package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Keys and parameters of a filled table may have fixed values. A table that its purpose cannot
// fill is an error.
func TestFillersFixedAndWrong(t *testing.T) {
	key := func(f manifest.Fact) manifest.Key { return manifest.Key{Name: "k", Carries: f} }
	set := func(params ...manifest.Param) []manifest.Action {
		return []manifest.Action{{Name: "set", Params: params}}
	}
	carries := func(f manifest.Fact) manifest.Param { return manifest.Param{Name: "p", Carries: f} }
	for _, test := range []struct {
		purpose manifest.Purpose
		key     manifest.Key
		actions []manifest.Action
		want    string // entries or errors
	}{
		{manifest.Neighbour, key(manifest.IngressPort), set(manifest.Param{Name: "p", Value: "7"}), "3 set [7]; 4 set [7]; 5 set [7]"},
		{manifest.Identity, manifest.Key{Name: "k", Value: "9"}, set(carries(manifest.NodeNumber)), "9 set [1]"},
		{manifest.Identity, manifest.Key{Name: "k", Value: "many"}, set(carries(manifest.NodeNumber)), "l1: table I.t: nothing is known about the field k"},
		{manifest.Identity, manifest.Key{Name: "other", Carries: manifest.NodeNumber}, set(carries(manifest.NodeNumber)), "l1: table I.t: nothing is known about the field k"},
		{manifest.Neighbour, key(manifest.Destination + "x"), set(carries(manifest.QueueNumber)), "l1: table I.t: nothing is known about the field k"},
		{manifest.Neighbour, key(manifest.IngressPort), set(), "l1: table I.t: no action has a parameter"},
		{manifest.Member, key(manifest.SlotNumber), nil, "l1: table I.t: no action carries the facts of its purpose"},
	} {
		m := &manifest.Manifest{Arch: manifest.V1Model, Paths: 4, Tables: []manifest.Table{{Name: "I.t", Purpose: test.purpose, Keys: []manifest.Key{test.key}, Actions: test.actions}}}
		rows, errs := fill(t, "l1", fabric.ByHops, m, []p4info.Field{{Name: "k", Width: 48, Kind: configv1.MatchField_EXACT}}, map[string][]string{"set": {"p"}})
		got := strings.Join(rows, "; ")
		if len(errs) > 0 {
			got = errs[0]
		}
		if got != test.want {
			t.Errorf("%s %+v %+v: %s, want %s", test.purpose, test.key, test.actions, got, test.want)
		}
	}
}

// Hardware does not check slots that flows remember: slots beyond the paths of a group lead to
// its paths again.
func TestSlotsBeyondGroup(t *testing.T) {
	for arch, want := range map[manifest.Arch]string{
		manifest.V1Model: "0 set [3]; 1 set [4]; 2 set [5]",
		manifest.TNA:     "0 set [3]; 1 set [4]; 2 set [5]; 3 set [3]; 4 set [4]",
	} {
		m := &manifest.Manifest{Arch: arch, Paths: 5, Tables: []manifest.Table{{
			Name: "I.t", Purpose: manifest.Member, Keys: []manifest.Key{{Name: "slot", Carries: manifest.SlotNumber}},
			Actions: []manifest.Action{{Name: "set", Params: []manifest.Param{{Name: "p", Carries: manifest.EgressPort}}}},
		}}}
		rows, errs := fill(t, "l1", fabric.ByHops, m, []p4info.Field{{Name: "slot", Width: 48, Kind: configv1.MatchField_EXACT}}, map[string][]string{"set": {"p"}})
		if got := strings.Join(rows, "; "); got != want || len(errs) > 0 {
			t.Errorf("%s: %s, %q; want %s", arch, got, errs, want)
		}
	}
}

// A register of the controller without a task holds round-trip times, by path or for one slot
// of each group, if it has no other values.
func TestCellsOfController(t *testing.T) {
	delays := func(index manifest.Index, slot *manifest.Copy) manifest.Register {
		return manifest.Register{Name: "I.r", Index: index, Copy: slot, Writer: manifest.Controller, Content: manifest.Content{Kind: manifest.Delay, Unit: "us"}}
	}
	written := delays(manifest.ByPath, nil)
	written.Writer = ""
	initial := delays(manifest.ByPath, nil)
	initial.Initial = []manifest.Cell{{Index: 4, Value: 9}, {Index: -1, Value: 8}}
	rate := delays(manifest.ByPath, nil)
	rate.Kind = manifest.Rate
	first := 2 * manifest.MaxPaths
	for name, test := range map[string]struct {
		register manifest.Register
		tasks    []manifest.Task
		want     string
		fails    string
	}{
		"by path":         {delays(manifest.ByPath, nil), nil, fmt.Sprintf("[{I.r %d %d 12000} {I.r %d %d 0} {I.r %d %d 0}]", first, first+1, first+1, first+2, first+2, first+3), ""},
		"a slot":          {delays(manifest.ByGroup, &manifest.Copy{Slot: 1}), nil, "[{I.r 2 3 0}]", ""},
		"the first slot":  {delays(manifest.ByGroup, &manifest.Copy{}), nil, "[{I.r 2 3 12000}]", ""},
		"by group":        {delays(manifest.ByGroup, nil), nil, "[]", ""},
		"of a task":       {rate, []manifest.Task{{Registers: map[manifest.Part]string{"x": "r"}}}, "[]", ""},
		"of the program":  {written, nil, "[]", ""},
		"initial values":  {initial, nil, "[{I.r 4 5 9}]", ""},
		"nothing to hold": {rate, nil, "[]", "l1: register I.r: its writer is the controller, but no task writes it and it has no initial values"},
	} {
		b := testPlanner(t, load(t, halves5), "l1", fabric.ByLeaf)
		b.m, b.x = &manifest.Manifest{Registers: []manifest.Register{test.register}, Tasks: test.tasks}, &p4info.Index{}
		b.addCells()
		errs := ""
		for _, e := range b.errs {
			errs += e.Error()
		}
		if got := fmt.Sprint(b.out.Registers); got != test.want || errs != test.fails {
			t.Errorf("%s: %s, %q; want %s, %q", name, got, errs, test.want, test.fails)
		}
	}
}

// A queue that reports no signal of its port may have any.
func TestQueueHas(t *testing.T) {
	want := Queue{Port: 1, Rate: 5, Depth: 7, Signal: fabric.Signal{FEC: "rs"}}
	for _, test := range []struct {
		q    Queue
		want bool
	}{
		{want, true}, {Queue{Port: 1, Rate: 5, Depth: 7}, true}, {Queue{Port: 2, Rate: 5, Depth: 7}, false}, {Queue{Port: 1, Rate: 6, Depth: 7}, false}, {Queue{Port: 1, Rate: 5, Depth: 8}, false},
		{Queue{Port: 1, Rate: 5, Depth: 7, Signal: fabric.Signal{FEC: "none"}}, false},
	} {
		if got := test.q.Has(want); got != test.want {
			t.Errorf("%+v: %v", test.q, got)
		}
	}
}

// A plan lists cells with the same value together, and filters with their times.
func TestRowsOfCells(t *testing.T) {
	s := &Switch{Name: "l1", Role: fabric.Leaf, Pipeline: &Pipeline{Manifest: manifest.Manifest{Scheme: "x", VirtualPorts: []manifest.VirtualPort{{Port: 68, Kind: manifest.RecirculationPort}, {Port: 9}}}},
		Registers: []Cells{{Register: "r", From: 2, To: 5, Value: 6}, {Register: "r", From: 7, To: 8, Value: 1}}, Filters: []Filter{{Name: "f", Shift: 9}}}
	var rows []string
	for _, r := range (&Plan{Scheme: "x", Switches: []*Switch{s}}).Rows()[1:] {
		rows = append(rows, strings.Join(r[1:], " "))
	}
	for _, want := range []string{"register r[2..4] 6", "register r[7] 1", "filter f rate over 0s, 1/2^9"} {
		if !slices.Contains(rows, want) {
			t.Errorf("no %q in %q", want, rows)
		}
	}
	if got := s.Looped(); !slices.Equal(got, []uint32{68}) {
		t.Errorf("ports in loopback %v", got)
	}
}

// A session per port is for ports to other switches; a group per port is for all.
func TestPerPort(t *testing.T) {
	b := testPlanner(t, load(t, halves5), "l1", fabric.ByHops)
	b.m.CloneSessions = []manifest.Session{{Session: 100, PerPort: true, Bytes: 64}}
	b.addSessions()
	if got := fmt.Sprintf("%+v", b.out.Sessions); got != "[{ID:103 Port:3 Bytes:64} {ID:104 Port:4 Bytes:64} {ID:105 Port:5 Bytes:64}]" {
		t.Errorf("sessions %s", got)
	}
}
