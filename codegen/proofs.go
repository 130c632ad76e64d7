package codegen

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// A proof is a check that the header of a block requests by name: an overflow proof
// for its arithmetic, or a condition on combinations.
type proof struct {
	of    func(*composition) error
	about []string // parameters that it concerns
}

// predicted lists the parameters of RLB's prediction.
var predicted = []string{"dt", "twarn", "qpfc", "qth", "link", "delay", "incast"}

var proofs = map[string]proof{
	"eq4":        {provesEq4, []string{"tau"}},
	"polynomial": {provesPoly, []string{"tau", "degree"}},
	"load":       {provesLoad, []string{"window", "link"}},
	"ordered":    {provesOrdered, nil},
	"prediction": {provesPrediction, predicted},

	// For Tofino.
	"bakeable":   {bakeable, nil},
	"gradeable":  {gradeable, []string{"window", "link"}},
	"turnable":   {turnable, nil},
	"weighable":  {weighable, nil},
	"ranked":     {ranked, nil},
	"sampleable": {sampleable, []string{"d", "m"}},
	"guardable":  {guardable, slices.Concat(predicted, []string{"loop", "suboptimal", "relay"})},
}

// provesEq4 proves that QALL's occupancy, Eq. 4 and the sum of the grids do not
// overflow.
func provesEq4(c *composition) error {
	C := between("L", 0, 255).times(between("(tau - T)", 0, c.Int("tau"))).times(between("V", 1, 2))
	return errors.Join(provesReport(c), provesOccupancy(), C.fits(32), provesGrids(c))
}

// provesReport checks that port numbers fit into the 8 bits of QALL's report.
func provesReport(c *composition) error {
	if port := c.params.MaxPort; port > 255 && !c.Shared() {
		return fmt.Errorf("port %d: QALL's report (Fig. 6) has 8 bits for the egress port, want at most 255, or the state path shared", port)
	}
	return nil
}

// provesOccupancy proves that L = depth*rl >> 16 fits into bit<48>.
func provesOccupancy() error {
	return bits("enq_qdepth", 19).times(bits("rl", 24)).fits(48)
}

// provesGrids proves that the sum of the weights does not overflow.
func provesGrids(c *composition) error {
	W := between("W", c.pattern().MinWeight(), c.pattern().Max())
	return errors.Join(
		between("C", 0, c.pattern().Max()).plus(exactly(c.pattern().MinWeight())).fits(32),
		exactly(int64(c.N())).times(W).fits(32),
	)
}

// provesPoly proves that the normalisation does not overflow. Poly.Validate has
// checked the sum.
func provesPoly(c *composition) error {
	if c.poly == nil {
		return errors.Join(provesReport(c), provesOccupancy(), provesGrids(c))
	}
	T := c.poly.T
	return errors.Join(
		provesReport(c),
		provesOccupancy(),
		between("T", 0, T.Max-T.Min).times(exactly(T.Reciprocal())).fits(48),
		provesGrids(c),
	)
}

// provesLoad proves that the decaying byte count does not overflow: elapsed is
// below 2^window inside the window, and the count stays below the fixed point of
// adding a packet.
func provesLoad(c *composition) error {
	window := uint(c.Int("window"))
	return errors.Join(
		bits("sent", 32).times(bits("elapsed", window)).fits(64),
		exactly(c.loads().WindowBytes()).fits(31),
		bits("sent", 32).times(exactly(c.loads().CEReciprocal())).fits(64),
	)
}

// provesOrdered proves that QDAPS's Eq. 1 does not overflow.
func provesOrdered(*composition) error {
	QD := bits("l", 19).plus(exactly(1)).times(bits("svc", 32))
	return errors.Join(QD.fits(64), QD.shifted(16).fits(47))
}

// provesPrediction checks the ranges in RLB's prediction, and that the range of
// Q_th is not empty.
func provesPrediction(c *composition) error {
	qpfc := c.Int("qpfc")
	if err := errors.Join(
		between("(Q_PFC - Q)", 0, qpfc).times(exactly(c.Int("dt"))).fits(64),
		bits("dQ", 32).times(exactly(c.Int("twarn"))).fits(64),
		bits("Q", 32).minus(bits("0", 0)).fits(32),
	); err != nil {
		return err
	}
	dC, n := c.detours().linkBytes(), c.Int("incast")
	upper := qpfc - dC*(n-1)
	switch given := c.Int("qth"); {
	case given != 0 && given >= qpfc:
		return fmt.Errorf("qth=%s: want less than Q_PFC, which is %s", c.Word("qth"), c.Word("qpfc"))
	case given == 0 && dC > upper:
		return fmt.Errorf("no value for Q_th: [d*C, Q_PFC - d*C*(n-1)] is [%d, %d] bytes with d=%s, C=%s, n=%d, Q_PFC=%s; give one, such as qth=%dB",
			dC, upper, c.Word("delay"), c.Word("link"), n, c.Word("qpfc"), min(dC, qpfc/2))
	}
	return nil
}

// Conditions and limits of the blocks for Tofino.

