package spec

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// The collective operations. Size is the buffer of each rank, as in nccl-tests.
const (
	allReduce     = "all-reduce"     // every rank gets the sum of all buffers
	reduceScatter = "reduce-scatter" // every rank gets its share of the sum
	allGather     = "all-gather"     // every rank gets the shares of all ranks
	allToAll      = "all-to-all"     // every rank sends a different share of its buffer to each rank
	broadcast     = "broadcast"      // the first rank sends its buffer to all others
	sendRecv      = "send-recv"      // every rank sends its buffer to the next one
)

// The algorithms of collective operations.
const (
	ringAlgorithm   = "ring"
	treeAlgorithm   = "tree"
	doubleTree      = "double-tree"
	halvingDoubling = "halving-doubling"
	directAlgorithm = "direct"
)

// algorithms lists the algorithms of each operation, the default first.
var algorithms = map[string][]string{
	allReduce:     {ringAlgorithm, treeAlgorithm, doubleTree, halvingDoubling, directAlgorithm},
	reduceScatter: {ringAlgorithm, halvingDoubling, directAlgorithm},
	allGather:     {ringAlgorithm, halvingDoubling, directAlgorithm},
	allToAll:      {directAlgorithm},
	broadcast:     {ringAlgorithm, treeAlgorithm, directAlgorithm},
	sendRecv:      {directAlgorithm},
}

// Collectives lists the operations.
var Collectives = []string{allReduce, reduceScatter, allGather, allToAll, broadcast, sendRecv}

// The assignments of hosts to the ranks of groups.
const (
	localOrder   = "local"   // a group has consecutive hosts
	stridedOrder = "strided" // consecutive hosts belong to different groups
	randomOrder  = "random"  // random, from the seed
)

// Orders lists the orders.
var Orders = []string{localOrder, stridedOrder, randomOrder}

// The state that messages between two ranks share.
const (
	persistentConnections = "persistent"  // the congestion state
	messageConnections    = "per-message" // nothing
	queuePair             = "queue-pair"  // the congestion state, the source port and the state of entropy
)

var connections = []string{persistentConnections, messageConnections, queuePair}

// checkConnections reports connections that the traffic cannot have.
func (tr *Traffic) checkConnections() error {
	if tr.Connections != "" && tr.Kind == "udp" {
		return fmt.Errorf("connections %s with transport udp: want it with a transport that has state", tr.Connections)
	}
	return checkConnections(tr.Connections)
}

func checkConnections(name string) error {
	if name != "" && !slices.Contains(connections, name) {
		return fmt.Errorf("connections %q: want %s", name, orList(connections))
	}
	return nil
}

// maxMessages limits the messages that one traffic may generate.
const maxMessages = 4 << 20

// BusFactor returns the ratio of bus bandwidth to algorithm bandwidth, as defined by nccl-tests;
// 0 for flow lists.
func (i *Instance) BusFactor() float64 {
	n := float64(i.Ranks)
	switch i.Kind {
	case allReduce:
		return 2 * (n - 1) / n
	case reduceScatter, allGather, allToAll:
		return (n - 1) / n
	case broadcast, sendRecv:
		return 1
	}
	return 0
}

// checkCollective fills in the defaults of a collective. It returns an error if the collective is
// invalid for the number of hosts.
func (tr *Traffic) checkCollective(hosts int) error {
	list, ok := algorithms[tr.Collective]
	if !ok {
		return fmt.Errorf("collective %q: want one of %s", tr.Collective, orList(Collectives))
	}
	if tr.Algorithm == "" {
		tr.Algorithm = list[0]
	}
	if !slices.Contains(list, tr.Algorithm) {
		return fmt.Errorf("algorithm %q of %s: want %s", tr.Algorithm, tr.Collective, orList(list))
	}
	ranks, err := tr.rankCount(hosts)
	switch {
	case err != nil:
		return err
	case tr.Order != "" && !slices.Contains(Orders, tr.Order):
		return fmt.Errorf("order %q: want %s", tr.Order, orList(Orders))
	case tr.Size == 0:
		return fmt.Errorf("collective %s: want size, the bytes of the buffer of a rank", tr.Collective)
	case tr.splits() && int64(tr.Size) < int64(ranks):
		return fmt.Errorf("size %v of %d ranks: want at least a byte for each rank", tr.Size, ranks)
	case tr.Algorithm == halvingDoubling && bits.OnesCount(uint(ranks)) != 1:
		return fmt.Errorf("algorithm %s of %d ranks: want a power of two", tr.Algorithm, ranks)
	case tr.Window < 0 || tr.Repeat < 0 || tr.Chunks < 0:
		return fmt.Errorf("window %d, repeat %d, chunks %d: want 0 or more", tr.Window, tr.Repeat, tr.Chunks)
	case tr.Window > 0 && tr.Algorithm != directAlgorithm:
		return fmt.Errorf("window %d with algorithm %s: only %s sends several messages at once", tr.Window, tr.Algorithm, directAlgorithm)
	case tr.Chunks > 1 && !tr.pipelines():
		return fmt.Errorf("chunks %d: algorithm %s of %s is not pipelined", tr.Chunks, tr.Algorithm, tr.Collective)
	case int64(max(tr.Chunks, 1)) > int64(tr.Size):
		return fmt.Errorf("chunks %d of %v: want at least a byte for each", tr.Chunks, tr.Size)
	}
	if n := tr.messages(ranks) * max(tr.Groups, 1) * max(tr.Repeat, 1); n > maxMessages || n < 0 {
		return fmt.Errorf("%s of %d ranks, %d times: more than %d messages", tr.Collective, ranks, max(tr.Repeat, 1), maxMessages)
	}
	return nil
}

