package play

import (
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/lab"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/provenance"
)

// A Listing holds the choices that the page's controls offer.
type Listing struct {
	Version     string          `json:"version"`
	Rows        []codegen.Row   `json:"rows"`
	Blocks      []codegen.Block `json:"blocks"`
	Archs       []string        `json:"archs"`
	Roles       []string        `json:"roles"`
	StatePaths  []string        `json:"statePaths"`
	MaxPaths    int             `json:"maxPaths"`
	Examples    []Example       `json:"examples"`
	Own         []OwnScheme     `json:"own"`
	Experiments []Experiment    `json:"experiments"`
	Topologies  []Topology      `json:"topologies"`
	Workloads   []string        `json:"workloads"`
	Patterns    []string        `json:"patterns"`
	Transports  []string        `json:"transports"`
	Collectives []string        `json:"collectives"`
	Orders      []string        `json:"orders"`
}

// An Example is one of p4lb's example programs, with its test.
type Example struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Text  string `json:"text"`
	Test  string `json:"test"`
}

// An Experiment is an experiment file.
type Experiment struct {
	Name  string `json:"name"`
	About string `json:"about"`
	YAML  string `json:"yaml"`
}

// A Topology is a preset topology.
type Topology struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func list() *Listing {
	l := &Listing{
		Version: provenance.This().String(), Rows: codegen.Standard().Rows(), Blocks: codegen.Standard().Blocks(),
		Archs: codegen.Archs, Roles: codegen.Roles, StatePaths: codegen.StatePaths, MaxPaths: codegen.MaxPaths,
		Workloads: spec.Workloads(), Patterns: spec.Patterns[:4], Transports: spec.Transports,
		Collectives: spec.Collectives, Orders: spec.Orders,
		Examples: programs(), Own: ownSchemes(), Experiments: experiments(),
	}
	for _, p := range fabric.Presets() {
		l.Topologies = append(l.Topologies, Topology{p.Name, p.About})
	}
	return l
}

// programs lists the example programs that have a test.
func programs() []Example {
	names, _ := fs.Glob(examples.FS, "*.p4") // the pattern is valid
	var list []Example
	for _, name := range names {
		text, err := examples.FS.ReadFile(name)
		if err != nil {
			continue
		}
		short := strings.TrimSuffix(name, ".p4")
		test, _ := examples.FS.ReadFile(short + ".stf") // an example may have no test
		list = append(list, Example{short, firstComment(string(text)), string(text), string(test)})
	}
	return list
}

// firstComment returns the comment at the beginning of a program.
func firstComment(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch comment, ok := strings.CutPrefix(line, "//"); {
		case strings.Contains(line, "SPDX"):
		case ok:
			list = append(list, strings.TrimSpace(comment))
		case len(list) > 0:
			return strings.Join(list, " ")
		}
	}
	return strings.Join(list, " ")
}

// experiments lists the example experiments and the experiments from papers.
func experiments() []Experiment {
	list := []Experiment{
		{"quick", "QALL and ECMP in a small fabric: the first answer in seconds", quickExperiment},
		{"collective", "An all-reduce under three schemes", collectiveExperiment},
		{"jobs", "Two training jobs share a fabric", jobsExperiment},
	}
	for _, name := range slices.Sorted(maps.Keys(examples.Experiments())) {
		text := examples.Experiments()[name]
		list = append(list, Experiment{name, about(text), text})
	}
	for _, name := range lab.PaperExperiments() {
		text, err := lab.PaperFile(name)
		if err == nil {
			list = append(list, Experiment{name, about(string(text)), string(text)})
		}
	}
	return list
}

// about returns the description in an experiment file.
func about(text string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, "about:"); ok {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

// quickTopology and fatTree are small topologies.
const (
	quickTopology = "{leaf-spine: {leaves: 2, spines: 4, hosts: 4, rate: 400M, host-rate: 1G, delay: 10us, host-delay: 10us, queue: 64}}"
	fatTree       = "{fat-tree: {k: 4, rate: 400M, host-rate: 400M, delay: 10us, host-delay: 10us, queue: 64}}"
)

// quickExperiment is the page's initial experiment.
const quickExperiment = `name: playground
topology: ` + quickTopology + `
schemes: [qall-poly3, ecmp]
traffic: [{workload: websearch, pattern: halves, cut: 200KB}]
loads: [0.7]
transport: tcp
seeds: 2
duration: 25ms
metrics: [fct-mean, fct-p99, reordered, retransmitted, queue-mean]
`

const jobsExperiment = `name: jobs
topology: {leaf-spine: {leaves: 4, spines: 4, hosts: 4, host-rate: 100G, rate: 100G, host-delay: 500ns, delay: 500ns, queue: 285}}
schemes: [ecmp, rps, ar]
jobs:
  - name: dense
    placement: spread
    ranks: 8
    pipeline: 2
    tensor: 2
    microbatches: 2
    iterations: 2
    phases:
      - {pipeline: forward, size: 200KB, phases: [{compute: 20us}, {collective: all-reduce, over: tensor, size: 200KB}]}
      - {pipeline: backward, size: 200KB, phases: [{compute: 40us}]}
      - {collective: all-reduce, over: data, size: 1MB}
  - name: experts
    placement: spread
    ranks: 8
    expert: 4
    iterations: 2
    phases:
      - {compute: 50us}
      - {collective: all-to-all, over: expert, size: 800KB}
      - {collective: all-reduce, over: data, size: 1MB}
transport: {kind: uec}
mtu: 4160
engine: native
seeds: 2
metrics: ['iteration-time:dense', 'iteration-ratio:dense', 'iteration-time:experts', 'iteration-ratio:experts', exposed-communication]
`

const collectiveExperiment = `name: collective
topology: {leaf-spine: {leaves: 4, spines: 4, hosts: 4, host-rate: 100G, rate: 100G, host-delay: 500ns, delay: 500ns, queue: 285}}
schemes: [ecmp, rps, drill]
traffic: [{collective: all-reduce, size: 1MB, groups: 4, order: strided}]
transport: {kind: dctcp, max-dupacks: 300, min-rto: 1ms, max-window: 70KB}
switches: {pfc: false, ecn: 20}
mtu: 4160
engine: native
seeds: 2
metrics: [cct, cct-ratio, bus-bandwidth, link-imbalance, retransmitted]
`
