package gate

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Frames cost a client nothing and a server something, whether they are calls or
// not, and no limit of calls, messages or windows bounds how many come: pings,
// settings, priorities, calls that are reset at once. So who never lets the server
// wait for the next of them rests, the longer the more such there are: together
// they have a fraction of the processors, and who has one call to make now and then
// finds the others free.

const (
	// busyFrom is the work without a pause from which a connection is busy.
	busyFrom = time.Millisecond
	// callWork is what a call is taken to cost beside its frames, whatever it is.
	callWork = 50 * time.Microsecond
	// maxRest bounds a rest.
	maxRest = 500 * time.Millisecond
)

// A pace counts the connections of a server that make work without a pause.
type pace struct{ busy atomic.Int64 }

// A worker is a connection as far as it makes work. It belongs to who reads from it.
type worker struct {
	pace  *pace
	since time.Time     // what was read last is worked on
	debt  time.Duration // work since the client last let the server wait
	busy  atomic.Bool
}

// worked is called when all that came has been worked on, calls of it included. It
// returns how long to rest.
func (w *worker) worked(now time.Time, calls int) time.Duration {
	if !w.since.IsZero() {
		w.debt += now.Sub(w.since)
	}
	w.debt += time.Duration(calls) * callWork
	if w.debt < busyFrom {
		return 0
	}
	if w.busy.CompareAndSwap(false, true) {
		w.pace.busy.Add(1)
	}
	debt, others := w.debt, w.pace.busy.Load()-1
	w.debt = 0
	return min(debt*time.Duration(4*others)/time.Duration(runtime.GOMAXPROCS(0)), maxRest)
}

// got is called when more has come that was asked for at a time. What fills all the
// room for it was there already: to take it was work.
func (w *worker) got(began, now time.Time, full bool) {
	w.since = now
	took := now.Sub(began)
	switch {
	case full:
		w.debt += took
	case took > busyFrom:
		w.debt = 0
		w.gone()
	default:
		w.debt = max(0, w.debt-took)
	}
}

// waited takes from the work what was none.
func (w *worker) waited(d time.Duration) { w.since = w.since.Add(d) }

// gone says that the connection makes no work for now.
func (w *worker) gone() {
	if w.busy.CompareAndSwap(true, false) {
		w.pace.busy.Add(-1)
	}
}
