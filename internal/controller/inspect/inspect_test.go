package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Flow tables are read every second, and less often in fabrics of more than 3 switches.
func TestFlowsEvery(t *testing.T) {
	for switches, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 3: time.Second, 4: 1200 * time.Millisecond, 20: 6 * time.Second} {
		if got := FlowsEvery(switches); got != want {
			t.Errorf("%d switches: %v, want %v", switches, got, want)
		}
	}
}

func drops(list map[bmv2.DropReason]uint64) *bmv2.PortCounts {
	c := &bmv2.PortCounts{}
	for r, n := range list {
		c.Drops[r] = n
	}
	return c
}

// The reasons of drops are listed with the most frequent first; copies that the program
// ended are no drops.
func TestDropsText(t *testing.T) {
	queue, port := bmv2.DropQueue, bmv2.DropNoPort
	for _, test := range []struct {
		drops map[bmv2.DropReason]uint64
		want  string
	}{
		{nil, "0"},
		{map[bmv2.DropReason]uint64{bmv2.EndCopy: 9}, "0"},
		{map[bmv2.DropReason]uint64{queue: 3}, fmt.Sprintf("3: %s", queue)},
		{map[bmv2.DropReason]uint64{queue: 1, port: 2, bmv2.EndCopy: 5}, fmt.Sprintf("3: %s 2, %s 1", port, queue)},
		{map[bmv2.DropReason]uint64{queue: 2, port: 1}, fmt.Sprintf("3: %s 2, %s 1", queue, port)},
	} {
		if got := dropsText(drops(test.drops)); got != test.want {
			t.Errorf("%v: %q, want %q", test.drops, got, test.want)
		}
	}
}

// Counted distinguishes the counters of the switch from the registers of the program.
func TestCounted(t *testing.T) {
	for _, test := range []struct {
		r    Reading
		want bool
	}{
		{Reading{Quantity: InBytes, Port: 1}, true},
		{Reading{Quantity: LinkDown, Port: 2}, true},
		{Reading{Quantity: Drops + ": queue", Port: 1}, true},
		{Reading{Quantity: Drops, Port: 0, Index: portName(0)}, true},
		{Reading{Quantity: Drops, Port: 0, Index: "all"}, false},
		{Reading{Quantity: InBytes, Port: 1, Register: "bytes"}, false},
		{Reading{Quantity: "utilisation", Port: 1}, false},
		{Reading{Quantity: Carried, Port: 1, Path: 2}, true},
		{Reading{Quantity: Carried, Port: 1}, false},
	} {
		if got := test.r.Counted(); got != test.want {
			t.Errorf("%+v: %v", test.r, got)
		}
	}
}

