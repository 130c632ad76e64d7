package play

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/provenance"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// An experimentForm holds the inputs of the network view.
type experimentForm struct {
	Topology   string          `json:"topology"` // a preset; if "", the sizes below apply
	Leaves     int             `json:"leaves"`
	Spines     int             `json:"spines"`
	Hosts      int             `json:"hosts"` // hosts of a leaf
	Rate       string          `json:"rate"`  // rate of a link in the fabric
	HostRate   string          `json:"hostRate"`
	Schemes    []string        `json:"schemes"`
	Workload   string          `json:"workload"`
	Pattern    string          `json:"pattern"`
	Cut        string          `json:"cut"` // the largest flow; "" means the default
	Load       float64         `json:"load"`
	Transport  string          `json:"transport"`
	Seeds      int             `json:"seeds"`
	Duration   string          `json:"duration"`
	Engine     string          `json:"engine"` // "" means p4
	Failure    *failureForm    `json:"failure"`
	Collective *collectiveForm `json:"collective"` // replaces the workload if set
}

// A failureForm takes a link down for a time.
type failureForm struct {
	Link  string `json:"link"`
	At    string `json:"at"`
	Until string `json:"until"`
}

// A collectiveForm is a collective operation.
type collectiveForm struct {
	Kind   string `json:"kind"`
	Size   string `json:"size"`
	Groups int    `json:"groups"`
	Order  string `json:"order"`
}

// A composed experiment is the file made from a form, with the command that runs
// it.
type composed struct {
	YAML    string `json:"yaml"`
	Command string `json:"command"`
	// Flags is the command without a file, or "" if flags cannot express the form.
	Flags string `json:"flags"`
}

// runCommand is the command that runs the playground's file.
const runCommand = "p4lb lab run playground.yaml"

func compose(_ context.Context, f experimentForm, _ Progress) (*composed, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("name: playground")
	if f.Topology != "" {
		line("topology: %s", scalar(f.Topology))
	} else {
		line("topology: {leaf-spine: {leaves: %d, spines: %d, hosts: %d, rate: %s, host-rate: %s, delay: 10us, host-delay: 10us, queue: 64}}",
			f.Leaves, f.Spines, f.Hosts, scalar(f.Rate), scalar(f.HostRate))
	}
	names := make([]string, len(f.Schemes))
	for i, s := range f.Schemes {
		names[i] = scalar(s)
	}
	line("schemes: [%s]", strings.Join(names, ", "))
	if c := f.Collective; c != nil {
		line("traffic: [{collective: %s, size: %s, groups: %d, order: %s}]", scalar(c.Kind), scalar(c.Size), c.Groups, scalar(c.Order))
	} else {
		cut := ""
		if f.Cut != "" {
			cut = ", cut: " + scalar(f.Cut)
		}
		line("traffic: [{workload: %s, pattern: %s%s}]", scalar(f.Workload), scalar(f.Pattern), cut)
		line("loads: [%s]", spec.Number(f.Load))
	}
	line("transport: %s", scalar(f.Transport))
	line("seeds: %d", f.Seeds)
	if f.Duration != "" && f.Collective == nil {
		line("duration: %s", scalar(f.Duration))
	}
	if f.Engine != "" && f.Engine != spec.EngineP4 {
		line("engine: %s", scalar(f.Engine))
	}
	if x := f.Failure; x != nil {
		line("faults:")
		until := ""
		if x.Until != "" {
			until = ", until: " + scalar(x.Until)
		}
		line("  - {at: %s%s, link: %s, down: true}", scalar(x.At), until, scalar(x.Link))
	}
	return &composed{b.String(), runCommand, f.flags()}, nil
}

// flags returns the form as flags of p4lb lab.
func (f *experimentForm) flags() string {
	if f.Topology == "" || f.Failure != nil || f.Collective != nil || len(f.Schemes) == 0 {
		return ""
	}
	words := []string{"p4lb", "lab", "--scheme", f.Schemes[0]}
	if len(f.Schemes) > 1 {
		words = append(words, "--vs", strings.Join(f.Schemes[1:], ","))
	}
	words = append(words, "--topology", f.Topology, "--workload", f.Workload, "--pattern", f.Pattern, "--load", spec.Number(f.Load), "--transport", f.Transport, "--seeds", strconv.Itoa(f.Seeds))
	if f.Cut != "" {
		words = append(words, "--cut", f.Cut)
	}
	if f.Duration != "" {
		words = append(words, "--duration", f.Duration)
	}
	if f.Engine != "" && f.Engine != spec.EngineP4 {
		words = append(words, "--engine", f.Engine)
	}
	return plain.Shell(words)
}

