package generator

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/tools/differential/internal/source"
)

// value returns an expression of a type.
func (g *generator) value(t source.Type, depth int) *source.Expr {
	switch t := t.(type) {
	case source.Bits:
		return g.bits(t, depth)
	case source.Bool:
		return g.boolean(depth)
	case *source.Enum:
		return g.enum(t, depth)
	case *source.Struct:
		return g.aggregate(t, depth)
	}
	panic(fmt.Sprintf("no value of %v", t))
}

// exact returns a readable place of exactly this type, or nil.
func (g *generator) exact(t source.Type) *source.Expr {
	list := g.find(func(p place) bool { return same(p.x.Type, t) })
	if len(list) == 0 {
		return nil
	}
	return pick(g, list).x
}

// same reports whether two types are equal. Tuples are equal by their fields.
func same(a, b source.Type) bool {
	x, ok1 := a.(*source.Struct)
	y, ok2 := b.(*source.Struct)
	if ok1 && ok2 {
		return x == y || x.Kind == source.TupleKind && y.Kind == source.TupleKind && x.String() == y.String()
	}
	if _, ok := a.(*source.Stack); ok {
		return false
	}
	return a == b
}

func (g *generator) enum(t *source.Enum, depth int) *source.Expr {
	if x := g.exact(t); x != nil && !g.one(3) {
		return x
	}
	if t.Under != nil && depth > 0 && g.one(3) {
		g.p.Use("enum cast")
		return source.Cast(t, g.bits(*t.Under, depth-1))
	}
	if depth > 0 && g.one(4) {
		return source.Parens(source.Cond(g.boolean(depth-1), g.enum(t, depth-1), g.enum(t, depth-1)))
	}
	g.p.Use("enum")
	return source.EnumLiteral(t, g.r.IntN(len(t.Members)))
}

func (g *generator) aggregate(t *source.Struct, depth int) *source.Expr {
	if x := g.exact(t); x != nil && (g.one(2) || t.Kind == source.HeaderKind && g.one(2)) {
		return x
	}
	if t.Kind == source.TupleKind {
		g.p.Use("tuple")
	}
	var list []*source.Expr
	for _, f := range t.Fields {
		list = append(list, g.value(f.Type, max(depth-1, 0)))
	}
	return source.List(t, t.Kind == source.StructKind && g.one(2), list)
}

func (g *generator) boolean(depth int) *source.Expr {
	if depth <= 0 {
		if x := g.exact(source.Bool{}); x != nil && g.one(2) {
			return x
		}
		if g.one(4) {
			return source.BoolLiteral(g.one(2))
		}
		t := g.likely()
		return source.Equal(g.bits(t, 0), g.literal(t), g.one(2))
	}
	d := depth - 1
	switch g.r.IntN(12) {
	case 0, 1, 2:
		t := g.likely()
		return source.Compare(pick(g, []string{"<", "<=", ">", ">="}), g.bits(t, d), g.right(t, d))
	case 3, 4:
		t := g.likely()
		return source.Equal(g.bits(t, d), g.right(t, d), g.one(2))
	case 5, 6:
		g.p.Use("short circuit")
		return source.Logic(pick(g, []string{"&&", "||"}), g.boolean(d), g.boolean(d))
	case 7:
		return source.Not(g.boolean(d))
	case 8:
		t := pick(g, g.enums)
		return source.Equal(g.enum(t, d), g.enum(t, d), g.one(2))
	case 9:
		if h := g.validities(); len(h) > 0 {
			g.p.Use("isValid")
			return source.IsValid(pick(g, h))
		}
	case 10:
		if g.one(2) {
			g.p.Use("bool cast")
			return source.Cast(source.Bool{}, g.bits(source.Bits{Width: 1}, d))
		}
		list := g.find(func(p place) bool { t, ok := p.x.Type.(*source.Struct); return ok && t.Kind != source.TupleKind })
		if len(list) > 0 {
			x := pick(g, list).x
			if y := g.exact(x.Type); y != nil {
				g.p.Use("struct equality")
				return source.Equal(x, y, g.one(2))
			}
		}
	}
	if x := g.exact(source.Bool{}); x != nil {
		return x
	}
	return source.Parens(source.Cond(g.boolean(d), g.boolean(d), g.boolean(d)))
}

// likely returns a numeric type, usually one for which a place exists.
func (g *generator) likely() source.Bits {
	list := g.find(func(p place) bool { return isBits(p.x.Type) })
	if len(list) == 0 || g.one(8) {
		return g.bitsType()
	}
	return pick(g, list).x.Type.(source.Bits)
}

