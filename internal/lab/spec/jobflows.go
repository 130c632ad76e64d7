package spec

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// degrees returns the degrees of the job on the given number of hosts.
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
		ranks = len(j.Placement) // the list of hosts has no ranges any more
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

// traffic converts the phase to a collective operation.
func (p *Phase) traffic() *Traffic {
	return &Traffic{Pattern: Collective, Collective: p.Collective, Algorithm: p.Algorithm, Size: p.Size, Window: p.Window, Chunks: p.Chunks}
}

// place chooses the hosts of all jobs. Its errors are of type *keyError.
func (s *Setting) place(t *fabric.Topology, seed uint64) ([]*JobRun, error) {
	users := make([][]int, t.NICs()) // jobs by host
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
		d, err := j.degrees(t.NICs())
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
		hosts := lists.Filter(sequence(0, t.NICs()), func(h int) bool { return free(i, h) })
		n := runs[i].degrees.ranks()
		if len(hosts) < n {
			return nil, &keyError{fmt.Sprintf("[%d]", i), fmt.Errorf("%d ranks, and other jobs leave %d of %d hosts: want fewer ranks, or shared: true in these jobs", n, len(hosts), t.NICs())}
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
	listed := make([]bool, t.NICs())
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

// placementStream numbers the first random stream for placements. It is far above the streams of
// traffic.
const placementStream = 1 << 32

// acrossLeaves orders hosts so that the leaves take turns.
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

// Flows makes the flows of a run from traffic and jobs, sorted by start time.
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

// ExpectedOfJobs returns the number of flows and computations of the jobs, and their mean size.
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
	computed  []int32 // by rank: its latest computation in this iteration, or -1
}

// An endings lists, by rank, the steps that must end before something counts as
// ended on the rank.
type endings [][]int32

func (e endings) add(other endings) {
	for rank, list := range other {
		for _, i := range list {
			e[rank] = lists.Add(e[rank], i)
		}
	}
}

// flows makes the flows of all iterations. A rank begins an iteration when all phases of the
// previous one have ended on it.
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

// phases makes a list of phases on some ranks. It returns the endings of the phases that no other
// phase waits for.
func (b *jobBuilder) phases(list []Phase, begin endings, ranks []int) endings {
	before := predecessors(list)
	order, _ := phaseOrder(list) // checked when the experiment was loaded
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
	case p.Pipeline == alternate:
		return b.oneForwardOneBackward(p, begin)
	case p.Pipeline != "":
		return b.pass(p, begin)
	}
	return b.communicate(p, begin, ranks)
}

// communicate makes a collective operation in each group of ranks.
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

// pass passes all microbatches through the stages of the pipeline in one direction.
// A stage begins a microbatch when it has received it from the previous stage and
// has finished the previous microbatch.
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

// A turn is the work of a stage on a microbatch in one direction.
type turn struct {
	stage, batch int
	back         bool
}

// turns returns the order in which a stage works: first one forward turn for each
// later stage, then alternating forward and backward turns, then backward turns.
func turns(stage, stages, batches int) (order []turn) {
	ahead := min(stages-1-stage, batches)
	for i := range batches + ahead {
		if i < batches {
			order = append(order, turn{stage, i, false})
		}
		if i >= ahead {
			order = append(order, turn{stage, i - ahead, true})
		}
	}
	return order
}

// oneForwardOneBackward passes all microbatches through the stages and back. A stage begins a
// turn when its message has arrived and the previous turn has ended.
func (b *jobBuilder) oneForwardOneBackward(p *Phase, begin endings) endings {
	d, batches := b.run.degrees, max(b.run.Microbatches, 1)
	waiting := lists.Map(sequence(0, d.pipeline), func(stage int) []turn { return turns(stage, d.pipeline, batches) })
	end := make(endings, len(begin))
	end.add(begin)
	arrived := map[turn][]int32{} // messages for a turn, by rank of the stage
	for made := 0; made < 2*batches*d.pipeline; {
		for stage, order := range waiting {
			if len(order) == 0 {
				continue
			}
			t, phases := order[0], p.Phases
			from, to := stage-1, stage+1
			if t.back {
				phases, from, to = p.Backward, to, from
			}
			messages, ready := arrived[t]
			if !ready && from >= 0 && from < d.pipeline {
				continue
			}
			ranks, started := d.stage(stage), make(endings, len(begin))
			for i, rank := range ranks {
				started[rank] = slices.Clone(end[rank])
				if ready {
					started[rank] = append(started[rank], messages[i])
				}
			}
			done := b.phases(phases, started, ranks)
			next := turn{to, t.batch, t.back}
			for i, rank := range ranks {
				end[rank] = done[rank]
				if to >= 0 && to < d.pipeline {
					arrived[next] = append(arrived[next], b.send(rank, d.stage(to)[i], int64(p.Size), done[rank]))
				}
			}
			waiting[stage] = order[1:]
			made++
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
