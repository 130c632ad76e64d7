package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/fabric"
)

func newTopo(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		SuggestFor: []string{"topology", "fabric", "network"},
		Use:        "topo VERB",
		Short:      "Make, check and draw the networks that load balancers run in",
		Long: `Topo works on networks of switches and hosts. A TOPOLOGY is a YAML file or the
name of a preset, the network of an experiment in one of the papers.

  name: small
  defaults:                # of links that say nothing themselves
    switch-links: {rate: 400Mbps, delay: 10us, queue: 64}
    host-links: {rate: 100Mbps}
  switches:
    l1: {role: leaf, id: 1, grpc: 127.0.0.1:9559, thrift: 127.0.0.1:9090}
    l2:
    s1: {role: spine, buffer: 9MiB}
  hosts:
    h1: {ip: 10.0.1.1/24, mac: "02:00:0a:00:01:01"}
    h2:
  links:
    - {ends: [h1, l1]}
    - {ends: [h2, l2:7]}   # at port 7
    - {ends: [l1, s1], parallel: 2}
    - {ends: [l2, s1], rate: 200Mbps, down: true}

Only names, ends and rates are needed. Roles are leaf and spine, or tor, agg and
core; a switch without one gets it by its distance from the hosts.`,
		Example: `  p4lb topo leaf-spine --leaves 2 --spines 2 --parallel 2 --hosts 16 -o net.yaml
  p4lb topo fat-tree -k 4 -o tree.yaml
  p4lb topo validate net.yaml
  p4lb topo graph qall-asym -o qall.svg`,
		Args: cobra.ArbitraryArgs,
		RunE: noTopoVerb,
	}
	cmd.AddCommand(
		newTopoLeafSpine(c), newTopoFatTree(c), newTopoShow(c), newTopoPresets(c), newTopoImport(c),
		newTopoValidate(c), newTopoGraph(c), newTopoRoutes(c), newTopoPaths(c),
	)
	for _, verb := range cmd.Commands() {
		verb.Flags().SortFlags = false
		verb.DisableFlagsInUseLine = true
	}
	return cmd
}

// noTopoVerb is what topo does by itself: it explains what is missing.
func noTopoVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError(cmd, "topo wants a verb")
	}
	return usageError(cmd, "topo has no verb %q", args[0])
}

// topology reads a topology that a user has named: a file, or a preset where
// there is no such file. What is wrong with a file has been printed.
func (c *cli) topology(name string) (*fabric.Topology, error) {
	info, err := os.Stat(name)
	if name != "-" && (errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir()) {
		return presetTopology(name)
	}
	text, err := c.readSource(name)
	if err != nil {
		return nil, err
	}
	t, err := fabric.Load(displayName(name), text)
	return t, c.topologyErrors(err)
}

func presetTopology(name string) (*fabric.Topology, error) {
	p, err := fabric.PresetNamed(name)
	if err != nil {
		return nil, hinted(fmt.Errorf("no file of that name, and %w", err), "p4lb topo presets lists the presets")
	}
	return p.Make()
}

// topologyErrors prints what is wrong with a topology, a line each.
func (c *cli) topologyErrors(err error) error {
	var list fabric.Errors
	var one *fabric.Error
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = fabric.Errors{one}
	default:
		return err
	}
	for _, e := range list {
		switch {
		case !c.logJSON:
			fmt.Fprintf(c.err, "%s %v\n", c.paint.red("error:"), e)
		case e.Line == 0:
			c.log.Error(e.Msg, "file", e.File)
		default:
			c.log.Error(e.Msg, "file", e.File, "line", e.Line)
		}
	}
	return errReported
}

// writeResult writes a file, or to standard output where none is named.
func (c *cli) writeResult(name string, data []byte) error {
	if name == "" {
		_, err := c.out.Write(data)
		return err
	}
	if slices.Contains([]format{formatTable, formatJSON, formatCSV, formatYAML}, format(name)) {
		return hinted(fmt.Errorf("-o %s: here -o names a file, and none is called like a form of results", name), "leave it out for standard output")
	}
	var out outputs
	defer out.discard()
	if err := out.stage(name, data); err != nil {
		return err
	}
	return c.finish(&out)
}

// addResultFlag gives cmd the flag -o of verbs that write one file.
func addResultFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", "", "write to `FILE` instead of standard output")
}

// addFailFlag gives cmd the flag --fail.
func addFailFlag(cmd *cobra.Command, fail *[]string) {
	cmd.Flags().StringArrayVar(fail, "fail", nil, "take a `LINK` down: one by a port, as in l1:3, or all between two nodes, as in l1-s1 (repeatable)")
}

// failLinks returns the topology with the links down that a user has named.
func failLinks(t *fabric.Topology, names []string) (*fabric.Topology, error) {
	for _, name := range names {
		links, err := t.FindLinks(name)
		if err != nil {
			return nil, err
		}
		t = t.Fail(links...)
	}
	return t, nil
}
