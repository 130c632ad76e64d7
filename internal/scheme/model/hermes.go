package model

// hermes implements Hermes (its Algorithm 2). A new flow gets a path of the best
// available class, and of these the least used one. The flow keeps its path unless
// the path is congested, the flow is large and slow, and another path is notably
// better.
type hermes struct {
	*Switch
	flows [flowSlots]struct {
		path path
		sent uint32
		last Time
		rate uint32
	}
	used byGroup[[MaxPaths]estimate]
}

// The classes of paths (Hermes, Algorithm 1).
const (
	good = iota
	grey
	congested
)

func (c *hermes) class(k pathState) int {
	switch {
	case k.marks < c.cfg.TECN && k.rtt < c.cfg.Low:
		return good
	case k.marks > c.cfg.TECN && k.rtt > c.cfg.High:
		return congested
	}
	return grey
}

func (c *hermes) choose(p *pass) int {
	f := &c.flows[p.Flow.Hash()]
	p.held = f.path.in(p.n)
	isNew := p.held < 0 || p.now.Since(f.last) > c.cfg.Timeout
	if isNew {
		f.sent = 0
	}
	f.sent += uint32(p.Len)
	f.rate = uint32(p.Len) + estimate{f.rate, f.last}.faded(p.now, c.cfg.Window)
	f.last = p.now

	slot := p.held
	switch {
	case isNew:
		slot = c.best(p, nil)
	case c.class(c.paths.of(p.Group)[slot]) == congested && f.sent > c.cfg.Sent && f.rate < c.rateLimit():
		slot = c.best(p, &c.paths.of(p.Group)[slot])
	}
	f.path = remember(slot)
	u := &c.used.of(p.Group)[slot]
	*u = estimate{uint32(p.Len) + u.faded(p.now, c.cfg.Window), p.now}
	return slot
}

// rateLimit returns the share R of a link's rate, in bytes per 2^Window µs.
func (c *hermes) rateLimit() uint32 { return uint32(c.capacity() * c.cfg.R / 100) }

// best returns the path with the lowest rate in the best class. If the flow has a
// path to compare, best considers only notably better paths. It resolves ties in
// turn, starting from a random path. If no path qualifies, it returns the compared
// path, or else the flow's own.
func (c *hermes) best(p *pass, than *pathState) int {
	first := c.random(p.n)
	slot, best := p.held, [2]uint32{congested, 0}
	if than == nil {
		slot = first
	}
	for i := range p.n {
		s := (first + i) % p.n
		k := c.paths.of(p.Group)[s]
		if than != nil && !(than.rtt > k.rtt+c.cfg.DRTT && int(than.marks) > int(k.marks)+c.cfg.DECN) {
			continue
		}
		key := [2]uint32{uint32(c.class(k)), c.used.of(p.Group)[s].faded(p.now, c.cfg.Window)}
		if key[0] < best[0] || key[0] == best[0] && key[0] != congested && key[1] < best[1] {
			slot, best = s, key
		}
	}
	return slot
}

// hermesHardware implements Hermes on hardware. The switch reads the flow's path
// before it knows whether the flow moves. If the flow moves, its packet
// recirculates to write the new path, and packets behind it use the old path
// meanwhile. Rates are bytes in consecutive windows. The rate of a path is the
// utilisation of its first link in eighths.
type hermesHardware struct {
	hermes
	windows [flowSlots]struct {
		bytes uint32
		began Time
	}
}

func (c *hermesHardware) choose(p *pass) int {
	key := c.flowSlot(p.Flow)
	f, w := &c.flows[key], &c.windows[key]
	if p.Round.Count > 0 {
		f.path = remember(p.Round.to)
		return p.Round.to
	}
	held, size := f.path.there(), p.ipLen()
	isNew := p.now.Since(f.last) > c.cfg.Timeout
	f.last = p.now
	if isNew {
		f.sent = 0
	}
	f.sent = uint32(min(1<<32-1, uint64(f.sent)+uint64(size)))
	slow := false
	if p.now.Since(w.began) > c.cfg.Hardware.Interval(1000<<c.cfg.Window) {
		slow = w.bytes < c.rateLimit()
		w.bytes, w.began = 0, p.now
	}
	w.bytes += size

	any := c.random(p.n)
	to := -1
	switch k := c.paths.of(p.Group)[held]; {
	case isNew:
		if to = c.best(p, nil, any); to < 0 {
			to = any
		}
	case c.class(k) == congested && f.sent > c.cfg.Sent && slow:
		to = c.best(p, &k, any)
	}
	if p.again = to >= 0; p.again {
		p.Round.to = to
	}
	return held
}

// best returns the path that a flow would move to, or -1 if no path is open. Of equally good
// paths it takes the first one, starting from first.
func (c *hermesHardware) best(p *pass, than *pathState, first int) int {
	slot, least := -1, [2]int{congested}
	for i := range p.n {
		s := (first + i) % p.n
		k := c.paths.of(p.Group)[s]
		if than != nil && !(than.rtt > k.rtt+c.cfg.DRTT && int(than.marks) > int(k.marks)+c.cfg.DECN) {
			continue
		}
		sent := c.signal.(*load).sent(c.port(p, s), p.now)
		key := [2]int{c.class(k), int(c.signal.(*load).eighths(sent))}
		if key[0] < least[0] || key[0] == least[0] && key[0] < congested && key[1] < least[1] {
			slot, least = s, key
		}
	}
	return slot
}
