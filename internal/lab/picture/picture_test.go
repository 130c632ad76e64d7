package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/p4lb/p4lb/fitting"
)

func subject(t *testing.T) Subject {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	rows := new(fitting.Rows)
	for range 2000 {
		load := rng.Float64()
		rows.Append(fitting.Row{Y: load + 0.1*rng.Float64(), L: 255 * load * load, T: 10 + 900*(1-load)*rng.Float64()})
	}
	fit, err := rows.Fit(t.Context(), fitting.Options{Degree: 2, Sweep: true, Test: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	poly, err := fit.Fix(rows, fitting.FixOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Subject{fit, poly, rows}
}

// TestSurface: the surface shows the index, without a cell outside of the ranges.
func TestSurface(t *testing.T) {
	s := subject(t)
	index := s.surface().Series[0]
	grid, top, across, up := s.Poly.Grid(), s.Poly.Max(), s.Poly.LRange(), s.Poly.T
	for i, x := range index.X {
		middle := (x + index.To[i]) / 2
		l := min(int((middle-float64(across.Min))/float64(across.Max-across.Min)*256), 255)
		u := min(int((index.Y[i]-float64(up.Min))/float64(up.Max-up.Min)*256), 255)
		want := float64(min(max(grid[l<<8+u], 0), top)) / float64(top)
		if x < float64(across.Min) || index.To[i] > float64(across.Max) || math.Abs(index.Shade[i]-want) > 2.0/shades {
			t.Fatalf("from %g to %g at %g: shade %g, want %g", x, index.To[i], index.Y[i], index.Shade[i], want)
		}
	}
}

func TestSVG(t *testing.T) {
	s := subject(t)
	text := s.SVG()
	if !bytes.Equal(text, s.SVG()) {
		t.Error("the same picture differs from run to run")
	}
	for _, want := range []string{"congestion index, degree 2", "hull of the data", "R² over degree", "integer against float, scale 1000", "residuals"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %q", want)
		}
	}
	// Both clouds have a dot for each row of the data, and the surface has cells.
	shapes := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			shapes[e.Name.Local]++
		}
	}
	if shapes["circle"] < 2*2000 || shapes["path"] < rows {
		t.Errorf("shapes %v: want 4000 circles and %d paths or more", shapes, rows)
	}
}

// TestCharts: the charts show the fit's numbers for evenly spaced observations.
func TestCharts(t *testing.T) {
	s := subject(t)
	var rows []fitting.Row
	for r := range s.Rows.All() {
		rows = append(rows, r)
	}
	c := s.residuals()
	for i, x := range c.Series[0].X {
		if fit := s.Fit.At(rows[i].L, rows[i].T); x != fit || !(math.Abs(x+c.Series[0].Y[i]-rows[i].Y) <= 1e-12) {
			t.Fatalf("residual %d: %g of %g, want %g of %g", i, c.Series[0].Y[i], x, rows[i].Y-fit, fit)
		}
	}
	c = s.integers()
	most, grid := 0.0, s.Poly.Grid()
	for i, x := range c.Series[0].X {
		if most = max(most, x); i > len(rows) {
			t.Fatalf("%d points of %d rows", len(c.Series[0].X), len(rows))
		}
		l, u := s.Poly.Bytes(rows[i].L, rows[i].T)
		if want := float64(min(max(grid[l<<8+u], 0), s.Poly.Max())) / float64(s.Poly.Scale); c.Series[0].Y[i] != want {
			t.Fatalf("integer index %d is %g, want %g", i, c.Series[0].Y[i], want)
		}
		if want := s.Fit.Unit(s.Fit.Spans.L.Unit(rows[i].L), s.Fit.Spans.T.Unit(rows[i].T)); x != want {
			t.Fatalf("float index %d is %g, want %g", i, x, want)
		}
	}
	if line := c.Series[1]; line.X[0] != 0 || line.Y[0] != 0 || line.X[1] != most || line.Y[1] != most || most == 0 {
		t.Errorf("the line ends at %v, %v: want %g", line.X, line.Y, most)
	}
	c = s.degrees()
	for i, d := range s.Fit.Degrees {
		if c.Series[0].X[i] != float64(d.Degree) || c.Series[0].Y[i] != d.Train.R2 || c.Series[1].Y[i] != d.Test.R2 {
			t.Errorf("degree %d: %v, %v", d.Degree, c.Series[0].Y[i], c.Series[1].Y[i])
		}
	}
	alone := *s.Fit
	alone.Degrees = append([]fitting.DegreeFit(nil), s.Fit.Degrees...)
	for i := range alone.Degrees {
		alone.Degrees[i].Test = nil
	}
	if c := (Subject{&alone, s.Poly, s.Rows}).degrees(); len(c.Series) != 1 {
		t.Errorf("%d lines without a test: want one", len(c.Series))
	}
	c = s.surface()
	across, up := s.Poly.LRange(), s.Poly.T
	if c.X.Low != float64(across.Min) || c.X.High != float64(across.Max) || c.Y.Low != float64(up.Min) || c.Y.High != float64(up.Max) {
		t.Errorf("axes %+v and %+v, want %v and %v", c.X, c.Y, across, up)
	}
	index := c.Series[0]
	if got, want := index.Reach*2*48, float64(up.Max-up.Min); !(math.Abs(got-want) <= 1e-9) {
		t.Errorf("all rows are %g high, want %g", got, want)
	}
	for i := 1; i < len(index.X); i++ {
		if index.Y[i] == index.Y[i-1] && (index.X[i] < index.To[i-1] || index.X[i] == index.To[i-1] && index.Shade[i] == index.Shade[i-1]) {
			t.Fatalf("span %d from %g to %g with shade %g follows one to %g with %g", i, index.X[i], index.To[i], index.Shade[i], index.To[i-1], index.Shade[i-1])
		}
	}
	hull := c.Series[1]
	if n := len(hull.X); n != len(s.Fit.Hull)+1 || hull.X[0] != hull.X[n-1] || hull.Y[0] != hull.Y[n-1] || hull.X[1] != s.Fit.Hull[1].L || hull.Y[1] != s.Fit.Hull[1].T {
		t.Errorf("the hull has %d points, %v", n, s.Fit.Hull)
	}
	line := *s.Fit
	line.Hull = line.Hull[:2]
	if c := (Subject{&line, s.Poly, s.Rows}).surface(); len(c.Series) != 1 {
		t.Error("a hull of two points is drawn")
	}
	line.Hull = s.Fit.Hull[:3]
	if c := (Subject{&line, s.Poly, s.Rows}).surface(); len(c.Series) != 2 || len(c.Series[1].X) != 4 {
		t.Error("a hull of three points is not drawn as a closed line")
	}
}

// TestSample: large data are shown by every n-th row.
func TestSample(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, points: points, 2*points - 1: 2*points - 1, 2 * points: points, 2*points + 1: points + 1} {
		rows := new(fitting.Rows)
		for i := range n {
			rows.Append(fitting.Row{Y: float64(i), L: 1, T: 1})
		}
		var got []float64
		Subject{Rows: rows}.sample(func(r fitting.Row) { got = append(got, r.Y) })
		if len(got) != want || want > 1 && got[1] != max(1, float64(n/points)) {
			t.Errorf("%d of %d rows: want %d", len(got), n, want)
		}
	}
}
