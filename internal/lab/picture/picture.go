// Package picture draws a fit: the index over occupancy and interval with the convex hull of the
// data, the residuals, the tried degrees, and the integer index against the floating-point one.
package picture

import (
	"fmt"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/lab/chart"
)

// A Subject is the content of a picture.
type Subject struct {
	Fit  *fitting.Fit
	Poly fitting.Poly
	Rows *fitting.Rows
}

const (
	points = 2000 // number of points in a scatter plot
	rows   = 48   // rows of the surface
	steps  = 256  // steps in a row of the surface
	shades = 24   // number of colours of the surface
)

// SVG draws the subject.
func (s Subject) SVG() []byte {
	return chart.Sheet("fit", 2, []*chart.Chart{s.surface(), s.residuals(), s.degrees(), s.integers()})
}

// surface draws the index as the switch computes it, over the ranges of the two measurements.
func (s Subject) surface() *chart.Chart {
	across, up := s.Poly.LRange(), s.Poly.T
	grid, top := s.Poly.Grid(), s.Poly.Max()
	l := func(i int) float64 { return scale(across, float64(i)/steps) }
	index := chart.Series{Label: "index (dark is large)", Kind: chart.Spans, Reach: float64(up.Max-up.Min) / rows / 2}
	for row := range rows {
		share := (float64(row) + 0.5) / rows
		shade := func(i int) int64 {
			return min(max(grid[i<<8+int(share*steps)], 0), top) * shades / max(top, 1)
		}
		// Neighbours with the same colour become one span.
		for from := 0; from < steps; {
			to := from
			for to < steps && shade(to) == shade(from) {
				to++
			}
			if shade(from) > 0 {
				index.X, index.To, index.Y = append(index.X, l(from)), append(index.To, l(to)), append(index.Y, scale(up, share))
				index.Shade = append(index.Shade, float64(shade(from))/shades)
			}
			from = to
		}
	}
	c := &chart.Chart{
		Title: fmt.Sprintf("congestion index, degree %d", s.Poly.Degree),
		X:     chart.Axis{Label: "occupancy L (of 255)", Low: float64(across.Min), High: float64(across.Max)},
		Y:     chart.Axis{Label: "dequeue interval T (us)", Low: float64(up.Min), High: float64(up.Max)},
	}
	c.Series = append(c.Series, index)
	if hull := s.Fit.Hull; len(hull) > 2 {
		line := chart.Series{Label: "hull of the data", Tint: 1}
		for i := range len(hull) + 1 {
			q := hull[i%len(hull)]
			line.X, line.Y = append(line.X, q.L), append(line.Y, q.T)
		}
		c.Series = append(c.Series, line)
	}
	return c
}

// scale returns the value at a share of a range.
func scale(r fitting.Range, share float64) float64 {
	return float64(r.Min) + share*float64(r.Max-r.Min)
}

// sample calls f with evenly spaced rows.
func (s Subject) sample(f func(fitting.Row)) {
	stride, i := max(1, s.Rows.Len()/points), 0
	for r := range s.Rows.All() {
		if i%stride == 0 {
			f(r)
		}
		i++
	}
}

func (s Subject) residuals() *chart.Chart {
	cloud := chart.Series{Label: "residual", Kind: chart.Cloud}
	s.sample(func(r fitting.Row) {
		fit := s.Fit.At(r.L, r.T)
		cloud.X, cloud.Y = append(cloud.X, fit), append(cloud.Y, r.Y-fit)
	})
	return &chart.Chart{
		Title: fmt.Sprintf("residuals, RMSE %.4g", s.Fit.Train.RMSE),
		X:     chart.Axis{Label: "fitted traffic"}, Y: chart.Axis{Label: "observed - fitted"},
		Series: []chart.Series{cloud},
	}
}

// degrees draws R² over the degree, as in QALL's Table I.
func (s Subject) degrees() *chart.Chart {
	train, test := chart.Series{Label: "training", Marks: true}, chart.Series{Label: "test", Marks: true, Tint: 1}
	for _, d := range s.Fit.Degrees {
		train.X, train.Y = append(train.X, float64(d.Degree)), append(train.Y, d.Train.R2)
		if d.Test != nil {
			test.X, test.Y = append(test.X, float64(d.Degree)), append(test.Y, d.Test.R2)
		}
	}
	c := &chart.Chart{Title: "R² over degree", X: chart.Axis{Label: "degree"}, Y: chart.Axis{Label: "R²"}, Series: []chart.Series{train}}
	if len(test.X) > 0 {
		c.Series = append(c.Series, test)
	}
	return c
}

// integers draws the integer index against the floating-point one.
func (s Subject) integers() *chart.Chart {
	grid, top := s.Poly.Grid(), s.Poly.Max()
	cloud := chart.Series{Label: "observation", Kind: chart.Cloud}
	most := 0.0
	s.sample(func(r fitting.Row) {
		l, t := s.Poly.Bytes(r.L, r.T)
		float := s.Fit.Unit(s.Fit.Spans.L.Unit(r.L), s.Fit.Spans.T.Unit(r.T))
		most = max(most, float)
		cloud.X, cloud.Y = append(cloud.X, float), append(cloud.Y, float64(min(max(grid[l<<8+t], 0), top))/float64(s.Poly.Scale))
	})
	return &chart.Chart{
		Title: fmt.Sprintf("integer against float, scale %d", s.Poly.Scale),
		X:     chart.Axis{Label: "float index"}, Y: chart.Axis{Label: "integer index / scale"},
		Series: []chart.Series{cloud, {Label: "equal", Tint: 2, X: []float64{0, most}, Y: []float64{0, most}}},
	}
}
