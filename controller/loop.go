package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/task"
)

// LoopOptions configure the execution of tasks in real time. The zero value works.
type LoopOptions struct {
	// Timeout is how long a task may wait for a switch; 0: 1 s.
	Timeout time.Duration
	// BackOff is the pause of a task after a failed access to a switch; 0: 1 s.
	BackOff time.Duration
	// Log receives events when a task begins to fail and when it works again; nil
	// discards them.
	Log *slog.Logger
	// Window is the time over which the loop measures whether tasks keep their periods; 0: 3 s.
	Window time.Duration
	// Slow is called once for each kind of task that cannot keep its period. It may be nil.
	Slow func(Slowness)
}

// A Slowness describes a kind of task that cannot keep its period.
type Slowness struct {
	Task   string
	Period time.Duration // the intended time between runs
	Lately time.Duration // the mean time between runs
}

// A LoopReport contains the results of a loop.
type LoopReport struct {
	Runs   int           // number of runs of tasks
	Failed int           // failed runs
	Slowed int           // runs that took too long for their periods
	Late   time.Duration // longest delay of a task after its due time
}

// Loop runs tasks on the controller's switches in real time until ctx is done. One
// goroutine runs all tasks in the order of their due times. It retries tasks that
// fail.
func (c *Controller) Loop(ctx context.Context, tasks []Task, o LoopOptions) LoopReport {
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	o.BackOff = cmp.Or(o.BackOff, time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Window = cmp.Or(o.Window, 3*time.Second)
	f := &liveFabric{ctx: ctx, timeout: o.Timeout, c: c, registers: map[string]registers.Access{}}
	l := &loop{opts: o, broken: map[string]string{}, paces: map[string]*pace{}, fabric: f}
	paced := make([]task.Task, len(tasks))
	for i, t := range tasks {
		paced[i] = &pacedTask{Task: t, loop: l, rest: restOf(len(tasks))}
	}
	return l.run(ctx, task.NewSchedule(paced, 0))
}

// restOf returns the pause of each of some tasks, as a multiple of its run time.
func restOf(tasks int) time.Duration { return 2 * time.Duration(tasks) }

// A pacedTask pauses after an error. It also pauses for a multiple of its run time, so that all
// tasks together take at most half of the loop's time. A task that wants to send more probes than
// possible thus sends fewer, and does not block the others.
type pacedTask struct {
	task.Task
	loop *loop
	rest time.Duration // the pause, as a multiple of the run time

	began  time.Duration // time of the latest run
	period time.Duration // intended time until the next run; 0 after an error
}

// waitingPeriod is the shortest interval between runs of a task that can wait. Its register reads
// would otherwise take processing time from the packets of a software switch.
const waitingPeriod = 100 * time.Millisecond

// Run runs the task.
func (p *pacedTask) Run(now time.Duration, f task.Fabric) (time.Duration, error) {
	if p.period > 0 {
		p.loop.measure(p.Name(), now, p.period, now-p.began)
	}
	p.began, p.period = now, 0
	start := time.Now()
	next, err := p.Task.Run(now, f)
	if task.CanWait(p.Name()) {
		next = max(next, now+waitingPeriod)
	}
	if err != nil {
		return max(next, now+p.loop.opts.BackOff), err
	}
	if next != task.Never {
		p.period = next - now
	}
	due := now + p.rest*time.Since(start)
	if due > next {
		p.loop.report.Slowed++
	}
	return max(next, due), nil
}

// A pace contains the times between runs of one kind of task in the current window.
type pace struct {
	begin    time.Duration
	runs     int
	period   time.Duration // the sum of the intended times
	actual   time.Duration // the sum of the actual times
	reported bool
}

// measure records the intended and the actual time between the starts of two runs of a task. It
// reports a kind of task once if the actual times of a window are at least 1.5 times as long.
func (l *loop) measure(name string, now, period, actual time.Duration) {
	w := l.paces[name]
	if w == nil {
		w = &pace{begin: now}
		l.paces[name] = w
	}
	w.runs++
	w.period += period
	w.actual += actual
	if now < w.begin+l.opts.Window {
		return
	}
	n := time.Duration(w.runs)
	s := Slowness{Task: name, Period: w.period / n, Lately: w.actual / n}
	if w.actual >= w.period*3/2 && !w.reported {
		w.reported = true
		l.slow(s)
	}
	*w = pace{begin: now, reported: w.reported}
}

// slow logs that a kind of task does not keep its period.
func (l *loop) slow(s Slowness) {
	if task.CanWait(s.Task) {
		l.opts.Log.Info("a task runs less often than planned", "task", s.Task, "period", s.Period, "lately", s.Lately)
		return
	}
	l.opts.Log.Warn("a task cannot keep its period on all switches", "task", s.Task, "period", s.Period, "lately", s.Lately)
	if l.opts.Slow != nil {
		l.opts.Slow(s)
	}
}

// A loop runs a schedule in real time.
type loop struct {
	opts   LoopOptions
	fabric task.Fabric
	broken map[string]string // the last error of each task that fails
	paces  map[string]*pace  // for each kind of task
	report LoopReport
}

func (l *loop) run(ctx context.Context, s *task.Schedule) LoopReport {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.Next() != task.Never {
		timer.Reset(max(0, s.Next()-time.Since(start)))
		select {
		case <-ctx.Done():
			return l.report
		case <-timer.C:
		}
		now := time.Since(start)
		l.report.Late = max(l.report.Late, now-s.Next())
		list := s.RunEach(now, l.fabric)
		for _, r := range list {
			l.report.Runs++
			name := r.Task.Name() + " " + r.Task.Switch()
			if r.Err == nil {
				if l.broken[name] != "" {
					l.opts.Log.Info("task works again", "task", r.Task.Name(), "switch", r.Task.Switch())
					delete(l.broken, name)
				}
				continue
			}
			l.report.Failed++
			if text := r.Err.Error(); l.broken[name] != text && !errors.Is(r.Err, context.Canceled) {
				l.opts.Log.Warn("task fails", "task", r.Task.Name(), "switch", r.Task.Switch(), "error", text)
				l.broken[name] = text
			}
		}
	}
	<-ctx.Done()
	return l.report
}

// A liveFabric gives tasks access to the switches of a controller.
type liveFabric struct {
	ctx       context.Context
	timeout   time.Duration
	c         *Controller
	registers map[string]registers.Access
}

func (f *liveFabric) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(f.ctx, f.timeout)
}

