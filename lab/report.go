package lab

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
)

//go:embed report.tmpl
var reportText string

// reportFile is the page's name in a folder of results.
const reportFile = "report.html"

// Keep writes what the comparison came to into the folder of its runs: the
// report, the plots and the table. It returns the name of the report.
func (c *Comparison) Keep(dir string) (string, error) {
	figures, err := c.Figures()
	if err != nil {
		return "", err
	}
	page, err := c.page(figures)
	if err != nil {
		return "", err
	}
	plots := filepath.Join(dir, "plots")
	if err := os.MkdirAll(plots, 0o777); err != nil {
		return "", fileError("making", plots, err)
	}
	for i := range figures {
		for _, format := range []string{"svg", "png"} {
			data, err := figures[i].Draw(format)
			if err != nil {
				return "", err
			}
			if err := WriteFile(filepath.Join(plots, figures[i].Name+"."+format), data); err != nil {
				return "", err
			}
		}
	}
	report := filepath.Join(dir, reportFile)
	return report, errors.Join(WriteFile(filepath.Join(dir, "table.csv"), c.csv()), WriteFile(report, page))
}

// A page is what the report's template gets.
type page struct {
	*Comparison
	Head     []string
	Lines    [][]string
	Outcomes []Outcome
	Figures  []shown
	Missing  int // runs
	Runs     int
}

type shown struct {
	Figure
	SVG template.HTML
}

func (c *Comparison) page(figures []Figure) ([]byte, error) {
	table := c.Table()
	p := page{Comparison: c, Head: table[0], Lines: table[1:], Outcomes: c.Judge()}
	for _, r := range c.Results {
		if p.Runs++; r == nil {
			p.Missing++
		}
	}
	for i := range figures {
		svg, err := figures[i].inline()
		if err != nil {
			return nil, err
		}
		p.Figures = append(p.Figures, shown{figures[i], template.HTML(svg)})
	}
	t, err := template.New("report").Funcs(template.FuncMap{"join": strings.Join}).Parse(reportText)
	if err != nil {
		return nil, fmt.Errorf("the report's template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("writing the report: %w", err)
	}
	return b.Bytes(), nil
}

// Settings are what the report says about how it was run.
func (p page) Settings() [][2]string {
	x := p.Experiment
	var list [][2]string
	add := func(name, value string) {
		if value != "" {
			list = append(list, [2]string{name, value})
		}
	}
	for i := range x.Cases {
		c := &x.Cases[i]
		prefix := ""
		if c.Name != "" {
			prefix = c.Name + ": "
		}
		network := c.Topology.Name
		if network == "" && len(p.Results) > 0 {
			network = "as stated in " + manifestFile
		}
		add(prefix+"network", network)
		for _, t := range c.Traffic {
			add(prefix+"traffic", t.describe())
		}
		add(prefix+"transport", c.Transport.Kind)
		add(prefix+"modelled otherwise than by default", c.otherwise())
		add(prefix+"flows begin within", c.Duration.String())
		add(prefix+"warm-up", fmt.Sprint(Time(c.warmup())))
		add(prefix+"seeds", fmt.Sprint(c.Seeds))
	}
	if p.World == Sim {
		add("controller's latency", x.Latency.String())
	} else {
		add("in real time, on", p.World)
	}
	return list
}

// otherwise lists the choices of modelling that differ from the defaults.
func (s *Setting) otherwise() string {
	var list []string
	for _, c := range s.Chosen() {
		list = append(list, fmt.Sprintf("%s: %s (default %s)", c.Key, c.Value, c.Default))
	}
	text := strings.Join(list, "; ")
	if same := s.nearest(); text != "" && len(same) > 0 {
		text += "; so they are all like " + strings.Join(same, ", ")
	}
	return text
}

// describe is the traffic in a line.
func (tr *Traffic) describe() string {
	what := tr.Workload
	switch {
	case tr.File != "":
		what = tr.File
	case tr.Size > 0 && tr.MinSize > 0:
		what = fmt.Sprintf("%v to %v", tr.MinSize, tr.Size)
	case tr.Size > 0:
		what = tr.Size.String()
	}
	if tr.Cut > 0 {
		what += fmt.Sprintf(" (at most %v)", tr.Cut)
	}
	return what + ", " + tr.Pattern
}

// Digests are the programs of the rows.
func (p page) Digests() [][2]string {
	var list [][2]string
	seen := map[string]bool{}
	for _, r := range p.Results {
		if r == nil {
			continue
		}
		for role, d := range r.Programs {
			name := r.Label + ", " + role
			if r.Arch != "" {
				name += ", for " + r.Arch
			}
			if !seen[name+d] {
				seen[name+d] = true
				list = append(list, [2]string{name, d[:16]})
			}
		}
	}
	return sortedPairs(list)
}
