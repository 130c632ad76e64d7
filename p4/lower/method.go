package lower

import (
	"fmt"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// A destination is a field that a primitive writes, and the copy that follows
// where the argument is no plain field, or one whose sign BMv2 would not see in
// the bits that arrive.
type destination struct {
	f    *field
	back func()
}

// destination evaluates an out argument to a field.
func (l *lowerer) destination(x syntax.Expr, t types.Type, e *env) destination {
	none := func() {}
	if x == nil {
		st, _ := scalarOf(t)
		return destination{l.temp(st), none}
	}
	if sl, ok := syntax.Unparen(x).(*syntax.SliceExpr); ok {
		f := l.temp(l.shape(x, e))
		return destination{f, func() { l.writeSlice(sl, fieldEx(f), e) }}
	}
	p := l.lvalue(x, e)
	if f, ok := p.(*field); ok && !f.st.bool && !f.st.signed {
		return destination{f, none}
	}
	st, ok := scalarOf(t)
	if !ok {
		l.unsupported(x, "%s as the result of an extern", t)
	}
	f := l.temp(scalar{width: st.width, bool: st.bool})
	return destination{f, func() { l.assign(p, cast(fieldEx(f), st)) }}
}

// callMethod: methods of extern objects.
func (l *lowerer) callMethod(x *syntax.CallExpr, call *types.Call, e *env) value {
	inst, ok := l.eval(call.Recv, e).(*instance)
	if !ok || inst.extern() == nil {
		l.unsupported(x, "a method of this")
	}
	kind, method := inst.extern().Name, call.Method.Name
	switch kind + "." + method {
	case "packet_in.extract", "packet_in.lookahead", "packet_in.advance", "packet_in.length":
		return l.packetIn(method, x, call, e)
	case "packet_out.emit":
		l.emitHeader(l.eval(call.Args[0], e), x)
		return nil
	}
	return l.arch.method(inst, method, x, call, e)
}

// inputs flattens the data of a hash or digest into fields and constants; what
// BMv2 cannot take as an input goes through a variable.
func (l *lowerer) inputs(v value, at syntax.Node) []*bmv2.Expr {
	var out []*bmv2.Expr
	switch v := v.(type) {
	case *aggregate:
		for _, el := range v.elems {
			out = append(out, l.inputs(el, at)...)
		}
	case *header:
		for _, f := range v.fields {
			out = append(out, bmv2.FieldOf(f.header, f.name))
		}
	case *literal:
		for _, f := range v.fields {
			out = append(out, l.inputs(f, at)...)
		}
	case *union, *stack:
		for _, f := range leaves(v) {
			out = append(out, bmv2.FieldOf(f.header, f.name))
		}
	default:
		out = append(out, l.input(l.toEx(v, at)))
	}
	return out
}

// hashInput is inputs for the hash function, whose arguments are values: BMv2
// leaves the fields of invalid headers out of a calculation, so fields of
// headers are copied first, as p4c does, and hashed as they stand.
func (l *lowerer) hashInput(v value, at syntax.Node) []*bmv2.Expr {
	list := l.inputs(v, at)
	for i, x := range list {
		if x.Type != bmv2.TypeField || x.Name == scalarsName || x.Name == standardName {
			continue
		}
		for _, f := range leaves(l.hdrs) {
			if f.header == x.Name && f.name == x.Field && !f.st.varbit {
				t := l.temp(f.st)
				l.set(t, fieldEx(f))
				list[i] = bmv2.FieldOf(t.header, t.name)
			}
		}
	}
	return list
}

func (l *lowerer) input(x *ex) *bmv2.Expr {
	switch {
	case x.op == opField:
		return bmv2.FieldOf(x.f.header, x.f.name)
	case x.isConst() && x.st.width > 0:
		c := bmv2.Hex(wrap(x.v, scalar{width: x.st.width}), bytesOf(x.st.width))
		c.Bitwidth = x.st.width
		return c
	}
	t := l.temp(x.st)
	l.set(t, x)
	return bmv2.FieldOf(t.header, t.name)
}

// calculation declares a hash over input.
func (l *lowerer) calculation(algo string, input []*bmv2.Expr, payload bool) *bmv2.Expr {
	name := l.calculationName(algo, input, payload)
	return bmv2.Ref(bmv2.TypeCalculation, name)
}

func (l *lowerer) calculationName(algo string, input []*bmv2.Expr, payload bool) string {
	id := l.nextID("calculations")
	c := &bmv2.Calculation{Name: fmt.Sprintf("calc_%d", id), ID: id, SourceInfo: l.source(l.at), Algo: algo, Input: input}
	if id == 0 {
		c.Name = "calc"
	}
	if payload {
		c.Input = append(c.Input, &bmv2.Expr{Type: bmv2.TypePayload})
	}
	if c.Input == nil {
		c.Input = []*bmv2.Expr{}
	}
	l.cfg.Calculations = append(l.cfg.Calculations, c)
	return c.Name
}

// learnList declares what a digest sends.
func (l *lowerer) learnList(name string, v value, x *syntax.CallExpr, at syntax.Node) *ex {
	elems := l.inputs(v, at)
	for i, x := range elems {
		if x.Type == bmv2.TypeHexstr { // a learn list has fields alone
			v, _ := bmv2.ParseHex(x.Hex)
			t := l.temp(scalar{width: x.Bitwidth})
			l.set(t, constEx(v, t.st))
			elems[i] = bmv2.FieldOf(t.header, t.name)
		}
	}
	id := len(l.cfg.LearnLists) + 1
	l.cfg.LearnLists = append(l.cfg.LearnLists, &bmv2.FieldList{ID: id, Name: name, SourceInfo: l.source(x), Elements: elems})
	return intEx(int64(id), code32)
}
