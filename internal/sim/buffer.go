package sim

import "time"

// Ports share the buffer of a switch. Each queue has its own limit; with Options.Alpha the limit
// is a multiple of the free bytes (dynamic thresholds). With PFC, queues have no limit, so no
// packet is lost before the buffer is full. Instead, each ingress port has a limit, and pauses
// its peer above it. Recirculated packets count towards it. Copies on ports without a peer do
// not, because there is no peer to pause.

// admit reports whether a packet may join a queue, and if not, the reason.
func (s *Switch) admit(p *Packet, o *Port) (Reason, bool) {
	if s.buffer > 0 && s.used+p.Size > s.buffer {
		return BufferFull, false
	}
	if s.net.opts.PFC.On && (o.peer != nil || p.Flow != nil) {
		return 0, true
	}
	limit := int(o.limit)
	if s.net.opts.Alpha > 0 && s.buffer > 0 {
		limit = int(s.net.opts.Alpha * float64(s.buffer-s.used))
	}
	if s.net.opts.UntilSent && o.free > s.net.now {
		limit -= int(o.sending)
	}
	if int(o.bytes)+p.Size > limit {
		return QueueFull, false
	}
	return 0, true
}

// Trimming: if the queue has no room for an Ultra Ethernet packet, the switch cuts the payload
// off and sends the headers ahead of all waiting packets. The receiver learns of the loss after
// one trip and reports it. Half of the time, the switch trims the newest waiting packet instead,
// and the arriving one takes its place: otherwise, of two flows that send at a fixed interval, one
// can lose the race for every free place (NDP, SIGCOMM 2017, section 3.1). A packet trimmed at the
// last port before its destination is marked as such: another path would not have helped. A
// program can also trim an arriving packet itself: see Options.TrimmableDSCP.

// trimmedLen is the length of a trimmed packet at hosts.
const trimmedLen = 64

// trim tries to send the headers of a packet that does not fit in the queue. Trimmed headers may
// occupy at most two queue limits.
func (s *Switch) trim(p *Packet, o *Port) bool {
	cut := p.surplus()
	if !s.net.opts.Trim || !p.whole() || cut < 0 || !o.takesHeaders(p.Size-cut) {
		return false
	}
	s.engine.cut(p, cut)
	p.trimmed(o, cut)
	p.priority = true
	s.engine.enqueued(p, o, s.depth(o))
	o.acceptUrgent(p)
	return true
}

// trimNewest may trim the newest packet of a full queue, so that p has room.
func (s *Switch) trimNewest(p *Packet, o *Port) bool {
	if !s.net.opts.Trim || !p.whole() || o.queue.head == nil || o.stopped != nil {
		return false
	}
	last := o.queue.tail
	cut := last.surplus()
	if !last.whole() || last.Size < p.Size || cut < 0 || !o.takesHeaders(last.Size-cut) || s.random.Uint64()&1 == 0 {
		return false
	}
	o.queue.popLast()
	o.left(last)
	s.discharge(last)
	if last.mark {
		last.mark = false
		o.count.Marked--
	}
	s.engine.cut(last, cut)
	last.trimmed(o, cut)
	last.priority = true
	o.acceptUrgent(last)
	return true
}

// surplus returns the number of bytes that trimming cuts off.
func (p *Packet) surplus() int { return p.Payload + int(p.padding) + UDPHeaders - trimmedLen }

// whole reports whether it is a data packet of Ultra Ethernet with its payload.
func (p *Packet) whole() bool {
	return p.Kind == data && p.Flow.Transport == UltraEthernet && p.Trimmed == notTrimmed
}

// takesHeaders reports whether there is room for a trimmed packet of the given
// size.
func (o *Port) takesHeaders(bytes int) bool {
	return int(o.waiting())-int(o.bytes)+bytes <= 2*int(o.limit)
}

// trimmed records that the packet lost bytes on its way to a port.
func (p *Packet) trimmed(o *Port, bytes int) {
	p.Size -= bytes
	p.padding, p.Payload = int32(max(0, int(p.padding)+p.Payload-bytes)), 0
	p.Trimmed = trimmedEarlier
	if o.peer != nil && o.peer.host != nil {
		p.Trimmed = trimmedAtLast
	}
	o.count.Trimmed++
}

// charge accounts for a packet that joins a queue of the switch.
func (s *Switch) charge(p *Packet) {
	p.charged = true
	s.used += p.Size
	s.count.MaxBuffer = max(s.count.MaxBuffer, s.used)
	if p.from != nil && s.net.opts.PFC.On {
		p.from.hold(p.Size)
	}
}

// discharge accounts for a packet that leaves its queue.
func (s *Switch) discharge(p *Packet) {
	if !p.charged {
		return // priority packets are not counted for pauses
	}
	p.charged = false
	s.used -= p.Size
	if p.from != nil && s.net.opts.PFC.On {
		p.from.hold(-p.Size)
	}
}

// hold adds to the bytes that an ingress port has in the buffer, and pauses or resumes its peer.
func (o *Port) hold(bytes int) {
	o.pfc.held += int32(bytes)
	if o.peer == nil {
		return
	}
	pause := o.pauseAt()
	switch {
	case !o.pfc.pausing && int(o.pfc.held) > pause:
		o.signal(true)
	case o.pfc.pausing && int(o.pfc.held) <= max(0, pause-int(o.net.opts.PFC.Resume)):
		o.signal(false)
	}
}

// usualPause is Q_PFC of switches without a shared buffer (RLB, Section II-B).
const usualPause = 256 << 10

// pauseAt returns the number of bytes above which the peer is paused.
func (o *Port) pauseAt() int {
	c := &o.net.opts.PFC
	switch {
	case c.Pause > 0:
		return int(c.Pause)
	case o.sw.buffer == 0:
		return usualPause
	}
	free := o.sw.buffer - o.sw.used - o.sw.headroom()
	pause := int(c.Alpha * float64(max(0, free)))
	if c.Promised {
		pause += 2 * o.net.frame()
	}
	return pause
}

// priorities is the number of priorities of Ethernet (802.1p), each with a queue.
const priorities = 8

// headroom returns the part of the buffer that is reserved for packets that arrive after a pause,
// and with Promised for queues.
func (s *Switch) headroom() int {
	if s.reserve == 0 {
		for _, o := range s.Ports() {
			s.reserve += o.headroom()
			if s.net.opts.PFC.Promised {
				s.reserve += priorities * s.net.frame()
			}
		}
	}
	return s.reserve
}

// headroom returns the bytes that the peer may still send after a pause: the bytes on the link
// during two delays, and a packet already being sent at each end.
func (o *Port) headroom() int {
	if h := o.net.opts.PFC.Headroom; h > 0 {
		return int(h)
	}
	return int(2*o.rate*int64(o.delay)/int64(8*time.Second)) + 2*o.net.frame()
}

// pauseLen is the length of a PFC frame.
const pauseLen = 64

// signal sends a PFC frame to the peer, before all queued packets and after the packet
// on the line. The frame takes no capacity of the link.
func (o *Port) signal(pause bool) {
	o.pfc.pausing = pause
	o.pfc.sent++
	if o.down {
		return
	}
	at := max(o.net.now, o.free) + time.Duration(pauseLen*8*int64(time.Second)/o.rate) + o.delay
	f := pauseFrame{at: at, pause: pause}
	if o.place != 0 {
		f.seq = o.place.next(o.net)
	}
	if o.far != o.net {
		o.net.cross(o.far, crossing{arrival: arrival{at: at, seq: f.seq}, from: o, pause: pause})
		return
	}
	o.carryPause(f)
}
