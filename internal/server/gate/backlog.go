package gate

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
	// OwnPending is what a client may leave whatever others have left: they do
	// not make one lose anything that keeps up.
	OwnPending = 64 << 10
)

// NewBacklog makes one that holds so many bytes.
func NewBacklog(most int64) *Backlog { return &Backlog{most: most} }

// Take counts n bytes for a client that has left own so far, unless there is no
// room.
func (b *Backlog) Take(n, own int) bool {
	if b.held.Add(int64(n)) > b.most && own+n > OwnPending {
		b.Give(n)
		return false
	}
	return true
}

// Add counts n bytes whether there is room or not.
func (b *Backlog) Add(n int) { b.held.Add(int64(n)) }

// Give counts n bytes out again.
func (b *Backlog) Give(n int) { b.held.Add(-int64(n)) }

// Held is how many bytes are counted.
func (b *Backlog) Held() int64 { return b.held.Load() }

// Full says that nothing may wait beyond what each client may leave anyway.
func (b *Backlog) Full() bool { return b.held.Load() > b.most }
