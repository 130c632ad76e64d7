package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// A Job is a training job: ranks on hosts that repeat phases of computation and
// communication. Ranks are numbered by tensor rank first, then by data rank, then by
// pipeline stage.
type Job struct {
	Name      string    `yaml:"name"`
	Start     Time      `yaml:"start"`
	Placement Placement `yaml:"placement"`
	Shared    bool      `yaml:"shared"` // other shared jobs may run on its hosts

	// Degrees of parallelism; 0: 1, or for Data the ranks that remain.
	Ranks    int `yaml:"ranks"`
	Data     int `yaml:"data"`
	Pipeline int `yaml:"pipeline"`
	Tensor   int `yaml:"tensor"`
	Expert   int `yaml:"expert"` // of the data-parallel ranks

	Iterations   int     `yaml:"iterations"`   // 0: one
	Microbatches int     `yaml:"microbatches"` // of pipeline phases; 0: one
	Connections  string  `yaml:"connections"`  // persistent, per-message or queue-pair
	Phases       []Phase `yaml:"phases"`
}

// A Phase is a computation of every rank, a collective operation in every group of
// ranks, or a pass through the stages of the pipeline.
type Phase struct {
	Name  string   `yaml:"name"`
	After []string `yaml:"after"` // phases that end before on the same rank; empty: the one above

	Compute Time `yaml:"compute"`

	Collective string `yaml:"collective"`
	Over       string `yaml:"over"` // the parallelism whose groups communicate
	Algorithm  string `yaml:"algorithm"`
	Size       Size   `yaml:"size"` // of the buffer of a rank, or of a message to the next stage
	Window     int    `yaml:"window"`
	Chunks     int    `yaml:"chunks"`

	Pipeline string  `yaml:"pipeline"` // forward or backward
	Phases   []Phase `yaml:"phases"`   // of each stage and microbatch
}

// A Placement is a rule that chooses hosts, or hosts in the order of ranks.
type Placement []string

// The rules of a Placement.
const (
	packedPlacement = "packed" // free hosts in their order
	spreadPlacement = "spread" // free hosts of each leaf in turn
	randomPlacement = "random" // drawn from the seed
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

// The groups of ranks that communicate.
const (
	overData     = "data"
	overPipeline = "pipeline"
	overTensor   = "tensor"
	overExpert   = "expert"
	overAll      = "all"
)

var parallelisms = []string{overData, overPipeline, overTensor, overExpert, overAll}

// The directions of a pass through the pipeline.
const (
	forward  = "forward"
	backward = "backward"
)

// iterationStart names the start of the iteration in Phase.After.
const iterationStart = "start"

// Limits of jobs.
const (
	maxJobs       = 1000
	maxIterations = 1_000_000
)

// degrees are the degrees of a job, with defaults filled in.
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
	at := map[int]int{} // by first rank: its group
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

// degrees returns the degrees of the job on so many hosts.
func (j *Job) degrees(hosts int) (degrees, error) {
	d := degrees{data: j.Data, pipeline: max(j.Pipeline, 1), tensor: max(j.Tensor, 1), expert: max(j.Expert, 1)}
	if min(j.Ranks, j.Data, j.Pipeline, j.Tensor, j.Expert) < 0 {
		return d, fmt.Errorf("ranks %d, data %d, pipeline %d, tensor %d, expert %d: want 0 or more", j.Ranks, j.Data, j.Pipeline, j.Tensor, j.Expert)
	}
	if max(j.Ranks, j.Data, j.Pipeline, j.Tensor, j.Expert) > hosts {
		return d, fmt.Errorf("ranks %d, data %d, pipeline %d, tensor %d, expert %d: there are %d hosts", j.Ranks, j.Data, j.Pipeline, j.Tensor, j.Expert, hosts)
	}
	ranks, other := j.Ranks, d.pipeline*d.tensor
	switch {
	case ranks == 0 && d.data > 0:
		ranks = d.data * other
	case ranks == 0 && j.Placement.rule() == "":
		ranks = len(j.Placement) // of which ranges have been resolved
	case ranks == 0:
		ranks = hosts
	}
	if d.data == 0 {
		if ranks%other != 0 {
			return d, fmt.Errorf("pipeline %d times tensor %d is %d: want a divisor of the %d ranks", d.pipeline, d.tensor, other, ranks)
		}
		d.data = ranks / other
	}
	switch {
	case d.ranks() != ranks:
		return d, fmt.Errorf("data %d times pipeline %d times tensor %d is %d: want the %d ranks", d.data, d.pipeline, d.tensor, d.ranks(), ranks)
	case d.data%d.expert != 0:
		return d, fmt.Errorf("expert %d: want a divisor of data, which is %d", d.expert, d.data)
	case ranks > hosts:
		return d, fmt.Errorf("%d ranks: there are %d hosts", ranks, hosts)
	case ranks < 2:
		return d, errors.New("one rank: want 2 or more")
	}
	return d, nil
}

// JobNames lists the names of the jobs of all cases.
func (x *Experiment) JobNames() (names []string) {
	for i := range x.Cases {
		for j := range x.Cases[i].Jobs {
			names = lists.Add(names, x.Cases[i].Jobs[j].Name)
		}
	}
	return names
}

// checkJobs fills in defaults of the jobs and returns an error if they are invalid.
func (s *Setting) checkJobs(t *fabric.Topology) error {
	if len(s.Jobs) > maxJobs {
		return &keyError{"", fmt.Errorf("%d jobs: want at most %d", len(s.Jobs), maxJobs)}
	}
	names := map[string]bool{}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		at := func(key string, err error) error { return &keyError{fmt.Sprintf("[%d]%s", i, key), err} }
		j.Name = cmp.Or(j.Name, fmt.Sprintf("job%d", i+1))
		switch {
		case strings.ContainsAny(j.Name, ": ,"):
			return at(".name", fmt.Errorf("name %q: want no colon, comma or space, as metrics are called iteration-time:NAME", j.Name))
		case names[j.Name]:
			return at("", fmt.Errorf("two jobs are called %s: want different names", j.Name))
		}
		names[j.Name] = true
		if err := j.check(t); err != nil {
			wrong := err.(*keyError)
			return at(wrong.key, wrong.err)
		}
	}
	_, err := s.place(t, 1)
	return err
}

