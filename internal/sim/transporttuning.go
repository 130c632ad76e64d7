package sim

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Tuning is the parameters of a transport. Zero values have the stated defaults.
type Tuning struct {
	Segment int // bytes of payload in a full packet; zero: as many as the MTU allows

	// TCP and DCTCP; the timeouts are DCQCN's as well.
	Window     int           // segments of the initial window; zero: 10
	MaxWindow  int64         // bytes that the receiver lets be outstanding; zero: no limit
	DupAcks    int           // duplicate acknowledgments that indicate a loss; zero: 3
	MaxDupAcks int           // the limit to which DupAcks rises with reordering, in Linux 300; zero: it does not rise
	MinRTO     time.Duration // the least retransmission timeout; zero: 10 ms
	FirstRTO   time.Duration // before there is a measurement; zero: three times MinRTO
	MaxRTO     time.Duration // zero: 60 s
	DelayedAck time.Duration // acknowledge every other packet, or after this; zero: every packet at once
	AtOnce     bool          // segments wait in the NIC in the order in which the window allows them: the flows of a host do not take turns
	NewReno    bool          // without SACK: a round trip repairs one loss

	Gain          float64 // DCTCP's g; zero: 1/16
	AlphaFromZero bool    // DCTCP's alpha begins at 0, not at 1
	CutEachWindow bool    // DCTCP cuts by alpha as each window of data ends, marked or not, instead of at a mark

	RDMA RDMA
	UEC  UEC

	Entropy Entropy // how the source port of each packet is chosen
	Paths   int     // source ports of a flow; zero: 256, or 1 with EntropyFlow

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
	Headers       int           // bytes of a packet of data beside its payload; zero: UDPHeaders. Switches see the excess as payload
	Answer        int           // bytes of an ACK, Nack or notification; zero: UDPHeaders
	BTH           bool          // switches see RoCEv2 behind UDP, with port 4791
	Reordering    time.Duration // how long Patient takes a missing packet for a late one; zero: BaseRTT
	BaseRTT       time.Duration // of Patient; zero: on the longest shortest path of the network
	Nack          NackPolicy    // what both ends do about packets that come early
	NackNotice    bool          // a Nack is a notice of congestion as well
	Answered      bool          // no notice of a mark goes without an ACK or Nack
	RepeatAll     bool          // with Selective: a Nack repeats all packets in flight, not only the missing ones below the last arrival
}

// A UEC is the parameters of the Ultra Ethernet transport. Zero values have the stated
// defaults.
type UEC struct {
	Control  UECControl    // of the window
	Loss     UECLoss       // how a sender detects losses beside its timer
	BaseRTT  time.Duration // of the network without queues; zero: on its longest shortest path
	Target   time.Duration // NSCC's target for the queueing delay; zero: BaseRTT, or 3/4 of it with UECTrim
	AckBytes int64         // received bytes to an acknowledgment; zero: 16 KiB
	Headers  int           // bytes of a packet beside its payload; zero: 64
	Answer   int           // bytes of an acknowledgment; zero: 64

	window int // Tuning.Window; zero: one and a half times the bytes of a BaseRTT
}

// A UECControl is how the window follows the network.
type UECControl int

// The controls.
const (
	NSCC        UECControl = iota // by queueing delay and marks (UE specification 1.0)
	perMark                       // a packet more per unmarked window, a third of the marked bytes less: uet-htsim's dctcp
	constantWnd                   // the initial window stays
	rccc                          // no window, but credit that receivers grant
)

// A UECLoss is how a sender detects losses. All have a timer for each packet.
type UECLoss int

// The ways.
const (
	UECTrim    UECLoss = iota // switches trim packets, and receivers return Nacks for them
	uecTimeout                // by the timer alone
	uecGap                    // by packets that arrived out of order: more than a window and a half
)

var (
	uecControls = [...]string{"nscc", "per-mark", "constant", "rccc"}
	uecLosses   = [...]string{"trim", "timeout", "gap"}
)

// UECControls lists the controls by name.
func UECControls() []string { return uecControls[:] }

// UECLosses lists the ways to detect losses by name.
func UECLosses() []string { return uecLosses[:] }

// UECHeaders is the usual length of an Ultra Ethernet packet beside its payload, and of an
// acknowledgment.
const UECHeaders = 64

const uecAckBytes = 16 << 10

// tune fills in zero values.
func (u *UEC) tune() {
	fill(&u.AckBytes, uecAckBytes)
	fill(&u.Headers, UECHeaders)
	fill(&u.Answer, UECHeaders)
}

func (u *UEC) validate() error {
	switch {
	case u.Control < 0 || int(u.Control) >= len(uecControls) || u.Loss < 0 || int(u.Loss) >= len(uecLosses):
		return fmt.Errorf("uec: control %d, loss %d: want below %d and %d", u.Control, u.Loss, len(uecControls), len(uecLosses))
	case u.BaseRTT < 0 || u.Target < 0 || u.AckBytes < 0:
		return errors.New("uec: a negative time or size")
	case u.Headers != 0 && (u.Headers < UDPHeaders || u.Headers > MostHeaders) || u.Answer != 0 && (u.Answer < UDPHeaders || u.Answer > MostHeaders):
		return fmt.Errorf("uec: headers of %d bytes, answers of %d: want %d to %d", u.Headers, u.Answer, UDPHeaders, MostHeaders)
	}
	return nil
}

// A NackPolicy is how an RDMA receiver treats early packets and how its sender treats a
// Nack.
type NackPolicy int

