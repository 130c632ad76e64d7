package sim

import "time"

// This file implements RCCC, the receiver-credit-based congestion control of Ultra
// Ethernet.
//
// A sender may send while it has credit. It starts with credit for one and a half times the bytes
// of a base RTT, and loses the unused part at the first answer. Every data packet carries a
// target: the total credit that the sender asks for. Each receiving host grants credit to its
// senders in turn, 16 KiB at a time, at 99 % of its line rate. Senders without demand get
// credit when no other sender has any, up to one and a half times the bytes of a base RTT.
// Packets carry targets and grants in Ack.

const (
	creditQuantum = 256      // unit of targets and grants in bytes
	creditBytes   = 16 << 10 // largest grant: four packets of 4 KiB, as in uet-htsim for packets of any size
	creditShare   = 0.99
	creditPause   = 1024 // interval between empty grants, in bytes
)

// A credit is the sender's part of credit-based congestion control.
type credit struct {
	most        int64 // limit of the credit and of requests
	bytes       int64 // bytes that may be sent; the last packet may exceed them
	granted     int64 // total granted bytes
	speculative bool  // the receiver has not answered yet
	flows       int64 // flows of the host that wait for the NIC
}

// ask returns the target of a packet. backlog is the number of bytes left to send.
func (c *credit) ask(backlog, fresh, packet int64) int64 {
	want := min(backlog, c.most) - c.bytes
	if c.speculative && fresh > 0 {
		want = max(want, packet)
	}
	want = want/max(1, c.flows) + c.granted
	return (want + creditQuantum - 1) / creditQuantum * creditQuantum
}

// answered handles the first answer: credit that was not granted ends.
func (c *credit) answered() {
	if c.speculative {
		c.speculative, c.bytes = false, min(c.bytes, 0)
	}
}

// grant adds the credit of a grant, which carries the total.
func (c *credit) grant(total int64) {
	c.bytes = min(c.bytes+max(0, total-c.granted), c.most)
	c.granted = max(c.granted, total)
}

// heed processes the target in a packet. A higher target requests a grant, even if earlier grants
// cover it: the receiver then repeats the total. It also repeats the total if the sender repeats
// packets, because a grant may be lost.
func (c *creditor) heed(p *Packet) {
	higher := p.Ack > c.target
	c.target = max(c.target, p.Ack)
	if (higher || p.Number > 0 || p.Trimmed != notTrimmed) && !c.queued {
		c.queued, c.idle = true, false
		from := c.flow.Dst.credits()
		from.asking.push(c)
		from.start()
	}
}

// credits returns the grants of a host.
func (h *Host) credits() *creditors {
	if h.creditors == nil {
		h.creditors = &creditors{host: h}
		h.creditors.plan = h.net.newTimer(h.nic.place, h.creditors.step).Set
	}
	return h.creditors
}

func (p *creditors) start() {
	if !p.active {
		p.active = true
		p.plan(p.host.net.now)
	}
}

// step grants credit to the next flow.
func (p *creditors) step() {
	p.active = false
	for p.asking.n > 0 {
		c := p.asking.pop()
		if c.flow.Finished > 0 {
			continue
		}
		bytes := min(creditBytes, max(0, c.target-c.granted))
		if c.granted+bytes < c.target {
			p.asking.push(c)
		} else {
			c.queued, c.idle = false, true
			p.waiting.push(c)
		}
		p.grant(c, bytes)
		return
	}
	for p.waiting.n > 0 {
		c := p.waiting.pop()
		if c.flow.Finished > 0 || !c.idle {
			continue
		}
		if c.granted+creditBytes-c.target < c.most {
			p.waiting.push(c)
		} else {
			c.idle = false
		}
		p.grant(c, creditBytes)
		return
	}
}

// grant sends a grant, and plans the next one for when the granted packets may have arrived.
func (p *creditors) grant(c *creditor, bytes int64) {
	c.granted += bytes
	c.send(c.granted)
	if bytes == 0 {
		bytes = creditPause
	}
	p.active = true
	p.plan(p.host.net.now + time.Duration(float64(bytes)*8e9/(creditShare*float64(p.host.nic.Rate())*float64(max(1, len(p.host.ports))))))
}
