package main

import (
	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/cmd/p4lb/internal/cli"
	"github.com/p4lb/p4lb/cmd/p4lb/internal/network"
)

func newTopo(c *cli.Console) *cobra.Command {
	cmd := &cobra.Command{
		SuggestFor: []string{"topology", "fabric", "network"},
		Use:        "topo VERB",
		Short:      "Create, check and draw networks",
		Long: `Topo works on networks of switches and hosts. A TOPOLOGY is a YAML file or the
name of a preset, which is the network of an experiment in one of the papers.

A topology file looks like this:

  name: small
  defaults:                # for links without these values
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
    - {ends: [h2, l2:7]}   # port 7 of l2
    - {ends: [l1, s1], parallel: 2}
    - {ends: [l2, s1], rate: 200Mbps, down: true}

Links of Tofino switches name device ports (l1:132), or front-panel ports (l1:1/0) if
the defaults or the switch have a map, as in front-panel: {1/0: 132}.

Only names, ends and rates are required. Roles are leaf and spine, or tor, agg and
core. The default role depends on the distance from the hosts.`,
		Example: `  p4lb topo leaf-spine --leaves 2 --spines 2 --parallel 2 --hosts 16 -o net.yaml
  p4lb topo fat-tree -k 4 -o tree.yaml
  p4lb topo validate net.yaml
  p4lb topo graph qall-asym -o qall.svg`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.WantVerb("topo requires a verb", ""),
	}
	cmd.AddCommand(
		newTopoLeafSpine(c), newTopoFatTree(c), newTopoRail(c), newTopoShow(c), newTopoPresets(c), newTopoImport(c),
		newTopoValidate(c), newTopoGraph(c), newTopoRoutes(c), newTopoPaths(c), network.NewTopoPorts(c),
	)
	return cmd
}
