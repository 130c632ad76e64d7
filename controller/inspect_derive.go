package controller

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/fabric"
)

// derive adds what several cells say together.
func (r *reader) derive() {
	r.utilisation()
	r.warnings()
	r.weights()
	r.rounds()
}

// quantity adds a reading that is computed.
func (r *reader) quantity(name, text string, value float64, unit string, reading Reading) {
	reading.Quantity, reading.Value, reading.Unit, reading.Text = name, value, unit, text
	r.change(&reading, "="+name)
	r.s.Readings = append(r.s.Readings, reading)
}

// cell is a cell of a register that was read; ok is false where there is none.
func (r *reader) cell(name string, i int) (v uint64, ok bool) {
	a := r.in.byName[name]
	if a == nil || i >= len(a.cells) {
		return 0, false
	}
	return a.cells[i], true
}

// utilisation is what each link carries of what it could: from the bytes that
// fade within a window, which HULA, DHLB and CONGA count.
func (r *reader) utilisation() {
	k := int(r.in.node.parameter("window"))
	for _, a := range r.in.arrays {
		times := r.in.byName[a.Name+"_ts"]
		if a.index != byPort || a.Unit != "bytes" || times == nil || strings.HasSuffix(a.Name, "_in") {
			continue
		}
		for _, p := range r.ports {
			if p.Rate == 0 || p.Number >= len(a.cells) || p.Number >= len(times.cells) {
				continue
			}
			sent := faded(a.cells[p.Number], times.cells[p.Number], r.s.Clock, k)
			share := sent / windowBytes(float64(p.Rate), k)
			r.quantity("utilisation", valueText(share, "share"), share, "share", Reading{
				Cell: p.Number, Index: portName(p.Number), Port: p.Number, Peer: p.Peer,
				Meaning: fmt.Sprintf("what the port sent within %s of what its link carries", durationText(micros(1<<k))),
			})
		}
	}
}

// warnings are the ports that RLB expects to be paused, and for how long.
func (r *reader) warnings() {
	for _, p := range r.ports {
		until, ok := r.cell("warn_until", p.Number)
		if !ok {
			return
		}
		left := max(0, micros(until)-r.s.Clock)
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

// rounds is how often packets come round on average (RLB's Rc_avg).
func (r *reader) rounds() {
	sum, ok := r.cell("rc_sum", 0)
	if !ok {
		return
	}
	packets, _ := r.cell("rc_pkts", 0)
	mean := float64(sum) / float64(max(1, packets))
	r.quantity("recirculations per packet", fmt.Sprintf("%.3g", mean), mean, "", Reading{
		Meaning: "Rc_avg of the interval that is under way",
	})
}

// weights are those of the paths that a grid is drawn from, and their shares.
func (r *reader) weights() {
	if r.in.node.Manifest.Choice != "grid" {
		return
	}
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
			share := 1 / float64(len(list)) // nothing speaks for any path
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

// weightRule is how the program computes weights: from the controller's, or by
// the register that they are computed from: QALL's Eq. 6 with its least weight,
// DHLB's degrees, Clove's marks, free places of a queue. It is nil where nothing
// is known of them.
func (r *reader) weightRule() func(fabric.Group, int, fabric.Hop) float64 {
	if baked := bakedGrids(r.in.node.Manifest); baked != nil {
		return r.gridRule(baked)
	}
	switch {
	case r.in.node.Weights != nil:
		return func(g fabric.Group, slot int, _ fabric.Hop) float64 { return float64(r.in.node.Weights[g.ID][slot]) }
	case r.in.byName["q_C"] != nil:
		return r.congestionWeight
	case r.in.byName["deg"] != nil:
		return func(g fabric.Group, slot int, _ fabric.Hop) float64 {
			v, _ := r.cell("deg", g.ID<<4+slot)
			return float64(v)
		}
	case r.in.byName["ecn"] != nil:
		return func(g fabric.Group, slot int, _ fabric.Hop) float64 {
			v, _ := r.cell("ecn", g.ID<<4+slot)
			return float64(256 - min(v, 255))
		}
	case r.in.byName["q_len"] != nil:
		return func(_ fabric.Group, _ int, hop fabric.Hop) float64 {
			v, _ := r.cell("q_len", hop.Port)
			return max(1, float64(r.in.node.parameter("qcap"))-float64(v))
		}
	}
	return nil
}

// congestionWeight is Eq. 6 of QALL, at least C_max/256. State that is older
// than the program's age limit counts as that of an idle port.
func (r *reader) congestionWeight(_ fabric.Group, _ int, hop fabric.Hop) float64 {
	most := uint64(r.in.byName["q_C"].Scale)
	c, _ := r.cell("q_C", hop.Port)
	updated, _ := r.cell("q_upd", hop.Port)
	if age := r.in.node.period("age"); age > 0 && r.s.Clock-micros(updated) > age {
		c = 0
	}
	return float64(max(most-min(c, most), max(1, most>>8)))
}
