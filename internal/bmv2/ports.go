package bmv2

import "iter"

// PortCounts are what a port of a switch has taken in, sent and lost since the
// switch began, whatever its program counts.
type PortCounts struct {
	Port       int
	Down       bool // it has no link
	InPackets  uint64
	InBytes    uint64
	OutPackets uint64
	OutBytes   uint64
	Queued     uint64 // packets that wait to leave now
	Room       uint64 // how many may; 0: not known
	Drops      [DropReasons]uint64
}

// Lost are the reasons for which packets were dropped, with how many. The end of a
// copy is no drop.
func (p *PortCounts) Lost() iter.Seq2[DropReason, uint64] {
	return func(yield func(DropReason, uint64) bool) {
		for i, n := range p.Drops {
			if why := DropReason(i); n > 0 && why != EndCopy && !yield(why, n) {
				return
			}
		}
	}
}

// Dropped is the sum of the drops.
func (p *PortCounts) Dropped() (sum uint64) {
	for _, n := range p.Lost() {
		sum += n
	}
	return sum
}

// A DropReason is why a packet went no further. Those before the queues count at
// the port where the packet came in, the others where it would have left.
type DropReason int

// The reasons.
const (
	DropQueue     DropReason = iota // the queue of its port was full
	DropNoEntry                     // the program dropped it after a table without an entry for it: there is no route
	DropTTL                         // the program dropped it, and it had no hop left
	DropProgram                     // the program dropped it for a reason of its own
	DropParser                      // the parser refused it
	DropRounds                      // it went round too often
	DropBuffer                      // no room for packets that go round
	DropNoPort                      // nothing is connected to its port
	DropLink                        // the link is down, or whoever is at its end is too slow
	DropUnread                      // the interface had no room for it before the switch saw it
	DropAssertion                   // an assertion of the program was false
	EndCopy                         // the program ended a copy that it had made, for instance to tell itself something
	DropReasons                     // how many there are
)

var dropNames = [DropReasons]string{
	"queue full", "no entry", "TTL used up", "program", "parser error", "rounds", "no room to recirculate", "no such port", "link", "not read in time", "assertion", "copy",
}

// String names the reason.
func (r DropReason) String() string { return dropNames[r] }

// portFields is how many numbers a port has on the wire: those that every
// version has, and the drops.
const portFields = 8

// EncodePorts lays counts out as numbers: how many a port has, then those of
// each port. Later versions may add reasons at the end.
func EncodePorts(list []PortCounts) []uint64 {
	numbers := append(make([]uint64, 0, 1+len(list)*(portFields+int(DropReasons))), uint64(portFields+DropReasons))
	for i := range list {
		p := &list[i]
		down := uint64(0)
		if p.Down {
			down = 1
		}
		numbers = append(numbers, uint64(p.Port), down, p.InPackets, p.InBytes, p.OutPackets, p.OutBytes, p.Queued, p.Room)
		numbers = append(numbers, p.Drops[:]...)
	}
	return numbers
}

// DecodePorts reads what EncodePorts has written; ok is false for anything else.
func DecodePorts(numbers []uint64) (list []PortCounts, ok bool) {
	if len(numbers) == 0 || numbers[0] < portFields || numbers[0] > 1<<10 || (len(numbers)-1)%int(numbers[0]) != 0 {
		return nil, false
	}
	size := int(numbers[0])
	for row := numbers[1:]; len(row) > 0; row = row[size:] {
		p := PortCounts{
			Port: int(row[0]), Down: row[1] != 0, InPackets: row[2], InBytes: row[3], OutPackets: row[4], OutBytes: row[5],
			Queued: row[6], Room: row[7],
		}
		copy(p.Drops[:], row[portFields:size])
		list = append(list, p)
	}
	return list, true
}
