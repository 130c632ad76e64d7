package sim

import (
	"math"
	"time"
)

// A handler is what an event does.
type handler interface{ fire() }

// An event is something that happens at a time. It is part of what it happens
// to, so that planning it allocates nothing; it can be planned once at a time.
type event struct {
	place int // in the heap, from 1; 0: not planned
	what  handler
}

// A plan is an event's entry in the heap. Of two at the same time, the one
// planned first comes first: seq counts.
type plan struct {
	at  time.Duration
	seq uint64
	ev  *event
}

func (a *plan) before(b *plan) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// A schedule is a heap of plans with four children to a node: half as deep as
// one with two, and the children share cache lines.
type schedule struct {
	heap []plan
	seq  uint64
}

const children = 4

// next draws the number that orders events of the same time.
func (s *schedule) next() uint64 {
	s.seq++
	return s.seq
}

// plan lets an event happen at a time.
func (s *schedule) plan(e *event, at time.Duration) { s.planAs(e, at, s.next()) }

// planAs does so with a number drawn earlier.
func (s *schedule) planAs(e *event, at time.Duration, seq uint64) {
	s.heap = append(s.heap, plan{})
	s.up(len(s.heap)-1, plan{at, seq, e})
}

// cancel takes an event back. It need not be planned.
func (s *schedule) cancel(e *event) {
	if e.place == 0 {
		return
	}
	i := e.place - 1
	e.place = 0
	s.remove(i)
}

// remove closes the gap at a place.
func (s *schedule) remove(i int) {
	last := len(s.heap) - 1
	moved := s.heap[last]
	s.heap[last].ev = nil
	s.heap = s.heap[:last]
	if i == last {
		return
	}
	if i > 0 && moved.before(&s.heap[(i-1)/children]) {
		s.up(i, moved)
	} else {
		s.down(i, moved)
	}
}

// up puts p at place i or above.
func (s *schedule) up(i int, p plan) {
	for i > 0 {
		parent := (i - 1) / children
		if !p.before(&s.heap[parent]) {
			break
		}
		s.put(i, s.heap[parent])
		i = parent
	}
	s.put(i, p)
}

// down puts p at place i or below.
func (s *schedule) down(i int, p plan) {
	h := s.heap
	for {
		first := i*children + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+children, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&p) {
			break
		}
		s.put(i, h[least])
		i = least
	}
	s.put(i, p)
}

func (s *schedule) put(i int, p plan) {
	s.heap[i] = p
	p.ev.place = i + 1
}

// A Timer calls a function at a time. Setting it again is cheap, as
// retransmission timers need it: one that is set later, or stopped, stays where
// it is in the schedule and looks at its deadline when it gets there.
type Timer struct {
	net      *Network
	ev       event
	planned  time.Duration
	deadline time.Duration
	f        func()
}

// never is the deadline of a stopped timer.
const never time.Duration = math.MaxInt64

// NewTimer makes a timer that is stopped.
func (n *Network) NewTimer(f func()) *Timer {
	t := &Timer{net: n, f: f, deadline: never}
	t.ev.what = t
	return t
}

// Set lets the timer run out at a time, whatever was set before.
func (t *Timer) Set(at time.Duration) {
	t.deadline = at
	if t.ev.place != 0 {
		if t.planned <= at {
			return
		}
		t.net.events.cancel(&t.ev)
	}
	t.planned = at
	t.net.events.plan(&t.ev, at)
}

// After lets the timer run out after a time from now.
func (t *Timer) After(d time.Duration) { t.Set(t.net.now + d) }

// Stop keeps the timer from running out.
func (t *Timer) Stop() { t.deadline = never }

// Running reports whether the timer is set.
func (t *Timer) Running() bool { return t.deadline != never }

func (t *Timer) fire() {
	switch {
	case t.deadline == never:
	case t.deadline > t.planned:
		t.planned = t.deadline
		t.net.events.plan(&t.ev, t.deadline)
	default:
		t.deadline = never
		t.f()
	}
}
