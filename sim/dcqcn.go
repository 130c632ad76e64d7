package sim

import (
	"math"
	"time"
)

// A reaction is DCQCN's reaction point: the rate of a flow, which falls with
// notifications of congestion and rises with time (Zhu et al., SIGCOMM 2015, in
// the form that network cards and the RLB authors' simulator give it: the
// reductions of an interval come together at its end).
//
// Alpha changes once in each of its intervals. Nothing but the reductions reads
// it, so it catches up when asked.
type reaction struct {
	t    *RDMA
	line float64 // bit/s

	rate, target float64 // R_C, R_T
	alpha        float64
	noticed      bool          // once at least
	seen         bool          // in the current interval of alpha
	alphaFrom    time.Duration // which began here
	cutFrom      time.Duration // the first interval of reductions
	cutAt        time.Duration // the next reduction, or never
	raiseAt      time.Duration // the next raise, or never
	raises       int           // since the last reduction, by time
	byteRaises   int           // and by bytes
	bytes        int64         // towards the next of these
}

func newReaction(t *RDMA, line int64) reaction {
	rate := float64(line)
	return reaction{t: t, line: rate, rate: rate, target: rate, alpha: 1, cutAt: never, raiseAt: never}
}

// notice takes in a notification of congestion.
func (r *reaction) notice(now time.Duration) {
	if !r.noticed {
		r.noticed, r.alphaFrom, r.cutFrom = true, now, now
	}
	r.settle(now)
	r.seen = true
	if r.cutAt == never {
		passed := (now - r.cutFrom) / r.t.CutInterval
		r.cutAt = r.cutFrom + (passed+1)*r.t.CutInterval
	}
}

// settle brings alpha to the interval that the time is in.
func (r *reaction) settle(now time.Duration) {
	n := (now - r.alphaFrom) / r.t.AlphaInterval
	if n <= 0 {
		return
	}
	r.alphaFrom += n * r.t.AlphaInterval
	r.alpha *= math.Pow(1-r.t.Gain, float64(n))
	if r.seen {
		// The first of the n intervals has met congestion: its g has faded
		// in the others.
		r.alpha += r.t.Gain * math.Pow(1-r.t.Gain, float64(n-1))
		r.seen = false
	}
}

func (r *reaction) deadline() time.Duration { return min(r.cutAt, r.raiseAt) }

// tick is told that time has passed.
func (r *reaction) tick(now time.Duration) {
	if now >= r.cutAt {
		r.cut(now)
	}
	if now >= r.raiseAt {
		r.raises++
		r.raiseAt = now + r.t.RaiseInterval
		r.raise()
	}
}

// cut reduces the rate. The target stays, if nothing has been raised since the
// last time.
func (r *reaction) cut(now time.Duration) {
	r.settle(now)
	if r.raises+r.byteRaises > 0 || r.raiseAt == never {
		r.target = r.rate
	}
	r.rate = max(r.rate*(1-r.alpha/2), float64(r.t.MinRate))
	r.raises, r.byteRaises, r.bytes = 0, 0, 0
	r.cutAt, r.raiseAt = never, now+r.t.RaiseInterval
}

// sent counts bytes towards a raise.
func (r *reaction) sent(bytes int64) {
	if r.raiseAt == never || r.t.RaiseBytes == never64 {
		return
	}
	for r.bytes += bytes; r.bytes >= r.t.RaiseBytes; r.bytes -= r.t.RaiseBytes {
		r.byteRaises++
		r.raise()
	}
}

// raise moves the rate half the way to the target, which moves itself once both
// counters have passed fast recovery: slowly if one has, fast if both have.
func (r *reaction) raise() {
	least, most := min(r.raises, r.byteRaises), max(r.raises, r.byteRaises)
	if r.t.RaiseBytes == never64 {
		least = most
	}
	switch {
	case most <= r.t.Recovery:
	case least <= r.t.Recovery+1:
		r.target += float64(r.t.Additive)
	default:
		r.target += float64(r.t.Hyper)
	}
	r.target = min(r.target, r.line)
	r.rate = (r.rate + r.target) / 2
	if r.line-r.rate < float64(r.t.Additive)/2 {
		// As good as there: no more raises until the next reduction.
		r.rate, r.raiseAt = r.line, never
	}
}
