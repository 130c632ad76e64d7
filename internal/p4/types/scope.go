package types

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A checker is the state of one Check.
type checker struct {
	info   *Info
	errs   syntax.Errors
	said   map[said]bool // positions with a diagnostic in errs
	top    *scope
	scope  *scope
	env    env
	errors map[string]*Object                      // the members of error, by name
	tables map[*syntax.TableDecl]map[*Object]*Call // the actions in each table's list
	paths  map[string]*Object                      // actions by their control-plane names

	done     bool // set after the checks, because lowering has its own limit for instances
	work     int  // steps of maxWork so far
	compared int  // number of names compared to find suggestions
	wrong    int  // number of errors so far
}

// The limits of one program; docs/limits.md lists them.
const (
	// maxWork bounds the work that a short program can cause with omitted
	// parameters, members of generic instances, and signatures in messages.
	maxWork = 1 << 23
	// maxErrors bounds the errors: each may contain text of the program, and only
	// the first ones are shown.
	maxErrors = 1000
)

// enough is the panic value that ends the checking of a program with an error.
type enough struct{}

// spend counts n steps of work.
func (c *checker) spend(pos syntax.Pos, n int) {
	if c.work += n; c.work > maxWork && !c.done {
		c.errorf(pos, "the program takes more than %d steps to check: members of instances or omitted parameters multiply here (docs/limits.md)", maxWork)
		panic(enough{})
	}
}

// A said is a position with a diagnostic, and the diagnostic's kind.
type said struct {
	pos     syntax.Pos
	warning bool
}

// An env is the context of a statement or expression.
type env struct {
	owner    *Object // the innermost parser, control, action, function, table or method
	place    place
	result   Type // the type of return's value; nil outside functions
	loops    int
	this     Type         // the extern whose abstract method is being implemented
	apply    *syntax.Name // the name being declared, for a hint about recursion
	parser   bool         // inside a parser
	control  bool         // inside a control
	table    bool         // inside a table
	head     syntax.Expr  // the expression of a switch, without parentheses
	inSelect bool         // the expression is a keyset of a select
}

// A place is the kind of the innermost body with statements.
type place uint8

const (
	nowhere place = iota
	inApply
	inAction
	inFunction
	inState
)

func (p place) String() string {
	return [...]string{"here", "in an apply block", "in an action", "in a function", "in a parser state"}[p]
}

// within runs f with a changed environment and a scope of its own.
func (c *checker) within(e env, f func()) {
	old := c.env
	c.env = e
	c.push()
	f()
	c.pop()
	c.env = old
}

// block runs f in a scope of its own.
func (c *checker) block(f func()) {
	c.push()
	f()
	c.pop()
}

// A scope holds the names of one block.
type scope struct {
	parent *scope
	names  map[string]*Object
	owner  *Object
}

func (c *checker) push() *scope {
	c.scope = &scope{parent: c.scope, owner: c.env.owner}
	return c.scope
}

func (c *checker) pop() {
	// Warn about unused names, and about variables that are read but never written.
	for _, o := range c.scope.names {
		c.warnUnused(o)
		f := o.flow
		if f == nil || len(f.reads) == 0 && !(o.Dir == syntax.Out && !f.written) {
			continue
		}
		switch {
		case f.late && f.written:
		case o.Kind == VarObj:
			c.warnf(f.reads[0].Pos(), "%s is read before anything is written to it", o.Name)
		case len(f.reads) > 0:
			c.warnf(f.reads[0].Pos(), "the out parameter %s is read before anything is written to it", o.Name)
		case !quiet(o.Decl.(*syntax.Param).Annotations, "uninitialized_out_param"):
			c.warnf(o.Decl.(*syntax.Param).Name.Pos(), "nothing is written to the out parameter %s", o.Name)
		}
	}
	c.scope = c.scope.parent
}

// lookup finds the innermost object called name for which want returns true.
func (s *scope) lookup(name string, want func(*Object) bool) *Object {
	for ; s != nil; s = s.parent {
		if o := s.names[name]; o != nil && (want == nil || want(o)) {
			return o
		}
	}
	return nil
}

// declare adds o to the current scope and records it for its declaration. Functions
// may share a name if a call can distinguish them.
func (c *checker) declare(o *Object, decl syntax.Node, name *syntax.Name) *Object {
	o.Decl = decl
	o.Name = name.Value
	o.Parent = cmp.Or(o.Parent, c.env.owner)
	c.info.Defs[decl] = o
	c.insert(o, name.Pos())
	return o
}

