package lower

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// lowerPipeline lowers the ingress or egress control to a pipeline.
func (l *lowerer) lowerPipeline(name string, inst *instance, args ...value) {
	l.pipeline = &bmv2.Pipeline{
		Name: name, ID: l.nextID("pipelines"), SourceInfo: l.controlSource(inst),
		Tables: []*bmv2.Table{}, ActionProfiles: []*bmv2.ActionProfile{}, Conditionals: []*bmv2.Conditional{},
	}
	l.cfg.Pipelines = append(l.cfg.Pipelines, l.pipeline)
	c := l.inCode(func() { l.applyBlock(inst, args...) })
	list := l.prune(l.mergeSites(l.prune(c.list)))
	g := &graph{l: l, list: list, at: map[int]string{}, pos: positions(list), tables: map[*table]bool{}, next: map[int]int{}}
	l.pipeline.InitTable = g.node(0)
}

func (l *lowerer) controlSource(inst *instance) *bmv2.SourceInfo {
	if c, ok := inst.typ.(*types.Control); ok {
		return l.source(c.Decl)
	}
	return nil
}

// applyBlock lowers a block of the architecture with its arguments.
func (l *lowerer) applyBlock(inst *instance, args ...value) {
	c, ok := inst.typ.(*types.Control)
	if !ok || len(c.Decl.Params) != len(args) {
		l.unsupported(inst.at, "a control with these parameters as a block of %s", l.arch.traits().pkg)
	}
	e := inst.env.child()
	for i, p := range c.Decl.Params {
		e.bind(l.info.Defs[p], args[i])
	}
	l.controlBody(inst, c, e)
}

// controlBody lowers the declarations and the apply block.
func (l *lowerer) controlBody(inst *instance, c *types.Control, e *env) {
	e.ret = &label{}
	inst.active = e
	l.instanceLocals(inst, c.Decl.Locals)
	for _, d := range c.Decl.Locals {
		if _, isInst := d.(*syntax.InstDecl); !isInst {
			l.at = d
			l.localDecl(d, e)
		}
	}
	l.enter(c.Decl, func() { l.stmt(c.Decl.Body, e) })
	l.emitLabel(e.ret)
}

// instanceLocals creates the instances of a body, once for all its applications.
func (l *lowerer) instanceLocals(inst *instance, locals []syntax.Decl) {
	if inst.ready {
		return
	}
	inst.ready = true
	for _, d := range locals {
		if i, ok := d.(*syntax.InstDecl); ok {
			l.localDecl(i, inst.env)
		}
	}
}

// A graph cuts code into nodes: the program's tables, conditionals, and a hidden
// table for each run of primitives.
type graph struct {
	l      *lowerer
	list   []*instr
	at     map[int]string // position → name of the node that starts there
	pos    map[*label]int
	tables map[*table]bool
	next   map[int]int // position of labels and jumps → the node to which they lead
}

// node emits the node at position i and returns its name, or "" at the end.
func (g *graph) node(i int) string {
	var passed []int
	for i < len(g.list) && (g.list[i].kind == iLabel || g.list[i].kind == iJump) {
		if to, ok := g.next[i]; ok {
			i = to
			break
		}
		passed = append(passed, i)
		if g.list[i].kind == iJump {
			i = g.pos[g.list[i].label]
			continue
		}
		i++
	}
	for _, p := range passed {
		g.next[p] = i
	}
	if i >= len(g.list) || g.list[i].kind == iExit {
		return ""
	}
	if name, ok := g.at[i]; ok {
		return name
	}
	in := g.list[i]
	switch in.kind {
	case iBranch:
		l := g.l
		c := &bmv2.Conditional{
			Name: fmt.Sprintf("node_%d", l.nextID("nodes")+2), ID: l.nextID("conditionals"),
			SourceInfo: l.source(in.at), Expression: condition(in.cond),
		}
		g.at[i] = c.Name
		l.pipeline.Conditionals = append(l.pipeline.Conditionals, c)
		c.TrueNext = g.node(i + 1)
		c.FalseNext = g.label(in.label, 0)
		return c.Name
	case iApply:
		return g.apply(i, in)
	case iPrim:
		return g.action(i)
	}
	g.l.unsupported(in.at, "this statement in a control")
	return ""
}

func (g *graph) label(lb *label, otherwise int) string {
	if lb == nil {
		return g.node(otherwise)
	}
	return g.node(g.pos[lb])
}

