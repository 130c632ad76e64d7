package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/dataplane"
	"github.com/p4lb/p4lb/manifest"
	"github.com/p4lb/p4lb/scheme"
)

// hardwareBenches are the rows whose speed is told for each Tofino, beside the
// slowest.
var hardwareBenches = []string{"ecmp", "letflow", "drill", "qall-poly3", "conga", "letflow+rlb"}

// benchHardware measures the programs for Tofino on the embedded switch.
func benchHardware(ctx context.Context, runs int) ([]measurement, error) {
	var list []measurement
	for _, arch := range []string{"tna", "t2na"} {
		slowest := measurement{"gen." + arch + ".slowest", 0, "Mpkt/s", ""}
		params := codegen.Params{Arch: arch}
		for _, row := range codegen.RowsFor(arch) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			rate, err := benchHardwareRow(ctx, row, params, runs)
			if err != nil {
				return nil, fmt.Errorf("measuring %s for %s: %w", row.Name, arch, err)
			}
			if slices.Contains(hardwareBenches, row.Name) {
				list = append(list, measurement{"gen." + arch + "." + row.Name, rate, "Mpkt/s", "its program for " + arch + " on the embedded switch, " + benchTraffic})
			}
			if slowest.Detail == "" || rate < slowest.Value {
				slowest.Value, slowest.Detail = rate, row.Name+", the slowest of the programs for "+arch
			}
		}
		list = append(list, slowest)
	}
	return list, nil
}

func benchHardwareRow(ctx context.Context, row codegen.Row, params codegen.Params, runs int) (float64, error) {
	g, err := build(scheme.Of(row), params)
	if err != nil {
		return 0, err
	}
	return benchForwarding(ctx, g, runs)
}

// bake fills the tables that stand for arithmetic, and sets up filters.
func (l *leafRig) bake(m *manifest.Manifest) {
	for _, f := range l.sw.Config().FilterArrays {
		for i := range f.Size {
			l.keep(l.sw.FilterSet(f.Name, i, dataplane.FilterSpec{Rate: true, Gain: time.Millisecond, Shift: 8}))
		}
	}
	l.baked = map[string]bool{}
	for _, t := range m.Tables {
		if t.Baked != nil {
			l.baked[t.Name] = true
			l.bakeTable(t.Name, t.Baked)
		}
	}
}

// evenEnd gives the last of 256 grids of each path where all have as many.
func evenEnd(paths int) func(string) int64 {
	return func(name string) int64 {
		slot, err := strconv.Atoi(strings.TrimPrefix(name, "end_"))
		if err != nil {
			return 0
		}
		return int64(256*(slot+1)/paths - 1)
	}
}

// bakeTable adds an entry for every key; the first field counts up fastest.
func (l *leafRig) bakeTable(table string, b *manifest.Baked) {
	control, _, _ := strings.Cut(table, ".")
	levels := make([]int, len(b.Keys))
	for i := 0; ; i++ {
		args := []int{0}
		if len(b.Weights) > 0 {
			args = b.Ends(levels)
		} else if i < len(b.Values) {
			args[0] = b.Values[i]
		}
		key := make([]dataplane.Match, len(levels))
		for k, level := range levels {
			key[k].Value = []byte{byte(level >> 8), byte(level)}
		}
		next := -1
		l.add(table, control+"."+b.Action, func(string) int64 { next++; return int64(args[next]) }, key...)
		if l.err != nil || !countUp(levels, b.Keys) {
			return
		}
	}
}

// countUp goes to the next key; there is none after the last one.
func countUp(levels []int, keys []manifest.BakedKey) bool {
	for i := range levels {
		if levels[i]++; levels[i] < keys[i].Values {
			return true
		}
		levels[i] = 0
	}
	return false
}