func (c *checker) insert(o *Object, pos syntax.Pos) {
	s := c.scope
	if s.names == nil {
		s.names = map[string]*Object{}
	}
	old := s.names[o.Name]
	switch {
	case old == nil:
		c.warnShadow(o, pos)
	case o.Kind == FuncObj && old.Kind == FuncObj || sameBlocks(o, old):
		o.next = old
		c.checkOverload(o, pos)
	default:
		c.errorf(pos, "%s is declared twice; the first is the %s at %s", o.Name, describeKind(old), c.posOf(old))
		return
	}
	s.names[o.Name] = o
	if s == c.top {
		c.defineTop(o)
	}
}

// defineTop updates Info.Top, which contains only names of a single object.
func (c *checker) defineTop(o *Object) {
	if o.next != nil {
		delete(c.info.Top, o.Name)
		return
	}
	c.info.Top[o.Name] = o
	if _, ok := o.Type.(*Package); o.Name == "main" && !(ok && o.Kind == InstObj) && o.Kind != FuncObj && o.Type != Invalid {
		c.errorf(o.Decl.Pos(), "main must be an instance of a package, it is %s", describe(o))
	}
}

// sameBlocks reports whether two objects may share a name as functions do: parsers
// with bodies, controls with bodies, or packages.
func sameBlocks(o, old *Object) bool {
	switch kind := typeKind(o.Type); kind {
	case "parser", "control", "package":
		return o.Kind == TypeObj && old.Kind == TypeObj && kind == typeKind(old.Type)
	}
	return false
}

// callable returns the signature that distinguishes o from other objects with its
// name: a function's signature, or the constructor's signature of a block.
func callable(o *Object) *Func {
	if f, ok := o.Type.(*Func); ok {
		return f
	}
	return ctorOf(o.Type)
}

// checkOverload reports a function whose parameters differ neither in number nor in
// name from another function with its name.
func (c *checker) checkOverload(o *Object, pos syntax.Pos) {
	f := callable(o)
	n := 1
	for p := o.next; p != nil; p = p.next {
		if n++; n == maxOverloads+1 {
			c.errorf(pos, "%s is declared more than %d times (docs/limits.md)", o.Name, maxOverloads)
			return
		}
		g := callable(p)
		if !sameParamNames(f, g) {
			continue
		}
		if o.Kind == FuncObj && identicalFuncs(f, g) {
			c.warnf(pos, "%s is declared twice with the same parameters; the first is at %s", o.Name, c.posOf(p))
		} else {
			c.errorf(pos, "%s is declared twice with the same parameters; the first is at %s", o.Name, c.posOf(p))
			return
		}
	}
}

// maxOverloads bounds the functions with one name, because each call examines all
// of them.
const maxOverloads = 256

// sameParamNames reports whether calls cannot distinguish f and g: the number and
// names of the arguments select the overload.
func sameParamNames(f, g *Func) bool {
	if len(f.Params) != len(g.Params) {
		return false
	}
	find := g.finder()
	for _, p := range f.Params {
		if q, _ := find(p.Name); q == nil {
			return false
		}
	}
	return true
}

func (c *checker) posOf(o *Object) string { return o.Decl.Pos().String() }

// find resolves a name to an object for which want returns true, and records the
// use. It reports an undeclared name and returns nil for it.
func (c *checker) find(n *syntax.Name, what string, want func(*Object) bool) *Object {
	s := c.scope
	if n.Global {
		s = c.top
	}
	o := s.lookup(n.Value, want)
	if o == nil {
		c.undeclared(n, s, what, want)
		return nil
	}
	o.used = true
	c.info.Uses[n] = o
	if o.Kind != FuncObj {
		c.warnDeprecated(n.Pos(), o)
	}
	return o
}

// undeclared reports a name for which find has no object.
func (c *checker) undeclared(n *syntax.Name, s *scope, what string, want func(*Object) bool) {
	if other := s.lookup(n.Value, nil); other != nil {
		c.errorf(n.Pos(), "%s is %s, not %s", n.Value, describe(other), what)
		return
	}
	hint := ""
	switch near := c.nearest(n.Value, s, want); {
	case c.env.apply != nil && c.env.apply.Value == n.Value, c.env.owner != nil && c.env.owner.Name == n.Value:
		hint = "; a declaration cannot use itself"
	case near != "":
		hint = "; did you mean " + near + "?"
	case n.Value == "NoAction" || n.Value == "packet_in" || n.Value == "packet_out":
		hint = "; it is declared in core.p4"
	}
	c.errorf(n.Pos(), "%s is not declared%s", n.Value, hint)
}

