package server

import (
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// setAttribute sets an attribute of a table.
func (s *Server) setAttribute(r *request, o object, a *wire.TableAttribute) error {
	t := o.head()
	has := func(name string) error {
		if !slices.Contains(t.schema.Attributes, name) {
			return failf(unimplemented, "the table has no attribute %s", name)
		}
		return nil
	}
	m, _ := o.(*matchTable)
	switch x := a.GetAttribute().(type) {
	case *wire.TableAttribute_EntryScope:
		if _, ok := o.(*registerTable); !ok {
			if err := has("EntryScope"); err != nil {
				return err
			}
		}
		c, err := newScope(t.program, x.EntryScope)
		if err != nil {
			return err
		}
		switch o := o.(type) {
		case *registerTable:
			o.parts = nil
			if _, user := c.mode.GetScope().(*wire.Mode_UserDefined); user {
				o.parts = c.parts
			}
		case *matchTable:
			if n, _ := o.usage(&request{s: s, target: &wire.TargetDevice{PipeId: wire.AllPipes}}); n > 0 {
				return invalidf("the scope can be changed only without entries: the table has %d", n)
			}
			o.scope = c
		case *valueSet:
			o.scope = c
		}
		return nil
	case *wire.TableAttribute_IdleTable:
		if err := has("IdleTimeout"); err != nil || m == nil {
			return err
		}
		return m.ageing.configure(m, x.IdleTable)
	case *wire.TableAttribute_DynKeyMask:
		if err := has("DynamicKeyMask"); err != nil {
			return err
		}
		return failf(unimplemented, "DynamicKeyMask is not served: the program defines the masks of a key")
	case *wire.TableAttribute_DynHashing:
		if err := has("DynamicHashing"); err != nil || m == nil {
			return err
		}
		m.hash = wire.DynHashing{Alg: x.DynHashing.GetAlg(), Seed: x.DynHashing.GetSeed()}
		return nil
	case *wire.TableAttribute_ByteCountAdj:
		if err := has("MeterByteCountAdjust"); err != nil {
			return err
		}
		return t.adjust(r, m, x.ByteCountAdj.GetByteCountAdjust())
	case *wire.TableAttribute_PortStatusNotify:
		if err := has("port_status_notif_cb"); err != nil {
			return err
		}
		s.chip.ports.tell() // earlier changes are not reported
		s.chip.ports.notify = x.PortStatusNotify.GetEnable()
		return nil
	case *wire.TableAttribute_IntvlMs:
		if err := has("poll_intvl_ms"); err != nil {
			return err
		}
		s.chip.ports.interval = x.IntvlMs.GetIntvlVal()
		return nil
	case *wire.TableAttribute_PreDeviceConfig:
		if err := has("pre_device_config"); err != nil {
			return err
		}
		return s.chip.pre.configure(x.PreDeviceConfig)
	case *wire.TableAttribute_SelectorUpdateNotify:
		if g, ok := o.(*selector); ok {
			g.notify = x.SelectorUpdateNotify.GetEnable()
			return nil
		}
	}
	return failf(unimplemented, "the table has no such attribute")
}

// adjust sets the number of bytes that the meters of a table, or of its entries, add
// to each packet.
func (t *table) adjust(r *request, m *matchTable, bytes int32) error {
	pipes, err := r.pipesOf(t.program)
	if err != nil {
		return err
	}
	name := t.program.short(t.schema.Name)
	if m != nil {
		name = t.program.directMeter(name)
	}
	for _, pipe := range pipes {
		before := t.adjusted[pipe]
		set := func(n int32) error {
			t.adjusted[pipe] = n
			return t.sw(pipe).Meters().Adjust(name, int(n))
		}
		if err := set(bytes); err != nil {
			return err
		}
		r.done(func() { set(before) })
	}
	return nil
}

// attribute returns an attribute of a table.
func (s *Server) attribute(r *request, o object, a *wire.TableAttribute) (*wire.TableAttribute, error) {
	out := &wire.TableAttribute{TableId: a.GetTableId()}
	m, _ := o.(*matchTable)
	switch a.GetAttribute().(type) {
	case *wire.TableAttribute_EntryScope:
		var c scope
		switch o := o.(type) {
		case *matchTable:
			c = o.scope
		case *valueSet:
			c = o.scope
		default:
			return nil, failf(unimplemented, "the table has no attribute EntryScope")
		}
		out.Attribute = &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{GressScope: c.gress, PipeScope: c.mode, PrsrScope: c.parser}}
	case *wire.TableAttribute_IdleTable:
		if m == nil || m.ageing.config == nil {
			return nil, failf(unimplemented, "the table has no attribute IdleTimeout")
		}
		out.Attribute = &wire.TableAttribute_IdleTable{IdleTable: m.ageing.config}
	case *wire.TableAttribute_DynHashing:
		if m == nil {
			return nil, failf(unimplemented, "the table has no attribute DynamicHashing")
		}
		out.Attribute = &wire.TableAttribute_DynHashing{DynHashing: &wire.DynHashing{Alg: m.hash.Alg, Seed: m.hash.Seed}}
	case *wire.TableAttribute_ByteCountAdj:
		if o.head().program == nil {
			return nil, failf(unimplemented, "the table has no attribute MeterByteCountAdjust")
		}
		pipes, err := r.pipesOf(o.head().program)
		if err != nil {
			return nil, err
		}
		out.Attribute = &wire.TableAttribute_ByteCountAdj{ByteCountAdj: &wire.ByteCountAdj{ByteCountAdjust: o.head().adjusted[pipes[0]]}}
	case *wire.TableAttribute_PortStatusNotify:
		out.Attribute = &wire.TableAttribute_PortStatusNotify{PortStatusNotify: &wire.PortStatusChg{Enable: s.chip.ports.notify}}
	case *wire.TableAttribute_IntvlMs:
		out.Attribute = &wire.TableAttribute_IntvlMs{IntvlMs: &wire.StatePullIntvl{IntvlVal: s.chip.ports.interval}}
	case *wire.TableAttribute_PreDeviceConfig:
		out.Attribute = &wire.TableAttribute_PreDeviceConfig{PreDeviceConfig: s.chip.pre.config}
	case *wire.TableAttribute_SelectorUpdateNotify:
		g, ok := o.(*selector)
		if !ok {
			return nil, failf(unimplemented, "the table has no attribute for its members")
		}
		out.Attribute = &wire.TableAttribute_SelectorUpdateNotify{SelectorUpdateNotify: &wire.SelectorUpdateCb{Enable: g.notify}}
	default:
		return nil, failf(unimplemented, "the table has no such attribute")
	}
	return out, nil
}

