package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// Options are what New needs beside the topology. The zero value works.
type Options struct {
	Seed uint64
	// MTU is the bytes of the largest IP packet of hosts; zero: 1500.
	MTU int
	// Queue is the bytes that wait at a port at most, where its link states no
	// number of packets, which count as an MTU each. Zero: the port's share of
	// the switch's buffer, and without one 64 packets.
	Queue fabric.Size
	ECN   ECN
	PFC   PFC
	// Answers says how switches and NICs treat what receivers send.
	Answers Answers
	// Hash is what flows' paths come from where models choose by hash.
	Hash Hash
	// Draws is where models' random numbers come from.
	Draws Draws
	// Alpha, if not zero, limits each queue of a switch with a shared buffer to
	// this many times what is free of it, in place of its own limit.
	Alpha   float64
	Virtual Virtual
	// ByMAC makes hosts send to each other's MACs, as on one link, and not to that of
	// their switch.
	ByMAC bool
	// Ties says what comes first of two events at the same time.
	Ties Ties
	// Cut has each packet take whole nanoseconds on a line, what is left of its
	// last one lost, so that packets of one size take equally long. Otherwise the
	// next packet makes up for it, and lines carry what they say.
	Cut bool
	// Cores is on how many cores a run goes on at once, where ties are decided by
	// place; the bytes are the same on any number. Zero: one.
	Cores int
	// ClockStep sets the clocks of the switches apart: the n-th switch of the topology,
	// counted from 0, is n times this ahead.
	ClockStep time.Duration
	// CPU is the port of switches that leads to the controller; zero: 255.
	CPU int
}

// An ECN says when switches mark packets that are capable of it. A queue of
// fewer than Min bytes marks none, one of Max or more all, in between a share
// that rises to P. Min = Max is DCTCP's threshold K; zero values mark nothing.
type ECN struct {
	Min, Max fabric.Size
	P        float64
	// Dequeue decides when a packet leaves the queue, by what it leaves behind,
	// and not when it comes, by what it finds: the mark then tells of the queue as
	// it is, one queueing delay later than it would otherwise set out.
	Dequeue bool
}

// An Answers says how acknowledgments, Nacks and notices of congestion are
// treated: as any other packet where nothing is said.
type Answers struct {
	// Hashed lets them take the path of their flow's hash, whatever the scheme
	// does with data, and keeps the scheme from seeing them. It is for models.
	Hashed bool
	// First lets them pass what waits in queues, and in those of NICs. They are
	// then neither paused nor counted for pauses, and no queue's length has them.
	First bool
}

// A Hash is a way to make a path of the addresses and ports of a flow.
type Hash int

// The hashes.
const (
	HashCRC32 Hash = iota // as the programs do
	HashNS3               // MurmurHash3 as in ns-3's switches for RDMA: see ns3.go
)

// A Draws is a source of random numbers for models.
type Draws int

// The sources.
const (
	DrawsOwn Draws = iota // a stream for each switch
	DrawsNS3              // one for all switches, as the C library's in ns-3: see ns3.go; not with ties by place
)

// A PFC pauses the other end of a link when too much of what it has sent waits
// in the switch. With it, switches limit no queue, only the buffer.
type PFC struct {
	On bool
	// Pause is the bytes of an ingress port at which its peer is paused. If it
	// is zero, that is Alpha times what is free of the buffer, and without one
	// 256 KiB.
	Pause fabric.Size
	Alpha float64 // zero: 1/16
	// Resume is how far below that its peer goes on; zero: two packets.
	Resume fabric.Size
	// Headroom is the bytes that may still come after a pause; zero: what the
	// link brings in two delays, and two packets of both ends.
	Headroom fabric.Size
	// Promised: each of a port's eight queues has a packet of the buffer to itself,
	// by which marks do not go, and an ingress port two beside its share of what is
	// left.
	Promised bool
}

// A Virtual says how fast packets recirculate within a switch: through ports
// without interface. All share no rate: each has its own.
type Virtual struct {
	Rate    fabric.Rate   // zero: 100 Gbps
	Latency time.Duration // zero: 1 µs
}

func (o *Options) validate() error {
	if o.MTU < 0 || o.MTU > 0 && o.MTU < 128 || o.MTU > 9216 {
		return fmt.Errorf("an MTU of %d is outside 128..9216", o.MTU)
	}
	if o.Alpha < 0 || o.PFC.Alpha < 0 || o.ECN.P < 0 || o.ECN.P > 1 || o.ECN.Max < o.ECN.Min {
		return errors.New("a share or threshold of ECN, PFC or buffer makes no sense")
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

// queue is the limit of a queue whose share of a buffer is known, or 0.
func (o *Options) queue(share int) int {
	switch {
	case o.Queue > 0:
		return int(o.Queue)
	case share > 0:
		return share
	}
	return 64 * (o.MTU + ethernetLen)
}

// A Ties says what comes first of two events at the same time.
type Ties int

// The ways to decide.
const (
	ByPlan  Ties = iota // what was planned first
	ByPlace             // by where it was planned: for runs on several cores
)
