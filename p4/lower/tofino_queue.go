package lower

import (
	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// A register of Tofino 2 may be a queue or a stack. In the document a register
// of two cells beside it says where the first element is and how many there are.

// queueCall: enqueue, dequeue, push and pop run apply on the cell that is next,
// and where there is none overflow or underflow.
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
		env.bind(edge[0], l.variable(c.inst, edge[0], env))
		bind(edge[1:])()
		l.enter(c.x, func() { l.stmts(atEdge.Body.Stmts, env) })
		l.place(env.ret)
		env = l.methodEnv(c)
	}
	l.jump(end)
	l.place(there)
	index := l.settled(q.next(c.method, size))
	l.onCell(c, apply, env, reg, index, bind(params))
	q.change(l, c.method, size)
	l.place(end)
	return l.handOut(c, results)
}

// A queue is the variables of a queue or stack: the index of its first element
// and how many it has.
type queue struct {
	array       *bmv2.Expr
	head, count *field
}

func (l *tofino) queueOf(reg *instance) *queue {
	name, ok := l.queues[reg]
	if !ok {
		name = l.unique(reg.name + ".queue")
		l.queues[reg] = name
		l.cfg.RegisterArrays = append(l.cfg.RegisterArrays, &bmv2.RegisterArray{Name: name, ID: l.nextID("register_arrays"), Size: 2, Bitwidth: 32})
	}
	return &queue{array: bmv2.Ref(bmv2.TypeRegisterArray, name), head: l.temp(code32), count: l.temp(code32)}
}

func (q *queue) read(l *tofino) {
	l.prim("register_read", q.head, q.array, intEx(0, code32))
	l.prim("register_read", q.count, q.array, intEx(1, code32))
}

// next is the index of the cell that a method is about.
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

// change counts the element that has come or gone.
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