// scalar formats a text as a YAML scalar, quoted unless it is a plain word.
func scalar(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-.+_", r)
	}) {
		return text
	}
	return strconv.Quote(text)
}

// A RunRequest is a request to run an experiment.
type RunRequest struct {
	YAML  string `json:"yaml"`
	Files Files  `json:"files"` // files that the experiment may name
}

// A runProgress is a progress message during an experiment.
type runProgress struct {
	Done int    `json:"done"`
	Of   int    `json:"of"`
	Name string `json:"name"`
}

// A RunResult is the result of an experiment.
type RunResult struct {
	Name       string      `json:"name"`
	Table      [][]string  `json:"table"`
	About      []string    `json:"about"` // the description of each column
	Conclusion []string    `json:"conclusion"`
	Warnings   []string    `json:"warnings"`
	Figures    []Figure    `json:"figures"`
	Report     string      `json:"report"` // the contents of report.html
	Network    *Network    `json:"network"`
	Loads      []LinkLoads `json:"loads"`
	Command    string      `json:"command"`
	Seconds    float64     `json:"seconds"`
	Hops       int64       `json:"hops"` // packets received by switches
}

// A Figure is a figure of the report.
type Figure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	About string `json:"about"`
	Wide  bool   `json:"wide"` // draw it as wide as the page
	SVG   string `json:"svg"`
}

// A Network is the topology of the first case, for drawing.
type Network struct {
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
}

// A Node is a switch, or a host if its tier is 0.
type Node struct {
	Name string `json:"name"`
	Tier int    `json:"tier"`
	At   string `json:"at,omitempty"` // for a host, its switch
}

// A Link has a name for each direction; LinkLoads uses these names.
type Link struct {
	A    string `json:"a"`
	B    string `json:"b"`
	AToB string `json:"ab"`
	BToA string `json:"ba"`
	Rate string `json:"rate"`
}

// LinkLoads are the loads of the links between switches over virtual time, for the
// first seed of a row.
type LinkLoads struct {
	Row   string             `json:"row"`
	Times []float64          `json:"times"` // seconds
	Links map[string]*Series `json:"links"`
}

// A Series has one value for each time.
type Series struct {
	Use   []float64 `json:"use"`   // utilisation, 0 to 1
	Queue []int     `json:"queue"` // in packets
}

// Limits of an experiment in the playground.
const (
	maxYAML   = 256 << 10
	maxEvents = 3e8       // events of one run: about ten minutes in a browser
	maxBytes  = 350 << 20 // memory of one run
	maxNodes  = 10_000    // hosts and switches
	maxRuns   = 1000
)

func run(ctx context.Context, r RunRequest, progress Progress) (*RunResult, error) {
	if len(r.YAML) > maxYAML {
		return nil, fmt.Errorf("the experiment has %d bytes: want at most %d", len(r.YAML), maxYAML)
	}
	began := time.Now()
	library, err := r.Files.library()
	if err != nil {
		return nil, err
	}
	x, err := spec.Load("playground.yaml", []byte(r.YAML), r.Files.read, library)
	if err != nil {
		return nil, experimentError(err)
	}
	if n := x.Runs(); n > maxRuns {
		return nil, fmt.Errorf("the experiment has %.0f runs: want at most %d in the playground", n, maxRuns)
	}
	c := &collector{}
	runner := lab.Runner{
		Read: r.Files.read, Links: c.links, Limits: lab.Limits{Events: maxEvents, Bytes: maxBytes, Nodes: maxNodes},
		Progress: func(p lab.Progress) {
			progress(runProgress{p.Done, p.Of, p.Name})
			runtime.Gosched() // a browser has only one thread
		},
	}
	compared, err := runner.Run(ctx, x)
	if err != nil {
		if errors.Is(err, lab.ErrTooLarge) {
			err = fmt.Errorf("%w. The playground is for small experiments: p4lb lab run takes larger ones", err)
		}
		return nil, experimentError(err)
	}
	out := &RunResult{
		Name: x.Name, Table: compared.Table(), Conclusion: compared.Conclusion(), Warnings: []string{}, Figures: []Figure{},
		Command: runCommand, Seconds: time.Since(began).Seconds(),
	}
	for _, w := range spec.Unaccepted(compared.Warnings) {
		out.Warnings = append(out.Warnings, w.String())
	}
	for _, name := range x.Metrics {
		if m, err := spec.MetricNamed(name, x.Classes); err == nil {
			out.About = append(out.About, m.About)
		}
	}
	for _, f := range compared.Figures() {
		out.Figures = append(out.Figures, Figure{f.Name, f.Title, f.About, f.Wide, string(f.SVG())})
	}
	report, err := compared.Report(lab.Origin{Command: runCommand, Version: provenance.This().String()})
	if err != nil {
		return nil, err
	}
	out.Report = string(report)
	for _, row := range compared.Rows {
		for _, one := range row.Runs {
			out.Hops += one.Hops
		}
	}
	out.Network = networkOf(compared.Network())
	out.Loads, err = c.loads()
	return out, err
}

