package lower

import (
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// counterDepth is the number of values in a parser counter of Tofino 2: the active
// one and the values below it.
const counterDepth = 4

// parserCounterCall lowers a method of a parser counter, a variable of eight bits.
// If the program pushes it, the counter is a stack of variables. A change of the
// top value also changes the values below it, down to the first that was pushed
// without update_with_top.
func (l *tofino) parserCounterCall(c *methodCall) value {
	n := l.state(c.inst, c.inst.name, scalar{width: 8})
	u8 := n.st
	switch c.method {
	case "set":
		l.set(n, l.parserCounterValue(c, u8))
		return nil
	case "increment", "decrement":
		op := syntax.Add
		if c.method == "decrement" {
			op = syntax.Sub
		}
		by := cast(l.scalar(c.arg("value"), c.e), u8)
		l.set(n, binary(op, fieldEx(n), by, u8))
		follows := boolEx(true)
		for _, under := range l.covered(c.inst) {
			follows = andAlso(follows, equal(fieldEx(under.follows), intEx(1, under.follows.st)))
			l.set(under.value, cond(follows, binary(op, fieldEx(under.value), by, u8), fieldEx(under.value)))
		}
		return nil
	case "push":
		v := l.settled(l.parserCounterValue(c, u8))
		update := boolEx(false)
		if x := c.arg("update_with_top"); x != nil {
			update = l.scalar(x, c.e)
		}
		list := l.covered(c.inst)
		for k := len(list) - 1; k > 0; k-- {
			l.set(list[k].value, fieldEx(list[k-1].value))
			l.set(list[k].follows, fieldEx(list[k-1].follows))
		}
		l.set(list[0].value, fieldEx(n))
		l.set(list[0].follows, cond(update, intEx(1, list[0].follows.st), intEx(0, list[0].follows.st)))
		l.set(n, v)
		return nil
	case "pop":
		list := l.covered(c.inst)
		if len(list) == 0 {
			l.set(n, intEx(0, u8))
			return nil
		}
		l.set(n, fieldEx(list[0].value))
		for k := range len(list) - 1 {
			l.set(list[k].value, fieldEx(list[k+1].value))
			l.set(list[k].follows, fieldEx(list[k+1].follows))
		}
		return nil
	case "is_zero":
		return equal(fieldEx(n), intEx(0, u8))
	case "is_negative":
		return equal(slice(fieldEx(n), 7, 7), intEx(1, scalar{width: 1}))
	}
	l.unsupported(c.x, "the method %s of ParserCounter", c.method)
	return nil
}

// covered returns the values below a counter's top, or none if the program never
// pushes it.
func (l *tofino) covered(inst *instance) []coveredCounter {
	if list, ok := l.counters[inst]; ok {
		return list
	}
	var list []coveredCounter
	for _, call := range l.info.Calls {
		n, ok := call.Recv.(*syntax.Name)
		if ok && call.Method != nil && call.Method.Name == "push" && l.info.Uses[n] != nil && l.info.Uses[n].Decl == inst.decl {
			for range counterDepth - 1 {
				list = append(list, coveredCounter{
					value:   l.scalars.add(l.unique(inst.name+".under"), scalar{width: 8}, false),
					follows: l.scalars.add(l.unique(inst.name+".follows"), scalar{width: 1}, false),
				})
			}
			break
		}
	}
	l.counters[inst] = list
	return list
}

// parserCounterValue returns the argument of set and push: a value, or an
// expression on a field.
func (l *tofino) parserCounterValue(c *methodCall, u8 scalar) *ex {
	if c.arg("field") == nil {
		return cast(l.scalar(c.arg("value"), c.e), u8)
	}
	return l.parserCounterField(c, u8)
}

// byteWith returns the byte that contains the argument if it is a header field. For
// other values, it returns the last byte.
func (l *tofino) byteWith(c *methodCall, u8 scalar) *ex {
	if f, ok := l.eval(c.arg("field"), c.e).(*field); ok && f.st.width < 8 {
		if parts := l.fieldsOfByte(f); parts != nil {
			return cast(l.joined(parts), u8)
		}
	}
	return cast(l.scalar(c.arg("field"), c.e), u8)
}

// fieldsOfByte lists the parts of the byte that contains the header field f, or nil
// if no single byte contains it.
func (l *tofino) fieldsOfByte(f *field) []*ex {
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

// parserCounterField returns the value that set computes from the byte of a field:
// (the byte, rotated right, & mask) + a constant. Tofino 1 specifies the mask by
// its highest bit. The largest value that the program allows is not checked.
func (l *tofino) parserCounterField(c *methodCall, u8 scalar) *ex {
	v := l.byteWith(c, u8)
	number := func(name string) int64 {
		x := l.scalar(c.arg(name), c.e)
		if !x.isConst() {
			l.unsupported(c.arg(name), "a parser counter with a %s that is not a constant", name)
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

// On Tofino 2, a register may be a queue or a stack. The document has an extra
// register of two cells for it: the index of the first element and the number of
// elements.

// queueCall lowers enqueue, dequeue, push and pop. They run apply on the next cell,
// or overflow or underflow if there is none.
func (l *tofino) queueCall(c *methodCall) value {
	reg, apply := l.registerAction(c)
	takes := c.method == "dequeue" || c.method == "pop"
	name := "overflow"
	if takes {
		name = "underflow"
	}
	atEdge := c.inst.implementation(name)
	params := l.paramObjects(apply.Params)[1:]
	var edge []*types.Object
	if atEdge != nil {
		edge = l.paramObjects(atEdge.Params)
	}
	env := l.methodEnv(c)
	all := params
	if len(edge) > len(params) {
		all = edge[1:]
	}
	var results []value
	for _, p := range all {
		v := l.alloc("tmp", env.subst(p.Type), true)
		l.assign(v, l.defaultOf(env.subst(p.Type)))
		results = append(results, v)
	}
	bind := func(list []*types.Object) func() {
		return func() {
			for k, p := range list {
				env.bind(p, results[k])
			}
		}
	}
	out := l.outArgs(c)
	q := l.queueOf(reg)
	size := intEx(int64(l.constArg(reg, 0)), code32)
	q.read(l)
	there, end := &label{}, &label{}
	bound := size
	if takes {
		bound = intEx(0, code32)
	}
	l.branch(equal(fieldEx(q.count), bound), there)
	if atEdge != nil {
		l.declareVar(edge[0], env)
		bind(edge[1:])()
		l.enter(c.x, func() { l.stmts(atEdge.Body.Stmts, env) })
		l.emitLabel(env.ret)
		env = l.methodEnv(c)
	}
	l.jump(end)
	l.emitLabel(there)
	index := l.settled(q.next(c.method, size))
	l.onCell(c, apply, env, reg, index, bind(params))
	q.change(l, c.method, size)
	l.emitLabel(end)
	return l.handOut(c, out, results)
}

// A queue holds the variables of a queue or stack: the index of its first element
// and the number of elements.
type queue struct {
	array       *bmv2.Expr
	head, count *field
}

func (l *tofino) queueOf(reg *instance) *queue {
	return &queue{array: l.sideRegister(l.queues, reg, ".queue", 2), head: l.temp(code32), count: l.temp(code32)}
}

func (q *queue) read(l *tofino) {
	l.prim("register_read", q.head, q.array, intEx(0, code32))
	l.prim("register_read", q.count, q.array, intEx(1, code32))
}

// next returns the index of the cell that a method reads or writes.
func (q *queue) next(method string, size *ex) *ex {
	switch method {
	case "enqueue":
		at := binary(syntax.Add, fieldEx(q.head), fieldEx(q.count), code32)
		return cond(binary(syntax.Geq, at, size, boolean), binary(syntax.Sub, at, size, code32), at)
	case "dequeue":
		return fieldEx(q.head)
	case "push":
		return fieldEx(q.count)
	}
	return binary(syntax.Sub, fieldEx(q.count), intEx(1, code32), code32)
}

// change updates the number of elements after a method has added or removed one.
func (q *queue) change(l *tofino, method string, size *ex) {
	one := intEx(1, code32)
	op := syntax.Add
	if method == "dequeue" || method == "pop" {
		op = syntax.Sub
	}
	l.prim("register_write", q.array, one, binary(op, fieldEx(q.count), one, code32))
	if method == "dequeue" {
		at := binary(syntax.Add, fieldEx(q.head), one, code32)
		l.prim("register_write", q.array, intEx(0, code32), cond(equal(at, size), intEx(0, code32), at))
	}
}
