package describe

import (
	"math/big"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A tableRef is one action of a table's list.
type tableRef struct {
	obj   *types.Object
	notes syntax.Annotations
	// implicit is set for the NoAction of a table without a default action.
	implicit bool
}

// actionRefs lists the actions of a table. A table without default_action also has
// NoAction, which can be its default only.
func (v *view) actionRefs(t *tableSite) []tableRef {
	var refs []tableRef
	hasNoAction := false
	if t.decl.Actions != nil {
		for _, r := range t.decl.Actions.Refs {
			hasNoAction = hasNoAction || r.Name.Value == noAction
			if call := v.info.ActionRefs[r]; call != nil && call.Callee != nil {
				refs = append(refs, tableRef{obj: call.Callee, notes: r.Annotations})
			}
		}
	}
	if t.decl.Property("default_action") == nil && !hasNoAction {
		if o := v.noAction(t.site); o != nil {
			refs = append(refs, tableRef{obj: o, implicit: true})
		}
	}
	return refs
}

const noAction = "NoAction"

// noAction returns the action that the name NoAction denotes in a control.
func (v *view) noAction(s *site) *types.Object {
	if s.noAction == nil {
		s.noAction = v.info.Top[noAction]
		for _, d := range s.body.Locals {
			if a, ok := d.(*syntax.ActionDecl); ok && a.Name.Value == noAction {
				s.noAction = v.info.Defs[a]
				break
			}
		}
	}
	return s.noAction
}

func hidden(as syntax.Annotations) bool { return as.Get("hidden") != nil }

// addAction adds an action. p4c copies an action for each of its users; only the
// first copy is described.
func (g *infoGen) addAction(a *actionSite) {
	id := g.ids.id(actionKind, a.name)
	if hidden(a.decl.Annotations) || g.seen[id] {
		return
	}
	g.seen[id] = true
	out := &configv1.Action{Preamble: g.preamble(actionKind, a.name, a.decl.Annotations)}
	g.out.Actions = append(g.out.Actions, out)
	if !a.listed {
		return
	}
	params := runtimeParams(a.decl)
	ids := g.paramIDs(params, a.decl)
	for i, p := range params {
		t := a.scope.subst(g.info.Defs[p].Type)
		if noBits(t) {
			continue
		}
		param := &configv1.Action_Param{
			Id: ids[i], Name: names.Declared("", p.Annotations, p.Name), Annotations: g.annotations(p.Annotations),
			StructuredAnnotations: g.structured(p.Annotations), Doc: g.doc(p.Annotations),
			Bitwidth: int32(bitwidth(t)), TypeName: newTypeName(t),
		}
		if e, ok := t.(*types.Enum); ok && e.Repr == nil {
			param.TypeName = named(typeLabelOf(e))
		}
		if _, ok := scalarWidth(t); !ok {
			g.errorf(p, "parameter %s of action %s has type %s, which the control plane cannot send", p.Name.Value, a.name, t)
			continue
		}
		g.typeInfo()
		g.typeSpec(t)
		out.Params = append(out.Params, param)
	}
}

// runtimeParams returns the parameters that get their arguments from the control
// plane.
func runtimeParams(d *syntax.ActionDecl) []*syntax.Param {
	return lists.Filter(d.Params, func(p *syntax.Param) bool { return p.Dir == syntax.NoDir })
}

func (g *infoGen) paramIDs(params []*syntax.Param, at syntax.Node) []uint32 {
	notes := lists.Map(params, func(p *syntax.Param) syntax.Annotations { return p.Annotations })
	return g.fieldIDs(notes, at)
}

func (g *infoGen) addTable(t *tableSite) {
	if hidden(t.decl.Annotations) {
		return
	}
	out := &configv1.Table{
		Preamble: g.preamble(tableKind, t.name, t.decl.Annotations), Size: g.tableSize(t),
		MatchFields: g.matchFields(t), ActionRefs: g.actionRefs(t),
	}
	g.typeInfo()
	g.out.Tables = append(g.out.Tables, out)
	g.defaultAction(t, out)
	if e := t.decl.Entries; e != nil {
		out.IsConstTable, out.HasInitialEntries = e.Const, len(e.List) > 0
	}
	// Register the table's action profile, and add it if it is constructed in
	// place.
	s := g.attached(t, "implementation")
	if s != nil && externKinds[s.extern().Name] == profileKind {
		out.ImplementationId = g.ids.id(profileKind, s.name)
		if s.inline {
			g.addProfile(s)
		}
	}
	// Direct counters and meters belong to the table's entries.
	if s := g.attached(t, "counters"); s != nil && externKinds[s.extern().Name] == directCounterKind {
		c := &configv1.DirectCounter{Preamble: g.preamble(directCounterKind, s.name, s.notes), Spec: counterSpec(s), DirectTableId: out.Preamble.Id}
		g.out.DirectCounters = append(g.out.DirectCounters, c)
		out.DirectResourceIds = append(out.DirectResourceIds, c.Preamble.Id)
	}
	if s := g.attached(t, "meters"); s != nil && externKinds[s.extern().Name] == directMeterKind {
		m := &configv1.DirectMeter{Preamble: g.preamble(directMeterKind, s.name, s.notes), Spec: meterSpec(s), DirectTableId: out.Preamble.Id}
		g.out.DirectMeters = append(g.out.DirectMeters, m)
		out.DirectResourceIds = append(out.DirectResourceIds, m.Preamble.Id)
	}
	for _, name := range []string{"support_timeout", "idle_timeout"} { // TNA calls it idle_timeout
		if p := t.decl.Property(name); p != nil {
			if v, ok := g.view.fold(p.Value, t.site.scope).(bool); ok && v {
				out.IdleTimeoutBehavior = configv1.Table_NOTIFY_CONTROL
			}
		}
	}
}

// defaultSize is the size of a table that declares none.
const defaultSize = 1024

func (g *infoGen) tableSize(t *tableSite) int64 {
	if p := t.decl.Property("size"); p != nil {
		if n := types.Number(g.view.fold(p.Value, t.site.scope)); n != nil && n.Sign() != 0 {
			return n.Int64()
		}
	}
	return defaultSize
}

// matchFields describes the key. Selector fields and keys of type bit<0> are hidden
// from the control plane, but use up an id.
func (g *infoGen) matchFields(t *tableSite) []*configv1.MatchField {
	if t.decl.Key == nil {
		return nil
	}
	ids := g.keyIDs(t.decl)
	var out []*configv1.MatchField
	for i, k := range t.decl.Key.Elems {
		if k.Match.Value == "selector" {
			continue
		}
		typ := g.keyType(t, k)
		if noBits(typ) {
			continue
		}
		g.typeSpec(typ)
		f := &configv1.MatchField{
			Id: ids[i], Name: names.Key(g.info, k), Annotations: g.annotations(k.Annotations), StructuredAnnotations: g.structured(k.Annotations),
			Doc: g.doc(k.Annotations), Bitwidth: int32(bitwidth(typ)), TypeName: newTypeName(typ),
		}
		setMatch(f, k.Match.Value)
		out = append(out, f)
	}
	return out
}

func (g *infoGen) keyIDs(d *syntax.TableDecl) []uint32 {
	notes := lists.Map(d.Key.Elems, func(k *syntax.KeyElem) syntax.Annotations { return k.Annotations })
	return g.fieldIDs(notes, d)
}

func (g *infoGen) keyType(t *tableSite, k *syntax.KeyElem) types.Type {
	return t.site.scope.subst(g.info.Types[k.X].Type)
}

func setMatch(f *configv1.MatchField, kind string) {
	kinds := map[string]configv1.MatchField_MatchType{
		"exact": configv1.MatchField_EXACT, "lpm": configv1.MatchField_LPM, "ternary": configv1.MatchField_TERNARY,
		"range": configv1.MatchField_RANGE, "optional": configv1.MatchField_OPTIONAL,
	}
	if m, ok := kinds[kind]; ok {
		f.Match = &configv1.MatchField_MatchType_{MatchType: m}
	} else {
		f.Match = &configv1.MatchField_OtherMatchType{OtherMatchType: kind}
	}
}

func (g *infoGen) actionRefs(t *tableSite) []*configv1.ActionRef {
	var out []*configv1.ActionRef
	for _, r := range g.view.actionRefs(t) {
		ref := &configv1.ActionRef{Id: g.actionID(t, r.obj), Annotations: g.annotations(r.notes), StructuredAnnotations: g.structured(r.notes)}
		tableOnly, defaultOnly := r.notes.Get("tableonly"), r.notes.Get("defaultonly")
		switch {
		case r.implicit:
			ref.Annotations, ref.Scope = []string{"@defaultonly"}, configv1.ActionRef_DEFAULT_ONLY
		case tableOnly != nil && defaultOnly != nil:
			g.errorf(tableOnly, "action %s of table %s is both @tableonly and @defaultonly", r.obj.Name, t.name)
		case tableOnly != nil:
			ref.Scope = configv1.ActionRef_TABLE_ONLY
		case defaultOnly != nil:
			ref.Scope = configv1.ActionRef_DEFAULT_ONLY
		}
		out = append(out, ref)
	}
	return out
}

// actionID returns the id of an action that a table names.
func (g *infoGen) actionID(t *tableSite, o *types.Object) uint32 {
	d, ok := o.Decl.(*syntax.ActionDecl)
	if !ok {
		return 0
	}
	prefix := ""
	if o.Parent != nil {
		prefix = t.site.name
	}
	return g.ids.id(actionKind, names.Declared(prefix, d.Annotations, d.Name))
}

func (g *infoGen) defaultAction(t *tableSite, out *configv1.Table) {
	p := t.decl.Property("default_action")
	if p == nil {
		if o := g.view.noAction(t.site); o != nil {
			out.InitialDefaultAction = &configv1.TableActionCall{ActionId: g.actionID(t, o)}
		}
		return
	}
	call := g.info.ActionRefs[p.Value]
	if call == nil || call.Callee == nil {
		return
	}
	id := g.actionID(t, call.Callee)
	if p.Const {
		out.ConstDefaultActionId = id
	}
	out.InitialDefaultAction = &configv1.TableActionCall{ActionId: id}
	for _, a := range g.arguments(call, t.site.scope) {
		out.InitialDefaultAction.Arguments = append(out.InitialDefaultAction.Arguments, &configv1.TableActionCall_Argument{ParamId: a.ID, Value: a.Value})
	}
}

// arguments evaluates the arguments of an action that the control plane would set.
func (g *infoGen) arguments(call *types.Call, s *scope) []Param {
	d, ok := call.Callee.Decl.(*syntax.ActionDecl)
	if !ok {
		return nil
	}
	params := runtimeParams(d)
	ids := g.paramIDs(params, d)
	var out []Param
	next := 0
	for k, p := range d.Params {
		if p.Dir != syntax.NoDir {
			continue
		}
		id := ids[next]
		next++
		x := p.Default
		if k < len(call.Args) && call.Args[k] != nil {
			x = call.Args[k]
		}
		if x == nil || noBits(g.info.Defs[p].Type) {
			continue
		}
		if v, ok := g.bytes(g.view.fold(x, s), g.info.Defs[p].Type); ok {
			out = append(out, Param{id, v})
		}
	}
	return out
}

// bytes returns a constant in P4Runtime's form. ok is false for values without such
// a form: strings, and members of enums without representation.
func (g *infoGen) bytes(v any, t types.Type) (b []byte, ok bool) {
	if b, ok := v.(bool); ok {
		if b {
			return []byte{1}, true
		}
		return []byte{0}, true
	}
	n, w := types.Number(v), bitwidth(t)
	if n == nil || w == 0 {
		return nil, false
	}
	return bytesValue(n, w), true
}

// bytesValue returns v as the bytes of a number of that width, in two's complement.
// P4Runtime's canonical form is the shortest one, but p4c writes the padded one and
// its users expect it.
func bytesValue(v *big.Int, width int) []byte {
	return types.Wrap(v, &types.Bits{Width: width}).FillBytes(make([]byte, (width+7)/8))
}
