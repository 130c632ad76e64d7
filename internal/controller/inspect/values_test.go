package inspect

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Values have about three digits, in a suitable unit.
func TestValueText(t *testing.T) {
	for _, test := range []struct {
		v    float64
		unit string
		want string
	}{
		{3, "us", "3 us"}, {999, "us", "999 us"}, {1000, "us", "1 ms"}, {1234, "us", "1.23 ms"}, {999499, "us", "999 ms"}, {999500, "us", "1 s"}, {2e6, "us", "2 s"},
		{119e6, "us", "119 s"}, {120e6, "us", "2m0s"}, {3.7e9, "us", "1h1m40s"},
		{0.25, "share", "25 %"}, {0.12345, "share", "12.3 %"}, {0.256, "occupancy", "0.26"}, {1.5, "congestion", "1.50"},
		{1023, "bytes", "1023 B"}, {1024, "bytes", "1 KB"}, {1536, "bytes", "1.5 KB"}, {1<<20 - 1, "bytes", "1024 KB"}, {1 << 20, "bytes", "1 MB"},
		{999, "bit/s", "999 bit/s"}, {1000, "bit/s", "1 kbit/s"}, {12345678, "bit/s", "12.3 Mbit/s"}, {4e10, "bit/s", "40 Gbit/s"},
		{7, "", "7"}, {2.5, "degree", "2.5"}, {1234.5, "", "1.23e+03"}, {7, "packets", "7 packets"}, {-3, "", "-3"},
	} {
		if got := valueText(test.v, test.unit); got != test.want {
			t.Errorf("%g %s: %q, want %q", test.v, test.unit, got, test.want)
		}
	}
}

// Of m slots, n random flows occupy m·(1-(1-1/m)^n): the number of flows that share a
// slot follows from the occupied ones.
func TestCollisions(t *testing.T) {
	for _, test := range []struct{ occupied, slots int }{{0, 100}, {1, 100}, {50, 100}, {99, 100}, {1, 2}} {
		n := math.Log(1-float64(test.occupied)/float64(test.slots)) / math.Log(1-1/float64(test.slots))
		want := max(0, n-float64(test.occupied))
		if got := collisions(test.occupied, test.slots); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d of %d: %g, want %g", test.occupied, test.slots, got, want)
		}
	}
	if got := collisions(1, 1); got != 0 {
		t.Errorf("one slot: %g", got)
	}
	if full, almost := collisions(100, 100), collisions(99, 100); math.Abs(full-(almost-1)) > 1e-9 {
		t.Errorf("a full table: %g, with one slot left %g", full, almost)
	}
}