// own reports whether the traffic has a key that only collectives use.
func (tr *Traffic) own() bool {
	return tr.Algorithm != "" || tr.Order != "" ||
		tr.Ranks != 0 || tr.Groups != 0 || tr.Window != 0 || tr.Chunks != 0 || tr.Repeat != 0 || tr.Compute != 0
}

// rankCount returns the ranks of a group.
func (tr *Traffic) rankCount(hosts int) (int, error) {
	groups := max(tr.Groups, 1)
	ranks := tr.Ranks
	if ranks == 0 {
		ranks = hosts / groups
		if ranks*groups != hosts {
			return 0, fmt.Errorf("groups %d of %d hosts: want a divisor, or ranks", groups, hosts)
		}
	}
	switch {
	case tr.Groups < 0 || ranks < 2:
		return 0, fmt.Errorf("groups %d of %d ranks: want 2 ranks or more in each group", tr.Groups, ranks)
	case ranks > hosts || ranks*groups > hosts:
		return 0, fmt.Errorf("groups %d of %d ranks: there are %d hosts", groups, ranks, hosts)
	}
	return ranks, nil
}

// splits reports whether each rank's buffer is split into one share per rank.
func (tr *Traffic) splits() bool {
	return tr.Collective != broadcast && tr.Collective != sendRecv && tr.Algorithm != treeAlgorithm && tr.Algorithm != doubleTree
}

// pipelines reports whether the algorithm forwards a buffer in chunks.
func (tr *Traffic) pipelines() bool {
	return tr.Algorithm == treeAlgorithm || tr.Algorithm == doubleTree || tr.Collective == broadcast && tr.Algorithm == ringAlgorithm
}

// messages returns the number of messages that a group sends, including computations.
func (tr *Traffic) messages(ranks int) int {
	n, chunks := ranks, max(tr.Chunks, 1)
	both := 1
	if tr.Collective == allReduce {
		both = 2
	}
	switch {
	case tr.Collective == sendRecv:
		return n
	case tr.Collective == broadcast:
		return (n - 1) * chunks
	case tr.Algorithm == treeAlgorithm:
		return 2 * (n - 1) * chunks
	case tr.Algorithm == doubleTree:
		return 4 * (n - 1) * chunks
	case tr.Algorithm == halvingDoubling:
		return both * n * bits.Len(uint(n-1))
	}
	return both*n*(n-1) + n
}

// A builder makes the flows of a collective. Ranks of the current group are indices in hosts.
type builder struct {
	*Traffic
	flows    []Flow
	instance *Instance
	hosts    []int
	began    [][]int32          // by rank: the dependencies of its first messages
	gated    bool               // all messages of a rank wait for its dependencies
	numbers  map[[2]int32]int32 // number of the connection between two hosts
}

// collective makes the flows of all iterations of all groups.
func (d *flowMaker) collective() []Flow {
	b := &builder{Traffic: d.Traffic, numbers: map[[2]int32]int32{}}
	ranks, _ := d.rankCount(len(d.from)) // checked when the experiment was loaded
	repeat := max(d.Repeat, 1)
	instances := make([]*Instance, repeat)
	for i := range instances {
		instances[i] = &Instance{Kind: d.Collective, Bytes: int64(d.Size), Ranks: ranks, Iteration: i}
	}
	groups := d.ranked(ranks)
	b.flows = make([]Flow, 0, len(groups)*repeat*d.messages(ranks))
	for _, group := range groups {
		b.hosts = group
		b.began = make([][]int32, ranks)
		for i := range instances {
			b.instance = instances[i]
			first := len(b.flows)
			b.operation()
			if i+1 < repeat {
				b.barrier(first)
			}
		}
	}
	for i := range b.flows {
		b.flows[i].Start += time.Duration(d.Start)
	}
	return b.flows
}

