package describe

import (
	"fmt"
	"math"
	"slices"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/p4/names"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
)

// addExtern adds the tables of an extern object.
func (b *schemaGen) addExtern(s *site) {
	table := func(kind uint32, typ string, size int64) *bfrt.Table {
		t := bfrt.NewTable(b.full(s.name), b.id(kind, s.name), typ, size)
		b.out.Tables = append(b.out.Tables, t)
		return t
	}
	notes := func() []bfrt.Annotation { return notesOf(b.annotations(s.notes)) }
	switch s.extern().Name {
	case "ActionProfile":
		b.addProfile(s, s.name, b.size(s))
	case "ActionSelector":
		b.addSelector(s)
	case "Counter":
		t := table(bfrt.Counter, "Counter", b.size(s)).Notes(notes())
		t.AddKey(bfrt.CounterIndex, "$COUNTER_INDEX", true, "Exact", bfrt.Plain("uint32"))
		t.Data, t.Operations = counterData(s), []string{"Sync"}
	case "Meter":
		t := table(bfrt.Meter, "Meter", b.size(s))
		t.AddKey(bfrt.MeterIndex, "$METER_INDEX", true, "Exact", bfrt.Plain("uint32"))
		t.Data, t.Attributes = meterData(s), []string{"MeterByteCountAdjust"}
	case "Register":
		t := table(bfrt.Register, "Register", b.size(s))
		t.AddKey(bfrt.RegisterIndex, "$REGISTER_INDEX", true, "Exact", bfrt.Plain("uint32"))
		t.Data, t.Operations = b.registerData(s, 1), []string{"Sync"}
	case "RegisterParam":
		t := table(bfrt.RegisterParam, "RegisterParam", 1).Notes(notes())
		for _, f := range b.fields(s.extern().Args[0], "", 1) {
			if n := types.Number(s.arg("initial_value")); n != nil {
				f.Type.Default = n.Int64()
			}
			f.Name = "value"
			t.Data = append(t.Data, bfrt.Mandatory(f))
		}
		b.addReaders(t, s)
	case "Lpf":
		t := table(bfrt.Lpf, "Lpf", b.size(s)).Notes(notes())
		t.AddKey(bfrt.LpfIndex, "$LPF_INDEX", true, "Exact", bfrt.Plain("uint32"))
		t.Data = lpfData()
	case "Wred":
		t := table(bfrt.Wred, "Wred", b.size(s)).Notes(notes())
		t.AddKey(bfrt.WredIndex, "$WRED_INDEX", true, "Exact", bfrt.Plain("uint32"))
		t.Data = wredData()
	case "Digest":
		if len(b.callsOf(s, "pack")) == 1 {
			b.out.LearnFilters = append(b.out.LearnFilters, &bfrt.LearnFilter{
				Name: b.full(s.name), ID: b.id(bfrt.Digest, s.name), Annotations: append([]bfrt.Annotation{}, notes()...), Fields: b.fields(s.extern().Args[0], "", 1),
			})
		}
	case "Hash":
		b.addHash(s)
	}
}

// addProfile adds the table of an action profile's members. Its actions are the
// actions of the first table, by name, that uses the profile.
func (b *schemaGen) addProfile(s *site, name string, size int64) {
	t := bfrt.NewTable(b.full(name), b.id(bfrt.ActionProfile, name), "Action", size).Notes(notesOf(b.annotations(s.notes)))
	t.AddKey(bfrt.ActionMemberID, "$ACTION_MEMBER_ID", true, "Exact", bfrt.Plain("uint32"))
	specs := []*bfrt.ActionSpec{}
	if users := slices.Sorted(slices.Values(b.profiles[s.name])); len(users) > 0 {
		if user := b.out.Table(b.full(users[0])); user != nil {
			user.Needs(t.ID)
		}
		for _, info := range b.infoGen.out.Tables {
			if info.Preamble.Name == users[0] {
				specs = b.actionSpecs(info)
			}
		}
	}
	t.ActionSpecs = &specs
	b.out.Tables = append(b.out.Tables, t)
}

