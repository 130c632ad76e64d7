package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
)

// This file reads Chakra execution traces (mlcommons/chakra, et_def.proto): a file for
// each rank, in which each message has its length as a varint before it. The first
// message is the metadata, and each other one is a node. Rank i is host i.
//
// A node begins when its data and control dependencies are complete. Computations
// and memory accesses take their duration. A send and the receive of the same ranks
// and tag are a flow. The k-th collective node of a group on one rank belongs to
// the k-th on every other rank of the group. A rank's messages of a collective wait
// for its node. Nodes of a rank overlap if they do not depend on each other.

// etOperations are the collectives, indexed by CollectiveCommType.
var etOperations = []string{
	0: allReduce, 2: allGather, 5: broadcast, 6: allToAll, 7: reduceScatter, 8: reduceScatter, 9: barrier,
}

// etCollectives are the names of the CollectiveCommType values.
var etCollectives = []string{
	"ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER", "BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER",
}

// barrier is an all-reduce of one byte per rank.
const barrier = "barrier"

// A traceSet is the traces of all ranks and the flows made from them.
type traceSet struct {
	*builder
	file   string // file name, with * for the rank
	traces []*trace
}

// parseTraces reads the traces of all ranks. tr.File is their name, with * for the rank.
func (tr *Traffic) parseTraces(t *fabric.Topology, read Reader) ([]Flow, error) {
	if err := tr.checkImport(); err != nil {
		return nil, err
	}
	switch {
	case strings.Count(tr.File, "*") != 1:
		return nil, fmt.Errorf("file %q: want a name with * for the rank, such as trace.*.et", tr.File)
	case tr.Repeat > 1:
		return nil, fmt.Errorf("repeat %d: a Chakra trace runs once", tr.Repeat)
	case tr.Ranks > t.NICs():
		return nil, fmt.Errorf("ranks %d: the topology has %d hosts", tr.Ranks, t.NICs())
	}
	s := &traceSet{file: tr.File}
	groups, err := tr.readGroups(read)
	if err != nil {
		return nil, err
	}
	if err := s.read(tr.Ranks, t.NICs(), groups, read); err != nil {
		return nil, err
	}
	s.builder = tr.importer(len(s.traces))
	if err := s.make(); err != nil {
		return nil, err
	}
	return s.flows, nil
}

// name returns the file of a rank.
func (s *traceSet) name(rank int) string {
	return strings.Replace(s.file, "*", strconv.Itoa(rank), 1)
}

// read reads the files of the given number of ranks, or all existing files if ranks is 0.
func (s *traceSet) read(ranks, hosts int, groups map[string][]int, read Reader) error {
	room, missing := maxMessages, -1
	for r := 0; r <= hosts && (ranks == 0 || r < ranks); r++ {
		text, err := read(s.name(r))
		switch {
		case errors.Is(err, fs.ErrNotExist) && ranks == 0 && r > 0:
			missing = cmp.Or(missing+1, r+1) - 1
			continue
		case err != nil:
			return fmt.Errorf("reading the trace of rank %d, %q: %w", r, s.name(r), err)
		case missing >= 0:
			return fmt.Errorf("there is no trace of rank %d, %q: there is one of rank %d", missing, s.name(missing), r)
		case r == hosts:
			return fmt.Errorf("%s: the topology has %d hosts: want at most as many traces", s.name(r), hosts)
		}
		one := &trace{file: s.name(r), rank: r, groups: map[string][]int{}, known: map[string]place{}}
		for name, list := range groups {
			one.groups[name] = list
		}
		if err := one.parse(text, room); err != nil {
			return err
		}
		room -= len(one.nodes)
		s.traces = append(s.traces, one)
	}
	return nil
}

// readGroups reads a file of process groups as ASTRA-sim does: a JSON object with a list of ranks
// for each name.
func (tr *Traffic) readGroups(read Reader) (map[string][]int, error) {
	if tr.CommGroups == "" {
		return nil, nil
	}
	text, err := read(tr.CommGroups)
	if err != nil {
		return nil, fmt.Errorf("reading comm-groups %q: %w", tr.CommGroups, err)
	}
	groups := map[string][]int{}
	if err := json.Unmarshal(text, &groups); err != nil {
		return nil, fmt.Errorf("%s: %w: want an object such as {\"1\": [0, 1]}", tr.CommGroups, err)
	}
	return groups, nil
}

// make makes the flows of all nodes, and then their dependencies.
func (s *traceSet) make() error {
	if err := s.points(); err != nil {
		return err
	}
	if err := s.collectives(); err != nil {
		return err
	}
	for _, tr := range s.traces {
		for i := range tr.nodes {
			n := &tr.nodes[i]
			if n.begins < 0 {
				continue
			}
			f := &s.flows[n.begins]
			var after []int32
			if f.Waits != nil {
				after = f.Waits.After // the receive waits for the same flows as the message
			}
			for _, d := range n.deps {
				if at := tr.nodes[d].ends; at >= 0 {
					after = append(after, at)
				}
			}
			delay := time.Duration(0)
			if n.kind >= etMemLoad && n.kind <= etComp {
				delay = time.Duration(n.micros) * time.Microsecond
			}
			if f.Waits, f.Start = nil, delay; len(after) > 0 {
				f.Waits, f.Start = &Waits{After: after, Delay: delay}, 0
			}
		}
	}
	if !slices.ContainsFunc(s.flows, func(f Flow) bool { return !f.Compute }) {
		return fmt.Errorf("%s: the traces of %d ranks send nothing", s.file, len(s.traces))
	}
	return s.cycle()
}

