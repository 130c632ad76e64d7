package vector

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A State is a packet as the program sees it: its bytes, its headers and
// metadata, and what the program has asked for on its way. All that a program is
// linked to works on it.
type State struct {
	W       []uint64 // headers and metadata
	Args    []uint64 // the data of the running action
	Scratch *Scratch

	// buf holds room for headers, then the bytes received: buf[start:end].
	// What is not parsed yet, or the payload, or in the end what is sent, is
	// buf[head:end].
	Buf              []byte
	Start, Head, End int

	// Of what the packet has now, the last check bytes are the frame's check
	// sequence. framed is set where a parser may read it.
	Check  int
	Framed bool

	ID            uint64
	Now           time.Duration // the time of the current step
	Length        int           // grows and shrinks with headers made valid
	IngressLength int           // what counters and meters see
	Limit         int           // what truncate leaves of the packet

	CloneOn      bool
	CloneSession uint16
	CloneList    uint16 // field lists are numbered from 1
	Resubmit     uint16
	Recirculate  uint16
	Digest       uint16
	Entry        int32 // the entry last hit

	Steps         int     // taken in the current control
	Next          uintptr // where compiled code goes on behind an action
	Exit          bool
	Dead          bool // an assertion has failed
	ParserError   uint64
	ChecksumError bool
}

// Payload is what is not parsed yet, less what truncate takes off.
func (p *State) Payload() []byte { return p.Buf[p.Head : p.Head+min(p.End-p.Head, p.Limit)] }

// Truncate cuts the packet when it is sent; the smallest of several cuts wins.
func (p *State) Truncate(n uint64) {
	if n < uint64(p.Limit) {
		p.Limit = int(n)
	}
}

// Peek reads width ≤ 64 bits of the packet, at bits ahead; what lies beyond
// the packet is zero.
func (p *State) Peek(at, width int) uint64 {
	if at%8+width <= 64 && p.End-p.Head >= at/8+8 {
		v := binary.BigEndian.Uint64(p.Buf[p.Head+at/8:])
		return v << uint(at%8) >> uint(64-width)
	}
	t := p.Scratch.Push(2)
	num.ReadBits(t, p.Buf[p.Head:p.End], at, width)
	v := t[0]
	p.Scratch.Pop(2)
	return v
}

// FrameCheck is the size of the check sequence at a frame's end. Tofino's
// parsers see it behind the packet, and a header may be read from it; whatever
// the last four bytes are when the packet leaves, the port puts the right ones
// there. Packets come here without it, and it is computed for a parser that
// reads so far.
const FrameCheck = 4

// More reports whether the parser can read n bytes by reading the frame's check
// sequence too.
func (p *State) More(n int) bool {
	if !p.Framed || p.End+FrameCheck-p.Head < n {
		return false
	}
	p.Framed = false
	binary.LittleEndian.PutUint32(p.Buf[p.End:], crc32.ChecksumIEEE(p.Buf[p.Start:p.End]))
	p.End, p.Check = p.End+FrameCheck, FrameCheck
	return true
}

// DropCheck takes the last four bytes off, if the check sequence is among what
// the packet has.
func (p *State) DropCheck() {
	p.End = max(p.End-p.Check, p.Head)
	p.Check = 0
}

// Fail drops the packet because of an assertion.
func (p *State) Fail() { p.Exit, p.Dead = true, true }

// A Scratch is the scratch space of a switch's packet processing.
type Scratch struct {
	tmp  []uint64
	Used int
}

// Push returns n words that are free until pop(n).
func (m *Scratch) Push(n int) []uint64 {
	if m.Used+n > len(m.tmp) {
		// Words handed out before stay where they are, in the old array.
		m.tmp = append(make([]uint64, 0, 2*(m.Used+n)), m.tmp[:m.Used]...)[:2*(m.Used+n)]
	}
	m.Used += n
	return m.tmp[m.Used-n : m.Used : m.Used]
}

// Pop gives the words of the last Push back.
func (m *Scratch) Pop(n int) { m.Used -= n }
