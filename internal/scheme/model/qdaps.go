package model

// ordered is QDAPS, and with one-way delays QDAPS*: the shortest of the queues
// in which a packet leaves behind the flow's last one (Section III-B).
//
// The paper's "d output ports" are here the first D of those that qualify in a
// random order, or all of them. Where none qualifies the packet follows the
// last one, whose queue keeps the order.
type ordered struct {
	*Switch
	signal waiter
	flows  [Flows]struct {
		expected Time // when the last packet leaves; QDAPS*: when it arrives, by the other leaf's clock
		path     path
	}
}

// orderly is QDAPS on hardware. The flow's register is accessed once, so that
// the path is chosen first, as in DRILL, and taken if the packet leaves behind
// the flow's last one. That it does is what is after half a clock's time too:
// all but what a queue can take, past which the flow is new.
type orderly struct {
	sampled
	flows [Flows]struct {
		expected Time
		path     path
	}
}

// longestQueue is what no packet waits longer for: 134 ms.
const longestQueue = 1 << 17 << tickShift

func (c *orderly) choose(p *pass) int {
	slot := c.sampled.choose(p)
	queued, _ := c.signal.(waiter).queueing(p, slot)
	leaves := p.now.After(Time(queued)<<tickShift + c.signal.(waiter).way(p, slot))
	f := &c.flows[c.flowSlot(p.Flow)]
	if f.expected.Since(leaves) > longestQueue {
		f.expected, f.path = leaves, remember(slot)
	}
	return f.path.there()
}

// waiter is a signal that knows how long a packet would take.
type waiter interface {
	signal
	queueing(p *pass, slot int) (packets uint32, delay Time)
	way(p *pass, slot int) Time
}

// A lane is a path that QDAPS looks at.
type lane struct {
	slot      int
	len       uint32
	delay     Time  // QD, Eq. 1
	load      int64 // what is to be least
	qualifies bool
}

func (c *ordered) choose(p *pass) int {
	f := &c.flows[p.Flow.Hash()]
	p.held = f.path.in(p.n)
	lanes := c.lanes(p, f.expected)
	taken, found := lane{slot: -1}, 0
	shortest := lanes[0]
	for _, l := range lanes[:p.n] {
		if l.load < shortest.load {
			shortest = l
		}
		if l.qualifies {
			if found++; found <= c.cfg.D && (taken.slot < 0 || l.load < taken.load) {
				taken = l
			}
		}
	}
	if taken.slot < 0 {
		taken = c.lane(p, p.held, f.expected)
	}
	if s := c.controlled.threshold; s != 0 && taken.len > s {
		taken = shortest // large flow rerouting, Section III-C
	}
	f.path = remember(taken.slot)
	f.expected = p.now.After(taken.delay + c.signal.way(p, taken.slot))
	return taken.slot
}

// lanes looks at all paths in the order in which they are preferred: from a
// random one on, or at random if only D of them count.
func (c *ordered) lanes(p *pass, expected Time) (lanes [MaxPaths]lane) {
	if c.cfg.D >= c.cfg.Paths {
		first := c.random(p.n)
		for i := range p.n {
			lanes[i] = c.lane(p, (first+i)%p.n, expected)
		}
		return lanes
	}
	var order shuffle
	for k := range p.n {
		lanes[k] = c.lane(p, order.draw(c.Switch, k, p.n), expected)
	}
	return lanes
}

func (c *ordered) lane(p *pass, slot int, expected Time) lane {
	l := lane{slot: slot}
	l.len, l.delay = c.signal.queueing(p, slot)
	left := expected.signed(p.now) // until the last packet is gone
	if c.cfg.Signal == "one-way" {
		// The other leaf's clock is ahead by as much in left as in way. There
		// is no telling when the last packet has arrived, and no need to: what
		// comes after it qualifies more and more.
		base := c.signal.way(p, 0)
		l.load = (l.delay + c.signal.way(p, slot)).signed(base)
		l.qualifies = p.held < 0 || (l.delay+c.signal.way(p, slot)).signed(expected-p.now) > 0
		return l
	}
	l.load = int64(l.len)
	l.qualifies = p.held < 0 || left <= 0 || int64(l.delay) > left // Eq. 2
	return l
}

// queueing is QD of Eq. 1, M(l+1)/C, with M/C as the port's service time.
func (q *queue) queueing(p *pass, slot int) (uint32, Time) {
	port := q.port(p, slot)
	return q.len[port], Time(uint64(q.len[port]+1) * uint64(q.ports[port].Service) >> 16)
}

func (q *queue) way(*pass, int) Time { return 0 }

// oneWay is QDAPS*'s signal: beside the local queues, how long packets take
// from leaf to leaf, which they carry there and back. All such times are off by
// what one leaf's clock is ahead of the other's.
type oneWay struct {
	queue
	to, from byGroup[[MaxPaths]Time]
}

func (o *oneWay) way(p *pass, slot int) Time { return o.to.of(p.Group)[slot] }

// cost is what hardware compares: the time to the other leaf by a path, by its
// clock, against that of path 0.
func (o *oneWay) cost(p *pass, slot int) uint32 {
	if !o.tofino() {
		return o.queue.cost(p, slot)
	}
	ahead := o.way(p, slot).Since(o.way(p, 0)).After(1 << 46)
	return o.queue.cost(p, slot) + uint32(ahead>>tickShift)
}

func (o *oneWay) receive(leaf int, h *Overlay, now Time) {
	o.from.of(leaf)[h.Tag] = now.Since(h.Sent)
	o.to.of(leaf)[h.FbTag] = h.FbDelay
}

func (o *oneWay) send(group int, h *Overlay) { h.FbDelay = o.from.of(group)[h.FbTag] }

func (o *oneWay) pass(h *Overlay, _ int, now Time) {
	if o.cfg.Edge {
		h.Sent = now
	}
}
