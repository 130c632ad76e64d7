package lower

import (
	"math/big"
	"sort"
	"strings"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
)

// A table is one table of one control instance.
type table struct {
	decl    *syntax.TableDecl
	obj     *types.Object
	env     *env
	name    string
	keys    []*tableKey
	actions []*tableAction
	applies []*instr
	impl    *instance // action profile or selector
	out     *bmv2.Table
	block   block
}

// A tableKey is one element of the key.
type tableKey struct {
	elem   *syntax.KeyElem
	kind   string
	name   string
	typ    types.Type
	st     scalar
	target bmv2.FieldRef
	mask   *big.Int
	temp   *field // set in front of each application, nil where the key is a field
	value  *ex
}

// A tableAction is one action of a table with the arguments bound in its list.
type tableAction struct {
	ref  *syntax.ActionRef
	obj  *types.Object
	out  *bmv2.Action
	name string
}

// actionName is the name of the table's entry for o.
func (t *table) actionName(o *types.Object) string {
	for _, a := range t.actions {
		if a.obj == o {
			return a.name
		}
	}
	return o.Name
}

// applyOutcome evaluates t.apply().hit, .miss as a value.
func (l *lowerer) applyOutcome(x *syntax.CallExpr, call *types.Call, what string, e *env) value {
	if what != "hit" && what != "miss" {
		l.unsupported(x, "%s of a table outside of a switch", what)
	}
	i := l.applyTable(x, call, e)
	t, end := l.temp(boolean), &label{}
	i.hit, i.miss = &label{used: true}, &label{used: true}
	l.place(i.hit)
	l.set(t, boolEx(what == "hit"))
	l.jump(end)
	l.place(i.miss)
	l.set(t, boolEx(what == "miss"))
	l.place(end)
	return fieldEx(t)
}

// applyTable emits the application; the caller sets the labels of the outcome.
func (l *lowerer) applyTable(x *syntax.CallExpr, call *types.Call, e *env) *instr {
	if l.block != ingressBlock && l.block != egressBlock {
		l.unsupported(x, "applying a table outside of the ingress and egress controls")
	}
	t := l.tableOf(call.Callee, e)
	for _, k := range t.keys {
		if k.temp != nil {
			l.set(k.temp, l.keyValue(k, e))
		}
	}
	i := l.add(&instr{kind: iApply, table: t, at: x})
	t.applies = append(t.applies, i)
	return i
}

// tableOf finds or makes the table of this control instance.
func (l *lowerer) tableOf(o *types.Object, e *env) *table {
	d := o.Decl.(*syntax.TableDecl)
	for _, t := range l.tables[d] {
		if t.env.inst == e.inst {
			return t
		}
	}
	t := &table{decl: d, obj: o, env: e, name: controlPlaneName(e.inst.name, d.Annotations, d.Name), block: l.block}
	l.tables[d] = append(l.tables[d], t)
	l.applied = append(l.applied, t)
	saved := l.at
	l.at = d
	defer func() { l.at = saved }()
	if d.Key != nil {
		for _, k := range d.Key.Elems {
			t.keys = append(t.keys, l.declareKey(t, k))
		}
	}
	l.emitTable(t)
	return t
}

// declareKey decides how the key's element reaches BMv2.
func (l *lowerer) declareKey(t *table, k *syntax.KeyElem) *tableKey {
	key := &tableKey{elem: k, kind: k.Match.Value, name: l.keyName(k), typ: t.env.typeOf(k.X)}
	st, ok := scalarOf(key.typ)
	if !ok {
		l.unsupported(k, "a key of type %s", key.typ)
	}
	key.st = st
	switch key.kind {
	case "exact", "lpm", "ternary", "range", "optional", "selector":
	default:
		l.unsupported(k, "the match kind %s", key.kind)
	}
	if !l.directKey(key, t.env) {
		key.temp = l.temp(st)
		key.target = bmv2.FieldRef{Header: key.temp.header, Field: key.temp.name}
	}
	return key
}

