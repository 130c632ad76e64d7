package bench

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/lab/dataset"
)

// benchRows is the number of observations in QALL (Section III-B).
const benchRows = 200_000

// Fit measures fitting on one core: reading a dataset of the paper's size, and
// fits of two degrees with a test set.
func Fit(ctx context.Context, runs int) ([]Measurement, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	text := dataset.Synthetic(benchRows)
	var list []Measurement
	for _, degree := range []int{3, 10} {
		var read, fit, fix []time.Duration
		for range runs {
			runtime.GC()
			start := time.Now()
			var rows fitting.Rows
			if _, err := dataset.Read(ctx, dataset.File{Name: "observations", Reader: bytes.NewReader(text)}, dataset.Options{}, &rows); err != nil {
				return nil, err
			}
			wasRead := time.Now()
			f, err := rows.Fit(ctx, fitting.Options{Degree: degree, Test: 0.25, Seed: 1})
			if err != nil {
				return nil, err
			}
			wasFitted := time.Now()
			p, err := f.Fix(&rows, fitting.FixOptions{})
			if err != nil {
				return nil, err
			}
			f.Loss(p, &rows)
			read, fit, fix = append(read, wasRead.Sub(start)), append(fit, wasFitted.Sub(wasRead)), append(fix, time.Since(wasFitted))
		}
		if degree == 3 {
			list = append(list, Measurement{"fit.csv", milliseconds(median(read)), "ms",
				fmt.Sprintf("read %d rows of CSV, %.1f MB, one core, median of %d", benchRows, float64(len(text))/1e6, runs)})
		}
		what := fmt.Sprintf("degree %d, %d terms, %d rows, one core, median of %d", degree, len(fitting.Terms(degree)), benchRows, runs)
		list = append(list,
			Measurement{fmt.Sprintf("fit.degree%d", degree), milliseconds(median(fit)), "ms", "split, fit and assess, " + what},
			Measurement{fmt.Sprintf("fit.degree%d.integers", degree), milliseconds(median(fix)), "ms", "conversion to fixed point, its bounds and its loss, " + what})
	}
	return list, nil
}
