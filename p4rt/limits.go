package p4rt

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/tap"
)

// Limits are what the clients of a server can make it hold or do. A zero stands
// for the default.
type Limits struct {
	// MaxConnections is the number of connections at a time (1024): more are
	// closed at once.
	MaxConnections int
	// MaxCalls is the number of requests and streams of all clients at a time
	// (8192), MaxStreams that of one connection (1024), MaxControllers that of
	// the streams of one role (1024).
	MaxCalls, MaxStreams, MaxControllers int
	// MaxRoles is the number of roles (256). A role that nobody has a stream for
	// is forgotten to make room for another one.
	MaxRoles int
	// MaxMessage is the size of the largest message that is taken (64 MiB),
	// MaxEntity that of the largest entity or role config in it (1 MiB): it must
	// fit into what clients receive.
	MaxMessage, MaxEntity int
	// MaxUpdates is the number of updates in a batch (131,072), MaxRequests that
	// of the requests of a read (32,768).
	MaxUpdates, MaxRequests int
	// MaxPending is about the memory that notifications may take that a client
	// has not received yet (16 MiB): packets, digests, idle timeouts and stream
	// errors for which there is no room are lost.
	MaxPending int
	// MaxStall is how long a client may leave the next message of an answer to a
	// read where it is (30 s): the read then ends with DEADLINE_EXCEEDED.
	MaxStall time.Duration
}

func (l *Limits) validate() error {
	for _, x := range []struct {
		n      *int
		preset int
	}{
		{&l.MaxConnections, 1024}, {&l.MaxCalls, 8192}, {&l.MaxStreams, 1024}, {&l.MaxControllers, 1024},
		{&l.MaxRoles, 256}, {&l.MaxMessage, 64 << 20}, {&l.MaxEntity, 1 << 20},
		{&l.MaxUpdates, 1 << 17}, {&l.MaxRequests, 1 << 15}, {&l.MaxPending, 16 << 20},
	} {
		switch {
		case *x.n < 0:
			return errors.New("a limit cannot be negative")
		case *x.n == 0:
			*x.n = x.preset
		}
	}
	if l.MaxStall < 0 {
		return errors.New("a limit cannot be negative")
	}
	if l.MaxStall == 0 {
		l.MaxStall = 30 * time.Second
	}
	return nil
}

const (
	// maxRoleName bounds the names of roles, in bytes.
	maxRoleName = 1 << 10
	// greeting is the time that a new connection has for its handshakes.
	greeting = 10 * time.Second
	// unused is how long a connection without any call is kept.
	unused = 5 * time.Minute
)

// admitCall counts a call in, or refuses it before its message is received, and
// gives it a context that the server can end.
func (s *Server) admitCall(ctx context.Context, info *tap.Info) (context.Context, error) {
	if !strings.HasPrefix(info.FullMethodName, "/p4.v1.P4Runtime/") {
		return ctx, nil
	}
	if n := s.calls.Add(1); n > int64(s.limits.MaxCalls) {
		s.calls.Add(-1)
		return ctx, failf(codes.ResourceExhausted, "there are %d requests and streams already, and no more are taken", s.limits.MaxCalls).(*failure).GRPCStatus().Err()
	}
	ctx = newEndable(ctx)
	context.AfterFunc(ctx, func() { s.calls.Add(-1) })
	return ctx, nil
}

// A boundedListener closes the connections that are too many. Files may run out
// all the same; Accept then says so, and gRPC tries again later.
type boundedListener struct {
	net.Listener
	most int64
	open atomic.Int64
	full atomic.Bool // has been reported
	log  *slog.Logger
}

// Accept waits for a connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			l.full.Store(false)
			return &boundedConn{Conn: c, listener: l}, nil
		}
		l.open.Add(-1)
		c.Close()
		if l.full.CompareAndSwap(false, true) {
			l.log.Warn("P4Runtime: more connections are closed at once", "open", l.most)
		}
	}
}

type boundedConn struct {
	net.Conn
	listener *boundedListener
	closed   atomic.Bool
}

// Close closes the connection and makes room for another.
func (c *boundedConn) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.listener.open.Add(-1)
	}
	return c.Conn.Close()
}
