package sim

import (
	"time"

	"github.com/p4lb/p4lb/internal/scheme/model"
)

// A weaver runs ConWeave in a switch with a model. It handles data packets between hosts of
// different leaves, and the answers that leaves send each other. All other packets take the path
// of their hash.
//
// The source leaf adds a header to a data packet, and switches forward it along the path in this
// header. The destination leaf removes the header. That leaf holds early packets in paused queues
// of the host's port, and resumes them later. A resumed queue is appended to the port's queue,
// after the TAIL packet.
type weaver struct {
	*native
	source model.WovenSource[*Switch]
	sink   model.WovenSink
	paused map[model.Flow]*reordering
	inUse  map[*Port]map[uint8]bool // numbers of the paused queues of each port
	leaves map[int32]leafAt         // by host number
}

// A leafAt is the leaf of a host, and the round-trip time to it in ns without queueing.
type leafAt struct {
	leaf *Switch
	rtt  int64
}

// A reordering is a paused queue that holds the packets of one flow.
type reordering struct {
	w        *weaver
	flow     model.Flow
	port     *Port
	number   uint8
	deadline event
}

// answerLen is the length of an answer.
const answerLen = 64

// ConWeave returns the extension of ECMP to ConWeave.
func ConWeave(c model.ConWeave) Extension {
	return func(e *native) extension {
		return &weaver{
			native: e, source: model.WovenSource[*Switch]{ConWeave: c}, sink: model.WovenSink{ConWeave: c},
			paused: map[model.Flow]*reordering{}, inUse: map[*Port]map[uint8]bool{}, leaves: map[int32]leafAt{},
		}
	}
}

// weave returns the ConWeave data of a packet, which it creates on first use. The
// memory is reused with the packet.
func (p *Packet) weave() *woven {
	c := p.tell()
	if c.woven == nil {
		c.woven = new(woven)
	}
	return c.woven
}

// leafOf returns the leaf of a host, or nil if no path leads there.
func (w *weaver) leafOf(host int32) leafAt {
	at, ok := w.leaves[host]
	if !ok {
		leaf, _, one := w.survey(host, func(int) int { return 0 })
		if at = (leafAt{leaf, 2 * int64(one)}); leaf != nil {
			w.leaves[host] = at
		}
	}
	return at
}

// time returns the time of the switch in ns.
func (w *weaver) time() int64 { return int64(w.s.Clock()) }

// handleData handles an arriving data packet. It returns false if the packet should take the path of
// its hash.
func (w *weaver) handleData(p *Packet) bool {
	if p.Kind != data {
		return false
	}
	to := w.look.toHost[p.dstIndex]
	switch {
	case p.portQueue == carriesWoven && to.group == 0 && w.o.Edge:
		w.end(p, to)
	case p.portQueue == carriesWoven:
		w.follow(p, to)
	case to.group != 0 && w.o.Edge && p.from.peer.host != nil:
		return w.begin(p, to)
	default:
		return false
	}
	return true
}

// begin adds the header at the leaf of the source.
func (w *weaver) begin(p *Packet, to way) bool {
	at := w.leafOf(p.dstIndex)
	if at.leaf == nil {
		return false
	}
	draw := func() model.WovenPath {
		_, path, _ := w.survey(p.dstIndex, func(n int) int { return int(w.o.Random(0, uint64(n-1))) })
		return path
	}
	h := w.source.Send(p.headers().tuple, at.leaf, w.time(), at.rtt, draw)
	p.portQueue = carriesWoven
	*p.weave() = woven{WovenHeader: h}
	p.Size += w.o.OverlayLen
	w.follow(p, to)
	return true
}

// survey walks a path from this switch to the leaf of a host. In each switch with n
// next hops, choose selects one. survey returns the leaf, the path and the delay of
// its links. The leaf is nil if no path leads to it, or if the path is too long for
// the header.
func (w *weaver) survey(host int32, choose func(n int) int) (leaf *Switch, path model.WovenPath, delay time.Duration) {
	at := w.native
	for hop := 0; ; {
		to := at.look.toHost[host]
		number := int(to.port)
		if to.group != 0 {
			ports := at.look.groups[int(to.group)]
			if len(ports) == 0 || hop == model.WovenHops {
				return nil, 0, 0
			}
			slot := choose(len(ports))
			path, number = path.With(hop, slot), ports[slot]
			hop++
		}
		o := at.s.Port(number)
		if o == nil || o.peer == nil {
			return nil, 0, 0
		}
		if o.peer.host != nil {
			return at.s, path, delay
		}
		next, ok := o.peer.sw.engine.(*native)
		if !ok {
			return nil, 0, 0
		}
		at, delay = next, delay+o.delay
	}
}

