package tofino

import (
	"context"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/bfrt/wire"
)

// GetForwardingPipelineConfig tells whether the switch runs the plan's program: by
// that one's P4Info and cookie, or by none.
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

// SetForwardingPipelineConfig loads the program in a warm init of one step, and
// binds this client to it.
func (s *session) SetForwardingPipelineConfig(ctx context.Context, _ *p4v1.SetForwardingPipelineConfigRequest, _ ...grpc.CallOption) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	at := s.place()
	if at.config == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, status.Errorf(codes.FailedPrecondition, "%v; load the program there, or name with --device-config what the compiler has made", s.why)
	}
	s.mu.Lock()
	s.pushed++
	s.mu.Unlock()
	_, err := s.wire.SetForwardingPipelineConfig(ctx, &wire.SetForwardingPipelineConfigRequest{
		DeviceId: at.device, ClientId: at.client, Action: wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END,
		Config: []*wire.ForwardingPipelineConfig{at.config},
	}, callOptions...)
	if err != nil {
		s.mu.Lock()
		s.pushed--
		s.mu.Unlock()
		return nil, err
	}
	s.mu.Lock()
	s.told, s.prog = nil, nil
	s.mu.Unlock()
	switch bound, err := s.bind(ctx); {
	case err != nil:
		return nil, err
	case !bound:
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, status.Errorf(codes.FailedPrecondition, "what was loaded is not the program: %v", s.why)
	}
	return &p4v1.SetForwardingPipelineConfigResponse{}, nil
}

// bind makes this client the one of the plan's program, if that runs.
func (s *session) bind(ctx context.Context) (bound bool, err error) {
	if err := s.look(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	p := s.prog
	s.mu.Unlock()
	if p == nil {
		return false, nil
	}
	at := s.place()
	_, err = s.wire.SetForwardingPipelineConfig(ctx, &wire.SetForwardingPipelineConfigRequest{
		DeviceId: at.device, ClientId: at.client, Action: wire.SetForwardingPipelineConfigRequest_BIND, Config: []*wire.ForwardingPipelineConfig{{P4Name: p.name}},
	}, callOptions...)
	return err == nil, err
}
