package dataplane

import (
	"container/heap"
	"fmt"
	"math"
	"time"
)

// Queues are simple_switch's egress queues: one per port and priority, each with a
// capacity in packets and a rate in packets per second. Push determines the
// departure time of a packet. Ports share four servers (port modulo 4). A server
// takes the oldest due packet of the highest priority. With programs for Tofino,
// lengths are in cells, but capacities stay in packets.
//
// Queues are not safe for concurrent use.
type Queues struct {
	priorities int
	capacity   int
	delay      time.Duration
	near       []*portQueues // by port, for small port numbers
	far        map[uint32]*portQueues
	cell       int                  // size of a cell in bytes; 0: lengths are in packets
	servers    [servers][]queueHeap // by priority
	nextSeq    uint64
	count      int
}

const (
	servers          = 4
	defaultCapacity  = 64
	nearPorts        = 4096
	farthestDuration = time.Duration(math.MaxInt64)
)

type portQueues struct {
	queues []queue
}

// A queue is a ring of packets.
type queue struct {
	ring     []queued // its length is a power of two
	head, n  int
	length   int // in packets, or in cells
	capacity int
	delay    time.Duration
	bits     uint64        // per second; if not 0, this rate replaces delay
	wire     time.Duration // time at which the newest packet starts to be sent at this rate
	last     time.Duration // time at which the newest packet leaves
	index    int           // its index in the heap
	heap     *queueHeap    // the heap of its server and priority
	paused   bool          // paused, and not in a heap
}

type queued struct {
	p    *Packet
	send time.Duration
	seq  uint64
}

// newQueues returns empty queues with the given priorities per port, each for
// 64 packets and without a rate limit.
func newQueues(priorities int) *Queues {
	q := &Queues{priorities: max(1, priorities), capacity: defaultCapacity, far: map[uint32]*portQueues{}}
	for i := range q.servers {
		q.servers[i] = make([]queueHeap, q.priorities)
	}
	return q
}

func (q *Queues) port(port uint32) *portQueues {
	if port < nearPorts {
		for int(port) >= len(q.near) {
			q.near = append(q.near, nil)
		}
		if q.near[port] == nil {
			q.near[port] = q.newPort(port)
		}
		return q.near[port]
	}
	if q.far[port] == nil {
		q.far[port] = q.newPort(port)
	}
	return q.far[port]
}

func (q *Queues) newPort(port uint32) *portQueues {
	pq := &portQueues{queues: make([]queue, q.priorities)}
	for i := range pq.queues {
		pq.queues[i] = queue{capacity: q.capacity, delay: q.delay, last: math.MinInt64 / 2, heap: &q.servers[port%servers][i]}
	}
	return pq
}

// Len returns the number of packets in a queue.
func (q *Queues) Len(port uint32, priority int) int { return q.port(port).queues[priority].n }

// Waiting returns the number of packets in the queues of a port and the sum of
// their capacities.
func (q *Queues) Waiting(port uint32) (packets, room int) {
	for i := range q.port(port).queues {
		qu := &q.port(port).queues[i]
		packets, room = packets+qu.n, room+qu.capacity
	}
	return packets, room
}

// Push queues p for the port and priority that Ingress or Egress has set, and
// returns the number of packets, or cells, before it. ok is false if the queue
// is full.
func (q *Queues) Push(p *Packet, now time.Duration) (depth int, ok bool) { return q.push(p, now, 0) }

// push adds a packet that leaves at least gap after now and after the packet before it.
func (q *Queues) push(p *Packet, now, gap time.Duration) (depth int, ok bool) {
	qu := &q.port(p.egressPort).queues[p.priority]
	depth = qu.length
	if qu.n >= qu.capacity {
		return depth, false
	}
	qu.length += cells(p, q.cell)
	if qu.bits == 0 {
		qu.last = max(now+gap, qu.last+max(qu.delay, gap))
	} else {
		qu.last = max(now+gap, qu.last+max(qu.wire, gap))
		qu.wire = OnWire(p.st.Length, qu.bits)
	}
	qu.push(queued{p: p, send: qu.last, seq: q.nextSeq})
	q.nextSeq++
	q.count++
	if qu.n == 1 && !qu.paused {
		qu.heap.add(qu)
	}
	return depth, true
}

func (qu *queue) push(e queued) {
	if qu.n == len(qu.ring) {
		ring := make([]queued, max(16, 2*len(qu.ring)))
		for i := range qu.n {
			ring[i] = qu.ring[(qu.head+i)&(len(qu.ring)-1)]
		}
		qu.ring, qu.head = ring, 0
	}
	qu.ring[(qu.head+qu.n)&(len(qu.ring)-1)] = e
	qu.n++
}

// Pop removes the packet that leaves next at time now and returns the packets,
// or cells, that remain in its queue. It returns nil if no packet is due.
func (q *Queues) Pop(now time.Duration) (p *Packet, depth int) {
	best := q.top(now)
	if best == nil {
		return nil, 0
	}
	qu := (*best)[0]
	p = qu.ring[qu.head].p
	qu.ring[qu.head].p = nil
	qu.head = (qu.head + 1) & (len(qu.ring) - 1)
	qu.n--
	qu.length -= cells(p, q.cell)
	q.count--
	switch {
	case len(*best) == 1 && qu.n > 0: // the only queue in the heap does not need to move
	case len(*best) == 1:
		best.Pop()
	case qu.n == 0:
		heap.Pop(best)
	default:
		heap.Fix(best, 0)
	}
	return p, qu.length
}