// directKey recognises keys that BMv2 can read in place: fields, validity bits
// and fields under a constant mask.
func (l *lowerer) directKey(key *tableKey, e *env) bool {
	x := syntax.Unparen(key.elem.X)
	if c, ok := x.(*syntax.CallExpr); ok {
		call := l.info.Calls[c]
		if call == nil || call.Kind != types.BuiltinCall || call.Builtin != "isValid" {
			return false
		}
		h, ok := l.pure(call.Recv, e).(*header)
		if ok {
			key.target = bmv2.FieldRef{Header: h.name, Field: "$valid$"}
			key.value = &ex{op: opValid, h: h, st: boolean}
		}
		return ok
	}
	if b, ok := x.(*syntax.BinaryExpr); ok && b.Op == syntax.And {
		mask, ok := l.info.Types[syntax.Unparen(b.Y)].Value.(*big.Int)
		f, isField := l.pure(b.X, e).(*field)
		if ok && isField && mask != nil {
			key.target, key.mask = bmv2.FieldRef{Header: f.header, Field: f.name}, wrap(mask, scalar{width: f.st.width})
			key.value = fieldEx(f)
			return true
		}
		return false
	}
	switch x.(type) {
	case *syntax.Name, *syntax.SelectorExpr, *syntax.IndexExpr:
		if f, ok := l.pure(x, e).(*field); ok && !f.st.varbit {
			key.target = bmv2.FieldRef{Header: f.header, Field: f.name}
			key.value = fieldEx(f)
			return true
		}
	}
	return false
}

// pure evaluates x if that needs no code, and gives nil otherwise.
func (l *lowerer) pure(x syntax.Expr, e *env) (v value) {
	code := l.sub(func() { v = l.eval(x, e) })
	if len(code) > 0 {
		return nil
	}
	return v
}

// keyValue computes a key that BMv2 cannot read in place.
func (l *lowerer) keyValue(k *tableKey, e *env) *ex {
	return cast(l.scalar(k.elem.X, e), k.st)
}

// keyName is the control plane's name of a key: its @name, or what it reads as.
func (l *lowerer) keyName(k *syntax.KeyElem) string {
	if a := k.Annotations.Get("name"); a != nil {
		if s, ok := annotationString(a); ok {
			return s
		}
	}
	return l.pathName(k.X)
}

// pathName writes the place x as the control plane sees it, "" where it is none.
func (l *lowerer) pathName(x syntax.Expr) string {
	switch x := x.(type) {
	case *syntax.Name:
		return x.Value
	case *syntax.IntLit:
		return literalName(x)
	case *syntax.SelectorExpr:
		return l.memberName(x)
	case *syntax.IndexExpr:
		if b, i := l.pathName(x.X), l.pathName(x.Index); b != "" && i != "" {
			return b + "[" + i + "]"
		}
	case *syntax.SliceExpr:
		if x.Width != nil {
			return ""
		}
		if b, h, lo := l.pathName(x.X), l.pathName(x.Hi), l.pathName(x.Lo); b != "" && h != "" && lo != "" {
			return b + "[" + h + ":" + lo + "]"
		}
	case *syntax.BinaryExpr:
		if x.Op == syntax.And {
			if a, b := l.pathName(x.X), l.pathName(x.Y); a != "" && b != "" {
				return a + " & " + b
			}
		}
	case *syntax.CallExpr:
		if call := l.info.Calls[x]; call != nil && call.Builtin == "isValid" {
			if b := l.pathName(call.Recv); b != "" {
				return b + ".$valid$"
			}
		}
	}
	return ""
}

// literalName is a number without width, underscores and leading zeros, in the
// base that it is written in.
func literalName(x *syntax.IntLit) string {
	text := strings.ToLower(x.Text)
	for prefix, base := range map[string]int{"0x": 16, "0b": 2, "0o": 8} {
		if strings.HasPrefix(text[strings.IndexAny(text, "ws")+1:], prefix) {
			return prefix + x.Value.Text(base)
		}
	}
	return x.Value.String()
}

