package model

import (
	"slices"

	"github.com/p4lb/p4lb/fitting"
)

// behaviour implements QALL's signal. Egress observes how a port's queue behaves,
// and ingress converts the reports to a congestion index.
//
// Egress (Alg. 3) measures three values: L, the occupancy that a packet met; T, the
// time since the packet before it; and V, whether L last rose or fell. The paper
// does not define V for equal L. Here V keeps its value, which is initially
// falling. A port that has never sent counts as idle, with T = tau.
type behaviour struct {
	*Switch
	reporter
	index interface {
		congestion(r Report) uint32
		max() uint32
	}
	cmax uint32

	egressSide [512]struct {
		sent Time // 0: never, except on hardware
		l, v uint8
	}
	ingressSide [512]struct {
		Report
		at         Time
		congestion uint32
	}
}

func newBehaviour(s *Switch, index interface {
	congestion(r Report) uint32
	max() uint32
}) *behaviour {
	if s.tofino() {
		index = newBaked(s.cfg.Params)
	}
	return &behaviour{Switch: s, index: index, cmax: index.max()}
}

func (b *behaviour) egress(d Departure, now Time) (Report, bool) {
	e := &b.egressSide[d.Port]
	r := Report{Port: d.Port, L: b.occupancy(d), T: b.cfg.Tau}
	if e.sent != 0 || b.tofino() {
		r.T = now.Since(e.sent)
	}
	switch {
	case r.L > e.l:
		e.v = rising
	case r.L < e.l || e.v == 0:
		e.v = falling
	}
	e.sent, e.l, r.V = now, r.L, e.v
	return r, b.cfg.Direct || b.due(d.Port, b.cfg.Tb, now)
}

// occupancy returns L as a fraction of 255. Switches replace the division by the queue's capacity
// by a multiplication. On hardware L has 16 steps of the cells that a queue can hold.
func (b *behaviour) occupancy(d Departure) uint8 {
	if k, ok := b.index.(*baked); ok {
		return uint8(min(15, d.Met>>k.cells))
	}
	rl := 255 << 16 / (b.ports[d.Port].Capacity - 1)
	return uint8(min(255, d.Met*rl>>16))
}

func (b *behaviour) learn(r Report, now Time) {
	in := &b.ingressSide[r.Port]
	in.Report, in.at, in.congestion = r, now, b.index.congestion(r)
}

// cost returns C, the congestion index. State older than Age counts as 0, because the port has
// had no traffic since then.
func (b *behaviour) cost(p *pass, slot int) uint32 {
	in := &b.ingressSide[b.port(p, slot)]
	if b.cfg.Age > 0 && p.now.Since(in.at) > b.cfg.Age {
		return 0
	}
	return in.congestion
}

// weight computes Eq. 6. With weight 0 the port would get no traffic and send no
// more reports, so the weight is at least 1/256 of the largest.
func (b *behaviour) weight(p *pass, slot int) uint32 {
	return max(b.cmax-min(b.cmax, b.cost(p, slot)), b.cmax>>8, 1)
}

// eq4 computes Eq. 4, C = L(tau-T)V. It limits T to tau, because the paper's C
// would be negative beyond it.
type eq4 struct{ tau Time }

func (q *eq4) congestion(r Report) uint32 {
	return uint32(r.L) * uint32(q.tau-min(q.tau, r.T)) * uint32(r.V)
}

func (q *eq4) max() uint32 { return 255 * uint32(q.tau) * rising }

// fitted computes Eq. 11 to 13, or any other polynomial.
type fitted struct {
	poly fitting.Poly
	cmax int64
}

// patternMax is C_max if the controller sets the polynomial. The controller scales
// the polynomial so that its maximum has this value.
const patternMax = 1000

func newFitted(p Params) *fitted {
	if p.Poly != nil {
		return &fitted{*p.Poly, p.Poly.Max()}
	}
	f := &fitted{fitting.Poly{Degree: p.Degree, Scale: 1, T: fitting.Range{Max: int64(p.Tau)}}, patternMax}
	f.poly.Coeff = make([]int64, len(fitting.Terms(p.Degree)))
	return f
}

// SetPattern sets the coefficients of the polynomial, in the order of
// fitting.Terms.
func (s *Switch) SetPattern(coeff []int64) {
	if b, ok := s.signal.(*behaviour); ok {
		if f, ok := b.index.(*fitted); ok {
			f.poly.Coeff = slices.Clone(coeff)
		}
	}
}

func (f *fitted) congestion(r Report) uint32 {
	l := f.poly.LRange().Byte(int64(r.L))
	t := f.poly.T.Byte(int64(r.T))
	return uint32(f.poly.Eval(l, t, f.cmax))
}

func (f *fitted) max() uint32 { return uint32(f.cmax) }