// A switch is idle if its ports are counted, no packet arrived, left or was lost, and no
// shown register holds a value.
func TestIdle(t *testing.T) {
	port := func(q string, v float64) Reading { return Reading{Quantity: q, Port: 1, Value: v} }
	for _, test := range []struct {
		name string
		list []Reading
		want bool
	}{
		{"no counts", []Reading{{Quantity: "x", Register: "x"}}, false},
		{"nothing", []Reading{port(InPackets, 0), port(OutPackets, 0), port(Drops, 0)}, true},
		{"a packet came", []Reading{port(InPackets, 1), port(OutPackets, 0)}, false},
		{"a packet left", []Reading{port(InPackets, 0), port(OutPackets, 1)}, false},
		{"a packet was lost", []Reading{port(InPackets, 0), port(Drops, 1)}, false},
		{"a register", []Reading{port(InPackets, 0), {Register: "r", Raw: 1}}, false},
		{"a register that is not shown", []Reading{port(InPackets, 0), {Register: "r", Raw: 1, Minor: true}}, true},
		{"a value without a register", []Reading{port(InPackets, 0), {Quantity: Load, Value: 0.5}}, true},
	} {
		s := &Snapshot{Readings: test.list}
		if got := s.Idle(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// newReader returns a reader of a switch with ports 1 to 3, of 1 Gbit/s each.
func newReader(counts ...bmv2.PortCounts) *reader {
	in := &Inspector{node: &plan.Node{}, ports: counts, last: map[readingKey]float64{}, next: map[readingKey]float64{}}
	r := &reader{in: in, s: &Snapshot{}}
	for n := 1; n <= 3; n++ {
		r.ports = append(r.ports, fabric.Port{Number: n, Peer: fmt.Sprint("n", n), Rate: 1e9})
	}
	return r
}

// The counts of a port become readings: packets, bytes, the fill of its queue, drops.
// A port without a link shows up if packets were sent to it.
func TestPortReadings(t *testing.T) {
	full := bmv2.PortCounts{Port: 1, InPackets: 3, InBytes: 300, OutPackets: 2, OutBytes: 250, Queued: 16, Room: 64}
	lost := bmv2.PortCounts{Port: 7}
	lost.Drops[bmv2.DropNoPort] = 4
	unused := bmv2.PortCounts{Port: 8}
	r := newReader(full, bmv2.PortCounts{Port: 2, Down: true}, lost, unused)
	r.counts()
	got := map[string]float64{}
	for _, x := range r.s.Readings {
		got[fmt.Sprint(x.Port, " ", x.Quantity)] = x.Value
	}
	for key, want := range map[string]float64{
		"1 " + InPackets: 3, "1 " + InBytes: 300, "1 " + OutPackets: 2, "1 " + OutBytes: 250,
		"1 " + Queued: 16, "1 " + QueueFill: 0.25, "1 " + LinkDown: 0, "2 " + LinkDown: 1, "7 " + Drops: 4, "7 " + LinkDown: 1,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s: %v (%v), want %v", key, v, ok, want)
		}
	}
	for _, key := range []string{"2 " + Queued, "3 " + InPackets, "8 " + Drops, "1 " + InRate, "1 " + Load} {
		if v, ok := got[key]; ok {
			t.Errorf("%s is %v: want no reading", key, v)
		}
	}
}

// The traffic of a group is divided in proportion to the bytes that its ports sent. Groups with the same
// ports share the readings; a group with one port has none.
func TestCarried(t *testing.T) {
	r := newReader()
	hops := func(ports ...int) (list []fabric.Hop) {
		for _, p := range ports {
			list = append(list, fabric.Hop{Port: p})
		}
		return list
	}
	r.groups = []fabric.Group{{ID: 1, Hops: hops(1, 2, 1)}, {ID: 2, Hops: hops(2, 1)}, {ID: 3, Hops: hops(3)}, {ID: 4, Hops: hops(2, 3, 9)}}
	r.carried(map[int]float64{1: 300, 2: 100, 3: 0})
	var got []string
	for _, x := range r.s.Readings {
		got = append(got, fmt.Sprintf("group %d port %d cell %d: %v", x.Group, x.Port, x.Cell, x.Value))
	}
	want := []string{"group 1 port 1 cell 16: 0.75", "group 1 port 2 cell 17: 0.25", "group 4 port 2 cell 64: 1", "group 4 port 3 cell 65: 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The age of information is the time since it was received. Zero means that nothing was
// received. Flows end after two timeouts.
func TestNewsAges(t *testing.T) {
	r := manifest.Register{Name: "heard", Size: 5, Width: 32, Index: manifest.ByPort}
	r.Kind, r.Event, r.Unit = manifest.Moment, manifest.Heard, manifest.Microseconds
	m := &manifest.Manifest{Registers: []manifest.Register{r}}
	n := NewsOf(&plan.Node{Manifest: m})
	if n == nil || !n.ByPort {
		t.Fatalf("%+v", n)
	}
	read := func(_ string, dst []uint64) ([]uint64, error) { return append(dst, 0, 990, 1000, 400, 1), nil }
	ages := func() (list []string) {
		err := n.Ages(read, time.Millisecond, func(i int, age time.Duration) { list = append(list, fmt.Sprint(i, " ", age)) })
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got, want := ages(), []string{"1 10µs", "2 0s", "3 600µs", "4 999µs"}; !slices.Equal(got, want) {
		t.Errorf("ages %v, want %v", got, want)
	}
	n.limit = 600 * time.Microsecond
	if got, want := ages(), []string{"1 10µs", "2 0s", "3 600µs"}; !slices.Equal(got, want) {
		t.Errorf("ages with a limit %v, want %v", got, want)
	}
	if NewsOf(&plan.Node{Manifest: &manifest.Manifest{}}) != nil {
		t.Error("a program without times has news")
	}
}

// Of several times, the time of the register with the information counts.
func TestNewsOf(t *testing.T) {
	moment := func(name string, event manifest.Event, of string, index manifest.Index) *registers.Array {
		a := &registers.Array{Name: name, Index: index}
		a.Kind, a.Event, a.Of = manifest.Moment, event, of
		return a
	}
	value := &registers.Array{Name: "u", Index: manifest.ByPort}
	heardOfU, heardOfV := moment("hu", manifest.Heard, "u", manifest.ByPath), moment("hv", manifest.Heard, "v", manifest.ByPath)
	reported, began := moment("rep", manifest.Reported, "", manifest.ByPort), moment("beg", manifest.Began, "u", manifest.ByFlow)
	for _, test := range []struct {
		list []*registers.Array
		want *registers.Array
	}{
		{[]*registers.Array{value, heardOfU, heardOfV, reported, began}, heardOfU},
		{[]*registers.Array{value, heardOfV, reported, began}, reported},
		{[]*registers.Array{heardOfV, reported, began}, heardOfV},
		{[]*registers.Array{reported, began}, reported},
		{[]*registers.Array{began}, began},
		{[]*registers.Array{value}, nil},
	} {
		if got := newsOf(test.list, "u"); got != test.want {
			t.Errorf("%d arrays: %+v, want %+v", len(test.list), got, test.want)
		}
	}
}

// Replay returns the content of a recording, in both formats.
func TestRecording(t *testing.T) {
	s := &Snapshot{Switch: "l1", Role: "leaf", Scheme: "x", Time: 5 * time.Millisecond, Clock: 7 * time.Millisecond, Readings: []Reading{
		{Register: "r", Quantity: "queue", Cell: 3, Index: "port 3", Port: 3, Peer: "s1", Raw: 1 << 40, Value: 2.5, Unit: "packets", Text: "2.5", Change: -1, Rate: 0.25, Minor: true},
		{Quantity: InBytes, Cell: 1, Port: 1, Group: 2, Path: 4, Value: 300, Unit: "bytes", Text: "300, B"},
	}}
	for _, format := range RecordFormats {
		var file bytes.Buffer
		w, err := NewRecorder(&file, format)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := OpenRecording("x."+format, bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		round, err := r.Round()
		if err != nil || len(round) != 1 {
			t.Fatalf("%s: %d snapshots, %v", format, len(round), err)
		}
		got, want := *round[0], *s
		if !slices.Equal(got.Readings, want.Readings) {
			t.Errorf("%s: readings\n%+v, want\n%+v", format, got.Readings, want.Readings)
		}
		if got.Time != want.Time || got.Clock != want.Clock || got.Switch != want.Switch || got.Role != want.Role || got.Scheme != want.Scheme {
			t.Errorf("%s: %+v, want %+v", format, got, want)
		}
		if _, err := r.Round(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: after the last round: %v", format, err)
		}
	}
	if _, err := NewRecorder(&bytes.Buffer{}, "xml"); err == nil || err.Error() != `no recording of form "xml": want csv or parquet` {
		t.Errorf("another format: %v", err)
	}
}

// A recording has each reading once, also if it is longer than a row group of Parquet.
func TestLongRecording(t *testing.T) {
	const rows = rowGroup + 2
	var file bytes.Buffer
	w, err := NewRecorder(&file, "parquet")
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < rows; at += rows / 2 {
		s := &Snapshot{Switch: "l1", Time: time.Duration(at) * time.Millisecond, Readings: make([]Reading, rows/2)}
		for i := range s.Readings {
			s.Readings[i] = Reading{Register: "r", Quantity: "queue", Cell: at + i}
		}
		if err := w.Record(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := parquet.Read[recordRow](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(list) != rows {
		t.Fatalf("%d rows, %v, want %d", len(list), err, rows)
	}
	for i, row := range list {
		if row.Cell != int64(i) {
			t.Fatalf("row %d has cell %d", i, row.Cell)
		}
	}
}

// Rounds are recirculations divided by packets, for the ports that have packets. A port
// is expected to be paused until its deadline.
func TestDerived(t *testing.T) {
	array := func(name string, cells ...uint64) *registers.Array {
		return &registers.Array{Name: name, Index: manifest.ByPort, Size: len(cells), Cells: cells}
	}
	rounds, packets, until := array("rounds", 0, 9, 5, 4), array("packets", 0, 4, 0, 2), array("until", 0, 1500, 400, 1000)
	rounds.Kind, rounds.Unit, rounds.Per = manifest.Count, manifest.Recirculations, "packets"
	until.Kind, until.Event = manifest.Deadline, manifest.Pause
	r := newReader()
	// Each of the others lacks one property of the recirculations.
	var others []*registers.Array
	for _, change := range []func(a *registers.Array){
		func(a *registers.Array) { a.Index = manifest.ByGroup },
		func(a *registers.Array) { a.Kind = manifest.Opaque },
		func(a *registers.Array) { a.Unit = "" },
		func(a *registers.Array) { a.Per = "" },
	} {
		a := *rounds
		a.Cells = []uint64{100, 100, 100, 100}
		change(&a)
		others = append(others, &a)
	}
	r.in.arrays = append(others, rounds, packets, until)
	r.in.byName = map[string]*registers.Array{"packets": packets}
	r.s.Clock = time.Millisecond
	r.rounds()
	r.warnings()
	var got []string
	for _, x := range r.s.Readings {
		got = append(got, fmt.Sprintf("port %d %s %v %s", x.Port, x.Quantity, x.Value, x.Text))
	}
	want := []string{
		"port 1 recirculations per packet 2.25 2.25", "port 3 recirculations per packet 2 2",
		"port 1 warned 1 for 500 us", "port 2 warned 0 no", "port 3 warned 0 no",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Ports beyond the cells of a register have no recirculations per packet. A program without
// packets per port has none at all.
func TestRoundsOfFewCells(t *testing.T) {
	for _, test := range []struct {
		rounds, packets []uint64
		want            string
	}{
		{[]uint64{0, 9, 5, 4}, []uint64{0, 3, 5}, "1:3 2:1 "}, {[]uint64{0, 9}, []uint64{0, 3, 5, 4}, "1:3 "},
		{[]uint64{0, 0, 5}, []uint64{0, 3, 0}, "1:0 "}, {[]uint64{0, 9, 5, 4}, nil, ""}, {nil, []uint64{0, 3, 5, 4}, ""},
	} {
		rounds := &registers.Array{Name: "rounds", Index: manifest.ByPort, Cells: test.rounds}
		rounds.Kind, rounds.Unit, rounds.Per = manifest.Count, manifest.Recirculations, "packets"
		r := newReader()
		r.in.arrays = []*registers.Array{rounds}
		r.in.byName = map[string]*registers.Array{}
		if test.packets != nil {
			r.in.byName["packets"] = &registers.Array{Name: "packets", Index: manifest.ByPort, Cells: test.packets}
		}
		r.rounds()
		got := ""
		for _, x := range r.s.Readings {
			got += fmt.Sprintf("%d:%s ", x.Port, x.Text)
		}
		if got != test.want {
			t.Errorf("%d recirculations of %d packets: %s, want %s", test.rounds, test.packets, got, test.want)
		}
	}
}

// A reader reads only the cells of a register that the network can use: up to the last
// port or group. Without a topology it reads all.
func TestUsedCells(t *testing.T) {
	known := &Inspector{node: l1()}
	single := &Inspector{node: &plan.Node{Groups: []fabric.Group{{ID: 1}}, Ports: []fabric.Port{{Number: 5}}}}
	for _, test := range []struct {
		in   *Inspector
		by   manifest.Index
		size int
		want int
	}{
		{known, manifest.ByPort, 512, 4}, {known, manifest.ByPort, 2, 2}, {known, manifest.ByGroup, 512, 4}, {known, manifest.ByPath, 512, 4 * manifest.MaxPaths}, {known, manifest.ByPath, 5, 5},
		{single, manifest.ByPort, 512, 6}, {single, manifest.ByGroup, 512, 2}, {single, manifest.ByPath, 512, 2 * manifest.MaxPaths},
		{known, manifest.ByFlow, 512, 512}, {known, "", 3, 3},
		{&Inspector{node: &plan.Node{}}, manifest.ByPort, 512, 512}, {&Inspector{node: &plan.Node{}}, manifest.ByGroup, 512, 512}, {&Inspector{node: &plan.Node{}}, manifest.ByPath, 512, 512},
	} {
		if got := test.in.used(test.by, test.size); got != test.want {
			t.Errorf("%d cells by %q: %d are read, want %d", test.size, test.by, got, test.want)
		}
	}
}

// A flow that was silent for two timeouts has ended, so its age does not count. Values of
// ports have no limit.
func TestLimitOfNews(t *testing.T) {
	for index, want := range map[manifest.Index]time.Duration{manifest.ByFlow: 1200 * time.Microsecond, manifest.ByPort: 0} {
		r := manifest.Register{Name: "heard", Size: 5, Width: 32, Index: index}
		r.Kind, r.Event, r.Unit = manifest.Moment, manifest.Heard, manifest.Microseconds
		n := NewsOf(&plan.Node{Manifest: &manifest.Manifest{Registers: []manifest.Register{r}, FlowTimeout: manifest.Duration(600 * time.Microsecond)}})
		if n == nil || n.limit != want || n.ByPort != (index == manifest.ByPort) {
			t.Errorf("by %s: %+v, want a limit of %v", index, n, want)
		}
	}
}
