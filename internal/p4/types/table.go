package types

import (
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// A table holds the state that the checks of a table's parts share.
type table struct {
	c       *checker
	decl    *syntax.TableDecl
	obj     *Object
	keys    []keyType
	actions map[*Object]*Call
	refs    map[*Object]*syntax.ActionRef
}

// A keyType is the type and the match kind of a key.
type keyType struct {
	typ   Type
	match string
}

func (c *checker) tableDecl(d *syntax.TableDecl) {
	c.annotations(d.Annotations)
	o := &Object{Kind: TableObj, Name: d.Name.Value, Decl: d, Type: &Table{Decl: d}, Parent: c.env.owner}
	t := &table{c: c, decl: d, obj: o, actions: map[*Object]*Call{}, refs: map[*Object]*syntax.ActionRef{}}
	c.tables[d] = t.actions
	env := c.env
	env.owner, env.table = o, true
	c.declare(o, d, d.Name)
	c.within(env, func() {
		t.key()
		t.actionList()
		seen := map[string]bool{}
		for _, p := range t.decl.Props {
			c.annotations(p.Annotations)
			name := p.Name.Value
			if seen[name] {
				c.errorf(p.Name.Pos(), "table %s has the property %s twice", t.decl.Name.Value, name)
				continue
			}
			seen[name] = true
			switch p.Name.Value {
			case "default_action":
				t.defaultAction(p)
			case "size":
				tv := c.value(p.Value)
				if tv.Type != Invalid && (!isInteger(Underlying(tv.Type)) || !tv.known) {
					c.errorf(p.Value.Pos(), "the size of a table must be a constant number, %s has type %s", show(p.Value), tv.Type)
				}
				c.checkSize(p.Value, "a table", tv)
			case "largest_priority_wins":
				if tv := c.value(p.Value); tv.Type != Invalid && (tv.Type != Bool || tv.Value == nil) {
					c.errorf(p.Value.Pos(), "largest_priority_wins must be true or false")
				}
			case "priority_delta":
				if n, ok := c.constInt(p.Value, "priority_delta"); ok && n.Sign() <= 0 {
					c.errorf(p.Value.Pos(), "priority_delta must be positive, it is %s", n)
				}
			default:
				c.expr(p.Value)
			}
		}
		if !seen["default_action"] && t.decl.Actions != nil && c.noAction() == nil {
			c.errorf(t.decl.Name.Pos(), "table %s has no default_action, and NoAction is not declared; it is in core.p4", t.decl.Name.Value)
		}
		t.entries()
	})
}

func (t *table) key() {
	if t.decl.Key == nil {
		return
	}
	c := t.c
	for _, k := range t.decl.Key.Elems {
		c.annotations(k.Annotations)
		tv := c.value(k.X)
		typ := tv.Type
		if !keyable(typ) {
			c.errorf(k.X.Pos(), "a table cannot have a key of type %s; bits, bools, enums and errors can be keys", typ)
			typ = Invalid
		}
		if tv.known && tv.Type != Invalid {
			c.warnf(k.X.Pos(), "the key %s is constant", show(k.X))
		}
		kt := keyType{typ: typ}
		if o := c.find(k.Match, "a match kind", func(o *Object) bool { return o.Kind == MatchKindObj }); o != nil {
			kt.match = o.Name
			c.record(k.Match, TypeAndValue{Type: MatchKind, known: true})
		}
		t.keys = append(t.keys, kt)
		if k.Annotations.Get("name") == nil && typ != Invalid {
			if bad := c.unnamed(k.X); bad != nil {
				c.errorf(k.X.Pos(), "the key %s needs a @name annotation, its name cannot be made from %s", show(k.X), show(bad))
			}
		}
	}
}

func keyable(t Type) bool {
	switch t := Underlying(t).(type) {
	case *Bits, *Enum:
		return true
	case *Basic:
		return t == Bool || t == Error || t == Invalid
	}
	return false
}

// unnamed returns the part of a key expression that has no name for the control
// plane, or nil.
func (c *checker) unnamed(e syntax.Expr) syntax.Expr {
	all := func(es ...syntax.Expr) syntax.Expr {
		for _, e := range es {
			if bad := c.unnamed(e); bad != nil {
				return bad
			}
		}
		return nil
	}
	if Number(c.info.Types[e].Value) != nil {
		return nil
	}
	switch x := e.(type) {
	case *syntax.Name, *syntax.IntLit:
		return nil
	case *syntax.ParenExpr:
		return c.unnamed(x.X)
	case *syntax.SelectorExpr:
		if _, ok := x.X.(*syntax.BaseType); ok {
			return nil
		}
		return c.unnamed(x.X)
	case *syntax.IndexExpr:
		return all(x.X, x.Index)
	case *syntax.SliceExpr:
		if x.Hi == nil {
			return e
		}
		return all(x.X, x.Hi, x.Lo)
	case *syntax.BinaryExpr:
		if x.Op == syntax.And {
			return all(x.X, x.Y)
		}
	case *syntax.CallExpr:
		if k := c.info.Calls[x]; k != nil && k.Builtin == "isValid" {
			return c.unnamed(k.Recv)
		}
	}
	return e
}

func (t *table) actionList() {
	c := t.c
	if t.decl.Actions == nil {
		c.errorf(t.decl.Name.Pos(), "table %s has no actions", t.decl.Name.Value)
		return
	}
	for _, r := range t.decl.Actions.Refs {
		c.annotations(r.Annotations)
		o := c.findAction(r.Name)
		if o == nil {
			c.args(r.Args)
			continue
		}
		if t.actions[o] != nil {
			c.errorf(r.Pos(), "the action %s is listed twice", o.Name)
			continue
		}
		call := t.listed(r, o)
		t.actions[o], t.refs[o] = call, r
		c.info.ActionRefs[r] = call
	}
}

func (c *checker) findAction(n *syntax.Name) *Object {
	o := c.find(n, "an action", nil)
	if o == nil {
		return nil
	}
	if o.Kind != ActionObj {
		c.errorf(n.Pos(), "%s is %s, not an action", n.Value, describe(o))
		return nil
	}
	c.record(n, TypeAndValue{Type: o.Type})
	return o
}

// listed checks an action in a table's list. Parameters with a direction must be
// bound here; the control plane sets the others.
func (t *table) listed(r *syntax.ActionRef, o *Object) *Call {
	c := t.c
	sig := o.Type.(*Func)
	call := &Call{Kind: ActionCall, Callee: o, Type: sig, Result: Void, Args: make([]syntax.Expr, len(sig.Params))}
	if !c.checkArgNames(r.Args) {
		c.args(r.Args)
		return call
	}
	for i, a := range r.Args {
		p := paramOf(sig, a, i)
		switch {
		case p == nil:
			c.expr(a.Value)
			c.errorf(a.Pos(), "%s has no parameter for %s; it is declared as %s%s", o.Name, show(a.Value), o.Name, sig)
		case p.Dir == syntax.NoDir:
			c.expr(a.Value)
			c.errorf(a.Pos(), "parameter %s of %s is set by the control plane and cannot be bound here", p.Name, o.Name)
		default:
			_, k := sig.param(p.Name)
			if c.checkArg(o.Name, a, c.value(a.Value), p) {
				call.Args[k] = a.Value
			}
			// A table must not be applied while the arguments of its own actions
			// are evaluated.
			for call := range syntax.Each[*syntax.CallExpr](a.Value) {
				if k := c.info.Calls[call]; k != nil && k.Kind == TableApply {
					c.errorf(call.Pos(), "a table cannot be applied in the argument of an action")
				}
			}
		}
	}
	// All parameters except the control plane's must be bound.
	if !slices.ContainsFunc(r.Args, func(a *syntax.Arg) bool { return t.c.info.Types[a.Value].Type == Invalid }) {
		for i, p := range call.Type.Params {
			if p.Dir != syntax.NoDir && call.Args[i] == nil && p.Default == nil {
				t.c.errorf(r.Pos(), "parameter %s of %s is %s and must be bound: %s(...)", p.Name, o.Name, dirString(p.Dir), o.Name)
			}
		}
	}
	return call
}

// paramOf returns the parameter of the i-th argument.
func paramOf(sig *Func, a *syntax.Arg, i int) *Object {
	if a.Name != nil {
		p, _ := sig.param(a.Name.Value)
		return p
	}
	if i < len(sig.Params) {
		return sig.Params[i]
	}
	return nil
}

// chosen checks an action in default_action or an entry. It must be in the list and
// bound to the same arguments; the control plane's arguments must be constants.
func (t *table) chosen(pos syntax.Pos, n *syntax.Name, args []*syntax.Arg, what string) *Call {
	c := t.c
	o := c.findAction(n)
	if o == nil {
		c.args(args)
		return nil
	}
	sig := o.Type.(*Func)
	listed := t.actions[o]
	if listed == nil {
		c.args(args)
		if t.decl.Actions != nil {
			c.errorf(pos, "%s is not in the list of actions of table %s%s", o.Name, t.decl.Name.Value, c.suggest(o.Name, actionNames(t.actions)))
		}
		return nil
	}
	call := &Call{Kind: ActionCall, Callee: o, Type: sig, Result: Void, Args: make([]syntax.Expr, len(sig.Params))}
	if !c.checkArgNames(args) {
		c.args(args)
		return call
	}
	bound, bad := c.bind(pos, sig, args)
	if bad != nil {
		c.args(args)
		c.badCall(pos, o.Name, bad, sig)
		return call
	}
	for i, a := range bound {
		if a != nil {
			t.chosenArg(o, call, listed, i, a)
		}
	}
	return call
}

func (t *table) chosenArg(o *Object, call, listed *Call, i int, a *syntax.Arg) {
	c := t.c
	p := call.Type.Params[i]
	if p.Dir != syntax.NoDir {
		if !c.checkArg(o.Name, a, c.value(a.Value), p) {
			return
		}
		call.Args[i] = a.Value
		if x := listed.Args[i]; x != nil && !sameExpr(x, a.Value) {
			c.errorf(a.Pos(), "%s is bound to %s in the list of actions, not to %s", p.Name, show(x), show(a.Value))
		}
		return
	}
	tv := c.value(a.Value)
	if isDontCare(a.Value) {
		c.errorf(a.Pos(), "_ cannot be the value of %s", p.Name)
		return
	}
	tv = c.assignValue(a.Value, tv, p.Type, "parameter "+p.Name+" of "+o.Name)
	if tv.Type == Invalid {
		return
	}
	if !tv.known {
		c.errorf(a.Pos(), "the value of %s must be known at compile time, %s is not", p.Name, show(a.Value))
		return
	}
	call.Args[i] = a.Value
}

func actionNames(actions map[*Object]*Call) func() []string {
	return func() (names []string) {
		for o := range actions {
			names = append(names, o.Name)
		}
		slices.Sort(names)
		return names
	}
}

// noAction returns the action that is the default of tables without default_action.
func (c *checker) noAction() *Object {
	o := c.top.names["NoAction"]
	if o == nil {
		return nil
	}
	o.used = true
	if o.Kind != ActionObj {
		c.errorf(declPos(o), "NoAction must be an action, as in core.p4: tables without default_action call it; here it is %s", describe(o))
		return o
	}
	if f, ok := o.Type.(*Func); ok && len(f.Params) > 0 {
		c.errorf(declPos(o), "NoAction has parameters, but tables without default_action call it without arguments: use the NoAction of core.p4")
	}
	return o
}

// maxSize bounds the sizes of tables and similar objects, because targets and their
// interfaces use 32 bits.
const maxSize = 1<<31 - 1

// checkSize refuses an impossible size. With 0, the target chooses the size.
func (c *checker) checkSize(at syntax.Expr, what string, tv TypeAndValue) {
	if n := Number(tv.Value); n != nil && (n.Sign() < 0 || n.Cmp(big.NewInt(maxSize)) > 0) {
		c.errorf(at.Pos(), "the size of %s must be from 0 to %d, %s is not", what, maxSize, show(at))
	}
}

func (t *table) defaultAction(p *syntax.Property) {
	c := t.c
	n, args := actionCall(p.Value)
	if n == nil {
		c.expr(p.Value)
		c.errorf(p.Value.Pos(), "default_action must be an action, not %s", show(p.Value))
		return
	}
	if t.decl.Actions != nil && before(p.Pos(), t.decl.Actions.Pos()) {
		c.errorf(t.decl.Name.Pos(), "table %s has its default_action before the list of actions", t.decl.Name.Value)
	}
	call := t.chosen(p.Value.Pos(), n, args, "default_action")
	if call == nil {
		return
	}
	c.info.ActionRefs[p.Value] = call
	if x, ok := p.Value.(*syntax.CallExpr); ok {
		c.info.Calls[x] = call
		c.record(x, TypeAndValue{Type: Void})
	}
	if r := t.refs[call.Callee]; r != nil && r.Annotations.Get("tableonly") != nil {
		c.errorf(p.Value.Pos(), "%s is @tableonly and cannot be the default action", call.Callee.Name)
	}
}

// actionCall splits the value of default_action into a name and arguments.
func actionCall(e syntax.Expr) (*syntax.Name, []*syntax.Arg) {
	switch x := syntax.Unparen(e).(type) {
	case *syntax.Name:
		return x, nil
	case *syntax.CallExpr:
		if n, ok := x.Fun.(*syntax.Name); ok {
			return n, x.Args
		}
	}
	return nil, nil
}

// before reports whether a comes before b in one file.
func before(a, b syntax.Pos) bool {
	return a.File() == b.File() && (a.Line() < b.Line() || a.Line() == b.Line() && a.Col() < b.Col())
}
