package sim

import "time"

// A uecSender is the sending half of an Ultra Ethernet connection. It numbers packets,
// and keeps a record of each packet that is not acknowledged. Every packet has a timer.
// A Nack, a timer or a gap puts a packet into the list of retransmissions, which go
// before new packets.
//
// Acknowledgments report the total number of bytes that have arrived. This total
// decreases inFlight. The packets that an acknowledgment names would not suffice,
// because it names only 64, and there are fewer acknowledgments than packets.
type uecSender struct {
	t *Tuning
	c *FlowStats
	w window

	credit *credit // credit of RCCC; nil: the window limits the sender

	size      int64
	packets   int64 // number of packets of the flow
	una       int64 // all packets below are acknowledged
	next      int64 // number of the next new packet
	records   []uecRecord
	sent      ring[uecSent] // transmissions in order of time
	again     int           // number of packets in the list of retransmissions
	againFrom int64         // no packet below is in the list of retransmissions
	inFlight  int64
	received  int64      // bytes received, as reported by the receiver
	recovery  *uecRepair // recovery from a gap; nil: none is active
}

// A uecRepair repeats packets that are missing before a gap.
type uecRepair struct {
	end      int64 // it ends when all packets below are acknowledged
	repeated int64 // packets below were repeated
}

// firstRecords is the number of records of a new sender. A collective may have a million flows of
// a few packets under way.
const firstRecords = 4

// A uecRecord is the state of a packet between una and next.
type uecRecord struct {
	at    time.Duration // time of the latest transmission
	tries int32
	state uecState
}

type uecState uint8

const (
	uecFlying uecState = iota
	uecAgain           // waits for retransmission
	uecArrived
)

// A uecSent is a transmission whose timer is running.
type uecSent struct {
	psn int64
	at  time.Duration
}

func newUECSender(t *Tuning, c *FlowStats, size int64) *uecSender {
	s := &uecSender{t: t, c: c, size: size, packets: (size-1)/int64(t.Segment) + 1, w: newWindow(t.law)}
	if t.UEC.Control == UECCredit {
		s.credit = &credit{most: max(s.w.most, s.w.packet), speculative: true}
		s.credit.bytes = s.credit.most
	}
	s.records = make([]uecRecord, firstRecords)
	return s
}

// inherit takes over the window of the connection's previous flow.
func (s *uecSender) inherit(from half) {
	if before, ok := from.(*uecSender); ok {
		s.w = before.w
	}
}

func (s *uecSender) record(psn int64) *uecRecord {
	return &s.records[psn&int64(len(s.records)-1)]
}

// wire returns the bytes of a packet on the wire.
func (s *uecSender) wire(psn int64) int64 {
	segment := int64(s.t.Segment)
	return min(segment, s.size-psn*segment) + int64(s.t.UEC.Headers)
}

// pick returns the next packet to send.
func (s *uecSender) pick() int64 {
	if s.again == 0 {
		return s.next
	}
	for s.record(s.againFrom).state != uecAgain {
		s.againFrom++
	}
	return s.againFrom
}

func (s *uecSender) ready(time.Duration) bool {
	if s.again == 0 && s.next == s.packets {
		return false
	}
	if s.credit != nil {
		return s.credit.bytes > 0
	}
	return s.again > 0 && s.recovery != nil || s.w.size >= s.inFlight+s.wire(s.pick())
}

func (s *uecSender) emit(now time.Duration, p *Packet) {
	psn := s.pick()
	fresh := psn == s.next && s.again == 0
	if fresh {
		s.open()
	} else {
		s.again--
		s.c.Retransmitted++
	}
	r := s.record(psn)
	*r = uecRecord{at: now, tries: r.tries + 1, state: uecFlying}
	s.sent.push(uecSent{psn, now})
	wire, segment, headers := s.wire(psn), int64(s.t.Segment), int64(s.t.UEC.Headers)
	s.inFlight += wire
	p.Seq, p.Payload, p.ECT, p.Stamp = psn*segment, int(wire-headers), true, now
	p.padding = int32(headers - UDPHeaders)
	p.Number = int64(r.tries - 1)
	p.Last = psn == s.packets-1
	p.Echo = !fresh || s.next == s.packets || s.inFlight+wire >= s.w.size
	if c := s.credit; c != nil {
		c.bytes -= wire
		rest := max(0, s.size-s.next*segment) + (s.packets-s.next)*headers
		p.Ack = c.ask(rest+int64(s.again)*s.w.packet, rest, s.w.packet)
		p.Echo = !fresh || s.next == s.packets || c.bytes <= 0
	}
	s.c.Sent++
}

