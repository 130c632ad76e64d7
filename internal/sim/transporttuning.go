package sim

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Tuning is the parameters of a transport. Zero values have the stated defaults.
type Tuning struct {
	Segment int // payload of a full packet in bytes; zero: as much as the MTU allows

	// For TCP and DCTCP. DCQCN also uses the timeouts.
	Window     int           // initial window in segments; zero: 10
	MaxWindow  int64         // receive window in bytes; zero: no limit
	DupAcks    int           // duplicate acknowledgments that indicate a loss; zero: 3
	MaxDupAcks int           // limit for raising DupAcks after reordering (Linux: 300); zero: it stays fixed
	MinRTO     time.Duration // smallest retransmission timeout; zero: 10 ms
	FirstRTO   time.Duration // retransmission timeout before the first measurement; zero: three times MinRTO
	MaxRTO     time.Duration // largest retransmission timeout; zero: 60 s
	DelayedAck time.Duration // acknowledge every second packet, or after this delay; zero: every packet at once
	AtOnce     bool          // pass segments to the NIC as soon as the window allows: the flows of a host do not take turns
	NewReno    bool          // no SACK: each round trip repairs one loss

	Gain          float64 // DCTCP's g; zero: 1/16
	AlphaFromZero bool    // start DCTCP's alpha at 0 instead of 1
	CutEachWindow bool    // DCTCP reduces the window by alpha at the end of each window of data, marked or not, instead of at a mark

	RDMA RDMA
	UEC  UEC

	Entropy Entropy // how the source port of each packet is chosen
	Paths   int     // number of source ports of a flow; zero: 256, or 1 with EntropyFlow

	// Poisson sends UDP packets at random intervals, at the same average rate.
	Poisson bool

	law *windowLaw // Ultra Ethernet: derived from the other parameters and the NIC's rate
}

// An RDMA holds the parameters of DCQCN's reaction point and notification point, and of
// go-back-N.
type RDMA struct {
	Gain          float64       // g; zero: 1/256
	AlphaInterval time.Duration // interval between updates of alpha; zero: 1 µs
	CutInterval   time.Duration // interval between reductions; zero: 4 µs
	RaiseInterval time.Duration // period of the rate timer; zero: 300 µs
	RaiseBytes    int64         // period of the byte counter; zero: none
	Recovery      int           // number of increases that halve the distance to the target; zero: 1
	Additive      int64         // R_AI, bit/s; zero: 10/25 Mb/s for each Gb/s of the NIC
	Hyper         int64         // R_HAI, bit/s; zero: 25/25 Mb/s for each Gb/s of the NIC
	MinRate       int64         // smallest rate in bit/s; zero: 100 Mb/s, or a tenth of a NIC below 1 Gb/s
	NoticeEvery   time.Duration // least interval between congestion notifications of a flow; zero, and up to AlphaInterval: one for each marked packet
	NackEvery     time.Duration // interval between Nacks for the same packet; zero: 4 µs
	AckEvery      int           // packets per acknowledgment; zero: 1
	Window        int64         // most bytes outstanding; zero: no limit
	Headers       int           // header bytes of a data packet; zero: UDPHeaders. Switches see the excess as payload
	Answer        int           // length of an ACK, Nack or notification; zero: UDPHeaders
	BTH           bool          // switches see RoCEv2 headers after UDP, with port 4791
	Reordering    time.Duration // Patient: how long a missing packet counts as late before it counts as lost; zero: BaseRTT
	BaseRTT       time.Duration // Patient: base round-trip time; zero: computed for the network's longest shortest path
	Nack          NackPolicy    // how both ends handle packets that arrive early
	NackNotice    bool          // a Nack is also a congestion notification
	Answered      bool          // send notifications only in an ACK or Nack
	RepeatAll     bool          // Selective: a Nack repeats all packets in flight, not only the missing ones below the last arrival
}