// check fills in defaults of the job and returns a *keyError if it is invalid.
func (j *Job) check(t *fabric.Topology) error {
	if j.Placement.rule() == "" {
		if len(j.Placement) == 1 && t.Switch(j.Placement[0]) == nil && !strings.Contains(j.Placement[0], "..") && !slices.ContainsFunc(t.Hosts, func(h fabric.Host) bool { return h.Name == j.Placement[0] }) {
			return &keyError{".placement", fmt.Errorf("placement %q: want %s, or a list of hosts", j.Placement[0], orList(placements))}
		}
		hosts, err := inRanks(t, j.Placement)
		if err != nil {
			return &keyError{".placement", err}
		}
		j.Placement = lists.Map(hosts, func(h int) string { return t.Hosts[h].Name })
	}
	d, err := j.degrees(len(t.Hosts))
	switch {
	case err != nil:
		return &keyError{"", err}
	case j.Placement.rule() == "" && len(j.Placement) != d.ranks():
		return &keyError{".placement", fmt.Errorf("%d hosts for %d ranks: want as many", len(j.Placement), d.ranks())}
	case j.Iterations < 0 || j.Iterations > maxIterations:
		return &keyError{".iterations", fmt.Errorf("iterations %d: want 0 to %d", j.Iterations, maxIterations)}
	case j.Microbatches < 0 || j.Microbatches > maxIterations:
		return &keyError{".microbatches", fmt.Errorf("microbatches %d: want 0 to %d", j.Microbatches, maxIterations)}
	case len(j.Phases) == 0:
		return &keyError{"", errors.New("no phases: want phases: [{compute: 1ms}, {collective: all-reduce, over: data, size: 8MB}]")}
	}
	if err := checkConnections(j.Connections); err != nil {
		return &keyError{".connections", err}
	}
	messages, pipelined, err := j.checkPhases(j.Phases, d, false)
	switch {
	case err != nil:
		return err
	case j.Microbatches > 0 && !pipelined:
		return &keyError{".microbatches", fmt.Errorf("microbatches %d: want a phase with pipeline: %s or %s", j.Microbatches, forward, backward)}
	case messages == 0:
		return &keyError{".phases", errors.New("no phase communicates: want collective or pipeline in one of them")}
	}
	if n := (messages + float64(d.ranks())) * float64(max(j.Iterations, 1)); n > maxMessages {
		return &keyError{"", fmt.Errorf("%.0f messages and computations: want at most %d", n, maxMessages)}
	}
	return nil
}

