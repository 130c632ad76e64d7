package lower

import (
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// function: the extern functions of tofino.p4.
func (l *tofino) function(x *syntax.CallExpr, call *types.Call, e *env) value {
	arg := func(k int) *ex { return l.scalar(call.Args[k], e) }
	switch name := call.Callee.Name; name {
	case "max", "min":
		a := arg(0)
		m := l.mark()
		b := arg(1)
		a = l.stable(a, m)
		op := syntax.Geq
		if name == "min" {
			op = syntax.Leq
		}
		return cond(binary(op, a, b, boolean), a, b)
	case "funnel_shift_right":
		return l.funnelShift(x, call, e)
	case "invalidate":
		l.invalidateCall(l.lvalue(call.Args[0], e), x)
		return nil
	case "is_validated":
		switch v := l.eval(call.Args[0], e).(type) {
		case *header:
			return l.isValid(v, x)
		case *field:
			if v.asked != nil {
				return equal(fieldEx(v.asked), intEx(1, v.asked.st))
			}
		}
	case "sizeInBits":
		return intEx(int64(l.widthOf(e.typeOf(call.Args[0]))), code32)
	case "sizeInBytes":
		return intEx(int64(bytesOf(l.widthOf(e.typeOf(call.Args[0])))), code32)
	case "port_metadata_unpack":
		return l.portMetadata(x, e.subst(call.Result))
	}
	l.unsupported(x, "the function %s", call.Callee.Name)
	return nil
}

// funnelShift: the low half of two numbers side by side, shifted to the right.
func (l *tofino) funnelShift(x *syntax.CallExpr, call *types.Call, e *env) value {
	hi := l.scalar(call.Args[1], e)
	m := l.mark()
	lo := l.scalar(call.Args[2], e)
	hi = l.stable(hi, m)
	by := l.scalar(call.Args[3], e)
	if !by.isConst() || by.v.Sign() < 0 || by.v.Cmp(big.NewInt(int64(lo.st.width))) > 0 {
		l.unsupported(x, "a funnel shift by a number that is not a constant up to %d", lo.st.width)
	}
	n, u := int(by.v.Int64()), scalar{width: lo.st.width}
	both := binary(syntax.Concat, cast(hi, u), cast(lo, u), scalar{width: 2 * u.width})
	l.give(call.Args[0], cast(slice(both, n+u.width-1, n), lo.st), e)
	return nil
}

// invalidateCall: a field that is not valid is 0, but no port is not port 0.
func (l *tofino) invalidateCall(v value, x *syntax.CallExpr) {
	switch v := v.(type) {
	case *field:
		none := new(big.Int)
		if v == l.gress.intrinsic("for_tm", "ucast_egress_port") {
			none = maskOf(v.st.width)
		}
		l.set(v, constEx(none, v.st))
		if v.asked != nil {
			l.set(v.asked, intEx(0, v.asked.st))
		}
	case *header:
		l.setValidity(v, false, x)
	default:
		l.unsupported(x, "invalidating this")
	}
}

// portMetadata reads what the control plane says of the ingress port, which
// stands where the parser is, and leaves it behind.
func (l *tofino) portMetadata(x *syntax.CallExpr, t types.Type) value {
	size := types.Number(l.info.Top["PORT_METADATA_SIZE"].Value)
	if l.block != parserBlock || size == nil {
		l.unsupported(x, "port_metadata_unpack here")
	}
	v := l.lookahead(x, t)
	l.prim("advance", cast(constEx(size, code32), code32))
	return v
}

func (l *tofino) randomCall(c *methodCall) value {
	st := l.resultShape(c)
	f := l.temp(scalar{width: st.width})
	l.prim("modify_field_rng_uniform", f, intEx(0, f.st), constEx(maskOf(st.width), f.st))
	return l.as(f, st)
}

// parserCounterCall: the counter of a parser is a variable of eight bits.
func (l *tofino) parserCounterCall(c *methodCall) value {
	n := l.state(c.inst, scalar{width: 8})
	u8 := n.st
	switch c.method {
	case "set":
		if c.arg("field") == nil {
			l.set(n, cast(l.scalar(c.arg("value"), c.e), u8))
			return nil
		}
		l.set(n, l.parserCounterField(c, u8))
		return nil
	case "increment", "decrement":
		op := syntax.Add
		if c.method == "decrement" {
			op = syntax.Sub
		}
		l.set(n, binary(op, fieldEx(n), cast(l.scalar(c.arg("value"), c.e), u8), u8))
		return nil
	case "is_zero":
		return equal(fieldEx(n), intEx(0, u8))
	case "is_negative":
		return equal(slice(fieldEx(n), 7, 7), intEx(1, scalar{width: 1}))
	}
	l.unsupported(c.x, "the method %s of ParserCounter", c.method)
	return nil
}

// byteWith is the byte that a header's field is part of, and of a value that is
// no such field its last byte.
func (l *tofino) byteWith(c *methodCall, u8 scalar) *ex {
	if f, ok := l.eval(c.arg("field"), c.e).(*field); ok && f.st.width < 8 {
		if parts := l.aroundInByte(f); parts != nil {
			return cast(l.joined(parts), u8)
		}
	}
	return cast(l.scalar(c.arg("field"), c.e), u8)
}

// aroundInByte lists the parts of the byte that has all of a header's field f;
// nil where there is none.
func (l *tofino) aroundInByte(f *field) []*ex {
	i := slices.IndexFunc(l.cfg.Headers, func(h *bmv2.Header) bool { return h.Name == f.header })
	if i < 0 || l.cfg.Headers[i].Metadata {
		return nil
	}
	list := l.headerTypes[l.cfg.Headers[i].HeaderType].Fields
	at := 0
	for _, g := range list[:slices.IndexFunc(list, func(g bmv2.HeaderField) bool { return g.Name == f.name })] {
		at += g.Width
	}
	first, last := at-at%8, at-at%8+7
	if at+f.st.width-1 > last {
		return nil
	}
	var parts []*ex
	at = 0
	for _, g := range list {
		end := at + g.Width - 1
		if lo, hi := max(at, first), min(end, last); lo <= hi {
			part := fieldEx(&field{header: f.header, name: g.Name, st: scalar{width: g.Width}})
			parts = append(parts, slice(part, end-lo, end-hi))
		}
		at += g.Width
	}
	return parts
}

// parserCounterField is what set makes of the byte that a field is in: rotated to the right, under
// a mask, which Tofino 1 gives by its highest bit, and something added. The
// largest value that the program allows is not held against it.
func (l *tofino) parserCounterField(c *methodCall, u8 scalar) *ex {
	v := l.byteWith(c, u8)
	number := func(name string) int64 {
		x := l.scalar(c.arg(name), c.e)
		if !x.isConst() {
			l.unsupported(c.arg(name), "a parser counter whose %s is not a constant", name)
		}
		return x.v.Int64()
	}
	rotate, mask, add := int(number("rotate")%8), number("mask"), number("add")
	if l.opts.Arch == bmv2.TNA {
		mask = 1<<(mask+1) - 1
	}
	if rotate > 0 {
		v = binary(syntax.Concat, slice(v, rotate-1, 0), slice(v, 7, rotate), u8)
	}
	v = binary(syntax.And, v, intEx(mask, u8), u8)
	return binary(syntax.Add, v, constEx(big.NewInt(add), u8), u8)
}