// A UEC is the parameters of the Ultra Ethernet transport. Zero values have the stated
// defaults.
type UEC struct {
	Control  UECControl    // how the window is controlled
	Loss     UECLoss       // how a sender detects losses, besides its timer
	BaseRTT  time.Duration // round-trip time without queueing; zero: computed for the network's longest shortest path
	Target   time.Duration // NSCC's target for the queueing delay; zero: BaseRTT, or 3/4 of it with UECTrim
	AckBytes int64         // received bytes per acknowledgment; zero: 16 KiB
	Headers  int           // header bytes of a packet; zero: 64
	Answer   int           // length of an acknowledgment; zero: 64

	// Oversubscription is the ratio of the hosts' rates to the rates of the links that they share.
	// Above 1, receivers that grant credit reduce its rate by marks and trims, to 0.9 of
	// a fair share at least.
	Oversubscription float64

	window int // Tuning.Window; zero: one and a half times the bytes of a BaseRTT
}

// A windowLaw holds the constants of a window, which flows with the same parameters share.
type windowLaw struct {
	control UECControl
	line    float64 // line rate in bytes per ns
	packet  int64   // largest packet on the wire in bytes
	least   int64   // smallest window in bytes
	first   int64   // initial window in bytes; 0: the largest

	target    time.Duration // target_qdelay
	network   time.Duration // the base RTT of the longest path
	alpha     float64       // factor of the proportional increase
	fair, eta float64
	fast      float64 // fi_scale
}

// A UECControl selects how the window adapts to the network.
type UECControl int

// The window controls.
const (
	nsccControl UECControl = iota // by queueing delay and marks (UE specification 1.0)
	perMark                       // uet-htsim's dctcp: grow by a packet per unmarked window, shrink by a third of the marked bytes
	constantWnd                   // keep the initial window
	UECCredit                     // no window: receivers grant credit
)

// A UECLoss selects how a sender detects losses. All packets also have a timer.
type UECLoss int

// The methods of loss detection.
const (
	UECTrim    UECLoss = iota // switches trim packets, and receivers return Nacks for them
	uecTimeout                // by the timer alone
	uecGap                    // by more than one and a half windows of packets that arrived out of order
)

var (
	uecControls = [...]string{"nscc", "per-mark", "constant", "rccc"}
	uecLosses   = [...]string{"trim", "timeout", "gap"}
)

// UECControls lists the controls by name.
func UECControls() []string { return uecControls[:] }

// UECLosses lists the methods of loss detection by name.
func UECLosses() []string { return uecLosses[:] }

// UECHeaders is the usual number of header bytes of an Ultra Ethernet packet, and the usual
// length of an acknowledgment.
const UECHeaders = 64

const uecAckBytes = 16 << 10

// MostOversubscription limits UEC.Oversubscription.
const MostOversubscription = 90

// tune replaces zero values by the defaults.
func (u *UEC) tune() {
	fill(&u.AckBytes, uecAckBytes)
	fill(&u.Headers, UECHeaders)
	fill(&u.Answer, UECHeaders)
}

