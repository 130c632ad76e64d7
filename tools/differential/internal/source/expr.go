package source

import (
	"fmt"
	"math/big"
	"strings"
)

// An Expr is an expression: its text and its meaning.
type Expr struct {
	Type Type
	Text string
	prec int
	eval func(m *Machine) Value
	ref  func(m *Machine) ref // nil unless it is an lvalue
}

// IsLvalue reports whether the expression can be assigned to.
func (e *Expr) IsLvalue() bool { return e.ref != nil }

// A ref is the place that an lvalue denotes. Its indices have been evaluated
// (section 6.8).
type ref struct {
	get func() Value
	set func(Value)
}

// The precedences of operators, from the grammar (appendix G): bitwise operators
// bind tighter than comparisons, and ++ has the precedence of +.
const (
	precCond = iota + 1
	precOr
	precAnd
	precEqual
	precLess
	precBitOr
	precBitXor
	precBitAnd
	precShift
	precAdd
	precMul
	precPrefix
	precPostfix
	precAtom
)

// at returns the text of e as an operand of an operator with precedence prec.
func (e *Expr) at(prec int) string {
	if e.prec < prec {
		return "(" + e.Text + ")"
	}
	return e.Text
}

// Parens returns e in parentheses.
func Parens(e *Expr) *Expr {
	c := *e
	c.Text, c.prec, c.ref = "("+e.Text+")", precAtom, nil
	return &c
}

// Native returns an expression with a given text and meaning.
func Native(t Type, text string, eval func(m *Machine) Value) *Expr {
	return &Expr{Type: t, Text: text, prec: precAtom, eval: eval}
}

func num(v Value) *big.Int {
	if v == nil {
		panic(undefined{"a number"})
	}
	return v.(*big.Int)
}

func truth(v Value) bool {
	if v == nil {
		panic(undefined{"a bool"})
	}
	return v.(bool)
}

// Num evaluates a numeric expression.
func (e *Expr) Num(m *Machine) *big.Int { return num(e.eval(m)) }

// Literal returns a constant. base and sized select one of the spellings in section
// 6.4.3.2.
func Literal(t Bits, v *big.Int, base int, sized bool) *Expr {
	v = wrap(t, v)
	text := new(big.Int).Abs(v).String()
	switch base {
	case 16:
		text = fmt.Sprintf("0x%X", new(big.Int).Abs(v))
	case 8:
		text = fmt.Sprintf("0o%o", new(big.Int).Abs(v))
	case 2:
		text = fmt.Sprintf("0b%b", new(big.Int).Abs(v))
	}
	if sized {
		text = fmt.Sprintf("%d%c%s", t.Width, "ws"[b2i(t.Signed)], text)
	}
	prec := precAtom
	if v.Sign() < 0 {
		text, prec = "-"+text, precPrefix
		if sized && v.Cmp(wrap(t, new(big.Int).Neg(v))) == 0 { // the smallest number has no positive counterpart
			text = fmt.Sprintf("(int<%d>)-%s", t.Width, new(big.Int).Abs(v))
		}
	}
	return &Expr{Type: t, Text: text, prec: prec, eval: func(*Machine) Value { return v }}
}

// BoolLiteral returns true or false.
func BoolLiteral(v bool) *Expr {
	return &Expr{Type: Bool{}, Text: fmt.Sprint(v), prec: precAtom, eval: func(*Machine) Value { return v }}
}

