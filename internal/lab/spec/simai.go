package spec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// This file reads the workloads of SimAI and AICB: a header with the parallelism,
// the number of layers, and for each layer the computation, the collective and its
// bytes, each for the forward pass, the input gradients and the weight gradients.
// Rank i is host i.
//
// As in SimAI, a tensor-parallel group is consecutive ranks, and a data-parallel group
// has the ranks with the same place in their tensor-parallel groups. The collectives of
// the forward pass and of input gradients block. The collectives of weight gradients
// overlap with the layers that follow, and the next pass waits for them layer by layer.

// The policies of a workload: the first word of its header.
const (
	microPolicy       = "MICRO"
	dataPolicy        = "DATA"
	modelPolicy       = "MODEL"
	inferencePolicy   = "DISTRIBUTED_INFERENCE"
	transformerPolicy = "HYBRID_TRANSFORMER"
	recomputePolicy   = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
)

var policies = []string{microPolicy, dataPolicy, modelPolicy, inferencePolicy, transformerPolicy, recomputePolicy}

// leastForward is the smallest collective of a forward pass. SimAI enlarges smaller ones.
const leastForward = 4096

// longestPhase limits the computation of a layer in ns.
const longestPhase = int64(1e15)

// isWorkload reports whether a text begins as a workload does.
func isWorkload(text []byte) bool {
	f := firstLine(text)
	return len(f) > 0 && (slices.Contains(policies, f[0]) || strings.HasPrefix(f[0], "HYBRID_"))
}

// A workloadFile is the state of parsing a SimAI workload.
type workloadFile struct {
	*builder
	policy     string
	tp, ep     int
	gpus       int   // 0: not stated
	checkpoint []int // layers that keep their activations
	initiate   []int // layers that repeat activations before computing gradients
	layers     []layer

	idle  time.Duration // computation time since the last flow
	ready []int32       // by rank: its last blocking operation, or -1
	late  [][]int32     // collectives of weight gradients, by layer and rank
}

// A layer is a line of the file.
type layer struct {
	line                  int
	forward, input, grads phase
	update                time.Duration // time after each collective
}

// A phase is a computation and the collective after it.
type phase struct {
	compute time.Duration
	op      string // "": none
	group   string // tp, dp, ep or dp-ep
	bytes   int64
}

// parseWorkload reads a workload and returns the flows of its passes.
func (tr *Traffic) parseWorkload(text []byte, t *fabric.Topology) ([]Flow, error) {
	if err := tr.checkImport(); err != nil {
		return nil, err
	}
	if tr.CommGroups != "" {
		return nil, fmt.Errorf("comm-groups %q: a SimAI workload has its groups in its header", tr.CommGroups)
	}
	w := &workloadFile{tp: 0, ep: 1}
	n, err := w.read(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", tr.File, n, err)
	}
	ranks := tr.Ranks
	switch {
	case ranks == 0 && w.gpus > t.NICs():
		return nil, fmt.Errorf("%s:1: all_gpus %d: the topology has %d hosts: want ranks: to run it with fewer", tr.File, w.gpus, t.NICs())
	case ranks == 0 && w.gpus > 0:
		ranks = w.gpus
	case ranks == 0:
		ranks = t.NICs()
	case ranks > t.NICs():
		return nil, fmt.Errorf("ranks %d: the topology has %d hosts", ranks, t.NICs())
	}
	if w.tp == 0 {
		w.tp = ranks
	}
	if ranks%w.tp != 0 {
		return nil, fmt.Errorf("%s:1: model_parallel_NPU_group %d of %d ranks: want a divisor", tr.File, w.tp, ranks)
	}
	if dp := ranks / w.tp; dp%w.ep != 0 {
		return nil, fmt.Errorf("%s:1: ep %d of %d data-parallel groups (%d ranks): want a divisor", tr.File, w.ep, dp, ranks)
	}
	w.builder = tr.importer(ranks)
	w.ready = slices.Repeat([]int32{-1}, ranks)
	w.late = make([][]int32, len(w.layers))
	if n, err := w.check(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", tr.File, n, err)
	}
	for range max(1, tr.Repeat) {
		w.pass()
	}
	if !slices.ContainsFunc(w.flows, func(f Flow) bool { return !f.Compute }) {
		return nil, fmt.Errorf("%s: no collective has bytes for %d ranks", tr.File, ranks)
	}
	return w.flows, nil
}

