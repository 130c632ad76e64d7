package dataplane

// parseFrame runs a parser on a packet and, behind it, its check sequence.
func (t *tofino) parseFrame(ps *parser, p *Packet) {
	p.framed, p.check = p.extra == 0, 0
	ps.run(t.sw, &p.State)
	p.framed = false
	if p.check > 0 && p.head <= p.end-p.check {
		p.dropCheck()
	}
}
