// Package scheme finds the programs of a load balancer by its name.
//
// A Library finds a Scheme: a row of the catalogue, a composition of its blocks, or a
// scheme of a Source. A Scheme builds a Program for each role in the network. A
// Program contains the P4_16 text and its manifest; BMv2 JSON and P4Info are compiled
// on first use.
package scheme

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Scheme is a load balancer.
type Scheme interface {
	// Name returns the name for users and reports.
	Name() string
	// Archs lists the architectures of its programs, the default first. It is empty for a scheme
	// that is only a model.
	Archs() []string
	// Parameters lists its parameters on one of Archs; "" selects the default.
	Parameters(arch string) ([]codegen.Param, error)
	// Build makes the program for a role and a number of paths per group.
	Build(codegen.Params) (*Program, error)
	// Native returns the reason why the simulator's native engine has no model of the scheme, or
	// nil if it has one.
	Native() error
}

// A Library finds schemes by name. The zero value contains p4lb's catalogue.
type Library struct {
	Sources   []Source           // queried in order, before the catalogue
	Catalogue *codegen.Catalogue // nil: p4lb's own

	// Open opens a folder of blocks; nil opens a folder of this machine.
	Open func(dir string) (fs.FS, error)
}

// A Source finds schemes that are not in the catalogue. For an unknown name it returns neither a
// scheme nor an error.
type Source func(name string) (Scheme, error)

// With returns the library extended with the blocks and rows of a folder: see
// codegen.Catalogue.With.
func (l *Library) With(dir string) (*Library, error) {
	open := l.Open
	if open == nil {
		open = func(dir string) (fs.FS, error) { return plain.DirFS(dir), nil }
	}
	folder, err := open(dir)
	if err != nil {
		return nil, err
	}
	more := *l
	more.Catalogue, err = l.catalogue().With(dir, folder)
	if err != nil {
		return nil, err
	}
	return &more, nil
}

func (l *Library) catalogue() *codegen.Catalogue {
	if l.Catalogue == nil {
		return codegen.Standard()
	}
	return l.Catalogue
}

// Find finds a scheme by its name.
func (l *Library) Find(name string) (Scheme, error) {
	for _, find := range l.Sources {
		if s, err := find(name); s != nil || err != nil {
			return s, err
		}
	}
	row, err := l.Row(name)
	switch {
	case err == nil:
		return &generated{row: row, found: true}, nil
	case name == ConWeave:
		return conWeave{}, nil
	}
	return nil, err
}

// Row finds a row of the catalogue by name, or a composition of blocks.
func (l *Library) Row(name string) (codegen.Row, error) { return l.catalogue().Parse(name) }

// Compose returns the scheme with the given blocks: see codegen.Catalogue.Compose.
func (l *Library) Compose(granularity, signal, choice, guard string) (Scheme, error) {
	row, err := l.catalogue().Compose(granularity, signal, choice, guard)
	if err != nil {
		return nil, err
	}
	return Of(row), nil
}

// Rows lists the rows of the catalogue.
func (l *Library) Rows() []codegen.Row { return l.catalogue().Rows() }

// All lists the schemes of the catalogue.
func (l *Library) All() []Scheme {
	return lists.Map(l.Rows(), Of)
}

// Of returns the scheme of a row.
func Of(row codegen.Row) Scheme { return &generated{row: row} }

// RowOf returns the row of a scheme, if it has one.
func RowOf(s Scheme) (codegen.Row, bool) {
	g, ok := s.(*generated)
	if !ok {
		return codegen.Row{}, false
	}
	return g.row, true
}

// A generated is a scheme with generated programs. It reuses programs of an earlier scheme with
// the same name: checking an experiment builds the programs, and its runs build them again.
type generated struct {
	row   codegen.Row
	found bool
}

func (g *generated) Name() string    { return g.row.Name }
func (g *generated) Archs() []string { return codegen.Archs }

// Native checks the row's blocks, because models exist only for p4lb's own blocks.
func (g *generated) Native() error {
	if list := g.row.Outside(); len(list) > 0 {
		return fmt.Errorf("%s runs as a program alone: the native engine has no model of %s, which is not one of p4lb's own blocks; want the engine p4", g.row.Name, strings.Join(list, " and "))
	}
	return nil
}

func (g *generated) Parameters(arch string) ([]codegen.Param, error) {
	return g.row.ParametersOn(arch)
}

func (g *generated) Build(p codegen.Params) (*Program, error) {
	generate := codegen.Generate
	if g.found {
		generate = generateOnce
	}
	made, err := generate(g.row, p)
	if err != nil {
		return nil, err
	}
	return newGenerated(made, p.Arch), nil
}

// generateOnce returns the cached program for a row and parameters, or generates it.
func generateOnce(row codegen.Row, p codegen.Params) (*codegen.Program, error) {
	rest := p
	rest.Coeffs, rest.Provenance = nil, nil // compared by content below
	key := fmt.Sprintf("%#v %#v", row, rest)
	if p.Coeffs != nil {
		key += fmt.Sprintf(" with %#v", *p.Coeffs)
	}
	if p.Provenance != nil {
		key += fmt.Sprintf(" by %#v", *p.Provenance)
	}
	before.Lock()
	k, ok := before.programs[key]
	before.Unlock()
	if ok {
		return k.program, nil
	}
	made, err := codegen.Generate(row, p)
	if err != nil {
		return nil, err
	}
	before.Lock()
	defer before.Unlock()
	if len(before.programs) >= maxBefore {
		clear(before.programs)
	}
	before.programs[key] = generatedBefore{row, made}
	return made, nil
}

// before caches texts and manifests, with everything that they depend on as the
// key. It holds a few MB at most.
var before = struct {
	sync.Mutex
	programs map[string]generatedBefore
}{programs: map[string]generatedBefore{}}

const maxBefore = 128

// A generatedBefore also holds the row. The cache key contains the address of the row's
// catalogue, and holding the row prevents reuse of this address.
type generatedBefore struct {
	row     codegen.Row
	program *codegen.Program
}
