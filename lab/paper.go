package lab

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/lab/spec"
)

//go:embed papers/*.yaml papers/recorded/*.txt papers/recorded/mechanisms.yaml
var paperFiles embed.FS

// Recorded is what the recorded results of a paper's experiments come to, and how
// long running them takes: the summary of its page in docs/reproduction.
func Recorded(paper string) (string, error) {
	text, err := paperFiles.ReadFile("papers/recorded/" + paper + ".txt")
	if err != nil {
		return "", fmt.Errorf("nothing is recorded of %q", paper)
	}
	return string(text), nil
}

// Papers lists the papers that there are experiments of.
func Papers() []string {
	var names []string
	for _, f := range paperNames() {
		name, _, _ := strings.Cut(f, "-")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// paperNames lists the experiments of the papers, without .yaml.
func paperNames() []string {
	entries, err := paperFiles.ReadDir("papers")
	if err != nil {
		panic(err) // it is embedded
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	return names
}

// PaperFile is the text of an experiment of a paper.
func PaperFile(name string) ([]byte, error) { return paperFiles.ReadFile("papers/" + name + ".yaml") }

// Paper reads the experiments of a paper: all, or what a figure needs. full
// takes them as large as the paper has them.
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
			if !slices.Contains(figures, f) {
				figures = append(figures, f)
			}
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
