package types

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// Check resolves the names of a program and checks its types. The Info is never
// nil; after errors it is incomplete. Errors and warnings come in source order.
//
// One pass over the declarations is enough. P4 requires that names are declared
// before they are used, except for the states of a parser, so types are always
// known.
func Check(file *syntax.File) (*Info, syntax.Errors) {
	c := &checker{
		info: &Info{
			Types:      make(map[syntax.Expr]TypeAndValue, 1024),
			Uses:       make(map[*syntax.Name]*Object, 512),
			Defs:       make(map[syntax.Node]*Object, 256),
			Calls:      map[*syntax.CallExpr]*Call{},
			Insts:      map[*syntax.InstDecl]*Call{},
			ActionRefs: map[syntax.Node]*Call{},
			Top:        map[string]*Object{},
		},
		errors: map[string]*Object{},
		tables: map[*syntax.TableDecl]map[*Object]*Call{},
		paths:  map[string]*Object{},
		said:   map[said]bool{},
	}
	c.top = c.push()
	c.file(file)
	c.done = true
	return c.info, c.errs.Clean()
}

// file checks the declarations, up to the limit of errors.
func (c *checker) file(file *syntax.File) {
	defer func() {
		if r := recover(); r != nil && r != (enough{}) {
			panic(r)
		}
	}()
	for _, d := range file.Decls {
		c.decl(d)
	}
}

// decl checks one declaration at top level, in a block or in a statement list.
func (c *checker) decl(d syntax.Decl) {
	switch d := d.(type) {
	case *syntax.ConstDecl:
		c.constDecl(d)
	case *syntax.VarDecl:
		c.varDecl(d)
	case *syntax.InstDecl:
		c.instDecl(d)
	case *syntax.TypedefDecl:
		c.typedefDecl(d)
	case *syntax.StructDecl:
		c.structDecl(d)
	case *syntax.EnumDecl:
		c.enumDecl(d)
	case *syntax.ErrorDecl:
		for _, m := range d.Members {
			if old := c.errors[m.Value]; old != nil {
				c.errorf(m.Pos(), "the error %s is declared twice; the first is at %s", m.Value, c.posOf(old))
				continue
			}
			v := &ErrorValue{Name: m.Value, Index: len(c.info.Errors)}
			o := &Object{Kind: ErrorObj, Name: m.Value, Decl: m, Type: Error, Value: v}
			c.errors[m.Value] = o
			c.info.Defs[m] = o
			c.info.Errors = append(c.info.Errors, m.Value)
		}
	case *syntax.MatchKindDecl:
		for _, m := range d.Members {
			old := c.top.names[m.Value]
			if old != nil && old.Kind == MatchKindObj {
				c.errorf(m.Pos(), "the match kind %s is declared twice; the first is at %s", m.Value, c.posOf(old))
				continue
			}
			c.declare(&Object{Kind: MatchKindObj, Type: MatchKind}, m, m)
			c.info.MatchKinds = append(c.info.MatchKinds, m.Value)
		}
	case *syntax.ExternDecl:
		c.externDecl(d)
	case *syntax.FuncDecl:
		c.funcDecl(d)
	case *syntax.ActionDecl:
		c.actionDecl(d)
	case *syntax.ParserDecl:
		c.parserDecl(d)
	case *syntax.ControlDecl:
		c.controlDecl(d)
	case *syntax.PackageDecl:
		c.packageDecl(d)
	case *syntax.ValueSetDecl:
		c.valueSetDecl(d)
	case *syntax.TableDecl:
		c.tableDecl(d)
	}
}

func (c *checker) exprNode(e syntax.Expr) TypeAndValue {
	switch e := e.(type) {
	case *syntax.Name:
		return c.ident(e)
	case *syntax.IntLit:
		return c.intLit(e)
	case *syntax.BoolLit:
		return TypeAndValue{Type: Bool, Value: e.Value, known: true}
	case *syntax.StringLit:
		return TypeAndValue{Type: String, Value: e.Value, known: true}
	case *syntax.DefaultExpr, *syntax.DontCare:
		return dontCare
	case *syntax.Dots:
		return TypeAndValue{Type: dotsType, known: true}
	case *syntax.InvalidExpr:
		return TypeAndValue{Type: nullHeader, known: true}
	case *syntax.ThisExpr:
		if c.env.this == nil {
			c.errorf(e.Pos(), "this has a meaning only in the implementation of an abstract method")
			return invalid
		}
		return TypeAndValue{Type: c.env.this, known: true}
	case *syntax.ParenExpr:
		return c.expr(e.X)
	case *syntax.UnaryExpr:
		return c.unary(e)
	case *syntax.BinaryExpr:
		return c.binary(e)
	case *syntax.RangeExpr:
		return c.setOf(e, e.Lo, e.Hi, "..")
	case *syntax.MaskExpr:
		return c.setOf(e, e.X, e.Mask, "&&&")
	case *syntax.CondExpr:
		return c.cond(e)
	case *syntax.CastExpr:
		return c.cast(e)
	case *syntax.IndexExpr:
		return c.index(e)
	case *syntax.SliceExpr:
		return c.slice(e)
	case *syntax.SelectorExpr:
		return c.selector(e)
	case *syntax.CallExpr:
		call, tv := c.resolve(e)
		if call != nil {
			c.info.Calls[e] = call
		}
		return tv
	case *syntax.ListExpr:
		return c.list(e)
	case *syntax.RecordExpr:
		return c.recordExpr(e)
	}
	return TypeAndValue{Type: c.typeOrGeneric(e), IsType: true, known: true}
}

