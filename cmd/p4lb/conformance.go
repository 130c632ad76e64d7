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

// newConformance makes a developer's verb: it runs the compiler and the
// embedded switch over a checkout of p4c's test suite. Each program runs in a
// process of its own, by the same verbs that a user would type, so that a crash
// or a hang is one program's result and not the end of the run.
func newConformance(c *cli.Console) *cobra.Command {
	var s conformance.Suite
	var form cli.Format
	var only []string
	cmd := &cobra.Command{
		Use:    "conformance --p4c DIR [--only CATEGORY]...",
		Short:  "Run p4c's test suite",
		Hidden: true,
		Long: `Conformance runs p4lb over a checkout of github.com/p4lang/p4c.

  samples  every program in p4_16_samples: no crash, no hang
  v1model  those that include v1model.p4: compiled
  p4info   their P4Info: equal to the expected one as a message
  stf      their packet tests: passed on the embedded switch
  errors   every program in p4_16_errors: rejected, on a line that p4c names`,
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
			if err := cli.Wants(cmd, slices.Contains(only, "stf"), "--only stf", "json"); err != nil {
				return err
			}
			if s.Dir == "" {
				return &cli.Failure{Code: cli.ExitUsage, Err: errors.New("--p4c is missing: name a checkout of p4c")}
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
	flags.StringVar(&s.Dir, "p4c", "", "a checkout of p4c")
	flags.StringArrayVar(&only, "only", nil, "a category to run (repeatable; all where absent)")
	flags.StringVar(&s.Match, "run", "", "run only programs whose name contains this")
	flags.StringVar(&s.JSONDir, "json", "", "a folder of NAME.json that p4c compiled: the stf category runs these")
	flags.DurationVar(&s.Timeout, "timeout", 20*time.Second, "how long one program may take")
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON)
	return cmd
}

// showConformance prints one line per category, and the reasons with -v.
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
