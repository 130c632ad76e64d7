package tofino

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// GetForwardingPipelineConfig returns the P4Info and the cookie of the plan if the switch runs
// the plan's program, and otherwise an empty config.
func (s *session) GetForwardingPipelineConfig(ctx context.Context, req *p4v1.GetForwardingPipelineConfigRequest, _ ...grpc.CallOption) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prog != nil {
		c := &p4v1.ForwardingPipelineConfig{Cookie: &p4v1.ForwardingPipelineConfig_Cookie{}}
		if at := s.place(); at.index != nil {
			c.P4Info, c.Cookie.Cookie, c.P4DeviceConfig = at.plan.Pipeline.P4Info, at.index.Cookie, at.plan.Pipeline.Config
		}
		return &p4v1.GetForwardingPipelineConfigResponse{Config: c}, nil
	}
	switch {
	case len(s.all) == 0:
		return nil, status.Error(codes.FailedPrecondition, s.why.Error())
	case req.GetResponseType() == p4v1.GetForwardingPipelineConfigRequest_ALL:
		return nil, status.Errorf(codes.Unimplemented, "the switch runs %s, and BfRt gives nothing to put that back with: --atomic is for a switch that runs the program already", s.runs)
	}
	return &p4v1.GetForwardingPipelineConfigResponse{Config: &p4v1.ForwardingPipelineConfig{P4Info: &configv1.P4Info{}}}, nil
}

// SetForwardingPipelineConfig loads the program and binds this client to it.
func (s *session) SetForwardingPipelineConfig(ctx context.Context, _ *p4v1.SetForwardingPipelineConfigRequest, _ ...grpc.CallOption) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	at := s.place()
	if at.config == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, status.Errorf(codes.FailedPrecondition, "%v; load the program there, or name the .conf of the compiler with --device-config", s.why)
	}
	if err := s.load(ctx, at.config.GetP4Name()); err != nil {
		return nil, err
	}
	return &p4v1.SetForwardingPipelineConfigResponse{}, nil
}

// load loads the plan's program under a name, in a warm init of one step, and binds
// this client to it.
func (s *session) load(ctx context.Context, name string) error {
	at := s.place()
	s.mu.Lock()
	s.pushed++
	s.mu.Unlock()
	c := at.config
	_, err := s.wire.SetForwardingPipelineConfig(ctx, &wire.SetForwardingPipelineConfigRequest{
		DeviceId: at.device, ClientId: s.client, Action: wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END,
		Config: []*wire.ForwardingPipelineConfig{{P4Name: name, BfruntimeInfo: c.GetBfruntimeInfo(), Profiles: c.GetProfiles()}},
	}, callOptions...)
	s.mu.Lock()
	if err != nil {
		s.pushed--
		s.mu.Unlock()
		return err
	}
	s.told, s.prog = nil, nil
	s.mu.Unlock()
	switch bound, err := s.bind(ctx); {
	case err != nil:
		return err
	case !bound:
		s.mu.Lock()
		defer s.mu.Unlock()
		return status.Errorf(codes.FailedPrecondition, "the loaded program is not the plan's: %v", s.why)
	}
	return nil
}

// bind binds this client to the plan's program if the switch runs it. Servers refuse
// a second bind to the same program.
func (s *session) bind(ctx context.Context) (bound bool, err error) {
	if err := s.look(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	p, have := s.prog, s.bound
	s.mu.Unlock()
	switch {
	case p == nil:
		return false, nil
	case p.name == have:
		return true, nil
	}
	if err := s.bindAs(ctx, s.client, p.name); err != nil {
		return false, err
	}
	if err := s.checkNames(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.bound = p.name
	s.mu.Unlock()
	return true, nil
}

func (s *session) bindAs(ctx context.Context, client uint32, program string) error {
	_, err := s.wire.SetForwardingPipelineConfig(ctx, &wire.SetForwardingPipelineConfigRequest{
		DeviceId: s.place().device, ClientId: client, Action: wire.SetForwardingPipelineConfigRequest_BIND, Config: []*wire.ForwardingPipelineConfig{{P4Name: program}},
	}, callOptions...)
	return err
}

// claim binds this client to the plan's program. If the switch runs another program,
// claim replaces it only if no client is bound to it. The server reveals that only in
// answer to a bind, so a second client tries to bind for a moment.
func (s *session) claim(ctx context.Context) error {
	bound, err := s.bind(ctx)
	at := s.place()
	if bound || err != nil || at.config == nil {
		return err
	}
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	visitor := s.client ^ 1<<31
	stream, err := s.wire.StreamChannel(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&wire.StreamMessageRequest{ClientId: visitor, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{
		DeviceId: at.device, Notifications: &wire.Subscribe_Notifications{},
	}}}); err != nil {
		return err
	}
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	if st := m.GetSubscribe().GetStatus(); st.GetCode() != int32(codes.OK) {
		return status.ErrorProto(st)
	}
	for _, c := range all {
		if err := s.bindAs(ctx, visitor, c.GetP4Name()); err != nil {
			return err
		}
	}
	return nil
}

// takeOver takes the switch from another client. The server never takes a program
// from its client, but it ends the clients of programs that it replaces. So takeOver
// loads the program again under another name. A different program is simply replaced.
func (s *session) takeOver(ctx context.Context) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.prog
	s.mu.Unlock()
	at := s.place()
	switch {
	case p == nil:
		return nil
	case at.config == nil:
		return status.Errorf(codes.FailedPrecondition, "another client is bound to %s, and only a reload of the program ends that: name the .conf of the compiler with --device-config", p.name)
	}
	return s.load(ctx, nextName(at.config.GetP4Name(), p.name))
}

// nextName returns a name for the program that differs from the running one.
func nextName(name, runs string) string {
	n := 0
	if rest, ok := strings.CutPrefix(runs, name+"_"); ok {
		n, _ = strconv.Atoi(rest)
	}
	return fmt.Sprintf("%s_%d", name, n+1)
}

// isNamed reports whether the running program has a name, or the name of a takeover
// of it.
func isNamed(runs, name string) bool {
	rest, ok := strings.CutPrefix(runs, name)
	if !ok || rest == "" {
		return ok
	}
	_, err := strconv.Atoi(strings.TrimPrefix(rest, "_"))
	return rest[0] == '_' && err == nil
}
