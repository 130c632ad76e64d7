package lower

import (
	"math/big"

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
