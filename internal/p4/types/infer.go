package types

import "slices"

// An inference finds the type arguments of one call from its arguments. The
// unification binds as much as it can and reports no errors, because the later
// conversion of the arguments gives better messages.
type inference struct {
	vars  []*TypeParam
	bound []Type
	given []bool // set by the program: must not change
}

func newInference(vars []*TypeParam) *inference {
	return &inference{vars: vars, bound: make([]Type, len(vars)), given: make([]bool, len(vars))}
}

// substitution returns the bindings found so far.
func (in *inference) substitution() map[*TypeParam]Type {
	m := make(map[*TypeParam]Type, len(in.vars))
	for i, v := range in.vars {
		if in.bound[i] != nil {
			m[v] = in.bound[i]
		}
	}
	return m
}

// unify walks the types of a parameter and of its argument in parallel.
func (in *inference) unify(param, arg Type) {
	if arg == Invalid || arg == wildcard {
		return
	}
	switch p := param.(type) {
	case *TypeParam:
		if i := slices.Index(in.vars, p); i >= 0 && !in.given[i] && arg != Type(p) {
			// A type that depends on its context is replaced by one that does not.
			old := in.bound[i]
			if old == nil || old == wildcard || old == Invalid || weak(old) && !weak(arg) {
				in.bound[i] = arg
			}
		}
	case *Stack:
		switch a := arg.(type) {
		case *Stack:
			in.unify(p.Elem, a.Elem)
		case *Tuple:
			in.unifyEach(p.Elem, a.Elems)
		}
	case *List:
		switch a := arg.(type) {
		case *List:
			in.unify(p.Elem, a.Elem)
		case *Tuple:
			in.unifyEach(p.Elem, a.Elems)
		}
	case *Tuple:
		if a, ok := arg.(*Tuple); ok {
			in.unifyAll(p.Elems, a.Elems)
		}
	case *Struct:
		in.unifyStruct(p, arg)
	default:
		in.unifyBlock(param, arg)
	}
}

func (in *inference) unifyAll(params, args []Type) {
	for i := range min(len(params), len(args)) {
		in.unify(params[i], args[i])
	}
}

func (in *inference) unifyEach(param Type, args []Type) {
	for _, a := range args {
		if a != dotsType {
			in.unify(param, a)
		}
	}
}

func (in *inference) unifyStruct(p *Struct, arg Type) {
	switch a := arg.(type) {
	case *Struct:
		if a.Decl == p.Decl {
			in.unifyAll(p.Args, a.Args)
		}
	case *Tuple:
		for i := range min(len(p.Fields), len(a.Elems)) {
			if a.Elems[i] != dotsType {
				in.unify(p.Fields[i].Type, a.Elems[i])
			}
		}
	case *record:
		for _, f := range a.fields {
			if pf := p.field(f.Name); pf != nil {
				in.unify(pf.Type, f.Type)
			}
		}
	}
}

// unifyBlock unifies parsers, controls and packages. It matches a parser with a
// parser type by the parameters of apply.
func (in *inference) unifyBlock(param, arg Type) {
	switch p := param.(type) {
	case *Extern:
		if a, ok := arg.(*Extern); ok && a.Decl == p.Decl {
			in.unifyAll(p.Args, a.Args)
		}
	case *Package:
		if a, ok := arg.(*Package); ok && a.Decl == p.Decl {
			in.unifyAll(p.Args, a.Args)
		}
	case *Parser:
		if a, ok := arg.(*Parser); ok {
			in.unifyApply(p.Apply, a.Apply)
		}
	case *Control:
		if a, ok := arg.(*Control); ok {
			in.unifyApply(p.Apply, a.Apply)
		}
	}
}

func (in *inference) unifyApply(p, a *Func) {
	if p == nil || a == nil {
		return
	}
	for i := range min(len(p.Params), len(a.Params)) {
		in.unify(p.Params[i].Type, a.Params[i].Type)
	}
}
