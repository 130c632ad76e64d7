package dataplane

// parseFrame runs a parser on a packet and, behind it, its check sequence.
func (t *tofino) parseFrame(ps *parser, p *Packet) {
	p.st.Framed, p.st.Check = p.extra == 0, 0
	ps.run(t.sw, &p.st)
	p.st.Framed = false
	if p.st.Check > 0 && p.st.Head <= p.st.End-p.st.Check {
		p.st.DropCheck()
	}
}
