package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/lab/store"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// A Runner runs experiments, independent runs side by side.
type Runner struct {
	Dir    string      // folder for results; "": keep them only in memory, or in Under
	Under  string      // parent of Dir, which is then named by the experiment's name and digest
	Cores  int         // number of cores; 0: all
	Within int         // cores for each run, if ties are decided by place; 0: the cores that other runs leave idle
	Resume bool        // reuse the runs in Dir
	Read   spec.Reader // reads the files that the experiment names; nil: none

	// World is where runs take place: one of Worlds; "" is Sim. In real time, runs are not
	// parallel.
	World string
	Real  RealOptions

	// Progress is called for every run that has ended, one call at a time.
	Progress func(Progress)
	// Record, if not nil, observes the first run.
	Record Recorder
	// Links, if not nil and without Dir, returns the writer for the link samples of a run in CSV;
	// it may return nil.
	Links func(j *Job) io.Writer
	// Begin, if not nil, is called before the first packet of each run, from several goroutines
	// unless Cores is 1. It may plan its own events in the run's network. Such runs are not
	// stored: Dir and Store must be empty.
	Begin func(*View) error
	// Parquet also writes flows and links as Parquet.
	Parquet bool
	// Rounds limits the processing of a packet within a switch: see dataplane.Options.
	Rounds int
	// Limits rejects experiments that are too large.
	Limits Limits

	// Serve, if not nil, lets controllers of the user drive the first row.
	Serve *Serve

	deploy deployer // deploys P4 programs in tests; nil: deployDirect

	known map[string]*Result // by key: runs of other settings, for reuse

	// Store, if not nil, stores the runs instead of Dir. Stored runs are not repeated.
	Store *store.Store
	Shard Shard         // shard of the runs to execute, with a Store
	Beat  time.Duration // heartbeat interval of a worker; 0: store.DefaultBeat
	// Log receives a line for each object of the store that is unusable, and for each fault
	// that a run finds in a program or manifest, such as probes that do not return.
	Log func(string)
}

// Progress describes how far an experiment has progressed.
type Progress struct {
	Done, Of int
	Taken    int // number of Done that were reused
	Name     string
	Hops     int64         // packets that the switches of this run received
	Took     time.Duration // real time of this run
	Err      error
}

// Jobs lists the runs of an experiment, with generated programs. The seeds of a row
// follow each other. It returns an error if two rows would execute the same
// program.
func (r *Runner) Jobs(x *spec.Experiment) ([]*Job, error) {
	read := r.Read
	if read == nil {
		read = spec.NoFiles
	}
	read = x.Reading(read)
	made := &programs{list: map[string]*scheme.Program{}, read: read}
	var jobs []*Job
	warn := r.warnOnce()
	nodes, most := 0, maxNodes
	if r.Limits.Nodes > 0 {
		most = min(most, r.Limits.Nodes)
	}
	for i := range x.Cases {
		c := &x.Cases[i]
		t, err := x.NetworkOf(c, read)
		if err != nil {
			return nil, err
		}
		if nodes += len(t.Hosts) + len(t.Switches); nodes > most {
			return nil, fmt.Errorf("%w: the networks of its first %d cases have %d hosts and switches together, more than %d", ErrTooLarge, i+1, nodes, most)
		}
		setups, err := setUps(made, x, c, t)
		if err != nil {
			return nil, err
		}
		for _, load := range c.Loads {
			for _, u := range setups {
				for _, seed := range c.Seeds {
					jobs = append(jobs, &Job{Case: c, Scheme: u.scheme, Load: float64(load), Seed: seed, setup: u, x: x, rounds: r.Rounds, cores: r.Within, deploy: r.deploy, begin: r.Begin, warn: warn})
				}
			}
		}
	}
	return jobs, nil
}

// warnOnce returns a function that logs faults, each only once for all seeds and loads of a row.
func (r *Runner) warnOnce() func(row, text string) {
	const most = 20
	var mu sync.Mutex
	said := map[string]bool{}
	return func(row, text string) {
		mu.Lock()
		defer mu.Unlock()
		line := row + ": " + text
		if r.Log == nil || said[line] || len(said) == most {
			return
		}
		said[line] = true
		r.Log(line)
	}
}

// setUps generates the programs of all rows of a case.
func setUps(made *programs, x *spec.Experiment, c *spec.Case, t *fabric.Topology) ([]*setup, error) {
	var list []*setup
	seen := map[string]string{}
	for _, s := range x.SchemesOf(c) {
		u, err := made.setUp(x, s, c, t)
		if err != nil {
			return nil, err
		}
		id := u.identity()
		if other, ok := seen[id]; ok {
			return nil, fmt.Errorf("%s and %s: %w", other, s.Label, ErrSame)
		}
		seen[id] = s.Label
		list = append(list, u)
	}
	return list, nil
}