// ranked returns the hosts of each group, by rank.
func (d *flowMaker) ranked(ranks int) [][]int {
	count := max(d.Groups, 1)
	hosts := slices.Clone(d.from)
	if d.Order == randomOrder {
		d.rng.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	}
	groups := make([][]int, count)
	for g := range groups {
		for r := range ranks {
			at := g*ranks + r
			if d.Order == stridedOrder {
				at = g + r*count
			}
			groups[g] = append(groups[g], hosts[at])
		}
	}
	return groups
}

// add adds a message between ranks. It waits for the messages after to arrive, or otherwise for
// the start of its iteration.
func (b *builder) add(src, dst int, bytes int64, after ...int32) int32 {
	f := Flow{Src: b.hosts[src], Dst: b.hosts[dst], Bytes: bytes, Instance: b.instance}
	if b.Connections != messageConnections {
		pair := [2]int32{int32(f.Src), int32(f.Dst)}
		if b.numbers[pair] == 0 {
			b.numbers[pair] = int32(len(b.numbers) + 1)
		}
		f.Connection, f.QueuePair = b.numbers[pair], b.Connections == queuePair
	}
	return b.put(f, src, after)
}

func (b *builder) put(f Flow, rank int, after []int32) int32 {
	if b.began != nil && (len(after) == 0 || b.gated) {
		after = slices.Concat(after, b.began[rank])
	}
	if len(after) > 0 {
		f.Waits = &Waits{After: slices.Clone(after)}
	}
	b.flows = append(b.flows, f)
	return int32(len(b.flows) - 1)
}

// compute adds a computation on a rank.
func (b *builder) compute(rank int, length time.Duration, after []int32) int32 {
	n := b.put(Flow{Src: b.hosts[rank], Dst: b.hosts[rank], Compute: true, Instance: b.instance}, rank, after)
	if w := b.flows[n].Waits; w != nil {
		w.Delay = length
	} else {
		b.flows[n].Start = length
	}
	return n
}

// barrier makes each rank wait before its next iteration. It waits until it has
// computed and received all messages of the current iteration; first is the
// iteration's first message.
func (b *builder) barrier(first int) {
	for rank, after := range b.received(first) {
		b.began[rank] = []int32{b.compute(rank, time.Duration(b.Compute), after)}
	}
}

// received lists, by rank, the messages to it from first on.
func (b *builder) received(first int) [][]int32 {
	return b.messagesOf(first, func(f *Flow) int { return f.Dst })
}

// sent lists, by rank, its messages from first on.
func (b *builder) sent(first int) [][]int32 {
	return b.messagesOf(first, func(f *Flow) int { return f.Src })
}

// messagesOf lists messages from first on by the rank at one of their ends.
func (b *builder) messagesOf(first int, end func(*Flow) int) [][]int32 {
	rank := map[int]int{}
	for r, h := range b.hosts {
		rank[h] = r
	}
	lists := make([][]int32, len(b.hosts))
	for i := first; i < len(b.flows); i++ {
		if f := &b.flows[i]; !f.Compute {
			r := rank[end(f)]
			lists[r] = append(lists[r], int32(i))
		}
	}
	return lists
}

// share returns the bytes of share i of n.
func share(bytes int64, i, n int) int64 {
	s := bytes / int64(n)
	if int64(i) < bytes%int64(n) {
		s++
	}
	return s
}

// operation makes the messages of one iteration in one group.
func (b *builder) operation() {
	n := len(b.hosts)
	switch {
	case b.Collective == sendRecv:
		for r := range n {
			b.add(r, (r+1)%n, int64(b.Size))
		}
	case b.Collective == broadcast:
		b.broadcast()
	case b.Algorithm == treeAlgorithm:
		b.tree(int64(b.Size), sequence(0, n))
	case b.Algorithm == doubleTree:
		order := sequence(0, n)
		b.tree(share(int64(b.Size), 0, 2), order)
		slices.Reverse(order) // inner nodes of one tree are leaves of the other
		b.tree(share(int64(b.Size), 1, 2), order)
	case b.Algorithm == halvingDoubling:
		b.halvingDoubling()
	case b.Algorithm == directAlgorithm:
		b.direct()
	default:
		b.ring()
	}
}

