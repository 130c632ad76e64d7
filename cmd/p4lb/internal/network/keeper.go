package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/view"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/network/hosts"
	"github.com/p4lb/p4lb/internal/network/ping"
	"github.com/p4lb/p4lb/internal/network/testbed"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A keeper runs a deployment: it deploys the plan, runs the tasks, restores switches
// that return, and executes requests of other verbs. Each deployment has one, in the
// process that owns it. Only the goroutine that runs deploy uses its fields; requests
// of other processes arrive through calls.
type keeper struct {
	c      *cli.Console
	job    *deployJob        // the request that is deployed
	shown  *view.NetworkPage // nil without a page
	target target.Target
	ctrl   *controller.Controller // nil for a project, which has no plan
	plan   *plan.Plan
	links  map[int]linkChange // changes by p4lb link to the job's topology
	door   *hosts.Door
	began  time.Time
	calls  chan *call

	requests atomic.Int64 // requests from other processes so far

	endTasks func() // ends the tasks that run, and waits for them
	slow     chan controller.Slowness
}

// A call is a request that the keeper's goroutine executes.
type call struct {
	do   func(ctx context.Context)
	done chan struct{}
}

// ours reports whether the switches end with this process.
func (k *keeper) ours() bool {
	j := k.job
	return j.app != "" || j.target == targetEmbedded || j.target == targetBMv2 && !j.bmv2.keep && !j.bmv2.attach
}

// deploy carries the plan out. If the user wants the deployment to stay, it then
// keeps it running.
func (k *keeper) deploy(ctx context.Context) error {
	j := k.job
	election, _ := parseElection(j.election) // checked by check
	options := controller.DeployOptions{
		Election: election, Takeover: j.takeover, Backup: j.backup,
		DryRun: j.diff, Atomic: j.atomic, Timeout: j.timeout, Log: j.c.Log,
	}
	bar := j.progress(k.plan, &options)
	c, err := controller.New(ctx, k.plan, k.target, options)
	if err != nil {
		bar.End()
		return deployFailure(err)
	}
	defer c.Close()
	k.ctrl = c
	r, err := c.Deploy(ctx)
	bar.End()
	if err != nil || j.diff {
		return errors.Join(j.show(r, nil), j.deployErrors(err))
	}
	if err := k.startTasks(ctx); err != nil {
		return err
	}
	defer func() { k.endTasks() }()
	lost := k.verify(ctx, r)
	if j.once && k.ours() {
		if busy := k.settle(ctx, time.Second); len(busy) > 0 {
			j.c.Warning("packets still wait in %s a second after the check: want a program that does not clone or recirculate packets endlessly", abbreviated(busy))
		}
	}
	if err := j.show(r, lost); err != nil {
		return err
	}
	if j.once && k.ours() {
		return j.lossError(lost)
	}
	if j.ended = k.ours(); j.once {
		return errors.Join(k.writeNote(), j.lossError(lost))
	}
	if j.page.Listen != "" {
		if k.shown, err = j.page.WatchNetwork(ctx, j.c, c, k.plan, view.PageEvery); err != nil {
			return err
		}
	}
	if err := j.lossError(lost); err != nil {
		j.c.Report(err)
	}
	return k.stay(ctx)
}

// stay keeps the deployment up, answers calls, and on SIGHUP reads the topology
// again, until ctx ends.
func (k *keeper) stay(ctx context.Context) error {
	j := k.job
	if err := k.open(); err != nil {
		return err
	}
	defer k.door.Close()
	if err := k.writeNote(); err != nil {
		return err
	}
	if err := k.howTo(); err != nil {
		return err
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	if err := j.begun(); err != nil {
		return err
	}
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if k.ctrl != nil {
			k.ctrl.Keep(ctx, k.restored)
		}
	}()
	if k.ctrl != nil {
		j.c.Log.Info("keeping the switches as planned, until Ctrl-C", "state", j.state)
	} else {
		j.c.Log.Info("the project is up, until Ctrl-C", "state", j.state)
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-again:
			k.reload(ctx)
		case s := <-k.slow:
			k.adapt(ctx, s)
		case c := <-k.calls:
			c.do(ctx)
			close(c.done)
		}
	}
	<-kept
	return nil
}

// open creates the control socket for other processes.
func (k *keeper) open() (err error) {
	k.began, k.calls = time.Now(), make(chan *call)
	k.door, err = hosts.Serve(k.job.hosts.network, k.answer)
	if errors.Is(err, hosts.ErrNotHere) { // This is not Linux: continue without hosts.
		k.door = &hosts.Door{}
		return nil
	}
	return err
}

