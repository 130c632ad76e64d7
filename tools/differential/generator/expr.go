package generator

import (
	"fmt"
	"math/big"

	. "github.com/p4lb/p4lb/tools/differential/source"
)

// value returns an expression of a type.
func (g *generator) value(t Type, depth int) *Expr {
	switch t := t.(type) {
	case Bits:
		return g.bits(t, depth)
	case Bool:
		return g.boolean(depth)
	case *Enum:
		return g.enum(t, depth)
	case *Struct:
		return g.aggregate(t, depth)
	}
	panic(fmt.Sprintf("no value of %v", t))
}

// exact returns a readable place of a type, nil if there is none.
func (g *generator) exact(t Type) *Expr {
	list := g.find(func(p place) bool { return same(p.x.Type, t) })
	if len(list) == 0 {
		return nil
	}
	return pick(g, list).x
}

// same reports whether two types are equal. Tuples are equal by their fields.
func same(a, b Type) bool {
	x, ok1 := a.(*Struct)
	y, ok2 := b.(*Struct)
	if ok1 && ok2 {
		return x == y || x.Kind == TupleKind && y.Kind == TupleKind && x.String() == y.String()
	}
	if _, ok := a.(*Stack); ok {
		return false
	}
	return a == b
}

func (g *generator) enum(t *Enum, depth int) *Expr {
	if x := g.exact(t); x != nil && !g.one(3) {
		return x
	}
	if t.Under != nil && depth > 0 && g.one(3) {
		g.p.Use("enum cast")
		return Cast(t, g.bits(*t.Under, depth-1))
	}
	if depth > 0 && g.one(4) {
		return Parens(Cond(g.boolean(depth-1), g.enum(t, depth-1), g.enum(t, depth-1)))
	}
	g.p.Use("enum")
	return EnumLiteral(t, g.r.IntN(len(t.Members)))
}

func (g *generator) aggregate(t *Struct, depth int) *Expr {
	if x := g.exact(t); x != nil && (g.one(2) || t.Kind == HeaderKind && g.one(2)) {
		return x
	}
	if t.Kind == TupleKind {
		g.p.Use("tuple")
	}
	var list []*Expr
	for _, f := range t.Fields {
		list = append(list, g.value(f.Type, max(depth-1, 0)))
	}
	return List(t, t.Kind == StructKind && g.one(2), list)
}

func (g *generator) boolean(depth int) *Expr {
	if depth <= 0 {
		if x := g.exact(Bool{}); x != nil && g.one(2) {
			return x
		}
		if g.one(4) {
			return BoolLiteral(g.one(2))
		}
		t := g.likely()
		return Equal(g.bits(t, 0), g.literal(t), g.one(2))
	}
	d := depth - 1
	switch g.r.IntN(12) {
	case 0, 1, 2:
		t := g.likely()
		return Compare(pick(g, []string{"<", "<=", ">", ">="}), g.bits(t, d), g.right(t, d))
	case 3, 4:
		t := g.likely()
		return Equal(g.bits(t, d), g.right(t, d), g.one(2))
	case 5, 6:
		g.p.Use("short circuit")
		return Logic(pick(g, []string{"&&", "||"}), g.boolean(d), g.boolean(d))
	case 7:
		return Not(g.boolean(d))
	case 8:
		t := pick(g, g.enums)
		return Equal(g.enum(t, d), g.enum(t, d), g.one(2))
	case 9:
		if h := g.validities(); len(h) > 0 {
			g.p.Use("isValid")
			return IsValid(pick(g, h))
		}
	case 10:
		if g.one(2) {
			g.p.Use("bool cast")
			return Cast(Bool{}, g.bits(Bits{Width: 1}, d))
		}
		list := g.find(func(p place) bool { t, ok := p.x.Type.(*Struct); return ok && t.Kind != TupleKind })
		if len(list) > 0 {
			x := pick(g, list).x
			if y := g.exact(x.Type); y != nil {
				g.p.Use("struct equality")
				return Equal(x, y, g.one(2))
			}
		}
	}
	if x := g.exact(Bool{}); x != nil {
		return x
	}
	return Parens(Cond(g.boolean(d), g.boolean(d), g.boolean(d)))
}

// likely returns a type of numbers, usually one of which there is a place.
func (g *generator) likely() Bits {
	list := g.find(func(p place) bool { return isBits(p.x.Type) })
	if len(list) == 0 || g.one(8) {
		return g.bitsType()
	}
	return pick(g, list).x.Type.(Bits)
}

func (g *generator) literal(t Bits) *Expr {
	return Literal(t, g.number(t.Width), pick(g, []int{10, 10, 16, 16, 2, 8}), true)
}

// unsized returns a constant that takes its type from the context.
func (g *generator) unsized(t Bits) *Expr {
	return Literal(t, g.number(t.Width), pick(g, []int{10, 16}), false)
}

// right returns the right operand of an operator whose left operand has a type.
func (g *generator) right(t Bits, depth int) *Expr {
	if g.one(6) {
		return g.unsized(t)
	}
	return g.bits(t, depth)
}

