// Package network contains the verbs for running networks: deployments, their hosts
// and traffic, and the state of their switches.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/p4app"
	"github.com/p4lb/p4lb/internal/ui/live"
)

// NewDeploy returns the verb deploy.
func NewDeploy(c *cli.Console) *cobra.Command {
	return newDeploy(c, nil)
}

// newDeploy returns the verb deploy. k is set in the process that runs the network and executes
// requests of others.
func newDeploy(c *cli.Console, k *keeper) *cobra.Command {
	j := &deployJob{c: c}
	cmd := &cobra.Command{
		SuggestFor: []string{"install", "up", "start"},
		Use:        "deploy --scheme SCHEME --topology TOPOLOGY [--target TARGET] | --p4app FILE",
		Short:      "Deploy a scheme to a network and keep it running",
		Long: `This command starts the network of the preset qall in this process, without root,
and keeps it up until Ctrl-C:

  p4lb deploy --scheme qall-poly3 --topology qall

Deploy generates the scheme's program for every role in a network, plans the
contents of every switch, compares the plan with the switch, writes the
differences and reads them back. A second deploy writes nothing. After a change
of the topology or the scheme, deploy only writes the changes.

Deploy then keeps running. It executes the scheme's controller tasks (probes,
thresholds) and restores the contents of restarted switches. With --once it exits
instead. SIGHUP reloads the topology, Ctrl-C stops the network.

One process runs the network of a folder. Another deploy from the same folder
sends its request to that process and exits when the new plan is in place.

The target selects the switches:

  embedded     switches in this process, at the addresses of the topology.
               Needs no other software. --any-port selects free ports. Also
               runs programs for Tofino (--arch tna, t2na); --bfrt then uses
               BfRt as with Intel's SDE. On Linux, with or without root, it also
               starts the topology's hosts in network namespaces: p4lb exec
               runs commands on them
  p4runtime    P4Runtime servers at the addresses of the topology
  tofino       Tofino switches with Intel's SDE at the addresses of the topology,
               over BfRt: tables, mirror sessions, multicast, ports, rates and
               lengths of queues, filters, registers. They already run their
               programs, or load the compiler output that --device-config names
               for each role. --tofino-api p4runtime is for Stratum
  bmv2         one simple_switch_grpc process per switch in network namespaces
               with veth links and hosts (needs root). --keep leaves the network
               running; --attach uses running switches. Probes get a period
               that simple_switch carries; --set tprobe or tpath overrides it

--dry-run prints the plan and needs no switch. --diff prints the differences to
the switches and writes nothing. --atomic restores all switches if one fails.

--p4app deploys a project of p4-utils (p4app.json) or of the P4 tutorials
(topology.json) to the embedded target or to bmv2. It compiles the program, and
sets up the entries (JSON or simple_switch_CLI commands), the hosts with their
commands, and the links with rates and delays. --program selects another
program, such as the solution of an exercise, for all switches, or with
SWITCH=FILE for one. p4lb inspect shows tables, counters and registers.

p4lb inspect, exec, down and other commands find the network by the folder it was
deployed from. Its state and, with --detach, its log are in $XDG_STATE_HOME/p4lb
(default ~/.local/state/p4lb).

Exit codes: 1 invalid topology, scheme or plan; 3 a switch is unreachable or
refused a request; 4 interrupted.`,
		Example: `  p4lb deploy --scheme qall-poly3 --topology qall
  p4lb deploy --scheme ecmp --topology net.yaml --dry-run
  p4lb deploy --scheme dhlb --topology net.yaml --target p4runtime --atomic --once
  p4lb deploy --scheme qall-poly3 --topology qall --fail l1-s1 --diff
  p4lb deploy --scheme drill --arch tna --topology qall
  p4lb deploy --p4app pod-topo/topology.json --program solution/basic.p4`,
		Args: cli.WantArgs(0, 0, "no arguments: --scheme and --topology select the deployment"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if k == nil {
				cli.TidiesUp(cmd.Context())
			}
			if err := j.check(cmd); err != nil {
				return err
			}
			var err error
			if j.dir, err = os.Getwd(); err != nil {
				return err
			}
			if k != nil {
				return k.deployFor(cmd, j)
			}
			if err := findState(&j.state); err != nil {
				return err
			}
			return j.run(cmd.Context())
		},
	}
	j.addFlags(cmd)
	return cmd
}

