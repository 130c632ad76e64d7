package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme/advice"
)

func newAdvise(c *cli.Console) *cobra.Command {
	var topology, scheme string
	var set []string
	var form advised
	cmd := &cobra.Command{
		SuggestFor: []string{"advice", "parameters", "tune"},
		Use:        "advise [--topology T.yaml] [--set NAME=VALUE...] [--scheme S] [-o FORMAT|FILE.yaml]",
		Short:      "Compute the schemes' parameters for a network",
		Long: `Advise computes the parameters that the papers leave to their users, for a given
network, and prints the formula beside each value: flowlet gaps, QALL's tau and
T_b, QDAPS's S (closed form and exact solution), RLB's Q_th and N_rc, PDLB's
flowcell size for each state of the paths, DHLB's delta and probe period, and the
constants of CONGA and HULA.

The network is a topology file or a preset such as qdaps-8x8. --set overrides one
of its values, or provides it without a topology. Only the values in the formulas
of a scheme are required:

` + advice.Settings() + `

-o FILE.yaml writes the values that are parameters of the scheme's program to a
file for p4lb gen -f.`,
		Example: `  p4lb advise --topology qdaps-8x8 --scheme qdaps
  p4lb advise --topology net.yaml --set flow-size=7.4MB
  p4lb advise --topology qall --scheme letflow -o params.yaml && p4lb gen -f params.yaml -o out
  p4lb advise --set rate=40G --set rtt=16us --set paths=12 --set hosts=24 --set buffer=256`,
		Args: cli.WantArgs(0, 0, "flags only"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if topology == "" && len(set) == 0 {
				return cli.UsageError(cmd, "no network: name one with --topology, or give its values with --set")
			}
			var n advice.Network
			n.Leaves, n.Hosts = 2, 1
			if topology != "" {
				t, err := c.Topology(topology)
				if err != nil {
					return err
				}
				if n, err = advice.Of(t); err != nil {
					return fmt.Errorf("%s: %w", topology, err)
				}
			}
			for _, s := range set {
				if err := n.Set(s); err != nil {
					return cli.UsageError(cmd, "--set %s: %w", s, err)
				}
			}
			return giveAdvice(c, n, scheme, form)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&topology, "topology", "", "compute for this network: `FILE`.yaml or a preset")
	flags.StringArrayVar(&set, "set", nil, "set a value of the network, as `NAME=VALUE` (repeatable)")
	flags.StringVar(&scheme, "scheme", "", "only the parameters of this `SCHEME`: "+strings.Join(advice.Schemes(), ", "))
	cli.AddFormat(cmd, &form.Format, cli.Table, cli.JSON, cli.CSV)
	output := flags.Lookup("output")
	output.Value = form.orFile(output.Value)
	output.Usage += ", or a `FILE`.yaml of parameters for gen -f"
	return cmd
}

// advised is the output of advise: a format to print in, or a file of
// parameters.
type advised struct {
	cli.Format
	file string
}

// orFile wraps the flag of a format so that it also accepts the name of a YAML
// file.
func (a *advised) orFile(f pflag.Value) pflag.Value { return &advisedFlag{f, a} }

type advisedFlag struct {
	pflag.Value
	to *advised
}

// Set accepts a format or the name of a YAML file.
func (f *advisedFlag) Set(s string) error {
	switch filepath.Ext(s) {
	case ".yaml", ".yml":
		f.to.file = s
		return nil
	}
	return f.Value.Set(s)
}

// giveAdvice prints the parameters, and their warnings as messages.
func giveAdvice(c *cli.Console, n advice.Network, scheme string, form advised) error {
	list, err := advice.For(n, scheme)
	switch {
	case errors.Is(err, advice.ErrNone):
		return err
	case err != nil:
		return cli.Hinted(err, "the topology lacks the value: provide it with --set NAME=VALUE")
	}
	rows := cli.Grid{{"SCHEME", "PARAMETER", "VALUE", "FORMULA", "SOURCE"}}
	for _, a := range list {
		rows = append(rows, []string{a.Scheme, a.Name, a.Value, a.Formula, a.Source})
		if a.Warning != "" {
			c.Warning("%s %s: %s", a.Scheme, a.Name, a.Warning)
		}
	}
	if form.file != "" {
		return writeAdvice(c, list, scheme, form.file)
	}
	return cli.Show(c.Out, form.Format, rows, list)
}

// writeAdvice writes the advised parameters of the scheme's program to a file
// for gen -f. It first checks that gen accepts the values.
func writeAdvice(c *cli.Console, list []advice.Parameter, scheme, file string) error {
	row, err := codegen.Parse(scheme)
	if err != nil {
		return cli.Hinted(err, "a file of parameters belongs to one scheme: name it with --scheme; p4lb schemes lists them")
	}
	text := fmt.Sprintf("scheme: %s\nset:\n", scheme)
	set := map[string]string{}
	for _, p := range row.Parameters() {
		for _, a := range list {
			if a.Name == p.Name {
				set[a.Name] = a.Value
				text += fmt.Sprintf("  %s: %s # %s\n", a.Name, a.Value, a.Formula)
				break
			}
		}
	}
	if len(set) == 0 {
		return fmt.Errorf("writing %s: advise computes no parameter of the program of %s", file, scheme)
	}
	if _, err := codegen.Generate(row, codegen.Params{Set: set}); err != nil {
		return err
	}
	return c.WriteFile(file, []byte(text))
}
