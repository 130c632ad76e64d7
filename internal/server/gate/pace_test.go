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

// TestPace checks that busy connections pause for each other. A single
// connection does not pause, nor does one with gaps between requests.
func TestPace(t *testing.T) {
	p := &pace{packetsWaiting: func() bool { return false }}
	flood, other, calm := &meter{pace: p}, &meter{pace: p}, &meter{pace: p}
	turn := func(m *meter, waited, work time.Duration) time.Duration {
		m.waited(waited)
		m.work.Add(int64(work))
		return m.pause()
	}
	if pause := turn(flood, 0, 10*time.Millisecond); pause != 0 {
		t.Errorf("a single connection pauses for %v", pause)
	}
	want := 10 * time.Millisecond * busyPauseFactor / time.Duration(runtime.GOMAXPROCS(0))
	if pause := turn(other, 0, 10*time.Millisecond); pause != want {
		t.Errorf("the second one pauses for %v, want %v", pause, want)
	}
	for range 100 {
		if pause := turn(calm, 100*time.Microsecond, 90*time.Microsecond); pause != 0 {
			t.Fatalf("one that lets the server wait pauses for %v", pause)
		}
	}
	if pause := turn(calm, 0, 100*callWork); pause == 0 {
		t.Error("a hundred calls at once do not count as work")
	}
	if pause := turn(calm, 2*time.Millisecond, 0); pause != 0 || calm.busy.Load() {
		t.Errorf("after waiting it pauses for %v", pause)
	}
	if pause := turn(flood, 0, time.Hour); pause != maxPause {
		t.Errorf("a pause of %v", pause)
	}
	for _, m := range []*meter{flood, other, calm} {
		m.idle()
		m.idle()
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
	p := &pace{packetsWaiting: func() bool { return packetsWaiting }}
	// share returns the fraction of time that a client works which repeats work
	// and waits.
	share := func(waste bool, work, waited time.Duration) float64 {
		m := &meter{pace: p}
		var sum, all time.Duration
		for range 2000 {
			m.waited(waited)
			if waste {
				m.charge(work)
			} else {
				m.work.Add(int64(work))
			}
			sum += work
			all += work + waited + m.pause()
		}
		m.idle()
		return sum.Seconds() / all.Seconds()
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
	m := &meter{pace: p}
	m.charge(time.Hour)
	sum := time.Duration(0)
	for range 100 {
		pause := m.pause()
		if pause > maxPause {
			t.Fatalf("a pause of %v", pause)
		}
		sum += pause
	}
	if sum < maxPauses-time.Millisecond || sum > maxPauses {
		t.Errorf("an hour of wasted work causes pauses of %v, want %v", sum, maxPauses)
	}
	if m.idle(); p.busy.Load() != 0 {
		t.Errorf("%d closed connections count as busy", p.busy.Load())
	}
}

// TestUnpaidWork: a closed connection charges its unpaid work to the listener,
// up to a limit.
func TestUnpaidWork(t *testing.T) {
	for _, waste := range []time.Duration{time.Millisecond / 4, time.Hour} {
		l := &pacedListener{}
		raw, _ := net.Pipe()
		c := newConn(raw, newIncoming(1<<20, slog.New(slog.DiscardHandler)), &pace{})
		c.slot = &Slot{listener: &boundedListener{Listener: l}}
		c.meter.charge(waste)
		c.Close()
		c.Close()
		if d := time.Duration(l.debt.Load()); d != min(waste, maxCharge) {
			t.Errorf("with %v of wasted work the listener is charged %v", waste, d)
		}
	}
}

// TestWasteByCost: frames outside of calls, large headers, tiny pieces of
// messages and messages without a response count as wasted work by their cost.
func TestWasteByCost(t *testing.T) {
	c := newConn(nil, newIncoming(1<<20, slog.New(slog.DiscardHandler)), &pace{})
	waste := func(f func()) time.Duration {
		c.meter.waste.Store(0)
		f()
		return time.Duration(c.meter.waste.Load())
	}
	if d := waste(func() { c.receivedFrame(headersFrame, 0, 1, freeHead) }); d != 0 {
		t.Errorf("small headers cost %v", d)
	}
	if d := waste(func() { c.receivedFrame(continuationFrame, 0, 1, freeHead+1000) }); d != frameWork+1000*headWork {
		t.Errorf("large headers cost %v", d)
	}
	if d := waste(func() { c.receivedFrame(4, 0, 0, 6) }); d != frameWork+6*byteWork {
		t.Errorf("settings cost %v", d)
	}
	message := append([]byte{0, 0, 0, 0, 100}, make([]byte, 100)...)
	if d := waste(func() { c.receivedFrame(dataFrame, 0, 1, len(message)); c.receivedData(1, message) }); d != 0 {
		t.Errorf("a message costs %v", d)
	}
	if d := waste(func() { c.receivedFrame(dataFrame, 0, 1, 0) }); d != frameWork {
		t.Errorf("an empty frame costs %v", d)
	}
	if d := waste(func() { c.receivedFrame(dataFrame, padded, 1, 9) }); d != frameWork+9*byteWork {
		t.Errorf("padding costs %v", d)
	}
	if d := waste(func() { c.receivedFrame(dataFrame, 0, 77, 1) }); d != frameWork+byteWork {
		t.Errorf("data of no stream cost %v", d)
	}
	if d := waste(func() {
		for i := range message {
			c.receivedData(1, message[i:i+1])
		}
	}); d != time.Duration(len(message)-1)*pieceWork {
		t.Errorf("a message in pieces of one byte costs %v", d)
	}
	if d := waste(func() { c.sentFrame(headersFrame, endStream, 1, 0) }); d != callWork+time.Duration(2*len(message))*byteWork {
		t.Errorf("messages without a response cost %v", d)
	}
	c.receivedFrame(headersFrame, 0, 3, 1)
	c.sentFrame(dataFrame, 0, 3, 1)
	c.receivedData(3, message)
	if d := waste(func() { c.sentFrame(headersFrame, endStream, 3, 0) }); d != 0 {
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
// once, and a flood of them in a fraction of the time only, including work of
// closed connections. After the flood, and without packets, it accepts all
// connections immediately, unless they shake hands.
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
		shakes := func() { l.chargeHandshake(arrivalWork) }
		wantShakes := crowd * arrivalWork * handshakePauseFactor
		if took := taking(crowd, shakes); took < wantShakes-wantShakes/100 || took > wantShakes+wantShakes/100 {
			t.Errorf("without packets, %d handshakes take %v, want %v", crowd, took, wantShakes)
		}
		packetsWaiting.Store(true)
		l.debt.Store(0)
		l.handshakes.Store(0)
		const few = int(busyFrom / arrivalWork)
		if took := taking(few, nothing); took != 0 {
			t.Errorf("accepting %d at once takes %v", few, took)
		}
		want := crowd * arrivalWork * arrivalPauseFactor
		if took := taking(crowd, nothing); took < want-want/100 || took > want+want/100 {
			t.Errorf("accepting %d takes %v, want %v", crowd, took, want)
		}
		wasted := func() { l.charge(3 * arrivalWork) }
		if took := taking(crowd, wasted); took < 4*want-want/25 || took > 4*want+want/25 {
			t.Errorf("accepting %d with wasted work takes %v, want %v", crowd, took, 4*want)
		}
		inner.left, inner.later = 0, time.Second
		taking(1, nothing)
		inner.left, inner.later = few, 0
		if took := taking(few-1, nothing); took != 0 {
			t.Errorf("accepting %d after a pause takes %v", few-1, took)
		}
		inner.left = 1 << 30
		time.AfterFunc(time.Millisecond, func() { l.Close() })
		l.debt.Store(int64(time.Hour))
		if took := taking(1, nothing); took != time.Millisecond {
			t.Errorf("a closed listener pauses for %v", took)
		}
	})
}
