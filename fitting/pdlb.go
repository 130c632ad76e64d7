package fitting

import (
	"fmt"
	"math"
)

// MaxGranularity is the largest flowcell of PDLB: 64 KB in packets.
const MaxGranularity = 44

// PDLBFlow is the F_size in packets for which the paper verifies its model. A
// switch does not know the size of a flow, and the mean size is unsuitable: a flow
// of mean size fits into the first window of Eq. 4, before any reduction by
// reordering, so every granularity would be equally good.
const PDLBFlow = 10_000

// PDLB is the paper's model of a flow over good and bad paths, from which the
// flowcell size is computed (Eq. 1 to 10). Lengths are in packets, C in packets/s
// and times in s.
type PDLB struct {
	M      int     // number of paths
	Bad    int     // number of congested paths, N_b
	Good   float64 // delay of a good path, D_g
	X      float64 // ratio of the delays of a bad and a good path
	C      float64 // rate of a path
	Buffer float64 // buffer of a path
	Size   float64 // size of a flow, F_size
	Flows  float64 // number of flows that share the paths and their buffers; 0: 1, as in Eq. 4 to 9

	// Exact uses the probability that a window of n flowcells meets a bad path, 1 - (1 -
	// N_b/m)^n, instead of (N_b/m)^W̄ of Eq. 7.
	Exact bool
}

func (p PDLB) validate() error {
	switch {
	case p.M < 1 || p.Bad < 0 || p.Bad > p.M:
		return fmt.Errorf("%d bad paths of %d", p.Bad, p.M)
	case !(p.Good > 0 && p.X >= 1 && p.C > 0 && p.Buffer > 0 && p.Size > 0):
		return fmt.Errorf("PDLB wants delays, rate, buffer and size above 0, and a bad path no faster than a good one")
	}
	return nil
}

// reorder returns the probability P of Eq. 3 that n flowcells arrive out of order.
func (p PDLB) reorder(n int) float64 {
	bad := float64(p.Bad) / float64(p.M)
	var sum float64
	for k := range n + 1 {
		sum += math.Pow(1-bad, float64(k)) * math.Pow(bad, float64(n-k))
	}
	return max(0, 1-sum)
}

// reorders caches the probability of reordering for 0 to 16 flowcells, the largest number of
// paths in programs. The rounds of a flow need it repeatedly.
type reorders [17]float64

func (p PDLB) reorders() *reorders {
	var list reorders
	for n := range min(len(list), p.M+1) {
		list[n] = p.reorder(n)
	}
	return &list
}

// flowcells returns n_i of Eq. 4: the number of flowcells in flight with a window.
func (p PDLB) flowcells(window, gran float64) int {
	return max(1, min(p.M, int(window/gran)))
}

// window returns the average window W̄ of Eq. 6 over the rounds of a flow. The sum of
// Eq. 5 has r+1 terms. The paper does not define the largest window of a path; this
// uses the flow's share of the capacity of the path and its buffer.
func (p PDLB) window(gran float64, known *reorders) float64 {
	most := (p.C*p.Good + p.Buffer) / max(1, p.Flows)
	w := float64(p.M) * most
	sum, rounds := w, 1.0
	for sum < p.Size {
		n := p.flowcells(w, gran)
		var loss float64
		if n < len(known) {
			loss = known[n]
		} else {
			loss = p.reorder(n)
		}
		next := max(1, min(float64(n)*most, (w+1)*(1-loss)+w/2*loss))
		steady := next == w
		w = next
		sum += w
		rounds++
		if steady { // the window no longer changes
			for sum < p.Size {
				sum += w
				rounds++
			}
		}
	}
	return sum / rounds
}

// FCT computes Eq. 9: the completion time of a flow cut into flowcells of gran
// packets. At most as many flowcells as paths are in flight.
func (p PDLB) FCT(gran int) float64 { return p.fct(gran, p.reorders()) }

func (p PDLB) fct(gran int, known *reorders) float64 {
	w := p.window(float64(gran), known)
	meets := math.Pow(float64(p.Bad)/float64(p.M), w)
	n := max(1, min(float64(p.M), w/float64(gran)))
	if p.Exact {
		meets = 1 - math.Pow(1-float64(p.Bad)/float64(p.M), n)
	}
	return p.Size/w*((p.X-1)*meets+1)*p.Good + p.Size*max(1, p.Flows)/(n*p.C)
}

// Granularity returns Eq. 10: the flowcell size from 1 to 44 packets with the shortest completion
// time, or the smallest of several.
func (p PDLB) Granularity() (gran int, fct float64, err error) {
	if err := p.validate(); err != nil {
		return 0, 0, err
	}
	fct = math.Inf(1)
	known := p.reorders()
	for g := 1; g <= MaxGranularity; g++ {
		if t := p.fct(g, known); t < fct {
			gran, fct = g, t
		}
	}
	return gran, fct, nil
}
