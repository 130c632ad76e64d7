package dataplane

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/p4lb/p4lb/dataplane/num"
)

// A State is a packet as the program sees it: its bytes, its headers and
// metadata, and what the program has asked for on its way. All that a program is
// linked to works on it.
type State struct {
	w    []uint64 // headers and metadata
	args []uint64 // the data of the running action
	ex   *machine

	// buf holds room for headers, then the bytes received: buf[start:end].
	// What is not parsed yet, or the payload, or in the end what is sent, is
	// buf[head:end].
	buf              []byte
	start, head, end int

	// Of what the packet has now, the last check bytes are the frame's check
	// sequence. framed is set where a parser may read it.
	check  int
	framed bool

	id            uint64
	now           time.Duration // the time of the current step
	length        int           // grows and shrinks with headers made valid
	ingressLength int           // what counters and meters see
	limit         int           // what truncate leaves of the packet

	cloneOn      bool
	cloneSession uint16
	cloneList    uint16 // field lists are numbered from 1
	resubmit     uint16
	recirculate  uint16
	digest       uint16
	entry        int32 // the entry last hit

	steps         int     // taken in the current control
	next          uintptr // where compiled code goes on behind an action
	exit          bool
	dead          bool // an assertion has failed
	parserError   uint64
	checksumError bool
}

func (p *State) payload() []byte { return p.buf[p.head : p.head+min(p.end-p.head, p.limit)] }

// truncate cuts the packet when it is sent; the smallest of several cuts wins.
func (p *State) truncate(n uint64) {
	if n < uint64(p.limit) {
		p.limit = int(n)
	}
}

// peek reads width ≤ 64 bits of the packet, at bits ahead; what lies beyond
// the packet is zero.
func (p *State) peek(at, width int) uint64 {
	if at%8+width <= 64 && p.end-p.head >= at/8+8 {
		v := binary.BigEndian.Uint64(p.buf[p.head+at/8:])
		return v << uint(at%8) >> uint(64-width)
	}
	t := p.ex.push(2)
	num.ReadBits(t, p.buf[p.head:p.end], at, width)
	v := t[0]
	p.ex.pop(2)
	return v
}

// frameCheck is the size of the check sequence at a frame's end. Tofino's
// parsers see it behind the packet, and a header may be read from it; whatever
// the last four bytes are when the packet leaves, the port puts the right ones
// there. Packets come here without it, and it is computed for a parser that
// reads so far.
const frameCheck = 4

// more reports whether the parser can read n bytes by reading the frame's check
// sequence too.
func (p *State) more(n int) bool {
	if !p.framed || p.end+frameCheck-p.head < n {
		return false
	}
	p.framed = false
	binary.LittleEndian.PutUint32(p.buf[p.end:], crc32.ChecksumIEEE(p.buf[p.start:p.end]))
	p.end, p.check = p.end+frameCheck, frameCheck
	return true
}

// dropCheck takes the last four bytes off, if the check sequence is among what
// the packet has.
func (p *State) dropCheck() {
	p.end = max(p.end-p.check, p.head)
	p.check = 0
}

// fail drops the packet because of an assertion.
func (p *State) fail() { p.exit, p.dead = true, true }

// A machine is the scratch space of a switch's packet processing.
type machine struct {
	tmp  []uint64
	used int
}

// push returns n words that are free until pop(n).
func (m *machine) push(n int) []uint64 {
	if m.used+n > len(m.tmp) {
		// Words handed out before stay where they are, in the old array.
		m.tmp = append(make([]uint64, 0, 2*(m.used+n)), m.tmp[:m.used]...)[:2*(m.used+n)]
	}
	m.used += n
	return m.tmp[m.used-n : m.used : m.used]
}

func (m *machine) pop(n int) { m.used -= n }
