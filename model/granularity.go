package model

// newGranularity makes the granularity of a scheme.
func newGranularity(s *Switch) granularity {
	switch s.cfg.Granularity {
	case "packet":
		return perPacket{s}
	case "flow":
		if c := s.cfg.Choice; c == "hash" || c == "rehash" || c == "cautious" || c == "grid" && s.cfg.Signal == "weights" {
			return perPacket{s} // the choice itself sees to it
		}
		return &perFlow{memory{Switch: s}}
	case "flowlet":
		return &flowlet{memory: memory{Switch: s}}
	case "flowcell":
		return &flowcell{memory: memory{Switch: s}}
	case "adaptive":
		return &adaptive{memory: memory{Switch: s}}
	}
	return nil
}

// A path is a remembered one; the zero path is none.
type path uint8

func remember(slot int) path { return path(slot + 1) }

// in is the slot, -1 if there is none in a group of n.
func (p path) in(n int) int {
	if int(p) > n {
		return -1
	}
	return int(p) - 1
}

// memory is the paths of all flows.
type memory struct {
	*Switch
	paths [Flows]path
}

// recall finds the slot and the path of the packet's flow. A flow whose path
// the group does not have any more has none.
func (m *memory) recall(p *pass) {
	p.key = p.Flow.Hash()
	p.held = m.paths[p.key].in(p.n)
}

// renew gives the flow a path anew.
func (m *memory) renew(p *pass) int {
	slot := m.choice.choose(p)
	m.paths[p.key] = remember(slot)
	return slot
}

// perPacket chooses for each packet.
type perPacket struct{ *Switch }

func (g perPacket) decide(p *pass) int { return g.choice.choose(p) }

// perFlow chooses for the first packet of a flow.
type perFlow struct{ memory }

func (g *perFlow) decide(p *pass) int {
	if g.recall(p); p.held >= 0 {
		return p.held
	}
	return g.renew(p)
}

// flowlet chooses anew after a pause longer than Gap (LetFlow; QALL Alg. 1,
// lines 11 to 20, which forget to write the time).
type flowlet struct {
	memory
	last [Flows]Time
}

func (g *flowlet) decide(p *pass) int {
	g.recall(p)
	pause := p.now.Since(g.last[p.key])
	g.last[p.key] = p.now
	if p.held >= 0 && pause <= g.cfg.Gap {
		return p.held
	}
	return g.renew(p)
}

// flowcell chooses anew when Cell bytes are full (Presto): the packet that
// would not fit is the first of the next cell.
type flowcell struct {
	memory
	bytes [Flows]uint32
}

func (g *flowcell) decide(p *pass) int {
	g.recall(p)
	bytes := &g.bytes[p.key]
	if *bytes += uint32(p.Len); p.held >= 0 && *bytes <= g.cfg.Cell {
		return p.held
	}
	*bytes = uint32(p.Len)
	return g.renew(p)
}

// adaptive chooses anew after as many packets as the controller has found best
// for the destination (PDLB).
type adaptive struct {
	memory
	count [Flows]uint16
}

func (g *adaptive) decide(p *pass) int {
	g.recall(p)
	count := &g.count[p.key]
	if p.held >= 0 && *count < *g.controlled.granularity.of(p.Group) {
		*count++
		return p.held
	}
	*count = 1
	return g.renew(p)
}
