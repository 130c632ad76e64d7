package inspect

import (
	"cmp"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A readingKey distinguishes readings of one switch.
type readingKey struct {
	quantity string
	cell     int
}

// A reader converts the cells of one snapshot to readings.
type reader struct {
	in     *Inspector
	s      *Snapshot
	ports  []fabric.Port
	groups []fabric.Group
}

// read adds the readings of an array.
func (r *reader) read(a *registers.Array) {
	switch a.Index {
	case manifest.BySwitch:
		if len(a.Cells) > 0 {
			r.add(a, 0, Reading{})
		}
	case manifest.ByPort:
		for _, p := range r.ports {
			r.add(a, p.Number, Reading{Index: portName(p.Number), Port: p.Number, Peer: p.Peer})
		}
	case manifest.ByQueue:
		for _, p := range r.ports {
			r.add(a, int(plan.QueueNumber(p.Number)), Reading{Index: portName(p.Number), Port: p.Number, Peer: p.Peer})
		}
	case manifest.ByGroup:
		for _, g := range r.groups {
			r.add(a, g.ID, Reading{Index: r.groupName(g.ID), Group: g.ID})
		}
	case manifest.ByPath:
		for _, g := range r.groups {
			for slot, hop := range g.Hops {
				r.add(a, g.ID<<4+slot, r.path(g, slot, hop))
			}
		}
	case manifest.ByMemory:
		begin := len(r.s.Readings)
		m := max(1, a.Each)
		for _, g := range r.groups {
			for k := range m {
				r.add(a, g.ID*m+k, Reading{Index: fmt.Sprintf("%s memory %d", r.groupName(g.ID), k+1), Group: g.ID})
			}
			for i := range r.s.Readings[begin:] {
				r.s.Readings[begin+i].Group = 0 // otherwise several readings would be equal
			}
		}
	case manifest.ByDestination:
		for i := 1; i < len(a.Cells); i++ {
			r.add(a, i, Reading{Index: fmt.Sprintf("leaf %d", i)})
		}
	case manifest.ByNode:
		for i := 1; i < len(a.Cells); i++ {
			r.add(a, i, Reading{Index: fmt.Sprintf("switch %d", i)})
		}
	default:
		if len(r.in.opts.Registers) > 0 || r.in.opts.Everything && a.Index == "" || small(a) {
			// All non-empty cells are only shown if the register was requested by
			// name.
			what := "flow"
			if a.Index == "" {
				what = "cell"
			}
			for i, v := range a.Cells {
				if v != 0 {
					r.add(a, i, Reading{Index: fmt.Sprintf("%s %d", what, i)})
				}
			}
		}
	}
}

// path returns the reading of a path, without a value.
func (r *reader) path(g fabric.Group, slot int, hop fabric.Hop) Reading {
	reading := Reading{Index: fmt.Sprintf("%s path %d", r.groupName(g.ID), slot+1), Group: g.ID, Path: slot + 1, Port: hop.Port}
	if p, ok := r.in.node.Port(hop.Port); ok {
		reading.Peer = p.Peer
	}
	return reading
}

func portName(number int) string { return fmt.Sprintf("port %d", number) }

// groupName returns the destination of a group if its id determines it.
func (r *reader) groupName(id int) string {
	if r.in.node.ByLeaf {
		return fmt.Sprintf("leaf %d", id)
	}
	return fmt.Sprintf("group %d", id)
}

// add completes and adds the reading of a cell.
func (r *reader) add(a *registers.Array, cell int, reading Reading) {
	if cell >= len(a.Cells) {
		return
	}
	reading.Register, reading.Quantity, reading.Cell = a.Name, cmp.Or(a.Quantity, a.Name), cell
	reading.Raw, reading.Unit, reading.Meaning = a.Raw[cell], a.UnitName(), a.Meaning
	reading.Value = r.value(a, a.Cells[cell])
	reading.Text = r.text(a, a.Cells[cell], reading)
	reading.Minor = a.Moment() || a.Internal
	if !a.Moment() && a.Kind != manifest.Slot && a.Kind != manifest.Trend {
		r.change(&reading, a.Name)
	}
	r.s.Readings = append(r.s.Readings, reading)
}

// value converts a cell to its unit.
func (r *reader) value(a *registers.Array, raw uint64) float64 {
	if a.Valid > 0 {
		raw &= 1<<a.Valid - 1
	}
	if a.Scale > 0 {
		return float64(raw) / float64(a.Scale)
	}
	return float64(raw)
}

// change compares a reading with the previous snapshot.
func (r *reader) change(reading *Reading, name string) {
	key := readingKey{name, reading.Cell}
	r.in.next[key] = reading.Value
	before, ok := r.in.last[key]
	if !ok {
		return
	}
	reading.Change = reading.Value - before
	if span := (r.s.Clock - r.in.before).Seconds(); span > 0 {
		reading.Rate = reading.Change / span
	}
}

// text formats a cell.
func (r *reader) text(a *registers.Array, raw uint64, reading Reading) string {
	switch {
	case a.Valid > 0 && raw>>a.Valid&1 == 0:
		return "none"
	case a.Moment():
		if raw == 0 {
			return "never"
		}
		if d := r.s.Clock - registers.Micros(raw); d >= 0 {
			return durationText(d) + " ago"
		} else {
			return "in " + durationText(-d)
		}
	}
	switch a.Kind {
	case manifest.Slot:
		if r.in.node.Manifest.Arch.Hardware() && raw >= uint64(r.in.node.Manifest.Paths) {
			return "none" // these registers have no valid bit
		}
		slot := int(raw & 0xff)
		text := fmt.Sprintf("path %d", slot+1)
		for _, g := range r.groups {
			if reading.Group == g.ID && slot < len(g.Hops) && g.Hops[slot].Port != 0 {
				return text + ", " + portName(g.Hops[slot].Port)
			}
		}
		return text
	case manifest.Trend:
		switch raw {
		case 1:
			return "falling"
		case 2:
			return "rising"
		}
		return "unknown"
	}
	return valueText(reading.Value, reading.Unit)
}

// valueText writes a value in its unit.
func valueText(v float64, unit string) string {
	switch unit {
	case "us":
		return durationText(time.Duration(v * 1e3))
	case "share":
		return fmt.Sprintf("%.3g %%", 100*v)
	case "occupancy", "congestion":
		return fmt.Sprintf("%.2f", v)
	case "bytes":
		switch {
		case v >= 1<<20:
			return fmt.Sprintf("%.4g MB", v/(1<<20))
		case v >= 1<<10:
			return fmt.Sprintf("%.4g KB", v/(1<<10))
		}
		return fmt.Sprintf("%.0f B", v)
	case "bit/s":
		return rateText(v)
	case "", "degree":
		return plainText(v)
	}
	return plainText(v) + " " + unit
}

// durationText writes a time in about three digits.
func durationText(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d.Microseconds())
	case d < time.Second-500*time.Microsecond: // longer times round to 1 s with three digits
		return fmt.Sprintf("%.3g ms", d.Seconds()*1e3)
	case d < 2*time.Minute:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

func rateText(v float64) string {
	for _, unit := range []string{"bit/s", "kbit/s", "Mbit/s"} {
		if v < 1000 {
			return fmt.Sprintf("%.3g %s", v, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.3g Gbit/s", v)
}

func plainText(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprintf("%d", int64(v))
	}
	return fmt.Sprintf("%.3g", v)
}
