package inspect

import (
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// quantity adds a reading that is computed.
func (r *reader) quantity(name, text string, value float64, unit string, reading Reading) {
	reading.Quantity, reading.Value, reading.Unit, reading.Text = name, value, unit, text
	r.change(&reading, "="+name)
	r.s.Readings = append(r.s.Readings, reading)
}

// find returns the first array read for which ok returns true, or nil.
func (r *reader) find(ok func(a *registers.Array) bool) *registers.Array {
	return lists.First(r.in.arrays, ok)
}

// utilisation adds the utilisation of each link, computed from byte counts that decay within a
// window. If egress reports these counts to ingress, it reads the register of egress.
func (r *reader) utilisation() {
	for _, a := range r.in.arrays {
		times := registers.MomentOf(r.in.arrays, a.Name, manifest.Updated)
		if a.Index != manifest.ByPort || a.Kind != manifest.Rate || a.Unit != manifest.Bytes || times == nil || a.Reports != "" {
			continue
		}
		window := time.Duration(a.Window)
		for _, p := range r.ports {
			if p.Rate == 0 || p.Number >= len(a.Cells) || p.Number >= len(times.Cells) {
				continue
			}
			sent := registers.Faded(a.Cells[p.Number], times.Cells[p.Number], r.s.Clock, window)
			share := sent / registers.WindowBytes(float64(p.Rate), window)
			r.quantity("utilisation", valueText(share, "share"), share, "share", Reading{
				Cell: p.Number, Index: portName(p.Number), Port: p.Number, Peer: p.Peer,
				Meaning: fmt.Sprintf("bytes sent within %s as a share of the link capacity", durationText(window)),
			})
		}
	}
}

// warnings adds the ports that are expected to be paused, and for how long.
func (r *reader) warnings() {
	until := r.find(func(a *registers.Array) bool {
		return a.Index == manifest.ByPort && a.Kind == manifest.Deadline && a.Event == manifest.Pause
	})
	for _, p := range r.ports {
		end, ok := until.Cell(p.Number)
		if !ok {
			return
		}
		left := max(0, registers.Micros(end)-r.s.Clock)
		text, value := "no", 0.0
		if left > 0 {
			text, value = "for "+durationText(left), 1
		}
		r.quantity("warned", text, value, "", Reading{
			Cell: p.Number, Index: portName(p.Number), Port: p.Number, Peer: p.Peer,
			Meaning: "1: the port is expected to be paused",
		})
	}
}

// rounds adds, for each port, the mean number of recirculations per recirculated packet (RLB's
// Rc_avg).
func (r *reader) rounds() {
	counts := r.find(func(a *registers.Array) bool {
		return a.Index == manifest.ByPort && a.Kind == manifest.Count && a.Unit == manifest.Recirculations && a.Per != ""
	})
	if counts == nil {
		return
	}
	for _, p := range r.ports {
		sum, ok := counts.Cell(p.Number)
		packets, known := r.in.byName[counts.Per].Cell(p.Number)
		if !ok || !known || packets == 0 {
			continue
		}
		mean := float64(sum) / float64(packets)
		r.quantity("recirculations per packet", fmt.Sprintf("%.3g", mean), mean, "", Reading{
			Cell: p.Number, Index: portName(p.Number), Port: p.Number, Peer: p.Peer,
			Meaning: "Rc_avg of the current interval",
		})
	}
}

// weights adds the weights of the paths in a weighted random choice, and the resulting share of
// each path.
func (r *reader) weights() {
	rule := r.weightRule()
	if rule == nil {
		return
	}
	for _, g := range r.groups {
		list, total := make([]float64, len(g.Hops)), 0.0
		for slot, hop := range g.Hops {
			list[slot] = rule(g, slot, hop)
			total += list[slot]
		}
		for slot, hop := range g.Hops {
			reading := r.path(g, slot, hop)
			reading.Cell = g.ID<<4 + slot
			share := 1 / float64(len(list)) // all weights are 0
			if total > 0 {
				share = list[slot] / total
			}
			reading.Meaning = "grids of the path"
			r.quantity("weight", plainText(list[slot]), list[slot], "", reading)
			reading.Meaning = "how much of the group's traffic the path is to get"
			r.quantity("share", fmt.Sprintf("%.3g %%", 100*share), share, "share", reading)
		}
	}
}

// A weightRule returns the weight of a path of a group.
type weightRule func(g fabric.Group, slot int, hop fabric.Hop) float64

// weightRule returns the program's rule for weights, or nil if it has none.
func (r *reader) weightRule() weightRule {
	w := r.in.node.Manifest.Weights
	if w == nil {
		return nil
	}
	if w.From == manifest.FromController {
		if r.in.node.Weights == nil {
			return nil
		}
		return func(g fabric.Group, slot int, _ fabric.Hop) float64 { return float64(r.in.node.Weights[g.ID][slot]) }
	}
	about := r.in.byName[w.Register]
	if about == nil || len(about.Cells) == 0 {
		return nil
	}
	if w.From == manifest.FromTable {
		return r.tableRule(about)
	}
	heard := registers.MomentOf(r.in.arrays, about.Name, manifest.Heard)
	return func(g fabric.Group, slot int, hop fabric.Hop) float64 {
		i := about.PathCell(g.ID, slot, hop.Port)
		v, _ := about.Cell(i)
		if at, ok := heard.Cell(i); ok && w.Stale > 0 && r.s.Clock-registers.Micros(at) > time.Duration(w.Stale) {
			v = 0
		}
		if w.Most == 0 {
			return float64(v)
		}
		return float64(max(w.Most-int64(min(v, uint64(w.Most))), w.Least))
	}
}

// tableRule returns the weights that a precomputed table assigns to the levels of paths. If all
// weights of a group are 0, the paths with the table's zero level have equal weights.
func (r *reader) tableRule(levels *registers.Array) weightRule {
	tables := r.in.node.Manifest.Tables
	i := slices.IndexFunc(tables, func(t manifest.Table) bool { return t.Baked != nil && len(t.Baked.Weights) > 0 })
	if i < 0 {
		return nil
	}
	baked := tables[i].Baked
	level := func(g fabric.Group, slot int, hop fabric.Hop) int {
		return int(levels.Raw[min(levels.PathCell(g.ID, slot, hop.Port), len(levels.Raw)-1)])
	}
	weight := func(l int) int {
		if l < len(baked.Weights) {
			return baked.Weights[l]
		}
		return 0
	}
	return func(g fabric.Group, slot int, hop fabric.Hop) float64 {
		sum := 0
		for other, h := range g.Hops {
			sum += weight(level(g, other, h))
		}
		own := level(g, slot, hop)
		switch {
		case sum > 0:
			return float64(weight(own))
		case slices.Contains(baked.Zero, own):
			return 1
		}
		return 0
	}
}
