package lab

import (
	"math"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
)

// An outcome is a flow with its measurements.
type outcome struct {
	spec.Flow
	sim.FlowStats               // written by the simulator during the run
	ideal         time.Duration // completion time alone in an idle network
	wire          int64         // bytes including headers of packets
	end           time.Duration // end of the run
	class         int32
	counts        bool // part of the statistics: it started after the warm-up and is finite
}

// fct returns the completion time. For an unfinished flow it returns the time until the end of
// the run.
func (f *outcome) fct() time.Duration {
	if f.Finished == 0 {
		return f.end - f.Started
	}
	return f.Finished - f.Started
}

// acked returns the time until the sender received the last acknowledgment. For a flow without
// it, it returns the time until the end of the run.
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
	occupancy   []float64 // samples of the fill levels of upward queues, 0 to 1
	sharing     float64
	utilisation float64
	whole       float64 // utilisation until the end of the run
	idlest      float64
	pathsUsed   float64 // share of the upward ports in use

	trims      bool    // switches trim packets
	recovery   float64 // ms; NaN: no faults
	imbalance  float64
	bufferPeak float64 // KB
	ideals     map[*spec.Instance]time.Duration
	jobs       []*jobTime

	dropped, pauses, paused, recirculated, copies, probes float64
	age, granularity                                      float64

	fit *fitting.Fit // fit to the ports' behaviour; nil: the experiment has none
}

// A jobTime holds the times of a job in a run. It omits iterations that have not ended on all
// ranks.
type jobTime struct {
	*spec.JobRun
	iterations int
	ends       []time.Duration // by rank: end of the last iteration, since the job's start
	ideals     []time.Duration // by rank: lower bounds of ends
	busy       time.Duration   // time of the busiest host link in all iterations
}

// Steps holds the messages of one execution of a collective operation, or of a job, in columns.
type Steps struct {
	Job   string    `json:"job,omitempty"`
	Hosts []string  `json:"hosts"` // names of the senders
	Rank  []int     `json:"rank"`  // by message: its sender's index in Hosts
	Step  []int     `json:"step"`  // by message: number of messages before it in the longest chain
	Start []float64 `json:"start_ms"`
	End   []float64 `json:"end_ms"`

	going []bool // by message: it has not arrived, and End is the current time; nil: all have arrived
}

// Uses holds the utilisations of links over time.
type Uses struct {
	Links []string    `json:"links"`
	To    []float64   `json:"to_ms"` // ends of the intervals; the first interval begins at 0
	Use   [][]float64 `json:"use"`   // by link and interval, 0 to 1
}

// round rounds to six digits, which suffice for a plot.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, 6-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
