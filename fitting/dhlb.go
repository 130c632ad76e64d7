package fitting

import (
	"cmp"
	"math/bits"
	"time"
)

// DHLB holds the values that DHLB does not specify (Sections 2.3 and 2.4).
type DHLB struct {
	RTT   time.Duration
	Theta time.Duration // θ of Eq. 2; 0: such that at 90 % load probes are as frequent as HULA's
	Max   time.Duration // longest probe period; 0: 10 ms
}

// HULAProbe is HULA's interval between probes, with which DHLB compares.
const HULAProbe = 200 * time.Microsecond

// Delta returns δ of the utilisation estimate (Eq. 1): the smallest power of two µs that is not
// shorter than the RTT, so that switches can divide by a shift.
func (d DHLB) Delta() (k int, delta time.Duration) {
	us := max(1, (d.RTT + time.Microsecond - 1).Microseconds())
	k = bits.Len64(uint64(us - 1))
	return k, time.Microsecond << k
}

// Gap returns the flowlet gap, one RTT.
func (d DHLB) Gap() time.Duration { return d.RTT }

// Probe returns T_probe of Eq. 2 at an average load of 0 to 1: θ/σ, but at least twice the
// flowlet gap.
func (d DHLB) Probe(load float64) time.Duration {
	theta := cmp.Or(d.Theta, HULAProbe*9/10)
	most := cmp.Or(d.Max, 10*time.Millisecond)
	least := 2 * d.Gap()
	if !(load > 0) {
		return max(least, most)
	}
	return max(least, min(most, time.Duration(float64(theta)/load)))
}

// ProbeOverhead returns Eq. 3: the share of a link used by probes of size bytes, if each of tors
// switches sends paths probes per period. rate is in bytes/s.
func ProbeOverhead(size, tors, paths float64, period time.Duration, rate float64) float64 {
	return size * tors * paths / (period.Seconds() * rate)
}
