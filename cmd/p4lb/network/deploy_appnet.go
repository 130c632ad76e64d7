package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/bmv2/thrift"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/controller/embedded"
	"github.com/p4lb/p4lb/controller/netspace"
	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/controller/target"
	"github.com/p4lb/p4lb/controller/testbed"
	"github.com/p4lb/p4lb/dataplane"
	"github.com/p4lb/p4lb/dataplane/hash"
	"github.com/p4lb/p4lb/p4app"
)

// An appNetwork is where the switches and hosts of a project are.
type appNetwork interface {
	target.Target
	// begin gives a switch its program and its entries.
	begin(ctx context.Context, s *appSwitch) error
	// run runs a command line of a shell on a host and waits for it; there may be
	// no hosts.
	run(ctx context.Context, host, text string, out io.Writer) error
}

// openApp makes the network that the target is about.
func (j *deployJob) openApp(project *p4app.Project, planned *plan.Plan) (appNetwork, error) {
	known, priorities := netspace.KnowsHosts, 0
	if slices.ContainsFunc(project.Hosts, func(h p4app.Host) bool { return len(h.Commands) > 0 }) {
		known = netspace.KnowsNobody // the commands tell them
	}
	for _, s := range project.Switches {
		priorities = max(priorities, s.Priority)
	}
	if j.target == targetBMv2 {
		name := cmp.Or(j.bmv2.name, planned.Topology.Name)
		bed := testbed.New(testbed.Options{Name: name, Known: known, Priorities: priorities, Log: j.c.Log})
		return &bmv2App{Target: bed, name: name, plan: planned, options: controller.DeployOptions{Timeout: j.timeout, Log: j.c.Log}}, nil
	}
	if err := j.addressesFree(planned); err != nil {
		return nil, err
	}
	if err := j.hosts.open(j.c, planned, known); err != nil {
		return nil, errors.Join(err, j.hosts.close())
	}
	options := embedded.Options{AnyPort: j.anyPort, Seed: j.seed, Priorities: priorities, Log: j.c.Log}
	j.hosts.join(&options)
	return &embeddedApp{embedded.New(options), &j.hosts}, nil
}

// An embeddedApp runs a project in this process.
type embeddedApp struct {
	*embedded.Target
	hosts *hostFlags
}

func (a *embeddedApp) begin(_ context.Context, s *appSwitch) error {
	if _, err := a.Endpoint(s.Name); err != nil {
		return deployFailure(err)
	}
	server := a.Server(s.Name)
	if err := server.Load(s.program, s.info); err != nil {
		return fmt.Errorf("loading %s: %w", s.Program, err)
	}
	for _, e := range s.entries {
		if err := e.Apply(server, a.Device(s.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (a *embeddedApp) run(ctx context.Context, host, text string, out io.Writer) error {
	if a.hosts.network == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Stdout, cmd.Stderr = out, out
	done := make(chan error, 1)
	if err := a.hosts.network.Run(host, cmd, func(err error) { done <- err }); err != nil {
		return err
	}
	return <-done
}

// Close ends the switches, then the hosts.
func (a *embeddedApp) Close() error { return errors.Join(a.Target.Close(), a.hosts.close()) }

// A bmv2App runs a project on simple_switch_grpc.
type bmv2App struct {
	*testbed.Target
	name    string
	plan    *plan.Plan
	options controller.DeployOptions
}

// queueDepth is simple_switch's own, in packets.
const queueDepth = 64

func (a *bmv2App) begin(ctx context.Context, s *appSwitch) error {
	var updates []*p4v1.Update
	for _, e := range s.entries {
		updates = append(updates, e.Updates()...)
	}
	if at, err := controller.Fill(ctx, s.Name, a, s.plan.Pipeline, updates, a.options); err != nil {
		for _, e := range s.entries {
			if n := len(e.Updates()); at >= n {
				at -= n
				continue
			}
			err = e.At(at, err)
			break
		}
		return deployFailure(err)
	}
	e, err := a.Endpoint(s.Name)
	if err != nil {
		return deployFailure(err)
	}
	for _, p := range a.plan.Topology.Ports(s.Name) {
		queue := plan.Queue{Port: p.Number, Rate: plan.PacketRate(p.Rate, a.plan.Options.MTU), Depth: cmp.Or(p.Queue, queueDepth)}
		if err := e.Queues.SetQueue(ctx, queue); err != nil {
			return deployFailure(err)
		}
	}
	client, err := thrift.Dial(ctx, e.Thrift)
	if err != nil {
		return deployFailure(err)
	}
	defer client.Close()
	for _, entries := range s.entries {
		if err := entries.Settle(thriftSettings{ctx, client}); err != nil {
			return err
		}
	}
	return nil
}

func (a *bmv2App) run(ctx context.Context, host, text string, out io.Writer) error {
	line := append(testbed.Shell(a.name, host), "sh", "-c", text)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	return cmd.Run()
}

// thriftSettings sets at a switch of BMv2 what P4Runtime does not have.
type thriftSettings struct {
	ctx context.Context
	*thrift.Client
}

func (t thriftSettings) SetSession(id, port, group int) error {
	return t.Client.SetSession(t.ctx, id, port, group)
}

func (t thriftSettings) WriteRegister(name string, from, to int, value uint64) error {
	return t.RegisterWriteRange(t.ctx, name, from, to, value)
}

func (t thriftSettings) WriteCounter(name string, from, to int, packets, bytes uint64) error {
	for i := from; i < to; i++ {
		if err := t.CounterWrite(t.ctx, name, i, packets, bytes); err != nil {
			return err
		}
	}
	return nil
}

func (t thriftSettings) SetMeter(name string, index int, rates []dataplane.MeterRate) error {
	return t.Client.SetMeter(t.ctx, name, index, rates)
}

func (t thriftSettings) SetQueueRate(port, priority int, rate uint64) error {
	if port < 0 {
		return t.SetAllQueueRates(t.ctx, rate)
	}
	return t.Client.SetQueueRate(t.ctx, port, priority, rate)
}

func (t thriftSettings) SetQueueDepth(port, priority, packets int) error {
	if port < 0 {
		return t.SetAllQueueDepths(t.ctx, packets)
	}
	return t.Client.SetQueueDepth(t.ctx, port, priority, packets)
}

func (t thriftSettings) SetCRC(calculation string, c hash.CRC) error {
	return t.Client.SetCRC(t.ctx, calculation, c)
}

func (t thriftSettings) AddValue(set string, value []byte) error {
	return t.Client.AddValue(t.ctx, set, value)
}
