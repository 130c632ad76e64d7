package lab

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/fabric"
)

// A Demand says what a run will take at least, before it begins: the flows
// that the load asks for, each packet of theirs at each switch, and the samples
// of the links. Retransmissions, probes and copies come on top.
type Demand struct {
	Flows  float64
	Events float64
	Bytes  float64 // of memory
}

// Limits end an experiment before it begins whose runs would take more; 0 is no
// limit.
type Limits struct {
	Events float64 // of one run
	Bytes  float64 // of memory, of the runs that go on side by side
}

// DefaultEvents is the limit of who sets none: days on today's machines.
const DefaultEvents = 2e11

// ErrTooLarge is wrapped by the refusal of an experiment that passes a limit.
var ErrTooLarge = errors.New("the experiment is too large")

// What the parts of a run take, as measured with runs of a million of each.
const (
	bytesPerFlow   = 1100
	bytesPerSample = 480
	eventsPerHop   = 2 // an arrival, and the end of a transmission
	ackShare       = 2 // packets back for packets forth
	defaultSegment = 1460.0
)

// demand is what one run takes.
func (j *Job) demand() (Demand, error) {
	var e Demand
	t := j.setup.topo
	tiers := 1.0
	for _, s := range t.Switches {
		tiers = max(tiers, float64(2*s.Role.Tier()-1))
	}
	segment := float64(j.Case.Transport.MSS)
	if segment <= 0 || segment > defaultSegment {
		segment = defaultSegment
	}
	for i := range j.Case.Traffic {
		flows, mean, err := j.Case.Traffic[i].expected(t, j.Load, j.Case.length())
		if err != nil {
			return e, err
		}
		e.Flows += flows
		e.Events += flows * math.Ceil(mean/segment) * ackShare * (tiers + 1) * eventsPerHop
	}
	interval := time.Duration(j.x.Interval)
	if interval <= 0 {
		interval = defaultInterval(j.Case.length())
	}
	samples := float64(j.Case.length()) / float64(interval)
	e.Events += samples
	e.Bytes = e.Flows*bytesPerFlow + samples*bytesPerSample
	return e, nil
}

// expected is how many flows a traffic makes, and their mean size.
func (tr *Traffic) expected(t *fabric.Topology, load float64, length time.Duration) (flows, mean float64, err error) {
	if tr.Pattern == List {
		for _, f := range tr.flows {
			mean += float64(f.Bytes) / float64(len(tr.flows))
		}
		return float64(len(tr.flows)), mean, nil
	}
	d, err := newDraw(tr, t, newRandom(1, 0))
	if err != nil {
		return 0, 0, err
	}
	mean = d.mean()
	switch {
	case tr.Pattern == Pairs && len(tr.At) > 0:
		return float64(len(tr.At) * len(d.pairs)), mean, nil
	case tr.Pattern == Burst:
		return float64(len(tr.At)*len(d.from)) * float64(max(tr.Degree, 1)), mean, nil
	}
	rate, err := d.rate(load)
	if err != nil {
		return 0, 0, err
	}
	stop := length
	if s := time.Duration(tr.Stop); s > 0 {
		stop = min(stop, s)
	}
	flows = rate * max(0, stop-time.Duration(tr.Start)).Seconds()
	if tr.Flows > 0 {
		flows = float64(tr.Flows)
	}
	if tr.Pattern == Incast { // a request's size is that of all answers
		answers := float64(min(max(tr.Degree, 1), len(d.from)))
		return flows * answers, mean / answers, nil
	}
	return flows, mean, nil
}

// check refuses jobs that would pass a limit, so many of which run side by side.
func (l Limits) check(jobs []*Job, cores int) error {
	for _, j := range jobs {
		e, err := j.demand()
		if err != nil {
			return err
		}
		together := e.Bytes * float64(min(cores, len(jobs)))
		switch {
		case l.Events > 0 && e.Events > l.Events:
			return fmt.Errorf("%w: %s would take about %.1e events (%.1e flows), more than %.1e", ErrTooLarge, j.Name(), e.Events, e.Flows, l.Events)
		case l.Bytes > 0 && together > l.Bytes:
			return fmt.Errorf("%w: %s would take about %.1f GiB of memory on %d cores (%.1e flows), more than %.1f GiB", ErrTooLarge, j.Name(), together/(1<<30), min(cores, len(jobs)), e.Flows, l.Bytes/(1<<30))
		}
	}
	return nil
}
