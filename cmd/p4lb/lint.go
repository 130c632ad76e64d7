package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/lint"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// lintTargets are the switches that programs are held to.
var lintTargets = map[string]lint.Target{"tna": lint.Tofino1, "t2na": lint.Tofino2}

func newLint(c *cli.Console) *cobra.Command {
	var opts p4.Options
	cmd := &cobra.Command{
		Use:   "lint FILE.p4 [--arch tna|t2na]",
		Short: "Find what a program asks of Tofino that it cannot do",
		Long: `Lint checks a program for Tofino (which includes tna.p4) or Tofino 2 (t2na.p4) as
compile does, and then against what the hardware can do, with the position of each
problem:

  multiplication, division, modulo and shifts by a field; sums of three; a value
  used in the action that computes it
  conditions on more than 44 bits; < and > of two fields, or of more than 12 bits;
  a table applied in a condition with && or ||
  constants in what Mirror, Resubmit and Digest send
  a register accessed twice by a packet; cells that are not 8, 16, 32 or two such
  halves; more comparisons and fields than a stateful ALU has
  a table applied twice; ranges of more than 20 bits; more than 32 bits of hashes
  and random numbers in an action
  more dependent steps than there are stages, which is a warning:
  the compiler may do several at once
  unsigned differences compared in a stateful ALU, which do not wrap: a warning

A program that passes may still be too large: the compiler has the last word.`,
		Example: `  p4lb lint p4src/tna/letflow.p4
  p4lb lint --arch t2na -I include mine.p4`,
		Args: cli.WantArgs(1, 1, "one program"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, ok := lintTargets[opts.Arch]; !ok && opts.Arch != "" {
				return cli.UsageError(cmd, "--arch %s: want tna or t2na", opts.Arch)
			}
			name := args[0]
			p, err := c.CheckProgram(name, opts)
			if err != nil {
				return err
			}
			target, ok := lintTargets[p.Arch]
			if !ok {
				return cli.Hinted(fmt.Errorf("linting %s: %w", cli.DisplayName(name), errNotTofino), "it wants #include <tna.p4> or <t2na.p4>, and a Switch as its main")
			}
			errs := lint.Check(p.File, p.Info, target)
			if slices.ContainsFunc(errs, func(e *syntax.Error) bool { return !e.Warning }) {
				return c.Diagnose(syntax.Errors(errs))
			}
			return c.Warn(append(p.Warnings, errs...), false)
		},
	}
	cli.AddSourceFlags(cmd, &opts)
	cmd.Flags().StringVar(&opts.Arch, "arch", "", "what the program must be for: the `ARCH` tna or t2na")
	cli.CompleteWith(cmd, "arch", []string{"tna", "t2na"})
	return cmd
}

var errNotTofino = errors.New("it is not a program for Tofino")
