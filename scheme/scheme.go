// Package scheme is the one way from the name of a load balancer to the programs
// that switches run.
//
// A Library finds a Scheme by its name: a row of the catalogue, a composition of
// its blocks, or what a Source has. A Scheme builds a Program for each role in
// the network. A Program is the P4_16 text and its manifest; what the compiler
// makes of it, BMv2 JSON and P4Info, is made when it is first asked for.
package scheme

import (
	"github.com/p4lb/p4lb/codegen"
)

// A Scheme is a load balancer.
type Scheme interface {
	// Name is what users and reports call it.
	Name() string
	// Archs lists what its programs can be for, the default first.
	Archs() []string
	// Parameters lists what can be set of it on one of Archs, "" for the default.
	Parameters(arch string) ([]codegen.Param, error)
	// Build makes the program for a role, for groups of so many paths.
	Build(codegen.Params) (*Program, error)
	// Native says why there is no model of it for the native engine of the
	// simulator, nil if there is one.
	Native() error
}

// A Library is where names are looked up. The zero value has the catalogue.
type Library struct {
	Sources []Source // asked one after the other, before the catalogue
}

// A Source has schemes that are not in the catalogue. For a name that is none of
// its own it returns neither a scheme nor an error.
type Source func(name string) (Scheme, error)

// Find finds a scheme by its name.
func (l *Library) Find(name string) (Scheme, error) {
	for _, find := range l.Sources {
		if s, err := find(name); s != nil || err != nil {
			return s, err
		}
	}
	row, err := codegen.Parse(name)
	if err != nil {
		return nil, err
	}
	return Of(row), nil
}

// Compose finds a scheme by its blocks, as codegen.Compose does.
func (l *Library) Compose(granularity, signal, choice, guard string) (Scheme, error) {
	row, err := codegen.Compose(granularity, signal, choice, guard)
	if err != nil {
		return nil, err
	}
	return Of(row), nil
}

// All lists the schemes of the catalogue.
func (l *Library) All() []Scheme {
	var list []Scheme
	for _, row := range codegen.Rows() {
		list = append(list, Of(row))
	}
	return list
}

// Of is the scheme of a row.
func Of(row codegen.Row) Scheme { return &generated{row} }

// Build makes the program of a row.
func Build(row codegen.Row, p codegen.Params) (*Program, error) { return Of(row).Build(p) }

// generated is a scheme whose programs are generated.
type generated struct{ row codegen.Row }

func (g *generated) Name() string    { return g.row.Name }
func (g *generated) Archs() []string { return codegen.Archs }
func (g *generated) Native() error   { return nil }

func (g *generated) Parameters(arch string) ([]codegen.Param, error) {
	return g.row.ParametersOn(arch)
}

func (g *generated) Build(p codegen.Params) (*Program, error) {
	made, err := codegen.Generate(g.row, p)
	if err != nil {
		return nil, err
	}
	return newGenerated(made, p.Arch), nil
}