// checkPhases checks a list of phases. It returns how many messages and computations
// one execution of them has if any communicates, and whether one passes the pipeline.
func (j *Job) checkPhases(list []Phase, d degrees, inStage bool) (messages float64, pipelined bool, err error) {
	names := map[string]bool{iterationStart: true}
	communicates := false
	for i := range list {
		p := &list[i]
		n, err := j.checkPhase(p, d, inStage)
		if err == nil && p.Name != "" && names[p.Name] {
			err = &keyError{".name", fmt.Errorf("name %q: want a name of its own", p.Name)}
		}
		if err != nil {
			wrong := err.(*keyError)
			return 0, false, &keyError{fmt.Sprintf(".phases[%d]%s", i, wrong.key), wrong.err}
		}
		names[p.Name] = true
		messages += n
		communicates = communicates || p.Compute == 0
		pipelined = pipelined || p.Pipeline != ""
	}
	for i := range list {
		for _, name := range list[i].After {
			if name == "" || !names[name] {
				return 0, false, &keyError{fmt.Sprintf(".phases[%d].after", i), fmt.Errorf("after %q: there is no phase of this name beside it, and want %s for the start of an iteration", name, iterationStart)}
			}
		}
	}
	if _, cycle := phaseOrder(list); cycle != nil {
		return 0, false, &keyError{fmt.Sprintf(".phases[%d]", cycle[0]), fmt.Errorf("phases wait for each other: %s",
			strings.Join(lists.Map(cycle, func(i int) string { return cmp.Or(list[i].Name, fmt.Sprintf("phases[%d]", i)) }), " after "))}
	}
	if !communicates && !inStage {
		return 0, pipelined, nil
	}
	return messages, pipelined, nil
}

// checkPhase checks one phase and returns how many messages and computations it has.
func (j *Job) checkPhase(p *Phase, d degrees, inStage bool) (float64, error) {
	kinds := 0
	for _, set := range []bool{p.Compute > 0, p.Collective != "", p.Pipeline != ""} {
		if set {
			kinds++
		}
	}
	ranks := float64(d.ranks())
	if inStage {
		ranks /= float64(d.pipeline)
	}
	switch {
	case kinds != 1:
		return 0, &keyError{"", errors.New("want one of compute, collective and pipeline")}
	case p.Pipeline == "" && len(p.Phases) > 0:
		return 0, &keyError{".phases", errors.New("phases in a phase: want pipeline beside them")}
	case p.Collective == "" && (p.Over != "" || p.Algorithm != "" || p.Window != 0 || p.Chunks != 0):
		return 0, &keyError{"", errors.New("over, algorithm, window and chunks: want collective beside them")}
	case p.Compute > 0 && p.Size > 0:
		return 0, &keyError{".size", errors.New("size of a computation: want it in a phase with collective or pipeline")}
	case p.Compute > 0:
		return ranks, nil
	case p.Pipeline != "":
		return j.checkPass(p, d, inStage)
	}
	p.Over = cmp.Or(p.Over, overData)
	switch {
	case !slices.Contains(parallelisms, p.Over):
		return 0, &keyError{".over", fmt.Errorf("over %q: want %s", p.Over, orList(parallelisms))}
	case inStage && (p.Over == overPipeline || p.Over == overAll):
		return 0, &keyError{".over", fmt.Errorf("over %s within a stage of the pipeline: want %s, %s or %s", p.Over, overData, overTensor, overExpert)}
	case d.of(p.Over) < 2:
		return 0, &keyError{".over", fmt.Errorf("over %s: the job has one rank in each group, want %s: 2 or more", p.Over, p.Over)}
	}
	tr := p.traffic()
	size := d.of(p.Over)
	if err := tr.checkCollective(size); err != nil {
		return 0, &keyError{"", err}
	}
	p.Algorithm = tr.Algorithm
	return float64(tr.messages(size)+size) * ranks / float64(size), nil
}

