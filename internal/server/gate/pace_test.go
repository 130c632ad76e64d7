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

// TestPace: connections that never let the server wait rest for each other; those that
// do, and one that is alone, do not.
func TestPace(t *testing.T) {
	now := time.Unix(1, 0)
	p := &pace{hurried: func() bool { return false }}
	flood, other, calm := &worker{pace: p}, &worker{pace: p}, &worker{pace: p}
	// turn has something come after a while, which is worked on for a while.
	turn := func(w *worker, waited, worked time.Duration, full bool, calls int) time.Duration {
		came := now.Add(waited)
		w.got(now, came, full)
		now = came.Add(worked)
		return w.worked(now, calls, false)
	}
	if rest := turn(flood, 0, 10*time.Millisecond, false, 0); rest != 0 {
		t.Errorf("one that is alone rests for %v", rest)
	}
	turn(other, 0, 10*time.Millisecond, false, 0)
	want := 10 * time.Millisecond * 4 / time.Duration(runtime.GOMAXPROCS(0))
	if rest := turn(other, 0, 10*time.Millisecond, false, 0); rest < want-time.Millisecond {
		t.Errorf("the second one rests for %v, want %v at least", rest, want)
	}
	for range 100 {
		if rest := turn(calm, 100*time.Microsecond, 90*time.Microsecond, false, 0); rest != 0 {
			t.Fatalf("one that lets the server wait rests for %v", rest)
		}
	}
	if rest := turn(calm, 10*time.Microsecond, 10*time.Microsecond, false, 100); rest == 0 {
		t.Error("a hundred calls at once are no work")
	}
	if rest := turn(calm, 2*time.Millisecond, 0, false, 0); rest != 0 || calm.busy.Load() {
		t.Errorf("after a pause it rests for %v", rest)
	}
	if rest := turn(calm, 2*time.Millisecond, 0, true, 0); rest == 0 {
		t.Error("what fills all the room was waited for")
	}
	if rest := turn(flood, 0, time.Hour, false, 0); rest != maxRest {
		t.Errorf("a rest of %v", rest)
	}
	for _, w := range []*worker{flood, other, calm} {
		w.gone()
		w.gone()
	}
	if n := p.busy.Load(); n != 0 {
		t.Errorf("%d are busy that are gone", n)
	}
}

// TestIdleWork: while processors are missed, work for nothing is followed by rests of
// many times as long, also where nobody else makes any, and whatever pauses are made;
// requests are not.
func TestIdleWork(t *testing.T) {
	hurried := true
	now := time.Unix(1, 0)
	p := &pace{hurried: func() bool { return hurried }}
	// share is the part of a time that a client works, which makes so much work at once
	// and waits for so long.
	share := func(idle bool, worked, waited time.Duration) float64 {
		w := &worker{pace: p}
		began, sum := now, time.Duration(0)
		for range 2000 {
			came := now.Add(waited)
			w.got(now, came, waited == 0)
			now = came.Add(worked)
			sum += worked
			now = now.Add(w.worked(now, 1, idle))
		}
		w.gone()
		return sum.Seconds() / now.Sub(began).Seconds()
	}
	bound := 1.5 * float64(runtime.GOMAXPROCS(0)) / restIdle
	for _, waited := range []time.Duration{0, 100 * time.Microsecond, 2 * time.Millisecond} {
		if got := share(true, 300*time.Microsecond, waited); got > bound {
			t.Errorf("with pauses of %v a client is idly at work for %.3f of the time, want %.3f at most", waited, got, bound)
		}
	}
	if got := share(false, 300*time.Microsecond, 0); got < 1 {
		t.Errorf("a client with requests that is alone is at work for %.3f of the time", got)
	}
	hurried = false
	if got := share(true, 300*time.Microsecond, 0); got < 1 {
		t.Errorf("where nobody is in a hurry, for %.3f", got)
	}
	hurried = true
	w := &worker{pace: p}
	w.owed.Store(int64(time.Hour))
	sum := time.Duration(0)
	for range 100 {
		rest := w.worked(now, 1, false)
		if rest > maxRest {
			t.Fatalf("a rest of %v", rest)
		}
		sum += rest
		now = now.Add(rest)
		w.got(now, now, false)
	}
	if sum != maxRests {
		t.Errorf("what has been for nothing for an hour is followed by rests of %v, want %v", sum, maxRests)
	}
	if w.gone(); p.busy.Load() != 0 {
		t.Errorf("%d are busy that are gone", p.busy.Load())
	}
}

