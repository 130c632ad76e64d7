package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// A linkChange records how p4lb link has changed a link.
type linkChange struct {
	link   fabric.Link // current state of the link
	random target.Random
	routed bool // whether the plan already has this state of the link
}

// NewLink returns the verb link.
func NewLink(c *cli.Console) *cobra.Command { return newLink(c, nil) }

func newLink(c *cli.Console, k *keeper) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link VERB LINK...",
		Short: "Take links of the running network down or up, or change them",
		Long: `Link changes links of the running network deployed from this folder. A LINK names
two connected nodes, such as l1-s1 or h1-l1. If they have several links, add the
ports: l1:3-s1:1.

The controller updates the routes. With --no-reroute it is not notified of a
failure, so only the scheme itself can detect it. The next deploy restores all
links as in the topology.`,
		Example: `  p4lb link down l1-s1
  p4lb link up l1-s1
  p4lb link set l1-s1 --rate 10Mbps --delay 5ms --loss 1%`,
		RunE: cli.WantVerb("link needs a verb: down, up or set", ""),
	}
	cmd.AddCommand(newLinkState(c, k, "down"), newLinkState(c, k, "up"), newLinkSet(c, k))
	return cmd
}

// A linkJob is one run of link down, up or set.
type linkJob struct {
	hostJob
	noReroute bool
}

func (j *linkJob) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&j.noReroute, "no-reroute", false, "change only the link, and keep the routes")
	j.hostJob.addFlags(cmd)
}

func newLinkState(c *cli.Console, k *keeper, state string) *cobra.Command {
	j := &linkJob{hostJob: hostJob{c: c}}
	cmd := &cobra.Command{
		Use:   state + " LINK... [--no-reroute]",
		Short: map[string]string{"down": "Take links down", "up": "Restore links"}[state],
		Long: map[string]string{
			"down": "Down takes links down. They drop all packets in both directions, and the switches\nreport their ports as down. The controller routes around them.",
			"up":   "Up restores links. The controller uses them again.",
		}[state],
		Example: "  p4lb link " + state + " l1-s1\n  p4lb link " + state + " l1-s1 --no-reroute",
		Args:    cli.WantArgs(1, -1, "links such as l1-s1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return j.run(cmd.Context(), k, args, func(c *linkChange) { c.link.Down = state == "down" })
		},
	}
	j.addFlags(cmd)
	return cmd
}

