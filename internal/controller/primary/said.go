package primary

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// maxSaid is the maximum length of a displayed text from a switch.
const maxSaid = 500

// Clean makes a text from a switch safe for a terminal: one line of printable characters with
// limited length.
func Clean(s string) string { return plain.Printable(s, "", maxSaid) }

// cleanError makes an error from a server safe for a terminal. Its details contain messages,
// which are cleaned separately.
func cleanError(err error) error {
	s, ok := status.FromError(err)
	if !ok || Clean(s.Message()) == s.Message() {
		return err
	}
	p := s.Proto()
	p.Message = Clean(p.Message)
	return status.ErrorProto(p)
}

func cleanCall(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return cleanError(call(ctx, method, req, reply, cc, opts...))
}

func cleanStream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, cleanError(err)
	}
	return &cleaned{s}, nil
}

// A cleaned is a stream that returns clean errors.
type cleaned struct{ grpc.ClientStream }

func (s *cleaned) RecvMsg(m any) error { return cleanError(s.ClientStream.RecvMsg(m)) }

func (s *cleaned) SendMsg(m any) error { return cleanError(s.ClientStream.SendMsg(m)) }