// restored logs the state of a switch that has returned.
func (k *keeper) restored(r report.Switch) {
	if r.Err != nil {
		k.c.Log.Warn("a switch does not hold the plan", "switch", r.Name, "error", r.Err)
		k.shown.Tell(r.Name, "does not hold the plan: "+r.Err.Error(), false)
		return
	}
	k.c.Log.Info("a switch is back", "switch", r.Name, "pushed", r.Pushed, "written", r.Written)
	k.shown.Tell(r.Name, "is back, and holds the plan", true)
}

// reload deploys the current topology. If the topology has a mistake, nothing changes.
func (k *keeper) reload(ctx context.Context) {
	j := k.job
	r, err := k.redeploy(ctx, j)
	if err != nil {
		j.c.Report(err)
	}
	if r != nil {
		k.c.Log.Info("deployed again", "written", r.Written(), "verified", r.Verified())
		k.shown.Tell("", "the topology has been deployed again", r.Verified())
	}
}

// redeploy plans a request and deploys it to the running switches. The request then
// replaces the keeper's, unless planning fails or the deployment is rolled back. Only
// errors of switches have the exit code for them.
func (k *keeper) redeploy(ctx context.Context, j *deployJob) (*report.Report, error) {
	var p *plan.Plan
	err := j.inDir(func() (err error) {
		p, err = j.plan(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	old, oldJob, oldLinks := k.plan, k.job, k.links
	if err := k.ctrl.SetPlan(ctx, p); err != nil {
		return nil, j.deployErrors(err)
	}
	k.plan, k.job, k.links = p, j, nil
	for at := range oldLinks { // Start changes only links in which two plans differ, so the changes made by p4lb link are undone here.
		if err := k.target.(target.Linker).SetLink(p.Topology.Links[at], target.Random{}); err != nil {
			j.c.Report(err)
		}
	}
	r, err := k.apply(ctx, j)
	err = j.deployErrors(err)
	if err != nil && j.atomic {
		k.plan, k.job = old, oldJob
		return r, errors.Join(err, k.ctrl.SetPlan(ctx, old), k.startTasks(ctx))
	}
	return r, errors.Join(err, k.writeNote())
}

// adapt deploys the scheme with a longer period if a task cannot keep a period chosen by p4lb.
// With late probes HULA, for instance, would discard all paths.
func (k *keeper) adapt(ctx context.Context, s controller.Slowness) {
	period, advice := k.job.pacing.slower(s)
	if advice != "" {
		k.c.Warning("the task %s runs every %v instead of %v: %s", s.Task, s.Lately.Round(time.Microsecond), s.Period, advice)
	}
	if period == 0 {
		return
	}
	next := *k.job
	next.pacing.least = period
	r, err := k.redeploy(ctx, &next)
	if err != nil {
		k.c.Report(err)
		return
	}
	k.c.Log.Info("deployed again with a longer period", "task", s.Task, "period", period, "verified", r.Verified())
	k.shown.Tell("", fmt.Sprintf("the task %s is too slow: deployed again with a period of %v", s.Task, period), r.Verified())
}

// apply deploys the keeper's plan, and runs its tasks.
func (k *keeper) apply(ctx context.Context, j *deployJob) (*report.Report, error) {
	k.endTasks()
	options := controller.DeployOptions{Atomic: j.atomic, Timeout: j.timeout, Log: j.c.Log, Links: k.actual()}
	bar := j.progress(k.plan, &options)
	r, err := k.ctrl.DeployAs(ctx, options)
	bar.End()
	return r, errors.Join(err, k.startTasks(ctx))
}

// startTasks runs the scheme's controller tasks.
func (k *keeper) startTasks(ctx context.Context) error {
	j := k.job
	k.endTasks = func() {}
	if j.noTasks {
		return nil
	}
	tasks, err := task.ForPlan(k.plan, task.Options{
		MTU: j.mtu, Queue: j.queue,
		Alert: func(a task.Alert) {
			k.c.Log.Warn(a.Text, "switch", a.Switch)
			k.shown.Tell(a.Switch, a.Text, false)
		},
	})
	if err != nil || len(tasks) == 0 {
		return err
	}
	k.c.Log.Info("running tasks", "number", len(tasks))
	inner, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	slow := make(chan controller.Slowness, len(tasks)) // one for each kind at most
	k.slow = slow
	go func() {
		defer close(done)
		k.ctrl.Loop(inner, tasks, controller.LoopOptions{Log: k.c.Log, Slow: func(s controller.Slowness) { slow <- s }})
	}()
	k.endTasks = func() {
		cancel()
		<-done
	}
	return nil
}

// prober returns a prober for packets between hosts, or nil if the target has none.
func (k *keeper) prober() (ping.Prober, ping.Trace) {
	t, here := k.target.(*embedded.Target)
	var trace ping.Trace
	if here {
		trace = t.Trace
	}
	switch s := k.spaces(); {
	case s != nil:
		return ping.InSpaces(s), trace
	case here:
		return t.Prober(k.plan.Topology, k.plan.ByMAC()), trace
	}
	return nil, nil
}

// A connectivity check tests at most this many pairs of hosts per pair of leaves,
// and this many in total. It repeats a test until a packet arrives.
const (
	pairsOfLeaves = 4
	mostPairs     = 4096
	tries         = 5
)

// A loss is the result of a connectivity check.
type loss struct {
	pairs  int
	failed []ping.Result
	drops  string // switches that dropped packets, with the main reason of each
	err    error  // the check itself has failed
}

// verify sends packets between all pairs of leaves that the links connect. It
// returns nil if the target has no hosts.
func (k *keeper) verify(ctx context.Context, r *report.Report) *loss {
	prober, trace := k.prober()
	if prober == nil {
		return nil
	}
	pairs := ping.LeafPairs(k.actual(), pairsOfLeaves, mostPairs)
	if len(pairs) == 0 {
		return nil
	}
	begin := time.Now()
	list, err := prober.Probe(ctx, pairs, ping.Options{Count: tries, Until: true, Trace: trace})
	failed := ping.Failed(list)
	if s := k.spaces(); err == nil && s != nil && len(failed) == len(pairs) {
		failed = k.overTCP(ctx, s, pairs, list)
	}
	r.Elapsed += time.Since(begin)
	l := &loss{pairs: len(pairs), failed: failed, err: err}
	if len(failed) > 0 {
		l.drops = k.drops(ctx)
	}
	return l
}

// settle waits until no packet waits in the switches, but not longer than most. A switch reports a
// program that clones its clones after many clones, which takes time on slow links. settle returns
// the switches in which packets wait at the end.
func (k *keeper) settle(ctx context.Context, most time.Duration) (busy []string) {
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for _, s := range k.plan.Switches {
		e, err := k.target.Endpoint(s.Name)
		for err == nil && waiting(ctx, e) {
			if within.Err() != nil {
				busy = append(busy, s.Name)
				break
			}
			select {
			case <-within.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}
	return busy
}

// waiting reports whether packets wait in a switch. If the switch cannot report it, none do.
func waiting(ctx context.Context, e target.Endpoint) bool {
	q, ok := e.Registers.(registers.QueueTeller)
	if !ok {
		return false
	}
	empty, err := q.QueuesEmpty(ctx)
	return err == nil && !empty
}

// mostDropping is the maximum number of switches that a message about lost packets names.
const mostDropping = 4

// drops lists switches that have dropped packets, with the main reason of each, as in "l1
// dropped 5 (no entry)", and switches in which packets still circulate. Some targets do not
// count drops.
func (k *keeper) drops(ctx context.Context) string {
	var list []string
	for _, s := range k.plan.Switches {
		e, err := k.target.Endpoint(s.Name)
		meter, ok := e.Registers.(registers.Meter)
		if err != nil || !ok {
			continue
		}
		counts, err := meter.PortCounts(ctx)
		if err != nil {
			continue
		}
		var sums [bmv2.DropReasons]uint64
		for i := range counts {
			for why, n := range counts[i].Lost() {
				sums[why] += n
			}
		}
		if waiting(ctx, e) {
			list = append(list, "packets circulate in "+s.Name)
			continue
		}
		if n := slices.Max(sums[:]); n > 0 {
			list = append(list, fmt.Sprintf("%s dropped %d (%v)", s.Name, n, bmv2.DropReason(slices.Index(sums[:], n))))
		}
	}
	if len(list) > mostDropping {
		list = append(list[:mostDropping], "…")
	}
	return strings.Join(list, ", ")
}

// overTCP repeats the check over TCP, because a program may drop ICMP. It returns
// the pairs that fail with TCP too.
func (k *keeper) overTCP(ctx context.Context, s ping.Spaces, pairs []ping.Pair, list []ping.Result) []ping.Result {
	answered := ping.TCP(ctx, s, pairs)
	if slices.Contains(answered, true) {
		k.c.Log.Warn("the program drops ICMP: checked with TCP, and p4lb ping gets no replies")
	}
	var failed []ping.Result
	for i, ok := range answered {
		if !ok {
			failed = append(failed, list[i])
		}
	}
	return failed
}

// spaces returns the namespaces of the hosts, or nil if they have none.
func (k *keeper) spaces() ping.Spaces {
	switch t := k.target.(type) {
	case *embedded.Target:
		if k.job.hosts.network != nil {
			return k.job.hosts.network
		}
	case *testbed.Target:
		return t
	}
	return nil
}

// show prints a report and the result of the connectivity check.
func (j *deployJob) show(r *report.Report, lost *loss) error {
	if r == nil {
		return nil
	}
	if err := j.showReport(r); err != nil {
		return err
	}
	if j.format == cli.Table && r.Verified() && !j.diff {
		passed, state := "", "verified"
		if lost != nil && lost.err == nil {
			passed = fmt.Sprintf("; packets pass between %d of %d pairs of hosts", lost.pairs-len(lost.failed), lost.pairs)
			if len(lost.failed) > 0 {
				state = "programmed"
			}
		}
		fmt.Fprintf(j.c.Out, "%d switches %s in %v, %d changes written%s\n", len(r.Switches), state, r.Elapsed.Round(time.Millisecond), r.Written(), passed)
	}
	return j.flush()
}

// flush writes the buffered output to standard output.
func (j *deployJob) flush() error {
	if err := j.c.Out.Flush(); err != nil {
		return fmt.Errorf("writing to standard output: %w", plain.Bare(err))
	}
	return nil
}

// lossError returns the error about pairs of hosts between which no packet arrives.
func (j *deployJob) lossError(lost *loss) error {
	switch {
	case lost == nil:
		return nil
	case lost.err != nil:
		return fmt.Errorf("checking the connectivity: %w", lost.err)
	case len(lost.failed) == 0:
		return nil
	}
	var names []string
	for _, f := range lost.failed {
		names = append(names, f.From+" to "+f.To)
	}
	dropped := ""
	if lost.drops != "" {
		dropped = lost.drops + "; "
	}
	return &cli.Failure{
		Code: cli.ExitRefused,
		Err:  fmt.Errorf("no packets pass between %d of %d pairs of hosts: %s", len(lost.failed), lost.pairs, abbreviated(names)),
		Hint: lostAt(lost.failed) + dropped + "p4lb ping --all shows every pair; a program of your own may forward other packets than IPv4",
	}
}

// lostAt describes where packets were lost, for the first pair with a known path.
func lostAt(failed []ping.Result) string {
	for _, f := range failed {
		last := len(f.Path) - 1
		switch {
		case last < 0:
			continue
		case slices.Contains(f.Path[:last], f.Path[last]):
			return fmt.Sprintf("the packet from %s to %s goes round: %s-…; ", f.From, f.To, pathName(f.Path[:min(6, last+1)]))
		}
		return fmt.Sprintf("the packet from %s to %s was lost after %s; ", f.From, f.To, pathName(f.Path))
	}
	return ""
}

// writeNote writes the state of the deployment.
func (k *keeper) writeNote() (err error) {
	j := k.job
	d := deployed.New(k.plan, k.target)
	d.Kept, d.Project, d.Folder = k.ours(), j.app, j.dir
	if !k.began.IsZero() {
		d.Began = k.began.Truncate(time.Second)
	}
	if j.target == targetBMv2 && !j.bmv2.attach {
		d.Name = cmp.Or(j.bmv2.name, k.plan.Topology.Name)
	}
	if k.door != nil {
		d.Control = k.door.Address
	}
	return d.Write(j.state)
}

// howTo prints how to use the hosts of a network that has just come up.
func (k *keeper) howTo() error {
	j := k.job
	list := k.plan.Topology.Hosts
	live := j.hosts.network != nil || j.target == targetBMv2 && !j.bmv2.attach
	if !live || len(list) < 2 || j.format != cli.Table {
		return nil
	}
	from, to := list[0], list[len(list)-1]
	for _, h := range list[1:] {
		if h.IP.Addr().Is6() == from.IP.Addr().Is6() {
			to = h // The example uses the last host that the first host can reach.
		}
	}
	fmt.Fprintf(j.c.Out, "%d hosts; a command on %s: p4lb exec %s -- ping %v\n", len(list), from.Name, from.Name, to.IP.Addr())
	if j.bmv2.keep {
		fmt.Fprintln(j.c.Out, "the network stays; to end it: p4lb down")
	}
	return j.flush()
}

// actual returns the topology with the actual state of links, which may differ from the plan.
func (k *keeper) actual() *fabric.Topology {
	t := k.plan.Topology
	for at, c := range k.links {
		switch {
		case c.link.Down && !t.Links[at].Down:
			t = t.Fail(at)
		case !c.link.Down && t.Links[at].Down:
			t = t.Restore(at)
		}
	}
	return t
}
