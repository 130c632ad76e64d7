package sim

import "time"

// uecBitmap is the number of packets that an acknowledgment names in addition to the cumulative
// number.
const uecBitmap = 64

// A uecReport is the part of an acknowledgment besides the cumulative number: a bitmap of packets
// from base on, the bytes that have arrived, and the number of early packets.
type uecReport struct {
	base     int64
	bitmap   uint64
	received int64
	early    int64
}

// report and setReport store the report in the fields of TCP's SACK, which Ultra Ethernet does
// not use.
func (p *Packet) report() uecReport {
	return uecReport{p.Sacks[0].From, uint64(p.Sacks[0].To), p.Sacks[1].From, p.Sacks[1].To}
}

func (p *Packet) setReport(r uecReport) {
	p.Sacks[0] = Range{r.base, int64(r.bitmap)}
	p.Sacks[1] = Range{r.received, r.early}
}

// A uecReceiver is the receiving half of an Ultra Ethernet connection. It acknowledges every
// AckBytes bytes. It acknowledges some packets at once: the first, marked packets, copies, and
// those that request it. It returns a Nack for a trimmed packet.
type uecReceiver struct {
	t *Tuning
	c *FlowStats

	expected int64    // all packets below have arrived
	highest  int64    // first byte of the highest packet
	held     []uint64 // ring of bits: packets from expected on that have arrived
	early    int64    // number of set bits in held
	received int64    // bytes on the wire
	unacked  int64    // bytes since the last acknowledgment
	asked    bool     // send an acknowledgment as soon as no packet is early

	due    Kind // kind of the pending answer; data: none
	answer uecAnswer
}

// firstHeld is the number of words of held after the first early packet.
const firstHeld = 2

// A uecAnswer is the contents of the next answer.
type uecAnswer struct {
	psn     int64
	number  int64 // number of earlier transmissions
	stamp   time.Duration
	marked  bool
	exact   bool // the bitmap begins at psn
	trimmed trimming
}

func newUECReceiver(t *Tuning, c *FlowStats) *uecReceiver {
	return &uecReceiver{t: t, c: c}
}

func (r *uecReceiver) ready(time.Duration) bool { return r.due != data }
func (r *uecReceiver) deadline() time.Duration  { return never }
func (r *uecReceiver) tick(time.Duration)       {}

func (r *uecReceiver) has(psn int64) bool {
	if psn < r.expected || psn-r.expected >= int64(64*len(r.held)) {
		return psn < r.expected
	}
	return r.held[psn>>6&int64(len(r.held)-1)]>>(psn&63)&1 != 0
}

// flip sets or clears the bit of a packet.
func (r *uecReceiver) flip(psn int64) {
	for psn-r.expected >= int64(64*(len(r.held)-1)) {
		old := r.held
		r.held = make([]uint64, max(firstHeld, 2*len(old)))
		for i := range int64(len(old)) {
			word := r.expected>>6 + i
			r.held[word&int64(len(r.held)-1)] = old[word&int64(len(old)-1)]
		}
	}
	r.held[psn>>6&int64(len(r.held)-1)] ^= 1 << (psn & 63)
}

func (r *uecReceiver) receive(_ time.Duration, p *Packet) {
	psn := p.Seq / int64(r.t.Segment)
	r.answer = uecAnswer{psn: psn, number: p.Number, stamp: p.Stamp, marked: p.CE, trimmed: p.Trimmed}
	known := r.has(psn)
	if p.Trimmed != notTrimmed {
		r.c.Trimmed++
		r.due = nack
		if known {
			r.due, r.answer.marked = Ack, false
		}
		return
	}
	if p.CE {
		r.c.Marked++
	}
	wire := int64(p.Payload + r.t.UEC.Headers)
	r.unacked += wire
	if known {
		r.c.Duplicates++
		r.acknowledge()
		return
	}
	now := r.received == 0 || p.Echo || p.CE
	r.asked = r.asked || p.Echo
	r.received += wire
	r.c.Received += int64(p.Payload)
	if p.Seq < r.highest && p.Number == 0 {
		r.c.Overtaken++
	}
	r.highest = max(r.highest, p.Seq)
	if psn == r.expected {
		r.advance()
		if r.early == 0 && r.asked {
			now, r.asked = true, false
		}
	} else {
		r.c.early((psn-r.expected)*int64(r.t.Segment), int64(r.t.Segment))
		r.flip(psn)
		r.early++
	}
	r.answer.exact = p.CE || p.Echo
	if now || r.unacked >= r.t.UEC.AckBytes {
		r.acknowledge()
	}
}

// advance moves past the expected packet and all early packets that follow it.
func (r *uecReceiver) advance() {
	for r.expected++; r.has(r.expected); r.expected++ {
		r.flip(r.expected)
		r.early--
	}
}

func (r *uecReceiver) acknowledge() { r.due, r.unacked = Ack, 0 }

// emit fills in the answer.
func (r *uecReceiver) emit(_ time.Duration, a *Packet) {
	a.Kind, a.Stamp, a.Echo, a.Ack = r.due, r.answer.stamp, r.answer.marked, r.expected
	a.Seq, a.Number, a.Trimmed = r.answer.psn, r.answer.number, r.answer.trimmed
	a.padding = int32(r.t.UEC.Answer - UDPHeaders)
	a.priority = true
	base := max(r.answer.psn-uecBitmap+1, r.expected+1)
	if r.answer.exact {
		base = r.answer.psn
	}
	a.setReport(uecReport{base, r.bits(base), r.received, r.early})
	r.due = data
}

// bits returns the bitmap of the packets from base on.
func (r *uecReceiver) bits(base int64) (bits uint64) {
	for i := range int64(uecBitmap) {
		if psn := base + i; psn > r.expected && r.has(psn) {
			bits |= 1 << i
		}
	}
	return bits
}
