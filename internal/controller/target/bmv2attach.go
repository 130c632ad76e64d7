package target

import (
	"github.com/p4lb/p4lb/internal/controller/plan"
)

import "context"

// Attached is a target of running simple_switch_grpc processes, at the addresses of the topology.
// It uses P4Runtime, and Thrift for registers and queues if the topology has an address for it.
// It does not start or stop switches.
type Attached struct {
	*Servers
	remotes map[string]*Thrift
}

// AttachBMv2 returns a target for BMv2 switches that are already running.
func AttachBMv2(o ServersOptions) *Attached {
	o.Limits.KeepsReplication, o.Limits.NoRegisters = true, true
	return &Attached{Servers: &Servers{name: "bmv2", opts: o}, remotes: map[string]*Thrift{}}
}

// Start records the addresses of a plan's switches.
func (a *Attached) Start(ctx context.Context, p *plan.Plan) error {
	if err := a.Servers.Start(ctx, p); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, sw := range p.Topology.Switches {
		if sw.Thrift != "" && a.remotes[sw.Name] == nil {
			a.remotes[sw.Name] = NewThrift(sw.Thrift)
		}
	}
	return nil
}

// Endpoint returns the addresses of the named switch.
func (a *Attached) Endpoint(name string) (Endpoint, error) {
	e, err := a.Servers.Endpoint(name)
	if err != nil {
		return e, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.remotes[name]; t != nil {
		e.Thrift, e.Registers, e.Queues = t.address, t, t
	}
	return e, nil
}

// Close closes the connections.
func (a *Attached) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.remotes {
		t.Close()
	}
	return nil
}
