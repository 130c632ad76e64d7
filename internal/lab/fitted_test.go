package lab

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// TestObserved fits observations of a run, and checks that shares differ.
func TestObserved(t *testing.T) {
	text := strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[ecmp]", 1) + "observe: {every: 100us, switches: [l1], test: 0.25}\n"
	text = strings.Replace(text, "metrics: [", "metrics: [fit-rows, fit-pearson-t, fit-r2-1, fit-mre-1, ", 1)
	for _, r := range run(t, &Runner{}, load(t, text)).Results {
		m := r.Metrics
		if n := m["fit-rows"]; n < 50 || n > 200 { // two ports, 10 ms
			t.Errorf("%g rows", n)
		}
		if m["fit-pearson-t"] >= 0 || m["fit-r2-1"] == 0 || m["fit-r2-1"] > 1 || m["fit-mre-1"] <= 0 {
			t.Errorf("seed %d: %v", r.Seed, m)
		}
	}
	plain := run(t, &Runner{}, load(t, tiny)).Results[0].Metrics
	if _, ok := plain["fit-r2-1"]; ok {
		t.Error("a fit of what was not observed")
	}
}

// TestCandidates: with candidate paths, a scheme sends less to a port with fewer paths
// behind it. The program differs only if this matters.
func TestCandidates(t *testing.T) {
	const rows = `
schemes:
  - {scheme: rps, label: ports}
  - {scheme: rps, label: paths, candidates: paths}
topology: qall-asym
traffic: [{workload: webserver, pattern: halves}]
loads: [0.2]
duration: 200ms
engine: native
`
	c := run(t, &Runner{}, load(t, rows))
	for label, want := range map[string][2]float64{"ports": {0.25, 0.25}, "paths": {1. / 3, 1. / 6}} {
		p := c.Row("", label, 0.2).Runs[0].Plots
		for i, name := range p.Names {
			share := want[0]
			if strings.HasSuffix(name, "-s2") {
				share = want[1]
			}
			if strings.HasPrefix(name, "l1:") && (p.Shares[i] < share-0.03 || p.Shares[i] > share+0.03) {
				t.Errorf("%s: %s carries %.3f, want %.3f", label, name, p.Shares[i], share)
			}
		}
	}
	if _, err := (&Runner{}).Jobs(load(t, strings.Replace(rows, "qall-asym", "qall", 1))); err == nil || !strings.Contains(err.Error(), "same program") {
		t.Errorf("paths that are ports: %v", err)
	}
}

// TestCoefficientsInPlace: coeffs may contain a model, with the same results as a file
// with that model.
func TestCoefficientsInPlace(t *testing.T) {
	const model = `{"format":"p4lb-model","version":1,"degree":1,"scale":1000,"coeff":[%s],"l":{"min":0,"max":255},"t":{"min":29,"max":250},"cmax":1087}`
	const rows = "[qall-linear, {scheme: qall-linear, label: own, coeffs: '" + model + "'}]"
	with := func(coefficients string) string {
		return strings.Replace(tiny, "[qall-poly3, ecmp, drill]", strings.Replace(rows, "%s", coefficients, 1), 1)
	}
	c := run(t, &Runner{}, load(t, with("259,854,-149")))
	if a, b := c.Row("", "own", 0.6).Estimate("fct-mean").Mean, c.Row("", "qall-linear", 0.6).Estimate("fct-mean").Mean; !(a > 0) || a == b {
		t.Errorf("own coefficients give %g ms, the paper's %g", a, b)
	}
	if _, err := spec.Load("x.yaml", []byte(with("259,854")), nil, nil); err == nil || !strings.Contains(err.Error(), "reading coeffs") {
		t.Errorf("too few coefficients: %v", err)
	}
}
