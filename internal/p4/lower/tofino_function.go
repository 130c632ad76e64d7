package lower

import (
	"math/big"

	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// function lowers the extern functions of tofino.p4.
func (l *tofino) function(x *syntax.CallExpr, call *types.Call, e *env) value {
	switch name := call.Callee.Name; name {
	case "max", "min":
		args := l.operands(call, e)
		a, b := l.toEx(args[0], x), l.toEx(args[1], x)
		op := syntax.Geq
		if name == "min" {
			op = syntax.Leq
		}
		return cond(binary(op, a, b, boolean), a, b)
	case "funnel_shift_right":
		// The result is the low half of the two numbers, concatenated and shifted
		// right.
		args := l.operands(call, e)
		hi, lo, by := l.toEx(args[1], x), l.toEx(args[2], x), l.toEx(args[3], x)
		if !by.isConst() || by.v.Sign() < 0 || by.v.Cmp(big.NewInt(int64(lo.st.width))) > 0 {
			l.unsupported(x, "a funnel shift by a number that is not a constant up to %d", lo.st.width)
		}
		n, u := int(by.v.Int64()), scalar{width: lo.st.width}
		both := binary(syntax.Concat, cast(hi, u), cast(lo, u), scalar{width: 2 * u.width})
		l.assign(args[0], cast(slice(both, n+u.width-1, n), lo.st))
		return nil
	case "invalidate":
		l.invalidateCall(l.lvalue(call.Args[0], e), x)
		return nil
	case "is_validated":
		switch v := l.eval(call.Args[0], e).(type) {
		case *header:
			return l.isValid(v, x)
		case *field:
			if v.written != nil {
				return equal(fieldEx(v.written), intEx(1, v.written.st))
			}
		}
	case "sizeInBits":
		return intEx(int64(l.widthOf(e.typeOf(call.Args[0]))), code32)
	case "sizeInBytes":
		return intEx(int64(bytesOf(l.widthOf(e.typeOf(call.Args[0])))), code32)
	case "port_metadata_unpack":
		// The port metadata begins at the parser's position. The call moves past
		// it.
		size := types.Number(l.info.Top["PORT_METADATA_SIZE"].Value)
		if l.block != parserBlock || size == nil {
			l.unsupported(x, "port_metadata_unpack here")
		}
		v := l.lookahead(x, e.subst(call.Result))
		l.prim("advance", cast(constEx(size, code32), code32))
		return v
	}
	l.unsupported(x, "the function %s", call.Callee.Name)
	return nil
}

// invalidateCall lowers invalidate. An invalid field is 0, except for a port,
// because 0 is a valid port.
func (l *tofino) invalidateCall(v value, x *syntax.CallExpr) {
	switch v := v.(type) {
	case *field:
		none := new(big.Int)
		if v == l.gress.intrinsic("for_tm", "ucast_egress_port") {
			none = maskOf(v.st.width)
		}
		l.set(v, constEx(none, v.st))
		if v.written != nil {
			l.set(v.written, intEx(0, v.written.st))
		}
	case *header:
		l.setValidity(v, false, x)
	default:
		l.unsupported(x, "invalidating this")
	}
}

// method lowers the methods of TNA's and T2NA's extern objects.
func (l *tofino) method(inst *instance, method string, x *syntax.CallExpr, call *types.Call, e *env) value {
	c := &methodCall{inst: inst, method: method, x: x, call: call, e: e}
	switch kind := inst.extern().Name; kind {
	case "Counter", "DirectCounter":
		return l.countCall(c)
	case "Meter":
		return l.meterCall(c)
	case "DirectMeter":
		return l.directMeterCall(c)
	case "Lpf", "DirectLpf":
		f := l.temp(l.resultShape(c))
		l.filter("filter_execute", c, f)
		return f
	case "Wred", "DirectWred":
		return l.wredCall(c)
	case "Register", "DirectRegister", "RegisterParam":
		return l.registerCall(c)
	case "RegisterAction", "RegisterAction2", "RegisterAction3", "RegisterAction4",
		"DirectRegisterAction", "DirectRegisterAction2", "DirectRegisterAction3", "DirectRegisterAction4",
		"MinMaxAction", "MinMaxAction2", "MinMaxAction3", "MinMaxAction4":
		switch method {
		case "execute", "execute_log":
			return l.execute(c)
		case "enqueue", "dequeue", "push", "pop":
			return l.queueCall(c)
		case "predicate":
			return l.predicateCall(c)
		case "min8", "max8", "min16", "max16":
			return l.reduceCall(c)
		}
	case "Hash":
		return l.hashCall(c)
	case "MathUnit":
		return l.mathUnitCall(c)
	case "Random":
		st := l.resultShape(c)
		f := l.temp(scalar{width: st.width})
		l.prim("modify_field_rng_uniform", f, intEx(0, f.st), constEx(maskOf(st.width), f.st))
		return l.as(f, st)
	case "Checksum":
		return l.checksumObjectCall(c)
	case "ParserCounter":
		return l.parserCounterCall(c)
	case "ParserPriority":
		return nil // it concerns which packets the buffer drops first: no effect here
	case "Mirror":
		return l.mirrorCall(c)
	case "Resubmit":
		return l.resubmitCall(c)
	case "Digest":
		return l.digestCall(c)
	case "Pktgen":
		l.report(x, true, "this makes no packet: the deparser does not trigger the packet generator; send its packets to the switch")
		return nil
	}
	l.unsupported(x, "the method %s of %s", method, inst.extern().Name)
	return nil
}

// Mirror, Resubmit and Digest are used in deparsers. Their constructors may get a
// value. A call then has an effect only if the field mirror_type, resubmit_type or
// digest_type has this value.

// whenSelected lowers f under the condition that the architecture's field of that
// name has the value that was passed to the object's constructor.
func (l *tofino) whenSelected(c *methodCall, name string, f func()) {
	if l.block != deparserBlock {
		l.unsupported(c.x, "the method %s of %s outside of a deparser", c.method, c.inst.extern().Name)
	}
	want, _ := c.inst.arg(0).(*ex)
	asks := l.gress.intrinsic("for_deparser", name)
	if asks == nil {
		f()
		return
	}
	when := boolEx(true)
	if asks.written != nil {
		when = equal(fieldEx(asks.written), intEx(1, asks.written.st))
	}
	if want != nil && !l.justCompared(asks, want) {
		when = andAlso(when, equal(fieldEx(asks), cast(want, asks.st)))
	}
	end := &label{}
	if !when.isTrue() {
		l.branch(when, end)
	}
	f()
	l.emitLabel(end)
}

// justCompared reports whether an enclosing condition of the program has already
// compared f with want.
func (l *tofino) justCompared(f *field, want *ex) bool {
	if l.mark() == 0 {
		return false
	}
	last := l.code.list[l.mark()-1]
	c := last.cond
	return last.kind == iBranch && c.op == opBinary && c.tok == syntax.Eql && c.x.op == opField && c.x.f == f &&
		want.isConst() && c.y.isConst() && c.y.v.Cmp(want.v) == 0
}

// mirrorCall sends a copy of the packet to a session, with a header before it.
func (l *tofino) mirrorCall(c *methodCall) value {
	l.whenSelected(c, "mirror_type", func() {
		session := l.scalar(c.arg("session_id"), c.e)
		m := l.mark()
		h := l.prefix(c)
		session = l.stable(session, m)
		if h == nil {
			l.prim("mirror_emit", session)
			return
		}
		l.prim("mirror_emit", session, h)
	})
	return nil
}

// resubmitCall sends the packet through ingress again, with a header instead of the
// port metadata.
func (l *tofino) resubmitCall(c *methodCall) value {
	l.whenSelected(c, "resubmit_type", func() {
		if h := l.prefix(c); h != nil {
			l.prim("resubmit_emit", h)
			return
		}
		l.prim("resubmit_emit")
	})
	return nil
}

// prefix copies the header that is added before the packet to a variable. Its
// fields are used even if the argument is an invalid header.
func (l *tofino) prefix(c *methodCall) *header {
	x := c.arg("hdr")
	if x == nil {
		return nil
	}
	t, ok := types.Underlying(c.e.typeOf(x)).(*types.Struct)
	if len(c.call.TypeArgs) > 0 {
		t, ok = types.Underlying(c.e.subst(c.call.TypeArgs[0])).(*types.Struct)
	}
	if !ok || t.Kind == syntax.StructKindUnion {
		l.unsupported(x, "%s before a packet; a header is wanted", c.e.typeOf(x))
	}
	v := l.scalarsOf(convert(l.eval(x, c.e), t), t)
	if l.widthOf(t) == 0 {
		return nil // an empty header adds no bytes
	}
	h, ok := l.prefixes[c.inst]
	if !ok || h.typ != t {
		h = l.newHeader(l.unique(c.inst.name), t, true)
		l.prefixes[c.inst] = h
	}
	l.assignHeader(h, &literal{typ: t, fields: v})
	return h
}

// digestCall sends a digest message with the object's name.
func (l *tofino) digestCall(c *methodCall) value {
	l.whenSelected(c, "digest_type", func() {
		arg := c.arg("data")
		id := l.learnList(c.inst.name, l.eval(arg, c.e), c.x, arg)
		l.prim("generate_digest", intEx(0, code32), id)
	})
	return nil
}