// Run runs an experiment. When ctx is done, it stops the running jobs and returns the
// finished ones with ctx's error. A run that fails does not stop the others; Run
// returns the first error.
func (r *Runner) Run(ctx context.Context, x *spec.Experiment) (*Comparison, error) {
	jobs, err := r.prepare(x)
	if err != nil {
		return nil, err
	}
	if err := r.Limits.check(jobs, r.cores()); err != nil {
		return nil, err
	}
	if err := planAll(ctx, jobs); err != nil {
		return nil, err
	}
	if err := r.begin(ctx, x, jobs); err != nil {
		return nil, err
	}
	w := &work{r: r, jobs: jobs, results: make([]*Result, len(jobs))}
	if r.Store != nil {
		err = w.share(ctx)
	} else {
		err = w.all(ctx)
	}
	c := newComparison(x, jobs, w.results)
	c.World = cmp.Or(r.World, Sim)
	if c.Warnings, err = lint(x, r.Read, err); err != nil && ctx.Err() == nil {
		return c, err
	}
	if w.shared != nil {
		c.Made, c.Taken, c.Left = w.done-w.taken, w.taken, w.shared.left
	}
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	return c, err
}

// lint returns the warnings about an experiment. err is an error that it has anyway.
func lint(x *spec.Experiment, read spec.Reader, err error) ([]spec.Warning, error) {
	list, wrong := x.Lint(read)
	return list, cmp.Or(err, wrong)
}

// begin writes the manifest and the description of the experiment.
func (r *Runner) begin(ctx context.Context, x *spec.Experiment, jobs []*Job) error {
	k := r.describe(x, jobs)
	r.settle(k)
	if r.Dir != "" {
		if err := r.keepManifest(x, jobs); err != nil {
			return err
		}
	}
	return r.KeepExperiment(ctx, k)
}

// settle chooses the folder Dir in the folder Under, unless Dir is already set.
func (r *Runner) settle(k *Kept) {
	if r.Dir == "" && r.Under != "" {
		r.Dir = filepath.Join(r.Under, k.ID())
	}
}

// prepare creates the jobs of an experiment. It returns an error if the runner cannot run one of
// them.
func (r *Runner) prepare(x *spec.Experiment) ([]*Job, error) {
	jobs, err := r.Jobs(x)
	if err != nil {
		return nil, err
	}
	if err := r.enter(jobs); err != nil {
		return nil, err
	}
	switch {
	case r.Serve == nil:
	case r.Store != nil || r.Resume:
		return nil, errors.New("a run with a controller of the user cannot be repeated: want neither a store nor resume")
	default:
		if err := r.Serve.check(jobs); err != nil {
			return nil, err
		}
	}
	r.chooseWithin(jobs)
	return jobs, r.checkWithin(jobs)
}

// enter assigns the jobs to the runner's world. It returns an error if one cannot run there.
func (r *Runner) enter(jobs []*Job) error {
	if r.World == "" || r.World == Sim {
		return nil
	}
	if r.Record != nil {
		return fmt.Errorf("recording while it runs is the simulator's alone; p4lb inspect looks at switches in world %s", r.World)
	}
	for _, j := range jobs {
		if err := j.checkWorld(r.World); err != nil {
			return err
		}
		j.world = r.World
	}
	return nil
}

// cores returns the number of parallel runs.
func (r *Runner) cores() int {
	return max(1, r.allCores()/max(1, r.Within))
}

func (r *Runner) allCores() int { return cmp.Or(max(0, r.Cores), runtime.GOMAXPROCS(0)) }

// chooseWithin divides runs over otherwise idle cores, if all runs benefit.
func (r *Runner) chooseWithin(jobs []*Job) {
	if r.Within > 0 || len(jobs) == 0 || r.Begin != nil || r.World != "" && r.World != Sim {
		return
	}
	cores := r.allCores() / len(jobs)
	for _, j := range jobs {
		cores = min(cores, j.parts())
	}
	if cores < 2 {
		return
	}
	r.Within = cores
	for _, j := range jobs {
		j.cores = cores
	}
}

// enoughPackets is the number of packets that must arrive in a part of the network per window for
// two cores to be faster than one. Each packet takes about three hops and an acknowledgment.
const enoughPackets = 20

// parts returns the number of cores that a run can use efficiently: see sim.Options.Cores.
func (j *Job) parts() int {
	if j.Case.Ties != spec.ByPlace {
		return 1
	}
	t := j.setup.topo
	window, rate := time.Duration(0), 0.0
	for i := range t.Links {
		l := &t.Links[i]
		if t.Switch(l.A.Node) == nil || t.Switch(l.B.Node) == nil {
			rate += float64(l.Rate)
		} else if window == 0 || l.Delay < window {
			window = l.Delay
		}
	}
	packets := rate * min(1, cmp.Or(j.Load, 1)) * window.Seconds() / float64(8*j.Case.Frame())
	return int(packets / enoughPackets)
}

