package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// fakeAccess has the registers of one switch and, if counts is set, port counters.
type fakeAccess struct {
	cells map[string][]uint64
	clock time.Duration
	err   error // of the clock
	reads []string
}

func (f *fakeAccess) Read(_ context.Context, name string, from, to int, dst []uint64) ([]uint64, error) {
	cells := f.cells[name]
	if to > len(cells) {
		return nil, fmt.Errorf("no register %s with %d cells", name, to)
	}
	f.reads = append(f.reads, fmt.Sprintf("%s[%d..%d]", name, from, to))
	return append(dst, cells[from:to]...), nil
}

func (f *fakeAccess) Write(context.Context, string, int, int, uint64) error { return nil }

func (f *fakeAccess) Clock(context.Context) (time.Duration, error) { return f.clock, f.err }

// A fakeMeter is a fakeAccess with port counters.
type fakeMeter struct {
	fakeAccess
	counts []bmv2.PortCounts
	failed error
}

func (f *fakeMeter) PortCounts(context.Context) ([]bmv2.PortCounts, error) { return f.counts, f.failed }

// l1 is a leaf with the host h1 at port 1 and spines at ports 2 and 3, which lead to the
// leaves 2 and 3.
func l1(list ...manifest.Register) *plan.Node {
	n := &plan.Node{Name: "l1", Leaf: 1, ByLeaf: true, Manifest: &manifest.Manifest{Scheme: "mine", Role: "leaf", Arch: manifest.V1Model, Paths: 4, Registers: list}}
	for i, p := range []struct {
		peer string
		tier int
	}{{"h1", 0}, {"s1", 2}, {"s2", 2}} {
		n.Ports = append(n.Ports, fabric.Port{Number: i + 1, Peer: p.peer, PeerTier: p.tier, Rate: 1e9})
	}
	hops := []fabric.Hop{{Port: 2}, {Port: 3}}
	n.Groups = []fabric.Group{{ID: 2, Hops: hops}, {ID: 3, Hops: hops}}
	return n
}

func register(name string, size int, index manifest.Index, c manifest.Content) manifest.Register {
	return manifest.Register{Name: "C." + name, Size: size, Width: 32, Index: index, Content: c}
}

// rows returns the readings of a register with index and value, and other readings as
// text.
func rows(s *Snapshot, name string) (list []string) {
	for _, r := range s.Readings {
		if "C."+r.Register == name {
			list = append(list, fmt.Sprintf("%s: %v, %s", r.Index, r.Value, r.Text))
		}
	}
	return list
}

