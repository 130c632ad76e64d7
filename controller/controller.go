package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
)

const (
	defaultParallel = 16
	defaultTimeout  = 10 * time.Second

	// attempts is how often a switch is read, changed and read again, before
	// it is given up: more than once only if it vanishes or forgets meanwhile.
	attempts = 4
)

// A Controller has a connection to every switch of a plan, for as long as it is
// open: it reconnects to those that vanish. Its methods may be called at the same
// time.
type Controller struct {
	target target.Target
	opts   DeployOptions
	conns  map[string]*primary.Conn

	common commons // of the switches' plans

	mu   sync.Mutex
	plan *plan.Plan
	good map[string]int // the epoch of a connection in which its switch was verified
}

// New starts a target and begins to connect to its switches.
func New(ctx context.Context, p *Plan, t Target, o DeployOptions) (*Controller, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := t.Start(ctx, p); err != nil {
		return nil, fmt.Errorf("starting the switches (%s): %w", t.Name(), err)
	}
	c := &Controller{target: t, opts: o, conns: map[string]*primary.Conn{}, plan: p, good: map[string]int{}}
	for _, s := range p.Switches {
		// The connections outlive ctx, which bounds the deployment's beginning.
		c.conns[s.Name] = primary.New(context.WithoutCancel(ctx), s.Name, t, o.primary())
	}
	return c, nil
}

// Plan is what the switches are to hold.
func (c *Controller) Plan() *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plan
}

// SetPlan makes another plan the one to hold, from the next Deploy on. It must
// be of the same switches.
func (c *Controller) SetPlan(ctx context.Context, p *Plan) error {
	for _, s := range p.Switches {
		if c.conns[s.Name] == nil {
			return &plan.Error{Switch: s.Name, Err: errors.New("is not among the switches of the deployment"), Hint: "deploy the new topology anew"}
		}
	}
	if len(p.Switches) != len(c.conns) {
		return &plan.Error{Err: fmt.Errorf("the new plan is about %d of the %d switches", len(p.Switches), len(c.conns)), Hint: "deploy the new topology anew"}
	}
	if err := c.target.Start(ctx, p); err != nil {
		return fmt.Errorf("starting the switches (%s): %w", c.target.Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plan, c.good = p, map[string]int{}
	return nil
}

// Deploy makes the switches hold the plan, some at a time. It may be called
// again.
func (c *Controller) Deploy(ctx context.Context) (*Report, error) {
	begin := time.Now()
	p := c.Plan()
	r := &report.Report{Switches: make([]report.Switch, len(p.Switches))}
	jobs := make([]*job, len(p.Switches))
	m := &meter{c: c, tell: c.opts.Progress, of: len(p.Switches)}
	for i, s := range p.Switches {
		r.Switches[i].Name = s.Name
		jobs[i] = &job{c: c, plan: s, conn: c.conns[s.Name], report: &r.Switches[i], meter: m}
	}
	if c.opts.Atomic && !c.opts.DryRun {
		c.atomically(ctx, jobs)
	} else {
		c.each(jobs, func(j *job) { j.finish(j.deploy(ctx)) })
	}
	r.Elapsed = time.Since(begin)
	return r, r.Err()
}

// Each calls do for every job, so many at a time as the options say.
func (c *Controller) each(jobs []*job, do func(*job)) {
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

// A meter counts the switches that are done with.
type meter struct {
	c    *Controller
	tell func(Progress)
	of   int

	mu   sync.Mutex
	done int
}

// step notes a step of a switch.
func (m *meter) step(name, step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if step == stepDone || step == stepFailed {
		m.done++
	}
	m.c.opts.Log.Debug("deploy", "switch", name, "step", step)
	if m.tell != nil {
		m.tell(Progress{Switch: name, Step: step, Done: m.done, Of: m.of})
	}
}

// The last step of a switch.
const (
	stepDone   = "done"
	stepFailed = "failed"
)

// Access reaches those of the named switch.
func (c *Controller) Registers(name string) (Registers, error) {
	s := c.Plan().Switch(name)
	if s == nil {
		return nil, &plan.Error{Err: fmt.Errorf("there is no switch %s", name)}
	}
	return &switchRegisters{conn: c.conns[name], plan: s, timeout: c.opts.Timeout}, nil
}

// PacketOut hands a packet to the named switch, as one from its CPU port.
func (c *Controller) PacketOut(_ context.Context, name string, packet []byte) error {
	conn := c.conns[name]
	if conn == nil {
		return &plan.Error{Err: fmt.Errorf("there is no switch %s", name)}
	}
	return conn.PacketOut(packet)
}

// Close ends all connections. It leaves the target as it is.
func (c *Controller) Close() error {
	for _, conn := range c.conns {
		conn.End()
	}
	for _, conn := range c.conns {
		conn.Close()
	}
	return nil
}
