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
		Short: "Show the choices of modelling in which simulators differ, and the defaults here",
		Long: `Defaults prints the choices of modelling as an experiment's file has them, each
with what it decides and why the default is what it is. With --like they are those
of another simulator, or of cards and switches as sold:

  ns3        conweave-ns3: RDMA, PFC and load balancers in ns-3
  ns2        ns-2, as the authors of PDLB and QDAPS used it
  htsim      csg-htsim, with lossless queues and RoCE
  hardware   ConnectX cards, switches that mark as packets leave

An experiment that says like: ns3 has them where it says nothing else. Its report
lists those that differ from the defaults. docs/fidelity.md says how much each of
them moves.`,
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
	cmd.Flags().StringVar(&like, "like", "", "as `WHAT` has them: "+strings.Join(spec.Presets, ", "))
	cli.CompleteWith(cmd, "like", spec.Presets)
	return cmd
}
