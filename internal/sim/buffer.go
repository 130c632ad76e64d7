package sim

import "time"

// The buffer of a switch is shared by its ports. A queue is limited to its own
// number of bytes, or with Options.Alpha to a multiple of what is free (dynamic
// thresholds). With PFC no queue is limited, so that nothing is lost before the
// buffer is full; instead each ingress port is, whose peer is told to pause. That
// goes for what recirculates too, but for copies: those of a port
// without a peer are nobody's to pause.

// admit decides whether a packet may join a queue.
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
	if int(o.bytes)+p.Size > limit {
		return QueueFull, false
	}
	return 0, true
}

// charge notes that a packet waits in the switch.
func (s *Switch) charge(p *Packet) {
	p.charged = true
	s.used += p.Size
	s.count.MaxBuffer = max(s.count.MaxBuffer, s.used)
	if p.from != nil && s.net.opts.PFC.On {
		p.from.hold(p.Size)
	}
}

// discharge notes that it leaves.
func (s *Switch) discharge(p *Packet) {
	if !p.charged {
		return // it went before others
	}
	p.charged = false
	s.used -= p.Size
	if p.from != nil && s.net.opts.PFC.On {
		p.from.hold(-p.Size)
	}
}

// hold counts bytes that came in at the port, and pauses the peer or lets it go
// on.
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

// usualPause is Q_PFC where there is no buffer to share: RLB's, Section II-B.
const usualPause = 256 << 10

// pauseAt is the number of bytes at which the peer is paused.
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

// priorities is how many Ethernet has (802.1p): each has a queue.
const priorities = 8

// headroom is what is set aside for what comes after pauses, and with Promised for
// queues.
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

// headroom is what the peer may still send after it was told to pause: for two
// delays of the link, and a packet that either end is in the middle of.
func (o *Port) headroom() int {
	if h := o.net.opts.PFC.Headroom; h > 0 {
		return int(h)
	}
	return int(2*o.rate*int64(o.delay)/int64(8*time.Second)) + 2*o.net.frame()
}

// pauseLen is the length of a PFC frame.
const pauseLen = 64

// signal sends a PFC frame to the peer: before all that waits, but not before
// the end of the packet on its way out. What it takes from the link is not
// counted.
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
	o.warn(f)
}
