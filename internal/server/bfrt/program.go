package server

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// A counted table reports its number of entries, a handled one their handles.
type (
	counted interface {
		usage(*request) (uint32, error)
	}
	handled interface {
		handle(*request, *wire.TableKey) (uint32, error)
	}
)

// newProgram links a program and creates its tables. It stores the switch of each
// pipe in switches.
func (s *Server) newProgram(x Program, switches []*dataplane.Switch) (*program, error) {
	p := &program{s: s, name: x.Name, info: x.Schema, binary: x.Binary, pipes: x.Pipes, tables: map[uint32]object{}, learners: map[string]*learner{}, hashes: map[string]*hashing{}}
	if p.name == "" {
		return nil, invalidf("the program has no name")
	}
	if len(p.pipes) == 0 {
		for i := range switches {
			p.pipes = append(p.pipes, i)
		}
	}
	var err error
	if p.schema, err = bfrt.Decode(x.Schema); err != nil {
		return nil, invalidf("program %s: its schema is not BfRt JSON: %v", p.name, err)
	}
	if p.config, err = bmv2.Load(x.Binary); err != nil {
		return nil, invalidf("program %s: its binary is not the JSON of p4lb compile: %v", p.name, err)
	}
	if chip := p.config.Chip(); chip != s.opts.Arch {
		return nil, invalidf("program %s is for %s, and the chip runs %s", p.name, ifElse(chip == "", "v1model", chip), s.opts.Arch)
	}
	for _, f := range p.schema.LearnFilters {
		l, err := s.newLearner(p, f)
		if err != nil {
			return nil, err
		}
		p.learners[l.list] = l
	}
	for _, pipe := range p.pipes {
		if pipe < 0 || pipe >= len(switches) {
			return nil, invalidf("program %s: there is no pipe %d", p.name, pipe)
		}
		if switches[pipe] != nil {
			return nil, invalidf("program %s: pipe %d has another program", p.name, pipe)
		}
		if switches[pipe], err = s.dev.Link(x.Binary, func(d dataplane.Digest) { p.learn(pipe, d) }); err != nil {
			return nil, invalidf("program %s: %v", p.name, err)
		}
	}
	profile := &wire.ForwardingPipelineConfig_Profile{ProfileName: "pipe", Context: []byte("{}"), Binary: x.Binary}
	for _, pipe := range p.pipes {
		profile.PipeScope = append(profile.PipeScope, uint32(pipe))
	}
	p.profiles = []*wire.ForwardingPipelineConfig_Profile{profile}
	if err := s.makeTables(p, switches); err != nil {
		return nil, err
	}
	return p, nil
}

// short returns the name that the data plane uses: without the pipe's name, unless
// the chip runs several programs.
func (p *program) short(name string) string {
	if p.config.Programs() > 1 {
		return name
	}
	if _, rest, ok := strings.Cut(name, "."); ok && strings.HasPrefix(name, p.prefix()) {
		return rest
	}
	return name
}

// prefix returns the pipe's name in the schema, followed by a dot.
func (p *program) prefix() string {
	for _, t := range p.schema.Tables {
		if i := strings.IndexByte(t.Name, '.'); i > 0 && strings.Count(t.Name, ".") > 1 {
			return t.Name[:i+1]
		}
	}
	return "pipe."
}

func (p *program) directMeter(table string) string {
	for _, m := range p.config.MeterArrays {
		if m.IsDirect && m.Binding == table {
			return m.Name
		}
	}
	return ""
}

// directFilter returns the name of the filter array that the table's actions index
// with the entry, or "" if there is none.
func (p *program) directFilter(table string, wred bool) string {
	t := p.matchTable(table)
	if t == nil {
		return ""
	}
	for _, a := range p.config.Actions {
		if !slices.Contains(t.ActionIDs, a.ID) {
			continue
		}
		for _, x := range a.Primitives {
			if x.Op != ifElse(wred, "wred_execute", "filter_execute") || len(x.Parameters) < 4 {
				continue
			}
			if x.Parameters[3].Type == bmv2.TypeField { // indexed by the entry, not by a parameter
				return x.Parameters[1].Name
			}
		}
	}
	return ""
}

func (p *program) matchTable(name string) *bmv2.Table {
	for _, g := range p.config.Pipelines {
		if t := lists.First(g.Tables, func(t *bmv2.Table) bool { return t.Name == name }); t != nil {
			return t
		}
	}
	return nil
}

// makers holds the tables created so far while the tables of a schema are being
// created.
type makers struct {
	s        *Server
	p        *program
	switches []*dataplane.Switch
}

