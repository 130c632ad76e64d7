package sim

// NIC returns the port of the host.
func (h *Host) NIC() *Port { return h.nic }

// Queued returns the number of bytes in the NIC's queue.
func (h *Host) Queued() int { return int(h.nic.bytes) }

// WhenBelow calls f once, as soon as the NIC queues fewer bytes, in the order of the
// calls. Functions that send one packet and wait again share the NIC evenly.
func (h *Host) WhenBelow(bytes int, f func()) {
	if int(h.nic.bytes) < bytes && h.drained.n == 0 {
		f()
		return
	}
	h.drained.push(drain{bytes, f})
}

// WhenFree calls f once, as soon as the NIC can send a packet at once, in turn with the
// functions of WhenBelow. The sender decides as late as possible which packet to send.
func (h *Host) WhenFree(f func()) {
	o := h.nic
	if h.drained.n == 0 && o.free <= h.net.now && o.queue.head == nil && !o.paused {
		f()
		return
	}
	h.drained.push(drain{0, f})
	o.wake()
}

// wanted reports whether a function waits for the NIC to be free, and no packet does.
func (h *Host) wanted() bool {
	o := h.nic
	return o.queue.head == nil && !o.paused && h.drained.n > 0 && h.drained.first().below == 0
}

// freed calls the functions that wait for the NIC to be free, until it is busy.
func (h *Host) freed() {
	for h.wanted() && h.nic.free <= h.net.now {
		h.next()
	}
}

// next calls the function that has waited longest.
func (h *Host) next() { h.drained.pop().f() }

// Send gives a packet to the NIC.
func (h *Host) Send(p *Packet) {
	p.Sent = h.net.now
	d := p.Flow.toward(p.Kind)
	p.Size = d.n + int(p.padding) + p.Payload
	if h.net.bytes {
		d.write(p)
	}
	p.CE = false
	h.net.begin(p)
	if h.net.urgent(p) {
		h.nic.hasten(p)
		return
	}
	h.nic.accept(p)
}

// depart sends a packet that leaves the NIC's queue.
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
		// A notice to the upstream switch: hosts ignore it.
		n.lose(p, consumed)
		return
	case p.Dst != h:
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
