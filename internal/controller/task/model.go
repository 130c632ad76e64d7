package task

import (
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A granularityTask computes PDLB's flowcell sizes at one leaf (Algorithm 1 with
// Eq. 1 to 10), a size for each other leaf.
type granularityTask struct {
	identity
	period  time.Duration
	stale   time.Duration // a path's value is ignored from this age
	average bool          // a path is congested above twice the average, as printed in the paper
	leaves  []leafPaths

	delay, heard, size *registers.Array

	rtt, at, gran []uint64
}

// leafPaths describes the paths to a leaf: their group and everything known about them except
// delays.
type leafPaths struct {
	group int
	paths int
	model fitting.PDLB
}

func newGranularityTask(s *site) (Task, error) {
	n, o := s.Node, s.options
	g := &granularityTask{
		identity: s.identity(), period: time.Duration(s.task.Period), average: s.task.Average, stale: time.Duration(s.task.Stale),
		delay: s.array(manifest.PartDelay), heard: s.array(manifest.PartMoment), size: s.array(manifest.PartSize),
	}
	routes, leaves := s.topology.Routes(), s.topology.Leaves()
	for _, group := range n.Groups {
		span, ok := routes.Span(n.Name, leaves[group.ID-1].Name)
		if !ok {
			continue
		}
		g.leaves = append(g.leaves, leafPaths{group: group.ID, paths: len(group.Hops), model: fitting.PDLB{
			C: packets(float64(span.Rate)/8, o), Buffer: float64(queueOf(n, group.Hops[0].Port, o)),
			Size: fitting.PDLBFlow, Flows: float64(o.Flows),
		}})
	}
	return g, nil
}

// packets converts bytes to packets.
func packets(bytes float64, o Options) float64 { return bytes / float64(o.MTU) }

// queueOf returns the queue capacity of a port in packets.
func queueOf(n *plan.Node, port int, o Options) int {
	if p, ok := n.Port(port); ok && p.Queue > 0 {
		return p.Queue
	}
	return o.Queue
}

// Run solves Eq. 10 for each leaf and writes changed values.
func (g *granularityTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next := now + g.period
	if len(g.leaves) == 0 {
		return Never, nil
	}
	clock, err := g.read(f)
	if err != nil {
		return next, err
	}
	for _, l := range g.leaves {
		from := l.group * manifest.MaxPaths
		to := from + l.paths
		gran, ok, err := g.solve(l, g.rtt[from:to], g.at[from:to], clock)
		if err != nil {
			return next, fmt.Errorf("paths of group %d: %w", l.group, err)
		}
		if !ok || g.gran[l.group] == uint64(gran) {
			continue
		}
		if err := f.WriteRegister(g.sw, g.size.Parts[0].Register.Name, l.group, l.group+1, uint64(gran)); err != nil {
			return next, err
		}
	}
	return next, nil
}

// read reads the delays of all paths, and the sizes in the switch, because a restarted switch has
// lost them.
func (g *granularityTask) read(f Fabric) (clock time.Duration, err error) {
	groups := g.leaves[len(g.leaves)-1].group + 1
	if g.at, clock, err = g.heard.ReadMoments(f, g.sw, groups*manifest.MaxPaths, g.at[:0]); err != nil {
		return 0, err
	}
	if g.rtt, err = g.delay.Read(f, g.sw, 0, groups*manifest.MaxPaths, clock, g.rtt[:0]); err != nil {
		return 0, err
	}
	g.gran, err = g.size.Read(f, g.sw, 0, groups, clock, g.gran[:0])
	return clock, err
}

// solve runs Algorithm 1 for the paths to one leaf. ok is false if no delay is known yet. The
// printed algorithm uses the smallest delay as D_b and the largest as D_g. Here D_b is the
// largest, so that X is at least 1.
func (g *granularityTask) solve(l leafPaths, rtt, at []uint64, clock time.Duration) (gran int, ok bool, err error) {
	var delays []float64
	for i, t := range rtt {
		if age := clock - time.Duration(at[i])*time.Microsecond; at[i] != 0 && (g.stale == 0 || age <= g.stale) {
			delays = append(delays, max(1, float64(t))/1e6)
		}
	}
	if len(delays) == 0 {
		return 0, false, nil
	}
	p := l.model
	p.M, p.Good = len(delays), slices.Min(delays)
	p.X = slices.Max(delays) / p.Good
	limit := 2 * p.Good
	if g.average {
		sum := 0.0
		for _, d := range delays {
			sum += d
		}
		limit = 2 * sum / float64(len(delays))
	}
	for _, d := range delays {
		if d > limit {
			p.Bad++
		}
	}
	gran, _, err = p.Granularity()
	return gran, err == nil, err
}

// A thresholdTask writes QDAPS's S into a switch, and again if the switch has lost it.
type thresholdTask struct {
	identity
	limit   *registers.Array
	value   uint64
	recheck time.Duration
}

// newThresholdTask computes S (Eq. 14) for the switch's links to other switches. If the links
// differ, it uses the smallest S, at which leaving a queue is worthwhile on every link.
func newThresholdTask(s *site) (Task, error) {
	n, o := s.Node, s.options
	rtt := largestRTT(s.topology, n)
	task := &thresholdTask{identity: s.identity(), limit: s.array(manifest.PartThreshold), recheck: o.Recheck}
	for _, p := range n.Ports {
		if p.PeerTier == 0 {
			continue
		}
		q := fitting.QDAPS{
			C: packets(float64(p.Rate)/8, o), RTT: rtt.Seconds(), K: float64(queueOf(n, p.Number, o)) / 4,
			Y: packets(o.FlowSize, o), Cap: float64(queueOf(n, p.Number, o)),
		}
		if s := uint64(q.Closed()); task.value == 0 || s < task.value {
			task.value = s
		}
	}
	return task, nil
}

// largestRTT returns the largest round-trip time without queueing from a switch to a leaf and its
// hosts.
func largestRTT(t *fabric.Topology, n *plan.Node) (rtt time.Duration) {
	routes := t.Routes()
	for _, h := range t.Hosts {
		if span, ok := routes.Span(n.Name, h.Name); ok {
			rtt = max(rtt, span.RTT)
		}
	}
	return rtt
}

// Run writes the threshold unless it is there.
func (t *thresholdTask) Run(now time.Duration, f Fabric) (time.Duration, error) {
	if t.value == 0 {
		return Never, nil
	}
	return now + t.recheck, writeIfOther(f, t.sw, t.limit, t.value)
}

// writeIfOther sets the one cell of an array unless it has the value.
func writeIfOther(f Fabric, sw string, a *registers.Array, value uint64) error {
	var cell [1]uint64
	name := a.Parts[0].Register.Name
	have, err := f.ReadRegister(sw, name, 0, 1, cell[:0])
	if err != nil || have[0] == value {
		return err
	}
	return f.WriteRegister(sw, name, 0, 1, value)
}
