package codegen

import (
	"fmt"
	"math/big"
)

// CMax is the largest congestion index of QALL.
func (v *view) CMax() int64 {
	switch {
	case v.params.Runtime:
		return runtimeMax
	case v.poly != nil:
		return v.cmax
	}
	return 255 * v.Int("tau") * 2
}

// runtimeMax is C_max where the controller gives the coefficients: it scales
// them so that the maximum of its polynomial is this.
const runtimeMax = 1000

// WMin is the least weight of QALL: with 0 a port would get no traffic, and
// never be measured again.
func (v *view) WMin() int64 { return max(1, v.CMax()>>8) }

// WindowBytes is what a link carries in 2^window µs.
func (v *view) WindowBytes() int64 {
	bytes := new(big.Int).Lsh(big.NewInt(v.Int("link")), uint(v.Int("window")))
	return max(1, bytes.Quo(bytes, big.NewInt(8_000_000)).Int64())
}

// Rate is the rate of the links, for comments.
func (v *view) Rate() string { return v.values["link"].Text }

// CEReciprocal is 8·2³²/WindowBytes, which turns bytes into eighths.
func (v *view) CEReciprocal() int64 { return 8 << 32 / v.WindowBytes() }

// RateLimit is the share r of WindowBytes.
func (v *view) RateLimit() int64 { return v.WindowBytes() * v.Int("r") / 100 }

// A degreeRange is one column of DHLB's Table 1, in bytes.
type degreeRange struct {
	From, To int64
	Degree   int
}

// Degrees is DHLB's Table 1 for the rate of the links. A utilisation on a
// boundary belongs to the range above it.
func (v *view) Degrees() []degreeRange {
	var list []degreeRange
	full, from := v.WindowBytes(), int64(0)
	for _, c := range []struct {
		below  int64 // percent
		degree int
	}{{25, 5}, {50, 3}, {70, 2}, {90, 1}} {
		to := (full*c.below + 99) / 100 // the first that is not below
		list = append(list, degreeRange{from, max(from, to-1), c.degree})
		from = max(from, to-1) + 1
	}
	return append(list, degreeRange{from, 1<<32 - 1, 0})
}

// ProbePeriods is the range of DHLB's probe period, for the controller. The
// paper wants twice the flowlet gap at least, or flowlets move too fast.
func (v *view) ProbePeriods() string {
	least := "0us"
	if gap, ok := v.values["gap"]; ok {
		least = Time.format(2 * gap.Int)
	}
	return fmt.Sprintf("%s to %s, theta %s", least, v.Word("tmax"), v.Word("theta"))
}

// QTh is RLB's Q_th: given, or d·C, the lower end of its range.
func (v *view) QTh() int64 {
	if given := v.Int("qth"); given != 0 {
		return given
	}
	return v.linkBytes()
}

// linkBytes is d·C in bytes: what is on its way when a warning goes out.
func (v *view) linkBytes() int64 {
	bits := new(big.Int).Mul(big.NewInt(v.Int("link")), big.NewInt(v.values["delay"].Int))
	return bits.Quo(bits, big.NewInt(8_000_000_000)).Int64()
}
