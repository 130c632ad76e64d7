package experiment

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
)

func newLabList(c *cli.Console) *cobra.Command {
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "list [workloads|metrics|papers]",
		Short: "List workloads, metrics and the papers' experiments",
		Long: `List lists the built-in distributions of flow sizes, the metrics, or the experiments
of the papers.`,
		Example:   `  p4lb lab list metrics`,
		Args:      cli.WantArgs(0, 1, "at most one of workloads, metrics and papers"),
		ValidArgs: []string{"workloads", "metrics", "papers"},
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "papers"
			if len(args) > 0 {
				what = args[0]
			}
			return listLab(cmd, c, form, what)
		},
	}
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

func listLab(cmd *cobra.Command, c *cli.Console, form cli.Format, what string) error {
	var rows cli.Grid
	switch what {
	case "workloads":
		rows = cli.Grid{{"WORKLOAD", "MEAN BYTES", "WHAT"}}
		for _, name := range spec.Workloads() {
			w, err := spec.WorkloadNamed(name)
			if err != nil {
				return err
			}
			about, _, _ := strings.Cut(w.About, " bytes p,")
			rows = append(rows, []string{name, fmt.Sprintf("%.0f", w.Mean()), about})
		}
	case "metrics":
		rows = cli.Grid{{"METRIC", "UNIT", "BY CLASS", "WHAT"}}
		for _, m := range spec.Metrics() {
			byClass := ""
			if m.ByClass {
				byClass = "yes"
			}
			rows = append(rows, []string{m.Name, m.Unit, byClass, m.About})
		}
	case "papers":
		rows = cli.Grid{{"PAPER", "EXPERIMENT", "FIGURES", "TARGETS", "WHAT"}}
		for _, paper := range lab.Papers() {
			list, err := lab.Paper(paper, "", false)
			if err != nil {
				return err
			}
			for _, x := range list {
				rows = append(rows, []string{paper, x.Name, strings.Join(x.Figures, " "), fmt.Sprint(len(x.Targets)), x.About})
			}
		}
	default:
		return cli.UsageError(cmd, "list %s: want workloads, metrics or papers", what)
	}
	return cli.Show(c.Out, form, rows, objects(rows))
}

// objects returns the rows of a grid as JSON objects, with the keys from its head.
func objects(rows cli.Grid) []map[string]string {
	list := []map[string]string{}
	for _, row := range rows[1:] {
		o := map[string]string{}
		for i, v := range row {
			o[strings.ReplaceAll(strings.ToLower(rows[0][i]), " ", "_")] = v
		}
		list = append(list, o)
	}
	return list
}
