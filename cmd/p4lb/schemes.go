package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
)

func newSchemes(c *cli.Console) *cobra.Command {
	var form cli.Format
	var blocks string
	cmd := &cobra.Command{
		SuggestFor: []string{"list", "catalogue", "catalog"},
		Use:        "schemes [SCHEME] [-o FORMAT]",
		Short:      "Show the catalogue of load balancers",
		Long: `Schemes lists the load balancers that gen can generate, and conweave, which has
no P4 program but a model for p4lb lab. Each row of the catalogue combines a
granularity (the unit of traffic for a decision), a signal (the information
about paths), a choice (the rule that selects a path) and a guard (which may
override the choice). Append +rlb or +rlb-star to any name to add the guard of
RLB, or +trim for queues that trim packets instead of dropping them.

With a name, schemes shows the blocks and parameters of that scheme, with units,
defaults, bounds and the place in the paper.

--blocks DIR adds the blocks and rows in a folder of your own. --blocks alone lists
all blocks for compositions.`,
		Example: `  p4lb schemes
  p4lb schemes qall-poly3
  p4lb schemes drill+rlb -o json
  p4lb schemes --blocks
  p4lb schemes --blocks mine`,
		Args: cli.WantArgs(0, 2, "one scheme at most"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return append(codegen.Names(), scheme.ConWeave), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if i := slices.IndexFunc(args, cli.IsFolder); i >= 0 && blocks == ownBlocks {
				blocks = args[i] // separated from the flag by a space
				args = slices.Delete(args, i, i+1)
			}
			switch {
			case len(args) > 0 && blocks == ownBlocks:
				return cli.UsageError(cmd, "there is no folder %s: --blocks without a folder lists all blocks and excludes a scheme", args[0])
			case len(args) > 1:
				return cli.UsageError(cmd, "unexpected argument %q: want one scheme at most", args[1])
			case blocks == ownBlocks:
				return showBlocks(c, form)
			}
			library, err := cli.LibraryWith(blocks)
			switch {
			case err != nil:
				return err
			case len(args) == 0:
				return showCatalogue(c, form, append(library.Rows(), scheme.ConWeaveRow()))
			case args[0] == scheme.ConWeave:
				return showConWeave(c, form)
			}
			row, err := library.Row(args[0])
			if err != nil {
				return err
			}
			return showScheme(c, form, row)
		},
	}
	cli.AddBlocksFlag(cmd, &blocks)
	cmd.Flags().Lookup("blocks").NoOptDefVal = ownBlocks
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

// ownBlocks is the value of --blocks without a folder.
const ownBlocks = "all"

func showCatalogue(c *cli.Console, form cli.Format, list []codegen.Row) error {
	rows := cli.Grid{{"SCHEME", "GRANULARITY", "SIGNAL", "CHOICE", "GUARD", "DESCRIPTION"}}
	for _, r := range list {
		rows = append(rows, []string{r.Name, r.Granularity, r.Signal, r.Choice, r.Guard, r.Title})
	}
	return cli.Show(c.Out, form, rows, list)
}

func showBlocks(c *cli.Console, form cli.Format) error {
	rows := cli.Grid{{"KIND", "BLOCK", "DESCRIPTION"}}
	for _, b := range codegen.Blocks() {
		rows = append(rows, []string{b.Kind, b.Name, b.About})
	}
	return cli.Show(c.Out, form, rows, codegen.Blocks())
}

// A schemeView is the output for one scheme.
type schemeView struct {
	codegen.Row
	Blocks     []codegen.Block `json:"blocks"`
	Parameters []codegen.Param `json:"parameters"`
}

// showConWeave shows the scheme that has no blocks.
func showConWeave(c *cli.Console, form cli.Format) error {
	row := scheme.ConWeaveRow()
	s, err := new(scheme.Library).Find(row.Name)
	if err != nil {
		return err
	}
	params, err := s.Parameters("")
	if err != nil {
		return err
	}
	return showView(c, form, &schemeView{row, []codegen.Block{
		{Kind: "granularity", Name: row.Granularity, About: "an answer that is late, or a pause, allows another path"},
		{Kind: "signal", Name: row.Signal, About: "the last switch answers one packet of each epoch, and reports marked packets"},
		{Kind: "choice", Name: row.Choice, About: "the first of two random paths that has no recent mark"},
		{Kind: "guard", Name: row.Guard, About: "the last switch restores the order of packets (a model without a P4 program)"},
	}, params})
}

func showScheme(c *cli.Console, form cli.Format, row codegen.Row) error {
	return showView(c, form, &schemeView{row, row.Blocks(), row.Parameters()})
}

func showView(c *cli.Console, form cli.Format, whole *schemeView) error {
	params := cli.Grid{{"PARAMETER", "DEFAULT", "FROM", "TO", "MEANING", "SOURCE"}}
	for _, p := range whole.Parameters {
		from := p.Min
		if len(p.Words) > 0 {
			from = strings.Join(p.Words, "|")
		}
		params = append(params, []string{p.Name, p.Default, from, p.Max, p.Meaning, p.Source})
	}
	if form != cli.Table {
		return cli.Show(c.Out, form, params, whole)
	}
	fmt.Fprintf(c.Out, "%s: %s\n%s\n\n", whole.Name, whole.Title, whole.Source)
	blocks := cli.Grid{}
	for _, b := range whole.Blocks {
		blocks = append(blocks, []string{b.Kind, b.Name, b.About})
	}
	if err := cli.Show(c.Out, form, blocks, nil); err != nil {
		return err
	}
	if len(whole.Parameters) == 0 {
		return nil
	}
	fmt.Fprintln(c.Out)
	return cli.Show(c.Out, form, params, nil)
}
