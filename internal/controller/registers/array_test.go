package registers

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A fake fabric has the registers of one switch, and may have no clock.
type fake struct {
	cells map[string][]uint64
	clock time.Duration
	err   error // of the clock
	wrote []string
}

func (f *fake) ReadRegister(_, register string, from, to int, dst []uint64) ([]uint64, error) {
	if to > len(f.cells[register]) {
		return dst, fmt.Errorf("no cell %d", to-1)
	}
	return append(dst, f.cells[register][from:to]...), nil
}

func (f *fake) WriteRegister(_, register string, from, to int, value uint64) error {
	f.wrote = append(f.wrote, fmt.Sprintf("%s[%d..%d]=%d", register, from, to, value))
	return nil
}

func (f *fake) Clock(string) (time.Duration, error) { return f.clock, f.err }

func register(name string, width int, unit manifest.Unit, kind manifest.Kind) manifest.Register {
	r := manifest.Register{Name: name, Size: 4, Width: width, Index: manifest.ByPort}
	r.Unit, r.Kind = unit, kind
	return r
}

// Numbers are plain, or times in microseconds, for any unit, offset and position of the
// cell.
func TestNumber(t *testing.T) {
	offset := register("r", 16, manifest.Packets, manifest.Count)
	offset.Offset = 3
	for _, test := range []struct {
		r    manifest.Register
		cell uint64
		want uint64
	}{
		{register("r", 32, "", manifest.Count), 7, 7},
		{register("r", 8, "", manifest.Count), 0x1ff, 0xff},
		{register("r", 64, "", manifest.Count), math.MaxUint64, math.MaxUint64},
		{offset, 7, 10},
		{register("r", 48, manifest.Microseconds, manifest.Interval), 9, 9},
		{register("r", 48, manifest.Nanoseconds, manifest.Interval), 9999, 9},
		{register("r", 48, manifest.Milliseconds, manifest.Interval), 9, 9000},
		{register("r", 32, manifest.Ticks, manifest.Interval), 1000, 1024},
	} {
		a := Of(&manifest.Manifest{Registers: []manifest.Register{test.r}}, nil)[0]
		if got, _ := a.Number(test.cell, a.Parts[0], 0); got != test.want {
			t.Errorf("%d bits in %q, cell %d: %d, want %d", test.r.Width, test.r.Unit, test.cell, got, test.want)
		}
	}
	// A time of 32 bits in units of 1024 ns is the one nearest to the clock.
	a := Of(&manifest.Manifest{Registers: []manifest.Register{register("r", 32, manifest.Ticks, manifest.Moment)}}, nil)[0]
	tick := func(n int64) time.Duration { return time.Duration(n) * 1024 }
	for _, test := range []struct {
		cell  uint64
		clock int64
		want  int64 // in ticks
	}{{0, 50, 0}, {1, 50, 1}, {60, 50, 60}, {1, 1<<32 + 10, 1<<32 + 1}, {0xffffffff, 1<<32 + 10, 1<<32 - 1}, {0xfffffff0, 20, 0}} {
		got, raw := a.Number(test.cell, a.Parts[0], tick(test.clock))
		want := uint64(max(0, test.want) * 1024 / 1000)
		if test.cell == 0xfffffff0 {
			want = 1 // before the clock began
		}
		if got != want || raw != test.cell {
			t.Errorf("cell %d at tick %d: %d us, want %d", test.cell, test.clock, got, want)
		}
	}
}

