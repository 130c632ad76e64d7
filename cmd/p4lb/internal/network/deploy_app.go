package network

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/netspace"
	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/network/testbed"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/own"
	"github.com/p4lb/p4lb/internal/server/thrift"
)

// defaultCPU is the default port of controllers, as in p4-utils.
const defaultCPU = 510

// checkApp returns an error for mistakes in the command line of a project's deployment.
func (j *deployJob) checkApp(cmd *cobra.Command) error {
	for _, flag := range []string{"scheme", "topology", "file", "set", "coeffs", "arch", "atomic", "diff", "dry-run", "once", "device-config", "keep", "remove", "attach"} {
		if cmd.Flags().Changed(flag) {
			return cli.UsageError(cmd, "--p4app and --%s exclude each other: a project defines its own network and program", flag)
		}
	}
	switch {
	case j.target != targetEmbedded && j.target != targetBMv2:
		return cli.UsageError(cmd, "--p4app is for --target embedded and bmv2")
	case j.page.Listen != "":
		return cli.UsageError(cmd, "--p4app goes without --listen: p4lb inspect --listen shows a project")
	}
	return cmp.Or(j.checkClocks(cmd), j.bmv2.check(cmd, j.target), j.hosts.check(cmd, j.target))
}

// An appSwitch is a switch of a p4app project, with its program and entries loaded.
type appSwitch struct {
	p4app.Switch
	program []byte
	info    *configv1.P4Info
	entries []*p4app.Entries
	plan    *plan.Switch
}

// runApp starts a project and keeps it running until ctx ends. It first reads all
// files and resolves all names, so that a mistake leaves nothing half started.
func (j *deployJob) runApp(ctx context.Context) (err error) {
	programs := map[string]string{}
	for _, text := range j.programs {
		name, file, ok := strings.Cut(text, "=")
		if !ok {
			name, file = "", text
		}
		programs[name] = file
	}
	project, err := p4app.Read(j.app, programs, fabric.Imports{})
	if err != nil {
		return err
	}
	for _, n := range project.Notes {
		j.c.Warning("%s", n)
	}
	switches, err := j.loadApp(project)
	if err != nil {
		return err
	}
	planned := appPlan(project, switches, j.mtu)
	if err := j.writeGraph(planned); err != nil {
		return err
	}
	network, err := j.openApp(project, planned)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	if err := network.Start(ctx, planned); err != nil {
		return deployFailure(err)
	}
	for _, s := range switches {
		if err := network.begin(ctx, s); err != nil {
			return fmt.Errorf("switch %s: %w", s.Name, err)
		}
	}
	if err := j.commands(ctx, project, network); err != nil {
		return err
	}
	j.ended = true
	if err := j.showApp(switches); err != nil {
		return err
	}
	k := &keeper{c: j.c, job: j, target: network.inner(), plan: planned, endTasks: func() {}}
	return k.stay(ctx)
}

// loadApp compiles the programs, each once, and reads the entries.
func (j *deployJob) loadApp(project *p4app.Project) (list []*appSwitch, err error) {
	type compiled struct {
		text []byte
		info *configv1.P4Info
	}
	programs := map[string]compiled{}
	for _, s := range project.Switches {
		p, ok := programs[s.Program]
		if !ok {
			if p.text, p.info, err = j.c.Runnable(s.Program, "", p4.Options{}); err != nil {
				return nil, err
			}
			programs[s.Program] = p
		}
		sw := &appSwitch{Switch: s, program: p.text, info: p.info}
		for _, file := range s.Entries {
			e, err := j.c.Entries(file, p.info)
			if err != nil {
				return nil, err
			}
			sw.entries = append(sw.entries, e)
		}
		list = append(list, sw)
	}
	return list, nil
}

