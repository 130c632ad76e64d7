package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/lab/dataset"
	"github.com/p4lb/p4lb/internal/lab/picture"
	"github.com/p4lb/p4lb/internal/scheme/leaf"
	"github.com/p4lb/p4lb/internal/text/plain"
)

func newFit(c *cli.Console) *cobra.Command {
	j := &fitJob{c: c}
	cmd := &cobra.Command{
		Use:   "fit --data FILE... [--degree N] [-o MODEL.json]",
		Short: "Fit a congestion index to observations of queues",
		Long: `Fit reads observations of egress ports and fits the traffic as a polynomial in
the queue occupancy and the dequeue interval, as QALL does. It prints the quality
of the fit, converts the coefficients to integers that cannot overflow in a
switch, and prints the error of the conversion.

The data are CSV or Parquet files with the columns egress_traffic (any unit),
occupancy (percent of the queue) and dequeue_interval (us), in any order; other
columns are ignored. Fit sets aside a quarter of the rows for the test.

-o writes the model file for p4lb gen --coeffs. --pattern stores the model in a
library instead: a folder with a model for each mix of the workloads websearch,
datamining, cache and hadoop. fit --library DIR alone lists it.

--preset paper uses the polynomial of the paper instead of a fit. paper-printed
uses its Eq. 13 with the misprint.`,
		Example: `  p4lb fit --data obs.csv --degree 3 -o model.json
  p4lb fit --data day1.parquet --data day2.parquet --plot fit.svg
  p4lb fit --data obs.csv --pattern websearch+hadoop --library models
  p4lb fit --preset paper --degree 3 -o poly3.json`,
		Args: cli.WantArgs(0, 0, "no arguments, data are given by --data"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := j.check(cmd); err != nil {
				return err
			}
			return j.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&j.data, "data", nil, "read observations from `FILE`, CSV or Parquet (repeatable)")
	flags.Func("degree", "fit degree `N`, 1 to 10, or auto: the lowest degree whose cross-validation error is within one standard error of the best", j.setDegree)
	flags.StringVarP(&j.model, "output", "o", "", "write the model to `FILE`")
	flags.StringVar(&j.plot, "plot", "", "draw the fit to `FILE`.svg")
	flags.StringVar(&j.pattern, "pattern", "", "store the model in the library, for this `MIX` of workloads")
	flags.StringVar(&j.library, "library", "models", "`DIR` of the library of models")
	flags.StringVar(&j.preset, "preset", "", "use the polynomial `paper` or paper-printed instead of a fit")
	flags.Float64Var(&j.opts.Test, "test", 0.25, "set aside this `SHARE` of the rows for the test")
	flags.IntVar(&j.opts.Folds, "folds", 0, "cross-validate with `N` folds (default 10 with --degree auto)")
	flags.Uint64Var(&j.opts.Seed, "seed", 1, "split the rows with the seed `N`")
	flags.Float64Var(&j.opts.Ridge, "ridge", 0, "penalise the squares of the coefficients by `LAMBDA`")
	flags.Float64Var(&j.opts.Huber, "huber", 0, "weight residuals beyond `K` standard deviations linearly (usual: 1.345)")
	flags.BoolVar(&j.opts.Monotone, "monotone", false, "require that the index rises with the occupancy and falls with the interval")
	flags.Func("outliers", "drop outliers by `RULE`: none, iqr[:K], mad[:K] or sigma[:K] (default none)", j.setOutliers)
	flags.Float64Var(&j.units.FullQueue, "full-queue", 100, "occupancy value `V` of a full queue in the data")
	flags.Func("interval-unit", "`UNIT` of the dequeue interval in the data: ns, us, ms or s (default us)", j.setIntervalUnit)
	flags.Func("scale", "multiply the coefficients by `N`, or auto: the largest power of ten that fits (default 1000)", j.setScale)
	flags.IntVar(&j.fix.Width, "width", 0, "width of the sum in the switch in `BITS`, including the sign (default 64, or 128 if required)")
	flags.Func("table", "also compute a lookup table: leading bits of L, leading bits of T and number of levels, as `4x4x16`", j.setTable)
	flags.BoolVar(&j.trend, "trend", false, "count a rising queue double in the table, like V in QALL's Eq. 4")
	flags.IntVar(&j.verify, "verify", 0, "compare the integers with the generated program on the embedded switch at `N` points")
	return cmd
}

// A fitJob is one run of the fit verb.
type fitJob struct {
	c       *cli.Console
	data    []string
	preset  string
	pattern string
	library string
	model   string
	plot    string
	verify  int

	opts     fitting.Options
	outliers fitting.Outliers
	units    dataset.Options
	fix      fitting.FixOptions
	table    *fitting.TableOptions
	trend    bool
}

func (j *fitJob) setDegree(s string) (err error) {
	if s == "auto" {
		j.opts.Degree = 0
		return nil
	}
	j.opts.Degree, err = strconv.Atoi(s)
	if err != nil || j.opts.Degree < 1 || j.opts.Degree > fitting.MaxDegree {
		return fmt.Errorf("want 1 to %d, or auto", fitting.MaxDegree)
	}
	return nil
}

func (j *fitJob) setOutliers(s string) (err error) {
	j.outliers, err = fitting.ParseOutliers(s)
	return err
}

func (j *fitJob) setIntervalUnit(s string) error {
	units := map[string]float64{"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
	v, ok := units[s]
	if !ok {
		return errors.New("want ns, us, ms or s")
	}
	j.units.Microsec = v
	return nil
}

func (j *fitJob) setScale(s string) (err error) {
	if s == "auto" {
		j.fix.Auto = true
		return nil
	}
	j.fix.Auto = false
	j.fix.Scale, err = strconv.ParseInt(s, 10, 64)
	if err != nil || j.fix.Scale < 1 {
		return errors.New("want a whole number above 0, or auto")
	}
	return nil
}

func (j *fitJob) setTable(s string) error {
	var o fitting.TableOptions
	if n, err := fmt.Sscanf(s, "%dx%dx%d", &o.LBits, &o.TBits, &o.Levels); n != 3 || err != nil || s != fmt.Sprintf("%dx%dx%d", o.LBits, o.TBits, o.Levels) {
		return errors.New("want bits of L, bits of T and levels, such as 4x4x16")
	}
	j.table = &o
	return nil
}

// mostVerified is the maximum of --verify. It takes some minutes, and there are
// fewer combinations of queue levels and 8 bits of the interval.
const mostVerified = 10_000_000

// check rejects contradictory flags.
func (j *fitJob) check(cmd *cobra.Command) (err error) {
	changed := cmd.Flags().Changed
	switch {
	case j.preset != "" && len(j.data) > 0:
		return cli.UsageError(cmd, "--preset and --data: want only one of them")
	case j.preset != "" && j.preset != "paper" && j.preset != "paper-printed":
		return cli.UsageError(cmd, "--preset %s: want paper or paper-printed", j.preset)
	case j.preset != "" && (j.plot != "" || j.pattern != "" || j.table != nil):
		return cli.UsageError(cmd, "--plot, --pattern and --table require data, not a preset")
	case j.preset != "" && (changed("scale") || changed("width")):
		return cli.UsageError(cmd, "--scale and --width require data: a preset already has integer coefficients")
	case j.preset != "" && changed("library"), len(j.data) > 0 && j.pattern == "" && changed("library"):
		return cli.UsageError(cmd, "--library requires --pattern: the library stores models by pattern")
	case j.preset == "" && len(j.data) == 0 && !changed("library"):
		return cli.UsageError(cmd, "fit requires --data FILE")
	case j.pattern != "" && j.model != "":
		return cli.UsageError(cmd, "--pattern and -o: want only one of them: the library or a file")
	case j.trend && j.table == nil:
		return cli.UsageError(cmd, "--trend requires --table")
	case j.verify < 0 || j.verify > mostVerified:
		return cli.UsageError(cmd, "--verify %d: want a number of points up to %d", j.verify, mostVerified)
	case !(j.units.FullQueue > 0):
		return cli.UsageError(cmd, "--full-queue %g: want a number above 0", j.units.FullQueue)
	}
	if err := cli.Requires(cmd, len(j.data) > 0, "data: --data FILE", "test", "folds", "seed", "ridge", "huber", "monotone", "outliers", "full-queue", "interval-unit"); err != nil {
		return err
	}
	if j.plot != "" && filepath.Ext(j.plot) != ".svg" {
		return cli.UsageError(cmd, "--plot %s: want a name that ends in .svg", j.plot)
	}
	if j.pattern != "" {
		if j.pattern, err = fitting.ParsePattern(j.pattern); err != nil {
			return cli.UsageError(cmd, "--pattern: %w", err)
		}
	}
	if j.table != nil {
		j.table.Monotone, j.table.Trend = j.opts.Monotone, j.trend
	}
	j.opts.Sweep = j.plot != ""
	return nil
}

func (j *fitJob) run(ctx context.Context) error {
	switch {
	case j.preset != "":
		return j.runPreset(ctx)
	case len(j.data) == 0:
		return j.listLibrary()
	}
	// Nearly all of the memory is rows, which contain no pointers. Frequent
	// collections are therefore cheap, and keep ten million rows within half a
	// gigabyte.
	defer debug.SetGCPercent(debug.SetGCPercent(15))
	rows, info, err := j.read(ctx)
	if err != nil {
		return err
	}
	fit, err := rows.Fit(ctx, j.opts)
	if err != nil {
		return explainFit(err)
	}
	poly, err := fit.Fix(rows, j.fix)
	if err != nil {
		return err
	}
	loss := fit.Loss(poly, rows)
	m := fitting.NewModel(poly, fit.Hull)
	m.Pattern, m.Data, m.Fit, m.Loss = j.pattern, info, fit.Info(j.opts), &loss
	if j.table != nil {
		if m.Table, err = fit.Bake(poly, rows, *j.table); err != nil {
			return err
		}
	}
	if err := j.verifyModel(ctx, m); err != nil {
		return err
	}
	if err := j.write(m, fit, rows); err != nil {
		return err
	}
	return j.report(m)
}

// explainFit adds a hint to an error of Fit.
func explainFit(err error) error {
	var rank *fitting.RankError
	switch {
	case errors.As(err, &rank) && rank.Possible > 0:
		return cli.Hinted(err, "the data suffice for degree %d", rank.Possible)
	case errors.As(err, &rank):
		return cli.Hinted(err, "occupancy and interval must vary independently")
	case errors.Is(err, fitting.ErrNoRows):
		return cli.Hinted(err, "all rows were dropped: -v prints the reasons")
	}
	return err
}

// read reads and cleans the data.
func (j *fitJob) read(ctx context.Context) (*fitting.Rows, *fitting.DataInfo, error) {
	rows := new(fitting.Rows)
	info := &fitting.DataInfo{Outliers: j.outliers.String(), FullQueue: j.units.FullQueue, Microsec: max(j.units.Microsec, 0)}
	info.Microsec = cmp.Or(info.Microsec, 1)
	for _, name := range j.data {
		source, err := j.readFile(ctx, name, rows)
		if err != nil {
			return nil, nil, err
		}
		info.Files = append(info.Files, fitting.FileInfo(source))
	}
	read := rows.Len()
	var err error
	if info.Dropped, err = rows.Clean(j.outliers); err != nil {
		return nil, nil, err
	}
	info.Rows = rows.Len()
	j.c.Log.Debug("read", "rows", read, "missing", info.Dropped.Missing, "infinite", info.Dropped.Infinite,
		"negative", info.Dropped.Negative, "outliers", info.Dropped.Outlier)
	return rows, info, nil
}

func (j *fitJob) readFile(ctx context.Context, name string, rows *fitting.Rows) (dataset.Source, error) {
	f := dataset.File{Name: cli.DisplayName(name), Reader: j.c.In}
	if name != "-" {
		file, err := plain.OpenFile(name)
		if err != nil {
			return dataset.Source{}, fmt.Errorf("reading %s: %w", name, err)
		}
		defer file.Close()
		f.Reader = file
	}
	source, err := dataset.Read(ctx, f, j.units, rows)
	var place *dataset.Error
	switch {
	case errors.As(err, &place) && place.BeyondFull:
		return source, cli.Hinted(err, "set the occupancy of a full queue with --full-queue")
	case err != nil && !errors.As(err, &place):
		return source, fmt.Errorf("reading %s: %w", f.Name, plain.Bare(err))
	}
	return source, err
}

func (j *fitJob) verifyModel(ctx context.Context, m *fitting.Model) error {
	if j.verify == 0 {
		return nil
	}
	return leaf.Verify(ctx, m.Poly, j.verify, j.opts.Seed)
}

// write writes the model and the picture, or neither of them.
func (j *fitJob) write(m *fitting.Model, fit *fitting.Fit, rows *fitting.Rows) error {
	var out cli.Outputs
	defer out.Discard()
	target := j.model
	if j.pattern != "" {
		if err := os.MkdirAll(j.library, 0o777); err != nil {
			return fmt.Errorf("making %s: %w", j.library, plain.Bare(err))
		}
		target = filepath.Join(j.library, j.pattern+".json")
	}
	if target != "" {
		if slices.ContainsFunc(j.data, func(name string) bool { return sameFile(name, target) }) {
			return fmt.Errorf("writing %s: this file contains the data: want another name", target)
		}
		text, err := m.Encode()
		if err != nil {
			return err
		}
		if err := out.Stage(target, text); err != nil {
			return err
		}
	}
	if j.plot != "" {
		if err := out.Stage(j.plot, picture.Subject{Fit: fit, Poly: m.Poly, Rows: rows}.SVG()); err != nil {
			return err
		}
	}
	return j.c.Finish(&out)
}

// runPreset writes and describes a polynomial of the paper.
func (j *fitJob) runPreset(ctx context.Context) error {
	degree := cmp.Or(j.opts.Degree, 3)
	poly, ok := fitting.Paper(degree, j.preset == "paper-printed")
	if !ok {
		return fmt.Errorf("the paper prints no polynomial of degree %d: want 1, 2 or 3", degree)
	}
	m := fitting.NewModel(poly, nil)
	if err := j.verifyModel(ctx, m); err != nil {
		return err
	}
	if err := j.write(m, nil, nil); err != nil {
		return err
	}
	return j.reportFixed(m)
}
