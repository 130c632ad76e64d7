package vector

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/num"
)

// A State is a packet as the program sees it: its bytes, headers and metadata,
// and the requests of the program. Closures and machine code work on it.
type State struct {
	W       []uint64 // headers and metadata
	Args    []uint64 // the data of the running action
	Scratch *Scratch

	// Buf holds room for headers, then the bytes received: Buf[Start:End].
	// Buf[Head:End] is the part that is not parsed yet, then the payload, and
	// at the end the packet to send.
	Buf              []byte
	Start, Head, End int

	// The last Check bytes of the packet are the frame check sequence. Framed
	// is set while a parser may still read it.
	Check  int
	Framed bool

	ID            uint64
	Now           time.Duration // the time of the current step
	Length        int           // changes with headers made valid or invalid
	IngressLength int           // the length for counters and meters
	Limit         int           // the limit of truncate

	CloneOn      bool
	CloneSession uint16
	CloneList    uint16 // field lists are numbered from 1
	Resubmit     uint16
	Recirculate  uint16
	Digest       uint16
	Entry        int32 // the entry last hit

	Steps         int     // steps taken in the current control
	Next          uintptr // where machine code continues after an action
	Exit          bool
	Dead          bool // an assertion has failed
	ParserError   uint64
	ChecksumError bool
}

// Payload returns the bytes that are not parsed, up to the limit of truncate.
func (p *State) Payload() []byte { return p.Buf[p.Head : p.Head+min(p.End-p.Head, p.Limit)] }

// Truncate limits the packet when it is sent; the smallest of several limits
// applies.
func (p *State) Truncate(n uint64) {
	if n < uint64(p.Limit) {
		p.Limit = int(n)
	}
}

// Peek reads width ≤ 64 bits of the packet, at bits ahead. Bits beyond the
// packet are zero.
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

// FrameCheck is the size of the frame check sequence. Tofino's parsers see it
// after the packet and may extract it; the port overwrites the last four bytes
// of a packet that leaves. Packets arrive here without it; it is computed when
// a parser reads that far.
const FrameCheck = 4

// More reports whether the parser can read n bytes with the frame check
// sequence.
func (p *State) More(n int) bool {
	if !p.Framed || p.End+FrameCheck-p.Head < n {
		return false
	}
	p.Framed = false
	binary.LittleEndian.PutUint32(p.Buf[p.End:], crc32.ChecksumIEEE(p.Buf[p.Start:p.End]))
	p.End, p.Check = p.End+FrameCheck, FrameCheck
	return true
}

// DropCheck removes the frame check sequence if the packet has it.
func (p *State) DropCheck() {
	p.End = max(p.End-p.Check, p.Head)
	p.Check = 0
}

// Fail drops the packet after a false assertion.
func (p *State) Fail() { p.Exit, p.Dead = true, true }

// A Scratch is a stack of words for intermediate values.
type Scratch struct {
	tmp  []uint64
	Used int
}

// Push returns n words that are free until Pop(n).
func (m *Scratch) Push(n int) []uint64 {
	if m.Used+n > len(m.tmp) {
		// Words of earlier calls stay valid in the old array.
		m.tmp = append(make([]uint64, 0, 2*(m.Used+n)), m.tmp[:m.Used]...)[:2*(m.Used+n)]
	}
	m.Used += n
	return m.tmp[m.Used-n : m.Used : m.Used]
}

// Pop frees the words of the last Push.
func (m *Scratch) Pop(n int) { m.Used -= n }
