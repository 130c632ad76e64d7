package sim

import "time"

// A Reason is why a packet ended before it reached a host.
type Reason int

// The reasons.
const (
	// consumed is the end of packets that were made to tell a switch
	// something, and of copies.
	consumed   Reason = iota
	QueueFull         // no room in the queue, or of its share of the buffer
	BufferFull        // no room in the buffer of the switch
	LinkDown          // the link had failed
	Silent            // a fault: see Switch.DropSilently
	BlackHole         // a fault: see Switch.BlackHole
	Program           // the program dropped it: no route, TTL, checksum
	noPort            // the program sent it to a port that nothing is at
	noProgram         // the switch has neither program nor model
	stray             // it reached a host that it is not for
	Corrupted         // a fault: see Link.SetBitErrors
	Replaced          // a controller replaced the program
	reasons
)

var reasonNames = [reasons]string{
	"consumed", "queue full", "buffer full", "link down", "silent drop", "black hole",
	"program", "no such port", "no program", "stray", "bit error", "program replaced",
}

// String is the reason in words.
func (r Reason) String() string { return reasonNames[r] }

// Reasons are all of them.
func Reasons() []Reason {
	list := make([]Reason, reasons)
	for i := range list {
		list[i] = Reason(i)
	}
	return list
}

// A Tally counts packets, and the bytes that they had when their sender sent them.
type Tally struct{ Packets, Bytes int64 }

func (t *Tally) add(p *Packet) {
	t.Packets++
	t.Bytes += int64(p.born)
}

// plus is the sum of both.
func (t Tally) plus(u Tally) Tally { return Tally{t.Packets + u.Packets, t.Bytes + u.Bytes} }

// A ledger accounts for all packets.
type ledger struct {
	began     Tally
	delivered Tally
	lost      [reasons]Tally
	faulted   time.Duration // when a fault last lost a packet
}