// appPlan returns the minimal plan with which switches and hosts start.
func appPlan(project *p4app.Project, switches []*appSwitch, mtu int) *plan.Plan {
	p := &plan.Plan{Scheme: project.Topology.Name, Topology: project.Topology, Options: plan.Options{MTU: mtu}}
	for _, s := range switches {
		sw := project.Topology.Switch(s.Name)
		cpu := cmp.Or(s.CPUPort, defaultCPU)
		m := manifest.Manifest{Version: manifest.Version, Scheme: project.Topology.Name, Title: s.Program, Arch: manifest.V1Model, Role: string(sw.Role)}
		own.Complete(&m, s.info)
		// Cells of more than 64 bits cannot be read.
		m.Registers = slices.DeleteFunc(m.Registers, func(r manifest.Register) bool { return r.Width < 1 || r.Width > 64 })
		s.plan = &plan.Switch{
			Name: s.Name, Role: sw.Role, Device: sw.ID, CPUPort: cpu,
			Pipeline: &plan.Pipeline{Manifest: m, P4Info: s.info, Config: s.program},
		}
		p.Switches = append(p.Switches, s.plan)
	}
	return p
}

// hostTime is the time limit for a host's command before the network is up.
const hostTime = 10 * time.Second

// commands runs the initial commands of hosts.
func (j *deployJob) commands(ctx context.Context, project *p4app.Project, network appNetwork) error {
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	for _, h := range project.Hosts {
		for _, text := range h.Commands {
			if err := onHost(ctx, network, h.Name, text); err != nil {
				j.c.Log.Warn("a command of the project fails", "host", h.Name, "command", text, "error", err)
			}
		}
	}
	return ctx.Err()
}

// onHost runs a command line of a shell on a host, and waits for it.
func onHost(ctx context.Context, network appNetwork, host, text string) error {
	var out bytes.Buffer
	err := network.run(ctx, host, p4app.WithIP(text), &out)
	if said := strings.TrimSpace(out.String()); err != nil && said != "" {
		return fmt.Errorf("%s: %w", strings.ReplaceAll(said, "\n", ": "), err)
	}
	return err
}

// showApp prints the programs and addresses of the switches.
func (j *deployJob) showApp(switches []*appSwitch) error {
	type row struct {
		Switch  string `json:"switch"`
		Program string `json:"program"`
		Entries int    `json:"entries"`
	}
	rows, list := cli.Grid{{"SWITCH", "PROGRAM", "ENTRIES"}}, []row{}
	for _, s := range switches {
		r := row{s.Name, s.Program, 0}
		for _, e := range s.entries {
			r.Entries += e.Len()
		}
		list = append(list, r)
		rows = append(rows, []string{r.Switch, r.Program, fmt.Sprint(r.Entries)})
	}
	if err := cli.Show(j.c.Out, j.format, rows, list); err != nil {
		return err
	}
	return j.flush()
}

// An appNetwork runs the switches and hosts of a project.
type appNetwork interface {
	target.Target
	// inner returns the target that starts the switches.
	inner() target.Target
	// begin loads a program and entries into a switch.
	begin(ctx context.Context, s *appSwitch) error
	// run runs a shell command line on a host and waits for it. It returns an error
	// if the network has no hosts.
	run(ctx context.Context, host, text string, out io.Writer) error
}

// openApp creates the network on the selected target.
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
		bed := testbed.New(testbed.Options{Name: name, Known: known, Priorities: priorities, ClockStep: j.clockStep, Log: j.c.Log})
		return &bmv2App{Target: bed, name: name, plan: planned, options: controller.DeployOptions{Timeout: j.timeout, Log: j.c.Log}}, nil
	}
	if err := j.addressesFree(planned); err != nil {
		return nil, err
	}
	if err := j.hosts.open(j.c, planned, known); err != nil {
		return nil, errors.Join(err, j.hosts.close())
	}
	options := embedded.Options{AnyPort: j.embedded.anyPort, Seed: j.embedded.seed, ClockStep: j.clockStep, Priorities: priorities, Log: j.c.Log}
	j.hosts.join(&options)
	return &embeddedApp{embedded.New(options), &j.hosts}, nil
}

// An embeddedApp runs a project in this process.
type embeddedApp struct {
	*embedded.Target
	hosts *hostFlags
}

func (a *embeddedApp) inner() target.Target { return a.Target }

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
	target.Target
	name    string
	plan    *plan.Plan
	options controller.DeployOptions
}

func (a *bmv2App) inner() target.Target { return a.Target }

// queueDepth is simple_switch's default in packets.
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

// thriftSettings configures what BMv2 offers only over Thrift, not over P4Runtime.
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
