package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// A Job is a training job: ranks on hosts that repeat phases of computation and
// communication. Ranks are numbered by tensor rank first, then by data rank, then by
// pipeline stage.
type Job struct {
	Name      string    `yaml:"name"`
	Start     Time      `yaml:"start"`
	Placement Placement `yaml:"placement"`
	Shared    bool      `yaml:"shared"` // its hosts may also run other shared jobs

	// Degrees of parallelism. 0: 1; for Data, 0 means the remaining ranks.
	Ranks    int `yaml:"ranks"`
	Data     int `yaml:"data"`
	Pipeline int `yaml:"pipeline"`
	Tensor   int `yaml:"tensor"`
	Expert   int `yaml:"expert"` // groups among the data-parallel ranks

	Iterations   int     `yaml:"iterations"`   // 0: one
	Microbatches int     `yaml:"microbatches"` // microbatches of pipeline phases; 0: one
	Connections  string  `yaml:"connections"`  // persistent, per-message or queue-pair
	Phases       []Phase `yaml:"phases"`
}

// A Phase is a computation of every rank, a collective operation in every group of
// ranks, or a pass through the stages of the pipeline.
type Phase struct {
	Name  string   `yaml:"name"`
	After []string `yaml:"after"` // phases on the same rank that must have ended; empty: the previous phase

	Compute Time `yaml:"compute"`

	Collective string `yaml:"collective"`
	Over       string `yaml:"over"` // parallelism whose groups communicate
	Algorithm  string `yaml:"algorithm"`
	Size       Size   `yaml:"size"` // size of a rank's buffer, or of a message to the next stage
	Window     int    `yaml:"window"`
	Chunks     int    `yaml:"chunks"`

	Pipeline string  `yaml:"pipeline"` // schedule: forward, backward or 1f1b
	Phases   []Phase `yaml:"phases"`   // phases of each stage and microbatch
	Backward []Phase `yaml:"backward"` // 1f1b: phases of the backward pass
}

// A Placement is a list of hosts in the order of ranks, or a rule that chooses them.
type Placement []string

// The rules of a Placement.
const (
	packedPlacement = "packed" // free hosts in topology order
	spreadPlacement = "spread" // free hosts of each leaf in turn
	randomPlacement = "random" // random free hosts, from the seed
)

var placements = []string{packedPlacement, spreadPlacement, randomPlacement}

// UnmarshalNode reads a rule or a list of hosts.
func (p *Placement) UnmarshalNode(n tree.Node) error {
	if n.Kind == tree.Scalar {
		*p = Placement{n.Text}
		return nil
	}
	return n.Decode((*[]string)(p))
}

// rule returns the rule, or "" for a list of hosts.
func (p Placement) rule() string {
	switch {
	case len(p) == 0:
		return packedPlacement
	case len(p) == 1 && slices.Contains(placements, p[0]):
		return p[0]
	}
	return ""
}

// The groups in which ranks communicate.
const (
	overData     = "data"
	overPipeline = "pipeline"
	overTensor   = "tensor"
	overExpert   = "expert"
	overAll      = "all"
)

var parallelisms = []string{overData, overPipeline, overTensor, overExpert, overAll}

// The pipeline schedules.
const (
	forward   = "forward"
	backward  = "backward"
	alternate = "1f1b" // alternates forward and backward passes once the pipeline is full
)

var pipelines = []string{forward, backward, alternate}

// iterationStart names the start of the iteration in Phase.After.
const iterationStart = "start"

// degrees holds the degrees of parallelism of a job, with defaults filled in.
type degrees struct{ data, pipeline, tensor, expert int }

func (d degrees) ranks() int { return d.data * d.pipeline * d.tensor }

// of returns the degree of a parallelism.
func (d degrees) of(over string) int {
	switch over {
	case overData:
		return d.data
	case overPipeline:
		return d.pipeline
	case overTensor:
		return d.tensor
	case overExpert:
		return d.expert
	}
	return d.ranks()
}

