package lab

import (
	"embed"
	"fmt"
	"slices"
	"strings"
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
func Paper(paper, figure string, full bool) ([]*Experiment, error) {
	var list []*Experiment
	var figures []string
	for _, name := range paperNames() {
		if name != paper && !strings.HasPrefix(name, paper+"-") {
			continue
		}
		text, err := PaperFile(name)
		if err != nil {
			return nil, err
		}
		x, err := Load("papers/"+name+".yaml", text, nil, nil)
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
			list = append(list, x.only(figure))
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

// AllFigures stands for the name of a figure.
const AllFigures = "all"

// Only keeps of an experiment what a figure needs.
func (x *Experiment) Only(figure string) (*Experiment, error) {
	if figure == AllFigures {
		return x, nil
	}
	var figures []string
	for _, t := range x.Targets {
		if !slices.Contains(figures, t.Figure) {
			figures = append(figures, t.Figure)
		}
	}
	if !slices.Contains(figures, figure) {
		return nil, fmt.Errorf("%s has no target of a figure %q: want one of %s", x.Name, figure, strings.Join(append(figures, AllFigures), ", "))
	}
	return x.only(figure), nil
}

// only keeps of an experiment the targets of a figure, and the cases that they
// are about.
func (x *Experiment) only(figure string) *Experiment {
	if figure == "" {
		return x
	}
	cut := *x
	cut.Name += "-" + figure
	cut.figure = figure
	cut.Targets, cut.Cases = nil, nil
	wanted := map[string]bool{}
	for _, t := range x.Targets {
		if t.Figure == figure {
			cut.Targets = append(cut.Targets, t)
			wanted[t.Case] = true
			if t.AgainstCase != "" {
				wanted[t.AgainstCase] = true
			}
		}
	}
	for _, c := range x.Cases {
		if wanted[c.Name] || c.ceiling != "" && wanted[c.ceilingOf] || len(wanted) == 0 {
			cut.Cases = append(cut.Cases, c)
		}
	}
	return &cut
}
