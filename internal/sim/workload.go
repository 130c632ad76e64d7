package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// A Step is one flow of a workload and the conditions under which it begins: Start
// has passed, and Delay has passed since its last predecessor finished. Predecessors
// are places in the workload. A step with Compute sends nothing: it ends when it
// begins, so that Delay is the time of a computation on the host From.
type Step struct {
	FlowSpec
	Compute  bool
	Start    time.Duration
	Delay    time.Duration
	After    []int32 // the last byte of these has arrived
	AfterAck []int32 // the last byte of these is acknowledged
	// Connection numbers the connection that carries the flow, from 1; 0 opens a new
	// one. A flow inherits the congestion state of the flow before it on its connection.
	Connection int32
	// QueuePair: all flows of the connection also have the source port of the first, and
	// share the state of entropy.
	QueuePair bool
}

// A Workload is a set of flows that begin after each other. Predecessors count down
// the waits of their successors. A step plans its flow when its count reaches zero.
//
// In a network with parts, a predecessor may finish in another part than the one in
// which the successor begins. Such a successor begins at the end of the window, which
// all parts agree on. If all predecessors of a step finish at its source, it begins
// at once.
type Workload struct {
	net     *Network
	steps   []step
	conns   map[int32]*connection
	planned atomic.Int32 // steps that are about to begin
	waiting atomic.Int32 // steps that wait for predecessors
}

// A step is a Step under way.
type step struct {
	ev        event
	w         *Workload
	place     int32
	waits     int32 // predecessors that have not finished
	local     bool  // all predecessors finish at the source
	spec      Step
	onArrival []int32
	onAck     []int32
	flow      *Flow
	host      *Host // the source
	to        **Flow
	over      bool          // a computation has ended
	ended     time.Duration // when it has
	at        place         // of the events of a computation
}

// A connection outlives its flows.
type connection struct {
	last    half           // the sending half of its latest flow
	left    int            // flows still to begin
	port    uint16         // the source port of a queue pair; 0: no flow has been made
	entropy *entropySource // of a queue pair
}

// PlanWorkload plans the flows of a workload. flows[i] is set when step i begins.
func (n *Network) PlanWorkload(steps []Step, flows []*Flow) (*Workload, error) {
	w := &Workload{net: n, steps: make([]step, len(steps)), conns: map[int32]*connection{}}
	for i := range steps {
		s := &w.steps[i]
		*s = step{w: w, place: int32(i), spec: steps[i], to: &flows[i], waits: int32(len(steps[i].After) + len(steps[i].AfterAck))}
		s.ev.what = s
		if s.spec.Connection > 0 {
			c := w.conns[s.spec.Connection]
			if c == nil {
				c = new(connection)
				w.conns[s.spec.Connection] = c
			}
			c.left++
		}
	}
	for i := range w.steps {
		if err := w.check(&w.steps[i]); err != nil {
			return nil, fmt.Errorf("flow %d: %w", i, err)
		}
	}
	if cycle := Cycle(len(steps), func(i int) ([]int32, []int32) { return steps[i].After, steps[i].AfterAck }); cycle != nil {
		return nil, fmt.Errorf("flows wait for each other: %v", cycle)
	}
	w.link()
	for i := range w.steps {
		s := &w.steps[i]
		s.host = n.Host(s.spec.From)
		if n.placed() && !s.spec.Compute {
			f, err := n.newFlow(s.spec.FlowSpec)
			if err != nil {
				return nil, err
			}
			s.flow = f
			f.step = s
			s.samePort(f)
		}
		if s.waits == 0 {
			s.plan(n.now)
		} else {
			w.waiting.Add(1)
		}
	}
	return w, nil
}