// A deployJob is one run of the deploy verb.
type deployJob struct {
	c       *cli.Console
	request schemeRequest

	app      string   // the file of a project
	programs []string // programs of its switches

	topology string
	fail     []string
	target   string
	dryRun   bool
	diff     bool
	atomic   bool
	once     bool
	noTasks  bool
	format   cli.Format
	state    string

	adjust func(*fabric.Topology) (*fabric.Topology, error) // nil: the topology is not changed
	lock   *deployed.Lock                                   // on the deployment
	dir    string                                           // folder to which file names are relative

	pacing   pacing
	ended    bool // the switches end with this process
	bfrt     bool // the switches speak BfRt
	tls      clientTLS
	embedded embeddedFlags
	bmv2     bmv2Flags
	tofino   tofinoFlags
	hosts    hostFlags
	page     view.PageServer
	election string
	takeover bool
	backup   bool
	timeout  time.Duration
	mtu      int
	graph    string // file of --topology-json
	database string // file of --topology-db
	queue    int

	clockStep time.Duration
}

func (j *deployJob) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	j.request.addFlags(cmd)
	f.StringVar(&j.topology, "topology", "", "the `TOPOLOGY`, a YAML file or a preset")
	f.StringVar(&j.app, "p4app", "", "deploy a project of p4-utils or the P4 tutorials: `FILE` is its p4app.json or topology.json")
	f.StringArrayVar(&j.programs, "program", nil, "p4app: run the program `FILE` on all switches, or with SWITCH=FILE on one, instead of the project's (repeatable)")
	cli.AddFailFlag(cmd, &j.fail)
	f.StringVar(&j.graph, "topology-json", "", "write the network to `FILE` as topology.json for controllers of p4-utils")
	f.StringVar(&j.database, "topology-db", "", "write the network to `FILE` as topology.db, the format of p4-utils before 2021 for controllers with Thrift")
	f.StringVar(&j.target, "target", targetNames[0], "deploy to `TARGET`: "+strings.Join(targetNames, ", "))
	f.BoolVar(&j.dryRun, "dry-run", false, "print the plan and deploy nothing")
	f.BoolVar(&j.diff, "diff", false, "print the differences and write nothing")
	f.BoolVar(&j.atomic, "atomic", false, "if one switch fails, restore all switches")
	f.BoolVar(&j.once, "once", false, "exit when the switches hold the plan")
	f.BoolVar(&j.noTasks, "no-tasks", false, "keep running, but without the scheme's controller tasks")
	cli.AddFormat(cmd, &j.format, cli.Table, cli.JSON, cli.YAML, cli.CSV)
	addState(cmd, &j.state)
	j.embedded.addFlags(cmd)
	j.hosts.addFlags(cmd)
	j.page.AddFlags(cmd, "the network as it changes")
	j.bmv2.addFlags(cmd)
	j.tofino.addFlags(cmd)
	j.tls.addFlags(cmd)
	f.StringVar(&j.election, "election-id", "1", "use at least this election `ID`; only --takeover displaces another controller")
	f.BoolVar(&j.takeover, "takeover", false, "become primary even if another controller is")
	f.BoolVar(&j.backup, "backup", false, "if another controller is primary, wait until it disconnects")
	f.DurationVar(&j.timeout, "timeout", 5*time.Second, "time limit for answers of a switch")
	f.IntVar(&j.mtu, "mtu", 1500, "packet size in `BYTES` for converting rates to packets per second")
	f.IntVar(&j.queue, "queue", 64, "queue capacity in `PACKETS` if the topology has none")
	f.DurationVar(&j.clockStep, "clock-step", 0, "offset the clocks: each switch's clock is this `TIME` ahead of the previous one's")
	cli.CompleteWith(cmd, "target", targetNames)
	cli.GroupFlags(cmd, deployGroups...)
	if err := cmd.RegisterFlagCompletionFunc("topology", cli.CompleteTopology); err != nil {
		panic(err) // the flag has just been defined
	}
}