// groups returns the groups of a parallelism, as lists of ranks.
func (d degrees) groups(over string) (groups [][]int) {
	if over == overAll {
		return [][]int{sequence(0, d.ranks())}
	}
	at := map[int]int{} // index of a group, by its first rank
	for rank := range d.ranks() {
		first := rank
		switch t, data, stage := rank%d.tensor, rank/d.tensor%d.data, rank/(d.tensor*d.data); over {
		case overTensor:
			first -= t
		case overData:
			first -= data * d.tensor
		case overExpert:
			first -= data % d.expert * d.tensor
		case overPipeline:
			first -= stage * d.data * d.tensor
		}
		if first == rank {
			at[rank] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[first]] = append(groups[at[first]], rank)
	}
	return groups
}

// stage returns the ranks of a stage of the pipeline.
func (d degrees) stage(i int) []int { return sequence(i*d.data*d.tensor, (i+1)*d.data*d.tensor) }

// Describe returns the job in a line.
func (j *Job) Describe() string {
	text := j.Name + ":"
	for _, d := range []struct {
		name   string
		degree int
	}{{"ranks", j.Ranks}, {overData, j.Data}, {overPipeline, j.Pipeline}, {overTensor, j.Tensor}, {overExpert, j.Expert}} {
		if d.degree > 0 {
			text += fmt.Sprintf(" %s %d,", d.name, d.degree)
		}
	}
	rule := j.Placement.rule()
	if rule == "" {
		rule = "on " + strings.Join(j.Placement[:min(4, len(j.Placement))], ", ")
		if len(j.Placement) > 4 {
			rule += fmt.Sprintf(" and %d more", len(j.Placement)-4)
		}
	}
	return fmt.Sprintf("%s %d iterations, %s", text, max(j.Iterations, 1), rule)
}

// predecessors lists the phases that each phase waits for, by index.
func predecessors(list []Phase) [][]int32 {
	places := map[string]int32{}
	for i := range list {
		if list[i].Name != "" {
			places[list[i].Name] = int32(i)
		}
	}
	before := make([][]int32, len(list))
	for i := range list {
		switch after := list[i].After; {
		case len(after) == 0 && i > 0:
			before[i] = []int32{int32(i - 1)}
		default:
			for _, name := range after {
				if name != iterationStart {
					before[i] = append(before[i], places[name])
				}
			}
		}
	}
	return before
}

// phaseOrder returns an order of the phases in which each phase follows its predecessors, as
// close as possible to the list. If there is none, it returns a cycle.
func phaseOrder(list []Phase) (order []int, cycle []int) {
	before := predecessors(list)
	if cycle := sim.Cycle(len(list), func(i int) (after, afterAck []int32) { return before[i], nil }); cycle != nil {
		return nil, cycle
	}
	done := make([]bool, len(list))
	for len(order) < len(list) {
		for i := range list {
			if !done[i] && !slices.ContainsFunc(before[i], func(p int32) bool { return !done[p] }) {
				done[i] = true
				order = append(order, i)
				break
			}
		}
	}
	return order, nil
}

// computing returns an upper bound of the time that a rank of the job computes.
func (j *Job) computing() time.Duration {
	total := float64(0)
	for i := range j.Phases {
		p := &j.Phases[i]
		total += float64(p.Compute) + float64(p.stageCompute())*float64(max(j.Microbatches, 1)+max(j.Pipeline, 1))
	}
	return time.Duration(min(float64(j.Start)+total*float64(max(j.Iterations, 1)), float64(maxTime)))
}

// A JobRun is a job on its hosts in a run.
type JobRun struct {
	*Job
	Hosts   []int         // by rank
	Compute time.Duration // total computation of each rank per iteration
	degrees degrees
}

// computed returns how long each rank computes in an iteration.
func (j *Job) computed() (total time.Duration) {
	for i := range j.Phases {
		p := &j.Phases[i]
		total += time.Duration(p.Compute + Time(max(j.Microbatches, 1))*p.stageCompute())
	}
	return total
}

// stageCompute returns how long each stage computes for a microbatch.
func (p *Phase) stageCompute() (total Time) {
	for _, list := range [][]Phase{p.Phases, p.Backward} {
		for i := range list {
			total += list[i].Compute
		}
	}
	return total
}
