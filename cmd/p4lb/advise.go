package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/fabric"
	"github.com/p4lb/p4lb/fitting"
)

func newAdvise(c *cli) *cobra.Command {
	var topology, scheme string
	var set []string
	var form format
	cmd := &cobra.Command{
		Use:   "advise [--topology T.yaml] [--set NAME=VALUE...] [--scheme S] [-o FORMAT]",
		Short: "Compute the schemes' parameters for a network",
		Long: `Advise computes what the papers leave to their users, for the network at hand,
and prints the formula beside each value: flowlet gaps, QALL's tau and T_b,
QDAPS's S (its closed form and the exact solution), RLB's Q_th and N_rc, PDLB's
flowcell size for each state of the paths, DHLB's delta and probe period, and
the constants of CONGA and HULA.

The network is a topology file or a preset such as qdaps-8x8; --set overrides a
value of it, or gives it where there is no topology:

` + networkHelp(),
		Example: `  p4lb advise --topology qdaps-8x8 --scheme qdaps
  p4lb advise --topology net.yaml --set flow-size=7.4MB
  p4lb advise --set rate=40G --set rtt=16us --set paths=12 --set hosts=24 --set buffer=256`,
		Args: wantArgs(0, 0, "flags only"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if topology == "" && len(set) == 0 {
				return usageError(cmd, "advise wants a network: --topology or --set")
			}
			var n fitting.Network
			n.Leaves, n.Hosts = 2, 1
			if topology != "" {
				t, err := c.topology(topology)
				if err != nil {
					return err
				}
				if n, err = networkOf(t); err != nil {
					return fmt.Errorf("%s: %w", topology, err)
				}
			}
			for _, s := range set {
				if err := setNetwork(&n, s); err != nil {
					return usageError(cmd, "--set %s: %w", s, err)
				}
			}
			return c.advise(n, scheme, form)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&topology, "topology", "", "the network: a `FILE`.yaml or the name of a preset")
	flags.StringArrayVar(&set, "set", nil, "set a value of the network, as `NAME=VALUE` (repeatable)")
	flags.StringVar(&scheme, "scheme", "", "advise on this `SCHEME` alone: "+strings.Join(fitting.Advised(), ", "))
	addFormat(cmd, &form, formatTable, formatJSON, formatCSV)
	return cmd
}

// advise prints the parameters, and their warnings as messages.
func (c *cli) advise(n fitting.Network, scheme string, form format) error {
	list, err := fitting.Advise(n, scheme)
	switch {
	case errors.Is(err, fitting.ErrNoAdvice):
		return err
	case err != nil:
		return hinted(err, "--set NAME=VALUE gives what the topology does not")
	}
	rows := grid{{"SCHEME", "PARAMETER", "VALUE", "FORMULA", "SOURCE"}}
	for _, a := range list {
		rows = append(rows, []string{a.Scheme, a.Name, a.Value, a.Formula, a.Source})
		if a.Warning != "" {
			c.warning("%s %s: %s", a.Scheme, a.Name, a.Warning)
		}
	}
	return show(c.out, form, rows, list)
}

// networkOf takes the paths between the first leaf and the one farthest from
// it for what all paths are like.
func networkOf(t *fabric.Topology) (n fitting.Network, err error) {
	leaves := t.Leaves()
	n.Leaves = len(leaves)
	perLeaf := map[string]int{}
	for _, h := range t.Hosts {
		perLeaf[h.Switch]++
		n.Hosts = max(n.Hosts, perLeaf[h.Switch])
	}
	routes := t.Routes()
	var paths []fabric.Path
	for _, other := range leaves[1:] {
		list, err := routes.Paths(leaves[0].Name, other.Name)
		if err != nil {
			return n, err
		}
		if len(paths) == 0 || len(list) > 0 && len(list[0].Nodes) > len(paths[0].Nodes) {
			paths = list
		}
	}
	if len(paths) == 0 {
		return n, errors.New("there is no path between two leaves")
	}
	n.Paths, n.Hops = len(paths), len(paths[0].Nodes)-1
	describePaths(&n, t, paths)
	if n.Buffer == 0 {
		// A shared buffer is worth to each port its share of full packets.
		n.Buffer = int(leaves[0].Buffer) / len(t.Ports(leaves[0].Name)) / 1500
	}
	return n, nil
}

// describePaths takes the rate of the fastest path, which an undisturbed one
// has, and the round trips of the fastest and the slowest.
func describePaths(n *fitting.Network, t *fabric.Topology, paths []fabric.Path) {
	hosts := 2 * (hostDelay(t, paths[0].Nodes[0]) + hostDelay(t, paths[0].Nodes[len(paths[0].Nodes)-1]))
	for i, p := range paths {
		n.Rate = max(n.Rate, float64(p.Rate))
		rtt := 2*p.Delay + hosts
		if i == 0 || rtt < n.RTT {
			n.RTT = rtt
		}
		n.SlowRTT = max(n.SlowRTT, rtt)
		for _, l := range p.Links {
			link := t.Links[l]
			n.Delay = max(n.Delay, link.Delay)
			if link.Queue > 0 && (n.Buffer == 0 || link.Queue < n.Buffer) {
				n.Buffer = link.Queue
			}
		}
	}
}

// hostDelay is the delay between a leaf and its first host.
func hostDelay(t *fabric.Topology, leaf string) (d time.Duration) {
	i := slices.IndexFunc(t.Hosts, func(h fabric.Host) bool { return h.Switch == leaf })
	if i < 0 {
		return 0
	}
	name := t.Hosts[i].Name
	for _, l := range t.Links {
		if l.A.Node == name || l.B.Node == name {
			return l.Delay
		}
	}
	return 0
}

// networkValues are what --set can set.
var networkValues = []struct {
	name, example, about string
	set                  func(n *fitting.Network, text string) error
}{
	{"rate", "40G", "of a link between switches", func(n *fitting.Network, s string) error {
		r, err := fabric.ParseRate(s)
		n.Rate = float64(r)
		return err
	}},
	{"delay", "2us", "of a link between switches, one way", delayOf(func(n *fitting.Network) *time.Duration { return &n.Delay })},
	{"rtt", "100us", "of the fastest path without queues", delayOf(func(n *fitting.Network) *time.Duration { return &n.RTT })},
	{"slow-rtt", "300us", "of the slowest path", delayOf(func(n *fitting.Network) *time.Duration { return &n.SlowRTT })},
	{"paths", "8", "between two leaves", countOf(func(n *fitting.Network) *int { return &n.Paths })},
	{"hops", "2", "queues on a path", countOf(func(n *fitting.Network) *int { return &n.Hops })},
	{"leaves", "8", "", countOf(func(n *fitting.Network) *int { return &n.Leaves })},
	{"hosts", "32", "of a leaf", countOf(func(n *fitting.Network) *int { return &n.Hosts })},
	{"buffer", "256", "packets that a port queues", countOf(func(n *fitting.Network) *int { return &n.Buffer })},
	{"mtu", "1500", "bytes", countOf(func(n *fitting.Network) *int { return &n.MTU })},
	{"ecn", "65", "packets from which on a queue marks", countOf(func(n *fitting.Network) *int { return &n.ECN })},
	{"pfc", "256KB", "threshold of an ingress port", sizeOf(func(n *fitting.Network) *float64 { return &n.PFC })},
	{"incast", "24", "senders to one receiver", countOf(func(n *fitting.Network) *int { return &n.Incast })},
	{"flow-size", "1600KB", "of a long flow", sizeOf(func(n *fitting.Network) *float64 { return &n.FlowSize })},
	{"flows", "10", "long flows that share the paths of two leaves", countOf(func(n *fitting.Network) *int { return &n.Flows })},
	{"recirc", "1us", "delay of a recirculation", delayOf(func(n *fitting.Network) *time.Duration { return &n.Recirc })},
}

func networkHelp() string {
	var b strings.Builder
	for _, v := range networkValues {
		b.WriteString(strings.TrimRight(fmt.Sprintf("  %-18s %s", v.name+"="+v.example, v.about), " ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func setNetwork(n *fitting.Network, s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("want NAME=VALUE")
	}
	var names []string
	for _, v := range networkValues {
		if v.name == name {
			return v.set(n, value)
		}
		names = append(names, v.name)
	}
	return fmt.Errorf("a network has no %s: want one of %s", name, strings.Join(names, ", "))
}

func countOf(field func(*fitting.Network) *int) func(*fitting.Network, string) error {
	return func(n *fitting.Network, s string) error {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			return fmt.Errorf("%q: want a whole number above 0", s)
		}
		*field(n) = v
		return nil
	}
}

func sizeOf(field func(*fitting.Network) *float64) func(*fitting.Network, string) error {
	return func(n *fitting.Network, s string) error {
		v, err := fabric.ParseSize(s)
		*field(n) = float64(v)
		return err
	}
}

func delayOf(field func(*fitting.Network) *time.Duration) func(*fitting.Network, string) error {
	return func(n *fitting.Network, s string) (err error) {
		*field(n), err = fabric.ParseDelay(s)
		return err
	}
}
