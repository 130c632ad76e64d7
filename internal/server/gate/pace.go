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

// Frames cost the client nothing and the server something, and no limit on
// calls, messages or windows bounds how many arrive: pings, settings,
// priorities, calls that are reset at once. The server therefore makes busy
// connections pause.
//
// A connection is busy if the server never has to wait for its next frame. The
// more connections are busy, the longer each of them pauses, so together they
// use a fraction of the processors. A client with an occasional call finds the
// rest free.
//
// Wasted work is limited further while packets wait for a processor: frames
// outside of calls, calls that get no response or that the client cancels, and
// rejected requests. A connection pauses 64 times as long as its wasted work,
// even if it is the only one.
//
// Both debts are measured in processor time. Waiting for the client reduces
// them.

const (
	// busyFrom is the debt from which a connection is busy.
	busyFrom = time.Millisecond
	// callWork is the assumed cost of a call besides its frames.
	callWork = 50 * time.Microsecond
	// headWork is the assumed cost per header byte beyond the first freeHead of
	// a frame, pieceWork the cost of a piece of a message that is shorter than
	// smallPiece and does not end it, byteWork the cost per byte of a request
	// without a response.
	headWork   = 10 * time.Nanosecond
	freeHead   = 1 << 10
	pieceWork  = time.Microsecond
	smallPiece = 64
	byteWork   = time.Nanosecond
	// maxPause bounds one pause. It must be well below the stall timeout of
	// incoming messages, which is one second.
	maxPause = 500 * time.Millisecond
	// maxPauses bounds the total pause for wasted work.
	maxPauses = 4 * maxPause
	// wastePauseFactor is the ratio of pause to wasted work.
	wastePauseFactor = 64
)

// A pace counts the busy connections of a server.
type pace struct {
	busy           atomic.Int64
	packetsWaiting func() bool // reports whether packets wait for a processor
}

// A worker measures the work for one connection. Its fields without atomics
// belong to the goroutine that reads from the connection.
type worker struct {
	pace    *pace
	since   time.Time     // when the work on the last read began
	debt    time.Duration // work since the client last let the server wait
	waste   time.Duration // wasted work; waiting reduces it by 1/wastePauseFactor only
	pauses  time.Duration // pauses for wasted work still to come
	charged atomic.Int64  // wasted work charged by other goroutines
	busy    atomic.Bool

	at     atomic.Int64 // wall clock when work on a read began, or 0
	unpaid atomic.Int64 // wasted work without a pause so far
}

// worked is called when all data of a read has been handled. calls is the
// number of calls that began in it; waste reports that it belonged to no call.
// The result is how long to pause.
func (w *worker) worked(now time.Time, calls int, waste bool) time.Duration {
	w.at.Store(0)
	defer func() { w.unpaid.Store(int64(w.waste + w.pauses/wastePauseFactor)) }()
	var work time.Duration
	if !w.since.IsZero() {
		work = now.Sub(w.since)
	}
	w.debt += work + time.Duration(calls)*callWork
	if waste {
		w.waste += work
	}
	w.waste += time.Duration(w.charged.Swap(0))
	if w.debt < busyFrom && w.waste < busyFrom && w.pauses == 0 {
		return 0
	}
	if w.busy.CompareAndSwap(false, true) {
		w.pace.busy.Add(1)
	}
	processors, others := time.Duration(runtime.GOMAXPROCS(0)), time.Duration(w.pace.busy.Load()-1)
	pause := time.Duration(0)
	if w.debt >= busyFrom {
		pause = w.debt * 4 * others / processors
		w.debt = 0
	}
	if w.pace.packetsWaiting() {
		if w.waste >= busyFrom {
			w.pauses = min(w.pauses+w.waste*wastePauseFactor*(others+1)/processors, maxPauses)
			w.waste = 0
		}
		pause = max(pause, w.pauses)
	} else {
		w.pauses, w.waste = 0, 0
	}
	pause = min(pause, maxPause)
	w.pauses = max(0, w.pauses-pause)
	return pause
}

