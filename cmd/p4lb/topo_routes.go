package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

func newTopoRoutes(c *cli.Console) *cobra.Command {
	j := &routesJob{c: c}
	cmd := &cobra.Command{
		Use:   "routes TOPOLOGY [SWITCH]... [--fail LINK]... [--changed] [--by hops|leaf|path] [-o FORMAT]",
		Short: "Show the routes of the switches",
		Long: `Routes shows the routes of each switch, or of the named ones: a prefix and its port
or group of ports. Each switch numbers its groups, and destinations with the same
next hops share one. With --by leaf, each leaf has a separate group with the same
number at every switch. --by path is like --by leaf, but each port occurs in the
group in proportion to the number of shortest paths through it.`,
		Example: `  p4lb topo routes qall l1
  p4lb topo routes dhlb --fail a1-c1 --changed`,
		Args: cli.WantArgs(1, -1, "a topology"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch j.by {
			case "hops":
			case "leaf":
				j.grouping = fabric.ByLeaf
			case "path":
				j.grouping = fabric.ByPath
			default:
				return cli.UsageError(cmd, "--by %s: want hops, leaf or path", j.by)
			}
			return j.run(args[0], args[1:])
		},
		ValidArgsFunction: cli.CompleteTopology,
	}
	cli.AddFailFlag(cmd, &j.fail)
	cmd.Flags().BoolVar(&j.changed, "changed", false, "show only switches whose routes change with --fail")
	cmd.Flags().StringVar(&j.by, "by", "hops", "form groups of destinations by `RULE`: hops (same next hops), leaf, path (leaf, with ports in proportion to their paths)")
	cli.AddFormat(cmd, &j.form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

// A routesJob is one run of topo routes.
type routesJob struct {
	c        *cli.Console
	fail     []string
	changed  bool
	by       string
	grouping fabric.Grouping
	form     cli.Format
}

// A routeView is a route in the output.
type routeView struct {
	Switch string   `json:"switch"`
	Prefix string   `json:"prefix"`
	Group  int      `json:"group,omitempty"`
	Ports  []int    `json:"ports"`
	To     []string `json:"to"`
}

func (j *routesJob) run(name string, switches []string) error {
	whole, err := j.c.Topology(name)
	if err != nil {
		return err
	}
	t, err := cli.FailLinks(whole, j.fail)
	if err != nil {
		return err
	}
	r := t.Routes()
	for _, s := range switches {
		if t.Switch(s) == nil {
			return fmt.Errorf("there is no switch %q in %s", s, cli.DisplayName(name))
		}
	}
	var concerned []string
	if j.changed {
		concerned = r.Changed(whole.Routes(), j.grouping)
	}
	rows, views := cli.Grid{{"SWITCH", "PREFIX", "GROUP", "PORTS", "TO"}}, []routeView{}
	for _, s := range t.Switches {
		if len(switches) > 0 && !slices.Contains(switches, s.Name) || j.changed && !slices.Contains(concerned, s.Name) {
			continue
		}
		for _, v := range j.routesOf(t, r, s.Name) {
			views = append(views, v)
			group := strconv.Itoa(v.Group)
			if v.Group == 0 {
				group = "-"
			}
			rows = append(rows, []string{v.Switch, v.Prefix, group, joinInts(v.Ports), strings.Join(v.To, ",")})
		}
	}
	return cli.Show(j.c.Out, j.form, rows, views)
}

func (j *routesJob) routesOf(t *fabric.Topology, r *fabric.Routes, name string) []routeView {
	table, _ := r.Table(name, j.grouping)
	peers := map[int]string{}
	for _, p := range t.Ports(name) {
		peers[p.Number] = p.Peer
	}
	groups := map[int][]fabric.Hop{}
	for _, g := range table.Groups {
		groups[g.ID] = g.Hops
	}
	var views []routeView
	for _, route := range table.Routes {
		v := routeView{Switch: name, Prefix: route.Prefix.String(), Group: route.Group}
		hops := []fabric.Hop{route.Hop}
		if route.Group != 0 {
			hops = groups[route.Group]
		}
		for _, h := range hops {
			v.Ports = append(v.Ports, h.Port)
			v.To = append(v.To, peers[h.Port])
		}
		v.To = slices.Compact(v.To)
		views = append(views, v)
	}
	return views
}

// A pathView is a path in the output.
type pathView struct {
	ID    int      `json:"id"`
	Nodes []string `json:"nodes"`
	Ports []int    `json:"ports"`
	Delay string   `json:"delay"`
	Rate  string   `json:"rate"`
}

func newTopoPaths(c *cli.Console) *cobra.Command {
	var fail []string
	var k int
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "paths TOPOLOGY FROM TO [-k K] [--fail LINK]... [-o FORMAT]",
		Short: "Show the paths between two nodes",
		Long: `Paths shows the shortest paths between two switches or hosts. Their ids do not
depend on failed links. -k K shows the K shortest paths without loops, including
longer ones, by Yen's algorithm.`,
		Example: `  p4lb topo paths qall h1 h17
  p4lb topo paths dhlb t1 t3 -k 8`,
		Args: cli.WantArgs(3, 3, "a topology and two nodes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if k < 0 || k > fabric.MaxPaths {
				return cli.UsageError(cmd, "-k %d: want 1 to %d", k, fabric.MaxPaths)
			}
			t, err := c.Topology(args[0])
			if err != nil {
				return err
			}
			if t, err = cli.FailLinks(t, fail); err != nil {
				return err
			}
			var list []fabric.Path
			if k > 0 {
				list, err = t.KShortest(args[1], args[2], k)
			} else {
				list, err = t.Routes().Paths(args[1], args[2])
			}
			if err != nil {
				return err
			}
			rows, views := cli.Grid{{"ID", "DELAY", "RATE", "PORTS", "NODES"}}, []pathView{}
			for _, p := range list {
				v := pathView{p.ID, p.Nodes, p.Ports, fabric.FormatDelay(p.Delay), p.Rate.String()}
				views = append(views, v)
				rows = append(rows, []string{strconv.Itoa(v.ID), v.Delay, v.Rate, joinInts(v.Ports), strings.Join(v.Nodes, " ")})
			}
			return cli.Show(c.Out, form, rows, views)
		},
		ValidArgsFunction: cli.CompleteTopology,
	}
	cmd.Flags().IntVarP(&k, "best", "k", 0, "show the `K` best paths, not only the shortest")
	cli.AddFailFlag(cmd, &fail)
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

func joinInts(list []int) string {
	words := lists.Map(list, strconv.Itoa)
	return strings.Join(words, ",")
}