// defaultGroup is the default for the size of groups.
const defaultGroup = 120

func (b *schemaGen) addSelector(s *site) {
	profile, name := profileOf(s), selectorName(s)
	group, groups := int64(defaultGroup), int64(0)
	if profile == s {
		groups = b.size(s)
		b.addProfile(s, s.name, groups)
	} else {
		group, groups = number(s, "max_group_size"), number(s, "num_groups")
	}
	notes := notesOf(b.annotations(s.notes))
	t := bfrt.NewTable(b.full(name), b.id(bfrt.ActionSelector, name), "Selector", groups).Notes(notes)
	t.AddKey(bfrt.SelectorGroupID, "$SELECTOR_GROUP_ID", true, "Exact", bfrt.Plain("uint32"))
	t.Data = append(t.Data,
		bfrt.Optional(bfrt.NewField(bfrt.ActionMemberID, "$ACTION_MEMBER_ID", bfrt.Plain("uint32")).Many()),
		bfrt.Optional(bfrt.NewField(bfrt.ActionMemberStatus, "$ACTION_MEMBER_STATUS", bfrt.Plain("bool")).Many()),
		bfrt.Optional(bfrt.NewField(bfrt.MaxGroupSize, "$MAX_GROUP_SIZE", bfrt.Plain("uint32").With(group))),
		bfrt.Optional(bfrt.NewField(bfrt.AdtOffset, "$ADT_OFFSET", bfrt.Plain("uint32").With(uint32(0xdeadbeef)))),
	)
	t.Needs(b.id(bfrt.ActionProfile, profile.name))
	member := bfrt.NewTable(b.full(name)+"_get_member", bfrt.ID(bfrt.SelectorGetMember, t.ID), "SelectorGetMember", 1).Notes(notes)
	member.AddKey(bfrt.GroupAsked, "$SELECTOR_GROUP_ID", true, "Exact", bfrt.Plain("uint64"))
	member.AddKey(bfrt.HashValue, "hash_value", true, "Exact", bfrt.Plain("uint64"))
	member.Data = append(member.Data, bfrt.Optional(bfrt.NewField(bfrt.MemberOfGroup, "$ACTION_MEMBER_ID", bfrt.Plain("uint64"))))
	member.Needs(t.ID)
	b.out.Tables = append(b.out.Tables, t, member)
}

func number(s *site, name string) int64 {
	if n := types.Number(s.arg(name)); n != nil && n.IsInt64() {
		return n.Int64()
	}
	return 0
}

func counterData(s *site) []*bfrt.Data {
	var list []*bfrt.Data
	unit := unitOf(s)
	if unit != "packets" {
		list = append(list, bfrt.Optional(bfrt.NewField(bfrt.CounterBytes, "$COUNTER_SPEC_BYTES", bfrt.Plain("uint64").With(0))))
	}
	if unit != "bytes" {
		list = append(list, bfrt.Optional(bfrt.NewField(bfrt.CounterPkts, "$COUNTER_SPEC_PKTS", bfrt.Plain("uint64").With(0))))
	}
	return list
}

// meterData returns the fields for rates and bursts. They are optional: without
// values, all packets are green.
func meterData(s *site) []*bfrt.Data {
	first, rate, burst := uint32(bfrt.MeterCIRKbps), "KBPS", "KBITS"
	if unitOf(s) == "packets" {
		first, rate, burst = bfrt.MeterCIRPps, "PPS", "PKTS"
	}
	var list []*bfrt.Data
	for i, name := range []string{"CIR_" + rate, "PIR_" + rate, "CBS_" + burst, "PBS_" + burst} {
		list = append(list, bfrt.Optional(bfrt.NewField(first+uint32(i), "$METER_SPEC_"+name, bfrt.Plain("uint64").With(uint64(math.MaxUint64)))))
	}
	return list
}

