package describe

import (
	"slices"

	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// P4Info ids are hashes of names, aliases depend on all names together, and tools
// compare the messages byte for byte. So the set of live objects, their names and
// their order must agree with p4c. The view computes these from the tree of
// instances alone.

// A view is the program as the control plane sees it.
type view struct {
	info  *types.Info
	top   map[*syntax.InstDecl]*site
	units []*unit
	// globals are the extern objects declared at top level.
	globals []*site
	sites   int                    // number of sites so far
	steps   int                    // number of statements visited
	busy    map[*types.Object]bool // functions and actions being walked
	// pipes maps the construction of each TNA pipe to its name, if their programs
	// differ. prefix is the name, with a dot, of the current pipe.
	pipes  map[syntax.Node]string
	prefix string
}

// A unit is a parser or control of the architecture, with everything that is
// inlined into it.
type unit struct {
	root    *site
	objects []any // *tableSite, *site of an extern object, *setSite
	actions []*actionSite
	calls   []*externCall // in the body, in order of execution
	called  []calledAction
}

// A calledAction is an action that a control's body calls directly.
type calledAction struct {
	obj  *types.Object
	site *site
}

// A tableSite is a table of one control instance.
type tableSite struct {
	site *site
	decl *syntax.TableDecl
	name string
}

// A setSite is a value set of one parser instance.
type setSite struct {
	site *site
	decl *syntax.ValueSetDecl
}

// An actionSite is an action of one control instance; a global action has one site
// in each unit.
type actionSite struct {
	obj   *types.Object
	decl  *syntax.ActionDecl
	name  string
	scope *scope
	// listed is set if a table can run the action. An action that is only called
	// directly gets its arguments from the call and has no parameters here.
	listed bool
	calls  []*externCall
}

// An externCall is a reachable call of an extern function.
type externCall struct {
	call  *types.Call
	at    *syntax.CallExpr
	scope *scope
}

func newView(file *syntax.File, info *types.Info) *view {
	v := &view{info: info, top: map[*syntax.InstDecl]*site{}, busy: map[*types.Object]bool{}, pipes: pipeNames(info)}
	var blocks []*site
	var main *site
	for _, d := range file.Decls {
		inst, ok := d.(*syntax.InstDecl)
		if !ok || info.Insts[inst] == nil {
			continue
		}
		s := v.newSite(info.Insts[inst], &scope{}, names.Declared("", inst.Annotations, inst.Name), inst)
		s.notes = inst.Annotations
		v.top[inst] = s
		switch s.typ.(type) {
		case *types.Extern:
			v.globals = append(v.globals, s)
		case *types.Package:
			blocks = append(blocks, s.blocks(true)...)
			if inst.Name.Value == "main" {
				main = s
			}
		default:
			blocks = append(blocks, s)
		}
	}
	if main != nil {
		// Visit the blocks in the order of their declarations; main may use only
		// some of them.
		used := main.blocks(false)
		for _, s := range blocks {
			if !slices.Contains(used, s) {
				continue
			}
			u := &unit{root: s}
			v.units = append(v.units, u)
			v.reach(s, u)
			v.flatten(s, u)
			v.collectActions(u)
		}
	}
	return v
}

// pipeNames maps the construction of each pipe to its name, if their programs
// differ.
func pipeNames(info *types.Info) map[syntax.Node]string {
	call := info.Insts[mainDecl(info)]
	if call == nil {
		return nil
	}
	pipes, _ := names.Pipes(info, call)
	if len(pipes) < 2 {
		return nil
	}
	made := map[syntax.Node]string{}
	for k, x := range pipes {
		name := names.Pipe(x, k)
		made[x] = name
		if n, ok := syntax.Unparen(x).(*syntax.Name); ok && info.Uses[n] != nil {
			made[info.Uses[n].Decl] = name
		}
	}
	return made
}

// blocks lists the parsers and controls of a package and of nested packages. With
// inline, it lists only the blocks that are constructed in the package's arguments.
func (s *site) blocks(inline bool) []*site {
	var list []*site
	for _, a := range s.args {
		b, ok := a.(*site)
		switch {
		case !ok || inline && !b.inline:
		case b.scope != nil:
			list = append(list, b)
		default:
			list = append(list, b.blocks(inline)...)
		}
	}
	return list
}

// flatten lists the declarations of s in p4c's order: the declarations of an
// inlined instance take the instance's place.
func (v *view) flatten(s *site, u *unit) {
	for _, m := range s.made {
		v.flattenInstance(m, u)
	}
	for _, d := range s.body.Locals {
		switch d := d.(type) {
		case *syntax.InstDecl:
			if i := s.locals[d]; i != nil {
				v.flattenInstance(i, u)
			}
		case *syntax.TableDecl:
			if s.tables[d] {
				u.objects = append(u.objects, &tableSite{site: s, decl: d, name: names.Declared(s.name, d.Annotations, d.Name)})
			}
		case *syntax.ValueSetDecl:
			if s.sets[d] {
				u.objects = append(u.objects, &setSite{site: s, decl: d})
			}
		case *syntax.ActionDecl:
			o := v.info.Defs[d]
			u.actions = append(u.actions, &actionSite{obj: o, decl: d, name: names.Declared(s.name, d.Annotations, d.Name), scope: s.scope})
		}
	}
	for _, i := range s.direct {
		v.flattenInstance(i, u)
	}
}

func (v *view) flattenInstance(i *site, u *unit) {
	if i.extern() != nil {
		u.objects = append(u.objects, i)
	} else if i.reached {
		v.flatten(i, u)
	}
}

// collectActions keeps the actions of u that are used. Copies of global actions
// come first, in the order of first use.
func (v *view) collectActions(u *unit) {
	used := map[*scope]map[*types.Object]*actionSite{nil: {}}
	for _, a := range u.actions {
		if used[a.scope] == nil {
			used[a.scope] = map[*types.Object]*actionSite{}
		}
		used[a.scope][a.obj] = a
	}
	var globals []*actionSite
	alive := map[*actionSite]bool{}
	use := func(o *types.Object, s *site) *actionSite {
		a := used[s.scope][o]
		if a == nil {
			a = used[nil][o]
		}
		if a == nil {
			decl, ok := o.Decl.(*syntax.ActionDecl)
			if !ok {
				return &actionSite{}
			}
			a = &actionSite{obj: o, decl: decl, name: names.Declared("", decl.Annotations, decl.Name), scope: &scope{}}
			used[nil][o] = a
			globals = append(globals, a)
		}
		alive[a] = true
		return a
	}
	for _, obj := range u.objects {
		if t, ok := obj.(*tableSite); ok {
			for _, r := range v.actionRefs(t) {
				use(r.obj, t.site).listed = true
			}
		}
	}
	for _, c := range u.called {
		use(c.obj, c.site)
	}
	u.actions = append(globals, lists.Filter(u.actions, func(a *actionSite) bool { return alive[a] })...)
	for _, a := range u.actions {
		w := &walker{view: v, unit: u, scope: a.scope, calls: &a.calls, inAction: true}
		w.body(a.decl.Body)
	}
}
