package lab

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/lab/chart"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/play/share"
	"github.com/p4lb/p4lb/internal/scheme/advice"
	"github.com/p4lb/p4lb/internal/text/lists"
)

//go:embed report.tmpl
var reportText string

// reportFile is the page's name in a folder of results.
const reportFile = "report.html"

// An Origin holds the command, version and date of a report, with which a reader can repeat it.
type Origin struct {
	Command string
	Version string
	Date    string // "": omitted

	// Playground is the address of the page that opens the experiment; "": the page of p4lb play.
	Playground string
}

// Keep writes the report, the table and the figures into the folder of the runs. It writes each
// figure as SVG, PDF, LaTeX and CSV. Keep returns the name of the report.
func (c *Comparison) Keep(dir string, from Origin) (string, error) {
	figures := c.Figures()
	text, err := c.page(figures, from)
	if err != nil {
		return "", err
	}
	plots := filepath.Join(dir, "plots")
	if err := os.MkdirAll(plots, 0o777); err != nil {
		return "", fileError("making", plots, err)
	}
	for _, f := range figures {
		for format, data := range map[string][]byte{".svg": f.SVG(), ".pdf": f.PDF(), ".csv": f.CSV(), ".tex": f.PGF()} {
			if err := writeFile(filepath.Join(plots, f.Name+format), data); err != nil {
				return "", err
			}
		}
	}
	report := filepath.Join(dir, reportFile)
	return report, errors.Join(writeFile(filepath.Join(dir, "table.csv"), c.csv()), writeFile(report, text))
}

// Report returns the report as Keep writes it.
func (c *Comparison) Report(from Origin) ([]byte, error) { return c.page(c.Figures(), from) }

// A page is the data of the report's template.
type page struct {
	*Comparison
	Origin
	Head     []column
	Lines    [][]string
	Outcomes []Outcome
	Figures  []shown
	Open     string // address that opens the experiment in the playground, or ""
	Words    int    // index of the column with the comparison; -1: none
	Missing  int    // number of missing runs
	Runs     int
	Network  template.URL // picture of the network; "": there are several
	Style    template.CSS
	Light    template.CSS
	Dark     template.CSS
}

// A column is a heading of the table with its definition.
type column struct{ Text, Means string }

// A shown is a figure on the page.
type shown struct {
	*chart.Chart
	SVG  template.HTML
	Data template.JS
}

func (c *Comparison) page(figures []*chart.Chart, from Origin) ([]byte, error) {
	table, words := c.Table(), -1
	lead := c.leadColumns()
	if len(c.Experiment.Schemes) > 1 {
		// The comparison comes first, because pages have less horizontal than
		// vertical space.
		words = lead
		for i, line := range table {
			last := len(line) - 1
			table[i] = slices.Insert(line[:last:last], lead, line[last])
		}
	}
	p := page{
		Comparison: c, Origin: from, Words: words, Lines: table[1:], Outcomes: c.Judge(), Network: c.picture(),
		Style: template.CSS(chart.Style()), Light: template.CSS(chart.Colours(false)), Dark: template.CSS(chart.Colours(true)),
	}
	for _, text := range table[0] {
		p.Head = append(p.Head, column{Text: text})
	}
	metrics := slices.Concat(c.Experiment.Metrics, c.extra())
	for i, name := range metrics {
		m, err := c.Experiment.Metric(name)
		if err != nil {
			return nil, err
		}
		p.Head[len(p.Head)-len(metrics)+i].Means = m.About
	}
	p.Missing, p.Runs = c.Missing()
	if text := c.Experiment.Text(); text != nil {
		p.Open = share.Link(cmp.Or(from.Playground, share.Local), share.State{View: "network", YAML: string(text)})
	}
	for _, f := range figures {
		data, err := f.Data()
		if err != nil {
			return nil, fmt.Errorf("the figure %s: %w", f.Name, err)
		}
		p.Figures = append(p.Figures, shown{f, template.HTML(f.Inline()), template.JS(data)})
	}
	t, err := template.New("report").Funcs(template.FuncMap{"join": strings.Join, "add": func(a, b int) int { return a + b }, "file": func(name string) template.URL { return template.URL("plots/" + name) }}).Parse(reportText)
	if err != nil {
		return nil, fmt.Errorf("the report's template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("writing the report: %w", err)
	}
	return b.Bytes(), nil
}

// Network returns the network of the experiment, or nil if its cases have several.
func (c *Comparison) Network() *fabric.Topology {
	var t *fabric.Topology
	for _, r := range c.Rows {
		if r.network == nil || t != nil && r.network != t && r.network.Name != t.Name {
			return nil
		}
		t = r.network
	}
	return t
}

// picture returns the picture of the network, if all cases share one.
func (c *Comparison) picture() template.URL {
	t := c.Network()
	if t == nil {
		return ""
	}
	return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(t.SVG()))
}

// A tuned is a parameter of a row's scheme, with its value and the advised value.
type tuned struct {
	Row, Name, Value, Default, Advised, Formula, Meaning string
}

// Parameters lists the parameters of the programs of all rows in the first case.
func (p page) Parameters() []tuned {
	var list []tuned
	c := &p.Experiment.Cases[0]
	for _, r := range p.rowsOf(c.Name) {
		if r.Load != p.Rows[0].Load {
			continue
		}
		advice := map[string]advice.Parameter{}
		if r.network != nil {
			for _, a := range r.Scheme.Advice(c, r.network) {
				advice[a.Name] = a
			}
		}
		for _, q := range r.Scheme.Parameters() {
			a := advice[q.Name]
			list = append(list, tuned{r.Scheme.Label, q.Name, r.Runs[0].Parameters[q.Name], q.Default, a.Value, a.Formula, q.Meaning})
		}
	}
	return list
}

