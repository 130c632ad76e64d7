package fitting

import (
	"fmt"
	"iter"
	"math"
)

// A Row is one observation of an egress port.
type Row struct {
	Y float64 // egress traffic, in any unit
	L float64 // queue occupancy in units of the register; 255 is a full queue
	T float64 // dequeue interval in µs
}

// blockRows is the number of rows allocated at once: a block of 768 KB.
const blockRows = 1 << 15

// Rows holds observations, 24 bytes each. The zero value is empty.
type Rows struct {
	blocks [][]Row
	n      int
}

// Append adds a row.
func (s *Rows) Append(r Row) {
	if last := len(s.blocks) - 1; last < 0 || len(s.blocks[last]) == cap(s.blocks[last]) {
		s.blocks = append(s.blocks, make([]Row, 0, blockRows))
	}
	last := &s.blocks[len(s.blocks)-1]
	*last = append(*last, r)
	s.n++
}

// Len returns the number of rows.
func (s *Rows) Len() int { return s.n }

// All iterates over the rows in the order of storage.
func (s *Rows) All() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for _, block := range s.blocks {
			for _, r := range block {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// keep removes the rows for which want returns false.
func (s *Rows) keep(want func(Row) bool) {
	s.n = 0
	for i, block := range s.blocks {
		kept := block[:0]
		for _, r := range block {
			if want(r) {
				kept = append(kept, r)
			}
		}
		s.blocks[i] = kept
		s.n += len(kept)
	}
}

// The columns of a Row, in the order of Spans.
const (
	colY = iota
	colL
	colT
	columns
)

// ColumnNames are the names of the columns in files and messages.
var ColumnNames = [columns]string{"egress_traffic", "occupancy", "dequeue_interval"}

// columnUnits are the units of the columns of a Row.
var columnUnits = [columns]string{"", " of 255", " us"}

func (r Row) column(c int) float64 {
	switch c {
	case colY:
		return r.Y
	case colL:
		return r.L
	}
	return r.T
}

// A Span is the range of one column, which min-max normalisation maps to 0 and 1.
type Span struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

func emptySpan() Span { return Span{math.Inf(1), math.Inf(-1)} }

func (s *Span) include(v float64) {
	s.Min, s.Max = min(s.Min, v), max(s.Max, v)
}

// Unit maps v to 0..1 if it lies within the span.
func (s Span) Unit(v float64) float64 { return (v - s.Min) / s.width() }

func (s Span) width() float64 { return s.Max - s.Min }

// Spans are the ranges of the three columns.
type Spans struct {
	Y Span `json:"y"`
	L Span `json:"l"`
	T Span `json:"t"`
}

// spans computes the ranges. A constant column is an error, because neither a fit nor a
// correlation is possible.
func (s *Rows) spans() (Spans, error) {
	p := Spans{emptySpan(), emptySpan(), emptySpan()}
	for r := range s.All() {
		p.Y.include(r.Y)
		p.L.include(r.L)
		p.T.include(r.T)
	}
	for c, span := range []Span{p.Y, p.L, p.T} {
		if s.n > 0 && !(span.width() > 0) {
			return p, fmt.Errorf("the column %s is constant: all %d rows say %g%s", ColumnNames[c], s.n, span.Min, columnUnits[c])
		}
	}
	return p, nil
}

// unit normalises a row.
func (p Spans) unit(r Row) Row {
	return Row{p.Y.Unit(r.Y), p.L.Unit(r.L), p.T.Unit(r.T)}
}

// A Correlation holds Pearson's coefficients between the columns.
type Correlation struct {
	YL float64 `json:"traffic_occupancy"`
	YT float64 `json:"traffic_interval"`
	LT float64 `json:"occupancy_interval"`
}

// correlate computes the coefficients in two passes. The second pass subtracts the means of the
// first, which avoids cancellation.
func (s *Rows) correlate(p Spans) Correlation {
	var mean Row
	n := float64(s.n)
	for r := range s.All() {
		u := p.unit(r)
		mean.Y += u.Y / n
		mean.L += u.L / n
		mean.T += u.T / n
	}
	var yy, ll, tt, yl, yt, lt float64
	for r := range s.All() {
		u := p.unit(r)
		y, l, t := u.Y-mean.Y, u.L-mean.L, u.T-mean.T
		yy, ll, tt = yy+y*y, ll+l*l, tt+t*t
		yl, yt, lt = yl+y*l, yt+y*t, lt+l*t
	}
	return Correlation{yl / math.Sqrt(yy*ll), yt / math.Sqrt(yy*tt), lt / math.Sqrt(ll*tt)}
}
