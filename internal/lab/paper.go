package lab

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
)

//go:embed papers/*.yaml papers/recorded/*.txt papers/recorded/rows.tsv papers/recorded/mechanisms.yaml papers/recorded/coverage.yaml
var paperFiles embed.FS

// Recorded returns a summary of the recorded results of a paper's experiments and
// their run time, from the paper's page in docs/reproduction.
func Recorded(paper string) (string, error) {
	text, err := paperFiles.ReadFile("papers/recorded/" + paper + ".txt")
	if err != nil {
		return "", fmt.Errorf("nothing is recorded of %q", paper)
	}
	return string(text), nil
}

// A RecordedRow is a row of the paper's page in docs/reproduction: a number or an ordering
// printed in the paper, with the recorded result.
type RecordedRow struct {
	Experiment, Figure, Target string
	Printed, Measured          string
	Verdict                    string // verdict and its reason
}

// RecordedRows returns the rows of an experiment, or of one of its figures if figure is not
// empty.
func RecordedRows(experiment, figure string) []RecordedRow {
	text, err := paperFiles.ReadFile(recordedRowsFile)
	if err != nil {
		panic(err) // embedded files are always readable
	}
	var rows []RecordedRow
	for line := range strings.Lines(string(text)) {
		c := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if c[0] == experiment && (figure == "" || c[1] == figure) {
			rows = append(rows, RecordedRow{c[0], c[1], c[2], c[3], c[4], c[5]})
		}
	}
	return rows
}

const recordedRowsFile = "papers/recorded/rows.tsv"

// Papers lists the papers with experiments.
func Papers() []string {
	var names []string
	for _, f := range paperNames() {
		name, _, _ := strings.Cut(f, "-")
		names = lists.Add(names, name)
	}
	return names
}

// paperNames lists the experiments of the papers, without the ending .yaml.
func paperNames() []string {
	entries, err := paperFiles.ReadDir("papers")
	if err != nil {
		panic(err) // embedded files are always readable
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	return names
}

// PaperFile returns the text of an experiment of a paper.
func PaperFile(name string) ([]byte, error) { return paperFiles.ReadFile("papers/" + name + ".yaml") }

// Paper returns the experiments of a paper: all, or only those for a figure. full selects the
// paper's size.
func Paper(paper, figure string, full bool) ([]*spec.Experiment, error) {
	var list []*spec.Experiment
	var figures []string
	for _, name := range paperNames() {
		if name != paper && !strings.HasPrefix(name, paper+"-") {
			continue
		}
		text, err := PaperFile(name)
		if err != nil {
			return nil, err
		}
		x, err := spec.Load("papers/"+name+".yaml", text, nil, nil)
		if err != nil {
			return nil, err
		}
		x.File = name
		if full {
			x = x.Whole()
		}
		for _, f := range x.Figures {
			figures = lists.Add(figures, f)
		}
		if figure == "" || slices.Contains(x.Figures, figure) {
			list = append(list, x.OnlyFigure(figure))
		}
	}
	switch {
	case len(figures) == 0:
		return nil, fmt.Errorf("there are no experiments of %q: want one of %s", paper, strings.Join(Papers(), ", "))
	case len(list) == 0:
		return nil, fmt.Errorf("there is no experiment for %s of %s: want one of %s", figure, paper, strings.Join(figures, ", "))
	}
	return list, nil
}

// PaperExperiments lists the names of the experiments of all papers.
func PaperExperiments() []string { return paperNames() }
