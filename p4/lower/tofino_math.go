package lower

import (
	"math"
	"math/big"

	"github.com/p4lb/p4lb/bmv2"
)

// A mathUnit is what the constructor of a MathUnit says: dataplane/mathunit.go
// has the formula.
type mathUnit struct {
	shift, scale int64
	invert       bool
	table        [16]byte // by the mantissa
}

// A mathOp is a member of MathOp_t: y = x^shift for 1, x² for 2 and so on.
type mathOp struct {
	shift  int64
	invert bool
	of     func(x float64) float64
}

// mathOps are the members of MathOp_t in their order.
var mathOps = []mathOp{
	{0, false, func(x float64) float64 { return x }},
	{1, false, func(x float64) float64 { return x * x }},
	{-1, false, math.Sqrt},
	{0, true, func(x float64) float64 { return 1 / x }},
	{1, true, func(x float64) float64 { return 1 / (x * x) }},
	{-1, true, func(x float64) float64 { return 1 / math.Sqrt(x) }},
}

// unit is the math unit of factor times the function. Its scale is the largest
// with which the table keeps 8 bits: so has it p4c, whose table for RSQR alone
// is not that of 1/x².
func (op mathOp) unit(factor float64) mathUnit {
	u := mathUnit{shift: op.shift, invert: op.invert}
	first, greatest := 8, 0.0
	if op.shift < 0 {
		first = 4
	}
	for i := first; i < 16; i++ {
		greatest = max(greatest, op.of(float64(i)/8)*factor)
	}
	if greatest <= 0 {
		return u
	}
	u.scale = min(max(int64(math.Floor(math.Log2(greatest)))-7, -32), 31)
	for i := first; i < 16; i++ {
		v := math.RoundToEven(math.Ldexp(op.of(float64(i)/8)*factor, -int(u.scale)))
		u.table[i] = byte(min(max(v, 0), 255))
	}
	return u
}

// mathUnitOf reads the arguments of a MathUnit: the unit itself, or a function
// with a factor or a fraction before it.
func (l *tofino) mathUnitOf(i *instance) mathUnit {
	if len(i.args) < 4 {
		op := l.constArg(i, 0)
		if op < 0 || op >= len(mathOps) {
			l.unsupported(i.at, "a MathUnit of this operation")
		}
		factor := float64(l.constArg(i, 1))
		if len(i.args) == 3 {
			factor /= float64(l.constArg(i, 2))
		}
		if !(factor >= 0) || math.IsInf(factor, 0) {
			l.unsupported(i.at, "a MathUnit whose factor is not a positive number")
		}
		return mathOps[op].unit(factor)
	}
	invert, _ := i.args[0].(*ex)
	u := mathUnit{shift: int64(l.constArg(i, 1)), scale: int64(l.constArg(i, 2)), invert: invert != nil && invert.isTrue()}
	values := l.numbers(i.args[3], i.at)
	if u.shift < -1 || len(values) != len(u.table) {
		l.unsupported(i.at, "a MathUnit whose shift is not -1, 0 or 1, or whose table has not 16 values")
	}
	for k, v := range values {
		if !v.isConst() {
			l.unsupported(i.at, "a MathUnit whose table is not constant")
		}
		u.table[15-k] = byte(v.v.Uint64())
	}
	return u
}

// mathUnitCall computes with 32 bits, of whatever width the numbers are.
func (l *tofino) mathUnitCall(c *methodCall) value {
	u := l.mathUnitOf(c.inst)
	st := l.resultShape(c)
	x := cast(cast(l.scalar(c.arg("x"), c.e), scalar{width: st.width}), code32)
	f := l.temp(code32)
	table := new(big.Int)
	for i := len(u.table) - 1; i >= 0; i-- {
		table.Or(table.Lsh(table, 8), big.NewInt(int64(u.table[i])))
	}
	number := func(n int64) *bmv2.Expr { return bmv2.Hex(big.NewInt(n), 4) }
	invert := int64(0)
	if u.invert {
		invert = 1
	}
	l.prim("math_unit", f, x, number(u.shift), number(invert), number(u.scale), bmv2.Hex(table, len(u.table)))
	return cast(cast(fieldEx(f), scalar{width: st.width}), st)
}
