package controller

import (
	"errors"
	"slices"
	"time"

	"github.com/p4lb/p4lb/manifest"
)

// Registers say the same things in many ways. The cells of some are numbers, of
// others several numbers beside each other; on hardware, where a packet accesses
// a register once, what is looked up for all paths of a group is there as often
// as there are paths; and times count in us, in ns, or in 1024 ns of which a cell
// holds 32 bits. What readers see of all this are arrays of plain numbers, whose
// times are in us.

// An array is what the cells of a register say, or of its copies together.
type array struct {
	manifest.Content
	name  string
	index manifest.Index
	size  int
	each  int    // cells that a group has, of an array by memory
	width int    // of a number
	parts []part // for each slot, of copies that are about the paths of a group

	cells []uint64 // what was last read; times in us
	raw   []uint64 // as the registers have it
}

// A part is where the numbers of an array are: so many bits of a register's.
type part struct {
	register *manifest.Register
	shift    int
	width    int
}

// arraysOf are what the registers of a program say. Copies for the slots of a
// group are one array: those by group together are one by path, the others are
// alike. Registers that are named are shown as they are.
func arraysOf(m *manifest.Manifest, named []string) []*array {
	var list []*array
	merged := map[string][]*array{}
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
				a.parts = append(a.parts, fieldsOf(r)[k].parts...)
			}
		}
	}
	for _, a := range list {
		if len(a.parts) > 1 {
			a.index, a.size = manifest.ByPath, a.size*manifest.MaxPaths
		}
	}
	return list
}

// fieldsOf are the arrays that a register is: one, or one for each field of its
// cells.
func fieldsOf(r *manifest.Register) []*array {
	if len(r.Fields) == 0 {
		return []*array{arrayOf(r, r.Called(), r.Content, 0, r.Width)}
	}
	var list []*array
	for _, f := range r.Fields {
		list = append(list, arrayOf(r, f.Label, f.Content, f.Shift, f.Width))
	}
	return list
}

func arrayOf(r *manifest.Register, name string, c manifest.Content, shift, width int) *array {
	a := &array{
		Content: c, name: name, index: r.Index, size: r.Size, each: r.Each, width: width,
		parts: []part{{r, shift, width}},
	}
	if a.index == "" && a.size == 1 {
		a.index = manifest.BySwitch
	}
	return a
}

// moment reports whether the numbers are points of time rather than spans of it.
func (a *array) moment() bool { return a.Kind == manifest.Moment || a.ahead() }

// ahead reports whether these lie in the future.
func (a *array) ahead() bool { return a.Kind == manifest.Deadline }

// plain reports whether cells are the numbers themselves.
func (a *array) plain() bool {
	p := a.parts[0]
	return len(a.parts) == 1 && p.shift == 0 && p.width == p.register.Width && a.Offset == 0 &&
		(a.Unit.Nanoseconds() == 0 || a.Unit == manifest.Microseconds)
}

// unit is what the numbers are in, as readings say it.
func (a *array) unit() string {
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

// number is what a cell says, by a clock that is about the switch's: of times
// that wrap, the one that is nearest to it.
func (a *array) number(cell uint64, p part, clock time.Duration) (number, raw uint64) {
	raw = cell >> p.shift
	if p.width > 0 && p.width < 64 {
		raw &= 1<<p.width - 1
	}
	number = raw
	switch ns := a.Unit.Nanoseconds(); {
	case ns == 0:
		number += uint64(a.Offset)
	case ns == 1000:
	case a.moment() && raw != 0 && a.Unit == manifest.Ticks:
		number = nearest(raw, clock)
	case ns > 1000:
		number = raw * uint64(ns) / 1000
	default:
		number = raw / uint64(1000/ns)
	}
	return number, raw
}

// nearest is a time of 32 bits in 1024 ns as one in us, the one that is nearest
// to the clock.
func nearest(ticks uint64, clock time.Duration) uint64 {
	now := int64(clock) >> 10
	at := now + int64(int32(uint32(ticks)-uint32(now)))
	return uint64(max(1, at*1024/1000))
}

// middle is a clock by which no time is before the clock began.
const middle = 1 << 31 * 1024 * time.Nanosecond

// findArray finds an array by its name, or a register's cells by that of the
// register; nil where the program has neither.
func findArray(m *manifest.Manifest, name string) *array {
	list := arraysOf(m, nil)
	i := slices.IndexFunc(list, func(a *array) bool { return a.name == name })
	if i >= 0 {
		return list[i]
	}
	if r := m.Register(name); r != nil {
		return arrayOf(r, r.Called(), manifest.Content{}, 0, r.Width)
	}
	return nil
}

// partOf finds the array that plays a part in a task, nil where none does.
func partOf(m *manifest.Manifest, t *manifest.Task, p manifest.Part) *array {
	name := t.Registers[p]
	if name == "" {
		return nil
	}
	return findArray(m, name)
}

// momentOf finds the array of when something happened to another one, or nil.
func momentOf(list []*array, of string, event manifest.Event) *array {
	i := slices.IndexFunc(list, func(a *array) bool { return a.Kind == manifest.Moment && a.Of == of && a.Event == event })
	if i < 0 {
		return nil
	}
	return list[i]
}

// read appends the cells from ≤ i < to of an array to dst, as numbers.
func (a *array) read(f RegisterFabric, sw string, from, to int, clock time.Duration, dst []uint64) ([]uint64, error) {
	begin := len(dst)
	dst, err := f.ReadRegister(sw, a.parts[0].register.Name, from, to, dst)
	if err != nil || a.plain() {
		return dst, err
	}
	for i, cell := range dst[begin:] {
		dst[begin+i], _ = a.number(cell, a.parts[0], clock)
	}
	return dst, nil
}

// readMoments reads the first n cells of an array of times, with the clock of the
// switch: where that cannot be had, the latest of these times.
func (a *array) readMoments(f RegisterFabric, sw string, n int, dst []uint64) ([]uint64, time.Duration, error) {
	clock, err := f.Clock(sw)
	unknown := errors.Is(err, ErrNoClock)
	switch {
	case unknown:
		clock = middle
	case err != nil:
		return dst, 0, err
	}
	dst, err = a.read(f, sw, 0, n, clock, dst)
	if unknown && err == nil {
		clock = 0
		for _, v := range dst {
			clock = max(clock, micros(v))
		}
	}
	return dst, clock, err
}

// write sets the cells from ≤ i < to of an array and of all its copies, with
// nothing in the other fields.
func (a *array) write(f RegisterFabric, m *manifest.Manifest, sw string, from, to int, value uint64) error {
	for i := range m.Registers {
		r := &m.Registers[i]
		if r.Called() != a.parts[0].register.Called() {
			continue
		}
		if err := f.WriteRegister(sw, r.Name, from, to, value<<a.parts[0].shift); err != nil {
			return err
		}
	}
	return nil
}

func micros(v uint64) time.Duration { return time.Duration(v) * time.Microsecond }

// windowBytes is what a link of a rate in bit/s carries within a window.
func windowBytes(rate float64, window time.Duration) float64 {
	return rate / 8 * float64(window.Microseconds()) / 1e6
}

// faded is what is left now of the bytes that were sent by a time of the
// switch's clock: they fade evenly within the window, as in the data plane.
func faded(bytes, at uint64, now, window time.Duration) float64 {
	elapsed, span := now.Microseconds()-int64(at), window.Microseconds()
	if elapsed <= 0 {
		return float64(bytes)
	}
	return float64(bytes) * float64(max(0, span-elapsed)) / float64(span)
}