// read reads the text. It returns the line of an error.
func (w *workloadFile) read(text string) (line int, err error) {
	count := -1
	for row := range strings.Lines(text) {
		line++
		f := strings.Fields(row)
		switch {
		case line == 1:
			err = w.header(f)
		case len(f) == 0:
		case count < 0:
			if count, err = strconv.Atoi(f[0]); err != nil || count < 1 || len(f) != 1 {
				err = fmt.Errorf("%q: want the number of layers", strings.TrimSpace(row))
			}
		case len(w.layers) == count:
			err = fmt.Errorf("line 2 states %d layers: the file has more", count)
		default:
			err = w.layer(f, line)
		}
		if err != nil {
			return line, err
		}
	}
	if count != len(w.layers) {
		return min(line, 2), fmt.Errorf("%d layers: the file has %d", max(count, 0), len(w.layers))
	}
	for _, l := range slices.Concat(w.checkpoint, w.initiate) {
		if l >= count {
			return 1, fmt.Errorf("checkpoint layer %d: want 0 to %d", l, count-1)
		}
	}
	for _, l := range w.initiate {
		if !slices.ContainsFunc(w.checkpoint, func(c int) bool { return c <= l }) {
			return 1, fmt.Errorf("checkpoint_initiates %d: there is no checkpoint at or below this layer", l)
		}
	}
	return 0, nil
}

// header reads the policy and the sizes of groups.
func (w *workloadFile) header(f []string) error {
	w.policy = f[0]
	if !slices.Contains(policies, w.policy) {
		return fmt.Errorf("policy %s: want %s", w.policy, orList(policies))
	}
	for i := 1; i < len(f); i++ {
		key := strings.TrimSuffix(f[i], ":")
		i++
		if i == len(f) {
			return fmt.Errorf("%s: the number is missing", key)
		}
		v, err := strconv.Atoi(strings.TrimSuffix(f[i], ".0"))
		if err != nil || v < 0 || v > math.MaxInt32 {
			return fmt.Errorf("%s %s: want a whole number", key, f[i])
		}
		switch key {
		case "model_parallel_NPU_group":
			w.tp = v
		case "ep", "expert_parallel_npu_group":
			if w.ep = v; v == 0 {
				return fmt.Errorf("%s 0: want 1 or more", key)
			}
		case "all_gpus":
			w.gpus = v
		case "checkpoints", "checkpoint_initiates":
			if v > len(f)-1-i {
				return fmt.Errorf("%s %d: want as many layers after it", key, v)
			}
			var list []int
			for _, text := range f[i+1 : i+1+v] {
				l, err := strconv.Atoi(text)
				if err != nil || l < 0 {
					return fmt.Errorf("%s: layer %q: want a number from 0", key, text)
				}
				list = append(list, l)
			}
			if i += v; key == "checkpoints" {
				w.checkpoint = list
			} else {
				w.initiate = list
			}
		case "pp", "vpp", "ga", "pp_comm":
		default:
			return fmt.Errorf("%q: want model_parallel_NPU_group, ep, pp, vpp, ga, all_gpus, checkpoints, checkpoint_initiates or pp_comm", key)
		}
	}
	return nil
}

// layer reads the line of a layer.
func (w *workloadFile) layer(f []string, line int) error {
	const columns = 12
	if len(f) != columns {
		return fmt.Errorf("%d columns: want %d: a name, a dependency, time, collective and bytes of three phases, and the update time", len(f), columns)
	}
	if _, err := strconv.Atoi(f[1]); err != nil {
		return fmt.Errorf("dependency %q: want a number", f[1])
	}
	l := layer{line: line}
	for i, p := range []*phase{&l.forward, &l.input, &l.grads} {
		usual := "tp"
		if p == &l.grads {
			usual = "dp"
		}
		if err := p.read(f[2+3*i:5+3*i], usual); err != nil {
			return err
		}
	}
	update, err := nanoseconds(f[11])
	if err != nil {
		return fmt.Errorf("update time: %w", err)
	}
	l.update = update
	w.layers = append(w.layers, l)
	return nil
}

func nanoseconds(text string) (time.Duration, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > longestPhase {
		return 0, fmt.Errorf("%q: want nanoseconds, 0 to %d", text, longestPhase)
	}
	return time.Duration(v), nil
}

// operations are the collective operations of workloads.
var operations = map[string]string{
	"ALLREDUCE": allReduce, "ALLGATHER": allGather, "REDUCESCATTER": reduceScatter, "ALLTOALL": allToAll, "BROADCAST": broadcast,
}

// read reads the time, the collective and the bytes of a phase.
func (p *phase) read(f []string, usual string) (err error) {
	if p.compute, err = nanoseconds(f[0]); err != nil {
		return fmt.Errorf("computation: %w", err)
	}
	if p.bytes, err = strconv.ParseInt(f[2], 10, 64); err != nil || p.bytes < 0 {
		return fmt.Errorf("bytes %q: want a whole number", f[2])
	}
	if f[1] == "NONE" {
		return nil
	}
	name, group, ok := strings.Cut(f[1], "_")
	groups := map[string]string{"EP": "ep", "DP_EP": "dp-ep"}
	p.op, p.group = operations[name], groups[group]
	if !ok {
		p.group = usual
	}
	if p.op == "" || p.group == "" {
		return fmt.Errorf("collective %s: want NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, alone or with _EP or _DP_EP", f[1])
	}
	if p.bytes == 0 {
		p.op = ""
	}
	return nil
}

