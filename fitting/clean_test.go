package fitting

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCorrelation(t *testing.T) {
	s := new(Rows)
	for i := range 100 {
		x := float64(i)
		s.Append(Row{x, 3 * x, 200 - x})
	}
	spans, err := s.spans()
	if err != nil {
		t.Fatal(err)
	}
	if c := s.correlate(spans); math.Abs(c.YL-1) > 1e-12 || math.Abs(c.YT+1) > 1e-12 || math.Abs(c.LT+1) > 1e-12 {
		t.Errorf("%+v", c)
	}
}

func TestHull(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := new(Rows)
	for range 100_000 { // more than one block
		a, r := 2*math.Pi*rng.Float64(), rng.Float64()
		s.Append(Row{1, 100 + 50*r*math.Cos(a), 100 + 50*r*math.Sin(a)})
	}
	hull := s.hull(split{of: make([]uint8, s.Len())})
	for r := range s.All() {
		if !inside(hull, Point{r.L, r.T}) {
			t.Fatalf("%v is outside its hull", r)
		}
	}
	if len(hull) < 20 || inside(hull, Point{100, 151}) {
		t.Errorf("hull of %d points", len(hull))
	}
}

func TestClean(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := new(Rows)
	for i := range 1000 {
		x := float64(i % 100)
		s.Append(Row{x, x, x})
	}
	for _, r := range []Row{{nan, 1, 1}, {1, nan, inf}, {inf, 1, 1}, {1, -1, 1}, {1, 1, -inf}, {1, 1, 5000}, {1, 7000, 1}} {
		s.Append(r)
	}
	d, err := s.Clean(Outliers{"iqr", 3})
	if want := (Dropped{Missing: 2, Infinite: 2, Negative: 1, Outlier: 2}); err != nil || d != want {
		t.Errorf("got %+v, %v; want %+v", d, err, want)
	}
	if s.Len() != 1000 {
		t.Errorf("%d rows left", s.Len())
	}
	idle := new(Rows)
	for i := range 1000 {
		idle.Append(Row{1, max(0, float64(i-900)), float64(i)})
	}
	if _, err := idle.Clean(Outliers{"mad", 6}); err == nil || !strings.Contains(err.Error(), "drops all of egress_traffic but the value 1") {
		t.Errorf("got %v", err)
	}
}

func TestParseOutliers(t *testing.T) {
	for in, want := range map[string]string{"": "none", "none": "none", "iqr": "iqr:3", "mad:4.5": "mad:4.5", "sigma": "sigma:5"} {
		if o, err := ParseOutliers(in); err != nil || o.String() != want {
			t.Errorf("%q: %v, %v", in, o, err)
		}
	}
	for _, in := range []string{"tukey", "iqr:", "mad:-1", "sigma:x", "sigma:NaN"} {
		if _, err := ParseOutliers(in); err == nil {
			t.Errorf("%q is accepted", in)
		}
	}
}

func TestQuantile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 1; n < 200; n++ {
		v := make([]float64, n)
		for i, p := range rng.Perm(n) {
			v[i] = float64(p / 3) // with ties
		}
		for _, q := range []float64{0, 0.25, 0.5, 0.75, 1} {
			if got, want := quantile(v, q), float64(int(q*float64(n-1))/3); got != want {
				t.Fatalf("%d values, %g: got %g, want %g", n, q, got, want)
			}
		}
	}
}
