package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// A Step is one flow of a workload and the conditions for its start: the time Start has passed,
// and Delay has passed since its last predecessor finished. Predecessors are indices in the
// workload. A step with Compute sends no data: it ends when it begins, so that Delay is the
// duration of a computation on host From.
type Step struct {
	FlowSpec
	Compute  bool
	Start    time.Duration
	Delay    time.Duration
	After    []int32 // steps whose last byte must have arrived
	AfterAck []int32 // steps whose last byte must be acknowledged
	// Connection numbers the connection that carries the flow, from 1; 0 opens a new
	// one. A flow inherits the congestion state of the flow before it on its connection.
	Connection int32
	// QueuePair: all flows of the connection use the source port of the first flow, and share the
	// state of entropy.
	QueuePair bool
}

// A Workload is a set of flows that depend on each other. Each step counts its unfinished
// predecessors, and plans its flow when the count reaches zero.
//
// In a network with parts, a predecessor may finish in another part than the one in which the
// successor begins. Such a successor begins at the end of the window. If all predecessors of a
// step finish at its source, it begins at once.
//
// A workload may have a million steps. It keeps only the fields that begin a step, and no
// longer refers to a flow after its last acknowledgment.
type Workload struct {
	net       *Network
	at        func(i int) Step
	flows     []*Flow // nil: the caller does not need the flows
	steps     []step
	onArrival successors
	onAck     successors
	conns     map[int32]*connection // connections with several flows
	planned   atomic.Int32          // number of steps that are about to begin
	waiting   atomic.Int32          // number of steps that wait for predecessors
}

// A step is the state of a Step.
type step struct {
	ev         event
	w          *Workload
	flow       *Flow // nil: not created yet, or finished
	host       *Host // the source host
	start      time.Duration
	delay      time.Duration // in a finished computation: the time of its end
	place      int32
	waits      int32 // number of unfinished predecessors
	connection int32
	dependent  bool // the step has predecessors
	local      bool // all predecessors finish at the source host
	compute    bool
	queuePair  bool
	over       bool // the last byte has arrived, or the computation has ended
	acked      bool // the last byte is acknowledged
}

// Successors holds the steps that wait for each step: step i is followed by list[first[i]] to
// list[first[i+1]-1].
type successors struct{ first, list []int32 }

func (s *successors) of(i int32) []int32 {
	if s.first == nil {
		return nil
	}
	return s.list[s.first[i]:s.first[i+1]]
}

// newSuccessors inverts lists of predecessors.
func newSuccessors(n int, before func(i int) []int32) (s successors) {
	count := make([]int32, n+1)
	all := int32(0)
	for i := range n {
		for _, p := range before(i) {
			count[p]++
			all++
		}
	}
	if all == 0 {
		return s
	}
	at := int32(0)
	for i, c := range count {
		count[i] = at
		at += c
	}
	s.first, s.list = slices.Clone(count), make([]int32, all)
	for i := range n {
		for _, p := range before(i) {
			s.list[count[p]] = int32(i)
			count[p]++
		}
	}
	return s
}

// A connection carries several flows, one after the other.
type connection struct {
	last    half           // sending half of its latest flow
	left    int            // flows that have not started
	port    uint16         // source port of a queue pair; 0: no flow has started
	entropy *entropySource // entropy state of a queue pair
}