// setPaused pauses or resumes a queue. A paused queue keeps its packets and accepts
// more until it is full. After it is resumed, packets leave at the queue's rate.
func (q *Queues) setPaused(port uint32, priority int, paused bool, now time.Duration) {
	qu := &q.port(port).queues[priority]
	if !paused {
		q.resume(qu, now)
		return
	}
	if !qu.paused && qu.n > 0 {
		heap.Remove(qu.heap, qu.index)
	}
	qu.paused = true
}

// resume returns a paused queue to its heap and gives its packets new departure
// times.
func (q *Queues) resume(qu *queue, now time.Duration) {
	if !qu.paused {
		return
	}
	qu.paused = false
	if qu.n == 0 {
		return
	}
	at := now
	for i := range qu.n {
		e := &qu.ring[(qu.head+i)&(len(qu.ring)-1)]
		e.send = max(e.send, at)
		qu.last, at = e.send, e.send+qu.delay
		if qu.bits != 0 {
			at = e.send + OnWire(e.p.st.Length, qu.bits)
		}
	}
	qu.heap.add(qu)
}

// cells returns the number of cells of a packet, or 1 if queues count packets.
func cells(p *Packet, size int) int {
	if size == 0 {
		return 1
	}
	return max(1, (p.st.Length+size-1)/size)
}

// top returns the heap whose first queue is served next: for each server the
// highest priority, and among servers the oldest packet.
func (q *Queues) top(now time.Duration) *queueHeap {
	if q.count == 0 {
		return nil
	}
	var best *queueHeap
	for i := range q.servers {
		for pri := q.priorities - 1; pri >= 0; pri-- {
			h := &q.servers[i][pri]
			if len(*h) == 0 || (*h)[0].first().send > now {
				continue
			}
			if best == nil || (*h)[0].before((*best)[0]) {
				best = h
			}
			break
		}
	}
	return best
}

// Next returns the time at which Pop has a packet; ok is false if there is
// none.
func (q *Queues) Next() (at time.Duration, ok bool) {
	at = farthestDuration
	for i := range q.servers {
		for _, h := range q.servers[i] {
			if len(h) > 0 {
				at, ok = min(at, h[0].first().send), true
			}
		}
	}
	return at, ok
}

func (qu *queue) first() *queued { return &qu.ring[qu.head] }

func (qu *queue) before(o *queue) bool {
	a, b := qu.first(), o.first()
	return a.send < b.send || a.send == b.send && a.seq < b.seq
}

// A queueHeap is a heap of queues by the departure time of their first packets.
type queueHeap []*queue

// add inserts a queue with its first packet. Usually it is the only queue.
func (h *queueHeap) add(qu *queue) {
	if len(*h) == 0 {
		h.Push(qu)
		return
	}
	heap.Push(h, qu)
}

// Len implements heap.Interface.
func (h queueHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h queueHeap) Less(i, j int) bool { return h[i].before(h[j]) }

// Swap implements heap.Interface.
func (h queueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *queueHeap) Push(x any) {
	qu := x.(*queue)
	qu.index = len(*h)
	*h = append(*h, qu)
}

// Pop implements heap.Interface.
func (h *queueHeap) Pop() any {
	last := len(*h) - 1
	qu := (*h)[last]
	*h = (*h)[:last]
	return qu
}

// SetDepth sets the capacity of the queues of a port: of one priority, or of
// all for priority -1.
func (q *Queues) SetDepth(port uint32, priority, packets int) error {
	return q.each(port, priority, func(qu *queue) { qu.capacity = packets })
}

// SetRate sets the rate of the queues of a port in packets per second; 0
// removes the limit. It applies to packets queued later.
func (q *Queues) SetRate(port uint32, priority int, pps uint64) error {
	return q.each(port, priority, func(qu *queue) { qu.delay = delayOf(pps) })
}

// SetBitRate makes the queues of a port send at a rate in bits per second, like a
// link. Their rates in packets are then ignored; 0 restores them. A packet leaves
// when its first bit is sent.
func (q *Queues) SetBitRate(port uint32, bits uint64) {
	q.each(port, -1, func(qu *queue) { qu.bits, qu.wire = bits, 0 }) // all priorities
}

// OnWire returns the time that a packet takes at a rate in bits per second.
func OnWire(bytes int, bits uint64) time.Duration {
	return time.Duration(float64(bytes) * 8e9 / float64(bits))
}

func (q *Queues) each(port uint32, priority int, do func(*queue)) error {
	if priority < -1 || priority >= q.priorities {
		return fmt.Errorf("priority %d is outside 0..%d", priority, q.priorities-1)
	}
	pq := q.port(port)
	for i := range pq.queues {
		if priority == -1 || priority == i {
			do(&pq.queues[i])
		}
	}
	return nil
}

// SetAllDepths sets the capacity of all queues, also of ports without packets
// so far.
func (q *Queues) SetAllDepths(packets int) {
	q.capacity = packets
	q.all(func(qu *queue) { qu.capacity = packets })
}

// SetAllRates sets the rate of all queues in packets per second, also of ports
// without packets so far.
func (q *Queues) SetAllRates(pps uint64) {
	q.delay = delayOf(pps)
	q.all(func(qu *queue) { qu.delay = q.delay })
}

func (q *Queues) all(do func(*queue)) {
	for _, pq := range q.near {
		if pq != nil {
			for i := range pq.queues {
				do(&pq.queues[i])
			}
		}
	}
	for _, pq := range q.far {
		for i := range pq.queues {
			do(&pq.queues[i])
		}
	}
}

func delayOf(pps uint64) time.Duration {
	if pps == 0 {
		return 0
	}
	return time.Duration(1e9 / float64(pps))
}
