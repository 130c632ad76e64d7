package sim

import (
	"time"
)

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

// after lets the timer run out after a time from now.
func (t *Timer) after(d time.Duration) { t.Set(t.net.now + d) }

// Stop keeps the timer from running out.
func (t *Timer) Stop() { t.deadline = never }

// drop stops the timer for good. Its event may stay in the schedule for long, and no
// longer refers to what the function refers to.
func (t *Timer) drop() {
	t.Stop()
	t.f = func() {}
}

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

// At calls f at a time, or now if that is past.
func (n *Network) At(t time.Duration, f func()) {
	c := &call{net: n, f: f}
	c.ev.what = c
	n.events.plan(&c.ev, max(t, n.now))
}

// Every calls f after each interval, from now on, until it returns false.
func (n *Network) Every(interval time.Duration, f func(now time.Duration) bool) {
	var t *Timer
	t = n.NewTimer(func() {
		if f(n.now) {
			t.after(interval)
		}
	})
	t.after(interval)
}

// A call is a function that is called once.
type call struct {
	net *Network
	ev  event
	f   func()
}

func (c *call) fire() { c.net.outside(c.f) }

func (c *call) soon(bool) {}
