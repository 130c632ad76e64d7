package sim

import "github.com/p4lb/p4lb/fabric"

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
	p.limit = int(n.opts.Queue)
	if l.Queue > 0 {
		p.limit = l.Queue * n.frame()
	}
	switch node := n.byName[e.Node].(type) {
	case *Host:
		p.host, node.nic = node, p
		p.mac = node.mac
	case *Switch:
		p.sw, node.ports[e.Port] = node, p
		p.mac = node.macs[e.Port]
	}
	return p
}

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

// cut loses what is on the link, and any pause: nobody is there to end it.
func (o *Port) cut() {
	o.net.events.cancel(&o.arriving)
	for o.wire.n > 0 {
		o.net.lose(o.wire.pop().p, LinkDown)
	}
	o.resume()
}
