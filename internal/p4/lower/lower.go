// Package lower translates a checked program to BMv2 JSON. A program for Tofino
// (TNA, T2NA) becomes a document with the same objects, one set for each pipe
// (tofino.go). Package dataplane runs it; simple_switch does not. The interface
// architecture (state.go) hides the differences between architectures.
//
// The package is a partial evaluator. It starts from the package main, instantiates
// parsers and controls, and walks their bodies with an environment that binds each
// name to a value: a constant, an instance, or a place (a BMv2 field, header or
// stack). It evaluates everything that is known at compile time. The rest becomes
// linear code (code.go) in which calls of functions, sub-parsers and sub-controls
// are inlined. Out and inout arguments are passed by reference if the callee cannot
// name the same place otherwise, and by copy if it can (call.go). Each block's code
// is then cut at its labels into BMv2's objects: parse states, tables with
// conditionals between them, or an action with jumps.
package lower

import (
	"cmp"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// Lower translates the checked program into BMv2 JSON. The configuration is nil if
// and only if one of the errors is not a warning. If a control turns out to be
// applied to different arguments, Lower starts again and copies the parameters of
// that control (blocks.go).
func Lower(file *syntax.File, info *types.Info, opts Options) (*bmv2.Config, syntax.Errors) {
	copied := map[string]bool{}
	for {
		l := newLowerer(file, info, opts, copied)
		before := len(copied)
		switch l.attempt(); {
		case len(copied) > before:
			continue
		case l.errs.Err() != nil:
			return nil, l.errs
		}
		return l.cfg, l.errs
	}
}

// v1modelName is the name of the architecture in Options.
const v1modelName = "v1model"

func newLowerer(file *syntax.File, info *types.Info, opts Options, copied map[string]bool) *lowerer {
	meta := &bmv2.Meta{Version: []int{2, 24}, Compiler: cmp.Or(opts.Compiler, "p4lb")}
	if opts.Arch != v1modelName {
		meta.Architecture = opts.Arch
	}
	l := &lowerer{
		file: file, info: info, opts: opts,
		cfg:         &bmv2.Config{Program: opts.Program, Meta: meta},
		copied:      copied,
		narrowed:    map[*syntax.CallExpr][2]int{},
		names:       map[string]int{},
		claimed:     map[string]bool{},
		headerTypes: map[string]*bmv2.HeaderType{},
		headerIDs:   map[string]int{},
		unionIDs:    map[string]int{},
		fieldLists:  map[int]int{},
		ids:         map[string]int{},
		acts:        map[actionKey]*bmv2.Action{},
		profiles:    map[*instance]*bmv2.ActionProfile{},
		tables:      map[tableID]*table{},
		instances:   map[*syntax.InstDecl]*instance{},
		direct:      map[*syntax.CallExpr]*instance{},
	}
	l.scalars = &scalars{l: l}
	switch opts.Arch {
	case bmv2.TNA, bmv2.T2NA:
		l.arch = &tofino{lowerer: l, prefixes: map[*instance]*header{}, shared: map[string]value{}, logs: map[*instance]*bmv2.Expr{}, queues: map[*instance]*bmv2.Expr{}, counters: map[*instance][]coveredCounter{}}
	default:
		l.arch = v1model{l}
	}
	return l
}

// attempt lowers the program once.
func (l *lowerer) attempt() {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(bail); !ok {
				panic(r)
			}
		}
	}()
	main := l.info.Top["main"]
	if main == nil {
		return // a library: nothing to emit
	}
	decl, _ := main.Decl.(*syntax.InstDecl)
	call := l.info.Insts[decl]
	if decl == nil || call == nil {
		l.errorf(main.Decl, "main must be an instance of the package %s", l.arch.traits().pkg)
		panic(bail{})
	}
	l.arch.program(decl, call)
	l.finishDirect()
	l.finishHeaders()
}

