package p4rt

import (
	"fmt"
	"maps"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/grpc/codes"
)

// The names of the two packet I/O headers in P4Info.
const (
	packetInName  = "packet_in"
	packetOutName = "packet_out"
)

// An info is a P4Info indexed by id. Names link its objects to the objects of
// the program.
type info struct {
	proto     *configv1.P4Info
	actions   map[uint32]*actionInfo
	tables    map[uint32]*tableInfo
	profiles  map[uint32]*profileInfo
	counters  map[uint32]*configv1.Counter
	meters    map[uint32]*meterInfo
	registers map[uint32]*registerInfo
	valueSets map[uint32]*valueSetInfo
	digests   map[uint32]*digestInfo
	// Direct resources by id, with the id of their table.
	directCounters map[uint32]uint32
	directMeters   map[uint32]uint32

	packetIn, packetOut *packetHeader // nil if the program has none

	translations translations
}

// An actionInfo is an action with its parameters in the program's order.
type actionInfo struct {
	id     uint32
	name   string
	params []paramInfo
}

type paramInfo struct {
	id    uint32
	name  string
	width int
	names *translation // nil: not translated
}

// A fieldInfo is a field in the key of a table or value set.
type fieldInfo struct {
	id    uint32
	name  string
	match configv1.MatchField_MatchType
	width int
	names *translation // nil: not translated
}

// A tableInfo is a table with its key in the program's order.
type tableInfo struct {
	*configv1.Table
	name    string
	fields  []fieldInfo
	actions map[uint32]configv1.ActionRef_Scope
	profile *profileInfo // nil for a direct table
	// ranked is set if entries have a priority.
	ranked  bool
	counter bool
	meter   *meterInfo // direct meter
}

type profileInfo struct {
	*configv1.ActionProfile
	name string
	// actions are the actions that members may call: those common to all tables
	// of the profile.
	actions map[uint32]bool
}

type meterInfo struct {
	name string
	size int64 // 0: direct
	spec *configv1.MeterSpec
}

type registerInfo struct {
	name string
	size int64
	data *dataType
}

type valueSetInfo struct {
	name   string
	fields []fieldInfo
	size   int
}

type digestInfo struct {
	name string
	data *dataType
}