func (g *generator) literal(t source.Bits) *source.Expr {
	return source.Literal(t, g.number(t.Width), pick(g, []int{10, 10, 16, 16, 2, 8}), true)
}

// unsized returns a constant whose type follows from the context.
func (g *generator) unsized(t source.Bits) *source.Expr {
	return source.Literal(t, g.number(t.Width), pick(g, []int{10, 16}), false)
}

// right returns a right operand for an operator whose left operand has type t.
func (g *generator) right(t source.Bits, depth int) *source.Expr {
	if g.one(6) {
		return g.unsized(t)
	}
	return g.bits(t, depth)
}

// convert casts a number to a type, in two steps if sign and width change.
func convert(t source.Bits, x *source.Expr) *source.Expr {
	from := x.Type.(source.Bits)
	if from == t {
		return x
	}
	if from.Signed != t.Signed && from.Width != t.Width {
		x = source.Cast(source.Bits{Width: t.Width, Signed: from.Signed}, x)
	}
	return source.Cast(t, x)
}

// leaf returns a number without operators other than casts.
func (g *generator) leaf(t source.Bits) *source.Expr {
	if x := g.exact(t); x != nil && !g.one(4) {
		return x
	}
	list := g.find(func(p place) bool { return isBits(p.x.Type) })
	if len(list) == 0 || g.one(3) {
		return g.literal(t)
	}
	return convert(t, pick(g, list).x)
}

// bits returns a number of type t.
func (g *generator) bits(t source.Bits, depth int) *source.Expr {
	if depth <= 0 {
		return g.leaf(t)
	}
	d := depth - 1
	switch g.r.IntN(22) {
	case 0, 1, 2, 3:
		g.p.Use("arithmetic")
		return source.Binary(pick(g, []string{"+", "-", "*", "&", "|", "^"}), g.bits(t, d), g.right(t, d))
	case 4, 5:
		g.p.Use("shift")
		return source.Shift(pick(g, []string{"<<", ">>"}), g.bits(t, d), g.amount(t, d))
	case 6:
		g.p.Use("saturation")
		return source.Binary(pick(g, []string{"|+|", "|-|"}), g.bits(t, d), g.bits(t, d))
	case 7, 8:
		g.p.Use("cast")
		return convert(t, g.bits(g.likely(), d))
	case 9, 10:
		if !t.Signed {
			return g.slice(t, d)
		}
	case 11, 12:
		if t.Width >= 2 {
			g.p.Use("concatenation")
			low := 1 + g.r.IntN(t.Width-1)
			if t.Signed && t.Width-low < 2 || low < 2 {
				break
			}
			return source.Concat(g.bits(source.Bits{Width: t.Width - low, Signed: t.Signed}, d), g.bits(source.Bits{Width: low, Signed: g.one(5)}, d))
		}
	case 13:
		g.p.Use("conditional")
		return source.Parens(source.Cond(g.boolean(d), g.bits(t, d), g.bits(t, d)))
	case 14:
		g.p.Use("unary")
		return source.Unary(pick(g, []string{"-", "~", "+"}), g.bits(t, d))
	case 15, 16, 17:
		if x := g.call(d); x != nil {
			return convert(t, x)
		}
	case 18:
		if list := g.serializable(); len(list) > 0 {
			e := pick(g, list)
			g.p.Use("enum cast")
			return convert(t, source.Cast(*e.Under, g.enum(e, d)))
		}
	case 19:
		if t.Width == 1 && !t.Signed {
			g.p.Use("bool cast")
			return source.Cast(t, g.boolean(d))
		}
		return g.constant(t)
	case 20:
		if g.where == inParser {
			g.p.Use("lookahead")
			return convert(t, source.Lookahead(source.Bits{Width: pick(g, []int{4, 8, 8, 12, 16})}))
		}
	}
	return g.leaf(t)
}

// slice returns some bits of a wider number.
func (g *generator) slice(t source.Bits, depth int) *source.Expr {
	g.p.Use("slice")
	from := source.Bits{Width: t.Width + g.r.IntN(20)}
	list := g.find(func(p place) bool { b, ok := p.x.Type.(source.Bits); return ok && b.Width >= t.Width })
	if len(list) > 0 && !g.one(4) {
		from = pick(g, list).x.Type.(source.Bits)
	}
	low := g.r.IntN(from.Width - t.Width + 1)
	return source.Slice(g.bits(from, depth), low+t.Width-1, low)
}

