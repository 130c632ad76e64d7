package p4rt

import (
	"bytes"
	"context"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// SetForwardingPipelineConfig verifies, saves or commits a program.
//
// A saved configuration is a pipeline of its own. Requests refer to it from
// then on, but packets still use the previous one. COMMIT then sends packets
// through the saved pipeline, with everything written to it in between.
func (s *Server) SetForwardingPipelineConfig(_ context.Context, req *p4v1.SetForwardingPipelineConfigRequest) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	permit, err := s.arb.admit(req.GetDeviceId(), req.GetRole(), req.GetElectionId())
	if err != nil {
		return nil, err
	}
	defer permit.release()
	if permit.scope != nil {
		return nil, failf(codes.PermissionDenied, "a role with a config cannot replace the program: use a role without config")
	}
	if err := s.configure(req.GetAction(), req.GetConfig()); err != nil {
		return nil, err
	}
	return &p4v1.SetForwardingPipelineConfigResponse{}, nil
}

type configAction = p4v1.SetForwardingPipelineConfigRequest_Action

func (s *Server) configure(action configAction, c *p4v1.ForwardingPipelineConfig) error {
	if action == p4v1.SetForwardingPipelineConfigRequest_COMMIT {
		return s.commitSaved(c)
	}
	var install func(*pipeline) error
	switch action {
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY:
		install = func(*pipeline) error { return nil }
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE:
		install = s.save
	case p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT:
		install = s.commit
	case p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT:
		install = s.reconcile
	default:
		return failf(codes.InvalidArgument, "the action is %v", action)
	}
	if c == nil {
		return failf(codes.InvalidArgument, "%v wants a config", action)
	}
	if action == p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT && s.runs(c) {
		return nil
	}
	// Linking a program takes long, so it happens without a lock.
	p, err := newPipeline(c, s.dev, s.log, s.sendDigest)
	if err != nil {
		return err
	}
	return install(p)
}

// runs reports whether the running config equals c except for its cookie, and
// updates the cookie. A controller that reconnects and reconciles its own
// program therefore costs nothing, regardless of the number of entries.
func (s *Server) runs(c *p4v1.ForwardingPipelineConfig) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.running
	if p == nil || p != s.current || !bytes.Equal(p.config.GetP4DeviceConfig(), c.GetP4DeviceConfig()) || !proto.Equal(p.config.GetP4Info(), c.GetP4Info()) {
		return false
	}
	p.config = p.program.config(c)
	return true
}

func (s *Server) save(p *pipeline) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = p
	return nil
}

func (s *Server) commit(p *pipeline) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run(p)
	return nil
}

// run sends packets through p from now on. The caller holds s.mu.
func (s *Server) run(p *pipeline) {
	old := s.running
	s.current, s.running = p, p
	s.idle.Wake()
	s.dev.run(p.sw, programOf(p.config.GetP4DeviceConfig()), func(frame []byte) { s.packetIn(p, frame) })
	if old != nil && old != p {
		for _, d := range old.digests {
			d.configure(nil)
		}
	}
}

func (s *Server) commitSaved(c *p4v1.ForwardingPipelineConfig) error {
	if c != nil {
		return failf(codes.InvalidArgument, "COMMIT takes the saved config, not another one")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == s.running {
		return failf(codes.NotFound, "no config has been saved since the last commit")
	}
	s.run(s.current)
	return nil
}

// reconcile commits p with everything written to the previous configuration. It
// also keeps the registers and counters that both programs have.
func (s *Server) reconcile(p *pipeline) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current
	if old == nil {
		s.run(p)
		return nil
	}
	for name, t := range p.info.translations {
		if o := old.info.translations[name]; o != nil {
			t.inherit(o)
		}
	}
	p.clearInitial(old)
	if err := old.contents(func(u *p4v1.Update) error { return p.update(nil, nil, u) }); err != nil {
		return recode(prefixed(err, "cannot keep the forwarding state"), codes.InvalidArgument)
	}
	s.dev.Exclusively(func() { p.inherit(old) })
	s.run(p)
	return nil
}

// clearInitial removes those initial entries of p that controllers may remove,
// in tables that old has too. The ones still present in old are part of its
// contents.
func (p *pipeline) clearInitial(old *pipeline) {
	for id, t := range p.tables {
		for _, r := range t.rows.view().all() {
			if old.tables[id] != nil && !r.entry.fixed() {
				p.takeOut(t, r.entry)
			}
		}
	}
}

// contents calls do with the updates that recreate the state written to a
// pipeline, in an order that respects dependencies. It stops at the first
// error.
func (p *pipeline) contents(do func(*p4v1.Update) error) error {
	var todo plan
	defer todo.close()
	for _, all := range []*p4v1.Entity{
		{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{}}},
		{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{}}},
		{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{MeterConfig: &p4v1.MeterConfig{}}}},
		{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{}}},
		multicastEntity(&p4v1.MulticastGroupEntry{}),
		cloneEntity(&p4v1.CloneSessionEntry{}),
	} {
		p.must(p.read(nil, all, &todo))
	}
	var meters []*p4v1.Update
	err := todo.run(&answer{take: func(e *p4v1.Entity) error {
		if t := e.GetTableEntry(); t.GetMeterConfig() != nil {
			// Separate, because the action need not execute the meter.
			meters = append(meters, meterOf(t))
			e = entityOf(unmetered(t))
		}
		if e.GetTableEntry().GetIsConst() {
			return nil
		}
		return do(&p4v1.Update{Type: p4v1.Update_INSERT, Entity: e})
	}})
	if err != nil {
		return err
	}
	for _, u := range append(p.modifications(), meters...) {
		if err := do(u); err != nil {
			return err
		}
	}
	return nil
}

