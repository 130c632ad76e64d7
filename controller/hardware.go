package controller

import (
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fabric"
)

// What programs for Tofino have beside the others: tables that stand for
// arithmetic.

// fillUpstream: the mirror session that leads back to the switch behind a port.
func (b *planner) fillUpstream(table string) {
	sessions := b.m.Hardware.MirrorSessions
	i := slices.IndexFunc(sessions, func(s codegen.Session) bool { return s.PerPort })
	if i < 0 {
		b.fail("generate program and manifest together", "table %s wants a mirror session for each port, and the manifest has none", table)
		return
	}
	for _, p := range b.ports {
		if p.PeerTier > 0 {
			b.add(table, "warn", exact(p.Number), arguments{"session": uint64(sessions[i].Session + p.Number)}.get)
		}
	}
}

// portQueues is how many queues a port of p4lb's own switch has by the numbers
// that the ghost thread is told (dataplane.QueueNumber).
const portQueues = 4

// queueNumber is the number of the first queue of a port, which is the one that
// programs use.
func queueNumber(port int) uint64 { return uint64(port) * portQueues }

// DevicePorts returns a topology whose switches have the ports of a Tofino: what
// the port is that the nth front port of a topology is. Where the topology has
// none of those that the hardware keeps for itself it stays as it is: then its
// ports may well be device ports already.
func DevicePorts(t *fabric.Topology, arch string) *fabric.Topology {
	kept := map[string][]int{"tna": {0, 64, 65, 66, 67, 68, 69, 70, 71}, "t2na": {0, 1, 2, 3, 4, 5, 6, 7}}[arch]
	inPipe := func(port int) bool { return slices.Contains(kept, port%pipePorts) }
	for _, s := range t.Switches {
		if slices.ContainsFunc(t.Ports(s.Name), func(p fabric.Port) bool { return inPipe(p.Number) }) {
			return t.Renumber(func(port int) int {
				free := pipePorts - len(kept)
				pipe, n := (port-1)/free, (port-1)%free
				for _, k := range kept {
					if k <= n {
						n++
					}
				}
				return pipe*pipePorts + n
			})
		}
	}
	return t
}

// pipePorts is how many ports the number of a pipe stands for.
const pipePorts = 128

// fillGrids: the last grid of each path but the last, of 256 in proportion to
// the weights.
func (b *planner) fillGrids(table string) {
	const total = 256
	for _, g := range b.out.Routes.Groups {
		weights := b.weights(g)
		var all uint64
		for _, w := range weights {
			all += w
		}
		b.add(table, "set_ends", exact(g.ID), func(name string) (uint64, bool) {
			slot, err := strconv.Atoi(strings.TrimPrefix(name, "end_"))
			if err != nil {
				return 0, false
			}
			var so uint64
			for _, w := range weights[:min(slot+1, len(weights))] {
				so += w
			}
			return max(so*total/all, 1) - 1, true
		})
	}
}

// baked is what the manifest says of a table that is computed in advance.
func (b *planner) baked(table string) *codegen.Baked {
	if b.m.Hardware == nil {
		return nil
	}
	for i := range b.m.Hardware.Baked {
		if b.m.Hardware.Baked[i].Table == table {
			return &b.m.Hardware.Baked[i]
		}
	}
	return nil
}

// fillBaked: an entry for every key, the first field counting fastest.
func (b *planner) fillBaked(table string) {
	baked := b.baked(table)
	if len(baked.Values) == 0 && len(baked.Weights) == 0 {
		b.noPolynomial()
		return
	}
	total := 1
	for _, k := range baked.Keys {
		total *= k.Values
	}
	if len(baked.Values) > 0 && len(baked.Values) != total {
		b.fail("generate program and manifest together", "the manifest has %d values for the %d keys of table %s", len(baked.Values), total, table)
		return
	}
	for i := range total {
		key := make([]int, len(baked.Keys))
		rest := i
		for k, field := range baked.Keys {
			key[k], rest = rest%field.Values, rest/field.Values
		}
		var args []int
		if len(baked.Values) > 0 {
			args = baked.Values[i : i+1]
		} else {
			args = baked.Ends(key)
		}
		b.add(table, baked.Action, exact(key...), func(string) (uint64, bool) {
			if len(args) == 0 {
				return 0, false
			}
			v := args[0]
			args = args[1:]
			return uint64(v), true
		})
	}
}
