package sim

import (
	"math/rand/v2"
	"time"
)

// A udpSender sends at a rate, whatever becomes of it: at equal intervals, or
// as a Poisson process if it has a source of random numbers.
type udpSender struct {
	t      *Tuning
	c      *FlowStats
	random *rand.Rand

	size, next int64
	rate       int64 // of payload, bit/s
	at         time.Duration
	rest       int64 // of the last division by rate
}

func newUDPSender(t *Tuning, c *FlowStats, size, rate int64, now time.Duration) *udpSender {
	return &udpSender{t: t, c: c, size: size, rate: rate, at: now}
}

func (s *udpSender) receive(time.Duration, *Packet) {}
func (s *udpSender) tick(time.Duration)             {}
func (s *udpSender) ready(now time.Duration) bool   { return now >= s.at && s.next < s.size }

func (s *udpSender) deadline() time.Duration {
	if s.next >= s.size {
		return never
	}
	return s.at
}

// emit makes the next packet. The one after is due an interval after this was,
// even if this was late.
func (s *udpSender) emit(now time.Duration, p *Packet) {
	length := min(int64(s.t.Segment), s.size-s.next)
	p.Seq, p.Payload, p.Stamp = s.next, int(length), now
	s.next += length
	p.Last = s.next == s.size
	s.c.Sent++
	s.at += s.interval(length)
}

// interval is the time to the next packet.
func (s *udpSender) interval(length int64) time.Duration {
	if s.random != nil {
		mean := float64(length*8) * float64(time.Second) / float64(s.rate)
		return time.Duration(s.random.ExpFloat64() * mean)
	}
	bits := length*8*int64(time.Second) + s.rest
	d := bits / s.rate
	s.rest = bits - d*s.rate
	return time.Duration(d)
}

// A udpReceiver counts what arrives.
type udpReceiver struct {
	c       *FlowStats
	highest int64
}

func (r *udpReceiver) ready(time.Duration) bool    { return false }
func (r *udpReceiver) emit(time.Duration, *Packet) {}
func (r *udpReceiver) deadline() time.Duration     { return never }
func (r *udpReceiver) tick(time.Duration)          {}

func (r *udpReceiver) receive(_ time.Duration, p *Packet) {
	r.c.Received += int64(p.Payload)
	if p.CE {
		r.c.Marked++
	}
	if p.Seq < r.highest {
		r.c.Overtaken++
	}
	r.highest = max(r.highest, p.Seq+int64(p.Payload))
}
