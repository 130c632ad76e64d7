package controller

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fabric"
)

// What follows is all that is known about the contents of programs: the words
// that manifests are made of.

// groupingOf says what a program wants the ids of groups to mean. They are the
// numbers of the leaves where a table says so, and where paths have weights:
// those depend on the destination. What one role wants, all get.
func groupingOf(m *codegen.Manifest) fabric.Grouping {
	for _, t := range m.Tables {
		switch short(t.Name) {
		case "leaf", "leaf_of", "arrival":
			return fabric.ByLeaf
		case "grids":
			if len(t.Keys) > 0 && strings.Contains(t.Keys[0], "gid") {
				return fabric.ByLeaf
			}
		case "candidates":
			if strings.Contains(strings.Join(t.Actions, " "), "weight_0") {
				return fabric.ByLeaf
			}
		}
	}
	return fabric.ByHops
}

// tableFillers say what the entries of tables are, by the names of the tables
// without their control.
var tableFillers = map[string]func(b *planner, table string){
	"ipv4_route": (*planner).fillRoutes,
	"member":     (*planner).fillMembers,
	"candidates": (*planner).fillCandidates,
	"leaf":       (*planner).fillLeaves,
	"leaf_of":    (*planner).fillLeafOf,
	"arrival":    (*planner).fillArrivals,
	"self":       (*planner).fillSelf,
	"grids":      (*planner).fillGrids,
	"port_cfg":   (*planner).fillPorts,
	"pattern":    (*planner).fillPattern,
	"upstream":   (*planner).fillUpstream,
}

// fillRoutes: the next hop, or the group.
func (b *planner) fillRoutes(table string) {
	sizes := map[int]int{}
	for _, g := range b.out.Routes.Groups {
		sizes[g.ID] = len(g.Hops)
	}
	for _, r := range b.out.Routes.Routes {
		addr := r.Prefix.Addr().As4()
		key := []Match{{Value: uint64(binary.BigEndian.Uint32(addr[:])), Bits: r.Prefix.Bits()}}
		if r.Group == 0 {
			b.add(table, "forward", key, hopArgs(r.Hop).get)
		} else {
			b.add(table, "set_group", key, arguments{"gid": uint64(r.Group), "n": uint64(sizes[r.Group])}.get)
		}
	}
}

func hopArgs(h fabric.Hop) arguments {
	return arguments{"port": uint64(h.Port), "dmac": macNumber(h.Dst), "smac": macNumber(h.Src)}
}

func macNumber(m fabric.MAC) uint64 {
	var b [8]byte
	copy(b[2:], m[:])
	return binary.BigEndian.Uint64(b[:])
}

// fillMembers: the paths of each group, slot by slot.
func (b *planner) fillMembers(table string) {
	for _, g := range b.out.Routes.Groups {
		for slot, hop := range g.Hops {
			b.add(table, "forward", exact(g.ID, slot), hopArgs(hop).get)
		}
		if b.m.Hardware == nil {
			continue
		}
		// What hardware remembers of a slot it does not check: if a group has
		// become smaller, the slots that it had lead along the paths that it has.
		for slot := len(g.Hops); slot < b.m.Paths; slot++ {
			b.add(table, "forward", exact(g.ID, slot), hopArgs(g.Hops[slot%len(g.Hops)]).get)
		}
	}
}

// absent is an attribute of a path that a group does not have. On hardware the
// state of port 511, or of its last queue, is that of no path.
func (b *planner) absent(attribute string) uint64 {
	if b.m.Hardware == nil {
		return 0
	}
	switch attribute {
	case "port":
		return fabric.MaxPort + 1
	case "queue":
		return queueNumber(fabric.MaxPort+1) + portQueues - 1
	}
	return 0
}

