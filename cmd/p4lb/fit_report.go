package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// report prints the results of a fit.
func (j *fitJob) report(m *fitting.Model) error {
	w := tabwriter.NewWriter(j.c.Out, 0, 8, 2, ' ', 0)
	d := m.Data
	fmt.Fprintf(w, "data\t%d rows", d.Rows)
	if n := d.Dropped.Total(); n > 0 {
		fmt.Fprintf(w, "; dropped %d:", n)
		sep := " "
		for _, x := range []struct {
			n    int
			what string
		}{{d.Dropped.Missing, "missing"}, {d.Dropped.Infinite, "infinite"}, {d.Dropped.Negative, "negative"},
			{d.Dropped.Outlier, "outliers, " + j.outliers.Explain()}} {
			if x.n > 0 {
				fmt.Fprintf(w, "%s%d %s", sep, x.n, x.what)
				sep = ", "
			}
		}
	}
	fmt.Fprintln(w)
	s := m.Fit.Normalised
	fmt.Fprintf(w, "normalised\ttraffic %.6g to %.6g, occupancy %.4g to %.4g of 255, interval %.6g to %.6g us\n",
		s.Y.Min, s.Y.Max, s.L.Min, s.L.Max, s.T.Min, s.T.Max)
	f := m.Fit
	fmt.Fprintf(w, "correlation\ttraffic with occupancy %+.4f, with interval %+.4f; occupancy with interval %+.4f\n",
		f.Pearson.YL, f.Pearson.YT, f.Pearson.LT)
	fmt.Fprintf(w, "degree\t%d, %d terms%s; condition %.1e\n", m.Degree, len(m.Coeff), j.how(), f.Condition)
	if r := f.Robust; r != nil {
		fmt.Fprintf(w, "huber\t%d rows beyond %.4g standard deviations, %d iterations\n", r.Beyond, r.Bound, r.Iterations)
	}
	if p := f.Projection; p != nil {
		fmt.Fprintf(w, "monotone\tviolated over %s of the range before; changed by %.3g (root mean square, normalised)\n", percent(p.Against), p.Moved)
	}
	w.Flush()
	fmt.Fprintln(j.c.Out)
	reportMetrics(j.c.Out, f)
	fmt.Fprintln(j.c.Out)
	reportCoeff(j.c.Out, m)
	fmt.Fprintln(j.c.Out)
	if f.Condition > 1e8 {
		j.c.Warning("the columns are nearly linearly dependent (condition %.1e): few digits of the coefficients are reliable", f.Condition)
	}
	return j.reportFixed(m)
}

func (j *fitJob) how() string {
	if j.opts.Degree == 0 {
		return ", the lowest degree within one standard error of the best"
	}
	return ""
}

// reportMetrics prints a table of the quality of the fit: a line per set of
// rows, and a line per degree if several were tried.
func reportMetrics(out io.Writer, f *fitting.FitInfo) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tROWS\tR²\tRMSE\tMRE (of traffic > 0)\tAIC")
	line := func(name string, m *fitting.Metrics) {
		if m != nil {
			fmt.Fprintf(w, "%s\t%d\t%.4f\t%.5g\t%.4f\t%.1f\n", name, m.Rows, m.R2, m.RMSE, m.MRE, m.AIC)
		}
	}
	line("training", f.Train)
	line("test", f.Test)
	if f.CV != nil {
		fmt.Fprintf(w, "%d folds\t\t\t%.5g\t\t\n", f.CV.Folds, f.CV.RMSE)
	}
	for _, d := range f.Degrees {
		m, name := d.Train, "training"
		if d.Test != nil {
			m, name = d.Test, "test"
		}
		line(fmt.Sprintf("degree %d, %s", d.Degree, name), m)
	}
	w.Flush()
}

func reportCoeff(out io.Writer, m *fitting.Model) {
	f := m.Fit
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "TERM\tCOEFFICIENT\t95 % FROM\tTO\tIN THE SWITCH")
	for i, t := range f.Terms {
		low, high := "", ""
		if f.Low != nil {
			low, high = fmt.Sprintf("%.6g", f.Low[i]), fmt.Sprintf("%.6g", f.High[i])
		}
		fmt.Fprintf(w, "%s\t%.6g\t%s\t%s\t%d\n", t, f.Coeff[i], low, high, m.Coeff[i])
	}
	w.Flush()
}

// reportFixed describes the polynomial with integer coefficients.
func (j *fitJob) reportFixed(m *fitting.Model) error {
	w := tabwriter.NewWriter(j.c.Out, 0, 8, 2, ' ', 0)
	e := m.Extent
	fmt.Fprintf(w, "fixed point\tscale %d; the sum stays below %s, in %d bits\n", m.Scale, m.Accumulator.Bound, m.Accumulator.Width)
	fmt.Fprintf(w, "index\tC_max %d; %d to %d over all byte values, negative for %s of them; rising with L and falling with T for %s\n",
		m.Max(), e.Min, e.Max, percent(e.Negative), percent(e.Monotone))
	if m.Fit != nil {
		fmt.Fprintf(w, "\t%d to %d in the hull of the data (%s of the byte values), negative for %s of it\n",
			e.HullMin, e.HullMax, percent(e.Covered), percent(e.HullNegative))
	}
	reportLoss(w, "lost", m.Loss)
	if b := m.Table; b != nil {
		fmt.Fprintf(w, "table\t%d entries, %d levels\n", len(b.Level), b.Levels)
		reportLoss(w, "", &b.Loss)
	}
	if j.verify > 0 {
		fmt.Fprintf(w, "switch\tthe generated program agrees at all %d points\n", j.verify)
	}
	w.Flush()
	if m.Fit != nil && m.Max() > 2*m.Scale {
		j.c.Warning("in the hull of the data the polynomial reaches %.3g times the largest traffic: use a lower degree or --monotone",
			float64(m.Max())/float64(m.Scale))
	}
	if m.Fit != nil && e.Max > m.Max() {
		j.c.Warning("the polynomial reaches %d outside the hull of the data: C_max is its maximum inside", e.Max)
	}
	return nil
}

func reportLoss(w io.Writer, name string, l *fitting.Loss) {
	if l != nil {
		fmt.Fprintf(w, "%s\tmaximum %.3g, mean %.3g of the normalised traffic; %s of the row pairs in the wrong order, %s tied\n",
			name, l.Max, l.Mean, percent(l.Inverted), percent(l.Tied))
	}
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// listLibrary prints the patterns of the library, with each model and its data.
func (j *fitJob) listLibrary() error {
	rows := cli.Grid{{"PATTERN", "DEGREE", "ROWS", "TEST R²", "DATA"}}
	for _, pattern := range fitting.Patterns() {
		name := filepath.Join(j.library, pattern+".json")
		text, err := plain.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			rows = append(rows, []string{pattern, "-", "-", "-", "none yet"})
			continue
		case err != nil:
			return fmt.Errorf("reading %s: %w", name, err)
		}
		m, err := fitting.DecodeModel(text)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		line := []string{pattern, strconv.Itoa(m.Degree), "-", "-", "not said"}
		if m.Data != nil {
			files := lists.Map(m.Data.Files, func(f fitting.FileInfo) string { return f.Name })
			line[2], line[4] = strconv.Itoa(m.Data.Rows), strings.Join(files, ", ")
		}
		if m.Fit != nil && m.Fit.Test != nil {
			line[3] = fmt.Sprintf("%.4f", m.Fit.Test.R2)
		}
		rows = append(rows, line)
	}
	return cli.Show(j.c.Out, cli.Table, rows, nil)
}
