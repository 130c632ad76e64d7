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

// A schedule is a heap of plans with four children to a node: half as deep as
// one with two, and the children share cache lines. Nothing outside of the heap
// is touched when plans move in it: a large network does not fit in the cache.
//
// What has been taken off the top leaves a hole there until the next plan,
// which fills it: most events plan another one.
type schedule struct {
	heap []plan
	hole bool
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
	e.seq = seq
	p := plan{at, seq, e}
	if s.hole {
		s.hole = false
		s.down(p)
		return
	}
	s.heap = append(s.heap, p)
	s.up(p)
}

// cancel takes an event back. It need not be planned.
func (s *schedule) cancel(e *event) { e.seq = 0 }

// pop takes the first event off the schedule, if there is one by a time.
func (s *schedule) pop(until time.Duration) (e *event, at time.Duration) {
	for {
		if s.hole {
			s.close()
		}
		if len(s.heap) == 0 || s.heap[0].at > until {
			return nil, 0
		}
		p := &s.heap[0]
		s.hole = true
		if p.ev.seq == p.seq {
			p.ev.seq = 0
			return p.ev, p.at
		}
	}
}

// close fills the hole with the last plan.
func (s *schedule) close() {
	s.hole = false
	last := len(s.heap) - 1
	p := s.heap[last]
	s.heap[last].ev = nil
	s.heap = s.heap[:last]
	if last > 0 {
		s.down(p)
	}
}

// up puts p, for which there is room at the end, where it belongs.
func (s *schedule) up(p plan) {
	h := s.heap
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / children
		if !p.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = p
}

// down puts p, for which there is room at the top, where it belongs.
func (s *schedule) down(p plan) {
	h := s.heap
	i := 0
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
		h[i] = h[least]
		i = least
	}
	h[i] = p
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
	if t.ev.planned() && t.planned <= at {
		return
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
