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
