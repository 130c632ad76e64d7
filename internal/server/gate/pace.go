package gate

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Frames such as settings, priorities and calls that are reset at once cost the
// server work but the client almost none. No gRPC option limits them. So each
// connection is charged for the work that it causes, and pauses.
//
// A connection is busy if its work since the server last had to wait for it exceeds
// busyFrom. The more connections are busy, the longer each of them pauses, so
// together they use a fraction of the processors. The remaining capacity serves
// clients with occasional calls.
//
// Wasted work is limited further while packets wait for a processor: frames
// outside of calls, calls that get no response or that the client cancels, and
// rejected requests. A connection pauses 64 times as long as its wasted work,
// even if it is the only one.

const (
	// busyFrom is the work from which a connection is busy.
	busyFrom = time.Millisecond
	// The assumed costs of a call, a frame outside of calls, a header byte
	// beyond the first freeHead of a frame, a piece of a message that is shorter
	// than smallPiece and does not end it, and a byte without use.
	callWork   = 50 * time.Microsecond
	frameWork  = 2 * time.Microsecond
	headWork   = 10 * time.Nanosecond
	freeHead   = 1 << 10
	pieceWork  = time.Microsecond
	smallPiece = 64
	byteWork   = time.Nanosecond
	// rejectedWork is the assumed cost of a rejected part of a request with its
	// error.
	rejectedWork = 2 * time.Microsecond
	// maxPause bounds one pause. It must be well below the stall timeout of
	// incoming messages, which is one second. maxPauses bounds the total pause
	// for wasted work.
	maxPause  = 500 * time.Millisecond
	maxPauses = 4 * maxPause
	// wastePauseFactor is the ratio of pause to wasted work, busyPauseFactor the
	// ratio of pause to work for each other busy connection.
	wastePauseFactor = 64
	busyPauseFactor  = 4
)

// A pace counts the busy connections of a server.
type pace struct {
	busy           atomic.Int64
	packetsWaiting func() bool // reports whether packets wait for a processor
}

// A meter measures the work for one connection.
type meter struct {
	pace  *pace
	work  atomic.Int64 // all work since the server last waited for the client
	waste atomic.Int64 // wasted work that the client has not paused for
	busy  atomic.Bool
}

// charge adds wasted work.
func (m *meter) charge(d time.Duration) {
	m.work.Add(int64(d))
	m.waste.Add(int64(d))
}

// pause returns how long the connection must pause now.
func (m *meter) pause() time.Duration {
	work, waste := time.Duration(m.work.Load()), time.Duration(m.waste.Load())
	if work < busyFrom && waste < busyFrom {
		return 0
	}
	if m.busy.CompareAndSwap(false, true) {
		m.pace.busy.Add(1)
	}
	processors, busy := time.Duration(runtime.GOMAXPROCS(0)), time.Duration(m.pace.busy.Load())
	pause := time.Duration(0)
	if work >= busyFrom {
		pause = min(work*busyPauseFactor*(busy-1)/processors, maxPause)
		m.work.Store(0)
	}
	if !m.pace.packetsWaiting() {
		m.waste.Store(0)
		return pause
	}
	if waste >= busyFrom {
		factor := wastePauseFactor * busy / processors
		owed := min(waste*factor, maxPauses)
		pause = max(pause, min(owed, maxPause))
		m.waste.Add(int64((owed-pause)/factor - waste))
	}
	return pause
}

// waited records that the server has waited for the client.
func (m *meter) waited(d time.Duration) {
	pay(&m.waste, d/wastePauseFactor)
	if pay(&m.work, d); d > busyFrom {
		m.work.Store(0)
		m.idle()
	}
}

// idle marks the connection as not busy.
func (m *meter) idle() {
	if m.busy.CompareAndSwap(true, false) {
		m.pace.busy.Add(-1)
	}
}

// pay reduces a debt.
func pay(debt *atomic.Int64, d time.Duration) {
	if debt.Add(-int64(d)) < 0 {
		debt.Store(0)
	}
}

// sleep waits for d, or until closed is closed.
func sleep(d time.Duration, closed <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-closed:
	}
}

// A connInfo lets the handlers of calls reach their connection.
type connInfo struct {
	credentials.AuthInfo
	conn *conn
}

func connOf(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(connInfo); ok {
			return info.conn
		}
	}
	return nil
}

// Charge adds rejected parts of a call's request to the wasted work of its
// connection.
func Charge(ctx context.Context, parts int) {
	if c := connOf(ctx); c != nil {
		c.meter.charge(time.Duration(parts) * rejectedWork)
	}
}

// ConnSemaphore returns a semaphore with one slot, shared by all calls of the
// connection that the call arrived on.
func ConnSemaphore(ctx context.Context) chan struct{} {
	if c := connOf(ctx); c != nil {
		return c.reads
	}
	return nil
}
