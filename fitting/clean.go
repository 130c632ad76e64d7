package fitting

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Outliers is a rule that identifies outliers. The zero value drops no rows.
type Outliers struct {
	Rule string // "", "iqr", "mad" or "sigma"
	K    float64
}

// outlierRules maps the rules to their default factors.
var outlierRules = map[string]float64{"iqr": 3, "mad": 6, "sigma": 5}

// ParseOutliers parses none, or a rule with an optional factor: iqr, mad:4,
// sigma:3.5.
func ParseOutliers(s string) (Outliers, error) {
	if s == "" || s == "none" {
		return Outliers{}, nil
	}
	name, factor, given := strings.Cut(s, ":")
	k, ok := outlierRules[name]
	if !ok {
		return Outliers{}, fmt.Errorf("no rule %q for outliers: want none, iqr, mad or sigma", name)
	}
	if given {
		var err error
		if k, err = strconv.ParseFloat(factor, 64); err != nil || !(k > 0) || math.IsInf(k, 1) {
			return Outliers{}, fmt.Errorf("factor %q of the rule %s: want a number above 0", factor, name)
		}
	}
	return Outliers{name, k}, nil
}

// String returns the rule in the format of ParseOutliers.
func (o Outliers) String() string {
	if o.Rule == "" {
		return "none"
	}
	return fmt.Sprintf("%s:%g", o.Rule, o.K)
}

// Explain describes the rows that the rule drops.
func (o Outliers) Explain() string {
	switch o.Rule {
	case "iqr":
		return fmt.Sprintf("more than %g interquartile ranges outside the quartiles", o.K)
	case "mad":
		return fmt.Sprintf("more than %g scaled median deviations from the median", o.K)
	case "sigma":
		return fmt.Sprintf("more than %g standard deviations from the mean", o.K)
	}
	return "none"
}

// Dropped counts the rows that Clean drops, by the first reason that applies.
type Dropped struct {
	Missing  int `json:"missing"` // not a number: empty, null or NaN
	Infinite int `json:"infinite"`
	Negative int `json:"negative"`
	Outlier  int `json:"outlier"`
}

// Total returns the number of dropped rows.
func (d Dropped) Total() int { return d.Missing + d.Infinite + d.Negative + d.Outlier }

func (d *Dropped) accept(r Row) bool {
	switch sum := r.Y + r.L + r.T; {
	case math.IsNaN(r.Y) || math.IsNaN(r.L) || math.IsNaN(r.T):
		d.Missing++
	case math.IsInf(sum, 0) || math.IsNaN(sum):
		d.Infinite++
	case r.Y < 0 || r.L < 0 || r.T < 0:
		d.Negative++
	default:
		return true
	}
	return false
}

// Clean drops invalid rows, and then the rows that the rule classifies as outliers
// in any column. The limits are computed once, from the valid rows.
func (s *Rows) Clean(rule Outliers) (Dropped, error) {
	var d Dropped
	s.keep(d.accept)
	if rule.Rule == "" || s.n == 0 {
		return d, nil
	}
	var fences [columns]Span
	spare := make([]float64, s.n)
	for c := range fences {
		fences[c] = s.fence(c, rule, spare)
		if !(fences[c].width() > 0) {
			return d, fmt.Errorf("the rule %s drops all of %s but the value %g%s, which most rows have: choose another rule or none",
				rule, ColumnNames[c], fences[c].Min, columnUnits[c])
		}
	}
	s.keep(func(r Row) bool {
		for c, f := range fences {
			if v := r.column(c); v < f.Min || v > f.Max {
				d.Outlier++
				return false
			}
		}
		return true
	})
	return d, nil
}

// fence returns the range outside of which a value of column c is an outlier. spare is a buffer
// for the column.
func (s *Rows) fence(c int, rule Outliers, spare []float64) Span {
	if rule.Rule == "sigma" {
		mean, sd := s.moments(c)
		return Span{mean - rule.K*sd, mean + rule.K*sd}
	}
	v := spare[:0]
	for r := range s.All() {
		v = append(v, r.column(c))
	}
	if rule.Rule == "iqr" {
		q1, q3 := quantile(v, 0.25), quantile(v, 0.75)
		return Span{q1 - rule.K*(q3-q1), q3 + rule.K*(q3-q1)}
	}
	centre := quantile(v, 0.5)
	for i := range v {
		v[i] = math.Abs(v[i] - centre)
	}
	d := rule.K * madToSigma * quantile(v, 0.5)
	return Span{centre - d, centre + d}
}

// madToSigma converts the median absolute deviation of normal data to its standard deviation.
const madToSigma = 1.482602218505602

func (s *Rows) moments(c int) (mean, sd float64) {
	for r := range s.All() {
		mean += r.column(c) / float64(s.n)
	}
	var sum float64
	for r := range s.All() {
		d := r.column(c) - mean
		sum += d * d
	}
	return mean, math.Sqrt(sum / float64(s.n))
}

// quantile returns the order statistic at q, without interpolation. It permutes v.
func quantile(v []float64, q float64) float64 {
	k := int(q * float64(len(v)-1))
	lo, hi := 0, len(v)-1
	for lo < hi {
		// Hoare's quickselect, with the middle element as pivot.
		pivot, i, j := v[(lo+hi)/2], lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return v[k]
		}
	}
	return v[k]
}
