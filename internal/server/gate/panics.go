package gate

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// A panic while the server handles one request must not end the switch with its
// packets and the state of its other clients. The client gets INTERNAL, and the log
// gets the stack. A panic outside of requests, for example in the processing of
// packets, still ends the process: no client would be notified, and the state may
// be inconsistent.

// recoverCall, deferred, turns a panic into the error of a call.
func recoverCall(log *slog.Logger, what string, err *error) {
	if p := recover(); p != nil {
		log.Error("panic while handling a request", "request", what, "fault", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "%s: internal error of the switch: see its log for the stack", what)
	}
}

// recovering returns the options that turn panics in handlers and codecs into
// errors.
func (g *Gate) recovering(codec encoding.CodecV2) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
			defer recoverCall(g.log, info.FullMethod, &err)
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer recoverCall(g.log, info.FullMethod, &err)
			return handler(srv, stream)
		}),
		grpc.ForceServerCodecV2(recoveringCodec{codec, g.log}),
	}
}

// A recoveringCodec recovers from panics in encoding and decoding, which
// interceptors do not see.
type recoveringCodec struct {
	encoding.CodecV2
	log *slog.Logger
}

func (c recoveringCodec) Marshal(v any) (list mem.BufferSlice, err error) {
	defer recoverCall(c.log, "an answer", &err)
	return c.CodecV2.Marshal(v)
}

func (c recoveringCodec) Unmarshal(list mem.BufferSlice, v any) (err error) {
	defer recoverCall(c.log, "a message", &err)
	return c.CodecV2.Unmarshal(list, v)
}
