package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/lab/native"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// A deployer sets up the switches of a run with P4 programs.
type deployer func(ctx context.Context, r *running) (deployment, error)

// deploy sets up the switches of a run for its scheme: with programs or with models.
func deploy(ctx context.Context, r *running) (_ deployment, err error) {
	if r.planned, err = r.plan(r.topo); err != nil {
		return nil, err
	}
	for _, s := range r.planned.Switches {
		sw := r.net.Switch(s.Name)
		sw.SetCPU(s.CPUPort)
		sw.AddVirtual(s.Around()...)
	}
	if r.Scheme.Engine == spec.EngineNative {
		return deployModels(r)
	}
	if r.Job.deploy != nil {
		return r.Job.deploy(ctx, r)
	}
	return deployDirect(ctx, r)
}

// plan returns the configuration of the switches with some links down.
func (j *Job) plan(t *fabric.Topology) (*plan.Plan, error) {
	pipelines, err := j.setup.linked()
	if err != nil {
		return nil, err
	}
	return plan.New(t, pipelines, plan.Options{Queue: j.Case.Switches.Queue, Grouping: j.Scheme.Grouping()})
}

// planAll plans every row in every case, with all links and with each fault's links down. It also
// deploys programs from outside the catalogue once. A row that cannot be deployed thus fails
// before any row runs.
func planAll(ctx context.Context, jobs []*Job) error {
	seen := map[*setup]bool{}
	for _, j := range jobs {
		if seen[j.setup] {
			continue
		}
		seen[j.setup] = true
		if err := j.rehearse(ctx); err != nil {
			return fmt.Errorf("%s: %w", j.row(), err)
		}
	}
	return nil
}

// row returns the name of the run's row.
func (j *Job) row() string {
	if j.Case.Name != "" {
		return j.Scheme.Label + " in case " + j.Case.Name
	}
	return j.Scheme.Label
}

func (j *Job) rehearse(ctx context.Context) error {
	if j.world == "" {
		if err := sim.CheckAddresses(j.setup.topo); err != nil {
			return err
		}
	}
	phases, err := j.Case.Phases(j.setup.topo)
	if err != nil {
		return err
	}
	const most = 16 // if there are more faults, only the first are checked
	for _, t := range phases[:min(len(phases), most)] {
		if _, err := j.plan(t); err != nil {
			return err
		}
	}
	if j.Scheme.Made().Native() == nil || j.world != "" {
		return nil
	}
	alone := *j
	if alone.serve != nil {
		alone.serve, alone.deploy = nil, nil
	}
	r, err := alone.prepare(ctx)
	if err != nil {
		return err
	}
	r.close()
	return nil
}

// taskFabric gives the controller's tasks access to the simulated switches. Writes
// take effect after a latency, so a task decides on information of that age.
type taskFabric struct {
	r       *running
	latency time.Duration
	cells   scratch
	sent    int64 // number of frames sent
	bytes   int64
	lately  map[string][]time.Duration // arrival times of the last frames, by switch
}

// keptTimes is the number of arrival times kept. It exceeds the number of frames under way.
const keptTimes = 8

// note records when a frame reaches a switch.
func (f *taskFabric) note(sw string) {
	at := f.r.net.Now() + f.latency
	list := f.lately[sw]
	if n := len(list); n > 0 && list[n-1] == at {
		return
	}
	if len(list) == keptTimes {
		list = append(list[:0], list[1:]...)
	}
	f.lately[sw] = append(list, at)
}

var _ task.Fabric = (*taskFabric)(nil)

// startTasks lets the controller's tasks run in virtual time.
func (r *running) startTasks() {
	tasks, err := task.ForPlan(r.planned, task.Options{
		FlowSize: r.longFlow(),
		Alert: func(a task.Alert) {
			r.alerts = append(r.alerts, a.String())
			if a.Port == 0 { // not a faulty port, which the scheme handles
				r.faulty(a.String())
			}
		},
	})
	if err != nil {
		r.fail(err)
		return
	}
	if len(tasks) == 0 {
		return
	}
	r.tasks = &taskFabric{r: r, latency: time.Duration(r.x.Latency), lately: map[string][]time.Duration{}}
	schedule := task.NewSchedule(tasks, 0)
	var turn func()
	turn = func() {
		for _, err := range schedule.Run(r.net.Now(), r.tasks) {
			r.fail(err)
		}
		if next := schedule.Next(); next != task.Never {
			r.net.At(next, turn)
		}
	}
	r.net.At(0, turn)
	r.finish = func() {
		for _, t := range tasks {
			if f, ok := t.(task.Finisher); ok {
				if err := f.Finish(r.net.Now(), r.tasks); err != nil {
					r.alerts = append(r.alerts, err.Error())
				}
			}
		}
	}
}

