package server

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func newTable(s *Server, p *program, schema *bfrt.Table) *table {
	keys := lists.Map(schema.Key, func(f *bfrt.Field) keyField { return keyField{f.ID, f.Name, f.MatchType, f.Bits()} })
	t := &table{s: s, program: p, schema: schema, keys: keys, fields: map[uint32]*datum{}}
	for _, d := range schema.Data {
		for _, f := range dataOf(d) {
			t.fields[f.id] = f
			t.order = append(t.order, f)
		}
	}
	return t
}

func (t *table) head() *table { return t }

// sw returns the switch of a pipe.
func (t *table) sw(pipe int) *dataplane.Switch { return t.s.pipes[pipe] }

// field returns the field with a name, nil if there is none.
func (t *table) field(name string) *datum {
	return lists.First(t.order, func(d *datum) bool { return d.name == name })
}

// A filter selects data of a read; nil selects all.
type filter struct {
	action uint32
	fields map[uint32]bool
}

func (f *filter) has(id uint32) bool { return f == nil || len(f.fields) == 0 || f.fields[id] }

// asked returns the pipes and the data that a read requests.
func (t *table) asked(r *request, e *wire.TableEntry) (pipes []int, want *filter, err error) {
	pipes, err = r.pipesOf(t.program)
	return pipes, t.wanted(e.GetData()), err
}

// wanted returns the fields that a read requests.
func (t *table) wanted(d *wire.TableData) *filter {
	if d.GetActionId() == 0 && len(d.GetFields()) == 0 {
		return nil
	}
	f := &filter{action: d.GetActionId(), fields: map[uint32]bool{}}
	for _, x := range d.GetFields() {
		f.fields[x.GetFieldId()] = true
	}
	return f
}

// entryData is the data in an update of a match table or an action profile.
type entryData struct {
	action *entryAction
	params [][]byte // parameters of action; missing ones are nil
	member *uint32
	group  *uint32
	ttl    *uint32
	hit    *string
	rest   []*wire.DataField // counts, rates and registers of the entry
}

// leads reports whether the data contain an action, a member or a group.
func (d *entryData) leads() bool { return d.action != nil || d.member != nil || d.group != nil }

// complete sets missing parameters of the action to 0, as the SDE does.
func (d *entryData) complete() {
	for i, p := range d.params {
		if p == nil {
			d.params[i] = make([]byte, (d.action.params[i].width+7)/8)
		}
	}
}

// keep copies missing parameters from the previous action of the entry, if it is the
// same action.
func (d *entryData) keep(before *dataplane.Target) {
	if d.action == nil || before.Kind != dataplane.TargetAction || before.Action.Name != d.action.name {
		return
	}
	for i := range d.params {
		if d.params[i] == nil {
			d.params[i] = before.Action.Params[i]
		}
	}
}

// data parses the data of an update. Each field must exist, occur once and have a
// value of its type.
func (t *table) data(m *wire.TableData, actions map[uint32]*entryAction) (*entryData, error) {
	d := &entryData{}
	if id := m.GetActionId(); id != 0 {
		if d.action = actions[id]; d.action == nil {
			return nil, failf(notFound, "there is no action %d", id)
		}
		d.params = make([][]byte, len(d.action.params))
	}
	for i, x := range m.GetFields() {
		for _, y := range m.GetFields()[:i] {
			if x.GetFieldId() == y.GetFieldId() {
				return nil, invalidf("field %d occurs twice", x.GetFieldId())
			}
		}
		if d.action != nil {
			if j := slices.IndexFunc(d.action.params, func(p *datum) bool { return p.id == x.GetFieldId() }); j >= 0 {
				if err := d.action.params[j].check(x); err != nil {
					return nil, err
				}
				d.params[j] = x.GetStream()
				continue
			}
		}
		f := t.fields[x.GetFieldId()]
		switch {
		case f == nil && d.action != nil:
			return nil, failf(notFound, "action %s has no field %d", d.action.name, x.GetFieldId())
		case f == nil:
			return nil, failf(notFound, "there is no field %d", x.GetFieldId())
		case f.readOnly:
			return nil, invalidf("field %s is read only", f.name)
		}
		if err := f.check(x); err != nil {
			return nil, err
		}
		n := uint32(uintOf(x.GetStream()))
		switch f.name {
		case "$ACTION_MEMBER_ID":
			d.member = &n
		case "$SELECTOR_GROUP_ID":
			d.group = &n
		case "$ENTRY_TTL":
			d.ttl = &n
		case "$ENTRY_HIT_STATE":
			s := x.GetStrVal()
			d.hit = &s
		default:
			d.rest = append(d.rest, x)
		}
	}
	if d.member != nil && d.group != nil {
		return nil, invalidf("an entry refers to a member or to a group, not to both")
	}
	return d, nil
}

// target returns the action, member or group of the data, for a pipe.
func (t *matchTable) target(d *entryData, pipe int) (dataplane.Target, error) {
	if t.profile == nil {
		if d.action == nil {
			return dataplane.Target{}, invalidf("the data names no action")
		}
		return dataplane.Target{Action: dataplane.ActionCall{Name: d.action.name, Params: d.params}}, nil
	}
	switch {
	case d.member != nil:
		h, ok := t.profile.handles[pipe][*d.member]
		if !ok {
			return dataplane.Target{}, failf(notFound, "there is no member %d in pipe %d", *d.member, pipe)
		}
		return dataplane.Target{Kind: dataplane.TargetMember, Index: h}, nil
	case d.group != nil && t.select_ != nil:
		g := t.select_.groups[pipe][*d.group]
		if g == nil {
			return dataplane.Target{}, failf(notFound, "there is no group %d in pipe %d", *d.group, pipe)
		}
		return dataplane.Target{Kind: dataplane.TargetGroup, Index: g.handle}, nil
	}
	return dataplane.Target{}, invalidf("the data names no member%s", ifElse(t.select_ != nil, " and no group", ""))
}

func ifElse[T any](c bool, a, b T) T {
	if c {
		return a
	}
	return b
}

// lead adds the action, member or group of an entry to its data.
func (t *matchTable) lead(out *wire.TableData, target *dataplane.Target, pipe int, want *filter) error {
	switch target.Kind {
	case dataplane.TargetAction:
		a := t.byName[target.Action.Name]
		if a == nil {
			return nil
		}
		if want != nil && want.action != 0 && want.action != a.id {
			return invalidf("the entry has action %s, but the request is for another one", a.name)
		}
		out.ActionId = a.id
		for i, p := range a.params {
			if want.has(p.id) {
				out.Fields = append(out.Fields, &wire.DataField{FieldId: p.id, Value: &wire.DataField_Stream{Stream: full(target.Action.Params[i], p.width)}})
			}
		}
	case dataplane.TargetMember:
		if id, ok := t.profile.idOf(pipe, target.Index); ok && t.member != nil && want.has(t.member.id) {
			out.Fields = append(out.Fields, t.member.number(uint64(id)))
		}
	case dataplane.TargetGroup:
		if id, ok := t.select_.idOf(pipe, target.Index); ok && t.group != nil && want.has(t.group.id) {
			out.Fields = append(out.Fields, t.group.number(uint64(id)))
		}
	}
	return nil
}

func mustMarshal(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // the server encoded it
	}
	return b
}

// isRegister reports whether a field is a register cell.
func isRegister(f *bfrt.Field) bool {
	return slices.ContainsFunc(f.Annotations, func(a bfrt.Annotation) bool {
		return a.Name == "$bfrt_field_class" && a.Value == "register_data"
	})
}
