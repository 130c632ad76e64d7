package fitting

import (
	"cmp"
	"math/bits"
	"time"
)

// DHLB holds what DHLB leaves open (Sections 2.3 and 2.4).
type DHLB struct {
	RTT   time.Duration
	Theta time.Duration // θ of Eq. 2; 0: such that at 90 % load probes are as frequent as HULA's
	Max   time.Duration // longest probe period; 0: 10 ms
}

// HULAProbe is the time between two probes that HULA uses and DHLB compares with.
const HULAProbe = 200 * time.Microsecond

// Delta is δ of the utilisation estimate (Eq. 1), the smallest power of two µs
// that is no shorter than the RTT: a switch then divides by a shift.
func (d DHLB) Delta() (k int, delta time.Duration) {
	us := max(1, (d.RTT + time.Microsecond - 1).Microseconds())
	k = bits.Len64(uint64(us - 1))
	return k, time.Microsecond << k
}

// Gap is the flowlet gap, one RTT.
func (d DHLB) Gap() time.Duration { return d.RTT }

// Probe is T_probe of Eq. 2 at an average load of 0 to 1: θ/σ, at least twice
// the flowlet gap.
func (d DHLB) Probe(load float64) time.Duration {
	theta := cmp.Or(d.Theta, HULAProbe*9/10)
	most := cmp.Or(d.Max, 10*time.Millisecond)
	least := 2 * d.Gap()
	if !(load > 0) {
		return max(least, most)
	}
	return max(least, min(most, time.Duration(float64(theta)/load)))
}

// ProbeOverhead is Eq. 3: the share of a link that probes take, size bytes each,
// of which each of tors switches sends paths in a period; rate is in bytes/s.
func ProbeOverhead(size, tors, paths float64, period time.Duration, rate float64) float64 {
	return size * tors * paths / (period.Seconds() * rate)
}
