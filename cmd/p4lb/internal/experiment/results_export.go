package experiment

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/text/plain"
)

func newResultsExport(c *cli.Console) *cobra.Command {
	l := &labResults{c: c}
	what := "runs"
	out := ""
	cmd := &cobra.Command{
		Use:   "export EXPERIMENT [-o FILE.csv|FILE.parquet]",
		Short: "Write an experiment's runs, or the flows or links of all, as one table",
		Long: `Export writes a line for each existing run, with its setting and all its metrics.
--table flows or links writes the rows of all runs, each after the name of its run. The
format follows the name of the file: CSV or Parquet. Without a file, CSV goes to
standard output.`,
		Example: `  p4lb results export demo -o demo.csv
  p4lb results export qall-bmv2 --table flows -o flows.parquet --store runs`,
		Args: cli.WantArgs(1, 1, "an experiment: p4lb results list lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if what != "runs" && what != "flows" && what != "links" {
				return cli.UsageError(cmd, "--table %s: want runs, flows or links", what)
			}
			if ext := filepath.Ext(out); out != "" && ext != ".csv" && ext != ".parquet" {
				return cli.UsageError(cmd, "-o %s: want a name that ends in .csv or .parquet", out)
			}
			list, err := l.find(cmd, args)
			if err != nil {
				return err
			}
			write := func(w io.Writer) error {
				if what == "runs" {
					return l.exportRuns(cmd.Context(), list[0], w)
				}
				return l.exportRows(cmd.Context(), list[0], what, w)
			}
			if out == "" {
				return explainStore(write(c.Out))
			}
			return explainStore(exportTo(out, write))
		},
	}
	l.addFlags(cmd)
	cmd.Flags().StringVar(&what, "table", what, "`WHAT` to write: runs, flows or links")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE`.csv or .parquet")
	cli.CompleteWith(cmd, "table", []string{"runs", "flows", "links"})
	return cmd
}

func (l *labResults) exportRuns(ctx context.Context, k *lab.Kept, w io.Writer) error {
	rows := csv.NewWriter(w)
	if err := l.a.Rows(ctx, k, l.c.Caution, rows.Write, rows.Write); err != nil {
		return err
	}
	rows.Flush()
	return rows.Error()
}

// exportRows writes the rows of all runs one after the other, without holding
// them.
func (l *labResults) exportRows(ctx context.Context, k *lab.Kept, table string, w io.Writer) error {
	out := csv.NewWriter(w)
	headed := false
	for _, run := range k.Runs {
		if r, err := l.a.Result(ctx, k, run); r == nil || err != nil {
			if err != nil {
				l.c.Warning("%v", err)
			}
			continue
		}
		if err := l.exportTable(ctx, k, run, table+".csv", out, &headed); err != nil {
			return fmt.Errorf("%s: %w", run.Name, err)
		}
	}
	out.Flush()
	return out.Error()
}

func (l *labResults) exportTable(ctx context.Context, k *lab.Kept, run lab.KeptRun, name string, out *csv.Writer, headed *bool) error {
	t, err := l.a.Table(ctx, k, run, name)
	if err != nil {
		return err
	}
	defer t.Close()
	in := csv.NewReader(t)
	in.ReuseRecord = true
	for first := true; ; first = false {
		row, err := in.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		label := run.Name
		if first {
			if *headed {
				continue
			}
			label, *headed = "run", true
		}
		if err := out.Write(append([]string{label}, row...)); err != nil {
			return err
		}
	}
}

// exportTo writes a file atomically. Parquet is converted from CSV.
func exportTo(name string, write func(io.Writer) error) error {
	out, err := plain.Create(name)
	if err != nil {
		return cli.CannotWrite(name, err)
	}
	defer out.Discard()
	if filepath.Ext(name) == ".parquet" {
		err = exportParquet(out, write)
	} else {
		err = write(out)
	}
	if err != nil {
		return err
	}
	if err := out.Place(); err != nil {
		return cli.CannotWrite(name, err)
	}
	return nil
}

func exportParquet(out *plain.NewFile, write func(io.Writer) error) error {
	rows, err := plain.Create(out.Name() + ".csv")
	if err != nil {
		return cli.CannotWrite(out.Name()+".csv", err)
	}
	defer rows.Discard()
	if err := write(rows); err != nil {
		return err
	}
	return lab.ToParquet(rows.Name(), out.File)
}