// ring passes each rank's share around the ring. Reduce-scatter adds to the shares and all-gather
// copies them. All-reduce does one after the other.
func (b *builder) ring() {
	n := len(b.hosts)
	steps := n - 1
	if b.Collective == allReduce {
		steps *= 2
	}
	if b.gated {
		b.orderedRing(steps)
		return
	}
	for c := range n {
		var before []int32
		for s := range steps {
			before = []int32{b.add((c+s)%n, (c+s+1)%n, share(int64(b.Size), c, n), before...)}
		}
	}
}

// orderedRing is ring, except that each rank sends one share at a time. Otherwise a
// late rank would send several shares at once.
func (b *builder) orderedRing(steps int) {
	n := len(b.hosts)
	before := make([]int32, n) // by share: the latest message with it
	for s := range steps {
		now := make([]int32, n)
		for c := range n {
			var after []int32
			if s > 0 {
				after = []int32{before[c], before[(c+1)%n]} // arrival of the share, and this rank's previous message
			}
			now[c] = b.add((c+s)%n, (c+s+1)%n, share(int64(b.Size), c, n), after...)
		}
		before = now
	}
}

// tree reduces a buffer up a binary tree of ranks, and broadcasts the sum down again, chunk by
// chunk. order assigns ranks to the nodes.
func (b *builder) tree(bytes int64, order []int) {
	n, chunks := len(order), max(b.Chunks, 1)
	for c := range chunks {
		size := share(bytes, c, chunks)
		if size == 0 {
			continue
		}
		arrived := make([][]int32, n) // by node: the chunk from its children
		for i := n - 1; i > 0; i-- {
			parent := (i - 1) / 2
			arrived[parent] = append(arrived[parent], b.add(order[i], order[parent], size, arrived[i]...))
		}
		b.down(size, order, arrived[0])
	}
}

// down passes a chunk down a tree once the root has it.
func (b *builder) down(size int64, order []int, root []int32) {
	has := make([][]int32, len(order))
	has[0] = root
	for i := 1; i < len(order); i++ {
		parent := (i - 1) / 2
		has[i] = []int32{b.add(order[parent], order[i], size, has[parent]...)}
	}
}

func (b *builder) broadcast() {
	n, chunks := len(b.hosts), max(b.Chunks, 1)
	for c := range chunks {
		size := share(int64(b.Size), c, chunks)
		switch b.Algorithm {
		case treeAlgorithm:
			b.down(size, sequence(0, n), nil)
		case ringAlgorithm:
			var before []int32
			for r := range n - 1 {
				before = []int32{b.add(r, r+1, size, before...)}
			}
		default:
			b.all(0, nil, func(int) int64 { return size })
		}
	}
}

// halvingDoubling exchanges halves with partners at half the distance in each step, and then the
// sums with partners at twice the distance (Thakur et al., 2005).
func (b *builder) halvingDoubling() {
	n := len(b.hosts)
	got := make([][]int32, n)
	step := func(distance int) {
		next := make([][]int32, n)
		for r := range n {
			next[r^distance] = []int32{b.add(r, r^distance, max(1, int64(b.Size)*int64(distance)/int64(n)), got[r]...)}
		}
		got = next
	}
	if b.Collective != allGather {
		for distance := n / 2; distance > 0; distance /= 2 {
			step(distance)
		}
	}
	if b.Collective != reduceScatter {
		for distance := 1; distance < n; distance *= 2 {
			step(distance)
		}
	}
}

// direct sends every share directly to its rank. For all-reduce, a rank then sends its sum when
// it has received all its shares.
func (b *builder) direct() {
	n := len(b.hosts)
	first := len(b.flows)
	for r := range n {
		b.all(r, nil, func(to int) int64 {
			if b.Collective == allGather {
				to = r
			}
			return share(int64(b.Size), to, n)
		})
	}
	if b.Collective != allReduce {
		return
	}
	for r, after := range b.received(first) {
		sum := b.compute(r, 0, after)
		b.all(r, []int32{sum}, func(int) int64 { return share(int64(b.Size), r, n) })
	}
}

// all sends a message from a rank to each other rank, starting with the next one. At most Window
// of them are unacknowledged.
func (b *builder) all(rank int, after []int32, bytes func(to int) int64) {
	n := len(b.hosts)
	var sent []int32
	for k := 1; k < n; k++ {
		to := (rank + k) % n
		at := b.add(rank, to, bytes(to), after...)
		if b.Window > 0 && len(sent) >= b.Window {
			b.flows[at].Waits = &Waits{AfterAck: []int32{sent[len(sent)-b.Window]}}
		}
		sent = append(sent, at)
	}
}