// The policies. The first two throw early packets away, the others keep them.
const (
	GoBackOnAny      NackPolicy = iota // whatever has been acknowledged since the Nack left
	GoBackOnExpected                   // if it is of the first byte that is not acknowledged: for networks that keep control packets in order
	Selective                          // IRN: repeat the missing packets
	KeepEarly                          // no Nacks: for networks that reorder and do not lose
	Patient                            // IRN with a window of a BaseRTT and short timeouts: repeat packets that are missing for longer than Reordering
)

// keeps reports whether early packets are kept.
func (p NackPolicy) keeps() bool { return p >= Selective }

// The transports' usual parameters.
const (
	usualWindow  = 10
	usualDupAcks = 3
	usualMinRTO  = 10 * time.Millisecond
	usualMaxRTO  = time.Minute
	usualPaths   = 256
)

// tuned returns the parameters with zero values filled in, for a NIC of some
// bit/s and packets with so much room for payload.
func (t *Tuning) tuned(rate int64, room int) (Tuning, error) {
	var u Tuning
	if t != nil {
		u = *t
	}
	if u.Entropy != EntropyFlow {
		fill(&u.Paths, usualPaths)
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
	u.UEC.tune()
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
	if d.BTH {
		fill(&d.Headers, RoCEHeaders)
		fill(&d.Answer, RoCEAnswer)
	}
	fill(&d.Headers, UDPHeaders)
	fill(&d.Answer, UDPHeaders)
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
	case d.BTH && (d.Headers > 0 && d.Headers < RoCEHeaders || d.Answer > 0 && d.Answer < RoCEAnswer):
		return fmt.Errorf("bth with headers of %d bytes and answers of %d: want at least %d and %d", d.Headers, d.Answer, RoCEHeaders, RoCEAnswer)
	case d.Headers > 0 && d.Headers < UDPHeaders || d.Answer > 0 && d.Answer < UDPHeaders || d.Headers > MostHeaders || d.Answer > MostHeaders:
		return fmt.Errorf("headers of %d bytes, answers of %d: want %d to %d", d.Headers, d.Answer, UDPHeaders, MostHeaders)
	case t.Gain < 0 || t.Gain > 1 || d.Gain < 0 || d.Gain > 1:
		return errors.New("a transport's gain is outside 0..1")
	}
	if err := t.UEC.validate(); err != nil {
		return err
	}
	return t.checkEntropy()
}

// MostHeaders is how many bytes an RDMA packet may have beside its payload.
const MostHeaders = 128

// never64 is more bytes than any flow has.
const never64 = int64(never)

// A Transport is how a flow is sent.
type Transport int

// The transports.
const (
	UDP           Transport = iota // at a given rate; nothing is repeated
	TCP                            // NewReno with SACK
	DCTCP                          // the same, and ECN to measure congestion by
	DCQCN                          // paced by congestion notifications; go-back-N
	UltraEthernet                  // Ultra Ethernet: NSCC, selective acknowledgments, Nacks for trimmed packets
)

var transportNames = [...]string{"udp", "tcp", "dctcp", "dcqcn", "uec"}

func (t Transport) String() string {
	if t < 0 || int(t) >= len(transportNames) {
		return fmt.Sprintf("transport %d", int(t))
	}
	return transportNames[t]
}

// ParseTransport finds a transport by its name.
func ParseTransport(name string) (Transport, error) {
	for i, n := range transportNames {
		if n == name {
			return Transport(i), nil
		}
	}
	return 0, fmt.Errorf("there is no transport %q: want udp, tcp, dctcp, dcqcn or uec", name)
}

// protocol is the number that IP knows the transport by.
func (t Transport) protocol() uint8 {
	if t == TCP || t == DCTCP {
		return protocolTCP
	}
	return protocolUDP
}

// FlowStats are the times of a flow and the counters of its transports. The sender writes
// the fields before OutOfOrder, and the receiver writes OutOfOrder and the fields after it.
// The fields of each packet are at the two ends, so that two cores share no cache line.
type FlowStats struct {
	Started time.Duration

	// Acknowledged is when the sender knew that all has arrived; 0: not yet.
	// With it a flow takes at least a round trip, as definitions of slowdown
	// have it.
	Acknowledged time.Duration

	Sent          int64 // packets with data
	Retransmitted int64 // packets of Sent with bytes that were sent before
	Recoveries    int64 // times that duplicate acknowledgments or a Nack had packets sent again
	Timeouts      int64

	// DupAcks counts the acknowledgments that acknowledge nothing while
	// something is outstanding; DupRun is the longest row of them.
	DupAcks, DupRun int64
	Nacks           int64 // DCQCN, UEC: received
	Notices         int64 // DCQCN: acknowledgments that report congestion

	// OutOfOrder counts packets that arrived before one that should come
	// first, and Degree is the distance of the farthest: by how many packets
	// it was ahead of the one expected, as RLB's out-of-order degree. Degrees
	// is the sum of the distances.
	OutOfOrder, Degree, Degrees int64
	// Overtaken counts packets that arrived after one sent later, and were not
	// sent again: reordering by the network, regardless of losses (RFC 4737).
	Overtaken  int64
	Duplicates int64 // packets that brought no new byte
	Marked     int64 // packets that arrived with CE
	Trimmed    int64 // packets that arrived without their payload
	Received   int64 // bytes that have arrived, in order or not, once each

	Finished time.Duration // when the last byte arrived, or was lost with UDP; 0: not yet
}

// early counts a packet that is ahead of the next one expected by some bytes.
func (s *FlowStats) early(ahead, segment int64) {
	degree := (ahead + segment - 1) / segment
	s.OutOfOrder++
	s.Degrees += degree
	s.Degree = max(s.Degree, degree)
}

// Tunings are the tunings of all flows of a network, which are few.
type tunings struct {
	mu   sync.Mutex
	made map[tuningKey]*Tuning
}

type tuningKey struct {
	kind  Transport
	given Tuning
	none  bool // nothing is given
	rate  int64
}