// check returns an error for mistakes in the command line.
func (j *deployJob) check(cmd *cobra.Command) error {
	if j.app != "" {
		return j.checkApp(cmd)
	}
	switch {
	case (j.graph != "" || j.database != "") && (j.embedded.anyPort || j.dryRun || j.diff):
		return cli.UsageError(cmd, "--topology-json and --topology-db name the addresses of the topology: want none of --any-port, --dry-run and --diff")
	case len(j.programs) > 0:
		return cli.UsageError(cmd, "--program is for --p4app")
	case j.request.Scheme == "" && j.request.File == "" && !j.bmv2.remove:
		return cli.UsageError(cmd, "deploy requires --scheme")
	case j.topology == "":
		return cli.UsageError(cmd, "deploy requires --topology")
	case j.takeover && j.backup:
		return cli.UsageError(cmd, "--takeover and --backup exclude each other")
	case j.dryRun && j.diff:
		return cli.UsageError(cmd, "--dry-run and --diff exclude each other: the first needs no switches, the second does")
	case j.timeout <= 0:
		return cli.UsageError(cmd, "--timeout %v: want a positive time", j.timeout)
	}
	j.bfrt = j.embedded.bfrt || j.target == targetTofino && j.tofino.speaksBfRt()
	if _, err := parseElection(j.election); err != nil {
		return cli.UsageError(cmd, "--election-id %s: %w", j.election, err)
	}
	if !slices.Contains(targetNames, j.target) {
		return cli.UsageError(cmd, "--target %s: want one of %s", j.target, strings.Join(targetNames, ", "))
	}
	if err := cmp.Or(
		j.embedded.check(cmd, j.target),
		j.tofino.check(cmd, j.target, !j.dryRun, j.takeover),
		j.hosts.check(cmd, j.target),
		j.page.Check(cmd),
		j.checkClocks(cmd),
		cli.Requires(cmd, j.target == targetServers || j.target == targetTofino, "--target p4runtime or tofino", "tls-ca", "tls-cert", "tls-key"),
		cli.Requires(cmd, !j.dryRun && !j.diff, "a deployment, and --dry-run and --diff make none", "no-tasks", "atomic", "pcap"),
		cli.Requires(cmd, !j.once, "a network that stays, and with --once it does not", "no-tasks"),
	); err != nil {
		return err
	}
	if j.page.Listen != "" && !j.stays() {
		return cli.UsageError(cmd, "--listen shows a running network: want none of --once, --dry-run and --diff")
	}
	if err := j.bmv2.check(cmd, j.target); err != nil || j.bmv2.remove {
		return err
	}
	if err := j.request.check(cmd, j.c); err != nil {
		return err
	}
	return j.checkArch(cmd)
}

// checkClocks returns an error for mistakes in --clock-step.
func (j *deployJob) checkClocks(cmd *cobra.Command) error {
	if j.clockStep < 0 || j.clockStep > time.Hour {
		return cli.UsageError(cmd, "--clock-step %v: want 0s to 1h", j.clockStep)
	}
	return cli.Requires(cmd, j.target == targetEmbedded || j.target == targetBMv2 && !j.bmv2.attach, "switches that deploy starts", "clock-step")
}

// checkArch determines the architecture of the programs from the target.
func (j *deployJob) checkArch(cmd *cobra.Command) error {
	arch := &j.request.Arch
	hardware := *arch != "" && *arch != codegen.Archs[0]
	switch {
	case j.target == targetTofino && *arch == "":
		*arch = "tna"
	case j.target == targetTofino && !hardware:
		return cli.UsageError(cmd, "--target tofino takes --arch tna or t2na")
	case j.target == targetTofino && j.request.StatePath == "ghost":
		return cli.UsageError(cmd, "--target tofino takes --state-path recirc: the ghost thread needs the numbers of the traffic manager's queues, which are not known here")
	case j.bfrt && !hardware:
		return cli.UsageError(cmd, "--bfrt requires --arch tna or t2na: BfRt is for programs for Tofino")
	case j.target == targetBMv2 && hardware:
		return cli.UsageError(cmd, "--target bmv2 takes --arch v1model: simple_switch runs no other programs; --target embedded does")
	}
	return nil
}