// points makes a flow for each send and a computation for each other node. For a collective, the
// computation marks its start.
func (s *traceSet) points() error {
	type match struct {
		src, dst int
		tag      int64
	}
	type sent struct {
		tr *trace
		n  *etNode
	}
	sends := map[match][]sent{}
	nodes := 0
	for _, tr := range s.traces {
		nodes += len(tr.nodes)
	}
	s.flows = slices.Grow(s.flows, nodes)
	for _, tr := range s.traces {
		for i := range tr.nodes {
			n := &tr.nodes[i]
			if n.kind != etSend {
				if len(n.deps) > 0 || n.kind >= etRecv || n.kind >= etMemLoad && n.micros > 0 {
					n.begins = s.compute(tr.rank, 0, nil)
					n.ends = n.begins
				}
				continue
			}
			dst, err := s.peer(tr, n, n.src, n.dst, "comm_dst")
			if err != nil {
				return err
			}
			n.begins = s.add(tr.rank, dst, n.bytes)
			n.ends = n.begins
			m := match{tr.rank, dst, n.tag}
			sends[m] = append(sends[m], sent{tr, n})
		}
	}
	for _, tr := range s.traces {
		for i := range tr.nodes {
			n := &tr.nodes[i]
			if n.kind != etRecv {
				continue
			}
			src, err := s.peer(tr, n, n.dst, n.src, "comm_src")
			if err != nil {
				return err
			}
			m := match{src, tr.rank, n.tag}
			if len(sends[m]) == 0 {
				return tr.wrong(n, "it receives from rank %d with tag %d, which sends nothing more with it", src, n.tag)
			}
			from := sends[m][0]
			if sends[m] = sends[m][1:]; from.n.bytes != n.bytes {
				return tr.wrong(n, "comm_size %d: its send, node %d of rank %d, has %d", n.bytes, from.n.id, src, from.n.bytes)
			}
			s.flows[n.begins].Waits = &Waits{After: []int32{from.n.ends}}
		}
	}
	for _, tr := range s.traces { // visit ranks and nodes in order
		for i := range tr.nodes {
			n := &tr.nodes[i]
			if n.kind != etSend {
				continue
			}
			if rest := sends[match{tr.rank, int(n.dst), n.tag}]; slices.ContainsFunc(rest, func(r sent) bool { return r.n == n }) {
				return tr.wrong(n, "it sends to rank %d with tag %d, which does not receive it", n.dst, n.tag)
			}
		}
	}
	return nil
}

// peer returns the other rank of a send or a receive, and checks the node.
func (s *traceSet) peer(tr *trace, n *etNode, own, other int32, key string) (int, error) {
	switch {
	case other < 0:
		return 0, tr.wrong(n, "%s is missing", key)
	case int(other) >= len(s.traces) || int(other) == tr.rank:
		return 0, tr.wrong(n, "%s %d: want another rank, 0 to %d", key, other, len(s.traces)-1)
	case own >= 0 && int(own) != tr.rank:
		return 0, tr.wrong(n, "rank %d has an operation of rank %d", tr.rank, own)
	case n.bytes < 1:
		return 0, tr.wrong(n, "comm_size: want a number above 0")
	}
	return int(other), nil
}

// collectives makes the messages of all collectives.
func (s *traceSet) collectives() error {
	groups, err := s.grouped()
	if err != nil {
		return err
	}
	messages := len(s.flows)
	for _, make := range []bool{false, true} { // count them first
		for _, g := range groups {
			for k := range g.nodes[0] {
				one, err := s.operation(g, k)
				if err != nil {
					return err
				}
				if one == nil || len(g.ranks) == 1 {
					continue
				}
				if messages += one.messages(len(g.ranks)) + len(g.ranks); !make {
					continue
				}
				began := indexed(len(g.ranks), func(r int) int32 { return g.nodes[r][k].begins })
				for r, at := range s.once(one, g.ranks, began, 0) {
					g.nodes[r][k].ends = at
				}
			}
			if err := budget(messages); err != nil && !make {
				return fmt.Errorf("%s: %w", s.file, err)
			}
		}
	}
	return nil
}

