package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

func newTopoShow(c *cli.Console) *cobra.Command {
	cmd := newTopoPrint(c, (*fabric.Topology).YAML)
	cmd.Use = "show TOPOLOGY [--fail LINK]... [-o FILE]"
	cmd.Short = "Write a preset or a file with all defaults filled in"
	cmd.Long = `Show writes a topology as YAML with all default values: roles, ports, ids and
addresses. In the result they stay the same when you add links.`
	cmd.Example = `  p4lb topo show qdaps-8x8 -o net.yaml
  p4lb topo show net.yaml --fail l1:17 -o failed.yaml`
	return cmd
}

// newTopoPrint returns a command that writes a topology in the given form.
func newTopoPrint(c *cli.Console, form func(*fabric.Topology) []byte) *cobra.Command {
	var file string
	var fail []string
	cmd := &cobra.Command{
		Args: cli.WantArgs(1, 1, "one topology"),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := c.Topology(args[0])
			if err != nil {
				return err
			}
			if t, err = cli.FailLinks(t, fail); err != nil {
				return err
			}
			return c.WriteResult(file, form(t))
		},
		ValidArgsFunction: cli.CompleteTopology,
	}
	cli.AddFailFlag(cmd, &fail)
	cli.AddResultFlag(cmd, &file)
	return cmd
}

// A presetView is a preset in the list.
type presetView struct {
	Name     string `json:"name"`
	Switches int    `json:"switches"`
	Hosts    int    `json:"hosts"`
	Links    int    `json:"links"`
	About    string `json:"about"`
	Assumed  string `json:"assumed,omitempty"`
}

func newTopoPresets(c *cli.Console) *cobra.Command {
	var form cli.Format
	cmd := &cobra.Command{
		Use:   "presets [-o FORMAT]",
		Short: "List the networks of the papers",
		Long: `Presets lists the networks of the papers' experiments with a description from the
paper. Every TOPOLOGY argument accepts their names.`,
		Example: `  p4lb topo presets
  p4lb topo show qdaps-8x8 -o net.yaml`,
		Args: cli.WantArgs(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			rows := cli.Grid{{"PRESET", "SWITCHES", "HOSTS", "LINKS", "DESCRIPTION"}}
			var list []presetView
			for _, p := range fabric.Presets() {
				t, err := p.Make()
				if err != nil {
					return err
				}
				v := presetView{p.Name, len(t.Switches), len(t.Hosts), len(t.Links), p.About, p.Assumed}
				list = append(list, v)
				rows = append(rows, []string{v.Name, strconv.Itoa(v.Switches), strconv.Itoa(v.Hosts), strconv.Itoa(v.Links), v.About})
			}
			return cli.Show(c.Out, form, rows, list)
		},
	}
	cli.AddFormat(cmd, &form, cli.Table, cli.JSON, cli.CSV)
	return cmd
}

func newTopoImport(c *cli.Console) *cobra.Command {
	var o fabric.Imports
	var file string
	cmd := &cobra.Command{
		Use:   "import FILE [--rate RATE] [--delay TIME] [-o FILE]",
		Short: "Convert a topology of p4-utils, the P4 tutorials or containerlab",
		Long: `Import reads p4-utils' p4app.json, the P4 tutorials' topology.json or a file of
containerlab and writes the topology as YAML, with the same ports and addresses.
It omits properties that p4lb does not support, with a warning.

In containerlab files, nodes of kind linux with one link become hosts, and all other
nodes switches. The port number is the number at the end of the interface name.`,
		Example: `  p4lb topo import p4app.json -o net.yaml
  p4lb topo import topology.json --rate 10Mbps --delay 1ms
  p4lb topo import clos.clab.yml -o net.yaml`,
		Args: cli.WantArgs(1, 1, "one file, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := c.ReadSource(args[0])
			if err != nil {
				return err
			}
			t, notes, err := o.Import(cli.DisplayName(args[0]), text)
			if err != nil {
				return c.TopologyErrors(err)
			}
			for _, note := range notes {
				c.Log.Warn(note)
			}
			return c.WriteResult(file, t.YAML())
		},
	}
	flags := cmd.Flags()
	flags.Func("rate", "`RATE` of links without a rate (default 1Gbps)", func(s string) error { return setParsed(&o.Rate, s, fabric.ParseRate) })
	flags.Func("delay", "propagation `TIME` of links without a delay (default 0)", func(s string) error { return setParsed(&o.Delay, s, fabric.ParseDelay) })
	cli.AddResultFlag(cmd, &file)
	return cmd
}