// A snapshot has a reading for each port, group, path and other object that the switch
// uses, with changes and rates since the snapshot before.
func TestSnapshot(t *testing.T) {
	n := l1(
		register("total", 1, manifest.BySwitch, manifest.Content{Kind: manifest.Count}),
		register("depth", 8, manifest.ByPort, manifest.Content{Kind: manifest.QueueLength}),
		register("seen", 8, manifest.ByPort, manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds}),
		register("best", 8, manifest.ByGroup, manifest.Content{Kind: manifest.Slot, Valid: 8}),
		register("load", 64, manifest.ByPath, manifest.Content{Kind: manifest.Count}),
		register("leaves", 4, manifest.ByDestination, manifest.Content{Kind: manifest.Count}),
		register("nodes", 3, manifest.ByNode, manifest.Content{Kind: manifest.Trend}),
		manifest.Register{Name: "C.memory", Size: 8, Width: 32, Index: manifest.ByMemory, Each: 2, Content: manifest.Content{Kind: manifest.Count}},
	)
	load := make([]uint64, 64)
	load[32], load[33], load[48], load[49] = 20, 21, 30, 31
	f := &fakeAccess{clock: time.Millisecond, cells: map[string][]uint64{
		"C.total": {7}, "C.depth": {0, 1, 2, 3, 9, 9, 9, 9}, "C.seen": {0, 0, 900, 1100, 0, 0, 0, 0}, "C.best": {0, 0, 0x101, 1, 0, 0, 0, 0}, "C.load": load,
		"C.leaves": {5, 6, 7, 8}, "C.nodes": {0, 1, 2}, "C.memory": {0, 0, 0, 0, 4, 5, 6, 7},
	}}
	in, err := New(n, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := in.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Switch != "l1" || s.Role != "leaf" || s.Scheme != "mine" || s.Clock != time.Millisecond || s.Guessed {
		t.Errorf("%+v", s)
	}
	for name, want := range map[string][]string{
		"C.total":  {": 7, 7"},
		"C.depth":  {"port 1: 1, 1", "port 2: 2, 2", "port 3: 3, 3"},
		"C.seen":   {"port 1: 0, never", "port 2: 900, 100 us ago", "port 3: 1100, in 100 us"},
		"C.best":   {"leaf 2: 1, path 2, port 3", "leaf 3: 1, none"},
		"C.load":   {"leaf 2 path 1: 20, 20", "leaf 2 path 2: 21, 21", "leaf 3 path 1: 30, 30", "leaf 3 path 2: 31, 31"},
		"C.leaves": {"leaf 1: 6, 6", "leaf 2: 7, 7", "leaf 3: 8, 8"},
		"C.nodes":  {"switch 1: 1, falling", "switch 2: 2, rising"},
		"C.memory": {"leaf 2 memory 1: 4, 4", "leaf 2 memory 2: 5, 5", "leaf 3 memory 1: 6, 6", "leaf 3 memory 2: 7, 7"},
	} {
		got := rows(s, name)
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], " packets")
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if want := []string{"C.depth[0..4]", "C.seen[0..4]", "C.best[0..4]", "C.load[0..64]"}; !slices.Equal(f.reads[1:5], want) {
		t.Errorf("reads %v, want those that the switch uses: %v", f.reads, want)
	}
	for _, r := range s.Readings {
		if r.Change != 0 || r.Rate != 0 {
			t.Errorf("the first snapshot has a change: %+v", r)
		}
		if r.Register == "load" && (r.Group != r.Cell>>4 || r.Path != r.Cell&15+1 || r.Port != r.Path+1 || r.Peer != fmt.Sprint("s", r.Path)) {
			t.Errorf("a path: %+v", r)
		}
	}
	f.cells["C.total"][0], f.cells["C.depth"][2], f.clock = 17, 1, 3*time.Millisecond
	if s, err = in.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Readings {
		change, rate := 0.0, 0.0
		switch {
		case r.Register == "total":
			change, rate = 10, 5000 // in 2 ms
		case r.Register == "depth" && r.Port == 2:
			change, rate = -1, -500
		}
		if r.Register != "" && (r.Change != change || r.Rate != rate) {
			t.Errorf("%s of %s changes by %v, %v per second; want %v, %v", r.Register, r.Index, r.Change, r.Rate, change, rate)
		}
	}
	// Without a clock, it is the latest time in the registers.
	f.err = fmt.Errorf("x: %w", registers.ErrNoClock)
	if s, err = in.Snapshot(t.Context()); err != nil || !s.Guessed || s.Clock != 1100*time.Microsecond {
		t.Errorf("without a clock: %v, %v, %v", s.Clock, s.Guessed, err)
	}
	f.err = errors.New("broken")
	if _, err = in.Snapshot(t.Context()); err == nil || err.Error() != "l1: reading the clock: broken" {
		t.Errorf("a broken clock: %v", err)
	}
	f.err = nil
	delete(f.cells, "C.best")
	_, err = in.Snapshot(t.Context())
	if e, ok := errors.AsType[*plan.Error](err); !ok || e.Error() != "l1: reading C.best: no register C.best with 4 cells" || e.Hint != "does the switch run mine? p4lb deploy --diff compares" {
		t.Errorf("a missing register: %v", err)
	}
}

