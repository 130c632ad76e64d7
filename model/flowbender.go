package model

import (
	"hash/crc32"
	"slices"
)

// rehash is FlowBender: the hash of a flow includes a number, V, that changes
// whenever a larger share than Marked of an epoch's acknowledgements echo a
// congestion mark.
type rehash struct {
	*Switch
	flows [Flows]echoes
}

// echoes is what the acknowledgements of a flow say.
type echoes struct {
	v           uint8
	acks, marks uint32
	began       Time // the epoch
}

func (c *rehash) choose(p *pass) int {
	b, v := p.Flow.bytes(), c.flows[c.flowSlot(p.Flow)].v
	if c.tofino() { // where v is in front of the ports
		return spread(uint64(crc32.ChecksumIEEE(slices.Insert(b[:], 9, v))), p.n)
	}
	return int(p.Flow.pathHash(c.cfg.Edge, v) % uint64(p.n))
}

// heed takes in an acknowledgement, which is about the flow the other way.
// Hardware looks at those that end here alone, and the one that ends an epoch
// is the first of the next.
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
