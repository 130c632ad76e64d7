package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
)

// hardwareBenches are the rows reported for each Tofino, besides the slowest
// one.
var hardwareBenches = []string{"ecmp", "letflow", "drill", "qall-poly3", "conga", "letflow+rlb"}

// benchHardware measures the programs for Tofino on the embedded switch.
func benchHardware(ctx context.Context, runs int) ([]Measurement, error) {
	var list []Measurement
	for _, arch := range []string{"tna", "t2na"} {
		slowest := Measurement{"gen." + arch + ".slowest", 0, "Mpkt/s", ""}
		params := codegen.Params{Arch: arch}
		for _, row := range codegen.RowsFor(arch) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			g, err := scheme.Make(scheme.Of(row), params)
			if err != nil {
				return nil, fmt.Errorf("measuring %s for %s: %w", row.Name, arch, err)
			}
			rate, err := benchForwarding(ctx, g, runs)
			if err != nil {
				return nil, fmt.Errorf("measuring %s for %s: %w", row.Name, arch, err)
			}
			if slices.Contains(hardwareBenches, row.Name) {
				list = append(list, Measurement{"gen." + arch + "." + row.Name, rate, "Mpkt/s", "its program for " + arch + " on the embedded switch, " + benchTraffic})
			}
			if slowest.Detail == "" || rate < slowest.Value {
				slowest.Value, slowest.Detail = rate, row.Name+", the slowest of the programs for "+arch
			}
		}
		list = append(list, slowest)
	}
	return list, nil
}
