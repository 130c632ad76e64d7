package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	defaultParallel = 16
	defaultTimeout  = 10 * time.Second

	// attempts is how often a switch is read, changed and read again, before
	// it is given up: more than once only if it vanishes or forgets meanwhile.
	attempts = 4
)

// controllerState is what is inside a Controller.
type controllerState struct {
	target Target
	opts   DeployOptions
	conns  map[string]*conn

	mu   sync.Mutex
	now  *Plan
	good map[string]int // the epoch of a connection in which its switch was verified

	progress sync.Mutex
	finished int
}

func newController(ctx context.Context, p *Plan, t Target, o DeployOptions) (*Controller, error) {
	o.Parallel, o.Timeout = cmp.Or(o.Parallel, defaultParallel), cmp.Or(o.Timeout, defaultTimeout)
	if o.Parallel < 0 || o.Timeout < 0 {
		return nil, fmt.Errorf("parallel %d, timeout %v: want positive numbers", o.Parallel, o.Timeout)
	}
	if o.Takeover && o.Backup {
		return nil, errors.New("takeover and backup exclude each other")
	}
	if o.Election.IsZero() {
		o.Election.Low = 1
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := t.Start(ctx, p); err != nil {
		return nil, fmt.Errorf("starting the switches (%s): %w", t.Name(), err)
	}
	c := &Controller{controllerState{target: t, opts: o, conns: map[string]*conn{}, now: p, good: map[string]int{}}}
	for _, s := range p.Switches {
		// The connections outlive ctx, which is that of the beginning.
		c.conns[s.Name] = newConn(context.WithoutCancel(ctx), s.Name, t, &c.opts)
	}
	return c, nil
}

func (c *controllerState) plan() *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *controllerState) setPlan(ctx context.Context, p *Plan) error {
	for _, s := range p.Switches {
		if c.conns[s.Name] == nil {
			return &Error{Switch: s.Name, Err: errors.New("is not among the switches of the deployment"), Hint: "deploy the new topology anew"}
		}
	}
	if len(p.Switches) != len(c.conns) {
		return &Error{Err: fmt.Errorf("the new plan is about %d of the %d switches", len(p.Switches), len(c.conns)), Hint: "deploy the new topology anew"}
	}
	if err := c.target.Start(ctx, p); err != nil {
		return fmt.Errorf("starting the switches (%s): %w", c.target.Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.good = p, map[string]int{}
	return nil
}

// deploy works on all switches, some at a time.
func (c *controllerState) deploy(ctx context.Context) (*Report, error) {
	begin := time.Now()
	p := c.plan()
	r := &Report{Switches: make([]SwitchReport, len(p.Switches))}
	jobs := make([]*job, len(p.Switches))
	c.finished = 0
	for i, s := range p.Switches {
		r.Switches[i].Name = s.Name
		jobs[i] = &job{c: c, plan: s, conn: c.conns[s.Name], report: &r.Switches[i], of: len(p.Switches)}
	}
	if c.opts.Atomic && !c.opts.DryRun {
		c.atomically(ctx, jobs)
	} else {
		c.each(jobs, func(j *job) { j.finish(j.deploy(ctx)) })
	}
	r.Elapsed = time.Since(begin)
	return r, r.Err()
}

// each calls do for every job, so many at a time as the options say.
func (c *controllerState) each(jobs []*job, do func(*job)) {
	slots := make(chan struct{}, c.opts.Parallel)
	var all sync.WaitGroup
	for _, j := range jobs {
		slots <- struct{}{}
		all.Go(func() {
			do(j)
			<-slots
		})
	}
	all.Wait()
}

// step tells the progress.
func (c *controllerState) step(name, step string, of int) {
	c.progress.Lock()
	defer c.progress.Unlock()
	if step == "done" || step == "failed" {
		c.finished++
	}
	c.opts.Log.Debug("deploy", "switch", name, "step", step)
	if c.opts.Progress != nil {
		c.opts.Progress(Progress{Switch: name, Step: step, Done: c.finished, Of: of})
	}
}

func (c *controllerState) registers(name string) (Registers, error) {
	s := c.plan().Switch(name)
	if s == nil {
		return nil, &Error{Err: fmt.Errorf("there is no switch %s", name)}
	}
	return &switchRegisters{conn: c.conns[name], plan: s, timeout: c.opts.Timeout}, nil
}

func (c *controllerState) packetOut(_ context.Context, name string, packet []byte) error {
	conn := c.conns[name]
	if conn == nil {
		return &Error{Err: fmt.Errorf("there is no switch %s", name)}
	}
	return conn.packetOut(packet)
}

func (c *controllerState) closeAll() error {
	for _, conn := range c.conns {
		conn.end()
	}
	for _, conn := range c.conns {
		conn.close()
	}
	return nil
}