// makeTables creates the tables of the schema. It creates tables on which others
// depend first: profiles, then groups.
func (s *Server) makeTables(p *program, switches []*dataplane.Switch) error {
	m := &makers{s, p, switches}
	rank := func(t *bfrt.Table) int {
		switch t.Type {
		case "Action":
			return 0
		case "Selector":
			return 1
		}
		return 2
	}
	list := slices.Clone(p.schema.Tables)
	slices.SortStableFunc(list, func(a, b *bfrt.Table) int { return rank(a) - rank(b) })
	for _, t := range list {
		o, err := m.make(t)
		if err != nil {
			return within(t.Name, err)
		}
		if p.tables[t.ID] != nil {
			return invalidf("program %s: two tables have the number %#x", p.name, t.ID)
		}
		p.tables[t.ID] = o
	}
	return nil
}

func (m *makers) make(t *bfrt.Table) (object, error) {
	base, p := newTable(m.s, m.p, t), m.p
	name := p.short(t.Name)
	switch t.Type {
	case "MatchAction_Direct", "MatchAction_Indirect", "MatchAction_Indirect_Selector":
		return m.match(base, name)
	case "Action":
		return m.profile(base, name)
	case "Selector":
		return m.selector(base)
	case "SelectorGetMember":
		for _, d := range t.DependsOn {
			if x, ok := p.tables[d].(*selector); ok && len(base.keys) == 2 && len(base.order) > 0 {
				return &getMember{base, x}, nil
			}
		}
	case "Register":
		o := &registerTable{table: base, cell: registerCell{name: name, parts: base.order}}
		if len(base.keys) == 1 && len(base.order) > 0 {
			return o, o.cell.measure(p)
		}
	case "Counter":
		o := &counterTable{table: base, name: name, bytes: base.field("$COUNTER_SPEC_BYTES"), packets: base.field("$COUNTER_SPEC_PKTS"), known: map[[2]int]dataplane.Count{}}
		list, err := m.anySwitch().Counters().ReadAll(name)
		o.size = len(list)
		if err == nil && len(base.keys) != 1 {
			err = invalidf("its key has %d fields", len(base.keys))
		}
		return o, err
	case "Meter":
		spec := newMeterSpec(base)
		if spec != nil && len(base.keys) == 1 {
			spec.name = name
			if _, err := m.anySwitch().Meters().Rates(name, 0); err != nil {
				return nil, err
			}
			return ratesTable(base, spec.apply, func(sw *dataplane.Switch, i int) error { return sw.Meters().Reset(name, i) }), nil
		}
	case "Lpf", "Wred":
		spec := newFilterSpec(base, ifElse(t.Type == "Lpf", "$LPF_SPEC_", "$WRED_SPEC_"), t.Type == "Wred")
		if spec != nil && len(base.keys) == 1 {
			spec.name = name
			if _, _, err := m.anySwitch().Filters().Info(name); err != nil {
				return nil, err
			}
			return ratesTable(base, spec.apply, spec.reset), nil
		}
	case "ParserValueSet":
		o := &valueSet{table: base, name: name, scope: wholeScope(p), rows: make([]map[string]*wire.TableKey, len(m.switches))}
		for i := range o.rows {
			o.rows[i] = map[string]*wire.TableKey{}
		}
		_, err := m.anySwitch().ValueSets().Get(name)
		return o, err
	case "PortMetadata":
		if len(base.keys) == 1 {
			return portMetadata(base), nil
		}
	case "SnapshotCfg", "SnapshotTrigger", "SnapshotData", "SnapshotLiveness":
		rt := newRecords(base)
		rt.accept = func(*record) error {
			return failf(unimplemented, "the switch does not support snapshots")
		}
		return rt, nil
	case "RegisterParam":
		return m.registerParam(base, name)
	case "DynHashAlgorithm", "DynHashConfigure", "DynHashCompute":
		return m.hash(base, name)
	default:
		return newRecords(base), nil
	}
	return nil, invalidf("it lacks the fields of tables of type %s", t.Type)
}

func (m *makers) anySwitch() *dataplane.Switch { return m.switches[m.p.pipes[0]] }

// actionsOf calls use with each action of a schema table and its name in the data
// plane.
func (m *makers) actionsOf(t *bfrt.Table, use func(*bfrt.ActionSpec, string)) error {
	for _, spec := range t.Actions() {
		// With several programs, names in the data plane begin with the pipe's
		// name.
		pipe, _, _ := strings.Cut(t.Name, ".")
		names := []string{spec.Name, m.p.short(spec.Name), pipe + "." + spec.Name}
		i := slices.IndexFunc(names, func(name string) bool {
			return slices.ContainsFunc(m.p.config.Actions, func(a *bmv2.Action) bool { return a.Name == name })
		})
		if i < 0 {
			return failf(notFound, "the program has no action %s", spec.Name)
		}
		use(spec, names[i])
	}
	return nil
}

