package tofino

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// Target is switches that run Intel's SDE, at the addresses of the topology. It
// starts and stops nothing.
type Target struct {
	*target.Servers
	speaker *Speaker
}

// New makes a target of the SDE's servers.
func New(o target.ServersOptions) *Target {
	return &Target{Servers: target.NewBfRt(o), speaker: NewSpeaker()}
}

// Start notes where the switches of a plan are.
func (t *Target) Start(ctx context.Context, p *plan.Plan) error {
	if err := t.Servers.Start(ctx, p); err != nil {
		return err
	}
	return t.speaker.Plan(p)
}

// Endpoint says how the named switch is reached.
func (t *Target) Endpoint(name string) (target.Endpoint, error) {
	e, err := t.Servers.Endpoint(name)
	if err == nil {
		e.Speak = t.speaker.To(name, e.Device)
	}
	return e, err
}

// A Speaker opens sessions to the switches of a plan, as one client.
type Speaker struct {
	client uint32
	mu     sync.Mutex
	plan   *plan.Plan
	config map[*plan.Pipeline]*wire.ForwardingPipelineConfig
}

// NewSpeaker makes a speaker without a plan.
func NewSpeaker() *Speaker {
	// The SDE knows clients by their numbers, which two must not share.
	return &Speaker{client: 1<<16 + rand.Uint32N(1<<30), config: map[*plan.Pipeline]*wire.ForwardingPipelineConfig{}}
}

// Plan notes what the switches are to hold. The configuration of a pipeline is
// what Encode makes, or nothing where switches have loaded their programs.
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
				return &plan.Error{Switch: sw.Name, Err: errors.New("what it is to load is no program for BfRt")}
			}
		}
		s.config[sw.Pipeline] = c
	}
	s.plan = p
	return nil
}

// To opens sessions to the named switch.
func (s *Speaker) To(name string, device uint64) func(grpc.ClientConnInterface) target.Session {
	return func(conn grpc.ClientConnInterface) target.Session {
		return open(conn, func() *place { return s.place(name, device) })
	}
}

func (s *Speaker) place(name string, device uint64) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &place{device: uint32(device), client: s.client}
	if s.plan == nil {
		return at
	}
	at.mtu = s.plan.Options.MTU
	if at.plan = s.plan.Switch(name); at.plan != nil {
		at.config = s.config[at.plan.Pipeline]
		at.index, _ = at.plan.Pipeline.Index() // an error is found when the plan is made
	}
	return at
}

// Watch opens a session to any switch for its registers alone, whatever program
// it runs.
func Watch(device uint64) func(grpc.ClientConnInterface) target.Session {
	return NewSpeaker().To("", device)
}