// Ages are counted by their leading bits: the median is right to a tenth, the youngest
// and the oldest are exact.
func TestAges(t *testing.T) {
	for age := int64(0); age < 1<<20; age = age*9/8 + 1 {
		m := middleOf(bucketOf(age))
		if diff := math.Abs(float64(m - age)); diff > 0.1*float64(age) {
			t.Errorf("the age %d has the middle %d", age, m)
		}
		if age < 8 && m != age {
			t.Errorf("the age %d has the middle %d", age, m)
		}
		if bucketOf(age) < bucketOf(age-1+btoi(age == 0)) {
			t.Errorf("the bucket of %d is before the bucket of %d", age, age-1)
		}
	}
	var c ageCounts
	for _, age := range []int64{500, 3, 100, 7, 9} {
		c.add(age)
	}
	if youngest, median, oldest := c.summary(); youngest != 3*time.Microsecond || median != 9*time.Microsecond || oldest != 500*time.Microsecond {
		t.Errorf("%v, %v, %v", youngest, median, oldest)
	}
	c = ageCounts{}
	c.add(1000)
	if youngest, median, oldest := c.summary(); youngest != time.Millisecond || median != youngest || oldest != youngest {
		t.Errorf("one age: %v, %v, %v", youngest, median, oldest)
	}
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func byFlow(name string, cells ...uint64) *registers.Array {
	return &registers.Array{Name: name, Index: manifest.ByFlow, Size: len(cells), Cells: cells}
}

// A flow table counts the slots that hold a path, the active ones, their ages and their
// paths.
func TestFlowTables(t *testing.T) {
	path, heard := byFlow("path", 0x100, 0x101, 0x001, 0x101, 0), byFlow("heard", 900, 400, 1000, 1000, 0)
	path.Kind, path.Valid = manifest.Slot, 8
	heard.Kind, heard.Unit = manifest.Moment, manifest.Microseconds
	other := &registers.Array{Name: "other", Index: manifest.ByPort, Size: 1, Cells: []uint64{1}}
	r := newReader()
	r.in.node.Manifest = &manifest.Manifest{Paths: 2, FlowTimeout: manifest.Duration(100 * time.Microsecond)}
	r.s.Clock = time.Millisecond
	r.in.arrays = []*registers.Array{other, path, heard}
	list := r.flowTables()
	if len(list) != 1 {
		t.Fatalf("%d tables", len(list))
	}
	got := list[0]
	if got.Register != "path" || got.Slots != 5 || got.Occupied != 3 || got.Active != 2 || got.Gap != 100*time.Microsecond || !got.Aged || !slices.Equal(got.Paths, []int{1, 2}) ||
		got.Youngest != 0 || got.Oldest != 600*time.Microsecond || got.Median < 90*time.Microsecond || got.Median > 110*time.Microsecond || got.Collisions != collisions(3, 5) {
		t.Errorf("%+v", got)
	}
	// The age of a single flow is the youngest, the median and the oldest.
	path.Cells, heard.Cells = []uint64{0, 0x100, 0, 0, 0}, []uint64{0, 400, 0, 0, 0}
	if list := r.flowTables(); len(list) != 1 || list[0].Occupied != 1 || list[0].Youngest != 600*time.Microsecond || list[0].Median != 600*time.Microsecond || list[0].Oldest != 600*time.Microsecond {
		t.Errorf("a single flow: %+v", list)
	}
	// A flow beyond the last time has no age.
	path.Cells, heard.Cells = []uint64{0x100, 0x101, 0, 0, 0}, []uint64{900}
	if list := r.flowTables(); len(list) != 1 || list[0].Occupied != 2 || list[0].Active != 1 || list[0].Oldest != 100*time.Microsecond {
		t.Errorf("fewer times than flows: %+v", list)
	}
	path.Cells, heard.Cells = []uint64{0x100, 0x101, 0x001, 0x101, 0}, []uint64{900, 400, 1000, 1000, 0}
	r.in.arrays = []*registers.Array{heard}
	if list := r.flowTables(); len(list) != 1 || list[0].Register != "heard" || list[0].Occupied != 4 || list[0].Paths != nil {
		t.Errorf("times alone: %+v", list)
	}
	r.in.arrays = []*registers.Array{path}
	if list := r.flowTables(); len(list) != 1 || list[0].Aged || list[0].Active != 0 || list[0].Oldest != 0 {
		t.Errorf("without times: %+v", list)
	}
	r.s.Readings = nil
	r.fullness(got)
	var rows []string
	for _, x := range r.s.Readings {
		rows = append(rows, x.Quantity+" "+x.Text)
	}
	if want := []string{"path occupied 3", "path collisions " + plainText(math.Round(got.Collisions)), "path active 2", "path age " + durationText(got.Median)}; !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	r.s.Readings = nil
	if r.fullness(FlowTable{Register: "x"}); len(r.s.Readings) != 2 {
		t.Errorf("without ages: %+v", r.s.Readings)
	}
}

// A link that sent 6250 bytes within a window of 100 us has half the rate of 1 Gbit/s,
// and less as the count fades.
func TestUtilisation(t *testing.T) {
	sent := &registers.Array{Name: "sent", Index: manifest.ByPort, Cells: []uint64{0, 6250, 6250, 0}}
	sent.Kind, sent.Unit, sent.Window = manifest.Rate, manifest.Bytes, manifest.Duration(100*time.Microsecond)
	at := &registers.Array{Name: "at", Index: manifest.ByPort, Cells: []uint64{0, 1000, 950}}
	at.Kind, at.Event, at.Of = manifest.Moment, manifest.Updated, "sent"
	for _, test := range []struct {
		change func()
		want   string
	}{
		{func() {}, "port 1 50 % port 2 25 % "},
		{func() { sent.Reports = "x" }, ""}, {func() { sent.Unit = manifest.Packets }, ""}, {func() { sent.Kind = manifest.Count }, ""}, {func() { at.Of = "x" }, ""},
		// Ports beyond the registers have no utilisation.
		{func() { sent.Cells = sent.Cells[:2] }, "port 1 50 % "}, {func() { at.Cells = at.Cells[:2] }, "port 1 50 % "}, {func() { sent.Cells = nil }, ""},
	} {
		savedSent, savedAt := *sent, *at
		test.change()
		r := newReader()
		r.in.arrays = []*registers.Array{sent, at}
		r.s.Clock = time.Millisecond
		r.utilisation()
		got := ""
		for _, x := range r.s.Readings {
			got += x.Index + " " + x.Text + " "
		}
		if got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
		*sent, *at = savedSent, savedAt
	}
}

// Weights come from the controller, from a register by path or port, or from the table
// by the level of each path. Stale and missing values weigh nothing.
func TestPathWeights(t *testing.T) {
	hops := []fabric.Hop{{Port: 1}, {Port: 2}, {Port: 3}}
	level := &registers.Array{Name: "level", Index: manifest.ByPort, Cells: []uint64{0, 2, 5, 9}, Raw: []uint64{0, 2, 0, 1}}
	heard := &registers.Array{Name: "heard", Index: manifest.ByPort, Cells: []uint64{0, 1000, 800, 400}}
	heard.Kind, heard.Event, heard.Of = manifest.Moment, manifest.Heard, "level"
	baked := manifest.Table{Baked: &manifest.Baked{Weights: []int{0, 1, 3}, Zero: []int{0}}}
	for _, test := range []struct {
		name    string
		weights *manifest.Weights
		raw     []uint64
		want    string
	}{
		{"none", nil, nil, ""},
		{"the controller's", &manifest.Weights{From: manifest.FromController}, nil, "5 50 %, 3 30 %, 2 20 %, "},
		{"a register", &manifest.Weights{From: manifest.FromRegister, Register: "level"}, nil, "2 12.5 %, 5 31.2 %, 9 56.2 %, "},
		{"up to a most", &manifest.Weights{From: manifest.FromRegister, Register: "level", Most: 6, Least: 1}, nil, "4 66.7 %, 1 16.7 %, 1 16.7 %, "},
		{"stale", &manifest.Weights{From: manifest.FromRegister, Register: "level", Stale: manifest.Duration(300 * time.Microsecond)}, nil, "2 28.6 %, 5 71.4 %, 0 0 %, "},
		{"as old as a value may be", &manifest.Weights{From: manifest.FromRegister, Register: "level", Stale: manifest.Duration(200 * time.Microsecond)}, nil, "2 28.6 %, 5 71.4 %, 0 0 %, "},
		{"older", &manifest.Weights{From: manifest.FromRegister, Register: "level", Stale: manifest.Duration(199 * time.Microsecond)}, nil, "2 100 %, 0 0 %, 0 0 %, "},
		{"an unknown register", &manifest.Weights{From: manifest.FromRegister, Register: "x"}, nil, ""},
		{"a table", &manifest.Weights{From: manifest.FromTable, Register: "level"}, []uint64{0, 2, 0, 1}, "3 75 %, 0 0 %, 1 25 %, "},
		{"a table of zeros", &manifest.Weights{From: manifest.FromTable, Register: "level"}, []uint64{0, 0, 7, 0}, "1 50 %, 0 0 %, 1 50 %, "},
		{"a table with the least sum", &manifest.Weights{From: manifest.FromTable, Register: "level"}, []uint64{0, 1, 7, 7}, "1 100 %, 0 0 %, 0 0 %, "},
		{"a table with fewer levels than ports", &manifest.Weights{From: manifest.FromTable, Register: "level"}, []uint64{0, 2}, "3 33.3 %, 3 33.3 %, 3 33.3 %, "},
		{"a table without levels", &manifest.Weights{From: manifest.FromTable, Register: "level"}, []uint64{0, 7, 7, 7}, "0 33.3 %, 0 33.3 %, 0 33.3 %, "},
	} {
		r := newReader()
		r.in.node = &plan.Node{Manifest: &manifest.Manifest{Weights: test.weights, Tables: []manifest.Table{{}, baked}}, Weights: map[int][]uint64{4: {5, 3, 2}}}
		r.in.arrays = []*registers.Array{level, heard}
		r.in.byName = map[string]*registers.Array{"level": level}
		if test.raw != nil {
			level.Raw = test.raw
		}
		r.groups = []fabric.Group{{ID: 4, Hops: hops}}
		r.s.Clock = time.Millisecond
		r.weights()
		got := ""
		for i, x := range r.s.Readings {
			got += x.Text + map[bool]string{true: " ", false: ", "}[i%2 == 0]
			if x.Cell != 4<<4+i/2 || x.Path != i/2+1 || x.Group != 4 || x.Port != i/2+1 {
				t.Errorf("%s: reading %d: %+v", test.name, i, x)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A register with one cell has the weights of a switch with one port, and a register without a
// value has none.
func TestWeightsOfOneCell(t *testing.T) {
	for want, cells := range map[string][]uint64{"7 100 % ": {7}, "": {}} {
		level := &registers.Array{Name: "level", Index: manifest.ByPort, Cells: cells}
		r := newReader()
		r.in.node = &plan.Node{Manifest: &manifest.Manifest{Weights: &manifest.Weights{From: manifest.FromRegister, Register: "level"}}}
		r.in.byName = map[string]*registers.Array{"level": level}
		r.groups = []fabric.Group{{ID: 4, Hops: []fabric.Hop{{Port: 0}}}}
		r.weights()
		got := ""
		for _, x := range r.s.Readings {
			got += x.Text + " "
		}
		if got != want {
			t.Errorf("cells %d: %q, want %q", cells, got, want)
		}
	}
}
