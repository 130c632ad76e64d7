package lower

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// callApply inlines a parser or control that another one applies.
func (l *lowerer) callApply(x *syntax.CallExpr, call *types.Call, e *env) value {
	inst := l.appliedInstance(x, call, e)
	switch t := inst.typ.(type) {
	case *types.Control:
		bs := l.bindArgs(l.paramObjects(t.Decl.Params), call, e, never)
		// Parts of parameters that differ between applications are copied.
		for i := range bs {
			b := &bs[i]
			own := l.ownPlace(inst, inst.name+"."+b.param.Name, b.value, inst.env.subst(b.param.Type), b.param.Dir)
			if own == b.value {
				continue
			}
			if b.back == nil && b.param.Dir >= syntax.Out {
				b.back = b.value
			}
			b.value = own
		}
		if inst.applied != nil && l.hasTables(t.Decl) {
			l.sameArguments(x, inst, bs)
		}
		inst.applied = bs
		callee := inst.env.child()
		callee.loops, callee.exit = e.loops, l.onExit(bs, e)
		callee.bindAll(bs)
		l.controlBody(inst, t, callee)
		l.copyBack(bs)
	case *types.Parser:
		// The states of a sub-parser are inlined; its accept continues here.
		bs := l.bindArgs(l.paramObjects(t.Decl.Params), call, e, never)
		callee := inst.env.child()
		callee.bindAll(bs)
		done := &label{used: true}
		l.parserBody(inst, t, callee, done)
		l.emitLabel(done)
		l.copyBack(bs)
	default:
		l.unsupported(x, "applying this")
	}
	return nil
}

// appliedInstance returns the instance to which .apply belongs. A type name before
// .apply creates an instance.
func (l *lowerer) appliedInstance(x *syntax.CallExpr, call *types.Call, e *env) *instance {
	if !l.info.Types[syntax.Unparen(call.Recv)].IsType {
		if inst, ok := l.eval(call.Recv, e).(*instance); ok {
			return inst
		}
		l.unsupported(x, "applying %s", syntax.String(call.Recv))
	}
	if inst := l.direct[x]; inst != nil && inst.outer.inst == e.inst {
		return inst
	}
	inst := l.instantiate(nil, &types.Call{Kind: types.Constructor, Result: e.typeOf(call.Recv)}, e, "")
	inst.name, inst.at = e.inst.name+"."+inst.typeLabel(), x
	l.direct[x] = inst
	return inst
}

// sameArguments checks that the parameters of inst denote the same places as in its
// first application. BMv2 has each table only once, with one set of key fields and
// one body for each action. If the places differ, sameArguments records the
// differing parts in l.copied and restarts the lowering, which then copies them.
func (l *lowerer) sameArguments(x *syntax.CallExpr, inst *instance, bs []binding) {
	var parts []string
	for i, b := range bs {
		parts = differing(parts, inst.name+"."+b.param.Name, inst.applied[i].value, b.value)
	}
	if len(parts) == 0 {
		return
	}
	for _, path := range parts {
		if l.copied[path] {
			l.unsupported(x, "applying %s, which has tables, to different instances", inst.name)
		}
		l.copied[path] = true
	}
	panic(bail{})
}

// differing appends to list the parts of path that denote different places in a and
// b.
func differing(list []string, path string, a, b value) []string {
	if a == b {
		return list
	}
	x, ok1 := a.(*aggregate)
	y, ok2 := b.(*aggregate)
	if !ok1 || !ok2 || len(x.elems) != len(y.elems) {
		return append(list, path)
	}
	names, _, _ := components(x.typ)
	if len(names) != len(x.elems) {
		return append(list, path)
	}
	for i := range x.elems {
		list = differing(list, path+"."+names[i], x.elems[i], y.elems[i])
	}
	return list
}

