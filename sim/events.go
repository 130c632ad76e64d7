package sim

import (
	"math"
	"time"
)

// A handler is what an event does. A little before, soon is called twice, the
// second time with next set, so that what fire will look at can come into the
// cache meanwhile, and what that leads to: a large network does not fit there.
type handler interface {
	fire()
	soon(next bool)
}

// An event is something that happens at a time. It is part of what it happens
// to, so that planning it allocates nothing; it can be planned once at a time.
type event struct {
	seq  uint64 // of its plan; 0: not planned
	what handler
}

func (e *event) planned() bool { return e.seq != 0 }

// A plan is an event's entry in the schedule. Of two at the same time, the one
// with the smaller number comes first. A plan whose event has another number has
// been cancelled.
type plan struct {
	at  time.Duration
	seq uint64
	ev  *event
}

func (a *plan) before(b *plan) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// A Timer calls a function at a time. Setting it again is cheap, as
// retransmission timers need it: one that is set later, or stopped, stays where
// it is in the schedule and looks at its deadline when it gets there.
type Timer struct {
	net      *Network
	ev       event
	planned  time.Duration
	deadline time.Duration
	place    place
	f        func()
}

// never is the deadline of a stopped timer.
const never time.Duration = math.MaxInt64

// NewTimer makes a timer that is stopped.
func (n *Network) NewTimer(f func()) *Timer { return n.newTimer(0, func() { n.outside(f) }) }

// newTimer makes one of the simulator's own, at a place.
func (n *Network) newTimer(at place, f func()) *Timer {
	t := &Timer{net: n, f: f, deadline: never, place: at}
	t.ev.what = t
	return t
}

// Set lets the timer run out at a time, whatever was set before.
func (t *Timer) Set(at time.Duration) {
	t.deadline = at
	if t.ev.planned() && t.planned <= at {
		return
	}
	t.planned = at
	t.net.events.planAs(&t.ev, at, t.place.next(t.net))
}

// After lets the timer run out after a time from now.
func (t *Timer) After(d time.Duration) { t.Set(t.net.now + d) }

// Stop keeps the timer from running out.
func (t *Timer) Stop() { t.deadline = never }

// Running reports whether the timer is set.
func (t *Timer) Running() bool { return t.deadline != never }

func (t *Timer) soon(bool) {}

func (t *Timer) fire() {
	switch {
	case t.deadline == never:
	case t.deadline > t.planned:
		t.planned = t.deadline
		t.net.events.planAs(&t.ev, t.deadline, t.place.next(t.net))
	default:
		t.deadline = never
		t.f()
	}
}
