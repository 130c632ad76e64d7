package bmv2

import "iter"

// PortCounts are the numbers of packets that a port has received, sent and
// dropped since the switch was started, independent of the program.
type PortCounts struct {
	Port       int
	Down       bool // no link
	InPackets  uint64
	InBytes    uint64
	OutPackets uint64
	OutBytes   uint64
	Queued     uint64 // packets in its queues now
	Room       uint64 // their capacity; 0: unknown
	Drops      [DropReasons]uint64
}

// Lost iterates over the reasons of dropped packets, with their numbers. The
// end of a copy is not a drop.
func (p *PortCounts) Lost() iter.Seq2[DropReason, uint64] {
	return func(yield func(DropReason, uint64) bool) {
		for i, n := range p.Drops {
			if why := DropReason(i); n > 0 && why != EndCopy && !yield(why, n) {
				return
			}
		}
	}
}

// Dropped returns the number of all dropped packets.
func (p *PortCounts) Dropped() (sum uint64) {
	for _, n := range p.Lost() {
		sum += n
	}
	return sum
}

// A DropReason is the reason why a packet was dropped. Drops before the queues
// are counted at the packet's input port, the others at its output port.
type DropReason int

// The reasons.
const (
	DropQueue     DropReason = iota // the queue of its port was full
	DropNoEntry                     // dropped by the program after a table miss: there is no route
	DropTTL                         // dropped by the program with TTL 0 or 1
	DropProgram                     // dropped by the program for another reason
	DropParser                      // rejected by the parser
	DropRounds                      // recirculated too often
	DropBuffer                      // no room for recirculated packets
	DropNoPort                      // nothing is connected to its port
	DropLink                        // the link is down, or the receiver is too slow
	DropUnread                      // the interface had no room for it before the switch read it
	DropAssertion                   // an assertion of the program failed
	EndCopy                         // the program ended a copy that it had made for its own use
	DropReasons                     // number of reasons
)

var dropNames = [DropReasons]string{
	"queue full", "no entry", "TTL used up", "program", "parser error", "rounds", "no room to recirculate", "no such port", "link", "not read in time", "assertion", "copy",
}

// String returns the name of the reason.
func (r DropReason) String() string { return dropNames[r] }

// portFields is the number of values per port in all versions, without the
// drops.
const portFields = 8

// EncodePorts encodes counts as numbers: first the number of values per port,
// then the values of each port. Later versions may append reasons.
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

// DecodePorts decodes the result of EncodePorts; ok is false for anything else.
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
