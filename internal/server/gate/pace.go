package gate

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Frames cost a client nothing and a server something, whether they are calls or
// not, and no limit of calls, messages or windows bounds how many come: pings,
// settings, priorities, calls that are reset at once. So who never lets the server
// wait for the next of them rests, the longer the more such there are: together
// they have a fraction of the processors, and who has one call to make now and then
// finds the others free. Where a processor is missed at once, by packets, idle work
// has less: frames that are of no call, calls that the server says nothing to or that
// their client gives up, and requests that come to nothing.

const (
	// busyFrom is the work without a pause from which a connection is busy.
	busyFrom = time.Millisecond
	// callWork is what a call is taken to cost beside its frames, whatever it is.
	callWork = 50 * time.Microsecond
	// headWork is what a byte of a call's head is taken to cost beyond freeHead of a
	// frame, pieceWork a piece of a message that is shorter than smallPiece and does
	// not end it, byteWork a byte of what the server says nothing to.
	headWork   = 10 * time.Nanosecond
	freeHead   = 1 << 10
	pieceWork  = time.Microsecond
	smallPiece = 64
	byteWork   = time.Nanosecond
	// maxRest bounds a rest, after which something is read again: a message of which
	// nothing comes for a second may have to give way.
	maxRest = 500 * time.Millisecond
	// maxRests bounds those that idle work is followed by, all of them.
	maxRests = 4 * maxRest
	// restIdle is how many times as long as idle work a connection rests after it.
	restIdle = 64
)

// A pace counts the connections of a server that make work without a pause.
type pace struct {
	busy    atomic.Int64
	hurried func() bool // processors are missed
}

// A worker is a connection as far as it makes work. It belongs to who reads from it.
type worker struct {
	pace  *pace
	since time.Time     // what was read last is worked on
	debt  time.Duration // work since the client last let the server wait
	idle  time.Duration // work for nothing, of which pauses take little away
	rests time.Duration // after it, that are still to come
	owed  atomic.Int64  // idle work that others have done
	busy  atomic.Bool

	at     atomic.Int64 // when it began to work on something, by the wall clock, or 0
	unpaid atomic.Int64 // idle work that it has not rested for
}

// worked is called when all that came has been worked on, calls of it included; idle
// says that it was of no call at all. It returns how long to rest.
func (w *worker) worked(now time.Time, calls int, idle bool) time.Duration {
	w.at.Store(0)
	defer func() { w.unpaid.Store(int64(w.idle + w.rests/restIdle)) }()
	var work time.Duration
	if !w.since.IsZero() {
		work = now.Sub(w.since)
	}
	w.debt += work + time.Duration(calls)*callWork
	if idle {
		w.idle += work
	}
	w.idle += time.Duration(w.owed.Swap(0))
	if w.debt < busyFrom && w.idle < busyFrom && w.rests == 0 {
		return 0
	}
	if w.busy.CompareAndSwap(false, true) {
		w.pace.busy.Add(1)
	}
	processors, others := time.Duration(runtime.GOMAXPROCS(0)), time.Duration(w.pace.busy.Load()-1)
	rest := time.Duration(0)
	if w.debt >= busyFrom {
		rest = w.debt * 4 * others / processors
		w.debt = 0
	}
	if w.pace.hurried() {
		if w.idle >= busyFrom {
			w.rests = min(w.rests+w.idle*restIdle*(others+1)/processors, maxRests)
			w.idle = 0
		}
		rest = max(rest, w.rests)
	} else {
		w.rests, w.idle = 0, 0
	}
	rest = min(rest, maxRest)
	w.rests = max(0, w.rests-rest)
	return rest
}

// got is called when more has come that was asked for at a time. What fills all the
// room for it was there already: to take it was work.
func (w *worker) got(began, now time.Time, full bool) {
	w.at.Store(now.UnixNano())
	if full {
		w.since = began
		return
	}
	w.since = now
	took := now.Sub(began)
	w.idle = max(0, w.idle-took/restIdle)
	if w.debt = max(0, w.debt-took); took > busyFrom {
		w.debt = 0
		w.gone()
	}
}

// A known client is one of whose connection the handlers of its calls know.
type known struct {
	credentials.AuthInfo
	work *worker
}

// refusedWork is what a part of a request is taken to cost that is refused, with its
// error.
const refusedWork = 2 * time.Microsecond

// Owe notes that so many parts of a call's request have come to nothing, which counts as
// frames do that are of no call.
func Owe(ctx context.Context, parts int) {
	if p, ok := peer.FromContext(ctx); ok {
		if k, ok := p.AuthInfo.(known); ok {
			k.work.owed.Add(int64(parts) * int64(refusedWork))
		}
	}
}

// waited takes from the work what was none.
func (w *worker) waited(d time.Duration) { w.since = w.since.Add(d) }

// left is the idle work that nobody has rested for when the connection is closed, what it
// is closed during included.
func (w *worker) left(now time.Time) time.Duration {
	d := time.Duration(w.unpaid.Load() + w.owed.Load())
	if at := w.at.Load(); at != 0 {
		d += time.Duration(now.UnixNano() - at)
	}
	return d
}

// gone says that the connection makes no work for now.
func (w *worker) gone() {
	if w.busy.CompareAndSwap(true, false) {
		w.pace.busy.Add(-1)
	}
}

// A connection that comes costs a server something whatever becomes of it, a handshake
// that it begins much more. So where packets want the processors, a crowd of newcomers
// has a fraction of one of them: others wait with the kernel, and those that are there
// are in nobody's way. What connections have not rested for when they go counts, too:
// else who makes idle work would come again instead.

const (
	// arrivalWork is what a connection is taken to cost that comes and goes.
	arrivalWork = 80 * time.Microsecond
	// restArrivals is how many times as long as it works for newcomers a listener
	// takes none after it.
	restArrivals = 8
	// maxOwed bounds what a connection leaves others to wait for.
	maxOwed = time.Millisecond
)

// Paced has a listener take connections slowly while hurried, after so many as are a
// crowd.
func Paced(l net.Listener, hurried func() bool) net.Listener {
	return &pacedListener{Listener: l, hurried: hurried, closed: make(chan struct{})}
}

type pacedListener struct {
	net.Listener
	hurried func() bool
	debt    time.Duration // work since there was a pause; it belongs to who accepts
	owed    atomic.Int64  // work of handshakes and of connections that are gone
	end     sync.Once
	closed  chan struct{}
}

// Accept waits for a connection.
func (l *pacedListener) Accept() (net.Conn, error) {
	l.rest()
	began := time.Now()
	c, err := l.Listener.Accept()
	l.debt = max(0, l.debt-time.Since(began)/restArrivals)
	if err == nil {
		l.debt += arrivalWork
	}
	return c, err
}

func (l *pacedListener) rest() {
	l.debt += time.Duration(l.owed.Swap(0))
	switch {
	case l.debt < busyFrom:
	case !l.hurried():
		l.debt = 0
	default:
		rest := min(l.debt*restArrivals, maxRest)
		l.debt -= rest / restArrivals
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closed:
		}
	}
}

// Close ends the listener, and a rest of it.
func (l *pacedListener) Close() error {
	l.end.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
