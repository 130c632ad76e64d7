package model

import (
	"strconv"
	"strings"
)

// Programs for hardware store values differently from programs for BMv2. Two numbers
// that are accessed together share a cell, the first in the upper half. Values that
// are read for all paths at once have a copy for each slot. Slots have no valid bit.

// pair returns a cell of two numbers with the given width.
func pair(first, second uint64, bits int) uint64 { return first<<bits | second }

// noPort is the port of slots that a group does not have.
const noPort = 511

// hardwareCells returns Cells for registers that differ on hardware, and nil for others.
func (s *Switch) hardwareCells(register string) []uint64 {
	name, slot := copyOf(register)
	for _, block := range []any{s.grain, s.signal, s.choice, s.guard, s} {
		if k, ok := block.(interface {
			hardware(register string, slot int) []uint64
		}); ok {
			if cells := k.hardware(name, slot); cells != nil {
				return cells
			}
		}
	}
	return nil
}

// copyOf splits a name such as LbIngress.queue_3.q_len into name and slot. For registers without
// copies the slot is -1.
func copyOf(register string) (name string, slot int) {
	slot = -1
	parts := strings.Split(register, ".")
	if len(parts) == 3 {
		slot, _ = strconv.Atoi(parts[1][strings.LastIndexByte(parts[1], '_')+1:])
	}
	return parts[len(parts)-1], slot
}

func slots(list []path) []uint64 {
	return collect(list, func(p path) uint64 { return uint64(p.there()) })
}

func (s *Switch) times(list []Time) []uint64 { return collect(list, s.cfg.Hardware.Count) }

func (g *flowlet) hardware(register string, _ int) []uint64 {
	if register == "fl_port" {
		return slots(g.paths[:])
	}
	return nil
}

func (g *flowcell) hardware(register string, _ int) []uint64 {
	switch register {
	case "fc":
		cells := make([]uint64, len(g.bytes))
		for i := range cells {
			cells[i] = pair(uint64(g.bytes[i]), uint64(g.turns[i]), 32)
		}
		return cells
	case "fc_slot":
		return slots(g.paths[:])
	}
	return nil
}

func (g *adaptive) hardware(register string, _ int) []uint64 {
	if register == "fc_port" {
		return slots(g.paths[:])
	}
	return nil
}

func (c *sampled) hardware(register string, _ int) []uint64 {
	if register != "dr_mem" {
		return nil
	}
	return collect(c.best, func(held lastBest) uint64 { return uint64(held[0].there()) })
}

func (c *qdapsHardware) hardware(register string, slot int) []uint64 {
	if register != "fl" {
		return c.sampled.hardware(register, slot)
	}
	cells := make([]uint64, len(c.flows))
	for i, f := range c.flows {
		cells[i] = pair(c.cfg.Hardware.Count(f.expected), uint64(f.path.there()), 32)
	}
	return cells
}

func (q *queue) hardware(register string, _ int) []uint64 {
	if strings.HasPrefix(register, "q_len_") {
		return q.ghostLengths()
	}
	if register != "q_len" {
		return nil
	}
	cells := numbers(q.len[:])
	cells[noPort] = 1<<19 - 1
	return cells
}

// hardware returns the grades times 256. The low byte is left for the order of paths.
func (o *occupancy) hardware(register string, _ int) []uint64 {
	if register != "q_C" {
		return nil
	}
	cells := collect(o.len[:], func(grade uint32) uint64 { return uint64(grade) << 8 })
	cells[noPort] = 0xFFF0
	return cells
}

// ghostLengths returns the queue lengths as the ghost thread writes them, by queue number. Each port
// has four queues, of which programs use the first. The last one stands for slots that a group
// does not have.
func (q *queue) ghostLengths() []uint64 {
	const perPort = 4
	cells := make([]uint64, perPort*len(q.len))
	for port, n := range q.len {
		cells[perPort*port] = uint64(n)
	}
	cells[len(cells)-1] = 1<<19 - 1
	return cells
}

func (b *behaviour) hardware(register string, _ int) []uint64 {
	cells := make([]uint64, len(b.egressSide))
	for i := range cells {
		e := &b.egressSide[i]
		switch register {
		case "qe_L":
			cells[i] = pair(uint64(e.l), uint64(max(e.v, falling)-falling), 8)
		case "q_C":
			cells[i] = uint64(b.ingressSide[i].congestion)
		default:
			return nil
		}
	}
	if register == "q_C" {
		cells[noPort] = uint64(len(b.cfg.Hardware.Weights) - 1)
	}
	return cells
}

func (u *utilisation) hardware(register string, _ int) []uint64 {
	if register != "best" {
		return nil
	}
	return collect(u.best, func(b bestHop) uint64 {
		if b.hop == 0 {
			return 1<<32 - 1
		}
		return pair(uint64(b.util), uint64(b.hop.there()), 16)
	})
}

func (d *degree) hardware(register string, slot int) []uint64 {
	if register != "deg" {
		return nil
	}
	h := d.cfg.Hardware
	return collect(d.degrees, func(paths [MaxPaths]pathDegree) uint64 {
		k := paths[slot]
		if !k.known {
			return pair(1<<32-1, h.Count(k.at), 32)
		}
		return pair(uint64(k.degree), h.Count(k.at), 32)
	})
}