// inDir calls f in the folder that the request's files are relative to.
func (j *deployJob) inDir(f func() error) error {
	before, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chdir(j.dir); err != nil {
		return err
	}
	return errors.Join(f(), os.Chdir(before))
}

// parseElection reads an election id: a number, or with a dot its high and low
// 64 bits.
func parseElection(text string) (primary.ElectionID, error) {
	var id primary.ElectionID
	high, low, both := strings.Cut(text, ".")
	if !both {
		high, low = "0", text
	}
	var errs [2]error
	id.High, errs[0] = strconv.ParseUint(high, 10, 64)
	id.Low, errs[1] = strconv.ParseUint(low, 10, 64)
	if errors.Join(errs[:]...) != nil || id.IsZero() {
		return id, errors.New("want a number above 0, or HIGH.LOW")
	}
	return id, nil
}

// run plans the deployment and, unless only the plan is requested, applies it.
func (j *deployJob) run(ctx context.Context) error {
	if j.bmv2.remove {
		return j.takeAway()
	}
	if handed, err := j.handOver(ctx); handed || err != nil {
		return err
	}
	if j.hosts.detach && !hosts.IsDetached() {
		begun, code, err := hosts.Detach()
		switch {
		case err != nil:
			return err
		case !begun:
			return &cli.Failure{Code: code}
		}
		fmt.Fprintln(j.c.Out, "the network stays up; to end it: p4lb down")
		return nil
	}
	if j.target == targetEmbedded && j.stays() {
		if done, err := j.hosts.enter(j.c); done || err != nil {
			return err
		}
	}
	if handed, err := j.own(ctx); handed || err != nil {
		return err
	}
	defer j.disown()
	if j.app != "" {
		return j.runApp(ctx)
	}
	plan, err := j.plan(ctx)
	if err != nil {
		return err
	}
	if j.dryRun {
		return cli.Show(j.c.Out, j.format, plan.Rows(), plan)
	}
	if err := j.page.Open(); err != nil {
		return err
	}
	if err := j.writeGraph(plan); err != nil {
		return err
	}
	target, err := j.openTarget(plan)
	if err != nil {
		return errors.Join(err, j.hosts.close())
	}
	k := &keeper{c: j.c, job: j, target: target, plan: plan}
	err = k.deploy(ctx)
	return errors.Join(err, target.Close(), j.hosts.close())
}

// writeGraph writes the files of --topology-json and --topology-db.
func (j *deployJob) writeGraph(p *plan.Plan) error {
	cpu := map[string]int{}
	for _, s := range p.Switches {
		cpu[s.Name] = s.CPUPort
	}
	for _, x := range []struct {
		file string
		form func(*fabric.Topology, map[string]int) ([]byte, error)
	}{{j.graph, p4app.Graph}, {j.database, p4app.Database}} {
		if x.file == "" {
			continue
		}
		text, err := x.form(p.Topology, cpu)
		if err != nil {
			return fmt.Errorf("writing %s: %w", x.file, err)
		}
		if err := j.c.WriteResult(x.file, text); err != nil {
			return err
		}
	}
	return nil
}

// own makes this process the owner of the deployment, unless nothing is deployed. If another
// process has meanwhile become the owner, own passes the request to it.
func (j *deployJob) own(ctx context.Context) (handed bool, err error) {
	if j.dryRun || j.diff {
		return false, nil
	}
	for {
		j.lock, err = deployed.Own(j.state)
		if other, ok := errors.AsType[*deployed.OwnedError](err); !ok || other.PID == os.Getpid() {
			return false, err
		}
		if handed, err := j.handOver(ctx); handed || err != nil {
			return handed, err
		}
	}
}