// Sizes returns the mean number of flows of each size per run. The flows are the same in all
// rows.
func (p page) Sizes() [][2]string {
	var list [][2]string
	rows := p.rowsOf(p.Experiment.Cases[0].Name)
	if len(rows) == 0 {
		return nil
	}
	runs := heaviest(rows)[0].Runs
	for i := range sizeBins {
		n := 0
		for _, r := range runs {
			if i < len(r.Plots.Sizes) {
				n += r.Plots.Sizes[i].Flows
			}
		}
		if n > 0 {
			list = append(list, [2]string{sizeName(i), digits(float64(n) / float64(len(runs)))})
		}
	}
	return list
}

// Warned returns the warnings that the experiment does not accept.
func (p page) Warned() []spec.Warning { return spec.Unaccepted(p.Warnings) }

// Accepted returns the warnings that the experiment accepts, with its reasons.
func (p page) Accepted() []spec.Warning {
	return slices.DeleteFunc(slices.Clone(p.Warnings), func(w spec.Warning) bool { return w.Reason == "" })
}

// Definitions returns the definitions of the table's metrics.
func (p page) Definitions() [][2]string {
	var list [][2]string
	for _, c := range p.Head {
		if c.Means != "" {
			list = append(list, [2]string{c.Text, c.Means})
		}
	}
	return list
}

// Settings lists the settings of the experiment for the report.
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
		if rows := p.rowsOf(c.Name); len(rows) > 0 && rows[0].network != nil {
			t := rows[0].network
			network = fmt.Sprintf("%s, %d switches, %d hosts", cmp.Or(network, t.Name), len(t.Switches), len(t.Hosts))
		}
		add(prefix+"network", network)
		for _, t := range c.Traffic {
			add(prefix+"traffic", t.Describe())
		}
		for i := range c.Jobs {
			add(prefix+"job", c.Jobs[i].Describe())
		}
		add(prefix+"transport", c.Transport.Kind)
		add(prefix+"modelling choices other than the defaults", c.Otherwise())
		add(prefix+"compared with other simulators", x.Apart(c))
		add(prefix+"flows begin within", c.Duration.String())
		add(prefix+"warm-up", fmt.Sprint(spec.Time(c.WarmupTime())))
		add(prefix+"seeds", strings.Trim(fmt.Sprint(c.Seeds), "[]"))
	}
	add("parameters", x.Values)
	if p.World == Sim {
		add("controller's latency", x.Latency.String())
	} else {
		add("real time, on", p.World)
	}
	return list
}

// Digests returns the digests of the rows' programs.
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
	slices.SortFunc(list, func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	return list
}

// Markdown returns the verdicts on the targets of an experiment, with its description and
// assumptions, as a section of a document.
func (c *Comparison) Markdown(command string, took time.Duration) []byte {
	x := c.Experiment
	var b bytes.Buffer
	fmt.Fprintf(&b, "### %s\n\n%s.\n\n`%s`", x.Name, strings.TrimSuffix(x.About, "."), command)
	if took > 0 {
		fmt.Fprintf(&b, " (%s)", took.Round(time.Second))
	}
	outcomes := c.Judge()
	b.WriteString("\n\n| | target | printed | measured | verdict |\n|---|---|---|---|---|\n")
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", o.Figure, o.Name, o.Printed, o.measuredAt(x), verdictMark(o))
	}
	b.WriteString("\n")
	if line := Corrected(outcomes); line != "" {
		fmt.Fprintf(&b, "%s%s.\n\n", strings.ToUpper(line[:1]), line[1:])
	}
	list := func(head string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&b, "%s: %s.\n\n", head, strings.Join(items, "; "))
		}
	}
	list("Assumed", x.Assumed)
	list("Modelling choices other than the defaults", perCase(x, (*spec.Case).Otherwise))
	list("Compared with other simulators", perCase(x, x.Apart))
	if x.Scaled != "" {
		list("Smaller than in the paper", []string{x.Scaled})
	}
	list("Warnings", lists.Map(spec.Unaccepted(c.Warnings), spec.Warning.String))
	return b.Bytes()
}

// perCase returns the results of the function of for all cases of an experiment. Cases with the
// same result share a line.
func perCase(x *spec.Experiment, of func(*spec.Case) string) []string {
	names, order := map[string][]string{}, []string(nil)
	for i := range x.Cases {
		if s := of(&x.Cases[i]); s != "" {
			if names[s] == nil {
				order = append(order, s)
			}
			names[s] = append(names[s], x.Cases[i].Name)
		}
	}
	for i, s := range order {
		if len(names[s]) < len(x.Cases) {
			order[i] = strings.Join(names[s], ", ") + ": " + s
		}
	}
	return order
}

// measuredAt returns the measured value, with the load if there are several loads.
func (o *Outcome) measuredAt(x *spec.Experiment) string {
	several := slices.ContainsFunc(x.Cases, func(c spec.Case) bool { return len(c.Loads) > 1 })
	if several && o.Measured != "" {
		return fmt.Sprintf("%s, load %s", o.Measured, spec.Number(o.Load))
	}
	return o.Measured
}

// verdictMark formats the verdict with its note, in bold if the target is met.
func verdictMark(o Outcome) string {
	s := string(o.Verdict)
	if good(o.Verdict) {
		s = "**" + s + "**"
	}
	if o.Note != "" {
		s += " (" + o.Note + ")"
	}
	return s
}