// checkPass checks a pass through the pipeline.
func (j *Job) checkPass(p *Phase, d degrees, inStage bool) (float64, error) {
	switch {
	case inStage:
		return 0, &keyError{".pipeline", errors.New("pipeline within a stage of the pipeline: want compute or collective")}
	case p.Pipeline != forward && p.Pipeline != backward:
		return 0, &keyError{".pipeline", fmt.Errorf("pipeline %q: want %s or %s", p.Pipeline, forward, backward)}
	case d.pipeline < 2:
		return 0, &keyError{".pipeline", errors.New("pipeline: the job has one stage, want pipeline: 2 or more as a degree of the job")}
	case p.Size == 0:
		return 0, &keyError{".pipeline", errors.New("pipeline: want size, the bytes of a microbatch from stage to stage")}
	case len(p.Phases) == 0:
		return 0, &keyError{".pipeline", errors.New("pipeline: want phases of each stage and microbatch, such as phases: [{compute: 1ms}]")}
	}
	inner, _, err := j.checkPhases(p.Phases, d, true)
	if err != nil {
		return 0, err
	}
	return float64(max(j.Microbatches, 1)) * (inner*float64(d.pipeline) + float64(d.ranks())), nil
}

// traffic is the phase as a collective operation.
func (p *Phase) traffic() *Traffic {
	return &Traffic{Pattern: Collective, Collective: p.Collective, Algorithm: p.Algorithm, Size: p.Size, Window: p.Window, Chunks: p.Chunks}
}

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

// predecessors lists the phases that each phase waits for, by their places in a list.
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

// phaseOrder returns the phases in an order in which each is behind its predecessors and
// else as in the list, or a cycle.
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
		total += float64(p.Compute)
		for k := range p.Phases {
			total += float64(p.Phases[k].Compute) * float64(max(j.Microbatches, 1)+max(j.Pipeline, 1))
		}
	}
	return time.Duration(min(float64(j.Start)+total*float64(max(j.Iterations, 1)), float64(maxTime)))
}

// A JobRun is a job on its hosts in a run.
type JobRun struct {
	*Job
	Hosts   []int         // by rank
	Compute time.Duration // of each rank in an iteration
	degrees degrees
}

// place chooses the hosts of all jobs. An error is a *keyError.
func (s *Setting) place(t *fabric.Topology, seed uint64) ([]*JobRun, error) {
	users := make([][]int, len(t.Hosts)) // by host: its jobs
	runs := make([]*JobRun, len(s.Jobs))
	take := func(i int, hosts []int) {
		runs[i].Hosts = hosts
		for _, h := range hosts {
			users[h] = append(users[h], i)
		}
	}
	free := func(i, host int) bool {
		return !slices.ContainsFunc(users[host], func(other int) bool { return !s.Jobs[i].Shared || !s.Jobs[other].Shared })
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		d, err := j.degrees(len(t.Hosts))
		if err != nil {
			return nil, &keyError{fmt.Sprintf("[%d]", i), err}
		}
		runs[i] = &JobRun{Job: j, degrees: d, Compute: j.computed()}
		if j.Placement.rule() != "" {
			continue
		}
		hosts, err := inRanks(t, j.Placement)
		if err != nil {
			return nil, &keyError{fmt.Sprintf("[%d].placement", i), err}
		}
		for _, h := range hosts {
			if !free(i, h) {
				return nil, &keyError{fmt.Sprintf("[%d].placement", i), fmt.Errorf("%s is a host of job %s too: want other hosts, or shared: true in both jobs", t.Hosts[h].Name, s.Jobs[users[h][0]].Name)}
			}
		}
		take(i, hosts)
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		rule := j.Placement.rule()
		if rule == "" {
			continue
		}
		hosts := lists.Filter(sequence(0, len(t.Hosts)), func(h int) bool { return free(i, h) })
		n := runs[i].degrees.ranks()
		if len(hosts) < n {
			return nil, &keyError{fmt.Sprintf("[%d]", i), fmt.Errorf("%d ranks, and other jobs leave %d of %d hosts: want fewer ranks, or shared: true in these jobs", n, len(hosts), len(t.Hosts))}
		}
		switch rule {
		case spreadPlacement:
			hosts = acrossLeaves(t, hosts)
		case randomPlacement:
			NewRandom(seed, placementStream+uint64(i)).Shuffle(len(hosts), func(a, b int) { hosts[a], hosts[b] = hosts[b], hosts[a] })
		}
		take(i, hosts[:n])
	}
	return runs, nil
}