func (m *makers) match(base *table, name string) (object, error) {
	t := &matchTable{table: base, name: name, actions: map[uint32]*entryAction{}, byName: map[string]*entryAction{}, scope: wholeScope(m.p)}
	fields, _, err := m.anySwitch().Tables().Key(name)
	if err != nil {
		return nil, err
	}
	for _, k := range base.keys {
		if k.name == "$MATCH_PRIORITY" {
			t.ordered = k.id
			continue
		}
		t.matched = append(t.matched, k)
	}
	if len(fields) != len(t.matched) {
		return nil, invalidf("its key has %d fields, but the program's has %d", len(t.matched), len(fields))
	}
	for i, f := range fields {
		if f.Width != t.matched[i].width && f.Kind != dataplane.MatchValid {
			return nil, invalidf("key field %s has %d bits, but the program's has %d", t.matched[i].name, t.matched[i].width, f.Width)
		}
	}
	if err := m.actionsOf(base.schema, t.use); err != nil {
		return nil, err
	}
	t.member, t.group = base.field("$ACTION_MEMBER_ID"), base.field("$SELECTOR_GROUP_ID")
	for _, d := range base.schema.DependsOn {
		switch o := m.p.tables[d].(type) {
		case *actionProfile:
			t.profile = o
		case *selector:
			t.select_, t.profile = o, o.profile
		}
	}
	if (t.member != nil) != (t.profile != nil) {
		return nil, invalidf("it has members but no profile")
	}
	t.ageing = ageing{ttl: base.field("$ENTRY_TTL"), hit: base.field("$ENTRY_HIT_STATE"), idle: map[entryAt]time.Duration{}, active: map[entryAt]bool{}, came: map[entryAt]time.Duration{}, from: make([]int, len(m.switches))}
	if t.ageing.ttl != nil {
		t.ageing.config = &wire.IdleTable{IdleTableMode: wire.IdleTable_IDLE_TABLE_NOTIFY_MODE}
	}
	for _, pipe := range m.p.pipes {
		if x := m.p.matchTable(name); x != nil && len(x.Entries) == 0 {
			if err := m.switches[pipe].Tables().Unlock(name); err != nil {
				return nil, err
			}
		}
	}
	return t, t.attach.find(t, m.p)
}

func (m *makers) profile(base *table, name string) (object, error) {
	t := &actionProfile{table: base, name: name, actions: map[uint32]*entryAction{}, byName: map[string]*entryAction{}}
	if _, err := m.anySwitch().Profiles().Members(name); err != nil {
		return nil, err
	}
	if len(base.keys) != 1 {
		return nil, invalidf("its key has %d fields", len(base.keys))
	}
	err := m.actionsOf(base.schema, func(spec *bfrt.ActionSpec, name string) {
		a := newAction(spec, name, spec.Data)
		t.actions[a.id], t.byName[a.name] = a, a
	})
	for range m.switches {
		t.handles = append(t.handles, map[uint32]dataplane.Handle{})
		t.calls = append(t.calls, map[uint32]dataplane.ActionCall{})
		t.copies = append(t.copies, map[uint32][]dataplane.Handle{})
	}
	return t, err
}

func (m *makers) selector(base *table) (object, error) {
	t := &selector{
		table: base, members: base.field("$ACTION_MEMBER_ID"), status: base.field("$ACTION_MEMBER_STATUS"),
		size: base.field("$MAX_GROUP_SIZE"), offset: base.field("$ADT_OFFSET"),
	}
	for _, d := range base.schema.DependsOn {
		if o, ok := m.p.tables[d].(*actionProfile); ok {
			t.profile = o
		}
	}
	if t.profile == nil || t.members == nil || t.status == nil || len(base.keys) != 1 {
		return nil, invalidf("it lacks the fields of tables of groups")
	}
	for _, pipeline := range m.p.config.Pipelines {
		for _, a := range pipeline.ActionProfiles {
			if a.Name == t.profile.name && a.Selector != nil {
				t.most = a.Selector.MaxGroupSize
			}
		}
	}
	for range m.switches {
		t.groups = append(t.groups, map[uint32]*selectGroup{})
	}
	return t, nil
}

// registerParam creates the table of a register parameter, which is a register of
// one cell.
func (m *makers) registerParam(base *table, name string) (object, error) {
	cell := registerCell{name: name, parts: base.order}
	if err := cell.measure(m.p); err != nil {
		return nil, err
	}
	rt := newRecords(base)
	rt.apply = func(r *request, before, after *record) error {
		pipes, err := r.pipesOf(m.p)
		if err != nil {
			return err
		}
		for _, pipe := range pipes {
			if after == nil {
				cell.reset(base.sw(pipe), 0)
				continue
			}
			v := cmp.Or(after.fields[base.order[0].id], base.order[0].preset)
			if err := cell.set(base.sw(pipe), 0, base.order[0], v.GetStream()); err != nil {
				return err
			}
		}
		return nil
	}
	return rt, nil
}
