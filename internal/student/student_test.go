package student

import (
	"math"
	"testing"
)

// TestTable compares with printed tables (Abramowitz and Stegun, table 26.10): t for a
// two-sided level of 95 %, and of 99 %.
func TestTable(t *testing.T) {
	for _, c := range []struct{ n, t95, t99 float64 }{{1, 12.706, 63.657}, {2, 4.303, 9.925}, {5, 2.571, 4.032}, {10, 2.228, 3.169}, {30, 2.042, 2.750}, {120, 1.980, 2.617}} {
		for p, want := range map[float64]float64{0.975: c.t95, 0.995: c.t99} {
			got := T(c.n).Quantile(p)
			if math.Abs(got-want) > 0.0006 {
				t.Errorf("t of %v at %v: %v, want %v", c.n, p, got, want)
			}
			if s := T(c.n).Survival(got); math.Abs(s-(1-p)) > 1e-9 {
				t.Errorf("above t of %v at %v lies %v", c.n, p, s)
			}
		}
	}
	if q, s := T(3).Quantile(0.5), T(3).Survival(0); q != 0 || s != 0.5 {
		t.Errorf("the middle is %v, above it lies %v", q, s)
	}
}
