package sim

import "time"

// A roundTrip estimates the round-trip time and sets the retransmission timer
// (RFC 6298). Every acknowledgment tells when the segment left that it answers,
// as with timestamps, so that segments which were sent again count as well.
type roundTrip struct {
	smooth, varies time.Duration // SRTT, RTTVAR
	rto            time.Duration
	least, most    time.Duration
}

func (r *roundTrip) init(t *Tuning) {
	r.least, r.most, r.rto = t.MinRTO, t.MaxRTO, t.FirstRTO
}

// sample takes in a measurement; it undoes what backOff did.
func (r *roundTrip) sample(rtt time.Duration) {
	if r.smooth == 0 {
		r.smooth, r.varies = rtt, rtt/2
	} else {
		r.varies += (max(rtt-r.smooth, r.smooth-rtt) - r.varies) / 4
		r.smooth += (rtt - r.smooth) / 8
	}
	r.rto = min(max(r.smooth+4*r.varies, r.least), r.most)
}

// backOff doubles the time.
func (r *roundTrip) backOff() { r.rto = min(2*r.rto, r.most) }