// Copies for the paths of a group become one array by path, other copies are one of
// them. Fields of cells are an array each.
func TestOf(t *testing.T) {
	copied := func(name string, index manifest.Index, slot int) manifest.Register {
		return manifest.Register{Name: fmt.Sprint(name, slot), Size: 5, Width: 32, Index: index, Label: name, Copy: &manifest.Copy{Of: 2, Slot: slot}}
	}
	m := &manifest.Manifest{Registers: []manifest.Register{
		copied("delay", manifest.ByGroup, 0), copied("delay", manifest.ByGroup, 1), copied("port", manifest.ByPort, 0), copied("port", manifest.ByPort, 1),
		{Name: "pair", Size: 3, Width: 32, Fields: []manifest.Field{{Label: "high", Shift: 16, Width: 16}, {Label: "low", Width: 16}}},
		{Name: "one", Size: 1, Width: 8}, {Name: "two", Size: 2, Width: 8},
	}}
	var got []string
	for _, a := range Of(m, nil) {
		got = append(got, fmt.Sprintf("%s %s %d %d %v", a.Name, a.Index, a.Size, len(a.Parts), a.Plain()))
	}
	want := []string{"delay path 80 2 false", "port port 5 1 true", "high  3 1 false", "low  3 1 false", "one switch 1 1 true", "two  2 1 true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if list := Of(m, []string{"delay1", "two"}); len(list) != 2 || len(list[0].Parts) != 1 || list[0].Size != 5 {
		t.Errorf("by name: %d arrays, %+v", len(list), list[0])
	}
	f := &fake{cells: map[string][]uint64{"pair": {0x00010002, 0x00030004, 0x00050006}}}
	for _, a := range Of(m, nil)[2:4] {
		want := map[string][]uint64{"high": {9, 3, 5}, "low": {9, 4, 6}}[a.Name]
		if cells, err := a.Read(f, "l1", 1, 3, 0, []uint64{9}); err != nil || !slices.Equal(cells, want) {
			t.Errorf("%s reads %v, %v; want %v", a.Name, cells, err, want)
		}
		if err := a.Write(f, m, "l1", 0, 2, 7); err != nil {
			t.Error(err)
		}
	}
	if err := Of(m, nil)[1].Write(f, m, "l1", 2, 3, 7); err != nil {
		t.Error(err)
	}
	if want := []string{"pair[0..2]=458752", "pair[0..2]=7", "port0[2..3]=7", "port1[2..3]=7"}; !slices.Equal(f.wrote, want) {
		t.Errorf("wrote %q, want %q", f.wrote, want)
	}
}

// Without a clock of the switch, the times come from its registers, and the latest of them
// is the clock.
func TestReadMoments(t *testing.T) {
	a := Of(&manifest.Manifest{Registers: []manifest.Register{register("r", 48, manifest.Microseconds, manifest.Moment)}}, nil)[0]
	broken := errors.New("broken")
	for _, test := range []struct {
		err  error
		want time.Duration
	}{{nil, time.Second}, {ErrNoClock, 30 * time.Microsecond}, {broken, 0}} {
		f := &fake{cells: map[string][]uint64{"r": {10, 30, 20}}, clock: time.Second, err: test.err}
		cells, clock, err := a.ReadMoments(f, "l1", 3, nil)
		if clock != test.want || (err == broken) != (test.err == broken) || err == nil && !slices.Equal(cells, []uint64{10, 30, 20}) {
			t.Errorf("%v: %v at %v, %v; want %v", test.err, cells, clock, err, test.want)
		}
	}
	if _, _, err := a.ReadMoments(&fake{}, "l1", 3, nil); err == nil {
		t.Error("a register that cannot be read")
	}
}

// A byte count decays to 0 within its window. A link of 8 Mbit/s carries 1000 bytes in a
// millisecond.
func TestFaded(t *testing.T) {
	const window = 100 * time.Microsecond
	for now, want := range map[time.Duration]float64{0: 80, 50: 80, 51: 79.2, 100: 40, 149: 0.8, 150: 0, 500: 0} {
		if got := Faded(80, 50, now*time.Microsecond, window); math.Abs(got-want) > 1e-9 {
			t.Errorf("80 bytes at 50 us are %g at %d us, want %g", got, now, want)
		}
	}
	if got := WindowBytes(8e6, time.Millisecond); got != 1000 {
		t.Errorf("%g bytes", got)
	}
	a := &Array{Index: manifest.ByPath, Cells: []uint64{5, 6}}
	if got := a.PathCell(3, 2, 7); got != 50 {
		t.Errorf("path 2 of group 3: cell %d", got)
	}
	if got := (&Array{Index: manifest.ByPort}).PathCell(3, 2, 7); got != 7 {
		t.Errorf("port 7: cell %d", got)
	}
	for i, want := range map[int]bool{0: true, 1: true, 2: false} {
		if _, ok := a.Cell(i); ok != want {
			t.Errorf("cell %d: %v", i, ok)
		}
	}
	if _, ok := (*Array)(nil).Cell(0); ok {
		t.Error("no array has a cell")
	}
}

