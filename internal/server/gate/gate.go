// Package gate limits the resources that clients of a gRPC server can use,
// whichever protocol the server implements:
//
//   - calls, headers, sizes of messages, pings, and idle connections, by
//     options of gRPC (gate.go, limits.go)
//   - connections and TLS handshakes, also of HTTP servers (listener.go)
//   - memory of incoming messages of all connections (conn.go, incoming.go)
//   - processor time spent on frames (pace.go)
//   - memory of outgoing messages that clients do not read (backlog.go, call.go)
//
// A panic in a handler ends only the call that caused it (panics.go).
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

// A Gate stands between the clients of a gRPC server and its handlers. It
// applies the limits to all clients together.
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

// New returns the gate of the server for the named gRPC service. The limits
// must be complete (see [Limits.Complete]). packetsWaiting reports whether
// packets are waiting for a processor; the gate then gives less time to
// clients.
func New(l *Limits, service string, packetsWaiting func() bool, log *slog.Logger) *Gate {
	return &Gate{
		limits: l, service: service, log: log, pace: &pace{packetsWaiting: packetsWaiting},
		incoming: newIncoming(max(l.MaxIncoming, l.MaxMessage), log), pending: NewBacklog(pendingClients * int64(l.MaxPending)),
	}
}

// Options returns the options for the gRPC server behind the gate. The server
// pings idle clients, so a vanished controller is disconnected after 30
// seconds. Clients may ping once a second. The server closes connections that
// have had no call for a while and turns panics into errors of their calls.
func (g *Gate) Options(secret *tls.Config, codec encoding.CodecV2) []grpc.ServerOption {
	creds := insecure.NewCredentials()
	if g.secure = secret != nil; g.secure {
		creds = credentials.NewTLS(secret)
	}
	return append(g.recovering(codec),
		grpc.MaxRecvMsgSize(g.limits.MaxMessage),
		grpc.MaxConcurrentStreams(uint32(g.limits.MaxStreams)),
		// gRPC enlarges the window for a message that does not fit into it.
		grpc.InitialWindowSize(streamWindow), grpc.InitialConnWindowSize(4<<20),
		// The server keeps a call's headers as long as the call.
		grpc.MaxHeaderListSize(maxHead),
		grpc.ConnectionTimeout(greeting), grpc.ReadBufferSize(16<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second, MaxConnectionIdle: unused}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.Creds(&counting{creds, g.incoming, g.pace}), grpc.InTapHandle(g.admit), grpc.StatsHandler(requestSizes{}),
	)
}

// Serve accepts connections from l and serves them with s until s is stopped.
// It returns at once if s has been stopped already.
func (g *Gate) Serve(s *grpc.Server, l net.Listener) error {
	err := s.Serve(Bound(Paced(l, g.pace.packetsWaiting), g.limits.MaxConnections, g.secure, g.log))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// admit counts a new call, or rejects it before its message is received. The
// returned context can be ended by the server.
func (g *Gate) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !strings.HasPrefix(info.FullMethodName, "/"+g.service+"/") && !strings.HasPrefix(info.FullMethodName, "/grpc.") {
		return ctx, nil // no such service
	}
	if n := g.calls.Add(1); n > int64(g.limits.MaxCalls) {
		g.calls.Add(-1)
		return ctx, status.Errorf(codes.ResourceExhausted, "too many requests and streams: the server is at its limit of %d", g.limits.MaxCalls)
	}
	ctx = newEndable(ctx)
	context.AfterFunc(ctx, func() { g.calls.Add(-1) })
	return ctx, nil
}

// Calls returns the number of calls in progress.
func (g *Gate) Calls() int { return int(g.calls.Load()) }

// Send sends one message of a response. It ends the call if the client does not
// read for MaxStall.
func (g *Gate) Send(stream grpc.ServerStream, m any) error {
	timer := time.AfterFunc(g.limits.MaxStall, func() { endLate(stream.Context()) })
	defer timer.Stop()
	return stream.SendMsg(m)
}

// Pending returns the backlog of messages that clients have not read yet.
func (g *Gate) Pending() *Backlog { return g.pending }

// EndServer waits until the calls in progress have finished or ctx is done, and
// then closes all connections.
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