// convert casts a number to a type, in two steps if sign and width change.
func convert(t Bits, x *Expr) *Expr {
	from := x.Type.(Bits)
	if from == t {
		return x
	}
	if from.Signed != t.Signed && from.Width != t.Width {
		x = Cast(Bits{Width: t.Width, Signed: from.Signed}, x)
	}
	return Cast(t, x)
}

// leaf returns a number without operators but for casts.
func (g *generator) leaf(t Bits) *Expr {
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
func (g *generator) bits(t Bits, depth int) *Expr {
	if depth <= 0 {
		return g.leaf(t)
	}
	d := depth - 1
	switch g.r.IntN(22) {
	case 0, 1, 2, 3:
		g.p.Use("arithmetic")
		return Binary(pick(g, []string{"+", "-", "*", "&", "|", "^"}), g.bits(t, d), g.right(t, d))
	case 4, 5:
		g.p.Use("shift")
		return Shift(pick(g, []string{"<<", ">>"}), g.bits(t, d), g.amount(t, d))
	case 6:
		g.p.Use("saturation")
		return Binary(pick(g, []string{"|+|", "|-|"}), g.bits(t, d), g.bits(t, d))
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
			return Concat(g.bits(Bits{Width: t.Width - low, Signed: t.Signed}, d), g.bits(Bits{Width: low, Signed: g.one(5)}, d))
		}
	case 13:
		g.p.Use("conditional")
		return Parens(Cond(g.boolean(d), g.bits(t, d), g.bits(t, d)))
	case 14:
		g.p.Use("unary")
		return Unary(pick(g, []string{"-", "~", "+"}), g.bits(t, d))
	case 15, 16, 17:
		if x := g.call(d); x != nil {
			return convert(t, x)
		}
	case 18:
		if list := g.serializable(); len(list) > 0 {
			e := pick(g, list)
			g.p.Use("enum cast")
			return convert(t, Cast(*e.Under, g.enum(e, d)))
		}
	case 19:
		if t.Width == 1 && !t.Signed {
			g.p.Use("bool cast")
			return Cast(t, g.boolean(d))
		}
		return g.constant(t)
	case 20:
		if g.where == inParser {
			g.p.Use("lookahead")
			return convert(t, Lookahead(Bits{Width: pick(g, []int{4, 8, 8, 12, 16})}))
		}
	}
	return g.leaf(t)
}

// slice returns some bits of a wider number.
func (g *generator) slice(t Bits, depth int) *Expr {
	g.p.Use("slice")
	from := Bits{Width: t.Width + g.r.IntN(20)}
	list := g.find(func(p place) bool { b, ok := p.x.Type.(Bits); return ok && b.Width >= t.Width })
	if len(list) > 0 && !g.one(4) {
		from = pick(g, list).x.Type.(Bits)
	}
	low := g.r.IntN(from.Width - t.Width + 1)
	return Slice(g.bits(from, depth), low+t.Width-1, low)
}

// amount returns how far to shift a number of type t.
func (g *generator) amount(t Bits, depth int) *Expr {
	if g.one(3) {
		return Literal(Bits{Width: 16}, big.NewInt(int64(g.r.IntN(t.Width+3))), 10, false)
	}
	w := pick(g, []int{1, 2, 3, 4, 5, 6, 7, 8, 8, 16, 32, 33, 64, 70})
	if w > 16 { // constants of such types may be more than compilers shift by
		list := g.find(func(p place) bool { return isBits(p.x.Type) })
		if len(list) == 0 {
			w = 8
		} else {
			return convert(Bits{Width: w}, pick(g, list).x)
		}
	}
	return g.bits(Bits{Width: w}, depth)
}

func (g *generator) serializable() []*Enum {
	var list []*Enum
	for _, e := range g.enums {
		if e.Under != nil {
			list = append(list, e)
		}
	}
	return list
}

// constant returns a computation on constants of arbitrary precision.
func (g *generator) constant(t Bits) *Expr {
	g.p.Use("int constant")
	text, v := g.integer(2)
	return Cast(t, Native(Bits{Width: 4000, Signed: true}, "("+text+")", func(*Machine) Value { return v }))
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

// call returns a call of a function whose result is a number, nil if no function
// can be called here.
func (g *generator) call(depth int) *Expr {
	var list []*Callable
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
	return Call(f, args)
}

// arguments returns arguments for parameters with directions, nil if there is no
// lvalue for one.
func (g *generator) arguments(params []Param, depth int) []*Expr {
	args := []*Expr{}
	for _, p := range params {
		if p.Dir != Out && p.Dir != InOut {
			if t, ok := p.Var.Type.(Bits); ok && g.one(6) {
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

// lvalue returns a place to write a value of a type to, or a slice of one; nil if
// there is none.
func (g *generator) lvalue(t Type) *Expr {
	list := g.find(func(p place) bool { return p.writable && same(p.x.Type, t) })
	if b, ok := t.(Bits); ok && !b.Signed && (len(list) == 0 || g.one(3)) {
		wider := g.find(func(p place) bool {
			w, ok := p.x.Type.(Bits)
			return ok && p.writable && w.Width > b.Width
		})
		if len(wider) > 0 {
			g.p.Use("slice as lvalue")
			x := pick(g, wider).x
			low := g.r.IntN(x.Type.(Bits).Width - b.Width + 1)
			return Slice(x, low+b.Width-1, low)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(g, list).x
}
