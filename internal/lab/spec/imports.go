package spec

import (
	"fmt"
	"path"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// This file selects the parser of a flow list.

// readList reads the flow list of a traffic. The file name's ending selects htsim's connection
// matrices, GOAL schedules or Chakra traces. The first line identifies a SimAI workload.
func (tr *Traffic) readList(t *fabric.Topology, read Reader) ([]Flow, error) {
	if path.Ext(tr.File) == ".et" {
		return tr.parseTraces(t, read)
	}
	text, err := read(tr.File)
	if err != nil {
		return nil, fmt.Errorf("reading flow list %q: %w", tr.File, err)
	}
	if isWorkload(text) {
		return tr.parseWorkload(text, t)
	}
	if err := tr.onlyImports(); err != nil {
		return nil, err
	}
	return parseList(tr.File, text, t)
}

// parseList reads a list of single flows.
func parseList(file string, text []byte, t *fabric.Topology) ([]Flow, error) {
	switch path.Ext(file) {
	case ".cm":
		return parseMatrix(file, text, t)
	case ".goal":
		return parseGoal(file, text, t)
	}
	return parseFlows(file, text, t)
}

// onlyImports returns an error if the traffic has a key that its flow list does not use.
func (tr *Traffic) onlyImports() error {
	if tr.own() || tr.CommGroups != "" {
		return fmt.Errorf("file %q: algorithm, ranks, window, chunks, repeat, connections and comm-groups are of Chakra traces and SimAI workloads", tr.File)
	}
	return nil
}
