package lab

import (
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// jobTimes returns the times of the jobs.
func jobTimes(topo *fabric.Topology, flows []*outcome) []*jobTime {
	var list []*jobTime
	runs := map[*spec.JobRun]*jobTime{}
	marks := map[*spec.JobRun][][]int{} // by iteration: the flows that end it
	for i, f := range flows {
		if f.Job == nil {
			continue
		}
		if runs[f.Job] == nil {
			runs[f.Job] = &jobTime{JobRun: f.Job}
			marks[f.Job] = make([][]int, max(f.Job.Iterations, 1))
			list = append(list, runs[f.Job])
		}
		if f.Ends > 0 {
			marks[f.Job][f.Ends-1] = append(marks[f.Job][f.Ends-1], i)
		}
	}
	if len(list) == 0 {
		return nil
	}
	bounds := earliest(topo, flows)
	for _, j := range list {
		all := marks[j.JobRun]
		for j.iterations < len(all) && !slices.ContainsFunc(all[j.iterations], func(i int) bool { return flows[i].Finished == 0 }) {
			j.iterations++
		}
		if j.iterations == 0 {
			continue
		}
		for _, i := range all[j.iterations-1] {
			j.ends = append(j.ends, flows[i].Finished-time.Duration(j.Start))
			j.ideals = append(j.ideals, bounds[i]-time.Duration(j.Start))
		}
		j.busy = busiest(topo, flows, j.JobRun) * time.Duration(j.iterations) / time.Duration(len(all))
	}
	return list
}

// earliest returns a lower bound of the time at which each step of a job ends. A
// message takes the time that it needs alone in the network. All messages to one host
// that a step waits for share the link of that host.
func earliest(topo *fabric.Topology, flows []*outcome) []time.Duration {
	rates := spec.HostRates(topo)
	begin, end := make([]time.Duration, len(flows)), make([]time.Duration, len(flows))
	for _, i := range inOrder(flows) {
		f := flows[i]
		if f.Job == nil {
			continue
		}
		begin[i] = f.Start
		// Messages of the predecessors from other hosts to this host.
		var first, nearest, onLine time.Duration
		count := 0
		for _, p := range predecessors(f.Waits) {
			before := flows[p]
			begin[i] = max(begin[i], end[p]+f.Waits.Delay)
			if before.Compute || before.Dst != f.Src {
				continue
			}
			line := time.Duration(float64(before.wire) * 8 / float64(rates[f.Src]) * 1e9)
			if count++; count == 1 {
				first, nearest = begin[p], before.ideal-line
			}
			first, nearest = min(first, begin[p]), min(nearest, before.ideal-line)
			onLine += line
		}
		if count > 1 {
			begin[i] = max(begin[i], first+onLine+max(0, nearest)+f.Waits.Delay)
		}
		if end[i] = begin[i]; !f.Compute {
			end[i] += f.ideal
		}
	}
	return end
}

// busiest returns how long the busiest link of a host needs for all messages of a job.
func busiest(topo *fabric.Topology, flows []*outcome, job *spec.JobRun) (most time.Duration) {
	rates := spec.HostRates(topo)
	out, in := map[int]int64{}, map[int]int64{}
	for _, f := range flows {
		if f.Job == job && !f.Compute {
			out[f.Src] += f.wire
			in[f.Dst] += f.wire
		}
	}
	for _, h := range job.Hosts {
		most = max(most, time.Duration(float64(max(out[h], in[h]))*8/float64(rates[h])*1e9))
	}
	return most
}

// iteration returns the mean time of an iteration.
func (j *jobTime) iteration() float64 { return j.each(slices.Max(j.ends)) }

// each returns the mean time of an iteration in ms, given the total time.
func (j *jobTime) each(all time.Duration) float64 {
	return all.Seconds() * 1e3 / float64(j.iterations)
}

// exposed returns the communication time of an iteration that computation does not hide, as the
// mean over ranks. ends are the ranks' end times.
func (j *jobTime) exposed(ends []time.Duration) float64 {
	sum := 0.0
	for _, end := range ends {
		sum += max(0, j.each(end)-j.Compute.Seconds()*1e3) / float64(len(ends))
	}
	return sum
}

// jobComputations computes the metrics of jobs, as the mean over the jobs.
func jobComputations() map[string]func(*measured, []*outcome) float64 {
	over := func(of func(*jobTime) float64) func(*measured, []*outcome) float64 {
		return func(m *measured, _ []*outcome) float64 {
			var all mean
			for _, j := range m.jobs {
				if v := of(j); j.iterations > 0 && !math.IsNaN(v) {
					all.add(v)
				}
			}
			return all.value()
		}
	}
	finished := func(of func(*jobTime) float64) func(*jobTime) float64 {
		return func(j *jobTime) float64 {
			if j.iterations == 0 {
				return math.NaN()
			}
			return of(j)
		}
	}
	return map[string]func(*measured, []*outcome) float64{
		"iteration-ratio": over(finished(func(j *jobTime) float64 {
			return j.iteration() / j.each(max(j.busy, slices.Max(j.ideals)))
		})),
		"exposed-communication": over(finished(func(j *jobTime) float64 {
			return j.exposed(j.ends)
		})),
		"exposed-ratio": over(finished(func(j *jobTime) float64 {
			least := j.exposed(j.ideals)
			if least*1e6 < 1 { // in ns
				return math.NaN()
			}
			return j.exposed(j.ends) / least
		})),
	}
}
