package network

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/cli"
	"github.com/p4lb/p4lb/controller/plan"
	"github.com/p4lb/p4lb/controller/target"
	"github.com/p4lb/p4lb/controller/testbed"
)

// bmv2Flags are those of deploy that are about --target bmv2 alone.
type bmv2Flags struct {
	keep   bool
	remove bool
	attach bool
	name   string
}

func (b *bmv2Flags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&b.keep, "keep", false, "bmv2: leave the network up when deploy ends; the next one takes it over")
	f.BoolVar(&b.remove, "remove", false, "bmv2: take away what --keep has left, and do nothing else")
	f.BoolVar(&b.attach, "attach", false, "bmv2: start nothing, the switches run at the addresses of the topology")
	f.StringVar(&b.name, "name", "", "bmv2: the `NAME` of the deployment (default: that of the topology)")
}

// check finds mistakes in the command line.
func (b *bmv2Flags) check(cmd *cobra.Command, target string) error {
	switch {
	case target != targetBMv2 && (b.keep || b.remove || b.attach || b.name != ""):
		return cli.UsageError(cmd, "--keep, --remove, --attach and --name are for --target bmv2")
	case b.keep && b.remove, b.attach && (b.keep || b.remove || b.name != ""):
		return cli.UsageError(cmd, "--attach, --remove and --keep exclude each other")
	}
	return nil
}

// open makes the target.
func (b *bmv2Flags) open(c *cli.Console, o target.ServersOptions) target.Target {
	if b.attach {
		return target.AttachBMv2(o)
	}
	return testbed.New(testbed.Options{Name: b.name, Keep: b.keep, Log: c.Log})
}

// takeAway ends a deployment that was kept.
func (j *deployJob) takeAway() error {
	name := j.bmv2.name
	if name == "" {
		t, err := j.c.Topology(j.topology)
		if err != nil {
			return err
		}
		name = t.Name
	}
	switch ok, err := testbed.Remove(name); {
	case err != nil:
		return deployFailure(err)
	case !ok:
		return cli.Hinted(fmt.Errorf("there is no deployment %s", name), "ip netns shows what there is: namespaces called p4lb-NAME-NODE")
	}
	j.c.Log.Info("removed", "deployment", name)
	return nil
}

// howTo says how to use the hosts of a network that has just come up.
func (j *deployJob) howTo(plan *plan.Plan) error {
	list := plan.Topology.Hosts
	live := j.hosts.network != nil || j.target == targetBMv2 && !j.bmv2.attach
	if !live || len(list) < 2 || j.format != cli.Table {
		return nil
	}
	from, to := list[0], list[len(list)-1]
	fmt.Fprintf(j.c.Out, "%d hosts; a command on %s: p4lb exec %s -- ping %v\n", len(list), from.Name, from.Name, to.IP.Addr())
	if j.bmv2.keep {
		fmt.Fprintln(j.c.Out, "the network stays; to end it: p4lb down")
	}
	if err := j.c.Out.Flush(); err != nil {
		return fmt.Errorf("writing to standard output: %w", cli.BareError(err))
	}
	return nil
}
