// Package chart draws the results of experiments: lines with confidence bands, bars, and points
// next to the printed values of a paper. A chart is arranged once as lines, areas and text, in
// points of 1/72 inch. It is written as SVG for a web page, as SVG or PDF in the width of a
// paper's column, and as numbers.
package chart

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"math"
	"slices"
	"strconv"
)

// A Chart is a set of series on a common pair of axes.
type Chart struct {
	Name  string // base name of its files
	Title string
	About string // an explanation for readers
	Note  string // text below the chart when it is shown alone

	X, Y   Axis
	Series []Series
	Wide   bool // as wide as a page instead of a column
}

// An Axis is the horizontal or vertical axis of a chart. With Names, the values 0, 1, 2 … stand
// for the names.
type Axis struct {
	Label string
	Log   bool
	Names []string

	// Low and High are values that must be visible; the axis may show more. If both are zero, the
	// axis covers the series, and 0 unless it is logarithmic.
	Low, High float64
}

// A Kind is the style of a series.
type Kind uint8

// The kinds of series.
const (
	Line   Kind = iota // a line through the points
	Bars               // from 0, next to the bars of other series
	Points             // points with their intervals
	Hollow             // hollow points: printed values of a paper
	Spans              // horizontal bars from X to To at the height Y
	Cloud              // many small points
)

// A Series is the data of one row.
type Series struct {
	Label string
	Kind  Kind
	Marks bool // Line: mark each point with a dot
	X, Y  []float64
	Half  []float64 // half-widths of the confidence intervals; nil: none
	Tint  int       // number of the colour; the series of a row share it in all charts

	// For Spans: right ends, half-heights (0: 0.4), opacities from 0 to 1 (nil: 1), and tooltips
	// (nil: none).
	To    []float64
	Reach float64
	Shade []float64
	Hints []string
}

// Colour returns the number of the series' colour.
func (s Series) Colour() int { return max(0, s.Tint) % tints }

// tints is the number of colours. Further lines are dashed.
const tints = 8

// light and dark are the colours of series on white and on black. They are also distinguishable
// with colour blindness (after Okabe and Ito).
var (
	light = [tints]string{"#0072b2", "#d55e00", "#009e73", "#b5578f", "#b97f00", "#2a93cc", "#333333", "#808080"}
	dark  = [tints]string{"#4aa8e0", "#ff8a3d", "#2fcf9f", "#e39cc4", "#f0b93a", "#8ccdf2", "#d8d8d8", "#9a9a9a"}
)

// CSV returns the numbers of the chart, a line for each point.
func (c *Chart) CSV() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if slices.ContainsFunc(c.Series, func(s Series) bool { return s.Kind == Spans }) {
		return c.spansCSV()
	}
	w.Write([]string{"series", cmp.Or(c.X.Label, "x"), cmp.Or(c.Y.Label, "y"), "ci95"})
	for _, s := range c.Series {
		for i := range s.X {
			at := number(s.X[i])
			if k := int(s.X[i]); k >= 0 && k < len(c.X.Names) {
				at = c.X.Names[k]
			}
			half := ""
			if s.Half != nil {
				half = number(s.Half[i])
			}
			w.Write([]string{s.Label, at, number(s.Y[i]), half})
		}
	}
	w.Flush()
	return b.Bytes()
}

// spansCSV returns the numbers of a chart with spans, a line for each span.
func (c *Chart) spansCSV() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	x := cmp.Or(c.X.Label, "x")
	w.Write([]string{"series", cmp.Or(c.Y.Label, "y"), "from " + x, "to " + x, "shade"})
	for _, s := range c.Series {
		for i := range s.X {
			w.Write([]string{s.Label, c.Y.tick(s.Y[i]), number(s.X[i]), number(s.To[i]), number(s.shade(i))})
		}
	}
	w.Flush()
	return b.Bytes()
}

// shade returns the opacity of a span.
func (s Series) shade(i int) float64 {
	if s.Shade == nil {
		return 1
	}
	return min(max(s.Shade[i], 0), 1)
}

// tick returns the name of a value on the axis.
func (a *Axis) tick(v float64) string {
	if k := int(v); k >= 0 && k < len(a.Names) {
		return a.Names[k]
	}
	return label(v)
}

// number writes a number without noise in its last digits.
func number(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 7, 64)
}

// A span is the visible range of an axis.
type span struct {
	low, high float64
	log       bool
}

// at returns the position of a value on the axis, 0 to 1.
func (s span) at(v float64) float64 {
	if s.log {
		return math.Log(max(v, s.low/1e3)/s.low) / math.Log(s.high/s.low)
	}
	return (v - s.low) / (s.high - s.low)
}

// span returns the range that an axis must show for the values of the series.
func (a *Axis) span(values func(yield func(float64))) span {
	if a.Names != nil {
		return span{low: -0.5, high: float64(len(a.Names)) - 0.5}
	}
	s := span{low: math.Inf(1), high: math.Inf(-1), log: a.Log}
	see := func(v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.Log || v > 0) {
			s.low, s.high = min(s.low, v), max(s.high, v)
		}
	}
	values(see)
	if a.Low != 0 || a.High != 0 {
		see(a.Low)
		see(a.High)
	} else if !a.Log {
		see(0)
	}
	switch {
	case s.low > s.high: // a logarithmic axis without positive values
		s.low, s.high = 0.1, 10
	case s.low == s.high && a.Log:
		s.low, s.high = s.low/2, s.high*2
	case s.low == s.high:
		s.low, s.high = s.low-0.5, s.high+0.5
	}
	if !a.Log && (a.High == 0 || s.high > a.High) {
		s.high += 0.04 * (s.high - s.low) // leave a margin to the frame
	}
	return s
}

// ticks returns about 3 to 7 round values for the labels of the axis.
func (s span) ticks() []float64 {
	if s.log {
		return s.powers()
	}
	step := math.Pow(10, math.Floor(math.Log10((s.high-s.low)/3)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (s.high-s.low)/(step*m) <= 6 {
			step *= m
			break
		}
	}
	var list []float64
	for k := math.Ceil(s.low/step - 1e-9); k*step <= s.high+step*1e-9; k++ {
		list = append(list, k*step+0) // avoids -0
	}
	return list
}

// powers returns the ticks of a logarithmic axis: powers of ten, and values in between
// if there are fewer than three.
func (s span) powers() []float64 {
	var list []float64
	between := []float64{1}
	if s.high/s.low < 1e3 {
		between = []float64{1, 2, 5}
	}
	skip := max(1, int(math.Ceil(math.Log10(s.high/s.low)/7)))
	for e := int(math.Floor(math.Log10(s.low))); e <= int(math.Ceil(math.Log10(s.high))); e++ {
		for _, m := range between {
			if v := m * math.Pow(10, float64(e)); e%skip == 0 && v >= s.low*0.999 && v <= s.high*1.001 {
				list = append(list, v)
			}
		}
	}
	return list
}

// label formats a tick.
func label(v float64) string {
	if v == 0 {
		return "0" // avoids -0
	}
	if a := math.Abs(v); a >= 1e7 || a < 1e-4 {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return strconv.FormatFloat(math.Round(v*1e9)/1e9+0, 'f', -1, 64)
}
