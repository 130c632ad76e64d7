package codegen

import (
	"errors"
	"fmt"
)

// A proof is what the head of a block can ask for by name: that the arithmetic of
// its text fits, or a condition on what it is combined with.
type proof struct {
	of    func(*view) error
	about []string // parameters
}

// predicted are the parameters of RLB's prediction.
var predicted = []string{"dt", "twarn", "qpfc", "qth", "link", "delay", "incast"}

var proofs = map[string]proof{
	"eq4":        {provesEq4, []string{"tau"}},
	"polynomial": {provesPoly, []string{"tau", "degree"}},
	"load":       {provesLoad, []string{"window", "link"}},
	"ordered":    {provesOrdered, nil},
	"prediction": {provesPrediction, predicted},

	// Of Tofino.
	"bakeable":   {bakeable, nil},
	"gradeable":  {gradeable, []string{"window", "link"}},
	"turnable":   {turnable, nil},
	"weighable":  {weighable, nil},
	"ranked":     {ranked, nil},
	"sampleable": {sampleable, []string{"d", "m"}},
	"guardable":  {guardable, predicted},
}

// provesEq4 bounds QALL's occupancy, Eq. 4 and the sum of the grids.
func provesEq4(v *view) error {
	C := between("L", 0, 255).times(between("(tau - T)", 0, v.Int("tau"))).times(between("V", 1, 2))
	return errors.Join(provesReport(v), provesOccupancy(), C.fits(32), provesGrids(v))
}

// provesReport bounds the port, which has 8 bits in QALL's report.
func provesReport(v *view) error {
	if port := v.params.MaxPort; port > 255 && !v.Shared() {
		return fmt.Errorf("port %d: QALL's report (Fig. 6) has 8 bits for the egress port, want at most 255, or the state path shared", port)
	}
	return nil
}

// provesOccupancy bounds L = depth*rl >> 16 in bit<48>.
func provesOccupancy() error {
	return bits("enq_qdepth", 19).times(bits("rl", 24)).fits(48)
}

// provesGrids bounds the sum of the weights.
func provesGrids(v *view) error {
	W := between("W", v.WMin(), v.CMax())
	return errors.Join(
		between("C", 0, v.CMax()).plus(exactly(v.WMin())).fits(32),
		exactly(int64(v.N())).times(W).fits(32),
	)
}

// provesPoly bounds the normalisation; Poly.Validate has bounded the sum.
func provesPoly(v *view) error {
	if v.poly == nil {
		return errors.Join(provesReport(v), provesOccupancy(), provesGrids(v))
	}
	T := v.poly.T
	return errors.Join(
		provesReport(v),
		provesOccupancy(),
		between("T", 0, T.Max-T.Min).times(exactly(T.Reciprocal())).fits(48),
		provesGrids(v),
	)
}

// provesLoad bounds the fading of what was sent: in the window elapsed is
// below 2^window, and what stays below the fixed point of adding a packet.
func provesLoad(v *view) error {
	window := uint(v.Int("window"))
	return errors.Join(
		bits("sent", 32).times(bits("elapsed", window)).fits(64),
		exactly(v.WindowBytes()).fits(31),
		bits("sent", 32).times(exactly(v.CEReciprocal())).fits(64),
	)
}

// provesOrdered bounds QDAPS's Eq. 1.
func provesOrdered(*view) error {
	QD := bits("l", 19).plus(exactly(1)).times(bits("svc", 32))
	return errors.Join(QD.fits(64), QD.shifted(16).fits(47))
}

// provesPrediction bounds RLB's prediction, and wants a range for Q_th.
func provesPrediction(v *view) error {
	qpfc := v.Int("qpfc")
	if err := errors.Join(
		between("(Q_PFC - Q)", 0, qpfc).times(exactly(v.Int("dt"))).fits(64),
		bits("dQ", 32).times(exactly(v.Int("twarn"))).fits(64),
		bits("Q", 32).minus(bits("0", 0)).fits(32),
	); err != nil {
		return err
	}
	dC, n := v.linkBytes(), v.Int("incast")
	upper := qpfc - dC*(n-1)
	switch given := v.Int("qth"); {
	case given != 0 && given >= qpfc:
		return fmt.Errorf("qth=%s: want less than Q_PFC, which is %s", v.Word("qth"), v.Word("qpfc"))
	case given == 0 && dC > upper:
		return fmt.Errorf("no value for Q_th: [d*C, Q_PFC - d*C*(n-1)] is [%d, %d] bytes with d=%s, C=%s, n=%d, Q_PFC=%s; give one, such as qth=%dB",
			dC, upper, v.Word("delay"), v.Word("link"), n, v.Word("qpfc"), min(dC, qpfc/2))
	}
	return nil
}