func (l *lowerer) memberName(x *syntax.SelectorExpr) string {
	name := x.Sel.Value
	if s, ok := underlying(l.info.Types[syntax.Unparen(x.X)].Type).(*types.Struct); ok {
		if i := fieldIndex(s, name); i >= 0 && s.Fields[i].Decl != nil {
			f := s.Fields[i].Decl
			name = controlPlaneName("", f.Annotations, f.Name)
			if a := f.Annotations.Get("name"); a != nil {
				if v, ok := annotationString(a); ok && v != "" && v[0] == '.' {
					return v[1:]
				}
			}
		}
	}
	if b := l.pathName(x.X); b != "" {
		return b + "." + name
	}
	return ""
}

// property finds one of the table's properties.
func (t *table) property(name string) *syntax.Property {
	for _, p := range t.decl.Props {
		if p.Name.Value == name {
			return p
		}
	}
	return nil
}

// emitTable makes the BMv2 table but for its successors.
func (l *lowerer) emitTable(t *table) {
	out := &bmv2.Table{
		Name: t.name, ID: l.nextID("tables"), SourceInfo: l.source(t.decl), Key: []*bmv2.TableKey{},
		MatchType: l.matchType(t), Type: bmv2.TableSimple, MaxSize: l.tableSize(t), ActionIDs: []int{}, Actions: []string{},
	}
	t.out = out
	l.implementation(t)
	for _, k := range t.keys {
		if k.kind == "selector" {
			continue
		}
		out.Key = append(out.Key, k.emit())
	}
	l.tableExterns(t)
	if t.decl.Actions != nil {
		for _, r := range t.decl.Actions.Refs {
			l.addAction(t, r)
		}
	}
	l.defaultAction(t)
	l.entries(t)
}

func (k *tableKey) emit() *bmv2.TableKey {
	out := &bmv2.TableKey{MatchType: k.kind, Name: k.name, Target: k.target}
	if k.kind == "optional" {
		out.MatchType = bmv2.MatchTernary
	}
	if k.mask != nil {
		out.Mask = bmv2.HexString(k.mask, bytesOf(k.st.width))
	}
	return out
}

func bytesOf(width int) int { return (width + 7) / 8 }

// matchType is the strongest kind among the keys.
func (l *lowerer) matchType(t *table) string {
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
	return kinds[best]
}

