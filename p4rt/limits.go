package p4rt

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"
)

// Limits are what the clients of a server can make it hold or do. A zero stands
// for the default.
type Limits struct {
	// MaxConnections is the number of connections at a time (1024). For one more,
	// one that has never said anything is closed, or else itself.
	MaxConnections int
	// MaxCalls is the number of requests and streams of all clients at a time
	// (8192), MaxReads that of reads among them (1024), each of which may hold
	// 300 KB for a client that does not take it, MaxStreams that of one
	// connection (1024), MaxControllers that of the streams of one role (1024).
	MaxCalls, MaxReads, MaxStreams, MaxControllers int
	// MaxRoles is the number of roles (256). A role that nobody has a stream for
	// is forgotten to make room for another one.
	MaxRoles int
	// MaxMessage is the size of the largest message that is taken (64 MiB),
	// MaxEntity that of the largest entity or role config in it (1 MiB): it must
	// fit into what clients receive.
	MaxMessage, MaxEntity int
	// MaxIncoming is the size of all large messages together that are coming or
	// being answered (128 MiB). A message waits for room; if there is none for a
	// second, the connection whose message is unfinished for longest is closed.
	MaxIncoming int
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
		{&l.MaxConnections, 1024}, {&l.MaxCalls, 8192}, {&l.MaxReads, 1024}, {&l.MaxStreams, 1024}, {&l.MaxControllers, 1024},
		{&l.MaxRoles, 256}, {&l.MaxMessage, 64 << 20}, {&l.MaxEntity, 1 << 20}, {&l.MaxIncoming, 128 << 20},
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

// requestSizes notes how large the requests are that come.
type requestSizes struct{}

func (requestSizes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (requestSizes) HandleRPC(ctx context.Context, e stats.RPCStats) {
	if in, ok := e.(*stats.InPayload); ok {
		if c, ok := ctx.Value(endableKey{}).(*endable); ok {
			c.size.Store(int64(in.Length))
		}
	}
}

func (requestSizes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (requestSizes) HandleConn(context.Context, stats.ConnStats) {}

// requestSize is the size of the request of a call, as it came.
func requestSize(ctx context.Context) int {
	if c, ok := ctx.Value(endableKey{}).(*endable); ok {
		return int(c.size.Load())
	}
	return math.MaxInt
}

// A boundedListener has so many connections at a time. For one more, the one
// gives way that has been silent for longest since it was opened, so that a flood
// of connections keeps out nobody who has something to say; if all have spoken,
// the new one is closed. Files may run out all the same; Accept then says so, and
// gRPC tries again later.
type boundedListener struct {
	net.Listener
	most int
	log  *slog.Logger

	mu   sync.Mutex
	open map[*boundedConn]bool
	full bool // has been reported
}

// Accept waits for a connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b := &boundedConn{Conn: c, listener: l, since: time.Now()}
		ok, gone := l.add(b)
		if gone != nil {
			gone.Close()
		}
		if ok {
			return b, nil
		}
		c.Close()
	}
}

// add counts a connection in if there is room, or makes room.
func (l *boundedListener) add(c *boundedConn) (ok bool, gone *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*boundedConn]bool{}
	}
	if len(l.open) < l.most {
		l.open[c], l.full = true, false
		return true, nil
	}
	if !l.full {
		l.full = true
		l.log.Warn("P4Runtime: there are too many connections", "open", l.most)
	}
	for o := range l.open {
		if !o.spoke.Load() && (gone == nil || o.since.Before(gone.since)) {
			gone = o
		}
	}
	if gone == nil {
		return false, nil
	}
	delete(l.open, gone)
	l.open[c] = true
	return true, gone
}

type boundedConn struct {
	net.Conn
	listener *boundedListener
	since    time.Time
	spoke    atomic.Bool
}

func (c *boundedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.spoke.Load() {
		c.spoke.Store(true)
	}
	return n, err
}

// Close closes the connection and makes room for another.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
