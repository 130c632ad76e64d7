package model

// newChoice makes the choice of a scheme.
func newChoice(s *Switch) choice {
	switch s.cfg.Choice {
	case "hash":
		return hash{s}
	case "uniform":
		return uniform{s}
	case "round-robin":
		if s.cfg.Granularity == "packet" || s.tofino() && s.cfg.Granularity != "flowcell" {
			return &inTurn{Switch: s}
		}
		return presto{s}
	case "sampled":
		return &sampled{Switch: s}
	case "grid":
		return grid{s}
	case "best-hop":
		return bestOf{s}
	case "least":
		return least{s}
	case "ordered":
		if s.tofino() {
			s.cfg.D, s.cfg.M = 2, 1
			return &qdapsHardware{sampled: sampled{Switch: s}}
		}
		if w, ok := s.signal.(waiter); ok {
			return &qdaps{Switch: s, signal: w}
		}
	case "cautious":
		if s.tofino() {
			return &hermesHardware{hermes: hermes{Switch: s}}
		}
		return &hermes{Switch: s}
	case "rehash":
		return &rehash{Switch: s}
	}
	return nil
}

// hash is ECMP.
type hash struct{ *Switch }

func (c hash) choose(p *pass) int {
	if c.tofino() {
		if !c.cfg.Edge { // do not reuse the hash that selected the path to this switch
			return spread(uint64(p.Flow.Hash()), p.n)
		}
		return spread(p.Flow.pathHash(true), p.n)
	}
	return int(c.PathHash(p.Flow) % uint64(p.n))
}

// uniform chooses a random path, as RPS and LetFlow do.
type uniform struct{ *Switch }

func (c uniform) choose(p *pass) int { return c.random(p.n) }

// inTurn sends the packets to a destination over the paths in turn, as DRB does.
type inTurn struct {
	*Switch
	next byGroup[int]
}

func (c *inTurn) choose(p *pass) int {
	next := c.next.of(p.Group)
	if c.tofino() { // the register keeps the last path
		if *next++; *next >= p.n {
			*next = 0
		}
		return *next
	}
	slot := *next
	if slot >= p.n {
		slot = 0
	}
	*next = slot + 1
	return slot
}

// presto sends the parts of a flow over the paths in turn, as Presto does. The
// first part takes a random path, so that not all flows start on the same path. On
// hardware, the hash of the flow determines its first path.
type presto struct{ *Switch }

func (c presto) choose(p *pass) int {
	if c.tofino() {
		turn := spread(uint64(p.Flow.Hash()), p.n) + int(p.cell)
		if turn > 2*(p.n-1) {
			return 0 // the group was larger when the number was stored
		}
		return turn % p.n
	}
	if p.held < 0 {
		return c.random(p.n)
	}
	return (p.held + 1) % p.n
}

// A shuffle draws paths without replacement. Each position stores the offset between its path and
// the path that was initially there.
type shuffle [MaxPaths]int

// draw draws the k-th of n paths.
func (o *shuffle) draw(s *Switch, k, n int) int {
	j := int(s.cfg.Random(uint64(k), uint64(n-1)))
	drawn := o[j] + j
	o[j] = o[k] + k - j
	return drawn
}

// least chooses the least loaded path. Of equally loaded paths it takes the first
// one, starting from a random path.
type least struct{ *Switch }

func (c least) choose(p *pass) int {
	if c.cfg.FourPaths {
		return c.ofFour(p)
	}
	first := c.random(p.n)
	slot, cost := -1, uint32(0)
	for i := range p.n {
		s := (first + i) % p.n
		if k := c.signal.cost(p, s); slot < 0 || k < cost {
			slot, cost = s, k
		}
	}
	return slot
}

// ofFour returns the choice with Variant.FourPaths.
func (c least) ofFour(p *pass) int {
	first, n := 0, min(4, p.n)
	if p.n > n {
		first = c.random(p.n - n + 1)
	}
	var equals []int
	cost := uint32(0)
	for slot := first; slot < first+n; slot++ {
		k := c.signal.cost(p, slot)
		if len(equals) == 0 || k < cost {
			equals, cost = equals[:0], k
		}
		if k == cost {
			equals = append(equals, slot)
		}
	}
	return equals[c.random(len(equals))]
}

