package types

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/p4/syntax"
)

// A candidate is one of the things that a call may mean.
type candidate struct {
	sig    *Func
	vars   []*TypeParam // what is to be inferred
	obj    *Object
	method *Method
	typ    Type // what a constructor makes
	open   bool // type arguments that are not found are _, no error
}

// call checks a call and files it in Info.Calls.
func (c *checker) call(e *syntax.CallExpr) TypeAndValue {
	call, tv := c.resolve(e)
	if call != nil {
		c.info.Calls[e] = call
	}
	return tv
}

func (c *checker) resolve(e *syntax.CallExpr) (*Call, TypeAndValue) {
	switch f := e.Fun.(type) {
	case *syntax.Name:
		return c.callName(e, f)
	case *syntax.SelectorExpr:
		return c.callSelector(e, f)
	case *syntax.SpecializedType, *syntax.StackType, *syntax.BaseType:
		return c.construct(e, c.typeOrGeneric(f))
	case *syntax.CallExpr:
		c.expr(f)
		c.args(e.Args)
		c.errorf(e.Pos(), "the result of %s cannot be called", show(f))
		return nil, invalid
	}
	if tv := c.expr(e.Fun); tv.Type != Invalid {
		c.errorf(e.Pos(), "%s cannot be called", show(e.Fun))
	}
	c.args(e.Args)
	return nil, invalid
}

func (c *checker) callName(e *syntax.CallExpr, n *syntax.Name) (*Call, TypeAndValue) {
	o := c.find(n, "a function", nil)
	if o == nil {
		c.args(e.Args)
		return nil, invalid
	}
	switch o.Kind {
	case FuncObj:
		return c.callFunc(e, n, o)
	case ActionObj:
		c.record(n, TypeAndValue{Type: o.Type})
		return c.callAction(e, o)
	case TypeObj:
		c.recordType(n, o.Type)
		if len(e.TypeArgs) > 0 {
			return c.construct(e, c.specialize(e.Pos(), n.Value, o.Type, c.typeArgList(e.TypeArgs)))
		}
		return c.construct(e, o.Type)
	}
	c.record(n, TypeAndValue{Type: o.Type})
	hint := ""
	if _, ok := o.Type.(*Func); !ok && (o.Kind == TableObj || o.Kind == InstObj) {
		hint = "; did you mean " + n.Value + ".apply?"
		if _, ok := o.Type.(*Extern); ok {
			hint = ""
		}
	}
	c.errorf(e.Pos(), "%s is %s and cannot be called%s", n.Value, describe(o), hint)
	c.args(e.Args)
	return nil, invalid
}

// typeArgList resolves explicit type arguments.
func (c *checker) typeArgList(es []syntax.Expr) []Type {
	ts := make([]Type, len(es))
	for i, e := range es {
		ts[i] = c.typeArg(e)
	}
	return ts
}

func (c *checker) callFunc(e *syntax.CallExpr, n *syntax.Name, o *Object) (*Call, TypeAndValue) {
	var cands []candidate
	for f := o; f != nil; f = f.next {
		if sig, ok := f.Type.(*Func); ok {
			cands = append(cands, candidate{sig: sig, vars: sig.TypeParams, obj: f})
		}
	}
	cand, call := c.choose(e.Pos(), n.Value, cands, e.Args, e.TypeArgs)
	if call == nil {
		c.record(n, invalid)
		return nil, invalid
	}
	c.info.Uses[n] = cand.obj
	cand.obj.used = true
	c.warnDeprecated(n.Pos(), cand.obj)
	c.record(n, TypeAndValue{Type: call.Type})
	call.Callee = cand.obj
	call.Kind = FuncCall
	d, _ := cand.obj.Decl.(*syntax.FuncDecl)
	if d != nil && d.Body == nil {
		call.Kind = ExternCall
	}
	c.checkFuncCall(e, call, d)
	tv := TypeAndValue{Type: call.Result}
	if d != nil && (c.allKnown(call) && (d.Annotations.Get("pure") != nil || isExternType(call.Result)) || d.Name.Value == "static_assert") {
		tv.known = true
	}
	return call, tv
}

