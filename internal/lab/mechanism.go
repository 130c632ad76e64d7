package lab

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// A Mechanism explains why rows of a paper differ from the printed results, with counters of the
// runs as evidence.
type Mechanism struct {
	Experiment string   `yaml:"experiment"`
	Figure     string   `yaml:"figure"`
	Rows       []string `yaml:"rows"` // prefixes of row names
	Why        string   `yaml:"why"`
}

// Mechanisms returns the recorded mechanisms of experiments for a figure, or for all
// (spec.AllFigures, "").
func Mechanisms(list []*spec.Experiment, figure string) ([]Mechanism, error) {
	text, err := paperFiles.ReadFile("papers/recorded/mechanisms.yaml")
	if err != nil {
		return nil, err
	}
	var all, found []Mechanism
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("reading the mechanisms: %w", err)
	}
	for _, m := range all {
		for _, x := range list {
			if m.Experiment == x.File && (figure == "" || figure == spec.AllFigures || figure == m.Figure) {
				found = append(found, m)
			}
		}
	}
	return found, nil
}

// String returns the mechanism as a line of the paper's page.
func (m *Mechanism) String() string {
	return fmt.Sprintf("%s, %s (%s): %s", m.Experiment, m.Figure, strings.Join(m.Rows, "; "), m.Why)
}
