package sim

import (
	"cmp"
	"slices"
	"time"
)

// This file runs a network on several cores (conservative parallel simulation). The
// network is divided into parts, each with a clock, a schedule and a goroutine. Parts
// influence each other only through links, so not before the delay of a link has
// passed. All parts therefore run through a window of that length independently. At a
// barrier they exchange packets and agree on the next window.
//
// Results must not depend on the division, so that they are the same on any number of
// cores:
//
//   - Events at the same time run in the order of their places, because the order of
//     planning is unknown across parts. Each port and each end of a flow numbers the
//     events that it plans.
//   - A window is as long as the shortest link between two switches, and begins with an
//     event, whatever the number of parts.
//   - Callbacks, from timers to the ends of flows, may inspect the whole network and
//     stop it. One goroutine calls them between windows, when all parts have the same
//     time: timers at their time, before other events; ends of flows after their window.
//   - The receiving end of a flow gets information only through links.

// longestWindow is the window of a network that has no links between switches.
const longestWindow = time.Millisecond

// divide divides a network into at most the given number of parts.
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
	n.barrier = newBarrier(parts)
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

// settle assigns nodes to parts. Switches with hosts, and the switches of each other tier, are
// divided into shares of similar size. The order of the topology keeps neighbours together.
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

// runParts runs a network with several parts, the first in the calling goroutine. It calls next
// between two steps.
func (n *Network) runParts(until time.Duration, next func() (until time.Duration, again bool)) {
	again := true
	n.barrier.run(func(i int) {
		p := n.parts[i]
		for again {
			if i == 0 {
				n.stopped = false
			}
			n.barrier.wait()
			p.takePart(until)
			p.turn()
			n.barrier.wait()
			if i == 0 {
				if !n.stopped && until != never {
					n.now = max(n.now, until)
				}
				n.still(n.now)
				until, again = next()
			}
			n.barrier.wait()
		}
	})
}

// takePart runs a part up to a time.
func (n *Network) takePart(until time.Duration) {
	w := n.whole
	n.running = true
	for {
		n.views[n.odd] = view{next: min(n.events.first(), n.leaving()), hasDeferred: len(n.deferred) > 0, gain: n.gain}
		if n.number == 0 {
			n.views[n.odd].calls = w.events.first()
		}
		n.barrier.wait()
		first, calls, told := never, n.parts[0].views[n.odd].calls, false
		poor := n.parts[0]
		for _, p := range n.parts {
			v := &p.views[n.odd]
			first, told = min(first, v.next), told || v.hasDeferred
			if v.gain < poor.views[n.odd].gain {
				poor = p
			}
		}
		short := n.gain - poor.views[n.odd].gain
		switch {
		case told:
			n.alone(func() { w.runDeferred(min(n.now, until)) })
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

// turn starts the next window and receives the packets that have crossed.
func (n *Network) turn() {
	n.odd = 1 - n.odd
	n.takeIn(1 - n.odd)
}

// alone makes the first part call do for all parts, after all parts have received
// their packets.
func (n *Network) alone(do func()) {
	n.turn()
	n.barrier.wait()
	if n.number == 0 {
		do()
		for _, p := range n.parts {
			p.running = true
		}
	}
	n.barrier.wait()
}

// still sets the clocks of all parts to the same time and marks them as not
// running.
func (n *Network) still(at time.Duration) {
	n.now = at
	for _, p := range n.parts {
		p.now, p.running = at, false
		p.releaseSwitches()
	}
}

// runDeferred calls the deferred callbacks of the window, in the order of time and
// place.
func (n *Network) runDeferred(now time.Duration) {
	n.still(now)
	var all []deferred
	for _, p := range n.parts {
		all = append(all, p.deferred...)
		p.deferred = p.deferred[:0]
	}
	slices.SortStableFunc(all, func(a, b deferred) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.from, b.from))
	})
	for _, d := range all {
		d.call()
	}
}

// call calls the callbacks that are due at a time.
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

// leaving returns the arrival time of the first packet that has crossed.
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

// takeIn receives the packets that have crossed in even or odd windows.
func (n *Network) takeIn(odd int) {
	for _, from := range n.parts {
		list := from.out[odd][n.number]
		for i := range list {
			n.take(&list[i])
		}
		from.out[odd][n.number] = list[:0]
	}
}

// Free packets accumulate in the parts that receive more packets than they send. A part returns
// aGift free packets if it has gained tooMany more than another part.
const (
	tooMany = 4096
	aGift   = 512
)

// give returns free packets to the part that has lost most of them.
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