// inRanks returns listed hosts in the order of the list.
func inRanks(t *fabric.Topology, names []string) (hosts []int, err error) {
	listed := make([]bool, len(t.Hosts))
	for _, name := range names {
		set, err := hostSet(t, []string{name})
		if err != nil {
			return nil, err
		}
		for _, h := range set {
			if listed[h] {
				return nil, fmt.Errorf("%s is listed twice: want each host once", t.Hosts[h].Name)
			}
			listed[h] = true
		}
		hosts = append(hosts, set...)
	}
	return hosts, nil
}

// placementStream is the first stream of random numbers of placements, far from the
// streams of traffics.
const placementStream = 1 << 32

// acrossLeaves orders hosts so that each leaf has its turn.
func acrossLeaves(t *fabric.Topology, hosts []int) []int {
	var leaves []string
	at := map[string][]int{}
	for _, h := range hosts {
		leaf := t.Hosts[h].Switch
		leaves = lists.Add(leaves, leaf)
		at[leaf] = append(at[leaf], h)
	}
	var order []int
	for round := 0; len(order) < len(hosts); round++ {
		for _, leaf := range leaves {
			if round < len(at[leaf]) {
				order = append(order, at[leaf][round])
			}
		}
	}
	return order
}

// computed returns how long each rank computes in an iteration.
func (j *Job) computed() (total time.Duration) {
	for i := range j.Phases {
		p := &j.Phases[i]
		total += time.Duration(p.Compute)
		for k := range p.Phases {
			total += time.Duration(max(j.Microbatches, 1)) * time.Duration(p.Phases[k].Compute)
		}
	}
	return total
}

// Flows makes the flows of a run, by start: of the traffic and of the jobs.
func (s *Setting) Flows(t *fabric.Topology, load float64, seed uint64) ([]Flow, error) {
	flows, connections, err := ofTraffic(t, s.Traffic, load, s.Length(), seed)
	if err != nil || len(s.Jobs) == 0 {
		return byStart(flows), err
	}
	runs, err := s.place(t, seed)
	if err != nil {
		return nil, fmt.Errorf("jobs%w", err)
	}
	for _, run := range runs {
		made := run.flows()
		first := int32(len(flows))
		most := connections
		for i := range made {
			f := &made[i]
			f.Start += time.Duration(run.Start)
			f.Class, f.Job = run.Name, run
			if f.Connection > 0 {
				f.Connection += connections
				most = max(most, f.Connection)
			}
			if f.Waits != nil {
				f.Waits = f.Waits.moved(func(i int32) int32 { return i + first })
			}
		}
		connections = most
		flows = append(flows, made...)
	}
	return byStart(flows), nil
}

// ExpectedOfJobs returns how many flows and computations the jobs have, and their mean size.
func (s *Setting) ExpectedOfJobs(t *fabric.Topology) (flows, mean float64, err error) {
	only := Setting{Jobs: s.Jobs}
	list, err := only.Flows(t, 0, 1)
	for _, f := range list {
		mean += float64(f.Bytes) / float64(len(list))
	}
	return float64(len(list)), mean, err
}

// A jobBuilder makes the flows of a job.
type jobBuilder struct {
	builder
	run       *JobRun
	iteration int
	computed  []int32 // by rank: its latest computation in the iteration, or -1
}

// endings are, by rank, the steps that end something on it.
type endings [][]int32

func (e endings) add(other endings) {
	for rank, list := range other {
		for _, i := range list {
			e[rank] = lists.Add(e[rank], i)
		}
	}
}

// flows makes the flows of all iterations. A rank begins an iteration when all phases
// of the one before have ended on it.
func (r *JobRun) flows() []Flow {
	b := &jobBuilder{run: r}
	b.numbers, b.gated = map[[2]int32]int32{}, true
	begin := make(endings, len(r.Hosts))
	for b.iteration = range max(r.Iterations, 1) {
		b.computed = slices.Repeat([]int32{-1}, len(r.Hosts))
		end := b.phases(r.Phases, begin, sequence(0, len(r.Hosts)))
		for rank := range r.Hosts {
			begin[rank] = []int32{b.step(rank, 0, end[rank])}
			b.builder.flows[begin[rank][0]].Ends = int32(b.iteration + 1)
		}
	}
	return b.builder.flows
}

