package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Options configure a network, in addition to its topology. The zero value works.
type Options struct {
	Seed uint64
	// MTU is the size of the largest IP packet that hosts send; zero: 1500.
	MTU int
	// Queue limits the bytes in a port's queue. A limit in packets on the link takes precedence;
	// each packet counts as an MTU. Zero: the port's share of the switch's buffer, or 64 packets
	// without a buffer.
	Queue fabric.Size
	ECN   ECN
	PFC   PFC
	// Answers configures how switches and NICs treat acknowledgments, Nacks and notices.
	Answers Answers
	// Hash is the hash function of models that hash flows to paths.
	Hash Hash
	// Draws is the source of the models' random numbers.
	Draws Draws
	// Alpha, if not zero, limits each queue of a switch with a shared buffer to Alpha times the
	// free bytes of the buffer. It replaces the queue's own limit.
	Alpha float64
	// Scaled scales the queue limits and ECN thresholds of a link between switches by its rate
	// relative to the fastest such link. Programs see queue lengths relative to the scaled limit.
	Scaled bool
	// Trim makes switches trim Ultra Ethernet packets that do not fit in the queue.
	Trim bool
	// UntilSent counts a packet in its queue until its last byte has left, as in uet-htsim.
	// ECN.Dequeue then marks it at that time. Otherwise it leaves the queue with its first byte.
	UntilSent bool
	// TrimmableDSCP is the DSCP of Ultra Ethernet data packets. Programs recognise packets that
	// they may trim by it.
	TrimmableDSCP uint8
	Virtual       Virtual
	// ByMAC makes hosts send frames to the MAC address of the destination host, as on one link,
	// instead of the address of their switch.
	ByMAC bool
	// Ties selects the order of events that occur at the same time.
	Ties Ties
	// Cut rounds the transmission time of each packet down to whole nanoseconds, so that packets
	// of one size take equally long. Otherwise the next packet compensates for the rounding, and
	// a link carries exactly its rate.
	Cut bool
	// Cores is the number of cores of a run with ties by place; the results do not
	// depend on it. Zero: one.
	Cores int
	// ClockStep offsets the clocks of the switches: the clock of switch n, counted from 0 in the
	// topology, is n times ClockStep ahead.
	ClockStep time.Duration
	// CPU is the number of the switches' port to the controller; zero: 255.
	CPU int
}

// ECN configures when switches mark ECN-capable packets. A queue of fewer than Min
// bytes marks none, one of Max or more marks all. In between, the marked share rises
// to P. Min = Max is DCTCP's threshold K; zero values mark nothing.
type ECN struct {
	Min, Max fabric.Size
	P        float64
	// Dequeue marks a packet when it leaves the queue, by the bytes behind it. The
	// default marks a packet when it arrives, by the bytes before it. The mark is then
	// one queueing delay fresher when it leaves the switch.
	Dequeue bool
	// ByBDP sets Min and Max to 0.2 and 0.8 of the bandwidth-delay product of the fastest NIC, in
	// whole packets.
	ByBDP bool
	// Fabric marks no packets on the last link to a host. With RCCC the receiver divides this link
	// by its grants, and a mark would blame a path for a queue that all paths share.
	Fabric bool
}

// Answers configures the treatment of acknowledgments, Nacks and congestion notices. The zero
// value treats them as any other packet.
type Answers struct {
	// Hashed sends them along the path of their flow's hash and hides them from the
	// scheme. Only models support it.
	Hashed bool
	// First gives them strict priority in all queues, also in NICs. They are then
	// neither paused nor counted for pauses, and no queue length includes them.
	First bool
}

// A Hash maps the addresses and ports of a flow to a path.
type Hash int

// The hash functions.
const (
	hashCRC32 Hash = iota // the programs' hash function
	HashNS3               // MurmurHash3, as in ns-3's switches for RDMA: see ns3.go
)

// A Draws is a source of random numbers for models.
type Draws int

// The sources of random numbers.
const (
	drawsOwn Draws = iota // a separate source for each switch
	DrawsNS3              // one source for all switches, the C library's rand as in ns-3: see ns3.go; not with ties by place
)

// PFC pauses the peer of a link when too many of its bytes wait in the switch. With
// PFC, switches limit the buffer and not the queues.
type PFC struct {
	On bool
	// Pause is the number of bytes of an ingress port above which its peer is paused.
	// Zero: Alpha times the free bytes of the buffer, or 256 KiB without a buffer.
	Pause fabric.Size
	Alpha float64 // multiple of the free buffer; zero: 1/16
	// Resume is how far the bytes must fall below Pause before the peer resumes; zero:
	// two packets.
	Resume fabric.Size
	// Headroom is reserved for bytes that arrive after a pause; zero: the bytes that the link
	// carries in two delays, plus two packets.
	Headroom fabric.Size
	// Promised reserves buffer: one packet for each of a port's eight queues, which ECN ignores,
	// and two packets for each ingress port.
	Promised bool
}

// Virtual configures recirculation within a switch: ports without an interface, each with its own
// rate.
type Virtual struct {
	Rate    fabric.Rate   // rate of each port; zero: 100 Gbps
	Latency time.Duration // time to return to ingress; zero: 1 µs
}

func (o *Options) validate() error {
	if o.MTU < 0 || o.MTU > 0 && o.MTU < 128 || o.MTU > 9216 {
		return fmt.Errorf("an MTU of %d is outside 128..9216", o.MTU)
	}
	if o.Alpha < 0 || o.PFC.Alpha < 0 || o.ECN.P < 0 || o.ECN.P > 1 || o.ECN.Max < o.ECN.Min {
		return errors.New("ECN, PFC or buffer: a negative share, a share above 1, or a minimum above its maximum")
	}
	if o.Trim && o.PFC.On {
		return errors.New("trimming with PFC: with PFC, queues have no limit and lose no packets: want one of them")
	}
	if o.Draws == DrawsNS3 && o.Ties == ByPlace {
		return errors.New("one sequence of random numbers for all switches needs one order of events: want ties as planned")
	}
	o.MTU = cmp.Or(o.MTU, 1500)
	o.ECN.P = cmp.Or(o.ECN.P, 1)
	o.PFC.Alpha = cmp.Or(o.PFC.Alpha, 1.0/16)
	o.PFC.Resume = cmp.Or(o.PFC.Resume, fabric.Size(2*(o.MTU+ethernetLen)))
	o.Virtual.Rate = cmp.Or(o.Virtual.Rate, 100*fabric.Gbps)
	o.Virtual.Latency = cmp.Or(o.Virtual.Latency, time.Microsecond)
	o.CPU = cmp.Or(o.CPU, 255)
	return nil
}

// queue returns the limit of a queue. share is the port's share of the buffer, or 0.
func (o *Options) queue(share int) int {
	switch {
	case o.Queue > 0:
		return int(o.Queue)
	case share > 0:
		return share
	}
	return 64 * (o.MTU + ethernetLen)
}

// Ties selects the order of events that occur at the same time.
type Ties int

// The orders of simultaneous events.
const (
	byPlan  Ties = iota // in the order in which they were planned
	ByPlace             // by the place that planned them; required for several cores
)
