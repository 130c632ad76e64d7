package p4rt

import (
	"bytes"
	"log/slog"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// newPipeline checks a configuration and links its program. notify receives the
// program's digests.
func newPipeline(c *p4v1.ForwardingPipelineConfig, dev *Device, log *slog.Logger, notify func(*p4v1.DigestList)) (*pipeline, error) {
	in, err := newInfo(c.GetP4Info())
	if err != nil {
		return nil, err
	}
	program := share(c.GetP4DeviceConfig())
	p := &pipeline{
		config: program.config(c), program: program, info: in, dev: dev, log: log,
		tables: map[uint32]*tableState{}, profiles: map[uint32]*profileState{},
		meters: map[uint32]*versioned[*p4v1.MeterConfig]{}, valueSets: map[uint32][]*p4v1.ValueSetMember{},
		digests: map[uint32]*digester{}, digestByName: map[string]*digester{}, actionByName: map[string]*actionInfo{},
	}
	for id, d := range in.digests {
		p.digests[id] = newDigester(id, d, notify)
		p.digestByName[d.name] = p.digests[id]
	}
	for _, a := range in.actions {
		p.actionByName[a.name] = a
	}
	if p.sw, err = dev.Link(programOf(c.GetP4DeviceConfig()), p.onDigest); err != nil {
		return nil, failf(codes.InvalidArgument, "p4_device_config: %v", err)
	}
	if err := p.fitNames(); err != nil {
		return nil, err
	}
	if err := p.fill(); err != nil {
		return nil, err
	}
	return p, p.checkArrays()
}

// programOf returns the BMv2 JSON in a device config. Older controllers, among
// them the P4 tutorials, wrap it in the P4DeviceConfig message of PI, as field
// 3.
func programOf(config []byte) []byte {
	if bytes.HasPrefix(bytes.TrimSpace(config), []byte("{")) {
		return config
	}
	for rest := config; len(rest) > 0; {
		num, typ, tag := protowire.ConsumeTag(rest)
		if tag < 0 {
			break
		}
		if num == 3 && typ == protowire.BytesType {
			if b, n := protowire.ConsumeBytes(rest[tag:]); n >= 0 {
				return b
			}
		}
		n := protowire.ConsumeFieldValue(num, typ, rest[tag:])
		if n < 0 {
			break
		}
		rest = rest[tag+n:]
	}
	return config
}

// fill creates the state of tables and profiles and adds the program's own
// entries.
func (p *pipeline) fill() error {
	for id, pr := range p.info.profiles {
		p.profiles[id] = &profileState{info: pr, members: map[uint32]*member{}, groups: map[uint32]*group{}, oneShots: map[*group]bool{}}
	}
	for id := range p.info.meters {
		p.meters[id] = &versioned[*p4v1.MeterConfig]{}
	}
	for _, src := range p.info.proto.GetTables() {
		id := src.GetPreamble().GetId()
		t, err := p.newTable(p.info.tables[id])
		if err != nil {
			return err
		}
		p.tables[id] = t
		if err := p.fillTable(t, id); err != nil {
			return err
		}
	}
	return nil
}

// newTable checks that the program has the table described in P4Info.
func (p *pipeline) newTable(ti *tableInfo) (*tableState, error) {
	key, _, err := p.sw.Tables().Key(ti.name)
	if err != nil {
		return nil, infoError(ti.GetPreamble(), "the program has no such table")
	}
	if len(key) != len(ti.fields) {
		return nil, infoError(ti.GetPreamble(), "it has %d match fields, but %d in the program", len(ti.fields), len(key))
	}
	t := &tableState{info: ti, entries: map[string]*tableEntry{}, byHandle: map[dataplane.Handle]*tableEntry{}, constEntries: ti.GetIsConstTable()}
	for i, f := range key {
		if !compatible(ti.fields[i].match, f.Kind) {
			return nil, infoError(ti.GetPreamble(), "match field %s is %v, but %v in the program", ti.fields[i].name, ti.fields[i].match, f.Kind)
		}
		t.kinds = append(t.kinds, f.Kind)
	}
	return t, nil
}

// compatible reports whether the data plane's match kind fits P4Info's match
// type. It does not compare widths, because translated types have different
// ones.
func compatible(m configv1.MatchField_MatchType, k dataplane.MatchKind) bool {
	switch m {
	case configv1.MatchField_EXACT:
		return k == dataplane.MatchExact || k == dataplane.MatchValid
	case configv1.MatchField_LPM:
		return k == dataplane.MatchLPM
	case configv1.MatchField_RANGE:
		return k == dataplane.MatchRange
	case configv1.MatchField_TERNARY:
		return k == dataplane.MatchTernary
	}
	return k == dataplane.MatchOptional || k == dataplane.MatchTernary
}

// fillTable adds the program's default entry and entries to the table's state.
func (p *pipeline) fillTable(t *tableState, id uint32) error {
	t.initial = &p4v1.TableEntry{TableId: id, IsDefaultAction: true}
	if d, ok, err := p.sw.Tables().Default(t.info.name); err == nil && ok {
		if a := p.info.actionMessage(p.actionByName, d.Action); a != nil {
			t.initial.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
		}
	}
	t.def = t.initial
	t.counting, t.metering = p.executing(t)
	t.constDefault = t.info.GetConstDefaultActionId() != 0
	list, err := p.sw.Tables().Entries(t.info.name)
	if err != nil {
		return failf(codes.InvalidArgument, "%v", err)
	}
	// A P4Info without has_initial_entries comes from a compiler that predates
	// modifiable initial entries: its entries are const.
	t.constEntries = t.constEntries || len(list) > 0 && !t.info.GetHasInitialEntries()
	if !t.constEntries && len(list) > 0 {
		p.must(p.sw.Tables().Unlock(t.info.name))
	}
	highest := 0
	for _, e := range list {
		highest = max(highest, e.Priority)
	}
	for _, e := range list {
		m := &p4v1.TableEntry{TableId: id, IsConst: t.constEntries || e.Const}
		for i := range e.Match {
			if fm := fieldMatch(&t.info.fields[i], e.Match[i]); fm != nil {
				m.Match = append(m.Match, fm)
			}
		}
		if t.info.ranked {
			// The program's first entry has the smallest priority number in
			// BMv2 and needs the largest in P4Runtime.
			m.Priority = int32(highest + 1 - e.Priority)
		}
		if a := p.info.actionMessage(p.actionByName, e.Target.Action); a != nil {
			m.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
		}
		k, err := t.key(m)
		if err != nil {
			return recode(err, codes.InvalidArgument)
		}
		if t.constEntries {
			t.add(&tableEntry{text: textOf(m), constant: m.GetIsConst(), handle: e.Handle, id: k.id})
			continue
		}
		// Insert the entry again like an entry of a controller, so that its
		// priority is in the same form.
		p.must(p.sw.Tables().Delete(t.info.name, e.Handle))
		if err := p.insertEntry(nil, t, k, m); err != nil {
			return recode(err, codes.InvalidArgument)
		}
	}
	return nil
}

// executing returns the actions of a table that execute its direct counter and
// its direct meter; nil stands for all actions.
func (p *pipeline) executing(t *tableState) (counting, metering map[uint32]bool) {
	cfg := p.sw.Config()
	ids := func(list []int) map[uint32]bool {
		if list == nil {
			return nil
		}
		set := map[uint32]bool{}
		for _, a := range cfg.Actions {
			if slices.Contains(list, a.ID) && p.actionByName[a.Name] != nil {
				set[p.actionByName[a.Name].id] = true
			}
		}
		return set
	}
	for _, pl := range cfg.Pipelines {
		for _, src := range pl.Tables {
			if src.Name == t.info.name {
				return ids(src.CounterActions), ids(src.MeterActions)
			}
		}
	}
	return nil, nil
}

// checkArrays checks that the program has the arrays and digests described in
// P4Info.
func (p *pipeline) checkArrays() error {
	for _, r := range p.info.registers {
		size, width, err := p.sw.Registers().Info(r.name)
		switch {
		case err != nil:
			return failf(codes.InvalidArgument, "p4info: the program has no register %s", r.name)
		case int64(size) != r.size || width != r.width() && r.data.form != boolForm:
			return failf(codes.InvalidArgument, "p4info: register %s does not match the program, which has %d cells of %d bits", r.name, size, width)
		}
	}
	for _, c := range p.info.counters {
		if list, err := p.sw.Counters().ReadAll(c.GetPreamble().GetName()); err != nil || int64(len(list)) != c.GetSize() {
			return infoError(c.GetPreamble(), "the program has no such counter of %d cells", c.GetSize())
		}
	}
	for _, m := range p.info.meters {
		if m.size > 0 {
			if _, err := p.sw.Meters().Rates(m.name, int(m.size)-1); err != nil {
				return failf(codes.InvalidArgument, "p4info: meter %s: %v", m.name, err)
			}
		}
	}
	for _, d := range p.info.digests {
		if widths, err := p.sw.DigestWidths(d.name); err != nil || !d.data.fits(widths) {
			return failf(codes.InvalidArgument, "p4info: digest %s does not match the program", d.name)
		}
	}
	return nil
}

// fitNames sets the widths of types translated to strings. P4Info does not
// contain them, the program does. It must run before the first string is
// translated.
func (p *pipeline) fitNames() error {
	if len(p.info.translations) == 0 {
		return nil
	}
	for _, t := range p.info.tables {
		key, _, err := p.sw.Tables().Key(t.name)
		for i, f := range t.fields {
			if f.names != nil && err == nil && i < len(key) {
				f.names.fit(key[i].Width)
			}
		}
	}
	for _, a := range p.info.actions {
		widths, err := p.sw.ActionWidths(a.name)
		for i, f := range a.params {
			if f.names != nil && err == nil && i < len(widths) {
				f.names.fit(widths[i])
			}
		}
	}
	for _, r := range p.info.registers {
		if _, width, err := p.sw.Registers().Info(r.name); err == nil && r.data.names != nil {
			r.data.names.fit(width)
		}
	}
	for _, d := range p.info.digests {
		widths, err := p.sw.DigestWidths(d.name)
		for i, l := range d.data.leaves() {
			if l.names != nil && err == nil && i < len(widths) {
				l.names.fit(widths[i])
			}
		}
	}
	return p.info.setWidths()
}

// setWidths sets the width of every field, parameter and leaf of a translated
// type.
func (in *info) setWidths() error {
	for _, t := range in.translations {
		if t.width <= 0 || t.width > 64 {
			return failf(codes.InvalidArgument, "p4info: type %s is translated to strings and has %d bits in the program, want 1 to 64", t.typ, t.width)
		}
		for text, n := range t.numbers {
			if n > t.largest() {
				return failf(codes.InvalidArgument, "p4info: type %s: the number %d of %q takes more than %d bits", t.typ, n, text, t.width)
			}
		}
	}
	for _, t := range in.tables {
		setFieldWidths(t.fields)
	}
	for _, v := range in.valueSets {
		setFieldWidths(v.fields)
	}
	for _, a := range in.actions {
		setParamWidths(a.params)
	}
	for _, r := range in.registers {
		r.data.setWidths()
	}
	for _, d := range in.digests {
		d.data.setWidths()
	}
	for _, h := range []*packetHeader{in.packetIn, in.packetOut} {
		if h != nil {
			h.bits = setParamWidths(h.fields)
		}
	}
	return nil
}

func setFieldWidths(list []fieldInfo) {
	for i := range list {
		if list[i].names != nil {
			list[i].width = list[i].names.width
		}
	}
}

// setParamWidths sets the widths of translated parameters and returns the sum
// of all widths.
func setParamWidths(list []paramInfo) (sum int) {
	for i := range list {
		if list[i].names != nil {
			list[i].width = list[i].names.width
		}
		sum += list[i].width
	}
	return sum
}

func (t *dataType) setWidths() {
	for _, l := range t.leaves() {
		if l.names != nil {
			l.width = l.names.width
		}
	}
}
