package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/tools/conformance"
)

// newConformance returns a developer's verb that runs the compiler and the
// embedded switch on a checkout of p4c's test suite. Each program runs in a
// separate process, through the same verbs that users type, so a crash or a
// hang fails one program and does not end the run.
func newConformance(c *cli.Console) *cobra.Command {
	var s conformance.Suite
	var form cli.Format
	var only []string
	cmd := &cobra.Command{
		Use:    "conformance --p4c DIR [--only CATEGORY]...",
		Short:  "Run p4c's test suite",
		Hidden: true,
		Long: `Conformance runs p4lb on the test suite of github.com/p4lang/p4c.

  samples  every program in p4_16_samples: neither crashes nor hangs
  v1model  samples that include v1model.p4: compile
  p4info   P4Info of these: equals the expected message
  stf      packet tests of these: pass on the embedded switch
  errors   every program in p4_16_errors: rejected, on a line that p4c reports`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range only {
				if !slices.Contains(conformance.Categories, name) {
					return cli.UsageError(cmd, "--only %s: want %s", name, strings.Join(conformance.Categories, ", "))
				}
			}
			if len(only) == 0 {
				only = conformance.Categories
			}
			if err := cli.Requires(cmd, slices.Contains(only, "stf"), "--only stf", "json"); err != nil {
				return err
			}
			if s.Dir == "" {
				return &cli.Failure{Code: cli.ExitUsage, Err: errors.New("--p4c is missing: want the folder of a p4c checkout")}
			}
			var err error
			if s.P4LB, err = os.Executable(); err != nil {
				return err
			}
			results, err := s.Run(cmd.Context(), only)
			if errors.Is(err, conformance.ErrNoSuite) {
				return cli.Hinted(fmt.Errorf("--p4c %w", err), "want a checkout of github.com/p4lang/p4c")
			}
			if err != nil {
				return err
			}
			return showConformance(c, form, results)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Dir, "p4c", "", "the `FOLDER` of a p4c checkout")
	flags.StringArrayVar(&only, "only", nil, "run this `CATEGORY` (repeatable; default all)")
	flags.StringVar(&s.Match, "run", "", "run only programs with this `TEXT` in the name")
	flags.StringVar(&s.JSONDir, "json", "", "run the stf category with NAME.json from this `FOLDER`, compiled by p4c")
	flags.DurationVar(&s.Timeout, "timeout", 20*time.Second, "limit the `TIME` of one program")
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON)
	return cmd
}

// showConformance prints one line per category, and with -v the reason of each
// failure.
func showConformance(c *cli.Console, form cli.Format, results []*conformance.Result) error {
	if form == cli.JSON {
		return cli.Show(c.Out, form, nil, results)
	}
	for _, r := range results {
		fmt.Fprintf(c.Out, "%-8s %4d programs  %4d passed (%.1f %%)  %d not supported%s  %d failed%s\n",
			r.Category, r.Total, r.Passed, 100*float64(r.Passed)/float64(max(r.Total, 1)),
			len(r.NotSupported), programNames(r.NotSupported), len(r.Failed), programNames(r.Failed))
	}
	if !c.Verbose {
		return nil
	}
	for _, r := range results {
		for _, o := range slices.Concat(r.NotSupported, r.Failed) {
			fmt.Fprintf(c.Out, "%s: %s: %s\n", r.Category, o.Program, o.Reason)
		}
	}
	return nil
}

func programNames(list []conformance.Outcome) string {
	if len(list) == 0 {
		return ""
	}
	all := lists.Map(list, func(o conformance.Outcome) string { return o.Program })
	return " (" + strings.Join(all, " ") + ")"
}
