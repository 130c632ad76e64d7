package describe

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// BfRt returns the BfRt schema of the checked program, for the control plane of
// Intel's SDE. The schema has the tables, names and numbers of p4c's Tofino
// backend. It is nil if and only if one of the errors is not a warning.
func BfRt(file *syntax.File, info *types.Info, arch string) (*bfrt.Schema, syntax.Errors) {
	g := newInfoGen(file, info, arch)
	if g.arch != bmv2.TNA && g.arch != bmv2.T2NA {
		g.errorf(mainDecl(g.info), "BfRt is for Tofino: this program is for %s", g.arch)
		return nil, g.errs
	}
	g.build()
	if g.errs.Err() != nil {
		return nil, g.errs
	}
	chip := g.arch
	if names.Tofino2(info) {
		chip = bmv2.T2NA
	}
	b := &schemaGen{infoGen: g, chip: chip, out: &bfrt.Schema{Version: "1.0.0", Tables: []*bfrt.Table{}, LearnFilters: []*bfrt.LearnFilter{}}}
	b.sites, b.owners = map[string][]*site{}, map[*site]uint32{}
	for _, s := range b.view.globals {
		b.note(s)
	}
	for _, u := range b.view.units {
		for _, o := range u.objects {
			switch o := o.(type) {
			case *tableSite:
				b.addTable(o)
			case *site:
				b.note(o)
			}
		}
	}
	for _, kind := range b.kinds {
		for _, s := range b.sites[kind] {
			b.addExtern(s)
		}
	}
	b.addValueSets()
	b.addSnapshots()
	b.addPortMetadata()
	t := bfrt.NewTable("tbl_dbg_counter", bfrt.ID(bfrt.DebugCounter, 0), "TblDbgCnt", int64(stages[b.chip]*tablesOfStage))
	t.AddKey(bfrt.DebugTableName, "tbl_name", true, "Exact", bfrt.Plain("string"))
	kinds := bfrt.OneOf("DISABLED", "TBL_MISS", "TBL_HIT", "GW_TBL_MISS", "GW_TBL_HIT", "GW_TBL_INHIBIT").With("TBL_HIT")
	t.Data = append(t.Data,
		bfrt.Optional(bfrt.NewField(bfrt.DebugType, "type", kinds)),
		bfrt.Optional(bfrt.NewField(bfrt.DebugValue, "value", bfrt.Plain("uint64").With(0))),
	)
	b.out.Tables = append(b.out.Tables, t)
	return b.out, g.errs
}

// A schemaGen builds the schema from P4Info and from the data that P4Info is built
// from. Tables come first. Extern objects follow, grouped by kind in the order in
// which the kinds first appear. The tables that every program has come last.
type schemaGen struct {
	*infoGen
	chip  string // bmv2.TNA for Tofino 1, bmv2.T2NA for Tofino 2
	out   *bfrt.Schema
	kinds []string
	sites map[string][]*site // extern objects by kind

	owners map[*site]uint32 // the table of each direct register

	calls   map[methodOf][]*types.Call // calls of each method of an object
	readers map[syntax.Node][]*site    // the actions that read a register parameter
}

// A methodOf is a method of the object that obj declares.
type methodOf struct {
	decl   syntax.Node
	method string
}

// note stores an extern object until all tables have been added.
func (b *schemaGen) note(s *site) {
	kind := s.extern().Name
	if !slices.Contains(b.kinds, kind) {
		b.kinds = append(b.kinds, kind)
	}
	b.sites[kind] = append(b.sites[kind], s)
}

// full returns a name with the pipe's name before it.
func (b *schemaGen) full(name string) string {
	if b.ids.pipe == "" {
		return name
	}
	return b.ids.pipe + "." + name
}

func (b *schemaGen) id(kind uint32, name string) uint32 {
	return bfrt.ID(kind, hashName(b.full(name)))
}

func notesOf(list []string) []bfrt.Annotation {
	return lists.Map(list, func(text string) bfrt.Annotation { return bfrt.Annotation{Name: text} })
}

