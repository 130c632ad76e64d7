package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A round has the snapshots of all switches at the same time, in order. A switch that cannot be
// read has an error, and does not affect others.
func TestSurveyRound(t *testing.T) {
	var list []*Inspector
	for i := range 9 {
		n := l1(register("total", 1, manifest.BySwitch, manifest.Content{Kind: manifest.Count}))
		n.Name = fmt.Sprint("l", i)
		f := &fakeAccess{clock: time.Millisecond, cells: map[string][]uint64{"C.total": {uint64(i)}}}
		if i == 4 {
			f.cells = nil
		}
		in, err := New(n, f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, in)
	}
	began := time.Now()
	s := NewSurvey(list)
	if !slices.Equal(s.Inspectors(), list) {
		t.Error("the survey has other inspectors")
	}
	results := s.Round(t.Context())
	first := results[0].Snapshot
	for i, r := range results {
		if r.Switch != fmt.Sprint("l", i) || (r.Err != nil) != (i == 4) {
			t.Fatalf("result %d: %s, %v", i, r.Switch, r.Err)
		}
		if r.Err == nil && (r.Snapshot.Readings[0].Raw != uint64(i) || r.Snapshot.Time != first.Time || r.Snapshot.Wall != first.Wall) {
			t.Errorf("snapshot %d: %+v", i, r.Snapshot)
		}
	}
	if first.Time <= 0 || first.Time > time.Since(began) || first.Wall.Before(began) {
		t.Errorf("the time is %v, at %v", first.Time, first.Wall)
	}
}

// Ports are counted if the switch can, and not if registers are named.
func TestCountsOfSwitch(t *testing.T) {
	n := l1(register("total", 1, manifest.BySwitch, manifest.Content{Kind: manifest.Count}))
	for _, test := range []struct {
		failed    error
		registers []string
		ports     int
		fails     string
		again     bool // the switch is asked the next time
	}{
		{nil, nil, 1, "", true},
		{nil, []string{"C.total"}, 0, "", true},
		{fmt.Errorf("x: %w", errors.ErrUnsupported), nil, 0, "", false},
		{errors.New("broken"), nil, 0, "l1: reading the counts of ports: broken", true},
	} {
		f := &fakeMeter{fakeAccess: fakeAccess{clock: time.Millisecond, cells: map[string][]uint64{"C.total": {5}}}, counts: []bmv2.PortCounts{{Port: 2, InPackets: 7}}, failed: test.failed}
		in, err := New(n, f, Options{Registers: test.registers})
		if err != nil {
			t.Fatal(err)
		}
		s, err := in.Snapshot(t.Context())
		if (err == nil) != (test.fails == "") || err != nil && err.Error() != test.fails {
			t.Errorf("%v: %v, want %q", test.failed, err, test.fails)
		}
		if len(in.ports) != test.ports || (in.meter != nil) != test.again {
			t.Errorf("%v: %d ports, meter %v", test.failed, len(in.ports), in.meter)
		}
		if err == nil && slices.ContainsFunc(s.Readings, func(r Reading) bool { return r.Quantity == InPackets && r.Value == 7 }) != (test.ports > 0) {
			t.Errorf("%v: readings %+v", test.failed, s.Readings)
		}
	}
}

// Rates are the changes of counts since the previous snapshot: 250 bytes in 2 us are 1 Gbit/s.
func TestRatesOfPorts(t *testing.T) {
	c := bmv2.PortCounts{Port: 1, InBytes: 600, OutBytes: 1125}
	c.Drops[bmv2.EndCopy] = 3
	r := newReader(c)
	r.ports[1].Rate = 0
	r.in.before, r.s.Clock = time.Microsecond, 3*time.Microsecond
	r.in.last[readingKey{"=" + InBytes, 1}], r.in.last[readingKey{"=" + OutBytes, 1}] = 350, 1000
	r.counts()
	got := map[string]float64{}
	for _, x := range r.s.Readings {
		got[x.Quantity] = x.Value
	}
	for quantity, want := range map[string]float64{InRate: 1e9, OutRate: 5e8, Load: 0.5, Copies: 3} {
		if v, ok := got[quantity]; !ok || v < want*0.999 || v > want*1.001 {
			t.Errorf("%s is %v (%v), want %v", quantity, v, ok, want)
		}
	}
}