// newInfo indexes a P4Info. It rejects duplicate ids, dangling references, and
// types that P4Runtime messages cannot carry.
func newInfo(p *configv1.P4Info) (*info, error) {
	in := &info{
		proto: p, actions: map[uint32]*actionInfo{}, tables: map[uint32]*tableInfo{},
		profiles: map[uint32]*profileInfo{}, counters: map[uint32]*configv1.Counter{},
		meters: map[uint32]*meterInfo{}, registers: map[uint32]*registerInfo{},
		valueSets: map[uint32]*valueSetInfo{}, digests: map[uint32]*digestInfo{},
		directCounters: map[uint32]uint32{}, directMeters: map[uint32]uint32{},
		translations: translations{},
	}
	if err := checkIDs(p); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		in.addActions, in.addProfiles, in.addArrays, in.addTables, in.addDirect, in.addSets, in.addPacketHeaders,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func checkIDs(p *configv1.P4Info) error {
	seen := map[uint32]string{}
	for _, pre := range preambles(p) {
		other, twice := seen[pre.GetId()]
		switch {
		case pre.GetId() == 0:
			return infoError(pre, "the id is 0")
		case twice:
			return infoError(pre, "its id %#x is also used by %s", pre.GetId(), other)
		}
		seen[pre.GetId()] = pre.GetName()
	}
	return nil
}

func infoError(pre *configv1.Preamble, format string, args ...any) error {
	return failf(codes.InvalidArgument, "p4info: %s: %s", pre.GetName(), fmt.Sprintf(format, args...))
}

// maxWidth is the largest supported width of a number in bits.
const maxWidth = 1 << 16

func checkWidth(pre *configv1.Preamble, what, name string, width int) error {
	switch {
	case width == 0:
		return infoError(pre, "%s %s has neither a width nor a type that is translated to strings", what, name)
	case width < 0 || width > maxWidth:
		return infoError(pre, "%s %s has %d bits, want 1 to %d", what, name, width, maxWidth)
	}
	return nil
}

// param checks a parameter or a metadata field. The width of one translated to
// strings is set later, by setWidths.
func (in *info) param(pre *configv1.Preamble, what string, p paramInfo) (paramInfo, error) {
	if p.names != nil {
		p.width = 0
		return p, nil
	}
	return p, checkWidth(pre, what, p.name, p.width)
}

func (in *info) addActions() error {
	for _, a := range in.proto.GetActions() {
		act := &actionInfo{id: a.GetPreamble().GetId(), name: a.GetPreamble().GetName()}
		for _, p := range a.GetParams() {
			param, err := in.param(a.GetPreamble(), "parameter", paramInfo{p.GetId(), p.GetName(), int(p.GetBitwidth()), in.names(p.GetTypeName())})
			if err != nil {
				return err
			}
			act.params = append(act.params, param)
		}
		in.actions[act.id] = act
	}
	return nil
}

func (in *info) addProfiles() error {
	for _, p := range in.proto.GetActionProfiles() {
		in.profiles[p.GetPreamble().GetId()] = &profileInfo{ActionProfile: p, name: p.GetPreamble().GetName()}
	}
	return nil
}

func (in *info) addTables() error {
	for _, t := range in.proto.GetTables() {
		tb := &tableInfo{Table: t, name: t.GetPreamble().GetName(), actions: map[uint32]configv1.ActionRef_Scope{}}
		var err error
		if tb.fields, tb.ranked, err = in.newFields(t.GetPreamble(), t.GetMatchFields()); err != nil {
			return err
		}
		for _, ref := range t.GetActionRefs() {
			if in.actions[ref.GetId()] == nil {
				return infoError(t.GetPreamble(), "there is no action %#x", ref.GetId())
			}
			tb.actions[ref.GetId()] = ref.GetScope()
		}
		if id := t.GetImplementationId(); id != 0 {
			if tb.profile = in.profiles[id]; tb.profile == nil {
				return infoError(t.GetPreamble(), "there is no action profile %#x", id)
			}
			tb.profile.allow(tb.actions)
		}
		in.tables[t.GetPreamble().GetId()] = tb
	}
	return nil
}

// allow removes the profile's actions that a table does not have.
func (p *profileInfo) allow(actions map[uint32]configv1.ActionRef_Scope) {
	if p.actions == nil {
		p.actions = map[uint32]bool{}
		for id := range actions {
			p.actions[id] = true
		}
	}
	maps.DeleteFunc(p.actions, func(id uint32, _ bool) bool { _, ok := actions[id]; return !ok })
}

// newFields reads a key. ranked reports whether several entries can match one
// packet.
func (in *info) newFields(pre *configv1.Preamble, src []*configv1.MatchField) (fields []fieldInfo, ranked bool, err error) {
	for _, f := range src {
		fd := fieldInfo{f.GetId(), f.GetName(), f.GetMatchType(), int(f.GetBitwidth()), in.names(f.GetTypeName())}
		switch fd.match {
		case configv1.MatchField_EXACT, configv1.MatchField_LPM:
		case configv1.MatchField_TERNARY, configv1.MatchField_RANGE, configv1.MatchField_OPTIONAL:
			ranked = true
		default:
			return nil, false, infoError(pre, "match field %s: this target does not match %q", fd.name, f.GetOtherMatchType())
		}
		if fd.names != nil {
			if fd.match != configv1.MatchField_EXACT && fd.match != configv1.MatchField_OPTIONAL {
				return nil, false, infoError(pre, "match field %s is translated to strings, which support exact and optional matches, not %v", fd.name, fd.match)
			}
			fd.width = 0
		} else if err := checkWidth(pre, "match field", fd.name, fd.width); err != nil {
			return nil, false, err
		}
		fields = append(fields, fd)
	}
	return fields, ranked, nil
}

func (in *info) addArrays() error {
	for _, c := range in.proto.GetCounters() {
		in.counters[c.GetPreamble().GetId()] = c
	}
	for _, m := range in.proto.GetMeters() {
		in.meters[m.GetPreamble().GetId()] = &meterInfo{m.GetPreamble().GetName(), m.GetSize(), m.GetSpec()}
	}
	for _, r := range in.proto.GetRegisters() {
		t, err := newDataType(in.proto.GetTypeInfo(), in.translations, r.GetTypeSpec())
		if err != nil {
			return infoError(r.GetPreamble(), "%v", err)
		}
		in.registers[r.GetPreamble().GetId()] = &registerInfo{r.GetPreamble().GetName(), int64(r.GetSize()), t}
	}
	return nil
}

func (in *info) addDirect() error {
	for _, c := range in.proto.GetDirectCounters() {
		t := in.tables[c.GetDirectTableId()]
		if t == nil {
			return infoError(c.GetPreamble(), "there is no table %#x", c.GetDirectTableId())
		}
		t.counter = true
		in.directCounters[c.GetPreamble().GetId()] = c.GetDirectTableId()
	}
	for _, m := range in.proto.GetDirectMeters() {
		t := in.tables[m.GetDirectTableId()]
		if t == nil {
			return infoError(m.GetPreamble(), "there is no table %#x", m.GetDirectTableId())
		}
		t.meter = &meterInfo{name: m.GetPreamble().GetName(), spec: m.GetSpec()}
		in.directMeters[m.GetPreamble().GetId()] = m.GetDirectTableId()
	}
	return nil
}

func (in *info) addSets() error {
	for _, v := range in.proto.GetValueSets() {
		fields, _, err := in.newFields(v.GetPreamble(), v.GetMatch())
		if err != nil {
			return err
		}
		in.valueSets[v.GetPreamble().GetId()] = &valueSetInfo{v.GetPreamble().GetName(), fields, int(v.GetSize())}
	}
	for _, d := range in.proto.GetDigests() {
		t, err := newDataType(in.proto.GetTypeInfo(), in.translations, d.GetTypeSpec())
		if err != nil {
			return infoError(d.GetPreamble(), "%v", err)
		}
		in.digests[d.GetPreamble().GetId()] = &digestInfo{d.GetPreamble().GetName(), t}
	}
	return nil
}

func (in *info) addPacketHeaders() error {
	for _, m := range in.proto.GetControllerPacketMetadata() {
		h := &packetHeader{}
		for _, f := range m.GetMetadata() {
			field, err := in.param(m.GetPreamble(), "metadata", paramInfo{f.GetId(), f.GetName(), int(f.GetBitwidth()), in.names(f.GetTypeName())})
			if err != nil {
				return err
			}
			h.fields = append(h.fields, field)
			h.bits += int(f.GetBitwidth())
		}
		switch m.GetPreamble().GetName() {
		case packetInName:
			in.packetIn = h
		case packetOutName:
			in.packetOut = h
		}
	}
	return nil
}

// names returns the translation of a type, or nil if its values are numbers.
func (in *info) names(typ *configv1.P4NamedType) *translation {
	return in.translations.of(in.proto.GetTypeInfo(), typ.GetName())
}

// A packetHeader is the header of packets to and from the controllers. Between
// switch and CPU port it is part of the packet; in P4Runtime it is a list of
// metadata.
type packetHeader struct {
	fields []paramInfo
	bits   int
}

// preambles returns the preambles of all objects that entities refer to.
func preambles(info *configv1.P4Info) []*configv1.Preamble {
	var list []*configv1.Preamble
	list = appendPreambles(list, info.GetTables())
	list = appendPreambles(list, info.GetActions())
	list = appendPreambles(list, info.GetActionProfiles())
	list = appendPreambles(list, info.GetCounters())
	list = appendPreambles(list, info.GetDirectCounters())
	list = appendPreambles(list, info.GetMeters())
	list = appendPreambles(list, info.GetDirectMeters())
	list = appendPreambles(list, info.GetValueSets())
	list = appendPreambles(list, info.GetRegisters())
	return appendPreambles(list, info.GetDigests())
}

func appendPreambles[T interface{ GetPreamble() *configv1.Preamble }](list []*configv1.Preamble, objects []T) []*configv1.Preamble {
	for _, o := range objects {
		list = append(list, o.GetPreamble())
	}
	return list
}

// width returns the number of bits of a cell.
func (r *registerInfo) width() int { return r.data.bits() }
