package lab

import (
	"math"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
)

// An outcome is a flow and what became of it.
type outcome struct {
	spec.Flow
	sim.FlowStats               // the simulator writes them during the run
	ideal         time.Duration // alone in the network
	wire          int64         // bytes, with the headers of its packets
	end           time.Duration // of the run
	class         int
	counts        bool // in the statistics: it began after the warm-up, and was to end
}

// fct is the completion time; of a flow that had not ended, the time it had.
func (f *outcome) fct() time.Duration {
	if f.Finished == 0 {
		return f.end - f.Started
	}
	return f.Finished - f.Started
}

// acked is the time until the sender had the acknowledgment of all bytes; of a flow
// without it, the time until the end of the run.
func (f *outcome) acked() time.Duration {
	if f.Acknowledged == 0 {
		return f.end - f.Started
	}
	return f.Acknowledged - f.Started
}

// measured contains the measurements of a run except its flows.
type measured struct {
	flows   []*outcome
	classes []spec.Class

	goodput     float64   // bit/s
	occupancy   []float64 // samples of the queues upwards, 0 to 1
	sharing     float64
	utilisation float64
	whole       float64 // utilisation until the run was over
	idlest      float64
	pathsUsed   float64 // share of the ports upwards

	trims      bool    // switches trim packets
	recovery   float64 // ms; NaN: without faults
	imbalance  float64
	bufferPeak float64 // KB
	ideals     map[*spec.Instance]time.Duration
	jobs       []*jobTime

	dropped, pauses, paused, recirculated, copies, probes float64
	age, granularity                                      float64

	fit *fitting.Fit // of the ports; nil: the experiment has none
}

// A jobTime contains the times of a job in a run, without its iterations that have not
// ended on all ranks.
type jobTime struct {
	*spec.JobRun
	iterations int
	ends       []time.Duration // by rank: of the last iteration, since the job's start
	ideals     []time.Duration // by rank: lower bounds of ends
	busy       time.Duration   // of the busiest link of a host, in all iterations
}

// Steps are the messages of one execution of a collective operation, in columns.
type Steps struct {
	Hosts []string  `json:"hosts"` // the senders
	Rank  []int     `json:"rank"`  // of each message, its place in Hosts
	Step  []int     `json:"step"`  // how many messages precede it in its longest chain
	Start []float64 `json:"start_ms"`
	End   []float64 `json:"end_ms"`

	going []bool // of each message: it has not arrived, and End is now; nil: all have arrived
}

// Uses are the utilisations of links over time.
type Uses struct {
	Links []string    `json:"links"`
	To    []float64   `json:"to_ms"` // the ends of the intervals, of which the first begins at 0
	Use   [][]float64 `json:"use"`   // by link and interval, 0 to 1
}

// round keeps six digits, which is all that a plot shows.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 6-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
