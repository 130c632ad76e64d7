package lower

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// action returns the BMv2 action for o with the arguments that call binds in a
// table.
func (l *lowerer) action(o *types.Object, call *types.Call, e *env) *bmv2.Action {
	d := o.Decl.(*syntax.ActionDecl)
	inst := e.inst
	prefix := inst.name
	if o.Parent == nil {
		inst, prefix = nil, ""
	}
	key := actionKey{decl: d, inst: inst, block: l.block}
	if inst == nil {
		key.block = noBlock
	}
	for k, p := range call.Type.Params {
		if p.Dir != syntax.NoDir && k < len(call.Args) && call.Args[k] != nil {
			key.bound += fmt.Sprintf("%s=%s;", p.Name, syntax.String(call.Args[k]))
		}
	}
	if a := l.acts[key]; a != nil {
		return a
	}
	a := &bmv2.Action{Name: names.Declared(prefix, d.Annotations, d.Name), ID: l.nextID("actions"), RuntimeData: []bmv2.RuntimeParam{}}
	l.acts[key] = a
	l.cfg.Actions = append(l.cfg.Actions, a)
	outer := l.inAction
	l.inAction = a
	code := l.inCode(func() { l.actionBody(a, o, d, call, e) })
	l.inAction = outer
	a.Primitives = l.primitives(code)
	return a
}

// actionBody lowers the body of an action. Parameters without direction become
// action data.
func (l *lowerer) actionBody(a *bmv2.Action, o *types.Object, d *syntax.ActionDecl, call *types.Call, e *env) {
	callee := l.actionEnv(o, e)
	callee.ret = &label{}
	saved := l.at
	l.at = d
	defer func() { l.at = saved }()
	mentioned := l.mentions(d)
	visible := func(x syntax.Expr) bool { r := l.rootObject(x); return r == nil || mentioned[r] }
	assigned := l.assigned(d.Body)
	params := l.paramObjects(d.Params)
	for k, p := range params {
		if p.Dir == syntax.NoDir {
			l.runtimeParam(a, p, assigned[p], callee)
			params[k] = nil
		}
	}
	bs := l.bindArgs(params, call, e, visible)
	callee.bindAll(bs)
	callee.exit = l.onExit(bs, e)
	l.stmts(d.Body.Stmts, callee)
	l.emitLabel(callee.ret)
	l.copyBack(bs)
}

// runtimeParam adds one parameter of action data. If the action assigns to the
// parameter, a variable takes its place.
func (l *lowerer) runtimeParam(a *bmv2.Action, p *types.Object, assigned bool, callee *env) {
	if isNothing(callee.subst(p.Type)) {
		callee.bind(p, nothing{})
		return
	}
	st, ok := scalarOf(callee.subst(p.Type))
	if !ok || st.str || st.width == 0 && p.Type == types.Int {
		l.unsupported(p.Decl, "an action parameter of type %s", p.Type)
	}
	name := p.Name
	if prm, ok := p.Decl.(*syntax.Param); ok {
		name = names.Declared("", prm.Annotations, prm.Name)
	}
	data := &ex{op: opParam, n: len(a.RuntimeData), st: st}
	a.RuntimeData = append(a.RuntimeData, bmv2.RuntimeParam{Name: name, Bitwidth: st.width})
	if !assigned {
		callee.bind(p, data)
		return
	}
	v := l.alloc(a.Name+"."+p.Name, callee.subst(p.Type), false)
	l.assign(v, data)
	callee.bind(p, v)
}

// assigned returns the variables and parameters to which body assigns.
func (l *lowerer) assigned(body syntax.Node) map[*types.Object]bool {
	roots := map[*types.Object]bool{}
	syntax.Inspect(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.AssignStmt:
			roots[l.rootObject(n.LHS)] = true
		case *syntax.CallExpr:
			call := l.info.Calls[n]
			if call == nil || call.Type == nil {
				return true
			}
			for k, p := range call.Type.Params {
				if p.Dir >= syntax.Out && k < len(call.Args) && call.Args[k] != nil {
					roots[l.rootObject(call.Args[k])] = true
				}
			}
		}
		return true
	})
	return roots
}

// primitives converts code to an action's list of primitives, with labels as jump
// offsets.
func (l *lowerer) primitives(c *code) []*bmv2.Primitive {
	list := l.prune(c.list)
	offset, n := map[*label]int{}, 0
	for _, i := range list {
		switch i.kind {
		case iLabel:
			offset[i.label] = n
		case iExit:
			n += 2
		default:
			n++
		}
	}
	out := make([]*bmv2.Primitive, 0, n)
	jumpTo := func(op string, at syntax.Node, to int, args ...*bmv2.Expr) {
		out = append(out, &bmv2.Primitive{Op: op, Parameters: append(args, bmv2.HexInt(int64(to), 0)), SourceInfo: l.source(at)})
	}
	for _, i := range list {
		switch i.kind {
		case iPrim:
			out = append(out, l.primitive(i))
		case iJump:
			jumpTo("_jump", i.at, offset[i.label])
		case iBranch:
			jumpTo("_jump_if_zero", i.at, offset[i.label], param(boolData(i.cond, scalar{width: 1})))
		case iExit:
			out = append(out, &bmv2.Primitive{Op: "exit", Parameters: []*bmv2.Expr{}, SourceInfo: l.source(i.at)})
			jumpTo("_jump", i.at, n)
		case iApply, iSelect, iAccept:
			l.unsupported(i.at, "this inside of an action")
		}
	}
	return out
}

// primitive converts an instruction to a primitive of BMv2.
func (l *lowerer) primitive(i *instr) *bmv2.Primitive {
	p := &bmv2.Primitive{Op: i.prim, Parameters: make([]*bmv2.Expr, 0, len(i.args)), SourceInfo: l.source(i.at)}
	for k, a := range i.args {
		if x, ok := a.(*ex); ok && k == 1 && i.prim == "assign" {
			a = exactFor(x, i.args[0])
		}
		p.Parameters = append(p.Parameters, l.arg(a))
	}
	return p
}

// prune removes unused labels, jumps to the next instruction, and unreachable code
// after a jump.
func (l *lowerer) prune(list []*instr) []*instr {
	for {
		l.spend(len(list))
		used := map[*label]int{}
		for _, i := range list {
			for _, t := range i.targets() {
				used[t]++
			}
		}
		var out []*instr
		dead := false
		for k, i := range list {
			if i.kind == iLabel {
				if used[i.label] > 0 {
					dead = false
					out = append(out, i)
				}
				continue
			}
			if dead || i.kind == iJump && leadsTo(list[k+1:], i.label) {
				continue
			}
			out = append(out, i)
			dead = i.kind == iJump || i.kind == iExit || i.kind == iSelect || i.kind == iAccept
		}
		if len(out) == len(list) {
			return out
		}
		list = out
	}
}

// targets lists the labels at which execution may continue after i.
func (i *instr) targets() []*label {
	switch i.kind {
	case iJump, iBranch:
		return []*label{i.label}
	case iApply:
		ls := lists.Filter([]*label{i.hit, i.miss}, func(t *label) bool { return t != nil })
		for _, t := range i.runs {
			ls = append(ls, t)
		}
		return ls
	case iSelect:
		var ls []*label
		for _, c := range i.cases {
			if c.next != nil {
				ls = append(ls, c.next)
			}
		}
		return ls
	}
	return nil
}

// leadsTo reports whether only labels lie between here and target.
func leadsTo(rest []*instr, target *label) bool {
	for _, i := range rest {
		if i.kind != iLabel {
			return false
		}
		if i.label == target {
			return true
		}
	}
	return false
}