func newLinkSet(c *cli.Console, k *keeper) *cobra.Command {
	j := &linkJob{hostJob: hostJob{c: c}}
	var rate, loss string
	var delay, jitter time.Duration
	cmd := &cobra.Command{
		Use:   "set LINK... [--rate RATE] [--delay TIME] [--loss SHARE] [--jitter TIME]",
		Short: "Change the rate, delay, loss or jitter of links",
		Long: `Set changes the given properties of links and keeps the others. The rate applies to
the queues in front of a link. Weights that depend on rates are updated. Loss and
jitter are random and independent in each direction; jitter does not reorder
packets.`,
		Example: `  p4lb link set l1-s1 --rate 10Mbps
  p4lb link set l1-s1 l1-s2 --delay 5ms --jitter 1ms --loss 0.5%`,
		Args: cli.WantArgs(1, -1, "links such as l1-s1"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			if !f.Changed("rate") && !f.Changed("delay") && !f.Changed("loss") && !f.Changed("jitter") {
				return cli.UsageError(cmd, "link set wants --rate, --delay, --loss or --jitter")
			}
			var r fabric.Rate
			if rate != "" {
				var err error
				if r, err = fabric.ParseRate(rate); err != nil {
					return cli.UsageError(cmd, "--rate %s: want a rate such as 10Mbps", rate)
				}
			}
			share, err := parseShare(loss)
			switch {
			case err != nil:
				return cli.UsageError(cmd, "--loss %s: want a share such as 1%% or 0.01", loss)
			case delay < 0 || jitter < 0:
				return cli.UsageError(cmd, "--delay %v, --jitter %v: want times of at least 0", delay, jitter)
			}
			return j.run(cmd.Context(), k, args, func(c *linkChange) {
				if r > 0 {
					c.link.Rate = r
				}
				if f.Changed("delay") {
					c.link.Delay = delay
				}
				if f.Changed("loss") {
					c.random.Loss = share
				}
				if f.Changed("jitter") {
					c.random.Jitter = jitter
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&rate, "rate", "", "set the `RATE`, such as 10Mbps")
	f.DurationVar(&delay, "delay", 0, "set the one-way delay")
	f.StringVar(&loss, "loss", "0", "drop this `SHARE` of packets, such as 1% or 0.01")
	f.DurationVar(&jitter, "jitter", 0, "vary the delay by up to this time in either direction")
	j.addFlags(cmd)
	return cmd
}

// parseShare reads a share such as 1% or 0.01.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err == nil && !(v >= 0 && v <= 1) {
		err = errors.New("not between 0 and 1")
	}
	return v, err
}

func (j *linkJob) run(ctx context.Context, k *keeper, names []string, edit func(*linkChange)) error {
	if k == nil {
		if err := findState(&j.state); err != nil {
			return err
		}
		return ask(ctx, j.c, j.state)
	}
	return k.setLinks(ctx, j.c, names, edit, !j.noReroute)
}

// setLinks changes links. Either all changes are made or, with a mistake in the
// names, none.
func (k *keeper) setLinks(ctx context.Context, c *cli.Console, names []string, edit func(*linkChange), routed bool) error {
	linker, ok := k.target.(target.Linker)
	if !ok {
		return fmt.Errorf("the links of target %s are not p4lb's to change", k.target.Name())
	}
	routed = routed && k.ctrl != nil
	changes := maps.Clone(k.links)
	if changes == nil {
		changes = map[int]linkChange{}
	}
	topo := k.actual()
	var edited []int
	for _, name := range names {
		found, err := topo.FindLinks(name)
		if err != nil {
			return err
		}
		for _, at := range found {
			one, ok := changes[at]
			if !ok {
				one.link = topo.Links[at]
			}
			edit(&one)
			one.routed = routed || one.routed
			changes[at] = one
			edited = append(edited, at)
		}
	}
	set := func() error {
		for _, at := range edited {
			one := changes[at]
			if err := linker.SetLink(one.link, one.random); err != nil {
				return &cli.Failure{Code: cli.ExitRefused, Err: err}
			}
		}
		return nil
	}
	if !routed {
		if err := set(); err != nil {
			return err
		}
		k.links = changes
		k.showLinks(c, edited)
		return k.writeNote()
	}
	job := *k.job
	job.c = c // the caller sees mistakes in files
	job.adjust = func(t *fabric.Topology) (*fabric.Topology, error) { return adjusted(t, changes) }
	var err error
	plan := k.plan
	if err := job.inDir(func() error {
		plan, err = job.plan(ctx)
		return err
	}); err != nil {
		return err
	}
	if err := set(); err != nil {
		return err
	}
	if err := k.ctrl.SetPlan(ctx, plan); err != nil {
		return deployFailure(err)
	}
	k.plan, k.links = plan, changes
	r, err := k.apply(ctx, &job)
	if err != nil {
		return errors.Join(k.writeNote(), deployFailure(err))
	}
	k.showLinks(c, edited)
	fmt.Fprintf(c.Out, "%d switches verified, %d changes written\n", len(r.Switches), r.Written())
	return k.writeNote()
}

// adjusted returns a topology with the changes that the new plan requires.
func adjusted(t *fabric.Topology, changes map[int]linkChange) (*fabric.Topology, error) {
	links := slices.Clone(t.Links)
	for at, c := range changes {
		if c.routed {
			l := &links[at]
			l.Down, l.Rate, l.Delay = c.link.Down, c.link.Rate, c.link.Delay
		}
	}
	return t.WithLinks(links)
}

// showLinks prints links as they are.
func (k *keeper) showLinks(c *cli.Console, list []int) {
	slices.Sort(list)
	for _, at := range slices.Compact(list) {
		one := k.links[at]
		state := "up"
		if one.link.Down {
			state = "down"
		}
		fmt.Fprintf(c.Out, "link %v: %s, %v, delay %v", one.link, state, one.link.Rate, one.link.Delay)
		if one.random != (target.Random{}) {
			fmt.Fprintf(c.Out, " ± %v, loss %g %%", one.random.Jitter, 100*one.random.Loss)
		}
		fmt.Fprintln(c.Out)
	}
}

// NewRestart returns the verb switch restart.
func NewRestart(c *cli.Console) *cobra.Command { return newRestart(c, nil) }

func newRestart(c *cli.Console, k *keeper) *cobra.Command {
	j := &hostJob{c: c}
	cmd := &cobra.Command{
		Use:   "restart SWITCH...",
		Short: "Restart switches of the running network",
		Long: `Restart ends switches of the network deployed from this folder and starts them
again, empty, as after a crash. The controller then gives them their program and
their entries again; restart ends when they hold the plan.`,
		Example: "  p4lb switch restart l1",
		Args:    cli.WantArgs(1, -1, "switches"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if k != nil {
				return k.restart(cmd.Context(), c, args)
			}
			if err := findState(&j.state); err != nil {
				return err
			}
			return ask(cmd.Context(), c, j.state)
		},
	}
	j.addFlags(cmd)
	return cmd
}

func (k *keeper) restart(ctx context.Context, c *cli.Console, names []string) error {
	r, ok := k.target.(target.Restarter)
	switch {
	case !ok:
		return fmt.Errorf("the switches of target %s are not p4lb's to restart", k.target.Name())
	case k.ctrl == nil:
		return errors.New("the switches of a project cannot be restarted: their entries would be lost")
	}
	for _, name := range names {
		if k.plan.Switch(name) == nil {
			return cli.Hinted(fmt.Errorf("there is no switch %q", name), "there are %s", abbreviated(switchNames(k.plan.Topology)))
		}
	}
	for _, name := range names {
		if err := r.Restart(ctx, name); err != nil {
			return &cli.Failure{Code: cli.ExitRefused, Err: fmt.Errorf("restarting %s: %w", name, err)}
		}
	}
	report, err := k.apply(ctx, k.job)
	if err != nil {
		return deployFailure(err)
	}
	fmt.Fprintf(c.Out, "restarted %s; %d switches verified, %d changes written\n", strings.Join(names, ", "), len(report.Switches), report.Written())
	return k.writeNote()
}

func switchNames(t *fabric.Topology) (list []string) {
	for _, s := range t.Switches {
		list = append(list, s.Name)
	}
	return list
}
