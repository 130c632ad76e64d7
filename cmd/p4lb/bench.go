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
		Short:      "Measure the performance of p4lb",
		Long: `Bench measures p4lb on this machine and prints each result with its unit and the
workload.

The measurements are:

  compile  compile a program for flowlet switching: each stage of the compiler in
           a warm process, and the whole command
  control  deploy embedded switches: time from the command to verified routes, a
           second deployment, and recovery from a failed link; the highest rate of
           register reads, and the cost of watching 20 switches
  fit      fit a congestion index to as many observations as QALL has
  gen      generate programs, and send packets through each program of the
           catalogue, through some for Tofino and through the slowest
  sim      simulate on one core: packet-hops per second with programs and with
           models in the switches, the speed on two cores, and the memory of a
           packet
  store    save and read results: the time that a store adds to a run, and the
           time to find and read 10,000 results, in a temporary folder;
           P4LB_BENCH_STORE=URL runs the first measurement in another store, such
           as s3://bucket/bench, and leaves its files there
  switch   run the example programs in the embedded switch on one core: packets
           per second, changed entries per second and the time of a register read
           over P4Runtime and BfRt
  veth     run the embedded switch as a process between two veth interfaces, and
           simple_switch if it is on PATH: packets per second of CPU time; start
           networks with hosts: time to the first answered ping, ping times and
           TCP throughput (if ping and iperf3 are installed)

Without names it runs all measurements. The first line of the output is the speed
of a fixed loop of integer operations. Divide by it to compare machines.`,
		Example: `  p4lb bench
  p4lb bench switch veth
  p4lb bench sim --runs 5 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if _, ok := benches[name]; !ok {
					return cli.UsageError(cmd, "unknown measurement %q: want one of %s", name, strings.Join(all, ", "))
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
					c.Warning("%s skipped: %v", benchInterfaces, strings.TrimPrefix(err.Error(), hosts.ErrNotHere.Error()+": "))
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
	cmd.Flags().IntVar(&runs, "runs", 21, "print the median of `N` runs")
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

// benchInterfaces names the measurement that needs network interfaces.
const benchInterfaces = "veth"

func showMeasurements(c *cli.Console, form cli.Format, list []bench.Measurement) error {
	rows := cli.Grid{{"NAME", "VALUE", "UNIT", "WORKLOAD"}}
	for _, m := range list {
		rows = append(rows, []string{m.Name, strconv.FormatFloat(m.Value, 'f', digits(m.Value), 64), m.Unit, m.Detail})
	}
	return cli.Show(c.Out, form, rows, list)
}

// digits returns the number of decimals that show three significant digits, at
// least 0.
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