// got is called when a read has returned. A read that fills its buffer did not
// wait: its time counts as work.
func (w *worker) got(began, now time.Time, full bool) {
	w.at.Store(now.UnixNano())
	if full {
		w.since = began
		return
	}
	w.since = now
	took := now.Sub(began)
	w.waste = max(0, w.waste-took/wastePauseFactor)
	if w.debt = max(0, w.debt-took); took > busyFrom {
		w.debt = 0
		w.idle()
	}
}

// A workerInfo lets the handlers of calls reach the worker of their connection.
type workerInfo struct {
	credentials.AuthInfo
	work *worker
}

// rejectedWork is the assumed cost of a rejected part of a request with its
// error.
const rejectedWork = 2 * time.Microsecond

// Charge adds n rejected parts of a call's request to the wasted work of its
// connection.
func Charge(ctx context.Context, parts int) {
	if p, ok := peer.FromContext(ctx); ok {
		if k, ok := p.AuthInfo.(workerInfo); ok {
			k.work.charged.Add(int64(parts) * int64(rejectedWork))
		}
	}
}

// waited subtracts time spent waiting from the work.
func (w *worker) waited(d time.Duration) { w.since = w.since.Add(d) }

// unpaidWork returns the wasted work without a pause so far, including the work
// in progress. It is charged to the listener when the connection is closed.
func (w *worker) unpaidWork(now time.Time) time.Duration {
	d := time.Duration(w.unpaid.Load() + w.charged.Load())
	if at := w.at.Load(); at != 0 {
		d += time.Duration(now.UnixNano() - at)
	}
	return d
}

// idle marks the connection as not busy.
func (w *worker) idle() {
	if w.busy.CompareAndSwap(true, false) {
		w.pace.busy.Add(-1)
	}
}

// Every accepted connection costs the server something, and its handshake costs
// much more. While packets wait for a processor, the listener pauses in
// proportion to that work: a flood of new connections uses a fraction of one
// processor. Other newcomers wait in the kernel's queue, and established
// connections are not delayed. A closed connection adds its unpaid wasted work;
// otherwise a client could escape its pauses by reconnecting.

const (
	// arrivalWork is the assumed cost of accepting and closing a connection.
	arrivalWork = 80 * time.Microsecond
	// arrivalPauseFactor is the ratio of the listener's pause to its work.
	arrivalPauseFactor = 8
	// maxCharge bounds the work that one connection charges to the listener.
	maxCharge = time.Millisecond
)

// Paced returns a listener that accepts connections slowly while packetsWaiting
// returns true and more of them arrive than a few at once.
func Paced(l net.Listener, packetsWaiting func() bool) net.Listener {
	return &pacedListener{Listener: l, packetsWaiting: packetsWaiting, closed: make(chan struct{})}
}

type pacedListener struct {
	net.Listener
	packetsWaiting func() bool
	debt           time.Duration // work since the last pause; it belongs to the goroutine in Accept
	charged        atomic.Int64  // work of handshakes and of closed connections
	end            sync.Once
	closed         chan struct{}
}

// Accept waits for a connection, after a pause if necessary.
func (l *pacedListener) Accept() (net.Conn, error) {
	l.pause()
	began := time.Now()
	c, err := l.Listener.Accept()
	l.debt = max(0, l.debt-time.Since(began)/arrivalPauseFactor)
	if err == nil {
		l.debt += arrivalWork
	}
	return c, err
}

func (l *pacedListener) pause() {
	l.debt += time.Duration(l.charged.Swap(0))
	switch {
	case l.debt < busyFrom:
	case !l.packetsWaiting():
		l.debt = 0
	default:
		pause := min(l.debt*arrivalPauseFactor, maxPause)
		l.debt -= pause / arrivalPauseFactor
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closed:
		}
	}
}

// Close closes the listener and ends its pause.
func (l *pacedListener) Close() error {
	l.end.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
