package gate

import (
	"cmp"
	"errors"
	"time"
)

// Limits are the limits on the clients of a server. A zero field means the default
// in parentheses.
type Limits struct {
	// MaxConnections is the number of open connections (1024). At the limit, a
	// new connection replaces one that has made no call, or one without calls
	// in progress. If there is none, the new connection is closed.
	MaxConnections int
	// MaxCalls is the number of requests and streams of all clients at a time
	// (8192). MaxReads is the number of reads among them (1024); each may hold
	// 300 KB for a client that reads slowly. MaxStreams is the number of calls
	// of one connection (1024), MaxControllers the number of streams of one role
	// (1024).
	MaxCalls, MaxReads, MaxStreams, MaxControllers int
	// MaxRoles is the number of roles (256). The server forgets a role without
	// streams to make room for another one.
	MaxRoles int
	// MaxMessage is the size of the largest accepted message (64 MiB).
	// MaxEntity is the size of the largest entity or role config in it (1 MiB);
	// it must fit into the messages that clients can receive.
	MaxMessage, MaxEntity int
	// MaxIncoming is the total size of large messages being received or
	// answered (128 MiB). A message waits for room. If there is none for a
	// second, the server closes the connection whose message has been
	// unfinished longest.
	MaxIncoming int
	// MaxUpdates limits the updates of a batch (131,072). MaxRequests limits the
	// requests of a read (32,768).
	MaxUpdates, MaxRequests int
	// MaxPending is the approximate memory of notifications queued for one
	// client (16 MiB): packets, digests, idle timeouts and stream errors.
	// Further ones are dropped.
	MaxPending int
	// MaxStall is how long a client may take to read the next message of a
	// response (30 s). The read then fails with DEADLINE_EXCEEDED.
	MaxStall time.Duration
}

// Complete sets the defaults and rejects negative limits.
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
			return errors.New("negative limit: use 0 for the default or a positive number")
		case *x.n == 0:
			*x.n = x.preset
		}
	}
	if l.MaxStall < 0 {
		return errors.New("negative limit: use 0 for the default or a positive duration")
	}
	l.MaxStall = cmp.Or(l.MaxStall, 30*time.Second)
	return nil
}

const (
	// greeting is the time that a new connection has for its handshakes.
	greeting = 10 * time.Second
	// maxHead is the largest header list of a call, counted as in HTTP/2.
	maxHead = 16 << 10
	// unused is how long a connection without calls stays open.
	unused = 5 * time.Minute
)
