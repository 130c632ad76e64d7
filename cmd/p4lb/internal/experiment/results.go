package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/store"
)

// A labResults is where p4lb results finds experiments: a folder of results, or a store.
type labResults struct {
	c   *cli.Console
	url string
	dir string

	a *lab.Archive
}

// NewResults returns the verb results.
func NewResults(c *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "results VERB",
		Short: "List, show, compare, export, verify and prune stored experiments",
		Long: `Results works on experiments that lab has run and stored: in the folder results, in
another folder (--in), or in a store (--store). Each experiment is stored under its
name and the digest of its runs, so a changed experiment is a separate one. If the
name is unique, it suffices; otherwise use the full name that list prints.`,
		Example: `  p4lb results list
  p4lb results compare demo-1a2b3c4d demo-5e6f7a8b
  p4lb results verify qall-bmv2 --sample 5 --store s3://bucket/runs`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.WantVerb("results wants a verb: list, show, compare, export, verify or prune", ""),
	}
	cmd.AddCommand(newResultsList(c), newResultsShow(c), newResultsCompare(c), newResultsExport(c), newResultsVerify(c), newResultsPrune(c))
	return cmd
}

func (l *labResults) addFlags(cmd *cobra.Command) {
	addStoreFlag(cmd, &l.url)
	cmd.Flags().Lookup("store").Usage = "use the store at `URL`: a folder, s3://BUCKET/PREFIX, gs://… or az://…"
	cmd.Flags().StringVar(&l.dir, "in", resultsDir, "use the experiments in the folder `DIR`")
}

func (l *labResults) open(cmd *cobra.Command) (err error) {
	l.a = &lab.Archive{Dir: l.dir}
	if l.url == "" {
		if _, err := os.Stat(l.dir); errors.Is(err, fs.ErrNotExist) {
			return cli.Hinted(fmt.Errorf("there is no folder %s", l.dir), "p4lb lab keeps its results in the folder results; --in DIR and --store URL look elsewhere")
		}
		return nil
	}
	if cmd.Flags().Changed("in") {
		return cli.UsageError(cmd, "--in and --store exclude each other")
	}
	l.a.Store, err = openStore(cmd.Context(), l.url, false)
	return err
}

// find finds the experiments named by the arguments.
func (l *labResults) find(cmd *cobra.Command, args []string) ([]*lab.Kept, error) {
	if err := l.open(cmd); err != nil {
		return nil, err
	}
	var list []*lab.Kept
	for _, name := range args {
		k, err := l.a.Find(cmd.Context(), name, l.c.Caution)
		if err != nil {
			return nil, explainStore(err)
		}
		list = append(list, k)
	}
	return list, nil
}

func newResultsList(c *cli.Console) *cobra.Command {
	l := &labResults{c: c}
	var form cli.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List experiments, with the number of their runs",
		Long:    `List lists experiments, the number of their runs, and how many of these are stored.`,
		Example: `  p4lb results list --store s3://bucket/runs`,
		Args:    cli.WantArgs(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.open(cmd); err != nil {
				return err
			}
			list, err := l.a.List(cmd.Context(), c.Caution)
			if err != nil {
				return explainStore(err)
			}
			done, err := l.a.Done(cmd.Context(), list)
			if err != nil {
				return explainStore(err)
			}
			rows := cli.Grid{{"EXPERIMENT", "NAME", "RUNS", "DONE", "RESULT VERSION", "WORLD"}}
			for i, k := range list {
				world := cmp.Or(k.World, lab.Sim)
				rows = append(rows, []string{k.ID(), k.Name, fmt.Sprint(len(k.Runs)), fmt.Sprint(done[i]), fmt.Sprint(k.Version), world})
			}
			return cli.Show(c.Out, form, rows, objects(rows))
		},
	}
	l.addFlags(cmd)
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