// operate executes an operation of a table, which syncs the driver's copy with the
// chip. Registers need no sync: reads always go to the chip.
func operate(o object, name string) error {
	if !slices.Contains(o.head().schema.Operations, name) {
		return failf(unimplemented, "the table has no operation %q", name)
	}
	switch o := o.(type) {
	case *matchTable:
		if name == "UpdateHitState" {
			o.ageing.update(o)
		} else {
			o.attach.sync(o)
		}
	case *counterTable:
		o.sync()
	}
	return nil
}

// objectID returns the number of a named object.
func (s *Server) objectID(p *program, x *wire.ObjectId, a *answer) error {
	id, err := uint32(0), error(nil)
	switch o := x.GetObject().(type) {
	case *wire.ObjectId_TableObject_:
		id, err = s.idInTable(p, o.TableObject)
	case *wire.ObjectId_LearnObject_:
		err = failf(notFound, "there is no learn filter %q", o.LearnObject.GetLearnName())
		for _, f := range p.schema.LearnFilters {
			if f.Name == o.LearnObject.GetLearnName() {
				id, err = f.ID, nil
				if d := o.LearnObject.GetDataFieldName(); d != nil {
					id, err = idOf(f.Fields, d.GetField())
				}
			}
		}
	default:
		err = invalidf("the request names no object")
	}
	if err != nil {
		return err
	}
	return a.add(&wire.Entity{Entity: &wire.Entity_ObjectId{ObjectId: &wire.ObjectId{Object: x.GetObject(), Id: id}}})
}

func idOf(list []*bfrt.Field, name string) (uint32, error) {
	f := lists.First(list, func(f *bfrt.Field) bool { return f.Name == name })
	if f == nil {
		return 0, failf(notFound, "there is no field %q", name)
	}
	return f.ID, nil
}

func (s *Server) idInTable(p *program, x *wire.ObjectId_TableObject) (uint32, error) {
	t := p.schema.Table(x.GetTableName())
	for _, o := range s.chip.tables {
		if o.head().schema.Name == x.GetTableName() {
			t = o.head().schema
		}
	}
	if t == nil && strings.Contains(x.GetTableName(), "pktgen.") {
		return 0, failf(unimplemented, "table %s is not served: the packet generator has port_cfg, app_cfg and pkt_buffer", x.GetTableName())
	}
	if t == nil {
		return 0, failf(notFound, "there is no table %q", x.GetTableName())
	}
	action := func(name string) *bfrt.ActionSpec {
		return lists.First(t.Actions(), func(a *bfrt.ActionSpec) bool { return a.Name == name })
	}
	switch n := x.GetNames().(type) {
	case *wire.ObjectId_TableObject_ActionName:
		if a := action(n.ActionName.GetAction()); a != nil {
			return a.ID, nil
		}
		return 0, failf(notFound, "table %s has no action %q", t.Name, n.ActionName.GetAction())
	case *wire.ObjectId_TableObject_KeyFieldName:
		return idOf(t.Key, n.KeyFieldName.GetField())
	case *wire.ObjectId_TableObject_DataFieldName:
		if a := action(n.DataFieldName.GetAction()); a != nil {
			if id, err := idOf(a.Data, n.DataFieldName.GetField()); err == nil {
				return id, nil
			}
		}
		for _, d := range t.Data {
			if id, err := idOf(d.Fields(), n.DataFieldName.GetField()); err == nil {
				return id, nil
			}
		}
		return 0, failf(notFound, "table %s has no field %q", t.Name, n.DataFieldName.GetField())
	}
	return t.ID, nil
}
