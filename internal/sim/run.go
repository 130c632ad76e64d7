package sim

import (
	"fmt"
	"strings"
	"time"
	"unsafe"
)

// Run processes events up to a time, and checks that no byte was lost without a reason. It
// returns earlier if no event is left, or after Stop. A further call continues the run.
func (n *Network) Run(until time.Duration) error {
	n.Advance(until)
	return n.Audit()
}

// Advance is Run without the check, which inspects every queue and link. Callers that advance in
// small steps should call Audit once at the end.
func (n *Network) Advance(until time.Duration) {
	done := false
	n.AdvanceIn(func() (time.Duration, bool) {
		again := !done
		done = true
		return until, again
	})
}

// AdvanceIn calls Advance with each time that next returns, until next returns false. With
// several cores this is faster than separate calls, because the goroutines keep running between
// steps.
//
// Hostile input: none. The pointer serves as an address only.
func (n *Network) AdvanceIn(next func() (until time.Duration, again bool)) {
	step := func() (time.Duration, bool) {
		n.huge.ran(n.Hops(), unsafe.Pointer(n))
		return next()
	}
	until, again := step()
	switch {
	case !again:
	case n.placed():
		n.runParts(until, step)
	default:
		for ; again; until, again = step() {
			n.stopped = false
			n.runWhole(until)
		}
	}
}

// HugePages returns the number of bytes of the heap that were moved into huge pages, and the
// reason if the kernel has refused.
func (n *Network) HugePages() (size int64, err error) { return n.huge.size, n.huge.err }

// runWhole runs a network without parts.
func (n *Network) runWhole(until time.Duration) {
	n.running = true
	defer func() {
		n.running = false
		n.releaseSwitches()
	}()
	n.fire(until)
	if !n.stopped && until != never {
		n.now = max(n.now, until)
	}
}

// fire processes events up to a time, or until Stop.
func (n *Network) fire(until time.Duration) {
	for turn := 1; !n.stopped; turn++ {
		ev, at := n.events.pop(until)
		if ev == nil {
			break
		}
		n.now = at
		ev.what.fire()
		if turn%heldFor == 0 {
			n.releaseSwitches()
		}
	}
}

// Stop ends Run after the current event.
func (n *Network) Stop() { n.stopped = true }

// Forever makes Run continue until no event is left.
const Forever = never

// Began returns the number of packets that hosts, switches and controller have sent so far,
// including copies.
func (n *Network) Began() Tally { return n.sum(func(l *ledger) Tally { return l.began }) }

// Delivered returns the packets that have reached their hosts.
func (n *Network) Delivered() Tally { return n.sum(func(l *ledger) Tally { return l.delivered }) }

// Lost returns the number of packets that ended for the given reason before they reached a host.
func (n *Network) Lost(why Reason) Tally {
	return n.sum(func(l *ledger) Tally { return l.lost[why] })
}

// LastFaultLoss returns the time of the latest packet loss by a fault, or 0.
func (n *Network) LastFaultLoss() time.Duration {
	last := time.Duration(0)
	for _, p := range n.parts {
		last = max(last, p.ledger.faulted)
	}
	return last
}

// sum adds up a tally over the parts of the network.
func (n *Network) sum(of func(*ledger) Tally) (t Tally) {
	for _, p := range n.parts {
		t = t.plus(of(&p.ledger))
	}
	return t
}

// InFlight returns the number of packets in queues and on links.
func (n *Network) InFlight() Tally {
	var t Tally
	count := func(o *Port) {
		if o == nil {
			return
		}
		queues := []*fifo{&o.queue, &o.urgent}
		for _, held := range o.stopped {
			queues = append(queues, held)
		}
		for _, q := range queues {
			for p := q.head; p != nil; p = p.next {
				t.add(p)
			}
		}
		o.wire.each(func(a *arrival) { t.add(a.p) })
	}
	for _, h := range n.hosts {
		count(h.nic)
	}
	for _, s := range n.switches {
		for _, o := range s.ports {
			count(o)
		}
	}
	return t
}

// Audit checks that every packet and byte sent was delivered, was lost for a known reason, or is
// in flight.
func (n *Network) Audit() error {
	ended := n.Delivered().plus(n.InFlight())
	var b strings.Builder
	for _, why := range Reasons() {
		ended = ended.plus(n.Lost(why))
	}
	if ended == n.Began() {
		return nil
	}
	for _, why := range Reasons() {
		fmt.Fprintf(&b, ", %s %v", why, n.Lost(why))
	}
	return fmt.Errorf("packets and bytes do not add up at %v: began %v, delivered %v, in flight %v%s",
		n.now, n.Began(), n.Delivered(), n.InFlight(), b.String())
}