// open adds a record for a new packet.
func (s *uecSender) open() {
	if n := int64(len(s.records)); s.next-s.una == n {
		old := s.records
		s.records = make([]uecRecord, 2*n)
		for psn := s.una; psn < s.next; psn++ {
			*s.record(psn) = old[psn&(n-1)]
		}
	}
	*s.record(s.next) = uecRecord{}
	s.next++
}

// deadline returns when the oldest packet in flight times out.
func (s *uecSender) deadline() time.Duration {
	for s.sent.n > 0 {
		x := s.sent.first()
		if x.psn >= s.una {
			if r := s.record(x.psn); r.state == uecFlying && r.at == x.at {
				return x.at + s.t.MinRTO
			}
		}
		s.sent.pop()
	}
	return never
}

func (s *uecSender) tick(now time.Duration) {
	for s.deadline() <= now {
		psn := s.sent.pop().psn
		s.c.Timeouts++
		s.w.lost(s.wire(psn))
		if s.credit != nil { // without credit one packet may be sent, to request more
			s.credit.answered()
			s.credit.bytes = max(s.credit.bytes, 1)
		}
		s.repeat(psn)
	}
}

// repeat adds a packet in flight to the list of retransmissions.
func (s *uecSender) repeat(psn int64) {
	s.record(psn).state = uecAgain
	s.inFlight -= s.wire(psn)
	if s.again == 0 || psn < s.againFrom {
		s.againFrom = psn
	}
	s.again++
}

func (s *uecSender) receive(now time.Duration, a *Packet) {
	if s.credit != nil {
		s.credit.answered()
		if a.Kind == grant {
			s.credit.grant(a.Ack)
			return
		}
	}
	rtt := now - a.Stamp
	s.w.fastest(rtt)
	if a.Kind == nack {
		s.nacked(now, a)
		return
	}
	report := a.report()
	fresh := max(0, report.received-s.received)
	s.received += fresh
	s.inFlight -= fresh
	for psn := s.una; psn < a.Ack; psn++ {
		s.arrived(psn)
	}
	s.una = max(s.una, a.Ack)
	for i := range int64(uecBitmap) {
		if psn := report.base + i; report.bitmap>>i&1 != 0 && psn >= s.una && psn < s.next {
			s.arrived(psn)
		}
	}
	s.w.acked(now, a.Echo, rtt, fresh, s.inFlight)
	if s.t.UEC.Loss == uecGap {
		s.gap(report.early)
	}
	if s.una == s.packets && s.c.Acknowledged == 0 {
		s.c.Acknowledged = now
	}
}

// arrived records the arrival of a packet. If the packet was waiting for
// retransmission, its bytes were subtracted from inFlight twice: when it was
// listed, and with the receiver's total.
func (s *uecSender) arrived(psn int64) {
	r := s.record(psn)
	if r.state == uecAgain {
		s.again--
		s.inFlight += s.wire(psn)
	}
	r.state = uecArrived
}

// nacked handles a Nack for a trimmed packet.
func (s *uecSender) nacked(now time.Duration, a *Packet) {
	psn := a.Seq
	if psn < s.una || psn >= s.next {
		return
	}
	if r := s.record(psn); r.state != uecFlying || int64(r.tries) != a.Number+1 {
		return // acknowledged meanwhile, or its timer has already expired
	}
	s.c.Nacks++
	s.w.nacked(now, s.wire(psn), s.inFlight)
	s.repeat(psn)
}

// gap repeats packets that were sent before many packets that have arrived, each packet once per
// recovery. uet-htsim's SLEEK detects losses this way.
func (s *uecSender) gap(early int64) {
	r := s.recovery
	if r != nil && s.una >= r.end {
		r = nil
	}
	segment := int64(s.t.Segment)
	most := max(min(s.w.size*3/2, s.w.most), 5*segment) / segment
	if r == nil && early >= most && s.again == 0 {
		r = &uecRepair{end: s.next, repeated: s.una}
		s.c.Recoveries++
	}
	if s.recovery = r; r == nil {
		return
	}
	for psn := max(s.una, r.repeated); psn < min(r.end, s.una+s.w.size/segment); psn++ {
		if s.record(psn).state == uecFlying {
			s.repeat(psn)
		}
		r.repeated = psn + 1
	}
}