// Options select registers by name, and leave flow tables out.
func TestSelection(t *testing.T) {
	n := l1(
		register("depth", 4, manifest.ByPort, manifest.Content{Kind: manifest.QueueLength}),
		register("flows", 1024, manifest.ByFlow, manifest.Content{Kind: manifest.Slot, Valid: 8}),
		register("hashes", 1024, manifest.ByFlow, manifest.Content{Kind: manifest.Count}),
		register("own", 4096, "", manifest.Content{Kind: manifest.Opaque}),
		register("few", 4, "", manifest.Content{Kind: manifest.Opaque}),
	)
	f := &fakeAccess{clock: time.Millisecond, cells: map[string][]uint64{
		"C.depth": {0, 1, 2, 3}, "C.flows": make([]uint64, 1024), "C.hashes": make([]uint64, 1024), "C.own": make([]uint64, 4096), "C.few": {0, 8, 0, 9},
	}}
	f.cells["C.own"][77], f.cells["C.hashes"][5] = 6, 4
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{}, "C.depth C.flows C.few"},
		{Options{NoFlows: true}, "C.depth C.few"},
		{Options{Everything: true}, "C.depth C.flows C.hashes C.own C.few"},
		{Options{Registers: []string{"C.own"}}, "C.own"},
		{Options{Registers: []string{"C.hashes", "C.depth"}, NoFlows: true}, "C.depth C.hashes"},
	} {
		in, err := New(n, f, test.o)
		if err != nil {
			t.Fatal(err)
		}
		f.reads = nil
		s, err := in.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.reads {
			f.reads[i], _, _ = strings.Cut(f.reads[i], "[")
		}
		if got := strings.Join(f.reads, " "); got != test.want {
			t.Errorf("%+v reads %s, want %s", test.o, got, test.want)
		}
		if slices.Contains(test.o.Registers, "C.own") {
			if got := rows(s, "C.own"); !slices.Equal(got, []string{"cell 77: 6, 6"}) {
				t.Errorf("cells %q", got)
			}
		}
		if slices.Contains(test.o.Registers, "C.hashes") {
			if got := rows(s, "C.hashes"); !slices.Equal(got, []string{"flow 5: 4, 4"}) {
				t.Errorf("flows %q", got)
			}
		}
	}
	_, err := New(n, f, Options{Registers: []string{"C.depth", "C.dept"}})
	if e, ok := errors.AsType[*plan.Error](err); !ok || e.Error() != `l1: there is no register "C.dept"` || e.Hint != "mine has C.depth, C.flows, C.hashes, C.own, C.few" {
		t.Errorf("an unknown register: %v", err)
	}
	_, err = New(l1(), f, Options{Registers: []string{"C.x"}})
	if e, ok := errors.AsType[*plan.Error](err); !ok || e.Hint != "mine keeps nothing in registers" {
		t.Errorf("a program without registers: %v", err)
	}
	in, _ := New(n, f, Options{FlowsEvery: time.Hour})
	for range 2 {
		f.reads = nil
		if _, err := in.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(f.reads); got != 1 {
		t.Errorf("the second snapshot of an hour reads %v, want no flows", f.reads)
	}
}