// Fields of one register are read once. Copies for the slots of a group are one array by path.
func TestFieldsAndCopies(t *testing.T) {
	fields := manifest.Register{Name: "C.both", Size: 4, Width: 32, Index: manifest.ByPort, Fields: []manifest.Field{
		{Label: "low", Width: 8, Content: manifest.Content{Kind: manifest.Count}}, {Label: "high", Shift: 8, Width: 8, Content: manifest.Content{Kind: manifest.Count, Scale: 4}},
	}}
	copies := func(slot int) manifest.Register {
		return manifest.Register{Name: fmt.Sprint("C.delay", slot), Label: "delay", Size: 4, Width: 32, Index: manifest.ByGroup, Copy: &manifest.Copy{Slot: slot}, Content: manifest.Content{Kind: manifest.Delay, Unit: manifest.Microseconds}}
	}
	n := l1(fields, copies(0), copies(1))
	f := &fakeAccess{clock: time.Millisecond, cells: map[string][]uint64{"C.both": {0, 0x201, 0x403, 0x805}, "C.delay0": {0, 0, 11, 12}, "C.delay1": {0, 0, 21, 22}}}
	in, err := New(n, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := in.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, r := range s.Readings {
		got[r.Register] = append(got[r.Register], fmt.Sprintf("%s %v", r.Index, r.Value))
	}
	for name, want := range map[string]string{
		"low": "port 1 1, port 2 3, port 3 5", "high": "port 1 0.5, port 2 1, port 3 2",
		"delay": "leaf 2 path 1 11, leaf 2 path 2 21, leaf 3 path 1 12, leaf 3 path 2 22",
	} {
		if text := strings.Join(got[name], ", "); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	if want := []string{"C.both[0..4]", "C.delay0[0..4]", "C.delay1[0..4]"}; !slices.Equal(f.reads, want) {
		t.Errorf("reads %q, want %q", f.reads, want)
	}
	delete(f.cells, "C.delay1")
	if _, err := in.Snapshot(t.Context()); err == nil || err.Error() != "l1: reading C.delay1: no register C.delay1 with 4 cells" {
		t.Errorf("a missing copy: %v", err)
	}
}

// Registers by queue have a cell for the first queue of each port. Without a topology, the
// counted ports are known.
func TestQueuesAndUnknownPorts(t *testing.T) {
	r := newReader()
	a := &registers.Array{Name: "depth", Index: manifest.ByQueue, Cells: make([]uint64, 12)}
	a.Raw = a.Cells
	a.Cells[plan.QueueNumber(1)], a.Cells[plan.QueueNumber(2)] = 5, 6 // no cell for port 3
	r.read(a)
	if len(r.s.Readings) != 2 || r.s.Readings[0].Value != 5 || r.s.Readings[1].Value != 6 || r.s.Readings[1].Port != 2 || r.s.Readings[1].Peer != "n2" || r.s.Readings[1].Index != "port 2" {
		t.Errorf("%+v", r.s.Readings)
	}
	in := &Inspector{node: &plan.Node{}, ports: []bmv2.PortCounts{{Port: 7}, {Port: 2}}, arrays: []*registers.Array{{Index: manifest.ByPort, Cells: []uint64{0, 0, 3, 0, 4}}}}
	var ports []int
	for _, p := range in.portsInUse() {
		ports = append(ports, p.Number)
	}
	if !slices.Equal(ports, []int{2, 4, 7}) {
		t.Errorf("ports %v", ports)
	}
	in.node.Ports = []fabric.Port{{Number: 1}}
	if list := in.portsInUse(); len(list) != 1 || list[0].Number != 1 {
		t.Errorf("ports of the topology: %v", list)
	}
}

// A recording as CSV has the columns of p4lb inspect, in any order, and may lack the date.
// A mistake is reported with its line.
func TestRecordedLines(t *testing.T) {
	head := strings.Join(recordColumns, ",")
	line := func(time, sw, value string) string {
		return time + ",7," + sw + ",leaf,x,r,depth,3,port 3,3,s1,0,0,9," + value + ",packets,nine,-0.5,2.25,true,1700000000000000\n"
	}
	read := func(text string) (rounds []string, err error) {
		r, err := OpenRecording("x.csv", bytes.NewReader([]byte(text)), int64(len(text)))
		for err == nil {
			var list []*Snapshot
			if list, err = r.Round(); err == nil {
				row := ""
				for _, s := range list {
					row += fmt.Sprintf("%s at %v: %v;", s.Switch, s.Time, s.Readings[0].Value)
				}
				rounds = append(rounds, row)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return rounds, err
	}
	got, err := read(head + "\n" + line("1000", "l1", "2") + line("1000", "l\x1b2", "3") + line("3000", "l1", "4"))
	if want := []string{"l1 at 1ms: 2;l\\x1b2 at 1ms: 3;", "l1 at 3ms: 4;"}; err != nil || len(got) != 2 || got[0] == "" || strings.Contains(got[0], "\x1b") || got[1] != want[1] || !strings.HasPrefix(got[0], "l1 at 1ms: 2;l") {
		t.Errorf("%q, %v", got, err)
	}
	short := strings.TrimSuffix(head, ","+wallColumn)
	if got, err := read(short + "\n" + strings.TrimSuffix(line("1000", "l1", "2"), ",1700000000000000\n") + "\n"); err != nil || len(got) != 1 {
		t.Errorf("without the date: %q, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                                    "x.csv: empty: want a line with the names of the columns",
		"a,b\n":                               "x.csv:1: no column time_us: not a recording of p4lb inspect",
		head + "\n" + line("soon", "l1", "2"): `x.csv:2: time_us: "soon" is not a number`,
		head + "\n" + line("1", "l1", "2") + line("1", "l1", "two"): `x.csv:3: value: "two" is not a number`,
		head + "\n1,2\n":                      "x.csv:2: wrong number of fields",
		head + "\n\"":                         "x.csv:2: ",
		"\"":                                  "x.csv:1: ",
		parquetMagic:                          "x.csv: no recording: ",
		parquetMagic + " and " + parquetMagic: "x.csv: no recording: ",
	} {
		if _, err := read(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The bit of valid slots may be the only one above a path of one bit.
func TestPathsOfOneBit(t *testing.T) {
	path := byFlow("path", 2, 3, 0, 1)
	path.Kind, path.Valid = manifest.Slot, 1
	r := newReader()
	r.in.node.Manifest = &manifest.Manifest{Paths: 2}
	r.in.arrays = []*registers.Array{path}
	if list := r.flowTables(); len(list) != 1 || list[0].Register != "path" || list[0].Occupied != 2 {
		t.Errorf("%+v", list)
	}
}

// Registers that are read by name bring no other readings.
func TestNamedRegistersAlone(t *testing.T) {
	until := register("until", 4, manifest.ByPort, manifest.Content{Kind: manifest.Deadline, Event: manifest.Pause, Unit: manifest.Microseconds})
	for _, named := range []bool{false, true} {
		var o Options
		if named {
			o.Registers = []string{"C.until"}
		}
		in, err := New(l1(until), &fakeAccess{clock: time.Millisecond, cells: map[string][]uint64{"C.until": {0, 1500, 400, 0}}}, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := in.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(s.Readings, func(r Reading) bool { return r.Quantity == "warned" }); got == named {
			t.Errorf("named %v: derived readings %v in %+v", named, got, s.Readings)
		}
	}
}

// Spines observe the ports to leaves, and no port without a link or to a host.
func TestObservedPorts(t *testing.T) {
	n := l1(
		register("occupancy", 8, manifest.ByPort, manifest.Content{Kind: manifest.Occupancy}), register("interval", 8, manifest.ByPort, manifest.Content{Kind: manifest.Interval, Unit: manifest.Microseconds}),
		register("heard", 8, manifest.ByPort, manifest.Content{Kind: manifest.Moment, Unit: manifest.Microseconds, Event: manifest.Heard}),
	)
	n.Ports = []fabric.Port{{Number: 1, PeerTier: 1}, {Number: 2, PeerTier: 1, Down: true}, {Number: 3}, {Number: 4, PeerTier: 3}}
	o, err := NewObserver(n, &fakeMeter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, p := range o.ports {
		got = append(got, p.Number)
	}
	if !slices.Equal(got, []int{1, 4}) {
		t.Errorf("ports %v", got)
	}
}