// follow forwards a packet along the path in its header.
func (w *weaver) follow(p *Packet, to way) {
	number := int(to.port)
	if to.group != 0 {
		ports := w.look.groups[int(to.group)]
		h := p.ctl.woven
		if len(ports) == 0 || h.hop == model.WovenHops {
			w.byHash(p, to)
			return
		}
		number = ports[h.Path.Slot(h.hop)%len(ports)]
		h.hop++
	}
	if number < 0 {
		w.s.drop(p)
		return
	}
	w.s.enqueue(p, number)
}

// end removes the header at the leaf of the destination.
func (w *weaver) end(p *Packet, to way) {
	h := *p.ctl.woven
	p.portQueue = 0
	p.Size -= w.o.OverlayLen
	o := w.s.Port(int(to.port))
	if o == nil {
		w.s.drop(p)
		return
	}
	flow := p.headers().tuple
	a := w.sink.Take(flow, &h.WovenHeader, p.CE, len(w.inUse[o]) < w.sink.Queues, w.time())
	w.answer(p, flow, h, a)
	if a.Before {
		w.resume(w.paused[flow])
	}
	if a.Hold {
		w.hold(p, flow, o)
	}
	if a.Deadline > 0 {
		q := w.paused[flow]
		at := max(w.s.net.now, w.s.net.now+time.Duration(a.Deadline-w.time()))
		w.s.net.events.planAs(&q.deadline, at, q.port.place.next(w.s.net))
	}
	w.s.enqueue(p, int(to.port))
	if a.After {
		w.resume(w.paused[flow])
	}
}

// answer sends the answers of a leaf to a data packet.
func (w *weaver) answer(p *Packet, flow model.Flow, h woven, a model.Arrival) {
	for kind, due := range [...]bool{rttReply: a.Reply, clearing: a.Clear, notify: a.Notify} {
		if !due {
			continue
		}
		c := w.s.copyOf(p, answerLen)
		c.priority, c.dstIndex = true, int32(p.Src.place)
		c.tell().form = wovenForm
		*c.weave() = woven{WovenHeader: h.WovenHeader, answer: wovenAnswer(kind), flow: flow, from: w.s}
		w.handleControl(c)
	}
}

// handleControl forwards an answer towards the source leaf, or processes it if this switch is that leaf.
func (w *weaver) handleControl(c *Packet) {
	to := w.look.toHost[c.dstIndex]
	t := c.ctl.woven
	switch ports := w.look.groups[int(to.group)]; {
	case to.group != 0 && len(ports) > 0:
		back := model.Flow{Src: t.flow.Dst, Dst: t.flow.Src, Protocol: t.flow.Protocol, Sport: t.flow.Dport, Dport: t.flow.Sport, Upper: t.flow.Upper}
		w.s.enqueue(c, ports[w.model.PathHash(back)%uint64(len(ports))])
	case to.group == 0 && to.port >= 0 && !w.o.Edge:
		w.s.enqueue(c, int(to.port))
	case to.group == 0 && to.port >= 0:
		switch t.answer {
		case rttReply:
			w.source.TakeReply(t.flow, t.Epoch, w.time())
		case clearing:
			w.source.TakeClear(t.flow, t.Epoch)
		case notify:
			w.source.TakeNotify(t.from, t.Path, w.time())
		}
		w.s.drop(c)
	default:
		w.s.drop(c)
	}
}

// hold assigns a packet to the paused queue of its flow. It pauses a free queue if the flow has
// none.
func (w *weaver) hold(p *Packet, flow model.Flow, o *Port) {
	q := w.paused[flow]
	if q == nil {
		used := w.inUse[o]
		if used == nil {
			used = map[uint8]bool{}
			w.inUse[o] = used
		}
		q = &reordering{w: w, flow: flow, port: o, number: 1}
		for used[q.number] {
			q.number++
		}
		q.deadline.what = q
		w.paused[flow], used[q.number] = q, true
		o.stop(q.number)
		w.s.count.MaxReordering = max(w.s.count.MaxReordering, len(used))
	}
	p.portQueue = q.number
	w.s.count.Reordered++
}

// resume resumes a paused queue. q may be nil.
func (w *weaver) resume(q *reordering) {
	if q == nil {
		return
	}
	w.s.net.events.cancel(&q.deadline)
	delete(w.paused, q.flow)
	delete(w.inUse[q.port], q.number)
	q.port.start(q.number)
	q.port.wake()
}

// fire resumes a queue at its deadline.
func (q *reordering) fire() {
	q.w.s.count.ReorderingTimeouts++
	q.w.sink.Resumed(q.flow)
	q.w.resume(q)
}

func (*reordering) soon(bool) {}