// checkWithin returns an error if a job cannot use several cores.
func (r *Runner) checkWithin(jobs []*Job) error {
	if r.Within <= 1 {
		return nil
	}
	for _, j := range jobs {
		if j.Case.Ties != spec.ByPlace {
			return fmt.Errorf("%s on %d cores: its ties are decided as planned, on one; want ties: %s in the experiment", j.Name(), r.Within, spec.ByPlace)
		}
	}
	return nil
}

// A work is the state of running jobs.
type work struct {
	r       *Runner
	jobs    []*Job
	results []*Result

	mu       sync.Mutex
	next     int
	done     int
	taken    int
	errs     []error
	unusable bool // the disk is full or the store is unusable, so further runs are pointless

	stored []bool // by job, with a store: the run is already stored
	rates  rates  // rates of finished runs
	shared *sharing
}

// all runs the jobs on all cores.
func (w *work) all(ctx context.Context) error {
	cores := w.r.cores()
	if w.r.World != "" && w.r.World != Sim {
		w.r.Real.Cores, cores = cores, 1
	}
	var workers sync.WaitGroup
	for range min(cores, len(w.jobs)) {
		workers.Go(func() {
			for i := w.take(ctx); i >= 0; i = w.take(ctx) {
				w.runJob(ctx, i)
			}
		})
	}
	workers.Wait()
	return w.failure()
}

// failure returns the first error, and the number of failed runs.
func (w *work) failure() error {
	switch n := len(w.errs); n {
	case 0:
		return nil
	case 1:
		return w.errs[0]
	default:
		return fmt.Errorf("%w (and %d more runs failed)", w.errs[0], n-1)
	}
}

// take returns the index of the next job, or -1.
func (w *work) take(ctx context.Context) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == len(w.jobs) || ctx.Err() != nil || w.unusable {
		return -1
	}
	w.next++
	return w.next - 1
}

// runJob executes a job. A panic in a run does not affect other runs.
func (w *work) runJob(ctx context.Context, i int) {
	j := w.jobs[i]
	began := time.Now()
	result, taken, err := w.attempt(ctx, i)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil && err != nil {
		return // cancelled
	}
	w.results[i] = result
	w.done++
	p := Progress{Done: w.done, Of: len(w.jobs), Name: j.Name(), Took: time.Since(began)}
	if taken {
		w.taken++
	}
	if err != nil {
		w.unusable = w.unusable || errors.Is(err, ErrDiskFull) || errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrUnreachable)
		p.Err = fmt.Errorf("%s: %w", j.Name(), err)
		w.errs = append(w.errs, p.Err)
	} else {
		p.Hops = result.Hops
	}
	p.Taken = w.taken
	if w.r.Progress != nil {
		w.r.Progress(p)
	}
}

func (w *work) attempt(ctx context.Context, i int) (result *Result, taken bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			buf := make([]byte, 4096)
			err = fmt.Errorf("the run failed: %v\n%s", p, buf[:runtime.Stack(buf, false)])
		}
	}()
	j := w.jobs[i]
	var record Recorder
	if i == 0 {
		record = w.r.Record
	}
	run := func(flows, links io.Writer) (*Result, error) { return j.run(ctx, flows, links, record) }
	if j.world != "" {
		run = func(flows, _ io.Writer) (*Result, error) { return j.runReal(ctx, w.r.Real, flows) }
	}
	if have := w.r.known[j.Key()]; have != nil {
		return have, true, nil
	}
	if w.shared != nil {
		result, err = w.shared.keep(ctx, i, run)
		return result, false, err
	}
	if w.r.Dir == "" {
		var links io.Writer
		if w.r.Links != nil {
			links = w.r.Links(j)
		}
		result, err = run(nil, links)
		return result, false, err
	}
	s := &folder{dir: w.r.Dir, parquet: w.r.Parquet}
	if w.r.Resume && record == nil {
		if have := s.load(j); have != nil {
			return have, true, nil
		}
	}
	result, err = s.run(j, func(flows, links *os.File) (*Result, error) { return run(flows, links) })
	return result, false, err
}

// A Shard is a part of an experiment's runs: part Index, from 0, of Of parts. The zero Shard is
// all runs.
type Shard struct{ Index, Of int }

func (s Shard) whole() bool { return s.Of <= 1 }

// sharing executes jobs while other workers use the same store. It executes the worker's own
// shard first, then jobs that others have left. A worker without a shard waits for the runs of
// the others. A worker with a shard leaves them to live workers.
type sharing struct {
	*work
	store  *store.Store
	worker *store.Worker
	keys   []string
	bad    map[int]bool // jobs whose object in the store is damaged
	left   int          // number of jobs that others are executing
}

// A rates holds, by engine, the expected hops and the measured seconds of runs.
type rates map[string]*spent

type spent struct{ Hops, Seconds float64 }