// ownPlace returns the place of the argument v inside inst: v itself, with copies
// for the parts in l.copied.
func (l *lowerer) ownPlace(inst *instance, path string, v value, t types.Type, dir syntax.Direction) value {
	if _, ok := v.(*instance); ok || v == nil {
		return v
	}
	if l.copied[path] {
		p := inst.params[path]
		if p == nil {
			p = l.alloc(path, t, false)
			inst.params[path] = p
		}
		if dir == syntax.Out {
			l.invalidate(p)
		} else {
			l.assign(p, v)
		}
		return p
	}
	a, ok := v.(*aggregate)
	names, parts, isStruct := components(t)
	if !ok || !isStruct || len(parts) != len(a.elems) {
		return v
	}
	whole, same := &aggregate{typ: a.typ}, true
	for i, el := range a.elems {
		own := l.ownPlace(inst, path+"."+names[i], el, parts[i], dir)
		whole.elems = append(whole.elems, own)
		same = same && own == el
	}
	if same {
		return v
	}
	return whole
}

// hasTables reports whether the control or a nested one has tables.
func (l *lowerer) hasTables(c *syntax.ControlDecl) bool {
	for _, d := range c.Locals {
		switch d := d.(type) {
		case *syntax.TableDecl:
			return true
		case *syntax.InstDecl:
			if t, ok := l.info.Insts[d].Result.(*types.Control); ok && l.hasTables(t.Decl) {
				return true
			}
		}
	}
	return false
}

// lowerDeparser lowers a deparser to an order of emits without conditions, and
// primitives that run before them.
func (l *lowerer) lowerDeparser(name string, inst *instance, args ...value) *bmv2.Deparser {
	l.block = deparserBlock
	out := &bmv2.Deparser{Name: name, ID: l.nextID("deparsers"), SourceInfo: l.controlSource(inst), Order: []string{}}
	l.cfg.Deparsers = append(l.cfg.Deparsers, out)
	c := l.inCode(func() { l.applyBlock(inst, args...) })
	rest := l.emits(out, l.prune(c.list))
	for _, i := range rest {
		if i.kind != iPrim && !l.arch.traits().branches {
			l.unsupported(i.at, "conditions and jumps in a deparser on BMv2; emit writes only valid headers anyway")
		}
	}
	out.Primitives = l.primitives(&code{list: rest})
	if len(out.Primitives) == 0 {
		out.Primitives = nil
	}
	return out
}

// emits moves the emits from the code to the deparser's order.
func (l *lowerer) emits(out *bmv2.Deparser, list []*instr) (rest []*instr) {
	ahead := map[*label]bool{} // jump targets after the current instruction
	for _, i := range list {
		delete(ahead, i.label)
		if i.kind == iPrim && i.prim == emitPrimitive {
			if len(ahead) > 0 {
				l.unsupported(i.at, "emit under a condition; it writes only valid headers anyway")
			}
			out.Order = append(out.Order, i.args[0].(*header).name)
			continue
		}
		for _, t := range i.targets() {
			ahead[t] = true
		}
		rest = append(rest, i)
	}
	return rest
}

// emitPrimitive represents an emit while the deparser is linear code.
const emitPrimitive = "emit"

// emitHeader adds the headers of v to the order.
func (l *lowerer) emitHeader(v value, at syntax.Node) {
	if l.block != deparserBlock {
		l.unsupported(at, "emit outside of the deparser")
	}
	switch v := v.(type) {
	case *header:
		l.prim(emitPrimitive, v)
	case *union, *stack, *aggregate:
		for _, e := range elementsOf(v) {
			l.emitHeader(e, at)
		}
	case *literal:
		h := l.newHeader(l.unique("tmp"), v.typ, true)
		l.assign(h, v)
		l.emitHeader(h, at)
	default:
		l.unsupported(at, "emitting this")
	}
}

