package types

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/p4/syntax"
)

// Check resolves and checks a program. The Info is never nil; it is partial
// where there are errors. Errors and warnings come in source order.
//
// One pass over the declarations in order does it all: P4 wants a name declared
// before its use everywhere but among the states of a parser, so a single walk
// sees everything with its type known.
func Check(file *syntax.File) (*Info, syntax.Errors) {
	c := &checker{
		info:   newInfo(),
		errors: map[string]*Object{},
		tables: map[*syntax.TableDecl]map[*Object]*Call{},
		paths:  map[string]*Object{},
		said:   map[said]bool{},
	}
	c.top = c.push()
	for _, d := range file.Decls {
		c.decl(d)
	}
	return c.info, c.errs.Clean()
}

func newInfo() *Info {
	return &Info{
		Types:      make(map[syntax.Expr]TypeAndValue, 1024),
		Uses:       make(map[*syntax.Name]*Object, 512),
		Defs:       make(map[syntax.Node]*Object, 256),
		Calls:      map[*syntax.CallExpr]*Call{},
		Insts:      map[*syntax.InstDecl]*Call{},
		ActionRefs: map[syntax.Node]*Call{},
		Top:        map[string]*Object{},
	}
}

// A checker is the state of one Check.
type checker struct {
	info   *Info
	errs   syntax.Errors
	said   map[said]bool // where errs has something
	top    *scope
	scope  *scope
	env    env
	errors map[string]*Object                      // the members of error
	tables map[*syntax.TableDecl]map[*Object]*Call // the listed actions
	paths  map[string]*Object                      // control-plane names of actions
}

// said is a place that has a diagnostic of its kind.
type said struct {
	pos     syntax.Pos
	warning bool
}

// An env is where the checker stands: what surrounds a statement or expression.
type env struct {
	owner    *Object // the innermost parser, control, action, function, table or method
	place    place
	result   Type // what return gives; nil outside functions
	loops    int
	this     Type         // the extern that an abstract method is implemented for
	apply    *syntax.Name // what is being declared, for a hint about recursion
	parser   bool         // somewhere in a parser
	control  bool         // somewhere in a control
	table    bool         // in a table
	inSwitch bool         // the head of a switch
	inSelect bool         // a keyset of a select
}

// A place is the innermost body that holds statements.
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

func (c *checker) errorf(pos syntax.Pos, format string, args ...any) {
	c.report(pos, false, format, args)
}

func (c *checker) warnf(pos syntax.Pos, format string, args ...any) {
	c.report(pos, true, format, args)
}

// report adds a diagnostic. A second one at the same place is a follow-on and
// is dropped, and so is one that speaks of an invalid type.
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
	c.errs = append(c.errs, &syntax.Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Warning: warning})
}

// maxShow bounds the text of an expression in a message.
const maxShow = 60

// show writes an expression for a message, short.
func show(e syntax.Expr) string {
	s := syntax.Head(e, maxShow)
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i] + "..."
	}
	if len(s) > maxShow {
		s = strings.ToValidUTF8(s[:maxShow-3], "") + "..."
	}
	return s
}

// record files what is known of e.
func (c *checker) record(e syntax.Expr, tv TypeAndValue) TypeAndValue {
	c.info.Types[e] = tv
	return tv
}