// PlanWorkload plans the flows of a workload of n steps. at returns step i, and must return the
// same one for each call. If flows is not nil, flows[i] is set when step i begins.
func (n *Network) PlanWorkload(count int, at func(i int) Step, flows []*Flow) (*Workload, error) {
	w := &Workload{net: n, at: at, flows: flows, steps: make([]step, count), conns: map[int32]*connection{}}
	uses := map[int32]int{}
	for i := range w.steps {
		x := at(i)
		if err := w.check(&x); err != nil {
			return nil, fmt.Errorf("flow %d: %w", i, err)
		}
		s := &w.steps[i]
		*s = step{
			w: w, host: n.Host(x.From), start: x.Start, delay: x.Delay, place: int32(i), waits: int32(len(x.After) + len(x.AfterAck)),
			connection: x.Connection, dependent: x.waits(), compute: x.Compute, queuePair: x.QueuePair,
		}
		s.ev.what = s
		if x.Connection > 0 {
			uses[x.Connection]++
		}
	}
	for number, flows := range uses {
		if flows > 1 {
			w.conns[number] = &connection{left: flows}
		}
	}
	before := func(i int) ([]int32, []int32) { x := at(i); return x.After, x.AfterAck }
	for i := range w.steps {
		if err := w.checkAcks(i); err != nil {
			return nil, fmt.Errorf("flow %d: %w", i, err)
		}
	}
	if cycle := Cycle(count, before); cycle != nil {
		return nil, fmt.Errorf("flows wait for each other: %v", cycle)
	}
	w.link()
	for i := range w.steps {
		s := &w.steps[i]
		if n.placed() && !s.compute {
			f, err := n.newFlow(at(i).FlowSpec)
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
func (w *Workload) check(s *Step) error {
	if s.Compute {
		if w.net.Host(s.From) == nil || len(s.AfterAck) > 0 {
			return fmt.Errorf("a computation on %q: want a host, and no predecessors by acknowledgment", s.From)
		}
	} else if err := w.net.checkFlow(&s.FlowSpec); err != nil {
		return err
	}
	for _, list := range [][]int32{s.After, s.AfterAck} {
		for _, p := range list {
			if p < 0 || int(p) >= len(w.steps) {
				return fmt.Errorf("predecessor %d: want 0 to %d", p, len(w.steps)-1)
			}
		}
	}
	if s.Delay < 0 {
		return errors.New("a negative delay")
	}
	return nil
}

// checkAcks returns an error if step i waits for an acknowledgment that nothing sends.
func (w *Workload) checkAcks(i int) error {
	for _, p := range w.at(i).AfterAck {
		if before := w.at(int(p)); before.Compute || before.Transport == UDP {
			return fmt.Errorf("it waits for the acknowledgment of flow %d, which gets none", p)
		}
	}
	return nil
}

// link registers each step with its predecessors.
func (w *Workload) link() {
	n := len(w.steps)
	ends := make([]*Host, n)
	for i := range ends {
		if ends[i] = w.steps[i].host; !w.steps[i].compute {
			ends[i] = w.net.Host(w.at(i).To)
		}
	}
	for i := range w.steps {
		s := &w.steps[i]
		x := w.at(i)
		s.local = true
		for _, p := range x.After {
			s.local = s.local && ends[p] == s.host
		}
		for _, p := range x.AfterAck {
			s.local = s.local && w.steps[p].host == s.host
		}
	}
	w.onArrival = newSuccessors(n, func(i int) []int32 { return w.at(i).After })
	w.onAck = newSuccessors(n, func(i int) []int32 { return w.at(i).AfterAck })
}

// plan makes the flow begin after Delay from now, but not before Start.
func (s *step) plan(now time.Duration) {
	s.w.planned.Add(1)
	at := max(s.start, now)
	if s.dependent {
		at = max(s.start, now+s.delay)
	}
	switch {
	case s.flow != nil:
		s.host.net.events.planAs(&s.ev, at, uint64(s.flow.place(sending)))
	case s.w.net.placed():
		s.host.net.events.planAs(&s.ev, at, uint64(s.computing()))
	default:
		s.w.net.events.plan(&s.ev, at)
	}
}

// computing returns the place of a computation's events, which come after the events of all
// flows.
func (s *step) computing() place { return place(3<<62 | uint64(s.place)<<1) }

// waits reports whether the step has predecessors.
func (s *Step) waits() bool { return len(s.After)+len(s.AfterAck) > 0 }

func (s *step) soon(bool) {}

// fire begins the flow. Its parameters were checked when it was planned.
func (s *step) fire() {
	s.w.planned.Add(-1)
	if s.compute {
		s.delay = s.host.net.now
		s.arrived(s.host.net, nil)
		switch done := s.w.at(int(s.place)).Done; {
		case done == nil:
		case s.w.net.placed():
			s.host.net.deferCall(s.computing(), func() { done(nil) })
		default:
			s.w.net.callUser(func() { done(nil) })
		}
		return
	}
	f := s.flow
	if f == nil {
		var err error
		if f, err = s.w.net.newFlow(s.w.at(int(s.place)).FlowSpec); err != nil {
			panic(err)
		}
		f.step, s.flow = s, f
		s.samePort(f)
	}
	if s.w.flows != nil {
		s.w.flows[s.place] = f
	}
	if err := f.begin(); err != nil {
		panic(err)
	}
}

// samePort gives a flow the source port of its queue pair.
func (s *step) samePort(f *Flow) {
	if c := s.w.conns[s.connection]; c != nil && s.queuePair {
		c.port = cmp.Or(c.port, f.Sport)
		f.Sport = c.port
	}
}

// connect passes the state of the connection to the source of a flow.
func (s *step) connect(f *source) {
	c := s.w.conns[s.connection]
	if c == nil {
		return
	}
	if to, ok := f.half.(heir); ok && c.last != nil {
		to.inherit(c.last)
	}
	c.last = f.half
	if s.queuePair && f.entropy != nil {
		c.entropy = cmp.Or(c.entropy, f.entropy)
		f.entropy = c.entropy
	}
	if c.left--; c.left == 0 {
		c.last, c.entropy = nil, nil
	}
}

// An heir is a sending half that can take over the congestion state of another.
type heir interface{ inherit(from half) }

// arrived records that the last byte of the flow has arrived, or that the computation has ended,
// which has no flow.
func (s *step) arrived(n *Network, f *Flow) {
	s.over = true
	s.done(n, s.w.onArrival.of(s.place), f, receiving)
}

// acknowledged records that the sender has received the last acknowledgment.
func (s *step) acknowledged(n *Network, f *Flow) {
	s.acked, s.flow = true, nil
	if list := s.w.onAck.of(s.place); len(list) > 0 {
		s.done(n, list, f, sending)
	}
}

// done releases the successors when one end of the flow has finished.
func (s *step) done(n *Network, successors []int32, f *Flow, end uint64) {
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
	from := s.computing()
	if f != nil {
		from = f.place(end)
	}
	n.deferCall(from, func() {
		for _, i := range successors {
			if next := &s.w.steps[i]; !next.local {
				next.release(s.w.net.now)
			}
		}
	})
}

// release counts a finished predecessor.
func (s *step) release(now time.Duration) {
	if s.waits--; s.waits == 0 {
		s.plan(now)
		s.w.waiting.Add(-1)
	}
}

// A Waiting is a waiting step and its unfinished predecessors.
type Waiting struct {
	Step int
	For  []int
}

// Stalled reports whether steps wait although none is about to begin. Only packets that still
// arrive can start one then.
func (w *Workload) Stalled() bool { return w.waiting.Load() > 0 && w.planned.Load() == 0 }

// Waiting lists the steps that wait for predecessors, at most limit of them.
func (w *Workload) Waiting(limit int) (list []Waiting) {
	for i := range w.steps {
		if w.steps[i].waits == 0 || len(list) == limit {
			continue
		}
		x := Waiting{Step: i}
		s := w.at(i)
		for _, p := range s.After {
			if !w.steps[p].over {
				x.For = append(x.For, int(p))
			}
		}
		for _, p := range s.AfterAck {
			if !w.steps[p].acked {
				x.For = append(x.For, int(p))
			}
		}
		list = append(list, x)
	}
	return list
}

// Ended returns when a computation has ended, or false if it has not.
func (w *Workload) Ended(i int) (time.Duration, bool) {
	if !w.steps[i].over {
		return 0, false
	}
	return w.steps[i].delay, true
}

// Cycle returns a cycle of steps in which each step waits for the next, or nil. The first step is
// repeated at the end. before returns the predecessors of a step.
func Cycle(n int, before func(i int) (after, afterAck []int32)) []int {
	const (
		unseen = iota
		open
		closed
	)
	state := make([]uint8, n)
	// A frame is a step on the path from the root of the search, with the number of its
	// predecessors that have been visited.
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
