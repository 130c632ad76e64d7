// Package describe generates the descriptions of a checked program for its control
// plane: P4Info, the program's own entries, and the BfRt schema for Tofino.
//
// All of them describe the program as it is after p4c's front end (view.go): nested
// parsers and controls are inlined, dead code is removed, and global actions are
// moved into the controls that use them. No executable code is needed, so even a
// program that package lower cannot compile has descriptions.
package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// P4Info returns the P4Info of the checked program, with the ids, names and order
// of p4c. Arch is the architecture; the default is v1model. The message is nil if
// and only if one of the errors is not a warning.
func P4Info(file *syntax.File, info *types.Info, arch string) (*configv1.P4Info, syntax.Errors) {
	g := newInfoGen(file, info, arch)
	g.build()
	if g.errs.Err() != nil {
		return nil, g.errs
	}
	return g.out, g.errs
}

// An infoGen builds the P4Info of one program.
type infoGen struct {
	file *syntax.File
	info *types.Info
	view *view
	ids  *symbols
	out  *configv1.P4Info
	errs syntax.Errors

	arch string

	profiles  map[string][]string // action profile → its tables
	selectors map[string]*site    // action profile → its selector, if they are separate objects
	digests   map[*externCall]string
	unnamed   int             // the number of digests without a name of their own
	seen      map[uint32]bool // actions and digests already in the message
}

func newInfoGen(file *syntax.File, info *types.Info, arch string) *infoGen {
	return &infoGen{
		file: file, info: info, view: newView(file, info), ids: newSymbols(), out: &configv1.P4Info{},
		arch: cmp.Or(arch, "v1model"), profiles: map[string][]string{}, selectors: map[string]*site{},
		digests: map[*externCall]string{}, seen: map[uint32]bool{},
	}
}

func (g *infoGen) errorf(n syntax.Node, format string, args ...any) {
	g.report(n, false, format, args...)
}

func (g *infoGen) warnf(n syntax.Node, format string, args ...any) {
	g.report(n, true, format, args...)
}

func (g *infoGen) report(n syntax.Node, warning bool, format string, args ...any) {
	var pos syntax.Pos
	if n != nil {
		pos = n.Pos()
	}
	g.errs = append(g.errs, &syntax.Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Warning: warning})
}

// typeInfo returns the message's description of types and creates it on first use.
// p4c creates an empty one if the program's objects have plain types only.
func (g *infoGen) typeInfo() *configv1.P4TypeInfo {
	if g.out.TypeInfo == nil {
		g.out.TypeInfo = &configv1.P4TypeInfo{}
	}
	return g.out.TypeInfo
}

// build fills the message. All names are collected first: a hash collision
// shifts ids, and an alias is the shortest suffix that no other name has.
func (g *infoGen) build() {
	if g.view.sites > maxSites || g.view.steps > maxSteps {
		g.errorf(g.file.Decls[len(g.file.Decls)-1], "not supported: a program that unfolds to more than %d instances or %d statements (docs/limits.md)", maxSites, maxSteps)
		g.errs[len(g.errs)-1].Class = syntax.Unsupported
		return
	}
	g.collect()
	g.ids.pipe = g.pipe()
	g.ids.assign()
	for _, s := range g.view.globals {
		g.addExtern(s)
	}
	for _, u := range g.view.units {
		for _, o := range u.objects {
			if s, ok := o.(*setSite); ok {
				g.addValueSet(s)
			}
		}
		for _, a := range u.actions {
			g.addAction(a)
			g.addCalls(a.calls)
		}
		if _, ok := u.root.typ.(*types.Control); ok {
			g.addCalls(u.calls)
		}
	}
	for _, u := range g.view.units {
		for _, o := range u.objects {
			switch o := o.(type) {
			case *tableSite:
				g.addTable(o)
			case *site:
				g.addExtern(o)
			}
		}
	}
	for _, h := range g.controllerHeaders() {
		g.addControllerHeader(h)
	}
	g.addPkgInfo()
}

// pipe returns the name of a TNA program's pipeline.
func (g *infoGen) pipe() string {
	main := mainDecl(g.info)
	if main == nil || len(main.Args) == 0 || len(g.view.pipes) > 0 { // names include the pipe's name in that case
		return ""
	}
	name, ok := syntax.Unparen(main.Args[0].Value).(*syntax.Name)
	if !ok {
		return ""
	}
	if pkg, ok := g.info.Types[name].Type.(*types.Package); !ok || pkg.Name != "Pipeline" {
		return ""
	}
	return name.Value
}

// collect registers the names of all objects. Copies of a global action may share a
// name; no other two objects of a kind may.
func (g *infoGen) collect() {
	for _, s := range g.view.globals {
		g.collectExtern(s)
	}
	copies := map[string]*types.Object{}
	for _, u := range g.view.units {
		for _, a := range u.actions {
			if o := copies[a.name]; !isCopy(o, a.obj) {
				g.unique(actionKind, a.name, a.decl)
			}
			copies[a.name] = a.obj
			g.ids.add(g, actionKind, a.name, a.decl.Annotations, a.decl)
			g.collectCalls(a.calls)
		}
		if _, ok := u.root.typ.(*types.Control); ok {
			g.collectCalls(u.calls)
		}
		for _, o := range u.objects {
			switch o := o.(type) {
			case *tableSite:
				g.unique(tableKind, o.name, o.decl)
				g.ids.add(g, tableKind, o.name, o.decl.Annotations, o.decl)
				// A table's properties can construct objects in place.
				for _, name := range []string{"implementation", "counters", "meters"} {
					s := g.attached(o, name)
					if s == nil || !slices.Contains(attachable[name], s.extern().Name) {
						continue
					}
					if s.inline {
						g.ids.add(g, externKinds[s.extern().Name], s.name, nil, s.at)
					}
					if name == "implementation" {
						g.profiles[s.name] = append(g.profiles[s.name], o.name)
					}
				}
			case *site:
				g.collectExtern(o)
			case *setSite:
				g.unique(valueSetKind, o.name(), o.decl)
				g.ids.add(g, valueSetKind, o.name(), o.decl.Annotations, o.decl)
			}
		}
	}
	for _, h := range g.controllerHeaders() {
		g.ids.add(g, controllerHeaderKind, names.Declared("", h.Annotations, h.Name), h.Annotations, h)
	}
}

// isCopy reports whether o and old are copies of one global action, or have the
// same source text.
func isCopy(old, o *types.Object) bool {
	switch {
	case old == nil:
		return false
	case old == o:
		return o.Parent == nil
	}
	return syntax.String(old.Decl) == syntax.String(o.Decl)
}

// unique reports an object whose name is already taken by another object of its
// kind.
func (g *infoGen) unique(kind symbolKind, name string, at syntax.Node) {
	if g.ids.has(kind, name) {
		what := strings.ToLower(strings.ReplaceAll(kind.String(), "_", " "))
		g.errorf(at, "another %s is called %s for the control plane already; @name gives it a name of its own", what, name)
	}
}

func (s *setSite) name() string {
	return names.Declared(s.site.name, s.decl.Annotations, s.decl.Name)
}

// preamble returns the fields common to all objects of P4Info. It omits the
// annotations in skip, because they have fields of their own.
func (g *infoGen) preamble(kind symbolKind, name string, as syntax.Annotations, skip ...string) *configv1.Preamble {
	return &configv1.Preamble{
		Id: g.ids.id(kind, name), Name: name, Alias: g.ids.alias(name),
		Annotations: g.annotations(as, skip...), StructuredAnnotations: g.structured(as), Doc: g.doc(as),
	}
}
