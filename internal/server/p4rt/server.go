package p4rt

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/server/gate"
)

// apiVersion is the implemented version of P4Runtime.
const apiVersion = "1.5.0"

// Options configure a server. The zero value serves device 0 without TLS.
type Options struct {
	// DeviceID is the id that clients use for the device. The specification
	// requires it to be positive; 0 is BMv2's default.
	DeviceID uint64
	// TLS is the configuration for clients; nil disables TLS.
	TLS *tls.Config
	// Limits bound the resources that clients can use.
	gate.Limits
	// Log receives log messages; nil discards them.
	Log *slog.Logger
}

func (o *Options) validate() error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o.Limits.Complete()
}

// A Server serves P4Runtime for one device.
type Server struct {
	p4v1.UnimplementedP4RuntimeServer
	dev  *Device
	arb  *arbiter
	log  *slog.Logger
	grpc *grpc.Server

	health *health.Server

	limits gate.Limits
	gate   *gate.Gate
	turns  *turns       // of readers
	reads  atomic.Int64 // in progress

	stop     chan struct{}
	stopOnce sync.Once
	idle     IdleWatch

	// mu guards the state of the control plane. Lock order: arb.mu, mu, dev.mu,
	// the data plane's lock; packets take only the last two.
	mu      sync.RWMutex
	current *pipeline // used by requests
	running *pipeline // used by packets
}

// NewServer creates a server for d. A device has only one server.
func NewServer(d *Device, o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Server{
		dev: d, arb: newArbiter(o.DeviceID, o.Limits), log: o.Log,
		limits: o.Limits, turns: newTurns(d.Busy), stop: make(chan struct{}), idle: NewIdleWatch(),
	}
	s.gate = gate.New(&s.limits, p4v1.P4Runtime_ServiceDesc.ServiceName, d.Busy, o.Log)
	opts := s.gate.Options(o.TLS, newCodec())
	if d.opts.Simulator != nil {
		opts = append(opts, p4rtCalls.Options(d.opts.Simulator)...)
	}
	s.grpc = grpc.NewServer(opts...)
	p4v1.RegisterP4RuntimeServer(s.grpc, s)
	// Generic tools can list services by reflection and query their health, for
	// the whole server or by name.
	s.health = health.NewServer()
	s.health.SetServingStatus(p4v1.P4Runtime_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
	d.OnPorts(s.portsChanged)
	d.onSwap = s.swapped
	if sim := d.opts.Simulator; sim != nil {
		sim.AtMoments(func() { s.reportIdle() })
	} else {
		go s.idle.Run(s.stop, s.reportIdle)
	}
	return s, nil
}

// Serve serves clients on l until Stop is called.
func (s *Server) Serve(l net.Listener) error {
	return s.gate.Serve(s.grpc, l)
}

// Stop ends streams, waits for requests until ctx is done, and then closes all
// connections.
func (s *Server) Stop(ctx context.Context) {
	s.stopOnce.Do(func() {
		close(s.stop)
		s.health.Shutdown()
	})
	gate.EndServer(ctx, s.grpc)
}

// Load commits a program given as BMv2 JSON and its P4Info.
func (s *Server) Load(program []byte, info *configv1.P4Info) error {
	return s.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
		&p4v1.ForwardingPipelineConfig{P4Info: info, P4DeviceConfig: program})
}

// swapped runs a swap of programs over Thrift. Requests find no program
// afterwards.
func (s *Server) swapped(swap func() bool) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !swap() {
		return false
	}
	if old := s.running; old != nil {
		for _, d := range old.digests {
			d.configure(nil)
		}
	}
	s.current, s.running = nil, nil
	return true
}

// Put applies updates to the configuration that requests refer to, all or none.
// It returns the index of the first rejected update and the reason.
func (s *Server) Put(updates []*p4v1.Update) (refused int, err error) {
	results := make([]error, len(updates))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return 0, errNoProgram
	}
	s.writeOrNone(nil, updates, results, chunk)
	for i, err := range results {
		if s := status.Convert(err); err != nil && s.Code() != codes.Aborted {
			return i, errors.New(s.Message())
		}
	}
	return 0, nil
}

// Capabilities returns the implemented version of P4Runtime.
func (s *Server) Capabilities(_ context.Context, req *p4v1.CapabilitiesRequest) (*p4v1.CapabilitiesResponse, error) {
	if req.GetDeviceId() != 0 {
		if err := s.arb.checkDevice(req.GetDeviceId()); err != nil {
			return nil, err
		}
	}
	return &p4v1.CapabilitiesResponse{P4RuntimeApiVersion: apiVersion}, nil
}

// portsChanged updates the groups that watch ports.
func (s *Server) portsChanged() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range []*pipeline{s.current, s.running} {
		if p != nil {
			s.dev.Exclusively(p.watchPorts)
		}
	}
}

func (s *Server) sendDigest(list *p4v1.DigestList) {
	s.arb.broadcast(
		&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Digest{Digest: list}},
		func(sc *scope) bool { return sc.allows(list.GetDigestId()) },
	)
}
