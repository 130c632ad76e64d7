package sim

import (
	"errors"
	"math"

	"github.com/p4lb/p4lb/fabric"
)

// A Link joins two ports.
type Link struct {
	Place int // in the topology's Links
	A, B  *Port
}

// connect makes the link at a place of the topology.
func (n *Network) connect(i int, l *fabric.Link) *Link {
	link := &Link{Place: i}
	link.A, link.B = n.end(l.A, l), n.end(l.B, l)
	link.A.peer, link.B.peer = link.B, link.A
	link.A.link, link.B.link = link, link
	link.A.down, link.B.down = l.Down, l.Down
	return link
}

// end makes the port at an end of a link.
func (n *Network) end(e fabric.End, l *fabric.Link) *Port {
	p := n.newPort(e.Port)
	p.rate, p.delay = int64(l.Rate), l.Delay
	p.limit = clampQueue(n.opts.queue(0))
	switch node := n.byName[e.Node].(type) {
	case *Host:
		p.host, node.nic = node, p
		p.mac = node.mac
	case *Switch:
		p.sw, node.ports[e.Port] = node, p
		p.mac = node.macs[e.Port]
		p.limit = clampQueue(n.opts.queue(node.share))
	}
	if l.Queue > 0 {
		p.limit = clampQueue(l.Queue * n.frame())
	}
	return p
}

// clampQueue is a number of bytes that may wait, at most 2 GiB.
func clampQueue(bytes int) int32 { return int32(min(bytes, math.MaxInt32)) }

// frame is the length of the largest packet of hosts.
func (n *Network) frame() int { return n.opts.MTU + ethernetLen }

// Links are the links, in the order of the topology.
func (n *Network) Links() []*Link { return n.links }

// Down reports whether the link has failed.
func (l *Link) Down() bool { return l.A.down }

// Fail cuts the link: what is on it is lost, and what is sent to it.
func (l *Link) Fail() {
	l.A.down, l.B.down = true, true
	l.A.cut()
	l.B.cut()
}

// Restore repairs the link.
func (l *Link) Restore() { l.A.down, l.B.down = false, false }

// SetRate makes the link faster or slower, from the next packet on in either
// direction. Hosts that send by the rate of their link keep to what it was when
// a flow began.
func (l *Link) SetRate(r fabric.Rate) error {
	if r <= 0 {
		return errors.New("a link's rate is above 0")
	}
	for _, o := range []*Port{l.A, l.B} {
		o.rate, o.rest = int64(r), 0
		if o.sw != nil {
			o.sw.reserve = 0 // anew: headroom depends on rates
		}
	}
	return nil
}

// cut loses what is on the link, PFC frames too, and ends any pause: nobody is
// there to do it.
func (o *Port) cut() {
	o.net.events.cancel(&o.arriving)
	o.net.events.cancel(&o.pfc.flight)
	o.pfc.pausing, o.pfc.line = false, o.pfc.line[:0]
	for o.wire.n > 0 {
		o.net.lose(o.wire.pop(), LinkDown)
	}
	o.resume()
}
