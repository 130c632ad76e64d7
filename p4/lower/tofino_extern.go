package lower

import (
	"math/big"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// declare emits an extern object of TNA or T2NA. Those that belong to a table's
// entries follow when all tables are known (finishDirect).
func (l *tofino) declare(i *instance) bool {
	switch i.extern().Name {
	case "Counter":
		l.cfg.CounterArrays = append(l.cfg.CounterArrays, &bmv2.CounterArray{
			Name: i.name, ID: l.nextID("counter_arrays"), SourceInfo: l.source(i.at), Size: l.constArg(i, 0),
		})
	case "Meter":
		l.cfg.MeterArrays = append(l.cfg.MeterArrays, &bmv2.MeterArray{
			Name: i.name, ID: l.nextID("meter_arrays"), SourceInfo: l.source(i.at), Size: l.constArg(i, 0), RateCount: 2, Type: l.meterType(i, 1),
		})
	case "Register":
		l.declareArray(i, l.constArg(i, 0), i.arg(1))
	case "RegisterParam":
		l.declareArray(i, 1, i.arg(0))
	case "Lpf":
		l.declareFilter(i, l.constArg(i, 0))
	case "DirectCounter", "DirectMeter", "DirectRegister", "DirectLpf",
		"RegisterAction", "RegisterAction2", "RegisterAction3", "RegisterAction4",
		"DirectRegisterAction", "DirectRegisterAction2", "DirectRegisterAction3", "DirectRegisterAction4",
		"ActionProfile", "ActionSelector", "Alpm", "Atcam", "IdleTimeout",
		"Hash", "CRCPolynomial", "Random", "Checksum", "ParserCounter", "ParserPriority",
		"Mirror", "Resubmit", "Digest", "packet_in", "packet_out":
	default:
		l.unsupported(i.at, "the extern object %s", i.extern().Name)
	}
	return true
}

// arg is a constructor argument, nil where there is none.
func (i *instance) arg(k int) value {
	if k < len(i.args) {
		return i.args[k]
	}
	return nil
}

// declareArray emits a register: one array of cells that hold the fields of a
// struct one after the other, the first in the highest bits.
func (l *tofino) declareArray(i *instance, size int, initial value) {
	t := i.extern().Args[0]
	width := l.widthOf(t)
	if width == 0 {
		l.unsupported(i.at, "a register of %s", t)
	}
	out := &bmv2.RegisterArray{
		Name: i.name, ID: l.nextID("register_arrays"), SourceInfo: l.source(i.at), Size: size, Bitwidth: width,
	}
	if initial != nil {
		v := l.joined(l.flat(convert(initial, t), t))
		if !v.isConst() {
			l.errorf(i.at, "the initial value of %s must be a constant", i.name)
		} else if v.v.Sign() != 0 {
			out.Initial = bmv2.HexString(v.v, bytesOf(width))
		}
	}
	l.cfg.RegisterArrays = append(l.cfg.RegisterArrays, out)
}

func (l *tofino) declareFilter(i *instance, size int) {
	l.cfg.FilterArrays = append(l.cfg.FilterArrays, &bmv2.FilterArray{
		Name: i.name, ID: l.nextID("filter_arrays"), SourceInfo: l.source(i.at), Size: size, Bitwidth: l.widthOf(i.extern().Args[0]),
	})
}

// finish emits what belongs to the entries of a table.
func (l *tofino) finish(i *instance) {
	switch i.extern().Name {
	case "DirectRegister", "DirectLpf":
	default:
		return
	}
	size := 1
	if i.table != nil {
		size = i.table.out.MaxSize
	}
	if i.extern().Name == "DirectLpf" {
		l.declareFilter(i, size)
		return
	}
	l.declareArray(i, size, i.arg(0))
}

// joined puts numbers one after the other, the first in the highest bits.
func (l *lowerer) joined(list []*ex) *ex {
	var all *ex
	for _, x := range list {
		if x.st.bool {
			x = boolData(x, scalar{width: 1})
		}
		x = cast(x, scalar{width: x.st.width})
		if all == nil {
			all = x
			continue
		}
		all = binary(syntax.Concat, all, x, scalar{width: all.st.width + x.st.width})
	}
	return all
}

// method: the methods of extern objects of TNA and T2NA.
func (l *tofino) method(inst *instance, method string, x *syntax.CallExpr, call *types.Call, e *env) value {
	c := &externCallSite{inst: inst, method: method, x: x, call: call, e: e}
	switch kind := inst.extern().Name; kind {
	case "Counter", "DirectCounter":
		return l.countCall(c)
	case "Meter":
		return l.meterCall(c)
	case "DirectMeter":
		return l.directMeterCall(c)
	case "Lpf", "DirectLpf":
		return l.filterCall(c)
	case "Register", "DirectRegister", "RegisterParam":
		return l.registerCall(c)
	case "RegisterAction", "RegisterAction2", "RegisterAction3", "RegisterAction4",
		"DirectRegisterAction", "DirectRegisterAction2", "DirectRegisterAction3", "DirectRegisterAction4":
		if method == "execute" {
			return l.execute(c)
		}
	case "Hash":
		return l.hashCall(c)
	case "Random":
		return l.randomCall(c)
	case "Checksum":
		return l.checksumObjectCall(c)
	case "ParserCounter":
		return l.counterCall(c)
	case "ParserPriority":
		return nil // which packet the buffer drops first: none
	case "Mirror":
		return l.mirrorCall(c)
	case "Resubmit":
		return l.resubmitCall(c)
	case "Digest":
		return l.digestCall(c)
	}
	l.unsupported(x, "the method %s of %s", method, inst.extern().Name)
	return nil
}

// An externCallSite is a call of a method of an extern object.
type externCallSite struct {
	inst   *instance
	method string
	x      *syntax.CallExpr
	call   *types.Call
	e      *env
}

// arg is the argument for the parameter called name, nil where it is left out.
func (c *externCallSite) arg(name string) syntax.Expr {
	for k, p := range c.call.Type.Params {
		if p.Name == name && k < len(c.call.Args) {
			return c.call.Args[k]
		}
	}
	return nil
}

// shape is that of the call's result.
func (l *tofino) resultShape(c *externCallSite) scalar {
	st, ok := scalarOf(c.e.subst(c.call.Result))
	if !ok {
		l.unsupported(c.x, "%s as the result of %s", c.call.Result, c.method)
	}
	return st
}

// countCall: BMv2 counts the hits of a table whatever the action does, so that
// a direct counter's count asks for nothing more.
func (l *tofino) countCall(c *externCallSite) value {
	if c.arg("adjust_byte_count") != nil {
		l.unsupported(c.x, "adjust_byte_count")
	}
	if index := c.arg("index"); index != nil {
		l.prim("count", bmv2.Ref(bmv2.TypeCounterArray, c.inst.name), l.scalar(index, c.e))
	}
	return nil
}

func (l *tofino) meterCall(c *externCallSite) value {
	l.plainMeter(c)
	f := l.temp(scalar{width: 2})
	l.prim("execute_meter", bmv2.Ref(bmv2.TypeMeterArray, c.inst.name), l.scalar(c.arg("index"), c.e), f)
	return l.colour(c.inst, fieldEx(f), 2)
}

// directMeterCall reads the colour that the lookup has left.
func (l *tofino) directMeterCall(c *externCallSite) value {
	l.plainMeter(c)
	f, ok := c.inst.target.(*field)
	if !ok {
		f = l.scalars.add(l.unique(c.inst.name+".color"), scalar{width: 2}, false)
		c.inst.target = f
	}
	return l.colour(c.inst, fieldEx(f), 1)
}

// plainMeter refuses what no meter of BMv2 does.
func (l *tofino) plainMeter(c *externCallSite) {
	if c.arg("adjust_byte_count") != nil {
		l.unsupported(c.x, "adjust_byte_count")
	}
	if color := c.arg("color"); color != nil {
		if v := l.scalar(color, c.e); !v.isConst() || v.v.Sign() != 0 {
			l.unsupported(color, "a meter that knows the packet's color")
		}
	}
}

// colour turns BMv2's colours 0, 1, 2 into what the program wants: the
// constructor's arguments red, yellow and green from the k-th on, by default
// those of MeterColor_t.
func (l *tofino) colour(inst *instance, c *ex, k int) *ex {
	st := scalar{width: 8}
	red, yellow, green := intEx(3, st), intEx(1, st), intEx(0, st)
	if len(inst.args) >= k+3 {
		if r, ok := inst.args[k].(*ex); ok && !r.st.bool {
			red, yellow, green = r, l.toEx(inst.args[k+1], inst.at), l.toEx(inst.args[k+2], inst.at)
		}
	}
	is := func(n int64) *ex { return equal(c, intEx(n, c.st)) }
	return cond(is(2), red, cond(is(1), yellow, green))
}

func (l *tofino) filterCall(c *externCallSite) value {
	v := l.scalar(c.arg("val"), c.e)
	m := l.mark()
	index := l.slot(c, c.inst)
	f := l.temp(l.resultShape(c))
	l.prim("filter_execute", f, bmv2.Ref(bmv2.TypeFilterArray, c.inst.name), l.stable(v, m), index)
	return f
}

// slot is the index of a call. The direct variant, array, goes by the entry of
// the table whose action makes the call; without a table that has entries it
// has one cell.
func (l *tofino) slot(c *externCallSite, array *instance) *ex {
	if index := c.arg("index"); index != nil {
		return l.cheap(l.scalar(index, c.e))
	}
	t := l.inTable
	if t == nil || len(t.keys) == 0 {
		return intEx(0, code32)
	}
	if array.table == nil {
		array.table = t
	} else if array.table != t {
		l.errorf(c.x, "%s belongs to the entries of table %s, and cannot to those of %s too", array.name, array.table.name, t.name)
	}
	f := l.temp(code32)
	l.prim("register_entry", f)
	return fieldEx(f)
}

// cheap makes an index that is used twice cheap.
func (l *tofino) cheap(x *ex) *ex {
	if !x.reads() || x.op == opField || x.op == opCast && x.x.op == opField {
		return x
	}
	return l.settled(x)
}

func (l *tofino) randomCall(c *externCallSite) value {
	st := l.resultShape(c)
	f := l.temp(scalar{width: st.width})
	l.prim("modify_field_rng_uniform", f, intEx(0, f.st), constEx(maskOf(st.width), f.st))
	return l.as(f, st)
}

// as reads the bits of f as a number of shape st.
func (l *tofino) as(f *field, st scalar) value {
	if f.st == st {
		return f
	}
	return cast(fieldEx(f), st)
}

// counterCall: the counter of a parser is a variable of eight bits.
func (l *tofino) counterCall(c *externCallSite) value {
	n := l.state(c.inst, scalar{width: 8})
	u8 := n.st
	switch c.method {
	case "set":
		if c.arg("field") == nil {
			l.set(n, cast(l.scalar(c.arg("value"), c.e), u8))
			return nil
		}
		l.set(n, l.counterField(c, u8))
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

// counterField is what set makes of a field: rotated to the right, under a
// mask, which Tofino 1 gives by its highest bit, and something added.
func (l *tofino) counterField(c *externCallSite, u8 scalar) *ex {
	v := cast(l.scalar(c.arg("field"), c.e), u8)
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

// state is the one variable of an extern object, 0 when the gress begins.
func (l *tofino) state(inst *instance, st scalar) *field {
	if f, ok := inst.target.(*field); ok {
		return f
	}
	f := l.scalars.add(l.unique(inst.name), st, false)
	inst.target = f
	return f
}

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
		if h, ok := l.eval(call.Args[0], e).(*header); ok {
			return l.isValid(h, x)
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
	l.assign(l.lvalue(call.Args[0], e), cast(slice(both, n+u.width-1, n), lo.st))
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
