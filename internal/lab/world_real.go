//go:build !js

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/testbed"
	real "github.com/p4lb/p4lb/internal/network/traffic"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// errOverload is wrapped by the error about a run that exceeds the capacity of this kind of
// machine in real time.
var errOverload = errors.New("more than this machine can carry in real time")

// carries is the number of packets per second that all switches of a world can process on one
// core. About half of the rate of p4lb bench is left for the hosts.
var carries = map[string]float64{Embedded: 150e3, BMv2: 8e3}

// A place is a network in real time: switches with a plan, and hosts.
type place struct {
	*controller.Controller
	target  target.Target
	sockets interface {
		Socket(host string) (int, error)
	}
	topo *fabric.Topology
	end  []func() error
}

// Socket creates a socket on a host.
func (p *place) Socket(host string) (int, error) { return p.sockets.Socket(host) }

// Address returns the address of a host.
func (p *place) Address(host string) netip.Addr { return p.topo.Host(host).IP.Addr() }

func (p *place) close() error {
	var errs []error
	for _, end := range slices.Backward(p.end) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// openPlace starts a network with a plan.
func (r *running) openPlace(ctx context.Context, plan *plan.Plan) (_ *place, err error) {
	p := &place{topo: r.topo}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	step := time.Duration(r.Case.Switches.Clock)
	var target target.Target
	if r.world == BMv2 {
		bed := testbed.New(testbed.Options{Name: "lab", Priorities: plan.Queues(), ClockStep: step})
		target, p.sockets = bed, bed
	} else {
		network, err := hosts.Open(r.topo, hosts.Options{MTU: plan.Options.MTU, Rates: true, ByMAC: plan.ByMAC(), Virtual: plan.VirtualAddresses()})
		if err != nil {
			return nil, err
		}
		p.end, p.sockets = append(p.end, network.Close), network
		target = embedded.New(embedded.Options{
			Memory: true, Seed: r.Seed, ClockStep: step, Rates: true, Priorities: plan.Queues(),
			Host: func(name string) (p4rt.Port, error) { return network.Port(name) },
		})
	}
	p.target = target
	p.end = append(p.end, target.Close)
	if p.Controller, err = controller.New(ctx, plan, target, controller.DeployOptions{}); err != nil {
		return nil, err
	}
	p.end = append(p.end, func() error { p.Controller.Close(); return nil })
	return p, apply(ctx, p.Controller)
}

// runReal executes a job in real time.
func (j *Job) runReal(ctx context.Context, o RealOptions, flows io.Writer) (_ *Result, err error) {
	r := &running{Job: j, topo: j.setup.topo}
	if err := r.drawFlows(); err != nil {
		return nil, err
	}
	if waits(r.flows) {
		return nil, fmt.Errorf("%s: flows that wait for others are the simulator's alone: world %s starts flows by time", r.Name(), r.world)
	}
	if err := r.checkLoad(o); err != nil {
		return nil, err
	}
	plan, err := r.plan(r.topo)
	if err != nil {
		return nil, err
	}
	p, err := r.openPlace(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := r.sendReal(ctx, p); err != nil {
		return nil, err
	}
	return r.realResult(), writeFlows(flows, r)
}

// Strain returns the packet rate of an experiment's flows at the switches in a real-time world,
// and the rate that the switches can process on the given number of cores of this kind of
// machine.
func Strain(x *spec.Experiment, t *fabric.Topology, world string, cores int) (rate, most float64, err error) {
	c := &x.Cases[0]
	for _, seed := range c.Seeds {
		r := &running{Job: &Job{Case: c, Scheme: &spec.Scheme{}, Load: float64(c.Loads[0]), Seed: seed, x: x}, topo: t}
		if err := r.drawFlows(); err != nil {
			return 0, 0, err
		}
		rate = max(rate, r.packetRate())
	}
	return rate, carries[world] * float64(max(1, cores)), nil
}

// packetRate returns the packets per second that the flows bring to switches.
func (r *running) packetRate() float64 {
	const segment = 1448
	routes := r.topo.Routes()
	packets := 0.0
	for _, f := range r.flows {
		span, ok := routes.Span(r.topo.Hosts[f.Src].Name, r.topo.Hosts[f.Dst].Name)
		if !ok {
			continue // the receiver is unreachable
		}
		// There is an acknowledgment for every two segments.
		packets += 1.5 * math.Ceil(float64(f.Bytes)/segment) * float64(span.Links-1)
	}
	return packets / r.Case.Length().Seconds()
}

// checkLoad returns an error if the packet rate exceeds the capacity of the world's switches.
func (r *running) checkLoad(o RealOptions) error {
	rate, most := r.packetRate(), carries[r.world]*float64(max(1, o.Cores))
	if rate > most && !o.Overload {
		return fmt.Errorf("%s in world %s: %w: %.0f packets a second through switches, of %.0f; want load %.2g, slower links or --overload",
			r.Name(), r.world, errOverload, rate, most, r.Load*most/rate)
	}
	return nil
}

// sendReal sends the flows, while the controller's tasks run.
func (r *running) sendReal(ctx context.Context, p *place) error {
	tasks, err := task.ForPlan(p.Plan(), task.Options{
		FlowSize: r.longFlow(),
		Alert:    func(a task.Alert) { r.alerts = append(r.alerts, a.String()) },
	})
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	looped := make(chan struct{})
	go func() {
		defer close(looped)
		if len(tasks) > 0 {
			p.Loop(inner, tasks, controller.LoopOptions{})
		}
	}()
	turns, err := r.Case.Turns(r.setup.named)
	struck := make(chan error, 1)
	if err == nil {
		go func() { struck <- r.runFaults(inner, p, turns) }()
		err = r.carry(ctx, p, real.Options{Congestion: likeSim})
		cancel()
		err = errors.Join(err, <-struck)
	}
	cancel()
	<-looped
	return err
}

// likeSim is the kernel's congestion control for experiments. It is the one most similar to the
// simulator's TCP, and every kernel has it.
const likeSim = "reno"

// carry sends the flows between the hosts of a network.
func (r *running) carry(ctx context.Context, n real.Network, o real.Options) error {
	list := make([]real.Flow, len(r.flows))
	for i, f := range r.flows {
		list[i] = real.Flow{From: r.topo.Hosts[f.Src].Name, To: r.topo.Hosts[f.Dst].Name, Bytes: f.Bytes, Start: f.Start}
		if f.Service > 0 {
			s := &r.topo.Services[f.Service-1]
			list[i].Service = &real.Service{Address: netip.AddrPortFrom(s.Address, uint16(s.Port)), Servers: s.Servers, Direct: s.Direct}
		}
	}
	o.Drain = time.Duration(r.Case.Drain)
	outcomes, err := real.Run(ctx, n, list, o)
	if err != nil {
		return err
	}
	end := r.Case.Length()
	served, asked := make([]bool, len(r.topo.Services)), make([]bool, len(r.topo.Services))
	for i, o := range outcomes {
		f := r.flows[i]
		if s := f.Service; s > 0 {
			asked[s-1] = true
			served[s-1] = served[s-1] || o.Received > 0
		}
		f.Started, f.Finished = o.Started, o.Finished
		f.Sent, f.Retransmitted, f.Timeouts, f.OutOfOrder, f.Received = o.Sent, o.Retransmitted, o.Timeouts, o.OutOfOrder, o.Received
		f.DupAcks = o.OutOfOrder // a receiver immediately acknowledges each out-of-order segment (RFC 5681)
		end = max(end, o.Finished)
	}
	for i := range asked {
		switch s := &r.topo.Services[i]; {
		case !asked[i]:
			r.alerts = append(r.alerts, unasked(s))
		case !served[i]:
			r.alerts = append(r.alerts, unserved(s))
		}
	}
	for i, o := range outcomes {
		r.flows[i].end = end
		if o.Finished == 0 {
			r.flows[i].end = end + time.Duration(r.Case.Drain) // the completion time is then a lower bound
		}
	}
	return nil
}

// Send sends the flows of an experiment's first case, at its first load, between the
// hosts of a running network, once for each seed. It returns the measurements of the kernel
// or, for RDMA, of the hosts. Rows of flows are written to flows, which may be nil. The
// experiment has the drain time.
func Send(ctx context.Context, x *spec.Experiment, t *fabric.Topology, n real.Network, o real.Options, flows func(seed uint64) (io.WriteCloser, error)) (*Row, error) {
	c := &x.Cases[0]
	row := &Row{Case: c, Scheme: &spec.Scheme{}, Load: float64(c.Loads[0])}
	for _, seed := range c.Seeds {
		r := &running{Job: &Job{Case: c, Scheme: row.Scheme, Load: row.Load, Seed: seed, x: x}, topo: t}
		if err := r.drawFlows(); err != nil {
			return nil, err
		}
		if waits(r.flows) {
			return nil, errors.New("flows that wait for others are the simulator's alone: here flows start by time")
		}
		if err := r.carry(ctx, n, o); err != nil {
			return row, err
		}
		row.Runs = append(row.Runs, &Result{Seed: seed, Load: row.Load, Metrics: r.realMetrics(), Alerts: r.alerts})
		if flows == nil {
			continue
		}
		out, err := flows(seed)
		if err == nil {
			err = errors.Join(writeFlows(out, r), out.Close())
		}
		if err != nil {
			return row, err
		}
	}
	return row, nil
}

// realMetrics returns the metrics of the flows.
func (r *running) realMetrics() map[string]float64 {
	m := &measured{flows: r.flows, classes: r.x.Classes}
	values := m.values()
	maps.DeleteFunc(values, func(key string, _ float64) bool {
		name, _, _ := strings.Cut(key, ":")
		return !slices.Contains(measuredReal, name)
	})
	return values
}

func (r *running) realResult() *Result {
	res := r.blankResult()
	res.Metrics = r.realMetrics()
	for _, f := range r.flows {
		res.Elapsed = max(res.Elapsed, f.end)
	}
	res.Plots, res.Alerts = r.plots(Plots{}), r.alerts
	return res
}

// runFaults executes link faults of a network in real time when they are due. It notifies the
// controller after its latency, as in virtual time.
func (r *running) runFaults(ctx context.Context, p *place, list []spec.Turn) error {
	began := time.Now()
	sleep := func(until time.Duration) bool {
		timer := time.NewTimer(time.Until(began.Add(until)))
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false // the flows have ended before the fault
		}
	}
	var down spec.Outage
	for _, t := range list {
		at := time.Duration(t.At)
		if !sleep(at) {
			return nil
		}
		down.Toggle(t)
		plan, err := r.plan(down.Apply(r.topo))
		if err != nil {
			return err
		}
		if err := p.target.Start(ctx, plan); err != nil {
			return fmt.Errorf("a fault at %v: %w", at, err)
		}
		if !sleep(at + time.Duration(r.x.Latency)) {
			return nil
		}
		if err := p.SetPlan(ctx, plan); err != nil {
			return fmt.Errorf("a fault at %v: %w", at, err)
		}
		if _, err := p.Deploy(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("deploying after a fault at %v: %w", at, err)
		}
	}
	return nil
}

// apply deploys the controller's plan to the switches, and returns an error if one of them fails.
func apply(ctx context.Context, ctl *controller.Controller) error {
	report, err := ctl.Deploy(ctx)
	if err != nil {
		return fmt.Errorf("deploying: %w", err)
	}
	if !report.Verified() {
		return fmt.Errorf("deploying: not every switch holds the plan")
	}
	return nil
}
