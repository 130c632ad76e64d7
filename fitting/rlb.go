package fitting

import "math"

// RLB is the paper's model of an incast through one switch with PFC (Sections III-B
// and IV-B), from which the thresholds are computed. Lengths are in bytes, C in
// bytes/s and times in s.
type RLB struct {
	N    float64 // senders to one receiver
	C    float64 // rate of a link
	D    float64 // delay between the switches
	QPFC float64 // PFC threshold of an ingress port
	TRC  float64 // delay of a recirculation
	MTU  float64
}

// Threshold returns the range of the warning threshold Q_th of Eq. 3 with all rates at
// C, and the value to use: the lower end, because the flow completion time grows with
// Q_th (Fig. 18). If low > high the range is empty, and the value is at most half of
// the PFC threshold.
func (r RLB) Threshold() (low, high, take float64) {
	low = r.D * r.C
	high = r.QPFC - r.D*r.C*(r.N-1)
	return low, high, min(low, r.QPFC/2)
}

// Senders returns the largest incast for which the range is not empty.
func (r RLB) Senders() int { return int(r.QPFC/(r.D*r.C) + 1e-9) }

// maxRecirculations bounds N_rc per packet: more recirculations would delay a
// packet longer than any detour.
const maxRecirculations = 8

// Recirculations returns N_rc of Eq. 5 at a queue length: the number of packets that may
// recirculate at once, and the number per packet. The printed Eq. 5 divides bytes by time and
// omits the queue, which Eq. 4 contains. Here, the bytes that Eq. 4 leaves free are counted in
// packets.
func (r RLB) Recirculations(queue float64) (packets, perPacket int) {
	free := r.QPFC - queue - (r.N-1)*r.C*r.TRC
	packets = max(0, int(math.Floor(free/r.MTU)))
	return packets, min(packets, maxRecirculations)
}