func newResultsShow(c *cli.Console) *cobra.Command {
	l := &labResults{c: c}
	var form cli.Format
	cmd := &cobra.Command{
		Use:     "show EXPERIMENT",
		Short:   "Show the table of an experiment",
		Long:    `Show prints the table of an experiment from its stored runs.`,
		Example: `  p4lb results show demo`,
		Args:    cli.WantArgs(1, 1, "an experiment: p4lb results list lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := l.compared(cmd, args)
			if err != nil {
				return err
			}
			rows := cli.Grid(list[0].Table())
			return cli.Show(c.Out, form, rows, objects(rows))
		},
	}
	l.addFlags(cmd)
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

// compared reads the experiments of the arguments, and warns of missing runs.
func (l *labResults) compared(cmd *cobra.Command, args []string) ([]*lab.Comparison, error) {
	kept, err := l.find(cmd, args)
	if err != nil {
		return nil, err
	}
	var list []*lab.Comparison
	for _, k := range kept {
		comparison, err := l.a.Comparison(cmd.Context(), k, l.c.Caution)
		if err != nil {
			return nil, explainStore(err)
		}
		switch missing, of := comparison.Missing(); {
		case missing == of:
			return nil, fmt.Errorf("%s has none of the %d runs of %s", l.a, of, k.ID())
		case missing > 0:
			l.c.Warning("partial: %d of %d runs of %s exist", of-missing, of, k.ID())
		}
		list = append(list, comparison)
	}
	return list, nil
}

func newResultsCompare(c *cli.Console) *cobra.Command {
	l := &labResults{c: c}
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "compare EXPERIMENT EXPERIMENT",
		Short: "Compare the rows that two experiments have in common",
		Long: `Compare shows the metrics of each row that two experiments have in common, and the
difference of the second from the first in percent. If both have the same seeds, it
compares seed by seed, with a 95 % confidence interval.`,
		Example: `  p4lb results compare demo-1a2b3c4d demo-5e6f7a8b`,
		Args:    cli.WantArgs(2, 2, "two experiments: p4lb results list lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := l.compared(cmd, args)
			if err != nil {
				return err
			}
			rows := cli.Grid(lab.Changes(list[0], list[1]))
			if len(rows) == 1 {
				return fmt.Errorf("%s and %s have no row in common: want the same case, label and load", args[0], args[1])
			}
			return cli.Show(c.Out, form, rows, objects(rows))
		},
	}
	l.addFlags(cmd)
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

func newResultsVerify(c *cli.Console) *cobra.Command {
	l := &labResults{c: c}
	sample := 3
	cmd := &cobra.Command{
		Use:   "verify EXPERIMENT…",
		Short: "Check the digests of all runs, and repeat a sample of them",
		Long: `Verify reads all stored runs of experiments, including the rows of flows and links, and
checks their digests. Then it repeats a sample of the runs and compares the results byte for
byte. Missing runs are not an error.`,
		Example: `  p4lb results verify qall-bmv2 --sample 5 --store runs`,
		Args:    cli.WantArgs(1, -1, "experiments: p4lb results list lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if sample < 0 {
				return cli.UsageError(cmd, "--sample %d: want a number of runs, 0 for none", sample)
			}
			list, err := l.find(cmd, args)
			if err != nil {
				return err
			}
			for _, k := range list {
				if err := l.verify(cmd.Context(), k, sample); err != nil {
					return err
				}
			}
			return nil
		},
	}
	l.addFlags(cmd)
	cmd.Flags().IntVar(&sample, "sample", sample, "repeat `N` runs of each experiment")
	return cmd
}

func (l *labResults) verify(ctx context.Context, k *lab.Kept, sample int) error {
	bad, repeated := 0, 0
	note := func(run lab.KeptRun, err error) {
		if err != nil {
			bad++
			l.c.Warning("%s: %v", run.Name, err)
		}
	}
	there, err := l.a.Check(ctx, k, note)
	if err != nil {
		return explainStore(err)
	}
	if there == 0 {
		return fmt.Errorf("%s has none of the %d runs of %s", l.a, len(k.Runs), k.ID())
	}
	if sample > 0 {
		err = l.a.Repeat(ctx, k, cli.LibraryFrom("."), sample, func(run lab.KeptRun, err error) {
			repeated++
			note(run, err)
		})
		if err != nil {
			return explainStore(err)
		}
	}
	fmt.Fprintf(l.c.Out, "%s: %d of %d runs are there; %d were made again; %d are wrong\n", k.ID(), there, len(k.Runs), repeated, bad)
	if bad > 0 {
		return cli.ErrReported
	}
	return nil
}

func newResultsPrune(c *cli.Console) *cobra.Command {
	l := &labResults{c: c}
	var dryRun, anyway bool
	cmd := &cobra.Command{
		Use:   "prune [EXPERIMENT]…",
		Short: "Remove experiments, and objects without an experiment",
		Long: `Prune removes experiments. From a store it also removes the runs that no other
experiment uses, and the records of workers and jobs. Without a name it removes
objects in a store that belong to no experiment. --dry-run lists what would be removed.`,
		Example: `  p4lb results prune demo-1a2b3c4d
  p4lb results prune --store runs --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && l.url == "" {
				return cli.UsageError(cmd, "want experiments to prune, or a --store with objects that belong to none")
			}
			list, err := l.find(cmd, args)
			if err != nil {
				return err
			}
			n := 0
			err = l.a.Prune(cmd.Context(), list, dryRun, anyway, func(what string) {
				n++
				if dryRun || c.Verbose {
					fmt.Fprintln(c.Out, what)
				}
			})
			if held, ok := errors.AsType[*store.HeldError](err); ok {
				return cli.Hinted(fmt.Errorf("process %d on %s may be at work in %s", held.PID, held.Host, l.a), "use --anyway if it is not: its unfinished runs are lost")
			}
			if err != nil {
				return explainStore(err)
			}
			done := "removed"
			if dryRun {
				done = "would be removed"
			}
			what := "objects"
			if n == 1 {
				what = "object"
			}
			fmt.Fprintf(c.Out, "%d %s %s\n", n, what, done)
			return nil
		},
	}
	l.addFlags(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&anyway, "anyway", false, "remove even if another process may be using the store")
	return cmd
}
