package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// LoopOptions are how tasks run in real time. The zero value works.
type LoopOptions struct {
	// Timeout is how long a task may wait for a switch; 0 stands for 1 s.
	Timeout time.Duration
	// BackOff is how long a task rests that could not reach a switch; 0 stands
	// for 1 s.
	BackOff time.Duration
	// Log hears when a task begins to fail and when it works again; nil is
	// silence.
	Log *slog.Logger
}

// A LoopReport is what a loop has done.
type LoopReport struct {
	Runs   int           // of tasks
	Failed int           // of them
	Late   time.Duration // the longest that a task ran after it was due
}

// Loop runs tasks on the switches of the controller in real time, until ctx is
// done: one goroutine, which waits for the task that is due next. Tasks that
// fail are tried again.
func (c *Controller) Loop(ctx context.Context, tasks []Task, o LoopOptions) LoopReport {
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	if o.BackOff == 0 {
		o.BackOff = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &liveFabric{ctx: ctx, timeout: o.Timeout, c: c, registers: map[string]Registers{}}
	l := &loop{opts: o, broken: map[string]string{}, fabric: f}
	guarded := make([]Task, len(tasks))
	for i, t := range tasks {
		guarded[i] = patient{t, o.BackOff}
	}
	return l.run(ctx, NewSchedule(guarded, 0))
}

// A patient task rests for a while after an error.
type patient struct {
	Task
	rest time.Duration
}

// Run runs the task.
func (p patient) Run(now time.Duration, f Fabric) (time.Duration, error) {
	next, err := p.Task.Run(now, f)
	if err != nil {
		next = max(next, now+p.rest)
	}
	return next, err
}

// A loop runs a schedule in real time.
type loop struct {
	opts   LoopOptions
	fabric Fabric
	broken map[string]string // the last error of each task that fails
	report LoopReport
}

func (l *loop) run(ctx context.Context, s *Schedule) LoopReport {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.Next() != Never {
		timer.Reset(max(0, s.Next()-time.Since(start)))
		select {
		case <-ctx.Done():
			return l.report
		case <-timer.C:
		}
		now := time.Since(start)
		l.report.Late = max(l.report.Late, now-s.Next())
		l.note(s.runEach(now, l.fabric))
	}
	<-ctx.Done()
	return l.report
}

// note counts the runs and logs what has changed.
func (l *loop) note(list []taskRun) {
	for _, r := range list {
		l.report.Runs++
		name := r.task.Name() + " " + r.task.Switch()
		if r.err == nil {
			if l.broken[name] != "" {
				l.opts.Log.Info("task works again", "task", r.task.Name(), "switch", r.task.Switch())
				delete(l.broken, name)
			}
			continue
		}
		l.report.Failed++
		if text := r.err.Error(); l.broken[name] != text && !errors.Is(r.err, context.Canceled) {
			l.opts.Log.Warn("task fails", "task", r.task.Name(), "switch", r.task.Switch(), "error", text)
			l.broken[name] = text
		}
	}
}

// A liveFabric is the switches of a controller as tasks reach them.
type liveFabric struct {
	ctx       context.Context
	timeout   time.Duration
	c         *Controller
	registers map[string]Registers
}

func (f *liveFabric) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(f.ctx, f.timeout)
}

// reach finds the registers of a switch, once.
func (f *liveFabric) reach(sw string) (Registers, error) {
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

// ReadRegister reads through whatever the target speaks.
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

// WriteRegister likewise writes.
func (f *liveFabric) WriteRegister(sw, register string, from, to int, value uint64) error {
	r, err := f.reach(sw)
	if err != nil {
		return err
	}
	ctx, cancel := f.limited()
	defer cancel()
	return r.Write(ctx, register, from, to, value)
}

// Clock is the clock of the switch.
func (f *liveFabric) Clock(sw string) (time.Duration, error) {
	r, err := f.reach(sw)
	if err != nil {
		return 0, err
	}
	ctx, cancel := f.limited()
	defer cancel()
	return r.Clock(ctx)
}

// PacketOut sends the frame as P4Runtime does.
func (f *liveFabric) PacketOut(sw string, frame []byte) error {
	ctx, cancel := f.limited()
	defer cancel()
	return f.c.PacketOut(ctx, sw, frame)
}

// QueuesEmpty asks targets that know.
func (f *liveFabric) QueuesEmpty(sw string) (bool, error) {
	r, err := f.reach(sw)
	if err != nil {
		return false, err
	}
	q, ok := r.(interface {
		QueuesEmpty(ctx context.Context) (bool, error)
	})
	if !ok {
		return false, errors.ErrUnsupported
	}
	ctx, cancel := f.limited()
	defer cancel()
	return q.QueuesEmpty(ctx)
}