func (c *checker) constDecl(d *syntax.ConstDecl) {
	c.annotations(d.Annotations)
	t := c.typ(d.Type)
	if why := notConst(t); why != "" {
		c.errorf(d.Type.Pos(), "a constant cannot have type %s: it is %s", t, why)
		t = Invalid
	}
	tv := c.value(d.Value)
	if tv.Type != Invalid && !tv.known {
		c.errorf(d.Value.Pos(), "the value of the constant %s is not known at compile time", d.Name.Value)
		tv = invalid
	}
	tv = c.assignValue(d.Value, tv, t, "the constant "+d.Name.Value)
	o := &Object{Kind: ConstObj, Type: t, Value: tv.Value}
	c.declare(o, d, d.Name)
}

func notConst(t Type) string {
	switch t.(type) {
	case *Extern:
		return "an extern"
	case *Parser, *Control, *Package:
		return "a " + typeKind(t)
	}
	return ""
}

func (c *checker) varDecl(d *syntax.VarDecl) {
	c.annotations(d.Annotations)
	t := c.varType(d.Type, d.Name)
	if d.Value != nil {
		c.assign(d.Value, t, "the variable "+d.Name.Value)
	}
	o := c.declare(&Object{Kind: VarObj, Type: t}, d, d.Name)
	o.inState = c.env.place == inState
	if d.Value == nil {
		c.follow(o)
	}
}

// varType resolves the type of a variable, which must hold data that the program
// can change.
func (c *checker) varType(e syntax.Expr, name *syntax.Name) Type {
	t := c.typ(e)
	switch t.(type) {
	case *Extern, *Parser, *Control, *Package:
		c.errorf(name.Pos(), "%s cannot be a variable of type %s; an instance is declared with arguments: %s(...) %s", name.Value, t, t, name.Value)
		return Invalid
	}
	if t == Int || t == String || t == MatchKind {
		hint := ""
		if t == Int {
			hint = ", which has no width; use bit<W> or int<W>"
		}
		c.errorf(name.Pos(), "%s cannot be a variable of type %s%s", name.Value, t, hint)
		return Invalid
	}
	return t
}

func (c *checker) typedefDecl(d *syntax.TypedefDecl) {
	c.annotations(d.Annotations)
	if d.Inline != nil {
		c.decl(d.Inline)
	}
	t := c.typ(d.Type)
	if d.New {
		t = c.newType(d, t)
	}
	c.declare(&Object{Kind: TypeObj, Type: t}, d, d.Name)
}

func (c *checker) newType(d *syntax.TypedefDecl, t Type) Type {
	switch u := t.(type) {
	case *Bits, *New:
	default:
		if u != Bool && u != Invalid {
			c.errorf(d.Type.Pos(), "type %s cannot be made from %s: only from bit<>, int<>, bool and other such types", d.Name.Value, t)
			return Invalid
		}
	}
	return &New{Name: d.Name.Value, Decl: d, Underlying: t, base: Underlying(t)}
}

func (c *checker) enumDecl(d *syntax.EnumDecl) {
	c.annotations(d.Annotations)
	en := &Enum{Name: d.Name.Value, Decl: d, index: map[string]int{}}
	if d.Type != nil {
		t := c.typ(d.Type)
		repr, ok := t.(*Bits)
		if !ok {
			hint := ""
			if n, ok := t.(*New); ok {
				hint = ", which is a type of its own made from " + n.Underlying.String()
			}
			c.errorf(d.Type.Pos(), "an enum can be represented by bit<> or int<>, not by %s%s", t, hint)
			repr = nil
		}
		en.Repr = repr
	}
	o := c.declare(&Object{Kind: TypeObj, Type: en}, d, d.Name)
	c.enumMembers(d, en)
	if d.Type != nil && en.Repr == nil {
		o.Type = Invalid
	}
}

func (c *checker) enumMembers(d *syntax.EnumDecl, en *Enum) {
	c.push() // later members may use this one in their values
	defer c.pop()
	for _, m := range d.Members {
		name := m.Name.Value
		if en.memberIndex(name) >= 0 {
			c.errorf(m.Pos(), "enum %s has two members %s", en.Name, name)
			continue
		}
		mem := EnumMember{Name: name, Decl: m}
		if m.Value != nil {
			mem.Value = c.enumMember(m, en)
		}
		en.index[mem.Name] = len(en.Members)
		en.Members = append(en.Members, mem)
		v := &EnumValue{Type: en, Index: len(en.Members) - 1}
		c.insert(&Object{Kind: ConstObj, Name: name, Decl: m, Type: en, Value: v}, m.Pos())
	}
}

