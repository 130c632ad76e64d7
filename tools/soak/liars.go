package main

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A liar is a switch that accepts everything and answers reads incorrectly.
type liar struct {
	p4v1.UnimplementedP4RuntimeServer
	lie func(send func(*p4v1.ReadResponse) error) error

	mu     sync.Mutex
	config *p4v1.ForwardingPipelineConfig // as received
}

// liedTo is a topology of one switch. ADDRESS stands for its address.
const liedTo = `name: lied
switches:
  l1: {role: leaf, id: 1, grpc: "ADDRESS"}
hosts:
  h1: {ip: 10.0.1.1/24, mac: "02:00:0a:00:01:01"}
  h2: {ip: 10.0.1.2/24, mac: "02:00:0a:00:01:02"}
links:
  - {ends: [h1, l1:1], rate: 10Gbps, delay: 0s}
  - {ends: [h2, l1:2], rate: 10Gbps, delay: 0s}
`

// liars returns attacks by switches on the deploying controller, which must end
// with an error.
func liars() []attack {
	entry := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: 1}}}
	large := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{Metadata: make([]byte, 3<<20)}}}
	forever := func(pause time.Duration, list ...*p4v1.Entity) func(func(*p4v1.ReadResponse) error) error {
		return func(send func(*p4v1.ReadResponse) error) error {
			for {
				if err := send(&p4v1.ReadResponse{Entities: list}); err != nil {
					return err
				}
				time.Sleep(pause)
			}
		}
	}
	var list []attack
	for _, l := range []struct {
		name, says string
		timeout    string
		lie        func(func(*p4v1.ReadResponse) error) error
	}{
		{"an endless answer", "exceeds the program's capacity", "1m", forever(0, entry, entry, entry)},
		{"an endless answer of large entities", "exceeds the program's capacity", "1m", forever(0, large)},
		{"an endless answer without entities", "l1", "500ms", forever(100 * time.Microsecond)},
		{"a slow endless answer", "l1", "500ms", forever(100*time.Millisecond, entry)},
		{"an empty answer", "l1", "1m", func(func(*p4v1.ReadResponse) error) error { return nil }},
		{"an error for a terminal", "evil", "1m", func(func(*p4v1.ReadResponse) error) error {
			return status.Error(codes.Internal, strings.Repeat("\x1b]0;evil\x07\n", 10000))
		}},
	} {
		list = append(list, attack{
			name: "deploy: " + l.name, files: map[string]string{"net.yaml": liedTo}, code: 3, says: l.says, serve: serveLies(l.lie),
			args: []string{"deploy", "--scheme", "ecmp", "--topology", "net.yaml", "--target", "p4runtime", "--once", "--timeout", l.timeout},
		})
	}
	return list
}

// serveLies returns a function that starts a liar.
func serveLies(lie func(func(*p4v1.ReadResponse) error) error) func(net.Listener) (stop func()) {
	return func(l net.Listener) func() {
		s := grpc.NewServer()
		p4v1.RegisterP4RuntimeServer(s, &liar{lie: lie})
		go s.Serve(l)
		return s.Stop
	}
}

func (l *liar) Read(_ *p4v1.ReadRequest, s p4v1.P4Runtime_ReadServer) error { return l.lie(s.Send) }

// StreamChannel makes every client primary.
func (l *liar) StreamChannel(s p4v1.P4Runtime_StreamChannelServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		if a := m.GetArbitration(); a != nil {
			if err := s.Send(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: a}}); err != nil {
				return err
			}
		}
	}
}

func (l *liar) Write(context.Context, *p4v1.WriteRequest) (*p4v1.WriteResponse, error) {
	return &p4v1.WriteResponse{}, nil
}

func (l *liar) SetForwardingPipelineConfig(_ context.Context, r *p4v1.SetForwardingPipelineConfigRequest) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.config = r.Config
	return &p4v1.SetForwardingPipelineConfigResponse{}, nil
}

func (l *liar) GetForwardingPipelineConfig(context.Context, *p4v1.GetForwardingPipelineConfigRequest) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &p4v1.GetForwardingPipelineConfigResponse{Config: l.config}, nil
}

func (l *liar) Capabilities(context.Context, *p4v1.CapabilitiesRequest) (*p4v1.CapabilitiesResponse, error) {
	return &p4v1.CapabilitiesResponse{P4RuntimeApiVersion: "1.5.0"}, nil
}