// nearest returns the declared name that is closest to name, or "" if none is
// close.
func (c *checker) nearest(name string, s *scope, want func(*Object) bool) string {
	var all []string
	for ; s != nil && c.mayCompare(len(s.names)); s = s.parent {
		for n, o := range s.names {
			if want == nil || want(o) {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return plain.Nearest(name, all)
}

// maxCompared bounds the names compared to find suggestions. A long program may
// have an error in each line, and only the first errors are shown.
const maxCompared = 1 << 20

// mayCompare counts the compared names and reports whether the limit allows more.
func (c *checker) mayCompare(names int) bool {
	c.compared += names
	return c.compared <= maxCompared
}

// words returns a function that lists names, for suggest.
func words(names ...string) func() []string { return func() []string { return names } }

// suggest returns "; did you mean …?" with the closest of names, or a list of the
// names.
func (c *checker) suggest(name string, listed func() []string) string {
	if c.compared > maxCompared { // too many to list either
		return ""
	}
	names := listed()
	if !c.mayCompare(len(names)) {
		return ""
	}
	if near := plain.Nearest(name, names); near != "" {
		return "; did you mean " + near + "?"
	}
	switch last := len(names) - 1; {
	case last < 0 || last >= 8:
		return ""
	case last == 0:
		return "; it has " + names[0]
	default:
		return "; it has " + strings.Join(names[:last], ", ") + " and " + names[last]
	}
}

func isTypeObj(o *Object) bool { return o.Kind == TypeObj }

// describe returns an object's description for messages: "the table ipv4".
func describe(o *Object) string {
	k := describeKind(o)
	if k[0] == 'a' || k[0] == 'i' || k[0] == 'e' {
		return "an " + k
	}
	return "a " + k
}

func describeKind(o *Object) string {
	if o.Kind == ParamObj && o.Ctor {
		return "constructor parameter"
	}
	if o.Kind == TypeObj {
		return typeKind(o.Type)
	}
	return [...]string{"thing", "constant", "variable", "parameter", "type", "function", "action",
		"table", "instance", "parser state", "value set", "error", "match kind"}[o.Kind]
}

func typeKind(t Type) string {
	switch t := t.(type) {
	case *Parser:
		if t.Decl != nil && t.Decl.TypeOnly {
			return "parser type"
		}
		return "parser"
	case *Control:
		if t.Decl != nil && t.Decl.TypeOnly {
			return "control type"
		}
		return "control"
	case *Package:
		return "package"
	case *Extern:
		return "extern type"
	case *TypeParam:
		return "type parameter"
	}
	return "type"
}

func (c *checker) errorf(pos syntax.Pos, format string, args ...any) {
	c.report(pos, false, format, args)
}

func (c *checker) warnf(pos syntax.Pos, format string, args ...any) {
	c.report(pos, true, format, args)
}

// report adds a diagnostic. It drops a second one at the same position, and one
// that mentions an invalid type, because both follow from an earlier error.
func (c *checker) report(pos syntax.Pos, warning bool, format string, args []any) {
	for _, a := range args {
		if a == Type(Invalid) {
			return
		}
	}
	at := said{pos, warning}
	if c.said[at] && pos.IsKnown() {
		return
	}
	c.said[at] = true
	c.errs = append(c.errs, syntax.NewError(pos, warning, fmt.Sprintf(format, args...)))
	if !warning {
		if c.wrong++; c.wrong >= maxErrors {
			panic(enough{})
		}
	}
}

// maxShow bounds the text of an expression in messages.
const maxShow = 60

// show returns the text of an expression for messages, shortened if necessary.
func show(e syntax.Expr) string {
	s := syntax.Head(e, maxShow)
	if line, _, more := strings.Cut(s, "\n"); more {
		s = line + "..."
	}
	if len(s) > maxShow {
		s = strings.ToValidUTF8(s[:maxShow-3], "") + "..."
	}
	return s
}

// record stores the type and value of e.
func (c *checker) record(e syntax.Expr, tv TypeAndValue) TypeAndValue {
	c.info.Types[e] = tv
	return tv
}
