package sim

import "time"

// A Reason is why a packet ended before it reached a host.
type Reason int

// The reasons for the end of a packet.
const (
	// consumed is the end of packets that carried information to a switch, and of copies.
	consumed   Reason = iota
	QueueFull         // the queue, or its share of the buffer, was full
	BufferFull        // the buffer of the switch was full
	LinkDown          // the link had failed
	Silent            // a fault: see Switch.DropSilently
	BlackHole         // a fault: see Switch.BlackHole
	Program           // the program dropped it: no route, TTL, checksum
	noPort            // the program sent it to a port that does not exist
	noProgram         // the switch has neither program nor model
	stray             // it reached a host other than its destination
	Corrupted         // a fault: see Link.SetBitErrors
	Replaced          // a controller replaced the program
	reasons
)

var reasonNames = [reasons]string{
	"consumed", "queue full", "buffer full", "link down", "silent drop", "black hole",
	"program", "no such port", "no program", "stray", "bit error", "program replaced",
}

// String returns the reason in words.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns all reasons.
func Reasons() []Reason {
	list := make([]Reason, reasons)
	for i := range list {
		list[i] = Reason(i)
	}
	return list
}

// A Tally counts packets and their bytes. A packet counts with the length that it had when it was
// sent.
type Tally struct{ Packets, Bytes int64 }

func (t *Tally) add(p *Packet) {
	t.Packets++
	t.Bytes += int64(p.firstSize)
}

// plus returns the sum of both.
func (t Tally) plus(u Tally) Tally { return Tally{t.Packets + u.Packets, t.Bytes + u.Bytes} }

// A ledger counts all packets by how they ended.
type ledger struct {
	began     Tally
	delivered Tally
	lost      [reasons]Tally
	faulted   time.Duration // time of the latest loss by a fault
}