// grouped returns the groups in the order in which the ranks name them.
func (s *traceSet) grouped() ([]*etGroup, error) {
	var list []*etGroup
	byKey := map[string]*etGroup{}
	for _, tr := range s.traces {
		for i := range tr.nodes {
			n := &tr.nodes[i]
			if n.kind != etColl {
				continue
			}
			p, ok := tr.known[n.group]
			if !ok {
				ranks, err := s.members(tr, n)
				if err != nil {
					return nil, err
				}
				key := fmt.Sprint(ranks)
				if byKey[key] == nil {
					byKey[key] = &etGroup{name: n.group, ranks: ranks, nodes: make([][]*etNode, len(ranks))}
					list = append(list, byKey[key])
				}
				p = place{byKey[key], slices.Index(ranks, tr.rank)}
				tr.known[n.group] = p
			}
			p.group.nodes[p.at] = append(p.group.nodes[p.at], n)
		}
	}
	for _, g := range list {
		for at, rank := range g.ranks {
			if have, want := len(g.nodes[at]), len(g.nodes[0]); have != want {
				return nil, fmt.Errorf("%s: %d collectives of the %s: rank %d has %d", s.name(rank), have, g, g.ranks[0], want)
			}
		}
	}
	return list, nil
}

// members returns the ranks of a collective.
func (s *traceSet) members(tr *trace, n *etNode) ([]int, error) {
	ranks, ok := tr.groups[n.group]
	switch {
	case !ok && n.group != "" && n.group != "0":
		return nil, tr.wrong(n, "pg_name %q: neither comm-groups nor the trace has this group", n.group)
	case len(ranks) == 0:
		return s.hosts, nil
	}
	seen := make([]bool, len(s.traces))
	for _, r := range ranks {
		if r < 0 || r >= len(s.traces) || seen[r] {
			return nil, tr.wrong(n, "pg_name %q: rank %d of the group: want different ranks, 0 to %d", n.group, r, len(s.traces)-1)
		}
		seen[r] = true
	}
	if !slices.Contains(ranks, tr.rank) {
		return nil, tr.wrong(n, "pg_name %q: rank %d is not in the group", n.group, tr.rank)
	}
	return ranks, nil
}

// operation returns the k-th collective of a group. It returns an error if the group's nodes
// disagree on it. For a collective without bytes, which Chakra's converter writes as NONE, it
// returns nil.
func (s *traceSet) operation(g *etGroup, k int) (*Traffic, error) {
	n := g.nodes[0][k]
	first := s.traces[g.ranks[0]]
	if n.comm < 0 || int(n.comm) >= len(etOperations) || etOperations[n.comm] == "" {
		name := strconv.Itoa(int(n.comm))
		if n.comm >= 0 && int(n.comm) < len(etCollectives) {
			name = etCollectives[n.comm] + ", which has a root that traces do not state"
		}
		return nil, first.wrong(n, "comm_type %s: want ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST or BARRIER", name)
	}
	for at, list := range g.nodes {
		if o := list[k]; o.comm != n.comm || o.bytes != n.bytes {
			return nil, s.traces[g.ranks[at]].wrong(o, "%s of %d bytes: node %d of rank %d, the same collective of the %s, is %s of %d bytes",
				etName(o.comm), o.bytes, n.id, g.ranks[0], g, etName(n.comm), n.bytes)
		}
	}
	op, size := etOperations[n.comm], n.bytes
	switch {
	case op == barrier:
		op, size = allReduce, 1
	case size == 0:
		return nil, nil
	case size < 0:
		return nil, first.wrong(n, "comm_size is missing")
	case op == allGather: // comm_size is the size of one rank's share
		if size > math.MaxInt64/int64(len(g.ranks)) {
			return nil, first.wrong(n, "comm_size %d of %d ranks: too large", size, len(g.ranks))
		}
		size *= int64(len(g.ranks))
	}
	one, err := s.as(op, size, len(g.ranks))
	if err != nil {
		return nil, first.wrong(n, "%w", err)
	}
	return one, nil
}

// etName returns the name of a CollectiveCommType.
func etName(t int16) string {
	if t >= 0 && int(t) < len(etCollectives) {
		return etCollectives[t]
	}
	return strconv.Itoa(int(t))
}

// cycle returns an error if nodes wait for each other.
func (s *traceSet) cycle() error {
	list := sim.Cycle(len(s.flows), func(i int) (after, afterAck []int32) {
		if w := s.flows[i].Waits; w != nil {
			return w.After, w.AfterAck
		}
		return nil, nil
	})
	if list == nil {
		return nil
	}
	names := map[int]string{}
	for _, tr := range s.traces {
		for i := range tr.nodes {
			if n := &tr.nodes[i]; n.begins >= 0 {
				name := fmt.Sprintf("node %d of rank %d", n.id, tr.rank)
				names[int(n.begins)], names[int(n.ends)] = name, name
			}
		}
	}
	var steps []string
	for _, at := range list {
		if name, ok := names[at]; ok && !slices.Contains(steps, name) {
			steps = append(steps, name)
		}
	}
	const most = 8
	if len(steps) > most {
		steps = append(steps[:most], fmt.Sprintf("%d more", len(steps)-most))
	}
	return fmt.Errorf("%s: nodes wait for each other: %s", s.file, strings.Join(append(steps, steps[0]), " after "))
}