// evaluate calls the method that lowers expressions of x's kind.
func (l *lowerer) evaluate(x syntax.Expr, e *env) value {
	x = syntax.Unparen(x)
	tv := l.info.Types[x]
	if tv.Value != nil {
		return l.constant(tv.Value, e.subst(tv.Type))
	}
	switch x := x.(type) {
	case *syntax.Name:
		return l.evalName(x, e)
	case *syntax.SelectorExpr:
		return l.evalSelector(x, e)
	case *syntax.IndexExpr:
		return l.evalIndex(x, e)
	case *syntax.SliceExpr:
		hi, lo := l.sliceBounds(x, e)
		if call, ok := syntax.Unparen(x.X).(*syntax.CallExpr); ok {
			l.narrowed[call] = [2]int{lo, hi}
		}
		return slice(l.scalar(x.X, e), hi, lo)
	case *syntax.UnaryExpr:
		return unary(x.Op, l.scalar(x.X, e), l.shape(x, e))
	case *syntax.BinaryExpr:
		return l.evalBinary(x, e)
	case *syntax.CondExpr:
		return l.evalCond(x, e)
	case *syntax.CastExpr:
		v := l.eval(x.X, e)
		t := e.typeOf(x)
		if st, ok := scalarOf(t); ok {
			return cast(l.toEx(v, x.X), st)
		}
		return convert(v, t)
	case *syntax.CallExpr:
		return l.call(x, e)
	case *syntax.ListExpr:
		return l.evalList(x, e)
	case *syntax.RecordExpr:
		return l.evalRecord(x, e)
	case *syntax.InvalidExpr:
		if s, ok := types.Underlying(e.typeOf(x)).(*types.Struct); ok {
			return &literal{typ: s, invalid: true}
		}
	case *syntax.StringLit:
		return &ex{op: opString, str: x.Value, st: scalar{str: true}}
	case *syntax.Dots:
		return l.defaultOf(e.typeOf(x))
	case *syntax.ThisExpr:
		return e.inst
	}
	l.unsupported(x, "the expression %s here", syntax.String(x))
	return nil
}

// call evaluates a call and returns its result.
func (l *lowerer) call(x *syntax.CallExpr, e *env) value {
	call := l.info.Calls[x]
	if call == nil {
		l.unsupported(x, "the call %s", syntax.String(x))
	}
	switch call.Kind {
	case types.FuncCall:
		d, ok := call.Callee.Decl.(*syntax.FuncDecl)
		if !ok || d.Body == nil {
			l.unsupported(x, "the call %s", syntax.String(x))
		}
		return l.inline(x, d.Params, d.Body, call, e, &env{l: l, inst: e.inst, loops: e.loops}, never)
	case types.ActionCall:
		// an action that a control calls directly
		d := call.Callee.Decl.(*syntax.ActionDecl)
		callee := l.actionEnv(call.Callee, e)
		mentioned := l.mentions(d)
		l.inline(x, d.Params, d.Body, call, e, callee, func(a syntax.Expr) bool {
			o := l.rootObject(a)
			return o == nil || mentioned[o]
		})
		return nil
	case types.ExternCall:
		// The extern functions of core.p4, and the architecture's own.
		switch call.Callee.Name {
		case "verify":
			cond := l.scalar(call.Args[0], e)
			m := l.mark()
			err := l.scalar(call.Args[1], e)
			l.prim("verify", l.stable(cond, m), err)
			return nil
		case "static_assert":
			return boolEx(true)
		}
		return l.arch.function(x, call, e)
	case types.MethodCall:
		return l.callMethod(x, call, e)
	case types.TableApply:
		return l.applyTable(x, call, e)
	case types.ApplyCall:
		return l.callApply(x, call, e)
	case types.BuiltinCall:
		return l.callBuiltin(x, call, e)
	case types.Constructor:
		return l.instantiate(nil, call, e, "")
	}
	l.unsupported(x, "the call %s", syntax.String(x))
	return nil
}

// callMethod lowers a call of an extern object's method.
func (l *lowerer) callMethod(x *syntax.CallExpr, call *types.Call, e *env) value {
	inst, ok := l.eval(call.Recv, e).(*instance)
	if !ok || inst.extern() == nil {
		l.unsupported(x, "a method of this")
	}
	kind, method := inst.extern().Name, call.Method.Name
	switch kind + "." + method {
	case "packet_in.extract", "packet_in.lookahead", "packet_in.advance", "packet_in.length":
		if l.block != parserBlock {
			l.unsupported(x, "packet_in outside of the parser")
		}
		switch method {
		case "extract":
			l.extract(x, call, e)
			return nil
		case "advance":
			l.prim("advance", cast(l.scalar(call.Args[0], e), code32))
			return nil
		case "lookahead":
			return l.lookahead(x, e.subst(call.TypeArgs[0]))
		}
		l.unsupported(x, "packet_in.length in v1model on BMv2: use standard_metadata.packet_length")
		return nil
	case "packet_out.emit":
		l.emitHeader(l.eval(call.Args[0], e), x)
		return nil
	}
	return l.arch.method(inst, method, x, call, e)
}
