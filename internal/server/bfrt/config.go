package server

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// Load replaces the programs. All clients must bind again.
func (s *Server) Load(list ...Program) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.build(list)
	if err != nil {
		return err
	}
	s.adopt(n)
	s.run()
	s.clients.dismiss(s.programs)
	return nil
}

// A chipState holds the programs of a chip and all tables.
type chipState struct {
	programs []*program
	pipes    []*dataplane.Switch
	chip     *fixed
}

// build links programs. Pipes without a program run the first one.
func (s *Server) build(list []Program) (*chipState, error) {
	if len(list) == 0 {
		return nil, invalidf("the switch has no program")
	}
	n := &chipState{pipes: make([]*dataplane.Switch, s.opts.Pipes)}
	if len(list) == 1 && len(list[0].Pipes) > 0 {
		list[0].Pipes = slices.DeleteFunc(slices.Clone(list[0].Pipes), func(p int) bool { return p >= s.opts.Pipes })
	}
	for _, x := range list {
		if slices.ContainsFunc(n.programs, func(p *program) bool { return p.name == x.Name }) {
			return nil, invalidf("two programs have the name %s", x.Name)
		}
		p, err := s.newProgram(x, n.pipes)
		if err != nil {
			return nil, err
		}
		n.programs = append(n.programs, p)
	}
	for i, sw := range n.pipes {
		if sw == nil {
			var err error
			if n.pipes[i], err = s.dev.Link(list[0].Binary, nil); err != nil {
				return nil, invalidf("program %s: %v", list[0].Name, err)
			}
		}
	}
	n.chip = newFixed(s)
	return n, nil
}

// keepScopes copies the scopes of tables from the previous programs. A hitless warm
// init does that, because clients replay only entries.
func (n *chipState) keepScopes(before []*program) {
	for _, p := range n.programs {
		i := slices.IndexFunc(before, func(o *program) bool { return o.name == p.name && slices.Equal(o.pipes, p.pipes) })
		if i < 0 {
			continue
		}
		for id, t := range p.tables {
			switch t := t.(type) {
			case *matchTable:
				if o, ok := before[i].tables[id].(*matchTable); ok {
					t.scope = o.scope
				}
			case *valueSet:
				if o, ok := before[i].tables[id].(*valueSet); ok {
					t.scope = o.scope
				}
			case *registerTable:
				if o, ok := before[i].tables[id].(*registerTable); ok {
					t.parts = o.parts
				}
			}
		}
	}
}

// adopt makes requests refer to new programs.
func (s *Server) adopt(n *chipState) {
	s.chip.generator.clear()
	s.programs, s.pipes, s.chip, s.config = n.programs, n.pipes, n.chip, nil
}

// run makes packets pass through the new programs.
func (s *Server) run() {
	s.dev.RunPipes(s.pipes, s.programs[0].binary)
	s.chip.pre.renew() // the defaults of the replication tables
}

// SetForwardingPipelineConfig binds a client to a program or replaces the programs.
// Between the two steps of a warm init, requests refer to the new programs and
// packets pass through the old ones.
func (s *Server) SetForwardingPipelineConfig(_ context.Context, req *wire.SetForwardingPipelineConfigRequest) (*wire.SetForwardingPipelineConfigResponse, error) {
	if req.GetDeviceId() != s.opts.Device {
		return nil, invalidf("there is no device %d", req.GetDeviceId())
	}
	if req.GetAction() == wire.SetForwardingPipelineConfigRequest_BIND {
		return &wire.SetForwardingPipelineConfigResponse{}, s.bind(req)
	}
	return s.configure(req)
}

func (s *Server) bind(req *wire.SetForwardingPipelineConfigRequest) error {
	if len(req.GetConfig()) != 1 {
		return invalidf("want the name of one program to bind, not %d", len(req.GetConfig()))
	}
	name := req.GetConfig()[0].GetP4Name()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, err := s.program(name); err != nil {
		return err
	}
	return s.clients.bind(req.GetClientId(), name)
}

func (s *Server) configure(req *wire.SetForwardingPipelineConfigRequest) (*wire.SetForwardingPipelineConfigResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := req.GetAction(); a {
	case wire.SetForwardingPipelineConfigRequest_WARM_INIT_END:
		if len(req.GetConfig()) > 0 {
			return nil, invalidf("the end of a warm init cannot contain a program")
		}
		if s.begun == nil {
			return nil, invalidf("no warm init is in progress")
		}
		return s.finish(), nil
	case wire.SetForwardingPipelineConfigRequest_VERIFY, wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN,
		wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END:
		var list []Program
		for _, c := range req.GetConfig() {
			x, err := programOf(c)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		n, err := s.build(list)
		if err != nil {
			return nil, err
		}
		if a == wire.SetForwardingPipelineConfigRequest_VERIFY {
			return &wire.SetForwardingPipelineConfigResponse{}, nil
		}
		if req.GetDevInitMode() == wire.SetForwardingPipelineConfigRequest_HITLESS {
			n.keepScopes(s.programs)
		}
		s.adopt(n)
		defer s.clients.dismiss(s.programs) // after their notification
		s.begun = req.GetConfig()
		if a == wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END {
			return s.finish(), nil
		}
		m := &wire.SetForwardingPipelineConfigResponse{SetForwardingPipelineConfigResponseType: wire.SetForwardingPipelineConfigResponseType_WARM_INIT_STARTED}
		s.clients.configured(m)
		return m, nil
	}
	return nil, failf(codes.Unimplemented, "the action %v", req.GetAction())
}

// finish completes a warm init.
func (s *Server) finish() *wire.SetForwardingPipelineConfigResponse {
	s.begun = nil
	s.run()
	m := &wire.SetForwardingPipelineConfigResponse{SetForwardingPipelineConfigResponseType: wire.SetForwardingPipelineConfigResponseType_WARM_INIT_FINISHED}
	s.clients.configured(m)
	return m
}

// programOf reads a program of a client. Its binary is the JSON of the embedded
// switch, not a binary of the chip.
func programOf(c *wire.ForwardingPipelineConfig) (Program, error) {
	x := Program{Name: c.GetP4Name(), Schema: c.GetBfruntimeInfo()}
	if len(c.GetProfiles()) == 0 {
		return x, invalidf("program %s has no profile with a binary", x.Name)
	}
	for _, f := range c.GetProfiles() {
		if len(f.GetBinary()) > 0 && x.Binary == nil {
			x.Binary = f.GetBinary()
		}
		for _, pipe := range f.GetPipeScope() {
			x.Pipes = append(x.Pipes, int(pipe))
		}
	}
	slices.Sort(x.Pipes)
	return x, nil
}

// GetForwardingPipelineConfig returns the programs with their schemas, and the schema
// of the tables that every chip has.
func (s *Server) GetForwardingPipelineConfig(_ context.Context, req *wire.GetForwardingPipelineConfigRequest) (*wire.GetForwardingPipelineConfigResponse, error) {
	if req.GetDeviceId() != s.opts.Device {
		return nil, invalidf("there is no device %d", req.GetDeviceId())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config == nil {
		s.config = &wire.GetForwardingPipelineConfigResponse{NonP4Config: &wire.NonP4Config{BfruntimeInfo: s.chip.info}}
		for _, p := range s.programs {
			s.config.Config = append(s.config.Config, &wire.ForwardingPipelineConfig{P4Name: p.name, BfruntimeInfo: p.info, Profiles: p.profiles})
		}
	}
	return s.config, nil
}
