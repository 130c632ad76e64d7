package p4rt

import (
	"context"
	"errors"
	"fmt"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// A Simulator runs the data plane of a device in virtual time. Such a device has no
// ports, no queues and no clock of its own.
type Simulator interface {
	// Now returns the virtual time.
	Now() time.Duration
	// Run is called with each program that the device starts.
	Run(sw *dataplane.Switch)
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

// simulated returns the options that make a server process calls in their turns.
func simulated(s Simulator) []grpc.ServerOption {
	turn := func(ctx context.Context, method string, stream bool) (func(error), error) {
		return s.Turn(ctx, SimCall{clientOf(ctx), method[len("/p4.v1.P4Runtime/"):], stream})
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
			if !touches(info.FullMethod) {
				return handler(ctx, req)
			}
			done, err := turn(ctx, info.FullMethod, false)
			if err != nil {
				return nil, err
			}
			defer func() { done(reasonOf(err)) }()
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			switch {
			case info.FullMethod == streamMethod:
				client := clientOf(stream.Context())
				s.Session(client, true)
				defer s.Session(client, false)
			case touches(info.FullMethod):
				done, err := turn(stream.Context(), info.FullMethod, true)
				if err != nil {
					return err
				}
				defer func() { done(reasonOf(err)) }()
				return handler(srv, stream)
			}
			return handler(srv, stream)
		}),
	}
}

const streamMethod = "/p4.v1.P4Runtime/StreamChannel"

// touches reports whether a method reads or changes the state of the switch.
func touches(method string) bool {
	switch method {
	case "/p4.v1.P4Runtime/Write", "/p4.v1.P4Runtime/Read", "/p4.v1.P4Runtime/SetForwardingPipelineConfig":
		return true
	}
	return false
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

func clientOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return "a client"
}
