package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/deployed"
	"github.com/p4lb/p4lb/internal/network/hosts"
)

// Verbs that act on a running network are carried out by the process that runs
// it: the verb sends its command line over the control socket, and that process
// runs the verb with a keeper.

// answer runs a verb for another process, with that process's streams.
func (k *keeper) answer(ctx context.Context, ask hosts.Call) (exit int) {
	log, began := k.c.Log.With("request", k.requests.Add(1)), time.Now()
	log.Info("request", "command", strings.Join(ask.Args, " "))
	defer func() { log.Info("request ends", "exit", exit, "took", time.Since(began).Round(time.Millisecond)) }()
	c := cli.New(ctx, ask.Args, ask.In, ask.Out, ask.Err)
	root := &cobra.Command{
		Use: "p4lb", SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(*cobra.Command, []string) { c.SetUp() },
	}
	c.AddFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(c.FlagError)
	sw := &cobra.Command{Use: "switch"}
	sw.AddCommand(newRestart(c, k))
	root.AddCommand(newDeploy(c, k), newLink(c, k), newPing(c, k), sw)
	root.SetArgs(ask.Args)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	var err error
	run := func(ctx context.Context) {
		// A folder belongs to the whole process: only the keeper's goroutine
		// changes it.
		err = (&deployJob{dir: ask.Dir}).inDir(func() error { return root.ExecuteContext(ctx) })
	}
	if cmd, _, e := root.Find(ask.Args); e == nil && cmd.Name() == "ping" {
		err = root.ExecuteContext(ctx)
	} else if e := k.do(ctx, run); e != nil {
		err = e
	}
	return c.Report(errors.Join(err, c.Out.Flush()))
}

// do calls f in the keeper's goroutine.
func (k *keeper) do(ctx context.Context, f func(context.Context)) error {
	c := &call{do: func(alive context.Context) {
		// The end of the network ends the action; tasks that it starts continue.
		f(alive)
	}, done: make(chan struct{})}
	select {
	case k.calls <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-c.done
	return nil
}

// handOver passes a deploy request to the process that runs the network, if there is one. If that
// process is ending, handOver waits for its end.
func (j *deployJob) handOver(ctx context.Context) (handed bool, err error) {
	if j.dryRun {
		return false, nil
	}
	for begin := time.Now(); ; {
		pid, err := deployed.Owner(j.state)
		if err != nil || pid == 0 || pid == os.Getpid() {
			return false, err
		}
		err = ask(ctx, j.c, j.state)
		if ending := errors.Is(err, hosts.ErrGone) || errors.Is(err, errNoOwner); !ending || time.Since(begin) > bringUp {
			return true, err
		}
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// deployFor executes another process's deploy request.
func (k *keeper) deployFor(cmd *cobra.Command, j *deployJob) error {
	mine := k.job
	refused := func(format string, args ...any) error {
		return &cli.Failure{Code: cli.ExitRefused, Err: fmt.Errorf("process %d runs this network: %w", os.Getpid(), fmt.Errorf(format, args...)), Hint: "p4lb down ends it; then deploy again"}
	}
	f := cmd.Flags()
	switch {
	case k.ctrl == nil || j.app != "":
		return refused("a project and another deployment do not mix")
	case j.target != mine.target || j.bfrt != mine.bfrt || j.tofino.api != mine.tofino.api || j.bmv2 != mine.bmv2:
		return refused("it has other switches than --target %s and its flags ask for", j.target)
	case j.page.Listen != "":
		return refused("--listen cannot begin now: p4lb inspect --listen shows the network")
	case j.hosts.pcap != "":
		return refused("--pcap cannot begin now")
	case f.Changed("hosts") && j.hosts.wanted != (mine.hosts.network != nil), f.Changed("rates") && j.hosts.rates != mine.hosts.rates:
		return refused("--hosts and --rates cannot change now")
	case j.takeover, j.backup:
		return refused("it is the controller of the switches already")
	}
	j.state, j.hosts = mine.state, mine.hosts
	j.pacing.least = mine.pacing.least
	ctx := cmd.Context()
	if j.diff {
		p, err := j.plan(ctx)
		if err != nil {
			return err
		}
		r, err := k.ctrl.Compare(ctx, p)
		return errors.Join(j.show(r, nil), j.deployErrors(err))
	}
	defer func() { j.c = k.c }() // the request may outlive its process
	r, err := k.redeploy(ctx, j)
	j.lock = mine.lock
	if err != nil {
		return errors.Join(j.show(r, nil), err)
	}
	lost := k.verify(ctx, r)
	return errors.Join(j.show(r, lost), j.lossError(lost))
}
