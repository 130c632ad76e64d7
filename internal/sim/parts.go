package sim

import (
	"cmp"
	"slices"
	"time"
)

// A run on several cores. The network is divided into parts, each with a clock and
// a schedule of its own, and a goroutine (conservative parallel simulation). What
// happens in one part reaches another by a link, so no sooner than the link is
// long. So all parts can run through a window of that length without each other;
// then they meet, hand over what has crossed, and agree on the next window.
//
// For the bytes to be the same on any number of cores, nothing may depend on how
// the network is divided:
//
//   - Of events at the same time, the one that was planned first comes first, as a
//     rule; who plans first is not known across parts. So ties are decided by
//     place: each port, and each end of a flow, numbers the events that it plans,
//     and the lower number of a place comes first.
//   - Windows are as long as the shortest link between any two switches, and begin
//     with an event, however many parts there are.
//   - What is called outside, from timers to the ends of flows, may look at the
//     whole network, and stop it. So it is called between windows, by one goroutine,
//     for all parts at the same time: what somebody has asked for at a time, at that
//     time, before anything else that happens then; the ends of flows, after their
//     window.
//   - The receiving end of a flow is told nothing that has not reached it by a link.

// longestWindow is the window of a network without links between switches.
const longestWindow = time.Millisecond

// divide makes up to so many parts of a network that has none.
func (n *Network) divide(parts int) {
	n.window = longestWindow
	for _, l := range n.links {
		if l.A.sw != nil && l.B.sw != nil {
			n.window = min(n.window, l.A.delay)
		}
	}
	edges := map[*Switch]bool{}
	for _, h := range n.hosts {
		edges[h.nic.peer.sw] = true
	}
	parts = min(parts, max(1, len(edges)))
	if n.window == 0 {
		n.window, parts = longestWindow, 1
	}
	n.parts = nil
	n.meeting = newMeeting(parts)
	for i := range parts {
		p := new(Network)
		*p = *n
		p.number = i
		p.out = [2][][]crossing{make([][]crossing, parts), make([][]crossing, parts)}
		n.parts = append(n.parts, p)
	}
	for _, p := range n.parts {
		p.parts = n.parts
	}
	n.settle(edges)
}

// settle gives all nodes to parts: switches with hosts, and others of each tier,
// by shares of about the same size, in the order of the topology, which has
// neighbours together.
func (n *Network) settle(edges map[*Switch]bool) {
	of, all := map[string]int{}, map[string]int{}
	class := func(s *Switch) string {
		if edges[s] {
			return "edge"
		}
		return string(s.Role)
	}
	for _, s := range n.switches {
		all[class(s)]++
	}
	for _, s := range n.switches {
		c := class(s)
		p := n.parts[of[c]*len(n.parts)/all[c]]
		of[c]++
		s.net = p
		for _, o := range append(s.Ports(), s.cpu, s.loop) {
			o.net, o.far = p, p
		}
	}
	for _, h := range n.hosts {
		h.net = h.nic.peer.sw.net
		h.nic.net = h.net
	}
	for _, l := range n.links {
		l.A.far, l.B.far = l.B.net, l.A.net
	}
}

// runParts is Run of a network with parts, the first in this goroutine.
func (n *Network) runParts(until time.Duration) {
	n.meeting.hold(func(i int) { n.parts[i].takePart(until) })
	for _, p := range n.parts {
		p.takeIn(p.odd)
	}
	if !n.stopped && until != never {
		n.now = max(n.now, until)
	}
	n.still(n.now)
}

// takePart runs a part up to a time.
func (n *Network) takePart(until time.Duration) {
	w := n.whole
	n.running = true
	for {
		n.views[n.odd] = view{next: min(n.events.first(), n.leaving()), told: len(n.told) > 0, gain: n.gain}
		if n.number == 0 {
			n.views[n.odd].calls = w.events.first()
		}
		n.meeting.wait()
		first, calls, told := never, n.parts[0].views[n.odd].calls, false
		poor := n.parts[0]
		for _, p := range n.parts {
			v := &p.views[n.odd]
			first, told = min(first, v.next), told || v.told
			if v.gain < poor.views[n.odd].gain {
				poor = p
			}
		}
		short := n.gain - poor.views[n.odd].gain
		switch {
		case told:
			n.alone(func() { w.tellAll(min(n.now, until)) })
		case w.stopped || first > until && calls > until:
			return
		case calls <= first:
			n.alone(func() { w.call(calls) })
		default:
			n.turn()
			if short > tooMany {
				n.give(poor)
			}
			end := min(first+n.window, calls)
			if until != never {
				end = min(end, until+1)
			}
			n.fire(end - 1)
			n.now = end
		}
	}
}

// turn takes in what has crossed, and begins another window.
func (n *Network) turn() {
	n.odd = 1 - n.odd
	n.takeIn(1 - n.odd)
}

// alone lets the first part do something for all, when everybody has taken in what
// crossed.
func (n *Network) alone(do func()) {
	n.turn()
	n.meeting.wait()
	if n.number == 0 {
		do()
		for _, p := range n.parts {
			p.running = true
		}
	}
	n.meeting.wait()
}

// still has all parts at the same time, and nobody at work.
func (n *Network) still(at time.Duration) {
	n.now = at
	for _, p := range n.parts {
		p.now, p.running = at, false
		p.letGo()
	}
}

// tellAll tells those outside what has happened in the window.
func (n *Network) tellAll(now time.Duration) {
	n.still(now)
	var all []deferred
	for _, p := range n.parts {
		all = append(all, p.told...)
		p.told = p.told[:0]
	}
	slices.SortStableFunc(all, func(a, b deferred) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from))
	})
	for _, d := range all {
		d.call()
	}
}

// call calls what is to be called at a time.
func (n *Network) call(now time.Duration) {
	n.still(now)
	for !n.stopped {
		ev, _ := n.events.pop(n.now)
		if ev == nil {
			return
		}
		ev.what.fire()
	}
}

// leaving is when the first of what has crossed arrives.
func (n *Network) leaving() time.Duration {
	at := never
	for _, list := range n.out[n.odd] {
		for i := range list {
			if list[i].from != nil {
				at = min(at, list[i].at)
			}
		}
	}
	return at
}

// takeIn takes in what has crossed in even or odd windows.
func (n *Network) takeIn(odd int) {
	for _, from := range n.parts {
		list := from.out[odd][n.number]
		for i := range list {
			n.take(&list[i])
			list[i].p = nil
		}
		from.out[odd][n.number] = list[:0]
	}
}

// Packets go where traffic goes, and come back as acknowledgments, or not. A part
// that has got so many more than another gives some back.
const (
	tooMany = 4096
	aGift   = 512
)

// give gives packets to the part that has lost most of them.
func (n *Network) give(to *Network) {
	for range aGift {
		p := n.pool
		if p == nil {
			return
		}
		n.pool = p.next
		n.cross(to, crossing{arrival: arrival{p: p}})
	}
}