// A switch without a known plan shows the ports and groups whose cells are not 0.
func TestUnknownNetwork(t *testing.T) {
	n := l1(
		register("depth", 6, manifest.ByPort, manifest.Content{Kind: manifest.QueueLength}),
		register("size", 6, manifest.ByGroup, manifest.Content{Kind: manifest.Count}),
		register("load", 96, manifest.ByPath, manifest.Content{Kind: manifest.Count}),
	)
	n.Ports, n.Groups, n.ByLeaf, n.Manifest.Paths = nil, nil, false, 2
	load := make([]uint64, 96)
	load[4*16+1] = 3
	f := &fakeAccess{cells: map[string][]uint64{"C.depth": {0, 0, 5, 0, 6, 0}, "C.size": {0, 1, 0, 0, 0, 0}, "C.load": load}, clock: time.Second}
	in, err := New(n, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := in.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Readings {
		if r.Register != "" {
			got = append(got, fmt.Sprint(r.Index, "=", r.Value))
		}
	}
	want := []string{"port 2=5", "port 4=6", "group 1=1", "group 4=0", "group 1 path 1=0", "group 1 path 2=0", "group 4 path 1=0", "group 4 path 2=3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Observations follow the reports of ports to other switches: traffic from counters since
// the sample before, occupancy in percent.
func TestObserver(t *testing.T) {
	list := []manifest.Register{
		register("occupancy", 8, manifest.ByPort, manifest.Content{Kind: manifest.Occupancy, Scale: 200}),
		register("interval", 8, manifest.ByPort, manifest.Content{Kind: manifest.Interval, Unit: manifest.Microseconds}),
		register("heard", 8, manifest.ByPort, manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds, Event: manifest.Heard}),
	}
	f := &fakeMeter{fakeAccess: fakeAccess{clock: time.Second, cells: map[string][]uint64{
		"C.occupancy": {0, 9, 50, 100, 0, 0, 0, 0}, "C.interval": {0, 9, 12, 13, 0, 0, 0, 0}, "C.heard": {0, 9, 1, 1, 0, 0, 0, 0},
	}}}
	count := func(one, two, three uint64) {
		f.counts = []bmv2.PortCounts{{Port: 1, OutBytes: one}, {Port: 2, OutBytes: two}, {Port: 3, OutBytes: three}}
	}
	count(5, 1000, 2000)
	o, err := NewObserver(l1(list...), f)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	sample := func() []Observation {
		t.Helper()
		got, err := o.Sample(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := sample(); len(got) != 0 {
		t.Errorf("the first sample: %+v", got)
	}
	f.clock = 1010 * time.Millisecond
	count(50, 2000, 4000)
	f.cells["C.heard"][2] = 1_005_000                                                                                                                       // port 3 has no news
	if got, want := sample(), []Observation{{ClockUS: 1_010_000, Switch: "l1", Port: 2, Traffic: 800, Queue: 25, Interval: 12}}; !slices.Equal(got, want) { // 1,000 bytes in 10 ms
		t.Errorf("%+v, want %+v", got, want)
	}
	f.clock = 1020 * time.Millisecond
	count(50, 100, 5000) // port 2 counts from 0 again
	f.cells["C.heard"][2], f.cells["C.heard"][3] = 1_015_000, 1_016_000
	want := []Observation{{ClockUS: 1_020_000, Switch: "l1", Port: 2, Queue: 25, Interval: 12}, {ClockUS: 1_020_000, Switch: "l1", Port: 3, Traffic: 800, Queue: 50, Interval: 13}}
	if got := sample(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	f.err = fmt.Errorf("x: %w", registers.ErrNoClock)
	if _, err := o.Sample(t.Context(), nil); err == nil || !strings.HasPrefix(err.Error(), "l1: P4Runtime does not report the switch's clock") {
		t.Errorf("without a clock: %v", err)
	}
	f.err, f.failed = nil, errors.New("broken")
	if _, err := o.Sample(t.Context(), nil); err == nil || err.Error() != "l1: counting what ports have sent: broken" {
		t.Errorf("broken counters: %v", err)
	}
	f.failed = errors.ErrUnsupported
	if err := o.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "neither the target nor the program counts") {
		t.Errorf("no counters: %v", err)
	}
	if _, err := NewObserver(l1(list[:2]...), f); err == nil || !strings.Contains(err.Error(), "does not measure occupancy and dequeue intervals") {
		t.Errorf("without news: %v", err)
	}
	hardware := l1(list...)
	hardware.Manifest.Arch = manifest.TNA
	if _, err := NewObserver(hardware, f); err == nil {
		t.Error("programs for Tofino are observed")
	}
	f.failed = nil
	alone := l1(list...)
	alone.Ports = nil
	if o, err = NewObserver(alone, f); err != nil {
		t.Fatal(err)
	}
	if err := o.Ready(t.Context()); err != nil || len(o.ports) != 3 {
		t.Errorf("a single switch observes %d ports, %v", len(o.ports), err)
	}
	f.counts = nil
	if o, err = NewObserver(alone, f); err != nil {
		t.Fatal(err)
	}
	if err := o.Ready(t.Context()); err == nil || err.Error() != "l1: there is no port to observe" {
		t.Errorf("without ports: %v", err)
	}
}

// If the switch does not count the bytes that ports send, the traffic comes from the
// program: bytes that decay within a window.
func TestObserverOfByteCounts(t *testing.T) {
	window := manifest.Duration(10 * time.Millisecond)
	f := &fakeAccess{clock: time.Second, cells: map[string][]uint64{
		"C.occupancy": {0, 9, 50, 100, 0, 0, 0, 0}, "C.interval": {0, 9, 12, 13, 0, 0, 0, 0}, "C.heard": {0, 0, 1, 1, 0, 0, 0, 0},
		"C.load": {0, 0, 5000, 5000, 0, 0, 0, 0}, "C.updated": {0, 0, 1_010_000, 1_005_000, 0, 0, 0, 0},
	}}
	o, err := NewObserver(l1(
		register("occupancy", 8, manifest.ByPort, manifest.Content{Kind: manifest.Occupancy, Scale: 200}),
		register("interval", 8, manifest.ByPort, manifest.Content{Kind: manifest.Interval, Unit: manifest.Microseconds}),
		register("heard", 8, manifest.ByPort, manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds, Event: manifest.Heard}),
		register("load", 8, manifest.ByPort, manifest.Content{Kind: manifest.Rate, Unit: manifest.Bytes, Window: window}),
		register("updated", 8, manifest.ByPort, manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds, Event: manifest.Updated, Of: "load"}),
	), f)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := o.Sample(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("the first sample: %+v, %v", got, err)
	}
	f.clock = 1010 * time.Millisecond
	f.cells["C.heard"][2], f.cells["C.heard"][3] = 1_006_000, 1_007_000
	got, err := o.Sample(t.Context(), nil)
	// 5,000 bytes within 10 ms are 4 Mbit/s. Half a window later, half of them has faded.
	want := []Observation{{ClockUS: 1_010_000, Switch: "l1", Port: 2, Traffic: 4000, Queue: 25, Interval: 12}, {ClockUS: 1_010_000, Switch: "l1", Port: 3, Traffic: 2000, Queue: 50, Interval: 13}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// An observer that cannot read a register or the clock names the switch and the register.
func TestObserverFails(t *testing.T) {
	list := []manifest.Register{
		register("occupancy", 8, manifest.ByPort, manifest.Content{Kind: manifest.Occupancy, Scale: 200}),
		register("interval", 8, manifest.ByPort, manifest.Content{Kind: manifest.Interval, Unit: manifest.Microseconds}),
		register("heard", 8, manifest.ByPort, manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds, Event: manifest.Heard}),
	}
	for _, missing := range []string{"C.occupancy", "C.interval", "C.heard", ""} {
		f := &fakeMeter{fakeAccess: fakeAccess{clock: time.Second, cells: map[string][]uint64{}}}
		for _, r := range list {
			f.cells[r.Name] = make([]uint64, 8)
		}
		o, err := NewObserver(l1(list...), f)
		if err != nil {
			t.Fatal(err)
		}
		want := "l1: reading the clock: broken"
		if delete(f.cells, missing); missing != "" {
			want = "l1: reading " + missing + ": "
		} else {
			f.err = errors.New("broken")
		}
		before := []Observation{{Port: 9}}
		if got, err := o.Sample(t.Context(), before); err == nil || !strings.HasPrefix(err.Error(), want) || !slices.Equal(got, before) {
			t.Errorf("without %q: %v, %v; want %s", missing, got, err, want)
		}
	}
}

// Observations are written as rows of both formats, with the columns that p4lb fit reads.
func TestWriteObservations(t *testing.T) {
	list := []Observation{{ClockUS: 5, Switch: "l1", Port: 2, Traffic: 800.5, Queue: 25, Interval: 12}, {ClockUS: 1 << 40, Switch: "l2", Port: 3}}
	write := func(format string) []byte {
		t.Helper()
		var file bytes.Buffer
		w, err := NewObservationWriter(&file, format)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list { // each of them is in the file before the next
			before := file.Len()
			if err := w.Write(list[i : i+1]); err != nil || format == "csv" && file.Len() == before {
				t.Errorf("%s: row %d: %d bytes, %v", format, i, file.Len()-before, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	const want = "clock_us,switch,port,egress_traffic,occupancy,dequeue_interval\n5,l1,2,800.5,25,12\n1099511627776,l2,3,0,0,0\n"
	if got := string(write("csv")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	text := write("parquet")
	if got, err := parquet.Read[Observation](bytes.NewReader(text), int64(len(text))); err != nil || !slices.Equal(got, list) {
		t.Errorf("%+v, %v; want %+v", got, err, list)
	}
	if _, err := NewObservationWriter(&bytes.Buffer{}, "xml"); err == nil || err.Error() != `no dataset of form "xml": want csv or parquet` {
		t.Errorf("another format: %v", err)
	}
}

// Points of time and internal registers are minor: inspect shows them only on request.
func TestMinorReadings(t *testing.T) {
	inner := register("inner", 8, manifest.ByPort, manifest.Content{Kind: manifest.Count})
	inner.Internal = true
	in, err := New(l1(
		register("depth", 8, manifest.ByPort, manifest.Content{Kind: manifest.QueueLength}),
		register("seen", 8, manifest.ByPort, manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds}),
		register("due", 8, manifest.ByPort, manifest.Content{Kind: manifest.Deadline, Unit: manifest.Microseconds}), inner,
	), &fakeAccess{clock: time.Millisecond, cells: map[string][]uint64{"C.depth": make([]uint64, 8), "C.seen": make([]uint64, 8), "C.due": make([]uint64, 8), "C.inner": make([]uint64, 8)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := in.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	minor := map[string]bool{}
	for _, r := range s.Readings {
		minor[r.Register] = r.Minor
	}
	for register, want := range map[string]bool{"depth": false, "seen": true, "due": true, "inner": true} {
		if got, ok := minor[register]; got != want || !ok {
			t.Errorf("%s is minor: %v, want %v (read %v)", register, got, want, ok)
		}
	}
}