// action collects the primitives from i on in one action of a hidden table.
func (g *graph) action(i int) string {
	l := g.l
	end := i
	for end < len(g.list) && g.list[end].kind == iPrim {
		end++
	}
	name := l.unique(hiddenName(g.list[i].at))
	a := &bmv2.Action{Name: name, ID: l.nextID("actions"), RuntimeData: []bmv2.RuntimeParam{}}
	for _, in := range g.list[i:end] {
		a.Primitives = append(a.Primitives, l.primitive(in))
	}
	l.cfg.Actions = append(l.cfg.Actions, a)
	t := &bmv2.Table{
		Name: "tbl_" + name, ID: l.nextID("tables"), SourceInfo: l.source(g.list[i].at), Key: []*bmv2.TableKey{},
		MatchType: bmv2.MatchExact, Type: bmv2.TableSimple, MaxSize: 1024, ActionIDs: []int{a.ID}, Actions: []string{name},
		DefaultEntry: &bmv2.DefaultEntry{ActionID: a.ID, ActionConst: true, ActionData: []string{}, ActionEntryConst: true},
	}
	g.at[i] = t.Name
	l.pipeline.Tables = append(l.pipeline.Tables, t)
	t.BaseDefaultNext = g.node(end)
	t.NextTables = bmv2.NextTables{{Label: name, Next: t.BaseDefaultNext}}
	return t.Name
}

// hiddenName returns a name for an action, from the file and line of its source.
func hiddenName(at syntax.Node) string {
	if at == nil || !at.Pos().IsKnown() {
		return "act"
	}
	base := path.Base(at.Pos().File())
	base = strings.TrimSuffix(base, path.Ext(base))
	return fmt.Sprintf("%s%d", base, at.Pos().Line())
}

// apply emits a table with its successors. If a table is applied twice, sites.go
// has made both applications continue at the same node.
func (g *graph) apply(i int, in *instr) string {
	l, t := g.l, in.table
	g.at[i] = t.name
	if g.tables[t] {
		return t.name
	}
	g.tables[t] = true
	var next bmv2.NextTables
	base := ""
	if in.runs == nil && in.hit != in.miss {
		next = bmv2.NextTables{{Label: bmv2.NextHit, Next: g.label(in.hit, 0)}, {Label: bmv2.NextMiss, Next: g.label(in.miss, 0)}}
	} else {
		base = g.label(in.hit, i+1)
		for _, a := range t.actions {
			next = append(next, bmv2.NextTable{Label: a.name, Next: g.label(in.after(a.name), i+1)})
		}
	}
	t.out.BaseDefaultNext, t.out.NextTables = base, next
	l.pipeline.Tables = append(l.pipeline.Tables, t.out)
	t.reached = true
	l.profile(t)
	return t.name
}

// profile emits the table's action profile, once for each pipeline.
func (l *lowerer) profile(t *table) {
	if t.impl == nil || l.profiles[t.impl.profile()] != nil {
		return
	}
	inst := t.impl.profile()
	p := &bmv2.ActionProfile{Name: inst.name, ID: l.nextID("action_profiles"), SourceInfo: l.source(inst.at)}
	size := 0
	if t.impl.selects() {
		p.Selector = &bmv2.Selector{Algo: l.arch.selectorAlgorithm(t.impl), Input: []*bmv2.Expr{}}
		for _, x := range t.impl.inputs {
			p.Selector.Input = append(p.Selector.Input, data(x, false))
		}
		size = sizeOf[inst.extern().Name]
		if t.impl.extern().Name == "ActionSelector" {
			// An ActionSelector's last two arguments are the size of a group and
			// the number of groups.
			p.Selector.MaxGroupSize, p.Selector.Scramble = 0, scrambles(t)
			if x, ok := t.impl.arg(len(t.impl.args) - 2).(*ex); ok && x.isConst() {
				p.Selector.MaxGroupSize = int(x.v.Int64())
			}
		}
	}
	if v, ok := inst.args[size].(*ex); ok && v.isConst() {
		p.MaxSize = int(v.v.Int64())
	}
	l.profiles[inst] = p
	l.pipeline.ActionProfiles = append(l.pipeline.ActionProfiles, p)
}

// scrambles reports whether a table asks for a non-linear selector hash:
// @selector_enable_scramble(1).
func scrambles(t *table) bool {
	an := t.decl.Annotations.Get("selector_enable_scramble")
	if an == nil || len(an.Exprs) != 1 {
		return false
	}
	lit, ok := syntax.Unparen(an.Exprs[0]).(*syntax.IntLit)
	return ok && lit.Value.Sign() != 0
}

// sizeOf maps an extern to the index of the constructor argument that is its size.
// The default is 0.
var sizeOf = map[string]int{"action_selector": 1}

// BMv2 has one node for each table, which can have only one successor. If a table
// is applied in several places that continue differently, each place stores its
// number in a variable. The code after the table branches on that number.

