package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// This file implements RCCC, the receiver-credit-based congestion control of Ultra
// Ethernet.
//
// A sender may send while it has credit. It starts with credit for one and a half times the bytes
// of a base RTT, and loses the unused part at the first answer. Every data packet carries a
// target: the total credit that the sender asks for. Each receiving host grants credit to its
// senders in turn, 16 KiB at a time, at 99 % of its line rate. Senders without demand get
// credit when no other sender has any, up to one and a half times the bytes of a base RTT.
// Packets carry targets and grants in Ack.
//
// Grants divide the receiver's link, but not the links of an oversubscribed fabric. With
// UEC.Oversubscription each receiver therefore also lowers the rate of its grants by the marks
// and trims of the fabric, and raises it faster and faster without them.

const (
	creditQuantum = 256      // unit of targets and grants in bytes
	creditBytes   = 16 << 10 // largest grant: four packets of 4 KiB, as in uet-htsim for packets of any size
	creditShare   = 0.99
	creditPause   = 1024 // interval between empty grants, in bytes
)

// The constants of a throttle have uet-htsim's values.
const (
	throttleEvery = 1.5  // base RTTs between two decisions, on average
	throttleMarks = 0.3  // share of marked packets above which the rate falls
	throttleRaise = 0.01 // first increase of the rate
	throttleLeast = 0.9  // least rate, of a fair share of the fabric
	throttleIdle  = 64   // decisions without packets after which the rate is full
)

func newThrottle(u *UEC, random *rand.Rand) *throttle {
	t := &throttle{rtt: u.BaseRTT, least: throttleLeast / u.Oversubscription, random: random, share: 1}
	t.next = t.interval()
	return t
}

// interval draws the time until the next decision, so that receivers do not decide together.
func (t *throttle) interval() time.Duration {
	return time.Duration((0.75 + t.random.Float64()/2) * throttleEvery * float64(t.rtt))
}

// count records the arrival of a packet.
func (t *throttle) count(p *Packet) {
	t.all++
	switch {
	case p.Trimmed == trimmedEarlier:
		t.trimmedEarlier++
		fallthrough
	case p.Trimmed != notTrimmed:
		t.trimmed++
	case p.CE:
		t.marked++
	}
}

// pass makes the decisions until now.
func (t *throttle) pass(now time.Duration) {
	if now-t.next > throttleIdle*throttleEvery*t.rtt {
		t.share, t.marks, t.arrivals, t.next = 1, 0, arrivals{}, now+t.interval()
		t.raised = throttleIdle
	}
	for ; t.next <= now; t.next += t.interval() {
		t.decide()
	}
}

// decide changes the share by the packets of the interval. Trims on the link to the host do not
// count, because they do not come from the fabric.
func (t *throttle) decide() {
	a, before := t.arrivals, t.share
	t.arrivals = arrivals{}
	t.marks /= 2
	if whole := a.all - a.trimmed; whole > 0 {
		t.marks += float64(a.marked) / float64(whole) / 2
	}
	if a.trimmedEarlier > 0 {
		t.share -= float64(a.trimmedEarlier) / float64(a.all)
	}
	if t.marks > throttleMarks {
		t.share *= 1 - (t.marks-throttleMarks)/2
	}
	switch {
	case t.share != before:
		t.raised = 0
	case a.marked > 0:
		t.share += throttleRaise
		t.raised++
	default:
		t.share += math.Ldexp(throttleRaise, min(t.raised, throttleIdle))
		t.raised++
	}
	t.share = min(max(t.share, t.least), 1)
}

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
	if c.throttled != nil {
		h := c.flow.Dst
		from := h.credits()
		if from.throttle == nil {
			from.throttle = newThrottle(c.throttled, h.net.stream("credit/"+h.Name))
		}
		from.throttle.pass(h.net.now)
		from.throttle.count(p)
	}
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
		h.creditors.plan = h.net.newTimer(h.nic.place, h.creditors).Set
	}
	return h.creditors
}

func (p *creditors) start() {
	if !p.active {
		p.active = true
		p.plan(p.host.net.now)
	}
}

// ring grants credit to the next flow.
func (p *creditors) ring() {
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
	share := creditShare
	if p.throttle != nil {
		p.throttle.pass(p.host.net.now)
		share *= p.throttle.share
	}
	p.active = true
	p.plan(p.host.net.now + time.Duration(float64(bytes)*8e9/(share*float64(p.host.nic.Rate())*float64(max(1, len(p.host.ports))))))
}