// fillCandidates: an argument for each attribute and slot, such as port_0, also
// of slots beyond the last path.
func (b *planner) fillCandidates(table string) {
	for _, g := range b.out.Routes.Groups {
		weights := b.weights(g)
		b.add(table, "set_candidates", exact(g.ID), func(name string) (uint64, bool) {
			i := strings.LastIndexByte(name, '_')
			slot, err := strconv.Atoi(name[i+1:])
			if i < 0 || err != nil {
				return 0, false
			}
			if slot >= len(g.Hops) {
				return b.absent(name[:i]), true
			}
			port := b.port(g.Hops[slot].Port)
			switch name[:i] {
			case "port":
				return uint64(port.Number), true
			case "queue":
				return queueNumber(port.Number), true
			case "svc": // us/65536
				return min(math.MaxUint32, 65536*1e6/b.packetRate(port.Rate)), true
			case "weight":
				return weights[slot], true
			}
			return 0, false
		})
	}
}

func (b *planner) port(number int) fabric.Port {
	i := slices.IndexFunc(b.ports, func(p fabric.Port) bool { return p.Number == number })
	return b.ports[i]
}

// fillLeaves: the way of a probe to every leaf, which for this one ends here.
// Where several ways are equally short, leaves share them out.
func (b *planner) fillLeaves(table string) {
	for _, leaf := range b.plan.Topology.Leaves() {
		if leaf.Name == b.sw.Name {
			if b.x.byName[table].actions["at_home"] != nil {
				b.add(table, "at_home", exact(leaf.Leaf), arguments{"id": uint64(leaf.Leaf)}.get)
			}
			continue
		}
		if hops := b.hops(leaf); len(hops) > 0 {
			port := hops[leaf.Leaf%len(hops)].Number
			b.add(table, "set_port", exact(leaf.Leaf), arguments{"port": uint64(port)}.get)
		}
	}
}

// hops are the ports that lead to a leaf, in the order of their slots.
func (b *planner) hops(leaf *fabric.Switch) []fabric.Port {
	hops, _ := b.plan.Routes.NextHops(b.sw.Name, leaf.Name) // both are there
	return hops
}

// fillLeafOf: the leaf of every address that is not below this switch, whether
// or not there is a way back.
func (b *planner) fillLeafOf(table string) {
	for _, d := range b.plan.Topology.Destinations() {
		if d.Leaf != b.sw.Leaf {
			addr := d.Prefix.Addr().As4()
			key := []Match{{Value: uint64(binary.BigEndian.Uint32(addr[:])), Bits: d.Prefix.Bits()}}
			b.add(table, "set_leaf", key, arguments{"leaf": uint64(d.Leaf)}.get)
		}
	}
}

// fillArrivals: a probe that comes in where packets to its origin go out knows
// about that path.
func (b *planner) fillArrivals(table string) {
	for _, leaf := range b.plan.Topology.Leaves() {
		if leaf.Name == b.sw.Name {
			continue
		}
		for slot, p := range b.hops(leaf) {
			b.add(table, "set_arrival", exact(leaf.Leaf, p.Number), arguments{"slot": uint64(slot), "onward": b.onward(p)}.get)
		}
	}
}

// onward is the multicast group of what came in at a port, 0 where that goes
// nowhere.
func (b *planner) onward(p fabric.Port) uint64 {
	for _, g := range b.m.MulticastGroups {
		if members := groupMembers[g.Members]; g.PerPort && members != nil && len(members(b, &p)) > 0 {
			return uint64(g.Group + p.Number)
		}
	}
	return 0
}

// fillSelf: the number of the switch, which signs probes, in the default action
// or for each port that they come in at.
func (b *planner) fillSelf(table string) {
	if len(b.x.byName[table].fields) == 0 {
		b.add(table, "sign_probe", nil, arguments{"id": uint64(b.number)}.get)
		return
	}
	for _, p := range b.ports {
		if p.PeerTier > 0 {
			b.add(table, "sign_probe", exact(p.Number), arguments{"id": uint64(b.number), "in_port": uint64(p.Number)}.get)
		}
	}
}

// fillPorts: the reciprocal of each queue's capacity.
func (b *planner) fillPorts(table string) {
	for _, p := range b.ports {
		rl := 255 * 65536 / max(1, b.capacity(p)-1)
		b.add(table, "set_port_cfg", exact(p.Number), arguments{"rl": min(uint64(rl), 1<<24-1)}.get)
	}
}

