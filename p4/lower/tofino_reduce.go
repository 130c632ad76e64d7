package lower

import (
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// What the body of a RegisterAction may ask of the stateful ALU itself, as
// this.NAME(...).

// predicateCall is a number with one bit set: that whose place the conditions
// make, the first of them the lowest bit of the place.
func (l *tofino) predicateCall(c *methodCall) value {
	st := l.resultShape(c)
	var conds []*ex
	for k := range c.call.Type.Params {
		when := boolEx(false)
		if k < len(c.call.Args) && c.call.Args[k] != nil {
			when = l.settled(l.scalar(c.call.Args[k], c.e))
		}
		conds = append(conds, when)
	}
	var bit func(k int, place uint) *ex
	bit = func(k int, place uint) *ex {
		if k == len(conds) {
			return cast(constEx(new(big.Int).Lsh(big.NewInt(1), place), code32), st)
		}
		return cond(conds[k], bit(k+1, place+1<<k), bit(k+1, place))
	}
	return bit(0, 0)
}

// reduceCall is the least or the greatest of the bytes, or halves, of a value
// that a mask selects, and where it is: of several that are equal the highest.
// Without any it is 0. A MinMaxAction may add to it afterwards, within bounds.
func (l *tofino) reduceCall(c *methodCall) value {
	width := 8
	if strings.HasSuffix(c.method, "16") {
		width = 16
	}
	if _, ok := types.Underlying(c.e.typeOf(c.arg("val"))).(*types.Bits); !ok {
		l.unsupported(c.arg("val"), "%s of %s", c.method, c.e.typeOf(c.arg("val")))
	}
	val := l.settled(l.scalar(c.arg("val"), c.e))
	mask := l.settled(l.scalar(c.arg("mask"), c.e))
	u, at := scalar{width: width}, scalar{width: 4}
	best, index, found := l.temp(u), l.temp(at), l.temp(scalar{width: 1})
	for _, f := range []*field{best, index, found} {
		l.set(f, intEx(0, f.st))
	}
	op := syntax.Leq
	if strings.HasPrefix(c.method, "max") {
		op = syntax.Geq
	}
	one, take := intEx(1, found.st), l.temp(boolean)
	for i := range val.st.width / width {
		element := slice(val, (i+1)*width-1, i*width)
		better := binary(op, element, fieldEx(best), boolean)
		l.set(take, andAlso(equal(slice(mask, i, i), one), cond(equal(fieldEx(found), one), better, boolEx(true))))
		l.set(best, cond(fieldEx(take), element, fieldEx(best)))
		l.set(index, cond(fieldEx(take), intEx(int64(i), at), fieldEx(index)))
		l.set(found, cond(fieldEx(take), one, fieldEx(found)))
	}
	if x := c.arg("index"); x != nil {
		l.give(x, cast(fieldEx(index), l.shape(x, c.e)), c.e)
	}
	if x := c.arg("postmod"); x != nil {
		l.postmod(c, best, index, found, x)
	}
	return fieldEx(best)
}

// postmod adds to the element of the cell that has been chosen, without going
// round at 0 or all ones.
func (l *tofino) postmod(c *methodCall, best, index, found *field, x syntax.Expr) {
	cell, ok := l.lvalue(c.arg("val"), c.e).(*field)
	if !ok {
		l.unsupported(x, "a change of what is not the cell")
	}
	width := best.st.width
	wide := scalar{width: width + 2, signed: true}
	sum := l.settled(binary(syntax.Add, cast(cast(fieldEx(best), scalar{width: wide.width}), wide), cast(l.scalar(x, c.e), wide), wide))
	low, high := intEx(0, wide), constEx(maskOf(width), wide)
	changed := cast(cast(cond(binary(syntax.Lss, sum, low, boolean), low, cond(binary(syntax.Gtr, sum, high, boolean), high, sum)), scalar{width: wide.width}), best.st)
	changed = l.settled(changed)
	for i := range cell.st.width / width {
		here := andAlso(equal(fieldEx(found), intEx(1, found.st)), equal(fieldEx(index), intEx(int64(i), index.st)))
		rest := new(big.Int).Xor(maskOf(cell.st.width), new(big.Int).Lsh(maskOf(width), uint(i*width)))
		put := binary(syntax.Shl, cast(changed, cell.st), intEx(int64(i*width), code32), cell.st)
		put = binary(syntax.Or, binary(syntax.And, fieldEx(cell), constEx(rest, cell.st), cell.st), put, cell.st)
		l.set(cell, cond(here, put, fieldEx(cell)))
	}
}

// postmods reports whether the body changes its cell by a reduction.
func (l *tofino) postmods(body *syntax.BlockStmt) bool {
	found := false
	syntax.Inspect(body, func(n syntax.Node) bool {
		if x, ok := n.(*syntax.CallExpr); ok && l.info.Calls[x] != nil {
			c := &methodCall{call: l.info.Calls[x]}
			found = found || c.call.Type != nil && c.arg("postmod") != nil
		}
		return !found
	})
	return found
}
