package p4rt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// A Simulator runs the data plane of a device in virtual time. Such a device has no
// ports, no queues and no clock of its own.
type Simulator interface {
	// Now returns the virtual time.
	Now() time.Duration
	// Run is called with each program that the device starts.
	Run(sw *dataplane.Switch)
	// PortCounts returns the packets at each port.
	PortCounts() []bmv2.PortCounts
	// Fixed returns the reason why controllers cannot change ports and queues, or nil
	// if such changes have no effect.
	Fixed() error
	// AtMoments registers a function to be called each time that the clock stops,
	// before the server processes calls.
	AtMoments(f func())
	// Generator registers the packet generator: due returns the packets to send by now, and
	// the time of the next one, if there is one. The simulator calls due at that time and
	// each time that the clock continues.
	Generator(due func(now time.Duration) (list []dataplane.Generated, next time.Duration, more bool))
	// PacketOut makes a frame arrive at the CPU port.
	PacketOut(frame []byte)
	// Turn blocks until the server may process a call, and returns the function that
	// receives its result.
	Turn(ctx context.Context, c SimCall) (done func(error), err error)
	// Session is called when a client opens the stream of a controller and, with false,
	// when the stream has ended.
	Session(client string, open bool)
	// Refused is called with the reason why the server rejected a message on a stream.
	Refused(client string, err error)
}

// A SimCall is a request of a client.
type SimCall struct {
	Client string // address
	Method string // such as Write
	Stream bool   // the answer waits for the client to read it
}

// SimCalls describes the calls of a service to a Simulator.
type SimCalls struct {
	Service string            // its name, such as p4.v1.P4Runtime
	Turns   []string          // the methods that read or change the state of the switch
	Reason  func(error) error // returns the cause of a rejected call
}

// stream is the method of the stream of a controller, in P4Runtime as in BfRt.
const stream = "StreamChannel"

// Options make a server process calls when s allows it.
func (c *SimCalls) Options(s Simulator) []grpc.ServerOption {
	name := func(full string) string { return strings.TrimPrefix(full, "/"+c.Service+"/") }
	turn := func(ctx context.Context, method string, streamed bool) (func(error), error) {
		return s.Turn(ctx, SimCall{ClientOf(ctx), method, streamed})
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
			method := name(info.FullMethod)
			if !slices.Contains(c.Turns, method) {
				return handler(ctx, req)
			}
			done, err := turn(ctx, method, false)
			if err != nil {
				return nil, err
			}
			defer func() { done(c.Reason(err)) }()
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, channel grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			method := name(info.FullMethod)
			switch {
			case method == stream:
				client := ClientOf(channel.Context())
				s.Session(client, true)
				defer s.Session(client, false)
			case slices.Contains(c.Turns, method):
				done, err := turn(channel.Context(), method, true)
				if err != nil {
					return err
				}
				defer func() { done(c.Reason(err)) }()
				return handler(srv, channel)
			}
			return handler(srv, channel)
		}),
	}
}

var p4rtCalls = SimCalls{
	Service: p4v1.P4Runtime_ServiceDesc.ServiceName,
	Turns:   []string{"Write", "Read", "SetForwardingPipelineConfig"},
	Reason:  reasonOf,
}

// reasonOf returns the message of an error, or of the first rejected part of a batch.
func reasonOf(err error) error {
	if err == nil {
		return nil
	}
	s := status.Convert(err)
	for i, d := range s.Details() {
		if e, ok := d.(*p4v1.Error); ok && e.GetCanonicalCode() != int32(codes.OK) && e.GetCanonicalCode() != int32(codes.Aborted) {
			return fmt.Errorf("part %d: %s", i+1, e.GetMessage())
		}
	}
	return errors.New(s.Message())
}

// ClientOf returns the address of the client of a call.
func ClientOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return "a client"
}
