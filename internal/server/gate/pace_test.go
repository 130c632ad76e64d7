package gate

import (
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace checks that connections with requests at all times pause for each other.
// A single connection does not pause, nor does one with gaps between requests.
func TestPace(t *testing.T) {
	now := time.Unix(1, 0)
	p := &pace{packetsWaiting: func() bool { return false }}
	flood, other, calm := &worker{pace: p}, &worker{pace: p}, &worker{pace: p}
	// turn simulates a read after waited, followed by work of worked.
	turn := func(w *worker, waited, worked time.Duration, full bool, calls int) time.Duration {
		came := now.Add(waited)
		w.got(now, came, full)
		now = came.Add(worked)
		return w.worked(now, calls, false)
	}
	if pause := turn(flood, 0, 10*time.Millisecond, false, 0); pause != 0 {
		t.Errorf("a single connection pauses for %v", pause)
	}
	turn(other, 0, 10*time.Millisecond, false, 0)
	want := 10 * time.Millisecond * 4 / time.Duration(runtime.GOMAXPROCS(0))
	if pause := turn(other, 0, 10*time.Millisecond, false, 0); pause < want-time.Millisecond {
		t.Errorf("the second one pauses for %v, want at least %v", pause, want)
	}
	for range 100 {
		if pause := turn(calm, 100*time.Microsecond, 90*time.Microsecond, false, 0); pause != 0 {
			t.Fatalf("one that lets the server wait pauses for %v", pause)
		}
	}
	if pause := turn(calm, 10*time.Microsecond, 10*time.Microsecond, false, 100); pause == 0 {
		t.Error("a hundred calls at once do not count as work")
	}
	if pause := turn(calm, 2*time.Millisecond, 0, false, 0); pause != 0 || calm.busy.Load() {
		t.Errorf("after waiting it pauses for %v", pause)
	}
	if pause := turn(calm, 2*time.Millisecond, 0, true, 0); pause == 0 {
		t.Error("a read that fills its buffer counts as waiting")
	}
	if pause := turn(flood, 0, time.Hour, false, 0); pause != maxPause {
		t.Errorf("a pause of %v", pause)
	}
	for _, w := range []*worker{flood, other, calm} {
		w.idle()
		w.idle()
	}
	if n := p.busy.Load(); n != 0 {
		t.Errorf("%d closed connections count as busy", n)
	}
}

// TestWastedWork: while packets wait, wasted work causes pauses of a fixed
// multiple of its time, also for a single connection and regardless of the
// client's own pauses. Requests do not.
func TestWastedWork(t *testing.T) {
	packetsWaiting := true
	now := time.Unix(1, 0)
	p := &pace{packetsWaiting: func() bool { return packetsWaiting }}
	// share returns the fraction of time that a client works which repeats work
	// of worked and waits for waited.
	share := func(waste bool, worked, waited time.Duration) float64 {
		w := &worker{pace: p}
		began, sum := now, time.Duration(0)
		for range 2000 {
			came := now.Add(waited)
			w.got(now, came, waited == 0)
			now = came.Add(worked)
			sum += worked
			now = now.Add(w.worked(now, 1, waste))
		}
		w.idle()
		return sum.Seconds() / now.Sub(began).Seconds()
	}
	bound := 1.5 * float64(runtime.GOMAXPROCS(0)) / wastePauseFactor
	for _, waited := range []time.Duration{0, 100 * time.Microsecond, 2 * time.Millisecond} {
		if got := share(true, 300*time.Microsecond, waited); got > bound {
			t.Errorf("with pauses of %v a client wastes %.3f of the time, want at most %.3f", waited, got, bound)
		}
	}
	if got := share(false, 300*time.Microsecond, 0); got < 1 {
		t.Errorf("a single client with requests works for %.3f of the time", got)
	}
	packetsWaiting = false
	if got := share(true, 300*time.Microsecond, 0); got < 1 {
		t.Errorf("without waiting packets the client works for %.3f of the time", got)
	}
	packetsWaiting = true
	w := &worker{pace: p}
	w.charged.Store(int64(time.Hour))
	sum := time.Duration(0)
	for range 100 {
		pause := w.worked(now, 1, false)
		if pause > maxPause {
			t.Fatalf("a pause of %v", pause)
		}
		sum += pause
		now = now.Add(pause)
		w.got(now, now, false)
	}
	if sum != maxPauses {
		t.Errorf("an hour of wasted work causes pauses of %v, want %v", sum, maxPauses)
	}
	if w.idle(); p.busy.Load() != 0 {
		t.Errorf("%d closed connections count as busy", p.busy.Load())
	}
}

// TestUnpaidWork: a closed connection charges its unpaid work to the listener,
// including the work in progress, but not the work it has paused for.
func TestUnpaidWork(t *testing.T) {
	now := time.Unix(1, 0)
	w := &worker{pace: &pace{packetsWaiting: func() bool { return true }}}
	w.got(now, now, false)
	if d := w.unpaidWork(now.Add(time.Millisecond / 4)); d != time.Millisecond/4 {
		t.Errorf("during its first work %v are unpaid", d)
	}
	w.worked(now.Add(time.Millisecond/2), 0, true)
	w.charged.Add(int64(time.Millisecond))
	if d := w.unpaidWork(now.Add(time.Hour)); d != 3*time.Millisecond/2 {
		t.Errorf("between two works %v are unpaid", d)
	}
	w.charged.Store(0)
	for i := range 100 {
		w.got(now, now, false)
		w.charged.Add(int64(time.Millisecond))
		if pause := w.worked(now, 0, true); i == 99 && pause == 0 {
			t.Error("it does not pause")
		}
		w.charged.Store(0)
	}
	for w.worked(now, 0, true) > 0 {
	}
	if d := w.unpaidWork(now); d >= busyFrom {
		t.Errorf("after all its pauses %v are unpaid", d)
	}
}

// TestWasteByCost: large headers, tiny pieces of messages and messages without
// a response count as wasted work by their cost.
func TestWasteByCost(t *testing.T) {
	c := &countedConn{in: newIncoming(1<<20, slog.New(slog.DiscardHandler)), streams: map[uint32]*streamState{}, closed: make(chan struct{})}
	waste := func(f func()) time.Duration {
		c.work.waste = 0
		c.work.charged.Store(0)
		f()
		return c.work.waste + time.Duration(c.work.charged.Load())
	}
	if d := waste(func() { c.headerBytes(freeHead) }); d != 0 {
		t.Errorf("small headers cost %v", d)
	}
	if d := waste(func() { c.headerBytes(freeHead + 1000) }); d != 1000*headWork {
		t.Errorf("large headers cost %v", d)
	}
	message := append([]byte{0, 0, 0, 0, 100}, make([]byte, 100)...)
	c.streamBegan(1)
	if d := waste(func() { c.dataReceived(1, message) }); d != 0 {
		t.Errorf("a message costs %v", d)
	}
	if d := waste(func() {
		for i := range message {
			c.dataReceived(1, message[i:i+1])
		}
	}); d != time.Duration(len(message)-1)*pieceWork {
		t.Errorf("a message in pieces of one byte costs %v", d)
	}
	if d := waste(func() { c.serverDone(1) }); d != callWork+time.Duration(2*len(message))*byteWork {
		t.Errorf("messages without a response cost %v", d)
	}
	c.streamBegan(3)
	c.responseData(3, nil)
	c.dataReceived(3, message)
	if d := waste(func() { c.serverDone(3) }); d != 0 {
		t.Errorf("an answered call costs %v", d)
	}
}

// A rush is a listener with left connections waiting.
type rush struct {
	net.Listener
	left  int // connections that are still to come at once
	later time.Duration
}

func (r *rush) Accept() (net.Conn, error) {
	if r.left--; r.left < 0 {
		time.Sleep(r.later)
	}
	return nil, nil
}

func (r *rush) Close() error { return nil }

// TestArrivals: while packets wait, a listener accepts a few connections at
// once, and a flood of them in a fraction of the time only, including their
// handshakes. After the flood, and without packets, it accepts all connections
// immediately.
func TestArrivals(t *testing.T) {
	const crowd = 10000
	synctest.Test(t, func(t *testing.T) {
		var packetsWaiting atomic.Bool
		inner := &rush{left: 1 << 30}
		l := Paced(inner, packetsWaiting.Load).(*pacedListener)
		taking := func(n int, f func()) time.Duration {
			began := time.Now()
			for range n {
				l.Accept()
				f()
			}
			return time.Since(began)
		}
		nothing := func() {}
		if took := taking(crowd, nothing); took != 0 {
			t.Errorf("without packets, accepting %d takes %v", crowd, took)
		}
		packetsWaiting.Store(true)
		l.debt = 0
		const few = int(busyFrom / arrivalWork)
		if took := taking(few, nothing); took != 0 {
			t.Errorf("accepting %d at once takes %v", few, took)
		}
		want := crowd * arrivalWork * arrivalPauseFactor
		if took := taking(crowd, nothing); took < want-want/100 || took > want+want/100 {
			t.Errorf("accepting %d takes %v, want %v", crowd, took, want)
		}
		handshake := func() { l.charged.Add(int64(3 * arrivalWork)) }
		if took := taking(crowd, handshake); took < 4*want-want/25 || took > 4*want+want/25 {
			t.Errorf("accepting %d with handshakes takes %v, want %v", crowd, took, 4*want)
		}
		inner.left, inner.later = 0, time.Second
		taking(1, nothing)
		inner.left, inner.later = few, 0
		if took := taking(few-1, nothing); took != 0 {
			t.Errorf("accepting %d after a pause takes %v", few-1, took)
		}
		inner.left = 1 << 30
		time.AfterFunc(time.Millisecond, func() { l.Close() })
		l.debt = time.Hour
		if took := taking(1, nothing); took != time.Millisecond {
			t.Errorf("a closed listener pauses for %v", took)
		}
	})
}
