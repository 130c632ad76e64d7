package lower

import (
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// declare emits an extern object of TNA or T2NA. finishDirect later emits the
// objects that belong to the entries of a table.
func (l *tofino) declare(i *instance) bool {
	switch i.extern().Name {
	case "Counter":
		l.declareCounter(i)
	case "Meter":
		l.declareMeter(i)
	case "Register":
		l.declareArray(i, l.constArg(i, 0), i.arg(1))
	case "RegisterParam":
		l.declareArray(i, 1, i.arg(0))
	case "Lpf", "Wred":
		l.declareFilter(i, l.constArg(i, 0))
	case "DirectCounter", "DirectMeter", "DirectRegister", "DirectLpf", "DirectWred",
		"RegisterAction", "RegisterAction2", "RegisterAction3", "RegisterAction4",
		"DirectRegisterAction", "DirectRegisterAction2", "DirectRegisterAction3", "DirectRegisterAction4",
		"MinMaxAction", "MinMaxAction2", "MinMaxAction3", "MinMaxAction4",
		"ActionProfile", "ActionSelector", "Alpm", "Atcam", "IdleTimeout",
		"Hash", "CRCPolynomial", "Random", "MathUnit", "Checksum", "ParserCounter", "ParserPriority",
		"Mirror", "Resubmit", "Digest", "Pktgen", "packet_in", "packet_out":
	case "SelectorAction":
		l.unsupported(i.at, "a SelectorAction: which bit belongs to which member of which group the hardware's driver decides")
	case "LearnAction", "LearnAction2", "LearnAction3", "LearnAction4":
		l.unsupported(i.at, "a %s: it compares with the digest of a table by hash ways, which p4lb has not", i.extern().Name)
	default:
		l.unsupported(i.at, "the extern object %s", i.extern().Name)
	}
	return true
}

// declareArray emits a register: one array whose cells hold the fields of a struct
// side by side, the first in the highest bits.
func (l *tofino) declareArray(i *instance, size int, initial value) {
	t := i.extern().Args[0]
	width := l.widthOf(t)
	if width == 0 {
		l.unsupported(i.at, "a register of %s", t)
	}
	out := &bmv2.RegisterArray{
		Name: i.name, ID: l.nextID("register_arrays"), SourceInfo: l.source(i.at), Size: l.cells(i, size, bmv2.RegisterWords(width)), Bitwidth: width,
		Pair: isPair(t),
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

// isPair reports whether t is a struct of two numbers of the same width.
func isPair(t types.Type) bool {
	if _, scalar := scalarOf(t); scalar {
		return false
	}
	_, parts, ok := components(t)
	if !ok || len(parts) != 2 {
		return false
	}
	a, ok1 := scalarOf(parts[0])
	b, ok2 := scalarOf(parts[1])
	return ok1 && ok2 && a.width == b.width
}

func (l *tofino) declareFilter(i *instance, size int) {
	l.cfg.FilterArrays = append(l.cfg.FilterArrays, &bmv2.FilterArray{
		Name: i.name, ID: l.nextID("filter_arrays"), SourceInfo: l.source(i.at), Size: size, Bitwidth: l.widthOf(i.extern().Args[0]),
		Wred: strings.HasSuffix(i.extern().Name, "Wred"),
	})
}

// finish emits the objects that have one cell for each entry of a table.
func (l *tofino) finish(i *instance) {
	size := 1
	if i.table != nil {
		size = i.table.out.MaxSize
	}
	switch i.extern().Name {
	case "DirectRegister":
		l.declareArray(i, size, i.arg(0))
	case "DirectLpf", "DirectWred":
		l.declareFilter(i, size)
	}
}

// A methodCall is a call of a method of an extern object.
type methodCall struct {
	inst   *instance
	method string
	x      *syntax.CallExpr
	call   *types.Call
	e      *env
}

// arg returns the argument for the parameter called name, or nil if the call omits
// it.
func (c *methodCall) arg(name string) syntax.Expr {
	for k, p := range c.call.Type.Params {
		if p.Name == name && k < len(c.call.Args) {
			return c.call.Args[k]
		}
	}
	return nil
}

// resultShape returns the shape of a method's result, which must be a scalar.
func (l *tofino) resultShape(c *methodCall) scalar {
	st, ok := scalarOf(c.e.subst(c.call.Result))
	if !ok {
		l.unsupported(c.x, "%s as the result of %s", c.call.Result, c.method)
	}
	return st
}

// slot returns the index of the cell that a call uses. A direct array uses the
// entry of the table that runs the calling action. If that table has no entries,
// the array has one cell.
func (l *tofino) slot(c *methodCall, array *instance) *ex {
	if index := c.arg("index"); index != nil {
		// An index that is used twice must be cheap to evaluate.
		x := l.scalar(index, c.e)
		if !x.reads() || x.op == opField || x.op == opCast && x.x.op == opField {
			return x
		}
		return l.settled(x)
	}
	if c.method == "execute_log" {
		return l.logIndex(array)
	}
	t := l.inTable
	if t == nil || len(t.keys) == 0 {
		return intEx(0, code32)
	}
	if array.table == nil {
		array.table = t
	} else if array.table != t {
		l.errorf(c.x, "%s belongs to the entries of table %s and cannot belong to the entries of %s too", array.name, array.table.name, t.name)
	}
	f := l.temp(code32)
	l.prim("register_entry", f)
	return fieldEx(f)
}

// logIndex returns the next cell of a register that is written like a log. An extra
// register in the document counts down from the last cell to the first.
func (l *tofino) logIndex(reg *instance) *ex {
	size := intEx(int64(l.constArg(reg, 0)), code32)
	array := l.sideRegister(l.logs, reg, ".log", 1)
	now, zero := l.temp(code32), intEx(0, code32)
	l.prim("register_read", now, array, zero)
	next := binary(syntax.Add, fieldEx(now), intEx(1, code32), code32)
	l.prim("register_write", array, zero, cond(equal(next, size), zero, next))
	return fieldEx(now)
}

// sideRegister returns an extra array of the document that holds data about a
// register: size numbers of 32 bits.
func (l *tofino) sideRegister(known map[*instance]*bmv2.Expr, reg *instance, what string, size int) *bmv2.Expr {
	if known[reg] == nil {
		name := l.unique(reg.name + what)
		known[reg] = bmv2.Ref(bmv2.TypeRegisterArray, name)
		l.cfg.RegisterArrays = append(l.cfg.RegisterArrays, &bmv2.RegisterArray{Name: name, ID: l.nextID("register_arrays"), Size: size, Bitwidth: 32})
	}
	return known[reg]
}

// as returns the bits of f as a number of shape st.
func (l *tofino) as(f *field, st scalar) value {
	if f.st == st {
		return f
	}
	return cast(fieldEx(f), st)
}

// state returns the variable of an extern object. It is 0 at the start of the
// gress.
func (l *tofino) state(inst *instance, name string, st scalar) *field {
	if f, ok := inst.target.(*field); ok {
		return f
	}
	f := l.scalars.add(l.unique(name), st, false)
	inst.target = f
	return f
}

// countCall lowers the count of a counter. A direct counter needs no code, because
// BMv2 counts the hits of a table for every action.
func (l *tofino) countCall(c *methodCall) value {
	l.plainBytes(c)
	l.uses(c.inst)
	if index := c.arg("index"); index != nil {
		l.prim("count", bmv2.Ref(bmv2.TypeCounterArray, c.inst.name), l.scalar(index, c.e))
	}
	return nil
}

func (l *tofino) meterCall(c *methodCall) value {
	l.plainBytes(c)
	index := l.scalar(c.arg("index"), c.e)
	m := l.mark()
	had := l.priorColour(c)
	index = l.stable(index, m)
	f := l.temp(scalar{width: 2})
	array := bmv2.Ref(bmv2.TypeMeterArray, c.inst.name)
	if had == nil {
		l.prim("execute_meter", array, index, f)
	} else {
		l.prim("execute_meter_colored", array, index, f, had)
	}
	return l.colour(c.inst, fieldEx(f), 2)
}

// directMeterCall reads the colour that the lookup stored. The packet's previous
// colour was not known at that time; it can only make the colour worse.
func (l *tofino) directMeterCall(c *methodCall) value {
	l.plainBytes(c)
	l.uses(c.inst)
	f := l.state(c.inst, c.inst.name+".color", scalar{width: 2})
	got := fieldEx(f)
	if had := l.priorColour(c); had != nil {
		had = l.settled(cast(had, f.st))
		got = cond(binary(syntax.Gtr, had, got, boolean), had, got)
	}
	return l.colour(c.inst, got, 1)
}

// priorColour returns the packet's colour before the meter as the meter's 0, 1 or
// 2. It returns nil if there is none or if it is green.
func (l *tofino) priorColour(c *methodCall) *ex {
	x := c.arg("color")
	if x == nil {
		return nil
	}
	v := l.scalar(x, c.e)
	if v.isConst() && v.v.Sign() == 0 {
		return nil
	}
	is := func(n int64) *ex { return equal(v, intEx(n, v.st)) }
	two := scalar{width: 2}
	return cond(is(3), intEx(2, two), cond(is(0), intEx(0, two), intEx(1, two)))
}

// plainBytes refuses an adjusted byte count: counters and meters count the packet's
// bytes as they are.
func (l *tofino) plainBytes(c *methodCall) {
	if x := c.arg("adjust_byte_count"); x != nil {
		if v := l.scalar(x, c.e); v.isConst() && v.v.Sign() == 0 {
			return
		}
		l.report(x, true, "adjust_byte_count has no effect: p4lb counts the bytes that there are")
	}
}

// colour converts BMv2's colours 0, 1, 2 to the program's values: the constructor's
// arguments red, yellow and green from the k-th on, by default the members of
// MeterColor_t.
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

func (l *tofino) filter(op string, c *methodCall, f *field) {
	v := l.scalar(c.arg("val"), c.e)
	m := l.mark()
	index := l.slot(c, c.inst)
	l.prim(op, f, bmv2.Ref(bmv2.TypeFilterArray, c.inst.name), l.stable(v, m), index)
}

// wredCall returns the second to last constructor argument for a packet to be
// dropped, and the last one for others.
func (l *tofino) wredCall(c *methodCall) value {
	f := l.temp(scalar{width: 1})
	l.filter("wred_execute", c, f)
	n, st := len(c.inst.args), scalar{width: 8}
	drop, keep := l.toEx(c.inst.args[n-2], c.x), l.toEx(c.inst.args[n-1], c.x)
	return cond(equal(fieldEx(f), intEx(1, f.st)), cast(drop, st), cast(keep, st))
}
