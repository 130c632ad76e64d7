package experiment

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

func newLabDefaults(c *cli.Console) *cobra.Command {
	var like string
	cmd := &cobra.Command{
		Use:   "defaults [--like WHAT]",
		Short: "List modelling choices in which simulators differ, and p4lb's defaults",
		Long: `Defaults prints the modelling choices in the format of experiment files, each with its
effect and the reason for the default. With --like it prints the choices of
another simulator, or of commercial cards and switches:

  ns3        conweave-ns3: RDMA, PFC and load balancers in ns-3
  ns2        ns-2, as the authors of PDLB and QDAPS used it
  htsim      csg-htsim, with lossless queues and RoCE
  hardware   ConnectX cards, switches that mark as packets leave

An experiment with like: ns3 uses these choices for all omitted keys. Its
report lists the choices that differ from the defaults. docs/fidelity.md describes the
effect of each.`,
		Example: `  p4lb lab defaults
  p4lb lab defaults --like ns3 >> experiment.yaml`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := spec.Defaults(like)
			if err != nil {
				return cli.UsageError(cmd, "--%w", err)
			}
			_, err = c.Out.Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&like, "like", "", "show the choices of `WHAT`: "+strings.Join(spec.Presets, ", "))
	cli.CompleteWith(cmd, "like", spec.Presets)
	return cmd
}