// check returns the error of an invalid step.
func (w *Workload) check(s *step) error {
	if s.spec.Compute {
		if w.net.Host(s.spec.From) == nil || len(s.spec.AfterAck) > 0 {
			return fmt.Errorf("a computation on %q: want a host, and no predecessors by acknowledgment", s.spec.From)
		}
	} else if err := w.net.checkFlow(&s.spec.FlowSpec); err != nil {
		return err
	}
	for _, list := range [][]int32{s.spec.After, s.spec.AfterAck} {
		for _, p := range list {
			if p < 0 || int(p) >= len(w.steps) {
				return fmt.Errorf("predecessor %d: want 0 to %d", p, len(w.steps)-1)
			}
		}
	}
	for _, p := range s.spec.AfterAck {
		if t := w.steps[p].spec.Transport; w.steps[p].spec.Compute || t == UDP {
			return fmt.Errorf("it waits for the acknowledgment of flow %d, which gets none", p)
		}
	}
	if s.spec.Delay < 0 {
		return errors.New("a negative delay")
	}
	return nil
}

// link registers, for each step, the steps that wait for it.
func (w *Workload) link() {
	for i := range w.steps {
		s := &w.steps[i]
		s.local = true
		for _, p := range s.spec.After {
			before := &w.steps[p]
			before.onArrival = append(before.onArrival, int32(i))
			s.local = s.local && before.end() == s.spec.From
		}
		for _, p := range s.spec.AfterAck {
			before := &w.steps[p]
			before.onAck = append(before.onAck, int32(i))
			s.local = s.local && before.spec.From == s.spec.From
		}
	}
}

// end is the host at which the step finishes.
func (s *step) end() string {
	if s.spec.Compute {
		return s.spec.From
	}
	return s.spec.To
}

// plan has the flow begin Delay from now, and not before Start.
func (s *step) plan(now time.Duration) {
	s.w.planned.Add(1)
	at := max(s.spec.Start, now)
	if s.spec.waits() {
		at = max(s.spec.Start, now+s.spec.Delay)
	}
	switch {
	case s.flow != nil:
		s.host.net.events.planAs(&s.ev, at, uint64(s.flow.place(sending)))
	case s.w.net.placed():
		s.at = place(3<<62 | uint64(s.place)<<1) // after all flows
		s.host.net.events.planAs(&s.ev, at, uint64(s.at))
	default:
		s.w.net.events.plan(&s.ev, at)
	}
}

// waits reports whether the step has predecessors.
func (s *Step) waits() bool { return len(s.After)+len(s.AfterAck) > 0 }

func (s *step) soon(bool) {}

// fire begins the flow. Its parameters were checked when it was planned.
func (s *step) fire() {
	s.w.planned.Add(-1)
	if s.spec.Compute {
		s.over, s.ended = true, s.host.net.now
		s.arrived(s.host.net)
		switch done := s.spec.Done; {
		case done == nil:
		case s.w.net.placed():
			s.host.net.defers(s.at, func() { done(nil) })
		default:
			s.w.net.outside(func() { done(nil) })
		}
		return
	}
	f := s.flow
	if f == nil {
		var err error
		if f, err = s.w.net.newFlow(s.spec.FlowSpec); err != nil {
			panic(err)
		}
		f.step = s
		s.samePort(f)
	}
	*s.to = f
	if err := f.begin(); err != nil {
		panic(err)
	}
}

// samePort gives a flow the source port of its queue pair.
func (s *step) samePort(f *Flow) {
	if c := s.w.conns[s.spec.Connection]; c != nil && s.spec.QueuePair {
		c.port = cmp.Or(c.port, f.Sport)
		f.Sport = c.port
	}
}

// connect gives the source of a flow the state of its connection.
func (s *step) connect(f *source) {
	c := s.w.conns[s.spec.Connection]
	if c == nil {
		return
	}
	if to, ok := f.half.(heir); ok && c.last != nil {
		to.inherit(c.last)
	}
	c.last = f.half
	if s.spec.QueuePair && f.entropy != nil {
		c.entropy = cmp.Or(c.entropy, f.entropy)
		f.entropy = c.entropy
	}
	if c.left--; c.left == 0 {
		c.last, c.entropy = nil, nil
	}
}

