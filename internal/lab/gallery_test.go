package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// galleryConclusions are rows of the examples for training clusters, by example, case and
// scheme, of which one is better than the other in docs/ai-fabrics.md.
var galleryConclusions = []struct {
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
}

// compared lists the schemes of a case that have a conclusion.
func compared(x *spec.Experiment, c *spec.Case) []string {
	var list []string
	for _, s := range x.SchemesOf(c) {
		row := x.Name + " " + c.Name + " " + s.Label
		for _, known := range galleryConclusions {
			if known.better == row || known.worse == row {
				list = append(list, s.Label)
				break
			}
		}
	}
	return list
}

// TestGallery runs the compared rows of the examples with one seed and checks the
// conclusions.
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
		var cases []spec.Case
		for _, c := range x.Cases {
			if c.Schemes, c.Seeds = compared(x, &c), spec.FirstSeeds(1); len(c.Schemes) > 0 {
				cases = append(cases, c)
			}
		}
		x.Cases = cases
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
	for _, c := range galleryConclusions {
		a, b := ratios[c.better], ratios[c.worse]
		if !(a > 0 && b > c.factor*a) {
			t.Errorf("%s takes %.3g of its ideal and %s %.3g: want a factor of %g between them", c.better, a, c.worse, b, c.factor)
		}
	}
}
