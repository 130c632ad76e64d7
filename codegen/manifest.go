package codegen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Each block describes its part of the program in the template manifest: YAML with
// the keys of a manifest.

// About returns the comment for the register's declaration.
func (r register) About() string {
	return cmp.Or(r.Comment, r.Meaning)
}

// A notes is the decoded manifest section of a template.
type notes struct {
	Types      map[string]int         `json:"types"` // widths of the types that the skeleton declares
	Registers  []register             `json:"registers"`
	Counters   []manifest.Counter     `json:"counters"`
	Tables     []manifest.Table       `json:"tables"`
	Headers    []manifest.Header      `json:"headers"`
	Sessions   []manifest.Session     `json:"sessions"`
	Groups     []manifest.Multicast   `json:"groups"`
	Ports      []manifest.VirtualPort `json:"ports"`
	Generators []manifest.Generator   `json:"generators"`
	Tasks      []manifest.Task        `json:"tasks"`
	Deviations []manifest.Deviation   `json:"deviations"`
	Weights    *manifest.Weights      `json:"weights"`
	Decides    string                 `json:"decides"`
	GroupBy    manifest.GroupBy       `json:"group_by"`
	Queues     int                    `json:"queues"`
}

// describe fills the manifest from the templates.
func (v *view) describe() {
	r := v.row
	v.manifest = manifest.Manifest{
		Version: manifest.Version, Scheme: r.Name, Title: v.title(),
		Granularity: r.Granularity, Signal: r.Signal, Choice: r.Choice, Guard: r.Guard,
		Arch: manifest.Arch(v.arch.name), Role: v.params.Role, Paths: v.N(),
		FlowTimeout: v.Flow.timeout(),
	}
	m := &v.manifest
	if v.params.Provenance != nil {
		m.Provenance = v.params.Provenance.of(r)
	}
	list, err := r.blocks(r.catalogue().on(software), recirculated, false)
	if err == nil && slices.Contains(list, r.catalogue().lookup(part, "report")) {
		m.StatePath = manifest.StatePath(v.params.StatePath)
	}
	for _, p := range r.parameters(v.arch, v.params.StatePath) {
		value := v.values[p.Name]
		if p.Name == "cpu" {
			if !v.arch.software {
				value.Int = v.Chip.CPUPort()
				value.Text = strconv.FormatInt(value.Int, 10)
			}
			port := int(value.Int)
			m.CPUPort = &port
		}
		m.Parameters = append(m.Parameters, manifest.Parameter{Name: value.Name, Text: value.Text, Number: value.Int})
	}
	v.note(v.arch.skeleton)
	for _, b := range v.blocks {
		if b.defines("manifest") {
			v.note(b)
		}
	}
}

// note adds the description of one block.
func (v *view) note(b *block) {
	text := v.execute(b, "manifest")
	if strings.TrimSpace(text) == "" {
		return
	}
	var n notes
	if err := manifest.Unmarshal("manifest", []byte(text), &n); err != nil && v.err == nil {
		v.err = fmt.Errorf("%s: what %v says of itself: %w", b.file.name, b, err)
	}
	maps.Copy(v.types, n.Types)
	m := &v.manifest
	for _, r := range n.Registers {
		r.Width = max(r.Width, v.widthOf(r.Type))
		for _, x := range indexes {
			if x.name == r.Index {
				r.Size = v.Flow.cellsOf(x.name, x.size)
			}
		}
		v.registers = append(v.registers, r)
		m.Registers = append(m.Registers, r.Register)
	}
	m.Counters = append(m.Counters, n.Counters...)
	m.Tables = append(m.Tables, n.Tables...)
	m.Headers = append(m.Headers, n.Headers...)
	m.CloneSessions = append(m.CloneSessions, n.Sessions...)
	m.MulticastGroups = append(m.MulticastGroups, n.Groups...)
	m.VirtualPorts = append(m.VirtualPorts, n.Ports...)
	m.Generators = append(m.Generators, n.Generators...)
	m.Tasks = append(m.Tasks, n.Tasks...)
	m.Deviations = append(m.Deviations, n.Deviations...)
	if n.Decides != "" {
		m.Decides = n.Decides
	}
	m.GroupBy = cmp.Or(m.GroupBy, n.GroupBy)
	m.Queues = max(m.Queues, n.Queues)
	if n.Weights != nil && v.row.like(choice) == "grid" {
		m.Weights = n.Weights
	}
}

// widthOf returns the width of a type of the program.
func (v *view) widthOf(p4type string) int {
	if width, ok := v.types[p4type]; ok {
		return width
	}
	var width int
	fmt.Sscanf(p4type, "bit<%d>", &width)
	return width
}

// complete adds facts to the manifest that the program text does not contain.
func (a *architecture) complete(v *view) {
	if a.software {
		return
	}
	m := &v.manifest
	for i := range m.Registers {
		m.Registers[i].BfRt = "pipe." + m.Registers[i].Name
	}
	for i := range m.Tables {
		m.Tables[i].BfRt = "pipe." + m.Tables[i].Name
	}
	for table, b := range v.Baked.tables() {
		i := slices.IndexFunc(m.Tables, func(t manifest.Table) bool { return t.Name == table })
		if i >= 0 {
			m.Tables[i].Baked = b
		}
	}
}
