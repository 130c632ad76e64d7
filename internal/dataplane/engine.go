package dataplane

import (
	"sync"
	"time"
)

// An Engine is a Switch with simple_switch's queues, for a process that moves
// packets between interfaces. It can also have one Switch for each pipe of
// Tofino, with separate state.
type Engine struct {
	mu     sync.Mutex
	sw     *Switch // the switch of the first pipe; usually there is one pipe
	pipes  []*Switch
	queues *Queues
	again  []*Packet // resubmitted and recirculated packets
	first  int       // index of the first packet in again
	out    []Outcome
	sent   []*Packet
	result []Out
	drops  uint64
}

// An Out is a packet that leaves. Data is valid until the next call of Process
// or Run.
type Out struct {
	Port uint32
	Data []byte
}

// maxAgain is the capacity of again; further packets are dropped.
const maxAgain = 1024

// maxRounds bounds the work of one call, for programs that recirculate without
// end. The rest waits for the next call.
const maxRounds = 1 << 16

// NewEngine adds queues to s.
func NewEngine(s *Switch) *Engine { return NewPipes([]*Switch{s}) }

// NewPipes adds queues to the pipes of a chip. The ports of each pipe use its own
// Switch, and only bytes pass from one pipe to another. Ports above the last pipe
// use the first pipe, and so on.
func NewPipes(pipes []*Switch) *Engine {
	e := &Engine{sw: pipes[0], pipes: pipes, queues: newQueues(pipes[0].opts.Priorities)}
	e.queues.cell = e.sw.CellSize()
	return e
}

// Switch returns the switch, or the switch of the first pipe.
func (e *Engine) Switch() *Switch { return e.sw }

// at returns the switch for a port.
func (e *Engine) at(port uint32) *Switch {
	if len(e.pipes) == 1 {
		return e.sw
	}
	return e.pipes[int(port/(devPorts/pipes))%len(e.pipes)]
}

func (e *Engine) lock() {
	e.mu.Lock()
	for _, s := range e.pipes {
		s.mu.Lock()
	}
}

func (e *Engine) unlock() {
	for _, s := range e.pipes {
		s.mu.Unlock()
	}
	e.mu.Unlock()
}

// Queues calls f with the queues, to read or change depths and rates.
func (e *Engine) Queues(f func(*Queues)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.queues)
}

// Swap replaces the switch by another one with a new program. As in
// simple_switch, the multicast groups, the clone sessions and the depths and
// rates of the queues stay; packets in the queues are lost. The engine must
// have one pipe.
func (e *Engine) Swap(s *Switch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.sw
	old.mu.Lock()
	defer old.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pre, s.mirrors = old.pre, old.mirrors
	old.pre, old.mirrors = replication{}, mirrors{}
	e.queues.all(func(qu *queue) { e.queues.resume(qu, 0) })
	for p, _ := e.queues.Pop(farthestDuration); p != nil; p, _ = e.queues.Pop(farthestDuration) {
		old.release(p)
	}
	e.again, e.first = nil, 0
	e.sent, e.result = nil, nil
	e.sw, e.pipes, e.queues.cell = s, []*Switch{s}, s.CellSize()
}

// Drops returns the number of packets that found their queue full.
func (e *Engine) Drops() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drops
}

// Process receives a packet, runs everything due at time now, and returns the
// packets that leave.
func (e *Engine) Process(port uint32, data []byte, now time.Duration) []Out {
	e.lock()
	defer e.unlock()
	e.reclaim()
	s := e.at(port)
	e.out = s.runIngress(s.receive(port, data, 0, now), now, e.out[:0])
	e.settle(s, now)
	return e.run(now)
}

// Generate processes a packet of the packet generator, in the same way as Process.
func (e *Engine) Generate(g Generated, now time.Duration) []Out {
	e.lock()
	defer e.unlock()
	e.reclaim()
	s := e.at(g.Port)
	e.out = s.runIngress(s.generate(g, now), now, e.out[:0])
	e.settle(s, now)
	return e.run(now)
}

// Run runs everything due at time now and returns the packets that leave.
func (e *Engine) Run(now time.Duration) []Out {
	e.lock()
	defer e.unlock()
	e.reclaim()
	return e.run(now)
}

// Next returns the time at which Run has work; ok is false if there is none.
func (e *Engine) Next() (at time.Duration, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first < len(e.again) {
		return 0, true
	}
	return e.queues.Next()
}

func (e *Engine) run(now time.Duration) []Out {
	for range maxRounds {
		var s *Switch
		if p := e.nextAgain(); p != nil {
			s = e.at(p.ingressPort)
			e.out = s.runIngress(p, now, e.out[:0])
		} else if p, depth := e.queues.Pop(now); p != nil {
			s = e.at(p.egressPort)
			e.out = s.runEgress(p, depth, now, e.out[:0])
		} else {
			break
		}
		e.settle(s, now)
	}
	return e.result
}

func (e *Engine) nextAgain() *Packet {
	if e.first == len(e.again) {
		e.again, e.first = e.again[:0], 0
		return nil
	}
	e.first++
	return e.again[e.first-1]
}

// settle executes the outcomes of a switch.
func (e *Engine) settle(from *Switch, now time.Duration) {
	for i := range e.out {
		o := &e.out[i]
		switch o.Kind {
		case ToQueue:
			p, s := o.Packet, e.at(o.Port)
			if s != from {
				p = s.adopt(p, from)
			}
			e.enqueue(s, p, now)
		case ToIngress:
			e.goAgain(from, o.Packet)
		case ToPort:
			e.sent = append(e.sent, o.Packet)
			e.result = append(e.result, Out{Port: o.Port, Data: o.Packet.st.Payload()})
		case ToScheduler:
			e.queues.setPaused(o.Port, o.Priority, o.Pause, now)
		}
	}
}

func (e *Engine) enqueue(s *Switch, p *Packet, now time.Duration) {
	gap := time.Duration(0)
	if s.Loops(p.egressPort) && p.rounds.delay() {
		gap = loopGap
	}
	depth, ok := e.queues.push(p, now, gap)
	if !ok {
		e.drops++
		s.drop(p, dropQueue, nil)
		return
	}
	s.enqueued(p, depth, now)
}

func (e *Engine) goAgain(s *Switch, p *Packet) {
	if len(e.again)-e.first >= maxAgain {
		e.drops++
		s.drop(p, dropBuffer, nil)
		return
	}
	if e.first > maxAgain {
		e.again = e.again[:copy(e.again, e.again[e.first:])]
		e.first = 0
	}
	e.again = append(e.again, p)
}

// reclaim frees the packets that the last call returned.
func (e *Engine) reclaim() {
	for _, p := range e.sent {
		e.at(p.egressPort).release(p)
	}
	e.sent, e.result = e.sent[:0], e.result[:0]
}