func (u *UEC) validate() error {
	switch {
	case u.Control < 0 || int(u.Control) >= len(uecControls) || u.Loss < 0 || int(u.Loss) >= len(uecLosses):
		return fmt.Errorf("uec: control %d, loss %d: want below %d and %d", u.Control, u.Loss, len(uecControls), len(uecLosses))
	case u.Oversubscription != 0 && !(u.Oversubscription >= 1 && u.Oversubscription <= MostOversubscription):
		return fmt.Errorf("uec: oversubscription %g: want 1 to %d", u.Oversubscription, MostOversubscription)
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

// The policies. With the first two the receiver drops early packets, with the others it keeps
// them.
const (
	GoBackOnAny      NackPolicy = iota // go back at every Nack, even if later bytes are acknowledged
	GoBackOnExpected                   // go back if the Nack names the first unacknowledged byte: for networks that keep control packets in order
	Selective                          // IRN: repeat only the missing packets
	KeepEarly                          // no Nacks: for networks that reorder packets but lose none
	Patient                            // IRN with a window of one BaseRTT and short timeouts: repeat packets that are missing for longer than Reordering
)

// keeps reports whether early packets are kept.
func (p NackPolicy) keeps() bool { return p >= Selective }

// The default parameters of the transports.
const (
	usualWindow  = 10
	usualDupAcks = 3
	usualMinRTO  = 10 * time.Millisecond
	usualMaxRTO  = time.Minute
	usualPaths   = 256
)

// tuned returns the parameters with zero values replaced. rate is the NIC's rate in bit/s, and
// room the largest payload of a packet.
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
		// The sender handles at most one notification per interval anyway. A limit at the
		// receiver would add the gaps between packets, so that some intervals would see none.
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

// fill sets a parameter to its default if it is zero.
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

// MostHeaders is the largest number of header bytes of an RDMA packet.
const MostHeaders = 128

// never64 exceeds the length of every flow.
const never64 = int64(never)

// A Transport selects the transport protocol of a flow.
type Transport int

// The transport protocols.
const (
	UDP           Transport = iota // fixed rate, no retransmissions
	TCP                            // NewReno with SACK
	DCTCP                          // TCP that measures congestion by ECN
	DCQCN                          // RDMA paced by congestion notifications, with go-back-N
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

// protocol returns the IP protocol number.
func (t Transport) protocol() uint8 {
	if t == TCP || t == DCTCP {
		return protocolTCP
	}
	return protocolUDP
}

// FlowStats holds the times and counters of a flow. The sender writes the fields before
// OutOfOrder, and the receiver writes OutOfOrder and the fields after it. The fields of each
// packet are at the two ends, so that two cores share no cache line.
type FlowStats struct {
	Started time.Duration

	// Acknowledged is the time at which the sender received the last acknowledgment; 0: not yet.
	// A flow that is measured to this time takes at least one round trip, which definitions of
	// slowdown assume.
	Acknowledged time.Duration

	Sent          int64 // data packets
	Retransmitted int64 // packets of Sent that repeat earlier bytes
	Recoveries    int64 // times that duplicate acknowledgments or a Nack caused retransmissions
	Timeouts      int64

	// DupAcks counts acknowledgments that acknowledge nothing while bytes are outstanding. DupRun
	// is the largest number of such acknowledgments in a row.
	DupAcks, DupRun int64
	Nacks           int64 // DCQCN, UEC: Nacks received
	Notices         int64 // DCQCN: acknowledgments and notifications that report congestion

	// OutOfOrder counts packets that arrived before an earlier one. A packet's distance is the
	// number of packets by which it was ahead of the expected one. Degree is the largest distance
	// (RLB's out-of-order degree), and Degrees the sum of all distances.
	OutOfOrder, Degree, Degrees int64
	// Overtaken counts packets that arrived after one sent later, and were not
	// sent again: reordering by the network, regardless of losses (RFC 4737).
	Overtaken  int64
	Duplicates int64 // packets without any new byte
	Marked     int64 // packets that arrived with CE
	Trimmed    int64 // packets that arrived without their payload
	Received   int64 // bytes that have arrived, in order or not, once each

	Finished time.Duration // when the last byte arrived (or was lost with UDP); 0: not yet
}

// early counts a packet that arrived ahead of the expected one by some bytes.
func (s *FlowStats) early(ahead, segment int64) {
	degree := (ahead + segment - 1) / segment
	s.OutOfOrder++
	s.Degrees += degree
	s.Degree = max(s.Degree, degree)
}

// Tunings caches the parameters of all flows of a network, of which few differ.
type tunings struct {
	mu   sync.Mutex
	made map[tuningKey]*Tuning
}

type tuningKey struct {
	kind  Transport
	given Tuning
	none  bool // the flow sets no parameters
	rate  int64
}