func lpfData() []*bfrt.Data {
	return []*bfrt.Data{
		bfrt.Mandatory(bfrt.NewField(bfrt.LpfType, "$LPF_SPEC_TYPE", bfrt.OneOf("RATE", "SAMPLE"))),
		bfrt.Mandatory(bfrt.NewField(bfrt.LpfGain, "$LPF_SPEC_GAIN_TIME_CONSTANT_NS", bfrt.Plain("float"))),
		bfrt.Mandatory(bfrt.NewField(bfrt.LpfDecay, "$LPF_SPEC_DECAY_TIME_CONSTANT_NS", bfrt.Plain("float"))),
		bfrt.Mandatory(bfrt.NewField(bfrt.LpfScale, "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", bfrt.Plain("uint32"))),
	}
}

func wredData() []*bfrt.Data {
	return []*bfrt.Data{
		bfrt.Mandatory(bfrt.NewField(bfrt.WredTime, "$WRED_SPEC_TIME_CONSTANT_NS", bfrt.Plain("float"))),
		bfrt.Mandatory(bfrt.NewField(bfrt.WredMin, "$WRED_SPEC_MIN_THRESH_CELLS", bfrt.Plain("uint32"))),
		bfrt.Mandatory(bfrt.NewField(bfrt.WredMax, "$WRED_SPEC_MAX_THRESH_CELLS", bfrt.Plain("uint32"))),
		bfrt.Mandatory(bfrt.NewField(bfrt.WredProbability, "$WRED_SPEC_MAX_PROBABILITY", bfrt.Plain("float"))),
	}
}

// registerData returns the fields of a register's cell. Their names begin with the
// register's name.
func (b *schemaGen) registerData(s *site, first uint32) []*bfrt.Data {
	var list []*bfrt.Data
	for _, f := range b.fields(s.extern().Args[0], s.name+".", first) {
		f.Annotations = append(f.Annotations, bfrt.Annotation{Name: "$bfrt_field_class", Value: "register_data"})
		list = append(list, bfrt.Mandatory(f))
	}
	return list
}

// fields returns the numbers in a value of type t. The fields of a struct keep
// their names; others are called f1, f2 and so on.
func (b *schemaGen) fields(t types.Type, prefix string, first uint32) []*bfrt.Field {
	list := []*bfrt.Field{}
	add := func(name string, t types.Type) {
		width, ok := scalarWidth(t)
		if !ok {
			width = bitwidth(t)
		}
		typ := bfrt.Bytes(width)
		if plain(t) == types.Bool {
			typ = bfrt.Plain("bool").With(true)
		}
		list = append(list, bfrt.NewField(first+uint32(len(list)), prefix+name, typ))
	}
	switch t := types.Underlying(t).(type) {
	case *types.Struct:
		if t.Kind == syntax.StructKindHeader {
			for _, f := range flatHeader(t) {
				add(f.name, f.typ)
			}
			break
		}
		for _, f := range t.Fields {
			add(fieldLabel(f), f.Type)
		}
	case *types.Tuple:
		for i, e := range t.Elems {
			add(fmt.Sprintf("f%d", first+uint32(i)), e)
		}
	default:
		add("f1", t)
	}
	return list
}

// callsOf lists the calls of a method of an object. The control plane can change an
// object that is called in one place only.
func (b *schemaGen) callsOf(s *site, method string) []*types.Call {
	if b.calls == nil {
		b.calls = map[methodOf][]*types.Call{}
		for _, c := range b.info.Calls {
			if m, ok := b.methodOf(c); ok {
				b.calls[m] = append(b.calls[m], c)
			}
		}
	}
	return b.calls[methodOf{s.at, method}]
}

// methodOf returns the method of an object that a call invokes.
func (b *schemaGen) methodOf(c *types.Call) (m methodOf, ok bool) {
	n, ok := c.Recv.(*syntax.Name)
	if !ok || c.Method == nil || b.info.Uses[n] == nil {
		return m, false
	}
	return methodOf{b.info.Uses[n].Decl, c.Method.Name}, true
}