// groups returns the hosts of each group of a kind. Each rank is in one group; there are no groups
// if each would have a single rank.
func (w *workloadFile) groups(kind string) (list [][]int) {
	ranks := len(w.ready)
	first, step, size := 0, 1, w.tp // group of a rank
	for r := range ranks {
		within, block := r%w.tp, r/w.tp // position in its tensor-parallel group, and number of the group
		switch {
		case w.policy == dataPolicy || w.policy == modelPolicy || w.policy == microPolicy || w.policy == inferencePolicy:
			first, size = 0, ranks
		case kind == "tp":
			first = r - within
		case kind == "dp":
			first, step, size = within, w.tp, ranks/w.tp
		case kind == "ep":
			first, step, size = block/w.ep*w.ep*w.tp+within, w.tp, w.ep
		default:
			first, step, size = block%w.ep*w.tp+within, w.tp*w.ep, ranks/w.tp/w.ep
		}
		if first != r || size < 2 {
			continue
		}
		group := make([]int, size)
		for i := range group {
			group[i] = first + i*step
		}
		list = append(list, group)
	}
	return list
}

// check returns an error and its line if a collective is impossible or there are too many flows.
func (w *workloadFile) check() (line int, err error) {
	messages := 0
	for _, l := range w.layers {
		for _, p := range []phase{l.forward, l.input, l.grads} {
			if p.op == "" {
				continue
			}
			for _, g := range w.groups(p.group) {
				one, err := w.as(p.op, p.bytes, len(g))
				if err != nil {
					return l.line, err
				}
				messages += one.messages(len(g)) + len(g)
			}
			if err := budget(messages * max(1, w.Repeat)); err != nil {
				return l.line, err
			}
		}
	}
	return 0, nil
}

// pass adds the flows of a pass.
func (w *workloadFile) pass() {
	switch w.policy {
	case microPolicy: // all collectives are sequential
		for i := range w.layers {
			w.collective(&w.layers[i].grads, i, true)
		}
		return
	case inferencePolicy:
		w.forward(0, len(w.layers))
		return
	}
	w.forward(0, len(w.layers))
	for i := len(w.layers) - 1; i >= 0; i-- {
		l := &w.layers[i]
		if slices.Contains(w.initiate, i) && w.policy == recomputePolicy {
			from := 0
			for _, c := range w.checkpoint {
				if c <= i {
					from = max(from, c)
				}
			}
			w.forward(from, i)
		}
		if w.policy == dataPolicy {
			w.idle += l.grads.compute
			w.collective(&l.grads, i, false)
			if i > 0 {
				w.idle += l.input.compute
			}
			continue
		}
		w.idle += l.input.compute
		w.collective(&l.input, i, true)
		w.idle += l.grads.compute
		if w.policy != modelPolicy {
			w.collective(&l.grads, i, false)
		}
	}
}

// forward adds the forward pass of some layers.
func (w *workloadFile) forward(from, to int) {
	for i := from; i < to; i++ {
		l := &w.layers[i]
		if late := w.late[i]; late != nil { // wait for the weight gradients of the previous pass
			w.settle()
			for r, at := range late {
				w.ready[r] = w.join(r, at)
			}
			w.late[i] = nil
		}
		w.idle += l.forward.compute
		if w.policy != dataPolicy {
			p := l.forward
			if w.policy == recomputePolicy && p.bytes > 0 {
				p.bytes = max(p.bytes, leastForward)
			}
			w.collective(&p, i, true)
		}
	}
}

// join returns a dependency on a flow and on the earlier dependencies of a rank.
func (w *workloadFile) join(rank int, at int32) int32 {
	if w.ready[rank] < 0 {
		return at
	}
	return w.compute(rank, 0, []int32{w.ready[rank], at})
}

// settle adds the computations of all ranks since their last flows.
func (w *workloadFile) settle() {
	if w.idle == 0 {
		return
	}
	for r := range w.ready {
		var after []int32
		if w.ready[r] >= 0 {
			after = []int32{w.ready[r]}
		}
		w.ready[r] = w.compute(r, w.idle, after)
	}
	w.idle = 0
}

// collective adds the collective of a phase in all its groups. A blocking collective delays all
// later work of its ranks.
func (w *workloadFile) collective(p *phase, layer int, blocks bool) {
	if p.op == "" {
		return
	}
	groups := w.groups(p.group)
	if len(groups) == 0 {
		return
	}
	w.settle()
	ends := make([]int32, len(w.ready))
	for _, g := range groups {
		one, err := w.as(p.op, p.bytes, len(g))
		if err != nil {
			panic(errors.New("unchecked: " + err.Error()))
		}
		began := make([]int32, len(g))
		for i, r := range g {
			began[i] = w.ready[r]
		}
		for i, at := range w.once(one, g, began, w.layers[layer].update) {
			ends[g[i]] = at
		}
	}
	if blocks {
		w.ready = ends
	} else {
		w.late[layer] = ends
	}
}
