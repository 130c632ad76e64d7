package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// programDraws are the draws of a program in a test of frequencies.
func programDraws() int {
	if testing.Short() {
		return 10_000
	}
	return 100_000
}

// modelDraws returns the number of draws of a model: a million for some group sizes,
// fewer for others.
func modelDraws(n int) int {
	if !testing.Short() && (n == 2 || n == 7 || n == model.MaxPaths) {
		return 1_000_000
	}
	return 100_000
}

// checkShares compares how often each path was taken with its share, by
// Pearson's χ². The bound is passed once in 30,000 runs; the seeds are fixed.
func checkShares(t *testing.T, taken []int, share []float64) {
	t.Helper()
	var total, sum float64
	for _, w := range share {
		sum += w
	}
	for _, k := range taken {
		total += float64(k)
	}
	var chi2 float64
	dof := -1.0
	for i, w := range share {
		if w == 0 {
			if taken[i] != 0 {
				t.Errorf("path %d has no share, but was taken %d times", i, taken[i])
			}
			continue
		}
		want := total * w / sum
		chi2 += (float64(taken[i]) - want) * (float64(taken[i]) - want) / want
		dof++
	}
	if dof == 0 {
		return
	}
	// Wilson and Hilferty's approximation of the quantile at 4 sigma.
	k := 2 / (9 * dof)
	if bound := dof * math.Pow(1-k+4*math.Sqrt(k), 3); chi2 > bound {
		t.Errorf("chi2 is %.1f, more than %.1f, for %v instead of shares %v", chi2, bound, taken, share)
	}
}

// equal returns n equal shares.
func equal(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

// randomWeights are small, so that a shift by one grid would be seen, one of
// them 0 if there are more than two.
func randomWeights(rnd *rand.Rand, n int) (list []uint32, share []float64) {
	for i := range n {
		w := 1 + rnd.Uint32N(9)
		if n > 2 && i == n/2 {
			w = 0
		}
		list, share = append(list, w), append(share, float64(w))
	}
	return list, share
}

// modelTaken counts which of n paths a model takes.
func modelTaken(t *testing.T, cfg model.Config, g model.Group) []int {
	t.Helper()
	rnd := rand.New(rand.NewPCG(uint64(len(g.Ports)), 3))
	cfg.Random = func(lo, hi uint64) uint64 { return lo + rnd.Uint64N(hi-lo+1) }
	m, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.SetGroup(0, g)
	taken := make([]int, len(g.Ports))
	p := tcp(0, 1)
	for range modelDraws(len(g.Ports)) {
		taken[m.Ingress(&p, 1).Slot]++
	}
	return taken
}

// programTaken counts which paths of group 0 a program takes, and compares it
// with the model on the way.
func (r *rig) programTaken() []int {
	r.t.Helper()
	taken := make([]int, len(r.groups[0].Ports))
	for range programDraws() {
		slot := r.send(tcp(0, 1))
		taken[slot]++
		q := r.queues[r.groups[0].Ports[slot]]
		r.sw.Free(q.items[0].p)
		q.items = q.items[:0]
	}
	return taken
}

// groupOf returns a group of n ports.
func groupOf(n int) model.Group {
	var g model.Group
	for i := range n {
		g.Ports = append(g.Ports, firstPort+i)
	}
	return g
}

// rigOf returns a rig with one group of n paths.
func rigOf(t *testing.T, name string, p codegen.Params, n int, weights []uint32) *rig {
	t.Helper()
	p.Ports = n
	r := newRig(t, scheme{name, p}, uint64(n))
	g := groupOf(n)
	g.Weights = weights
	for _, port := range g.Ports {
		r.setPort(port, 64, 1)
	}
	r.setGroup(0, g)
	return r
}

func TestGridMatchesWeights(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 1))
	for n := 2; n <= model.MaxPaths; n++ {
		weights, share := randomWeights(rnd, n)
		g := groupOf(n)
		g.Weights = weights
		checkShares(t, modelTaken(t, model.Config{Granularity: "packet", Signal: "weights", Choice: "grid", Guard: "none"}, g), share)
	}
	for _, n := range []int{2, 3, 7, 16} {
		weights, share := randomWeights(rnd, n)
		checkShares(t, rigOf(t, "packet-weights-grid", codegen.Params{}, n, weights).programTaken(), share)
	}
}

func TestUniformIsUniform(t *testing.T) {
	t.Parallel()
	for n := 2; n <= model.MaxPaths; n++ {
		checkShares(t, modelTaken(t, model.Config{Granularity: "packet", Signal: "none", Choice: "uniform", Guard: "none"}, groupOf(n)), equal(n))
	}
	for _, n := range []int{2, 5, 16} {
		checkShares(t, rigOf(t, "rps", codegen.Params{}, n, nil).programTaken(), equal(n))
	}
}

func TestEqualQueuesAreUniform(t *testing.T) {
	t.Parallel()
	for name, poly := range map[string]*fitting.Poly{"qall-pkt": nil, "qall-linear": paperPoly(1)} {
		for _, n := range []int{2, 6, 16} {
			r := rigOf(t, name, codegen.Params{Set: map[string]string{"tb": "0s"}, Coeffs: poly}, n, nil)
			for _, port := range r.groups[0].Ports {
				r.measure(port, 0, 1000)
				r.measure(port, 20, 1500)
			}
			if c := r.cell("q_C", firstPort); c == 0 {
				t.Fatalf("%s: C is 0: nothing is tested", name)
			}
			checkShares(t, r.programTaken(), equal(n))
		}
	}
}

// DRILL that looks at everything takes the least loaded path.
func TestDRILLAllIsLeastLoaded(t *testing.T) {
	t.Parallel()
	for n := 2; n <= model.MaxPaths; n++ {
		r := rigOf(t, "drill", codegen.Params{StatePath: "shared", Set: map[string]string{"d": fmt.Sprint(n), "m": "0"}}, n, nil)
		rnd := rand.New(rand.NewPCG(uint64(n), 5))
		ties := make([]int, n)
		for range 300 {
			least := 1 << 30
			lens := make([]int, n)
			for i, port := range r.groups[0].Ports {
				lens[i] = rnd.IntN(6)
				least = min(least, lens[i])
				r.measure(port, lens[i], r.now+1)
			}
			slot := r.send(tcp(0, 1))
			if lens[slot] != least {
				t.Fatalf("of queues %v path %d is taken", lens, slot)
			}
			ties[slot]++
		}
		checkShares(t, ties, equal(n))
	}
}
