package dataplane

import (
	"encoding/binary"
	"hash/crc32"
)

// frameCheck is the size of the check sequence at a frame's end. Tofino's
// parsers see it behind the packet, and a header may be read from it; whatever
// the last four bytes are when the packet leaves, the port puts the right ones
// there. Packets come here without it, and it is computed for a parser that
// reads so far.
const frameCheck = 4

// more reports whether the parser can read n bytes by reading the frame's check
// sequence too.
func (p *Packet) more(n int) bool {
	if !p.framed || p.end+frameCheck-p.head < n {
		return false
	}
	p.framed = false
	binary.LittleEndian.PutUint32(p.buf[p.end:], crc32.ChecksumIEEE(p.buf[p.start:p.end]))
	p.end, p.check = p.end+frameCheck, frameCheck
	return true
}

// parseFrame runs a parser on a packet and, behind it, its check sequence.
func (t *tofino) parseFrame(ps *parser, p *Packet) {
	p.framed, p.check = p.extra == 0, 0
	ps.run(t.sw, p)
	p.framed = false
	if p.check > 0 && p.head <= p.end-p.check {
		p.dropCheck()
	}
}

// dropCheck takes the last four bytes off, if the check sequence is among what
// the packet has.
func (p *Packet) dropCheck() {
	p.end = max(p.end-p.check, p.head)
	p.check = 0
}
