package controller

import (
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/codegen"
)

// What programs for Tofino have beside the others: tables that stand for
// arithmetic.

// drawsGrids reports whether the hardware draws one of 256 grids.
func (b *planner) drawsGrids() bool {
	return b.m.Hardware != nil && slices.ContainsFunc(b.m.Tables, func(t codegen.Table) bool { return short(t.Name) == "grids" })
}

// fillGrids: where the grids of each path but the last end, of 256 in
// proportion to the weights.
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
			return min(so*total/all, total-1), true
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

// fillBaked: an entry for every key, the last field counting fastest.
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
		for k, rest := len(key)-1, i; k >= 0; k-- {
			key[k], rest = rest%baked.Keys[k].Values, rest/baked.Keys[k].Values
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
