package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

// flowFormats are the formats of lab flows.
var flowFormats = []string{"list", "cm", "goal"}

func newLabFlows(c *cli.Console) *cobra.Command {
	q := &labChoice{}
	format, of, seed := flowFormats[0], "", uint64(1)
	cmd := &cobra.Command{
		Use:   "flows " + choiceUse,
		Short: "Write the flows of an experiment for other simulators",
		Long: `Flows writes the flows of an experiment with their dependencies:

  list   a flow list, as traffic: [{file: flows.txt}] reads it
  cm     a connection matrix of htsim; node i is host i of the topology
  goal   a GOAL schedule of LogGOPSim and ATLAHS; rank i is host i

The first load determines the flows. A connection matrix can contain neither
computations nor delays, and each connection can start only one set of others. A
schedule can only contain dependencies within a rank. Only a list can contain services.
Experiments can also read .cm and .goal files, Chakra traces (trace.*.et) and SimAI
workloads as flow lists.`,
		Example: `  p4lb lab flows training.yaml --format cm > training.cm
  p4lb lab flows training.yaml --of slow-spine --format goal > training.goal`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(flowFormats, format) {
				return cli.UsageError(cmd, "--format %q: want %s", format, strings.Join(flowFormats, ", "))
			}
			list, err := q.load(cmd, c, nil, args)
			if err != nil {
				return err
			}
			if len(list) != 1 {
				return fmt.Errorf("%d experiments: want one", len(list))
			}
			text, err := flowText(list[0], of, format, seed, cli.Besides(q.dirs...))
			if err != nil {
				return err
			}
			_, err = c.Out.Write(text)
			return err
		},
	}
	q.addFlags(cmd)
	cmd.Flags().StringVar(&format, "format", format, "`FORMAT` of the flows: "+strings.Join(flowFormats, ", "))
	cmd.Flags().StringVar(&of, "of", "", "write the flows of this `CASE` (default the first)")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "`SEED` of random flows")
	cli.CompleteWith(cmd, "format", flowFormats)
	return cmd
}

// flowText returns the flows of a case in a format.
func flowText(x *spec.Experiment, of, format string, seed uint64, read spec.Reader) ([]byte, error) {
	i := 0
	if of != "" {
		if i = slices.IndexFunc(x.Cases, func(c spec.Case) bool { return c.Name == of }); i < 0 {
			return nil, fmt.Errorf("--of %s: %s has no such case", of, x.Name)
		}
	}
	c := &x.Cases[i]
	t, err := x.NetworkOf(c, x.Reading(read))
	if err != nil {
		return nil, err
	}
	flows, err := c.Flows(t, float64(c.Loads[0]), seed)
	if err != nil {
		return nil, err
	}
	if len(flows) == 0 {
		return nil, errors.New("no flow begins: want a longer duration")
	}
	write := func(format string) ([]byte, error) {
		switch format {
		case "cm":
			return spec.Matrix(flows, t)
		case "goal":
			return spec.Goal(flows, t)
		}
		return spec.FlowList(flows, t), nil
	}
	text, err := write(format)
	if err == nil {
		return text, nil
	}
	able := slices.DeleteFunc(slices.Clone(flowFormats), func(other string) bool {
		_, err := write(other)
		return err != nil
	})
	return nil, fmt.Errorf("%w: want --format %s", err, strings.Join(able, " or "))
}
