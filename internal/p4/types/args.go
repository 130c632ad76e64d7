package types

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// checkCall infers the type arguments of a chosen candidate and checks the
// arguments against its parameters.
func (c *checker) checkCall(pos syntax.Pos, name string, k candidate, args []*syntax.Arg, typeArgs []syntax.Expr) *Call {
	bound, _ := c.bind(pos, k.sig, args)
	tvs := make([]TypeAndValue, len(bound))
	ok := true
	for i, a := range bound {
		if a != nil {
			tvs[i] = c.value(a.Value)
			ok = ok && tvs[i].Type != Invalid
		}
	}
	targs, solved := c.typeArgs(pos, name, k, bound, tvs, typeArgs)
	if !ok || !solved {
		return nil
	}
	m := make(map[*TypeParam]Type, len(k.vars))
	for i, v := range k.vars {
		m[v] = targs[i]
	}
	if len(m) > 0 {
		c.spend(pos, costParam*leftOut(k.sig, args))
	}
	sig := substFunc(k.sig, m)
	call := &Call{Method: k.method, Type: sig, TypeArgs: targs, Result: sig.Result, Args: make([]syntax.Expr, len(bound))}
	for i, a := range bound {
		if a == nil {
			continue
		}
		if c.checkArg(name, a, tvs[i], sig.Params[i]) {
			call.Args[i] = a.Value
		} else {
			ok = ok && isDontCare(a.Value)
		}
	}
	if !ok {
		return nil
	}
	return call
}

func isDontCare(e syntax.Expr) bool {
	_, ok := e.(*syntax.DontCare)
	return ok
}

// typeArgs returns the type arguments of a call, explicit or inferred.
func (c *checker) typeArgs(pos syntax.Pos, name string, k candidate, bound []*syntax.Arg, tvs []TypeAndValue, explicit []syntax.Expr) ([]Type, bool) {
	in := newInference(k.vars)
	given := lists.Map(explicit, c.typeArg)
	if len(given) > 0 && len(given) != len(k.vars) {
		c.errorf(pos, "%s has %s, but %d are given", name, count(len(k.vars), "type parameter"), len(given))
		return nil, false
	}
	for i, t := range given {
		if t != wildcard {
			in.bound[i], in.given[i] = t, true
		}
	}
	for i, a := range bound {
		if a != nil {
			in.unify(k.sig.Params[i].Type, tvs[i].Type)
		}
	}
	return c.solve(pos, name, k, in, bound, tvs)
}

// solve ends an inference. A type argument that is still unknown becomes _ if only
// omitted parameters mention it; otherwise it is an error.
func (c *checker) solve(pos syntax.Pos, name string, k candidate, in *inference, bound []*syntax.Arg, tvs []TypeAndValue) ([]Type, bool) {
	known := in.substitution()
	for i, t := range in.bound {
		if t == Type(Invalid) {
			return nil, false
		}
		if t != nil {
			t = Subst(t, known)
			in.bound[i], known[in.vars[i]] = t, t
		}
		switch {
		case t == nil:
			if slices.ContainsFunc(tvs, func(tv TypeAndValue) bool { return tv.Type == Invalid }) {
				return nil, false
			}
			if !k.open && !onlyLeftOut(k, in.vars[i], bound) {
				c.errorf(pos, "the type argument %s of %s cannot be inferred from the arguments; write %s<...>(...)", in.vars[i].Name, name, name)
				return nil, false
			}
			in.bound[i], known[in.vars[i]] = wildcard, wildcard
		case !in.given[i] && weak(t) && !c.weakAllowed(pos, name, k, in.vars[i], t):
			return nil, false
		}
	}
	return in.bound, true
}

// onlyLeftOut reports whether v occurs only in parameters without arguments.
func onlyLeftOut(k candidate, v *TypeParam, bound []*syntax.Arg) bool {
	m := map[*TypeParam]Type{v: wildcard}
	found := false
	for i, p := range k.sig.Params {
		if mentions(p.Type, m) {
			if bound[i] != nil && !isDontCare(bound[i].Value) || !p.Optional {
				return false
			}
			found = true
		}
	}
	return found
}

// weakAllowed checks a type argument that is int or an untyped structure. int is
// allowed for parameters without direction; everything else is an error.
func (c *checker) weakAllowed(pos syntax.Pos, name string, k candidate, v *TypeParam, t Type) bool {
	if t == Int && !directed(k, v) {
		return true
	}
	switch {
	case t == Int:
		c.errorf(pos, "the type argument %s of %s is a plain int: the argument needs a width, as in 8w1", v.Name, name)
	case t == nullHeader || t == dotsType:
		c.errorf(pos, "the type argument %s of %s cannot be inferred from %s", v.Name, name, t)
	default:
		if _, ok := t.(*record); ok {
			c.errorf(pos, "the type argument %s of %s cannot be inferred from a structure without a type; cast it", v.Name, name)
			return false
		}
		if !directed(k, v) {
			return true
		}
		c.errorf(pos, "the type argument %s of %s contains a plain int: the elements of the list need a width, as in 8w1", v.Name, name)
	}
	return false
}

