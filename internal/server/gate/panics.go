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

// A fault of the server that one request meets is no reason for a switch to end, with
// all its packets and the state of other clients: what panics is answered with
// INTERNAL, and said with its stack. What does so beside requests, with packets among
// them, ends the process all the same: nobody would hear of it, and nobody knows what
// is left of the state.

// survived, deferred, turns a panic into the error of a call.
func survived(log *slog.Logger, what string, err *error) {
	if p := recover(); p != nil {
		log.Error("a request has met a fault of the switch", "request", what, "fault", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "%s has met a fault of the switch, which its log has", what)
	}
}

// surviving has calls survive their faults, and what encodes their messages.
func (g *Gate) surviving(codec encoding.CodecV2) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (answer any, err error) {
			defer survived(g.log, info.FullMethod, &err)
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer survived(g.log, info.FullMethod, &err)
			return handler(srv, stream)
		}),
		grpc.ForceServerCodecV2(survivingCodec{codec, g.log}),
	}
}

// A survivingCodec encodes and decodes what interceptors do not see.
type survivingCodec struct {
	encoding.CodecV2
	log *slog.Logger
}

func (c survivingCodec) Marshal(v any) (list mem.BufferSlice, err error) {
	defer survived(c.log, "an answer", &err)
	return c.CodecV2.Marshal(v)
}

func (c survivingCodec) Unmarshal(list mem.BufferSlice, v any) (err error) {
	defer survived(c.log, "a message", &err)
	return c.CodecV2.Unmarshal(list, v)
}
