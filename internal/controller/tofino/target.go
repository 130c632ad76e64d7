package tofino

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// A Target is a set of switches that run Intel's SDE, at the addresses in the
// topology. It does not start or stop them.
type Target struct {
	*target.Servers
	speaker *Speaker
}

// New returns a target for servers of the SDE.
func New(o target.ServersOptions) *Target {
	return &Target{Servers: target.NewBfRt(o), speaker: NewSpeaker()}
}

// Start records the addresses of a plan's switches.
func (t *Target) Start(ctx context.Context, p *plan.Plan) error {
	if err := t.Servers.Start(ctx, p); err != nil {
		return err
	}
	return t.speaker.Plan(p)
}

// Endpoint returns how to reach the named switch.
func (t *Target) Endpoint(name string) (target.Endpoint, error) {
	e, err := t.Servers.Endpoint(name)
	if err == nil {
		e.Speak = t.speaker.To(name, e.Device)
	}
	return e, err
}

// A Speaker opens sessions to the switches of a plan.
type Speaker struct {
	mu     sync.Mutex
	plan   *plan.Plan
	config map[*plan.Pipeline]*wire.ForwardingPipelineConfig
}

// NewSpeaker returns a speaker without a plan.
func NewSpeaker() *Speaker {
	return &Speaker{config: map[*plan.Pipeline]*wire.ForwardingPipelineConfig{}}
}

// Plan sets the planned contents of the switches. The configuration of a pipeline is the result
// of Encode, or empty if the switches have loaded their programs.
func (s *Speaker) Plan(p *plan.Plan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sw := range p.Switches {
		if _, done := s.config[sw.Pipeline]; done {
			continue
		}
		var c *wire.ForwardingPipelineConfig
		if len(sw.Pipeline.Config) > 0 {
			c = &wire.ForwardingPipelineConfig{}
			if err := proto.Unmarshal(sw.Pipeline.Config, c); err != nil || c.GetP4Name() == "" || len(c.GetProfiles()) == 0 {
				return &plan.Error{Switch: sw.Name, Err: errors.New("its configuration is not a program for BfRt")}
			}
		}
		s.config[sw.Pipeline] = c
	}
	s.plan = p
	return nil
}

// To returns a function that opens sessions to the named switch.
func (s *Speaker) To(name string, device uint64) func(grpc.ClientConnInterface) target.Session {
	return func(conn grpc.ClientConnInterface) target.Session {
		return open(conn, func() *place { return s.place(name, device) })
	}
}

func (s *Speaker) place(name string, device uint64) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &place{device: uint32(device)}
	if s.plan == nil {
		return at
	}
	at.mtu = s.plan.Options.MTU
	if at.plan = s.plan.Switch(name); at.plan != nil {
		at.config = s.config[at.plan.Pipeline]
		at.index, _ = at.plan.Pipeline.Index() // an error was already reported when the plan was made
		at.front = s.plan.Topology.FrontPorts(name)
	}
	return at
}

// Watch returns a function that opens a session for the registers of any program.
func Watch(device uint64) func(grpc.ClientConnInterface) target.Session {
	return NewSpeaker().To("", device)
}
