package spec

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// This file builds the flows of files that list whole collectives: Chakra
// traces and SimAI workloads.

// checkImport returns an error if a key of the traffic does not suit a file of collectives.
func (tr *Traffic) checkImport() error {
	switch {
	case tr.Algorithm != "" && !slices.Contains(algorithms[allReduce], tr.Algorithm):
		return fmt.Errorf("algorithm %q: want %s", tr.Algorithm, orList(algorithms[allReduce]))
	case tr.Groups != 0 || tr.Order != "" || tr.Compute != 0:
		return fmt.Errorf("groups, order and compute: the file %q determines them", tr.File)
	case tr.Ranks < 0 || tr.Window < 0 || tr.Chunks < 0 || tr.Repeat < 0:
		return fmt.Errorf("ranks %d, window %d, chunks %d, repeat %d: want 0 or more", tr.Ranks, tr.Window, tr.Chunks, tr.Repeat)
	}
	return nil
}

// importer returns a builder for operations of the hosts 0 to ranks-1.
func (tr *Traffic) importer(ranks int) *builder {
	return &builder{
		Traffic: tr, numbers: map[[2]int32]int32{},
		hosts: sequence(0, ranks), began: make([][]int32, ranks),
	}
}

// as returns an operation of a file as traffic. The algorithm given with the file applies to all
// operations that support it. Each message has at least one byte.
func (tr *Traffic) as(op string, bytes int64, ranks int) (*Traffic, error) {
	one := &Traffic{Collective: op, Algorithm: algorithms[op][0], Connections: tr.Connections}
	if slices.Contains(algorithms[op], tr.Algorithm) {
		one.Algorithm = tr.Algorithm
	}
	if one.Algorithm == halvingDoubling && ranks&(ranks-1) != 0 {
		return nil, fmt.Errorf("algorithm %s of %d ranks: want a power of two", halvingDoubling, ranks)
	}
	if one.Algorithm == directAlgorithm {
		one.Window = tr.Window
	}
	if one.pipelines() {
		one.Chunks = int(min(int64(tr.Chunks), bytes))
	}
	one.Size = Size(max(bytes, int64(ranks)))
	return one, nil
}

// once adds a collective of some hosts. began lists, by host, the flow after which
// the host begins. once returns, by host, a computation of length pause, which
// begins when the host has received all its messages.
func (b *builder) once(tr *Traffic, hosts []int, began []int32, pause time.Duration) []int32 {
	after := lists.Map(began, func(at int32) []int32 {
		if at < 0 {
			return nil
		}
		return []int32{at}
	})
	c := &builder{Traffic: tr, flows: b.flows, hosts: hosts, began: after, gated: true, numbers: b.numbers}
	first := len(c.flows)
	c.operation()
	waits := c.received(first)
	for i, f := range c.flows[first:] {
		if tr.Collective == broadcast && f.Src == hosts[0] { // the sender of a broadcast receives nothing
			waits[0] = append(waits[0], int32(first+i))
		}
	}
	ends := make([]int32, len(hosts))
	for r := range hosts {
		ends[r] = c.compute(r, pause, waits[r])
	}
	b.flows = c.flows
	return ends
}

// budget returns an error if a file has more messages than a traffic may generate.
func budget(messages int) error {
	if messages > maxMessages || messages < 0 {
		return fmt.Errorf("more than %d messages", maxMessages)
	}
	return nil
}

// firstLine returns the fields of the first line.
func firstLine(text []byte) []string {
	line, _, _ := bytes.Cut(text[:min(len(text), 1<<12)], []byte("\n"))
	return strings.Fields(string(line))
}
