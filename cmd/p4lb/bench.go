package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/tools/bench"
)

func newBench(c *cli.Console) *cobra.Command {
	benches := map[string]func(context.Context, int) ([]bench.Measurement, error){
		"compile":       bench.Compile,
		"control":       bench.Control,
		"fit":           bench.Fit,
		"gen":           bench.Generate,
		"sim":           bench.Simulate,
		"store":         bench.Store,
		"switch":        bench.Switch,
		benchInterfaces: bench.Interfaces,
	}
	all := slices.Sorted(maps.Keys(benches))
	var form cli.Format
	var runs int
	cmd := &cobra.Command{
		SuggestFor: []string{"benchmark"},
		Use:        "bench [compile] [control] [fit] [gen] [sim] [store] [switch] [veth] [-o FORMAT]",
		Short:      "Measure p4lb on this machine",
		Long: `Bench measures and prints each result with its unit and what was run.

  compile  the compiler on a program for flowlet switching: each of its stages
           in a warm process, and the whole process as a user starts it
  control  deployments on embedded switches: from the command to verified, a
           second time, and after a link has failed; how often the registers of
           a switch can be read, and what it takes to watch 20 of them
  fit      fitting a congestion index to as many observations as QALL has
  gen      the generator, and packets per second through each program of the
           catalogue, and through some of those for Tofino and the slowest
  sim      the simulator on one core: packet-hops per second with programs in
           every switch, and with models; the memory that a packet takes
  store    the time that a store adds to a run, and to find and read 10,000
           results, in a folder for temporary files; P4LB_BENCH_STORE=URL measures the
           first in another store, such as s3://bucket/bench, and leaves in it
           what was written
  switch   the embedded switch on one core: packets per second through the
           programs of the examples; over P4Runtime and over BfRt, how many
           entries a second can be changed, and how long a register takes
  veth     the embedded switch as a process between two veth interfaces, beside
           simple_switch where that is on PATH: packets per second of CPU time;
           and networks with hosts: how long until the first ping is answered,
           what one takes, and what TCP carries (where ping and iperf3 are)

Without a name it measures everything. The first line is the speed of a fixed loop
of integer operations, by which figures of other times or machines compare.`,
		Example: `  p4lb bench
  p4lb bench switch veth
  p4lb bench sim --runs 5 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if _, ok := benches[name]; !ok {
					return cli.UsageError(cmd, "no measurement %q: want %s", name, strings.Join(all, " or "))
				}
			}
			if runs < 1 {
				return cli.UsageError(cmd, "--runs %d: want at least 1", runs)
			}
			named := len(args) > 0
			if !named {
				args = all
			}
			if slices.Contains(args, benchInterfaces) && !hosts.Capable() {
				code, err := hosts.AsRoot()
				switch {
				case errors.Is(err, hosts.ErrNotHere) && !named:
					c.Warning("%s is left out: %v", benchInterfaces, strings.TrimPrefix(err.Error(), hosts.ErrNotHere.Error()+": "))
					args = slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == benchInterfaces })
				case err != nil:
					return &cli.Failure{Code: cli.ExitRefused, Err: err}
				case code != 0:
					return &cli.Failure{Code: code}
				default:
					return nil
				}
			}
			list := []bench.Measurement{bench.Machine(cmd.Context(), runs)}
			for i, name := range args {
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				c.Say("measuring %s (%d of %d)", name, i+1, len(args))
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
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

// benchInterfaces is the measurement that wants network interfaces.
const benchInterfaces = "veth"

func showMeasurements(c *cli.Console, form cli.Format, list []bench.Measurement) error {
	rows := cli.Grid{{"NAME", "VALUE", "UNIT", "WHAT WAS RUN"}}
	for _, m := range list {
		rows = append(rows, []string{m.Name, strconv.FormatFloat(m.Value, 'f', digits(m.Value), 64), m.Unit, m.Detail})
	}
	return cli.Show(c.Out, form, rows, list)
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
