package types

import (
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func (c *checker) resolve(e *syntax.CallExpr) (*Call, TypeAndValue) {
	switch f := e.Fun.(type) {
	case *syntax.Name:
		return c.callName(e, f)
	case *syntax.SelectorExpr:
		x := c.expr(f.X)
		if x.Type == Invalid {
			c.args(e.Args)
			c.record(f, invalid)
			return nil, invalid
		}
		call, tv := c.callMember(e, f, x)
		if call == nil {
			c.record(f, invalid)
			return nil, tv
		}
		call.Recv = f.X
		c.record(f, TypeAndValue{Type: call.Type})
		return call, tv
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
		if len(e.TypeArgs) > 0 {
			return c.construct(e, c.specialize(e.Pos(), n.Value, o.Type, lists.Map(e.TypeArgs, c.typeArg)))
		}
		return c.construct(e, o.Type)
	}
	c.record(n, TypeAndValue{Type: o.Type})
	hint := ""
	if _, extern := o.Type.(*Extern); !extern && (o.Kind == TableObj || o.Kind == InstObj) {
		hint = "; did you mean " + n.Value + ".apply?"
	}
	c.errorf(e.Pos(), "%s is %s and cannot be called%s", n.Value, describe(o), hint)
	c.args(e.Args)
	return nil, invalid
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
	// The functions of core.p4 have rules beyond their signatures.
	if call.Kind != FuncCall && d != nil {
		switch d.Name.Value {
		case "static_assert":
			c.staticAssert(e, call)
		case "verify":
			if len(call.Args) == 2 && !c.env.parser {
				c.errorf(e.Pos(), "verify can be called only in a parser")
			}
		}
	}
	tv := TypeAndValue{Type: call.Result}
	if d != nil && (c.allKnown(call) && (d.Annotations.Get("pure") != nil || isExternType(call.Result)) || d.Name.Value == "static_assert") {
		tv.known = true
	}
	return call, tv
}

func (c *checker) callMember(e *syntax.CallExpr, f *syntax.SelectorExpr, x TypeAndValue) (*Call, TypeAndValue) {
	name := f.Sel.Value
	switch t := x.Type.(type) {
	case *Extern:
		if !x.IsType {
			return c.callMethod(e, f, t)
		}
	case *Parser, *Control:
		if name == "apply" {
			b, _ := BodyOf(t)
			return c.callApply(e, f, x, applyOf(t), b.TypeOnly)
		}
	case *Table:
		if name == "apply" {
			for _, a := range e.Args {
				c.expr(a.Value)
				c.errorf(a.Pos(), "the apply of a table takes no arguments")
			}
			if len(e.TypeArgs) > 0 {
				c.errorf(e.Pos(), "the apply of a table takes no type arguments")
			}
			if c.env.place != inApply && !c.env.table {
				c.errorf(e.Pos(), "a table cannot be applied %s", c.env.place)
				return nil, invalid
			}
			res := &applyResult{Table: t.Decl}
			call := &Call{Kind: TableApply, Callee: c.instanceOf(f.X), Type: &Func{Result: res}, Result: res}
			return call, TypeAndValue{Type: res}
		}
	case *Struct:
		if call, tv, ok := c.callHeader(e, f, x, t); ok {
			return call, tv
		}
	case *Stack:
		if call, tv, ok := c.callStack(e, f, x, t); ok {
			return call, tv
		}
	}
	if call, tv, ok := c.callSize(e, f, x); ok {
		return call, tv
	}
	c.args(e.Args)
	if tv := c.selectorOf(f, x); tv.Type != Invalid {
		c.errorf(f.Sel.Pos(), "%s cannot be called", show(f))
	}
	return nil, invalid
}

// selectorOf reports the error for a member that cannot be called, after X has been
// checked. It returns the type of a field or stack member.
func (c *checker) selectorOf(f *syntax.SelectorExpr, x TypeAndValue) TypeAndValue {
	name := f.Sel.Value
	switch t := x.Type.(type) {
	case *Struct:
		if !x.IsType {
			return c.field(f, x, t)
		}
	case *Stack:
		if !x.IsType {
			return c.stackMember(f, x, t)
		}
	}
	c.errorf(f.Sel.Pos(), "%s has no method %s: its type is %s", show(f.X), name, x.Type)
	return invalid
}

func (c *checker) callMethod(e *syntax.CallExpr, f *syntax.SelectorExpr, t *Extern) (*Call, TypeAndValue) {
	name := f.Sel.Value
	var cands []candidate
	for _, m := range t.called(name) {
		if !m.IsCtor {
			cands = append(cands, candidate{sig: m.Type, vars: m.Type.TypeParams, method: m})
		}
	}
	if len(cands) == 0 {
		c.errorf(f.Sel.Pos(), "the extern %s has no method %s%s", t, name, c.suggest(name, t.methodNames))
		c.args(e.Args)
		return nil, invalid
	}
	cand, call := c.choose(e.Pos(), t.Name+"."+name, cands, e.Args, e.TypeArgs)
	if call == nil {
		return nil, invalid
	}
	c.warnDeprecated(f.Sel.Pos(), &Object{Name: t.Name + "." + name, Decl: cand.method.Decl})
	call.Kind = MethodCall
	call.Callee = c.instanceOf(f.X)
	c.checkMethodCall(e, f, t, cand, call)
	return call, TypeAndValue{Type: call.Result, known: (cand.method.Decl != nil && cand.method.Decl.Annotations.Get("pure") != nil) && c.allKnown(call)}
}

func (t *Extern) methodNames() (names []string) {
	for _, m := range t.Methods {
		if !m.IsCtor {
			names = append(names, m.Name)
		}
	}
	return names
}

// instanceOf returns the object that a receiver names, or nil if the receiver is
// not a name.
func (c *checker) instanceOf(e syntax.Expr) *Object {
	if n, ok := syntax.Unparen(e).(*syntax.Name); ok {
		return c.info.Uses[n]
	}
	return nil
}

// callApply checks the application of an instance of a parser or control, or of its
// type.
func (c *checker) callApply(e *syntax.CallExpr, f *syntax.SelectorExpr, x TypeAndValue, sig *Func, typeOnly bool) (*Call, TypeAndValue) {
	if x.IsType && !c.checkDirect(e, f, x.Type, typeOnly) {
		c.args(e.Args)
		return nil, invalid
	}
	_, call := c.choose(e.Pos(), show(f), []candidate{{sig: sig}}, e.Args, e.TypeArgs)
	// Only parsers apply parsers, and only controls apply controls.
	what, ok := "a control", c.env.place == inApply
	if _, parser := x.Type.(*Parser); parser {
		what, ok = "a parser", c.env.place == inState
	}
	if !ok {
		where := c.env.place.String()
		if c.env.place == inApply {
			where = "in a control"
		}
		c.errorf(e.Pos(), "%s cannot be applied %s", what, where)
	}
	if call == nil {
		return nil, invalid
	}
	call.Kind = ApplyCall
	if !x.IsType {
		call.Callee = c.instanceOf(f.X)
	}
	return call, TypeAndValue{Type: Void}
}

// checkDirect checks that Type.apply() is possible without an instance.
func (c *checker) checkDirect(e *syntax.CallExpr, f *syntax.SelectorExpr, t Type, typeOnly bool) bool {
	if typeOnly {
		c.errorf(f.Pos(), "%s is a %s: it has no body to apply", show(f.X), typeKind(t))
		return false
	}
	if unspecialized(t) {
		c.errorf(f.Pos(), "%s is generic: its type arguments are missing", show(f.X))
		return false
	}
	if ctor := ctorOf(t); ctor != nil {
		if _, bad := c.bind(f.Pos(), ctor, nil); bad != nil {
			c.errorf(f.Pos(), "%s needs constructor arguments: declare an instance of it", show(f.X))
			return false
		}
	}
	return true
}

func (c *checker) callAction(e *syntax.CallExpr, o *Object) (*Call, TypeAndValue) {
	if len(e.TypeArgs) > 0 {
		c.errorf(e.Pos(), "actions have no type parameters")
	}
	sig := o.Type.(*Func)
	switch {
	case c.env.place == inFunction:
		c.errorf(e.Pos(), "a function cannot call the action %s", o.Name)
	case c.env.parser:
		c.errorf(e.Pos(), "a parser cannot call the action %s", o.Name)
	case c.env.place == nowhere && !c.env.table:
		c.errorf(e.Pos(), "the action %s cannot be called here", o.Name)
	}
	// In a direct call, the control plane's parameters become in parameters.
	out := &Func{Result: Void, Params: make([]*Object, len(sig.Params))}
	for i, p := range sig.Params {
		q := *p
		if q.Dir == syntax.NoDir {
			q.Dir = syntax.In
		}
		out.Params[i] = &q
	}
	_, call := c.choose(e.Pos(), o.Name, []candidate{{sig: out, obj: o}}, e.Args, nil)
	if call == nil {
		return nil, invalid
	}
	call.Kind, call.Callee, call.Type, call.Result = ActionCall, o, sig, Void
	return call, TypeAndValue{Type: Void}
}

// callHeader checks isValid, setValid and setInvalid.
func (c *checker) callHeader(e *syntax.CallExpr, f *syntax.SelectorExpr, x TypeAndValue, t *Struct) (*Call, TypeAndValue, bool) {
	name := f.Sel.Value
	if x.IsType || t.Kind == syntax.StructKindStruct {
		return nil, invalid, false
	}
	tv := TypeAndValue{Type: Void}
	switch name {
	case "isValid":
		tv.Type = Bool
		if agg, ok := x.Value.(*AggregateValue); ok {
			tv.Value, tv.known = !agg.Invalid, true
		}
	case "setValid", "setInvalid":
		if t.isUnion() {
			c.errorf(f.Sel.Pos(), "a header_union has no %s: its members have", name)
			c.args(e.Args)
			return nil, invalid, true
		}
		if !x.LValue {
			c.errorf(e.Pos(), "%s cannot be written%s", show(f.X), c.whyReadOnly(f.X))
			return nil, invalid, true
		}
		c.writes(f.X)
	default:
		return nil, invalid, false
	}
	call := c.builtin(e, name, tv.Type)
	return call, tv, true
}

// builtin returns the call of a built-in method without parameters.
func (c *checker) builtin(e *syntax.CallExpr, name string, result Type) *Call {
	for _, a := range e.Args {
		c.expr(a.Value)
		c.errorf(a.Pos(), "%s takes no arguments", name)
	}
	if len(e.TypeArgs) > 0 {
		c.errorf(e.Pos(), "%s takes no type arguments", name)
	}
	return &Call{Kind: BuiltinCall, Builtin: name, Type: &Func{Result: result}, Result: result}
}

// callStack checks push_front and pop_front.
func (c *checker) callStack(e *syntax.CallExpr, f *syntax.SelectorExpr, x TypeAndValue, t *Stack) (*Call, TypeAndValue, bool) {
	name := f.Sel.Value
	if x.IsType || name != "push_front" && name != "pop_front" || !isHeaderType(t.Elem) {
		return nil, invalid, false
	}
	if c.env.parser {
		c.errorf(f.Sel.Pos(), "%s cannot be used in a parser", name)
	}
	if !x.LValue {
		c.errorf(e.Pos(), "%s cannot be written%s", show(f.X), c.whyReadOnly(f.X))
	}
	c.writes(f.X)
	sig := &Func{Params: []*Object{{Kind: ParamObj, Name: "count", Type: Int}}, Result: Void}
	if !c.checkArgNames(e.Args) {
		return nil, invalid, true
	}
	bound, bad := c.bind(e.Pos(), sig, e.Args)
	if bad != nil {
		c.errorf(e.Pos(), "%s: %s", name, bad.why)
		c.args(e.Args)
		return nil, invalid, true
	}
	arg := bound[0].Value
	if n, ok := c.constInt(arg, "the count of "+name); !ok {
		return nil, invalid, true
	} else if n.Sign() < 0 {
		c.errorf(arg.Pos(), "the count of %s cannot be negative, it is %s", name, n)
	}
	return &Call{Kind: BuiltinCall, Builtin: name, Type: sig, Result: Void, Args: []syntax.Expr{arg}}, TypeAndValue{Type: Void}, true
}

// callSize checks the size methods of values and types.
func (c *checker) callSize(e *syntax.CallExpr, f *syntax.SelectorExpr, x TypeAndValue) (*Call, TypeAndValue, bool) {
	name := f.Sel.Value
	switch name {
	case "minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes":
	default:
		return nil, invalid, false
	}
	call := c.builtin(e, name, Int)
	tv := TypeAndValue{Type: Int, known: true}
	lo, hi, ok := sizeRange(x.Type)
	if !ok {
		if !hasTypeParam(x.Type) {
			c.errorf(e.Pos(), "%s has type %s, which has no size in bits", show(f.X), x.Type)
			return nil, invalid, true
		}
		return call, tv, true
	}
	n := lo
	if name[:3] == "max" {
		n = hi
	}
	if strings.HasSuffix(name, "Bytes") {
		n = (n + 7) / 8
	}
	tv.Value = big.NewInt(int64(n))
	return call, tv, true
}

// checkMethodCall checks the rules of packet_in and packet_out beyond their
// signatures.
func (c *checker) checkMethodCall(e *syntax.CallExpr, f *syntax.SelectorExpr, x *Extern, k candidate, call *Call) {
	switch x.Name + "." + k.method.Name {
	case "packet_in.extract":
		c.checkExtract(e, call)
	case "packet_in.lookahead":
		if len(call.TypeArgs) == 1 {
			t := call.TypeArgs[0]
			if !hasTypeParam(t) {
				if _, ok := WidthOf(t); !ok {
					at := e.Pos()
					if len(e.TypeArgs) > 0 {
						at = e.TypeArgs[0].Pos()
					}
					c.errorf(at, "lookahead needs a type of fixed width, not %s", t)
				}
			}
		}
	case "packet_out.emit":
		if len(call.Args) == 1 && call.Args[0] != nil && !emittable(c.info.Types[call.Args[0]].Type) {
			c.errorf(e.Pos(), "emit takes headers, stacks, unions and structs of these, but %s has type %s", show(call.Args[0]), c.info.Types[call.Args[0]].Type)
		}
	}
	if isExternType(call.Result) && !c.allKnown(call) {
		c.errorf(e.Pos(), "%s makes an instance of %s: its arguments must be known at compile time", show(f), call.Result)
	}
}