// experimentError returns an error of an experiment with its line in a separate
// field.
func experimentError(err error) error {
	if f, ok := errors.AsType[*spec.FileError](err); ok {
		return &Error{Message: strings.TrimPrefix(f.Error(), "playground.yaml:"), Line: f.Line}
	}
	return err
}

// networkOf returns a topology for drawing.
func networkOf(t *fabric.Topology) *Network {
	if t == nil {
		return nil
	}
	n := &Network{Nodes: []Node{}, Links: []Link{}}
	for _, s := range t.Switches {
		n.Nodes = append(n.Nodes, Node{Name: s.Name, Tier: s.Role.Tier()})
	}
	for _, h := range t.Hosts {
		n.Nodes = append(n.Nodes, Node{Name: h.Name, At: h.Switch})
	}
	for _, l := range t.Links {
		if t.Switch(l.A.Node) == nil || t.Switch(l.B.Node) == nil {
			continue
		}
		n.Links = append(n.Links, Link{
			A: l.A.Node, B: l.B.Node, Rate: l.Rate.String(),
			AToB: l.A.String() + ">" + l.B.Node, BToA: l.B.String() + ">" + l.A.Node,
		})
	}
	return n
}

// A collector stores the link samples of the first seed of each row.
type collector struct {
	rows []*collected
}

type collected struct {
	row  string
	text bytes.Buffer
}

// maxLinkText bounds the link samples of a row in bytes.
const maxLinkText = 16 << 20

func (c *collector) links(j *lab.Job) io.Writer {
	row := j.Scheme.Label
	if j.Case.Name != "" {
		row = j.Case.Name + ": " + row
	}
	if j.Load != float64(j.Case.Loads[0]) || j.Seed != j.Case.Seeds[0] {
		return nil
	}
	kept := &collected{row: row}
	c.rows = append(c.rows, kept)
	return limited{&kept.text}
}

// A limited is a writer that discards everything beyond maxLinkText.
type limited struct{ to *bytes.Buffer }

func (l limited) Write(b []byte) (int, error) {
	if l.to.Len()+len(b) <= maxLinkText {
		l.to.Write(b)
	}
	return len(b), nil
}

// loads parses the collected samples.
func (c *collector) loads() ([]LinkLoads, error) {
	list := []LinkLoads{}
	for _, row := range c.rows {
		l := LinkLoads{Row: row.row, Times: []float64{}, Links: map[string]*Series{}}
		rows := csv.NewReader(&row.text)
		rows.ReuseRecord = true
		if _, err := rows.Read(); err != nil {
			continue // no sample
		}
		for {
			fields, err := rows.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || len(fields) < 7 {
				break // the last line is incomplete
			}
			at, err1 := strconv.ParseFloat(fields[0], 64)
			use, err2 := strconv.ParseFloat(fields[4], 64)
			queue, err3 := strconv.Atoi(fields[6])
			if err := cmp.Or(err1, err2, err3); err != nil {
				return nil, fmt.Errorf("reading the loads of links: %w", err)
			}
			if n := len(l.Times); n == 0 || l.Times[n-1] != at {
				l.Times = append(l.Times, at)
			}
			name := fields[1] + ">" + fields[2]
			s := l.Links[name]
			if s == nil {
				s = &Series{}
				l.Links[strings.Clone(name)] = s
			}
			s.fill(len(l.Times) - 1)
			s.Use, s.Queue = append(s.Use, use), append(s.Queue, queue)
		}
		for _, s := range l.Links {
			s.fill(len(l.Times))
		}
		list = append(list, l)
	}
	return list, nil
}

// fill pads a series with zeros, because idle links have no samples.
func (s *Series) fill(n int) {
	for len(s.Use) < n {
		s.Use, s.Queue = append(s.Use, 0), append(s.Queue, 0)
	}
}
