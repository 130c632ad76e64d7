package p4rt

import "sync/atomic"

// A Backlog counts what waits for clients that do not take it, of all of a server
// together: each may leave what it has room for, and a thousand of them would take
// the machine.
type Backlog struct {
	most int64
	held atomic.Int64
}

const (
	// allPending is how many clients may leave as much as one may.
	allPending = 8
	// ownPending is what a client may leave whatever others have left: they do
	// not make one lose anything that keeps up.
	ownPending = 64 << 10
)

// Take counts n bytes for a client that has left own so far, unless there is no
// room.
func (b *Backlog) Take(n, own int) bool {
	if b.held.Add(int64(n)) > b.most && own+n > ownPending {
		b.Give(n)
		return false
	}
	return true
}

// Give counts n bytes out again.
func (b *Backlog) Give(n int) { b.held.Add(-int64(n)) }

func (b *Backlog) full() bool { return b.held.Load() > b.most }

// Pending is the backlog of a server's clients.
func (g *Gate) Pending() *Backlog { return &g.pending }
