package lower

import (
	"cmp"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// applyTable emits the application; the caller sets the labels of the outcome.
func (l *lowerer) applyTable(x *syntax.CallExpr, call *types.Call, e *env) *instr {
	if l.block != ingressBlock && l.block != egressBlock {
		l.unsupported(x, "applying a table outside of the ingress and egress controls")
	}
	t := l.tableOf(call.Callee, e)
	var vals []value
	for _, k := range t.keys {
		if k.temp != nil {
			vals = append(vals, l.evalNext(vals, k.elem.X, e))
		}
	}
	for _, k := range t.keys {
		if k.temp != nil {
			l.set(k.temp, cast(l.toEx(vals[0], k.elem.X), k.st))
			vals = vals[1:]
		}
	}
	i := l.add(&instr{kind: iApply, table: t, at: x})
	t.applies = append(t.applies, i)
	return i
}

// tableOf returns the table o of this control instance, which it creates on first
// use.
func (l *lowerer) tableOf(o *types.Object, e *env) *table {
	d := o.Decl.(*syntax.TableDecl)
	key := tableID{d, e.inst}
	if t := l.tables[key]; t != nil {
		return t
	}
	t := &table{decl: d, obj: o, env: e, name: names.Declared(e.inst.name, d.Annotations, d.Name), block: l.block}
	l.claim("table", t.name, d)
	l.tables[key] = t
	saved := l.at
	l.at = d
	defer func() { l.at = saved }()
	if d.Key != nil {
		inPlace := !slices.ContainsFunc(d.Key.Elems, func(k *syntax.KeyElem) bool { return l.calls(k.X) })
		for _, k := range d.Key.Elems {
			t.keys = append(t.keys, l.declareKey(t, k, inPlace))
		}
	}
	l.emitTable(t)
	return t
}

// emitTable emits the BMv2 table without its successors.
func (l *lowerer) emitTable(t *table) {
	rank := map[string]int{"exact": 0, "selector": 0, "lpm": 1, "ternary": 2, "optional": 2, "range": 3}
	kinds := []string{bmv2.MatchExact, bmv2.MatchLPM, bmv2.MatchTernary, bmv2.MatchRange}
	best, lpm := 0, 0
	for _, k := range t.keys {
		best = max(best, rank[k.kind])
		if k.kind == "lpm" {
			lpm++
		}
	}
	if lpm > 1 {
		l.errorf(t.decl, "table %s has %d lpm keys; BMv2 allows one", t.name, lpm)
	}
	out := &bmv2.Table{
		Name: t.name, ID: l.nextID("tables"), SourceInfo: l.source(t.decl), Key: []*bmv2.TableKey{},
		MatchType: kinds[best], Type: bmv2.TableSimple, MaxSize: l.tableSize(t), ActionIDs: []int{}, Actions: []string{},
	}
	t.out = out
	l.implementation(t)
	for _, k := range t.keys {
		if k.kind == "selector" || k.absent {
			continue
		}
		out.Key = append(out.Key, k.emit())
	}
	l.tableExterns(t)
	if t.decl.Actions != nil {
		for _, r := range t.decl.Actions.Refs {
			if call := l.info.ActionRefs[r]; call != nil {
				l.addAction(t, r, call)
			}
		}
	}
	l.defaultAction(t)
	l.entries(t)
	out.MaxSize = max(out.MaxSize, len(out.Entries)) // p4c increases the size in the same way
}

// tableSize returns the size property. The default is 1024, or the number of
// declared entries if there are more.
func (l *lowerer) tableSize(t *table) int {
	size := 1024
	if t.decl.Entries != nil {
		size = max(size, len(t.decl.Entries.List))
	}
	if p := t.decl.Property("size"); p != nil {
		v := l.scalar(p.Value, t.env)
		if !v.isConst() || !v.v.IsInt64() {
			l.errorf(p, "the size of table %s must be a constant", t.name)
			return size
		}
		size = int(v.v.Int64())
	}
	return max(size, 0)
}

// implementation resolves action profiles and selectors.
func (l *lowerer) implementation(t *table) {
	p := t.decl.Property("implementation")
	if p == nil {
		for _, k := range t.keys {
			if k.kind == "selector" {
				l.report(k.elem, true, "the selector key of table %s has no effect: the table has no action_selector", t.name)
			}
		}
		return
	}
	inst, ok := l.eval(p.Value, t.env).(*instance)
	if ok && inst.extern() != nil && slices.Contains(lookups, inst.extern().Name) {
		return // such a property does not change which packets match
	}
	if !ok || inst.extern() == nil || !slices.Contains(profiles, inst.extern().Name) {
		l.errorf(p, "the implementation of table %s must be an action_profile or action_selector", t.name)
		return
	}
	profile := inst.profile()
	if profile.name == "" {
		profile.name = l.unique("action_profile")
		if name, ok := p.Annotations.Text("name"); ok {
			profile.name = name
		}
	}
	t.impl = inst
	t.out.Type = bmv2.TableIndirect
	if inst.selects() {
		t.out.Type = bmv2.TableIndirectSelect
		l.selectorInputs(t, inst, p)
	}
	t.out.ActionProfile = profile.name
}

// profiles are the externs that store actions for several entries of a table.
var profiles = []string{"action_profile", "action_selector", "ActionProfile", "ActionSelector"}

// lookups are the externs that choose the lookup algorithm of a TNA table.
var lookups = []string{"Alpm", "Atcam"}

// selects reports whether the instance is an action selector.
func (i *instance) selects() bool {
	return i.extern().Name == "action_selector" || i.extern().Name == "ActionSelector"
}

// profile returns the action profile that was passed to a selector, or i itself
// (profileOf does the same for P4Info).
func (i *instance) profile() *instance {
	if len(i.args) > 0 {
		if p, ok := i.args[0].(*instance); ok {
			return p
		}
	}
	return i
}

// selectorInputs sets the fields that a selector hashes. They must be the same for
// all its tables.
func (l *lowerer) selectorInputs(t *table, inst *instance, p *syntax.Property) {
	var inputs []*ex
	for _, k := range t.keys {
		if k.kind != "selector" || k.absent {
			continue
		}
		v := k.value
		if v == nil {
			v = fieldEx(k.temp)
		}
		inputs = append(inputs, v)
	}
	if inst.inputs == nil {
		inst.inputs = inputs
		return
	}
	same := len(inputs) == len(inst.inputs)
	for i := 0; same && i < len(inputs); i++ {
		same = inputs[i].f == inst.inputs[i].f
	}
	if !same {
		l.errorf(p, "tables that share the action selector %s have different selector keys", inst.name)
	}
}

// tableExterns attaches direct counters, direct meters and timeouts.
func (l *lowerer) tableExterns(t *table) {
	if p := t.decl.Property("counters"); p != nil {
		if inst := l.attached(t, p, "direct_counter", "counter", "DirectCounter"); inst != nil {
			t.out.WithCounters = true
		}
	}
	if p := t.decl.Property("meters"); p != nil {
		if inst := l.attached(t, p, "direct_meter", "DirectMeter"); inst != nil {
			t.out.DirectMeters = inst.name
		}
	}
	if p := t.decl.Property("registers"); p != nil {
		l.attached(t, p, "DirectRegister")
	}
	if p := t.decl.Property("filters"); p != nil {
		l.attached(t, p, "DirectLpf", "DirectWred")
	}
	for _, name := range []string{"support_timeout", "supportTimeout", "idle_timeout"} {
		if p := t.decl.Property(name); p != nil {
			t.out.SupportTimeout = l.timeout(p, t)
			return
		}
	}
}

// timeout evaluates the property that makes a table's entries expire: a boolean, or
// T2NA's object IdleTimeout.
func (l *lowerer) timeout(p *syntax.Property, t *table) bool {
	v := l.eval(p.Value, t.env)
	if inst, ok := v.(*instance); ok && inst.extern() != nil && inst.extern().Name == "IdleTimeout" {
		return true
	}
	x := l.toEx(v, p.Value)
	if !x.isConst() || !x.st.bool {
		l.errorf(p, "%s must be true or false", p.Name.Value)
	}
	return x.isTrue()
}

// arrays are the externs of TNA that a table may name without effect, because calls
// select their cells.
var arrays = []string{"Counter", "Meter", "Register", "Lpf", "Wred"}

// attached returns the direct object that a property of the table names.
func (l *lowerer) attached(t *table, p *syntax.Property, kinds ...string) *instance {
	inst, ok := l.eval(p.Value, t.env).(*instance)
	if ok && inst.extern() != nil && slices.Contains(arrays, inst.extern().Name) {
		return nil
	}
	if !ok || inst.extern() == nil || !slices.Contains(kinds, inst.extern().Name) {
		l.errorf(p, "%s of table %s must be an instance of %s", p.Name.Value, t.name, kinds[0])
		return nil
	}
	if inst.table != nil && inst.table != t {
		l.errorf(p, "%s %s is attached to two tables, %s and %s", inst.extern().Name, inst.name, inst.table.name, t.name)
		return nil
	}
	if inst.name == "" {
		inst.name = t.name + "." + p.Name.Value
		if name, ok := p.Annotations.Text("name"); ok {
			inst.name = name
		}
	}
	inst.table = t
	return inst
}

// addAction adds an action of the table's list, with the arguments bound there.
func (l *lowerer) addAction(t *table, r *syntax.ActionRef, call *types.Call) *tableAction {
	a := &tableAction{ref: r, obj: call.Callee}
	l.inTable = t
	a.out = l.action(call.Callee, call, t.env)
	l.inTable = nil
	a.name = a.out.Name
	t.actions = append(t.actions, a)
	if t.byObject == nil {
		t.byObject = map[*types.Object]*tableAction{}
	}
	t.byObject[a.obj] = cmp.Or(t.byObject[a.obj], a)
	t.out.ActionIDs = append(t.out.ActionIDs, a.out.ID)
	t.out.Actions = append(t.out.Actions, a.name)
	return a
}

// find returns the table's entry for the action o.
func (t *table) find(o *types.Object) *tableAction {
	return t.byObject[o]
}

// defaultAction sets default_entry; the default is NoAction.
func (l *lowerer) defaultAction(t *table) {
	p := t.decl.Property("default_action")
	if p == nil {
		l.implicitDefault(t)
		return
	}
	call := l.info.ActionRefs[p.Value]
	if call == nil {
		return
	}
	a := t.find(call.Callee)
	if a == nil {
		return // the checker has reported the error
	}
	if t.impl != nil && !l.arch.traits().defaults {
		l.report(p, true, "BMv2 ignores the default action of table %s, which has an action profile", t.name)
		return
	}
	t.out.DefaultEntry = &bmv2.DefaultEntry{
		ActionID: a.out.ID, ActionConst: p.Const, ActionEntryConst: p.Const,
		ActionData: l.actionData(call, t.env, len(a.out.RuntimeData)),
	}
}

func (l *lowerer) implicitDefault(t *table) {
	o := l.info.Top["NoAction"]
	if o == nil {
		return
	}
	a := t.find(o)
	if a == nil {
		a = l.addAction(t, nil, &types.Call{Kind: types.ActionCall, Callee: o, Type: o.Type.(*types.Func)})
	}
	if t.impl == nil || l.arch.traits().defaults {
		t.out.DefaultEntry = &bmv2.DefaultEntry{ActionID: a.out.ID, ActionData: []string{}}
	}
}