// Decoded values are times in us, shares, and the names of kinds.
func TestUnitNames(t *testing.T) {
	for _, test := range []struct {
		unit manifest.Unit
		kind manifest.Kind
		want string
	}{
		{manifest.Nanoseconds, manifest.Moment, "us"}, {manifest.Packets, manifest.Count, "packets"}, {"", manifest.Utilisation, "share"}, {"", manifest.Marks, "share"},
		{"", manifest.Occupancy, "occupancy"}, {"", manifest.Slot, "slot"}, {"", manifest.Trend, "trend"}, {"", manifest.Count, ""},
	} {
		a := &Array{}
		a.Unit, a.Kind = test.unit, test.kind
		if got := a.UnitName(); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.unit, test.kind, got, test.want)
		}
	}
}

// The register of a part is found by the label of the array or by its own name.
func TestPartOf(t *testing.T) {
	m := &manifest.Manifest{Registers: []manifest.Register{{Name: "C.q", Label: "queue", Width: 16, Size: 2}, {Name: "pair", Width: 32, Fields: []manifest.Field{{Label: "high", Shift: 16, Width: 16}}}}}
	for name, want := range map[string]string{"queue": "queue", "high": "high", "C.q": "queue", "pair": "pair", "none": "", "": ""} {
		task := &manifest.Task{Registers: map[manifest.Part]string{manifest.PartQueue: name}}
		a := PartOf(m, task, manifest.PartQueue)
		if got := ""; a != nil && a.Name != want || a == nil && got != want {
			t.Errorf("%q: %+v, want %q", name, a, want)
		}
	}
}

// With Middle as the clock, each 32-bit time of a cell counts as not wrapped.
func TestMiddle(t *testing.T) {
	a := Of(&manifest.Manifest{Registers: []manifest.Register{register("r", 32, manifest.Ticks, manifest.Moment)}}, nil)[0]
	for _, cell := range []uint64{1, 1000, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		if got, _ := a.Number(cell, a.Parts[0], Middle); got != max(1, cell*1024/1000) {
			t.Errorf("cell %d: %d us, want %d", cell, got, max(1, cell*1024/1000))
		}
	}
}

// Only a moment and a deadline are points of time, and only a deadline lies ahead.
func TestPointsOfTime(t *testing.T) {
	for kind, want := range map[manifest.Kind][2]bool{
		manifest.Moment: {true, false}, manifest.Deadline: {true, true}, manifest.Interval: {}, manifest.Delay: {}, manifest.Count: {}, "": {},
	} {
		a := &Array{}
		a.Kind = kind
		if a.Moment() != want[0] || a.Ahead() != want[1] {
			t.Errorf("%q: a point of time %v, ahead %v; want %v", kind, a.Moment(), a.Ahead(), want)
		}
	}
}

// A register that cannot be read is an error for plain and for other arrays. Earlier
// numbers stay.
func TestReadFails(t *testing.T) {
	offset := register("none", 16, manifest.Packets, manifest.Count)
	offset.Offset = 3
	for _, r := range []manifest.Register{register("none", 16, "", manifest.Count), offset} {
		a := Of(&manifest.Manifest{Registers: []manifest.Register{r}}, nil)[0]
		if got, err := a.Read(&fake{}, "l1", 0, 2, 0, []uint64{7}); err == nil || !slices.Equal(got, []uint64{7}) {
			t.Errorf("offset %d: %v, %v", r.Offset, got, err)
		}
	}
	// A register without a content is found by its name, and its numbers are whole cells.
	m := &manifest.Manifest{Registers: []manifest.Register{{Name: "pair", Size: 2, Width: 32, Fields: []manifest.Field{{Label: "high", Shift: 16, Width: 16}}}}}
	a := PartOf(m, &manifest.Task{Registers: map[manifest.Part]string{manifest.PartQueue: "pair"}}, manifest.PartQueue)
	if got, err := a.Read(&fake{cells: map[string][]uint64{"pair": {0x10002, 0xffffffff}}}, "l1", 0, 2, 0, nil); err != nil || !slices.Equal(got, []uint64{0x10002, 0xffffffff}) {
		t.Errorf("a pair reads %x, %v", got, err)
	}
}

// TestEqualNames: registers of different controls or pipes with the same last name are distinguished
// by their whole names, unless they have labels.
func TestEqualNames(t *testing.T) {
	m := &manifest.Manifest{}
	for _, name := range []string{"pipe0.I.seen", "pipe1.I.seen", "I.other", "J.load", "K.load"} {
		m.Registers = append(m.Registers, register(name, 8, "", manifest.Count))
	}
	m.Registers[4].Label = "load of K"
	var got []string
	for _, a := range Of(m, nil) {
		got = append(got, a.Name)
	}
	if want := []string{"pipe0.I.seen", "pipe1.I.seen", "other", "load", "load of K"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
