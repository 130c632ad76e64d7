package model

// cautious is Hermes (its Algorithm 2): a flow gets a path when it is new, of
// the best class there is and of these the least used one. It keeps that unless
// the path is congested and the flow itself is large, slow, and would find a
// path that is notably better.
type cautious struct {
	*Switch
	flows [Flows]struct {
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

func (c *cautious) class(k pathState) int {
	switch {
	case k.marks < c.cfg.TECN && k.rtt < c.cfg.Low:
		return good
	case k.marks > c.cfg.TECN && k.rtt > c.cfg.High:
		return congested
	}
	return grey
}

func (c *cautious) choose(p *pass) int {
	f := &c.flows[p.Flow.Hash()]
	p.held = f.path.in(p.n)
	isNew := p.held < 0 || p.now.Since(f.last) > c.cfg.Timeout
	if isNew {
		f.sent = 0
	}
	f.sent += uint32(p.Len)
	f.rate = uint32(p.Len) + estimate{f.rate, f.last}.now(p.now, c.cfg.Window)
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
	*u = estimate{uint32(p.Len) + u.now(p.now, c.cfg.Window), p.now}
	return slot
}

// rateLimit is the share R of a link's rate, in bytes for 2^Window µs.
func (c *cautious) rateLimit() uint32 { return uint32(c.capacity() * c.cfg.R / 100) }

// best is the path with the lowest rate of the best class; if there is a path
// to compare with, of those that are notably better. Ties go round from a
// random path on. The last resort is that path, or the one the flow has.
func (c *cautious) best(p *pass, than *pathState) int {
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
		key := [2]uint32{uint32(c.class(k)), c.used.of(p.Group)[s].now(p.now, c.cfg.Window)}
		if key[0] < best[0] || key[0] == best[0] && key[0] != congested && key[1] < best[1] {
			slot, best = s, key
		}
	}
	return slot
}
