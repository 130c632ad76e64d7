package lower

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// BMv2 computes with integers of any size; a field keeps its low bits when it is
// written. So the result of each operation that can leave its type's range must be
// truncated. Truncation is not needed if the value is written directly to a field
// of the same width.

// A loose value is an expression whose destination truncates it.
type loose struct{ x *ex }

// exactFor marks x as loose if dst is a field as wide as x.
func exactFor(x *ex, dst any) any {
	if f, ok := dst.(*field); ok && !f.st.bool && !x.st.bool && f.st.width == x.st.width {
		return loose{x}
	}
	return x
}

// arg emits the argument of a primitive.
func (l *lowerer) arg(a any) *bmv2.Expr {
	switch a := a.(type) {
	case *bmv2.Expr:
		return a
	case *ex:
		return param(a)
	case loose:
		return wrapped(data(a.x, true))
	case *field:
		return bmv2.FieldOf(a.header, a.name)
	case *header:
		return bmv2.Ref(bmv2.TypeHeader, a.name)
	case *union:
		return bmv2.Ref(bmv2.TypeHeaderUnion, a.name)
	case *stack:
		return bmv2.Ref(stackType(a), a.name)
	}
	panic("lower: argument of unknown form")
}

func stackType(s *stack) bmv2.ExprType {
	if s.union {
		return bmv2.TypeHeaderUnionStack
	}
	return bmv2.TypeHeaderStack
}

// param emits x as an argument of a primitive.
func param(x *ex) *bmv2.Expr {
	return wrapped(data(x, false))
}

// wrapped adds the outer object that the format requires around operations.
func wrapped(e *bmv2.Expr) *bmv2.Expr {
	switch e.Type {
	case bmv2.TypeExpression, bmv2.TypeStackField, bmv2.TypeUnionStackField:
		return bmv2.Wrap(e)
	case bmv2.TypeLocal:
		return bmv2.RuntimeData(e.Int)
	}
	return e
}

// data emits x as a number. With loose, it omits the outermost truncation.
func data(x *ex, loose bool) *bmv2.Expr {
	if x.st.bool && x.op != opField && x.op != opConst && x.op != opParam && x.op != opLast {
		return bmv2.Op1("b2d", condition(x))
	}
	switch x.op {
	case opConst:
		return bmv2.Hex(x.v, bytesOf(x.st.width))
	case opField:
		// BMv2 does not extend the sign of int<1>.
		e := bmv2.FieldOf(x.f.header, x.f.name)
		if x.st.signed && x.st.width == 1 {
			return cut(e, 1, true, false)
		}
		return e
	case opParam: // BMv2 has no signed action data: interpret the sign here
		return cut(bmv2.Local(x.n), x.st.width, x.st.signed, !x.st.signed)
	case opString:
		return &bmv2.Expr{Type: bmv2.TypeString, Name: x.str}
	case opLookahead:
		return bmv2.Lookahead(x.k, x.n)
	case opLast:
		if x.member != "" {
			return &bmv2.Expr{Type: bmv2.TypeUnionStackField, Name: x.s.name, Member: x.member, Field: x.str}
		}
		return &bmv2.Expr{Type: bmv2.TypeStackField, Name: x.s.name, Field: x.str}
	case opLastIndex:
		return bmv2.Op1("last_stack_index", bmv2.Ref(stackType(x.s), x.s.name))
	case opCond:
		return bmv2.Cond(condition(x.z), data(x.x, false), data(x.y, false))
	case opSlice:
		e := data(x.x, false)
		if x.k > 0 {
			e = bmv2.Op2(">>", e, bmv2.HexInt(int64(x.k), 0))
		}
		if x.n == x.x.st.width-1 && !x.x.st.signed {
			return e
		}
		return cut(e, x.st.width, false, loose)
	case opCast:
		return dataCast(x, loose)
	case opUnary:
		switch x.tok {
		case syntax.Neg:
			return cut(bmv2.Op2("-", bmv2.Hex(new(big.Int), bytesOf(x.st.width)), data(x.x, false)), x.st.width, x.st.signed, loose)
		case syntax.Compl:
			return cut(bmv2.Op1("~", data(x.x, false)), x.st.width, x.st.signed, loose)
		}
		panic("lower: unary operator of unknown form")
	}
	return dataBinary(x, loose)
}