func newTopoGraph(c *cli.Console) *cobra.Command {
	cmd := newTopoPrint(c, (*fabric.Topology).SVG)
	cmd.Use = "graph TOPOLOGY [--fail LINK]... [-o FILE.svg]"
	cmd.Short = "Draw a network as SVG"
	cmd.Long = `Graph draws a row for each tier, hosts as dots, and links in the colour of their
rate and delay, dashed if they are down. In a browser, point at an element to see
addresses and ports.`
	cmd.Example = `  p4lb topo graph dhlb -o dhlb.svg`
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		name, _ := cmd.Flags().GetString("output")
		if ext := strings.ToLower(filepath.Ext(name)); slices.Contains([]string{".png", ".pdf", ".jpg", ".jpeg", ".gif", ".dot"}, ext) {
			return cli.Hinted(fmt.Errorf("-o %s: graph writes only SVG", name), "want a name that ends in .svg; browsers and drawing programs convert it to other formats")
		}
		return nil
	}
	return cmd
}

func newTopoValidate(c *cli.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "validate TOPOLOGY...",
		Short: "Check topologies",
		Long: `Validate checks each topology and prints a summary line. Errors go to standard
error with their line. Warnings report problems with routes.`,
		Example: `  p4lb topo validate net.yaml
  p4lb topo validate *.yaml`,
		Args: cli.WantArgs(1, -1, "topologies"),
		RunE: func(_ *cobra.Command, args []string) error {
			var first error
			for _, name := range args {
				if err := validateTopology(c, name); err != nil {
					if first != nil {
						c.Report(first)
					}
					first = err
				}
			}
			return first
		},
		ValidArgsFunction: cli.CompleteTopology,
	}
}

// mostHops is the maximum number of next hops that a generated program can
// choose from.
const mostHops = 16

func validateTopology(c *cli.Console, name string) error {
	t, err := c.Topology(name)
	if err != nil {
		return err
	}
	down := 0
	for _, l := range t.Links {
		if l.Down {
			down++
		}
	}
	fmt.Fprintf(c.Out, "ok   %s   %d switches, %d hosts, %d links", cli.DisplayName(name), len(t.Switches), len(t.Hosts), len(t.Links))
	if down > 0 {
		fmt.Fprintf(c.Out, " (%d down)", down)
	}
	fmt.Fprintln(c.Out)
	return warnOfRoutes(c, name, t)
}

// warnOfRoutes warns of leaves that no path connects, and of too many next
// hops. It reports only the first pair of each kind, as such problems usually
// affect many pairs.
func warnOfRoutes(c *cli.Console, name string, t *fabric.Topology) error {
	r := t.Routes()
	cut, wide := "", ""
	// Without a link that is down, leaves without a path are in different planes.
	down := slices.ContainsFunc(t.Links, func(l fabric.Link) bool { return l.Down })
	for _, s := range t.Switches {
		for _, leaf := range t.Leaves() {
			hops, err := r.NextHops(s.Name, leaf.Name)
			switch {
			case err != nil:
				return err
			case cut == "" && down && s.Leaf > 0 && s.Name != leaf.Name && len(hops) == 0:
				cut = fmt.Sprintf("no path from %s to %s while links are down", s.Name, leaf.Name)
			case wide == "" && len(hops) > mostHops:
				wide = fmt.Sprintf("%d next hops from %s to %s: a generated program has at most %d", len(hops), s.Name, leaf.Name, mostHops)
			}
		}
	}
	for _, text := range []string{cut, wide} {
		if text != "" {
			c.Log.Warn(text, "topology", cli.DisplayName(name))
		}
	}
	return nil
}
