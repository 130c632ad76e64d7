package dataplane

import "github.com/p4lb/p4lb/dataplane/program"

// parseFrame runs a parser on a packet and, behind it, its check sequence.
func (t *tofino) parseFrame(ps *program.Parser, p *Packet) {
	p.st.Framed, p.st.Check = p.extra == 0, 0
	ps.Run(t.sw.prog, &p.st)
	p.st.Framed = false
	if p.st.Check > 0 && p.st.Head <= p.st.End-p.st.Check {
		p.st.DropCheck()
	}
}