// step adds a computation on a rank of the job.
func (b *jobBuilder) step(rank int, length time.Duration, after []int32) int32 {
	b.hosts, b.began, b.instance = b.run.Hosts, nil, nil
	return b.compute(rank, length, after)
}

// phases makes the phases of a list on some ranks. It returns the endings of those for
// which no phase of the list waits.
func (b *jobBuilder) phases(list []Phase, begin endings, ranks []int) endings {
	before := predecessors(list)
	order, _ := phaseOrder(list) // which has been checked
	ends, last := make([]endings, len(list)), make(endings, len(begin))
	awaited := make([]bool, len(list))
	for _, i := range order {
		from := make(endings, len(begin))
		for _, p := range before[i] {
			from.add(ends[p])
			awaited[p] = true
		}
		if len(before[i]) == 0 {
			from.add(begin)
		}
		ends[i] = b.phase(&list[i], from, ranks)
	}
	for i := range list {
		if !awaited[i] {
			last.add(ends[i])
		}
	}
	return last
}

func (b *jobBuilder) phase(p *Phase, begin endings, ranks []int) endings {
	switch {
	case p.Compute > 0:
		end := make(endings, len(begin))
		for _, rank := range ranks {
			after := begin[rank]
			if c := b.computed[rank]; c >= 0 {
				after = lists.Add(slices.Clone(after), c)
			}
			b.computed[rank] = b.step(rank, time.Duration(p.Compute), after)
			end[rank] = []int32{b.computed[rank]}
		}
		return end
	case p.Pipeline != "":
		return b.pass(p, begin)
	}
	return b.communicate(p, begin, ranks)
}

// communicate makes a collective operation in each group of some ranks.
func (b *jobBuilder) communicate(p *Phase, begin endings, ranks []int) endings {
	end := make(endings, len(begin))
	for _, group := range b.run.degrees.groups(p.Over) {
		if !slices.Contains(ranks, group[0]) {
			continue
		}
		started := make([][]int32, len(group))
		for i, rank := range group {
			started[i] = begin[rank]
			if len(started[i]) > 1 {
				started[i] = []int32{b.step(rank, 0, started[i])}
			}
		}
		b.Traffic = p.traffic()
		b.Connections = b.run.Connections
		b.hosts, b.began = lists.Map(group, func(rank int) int { return b.run.Hosts[rank] }), started
		b.instance = &Instance{Kind: p.Collective, Bytes: int64(p.Size), Ranks: len(group), Iteration: b.iteration}
		first := len(b.builder.flows)
		b.operation()
		received, sent := b.received(first), b.sent(first)
		for i, rank := range group {
			end[rank] = slices.Concat(lists.Or(received[i], sent[i]), started[i])
		}
	}
	return end
}

// pass makes a pass of all microbatches through the stages of the pipeline. A stage
// begins a microbatch when the stage before has sent it, and it has ended the
// microbatch before.
func (b *jobBuilder) pass(p *Phase, begin endings) endings {
	d := b.run.degrees
	stages := lists.Map(sequence(0, d.pipeline), d.stage)
	if p.Pipeline == backward {
		slices.Reverse(stages)
	}
	end := make(endings, len(begin))
	end.add(begin)
	for range max(b.run.Microbatches, 1) {
		arrived := make(endings, len(begin))
		for s, ranks := range stages {
			from := make(endings, len(begin))
			for _, rank := range ranks {
				from[rank] = slices.Concat(end[rank], arrived[rank])
			}
			done := b.phases(p.Phases, from, ranks)
			for i, rank := range ranks {
				end[rank] = done[rank]
				if s+1 < len(stages) {
					next := stages[s+1][i]
					arrived[next] = []int32{b.send(rank, next, int64(p.Size), done[rank])}
				}
			}
		}
	}
	return end
}

// send adds a message between two ranks of the job.
func (b *jobBuilder) send(from, to int, bytes int64, after []int32) int32 {
	b.Traffic = &Traffic{Connections: b.run.Connections}
	b.hosts, b.began = b.run.Hosts, nil
	b.instance = &Instance{Kind: sendRecv, Bytes: bytes, Ranks: 2, Iteration: b.iteration}
	return b.add(from, to, bytes, after...)
}
