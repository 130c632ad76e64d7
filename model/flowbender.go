package model

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
	b := p.Flow.bytes()
	v := c.flows[p.Flow.Hash()].v
	return int(crc16(append(b[:], v))) % p.n
}

// heed takes in an acknowledgement, which is about the flow the other way.
func (c *rehash) heed(p *Packet, now Time) {
	f := &c.flows[p.Flow.reverse().Hash()]
	f.acks++
	if p.Echo {
		f.marks++
	}
	if now.Since(f.began) <= c.cfg.Epoch {
		return
	}
	if uint64(f.marks)*100 > uint64(f.acks)*c.cfg.Marked {
		f.v++
	}
	f.acks, f.marks, f.began = 0, 0, now
}