// mergeSites rewrites the code so that each table is applied only once.
func (l *lowerer) mergeSites(list []*instr) []*instr {
	sites := map[*table][]int{}
	var order []*table
	for i, in := range list {
		if in.kind == iApply {
			if sites[in.table] == nil {
				order = append(order, in.table)
			}
			sites[in.table] = append(sites[in.table], i)
		}
	}
	same := continuations(list)
	for _, t := range order {
		if len(sites[t]) > 1 && !same(t, sites[t]) {
			list = l.mergeTable(t, list)
		}
	}
	return list
}

// positions returns the index of each label in the code.
func positions(list []*instr) map[*label]int {
	pos := map[*label]int{}
	for i, in := range list {
		if in.kind == iLabel {
			pos[in.label] = i
		}
	}
	return pos
}

// continuations returns a function that reports whether all applications of a table
// continue at the same instructions for each outcome.
func continuations(list []*instr) func(t *table, sites []int) bool {
	pos := positions(list)
	land := func(i int) int {
		for hops := 0; i < len(list) && hops <= len(list); hops++ {
			switch list[i].kind {
			case iLabel:
				i++
			case iJump:
				i = pos[list[i].label]
			case iExit:
				return len(list)
			default:
				return i
			}
		}
		return i
	}
	next := func(lb *label, i int) int {
		if lb == nil {
			return land(i + 1)
		}
		return land(pos[lb])
	}
	return func(t *table, sites []int) bool {
		first := list[sites[0]]
		for _, i := range sites[1:] {
			in := list[i]
			if next(in.hit, i) != next(first.hit, sites[0]) || next(in.miss, i) != next(first.miss, sites[0]) {
				return false
			}
			for _, a := range t.actions {
				if next(in.after(a.name), i) != next(first.after(a.name), sites[0]) {
					return false
				}
			}
		}
		return true
	}
}

// after returns the label for an action's outcome, or the label of a hit if the
// action has none.
func (i *instr) after(action string) *label {
	if lb := i.runs[action]; lb != nil {
		return lb
	}
	return i.hit
}

// mergeTable replaces the applications of t by one at the end of the code.
func (l *lowerer) mergeTable(t *table, list []*instr) []*instr {
	l.spend(len(list))
	width := 8
	if len(t.applies) > 1<<width {
		width = 32
	}
	which := l.scalars.add(l.unique(t.name+".site"), scalar{width: width}, true)
	entry := &label{used: true}
	var applies []*instr
	var after []*label
	c := l.inCode(func() {
		for _, in := range list {
			if in.kind != iApply || in.table != t {
				l.code.list = append(l.code.list, in)
				continue
			}
			l.at = in.at
			next := &label{used: true}
			l.set(which, intEx(int64(len(applies)), which.st))
			l.jump(entry)
			l.emitLabel(next)
			applies, after = append(applies, in), append(after, next)
		}
		end := &label{used: true}
		l.jump(end)
		l.emitLabel(entry)
		l.dispatch(t, which, applies, after)
		l.emitLabel(end)
	})
	return c.list
}

// dispatch applies t once, then continues where the recorded application would.
func (l *lowerer) dispatch(t *table, which *field, applies []*instr, after []*label) {
	l.at = applies[0].at
	one := &instr{kind: iApply, table: t, at: applies[0].at}
	to := func(pick func(i int) *label) *label {
		lb := &label{used: true}
		l.emitLabel(lb)
		for i := range applies {
			next := pick(i)
			if next == nil {
				next = after[i]
			}
			if i == len(applies)-1 {
				l.jump(next)
				break
			}
			skip := &label{}
			l.branch(equal(fieldEx(which), intEx(int64(i), which.st)), skip)
			l.jump(next)
			l.emitLabel(skip)
		}
		return lb
	}
	actions, outcomes := labelsOf(applies, l)
	l.code.list = append(l.code.list, one)
	one.hit = to(func(i int) *label { return applies[i].hit })
	if outcomes {
		one.miss = to(func(i int) *label { return applies[i].miss })
		return
	}
	one.miss = one.hit
	for _, a := range actions {
		if one.runs == nil {
			one.runs = map[string]*label{}
		}
		one.runs[a] = to(func(i int) *label { return applies[i].after(a) })
	}
}

// labelsOf returns the actions that have labels in the applications, and reports
// whether any application distinguishes hit and miss.
func labelsOf(applies []*instr, l *lowerer) (actions []string, outcomes bool) {
	seen := map[string]bool{}
	for _, in := range applies {
		outcomes = outcomes || in.runs == nil && in.hit != in.miss
		for a := range in.runs {
			if !seen[a] {
				seen[a] = true
				actions = append(actions, a)
			}
		}
	}
	if outcomes && len(actions) > 0 {
		l.unsupported(applies[len(applies)-1].at, "applying one table for hit or miss here and for its action elsewhere")
	}
	sort.Strings(actions)
	return actions, outcomes
}