// addTable adds a match table.
func (b *schemaGen) addTable(t *tableSite) {
	i := slices.IndexFunc(b.infoGen.out.Tables, func(x *configv1.Table) bool { return x.Preamble.Name == t.name })
	if i < 0 {
		return // hidden tables are not in the schema
	}
	info := b.infoGen.out.Tables[i]
	out := bfrt.NewTable(b.full(t.name), info.Preamble.Id, "MatchAction_Direct", b.sizeOf(t, info)).Notes(notesOf(info.Preamble.Annotations))
	constant := info.ConstDefaultActionId != 0
	out.HasConstDefault = &constant
	b.out.Tables = append(b.out.Tables, out)
	b.addKey(out, info)
	last := uint32(0) // the highest number of an action parameter
	switch s := b.implementation(t); {
	case s == nil:
		specs := b.actionSpecs(info)
		out.ActionSpecs = &specs
		for _, spec := range specs {
			for _, p := range spec.Data {
				last = max(last, p.ID)
			}
		}
	case s.extern().Name == "ActionProfile":
		out.Type = "MatchAction_Indirect"
		out.Needs(b.id(bfrt.ActionProfile, s.name))
		out.Data = append(out.Data, bfrt.Mandatory(bfrt.NewField(bfrt.ActionMemberID, "$ACTION_MEMBER_ID", bfrt.Plain("uint32"))))
	default:
		out.Type = "MatchAction_Indirect_Selector"
		out.Needs(b.id(bfrt.ActionSelector, selectorName(s)))
		out.Data = append(out.Data, &bfrt.Data{Mandatory: true, OneOf: []*bfrt.Field{
			bfrt.NewField(bfrt.ActionMemberID, "$ACTION_MEMBER_ID", bfrt.Plain("uint32")),
			bfrt.NewField(bfrt.SelectorGroupID, "$SELECTOR_GROUP_ID", bfrt.Plain("uint32")),
		}})
	}
	b.addDirect(t, out, last+1)
	out.Attributes = append(out.Attributes, "EntryScope")
	if slices.Contains(info.Preamble.Annotations, "@dynamic_table_key_masks(1)") {
		out.Attributes = append(out.Attributes, "DynamicKeyMask")
	}
	if info.IsConstTable {
		out.Attributes = append(out.Attributes, "ConstTable")
	}
	if info.IdleTimeoutBehavior == configv1.Table_NOTIFY_CONTROL {
		out.Operations = append(out.Operations, "UpdateHitState")
		out.Attributes = append(out.Attributes, "IdleTimeout")
		out.Data = append(out.Data, bfrt.Optional(bfrt.NewField(bfrt.EntryHitState, "$ENTRY_HIT_STATE", bfrt.OneOf("ENTRY_IDLE", "ENTRY_ACTIVE"))))
		// With one bit of precision, the control plane can only poll for idle
		// entries.
		if !slices.Contains(info.Preamble.Annotations, "@idletime_precision(1)") {
			out.Data = append(out.Data, bfrt.Optional(bfrt.NewField(bfrt.EntryTTL, "$ENTRY_TTL", bfrt.Plain("uint32").With(0))))
		}
	}
}

// sizeOf returns a table's size; the default is 512.
func (b *schemaGen) sizeOf(t *tableSite, info *configv1.Table) int64 {
	if t.decl.Property("size") != nil {
		return info.Size
	}
	if p := t.decl.Property("min_size"); p != nil {
		if n := types.Number(b.view.fold(p.Value, t.site.scope)); n != nil {
			return n.Int64()
		}
	}
	return 512
}

// implementation returns the action profile or selector of a table, or nil if it
// has none.
func (b *schemaGen) implementation(t *tableSite) *site {
	s := b.attached(t, "implementation")
	if s == nil || externKinds[s.extern().Name] != profileKind {
		return nil
	}
	if p := t.decl.Property("implementation"); !s.inline {
		if own, ok := b.view.fold(syntax.Unparen(p.Value), t.site.scope).(*site); ok {
			return own
		}
	}
	return s
}

// selectorName returns the name of a selector. It ends in _sel if the selector
// contains its own action profile, to distinguish the two.
func selectorName(s *site) string {
	if profileOf(s) == s {
		return s.name + "_sel"
	}
	return s.name
}

var matchKinds = map[configv1.MatchField_MatchType]string{
	configv1.MatchField_EXACT: "Exact", configv1.MatchField_LPM: "LPM", configv1.MatchField_TERNARY: "Ternary",
	configv1.MatchField_RANGE: "Range", configv1.MatchField_OPTIONAL: "Optional",
}

