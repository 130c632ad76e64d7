package spec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Limits of jobs.
const (
	maxJobs       = 1000
	maxIterations = 1_000_000
)

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
	d, err := j.degrees(t.NICs())
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
		return &keyError{".microbatches", fmt.Errorf("microbatches %d: want a phase with pipeline: %s", j.Microbatches, orList(pipelines))}
	case messages == 0:
		return &keyError{".phases", errors.New("no phase communicates: want collective or pipeline in one of them")}
	}
	if n := (messages + float64(d.ranks())) * float64(max(j.Iterations, 1)); n > maxMessages {
		return &keyError{"", fmt.Errorf("%.0f messages and computations: want at most %d", n, maxMessages)}
	}
	return nil
}

// checkPhases checks a list of phases. It returns the number of messages and
// computations per execution if a phase communicates, and reports whether a phase
// is a pipeline pass.
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
	ranks := float64(d.ranks())
	if inStage {
		ranks /= float64(d.pipeline)
	}
	switch {
	case one(p.Compute > 0, p.Collective != "", p.Pipeline != "") != 1:
		return 0, &keyError{"", errors.New("want one of compute, collective and pipeline")}
	case p.Pipeline == "" && len(p.Phases) > 0:
		return 0, &keyError{".phases", errors.New("phases in a phase: want pipeline beside them")}
	case p.Pipeline != alternate && len(p.Backward) > 0:
		return 0, &keyError{".backward", fmt.Errorf("backward: want pipeline: %s beside it", alternate)}
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
	case !slices.Contains(pipelines, p.Pipeline):
		return 0, &keyError{".pipeline", fmt.Errorf("pipeline %q: want %s", p.Pipeline, orList(pipelines))}
	case d.pipeline < 2:
		return 0, &keyError{".pipeline", errors.New("pipeline: the job has one stage, want pipeline: 2 or more as a degree of the job")}
	case p.Size == 0:
		return 0, &keyError{".pipeline", errors.New("pipeline: want size, the bytes of a microbatch from stage to stage")}
	case len(p.Phases) == 0:
		return 0, &keyError{".pipeline", errors.New("pipeline: want phases of each stage and microbatch, such as phases: [{compute: 1ms}]")}
	case p.Pipeline == alternate && len(p.Backward) == 0:
		return 0, &keyError{".pipeline", fmt.Errorf("pipeline %s: want backward, the phases of the way back, such as backward: [{compute: 2ms}]", alternate)}
	}
	each, _, err := j.checkPhases(p.Phases, d, true)
	if err != nil {
		return 0, err
	}
	sent := d.ranks()
	if p.Pipeline == alternate {
		back, _, err := j.checkPhases(p.Backward, d, true)
		if err != nil {
			wrong := err.(*keyError)
			return 0, &keyError{strings.Replace(wrong.key, ".phases", ".backward", 1), wrong.err}
		}
		each, sent = each+back, 2*sent
	}
	return float64(max(j.Microbatches, 1)) * (each*float64(d.pipeline) + float64(sent)), nil
}
