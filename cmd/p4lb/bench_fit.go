package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/fitting/dataset"
)

// benchRows is how many observations QALL fits (Section III-B).
const benchRows = 200_000

// benchFit measures fitting, on one core: reading a dataset of the paper's
// size, and fits of two degrees with a test set held back.
func benchFit(ctx context.Context, runs int) ([]measurement, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	text := benchObservations(benchRows)
	var list []measurement
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
			list = append(list, measurement{"fit.csv", milliseconds(median(read)), "ms",
				fmt.Sprintf("read %d rows of CSV, %.1f MB, one core, median of %d", benchRows, float64(len(text))/1e6, runs)})
		}
		what := fmt.Sprintf("degree %d, %d terms, %d rows, one core, median of %d", degree, len(fitting.Terms(degree)), benchRows, runs)
		list = append(list,
			measurement{fmt.Sprintf("fit.degree%d", degree), milliseconds(median(fit)), "ms", "split, fit and assess, " + what},
			measurement{fmt.Sprintf("fit.degree%d.integers", degree), milliseconds(median(fix)), "ms", "fixed point, its bounds and what it loses, " + what})
	}
	return list, nil
}

// benchObservations makes observations that resemble those of a port: the load
// drives occupancy, interval and traffic.
func benchObservations(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 1))
	b := []byte("egress_traffic,occupancy,dequeue_interval\n")
	for range n {
		load := rng.Float64()
		occupancy := min(100, max(0, 100*load*load*load+8*rng.NormFloat64()))
		interval := min(9000, 1+rng.ExpFloat64()*(200+3000*(1-load)*(1-load)))
		traffic := max(0, 400_000*(0.9*load+0.05*rng.NormFloat64()))
		b = fmt.Appendf(b, "%.1f,%.3f,%.1f\n", traffic, occupancy, interval)
	}
	return b
}
