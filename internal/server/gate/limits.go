package gate

import (
	"cmp"
	"errors"
	"time"
)

// Limits are what the clients of a server can make it hold or do. A zero stands
// for the default.
type Limits struct {
	// MaxConnections is the number of connections at a time (1024). For one more,
	// one that has made no call is closed, or one without any in progress, or else
	// itself.
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

// Complete puts the defaults for what is not set, and refuses what cannot be.
func (l *Limits) Complete() error {
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
	l.MaxStall = cmp.Or(l.MaxStall, 30*time.Second)
	return nil
}

const (
	// greeting is the time that a new connection has for its handshakes.
	greeting = 10 * time.Second
	// maxHead is the size of a call's head, as HTTP/2 counts it.
	maxHead = 16 << 10
	// unused is how long a connection without any call is kept.
	unused = 5 * time.Minute
)