// directed reports whether v occurs in the result or in a parameter with a
// direction.
func directed(k candidate, v *TypeParam) bool {
	m := map[*TypeParam]Type{v: wildcard}
	if k.sig.Result != nil && k.typ == nil && mentions(k.sig.Result, m) {
		return true
	}
	return slices.ContainsFunc(k.sig.Params, func(p *Object) bool { return p.Dir != syntax.NoDir && mentions(p.Type, m) })
}

// checkArg checks one argument. It returns false if Call.Args gets no value: after
// an error, and for _.
func (c *checker) checkArg(name string, a *syntax.Arg, tv TypeAndValue, p *Object) bool {
	e := a.Value
	if isDontCare(e) {
		if p.Dir != syntax.Out && !p.Optional {
			c.errorf(e.Pos(), "_ can be passed only to an out parameter, %s of %s is %s", p.Name, name, orPlain(p.Dir))
		}
		return false
	}
	if tv.Type == Invalid {
		return false // an error is already reported
	}
	if why := notPassable(tv.Type); why != "" {
		c.errorf(e.Pos(), "%s cannot be an argument: it is %s", show(e), why)
		return false
	}
	if p = c.openIndex(name, e, tv, p); p.Type == wildcard && !p.Ctor {
		c.errorf(e.Pos(), "%s cannot be passed to parameter %s of %s: its type is not known", show(e), p.Name, name)
		return false
	}
	if why := badArgType(p); why != "" {
		c.errorf(e.Pos(), "%s cannot be passed to parameter %s of %s: %s", show(e), p.Name, name, why)
		return false
	}
	if p.Dir == syntax.Out || p.Dir == syntax.InOut {
		// The argument must be a writable place of exactly this type.
		if !tv.LValue {
			c.errorf(e.Pos(), "%s cannot be written, but parameter %s of %s is %s%s", show(e), p.Name, name, dirString(p.Dir), c.whyReadOnly(e))
			return false
		}
		if !matches(p.Type, tv.Type) {
			c.errorf(e.Pos(), "%s has type %s, but parameter %s of %s is %s %s", show(e), tv.Type, p.Name, name, dirString(p.Dir), p.Type)
			return false
		}
		if p.Dir == syntax.Out {
			c.writes(e)
		} else {
			c.changes(e)
		}
		return true
	}
	to := fmt.Sprintf("parameter %s of %s", p.Name, name)
	out := c.assignValue(e, tv, p.Type, to)
	if out.Type == Invalid {
		return false
	}
	if p.Dir == syntax.NoDir && !out.known && !c.knownWithData(e) {
		c.errorf(e.Pos(), "%s has no direction: %s must be known at compile time", to, show(e))
		return false
	}
	return true
}

// knownWithData reports whether e is known at compile time if action data count as
// known. Externs accept action data for parameters without direction.
func (c *checker) knownWithData(e syntax.Expr) bool {
	if c.info.Types[e].known {
		return true
	}
	switch x := e.(type) {
	case *syntax.Name:
		o := c.info.Uses[x]
		return o != nil && o.action && o.Dir == syntax.NoDir
	case *syntax.ParenExpr:
		return c.knownWithData(x.X)
	case *syntax.CastExpr:
		return c.knownWithData(x.X)
	case *syntax.UnaryExpr:
		return c.knownWithData(x.X)
	case *syntax.BinaryExpr:
		return c.knownWithData(x.X) && c.knownWithData(x.Y)
	case *syntax.SelectorExpr:
		return c.knownWithData(x.X)
	case *syntax.SliceExpr:
		return c.knownWithData(x.X) && c.knownWithData(x.Lo)
	}
	return false
}

// openIndex returns p with a type for an index that the register's declaration
// leaves open, as in Register<T, _>. Like Intel's compiler, it takes the type of
// the argument. p4c refuses the program.
func (c *checker) openIndex(name string, e syntax.Expr, tv TypeAndValue, p *Object) *Object {
	if p.Type != wildcard || p.Ctor || p.Dir != syntax.In || !isInteger(tv.Type) {
		return p
	}
	known := *p
	if known.Type = tv.Type; tv.Type == Int {
		known.Type = &Bits{Width: 32}
	}
	c.warnf(e.Pos(), "parameter %s of %s has no type, so %s is taken as it is; p4c wants a type in place of _", p.Name, name, show(e))
	return &known
}

