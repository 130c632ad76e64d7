package experiment

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

func newLabCheck(c *cli.Console) *cobra.Command {
	q := &labChoice{}
	var about []string
	for _, r := range spec.RuleNames() {
		about = append(about, fmt.Sprintf("  %-15s %s", r[0], r[1]))
	}
	cmd := &cobra.Command{
		Use:   "check " + choiceUse,
		Short: "Report doubtful settings of experiments, without running them",
		Long: `Check reports why the results of an experiment may mislead. It runs nothing, and
exits with 1 if there is a warning that the experiment does not accept. The warnings:

` + strings.Join(about, "\n") + `

An experiment accepts a warning by its name, with the reason:

  accept: {hosts-limit: "the network of the paper"}`,
		Example: `  p4lb lab check experiment.yaml
  p4lb lab check qall`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := q.load(cmd, c, nil, args)
			if err != nil {
				return err
			}
			n := 0
			for _, x := range list {
				warnings, err := x.Lint(cli.Besides(q.dirs...))
				if err != nil {
					return err
				}
				for _, w := range warnings {
					fmt.Fprintf(c.Out, "%s: %v\n", x.Name, w)
				}
				n += len(spec.Unaccepted(warnings))
			}
			if n == 1 {
				return fmt.Errorf("1 warning")
			}
			if n > 1 {
				return fmt.Errorf("%d warnings", n)
			}
			fmt.Fprintln(c.Out, "no warnings")
			return nil
		},
	}
	q.addFlags(cmd)
	return cmd
}

// warn prints the warnings that an experiment does not accept.
func warn(c *cli.Console, x *spec.Experiment, read spec.Reader) error {
	list, err := x.Lint(read)
	for _, w := range spec.Unaccepted(list) {
		c.Warning("%s: %v", x.Name, w)
	}
	return err
}
