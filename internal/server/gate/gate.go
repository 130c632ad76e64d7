// Package gate bounds what the clients of a gRPC server, whichever protocol it
// serves, can make it hold: connections and calls (listener.go, gate.go, limits.go),
// messages that come (incoming.go), frames (pace.go), and what they do not take
// (backlog.go, call.go). What they make it trip over ends their call alone (panics.go).
// How many connections there are, and what their handshakes take (handshake.go),
// it bounds for servers of HTTP as well.
package gate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// A Gate is the way of calls into a gRPC server, whichever protocol it serves: of
// all its clients together it lets in no more than the limits say.
type Gate struct {
	limits   *Limits
	service  string
	log      *slog.Logger
	secure   bool
	calls    atomic.Int64 // in progress
	incoming *incoming
	pending  *Backlog
	pace     *pace
}

// New makes the gate of a server for a service by its name. The limits are
// complete. Hurried says whether what is no request, a packet, wants the processors.
func New(l *Limits, service string, hurried func() bool, log *slog.Logger) *Gate {
	return &Gate{
		limits: l, service: service, log: log, pace: &pace{hurried: hurried},
		incoming: newIncoming(max(l.MaxIncoming, l.MaxMessage), log), pending: NewBacklog(allPending * int64(l.MaxPending)),
	}
}

// Options put a gRPC server behind the gate. They also let clients ask for
// signs of life often, and ask for such themselves: a controller that vanishes
// without a word is no longer one after half a minute. A connection that says
// nothing is closed. What panics is the error of a call.
func (g *Gate) Options(secret *tls.Config, codec encoding.CodecV2) []grpc.ServerOption {
	creds := insecure.NewCredentials()
	if g.secure = secret != nil; g.secure {
		creds = credentials.NewTLS(secret)
	}
	return append(g.surviving(codec),
		grpc.MaxRecvMsgSize(g.limits.MaxMessage),
		grpc.MaxConcurrentStreams(uint32(g.limits.MaxStreams)),
		// A message that is larger than the window comes in one go all the same.
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(4<<20),
		// The head of a call is kept for as long as the call.
		grpc.MaxHeaderListSize(maxHead),
		grpc.ConnectionTimeout(greeting), grpc.SharedWriteBuffer(true), grpc.ReadBufferSize(16<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, MaxConnectionIdle: unused}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.Creds(&counting{creds, g.incoming, g.pace}), grpc.InTapHandle(g.admit),
	)
}

// Serve has s answer the clients of l, as many as may connect, until s is stopped,
// which may have come first.
func (g *Gate) Serve(s *grpc.Server, l net.Listener) error {
	err := s.Serve(Bound(Paced(l, g.pace.hurried), g.limits.MaxConnections, g.secure, g.log))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// admit counts a call in, or refuses it before its message is received, and gives
// it a context that the server can end.
func (g *Gate) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !strings.HasPrefix(info.FullMethodName, "/"+g.service+"/") && !strings.HasPrefix(info.FullMethodName, "/grpc.") {
		return ctx, nil // there is no such service
	}
	if n := g.calls.Add(1); n > int64(g.limits.MaxCalls) {
		g.calls.Add(-1)
		return ctx, status.Errorf(codes.ResourceExhausted, "there are %d requests and streams already, and no more are taken", g.limits.MaxCalls)
	}
	ctx = newEndable(ctx)
	context.AfterFunc(ctx, func() { g.calls.Add(-1) })
	return ctx, nil
}

// Calls is how many calls are in progress.
func (g *Gate) Calls() int { return int(g.calls.Load()) }

// Send sends a message of an answer; a client that leaves it where it is for too
// long ends the call.
func (g *Gate) Send(stream grpc.ServerStream, m any) error {
	timer := time.AfterFunc(g.limits.MaxStall, func() { endLate(stream.Context()) })
	defer timer.Stop()
	return stream.SendMsg(m)
}

// Pending is the backlog of the server's clients.
func (g *Gate) Pending() *Backlog { return g.pending }

// EndServer lets the requests of a server finish until ctx is done, and then closes
// all connections.
func EndServer(ctx context.Context, s *grpc.Server) {
	finished := make(chan struct{})
	go func() {
		s.GracefulStop()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		s.Stop()
		<-finished
	}
}
