package lower

import (
	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// An architecture is what the programs for one kind of switch have of their
// own: a package and its blocks, extern objects and functions. All else is the
// language's.
type architecture interface {
	traits() traits
	// program lowers the blocks that call, the instantiation of main, names.
	program(decl *syntax.InstDecl, call *types.Call)
	// declare emits an extern object at its instantiation, and reports whether
	// it is one of the architecture.
	declare(i *instance) bool
	// finish emits what is known of an extern object only after all tables.
	finish(i *instance)
	// selectorAlgorithm is the hash of an action selector.
	selectorAlgorithm(inst *instance) string
	// method and function lower a call of an extern object and of an extern
	// function.
	method(inst *instance, method string, x *syntax.CallExpr, call *types.Call, e *env) value
	function(x *syntax.CallExpr, call *types.Call, e *env) value
}

// Traits say where the switches of architectures differ.
type traits struct {
	// runner is the switch, as messages call it.
	runner string
	// pkg is the name of the package that main must be an instance of.
	pkg string
	// branches is set where deparsers may have conditions.
	branches bool
	// addHeader is the primitive of setValid: in BMv2's the fields start with 0,
	// in Tofino they keep what they have.
	addHeader string
	// defaults is set where a table with an action profile keeps its default
	// action.
	defaults bool
	// divides is set where a divisor may be known only at run time: division by
	// zero gives zero.
	divides bool
	// entriesFit is set where a table has room for the program's own entries,
	// whatever size it is given.
	entriesFit bool
}

func architectureOf(l *lowerer) architecture {
	switch l.opts.Arch {
	case bmv2.TNA, bmv2.T2NA:
		return &tofino{lowerer: l, prefixes: map[*instance]*header{}, shared: map[string]value{}, logs: map[*instance]string{}, queues: map[*instance]string{}, counters: map[*instance][]coveredCounter{}}
	}
	return v1model{l}
}