// fillPattern: the polynomial, as two's complements.
func (b *planner) fillPattern(table string) {
	given := b.plan.Options.Coefficients
	if len(given) == 0 {
		b.noPolynomial()
		return
	}
	widths := map[string]int{}
	for _, p := range b.x.byName[table].actions["set_pattern"].params {
		widths[p.name] = p.width
	}
	b.add(table, "set_pattern", nil, func(name string) (uint64, bool) {
		w := widths[name]
		v, ok := given[name]
		if !ok || w < 64 && (v >= 1<<(w-1) || v < -1<<(w-1)) {
			return 0, false
		}
		return uint64(v) & (1<<w - 1), true
	})
}

// noPolynomial fails for want of coefficients.
func (b *planner) noPolynomial() {
	b.fail("fit some with p4lb fit, and give the model with --coeffs FILE", "the program of %s leaves its polynomial to the controller, and there is none", b.m.Scheme)
}

// routeTable is the table whose entries refer to those of others.
const routeTable = "ipv4_route"

// groupMembers say which ports multicast groups lead to, by the manifest's
// words: for what came in at a port, or nil.
var groupMembers = map[string]func(b *planner, from *fabric.Port) []int{
	"the ports to switches above": func(b *planner, _ *fabric.Port) []int {
		return b.portsTo(func(p fabric.Port) bool { return p.PeerTier > b.sw.Role.Tier() })
	},
	"the ports a probe from that port goes on to: from below, all to other switches; from above, those below": func(b *planner, from *fabric.Port) []int {
		here := b.sw.Role.Tier()
		if from.PeerTier == 0 {
			return nil
		}
		below := from.PeerTier < here
		return b.portsTo(func(p fabric.Port) bool {
			return p.Number != from.Number && (below || p.PeerTier < here)
		})
	},
}

// portsTo are the ports to other switches that are up and meet a condition.
func (b *planner) portsTo(ok func(fabric.Port) bool) []int {
	var list []int
	for _, p := range b.ports {
		if p.PeerTier > 0 && !p.Down && ok(p) {
			list = append(list, p.Number)
		}
	}
	return list
}

// addCells gives registers what they begin with where that is not 0: those that
// the controller writes, and no task does, and cells that stand for paths which
// groups do not have. Those of a register whose cells all begin alike are the
// program's.
func (b *planner) addCells() {
	tasks := map[string]bool{}
	for _, t := range b.m.Tasks {
		for _, name := range t.Writes {
			tasks[name] = true
		}
	}
	for _, r := range b.m.Registers {
		for _, c := range r.Initial {
			if c.Index >= 0 {
				b.out.Registers = append(b.out.Registers, Cells{Register: r.Name, From: c.Index, To: c.Index + 1, Value: uint64(c.Value)})
			}
		}
		if r.Writer != "controller" || tasks[r.Name] {
			continue
		}
		slot := slotOf(&r)
		switch {
		case r.Index == "path" && r.Unit == "us":
			b.addRoundTrips(r.Name, time.Microsecond, func(group, slot int) int { return group*codegen.MaxPaths + slot })
		case r.Index == "group" && r.Unit == tickUnit && slot >= 0: // one of the registers for each slot
			b.addRoundTrips(r.Name, tickTime, func(group, of int) int {
				if of != slot {
					return -1
				}
				return group
			})
		default:
			b.fail("this version of p4lb cannot deploy the program", "nothing is known about register %s (%s)", r.Name, r.Meaning)
		}
	}
}

// addRoundTrips gives a register the round-trip times of the paths from here, by
// the delays of the links alone, where at says that it has them.
func (b *planner) addRoundTrips(register string, unit time.Duration, at func(group, slot int) int) {
	for _, g := range b.out.Routes.Groups {
		if g.ID > len(b.plan.Topology.Leaves()) {
			continue
		}
		leaf := b.plan.Topology.Leaves()[g.ID-1]
		for slot, h := range g.Hops {
			port := b.port(h.Port)
			rtt := 2 * port.Delay
			if span, ok := b.plan.Routes.Span(port.Peer, leaf.Name); ok {
				rtt += span.RTT
			}
			if i := at(g.ID, slot); i >= 0 {
				b.out.Registers = append(b.out.Registers, Cells{Register: register, From: i, To: i + 1, Value: uint64((rtt + unit/2) / unit)})
			}
		}
	}
}
