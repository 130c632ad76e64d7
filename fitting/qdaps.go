package fitting

import (
	"errors"
	"math"
)

// QDAPS is the paper's model of one long DCTCP flow (Section III-C), from which the
// rerouting threshold S is computed. Lengths are in packets, C in packets/s and
// times in s.
type QDAPS struct {
	C   float64 // rate of the bottleneck
	RTT float64 // propagation only
	K   float64 // marking threshold of DCTCP
	Y   float64 // size of the flow
	Cap float64 // capacity of the queue

	// Printed uses T_2 = S_2/(r_1/2 + r_2) as printed in Eq. 11 and 13. By the text above Eq. 11,
	// the rate in that phase is half of that denominator.
	Printed bool
}

var errNoThreshold = errors.New("no threshold: rerouting never shortens the flow")

// Closed computes S of Eq. 14, clamped to the range of the queue. With r_1 of Eq. 4, which is ¾·C
// for every K, it is √(1.6·Y) - C·RTT. It follows from FCT_1 = FCT_2 with r_2 = 3/2·C, the limit
// for a long queue, and with the mean rate ¾·r_2 in the second phase, which rises from half of
// r_2 to r_2. Neither form of Eq. 11 gives the factor 1.6.
func (q QDAPS) Closed() float64 {
	r1 := q.r1()
	s := math.Sqrt((12*q.Y*q.C-8*q.Y*r1)/(6*q.C-3*r1)) - q.C*q.RTT
	return q.clamp(s)
}

func (q QDAPS) clamp(s float64) float64 { return min(max(s, 2), q.Cap-1) }

// r1 returns the rate of a flow that is not rerouted (Eq. 4).
func (q QDAPS) r1() float64 {
	w1 := q.C*q.RTT + q.K
	return 0.75 * w1 / (q.K/q.C + q.RTT)
}

// Stay returns FCT_1 of Eq. 5.
func (q QDAPS) Stay() float64 { return q.Y / q.r1() }

// Move returns FCT_2 of Eq. 13 for a threshold s.
func (q QDAPS) Move(s float64) float64 {
	r1 := q.r1()
	w2 := q.C*q.RTT + s
	r2 := 0.75 * w2 / (s/(2*q.C) + q.RTT)
	s1, s2 := w2*w2/2, 3*w2*w2/8
	t2 := 2 * s2 / (r1/2 + r2)
	if q.Printed {
		t2 /= 2
	}
	return s1/r1 + t2 + (q.Y-s1-s2)/r2
}

// Numeric returns the largest S with FCT_1 ≥ FCT_2, without the approximations of Eq. 14. The
// paper asks for the smallest S, but every S from 1 to the largest satisfies the condition, and
// Eq. 14 approximates the largest.
func (q QDAPS) Numeric() (float64, error) {
	gain := func(s float64) float64 { return q.Stay() - q.Move(s) }
	if !(gain(1) >= 0) {
		return 0, errNoThreshold
	}
	lo, hi := 1.0, 2.0
	for gain(hi) >= 0 {
		if lo, hi = hi, 2*hi; hi > 1e9 {
			return q.Cap - 1, nil
		}
	}
	for range 200 {
		if mid := (lo + hi) / 2; gain(mid) >= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return q.clamp(lo), nil
}
