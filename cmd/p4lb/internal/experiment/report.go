package experiment

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/text/plain"
)

func newLabReport(c *cli.Console) *cobra.Command {
	q := &labChoice{}
	var url, dir string
	cmd := &cobra.Command{
		Use:   "report " + choiceUse + " --store URL",
		Short: "Write the table, the report and the verdicts of the runs in a store",
		Long: `Report writes the table, report.html with the plots, table.csv and the verdicts on
targets of papers, as lab run does, from the runs of an experiment in a store. It runs
nothing. If runs are missing or damaged, it reports how many, and leaves them out.`,
		Example: `  p4lb lab report experiment.yaml --store /shared/runs
  p4lb lab report qall-bmv2 --store s3://bucket/runs -o report`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if url == "" {
				return cli.UsageError(cmd, "lab report requires --store")
			}
			st, err := openStore(cmd.Context(), url, false)
			if err != nil {
				return err
			}
			list, err := q.load(cmd, c, st, args)
			if err != nil {
				return err
			}
			j := &labJob{c: c}
			var outcomes []lab.Outcome
			for _, x := range list {
				r := &lab.Runner{Dir: dir, Store: st, Rounds: q.rounds, Read: cli.Besides(q.dirs...), Log: func(text string) { c.Warning("%s", text) }}
				switch {
				case dir == "":
					r.Under = resultsDir
				case len(list) > 1:
					r.Dir = filepath.Join(dir, plain.Folder(x.Name))
				}
				comparison, err := r.Collect(cmd.Context(), x)
				if err != nil {
					return explainStore(err)
				}
				missing, of := comparison.Missing()
				if missing == of {
					return fmt.Errorf("the store %s has none of the %d runs of %s", st, of, x.Name)
				}
				if missing > 0 {
					c.Warning("partial: the store has %d of the %d runs of %s", of-missing, of, x.Name)
				}
				if err := cli.Show(c.Out, cli.Table, comparison.Table(), nil); err != nil {
					return err
				}
				report, err := comparison.Keep(r.Dir, origin())
				if err != nil {
					return err
				}
				linkLatest(r.Dir, x.Name, lab.Sim)
				fmt.Fprintf(c.Out, "\n%s\n", report)
				outcomes = append(outcomes, comparison.Judge()...)
			}
			if len(outcomes) > 0 {
				return j.showOutcomes(list, outcomes, 0)
			}
			return nil
		},
	}
	q.addFlags(cmd)
	cli.AddRoundsFlag(cmd, &q.rounds)
	addStoreFlag(cmd, &url)
	cmd.Flags().StringVarP(&dir, "output", "o", "", "write the report into the folder `DIR` (default results/ and the experiment's name and digest)")
	return cmd
}