// EnumLiteral returns a member of an enumeration.
func EnumLiteral(t *Enum, i int) *Expr {
	var v Value = i
	if t.Under != nil {
		v = t.Values[i]
	}
	return &Expr{Type: t, Text: t.Name + "." + t.Members[i], prec: precPostfix, eval: func(*Machine) Value { return v }}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// binary describes an operator on two numbers of one type.
type binary struct {
	prec int
	f    func(t Bits, x, y *big.Int) *big.Int
}

var arithmetic = map[string]binary{
	"+": {precAdd, func(t Bits, x, y *big.Int) *big.Int { return wrap(t, new(big.Int).Add(x, y)) }},
	"-": {precAdd, func(t Bits, x, y *big.Int) *big.Int { return wrap(t, new(big.Int).Sub(x, y)) }},
	"*": {precMul, func(t Bits, x, y *big.Int) *big.Int { return wrap(t, new(big.Int).Mul(x, y)) }},
	"&": {precBitAnd, func(t Bits, x, y *big.Int) *big.Int { return new(big.Int).And(x, y) }},
	"|": {precBitOr, func(t Bits, x, y *big.Int) *big.Int { return new(big.Int).Or(x, y) }},
	"^": {precBitXor, func(t Bits, x, y *big.Int) *big.Int { return new(big.Int).Xor(x, y) }},
	// Section 8.6: saturating operators stop at the bounds of the type.
	"|+|": {precAdd, func(t Bits, x, y *big.Int) *big.Int { return clamp(t, new(big.Int).Add(x, y)) }},
	"|-|": {precAdd, func(t Bits, x, y *big.Int) *big.Int { return clamp(t, new(big.Int).Sub(x, y)) }},
}

func clamp(t Bits, v *big.Int) *big.Int {
	low, high := bounds(t)
	if v.Cmp(low) < 0 {
		return low
	}
	if v.Cmp(high) > 0 {
		return high
	}
	return v
}

// Binary returns x op y for an arithmetic or bitwise operator. Both operands
// have the type of the result and are evaluated from left to right.
func Binary(op string, x, y *Expr) *Expr {
	b, t := arithmetic[op], x.Type.(Bits)
	return &Expr{Type: t, Text: x.at(b.prec) + " " + op + " " + y.at(b.prec+1), prec: b.prec, eval: func(m *Machine) Value {
		v, w := x.Num(m), y.Num(m)
		if m.Wrong && op == "-" {
			v, w = w, v
		}
		return b.f(t, v, w)
	}}
}

// Shift returns x << y or x >> y (section 8.6.2): bits shifted out are lost, and an
// amount of the width or more gives zeros or copies of the sign.
func Shift(op string, x, y *Expr) *Expr {
	t := x.Type.(Bits)
	return &Expr{Type: t, Text: x.at(precShift) + " " + op + " " + y.at(precShift+1), prec: precShift, eval: func(m *Machine) Value {
		return m.shift(op, t, x.Num(m), y.Num(m))
	}}
}

func (m *Machine) shift(op string, t Bits, v, by *big.Int) *big.Int {
	n := by
	if m.Prog.Arch == V1model { // docs/conformance.md: only the low 32 bits count
		n = wrap(Bits{Width: 32}, by)
	}
	n = new(big.Int).Set(n)
	if n.Cmp(big.NewInt(int64(t.Width))) > 0 {
		n.SetInt64(int64(t.Width))
	}
	if op == "<<" {
		return wrap(t, new(big.Int).Lsh(v, uint(n.Int64())))
	}
	return new(big.Int).Rsh(v, uint(n.Int64())) // big.Int's Rsh rounds down, like an arithmetic shift
}

// Concat returns x ++ y, which has the sign of x (section 8.6, 8.7).
func Concat(x, y *Expr) *Expr {
	a, b := x.Type.(Bits), y.Type.(Bits)
	t := Bits{Width: a.Width + b.Width, Signed: a.Signed}
	return &Expr{Type: t, Text: x.at(precAdd) + " ++ " + y.at(precAdd+1), prec: precAdd, eval: func(m *Machine) Value {
		v := unsigned(a, x.Num(m))
		w := unsigned(b, y.Num(m))
		return wrap(t, v.Lsh(v, uint(b.Width)).Or(v, w))
	}}
}

// Compare returns x op y for numbers.
func Compare(op string, x, y *Expr) *Expr {
	holds := map[string]func(int) bool{
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}[op]
	return &Expr{Type: Bool{}, Text: x.at(precLess+1) + " " + op + " " + y.at(precLess+1), prec: precLess, eval: func(m *Machine) Value {
		v, w := x.Num(m), y.Num(m)
		return holds(v.Cmp(w))
	}}
}

// Equal returns x == y, or x != y if not is set.
func Equal(x, y *Expr, not bool) *Expr {
	op := " == "
	if not {
		op = " != "
	}
	return &Expr{Type: Bool{}, Text: x.at(precEqual+1) + op + y.at(precEqual+1), prec: precEqual, eval: func(m *Machine) Value {
		v := clone(x.eval(m))
		return equal(x.Type, v, y.eval(m)) != not
	}}
}

// Logic returns x && y or x || y. They evaluate y only if x does not determine the
// result (section 8.5).
func Logic(op string, x, y *Expr) *Expr {
	prec := map[string]int{"&&": precAnd, "||": precOr}[op]
	return &Expr{Type: Bool{}, Text: x.at(prec) + " " + op + " " + y.at(prec+1), prec: prec, eval: func(m *Machine) Value {
		if truth(x.eval(m)) == (op == "||") {
			return op == "||"
		}
		return truth(y.eval(m))
	}}
}

// Not returns !x.
func Not(x *Expr) *Expr {
	return &Expr{Type: Bool{}, Text: "!" + x.at(precPrefix), prec: precPrefix, eval: func(m *Machine) Value { return !truth(x.eval(m)) }}
}

// Unary returns -x, ~x or +x.
func Unary(op string, x *Expr) *Expr {
	t := x.Type.(Bits)
	text := x.at(precPrefix)
	if strings.HasPrefix(text, op) {
		text = " " + text
	}
	return &Expr{Type: t, Text: op + text, prec: precPrefix, eval: func(m *Machine) Value {
		v := x.Num(m)
		switch op {
		case "-":
			return wrap(t, new(big.Int).Neg(v))
		case "~":
			return wrap(t, new(big.Int).Not(v))
		}
		return v
	}}
}

// Cond returns c ? x : y. Only one of x and y is evaluated.
func Cond(c, x, y *Expr) *Expr {
	return &Expr{Type: x.Type, Text: c.at(precOr) + " ? " + x.at(precOr) + " : " + y.at(precOr), prec: precCond, eval: func(m *Machine) Value {
		if truth(c.eval(m)) {
			return x.eval(m)
		}
		return y.eval(m)
	}}
}

// Cast returns (t)x (section 8.12.1). A cast from bit<W> to int<W> keeps the bits.
// Widening extends the sign, narrowing keeps the low bits.
func Cast(t Type, x *Expr) *Expr {
	return &Expr{Type: t, Text: "(" + t.String() + ")" + x.at(precPrefix), prec: precPrefix, eval: func(m *Machine) Value {
		return convert(t, x.Type, x.eval(m))
	}}
}

func convert(to, from Type, v Value) Value {
	if v == nil {
		panic(undefined{"a cast"})
	}
	if f, ok := from.(Bool); ok {
		_ = f
		return big.NewInt(int64(b2i(v.(bool))))
	}
	switch t := to.(type) {
	case Bits:
		return wrap(t, v.(*big.Int))
	case Bool:
		return v.(*big.Int).Sign() != 0
	}
	return v // casts to and from a serializable enumeration keep the value
}

// Slice returns x[high:low] (section 8.6). It is an lvalue if x is one.
func Slice(x *Expr, high, low int) *Expr {
	from := x.Type.(Bits)
	t := Bits{Width: high - low + 1}
	cut := func(v Value) Value {
		return wrap(t, new(big.Int).Rsh(unsigned(from, num(v)), uint(low)))
	}
	e := &Expr{Type: t, Text: fmt.Sprintf("%s[%d:%d]", x.at(precPostfix), high, low), prec: precPostfix, eval: func(m *Machine) Value {
		return cut(x.eval(m))
	}}
	if x.ref == nil {
		return e
	}
	e.ref = func(m *Machine) ref {
		r := x.ref(m)
		return ref{func() Value { return cut(r.get()) }, func(v Value) {
			mask := Ones(t.Width)
			mask.Lsh(mask, uint(low))
			w := new(big.Int).AndNot(unsigned(from, num(r.get())), mask)
			r.set(wrap(from, w.Or(w, new(big.Int).Lsh(num(v), uint(low)))))
		}}
	}
	return e
}