// amount returns a shift amount for a number of type t.
func (g *generator) amount(t source.Bits, depth int) *source.Expr {
	if g.one(3) {
		return source.Literal(source.Bits{Width: 16}, big.NewInt(int64(g.r.IntN(t.Width+3))), 10, false)
	}
	w := pick(g, []int{1, 2, 3, 4, 5, 6, 7, 8, 8, 16, 32, 33, 64, 70})
	if g.p.Arch == source.V1model { // simple_switch uses 32 bits of an amount, p4c all bits of a constant
		w = min(w, 32)
	}
	if w > 16 { // a constant of a wide type may exceed the shifts that compilers support
		list := g.find(func(p place) bool { return isBits(p.x.Type) })
		if len(list) == 0 {
			w = 8
		} else {
			return convert(source.Bits{Width: w}, pick(g, list).x)
		}
	}
	return g.bits(source.Bits{Width: w}, depth)
}

func (g *generator) serializable() []*source.Enum {
	var list []*source.Enum
	for _, e := range g.enums {
		if e.Under != nil {
			list = append(list, e)
		}
	}
	return list
}

// constant returns a computation on constants of arbitrary precision.
func (g *generator) constant(t source.Bits) *source.Expr {
	g.p.Use("int constant")
	text, v := g.integer(2)
	return source.Cast(t, source.Native(source.Bits{Width: 4000, Signed: true}, "("+text+")", func(*source.Machine) source.Value { return v }))
}

func (g *generator) integer(depth int) (string, *big.Int) {
	if depth == 0 {
		v := g.number(pick(g, []int{4, 8, 40, 70}))
		return v.String(), v
	}
	a, x := g.integer(depth - 1)
	b, y := g.integer(depth - 1)
	switch op := g.r.IntN(6); {
	case op == 0 && y.Sign() > 0 && x.Sign() >= 0:
		return fmt.Sprintf("(%s / %s)", a, b), new(big.Int).Div(x, y)
	case op == 1 && y.Sign() > 0 && x.Sign() >= 0:
		return fmt.Sprintf("(%s %% %s)", a, b), new(big.Int).Mod(x, y)
	case op == 2:
		return fmt.Sprintf("(%s - %s)", a, b), new(big.Int).Sub(x, y)
	case op == 3:
		return fmt.Sprintf("(%s * %s)", a, b), new(big.Int).Mul(x, y)
	case op == 4:
		n := g.r.IntN(20)
		return fmt.Sprintf("(%s << %d)", a, n), new(big.Int).Lsh(x, uint(n))
	}
	return fmt.Sprintf("(%s + %s)", a, b), new(big.Int).Add(x, y)
}

// call returns a call of a function that returns a number, or nil if no function
// can be called here.
func (g *generator) call(depth int) *source.Expr {
	var list []*source.Callable
	for _, f := range g.funcs {
		if f.Result != nil && isBits(f.Result) {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil
	}
	f := pick(g, list)
	args := g.arguments(f.Params, depth)
	if args == nil {
		return nil
	}
	g.p.Use("function")
	return source.Call(f, args)
}

// arguments returns arguments for parameters with directions, or nil if there is no
// suitable lvalue.
func (g *generator) arguments(params []source.Param, depth int) []*source.Expr {
	args := []*source.Expr{}
	for _, p := range params {
		if p.Dir != source.Out && p.Dir != source.InOut {
			if t, ok := p.Var.Type.(source.Bits); ok && g.one(6) {
				args = append(args, g.unsized(t))
				continue
			}
			args = append(args, g.value(p.Var.Type, max(depth-1, 0)))
			continue
		}
		x := g.lvalue(p.Var.Type)
		if x == nil {
			return nil
		}
		args = append(args, x)
	}
	return args
}

// lvalue returns an lvalue of a type, possibly a slice, or nil if there is none.
func (g *generator) lvalue(t source.Type) *source.Expr {
	list := g.find(func(p place) bool { return p.writable && same(p.x.Type, t) })
	if b, ok := t.(source.Bits); ok && !b.Signed && (len(list) == 0 || g.one(3)) {
		wider := g.find(func(p place) bool {
			w, ok := p.x.Type.(source.Bits)
			return ok && p.writable && w.Width > b.Width
		})
		if len(wider) > 0 {
			g.p.Use("slice as lvalue")
			x := pick(g, wider).x
			low := g.r.IntN(x.Type.(source.Bits).Width - b.Width + 1)
			return source.Slice(x, low+b.Width-1, low)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(g, list).x
}