// addReaders records which tables read the parameter of a RegisterAction: the
// schema makes the parameter depend on them.
func (b *schemaGen) addReaders(t *bfrt.Table, param *site) {
	if b.readers == nil {
		b.readers = map[syntax.Node][]*site{}
		for _, action := range slices.Concat(b.sites["RegisterAction"], b.sites["DirectRegisterAction"]) {
			for call := range syntax.Each[*syntax.CallExpr](action.at) {
				if c := b.info.Calls[call]; c != nil {
					if m, ok := b.methodOf(c); ok && m.method == "read" {
						b.readers[m.decl] = append(b.readers[m.decl], action)
					}
				}
			}
		}
	}
	for i, action := range b.readers[param.at] {
		register, ok := action.args[0].(*site)
		switch {
		case !ok || i > 0 && b.readers[param.at][i-1] == action: // read twice by one action
		case action.extern().Name == "RegisterAction":
			t.Needs(b.id(bfrt.Register, register.name))
		default:
			t.Needs(b.owners[register])
		}
	}
}

// A hashPart is one field of a hash's input.
type hashPart struct {
	name     string
	width    int
	constant bool
}

// addHash adds the tables of a hash that is computed in one place: for its
// algorithm, for the order of its inputs, and for computing the hash of an input.
func (b *schemaGen) addHash(s *site) {
	calls := b.callsOf(s, "get")
	if len(calls) != 1 {
		return
	}
	name, hash := b.full(s.name), hashName(b.full(s.name))
	notes := notesOf(b.annotations(s.notes))
	config := bfrt.NewTable(name+".configure", bfrt.ID(bfrt.HashConfigure, hash), "DynHashConfigure", 1).Notes(notes)
	compute := bfrt.NewTable(name+".compute", bfrt.ID(bfrt.HashCompute, hash), "DynHashCompute", 1).Notes(notes)
	constants := 0
	for i, p := range b.hashParts(calls[0].Args[0]) {
		if p.constant {
			config.Data = append(config.Data, bfrt.HashConfigured(uint32(i+1), fmt.Sprintf("constant%d_%d_%s", constants, p.width, p.name), p.width, bfrt.Annotation{Name: "bfrt_p4_constant"}))
			constants++
			continue
		}
		config.Data = append(config.Data, bfrt.HashConfigured(uint32(i+1), p.name, p.width))
		compute.AddKey(uint32(i+1-constants), p.name, false, "Exact", bfrt.Bytes(p.width))
	}
	width, _ := scalarWidth(s.extern().Args[0])
	compute.Data = append(compute.Data, bfrt.ReadOnly(bfrt.NewField(bfrt.HashValue, "hash_value", bfrt.Bytes(width))))
	compute.ReadOnly = true
	compute.Needs(config.ID)
	b.out.Tables = append(b.out.Tables, bfrt.HashAlgorithmOf(name, hash).Notes(notes), config, compute)
}

// hashParts splits the input of a hash into fields. The control plane can name
// fields only if the input is a list.
func (b *schemaGen) hashParts(x syntax.Expr) []hashPart {
	list, ok := syntax.Unparen(x).(*syntax.ListExpr)
	if !ok {
		return nil
	}
	var parts []hashPart
	var add func(x syntax.Expr)
	add = func(x syntax.Expr) {
		x = syntax.Unparen(x)
		if c, ok := x.(*syntax.BinaryExpr); ok && c.Op == syntax.Concat {
			add(c.X)
			add(c.Y)
			return
		}
		tv := b.info.Types[x]
		width, _ := scalarWidth(tv.Type)
		name := names.Path(b.info, x)
		if name == "" {
			name = syntax.String(x)
		}
		if tv.Value != nil {
			name = fmt.Sprintf("%dw%v", width, tv.Value)
		}
		parts = append(parts, hashPart{name: name, width: width, constant: tv.Value != nil})
	}
	for _, el := range list.Elems {
		add(el)
	}
	return parts
}