// meterOf returns the update that configures the meter of an entry.
func meterOf(m *p4v1.TableEntry) *p4v1.Update {
	return &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: &p4v1.Entity{Entity: &p4v1.Entity_DirectMeterEntry{DirectMeterEntry: &p4v1.DirectMeterEntry{
		TableEntry: keyOf(m), Config: m.GetMeterConfig(),
	}}}}
}

func unmetered(m *p4v1.TableEntry) *p4v1.TableEntry {
	m = stored(m)
	m.MeterConfig = nil
	return m
}

// modifications returns the updates of objects that always exist: default
// entries, value sets and meters.
func (p *pipeline) modifications() []*p4v1.Update {
	var list []*p4v1.Update
	modify := func(e *p4v1.Entity) {
		list = append(list, &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: e})
	}
	for _, t := range p.tables {
		for _, r := range t.rows.view().all() {
			if !r.entry.constant {
				continue
			}
			if m := unmetered(r.text.message()); len(m.GetMetadata()) > 0 {
				m.IsConst, m.Action = false, nil
				modify(entityOf(m))
			}
		}
		if t.def == t.initial {
			continue
		}
		if !t.constDefault && t.info.profile == nil {
			modify(entityOf(unmetered(t.def)))
		}
		if t.def.GetMeterConfig() != nil {
			list = append(list, meterOf(t.def))
		}
	}
	for id, members := range p.valueSets {
		modify(&p4v1.Entity{Entity: &p4v1.Entity_ValueSetEntry{ValueSetEntry: &p4v1.ValueSetEntry{ValueSetId: id, Members: members}}})
	}
	for id, cells := range p.meters {
		for i, c := range cells.view().all() {
			modify(&p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{MeterEntry: &p4v1.MeterEntry{MeterId: id, Index: &p4v1.Index{Index: int64(i)}, Config: c}}})
		}
	}
	return list
}

// inherit copies registers and counters that both programs have from old.
func (p *pipeline) inherit(old *pipeline) {
	for id, r := range p.info.registers {
		o := old.info.registers[id]
		if o == nil || o.name != r.name || o.size != r.size || o.width() != r.width() || o.data.form != r.data.form {
			continue
		}
		words, err := old.sw.Registers().Range(o.name, 0, int(o.size), nil)
		p.must(err)
		n := cellWords(r)
		for i := range int(r.size) {
			if cell := words[i*n : (i+1)*n]; anySet(cell) {
				p.must(p.sw.Registers().Write(r.name, i, bigOf(cell)))
			}
		}
	}
	for id, c := range p.info.counters {
		if o := old.info.counters[id]; o != nil && o.GetPreamble().GetName() == c.GetPreamble().GetName() && o.GetSize() == c.GetSize() {
			p.inheritCounter(old, c)
		}
	}
	for id, t := range p.tables {
		if o := old.tables[id]; o != nil && t.info.counter && o.info.counter {
			missed := countOf(old.entryCounter(o, o.defaultEntry()))
			p.must(p.sw.Tables().SetCounter(t.info.name, dataplane.DefaultEntry, missed))
			for key, e := range t.entries {
				if before := o.entries[key]; before != nil {
					p.must(p.sw.Tables().SetCounter(t.info.name, e.handle, countOf(old.entryCounter(o, before))))
				}
			}
		}
	}
}

func (p *pipeline) inheritCounter(old *pipeline, c *configv1.Counter) {
	name := c.GetPreamble().GetName()
	list, err := old.sw.Counters().ReadAll(name)
	p.must(err)
	for i, v := range list {
		if v.Packets != 0 || v.Bytes != 0 {
			p.must(p.sw.Counters().Write(name, i, v))
		}
	}
}

func anySet(words []uint64) bool {
	return slices.ContainsFunc(words, func(w uint64) bool { return w != 0 })
}

// GetForwardingPipelineConfig returns the configuration that requests refer to.
func (s *Server) GetForwardingPipelineConfig(_ context.Context, req *p4v1.GetForwardingPipelineConfigRequest) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	if err := s.arb.checkDevice(req.GetDeviceId()); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.current == nil {
		return &p4v1.GetForwardingPipelineConfigResponse{}, nil
	}
	c := s.current.config
	out := &p4v1.ForwardingPipelineConfig{Cookie: c.GetCookie()}
	switch req.GetResponseType() {
	case p4v1.GetForwardingPipelineConfigRequest_ALL:
		out = c
	case p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY:
	case p4v1.GetForwardingPipelineConfigRequest_P4INFO_AND_COOKIE:
		out.P4Info = c.GetP4Info()
	case p4v1.GetForwardingPipelineConfigRequest_DEVICE_CONFIG_AND_COOKIE:
		out.P4DeviceConfig = c.GetP4DeviceConfig()
	default:
		return nil, failf(codes.InvalidArgument, "there is no response type %v", req.GetResponseType())
	}
	return &p4v1.GetForwardingPipelineConfigResponse{Config: out}, nil
}