// tableSize is the size property, 1024 without one.
func (l *lowerer) tableSize(t *table) int {
	size := 1024
	if p := t.property("size"); p != nil {
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
	p := t.property("implementation")
	if p == nil {
		for _, k := range t.keys {
			if k.kind == "selector" {
				l.report(k.elem, true, "the selector key of table %s has no effect: the table has no action_selector", t.name)
			}
		}
		return
	}
	inst, ok := l.eval(p.Value, t.env).(*instance)
	if !ok || inst.extern() == nil || inst.extern().Name != "action_profile" && inst.extern().Name != "action_selector" {
		l.errorf(p, "the implementation of table %s must be an action_profile or action_selector", t.name)
		return
	}
	if inst.name == "" {
		inst.name = l.unique("action_profile")
		if a := p.Annotations.Get("name"); a != nil {
			inst.name, _ = annotationString(a)
		}
	}
	t.impl = inst
	t.out.Type = bmv2.TableIndirect
	if inst.extern().Name == "action_selector" {
		t.out.Type = bmv2.TableIndirectSelect
		l.selectorInputs(t, inst, p)
	}
	t.out.ActionProfile = inst.name
}

// selectorInputs: all tables of one selector must hash the same fields.
func (l *lowerer) selectorInputs(t *table, inst *instance, p *syntax.Property) {
	var inputs []*ex
	for _, k := range t.keys {
		if k.kind != "selector" {
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
	if p := t.property("counters"); p != nil {
		if inst := l.attached(t, p, "direct_counter", "counter"); inst != nil {
			t.out.WithCounters = true
		}
	}
	if p := t.property("meters"); p != nil {
		if inst := l.attached(t, p, "direct_meter"); inst != nil {
			t.out.DirectMeters = inst.name
		}
	}
	p := t.property("support_timeout")
	if p == nil {
		p = t.property("supportTimeout")
	}
	if p != nil {
		v := l.scalar(p.Value, t.env)
		if !v.isConst() || !v.st.bool {
			l.errorf(p, "support_timeout must be true or false")
		}
		t.out.SupportTimeout = v.isTrue()
	}
}

func (l *lowerer) attached(t *table, p *syntax.Property, kinds ...string) *instance {
	inst, ok := l.eval(p.Value, t.env).(*instance)
	if !ok || inst.extern() == nil || !contains(kinds, inst.extern().Name) {
		l.errorf(p, "%s of table %s must be an instance of %s", p.Name.Value, t.name, kinds[0])
		return nil
	}
	if inst.table != nil && inst.table != t {
		l.errorf(p, "%s %s is attached to two tables, %s and %s", inst.extern().Name, inst.name, inst.table.name, t.name)
		return nil
	}
	if inst.name == "" {
		inst.name = t.name + "." + p.Name.Value
		if a := p.Annotations.Get("name"); a != nil {
			inst.name, _ = annotationString(a)
		}
	}
	inst.table = t
	return inst
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// addAction adds one action of the table's list.
func (l *lowerer) addAction(t *table, r *syntax.ActionRef) *tableAction {
	call := l.info.ActionRefs[r]
	if call == nil {
		return nil
	}
	return l.addCall(t, r, call)
}

func (l *lowerer) addCall(t *table, r *syntax.ActionRef, call *types.Call) *tableAction {
	a := &tableAction{ref: r, obj: call.Callee}
	a.out = l.action(call.Callee, call, t.env)
	a.name = a.out.Name
	t.actions = append(t.actions, a)
	t.out.ActionIDs = append(t.out.ActionIDs, a.out.ID)
	t.out.Actions = append(t.out.Actions, a.name)
	return a
}

// find gives the table's action for o.
func (t *table) find(o *types.Object) *tableAction {
	for _, a := range t.actions {
		if a.obj == o {
			return a
		}
	}
	return nil
}

// defaultAction fills default_entry; a table without one does NoAction.
func (l *lowerer) defaultAction(t *table) {
	p := t.property("default_action")
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
		return // the checker has reported it
	}
	if t.impl != nil {
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
		a = l.addCall(t, nil, &types.Call{Kind: types.ActionCall, Callee: o, Type: o.Type.(*types.Func)})
	}
	if t.impl == nil {
		t.out.DefaultEntry = &bmv2.DefaultEntry{ActionID: a.out.ID, ActionData: []string{}}
	}
}

// actionData are the constant arguments of the control plane's parameters:
// the last n of the call.
func (l *lowerer) actionData(call *types.Call, e *env, n int) []string {
	data := []string{}
	for k, p := range call.Type.Params {
		if p.Dir != syntax.NoDir {
			continue
		}
		var arg syntax.Expr
		if k < len(call.Args) {
			arg = call.Args[k]
		}
		v, _ := l.argument(arg, call.Type, k, e).(*ex)
		if v == nil || !v.isConst() {
			l.errorf(l.at, "argument %s of action %s must be a constant", p.Name, call.Callee.Name)
			continue
		}
		if st, ok := scalarOf(e.subst(p.Type)); ok {
			v = cast(v, st)
		}
		data = append(data, bmv2.HexString(v.v, 0))
	}
	if len(data) > n {
		data = data[len(data)-n:]
	}
	return data
}

// entries fills in the program's own entries, best priority first.
func (l *lowerer) entries(t *table) {
	if t.decl.Entries == nil {
		return
	}
	t.out.Entries = []*bmv2.Entry{}
	for i, en := range l.byPriority(t) {
		l.at = en
		call := l.info.ActionRefs[en.Action]
		if call == nil {
			continue
		}
		a := t.find(call.Callee)
		if a == nil {
			continue
		}
		out := &bmv2.Entry{SourceInfo: l.source(en), Priority: i + 1, ActionEntry: &bmv2.ActionEntry{
			ActionID: a.out.ID, ActionData: l.actionData(call, t.env, len(a.out.RuntimeData)),
		}}
		if an := en.Annotations.Get("priority"); an != nil && len(an.Exprs) == 1 {
			if lit, ok := an.Exprs[0].(*syntax.IntLit); ok {
				out.Priority = int(lit.Value.Int64())
			}
		}
		keys := en.Keys
		if len(keys) == 1 {
			if list, ok := syntax.Unparen(keys[0]).(*syntax.ListExpr); ok && len(t.keys) == len(list.Elems) {
				keys = list.Elems
			}
		}
		for k, key := range t.keys {
			if k < len(keys) && key.kind != "selector" {
				out.MatchKey = append(out.MatchKey, l.matchKey(key, keys[k], t.env))
			}
		}
		t.out.Entries = append(t.out.Entries, out)
	}
	l.at = t.decl
}

// byPriority orders entries: as written, or by their priorities, of which the
// largest wins unless largest_priority_wins is false.
func (l *lowerer) byPriority(t *table) []*syntax.Entry {
	list := append([]*syntax.Entry(nil), t.decl.Entries.List...)
	largest, delta := true, int64(1)
	if p := t.property("largest_priority_wins"); p != nil {
		largest = l.scalar(p.Value, t.env).isTrue()
	}
	if p := t.property("priority_delta"); p != nil {
		if v := l.scalar(p.Value, t.env); v.isConst() {
			delta = v.v.Int64()
		}
	}
	prio := map[*syntax.Entry]int64{}
	any, current := false, int64(0)
	for i, en := range list {
		if en.Priority != nil {
			any = true
			current = l.scalar(en.Priority, t.env).v.Int64()
		} else if i > 0 {
			if largest {
				current -= delta
			} else {
				current += delta
			}
		}
		prio[en] = current
	}
	if any {
		sort.SliceStable(list, func(i, j int) bool {
			if largest {
				return prio[list[i]] > prio[list[j]]
			}
			return prio[list[i]] < prio[list[j]]
		})
	}
	return list
}

// matchKey lowers one keyset of an entry.
func (l *lowerer) matchKey(k *tableKey, x syntax.Expr, e *env) *bmv2.MatchKey {
	x = syntax.Unparen(x)
	value, mask, last := l.keyset(x, k.st, e)
	n := bytesOf(k.st.width)
	hex := func(v *big.Int) string { return bmv2.HexString(wrap(v, scalar{width: k.st.width}), n) }
	out := &bmv2.MatchKey{MatchType: k.kind, Key: hex(value)}
	switch k.kind {
	case "exact":
		if mask != nil && wrap(mask, scalar{width: k.st.width}).Cmp(maskOf(k.st.width)) != 0 || last != nil {
			l.errorf(x, "an exact key takes one value")
		}
	case "lpm":
		length, ok := prefixLength(mask, k.st.width)
		if !ok {
			l.errorf(x, "the mask of an lpm key must be a prefix")
		}
		out.PrefixLength = length
	case "ternary", "optional":
		out.MatchType = bmv2.MatchTernary
		if mask == nil {
			mask = maskOf(k.st.width)
		}
		out.Mask = hex(mask)
	case "range":
		out.Key, out.Start, out.End = "", hex(value), hex(value)
		if last != nil {
			out.End = hex(last)
		} else if mask != nil {
			out.End = hex(maskOf(k.st.width))
		}
	}
	return out
}

// keyset reads a constant keyset: a value, a value under a mask, or a range
// whose end is last.
func (l *lowerer) keyset(x syntax.Expr, st scalar, e *env) (value, mask, last *big.Int) {
	number := func(x syntax.Expr) *big.Int {
		v := l.scalar(x, e)
		if !v.isConst() {
			l.unsupported(x, "a keyset that is not constant")
		}
		return v.v
	}
	switch x := x.(type) {
	case *syntax.DefaultExpr, *syntax.DontCare:
		return new(big.Int), new(big.Int), nil
	case *syntax.MaskExpr:
		return number(x.X), number(x.Mask), nil
	case *syntax.RangeExpr:
		return number(x.Lo), nil, number(x.Hi)
	}
	return number(x), nil, nil
}

// prefixLength reads a mask as a prefix of width bits; nil is the full one.
func prefixLength(mask *big.Int, width int) (int, bool) {
	if mask == nil {
		return width, true
	}
	m := wrap(mask, scalar{width: width})
	n := 0
	for n < width && m.Bit(width-1-n) == 1 {
		n++
	}
	want := new(big.Int).Lsh(maskOf(n), uint(width-n))
	return n, m.Cmp(want) == 0
}