// cut truncates e to the range of st.
func cut(e *bmv2.Expr, width int, signed, loose bool) *bmv2.Expr {
	switch {
	case loose && !signed || width == 0:
		return e
	case signed: // BMv2 does not wrap 128 in an int<8>
		return bmv2.Op2("two_comp_mod", e, bmv2.HexInt(int64(width), 0))
	}
	return bmv2.Op2("&", e, bmv2.Hex(maskOf(width), bytesOf(width)))
}

func dataCast(x *ex, loose bool) *bmv2.Expr {
	from, to := x.x.st, x.st
	if from.bool {
		return data(x.x, false)
	}
	widens := from.signed == to.signed && from.width <= to.width || !from.signed && to.signed && from.width < to.width
	if widens && from.width > 0 {
		return data(x.x, false)
	}
	inner := loose && from.width == to.width
	return cut(data(x.x, inner), to.width, to.signed, loose)
}

var dataOps = map[syntax.Operator]string{
	syntax.Add: "+", syntax.Sub: "-", syntax.Mul: "*", syntax.Shl: "<<", syntax.Shr: ">>", syntax.Div: "/", syntax.Mod: "%",
	syntax.And: "&", syntax.Or: "|", syntax.Xor: "^", syntax.SatAdd: "+", syntax.SatSub: "-",
}

func dataBinary(x *ex, loose bool) *bmv2.Expr {
	if x.tok == syntax.Concat {
		low := data(x.y, false)
		if x.y.st.signed {
			low = cut(low, x.y.st.width, false, false)
		}
		high := bmv2.Op2("<<", data(x.x, false), bmv2.HexInt(int64(x.y.st.width), 0))
		return cut(bmv2.Op2("|", high, low), x.st.width, x.st.signed, loose || !x.x.st.signed && !x.st.signed)
	}
	e := bmv2.Op2(dataOps[x.tok], data(x.x, false), data(x.y, false))
	switch x.tok {
	case syntax.SatAdd, syntax.SatSub:
		op := "usat_cast"
		if x.st.signed {
			op = "sat_cast"
		}
		return bmv2.Op2(op, e, bmv2.HexInt(int64(x.st.width), 0))
	case syntax.Add, syntax.Sub, syntax.Mul, syntax.Shl:
		return cut(e, x.st.width, x.st.signed, loose)
	}
	return e
}

var compareOps = map[syntax.Operator]string{
	syntax.Eql: "==", syntax.Neq: "!=", syntax.Lss: "<", syntax.Leq: "<=", syntax.Gtr: ">", syntax.Geq: ">=",
}

// condition emits x as a boolean.
func condition(x *ex) *bmv2.Expr {
	switch x.op {
	case opConst:
		return bmv2.BoolOf(x.v.Sign() != 0)
	case opValid:
		return bmv2.Op1("d2b", bmv2.FieldOf(x.h.name, "$valid$"))
	case opUnion:
		return bmv2.Op1("valid_union", bmv2.Ref(bmv2.TypeHeaderUnion, x.u.name))
	case opUnary:
		return bmv2.Op1("not", condition(x.x))
	case opCond:
		yes := bmv2.Op2("and", condition(x.z), condition(x.x))
		no := bmv2.Op2("and", bmv2.Op1("not", condition(x.z)), condition(x.y))
		return bmv2.Op2("or", yes, no)
	case opBinary:
		switch x.tok {
		case syntax.AndAnd:
			return bmv2.Op2("and", condition(x.x), condition(x.y))
		case syntax.OrOr:
			return bmv2.Op2("or", condition(x.x), condition(x.y))
		}
		return bmv2.Op2(compareOps[x.tok], data(x.x, false), data(x.y, false))
	}
	return bmv2.Op1("d2b", data(x, false))
}