// enumMember evaluates a member's number.
func (c *checker) enumMember(m *syntax.EnumMember, en *Enum) *big.Int {
	tv := c.value(m.Value)
	if tv.Type == Invalid || en.Repr == nil {
		return zero
	}
	n := Number(tv.Value)
	switch {
	case n == nil:
		c.errorf(m.Value.Pos(), "the value of %s must be a constant number", m.Name.Value)
		return zero
	case tv.Type == Int && !fits(n, en.Repr):
		lo, hi := limits(en.Repr)
		c.errorf(m.Pos(), "the value %s of %s does not fit %s, which holds %s to %s", n, m.Name.Value, en.Repr, lo, hi)
		return zero
	}
	tv = c.assignValue(m.Value, tv, en.Repr, "the member "+m.Name.Value)
	if n := Number(tv.Value); n != nil {
		return n
	}
	return zero
}

func (c *checker) valueSetDecl(d *syntax.ValueSetDecl) {
	c.annotations(d.Annotations)
	t := c.typ(d.Type)
	ok := t == Bool || t == Invalid || t == Error
	switch u := t.(type) {
	case *New, *Bits, *Enum, *Tuple:
		ok = true
	case *Struct:
		ok = u.Kind == syntax.StructKindStruct
	}
	if !ok {
		c.errorf(d.Type.Pos(), "a value set cannot have elements of type %s", t)
		t = Invalid
	}
	if tv := c.value(d.Size); tv.Type != Invalid {
		switch {
		case !isInteger(Underlying(tv.Type)):
			c.errorf(d.Size.Pos(), "the size of a value set must be a number, but %s has type %s", show(d.Size), tv.Type)
		case !tv.known:
			c.errorf(d.Size.Pos(), "the size of the value set %s is not known at compile time", d.Name.Value)
		}
		c.checkSize(d.Size, "a value set", tv)
	}
	var st Type = &Set{Elem: t}
	if t == Invalid {
		st = Invalid
	}
	c.declare(&Object{Kind: ValueSetObj, Type: st}, d, d.Name)
}

// instDecl checks Type(args) name.
func (c *checker) instDecl(d *syntax.InstDecl) {
	c.annotations(d.Annotations)
	array, t := c.instType(d)
	if t == Invalid {
		c.args(d.Args)
		c.declare(&Object{Kind: InstObj, Type: Invalid}, d, d.Name)
		return
	}
	c.checkInstPlace(d, t)
	call := c.instantiate(d.Pos(), t, d.Args)
	o := &Object{Kind: InstObj, Type: Invalid}
	if call != nil {
		c.info.Insts[d] = call
		o.Type = call.Result
		if array != nil {
			o.Type = &Stack{Elem: call.Result, Size: array.Size}
		}
	}
	c.declare(o, d, d.Name)
	c.instBody(d, o, call)
}

// instType resolves the type of an instance. array is the type of Type[N] name, and
// nil for a single instance.
func (c *checker) instType(d *syntax.InstDecl) (array *Stack, t Type) {
	if st, ok := d.Type.(*syntax.StackType); ok {
		n, ok := c.constInt(st.Size, "the size of an array")
		if !ok {
			return nil, Invalid
		}
		elem := c.typeOrGeneric(st.Elem)
		s := &Stack{Elem: elem, Size: int(n.Int64())}
		c.recordType(st, s)
		if n.Sign() <= 0 || n.Cmp(big.NewInt(maxParts)) > 0 {
			c.errorf(st.Size.Pos(), "there cannot be an array of %s instances", n)
			return nil, Invalid
		}
		if _, ok := elem.(*Extern); !ok {
			c.errorf(d.Pos(), "only instances of externs can be in arrays, not %s", elem)
			return nil, Invalid
		}
		return s, elem
	}
	t = c.typeOrGeneric(d.Type)
	switch t.(type) {
	case *Extern, *Parser, *Control, *Package:
		return nil, t
	}
	c.errorf(d.Pos(), "%s cannot be instantiated: only externs, parsers, controls and packages can", t)
	return nil, Invalid
}

// checkInstPlace reports an instance of t that is declared where none is allowed.
func (c *checker) checkInstPlace(d *syntax.InstDecl, t Type) {
	name := d.Name.Value
	if c.env.place != nowhere {
		c.errorf(d.Pos(), "%s cannot be instantiated %s", name, c.env.place)
		return
	}
	switch t.(type) {
	case *Parser:
		if c.env.control {
			c.errorf(d.Pos(), "the parser %s cannot be instantiated in a control", t)
		}
	case *Control:
		if c.env.parser {
			c.errorf(d.Pos(), "the control %s cannot be instantiated in a parser", t)
		}
	case *Package:
		if c.env.owner != nil {
			c.errorf(d.Pos(), "the package %s can be instantiated only at top level", t)
		}
		return
	default:
		return
	}
	if c.env.owner == nil {
		c.errorf(d.Pos(), "%s cannot be instantiated at top level: only packages and externs can", name)
	}
}