// longFlow returns the mean size of the first traffic's flows, which some solvers need.
func (r *running) longFlow() float64 {
	if len(r.Case.Traffic) == 0 {
		return 0
	}
	d, err := r.Case.Traffic[0].Maker(r.topo)
	if err != nil || d.Pattern == spec.List || d.Pattern == spec.Collective {
		return 0
	}
	return d.Mean()
}

// ReadRegister appends cells of a register to dst.
func (f *taskFabric) ReadRegister(sw, register string, from, to int, dst []uint64) ([]uint64, error) {
	s := f.r.net.Switch(sw)
	if s == nil {
		return dst, fmt.Errorf("there is no switch %q", sw)
	}
	return f.cells.read(s, register, from, to, dst)
}

// WriteRegister sets cells after the latency has passed.
func (f *taskFabric) WriteRegister(sw, register string, from, to int, value uint64) error {
	s := f.r.net.Switch(sw)
	if s == nil {
		return fmt.Errorf("there is no switch %q", sw)
	}
	f.later(func() {
		if err := s.WriteRegister(register, from, to, value); err != nil {
			f.r.fail(err)
		}
	})
	return nil
}

// Clock returns the current time of the switch's timestamps.
func (f *taskFabric) Clock(sw string) (time.Duration, error) { return f.r.net.Switch(sw).Clock(), nil }

// sending counts a frame to a switch, and returns the switch.
func (f *taskFabric) sending(sw string, frame []byte) (*sim.Switch, error) {
	s := f.r.net.Switch(sw)
	if s == nil {
		return nil, fmt.Errorf("there is no switch %q", sw)
	}
	f.sent++
	f.bytes += int64(len(frame))
	f.note(sw)
	return s, nil
}

// PacketOut makes a switch process a frame after the latency has passed.
func (f *taskFabric) PacketOut(sw string, frame []byte) error {
	s, err := f.sending(sw, frame)
	if err != nil {
		return err
	}
	if f.r.x.Probes == spec.FromGenerator && f.r.Scheme.Arch != "" {
		s.Generate(frame)
		return nil
	}
	f.later(func() { s.PacketOut(frame) })
	return nil
}

// PacketAt makes a frame arrive at a port of a switch after the latency has passed.
func (f *taskFabric) PacketAt(sw string, port int, frame []byte) error {
	s, err := f.sending(sw, frame)
	if err != nil {
		return err
	}
	f.later(func() {
		if err := s.PacketAt(port, frame); err != nil {
			f.r.fail(err)
		}
	})
	return nil
}

// QueuesEmpty reports whether no packet waits in the switch.
func (f *taskFabric) QueuesEmpty(sw string) (bool, error) {
	return f.r.net.Switch(sw).Buffered() == 0, nil
}

func (f *taskFabric) later(do func()) { f.r.net.At(f.r.net.Now()+f.latency, do) }

// modelsAtWork is the deployment of models. The plan is written to the switches directly, because
// models do not support P4Runtime.
type modelsAtWork struct{ net *sim.Network }

func deployModels(r *running) (deployment, error) {
	for _, s := range r.planned.Switches {
		m, err := native.ModelOf(&s.Pipeline.Manifest, r.setup.polynomial)
		if err != nil {
			return nil, err
		}
		r.Case.Switches.Vary(&m)
		sw := r.net.Switch(s.Name)
		if err := sw.LoadModel(m, native.TablesOf(s)); err != nil {
			return nil, err
		}
		s.Entries = nil // drop the entries: large networks have millions
		if m.Hardware != nil {
			continue // a model knows the paths of a group; it needs no cells for them
		}
		for _, c := range s.Registers {
			if err := sw.WriteRegister(c.Register, c.From, c.To, c.Value); err != nil {
				return nil, err
			}
		}
	}
	return modelsAtWork{r.net}, nil
}

func (d modelsAtWork) change(_ context.Context, plan *plan.Plan) error {
	for _, s := range plan.Switches {
		if err := d.net.Switch(s.Name).SetTables(native.TablesOf(s)); err != nil {
			return err
		}
	}
	return nil
}

func (modelsAtWork) close() {}

// polynomial returns the polynomial of a degree for generating programs: the experiment's own, or
// the paper's.
func (u *setup) polynomial(degree int, tau int64) *fitting.Poly {
	if u.poly != nil {
		return u.poly
	}
	if p, ok := fitting.Paper(degree, u.scheme.Errata == "printed"); ok {
		p = p.WithTau(tau)
		return &p
	}
	return nil
}
