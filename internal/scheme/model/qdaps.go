package model

// qdaps implements QDAPS and, with one-way delays, QDAPS*. It chooses the shortest
// of the queues in which a packet leaves after the flow's last packet (Section
// III-B).
//
// The paper's "d output ports" are the first D of the qualifying ports in a random
// order, or all of them. If none qualifies, the packet follows the flow's last
// packet, whose queue keeps the order.
type qdaps struct {
	*Switch
	signal waiter
	flows  [flowSlots]struct {
		expected Time // when the last packet leaves; for QDAPS*, when it arrives, by the other leaf's clock
		path     path
	}
}

// qdapsHardware implements QDAPS on hardware. The switch can access the flow's
// register only once. It therefore chooses the path first, as in DRILL, and uses it
// if the packet leaves after the flow's last packet.
//
// The switch also treats a difference of more than half the clock's range as later,
// unless the difference is within the longest queueing time. Beyond this time the
// flow is new.
type qdapsHardware struct {
	sampled
	flows [flowSlots]struct {
		expected Time
		path     path
	}
}

// longestQueue is the maximum waiting time of a packet: 134 ms.
const longestQueue = 1 << 17 << tickShift

func (c *qdapsHardware) choose(p *pass) int {
	slot := c.sampled.choose(p)
	queued, _ := c.signal.(waiter).queueing(p, slot)
	leaves := p.now.After(Time(queued)<<tickShift + c.signal.(waiter).way(p, slot))
	f := &c.flows[c.flowSlot(p.Flow)]
	if f.expected.Since(leaves) > longestQueue {
		f.expected, f.path = leaves, remember(slot)
	}
	return f.path.there()
}

// A waiter is a signal that can predict the queueing delay of a packet.
type waiter interface {
	signal
	queueing(p *pass, slot int) (packets uint32, delay Time)
	join(port int)
	way(p *pass, slot int) Time
}

// A lane is a path that QDAPS considers.
type lane struct {
	slot      int
	len       uint32
	delay     Time  // QD, Eq. 1
	load      int64 // the value to minimise
	qualifies bool
}

func (c *qdaps) choose(p *pass) int {
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

// lanes returns the paths in order of preference: from a random path on, or in random order if
// only D of them count.
func (c *qdaps) lanes(p *pass, expected Time) (lanes [MaxPaths]lane) {
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

func (c *qdaps) lane(p *pass, slot int, expected Time) lane {
	l := lane{slot: slot}
	l.len, l.delay = c.signal.queueing(p, slot)
	if o, ok := c.signal.(*oneWay); ok {
		// expected and the delays contain the same clock offset. If expected is
		// later than any queue allows, it was stored before the clock wrapped, and
		// the flow is new.
		takes := l.delay + o.way(p, slot)
		l.load = int64(takes.Since(o.reference(p)))
		l.qualifies = p.held < 0 || expected.Since(p.now).Since(takes) > longestWait
		return l
	}
	left := expected.signed(p.now) // time until the last packet has left
	l.load = int64(c.signal.cost(p, slot))
	l.qualifies = p.held < 0 || left <= 0 || int64(l.delay) > left // Eq. 2
	return l
}

// queueing returns QD of Eq. 1, M(l+1)/C. M/C is the port's service time.
func (q *queue) queueing(p *pass, slot int) (uint32, Time) {
	length := q.queue(p, slot)
	port := q.port(p, slot)
	service := uint64(q.ports[port].Service)
	if q.cfg.QueueNow != nil && !q.tofino() {
		frame := uint64(q.cfg.Frame)
		return length, Time((uint64(q.cfg.QueueNow(port, p.Flow)) + frame) * service / frame >> 16)
	}
	return length, Time(uint64(length+1) * service >> 16)
}

// join adds a packet to the queue length of a port at once. Egress writes the exact length when a
// packet leaves.
func (q *queue) join(port int) {
	if q.cfg.Direct && !q.tofino() {
		q.len[port]++
	}
}

func (q *queue) way(*pass, int) Time { return 0 }

// oneWay implements the signal of QDAPS*: the local queues, and the one-way delays
// between leaves, which packets carry in both directions. Each delay includes the
// offset between the leaves' clocks. 0 marks a path that was never measured.
type oneWay struct {
	queue
	to, from byGroup[[MaxPaths]Time]
}

// longestWait is a time, in µs, that is longer than the wait in any queue.
const longestWait = 1 << 18

// way returns the delay of a path. A path that was never measured has the reference
// delay, so that packets try it.
func (o *oneWay) way(p *pass, slot int) Time {
	if way := o.to.of(p.Group)[slot]; way != 0 {
		return way
	}
	return o.reference(p)
}

// reference returns the delay with which other delays are compared. It is the
// smallest measured delay; on hardware, the first measured one; without
// measurements, 0.
func (o *oneWay) reference(p *pass) (least Time) {
	ways := o.to.of(p.Group)
	if o.tofino() {
		for _, way := range ways[:o.cfg.Paths] {
			if way != 0 {
				return way
			}
		}
		return 0
	}
	for _, way := range ways[:p.n] {
		if way != 0 && (least == 0 || least.signed(way) >= 0) {
			least = way
		}
	}
	return least
}

// cost returns the value that hardware compares. It is the time at which a packet
// reaches the other leaf on a path, by that leaf's clock, minus the reference.
func (o *oneWay) cost(p *pass, slot int) uint32 {
	if !o.tofino() {
		return o.queue.cost(p, slot)
	}
	ahead := o.way(p, slot).Since(o.reference(p)).After(1 << 46)
	return o.queue.cost(p, slot) + uint32(ahead>>tickShift)
}

func (o *oneWay) receive(leaf int, h *Overlay, now Time) {
	took := now.Since(h.Sent)
	switch {
	case o.tofino():
		took |= 1 << tickShift
	case took == 0:
		took = 1
	}
	o.from.of(leaf)[h.Tag] = took
	o.to.of(leaf)[h.FbTag] = h.FbDelay
}

func (o *oneWay) send(group int, h *Overlay) { h.FbDelay = o.from.of(group)[h.FbTag] }

func (o *oneWay) pass(h *Overlay, _ int, now Time) {
	if o.cfg.Edge {
		h.Sent = now
	}
}
