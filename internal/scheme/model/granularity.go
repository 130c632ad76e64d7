package model

import (
	"hash/crc32"
	"slices"
)

// newGranularity makes the granularity of a scheme.
func newGranularity(s *Switch) granularity {
	switch s.cfg.Granularity {
	case "packet":
		return perPacket{s}
	case "flow":
		if c := s.cfg.Choice; c == "hash" || c == "rehash" || c == "cautious" || c == "grid" && s.cfg.Signal == "weights" {
			return perPacket{s} // the choice handles flows itself
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

// A path is a remembered path. The zero value means that no path is remembered.
type path uint8

func remember(slot int) path { return path(slot + 1) }

// in returns the slot, or -1 if a group of n paths has no such slot.
func (p path) in(n int) int {
	if int(p) > n {
		return -1
	}
	return int(p) - 1
}

// there returns the slot, or 0 if none is stored.
func (p path) there() int { return max(int(p), 1) - 1 }

// memory holds the paths of all flows.
type memory struct {
	*Switch
	paths [flowSlots]path
}

// recall reads the slot and the path of the packet's flow. A path that the group no longer has
// counts as none.
func (m *memory) recall(p *pass) {
	p.key = m.flowSlot(p.Flow)
	p.held = m.paths[p.key].in(p.n)
}

// renew chooses a new path for the flow.
func (m *memory) renew(p *pass) int {
	slot := m.choice.choose(p)
	m.paths[p.key] = remember(slot)
	return slot
}

// exchange is renew on hardware: it chooses for every packet, but stores the choice only for the
// first packet of a flowlet or cell.
func (m *memory) exchange(p *pass, fresh bool) int {
	slot := m.choice.choose(p)
	if fresh {
		m.paths[p.key] = remember(slot)
	}
	return m.paths[p.key].there()
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

// flowlet chooses again after a pause longer than Gap (LetFlow; QALL Alg. 1, lines 11 to 20,
// which omit storing the time).
type flowlet struct {
	memory
	last [flowSlots]Time
}

func (g *flowlet) decide(p *pass) int {
	g.recall(p)
	pause := p.now.Since(g.last[p.key])
	g.last[p.key] = p.now
	if g.tofino() {
		return g.exchange(p, pause > g.cfg.Gap)
	}
	if p.held >= 0 && pause <= g.cfg.Gap {
		return p.held
	}
	return g.renew(p)
}

// flowcell chooses again when a cell of Cell bytes is full (Presto). A packet that does not fit
// starts the next cell. Hardware counts IPv4's total length and numbers the cells, which take the
// paths in turn.
type flowcell struct {
	memory
	bytes [flowSlots]uint32
	turns [flowSlots]uint32
}

func (g *flowcell) decide(p *pass) int {
	g.recall(p)
	bytes := &g.bytes[p.key]
	if g.tofino() {
		size := p.ipLen()
		inTurn := g.cfg.Choice == "round-robin"
		fresh := *bytes == 0 && !inTurn || *bytes+size > g.cfg.Cell
		if fresh {
			*bytes = 0
		}
		*bytes += size
		if !inTurn {
			return g.exchange(p, fresh)
		}
		if fresh {
			// Begin the next cell, or after the last number the first.
			cell := &g.turns[p.key]
			if *cell++; *cell >= uint32(p.n) {
				*cell = 0
			}
		}
		p.cell = g.turns[p.key]
		return g.choice.choose(p)
	}
	if *bytes += uint32(p.Len); p.held >= 0 && *bytes <= g.cfg.Cell {
		return p.held
	}
	*bytes = uint32(p.Len)
	return g.renew(p)
}

// ipLen returns the length that the IP header contains.
func (p *Packet) ipLen() uint32 {
	if p.Flow.Upper != nil {
		return uint32(p.Len - 14 - 40 - p.carried)
	}
	return uint32(p.Len - 14 - p.carried)
}

// adaptive chooses again after the number of packets that the controller computed for
// the destination (PDLB).
type adaptive struct {
	memory
	count [flowSlots]uint16
}

func (g *adaptive) decide(p *pass) int {
	g.recall(p)
	count := &g.count[p.key]
	if g.tofino() {
		fresh := *count == 0 || *count >= *g.controlled.granularity.of(p.Group)
		if fresh {
			*count = 0
		}
		*count++
		return g.exchange(p, fresh)
	}
	if p.held >= 0 && *count < *g.controlled.granularity.of(p.Group) {
		*count++
		return p.held
	}
	*count = 1
	return g.renew(p)
}

// rehash implements FlowBender. The hash of a flow includes a number, V. V changes
// when too large a share of an epoch's acknowledgements, more than Marked, echo a
// congestion mark.
type rehash struct {
	*Switch
	flows [flowSlots]echoes
}

// echoes counts the marks in a flow's acknowledgements.
type echoes struct {
	v           uint8
	acks, marks uint32
	began       Time // start of the epoch
}

func (c *rehash) choose(p *pass) int {
	v := c.flows[c.flowSlot(p.Flow)].v
	if c.tofino() { // on hardware, V precedes the ports in the hash
		narrow := p.Flow.bytes()
		b := narrow[:]
		if p.Flow.Upper != nil {
			b = p.Flow.wide()
		}
		return spread(uint64(crc32.ChecksumIEEE(slices.Insert(b, len(b)-4, v))), p.n)
	}
	return int(p.Flow.pathHash(c.cfg.Edge, v) % uint64(p.n))
}

// heed processes an acknowledgement, which concerns the reverse flow. Hardware only
// processes acknowledgements for its own hosts. On hardware, the acknowledgement
// that ends an epoch is also the first of the next.
func (c *rehash) heed(p *Packet, now Time) {
	if c.tofino() && p.Group >= 0 {
		return
	}
	f := &c.flows[c.flowSlot(p.Flow.reverse())]
	if !c.tofino() {
		f.count(p.Echo)
	}
	if now.Since(f.began) > c.cfg.Epoch {
		if uint64(f.marks)*100 > uint64(f.acks)*c.cfg.Marked {
			f.v++
		}
		f.acks, f.marks, f.began = 0, 0, now
	}
	if c.tofino() {
		f.count(p.Echo)
	}
}

func (f *echoes) count(marked bool) {
	f.acks++
	if marked {
		f.marks++
	}
}