// Levels compared for a minimum are multiples of 256. The low bits break ties.
func (l *load) hardware(register string, _ int) []uint64 {
	if register != "q_C" {
		return nil
	}
	cells := collect(l.ingressSide[:], func(e estimate) uint64 { return uint64(l.eighths(e.bytes)) << 8 })
	cells[noPort] = 0xFFF0
	return cells
}

func (g *piggyback) hardware(register string, slot int) []uint64 {
	switch register {
	case "to_leaf":
		return collect(g.toLeaf, func(paths [MaxPaths]pathDegree) uint64 {
			return pair(uint64(paths[slot].degree)<<8, g.cfg.Hardware.Count(paths[slot].at), 32)
		})
	case "from_leaf":
		return pathRegister(g.fromLeaf, func(ce uint8) uint64 { return uint64(ce) << 8 })
	}
	return g.load.hardware(register, slot)
}

func (o *oneWay) hardware(register string, slot int) []uint64 {
	h := o.cfg.Hardware
	switch register {
	case "owd":
		return collect(o.to, func(ways [MaxPaths]Time) uint64 { return h.Count(ways[slot]) })
	case "owd_from":
		return pathRegister(o.from, h.Count)
	}
	return o.queue.hardware(register, slot)
}

func (c *hermesHardware) hardware(register string, _ int) []uint64 {
	cells := make([]uint64, flowSlots)
	for i := range cells {
		f, w := &c.flows[i], &c.windows[i]
		switch register {
		case "fl_ts":
			cells[i] = c.cfg.Hardware.Count(f.last)
		case "fl_sent":
			cells[i] = uint64(f.sent)
		case "fl_rate":
			cells[i] = pair(uint64(w.bytes), c.cfg.Hardware.Count(w.began), 32)
		case "fl_port":
			cells[i] = uint64(f.path.there())
		default:
			return nil
		}
	}
	return cells
}

func (c *rehash) hardware(register string, _ int) []uint64 {
	if register != "fb_echo" {
		return nil
	}
	return collect(c.flows[:], func(e echoes) uint64 {
		// The score is above 0 if the share of marks exceeds the limit.
		score := 100*int64(e.marks) - int64(c.cfg.Marked)*int64(e.acks)
		return pair(uint64(uint32(score)), c.cfg.Hardware.Count(e.began), 32)
	})
}

// hardware returns registers of the switch that have a copy for each slot: the values that
// CONGA's leaves report next, and the values of probes.
func (s *Switch) hardware(register string, slot int) []uint64 {
	if register == "fb_tag" {
		return collect(s.feedback, func(next int) uint64 { return uint64(next % s.cfg.Paths) })
	}
	if slot < 0 {
		return nil
	}
	values := map[string]func(k pathState) uint64{
		"rtt": func(k pathState) uint64 { return uint64(k.rtt) },
		"ecn": func(k pathState) uint64 {
			if s.cfg.Choice == "least" {
				return uint64(k.marks) << 8
			}
			return uint64(k.marks)
		},
		"class": func(k pathState) uint64 {
			return []uint64{good: 0, grey: 0x1000, congested: 0xF000}[(&hermes{Switch: s}).class(k)]
		},
	}
	value := values[register]
	if value == nil {
		return nil
	}
	return collect(s.paths, func(paths [MaxPaths]pathState) uint64 { return value(paths[slot]) })
}

func (g *rlb) hardware(register string, _ int) []uint64 {
	if g == nil {
		return nil
	}
	h := g.cfg.Hardware
	queues := func(f func(ingressQueue) uint64) []uint64 { return collect(g.in[:], f) }
	switch register {
	case "ig_in":
		return queues(func(q ingressQueue) uint64 { return uint64(q.arrived) })
	case "ig_out":
		return queues(func(q ingressQueue) uint64 { return uint64(q.left) })
	case "eg_out":
		return numbers(g.left[:])
	case "ig_0":
		return queues(func(q ingressQueue) uint64 { return pair(uint64(q.before), h.Count(q.began), 32) })
	case "ig_clone":
		return g.times(g.reports.last[:])
	case "qe_clone":
		if k, ok := g.signal.(keeper); g.transit || !ok || k.cells(register) == nil { // otherwise the signal stores it
			return g.times(g.reports.last[:])
		}
	case "until":
		cells := g.times(g.until[:])
		for port, closed := range g.controlled.faulty {
			if closed {
				cells[port] |= pair(1, 0, 32)
			}
		}
		return cells
	}
	return nil
}

// setCopy writes a cell of a register that has a copy for each slot on hardware.
func (s *Switch) setCopy(name string, slot, index int, v uint64) bool {
	switch {
	case name == "rtt":
		s.paths.of(index)[slot].rtt = uint32(v)
	case name == "until" && s.guard != nil: // the upper half is the failure, the lower half the time
		s.SetFaulty(index, v>>32 != 0)
		s.guard.until[index] = Time(uint32(v)) << tickShift
	default:
		return false
	}
	return true
}
