package lower

import (
	"math/big"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// Packets pass through the switch one at a time. So a RegisterAction, which the
// hardware executes in one step, may take three steps here: read the cell, run the
// body of apply on a variable, and write the cell.

// registerCall lowers the methods of registers.
func (l *tofino) registerCall(c *methodCall) value {
	t := c.inst.extern().Args[0]
	switch c.method {
	case "read":
		if c.inst.extern().Name == "RegisterParam" {
			return l.readCell(c.inst, intEx(0, code32), t)
		}
		return l.readCell(c.inst, l.slot(c, c.inst), t)
	case "write":
		index := l.slot(c, c.inst)
		m := l.mark()
		v := l.eval(c.arg("value"), c.e)
		l.writeCell(c.inst, l.stable(index, m), v, t)
		return v
	case "clear":
		l.prim("register_fill", bmv2.Ref(bmv2.TypeRegisterArray, c.inst.name), l.joined(l.scalarsOf(convert(l.eval(c.arg("value"), c.e), t), t)))
		return nil
	}
	l.unsupported(c.x, "the method %s of %s", c.method, c.inst.extern().Name)
	return nil
}

// execute runs the method apply of a RegisterAction on a cell.
func (l *tofino) execute(c *methodCall) value {
	reg, apply := l.registerAction(c)
	body := l.methodEnv(c)
	params := l.paramObjects(apply.Params)
	var results []value
	index := l.slot(c, reg)
	m := l.mark()
	out := l.outArgs(c)
	index = l.stable(index, m)
	l.onCell(c, apply, body, reg, index, func() { results = l.results(apply.Body, params[1:], body) })
	return l.handOut(c, out, results)
}

// onCell lowers a method's body on the cell at index. After the code that reads the
// cell, it calls bind, which creates the places of the results.
func (l *tofino) onCell(c *methodCall, f *syntax.FuncDecl, body *env, reg *instance, index *ex, bind func()) {
	params := l.paramObjects(f.Params)
	t := body.subst(params[0].Type)
	have, cells := l.widthOf(body.subst(reg.extern().Args[0])), 1
	if w := l.widthOf(t); strings.HasPrefix(c.inst.extern().Name, "MinMaxAction") && w > have && w%have == 0 {
		cells = w / have
	} else if w != have && !l.narrower(t, reg) {
		l.unsupported(f, "a RegisterAction for %s on a register of %s: want the same type, or a narrower bit or int type", t, reg.extern().Args[0])
	}
	held, _ := l.declareVar(params[0], body)
	start := l.mark()
	use := l.cellUse(f.Body, params[0])
	use.written = use.written || l.postmods(f.Body)
	switch {
	case cells > 1:
		var parts []*ex
		for k := cells - 1; k >= 0; k-- {
			f := l.temp(scalar{width: l.widthOf(reg.extern().Args[0])})
			l.prim("register_read", f, bmv2.Ref(bmv2.TypeRegisterArray, reg.name), cellAt(index, cells, k))
			parts = append(parts, fieldEx(f))
		}
		l.assign(held, l.joined(parts))
	case use.read:
		// Use the cell directly instead of a variable if possible.
		m := l.mark()
		cell := l.readCellAs(reg, index, t)
		if !l.intoDestination(held, cell, m) {
			l.assign(held, cell)
		} else if f, ok := cell.(*field); ok {
			f.dropped = true
		}
	}
	bind()
	l.enter(c.x, func() { l.stmts(f.Body.Stmts, body) })
	l.emitLabel(body.ret)
	if use.written {
		index = l.stable(index, start)
	}
	switch {
	case !use.written:
	case cells > 1:
		width := l.widthOf(reg.extern().Args[0])
		for k := range cells {
			part := slice(l.toEx(held, reg.at), (k+1)*width-1, k*width)
			l.prim("register_write", bmv2.Ref(bmv2.TypeRegisterArray, reg.name), cellAt(index, cells, k), part)
		}
	case l.narrower(t, reg):
		// The stateful ALU works at the width of the register and zero-extends a
		// narrower operand.
		cell, _ := scalarOf(reg.extern().Args[0])
		l.writeCell(reg, index, cast(cast(l.toEx(held, reg.at), scalar{width: l.widthOf(t)}), cell), reg.extern().Args[0])
	default:
		l.writeCell(reg, index, held, t)
	}
}

// narrower reports whether t has fewer bits than the cells of reg; both are
// numbers.
func (l *tofino) narrower(t types.Type, reg *instance) bool {
	cell, ok1 := scalarOf(reg.extern().Args[0])
	st, ok2 := scalarOf(t)
	return ok1 && ok2 && st.width < cell.width
}

// readCellAs reads a cell as a value of type t. If t is narrower, it returns the
// low bits.
func (l *tofino) readCellAs(reg *instance, index *ex, t types.Type) value {
	if !l.narrower(t, reg) {
		return l.readCell(reg, index, t)
	}
	st, _ := scalarOf(t)
	return cast(cast(l.toEx(l.readCell(reg, index, reg.extern().Args[0]), l.at), scalar{width: st.width}), st)
}

// cellAt returns the index of the k-th of n cells that one action of the stateful
// ALU accesses; the last cell has the highest bits.
func cellAt(index *ex, n, k int) *ex {
	first := binary(syntax.Mul, cast(index, code32), intEx(int64(n), code32), code32)
	return binary(syntax.Add, first, intEx(int64(k), code32), code32)
}

// registerAction returns the register of a RegisterAction and its method apply.
func (l *tofino) registerAction(c *methodCall) (reg *instance, apply *syntax.FuncDecl) {
	reg, ok := c.inst.arg(0).(*instance)
	apply = c.inst.implementation("apply")
	if !ok || apply == nil {
		l.unsupported(c.x, "this call of execute")
	}
	return reg, apply
}

// implementation returns the method called name in the instance's body.
func (i *instance) implementation(name string) *syntax.FuncDecl {
	if i.decl == nil {
		return nil
	}
	for _, d := range i.decl.Body {
		if f, ok := d.(*syntax.FuncDecl); ok && f.Name.Value == name && f.Body != nil {
			return f
		}
	}
	return nil
}

// methodEnv returns the environment of a method in an instance's body: the
// environment in which its control was last applied.
func (l *tofino) methodEnv(c *methodCall) *env {
	scope := c.inst.outer
	if owner := scope.inst; owner != nil && owner.active != nil {
		scope = owner.active
	}
	body := scope.child()
	body.inst, body.ret, body.loops = c.inst, &label{}, c.e.loops
	body.result, body.brk, body.cont = nil, nil, nil
	return body
}

// results creates variables for the results of execute. A result that apply does
// not assign is 0.
func (l *tofino) results(apply *syntax.BlockStmt, params []*types.Object, body *env) []value {
	var list []value
	for _, p := range params {
		v := l.alloc("tmp", body.subst(p.Type), true)
		if f, ok := v.(*field); ok {
			f.result = true
		}
		if !l.alwaysAssigns(apply, p) {
			l.assign(v, l.defaultOf(body.subst(p.Type)))
		}
		body.bind(p, v)
		list = append(list, v)
	}
	return list
}

// outArgs evaluates the places of the arguments for the second result and those
// after it, before the body runs. A place is nil if the call omits the argument.
func (l *tofino) outArgs(c *methodCall) []value {
	var places []value
	for _, name := range []string{"rv2", "rv3", "rv4"} {
		var p value
		if x := c.arg(name); x != nil {
			p = l.lvalue(x, c.e)
		}
		places = append(places, p)
	}
	return places
}

// handOut assigns all results but the first to the places in out, and returns the
// first.
func (l *tofino) handOut(c *methodCall, out, results []value) value {
	m := l.mark()
	for k, p := range out {
		if p != nil && k+1 < len(results) {
			l.assign(p, results[k+1])
		}
	}
	t := c.e.subst(c.call.Result)
	switch {
	case t == nil || t == types.Void:
		return nil
	case len(results) == 0:
		return l.defaultOf(t)
	}
	return l.stableValue(results[0], m)
}

// A cellUse describes how a method uses the cell.
type cellUse struct{ read, written bool }

// cellUse finds out whether the body reads o, the cell, before writing it, and
// whether it writes o.
func (l *tofino) cellUse(body *syntax.BlockStmt, o *types.Object) cellUse {
	use := cellUse{read: true, written: l.assigned(body)[o]}
	if len(body.Stmts) == 0 {
		return use
	}
	first, ok := body.Stmts[0].(*syntax.AssignStmt)
	if !ok || first.Op != syntax.NoOp || l.mentionsObject(first.RHS, o) {
		return use
	}
	if n, ok := syntax.Unparen(first.LHS).(*syntax.Name); ok && l.info.Uses[n] == o {
		use.read = false
	}
	return use
}

func (l *tofino) mentionsObject(x syntax.Node, o *types.Object) bool {
	for name := range syntax.Each[*syntax.Name](x) {
		if l.info.Uses[name] == o {
			return true
		}
	}
	return false
}

// mayReturn reports whether some path through s leaves the method.
func mayReturn(s syntax.Stmt) bool {
	for range syntax.Each[*syntax.ReturnStmt](s) {
		return true
	}
	return false
}

// alwaysAssigns reports whether every path through s assigns all of o.
func (l *tofino) alwaysAssigns(s syntax.Stmt, o *types.Object) bool {
	switch s := s.(type) {
	case *syntax.BlockStmt:
		for _, s := range s.Stmts {
			if l.alwaysAssigns(s, o) {
				return true
			}
			if mayReturn(s) {
				return false
			}
		}
	case *syntax.AssignStmt:
		n, ok := syntax.Unparen(s.LHS).(*syntax.Name)
		return ok && s.Op == syntax.NoOp && l.info.Uses[n] == o
	case *syntax.IfStmt:
		return s.Else != nil && l.alwaysAssigns(s.Then, o) && l.alwaysAssigns(s.Else, o)
	}
	return false
}

// The body of a RegisterAction calls these functions of the stateful ALU as
// this.NAME(...).

// predicateCall returns a number with a single 1 bit. The conditions form the index
// of that bit, the first condition in the lowest position.
func (l *tofino) predicateCall(c *methodCall) value {
	st := l.resultShape(c)
	var conds []*ex
	for k := range c.call.Type.Params {
		when := boolEx(false)
		if k < len(c.call.Args) && c.call.Args[k] != nil {
			when = l.settled(l.scalar(c.call.Args[k], c.e))
		}
		conds = append(conds, when)
	}
	var bit func(k int, place uint) *ex
	bit = func(k int, place uint) *ex {
		if k == len(conds) {
			return cast(constEx(new(big.Int).Lsh(big.NewInt(1), place), code32), st)
		}
		return cond(conds[k], bit(k+1, place+1<<k), bit(k+1, place))
	}
	return bit(0, 0)
}

// reduceCall returns the least or greatest of a value's bytes (or halves) that the
// mask selects, and its index; of several equal ones, the highest index. The result
// is 0 if the mask selects none. A MinMaxAction may then add to that element.
func (l *tofino) reduceCall(c *methodCall) value {
	width := 8
	if strings.HasSuffix(c.method, "16") {
		width = 16
	}
	if _, ok := types.Underlying(c.e.typeOf(c.arg("val"))).(*types.Bits); !ok {
		l.unsupported(c.arg("val"), "%s of %s", c.method, c.e.typeOf(c.arg("val")))
	}
	val := l.settled(l.scalar(c.arg("val"), c.e))
	mask := l.settled(l.scalar(c.arg("mask"), c.e))
	var indexTo value
	if x := c.arg("index"); x != nil {
		indexTo = l.lvalue(x, c.e)
	}
	u, at := scalar{width: width}, scalar{width: 4}
	best, index, found := l.temp(u), l.temp(at), l.temp(scalar{width: 1})
	for _, f := range []*field{best, index, found} {
		l.set(f, intEx(0, f.st))
	}
	op := syntax.Leq
	if strings.HasPrefix(c.method, "max") {
		op = syntax.Geq
	}
	one, take := intEx(1, found.st), l.temp(boolean)
	for i := range val.st.width / width {
		element := slice(val, (i+1)*width-1, i*width)
		better := binary(op, element, fieldEx(best), boolean)
		l.set(take, andAlso(equal(slice(mask, i, i), one), cond(equal(fieldEx(found), one), better, boolEx(true))))
		l.set(best, cond(fieldEx(take), element, fieldEx(best)))
		l.set(index, cond(fieldEx(take), intEx(int64(i), at), fieldEx(index)))
		l.set(found, cond(fieldEx(take), one, fieldEx(found)))
	}
	if x := c.arg("index"); x != nil {
		l.assign(indexTo, cast(fieldEx(index), l.shape(x, c.e)))
	}
	if x := c.arg("postmod"); x != nil {
		l.postmod(c, best, index, found, x)
	}
	return fieldEx(best)
}

// postmod adds x to the selected element of the cell. The sum saturates at 0 and at
// all ones.
func (l *tofino) postmod(c *methodCall, best, index, found *field, x syntax.Expr) {
	cell, ok := l.lvalue(c.arg("val"), c.e).(*field)
	if !ok {
		l.unsupported(x, "a postmod on a value that is not the cell")
	}
	width := best.st.width
	wide := scalar{width: width + 2, signed: true}
	sum := l.settled(binary(syntax.Add, cast(cast(fieldEx(best), scalar{width: wide.width}), wide), cast(l.scalar(x, c.e), wide), wide))
	low, high := intEx(0, wide), constEx(maskOf(width), wide)
	changed := cast(cast(cond(binary(syntax.Lss, sum, low, boolean), low, cond(binary(syntax.Gtr, sum, high, boolean), high, sum)), scalar{width: wide.width}), best.st)
	changed = l.settled(changed)
	for i := range cell.st.width / width {
		here := andAlso(equal(fieldEx(found), intEx(1, found.st)), equal(fieldEx(index), intEx(int64(i), index.st)))
		rest := new(big.Int).Xor(maskOf(cell.st.width), new(big.Int).Lsh(maskOf(width), uint(i*width)))
		put := binary(syntax.Shl, cast(changed, cell.st), intEx(int64(i*width), code32), cell.st)
		put = binary(syntax.Or, binary(syntax.And, fieldEx(cell), constEx(rest, cell.st), cell.st), put, cell.st)
		l.set(cell, cond(here, put, fieldEx(cell)))
	}
}

// postmods reports whether a reduction in the body also changes the cell.
func (l *tofino) postmods(body *syntax.BlockStmt) bool {
	for x := range syntax.Each[*syntax.CallExpr](body) {
		c := &methodCall{call: l.info.Calls[x]}
		if c.call != nil && c.call.Type != nil && c.arg("postmod") != nil {
			return true
		}
	}
	return false
}
