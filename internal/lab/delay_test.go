package lab

import (
	"fmt"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest/manifesttest"
)

// TestDecisionDelay: every row that uses path information has a decision delay, on
// every architecture; other rows have none, nor has ar on BMv2, which counts packets
// where it decides. The manifest's types determine it: a
// second run with every sentence of the manifests replaced by an x gives the same
// figures.
func TestDecisionDelay(t *testing.T) {
	leftToPlainRun(t)
	bare := &scheme.Library{Sources: []scheme.Source{withoutMeanings}}
	for _, arch := range codegen.Archs {
		for _, name := range hardwareRows(arch) {
			t.Run(arch+"/"+name, func(t *testing.T) {
				row, err := codegen.Parse(name)
				if err != nil {
					t.Fatal(err)
				}
				if arch != codegen.Archs[0] {
					name += "@" + arch
				}
				result := ranOnce(t, name)
				own := row.Signal == "occupancy" && arch == codegen.Archs[0] // counted where the decision is made
				told := row.Signal != "none" && row.Signal != "weights" && !own || row.Guard != "none"
				if delay := result.Metrics["decision-delay"]; told != (delay > 0) {
					t.Errorf("the decision delay is %g ms of a row with the signal %s and the guard %s", delay, row.Signal, row.Guard)
				}
				x, err := spec.Load("t.yaml", fmt.Appendf(nil, onHardware, name), nil, bare)
				if err != nil {
					t.Fatal(err)
				}
				if a, b := written(t, result), written(t, run(t, &Runner{}, x).Row("", name, 0.6).Runs[0]); a != b {
					t.Errorf("two runs of one seed differ, the second without meanings:\n%s\n%s", a, b)
				}
			})
		}
	}
}

// withoutMeanings is the catalogue with an x for every sentence.
func withoutMeanings(name string) (scheme.Scheme, error) {
	s, err := madeOnce(name)
	if err != nil {
		return nil, err
	}
	return bareScheme{s}, nil
}

type bareScheme struct{ scheme.Scheme }

func (s bareScheme) Build(p codegen.Params) (*scheme.Program, error) {
	made, err := s.Scheme.Build(p)
	if err != nil {
		return nil, err
	}
	bare, err := manifesttest.Wipe(&made.Manifest)
	if err != nil {
		return nil, err
	}
	return scheme.New(made.Name, made.Arch, *bare, made.Digest, func() ([]byte, *p4.Program, error) {
		compiled, err := made.Compiled()
		if err != nil {
			return nil, nil, err
		}
		text, err := made.Text()
		return text, compiled, err
	}), nil
}