// TestLeftWork: what a connection has not rested for when it goes is left to newcomers,
// with what it goes from; what it has, is not.
func TestLeftWork(t *testing.T) {
	now := time.Unix(1, 0)
	w := &worker{pace: &pace{hurried: func() bool { return true }}}
	w.got(now, now, false)
	if d := w.left(now.Add(time.Millisecond / 4)); d != time.Millisecond/4 {
		t.Errorf("in the middle of its first work it leaves %v", d)
	}
	w.worked(now.Add(time.Millisecond/2), 0, true)
	w.owed.Add(int64(time.Millisecond))
	if d := w.left(now.Add(time.Hour)); d != 3*time.Millisecond/2 {
		t.Errorf("between works it leaves %v", d)
	}
	w.owed.Store(0)
	for i := range 100 {
		w.got(now, now, false)
		w.owed.Add(int64(time.Millisecond))
		if rest := w.worked(now, 0, true); i == 99 && rest == 0 {
			t.Error("it does not rest")
		}
		w.owed.Store(0)
	}
	for w.worked(now, 0, true) > 0 {
	}
	if d := w.left(now); d >= busyFrom {
		t.Errorf("after all its rests it leaves %v", d)
	}
}

// TestWorkForNothing: large heads, pieces of messages and messages that get no answer
// are idle work by what they cost.
func TestWorkForNothing(t *testing.T) {
	c := &countedConn{in: newIncoming(1<<20, slog.New(slog.DiscardHandler)), streams: map[uint32]*body{}, closed: make(chan struct{})}
	idle := func(f func()) time.Duration {
		c.work.idle = 0
		c.work.owed.Store(0)
		f()
		return c.work.idle + time.Duration(c.work.owed.Load())
	}
	if d := idle(func() { c.headed(freeHead) }); d != 0 {
		t.Errorf("a usual head costs %v", d)
	}
	if d := idle(func() { c.headed(freeHead + 1000) }); d != 1000*headWork {
		t.Errorf("a large one costs %v", d)
	}
	message := append([]byte{0, 0, 0, 0, 100}, make([]byte, 100)...)
	c.began(1)
	if d := idle(func() { c.came(1, message) }); d != 0 {
		t.Errorf("a message costs %v", d)
	}
	if d := idle(func() {
		for i := range message {
			c.came(1, message[i:i+1])
		}
	}); d != time.Duration(len(message)-1)*pieceWork {
		t.Errorf("one in pieces of a byte costs %v", d)
	}
	if d := idle(func() { c.done(1) }); d != callWork+time.Duration(2*len(message))*byteWork {
		t.Errorf("that nothing was said to them costs %v", d)
	}
	c.began(3)
	c.says(3, nil)
	c.came(3, message)
	if d := idle(func() { c.done(3) }); d != 0 {
		t.Errorf("a call with an answer costs %v", d)
	}
}

// A rush is a listener at which a crowd has come.
type rush struct {
	net.Listener
	left  int // of the crowd
	later time.Duration
}

func (r *rush) Accept() (net.Conn, error) {
	if r.left--; r.left < 0 {
		time.Sleep(r.later)
	}
	return nil, nil
}

func (r *rush) Close() error { return nil }

// TestArrivals: while packets come, a listener takes a few connections at once, and
// those of a crowd in a fraction of the time only, in which handshakes count; once the
// crowd is over, and where there are no packets, it takes whoever comes.
func TestArrivals(t *testing.T) {
	const crowd = 10000
	synctest.Test(t, func(t *testing.T) {
		var hurried atomic.Bool
		inner := &rush{left: 1 << 30}
		l := Paced(inner, hurried.Load).(*pacedListener)
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
			t.Errorf("without packets %d take %v", crowd, took)
		}
		hurried.Store(true)
		l.debt = 0
		const few = int(busyFrom / arrivalWork)
		if took := taking(few, nothing); took != 0 {
			t.Errorf("%d at once take %v", few, took)
		}
		want := crowd * arrivalWork * restArrivals
		if took := taking(crowd, nothing); took < want-want/100 || took > want+want/100 {
			t.Errorf("%d take %v, want %v", crowd, took, want)
		}
		handshake := func() { l.owed.Add(int64(3 * arrivalWork)) }
		if took := taking(crowd, handshake); took < 4*want-want/25 || took > 4*want+want/25 {
			t.Errorf("%d with handshakes take %v, want %v", crowd, took, 4*want)
		}
		inner.left, inner.later = 0, time.Second
		taking(1, nothing)
		inner.left, inner.later = few, 0
		if took := taking(few-1, nothing); took != 0 {
			t.Errorf("%d after a pause take %v", few-1, took)
		}
		inner.left = 1 << 30
		time.AfterFunc(time.Millisecond, func() { l.Close() })
		l.debt = time.Hour
		if took := taking(1, nothing); took != time.Millisecond {
			t.Errorf("a listener that is closed rests for %v", took)
		}
	})
}
