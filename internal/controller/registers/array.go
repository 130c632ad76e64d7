package registers

import (
	"errors"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Programs store values in different ways. Some cells are one number, others contain
// several numbers. On hardware a packet accesses each register once, so values for all
// paths of a group are stored in one register per path. Times count in us, in ns, or
// in units of 1024 ns truncated to 32 bits. An Array hides these differences: it
// contains plain numbers and times in us.

// An Array is the decoded content of a register, or of several copies of a register.
type Array struct {
	manifest.Content
	Name  string
	Index manifest.Index
	Size  int
	Each  int    // cells per group, in an array of memories
	width int    // bits of a number
	Parts []part // one part for each slot, if the copies are for the paths of a group

	Cells []uint64 // latest values; times in µs
	Raw   []uint64 // latest values as in the registers
}

// A part locates the numbers of an array: a range of bits in a register.
type part struct {
	Register *manifest.Register
	shift    int
	width    int
}

// Of returns the arrays of a program. Copies of a register for the slots of a group
// become one array: copies indexed by group become one array indexed by path, other
// copies have equal content. Registers in named are returned undecoded. Registers that differ only in
// their controls or pipes get their whole names.
func Of(m *manifest.Manifest, named []string) []*Array {
	var list []*Array
	merged := map[string][]*Array{}
	for i := range m.Registers {
		r := &m.Registers[i]
		if len(named) > 0 && !slices.Contains(named, r.Name) {
			continue
		}
		first := merged[r.Called()]
		if r.Copy == nil || len(named) > 0 || first == nil {
			arrays := fieldsOf(r)
			list = append(list, arrays...)
			if r.Copy != nil && len(named) == 0 {
				merged[r.Called()] = arrays
			}
		} else if r.Index == manifest.ByGroup {
			for k, a := range first {
				a.Parts = append(a.Parts, fieldsOf(r)[k].Parts...)
			}
		}
	}
	names := map[string]int{}
	for _, a := range list {
		names[a.Name]++
		if len(a.Parts) > 1 {
			a.Index, a.Size = manifest.ByPath, a.Size*manifest.MaxPaths
		}
	}
	for _, a := range list {
		if r := a.Parts[0].Register; names[a.Name] > 1 && a.Name == manifest.Short(r.Name) {
			a.Name = r.Name
		}
	}
	return list
}

// fieldsOf returns the arrays of a register: one, or one for each field of its cells.
func fieldsOf(r *manifest.Register) []*Array {
	if len(r.Fields) == 0 {
		return []*Array{arrayOf(r, r.Called(), r.Content, 0, r.Width)}
	}
	return lists.Map(r.Fields, func(f manifest.Field) *Array { return arrayOf(r, f.Label, f.Content, f.Shift, f.Width) })
}

func arrayOf(r *manifest.Register, name string, c manifest.Content, shift, width int) *Array {
	a := &Array{
		Content: c, Name: name, Index: r.Index, Size: r.Size, Each: r.Each, width: width,
		Parts: []part{{r, shift, width}},
	}
	if a.Index == "" && a.Size == 1 {
		a.Index = manifest.BySwitch
	}
	return a
}

// Moment reports whether the numbers are points of time rather than durations.
func (a *Array) Moment() bool { return a.Kind == manifest.Moment || a.Ahead() }

// Ahead reports whether the points of time lie in the future.
func (a *Array) Ahead() bool { return a.Kind == manifest.Deadline }

// Plain reports whether cells are the numbers themselves.
func (a *Array) Plain() bool {
	p := a.Parts[0]
	return len(a.Parts) == 1 && p.shift == 0 && p.width == p.Register.Width && a.Offset == 0 &&
		(a.Unit.Nanoseconds() == 0 || a.Unit == manifest.Microseconds)
}

// UnitName returns the unit for readers.
func (a *Array) UnitName() string {
	switch {
	case a.Unit.Nanoseconds() > 0:
		return string(manifest.Microseconds)
	case a.Unit != "":
		return string(a.Unit)
	}
	switch a.Kind {
	case manifest.Marks, manifest.Utilisation:
		return "share"
	case manifest.Occupancy, manifest.Congestion, manifest.Degree, manifest.Trend, manifest.Slot:
		return string(a.Kind)
	}
	return ""
}

// Number decodes a part of a cell. If the part is a time that wraps, Number returns
// the time nearest to clock, the approximate time of the switch.
func (a *Array) Number(cell uint64, p part, clock time.Duration) (number, raw uint64) {
	raw = cell >> p.shift
	if p.width > 0 && p.width < 64 {
		raw &= 1<<p.width - 1
	}
	number = raw
	switch ns := a.Unit.Nanoseconds(); {
	case ns == 0:
		number += uint64(a.Offset)
	case ns == 1000:
	case a.Moment() && raw != 0 && a.Unit == manifest.Ticks:
		// The cell contains the low 32 bits of a time in 1024 ns. Return the time in µs closest
		// to the clock.
		now := int64(clock) >> 10
		at := now + int64(int32(uint32(raw)-uint32(now)))
		number = uint64(max(1, at*1024/1000))
	case ns > 1000:
		number = raw * uint64(ns) / 1000
	default:
		number = raw / uint64(1000/ns)
	}
	return number, raw
}

// Middle is a clock value at which every 32-bit time counts as not wrapped.
const Middle = 1 << 31 * 1024 * time.Nanosecond

// PartOf finds the array with a role in a task, or nil.
func PartOf(m *manifest.Manifest, t *manifest.Task, p manifest.Part) *Array {
	name := t.Registers[p]
	if name == "" {
		return nil
	}
	if a := lists.First(Of(m, nil), func(a *Array) bool { return a.Name == name }); a != nil {
		return a
	}
	if r := m.Register(name); r != nil {
		return arrayOf(r, r.Called(), manifest.Content{}, 0, r.Width)
	}
	return nil
}

// MomentOf returns the array of times at which an event concerned another array, or nil.
func MomentOf(list []*Array, of string, event manifest.Event) *Array {
	return lists.First(list, func(a *Array) bool { return a.Kind == manifest.Moment && a.Of == of && a.Event == event })
}

// Read appends the cells from ≤ i < to of an array to dst, as numbers.
func (a *Array) Read(f Fabric, sw string, from, to int, clock time.Duration, dst []uint64) ([]uint64, error) {
	begin := len(dst)
	dst, err := f.ReadRegister(sw, a.Parts[0].Register.Name, from, to, dst)
	if err != nil || a.Plain() {
		return dst, err
	}
	for i, cell := range dst[begin:] {
		dst[begin+i], _ = a.Number(cell, a.Parts[0], clock)
	}
	return dst, nil
}

// ReadMoments reads the first n cells of an array of times, with the clock of the switch. If the
// clock is unavailable, it returns the latest of these times instead.
func (a *Array) ReadMoments(f Fabric, sw string, n int, dst []uint64) ([]uint64, time.Duration, error) {
	clock, err := f.Clock(sw)
	unknown := errors.Is(err, ErrNoClock)
	switch {
	case unknown:
		clock = Middle
	case err != nil:
		return dst, 0, err
	}
	dst, err = a.Read(f, sw, 0, n, clock, dst)
	if unknown && err == nil {
		clock = 0
		for _, v := range dst {
			clock = max(clock, Micros(v))
		}
	}
	return dst, clock, err
}

// Write sets the cells from ≤ i < to of an array and of all its copies. Other fields of the cells
// become 0.
func (a *Array) Write(f Fabric, m *manifest.Manifest, sw string, from, to int, value uint64) error {
	for i := range m.Registers {
		r := &m.Registers[i]
		if r.Called() != a.Parts[0].Register.Called() {
			continue
		}
		if err := f.WriteRegister(sw, r.Name, from, to, value<<a.Parts[0].shift); err != nil {
			return err
		}
	}
	return nil
}

func Micros(v uint64) time.Duration { return time.Duration(v) * time.Microsecond }

// WindowBytes returns the capacity of a link with a rate in bit/s within a window.
func WindowBytes(rate float64, window time.Duration) float64 {
	return rate / 8 * float64(window.Microseconds()) / 1e6
}

// Faded returns the rest of a decaying byte count that was stored at a time of the switch's
// clock. It decays linearly within the window, as in the data plane.
func Faded(bytes, at uint64, now, window time.Duration) float64 {
	elapsed, span := now.Microseconds()-int64(at), window.Microseconds()
	if elapsed <= 0 {
		return float64(bytes)
	}
	return float64(bytes) * float64(max(0, span-elapsed)) / float64(span)
}

// Cell returns a cell of the array; ok is false if it does not exist.
func (a *Array) Cell(i int) (v uint64, ok bool) {
	if a == nil || i >= len(a.Cells) {
		return 0, false
	}
	return a.Cells[i], true
}

// PathCell returns the index of the cell about a path: the path's own, or its port's.
func (a *Array) PathCell(group, slot, port int) int {
	if a.Index == manifest.ByPath {
		return group*manifest.MaxPaths + slot
	}
	return port
}
