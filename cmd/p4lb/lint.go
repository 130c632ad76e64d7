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

// lintTargets maps architectures to the switches that lint checks.
var lintTargets = map[string]lint.Target{"tna": lint.Tofino1, "t2na": lint.Tofino2}

func newLint(c *cli.Console) *cobra.Command {
	var opts p4.Options
	cmd := &cobra.Command{
		Use:   "lint FILE.p4 [--arch tna|t2na]",
		Short: "Check a program against the limits of Tofino",
		Long: `Lint checks a program for Tofino (which includes tna.p4) or Tofino 2 (t2na.p4) as
compile does, and then against the limits of the hardware. It reports the position
of each problem:

  multiplication, division, modulo and shifts by a field; sums of three operands;
  use of a value in the action that computes it
  conditions on more than 44 bits; < and > of two fields, or of more than 12 bits;
  a table applied in a condition with && or ||
  constants in the fields of Mirror, Resubmit and Digest
  two accesses of a packet to one register; cells other than 8, 16 or 32 bits or
  pairs of these; more comparisons and fields than a stateful ALU has
  a table applied twice; ranges of more than 20 bits; more than 32 bits of hashes
  and random numbers in an action
  warning: more dependent steps than stages, as the compiler may merge some
  warning: comparison of unsigned differences in a stateful ALU, which do not wrap

A program that passes may still be too large for the chip. Only the compiler can
decide that.`,
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
				return cli.Hinted(fmt.Errorf("linting %s: %w", cli.DisplayName(name), errNotTofino), "want #include <tna.p4> or <t2na.p4>, and a Switch as main")
			}
			errs := lint.Check(p.File, p.Info, target)
			if slices.ContainsFunc(errs, func(e *syntax.Error) bool { return !e.Warning }) {
				return c.Diagnose(syntax.Errors(errs))
			}
			return c.Warn(append(p.Warnings, errs...), false)
		},
	}
	cli.AddSourceFlags(cmd, &opts)
	cmd.Flags().StringVar(&opts.Arch, "arch", "", "accept only programs for the architecture `ARCH`: tna or t2na")
	cli.CompleteWith(cmd, "arch", []string{"tna", "t2na"})
	return cmd
}

var errNotTofino = errors.New("not a program for Tofino")
