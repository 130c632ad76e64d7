package lower

import (
	"github.com/p4lb/p4lb/bmv2"
)

// countCall: BMv2 counts the hits of a table whatever the action does, so that
// a direct counter's count asks for nothing more.
func (l *tofino) countCall(c *methodCall) value {
	l.plainBytes(c)
	if index := c.arg("index"); index != nil {
		l.prim("count", bmv2.Ref(bmv2.TypeCounterArray, c.inst.name), l.scalar(index, c.e))
	}
	return nil
}

func (l *tofino) meterCall(c *methodCall) value {
	l.plainMeter(c)
	f := l.temp(scalar{width: 2})
	l.prim("execute_meter", bmv2.Ref(bmv2.TypeMeterArray, c.inst.name), l.scalar(c.arg("index"), c.e), f)
	return l.colour(c.inst, fieldEx(f), 2)
}

// directMeterCall reads the colour that the lookup has left.
func (l *tofino) directMeterCall(c *methodCall) value {
	l.plainMeter(c)
	f, ok := c.inst.target.(*field)
	if !ok {
		f = l.scalars.add(l.unique(c.inst.name+".color"), scalar{width: 2}, false)
		c.inst.target = f
	}
	return l.colour(c.inst, fieldEx(f), 1)
}

// plainMeter refuses what no meter of BMv2 does.
func (l *tofino) plainMeter(c *methodCall) {
	l.plainBytes(c)
	if color := c.arg("color"); color != nil {
		if v := l.scalar(color, c.e); !v.isConst() || v.v.Sign() != 0 {
			l.unsupported(color, "a meter that knows the packet's color")
		}
	}
}

// plainBytes: counters and meters take the packet's bytes as they are.
func (l *tofino) plainBytes(c *methodCall) {
	if x := c.arg("adjust_byte_count"); x != nil {
		l.report(x, true, "adjust_byte_count has no effect: p4lb counts the bytes that there are")
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

func (l *tofino) filterCall(c *methodCall) value {
	f := l.temp(l.resultShape(c))
	l.filter("filter_execute", c, f)
	return f
}

func (l *tofino) filter(op string, c *methodCall, f *field) {
	v := l.scalar(c.arg("val"), c.e)
	m := l.mark()
	index := l.slot(c, c.inst)
	l.prim(op, f, bmv2.Ref(bmv2.TypeFilterArray, c.inst.name), l.stable(v, m), index)
}

// wredCall: the last two arguments of the constructor are what it says to a
// packet that is to be dropped, and to others.
func (l *tofino) wredCall(c *methodCall) value {
	f := l.temp(scalar{width: 1})
	l.filter("wred_execute", c, f)
	n, st := len(c.inst.args), scalar{width: 8}
	drop, keep := l.toEx(c.inst.args[n-2], c.x), l.toEx(c.inst.args[n-1], c.x)
	return cond(equal(fieldEx(f), intEx(1, f.st)), cast(drop, st), cast(keep, st))
}
