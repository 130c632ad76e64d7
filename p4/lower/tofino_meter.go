package lower

import (
	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
)

// countCall: BMv2 counts the hits of a table whatever the action does, so that
// a direct counter's count asks for nothing more.
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
	had := l.had(c)
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

// directMeterCall reads the colour that the lookup has left. The packet's own,
// which was not known then, can only make it worse.
func (l *tofino) directMeterCall(c *methodCall) value {
	l.plainBytes(c)
	l.uses(c.inst)
	f, ok := c.inst.target.(*field)
	if !ok {
		f = l.scalars.add(l.unique(c.inst.name+".color"), scalar{width: 2}, false)
		c.inst.target = f
	}
	got := fieldEx(f)
	if had := l.had(c); had != nil {
		had = l.settled(cast(had, f.st))
		got = cond(binary(syntax.Gtr, had, got, boolean), had, got)
	}
	return l.colour(c.inst, got, 1)
}

// had is the packet's colour before the meter, as the meter's 0, 1 or 2; nil
// where there is none, or green.
func (l *tofino) had(c *methodCall) *ex {
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

// plainBytes: counters and meters take the packet's bytes as they are.
func (l *tofino) plainBytes(c *methodCall) {
	if x := c.arg("adjust_byte_count"); x != nil {
		if v := l.scalar(x, c.e); v.isConst() && v.v.Sign() == 0 {
			return
		}
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
