package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestGallery runs the examples for training clusters with one seed and checks the
// conclusions that docs/ai-fabrics.md draws from them.
func TestGallery(t *testing.T) {
	leftToPlainRun(t)
	files, err := filepath.Glob("../../examples/ai-*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples %v: %v", files, err)
	}
	ratios := map[string]float64{} // by example, case and scheme
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		x, err := spec.Load(file, text, os.ReadFile, nil)
		if err != nil {
			t.Fatal(err)
		}
		x.Seeds = spec.FirstSeeds(1)
		for _, row := range run(t, &Runner{}, x).Rows {
			metric := "cct-ratio"
			if len(row.Case.Jobs) > 0 {
				metric = "iteration-ratio"
			}
			ratio := row.Runs[0].Metrics[metric]
			if ratio < 1 || ratio > 15 {
				t.Errorf("%s, %s, %s: time over ideal %g: want 1 to 15", x.Name, row.Case.Name, row.Scheme.Label, ratio)
			}
			ratios[x.Name+" "+row.Case.Name+" "+row.Scheme.Label] = ratio
		}
	}
	for _, c := range []struct {
		better, worse string
		factor        float64 // between them, at least
	}{
		{"ai-failed-links two ar", "ai-failed-links two ecmp", 1.5},
		{"ai-degraded-spine unknown ar", "ai-degraded-spine unknown rps", 2},
		{"ai-degraded-spine known wcmp", "ai-degraded-spine unknown wcmp", 1.5},
		{"ai-degraded-spine unknown ar-flowlet", "ai-degraded-spine unknown ecmp", 1.2},
		{"ai-experts slow-spine ar", "ai-experts slow-spine rps", 2},
		{"ai-jobs packed ecmp", "ai-jobs random ecmp", 1.3},
		{"ai-jobs random ar", "ai-jobs random ecmp", 1.3},
		{"ai-experts slow-spine ar", "ai-experts slow-spine-reps ecmp", 1.5},
	} {
		a, b := ratios[c.better], ratios[c.worse]
		if !(a > 0 && b > c.factor*a) {
			t.Errorf("%s takes %.3g of its ideal and %s %.3g: want a factor of %g between them", c.better, a, c.worse, b, c.factor)
		}
	}
}