// reach opens the access to a switch's registers on first use.
func (f *liveFabric) reach(sw string) (registers.Access, error) {
	if r := f.registers[sw]; r != nil {
		return r, nil
	}
	r, err := f.c.Registers(sw)
	if err != nil {
		return nil, err
	}
	f.registers[sw] = r
	return r, nil
}

// ReadRegister reads with the protocol of the target.
func (f *liveFabric) ReadRegister(sw, register string, from, to int, dst []uint64) ([]uint64, error) {
	r, err := f.reach(sw)
	if err != nil {
		return dst, err
	}
	ctx, cancel := f.limited()
	defer cancel()
	before := len(dst)
	list, err := r.Read(ctx, register, from, to, dst)
	if err == nil && len(list)-before != to-from {
		err = fmt.Errorf("reading %s: %d cells, want %d", register, len(list)-before, to-from)
	}
	return list, err
}

// WriteRegister writes with the protocol of the target.
func (f *liveFabric) WriteRegister(sw, register string, from, to int, value uint64) error {
	r, err := f.reach(sw)
	if err != nil {
		return err
	}
	ctx, cancel := f.limited()
	defer cancel()
	return r.Write(ctx, register, from, to, value)
}

// Clock returns the clock of the switch.
func (f *liveFabric) Clock(sw string) (time.Duration, error) {
	r, err := f.reach(sw)
	if err != nil {
		return 0, err
	}
	ctx, cancel := f.limited()
	defer cancel()
	return r.Clock(ctx)
}

// PacketOut sends the frame with P4Runtime.
func (f *liveFabric) PacketOut(sw string, frame []byte) error {
	ctx, cancel := f.limited()
	defer cancel()
	return f.c.PacketOut(ctx, sw, frame)
}

// PacketAt makes a frame arrive at a port, if the target supports this.
func (f *liveFabric) PacketAt(sw string, port int, frame []byte) error {
	r, err := f.reach(sw)
	if err != nil {
		return err
	}
	ctx, cancel := f.limited()
	defer cancel()
	return registers.Inject(ctx, r, port, frame)
}

// QueuesEmpty calls the target's method, if it has one.
func (f *liveFabric) QueuesEmpty(sw string) (bool, error) {
	r, err := f.reach(sw)
	if err != nil {
		return false, err
	}
	q, ok := r.(registers.QueueTeller)
	if !ok {
		return false, errors.ErrUnsupported
	}
	ctx, cancel := f.limited()
	defer cancel()
	return q.QueuesEmpty(ctx)
}

// QueuesEmpty calls the target's method.
func (r *switchRegisters) QueuesEmpty(ctx context.Context) (bool, error) {
	reg, err := r.now()
	if err != nil {
		return false, err
	}
	if q, ok := reg.(registers.QueueTeller); ok {
		return q.QueuesEmpty(ctx)
	}
	return false, errors.ErrUnsupported
}

// Inject calls the target's method.
func (r *switchRegisters) Inject(ctx context.Context, port int, frame []byte) error {
	reg, err := r.now()
	if err != nil {
		return err
	}
	return registers.Inject(ctx, reg, port, frame)
}

// PortCounts calls the target's method.
func (r *switchRegisters) PortCounts(ctx context.Context) ([]bmv2.PortCounts, error) {
	reg, err := r.now()
	if err != nil {
		return nil, err
	}
	if m, ok := reg.(registers.Meter); ok {
		return m.PortCounts(ctx)
	}
	return nil, errors.ErrUnsupported
}

var _ registers.Meter = (*switchRegisters)(nil)