// disown ends the ownership. It removes the state if the switches end with this process.
func (j *deployJob) disown() {
	if j.lock == nil {
		return
	}
	err := j.lock.Release
	if j.ended {
		err = j.lock.Forget
	}
	if err := err(); err != nil {
		j.c.Log.Error("the state of the deployment stays behind", "error", err)
	}
}

// stays reports whether the process continues once the switches hold the plan.
func (j *deployJob) stays() bool { return !j.once && !j.dryRun && !j.diff }

// begun reports to the waiting foreground process that this process has started.
func (j *deployJob) begun() error {
	if !hosts.IsDetached() {
		return nil
	}
	log, err := deployed.OpenLog(j.state)
	if err != nil {
		return fmt.Errorf("going to the background: %w", err)
	}
	defer log.Close()
	j.c.LogTimes()
	return hosts.Begun(log)
}

// A deployBar shows the progress of a deployment until it ends.
type deployBar struct {
	*live.Progress
	ended atomic.Bool
}

// End removes the bar. Later progress messages do not draw it again.
func (b *deployBar) End() {
	if b.Progress != nil && !b.ended.Swap(true) {
		b.Progress.End()
	}
}

// progress returns a progress bar that follows the deployment.
func (j *deployJob) progress(plan *plan.Plan, o *controller.DeployOptions) *deployBar {
	bar := &deployBar{}
	if j.c.Quiet {
		return bar
	}
	bar.Progress = live.NewProgress(live.ProgressOptions{
		Out: j.c.Err, Terminal: cli.IsTerminal(j.c.Err), What: "deploy", Unit: "switches", Total: len(plan.Switches),
	})
	o.Progress = func(p controller.Progress) {
		if !bar.ended.Load() {
			bar.Set(p.Done, p.Switch+": "+p.Step)
		}
	}
	return bar
}

// showReport prints the changes, or with --diff the differences.
func (j *deployJob) showReport(r *report.Report) error {
	if j.diff && (j.format == cli.Table || j.format == cli.CSV) {
		rows := r.ChangeRows()
		if len(rows) == 1 && r.Err() == nil && j.format == cli.Table {
			_, err := fmt.Fprintln(j.c.Out, "nothing differs")
			return err
		}
		return cli.Show(j.c.Out, j.format, rows, r)
	}
	if err := cli.Show(j.c.Out, j.format, r.Rows(), r); err != nil {
		return err
	}
	if j.format != cli.Table {
		return nil
	}
	// Print each note once, with the switches that it concerns.
	about := map[string][]string{}
	var order []string
	for _, s := range r.Switches {
		for _, n := range s.Notes {
			if about[n] == nil {
				order = append(order, n)
			}
			about[n] = append(about[n], s.Name)
		}
	}
	for _, n := range order {
		fmt.Fprintf(j.c.Out, "note: %s (%s)\n", n, abbreviated(about[n]))
	}
	return nil
}

// deployErrors prints the errors of switches, a line each with its hint.
func (j *deployJob) deployErrors(err error) error { return j.eachError(err, deployFailure) }

// planErrors prints the errors of a plan.
func (j *deployJob) planErrors(err error) error {
	return j.eachError(err, func(err error) error {
		if e, ok := errors.AsType[*plan.Error](err); ok {
			return cli.Hinted(err, "%s", e.Hint)
		}
		return err
	})
}

// eachError prints all errors but the last, which it returns. Equal errors of several
// switches are printed once.
func (j *deployJob) eachError(err error, failure func(error) error) error {
	if err == nil {
		return nil
	}
	var list plan.Errors
	if !errors.As(err, &list) {
		return failure(err)
	}
	about := map[string][]string{}
	var merged plan.Errors
	for _, e := range list {
		text := e.Err.Error() + e.Hint
		if about[text] == nil {
			merged = append(merged, e)
		}
		about[text] = append(about[text], e.Switch)
	}
	for i, e := range merged {
		err = failure(&plan.Error{Switch: abbreviated(about[e.Err.Error()+e.Hint]), Err: e.Err, Hint: e.Hint})
		if i < len(merged)-1 {
			j.c.Report(err)
		}
	}
	return err
}
