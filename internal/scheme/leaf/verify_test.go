package leaf

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/lab/dataset"
)

// verifiedPoints is the total number of points compared over all polynomials.
const verifiedPoints = 1_000_000

// TestThreeColumns compares the floating-point index, the integers of package
// fitting, and the generated program on the embedded switch. The last two must
// be bit-identical, the first one close to them.
func TestThreeColumns(t *testing.T) {
	var rows fitting.Rows
	// An occupancy range that differs from a byte's.
	options := dataset.Options{FullQueue: 117}
	if _, err := dataset.Read(t.Context(), dataset.File{Name: "x", Reader: bytes.NewReader(dataset.Synthetic(5000))}, options, &rows); err != nil {
		t.Fatal(err)
	}
	polys := map[string]fitting.Poly{}
	for _, degree := range []int{1, 2, 3, 5, 10} {
		fit, err := rows.Fit(t.Context(), fitting.Options{Degree: degree, Test: 0.25})
		if err != nil {
			t.Fatal(err)
		}
		p, err := fit.Fix(&rows, fitting.FixOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if loss := fit.Loss(p, &rows); loss.Mean > 0.004 || loss.Inverted > 0.01 {
			t.Errorf("degree %d: float against integer: %+v", degree, loss)
		}
		polys[fmt.Sprint("fit", degree)] = p
	}
	polys["paper3"], _ = fitting.Paper(3, false)
	polys["printed3"], _ = fitting.Paper(3, true)
	points := verifiedPoints / len(polys)
	if testing.Short() {
		points /= 50
	}
	for name, p := range polys {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := Verify(t.Context(), p, points, 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProber compares the switch with Eq. 12 evaluated at l/256 and t/256,
// truncated and clamped: 10,000 us are 254 by the reciprocal.
func TestProber(t *testing.T) {
	p, _ := fitting.Paper(2, false)
	s, err := newProber(p)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.index(0, 1); err != nil || c != 11 {
		t.Errorf("C is %d for the first packet of a port, %v: want the value for tau, 11", c, err)
	}
	for _, l := range []int64{0, 100, 255} {
		for wait, byteT := range map[int64]float64{1: 0, 5000: 127, 10_000: 254, 30_000: 254} {
			u, v := float64(l)/256, byteT/256
			want := int64(max(0, 17+79*u-89*v-106*u*u+142*u*v+84*v*v))
			if c, err := s.index(l, wait); err != nil || c != want {
				t.Errorf("L = %d, T = %d us: C is %d, %v; want %d", l, wait, c, err, want)
			}
		}
	}
}
