package lower

import (
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// Mirror, Resubmit and Digest are for deparsers. Each has a value of the field
// of the same name that must hold for it to do anything, if its constructor got
// one.

// whenAsked lowers f under the condition that the field of that name, at which
// the architecture looks, has the value that the object was made with.
func (l *tofino) whenAsked(c *methodCall, name string, f func()) {
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
	if asks.asked != nil {
		when = equal(fieldEx(asks.asked), intEx(1, asks.asked.st))
	}
	if want != nil && !l.justAsked(asks, want) {
		when = andAlso(when, equal(fieldEx(asks), cast(want, asks.st)))
	}
	end := &label{}
	if !when.isTrue() {
		l.branch(when, end)
	}
	f()
	l.place(end)
}

// justAsked reports whether the program has asked for that very value itself.
func (l *tofino) justAsked(f *field, want *ex) bool {
	if l.mark() == 0 {
		return false
	}
	last := l.code.list[l.mark()-1]
	c := last.cond
	return last.kind == iBranch && c.op == opBinary && c.tok == syntax.Eql && c.x.op == opField && c.x.f == f &&
		want.isConst() && c.y.isConst() && c.y.v.Cmp(want.v) == 0
}

// mirrorCall: a copy of the packet goes to a session, with a header before it.
func (l *tofino) mirrorCall(c *methodCall) value {
	l.whenAsked(c, "mirror_type", func() {
		h := l.prefix(c) // writes nothing that the session could depend on
		session := l.scalar(c.arg("session_id"), c.e)
		if h == nil {
			l.prim("mirror_emit", session)
			return
		}
		l.prim("mirror_emit", session, h)
	})
	return nil
}

// resubmitCall: the packet goes through ingress again, with a header in place
// of the port metadata.
func (l *tofino) resubmitCall(c *methodCall) value {
	l.whenAsked(c, "resubmit_type", func() {
		if h := l.prefix(c); h != nil {
			l.prim("resubmit_emit", h)
			return
		}
		l.prim("resubmit_emit")
	})
	return nil
}

// prefix puts the header that goes before the packet into a variable: the
// fields are what counts, not whether the argument is valid.
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
	if width := l.widthOf(t); width == 0 {
		l.unsupported(x, "an empty header before a packet")
	}
	v := l.scalarsOf(convert(l.eval(x, c.e), t), t)
	h, ok := l.prefixes[c.inst]
	if !ok || h.typ != t {
		h = l.newHeader(l.unique(c.inst.name), t, true)
		l.prefixes[c.inst] = h
	}
	l.assignHeader(h, &literal{typ: t, fields: v})
	return h
}

// digestCall sends a message, named after the object.
func (l *tofino) digestCall(c *methodCall) value {
	l.whenAsked(c, "digest_type", func() {
		arg := c.arg("data")
		id := l.learnList(c.inst.name, l.eval(arg, c.e), c.x, arg)
		l.prim("generate_digest", intEx(0, code32), id)
	})
	return nil
}
