package fitting

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestMonotone(t *testing.T) {
	for _, degree := range []int{1, 2, 3, 5, 8} {
		// Traffic that falls and then rises with L, and that rises with T at the end.
		s := new(Rows)
		rng := rand.New(rand.NewPCG(3, 3))
		for range 3000 {
			u, v := rng.Float64(), rng.Float64()
			y := math.Sin(4*u)*(1-u) + 2*u - v + 1.2*v*v*v + 0.05*rng.NormFloat64()
			s.Append(Row{y + 5, 255 * u, 1000 * v})
		}
		free, held := mustFit(t, s, Options{Degree: degree}), mustFit(t, s, Options{Degree: degree, Monotone: true})
		for i := range 101 {
			for j := range 101 {
				du, dv := slopes(held.Coeff, degree, float64(i)/100, float64(j)/100)
				if du < -2e-3 || dv > 2e-3 {
					t.Fatalf("degree %d: slopes %g and %g at %d, %d", degree, du, dv, i, j)
				}
			}
		}
		if held.Train.RMSE < free.Train.RMSE*(1-1e-12) {
			t.Errorf("degree %d: the constraint improves the fit: %g after %g", degree, held.Train.RMSE, free.Train.RMSE)
		}
		if degree > 2 && held.Projection.Against == 0 {
			t.Errorf("degree %d: nothing to project", degree)
		}
	}
}

// TestMonotoneKeeps: a fit that is already monotone does not change.
func TestMonotoneKeeps(t *testing.T) {
	s := randomRows(500, 1, []float64{1, 2, -3}, 0.1, 2)
	a, b := mustFit(t, s, Options{Degree: 1}), mustFit(t, s, Options{Degree: 1, Monotone: true})
	if relative(a.Coeff, b.Coeff) != 0 || b.Low == nil {
		t.Errorf("%v became %v", a.Coeff, b.Coeff)
	}
}

// TestNonNegative checks the conditions of Kuhn and Tucker.
func TestNonNegative(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		rows, n := 1+rng.IntN(8), 1+rng.IntN(12)
		cols := make([][]float64, n)
		target := make([]float64, rows)
		for i := range rows {
			target[i] = rng.NormFloat64()
		}
		for j := range cols {
			cols[j] = make([]float64, rows)
			for i := range rows {
				cols[j][i] = rng.NormFloat64()
			}
		}
		x, err := nonNegative(cols, target)
		if err != nil {
			t.Fatal(err)
		}
		rest := append([]float64(nil), target...)
		for j, v := range x {
			if v < 0 {
				t.Fatalf("negative: %v", x)
			}
			for i := range rest {
				rest[i] -= v * cols[j][i]
			}
		}
		for j, v := range x {
			var w float64
			for i := range rest {
				w += cols[j][i] * rest[i]
			}
			if w > 1e-9 || v > 0 && math.Abs(w) > 1e-9 {
				t.Fatalf("column %d with coefficient %g has gradient %g", j, v, w)
			}
		}
	}
}

// slopes are the derivatives of evalPowers by u and by v.
func slopes(c []float64, degree int, u, v float64) (du, dv float64) {
	for k, t := range Terms(degree) {
		if t.I > 0 {
			du += c[k] * float64(t.I) * math.Pow(u, float64(t.I-1)) * math.Pow(v, float64(t.J))
		}
		if t.J > 0 {
			dv += c[k] * float64(t.J) * math.Pow(u, float64(t.I)) * math.Pow(v, float64(t.J-1))
		}
	}
	return du, dv
}

func TestMonotoneTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	s := new(Rows)
	for range 5000 {
		u, v := rng.Float64(), rng.Float64()
		s.Append(Row{2 + math.Sin(9*u)*0.4 + u - v + 0.8*v*v*v, 255 * u, 1000 * v})
	}
	f, p := fixed(t, s, Options{Degree: 8}, FixOptions{})
	free, err := f.Bake(p, s, TableOptions{LBits: 5, TBits: 5, Levels: 256})
	if err != nil {
		t.Fatal(err)
	}
	held, err := f.Bake(p, s, TableOptions{LBits: 5, TBits: 5, Levels: 256, Monotone: true})
	if err != nil {
		t.Fatal(err)
	}
	wrong := func(b *Table) (n int) {
		for l := range 32 {
			for v := range 32 {
				if l > 0 && b.Level[l*32+v] < b.Level[(l-1)*32+v] || v > 0 && b.Level[l*32+v] > b.Level[l*32+v-1] {
					n++
				}
			}
		}
		return n
	}
	if wrong(free) == 0 || wrong(held) != 0 {
		t.Errorf("%d entries out of order, %d when held", wrong(free), wrong(held))
	}
}

// TestIsotonic checks the condition that only Dykstra's result meets: no small feasible
// move improves it.
func TestIsotonic(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	const nl, nt = 4, 5
	for range 50 {
		from, weight := make([]float64, nl*nt), make([]float64, nl*nt)
		for i := range from {
			from[i], weight[i] = rng.NormFloat64(), 0.1+rng.Float64()
		}
		x := append([]float64(nil), from...)
		isotonic(x, weight, nl, nt)
		cost := func(x []float64) (sum float64) {
			for i, v := range x {
				sum += weight[i] * (v - from[i]) * (v - from[i])
			}
			return sum
		}
		best := cost(x)
		for range 2000 {
			// Towards any other monotone grid, which the first one is convex with.
			y := make([]float64, nl*nt)
			for l := range nl {
				for v := range nt {
					if l > 0 {
						y[l*nt+v] = y[(l-1)*nt+v]
					} else {
						y[v] = -3
					}
					y[l*nt+v] += rng.ExpFloat64()
				}
			}
			for l := range nl {
				for v := nt - 2; v >= 0; v-- {
					y[l*nt+v] = max(y[l*nt+v], y[l*nt+v+1])
				}
			}
			for l := 1; l < nl; l++ {
				for v := range nt {
					y[l*nt+v] = max(y[l*nt+v], y[(l-1)*nt+v])
				}
			}
			step := 0.01 * rng.Float64()
			for i := range y {
				y[i] = x[i] + step*(y[i]-x[i])
			}
			if c := cost(y); c < best-1e-9 {
				t.Fatalf("cost %g is not the least: %g", best, c)
			}
		}
	}
}