// sampled implements DRILL(d, m). It takes the least loaded among d different
// random paths and the m paths remembered from earlier decisions. The first of
// equally loaded paths wins.
//
// Hardware draws all paths at once, so they may be equal. It stores the least
// loaded of them before it reads the remembered path.
type sampled struct {
	*Switch
	best   byGroup[lastBest]
	byHost map[uint32]*lastBest // if set, replaces the memory of each group: see Variant.HostMemory
}

// A lastBest holds the paths chosen in the last M decisions, latest first.
type lastBest [maxMemory]path

// recall returns the memory to use for a packet: its destination host's or its
// group's.
func (c *sampled) recall(p *pass) []path {
	if !c.cfg.HostMemory {
		return c.best.of(p.Group)[:c.cfg.M]
	}
	if c.byHost == nil {
		c.byHost = map[uint32]*lastBest{}
	}
	m := c.byHost[p.Flow.Dst]
	if m == nil {
		m = new(lastBest)
		c.byHost[p.Flow.Dst] = m
	}
	return m[:c.cfg.M]
}

// remembered returns the slot of a remembered path on hardware. With more than 8
// paths, the switch looks up the ports of the two drawn paths and of the remembered
// path. If the group has become smaller, the slots beyond it refer to its remaining
// paths.
func (c *sampled) remembered(m path, n int) int {
	if c.cfg.Paths > 8 && c.cfg.Granularity == "packet" {
		return m.there() % n
	}
	return m.there()
}

// maxMemory is the largest number of remembered paths, M.
const maxMemory = 4

func (c *sampled) choose(p *pass) int {
	slot, least := 0, ^uint32(0)
	look := func(candidate int) {
		if candidate < 0 || candidate >= p.n {
			return
		}
		if cost := c.signal.cost(p, candidate); cost < least {
			slot, least = candidate, cost
		}
	}
	held := c.recall(p)
	if c.cfg.MemoryFirst {
		for _, m := range held {
			look(m.in(p.n))
		}
	}
	var order shuffle
	for k := range c.cfg.D {
		if c.tofino() {
			look(c.random(p.n))
		} else if k < p.n {
			look(order.draw(c.Switch, k, p.n))
		}
	}
	drawn := slot
	for _, m := range held {
		if c.tofino() {
			look(c.remembered(m, p.n))
		} else {
			look(m.in(p.n)) // The path at its old place is compared again: that changes nothing, because no load is less than itself.
		}
	}
	if len(held) > 0 {
		copy(held[1:], held)
		held[0] = remember(slot)
		if c.tofino() {
			held[0] = remember(drawn)
		}
	}
	return slot
}

// grid chooses a path in proportion to its weight (QALL Alg. 2, Eq. 5). Path i has
// W_i grids, and the number of a randomly drawn grid, counted from 1, determines
// the path. Weights from the controller apply to flows (WCMP). CRC32 of the flow
// then replaces the random number, because 16 bits do not reach all grids.
type grid struct{ *Switch }

func (c grid) choose(p *pass) int {
	if c.tofino() {
		switch {
		case c.cfg.Granularity == "flow" && c.cfg.Edge:
			return pick(c.grids(p), uint64(p.Flow.Hash())%grids)
		case c.cfg.Granularity == "flow": // This hash differs from the one that selects the flow slot.
			return pick(c.grids(p), p.Flow.pathHash(true)%grids)
		}
		return pick(c.grids(p), c.cfg.Random(0, grids-1))
	}
	var end [MaxPaths]uint64
	var total uint64
	for i := range p.n {
		total += uint64(c.signal.weight(p, i))
		end[i] = total
	}
	fixed := c.cfg.Granularity == "flow" && c.cfg.Signal == "weights"
	switch {
	case total == 0 && fixed:
		return int(p.Flow.pathHash(c.cfg.Edge) % uint64(p.n))
	case total == 0:
		return c.random(p.n)
	}
	id := uint64(0)
	if fixed {
		id = 1 + p.Flow.pathHash(c.cfg.Edge)%total
	} else {
		id = c.cfg.Random(1, total)
	}
	slot := 0
	for id > end[slot] {
		slot++
	}
	return slot
}
