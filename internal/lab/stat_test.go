package lab

import (
	"math"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestEstimate compares with a table of Student's t: 2.776 for four degrees of
// freedom, 12.706 for one.
func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		values     []float64
		mean, half float64
	}{
		{[]float64{1, 2, 3, 4, 5}, 3, 2.776 * math.Sqrt(2.5/5)},
		{[]float64{10, 12}, 11, 12.706 * math.Sqrt(2.0/2)},
		{[]float64{7}, 7, 0},
		{[]float64{4, math.NaN(), 4, 4}, 4, 0},
	} {
		e := newEstimate(c.values)
		if !(math.Abs(e.Mean-c.mean) <= 1e-9) || !(math.Abs(e.Half-c.half) <= 0.001) {
			t.Errorf("%v: got %+v, want %g ± %g", c.values, e, c.mean, c.half)
		}
	}
	if e := newEstimate(nil); !math.IsNaN(e.Mean) || e.excludes(0) {
		t.Errorf("of nothing: %+v", e)
	}
	if newEstimate([]float64{5}).excludes(0) {
		t.Error("one run excludes something")
	}
}

// TestCoverage: the interval has the true mean in it in 95 of 100 cases.
func TestCoverage(t *testing.T) {
	rng := spec.NewRandom(1, 2)
	const n = 4000
	hit := 0
	for range n {
		values := make([]float64, 5)
		for i := range values {
			values[i] = 3 + rng.NormFloat64()
		}
		if !newEstimate(values).excludes(3) {
			hit++
		}
	}
	if share := float64(hit) / n; !(math.Abs(share-0.95) <= 0.012) {
		t.Errorf("the mean is in the interval in %.3f of the cases", share)
	}
}

// TestReduction: pairing by seed detects differences that the means alone do not show.
func TestReduction(t *testing.T) {
	a, b := []float64{9, 90, 900}, []float64{10, 100, 1000}
	e := reduction(a, b)
	if !(math.Abs(e.Mean-10) <= 1e-9) || !e.excludes(0) {
		t.Errorf("got %+v, want 10 %% beyond doubt", e)
	}
}

func TestPercentile(t *testing.T) {
	sorted := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[float64]float64{0: 1, 0.1: 1, 0.5: 5, 0.99: 10, 1: 10} {
		if got := percentile(sorted, p); got != want {
			t.Errorf("the percentile %g is %g, want %g", p, got, want)
		}
	}
	if got := percentile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %g", got)
	}
}