// An heir is a sending half that can take over the congestion state of another.
type heir interface{ inherit(from half) }

// arrived notes that the last byte of the flow has arrived.
func (s *step) arrived(n *Network) { s.done(n, s.onArrival, receiving) }

// acknowledged notes that the sender knows it.
func (s *step) acknowledged(n *Network) {
	if len(s.onAck) > 0 {
		s.done(n, s.onAck, sending)
	}
}

// done releases successors, at an end of the flow.
func (s *step) done(n *Network, successors []int32, end uint64) {
	deferred := false
	for _, i := range successors {
		if next := &s.w.steps[i]; next.local || !n.placed() {
			next.release(n.now)
		} else {
			deferred = true
		}
	}
	if !deferred {
		return
	}
	from := s.at
	if !s.spec.Compute {
		from = (*s.to).place(end)
	}
	n.defers(from, func() {
		for _, i := range successors {
			if next := &s.w.steps[i]; !next.local {
				next.release(s.w.net.now)
			}
		}
	})
}

// release notes that a predecessor has finished.
func (s *step) release(now time.Duration) {
	if s.waits--; s.waits == 0 {
		s.plan(now)
		s.w.waiting.Add(-1)
	}
}

// A Waiting is a step that waits, and its unfinished predecessors.
type Waiting struct {
	Step int
	For  []int
}

// Stalled reports whether steps wait and none is about to begin: unless packets arrive,
// none ever will.
func (w *Workload) Stalled() bool { return w.waiting.Load() > 0 && w.planned.Load() == 0 }

// Waiting lists the steps that wait for predecessors, at most limit of them.
func (w *Workload) Waiting(limit int) (list []Waiting) {
	for i := range w.steps {
		s := &w.steps[i]
		if s.waits == 0 || len(list) == limit {
			continue
		}
		x := Waiting{Step: i}
		for _, p := range s.spec.After {
			if b := &w.steps[p]; !b.finished() {
				x.For = append(x.For, int(p))
			}
		}
		for _, p := range s.spec.AfterAck {
			if f := *w.steps[p].to; f == nil || f.Acknowledged == 0 {
				x.For = append(x.For, int(p))
			}
		}
		list = append(list, x)
	}
	return list
}

// finished reports whether successors that wait for the arrival may begin.
func (s *step) finished() bool {
	if s.spec.Compute {
		return s.over
	}
	return *s.to != nil && (*s.to).Finished > 0
}

// Ended returns when a computation has ended, or false if it has not.
func (w *Workload) Ended(i int) (time.Duration, bool) { return w.steps[i].ended, w.steps[i].over }

// Cycle returns steps of which each waits for the next, and the last for the first,
// which is repeated at the end; or nil. before returns the predecessors of a step.
func Cycle(n int, before func(i int) (after, afterAck []int32)) []int {
	const (
		unseen = iota
		open
		closed
	)
	state := make([]uint8, n)
	// A frame is a step on the way from the root of the search, and how many of its
	// predecessors have been visited.
	type frame struct{ at, next int }
	for root := range n {
		if state[root] != unseen {
			continue
		}
		path := []frame{{at: root}}
		state[root] = open
		for len(path) > 0 {
			f := &path[len(path)-1]
			after, afterAck := before(f.at)
			k := f.next
			if k == len(after)+len(afterAck) {
				state[f.at] = closed
				path = path[:len(path)-1]
				continue
			}
			f.next++
			var p int
			if k < len(after) {
				p = int(after[k])
			} else {
				p = int(afterAck[k-len(after)])
			}
			switch state[p] {
			case unseen:
				state[p] = open
				path = append(path, frame{at: p})
			case open:
				at := slices.IndexFunc(path, func(f frame) bool { return f.at == p })
				var cycle []int
				for _, f := range path[at:] {
					cycle = append(cycle, f.at)
				}
				return append(cycle, cycle[0])
			}
		}
	}
	return nil
}
