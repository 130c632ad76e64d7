package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
)

func newSchemes(c *cli.Console) *cobra.Command {
	var form cli.Format
	var blocks string
	cmd := &cobra.Command{
		SuggestFor: []string{"list", "catalogue", "catalog"},
		Use:        "schemes [SCHEME] [-o FORMAT]",
		Short:      "Show the catalogue of load balancers",
		Long: `Schemes lists the load balancers that gen can generate. Each is a row: how much
traffic is decided about at once, what is known about the paths, how one of them
is taken, and what may overrule that. Every row can be guarded by RLB: put +rlb
or +rlb-star behind its name.

With a name it shows that scheme's blocks and what can be set of it, with the
unit, the default, the bounds and where the paper says so.

--blocks DIR adds the blocks and rows of a folder of your own, --blocks alone
shows the blocks that schemes are composed of.`,
		Example: `  p4lb schemes
  p4lb schemes qall-poly3
  p4lb schemes drill+rlb -o json
  p4lb schemes --blocks
  p4lb schemes --blocks mine`,
		Args: cli.WantArgs(0, 2, "one scheme at most"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return codegen.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if i := slices.IndexFunc(args, cli.IsFolder); i >= 0 && blocks == ownBlocks {
				blocks = args[i] // which a space has parted from the flag
				args = slices.Delete(args, i, i+1)
			}
			switch {
			case len(args) > 0 && blocks == ownBlocks:
				return cli.UsageError(cmd, "there is no folder %s; --blocks alone shows all blocks, and goes without a scheme", args[0])
			case len(args) > 1:
				return cli.UsageError(cmd, "schemes wants one scheme at most, got %q as well", args[1])
			case blocks == ownBlocks:
				return showBlocks(c, form)
			}
			library, err := cli.LibraryWith(blocks)
			switch {
			case err != nil:
				return err
			case len(args) == 0:
				return showCatalogue(c, form, library.Rows())
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

// ownBlocks is --blocks without a folder.
const ownBlocks = "all"

func showCatalogue(c *cli.Console, form cli.Format, list []codegen.Row) error {
	rows := cli.Grid{{"SCHEME", "GRANULARITY", "SIGNAL", "CHOICE", "GUARD", "WHAT IT DOES"}}
	for _, r := range list {
		rows = append(rows, []string{r.Name, r.Granularity, r.Signal, r.Choice, r.Guard, r.Title})
	}
	return cli.Show(c.Out, form, rows, list)
}

func showBlocks(c *cli.Console, form cli.Format) error {
	rows := cli.Grid{{"KIND", "BLOCK", "WHAT IT DOES"}}
	for _, b := range codegen.Blocks() {
		rows = append(rows, []string{b.Kind, b.Name, b.About})
	}
	return cli.Show(c.Out, form, rows, codegen.Blocks())
}

// A schemeView is what is shown of one scheme.
type schemeView struct {
	codegen.Row
	Blocks     []codegen.Block `json:"blocks"`
	Parameters []codegen.Param `json:"parameters"`
}

func showScheme(c *cli.Console, form cli.Format, row codegen.Row) error {
	whole := schemeView{row, row.Blocks(), row.Parameters()}
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
	fmt.Fprintf(c.Out, "%s: %s\n%s\n\n", row.Name, row.Title, row.Source)
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
