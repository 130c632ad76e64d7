package sim

import (
	"errors"
	"fmt"
	"time"
)

// A Tuning is the parameters of a transport. Those that are zero are as stated.
type Tuning struct {
	Segment int // bytes of payload in a full packet; zero: what the MTU has room for

	// TCP and DCTCP; the timeouts are DCQCN's as well.
	Window     int           // segments of the initial window; zero: 10
	MaxWindow  int64         // bytes that the receiver lets be outstanding; zero: no limit
	DupAcks    int           // duplicate acknowledgments that tell of a loss; zero: 3
	MaxDupAcks int           // as far as that rises where packets are reordered, as in Linux, whose limit is 300; zero: it stays
	MinRTO     time.Duration // the least retransmission timeout; zero: 10 ms
	FirstRTO   time.Duration // before there is a measurement; zero: three times MinRTO
	MaxRTO     time.Duration // zero: 60 s
	DelayedAck time.Duration // acknowledge every other packet, or after this; zero: every packet at once
	AtOnce     bool          // what the window lets go waits in the NIC, behind that of other flows: the flows of a host do not take turns
	NewReno    bool          // without SACK: a round trip repairs one loss

	Gain          float64 // DCTCP's g; zero: 1/16
	AlphaFromZero bool    // DCTCP's alpha begins at 0, not at 1
	CutEachWindow bool    // DCTCP cuts by alpha as each window of data ends, marked or not, instead of at a mark

	RDMA RDMA

	// Poisson makes UDP packets come at random, at the same average rate.
	Poisson bool
}

// An RDMA is the parameters of DCQCN's reaction point, notification point and
// go-back-N.
type RDMA struct {
	Gain          float64       // g; zero: 1/256
	AlphaInterval time.Duration // between updates of alpha; zero: 1 µs
	CutInterval   time.Duration // between reductions; zero: 4 µs
	RaiseInterval time.Duration // the rate timer; zero: 300 µs
	RaiseBytes    int64         // the byte counter; zero: none
	Recovery      int           // raises that halve the way to the target; zero: 1
	Additive      int64         // R_AI, bit/s; zero: 10/25 Mb/s for each Gb/s of the NIC
	Hyper         int64         // R_HAI, bit/s; zero: 25/25 Mb/s for each Gb/s of the NIC
	MinRate       int64         // bit/s; zero: 100 Mb/s, or a tenth of a NIC below 1 Gb/s
	NoticeEvery   time.Duration // between congestion notifications of a flow at least; zero, and up to AlphaInterval: one for each marked packet
	NackEvery     time.Duration // between Nacks for the same packet; zero: 4 µs
	AckEvery      int           // packets to an acknowledgment; zero: 1
	Window        int64         // bytes outstanding at most; zero: no limit
	Nack          NackPolicy    // what both ends do about packets that come early
	NackNotice    bool          // a Nack is a notice of congestion as well
}

// A NackPolicy is what an RDMA receiver does with packets that come before the one
// it expects, and what its sender does about a Nack.
type NackPolicy int

// The policies. The first two throw early packets away, the others keep them.
const (
	GoBackOnAny      NackPolicy = iota // whatever has been acknowledged since the Nack left
	GoBackOnExpected                   // if it is of the first byte that is not acknowledged: for networks that keep control packets in order
	Selective                          // IRN: repeat what is missing
	KeepEarly                          // no Nacks: for networks that reorder and do not lose
)

// keeps reports whether early packets are kept.
func (p NackPolicy) keeps() bool { return p >= Selective }

// The transports' usual parameters.
const (
	usualWindow  = 10
	usualDupAcks = 3
	usualMinRTO  = 10 * time.Millisecond
	usualMaxRTO  = time.Minute
)

// tuned returns the parameters with zero values filled in, for a NIC of some
// bit/s and packets with so much room for payload.
func (t *Tuning) tuned(rate int64, room int) (Tuning, error) {
	var u Tuning
	if t != nil {
		u = *t
	}
	if err := u.validate(room); err != nil {
		return u, err
	}
	fill(&u.Segment, room)
	fill(&u.Window, usualWindow)
	fill(&u.MaxWindow, never64)
	fill(&u.DupAcks, usualDupAcks)
	fill(&u.MinRTO, usualMinRTO)
	fill(&u.FirstRTO, 3*u.MinRTO)
	fill(&u.MaxRTO, max(usualMaxRTO, u.MinRTO))
	fill(&u.Gain, 1.0/16)
	u.RDMA.tune(rate)
	return u, nil
}

func (d *RDMA) tune(rate int64) {
	fill(&d.Gain, 1.0/256)
	fill(&d.AlphaInterval, time.Microsecond)
	fill(&d.CutInterval, 4*time.Microsecond)
	fill(&d.RaiseInterval, 300*time.Microsecond)
	fill(&d.RaiseBytes, never64)
	fill(&d.Recovery, 1)
	fill(&d.Additive, max(1, rate/1000*10/25))
	fill(&d.Hyper, max(1, rate/1000*25/25))
	fill(&d.MinRate, min(100_000_000, max(1, rate/10)))
	if d.NoticeEvery <= d.AlphaInterval {
		// The sender takes one for each of its intervals anyway. With a limit of
		// its own, the gaps between packets on top, some would pass without any.
		d.NoticeEvery = 0
	}
	fill(&d.NackEvery, 4*time.Microsecond)
	fill(&d.AckEvery, 1)
	fill(&d.Window, never64)
}

// fill gives a parameter its usual value if it is zero.
func fill[T comparable](p *T, usual T) {
	var zero T
	if *p == zero {
		*p = usual
	}
}

func (t *Tuning) validate(room int) error {
	d := &t.RDMA
	for _, v := range []int64{
		int64(t.Segment), int64(t.Window), t.MaxWindow, int64(t.DupAcks), int64(t.MaxDupAcks), int64(t.MinRTO), int64(t.FirstRTO),
		int64(t.MaxRTO), int64(t.DelayedAck), int64(d.AlphaInterval), int64(d.CutInterval), int64(d.RaiseInterval),
		d.RaiseBytes, int64(d.Recovery), d.Additive, d.Hyper, d.MinRate, int64(d.NoticeEvery), int64(d.NackEvery),
		int64(d.AckEvery), d.Window,
	} {
		if v < 0 {
			return fmt.Errorf("a transport's parameter of %d: want 0 or more", v)
		}
	}
	switch {
	case t.Segment > room:
		return fmt.Errorf("segments of %d bytes: the MTU has room for %d", t.Segment, room)
	case t.Gain < 0 || t.Gain > 1 || d.Gain < 0 || d.Gain > 1:
		return errors.New("a transport's gain is outside 0..1")
	}
	return nil
}

// never64 is more bytes than any flow has.
const never64 = int64(never)
