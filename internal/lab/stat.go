package lab

import (
	"math"
	"slices"

	"github.com/p4lb/p4lb/internal/student"
)

// An Estimate summarises a number over runs, one per seed: the mean and
// the half-width of its 95 % confidence interval by Student's t.
type Estimate struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half"` // 0 with a single run
	N    int     `json:"n"`
}

// newEstimate estimates the mean from values of independent runs. Values that
// are NaN, such as the tail of zero flows, are omitted.
func newEstimate(values []float64) Estimate {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	n, mean := len(values), average(values)
	if n < 2 {
		return Estimate{Mean: mean, N: n}
	}
	ss := 0.0
	for _, v := range values {
		ss += (v - mean) * (v - mean)
	}
	se := math.Sqrt(ss / float64(n-1) / float64(n))
	t := student.T(n - 1).Quantile(0.975)
	return Estimate{Mean: mean, Half: t * se, N: n}
}

// excludes reports whether the interval excludes v. It is false for a single run.
func (e Estimate) excludes(v float64) bool {
	return e.N > 1 && math.Abs(e.Mean-v) > e.Half
}

// p returns the p-value of the mean against v by Student's t-test; NaN for a single run.
func (e Estimate) p(v float64) float64 {
	if e.N < 2 || math.IsNaN(e.Mean) {
		return math.NaN()
	}
	off := math.Abs(e.Mean - v)
	if e.Half == 0 {
		if off == 0 {
			return 1
		}
		return 0
	}
	t := student.T(e.N - 1)
	return 2 * t.Survival(off/e.Half*t.Quantile(0.975))
}

// holm corrects p-values for multiple tests by Holm's step-down method. If no
// effect is real, a corrected value below 0.05 occurs in at most one of twenty
// tables. NaN stays NaN.
func holm(p []float64) []float64 {
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareFloats(p[a], p[b]) })
	out, least := slices.Clone(p), 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(order)-rank)))
		out[i] = least
	}
	return out
}

// sureAt is the significance level.
const sureAt = 0.05

// low returns the lower end of the interval.
func (e Estimate) low() float64 { return e.Mean - e.Half }

// high returns the upper end of the interval.
func (e Estimate) high() float64 { return e.Mean + e.Half }

// reduction estimates the percentage by which a is below b, paired by seed. Runs with the same
// seed have the same flows, so their difference varies less than the values do.
func reduction(a, b []float64) Estimate { return newEstimate(reductions(a, b)) }

func reductions(a, b []float64) []float64 {
	list := make([]float64, min(len(a), len(b)))
	for i := range list {
		list[i] = math.NaN()
		if b[i] != 0 {
			list[i] = 100 * (b[i] - a[i]) / b[i]
		}
	}
	return list
}

// percentile returns the value at share p of the sorted values, by the nearest rank; NaN if there
// are none.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// greatest returns the largest value, or NaN.
func greatest(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Max(values)
}

// average returns the mean; NaN if there are no values.
func average(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// variance returns the mean squared deviation from the mean.
func variance(values []float64) float64 {
	m := average(values)
	sum := 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(values))
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