func orPlain(d syntax.Direction) string {
	if d == syntax.NoDir {
		return "one without direction"
	}
	return "an " + dirString(d) + " parameter"
}

// badArgType returns an error message if a type argument gave the parameter a type
// that it cannot have.
func badArgType(p *Object) string {
	switch {
	case p.Ctor:
	case p.Type == String && p.Dir != syntax.NoDir:
		return "a string cannot have a direction"
	case isExternType(p.Type) && p.Dir != syntax.NoDir:
		return "the extern " + p.Type.String() + " cannot have a direction"
	case isBlockType(p.Type):
		return "its type would be " + p.Type.String()
	}
	return ""
}

func notPassable(t Type) string {
	switch t.(type) {
	case *applyResult:
		return "the result of a table"
	case *Set:
		return "a set"
	}
	return ""
}

// A candidate is one possible meaning of a call.
type candidate struct {
	sig    *Func
	vars   []*TypeParam // type parameters to infer
	obj    *Object
	method *Method
	typ    Type // type of a constructor's result
	open   bool // unknown type arguments become _ without an error
}

func isExternType(t Type) bool {
	_, ok := t.(*Extern)
	return ok
}

// allKnown reports whether all arguments are known at compile time.
func (c *checker) allKnown(call *Call) bool {
	return !slices.ContainsFunc(call.Args, func(a syntax.Expr) bool { return a != nil && !c.info.Types[a].known })
}

// args checks the arguments of a call that cannot be resolved, to report their
// errors.
func (c *checker) args(as []*syntax.Arg) {
	for _, a := range as {
		c.expr(a.Value)
	}
}

// choose finds the candidate that the arguments fit, and checks them. It returns
// the call without its kind, or nil after an error.
func (c *checker) choose(pos syntax.Pos, name string, cands []candidate, args []*syntax.Arg, typeArgs []syntax.Expr) (candidate, *Call) {
	if !c.checkArgNames(args) {
		c.args(args)
		return candidate{}, nil
	}
	var fit []candidate
	for _, k := range cands {
		if _, bad := c.bind(pos, k.sig, args); bad == nil {
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
		_, bad := c.bind(pos, cands[0].sig, args)
		c.badCall(pos, name, bad, cands[0].sig)
		return
	}
	for _, k := range cands {
		c.spend(pos, len(k.sig.Params))
	}
	c.errorf(pos, "no %s takes these %d arguments; there are %s", name, len(args), signatures(name, cands))
}

// badCall reports arguments that do not fit the only signature.
func (c *checker) badCall(pos syntax.Pos, name string, bad *badBinding, sig *Func) {
	if bad.arg != nil {
		pos = bad.arg.Pos()
	}
	c.spend(pos, len(sig.Params))
	c.errorf(pos, "%s: %s; it is declared as %s%s", name, bad.why, name, sig)
}

func signatures(name string, cands []candidate) string {
	sigs := lists.Map(cands, func(k candidate) string { return name + k.sig.String() })
	return strings.Join(sigs, ", ")
}

// checkArgNames checks that either all or no arguments are named, and that no name
// occurs twice.
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

// A badBinding describes why arguments do not fit the parameters.
type badBinding struct {
	arg *syntax.Arg // the wrong argument, or nil if one is missing
	why string
}

// leftOut returns the number of parameters without arguments.
func leftOut(sig *Func, args []*syntax.Arg) int { return max(0, len(sig.Params)-len(args)) }

func paramNames(sig *Func) func() []string {
	return func() []string { return lists.Map(sig.Params, func(p *Object) string { return p.Name }) }
}

// bind returns the argument of each parameter, or nil if it is omitted.
func (c *checker) bind(pos syntax.Pos, sig *Func, args []*syntax.Arg) ([]*syntax.Arg, *badBinding) {
	c.spend(pos, leftOut(sig, args))
	out := make([]*syntax.Arg, len(sig.Params))
	find := sig.finder()
	for i, a := range args {
		if a.Name == nil {
			if i >= len(out) {
				return nil, &badBinding{a, fmt.Sprintf("there are %d arguments for %s", len(args), count(len(out), "parameter"))}
			}
			out[i] = a
			continue
		}
		p, k := find(a.Name.Value)
		if p == nil {
			return nil, &badBinding{a, fmt.Sprintf("there is no parameter %s%s", a.Name.Value, c.suggest(a.Name.Value, paramNames(sig)))}
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
