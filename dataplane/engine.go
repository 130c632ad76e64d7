package dataplane

import (
	"sync"
	"time"
)

// An Engine is a Switch with simple_switch's queues around it: what a process
// that moves packets between interfaces needs.
type Engine struct {
	mu     sync.Mutex
	sw     *Switch
	queues *Queues
	again  []*Packet // resubmitted and recirculated
	first  int       // of again
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

// maxAgain is the room for resubmitted and recirculated packets; more are
// dropped.
const maxAgain = 1024

// maxRounds bounds the work of one call, for programs that recirculate for
// ever. What is left waits for the next call.
const maxRounds = 1 << 16

// NewEngine puts queues around s.
func NewEngine(s *Switch) *Engine {
	e := &Engine{sw: s, queues: NewQueues(s.opts.Priorities)}
	e.queues.cell = s.CellSize()
	return e
}

// Switch is the switch inside.
func (e *Engine) Switch() *Switch { return e.sw }

// Queues calls f with the queues, to read or change their depths and rates.
func (e *Engine) Queues(f func(*Queues)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(e.queues)
}

// Swap puts another switch, with a new program, in the place of the old one.
// As in simple_switch the multicast groups, the clone sessions and the depths
// and rates of the queues stay; packets under way are lost.
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
	e.queues.flush(old.release)
	e.again, e.first = nil, 0
	e.sent, e.result = nil, nil
	e.sw, e.queues.cell = s, s.CellSize()
}

// Drops is the number of packets that found their queue full.
func (e *Engine) Drops() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.drops
}

// Process takes in a packet and does everything that is due at time now. It
// returns what leaves.
func (e *Engine) Process(port uint32, data []byte, now time.Duration) []Out {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sw.mu.Lock()
	defer e.sw.mu.Unlock()
	e.reclaim()
	e.out = e.sw.runIngress(e.sw.receive(port, data, 0, now), now, e.out[:0])
	e.settle(now)
	return e.run(now)
}

// Generate does the same with a packet of the packet generator; see
// Switch.Generate.
func (e *Engine) Generate(app, batch, number int, data []byte, now time.Duration) []Out {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sw.mu.Lock()
	defer e.sw.mu.Unlock()
	e.reclaim()
	e.out = e.sw.runIngress(e.sw.generate(app, batch, number, data, now), now, e.out[:0])
	e.settle(now)
	return e.run(now)
}

// Run does what is due at time now, and returns what leaves.
func (e *Engine) Run(now time.Duration) []Out {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sw.mu.Lock()
	defer e.sw.mu.Unlock()
	e.reclaim()
	return e.run(now)
}

// Next is the time at which Run has something to do; ok is false if there is
// nothing.
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
		if p := e.nextAgain(); p != nil {
			e.out = e.sw.runIngress(p, now, e.out[:0])
		} else if p, depth := e.queues.Pop(now); p != nil {
			e.out = e.sw.runEgress(p, depth, now, e.out[:0])
		} else {
			break
		}
		e.settle(now)
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

// settle does what the outcomes say.
func (e *Engine) settle(now time.Duration) {
	for _, o := range e.out {
		switch o.Kind {
		case ToQueue:
			e.enqueue(o.Packet, now)
		case ToIngress:
			e.goAgain(o.Packet)
		case ToPort:
			e.sent = append(e.sent, o.Packet)
			e.result = append(e.result, Out{Port: o.Port, Data: o.Packet.payload()})
		}
	}
}

func (e *Engine) enqueue(p *Packet, now time.Duration) {
	depth, ok := e.queues.Push(p, now)
	if !ok {
		e.drops++
		e.sw.drop(p, dropQueue, nil)
		return
	}
	e.sw.enqueued(p, depth, now)
}

func (e *Engine) goAgain(p *Packet) {
	if len(e.again)-e.first >= maxAgain {
		e.drops++
		e.sw.drop(p, dropBuffer, nil)
		return
	}
	if e.first > maxAgain {
		e.again = e.again[:copy(e.again, e.again[e.first:])]
		e.first = 0
	}
	e.again = append(e.again, p)
}

// reclaim frees the packets that the last call has handed out.
func (e *Engine) reclaim() {
	for _, p := range e.sent {
		e.sw.release(p)
	}
	e.sent, e.result = e.sent[:0], e.result[:0]
}
