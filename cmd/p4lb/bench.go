package main

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newBench(c *cli) *cobra.Command {
	benches := map[string]func(context.Context, int) ([]measurement, error){
		"compile": benchCompile,
		"fit":     benchFit,
		"gen":     benchGen,
		"switch":  benchSwitch,
	}
	all := slices.Sorted(maps.Keys(benches))
	var form format
	var runs int
	cmd := &cobra.Command{
		Use:   "bench [compile] [fit] [gen] [switch] [-o FORMAT]",
		Short: "Measure p4lb on this machine",
		Long: `Bench measures and prints each result with its unit and what was run.

  compile  the compiler on a program for flowlet switching: each of its stages
           in a warm process, and the whole process as a user starts it
  fit      fitting a congestion index to as many observations as QALL has
  gen      the generator, and packets per second through each program of the
           catalogue
  switch   the embedded switch on one core: packets per second through the
           programs of the examples

Without a name it measures everything.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if _, ok := benches[name]; !ok {
					return usageError(cmd, "no measurement %q: want %s", name, strings.Join(all, " or "))
				}
			}
			if runs < 1 {
				return usageError(cmd, "--runs %d: want at least 1", runs)
			}
			if len(args) == 0 {
				args = all
			}
			var list []measurement
			for _, name := range args {
				more, err := benches[name](cmd.Context(), runs)
				if err != nil {
					return err
				}
				list = append(list, more...)
			}
			return showMeasurements(c, form, list)
		},
	}
	cmd.Flags().IntVar(&runs, "runs", 21, "take the median of `N` runs")
	addFormat(cmd, &form, formatTable, formatJSON, formatCSV)
	return cmd
}

// A measurement is one line of bench.
type measurement struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Detail string  `json:"detail"`
}

func showMeasurements(c *cli, form format, list []measurement) error {
	rows := grid{{"NAME", "VALUE", "UNIT", "WHAT WAS RUN"}}
	for _, m := range list {
		rows = append(rows, []string{m.Name, strconv.FormatFloat(m.Value, 'f', digits(m.Value), 64), m.Unit, m.Detail})
	}
	return show(c.out, form, rows, list)
}

// digits keeps three significant ones, and no fraction of large values.
func digits(v float64) int {
	switch {
	case v >= 100:
		return 0
	case v >= 10:
		return 1
	case v >= 1:
		return 2
	}
	return 3
}