func isExternType(t Type) bool {
	_, ok := t.(*Extern)
	return ok
}

// allKnown reports whether all arguments are known at compile time.
func (c *checker) allKnown(call *Call) bool {
	for _, a := range call.Args {
		if a != nil && !c.info.Types[a].known {
			return false
		}
	}
	return true
}

// args checks arguments that belong to no parameter, for what is wrong in them.
func (c *checker) args(as []*syntax.Arg) {
	for _, a := range as {
		c.expr(a.Value)
	}
}

// choose picks the candidate that the arguments fit, checks them and gives the
// call without kind; nil after an error.
func (c *checker) choose(pos syntax.Pos, name string, cands []candidate, args []*syntax.Arg, typeArgs []syntax.Expr) (candidate, *Call) {
	if !c.checkArgNames(args) {
		c.args(args)
		return candidate{}, nil
	}
	var fit []candidate
	for _, k := range cands {
		if _, bad := bind(k.sig, args); bad == nil {
			fit = append(fit, k)
		}
	}
	switch len(fit) {
	case 1:
		return fit[0], c.checkCall(pos, name, fit[0], args, typeArgs)
	case 0:
		c.noFit(pos, name, cands, args)
	default:
		c.errorf(pos, "the call of %s is ambiguous: it fits %s", name, signatures(name, fit))
	}
	c.args(args)
	return candidate{}, nil
}

// noFit reports that a call fits none of the candidates.
func (c *checker) noFit(pos syntax.Pos, name string, cands []candidate, args []*syntax.Arg) {
	if len(cands) == 1 {
		_, bad := bind(cands[0].sig, args)
		at := pos
		if bad.arg != nil {
			at = bad.arg.Pos()
		}
		c.errorf(at, "%s: %s; it is declared as %s%s", name, bad.why, name, cands[0].sig)
		return
	}
	c.errorf(pos, "no %s takes these %d arguments; there are %s", name, len(args), signatures(name, cands))
}

func signatures(name string, cands []candidate) string {
	sigs := make([]string, len(cands))
	for i, k := range cands {
		sigs[i] = name + k.sig.String()
	}
	return strings.Join(sigs, ", ")
}

// checkArgNames wants all arguments or none to be named, and no name twice.
func (c *checker) checkArgNames(args []*syntax.Arg) bool {
	seen := map[string]bool{}
	for _, a := range args {
		if (a.Name == nil) != (args[0].Name == nil) {
			c.errorf(args[0].Pos(), "either all arguments of a call are named or none")
			return false
		}
		if a.Name != nil && seen[a.Name.Value] {
			c.errorf(a.Pos(), "argument %s is given twice", a.Name.Value)
			return false
		}
		if a.Name != nil {
			seen[a.Name.Value] = true
		}
	}
	return true
}

// A badBinding says why arguments do not fit the parameters.
type badBinding struct {
	arg *syntax.Arg // the culprit, nil where one is missing
	why string
}

// bind gives the argument of each parameter, nil where it is left out.
func bind(sig *Func, args []*syntax.Arg) ([]*syntax.Arg, *badBinding) {
	out := make([]*syntax.Arg, len(sig.Params))
	for i, a := range args {
		if a.Name == nil {
			if i >= len(out) {
				return nil, &badBinding{a, fmt.Sprintf("there are %d arguments for %s", len(args), count(len(out), "parameter"))}
			}
			out[i] = a
			continue
		}
		p, k := sig.Param(a.Name.Value)
		if p == nil {
			return nil, &badBinding{a, fmt.Sprintf("there is no parameter %s%s", a.Name.Value, suggest(a.Name.Value, paramNames(sig)))}
		}
		out[k] = a
	}
	for i, p := range sig.Params {
		if out[i] == nil && p.Default == nil && !p.Optional {
			return nil, &badBinding{nil, fmt.Sprintf("the argument for %s is missing", p.Name)}
		}
	}
	return out, nil
}

func paramNames(sig *Func) []string {
	names := make([]string, len(sig.Params))
	for i, p := range sig.Params {
		names[i] = p.Name
	}
	return names
}
