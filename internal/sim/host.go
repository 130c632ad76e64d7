package sim

import (
	"slices"
)

// NIC returns the port of the host.
func (h *Host) NIC() *Port { return h.nic }

// whenBelow lets s send once, as soon as fewer than the given number of bytes wait in
// the NIC. Sources send in the order of registration. If each of them sends one packet
// and registers again, they share the NIC evenly.
func (h *Host) whenBelow(bytes int, s turn) {
	if int(h.nic.bytes) < bytes && h.drained.n == 0 {
		s.send()
		return
	}
	h.drained.push(drain{bytes, s})
}

// whenFree lets s send once, as soon as the NIC is idle, in turn with the sources of whenBelow. The
// sender thus decides as late as possible which packet to send.
func (h *Host) whenFree(s turn) {
	o := h.nic
	if h.drained.n == 0 && o.free <= h.net.now && o.queue.head == nil && !o.paused {
		s.send()
		return
	}
	h.drained.push(drain{0, s})
	o.wake()
}

// wanted reports whether a source waits for the idle NIC and no packet is queued.
func (h *Host) wanted() bool {
	o := h.nic
	return o.queue.head == nil && !o.paused && h.drained.n > 0 && h.drained.first().below == 0
}

// freed lets sources that wait for the idle NIC send, until the NIC is busy.
func (h *Host) freed() {
	for h.wanted() && h.nic.free <= h.net.now {
		h.next()
	}
}

// next lets the source send that has waited the longest.
func (h *Host) next() { h.drained.pop().turn.send() }

// Send queues a packet in the NIC.
func (h *Host) Send(p *Packet) {
	p.Sent = h.net.now
	d := p.headers()
	p.Size = int(d.n) + int(p.padding) + p.Payload
	if h.net.bytes {
		d.write(p)
	}
	p.CE = false
	h.net.begin(p)
	if h.net.urgent(p) {
		h.nic.acceptUrgent(p)
		return
	}
	h.nic.accept(p)
}

// depart sends a packet that has left the NIC's queue.
func (h *Host) depart(p *Packet, o *Port) {
	o.transmit(p)
	for h.drained.n > 0 && int(o.bytes) < h.drained.first().below {
		h.next()
	}
}

// receive handles a packet that arrives at the host.
func (h *Host) receive(p *Packet) {
	n := h.net
	switch {
	case p.Flow == nil:
		// The packet is a notice for the upstream switch, which hosts ignore.
		n.lose(p, consumed)
		return
	case p.Flow.Service != nil && p.Kind == data:
		if !p.Flow.serves(h, p) {
			n.lose(p, stray)
			return
		}
	case p.Flow.Service != nil && !p.Flow.answered(h, p), p.Dst != h:
		n.lose(p, stray)
		return
	}
	n.ledger.delivered.add(p)
	if n.bytes && !p.CE {
		p.CE = marked(p.head)
	}
	if p.Kind == data {
		p.Flow.receiver.receive(p)
	} else {
		p.Flow.sender.receive(p)
	}
	n.release(p)
}

// serves reports whether a packet to a service has reached the server of its flow. The first
// packet selects the server. It also determines the headers of the answers, as the program may
// have changed the addresses and ports of the packet.
func (f *Flow) serves(h *Host, p *Packet) bool {
	e, ok := h.net.endsOf(p.head)
	if !ok || !slices.Contains(f.Service.Servers, h.Name) {
		return false
	}
	if e.dst == f.Service.IP && !f.Service.Direct {
		f.Unchanged++
		return false
	}
	if !f.served {
		client := &Host{IP: e.src, mac: f.Src.mac}
		server := &Host{IP: e.dst, mac: h.mac, gateway: h.gateway, net: h.net}
		f.back = newHeaders(server, client, f.Transport.protocol(), e.dport, e.sport)
		f.Dst, f.served = h, true
	}
	if f.Dst != h {
		f.Strays++
	}
	return f.Dst == h
}

// answered reports whether an answer has the service's address as its source and has arrived at
// the client. Hosts ignore other answers.
func (f *Flow) answered(h *Host, p *Packet) bool {
	e, ok := h.net.endsOf(p.head)
	if !ok || f.Src != h {
		return false
	}
	if e.src != f.Service.IP || e.sport != f.Dport {
		f.Strays++
		return false
	}
	return true
}