var (
	slicedKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\[([0-9]+):([0-9]+)\]`)
	})
	stackedKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\[([0-9]+)\]`)
	})
	maskedKey = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\s*&\s*(0x[a-fA-F0-9]+)`)
	})
)

func (b *schemaGen) addKey(out *bfrt.Table, info *configv1.Table) {
	ordered := false
	for _, f := range info.MatchFields {
		match := matchKinds[f.GetMatchType()]
		switch f.GetOtherMatchType() {
		case "atcam_partition_index":
			match = "ATCAM"
		case "dleft_hash":
			match = "DLEFT_HASH"
		}
		ordered = ordered || match == "Ternary" || match == "Range" || match == "Optional"
		notes := notesOf(f.Annotations)
		if slicedKey().MatchString(f.Name) {
			notes = append(notes, bfrt.Annotation{Name: "isFieldSlice", Value: "true"})
		}
		name := f.Name
		if strings.Contains(name, ".$valid") {
			name = strings.TrimSuffix(name, "$")
		}
		name = stackedKey().ReplaceAllString(name, "$$$1")
		typ := bfrt.Bytes(int(f.Bitwidth))
		if m := maskedKey().FindStringSubmatch(name); m != nil && name == f.Name && match == "Exact" {
			typ.Mask = m[1]
		}
		out.AddKey(f.Id, name, false, match, typ, notes...)
	}
	if ordered {
		out.AddKey(bfrt.MatchPriority, "$MATCH_PRIORITY", false, "Exact", bfrt.Plain("uint32"))
	}
}

var scopes = map[configv1.ActionRef_Scope]string{
	configv1.ActionRef_TABLE_AND_DEFAULT: "TableAndDefault", configv1.ActionRef_TABLE_ONLY: "TableOnly", configv1.ActionRef_DEFAULT_ONLY: "DefaultOnly",
}

// actionName returns the name and the number of an action without the pipe's
// prefix. P4Info includes the prefix if the program has several pipes.
func (b *schemaGen) actionName(p *configv1.Preamble) (string, uint32) {
	if b.ids.pipe != "" || strings.Count(p.Name, ".") < 2 {
		return p.Name, p.Id
	}
	_, name, _ := strings.Cut(p.Name, ".")
	return name, p.Id>>24<<24 | hashName(name)&0xffffff
}

// actionSpecs lists the actions of a table.
func (b *schemaGen) actionSpecs(info *configv1.Table) []*bfrt.ActionSpec {
	specs := []*bfrt.ActionSpec{}
	for _, ref := range info.ActionRefs {
		i := slices.IndexFunc(b.infoGen.out.Actions, func(a *configv1.Action) bool { return a.Preamble.Id == ref.Id })
		if i < 0 {
			continue
		}
		a := b.infoGen.out.Actions[i]
		name, id := b.actionName(a.Preamble)
		spec := &bfrt.ActionSpec{ID: id, Name: name, Scope: scopes[ref.Scope], Annotations: append([]bfrt.Annotation{}, notesOf(ref.Annotations)...), Data: []*bfrt.Field{}}
		for _, p := range a.Params {
			spec.Data = append(spec.Data, bfrt.Param(p.Id, p.Name, true, bfrt.Bytes(int(p.Bitwidth)), notesOf(p.Annotations)...))
		}
		specs = append(specs, spec)
	}
	return specs
}

// addDirect adds the data of counters, meters and the like that belong to a table's
// entries. Their numbers start at next, which no action parameter uses.
func (b *schemaGen) addDirect(t *tableSite, out *bfrt.Table, next uint32) {
	for _, property := range []string{"counters", "meters", "registers", "filters"} {
		p := t.decl.Property(property)
		if p == nil {
			continue
		}
		s, ok := b.view.fold(syntax.Unparen(p.Value), t.site.scope).(*site)
		if !ok || s.extern() == nil {
			continue
		}
		switch s.extern().Name {
		case "DirectCounter":
			out.Data = append(out.Data, counterData(s)...)
			out.Operations = append(out.Operations, "SyncCounters")
		case "DirectMeter":
			out.Data = append(out.Data, meterData(s)...)
			out.Attributes = append(out.Attributes, "MeterByteCountAdjust")
		case "DirectRegister":
			out.Data = append(out.Data, b.registerData(s, next)...)
			out.Operations = append(out.Operations, "SyncRegisters")
			b.owners[s] = out.ID
		case "DirectLpf":
			out.Data = append(out.Data, lpfData()...)
		case "DirectWred":
			out.Data = append(out.Data, wredData()...)
		}
	}
}
