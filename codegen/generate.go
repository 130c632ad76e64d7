package codegen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Roles are the roles of a switch in the network. Schemes that decide at the edge do so in
// leaves. In a fat tree, leaves are called tor.
var Roles = []string{"leaf", "spine", "tor", "agg", "core"}

// StatePaths are the ways in which queue state reaches ingress. They are:
// recirculated copies of packets; copies whose payload the clone session cuts off;
// registers that both pipelines can access (software switches only); and the ghost
// thread of Tofino 2. simple_switch rejects clone sessions with a length. Programs
// for Tofino always cut their copies.
var StatePaths = []string{recirculated, cutCopies, "shared", "ghost"}

// MaxPaths is the size of the largest group that a program supports.
const MaxPaths = manifest.MaxPaths

// Params are the options of a program besides its row. The zero value generates the
// papers' programs for groups of up to 4 paths.
type Params struct {
	Arch      string            // one of Archs; "": v1model
	Ports     int               // paths of the largest group, 2 to MaxPaths; 0: 4
	MaxPort   int               // the highest port number in use; 0: unknown
	Set       map[string]string // parameters by name, in their units
	StatePath string            // one of StatePaths; "": recirc
	Role      string            // one of Roles; "": leaf
	Printed   bool              // keep misprints of the paper
	IPv6      bool              // also forward IPv6

	Coeffs  *fitting.Poly // the polynomial of a fitted row; nil: the paper's
	Runtime bool          // the controller sets the coefficients

	Provenance *Provenance // provenance written into program and manifest; nil: none
}

// A Provenance describes the generator and the request of a program.
type Provenance struct {
	Version string   // version of p4lb; "": omitted
	Flags   []string // flags of p4lb gen other than the scheme
	Blocks  string   // the folder of the user's blocks, or ""
}

// Licence is the licence of generated programs as an SPDX identifier. It is the licence of the
// templates.
const Licence = "Apache-2.0"

// of returns the provenance of a scheme's program. Programs with user blocks have
// no licence.
func (p *Provenance) of(row Row) *manifest.Provenance {
	flags := append([]string{"--scheme", row.Name}, p.Flags...)
	if _, err := Standard().Parse(row.Name); err != nil && p.Blocks != "" {
		flags = append(flags, "--blocks", p.Blocks)
	}
	m := manifest.MadeBy(p.Version, "gen", flags)
	if len(row.Outside()) == 0 {
		m.Licence = Licence
	}
	return m
}

// A Program is a generated program with its manifest.
type Program struct {
	Name     string
	P4       string
	Manifest Manifest
}

// Manifest describes the registers, tables, sessions and tasks of a program
// (docs/manifest.md).
type Manifest = manifest.Manifest

// Generate returns the program of a row, or an error that names the parameter
// that is out of range.
func Generate(row Row, p Params) (*Program, error) {
	v, err := newView(row, p)
	if err != nil {
		return nil, fmt.Errorf("generating %s: %w", row.Name, err)
	}
	text, err := v.render()
	if err != nil {
		return nil, fmt.Errorf("generating %s: %w", row.Name, err)
	}
	return &Program{Name: row.Name, P4: text, Manifest: v.manifest}, nil
}

// Parameters lists the parameters of the row with their defaults.
func (r Row) Parameters() []Param { return r.parameters(r.catalogue().on(software), recirculated) }

// ParametersOn is Parameters for one of Archs. For hardware, there are a few more
// parameters.
func (r Row) ParametersOn(arch string) ([]Param, error) {
	a, err := r.catalogue().architecture(arch)
	if err != nil {
		return nil, err
	}
	return r.parameters(a, recirculated), nil
}

// parameters returns the parameters for an architecture. Hardware adds a few to those
// of the v1model blocks.
func (r Row) parameters(a *architecture, statePath string) []Param {
	all := r.catalogue()
	built, err := r.blocks(all.on(software), recirculated, false)
	if err == nil && !a.software {
		var more []*block
		more, err = r.blocks(a, cmp.Or(statePath, recirculated), false)
		built = append(built, more...)
	}
	if err != nil {
		return nil // an impossible program has no parameters
	}
	around := a.lookup(guard, r.Guard) // v1model has every guard
	var list []Param
	for _, b := range built {
		for _, declared := range b.Parameters {
			p := *all.param(declared.Name)
			for _, defaults := range []map[string]string{r.Defaults, around.Defaults} {
				if d, ok := defaults[p.Name]; ok {
					p.Default = d
				}
			}
			if !slices.ContainsFunc(list, func(q Param) bool { return q.Name == p.Name }) {
				list = append(list, p)
			}
		}
	}
	return list
}

// blocks lists the row's blocks in the order in which they contribute: parts first,
// each once. In transit switches, the signal uses other parts and does not report
// to ingress. If the architecture lacks a block, blocks returns an error.
func (r Row) blocks(a *architecture, statePath string, transit bool) ([]*block, error) {
	wanted := map[*block]bool{}
	var want func(b *block, parts []string)
	want = func(b *block, parts []string) {
		wanted[b] = true
		for _, name := range parts {
			p := a.lookup(part, name)
			want(p, p.wants(statePath, transit))
		}
	}
	for _, k := range kinds {
		b := a.lookup(k, r.block(k).Name)
		if b == nil || b.Cannot != "" {
			return nil, a.refuse(r, r.block(k), b)
		}
		want(b, b.wants(statePath, transit))
	}
	list := lists.Filter(a.blocks, func(b *block) bool { return wanted[b] })
	return list, nil
}

// values sets the row's parameters.
func (r Row) values(a *architecture, statePath string, set map[string]string) (map[string]Value, error) {
	return Values(r.parameters(a, statePath), set)
}

// Values returns the values of all known parameters by name: the values in set, and defaults for
// the others.
func Values(known []Param, set map[string]string) (map[string]Value, error) {
	values := map[string]Value{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if !slices.ContainsFunc(known, func(p Param) bool { return p.Name == name }) {
			return nil, unknown("parameter", name, paramNames(known))
		}
	}
	for _, p := range known {
		text, ok := set[p.Name]
		if !ok {
			text = p.Default
		}
		v, err := p.parse(text)
		if err != nil {
			return nil, err
		}
		values[p.Name] = v
	}
	return values, nil
}
