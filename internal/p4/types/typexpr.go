package types

import (
	"math/big"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// typ resolves a type expression. A generic type must come with its arguments.
func (c *checker) typ(e syntax.Expr) Type {
	t := c.typeOrGeneric(e)
	if n, ok := e.(*syntax.Name); ok && unspecialized(t) {
		params := lists.Map(paramsOf(t), func(p *TypeParam) string { return p.Name })
		c.errorf(n.Pos(), "%s is generic: its type arguments are missing, as in %s<%s>", n.Value, n.Value, strings.Join(params, ", "))
		return c.recordType(e, Invalid)
	}
	if s, ok := t.(*Struct); ok && hasDontCare(s.Args) {
		c.errorf(e.Pos(), "_ is no type: an argument is inferred only where something is called or instantiated")
		return c.recordType(e, Invalid)
	}
	return t
}

// unspecialized reports whether a use of type t lacks type arguments.
func unspecialized(t Type) bool {
	g := genericOf(t)
	return g != nil && g.self == t
}

// paramsOf returns the type parameters of a generic type.
func paramsOf(t Type) []*TypeParam {
	if g := genericOf(t); g != nil {
		return g.params
	}
	return nil
}

func (c *checker) recordType(e syntax.Expr, t Type) Type {
	c.record(e, TypeAndValue{Type: t, IsType: true, known: true})
	return t
}

// typeOrGeneric resolves a type expression. It may be the bare name of a generic
// type if the arguments can be inferred.
func (c *checker) typeOrGeneric(e syntax.Expr) Type {
	return c.recordType(e, c.resolveType(e))
}

func (c *checker) resolveType(e syntax.Expr) Type {
	switch e := e.(type) {
	case *syntax.Name:
		o := c.find(e, "a type", isTypeObj)
		if o == nil {
			return Invalid
		}
		return o.Type
	case *syntax.BaseType:
		return c.baseType(e)
	case *syntax.SpecializedType:
		base := c.typeOrGeneric(e.Base)
		args := make([]Type, len(e.Args))
		bad := base == Invalid
		for i, a := range e.Args {
			args[i] = c.typeArg(a)
			bad = bad || args[i] == Invalid
		}
		if bad {
			return Invalid
		}
		return c.specialize(e.Pos(), e.Base.Value, base, args)
	case *syntax.StackType:
		return c.stackType(e)
	case *syntax.TupleType:
		t := &Tuple{Elems: make([]Type, len(e.Elems))}
		for i, x := range e.Elems {
			t.Elems[i] = c.elemType(x, "a tuple")
		}
		if slices.Contains(t.Elems, Type(Invalid)) || !c.bounded(e.Pos(), t) {
			return Invalid
		}
		return t
	case *syntax.ListType:
		return &List{Elem: c.elemType(e.Elem, "a list")}
	}
	return wildcard // *syntax.DontCare
}

func (c *checker) baseType(e *syntax.BaseType) Type {
	switch e.Kind {
	case syntax.BoolKind:
		return Bool
	case syntax.ErrorKind:
		if len(c.info.Errors) == 0 {
			c.errorf(e.Pos(), "no errors are declared; core.p4 declares the errors of the language")
		}
		return Error
	case syntax.StringKind:
		return String
	case syntax.MatchKindKind:
		return MatchKind
	case syntax.VoidKind:
		return Void
	case syntax.VarbitKind:
		w, ok := c.width(e, 0)
		if !ok {
			return Invalid
		}
		return &Varbit{Max: w}
	case syntax.IntKind:
		if e.Size == nil {
			return Int
		}
		w, ok := c.width(e, 1)
		if !ok {
			return Invalid
		}
		return &Bits{Width: w, Signed: true}
	}
	w, ok := c.width(e, 0)
	if !ok {
		return Invalid
	}
	return &Bits{Width: w}
}

// width evaluates the size in bit<…>, which must be at least lo. Plain bit is
// bit<1>.
func (c *checker) width(e *syntax.BaseType, lo int64) (int, bool) {
	if e.Size == nil {
		return 1, true
	}
	n, ok := c.constInt(e.Size, "the width of a type")
	if !ok {
		return 0, false
	}
	switch {
	case n.Cmp(big.NewInt(lo)) < 0 && lo == 1:
		c.errorf(e.Pos(), "int<%s>: a signed type has at least one bit", n)
		return 0, false
	case n.Sign() < 0:
		c.errorf(e.Pos(), "the width of a type cannot be negative, it is %s", n)
		return 0, false
	case n.Cmp(big.NewInt(maxWidth)) > 0:
		c.errorf(e.Pos(), "a width of %s is more than the %d bits supported (docs/limits.md)", n, maxWidth)
		return 0, false
	}
	return int(n.Int64()), true
}

// constInt evaluates an expression that must be an integer known at compile time.
func (c *checker) constInt(e syntax.Expr, what string) (*big.Int, bool) {
	tv := c.value(e)
	if tv.Type == Invalid {
		return nil, false
	}
	if b, ok := tv.Type.(*Enum); ok && b.Repr != nil {
		tv, _ = c.convert(e, tv, b.Repr)
	}
	if !isInteger(tv.Type) {
		c.errorf(e.Pos(), "%s must be an integer, but %s has type %s", what, show(e), tv.Type)
		return nil, false
	}
	n := Number(tv.Value)
	if n == nil {
		c.errorf(e.Pos(), "%s must be a constant, but %s is not known here", what, show(e))
		return nil, false
	}
	return n, true
}

func isInteger(t Type) bool {
	_, sized := t.(*Bits)
	return sized || t == Int
}

// specialize returns the instance of a generic type for args.
func (c *checker) specialize(pos syntax.Pos, name string, base Type, args []Type) Type {
	var params []*TypeParam
	if unspecialized(base) {
		params = paramsOf(base)
	}
	if len(params) != len(args) {
		c.errorf(pos, "%s has %s, but %d are given", name, count(len(params), "type parameter"), len(args))
		return Invalid
	}
	for _, a := range args {
		if containsDecl(a, base) {
			c.errorf(pos, "%s has itself as a type argument", name)
			return Invalid
		}
	}
	if len(params) == 0 {
		return base
	}
	t := genericOf(base).instance(args)
	if !c.bounded(pos, t) {
		return Invalid
	}
	c.checkInstance(pos, t)
	return t
}

// containsDecl reports whether t mentions the declaration of base.
func containsDecl(t, base Type) bool {
	if genericOf(t) == genericOf(base) && genericOf(t) != nil {
		return true
	}
	return slices.ContainsFunc(argsOf(t), func(a Type) bool { return containsDecl(a, base) })
}

// typeArg resolves a type argument, which must be a type of values.
func (c *checker) typeArg(e syntax.Expr) Type {
	t := c.typ(e)
	switch t.(type) {
	case *Parser, *Control, *Package:
		c.errorf(e.Pos(), "%s cannot be a type argument: it is a %s", t, typeKind(t))
		return Invalid
	}
	return t
}

// elemType resolves the type of a tuple's or list's elements.
func (c *checker) elemType(e syntax.Expr, in string) Type {
	t := c.typ(e)
	switch t.(type) {
	case *Extern, *Parser, *Control, *Package:
		c.errorf(e.Pos(), "%s cannot have elements of type %s: only data has a place there", in, t)
		return Invalid
	}
	if t == Void || t == wildcard {
		c.errorf(e.Pos(), "%s cannot have elements of type %s", in, t)
		return Invalid
	}
	return t
}

func (c *checker) stackType(e *syntax.StackType) Type {
	elem := c.typ(e.Elem)
	n, ok := c.constInt(e.Size, "the size of an array")
	if elem == Invalid || !ok {
		return Invalid
	}
	switch {
	case n.Sign() < 0:
		c.errorf(e.Size.Pos(), "the size of an array cannot be negative, it is %s", n)
		return Invalid
	case n.Cmp(big.NewInt(maxParts)) > 0:
		c.errorf(e.Size.Pos(), "an array of %s elements is larger than the %d supported", n, maxParts)
		return Invalid
	}
	switch elem.(type) {
	case *Parser, *Control, *Package:
		c.errorf(e.Elem.Pos(), "there are no arrays of %s", elem)
		return Invalid
	}
	if elem == String || elem == Int {
		c.errorf(e.Elem.Pos(), "there are no arrays of %s", elem)
		return Invalid
	}
	t := &Stack{Elem: elem, Size: int(n.Int64())}
	if !c.bounded(e.Pos(), t) {
		return Invalid
	}
	return t
}

func hasDontCare(ts []Type) bool {
	return slices.Contains(ts, Type(wildcard))
}
