package lab

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
)

// A demand is a lower bound for the cost of a run. It counts the packets of all flows at each
// switch, and the samples of the links. Retransmissions, probes and copies are not included.
type demand struct {
	Flows  float64
	Events float64
	Bytes  float64 // bytes of memory
}

// Limits reject an experiment before it begins if its runs would exceed them; 0 is no
// limit.
type Limits struct {
	Events float64 // events of one run
	Bytes  float64 // bytes of memory of all parallel runs
	Nodes  int     // hosts and switches in the networks of all cases; 0: maxNodes
}

// maxNodes limits the total size of the networks of all cases, which exist at the same time. A
// host takes about a kilobyte.
var maxNodes = 500_000

// DefaultEvents is the default limit: several days on today's machines.
const DefaultEvents = 2e11

// ErrTooLarge is wrapped by the error about an experiment that exceeds a limit.
var ErrTooLarge = errors.New("the experiment is too large")

// Memory of the parts of a run including garbage, measured in runs of 20,000 to a million flows.
const (
	bytesPerFlow    = 2500
	bytesPerWaiting = 300 // per packet that a flow sends before the first acknowledgment
	bytesPerSample  = 480
	eventsPerHop    = 2 // an arrival and the end of a transmission
	ackShare        = 2 // acknowledgments per data packet
	defaultSegment  = 1460.0
	firstSegments   = 10
)

// demand estimates the cost of one run.
func (j *Job) demand() (demand, error) {
	var e demand
	t := j.setup.topo
	tiers := 1.0
	for _, s := range t.Switches {
		tiers = max(tiers, float64(2*s.Role.Tier()-1))
	}
	segment := float64(j.Case.Transport.MSS)
	if segment <= 0 || segment > defaultSegment {
		segment = defaultSegment
	}
	var hosts, bits, waiting float64 // total rate of the hosts, demand, and packets of flows that have just started
	for _, s := range t.Switches {
		for _, p := range t.Ports(s.Name) {
			if p.PeerTier == 0 {
				hosts += float64(p.Rate)
			}
		}
	}
	add := func(flows, mean float64) {
		e.Flows += flows
		packets := math.Ceil(mean / segment)
		e.Events += flows * packets * ackShare * (tiers + 1) * eventsPerHop
		bits += 8 * flows * (mean + packets*sim.UDPHeaders) // flows of a few bytes consist mostly of headers
		waiting += flows * min(packets, firstSegments)
	}
	for i := range j.Case.Traffic {
		flows, mean, err := j.Case.Traffic[i].Expected(t, j.Load, j.Case.Length())
		if err != nil {
			return e, err
		}
		add(flows, mean)
	}
	if len(j.Case.Jobs) > 0 {
		flows, mean, err := j.Case.ExpectedOfJobs(t)
		if err != nil {
			return e, err
		}
		add(flows, mean)
	}
	// The first packets of flows that exceed the hosts' capacity wait at the hosts.
	if carried := hosts * time.Duration(j.Case.Length()).Seconds(); bits > carried {
		waiting *= 1 - carried/bits
	} else {
		waiting = 0
	}
	interval := time.Duration(j.x.Interval)
	if interval <= 0 {
		interval = spec.DefaultInterval(j.Case.Length())
	}
	samples := float64(j.Case.Length()) / float64(interval)
	e.Events += samples
	e.Bytes = e.Flows*bytesPerFlow + waiting*bytesPerWaiting + samples*bytesPerSample
	return e, nil
}

// check returns an error if jobs exceed a limit when run on the given number of cores.
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
