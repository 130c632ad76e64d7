package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

func newTopoLeafSpine(c *cli.Console) *cobra.Command {
	o := fabric.LeafSpine{Leaves: 2, Spines: 2, Parallel: 1, Hosts: 2}
	var file string
	cmd := &cobra.Command{
		Use:   "leaf-spine [--leaves N] [--spines N] [--parallel N] [--hosts N] [--rails] [--dual-tor] [-o FILE]",
		Short: "Create a network with two tiers",
		Long: `Leaf-spine creates a network with a link from each leaf to each spine. The leaves
are l1, l2 and so on, the spines s1, s2, and the hosts h1, h2, numbered leaf by leaf.
With --rails they are numbered across the leaves, as in rail-optimised clusters: leaf i
is rail i, and h1 to hN are the NICs of the first server, one on each of N leaves.
With --dual-tor each host at l1 has a second port at l2, and so on.

The default rate of the links between switches is the host rate, unless it follows
from the oversubscription.`,
		Example: `  p4lb topo leaf-spine --leaves 2 --spines 2 --parallel 2 --hosts 16 --host-rate 100Mbps --rate 400Mbps -o qall.yaml
  p4lb topo leaf-spine --leaves 8 --spines 8 --hosts 16 --rails --host-rate 400G -o rails.yaml
  p4lb topo leaf-spine --leaves 8 --spines 8 --hosts 32 --host-rate 1G --oversubscription 4:1 -o big.yaml`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeMade(c, cmd, file, o.Make, "leaves", "spines", "parallel", "hosts")
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Leaves, "leaves", o.Leaves, "number `N` of leaves")
	flags.IntVar(&o.Spines, "spines", o.Spines, "number `N` of spines")
	flags.IntVar(&o.Parallel, "parallel", o.Parallel, "number `N` of links between a leaf and a spine")
	flags.IntVar(&o.Hosts, "hosts", o.Hosts, "number `N` of hosts per leaf")
	flags.BoolVar(&o.Rails, "rails", false, "number the hosts across the leaves, which are rails")
	flags.BoolVar(&o.DualToR, "dual-tor", false, "connect each host to two leaves")
	addLinkFlags(cmd, &o.Links)
	flags.Func("oversubscription", "ratio of a leaf's host rate to the rate of its links to the spines, as `N` or N:1", func(s string) error {
		return setRatio(&o.Oversubscription, s)
	})
	addTopologyFlags(cmd, &o.Name, &o.Buffer, &file)
	return cmd
}

func newTopoRail(c *cli.Console) *cobra.Command {
	o := fabric.Rail{Rails: 8, Servers: 2, Spines: 2, Planes: 1}
	var file string
	cmd := &cobra.Command{
		Use:   "rail [--rails N] [--servers N] [--spines N] [--planes N] [-o FILE]",
		Short: "Create a rail-optimised network with planes",
		Long: `Rail creates the network of a training cluster. Each server has a NIC for each rail,
and NIC i of all servers is at leaf i. The NICs are hosts; the hosts of a server are
consecutive. Each plane is a separate network of this kind, and a host has a port in
each plane: h1.2 is the port of h1 in the second plane.`,
		Example: `  p4lb topo rail --rails 8 --servers 16 --spines 8 --planes 2 --host-rate 200G -o rails.yaml`,
		Args:    cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeMade(c, cmd, file, o.Make, "rails", "servers", "spines", "planes")
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Rails, "rails", o.Rails, "number `N` of rails")
	flags.IntVar(&o.Servers, "servers", o.Servers, "number `N` of servers")
	flags.IntVar(&o.Spines, "spines", o.Spines, "number `N` of spines of a plane")
	flags.IntVar(&o.Planes, "planes", o.Planes, "number `N` of planes")
	addLinkFlags(cmd, &o.Links)
	addTopologyFlags(cmd, &o.Name, &o.Buffer, &file)
	return cmd
}

func newTopoFatTree(c *cli.Console) *cobra.Command {
	o := fabric.FatTree{K: 4}
	var file string
	cmd := &cobra.Command{
		Use:   "fat-tree [-k K] [-o FILE]",
		Short: "Create a network with three tiers",
		Long: `Fat-tree creates a network of switches with K ports: K pods, each with K/2 top of
rack switches (t1 and so on) and K/2 aggregation switches (a1), and (K/2)² core
switches (c1). There are K³/4 hosts (h1).`,
		Example: `  p4lb topo fat-tree -k 4 --host-rate 100Mbps --rate 200Mbps -o tree.yaml`,
		Args:    cli.WantArgs(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeMade(c, cmd, file, o.Make, "ports", "hosts")
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&o.K, "ports", "k", o.K, "`K` ports per switch, an even number")
	flags.IntVar(&o.Hosts, "hosts", 0, "number `N` of hosts per top of rack switch (default K/2)")
	addLinkFlags(cmd, &o.Links)
	addTopologyFlags(cmd, &o.Name, &o.Buffer, &file)
	return cmd
}

// writeMade writes the topology that make returns. It first checks that the
// given flags named in numbers are at least 1.
func writeMade(c *cli.Console, cmd *cobra.Command, file string, make func() (*fabric.Topology, error), numbers ...string) error {
	for _, name := range numbers {
		if n, err := cmd.Flags().GetInt(name); err == nil && n < 1 && cmd.Flags().Changed(name) {
			return cli.UsageError(cmd, "--%s %d: want at least 1", name, n)
		}
	}
	t, err := make()
	if err != nil {
		return c.TopologyErrors(err)
	}
	return c.WriteResult(file, t.YAML())
}

// addLinkFlags adds the flags for links that both kinds of networks share.
func addLinkFlags(cmd *cobra.Command, l *fabric.Links) {
	flags := cmd.Flags()
	flags.Func("host-rate", "`RATE` of the links to hosts (default 10Gbps)", func(s string) error { return setParsed(&l.HostRate, s, fabric.ParseRate) })
	flags.Func("rate", "`RATE` of the links between switches (default the host rate)", func(s string) error { return setParsed(&l.Rate, s, fabric.ParseRate) })
	flags.Func("host-delay", "propagation `TIME` of a link to a host (default 0)", func(s string) error { return setParsed(&l.HostDelay, s, fabric.ParseDelay) })
	flags.Func("delay", "propagation `TIME` of a link between switches (default 0)", func(s string) error { return setParsed(&l.Delay, s, fabric.ParseDelay) })
	flags.IntVar(&l.Queue, "queue", 0, "capacity of queues in packets, `N` (default of the target)")
}

func addTopologyFlags(cmd *cobra.Command, name *string, buffer *fabric.Size, file *string) {
	cmd.Flags().Func("buffer", "`SIZE` of each switch's shared buffer, such as 9MiB", func(s string) error { return setParsed(buffer, s, fabric.ParseSize) })
	cmd.Flags().StringVar(name, "name", "", "`NAME` of the network")
	cli.AddResultFlag(cmd, file)
}

func setParsed[T any](to *T, text string, parse func(string) (T, error)) (err error) {
	*to, err = parse(text)
	return err
}

// setRatio parses a ratio such as 4:1, 3:2 or 1.5.
func setRatio(to *float64, text string) error {
	over, under, ok := strings.Cut(text, ":")
	if !ok {
		under = "1"
	}
	a, errA := strconv.ParseFloat(over, 64)
	b, errB := strconv.ParseFloat(under, 64)
	if errA != nil || errB != nil || !(a > 0) || !(b > 0) {
		return errors.New("want a ratio such as 4:1 or 1.5")
	}
	*to = a / b
	return nil
}
