package sim

import (
	"time"
)

// A Timer calls a function at a set time. Setting it again must be cheap, because
// retransmission timers are set for every acknowledgment. So if the deadline moves
// later or the timer is stopped, the event stays in the schedule and checks the
// deadline when it runs.
type Timer struct {
	net      *Network
	ev       event
	planned  time.Duration
	deadline time.Duration
	place    place
	owner    alarmed
}

// An alarmed object has a timer. ring is called when the timer expires.
type alarmed interface{ ring() }

// NewTimer returns a stopped timer.
func (n *Network) NewTimer(f func()) *Timer { return n.newTimer(0, &call{net: n, f: f}) }

// newTimer returns a stopped timer for the simulator's own use. at orders its events.
func (n *Network) newTimer(at place, owner alarmed) *Timer {
	t := &Timer{net: n, owner: owner, deadline: never, place: at}
	t.ev.what = t
	return t
}

// Set makes the timer expire at the given time, and replaces an earlier deadline.
func (t *Timer) Set(at time.Duration) {
	t.deadline = at
	if t.ev.planned() && t.planned <= at {
		return
	}
	t.planned = at
	t.net.events.planAs(&t.ev, at, t.place.next(t.net))
}

// after makes the timer expire d from now.
func (t *Timer) after(d time.Duration) { t.Set(t.net.now + d) }

// Stop prevents the timer from expiring.
func (t *Timer) Stop() { t.deadline = never }

// drop stops the timer permanently. Its event may stay in the schedule for long; drop releases
// the owner.
func (t *Timer) drop() {
	t.Stop()
	t.owner = nobody{}
}

type nobody struct{}

func (nobody) ring() {}

func (t *Timer) soon(bool) {}

func (t *Timer) fire() {
	switch {
	case t.deadline == never:
	case t.deadline > t.planned:
		t.planned = t.deadline
		t.net.events.planAs(&t.ev, t.deadline, t.place.next(t.net))
	default:
		t.deadline = never
		t.owner.ring()
	}
}

// At calls f at time t, or now if t has passed.
func (n *Network) At(t time.Duration, f func()) {
	c := &call{net: n, f: f}
	c.ev.what = c
	n.events.plan(&c.ev, max(t, n.now))
}

// Every calls f after each interval until f returns false.
func (n *Network) Every(interval time.Duration, f func(now time.Duration) bool) {
	var t *Timer
	t = n.NewTimer(func() {
		if f(n.now) {
			t.after(interval)
		}
	})
	t.after(interval)
}

// A call is a function of the user.
type call struct {
	net *Network
	ev  event
	f   func()
}

func (c *call) fire() { c.ring() }

func (c *call) ring() { c.net.callUser(c.f) }

func (c *call) soon(bool) {}