// lowerChecksums lowers the verify or update control: calls of the checksum
// functions. A condition around a call becomes the checksum's condition.
func (l *lowerer) lowerChecksums(inst *instance, verify bool, meta value) {
	c, ok := inst.typ.(*types.Control)
	if !ok || len(c.Decl.Params) != 2 {
		l.unsupported(inst.at, "this checksum control; V1Switch wants one with two parameters")
	}
	e := inst.env.child()
	e.bind(l.info.Defs[c.Decl.Params[0]], l.hdrs)
	e.bind(l.info.Defs[c.Decl.Params[1]], meta)
	left := l.inCode(func() {
		l.instanceLocals(inst, c.Decl.Locals)
		for _, d := range c.Decl.Locals {
			if _, isInst := d.(*syntax.InstDecl); !isInst {
				l.localDecl(d, e)
			}
		}
		l.checksumStmts(c.Decl.Body.Stmts, boolEx(true), verify, e)
	})
	for _, i := range left.list {
		if i.kind != iLabel {
			l.unsupported(i.at, "a computation in a checksum control: BMv2 checksums take fields and constants")
		}
	}
}

func (l *lowerer) checksumStmts(list []syntax.Stmt, under *ex, verify bool, e *env) {
	for _, s := range list {
		l.at = s
		switch s := s.(type) {
		case *syntax.EmptyStmt:
		case *syntax.BlockStmt:
			l.checksumStmts(s.Stmts, under, verify, e)
		case *syntax.IfStmt:
			c := l.scalar(s.Cond, e)
			l.checksumStmts([]syntax.Stmt{s.Then}, andAlso(under, c), verify, e)
			if s.Else != nil {
				l.checksumStmts([]syntax.Stmt{s.Else}, andAlso(under, not(c)), verify, e)
			}
		case *syntax.DeclStmt:
			l.localDecl(s.Decl, e)
		case *syntax.CallStmt:
			l.checksumCall(s.Call, under, verify, e)
		default:
			l.unsupported(s, "this statement in a checksum control: only checksum calls are possible")
		}
	}
}

func (l *lowerer) checksumCall(x *syntax.CallExpr, under *ex, verify bool, e *env) {
	call := l.info.Calls[x]
	if call == nil {
		return
	}
	switch call.Kind {
	case types.ApplyCall:
		// A checksum control may apply another one.
		inst := l.appliedInstance(x, call, e)
		t, ok := inst.typ.(*types.Control)
		if !ok {
			l.unsupported(x, "applying this")
		}
		callee := inst.env.child()
		callee.bindAll(l.bindArgs(l.paramObjects(t.Decl.Params), call, e, never))
		l.instanceLocals(inst, t.Decl.Locals)
		l.enter(x, func() { l.checksumStmts(t.Decl.Body.Stmts, under, verify, callee) })
		return
	case types.ActionCall, types.FuncCall:
		l.unsupported(x, "a call of %s in a checksum control: only checksum calls are possible", call.Callee.Name)
	}
	verb, payload := "", false
	if call.Kind == types.ExternCall {
		switch call.Callee.Name {
		case "verify_checksum", "update_checksum":
			verb = call.Callee.Name
		case "verify_checksum_with_payload", "update_checksum_with_payload":
			verb, payload = call.Callee.Name, true
		}
	}
	want := "update_checksum"
	if verify {
		want = "verify_checksum"
	}
	if verb != want && verb != want+"_with_payload" {
		l.unsupported(x, "%s here: this control may only call %s", syntax.String(x.Fun), want)
	}
	l.checksum(x, call, under, verify, payload, e)
}

func (l *lowerer) checksum(x *syntax.CallExpr, call *types.Call, under *ex, verify, payload bool, e *env) {
	cond := andAlso(under, l.scalar(call.Args[0], e))
	input := l.inputs(l.eval(call.Args[1], e), call.Args[1])
	target, ok := l.eval(call.Args[2], e).(*field)
	if !ok {
		l.unsupported(call.Args[2], "a checksum that is not a field")
	}
	algo := l.hashAlgorithm(l.eval(call.Args[3], e), call.Args[3])
	id := l.nextID("checksums")
	update := !verify
	name := "cksum"
	if id > 0 {
		name = fmt.Sprintf("cksum_%d", id)
	}
	l.cfg.Checksums = append(l.cfg.Checksums, &bmv2.Checksum{
		Name: name, ID: id, SourceInfo: l.source(x), Target: bmv2.FieldRef{Header: target.header, Field: target.name}, Type: "generic",
		Calculation: l.calculationName(algo, input, payload), Verify: &verify, Update: &update, IfCond: condition(cond),
	})
}
