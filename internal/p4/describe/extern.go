package describe

import (
	"fmt"
	"math/big"
	"sort"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// externKinds are the extern objects of v1model and of TNA that have ids.
var externKinds = map[string]symbolKind{
	"counter": counterKind, "direct_counter": directCounterKind, "meter": meterKind, "direct_meter": directMeterKind,
	"register": registerKind, "action_profile": profileKind, "action_selector": profileKind,

	"Counter": counterKind, "DirectCounter": directCounterKind, "Meter": meterKind, "DirectMeter": directMeterKind,
	"Register": registerKind, "ActionProfile": profileKind, "ActionSelector": profileKind, "Digest": digestKind,
}

func (g *infoGen) collectExtern(s *site) {
	if p := profileOf(s); p != s {
		g.selectors[p.name] = s
		return
	}
	if kind, ok := externKinds[s.extern().Name]; ok {
		g.unique(kind, s.name, s.at)
		g.ids.add(g, kind, s.name, s.notes, s.at)
	}
}

// profileOf returns the action profile that was passed to a selector, as in TNA:
// the control plane sees the two as one object. It returns any other object itself.
func profileOf(s *site) *site {
	if p, ok := s.arg("action_profile").(*site); ok {
		return p
	}
	return s
}

// attachable lists the externs that each property of a table can name.
var attachable = map[string][]string{
	"implementation": {"action_profile", "action_selector", "ActionProfile", "ActionSelector"},
	"counters":       {"direct_counter", "DirectCounter"},
	"meters":         {"direct_meter", "DirectMeter"},
}

// attached returns the extern object that a property of a table names or
// constructs. An object that is constructed in place has the name in the property's
// @name.
func (g *infoGen) attached(t *tableSite, property string) *site {
	p := t.decl.Property(property)
	if p == nil {
		return nil
	}
	x := syntax.Unparen(p.Value)
	c, ok := x.(*syntax.CallExpr)
	if !ok {
		s, _ := g.view.fold(x, t.site.scope).(*site)
		if s == nil || s.extern() == nil {
			return nil
		}
		return profileOf(s)
	}
	call := g.info.Calls[c]
	a := p.Annotations.Get("name")
	if call == nil || call.Kind != types.Constructor || a == nil {
		return nil
	}
	name, _ := a.Text()
	s := g.view.newSite(call, t.site.scope, strings.TrimPrefix(name, "."), p)
	s.notes, s.inline = p.Annotations, true
	if s.extern() == nil {
		return nil
	}
	return s
}

func (g *infoGen) addExtern(s *site) {
	g.typeInfo()
	if profileOf(s) != s {
		return
	}
	switch s.extern().Name {
	case "counter", "Counter":
		g.out.Counters = append(g.out.Counters, &configv1.Counter{
			Preamble: g.preamble(counterKind, s.name, s.notes), Spec: counterSpec(s), Size: g.size(s),
		})
	case "meter", "Meter":
		g.out.Meters = append(g.out.Meters, &configv1.Meter{
			Preamble: g.preamble(meterKind, s.name, s.notes), Spec: meterSpec(s), Size: g.size(s),
		})
	case "register", "Register":
		r := &configv1.Register{Preamble: g.preamble(registerKind, s.name, s.notes), Size: int32(g.size(s))}
		if args := s.extern().Args; len(args) > 0 {
			r.TypeSpec = g.typeSpec(args[0])
		}
		g.out.Registers = append(g.out.Registers, r)
	case "action_profile", "action_selector", "ActionProfile", "ActionSelector":
		g.addProfile(s)
	case "Digest":
		if args := s.extern().Args; len(args) > 0 {
			g.out.Digests = append(g.out.Digests, &configv1.Digest{Preamble: g.preamble(digestKind, s.name, s.notes), TypeSpec: g.typeSpec(args[0])})
		}
	}
}

// size returns the constructor's argument called size.
func (g *infoGen) size(s *site) int64 {
	n := types.Number(s.arg("size"))
	if n == nil || !n.IsInt64() {
		g.errorf(s.at, "the size of %s must be a constant", s.name)
		return 0
	}
	return n.Int64()
}

// unitOf returns the CounterType or MeterType that was passed to the constructor.
// TNA writes these in capitals.
func unitOf(s *site) string {
	if e, ok := s.arg("type").(*types.EnumValue); ok {
		return strings.ToLower(e.Type.Members[e.Index].Name)
	}
	return ""
}

func counterSpec(s *site) *configv1.CounterSpec {
	units := map[string]configv1.CounterSpec_Unit{
		"packets": configv1.CounterSpec_PACKETS, "bytes": configv1.CounterSpec_BYTES, "packets_and_bytes": configv1.CounterSpec_BOTH,
	}
	return &configv1.CounterSpec{Unit: units[unitOf(s)]}
}

func meterSpec(s *site) *configv1.MeterSpec {
	units := map[string]configv1.MeterSpec_Unit{"packets": configv1.MeterSpec_PACKETS, "bytes": configv1.MeterSpec_BYTES}
	return &configv1.MeterSpec{Unit: units[unitOf(s)]}
}

func (g *infoGen) addProfile(s *site) {
	name := s.extern().Name
	selector := name == "action_selector" || name == "ActionSelector" || g.selectors[s.name] != nil
	p := &configv1.ActionProfile{
		Preamble:     g.preamble(profileKind, s.name, s.notes, "max_group_size", "selector_size_semantics", "max_member_weight"),
		WithSelector: selector, Size: g.size(s),
	}
	g.out.ActionProfiles = append(g.out.ActionProfiles, p)
	g.selectorLimits(p, s.notes)
	if sel := g.selectors[s.name]; sel != nil {
		if n := types.Number(sel.arg("max_group_size")); n != nil && n.IsInt64() {
			p.MaxGroupSize = int32(n.Int64())
		}
	}
	tables := g.profiles[s.name]
	sort.Strings(tables)
	for _, name := range tables {
		p.TableIds = append(p.TableIds, g.ids.id(tableKind, name))
	}
}

// selectorLimits parses the annotations that only selectors may have.
func (g *infoGen) selectorLimits(p *configv1.ActionProfile, as syntax.Annotations) {
	for _, name := range []string{"max_group_size", "selector_size_semantics", "max_member_weight"} {
		a := as.Get(name)
		if a == nil {
			continue
		}
		if !p.WithSelector {
			g.warnf(a, "@%s is ignored: action profile %s has no selector", name, p.Preamble.Name)
			continue
		}
		switch name {
		case "max_group_size":
			p.MaxGroupSize = g.limit(a)
		case "selector_size_semantics":
			s, _ := a.Text()
			switch strings.ToLower(s) {
			case "sum_of_weights":
				p.SelectorSizeSemantics = &configv1.ActionProfile_SumOfWeights_{SumOfWeights: &configv1.ActionProfile_SumOfWeights{}}
			case "sum_of_members":
				p.SelectorSizeSemantics = &configv1.ActionProfile_SumOfMembers_{SumOfMembers: &configv1.ActionProfile_SumOfMembers{}}
			default:
				g.errorf(a, "@selector_size_semantics wants \"sum_of_weights\" or \"sum_of_members\"")
			}
		case "max_member_weight":
			if m := p.GetSumOfMembers(); m != nil {
				m.MaxMemberWeight = g.limit(a)
			} else {
				g.warnf(a, "@max_member_weight is ignored without @selector_size_semantics(\"sum_of_members\")")
			}
		}
	}
}

func (g *infoGen) limit(a *syntax.Annotation) int32 {
	n, ok := g.number(a)
	if !ok || !n.IsInt64() {
		g.errorf(a, "@%s wants a number", a.Name.Value)
		return 0
	}
	return int32(n.Int64())
}

// collectCalls registers the names of the digests among the calls.
func (g *infoGen) collectCalls(calls []*externCall) {
	for _, c := range calls {
		if t := digestType(c); t != nil {
			name := fmt.Sprintf("digest_%d", g.unnamed)
			if s, ok := t.(*types.Struct); ok {
				name = typeLabelOf(s)
			} else {
				g.unnamed++
				g.warnf(c.at, "this digest is called %s: only a struct gives it a name of its own", name)
			}
			g.digests[c] = name
			g.ids.add(g, digestKind, name, nil, c.at)
		}
	}
}

func digestType(c *externCall) types.Type {
	if c.call.Callee.Name != "digest" || len(c.call.TypeArgs) == 0 {
		return nil
	}
	return c.scope.subst(c.call.TypeArgs[0])
}

// addCalls adds one digest for each type of data.
func (g *infoGen) addCalls(calls []*externCall) {
	for _, c := range calls {
		g.typeInfo()
		t := digestType(c)
		if t == nil {
			continue
		}
		name := g.digests[c]
		spec := g.typeSpec(t)
		if id := g.ids.id(digestKind, name); !g.seen[id] {
			g.seen[id] = true
			g.out.Digests = append(g.out.Digests, &configv1.Digest{Preamble: g.preamble(digestKind, name, nil), TypeSpec: spec})
		}
	}
}

// controllerHeaders lists the headers of packets to and from the controller.
func (g *infoGen) controllerHeaders() []*syntax.StructDecl {
	var list []*syntax.StructDecl
	for _, d := range g.file.Decls {
		if s, ok := d.(*syntax.StructDecl); ok && s.Kind == syntax.StructKindHeader && s.Annotations.Get("controller_header") != nil {
			list = append(list, s)
		}
	}
	return list
}

func (g *infoGen) addControllerHeader(d *syntax.StructDecl) {
	o := g.info.Defs[d]
	if hidden(d.Annotations) || o == nil {
		return
	}
	t, ok := o.Type.(*types.Struct)
	name, ok2 := d.Annotations.Get("controller_header").Text()
	if !ok || !ok2 {
		g.errorf(d, "@controller_header wants the name of the packet's direction, \"packet_in\" or \"packet_out\"")
		return
	}
	p := g.preamble(controllerHeaderKind, names.Declared("", d.Annotations, d.Name), d.Annotations)
	p.Name, p.Alias = name, name
	out := &configv1.ControllerPacketMetadata{Preamble: p}
	g.out.ControllerPacketMetadata = append(g.out.ControllerPacketMetadata, out)
	fields := flatHeader(t)
	notes := lists.Map(fields, func(f flatField) syntax.Annotations { return f.notes })
	ids := g.fieldIDs(notes, d)
	for i, f := range fields {
		if hidden(f.notes) {
			continue
		}
		g.typeInfo()
		g.typeSpec(f.typ)
		out.Metadata = append(out.Metadata, &configv1.ControllerPacketMetadata_Metadata{
			Id: ids[i], Name: f.name, Annotations: g.annotations(f.notes), StructuredAnnotations: g.structured(f.notes),
			Bitwidth: int32(bitwidth(f.typ)), TypeName: newTypeName(f.typ),
		})
	}
}

// addValueSet describes a parser value set: a number, or a struct or enum. Each part
// of a struct is a match field.
func (g *infoGen) addValueSet(s *setSite) {
	out := &configv1.ValueSet{Preamble: g.preamble(valueSetKind, s.name(), s.decl.Annotations)}
	n, ok := g.view.fold(s.decl.Size, s.site.scope).(*big.Int)
	if !ok || n.Sign() < 0 || !n.IsInt64() {
		g.errorf(s.decl, "the size of value set %s must be a constant that is not negative", s.name())
		return
	}
	out.Size = int32(n.Int64())
	g.out.ValueSets = append(g.out.ValueSets, out)
	switch t := s.site.scope.subst(g.info.Types[s.decl.Type].Type).(type) {
	case *types.Bits:
		out.Match = []*configv1.MatchField{exactField(1, "", t.Width)}
	case *types.Enum:
		if t.Repr == nil {
			break
		}
		for i, m := range t.Members {
			out.Match = append(out.Match, exactField(uint32(i+1), m.Name, t.Repr.Width))
		}
		return
	case *types.Struct:
		notes := make([]syntax.Annotations, len(t.Fields))
		for i, f := range t.Fields {
			if f.Decl != nil {
				notes[i] = f.Decl.Annotations
			}
		}
		ids := g.fieldIDs(notes, s.decl)
		for i, f := range t.Fields {
			b, ok := f.Type.(*types.Bits)
			if !ok {
				g.errorf(s.decl, "field %s of value set %s has type %s; the control plane wants bit<W>", f.Name, s.name(), f.Type)
				continue
			}
			m := exactField(ids[i], fieldLabel(f), b.Width)
			m.Annotations, m.StructuredAnnotations, m.Doc = g.annotations(notes[i], "match"), g.structured(notes[i]), g.doc(notes[i])
			if a := notes[i].Get("match"); a != nil && len(a.Tokens) == 1 {
				setMatch(m, a.Tokens[0].Text)
			}
			out.Match = append(out.Match, m)
		}
	default:
		g.errorf(s.decl, "value set %s has elements of type %s; the control plane knows bit<W>, structs of bit<W> and serializable enums", s.name(), t)
	}
}

func exactField(id uint32, name string, width int) *configv1.MatchField {
	f := &configv1.MatchField{Id: id, Name: name, Bitwidth: int32(width)}
	setMatch(f, "exact")
	return f
}
