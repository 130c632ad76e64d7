package model

import "math"

// newSignal makes the signal of a scheme.
func newSignal(s *Switch) signal {
	switch s.cfg.Signal {
	case "none":
		return nothing{}
	case "weights":
		return given{s, nothing{}}
	case "queue":
		return &queue{Switch: s}
	case "behaviour":
		return newBehaviour(s, &eq4{tau: s.cfg.Tau})
	case "fitted":
		return newBehaviour(s, newFitted(s.cfg.Params))
	case "piggyback":
		return &piggyback{load: load{Switch: s}}
	case "one-way":
		return &oneWay{queue: queue{Switch: s}}
	case "classes":
		if s.tofino() {
			return &load{Switch: s} // of the paths' first links
		}
		return nothing{}
	case "delay", "echo":
		return nothing{} // what is known is with the paths, or the flows
	case "marks":
		return marks{Switch: s}
	case "utilisation":
		return &utilisation{load: load{Switch: s}}
	case "degree":
		return &degree{load: load{Switch: s}}
	}
	return nil
}

// nothing is known.
type nothing struct{}

func (nothing) cost(*pass, int) uint32                { return 0 }
func (nothing) weight(*pass, int) uint32              { return 0 }
func (nothing) egress(Departure, Time) (Report, bool) { return Report{}, false }
func (nothing) learn(Report, Time)                    {}

// given: the controller gives weights (WCMP).
type given struct {
	*Switch
	nothing
}

func (g given) weight(p *pass, slot int) uint32 { return g.groups[p.Group].Weights[slot] }

// A reporter tells which ports are due for a report: those whose last one left
// longer than Tb ago (QALL Alg. 3).
type reporter struct {
	last [512]Time
}

func (r *reporter) due(port int, tb, now Time) bool {
	if now.Since(r.last[port]) <= tb {
		return false
	}
	r.last[port] = now
	return true
}

// queue is the length of the ports' queues, as DRILL takes it.
type queue struct {
	*Switch
	reporter
	len [512]uint32
}

func (q *queue) cost(p *pass, slot int) uint32 {
	if q.cfg.QueueNow != nil {
		return q.cfg.QueueNow(q.port(p, slot), p.Flow)
	}
	return q.len[q.port(p, slot)]
}

// weight is what the queue has room for, at least 1: a full one drains too.
func (q *queue) weight(p *pass, slot int) uint32 {
	return max(1, q.cfg.QCap-min(q.cfg.QCap, q.cost(p, slot)))
}

func (q *queue) egress(d Departure, now Time) (Report, bool) {
	return Report{Port: d.Port, Len: q.measured(d.Left)}, q.cfg.Direct || q.cfg.Ghost || q.due(d.Port, q.cfg.Tb, now)
}

// measured is what a length is reported as. For QDAPS hardware makes times of
// cells, by the power of 2 that is next to what a link sends in 1024 ns.
func (q *queue) measured(length int) uint32 {
	if q.tofino() && q.cfg.Choice == "ordered" {
		cells := float64(q.cfg.Link) * 1024 / 8e9 / float64(q.cfg.Hardware.Cell)
		length >>= max(0, int(math.Round(math.Log2(cells))))
	}
	return uint32(length)
}

func (q *queue) learn(r Report, _ Time) { q.len[r.Port] = r.Len }
