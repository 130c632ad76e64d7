package target

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"

	"github.com/p4lb/p4lb/internal/controller/plan"
)

// Servers is a target of running P4Runtime servers at known addresses. It does not start or stop
// them.
type Servers struct {
	name   string
	alone  bool // each address is a single device with number 0
	opts   ServersOptions
	mu     sync.Mutex
	places map[string]Endpoint
}

// ServersOptions are the common properties of P4Runtime servers.
type ServersOptions struct {
	// Addresses override the topology's addresses (host:port), by switch.
	Addresses map[string]string
	// TLS is the configuration of TLS; nil: no TLS.
	TLS *tls.Config
	// Limits describe missing features of the servers.
	Limits Limits
}

// NewServers returns a target for any P4Runtime servers.
func NewServers(o ServersOptions) *Servers { return &Servers{name: "p4runtime", opts: o} }

// NewTofino returns a target for Tofino switches that run Stratum. Replicas are deleted before a
// new program is pushed, because Stratum does not do so itself. Batches are small, because each
// update takes long on the hardware. P4Runtime has no object for rates and depths of queues; gNMI
// or the chassis configuration set them.
func NewTofino(o ServersOptions) *Servers {
	o.Limits.KeepsReplication = true
	o.Limits.Batch = cmp.Or(o.Limits.Batch, 200)
	return &Servers{name: "tofino", opts: o}
}

// NewBfRt returns a target for Tofino switches with Intel's SDE. Package
// controller/tofino implements the calls.
func NewBfRt(o ServersOptions) *Servers { return &Servers{name: "tofino", alone: true, opts: o} }

// Name returns p4runtime or tofino.
func (s *Servers) Name() string { return s.name }

// Start records the addresses of a plan's switches.
func (s *Servers) Start(_ context.Context, p *plan.Plan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places = map[string]Endpoint{}
	taken := map[string]string{}
	for _, sw := range p.Topology.Switches {
		e := Endpoint{Address: sw.GRPC, Device: sw.ID, TLS: s.opts.TLS, Limits: s.opts.Limits}
		if s.alone {
			e.Device = 0
		}
		if a := s.opts.Addresses[sw.Name]; a != "" {
			e.Address = a
		}
		if e.Address == "" {
			return &plan.Error{Switch: sw.Name, Err: errors.New("has no address for controllers"), Hint: "name it in the topology, as in grpc: 192.0.2.1:9559"}
		}
		// One address may serve several devices, as PI's servers do.
		place := fmt.Sprintf("%s, device %d", e.Address, e.Device)
		if other := taken[place]; other != "" {
			return &plan.Error{Switch: sw.Name, Err: fmt.Errorf("is the same as %s: both are %s", other, place), Hint: "give each switch its own grpc address in the topology"}
		}
		taken[place] = sw.Name
		s.places[sw.Name] = e
	}
	return nil
}

// Endpoint returns the addresses of the named switch.
func (s *Servers) Endpoint(name string) (Endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.places[name]
	if !ok {
		return Endpoint{}, fmt.Errorf("there is no switch %s", name)
	}
	return e, nil
}

// Close does nothing.
func (s *Servers) Close() error { return nil }