// sampleable checks that there are at most two draws and one memory, because there
// are no stages for more.
func sampleable(c *composition) error {
	if c.row.like(signal) != "queue" {
		return fmt.Errorf("choice sampled is built for signal queue alone; of %s, choice grid takes the least loaded paths most often", c.row.Signal)
	}
	if d, m := c.Int("d"), c.Int("m"); d != 2 || m > 1 {
		return fmt.Errorf("DRILL(%d,%d): each path looked at takes stages for its queue and for the comparison; want d=2 and m=0 or 1", d, m)
	}
	return nil
}

// turnable checks that the program numbers cells path by path.
func turnable(c *composition) error {
	if c.runs.like(granularity) == "adaptive" {
		return fmt.Errorf("choice round-robin is not built for granularity adaptive; choice uniform is, as in pdlb")
	}
	return nil
}

// weighable checks that the weights fit into a table.
func weighable(c *composition) error {
	if c.row.like(signal) == "queue" || c.row.like(signal) == "marks" {
		return fmt.Errorf("choice grid is not built for signal %s: its weights are the key of no table; signal behaviour has levels, as in qall-pkt", c.row.Signal)
	}
	return nil
}

// gradeable checks that a path's level can represent five degrees and Absent.
func gradeable(c *composition) error {
	if levelBits(c.N()) < 3 {
		return fmt.Errorf("%d paths: the degrees of all are looked up in one table of 65536 entries, 3 bits for each path; want at most 4", c.N())
	}
	return provesLoad(c)
}

// ranked checks that levels with the slot in their low bits can be compared.
func ranked(c *composition) error {
	if !slices.Contains([]string{"piggyback", "marks", "occupancy"}, c.row.like(signal)) {
		return fmt.Errorf("choice least is built for signals piggyback, marks and occupancy; of %s, choice grid takes the least loaded paths most often", c.row.Signal)
	}
	return nil
}

// guardable checks that the row's reports are compatible with the guard's, and that
// the stages suffice for both.
func guardable(c *composition) error {
	if c.flows().Orders() {
		return fmt.Errorf("no %s for %s: guard %s would take packets out of the order that choice ordered keeps; want choice sampled, as in drill+rlb", c.row.Name, c.arch.name, c.row.Guard)
	}
	if slices.ContainsFunc([]string{"measure", "load", "overlay"}, c.In) {
		return fmt.Errorf("no %s for %s: guard %s: its reports go with those of queue lengths, not of signal %s; want signal queue, classes or none, as in drill+rlb and letflow+rlb", c.row.Name, c.arch.name, c.row.Guard, c.row.Signal)
	}
	for _, p := range [][2]string{{"loop", "last"}, {"suboptimal", "rtt"}, {"relay", "0"}} {
		if word := c.Word(p[0]); word != p[1] {
			return fmt.Errorf("%s=%s: programs for %s have no such form: want %s", p[0], word, c.arch.name, p[1])
		}
	}
	return provesPrediction(c)
}

// An interval is the range of an expression in the program, and the expression's
// text.
type interval struct {
	text   string
	lo, hi *big.Int
}

// between returns the interval of a variable or constant.
func between(text string, lo, hi int64) interval {
	return interval{text, big.NewInt(lo), big.NewInt(hi)}
}

// bits returns the interval of an unsigned variable.
func bits(text string, width uint) interval {
	return interval{text, new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), width), big.NewInt(1))}
}

func exactly(v int64) interval { return between(fmt.Sprint(v), v, v) }

func (a interval) plus(b interval) interval {
	return interval{"(" + a.text + " + " + b.text + ")", new(big.Int).Add(a.lo, b.lo), new(big.Int).Add(a.hi, b.hi)}
}

func (a interval) minus(b interval) interval {
	return interval{"(" + a.text + " - " + b.text + ")", new(big.Int).Sub(a.lo, b.hi), new(big.Int).Sub(a.hi, b.lo)}
}

func (a interval) times(b interval) interval {
	corners := []*big.Int{
		new(big.Int).Mul(a.lo, b.lo), new(big.Int).Mul(a.lo, b.hi),
		new(big.Int).Mul(a.hi, b.lo), new(big.Int).Mul(a.hi, b.hi),
	}
	r := interval{a.text + "*" + b.text, corners[0], corners[0]}
	for _, c := range corners[1:] {
		if c.Cmp(r.lo) < 0 {
			r.lo = c
		}
		if c.Cmp(r.hi) > 0 {
			r.hi = c
		}
	}
	return r
}

// shifted returns the interval of a >> n.
func (a interval) shifted(n uint) interval {
	return interval{fmt.Sprintf("(%s >> %d)", a.text, n), new(big.Int).Rsh(a.lo, n), new(big.Int).Rsh(a.hi, n)}
}

// fits checks that all values of a fit in a bit<width>.
func (a interval) fits(width uint) error {
	if a.lo.Sign() < 0 {
		return fmt.Errorf("%s reaches down to %s: it must not be negative", a.text, a.lo)
	}
	if limit := bits("", width).hi; a.hi.Cmp(limit) > 0 {
		return fmt.Errorf("%s reaches %s, more than the %s of %d bits", a.text, a.hi, limit, width)
	}
	return nil
}
