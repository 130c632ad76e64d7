package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

const (
	defaultParallel = 16
	defaultTimeout  = 10 * time.Second

	// attempts is how often a switch is read, changed and read again before it
	// counts as failed. A second attempt is needed only if the switch disappears or
	// loses its state in between.
	attempts = 4
)

// A Controller has a connection to every switch of a plan while it is open. It
// reconnects to switches that vanish. Its methods may be called concurrently.
type Controller struct {
	target target.Target
	opts   DeployOptions
	conns  map[string]*primary.Conn

	common commons // shared entries of the switches' plans

	mu   sync.Mutex
	plan *plan.Plan
	good map[string]int // for each switch, the epoch of the connection in which it was verified
}

// New starts a target and starts to connect to its switches.
func New(ctx context.Context, p *Plan, t Target, o DeployOptions) (*Controller, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := t.Start(ctx, p); err != nil {
		return nil, fmt.Errorf("starting the switches (%s): %w", t.Name(), err)
	}
	c := &Controller{target: t, opts: o, conns: map[string]*primary.Conn{}, plan: p, good: map[string]int{}}
	for _, s := range p.Switches {
		// The connections outlive ctx, which only bounds the start.
		c.conns[s.Name] = primary.New(context.WithoutCancel(ctx), s.Name, t, o.primary())
	}
	return c, nil
}

// Plan returns the planned configuration of the switches.
func (c *Controller) Plan() *Plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plan
}

// SetPlan sets the plan for the next Deploy. It must have the same switches.
func (c *Controller) SetPlan(ctx context.Context, p *Plan) error {
	if err := c.sameSwitches(p); err != nil {
		return err
	}
	if err := c.target.Start(ctx, p); err != nil {
		return fmt.Errorf("starting the switches (%s): %w", c.target.Name(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plan, c.good = p, map[string]int{}
	return nil
}

// sameSwitches returns an error unless a plan is for the switches of this
// controller.
func (c *Controller) sameSwitches(p *plan.Plan) error {
	for _, s := range p.Switches {
		if c.conns[s.Name] == nil {
			return &plan.Error{Switch: s.Name, Err: errors.New("the network that runs has no such switch"), Hint: "p4lb down ends it; then deploy the other topology"}
		}
	}
	if len(p.Switches) != len(c.conns) {
		return &plan.Error{Err: fmt.Errorf("the plan has %d switches, the network that runs has %d", len(p.Switches), len(c.conns)), Hint: "p4lb down ends it; then deploy the other topology"}
	}
	return nil
}

// Deploy applies the plan to the switches, at most opts.Parallel at once, and verifies the
// switches and the links. It may be called again.
func (c *Controller) Deploy(ctx context.Context) (*Report, error) {
	return c.DeployAs(ctx, c.opts)
}

// DeployAs is Deploy with other options for this call: Atomic, Timeout, Progress
// and Log.
func (c *Controller) DeployAs(ctx context.Context, o DeployOptions) (*Report, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	o.DryRun = c.opts.DryRun
	return c.carryOut(ctx, c.Plan(), o)
}

// Compare finds the differences between the network and a plan, without writing. The plan may
// differ from the deployed one.
func (c *Controller) Compare(ctx context.Context, p *Plan) (*Report, error) {
	if err := c.sameSwitches(p); err != nil {
		return nil, err
	}
	o := c.opts
	o.DryRun, o.Atomic, o.Progress = true, false, nil
	return c.carryOut(ctx, p, o)
}

func (c *Controller) carryOut(ctx context.Context, p *plan.Plan, o DeployOptions) (*Report, error) {
	begin := time.Now()
	r := &report.Report{Switches: make([]report.Switch, len(p.Switches))}
	jobs := make([]*job, len(p.Switches))
	m := &meter{opts: &o, of: len(p.Switches)}
	for i, s := range p.Switches {
		r.Switches[i].Name = s.Name
		jobs[i] = &job{c: c, opts: &o, plan: s, conn: c.conns[s.Name], report: &r.Switches[i], meter: m}
	}
	if o.Atomic && !o.DryRun {
		c.atomically(ctx, jobs)
	} else {
		c.each(jobs, func(j *job) { j.finish(j.deploy(ctx)) })
	}
	var err error
	if r.Links, err = c.linkChanges(cmp.Or(o.Links, p.Topology)); err != nil {
		return r, errors.Join(r.Err(), err)
	}
	r.Elapsed = time.Since(begin)
	if err := r.Err(); err != nil || o.DryRun || len(r.Links) == 0 {
		return r, err
	}
	l := r.Links[0]
	return r, &plan.Error{Err: fmt.Errorf("%s is %s, the plan has it %s", l.Object, l.Before, l.After), Hint: "deploy again sets the links"}
}

// linkChanges lists the target's links whose state differs from the topology.
func (c *Controller) linkChanges(t *fabric.Topology) (list []report.Change, err error) {
	linker, ok := c.target.(target.Linker)
	if !ok {
		return nil, nil
	}
	state := map[bool]string{true: "down", false: "up"}
	for _, l := range t.Links {
		down, err := linker.LinkDown(l)
		if err != nil {
			return list, fmt.Errorf("reading the state of link %v: %w", l, err)
		}
		if down != l.Down {
			list = append(list, report.Change{Kind: report.Modify, Object: fmt.Sprintf("link %v", l), Before: state[down], After: state[l.Down]})
		}
	}
	return list, nil
}

// each calls do for every job, at most opts.Parallel at once.
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

// A meter counts the switches that have succeeded or failed.
type meter struct {
	opts *DeployOptions
	of   int

	mu   sync.Mutex
	done int
}

// step records a step of a switch.
func (m *meter) step(name, step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if step == stepDone || step == stepFailed {
		m.done++
	}
	m.opts.Log.Debug("deploy", "switch", name, "step", step)
	if m.opts.Progress != nil {
		m.opts.Progress(Progress{Switch: name, Step: step, Done: m.done, Of: m.of})
	}
}

// The final steps of a switch.
const (
	stepDone   = "done"
	stepFailed = "failed"
)

// Registers returns access to the registers of the named switch.
func (c *Controller) Registers(name string) (Registers, error) {
	s := c.Plan().Switch(name)
	if s == nil {
		return nil, &plan.Error{Err: fmt.Errorf("there is no switch %s", name)}
	}
	return &switchRegisters{conn: c.conns[name], plan: s, timeout: c.opts.Timeout}, nil
}

// PacketOut sends a packet to the named switch, through its CPU port.
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
