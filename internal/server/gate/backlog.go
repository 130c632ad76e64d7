package gate

import "sync/atomic"

// A Backlog counts the bytes queued for clients that read too slowly, over all
// clients of a server. Each client has its own quota; the backlog keeps a
// thousand slow clients from exhausting the memory together.
type Backlog struct {
	limit int64
	held  atomic.Int64
}

const (
	// allPending is the number of clients that may use their whole quota at
	// once.
	pendingClients = 8
	// MinPending is the number of bytes that a client may always have queued. A
	// full backlog therefore never drops messages of a client that keeps up.
	MinPending = 64 << 10
)

// NewBacklog returns a backlog with room for limit bytes.
func NewBacklog(limit int64) *Backlog { return &Backlog{limit: limit} }

// Take reserves n bytes for a client that has own bytes queued already, and
// reports whether there was room.
func (b *Backlog) Take(n, own int) bool {
	if b.held.Add(int64(n)) > b.limit && own+n > MinPending {
		b.Give(n)
		return false
	}
	return true
}

// Add counts n bytes regardless of the limit.
func (b *Backlog) Add(n int) { b.held.Add(int64(n)) }

// Give releases n bytes.
func (b *Backlog) Give(n int) { b.held.Add(-int64(n)) }

// Held returns the number of bytes counted.
func (b *Backlog) Held() int64 { return b.held.Load() }

// Full reports whether clients may queue no more than MinPending bytes each.
func (b *Backlog) Full() bool { return b.held.Load() > b.limit }
