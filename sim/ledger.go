package sim

import (
	"fmt"
	"strings"
)

// A Reason is why a packet ended before it reached a host.
type Reason int

// The reasons.
const (
	// Consumed is the end of packets that were made to tell a switch
	// something, and of what was copied.
	Consumed   Reason = iota
	QueueFull         // no room in the queue, or of its share of the buffer
	BufferFull        // no room in the buffer of the switch
	LinkDown          // the link had failed
	Silent            // a fault: see Switch.DropSilently
	BlackHole         // a fault: see Switch.BlackHole
	Program           // the program dropped it: no route, TTL, checksum
	NoPort            // the program sent it to a port that nothing is at
	NoProgram         // the switch has neither program nor model
	Stray             // it reached a host that it is not for
	reasons
)

var reasonNames = [reasons]string{
	"consumed", "queue full", "buffer full", "link down", "silent drop", "black hole",
	"program", "no such port", "no program", "stray",
}

// String is the reason in words.
func (r Reason) String() string { return reasonNames[r] }

// Reasons are all of them.
func Reasons() []Reason {
	list := make([]Reason, reasons)
	for i := range list {
		list[i] = Reason(i)
	}
	return list
}

// A Tally counts packets and bytes. Bytes are those that a packet had when it
// began.
type Tally struct{ Packets, Bytes int64 }

func (t *Tally) add(p *Packet) {
	t.Packets++
	t.Bytes += int64(p.born)
}

// plus is the sum of both.
func (t Tally) plus(u Tally) Tally { return Tally{t.Packets + u.Packets, t.Bytes + u.Bytes} }

// A ledger accounts for all packets.
type ledger struct {
	began     Tally
	delivered Tally
	lost      [reasons]Tally
}

// begin notes a packet that hosts, switches or the controller have made.
func (n *Network) begin(p *Packet) {
	p.born = p.Size
	n.ledger.began.add(p)
}

// lose ends a packet. With its last one a UDP flow ends, which nobody repeats.
func (n *Network) lose(p *Packet, why Reason) {
	n.ledger.lost[why].add(p)
	if f := p.Flow; p.Kind == Data && p.Last && f.Transport == UDP && f.Finished == 0 {
		f.finish(n)
	}
	n.release(p)
}

// Began is what hosts, switches and controller have sent so far, copies
// included.
func (n *Network) Began() Tally { return n.sum(func(l *ledger) Tally { return l.began }) }

// Delivered is what has reached its host.
func (n *Network) Delivered() Tally { return n.sum(func(l *ledger) Tally { return l.delivered }) }

// Lost is what ended elsewhere, for a reason.
func (n *Network) Lost(why Reason) Tally {
	return n.sum(func(l *ledger) Tally { return l.lost[why] })
}

// sum adds up what the parts of the network have in their books.
func (n *Network) sum(of func(*ledger) Tally) (t Tally) {
	for _, p := range n.parts {
		t = t.plus(of(&p.ledger))
	}
	return t
}

// InFlight is what waits in queues or is on links, counted there.
func (n *Network) InFlight() Tally {
	var t Tally
	count := func(o *Port) {
		if o == nil {
			return
		}
		for _, q := range [...]fifo{o.queue, o.urgent} {
			for p := q.head; p != nil; p = p.next {
				t.add(p)
			}
		}
		o.wire.each(t.add)
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

// Audit checks that every packet and byte that began was delivered, was lost
// for a reason, or is in flight. Run does it in the end.
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
