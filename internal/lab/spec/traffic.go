package spec

import (
	_ "embed"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The patterns of Traffic.
const (
	AllToAll    = "all-to-all"  // from any host of From to any other host of To
	Halves      = "halves"      // from any of the first half to any of the second
	permutation = "permutation" // every host sends to one host of another leaf, and receives from one
	Incast      = "incast"      // a host sends a request, and many hosts answer at the same time
	pairs       = "pairs"       // between the given pairs
	burst       = "burst"       // all hosts of From at the same time, at stated times
	List        = "list"        // the flows of a file
	Collective  = "collective"  // the messages of a collective operation
)

// Patterns lists the patterns.
var Patterns = []string{AllToAll, Halves, permutation, Incast, pairs, burst, List, Collective}

// The capacity that a load refers to.
const (
	OfHosts  = "hosts"  // the total rate of the sending hosts
	OfFabric = "fabric" // the capacity of the links between leaves and spines in one direction
)

// Traffic describes the flows of an experiment: senders, receivers, sizes and
// arrivals.
type Traffic struct {
	Workload string `yaml:"workload"` // a distribution's name or file
	Size     Size   `yaml:"size"`     // all flows have this size instead
	Cut      Cut    `yaml:"cut"`      // limit for sizes from a distribution
	MinSize  Size   `yaml:"min-size"` // sizes are uniform from MinSize to Size
	Tail     bool   `yaml:"tail"`     // sizes from MinSize to Size are heavy-tailed (Pareto, 1.2) instead of uniform

	Pattern string   `yaml:"pattern"`
	From    []string `yaml:"from"`  // hosts, leaves, and ranges such as h1..h16; empty: all
	To      []string `yaml:"to"`    // hosts, leaves, ranges and services; empty: all hosts
	Pairs   []string `yaml:"pairs"` // such as h1-h17
	File    string   `yaml:"file"`  // file of a flow list

	CommGroups string `yaml:"comm-groups"` // file of the process groups in Chakra traces

	Load   float64 `yaml:"load"`    // load of this traffic, instead of the run's
	Share  float64 `yaml:"share"`   // share of the run's load; 0: all
	LoadOf string  `yaml:"load-of"` // capacity that the load refers to: hosts, fabric, or a rate such as 1600Mbps
	Flows  int     `yaml:"flows"`   // number of flows; 0: as many as start in the duration
	Rate   float64 `yaml:"rate"`    // flows (incast: requests) per second, instead of a load
	Degree int     `yaml:"degree"`  // incast: number of hosts that answer; burst: flows per host
	At     []Time  `yaml:"at"`      // burst, pairs: start times
	Start  Time    `yaml:"start"`
	Stop   Time    `yaml:"stop"`
	Class  string  `yaml:"class"`     // name of the flows in results
	Kind   string  `yaml:"transport"` // transport of these flows, such as udp
	Speed  Bitrate `yaml:"udp-rate"`  // rate of a UDP source
	Count  *bool   `yaml:"count"`     // false: background flows that are not measured; default for UDP next to other flows

	// For collective operations: see collective.go.
	Collective  string `yaml:"collective"`
	Algorithm   string `yaml:"algorithm"`
	Ranks       int    `yaml:"ranks"`       // ranks per group; 0: all hosts of From, divided among the groups
	Groups      int    `yaml:"groups"`      // groups that run the operation at the same time; 0: one
	Order       string `yaml:"order"`       // assignment of hosts to groups: local, strided or random
	Window      int    `yaml:"window"`      // unacknowledged messages per rank; 0: no limit
	Chunks      int    `yaml:"chunks"`      // number of chunks in which trees forward a buffer; 0: one
	Repeat      int    `yaml:"repeat"`      // iterations; 0: one
	Compute     Time   `yaml:"compute"`     // computation time of each rank between iterations
	Connections string `yaml:"connections"` // persistent, per-message or queue-pair

	// Grown is the rate of the fabric divided by the rate that the load refers to: a ceiling has
	// the same flows in a faster core.
	Grown float64 `yaml:"-" json:",omitempty"`

	cdf   *CDF
	flows []Flow
}

// A flowMaker makes the flows of one traffic.
type flowMaker struct {
	*Traffic
	t        *fabric.Topology
	rng      *rand.Rand
	leaf     []int   // leaf number by host
	pool     [][]int // servers by service
	from, to []int
	next     []int // permutation: partner by host
	pairs    [][2]int
	base     int // group numbers assigned so far
}

// background reports whether the flows only create background load. This is the default for UDP
// flows if the experiment uses another transport.
func (t *Traffic) background() bool {
	if t.Count != nil {
		return !*t.Count
	}
	return t.Kind == "udp"
}

func newDraw(tr *Traffic, t *fabric.Topology, rng *rand.Rand) (*flowMaker, error) {
	d := &flowMaker{Traffic: tr, t: t, rng: rng, leaf: leafOf(t)}
	var err error
	if d.from, err = hostSet(t, tr.From); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if d.to, err = receiverSet(t, tr.To); err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	switch tr.Pattern {
	case Halves:
		half := t.NICs() / 2
		d.from, d.to = sequence(0, half), sequence(half, t.NICs())
	case permutation:
		if d.next, err = permute(d.from, d.leaf, rng); err != nil {
			return nil, err
		}
	case pairs:
		if d.pairs, err = hostPairs(t, tr.Pairs); err != nil {
			return nil, fmt.Errorf("pairs: %w", err)
		}
		d.from = d.from[:0]
		for _, p := range d.pairs {
			d.from = append(d.from, p[0])
		}
	}
	if err := d.serve(); err != nil {
		return nil, err
	}
	if len(d.from) == 0 || len(d.to) == 0 || len(d.from) == 1 && len(d.to) == 1 && d.from[0] == d.to[0] {
		return nil, fmt.Errorf("pattern %s: there are no senders or no receivers", tr.Pattern)
	}
	return d, nil
}

// arrive adds the flow, or all flows of a request, that start at a time.
func (d *flowMaker) arrive(flows []Flow, at time.Duration, n int) []Flow {
	if d.Pattern != Incast {
		src, dst := d.ends()
		return append(flows, Flow{Src: src, Dst: dst, Bytes: d.size(), Start: at})
	}
	dst := pick(d.rng, d.to)
	total := d.size()
	degree := min(d.Degree, len(d.from)-1)
	left := degree
	for _, k := range d.rng.Perm(len(d.from)) {
		if src := d.from[k]; left > 0 && src != dst && !d.serves(src, dst) && (d.leaf[src] != d.leaf[dst] || len(d.t.Leaves()) == 1) {
			flows = append(flows, Flow{Src: src, Dst: dst, Bytes: max(1, total/int64(degree)), Start: at, Group: d.base + n + 1})
			left--
		}
	}
	return flows
}

// ends draws a sender and a receiver.
func (d *flowMaker) ends() (src, dst int) {
	switch d.Pattern {
	case permutation:
		src = pick(d.rng, d.from)
		return src, d.next[src]
	case pairs:
		p := d.pairs[d.rng.IntN(len(d.pairs))]
		return p[0], p[1]
	}
	for {
		src, dst = pick(d.rng, d.from), pick(d.rng, d.to)
		if src != dst && !d.serves(src, dst) {
			return src, dst
		}
	}
}

// timed returns the flows with given start times.
func (d *flowMaker) timed() []Flow {
	var flows []Flow
	for i, at := range d.At {
		if d.Pattern == pairs {
			for _, p := range d.pairs {
				flows = append(flows, Flow{Src: p[0], Dst: p[1], Bytes: d.size(), Start: time.Duration(at)})
			}
			continue
		}
		for _, src := range d.from {
			for range max(d.Degree, 1) {
				dst := pick(d.rng, d.to)
				if dst != src && !d.serves(src, dst) {
					flows = append(flows, Flow{Src: src, Dst: dst, Bytes: d.size(), Start: time.Duration(at), Group: d.base + i + 1})
				}
			}
		}
	}
	return flows
}

// size draws a flow's size.
func (d *flowMaker) size() int64 {
	var n int64
	switch u := d.rng.Float64(); {
	case d.Size > 0 && d.MinSize > 0 && d.Tail:
		n = int64(boundedPareto(float64(d.MinSize), float64(d.Size), u))
	case d.Size > 0 && d.MinSize > 0:
		n = int64(d.MinSize) + int64(u*float64(d.Size-d.MinSize+1))
	case d.Size > 0:
		n = int64(d.Size)
	default:
		n = d.cdf.quantile(u)
	}
	return max(n, 1)
}

// Mean returns the mean of size.
func (d *flowMaker) Mean() float64 {
	switch {
	case d.Size > 0 && d.MinSize > 0 && d.Tail:
		lo := float64(d.MinSize)
		hi := float64(d.Size)
		const a = paretoShape
		r := math.Pow(lo/hi, a)
		return math.Pow(lo, a) / (1 - r) * a / (a - 1) * (math.Pow(lo, 1-a) - math.Pow(hi, 1-a))
	case d.Size > 0 && d.MinSize > 0:
		return float64(d.Size+d.MinSize) / 2
	case d.Size > 0:
		return float64(d.Size)
	}
	return d.cdf.Mean()
}

func pick(rng *rand.Rand, list []int) int { return list[rng.IntN(len(list))] }

// permute assigns every host a partner at another leaf.
func permute(hosts, leaf []int, rng *rand.Rand) ([]int, error) {
	next := make([]int, len(leaf))
	// Sort hosts by leaf and shuffle them within each leaf. Each host sends to the
	// host half the list further on, which is at another leaf unless one leaf has
	// more than half of the hosts.
	order := slices.Clone(hosts)
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	slices.SortStableFunc(order, func(a, b int) int { return leaf[a] - leaf[b] })
	for i, h := range order {
		next[h] = order[(i+len(order)/2)%len(order)]
		if leaf[h] == leaf[next[h]] {
			return nil, fmt.Errorf("pattern permutation: %d hosts cannot all send to another leaf", len(hosts))
		}
	}
	return next, nil
}

// leafOf returns the leaf number of each host.
func leafOf(t *fabric.Topology) []int {
	return lists.Map(t.Hosts, func(h fabric.Host) int { return t.Switch(h.Switch).Leaf })
}

// HostRates returns the rate of each host: the sum over its ports.
func HostRates(t *fabric.Topology) []fabric.Rate {
	return lists.Map(t.HostPorts(), func(ports []int) (sum fabric.Rate) {
		for _, p := range ports {
			h := &t.Hosts[p]
			of := t.Ports(h.Switch)
			sum += of[slices.IndexFunc(of, func(p fabric.Port) bool { return p.Number == h.Port })].Rate
		}
		return sum
	})
}

// hostSet parses names of hosts, names of leaves for all their hosts, and ranges. An empty list
// means all hosts.
func hostSet(t *fabric.Topology, names []string) ([]int, error) {
	if len(names) == 0 {
		return sequence(0, t.NICs()), nil
	}
	place := map[string]int{}
	for i, h := range t.Hosts[:t.NICs()] {
		place[h.Name] = i
	}
	var set []int
	for _, name := range names {
		first, last, isRange := strings.Cut(name, "..")
		a, okA := place[first]
		b, okB := place[last]
		switch {
		case isRange && okA && okB && a <= b:
			set = append(set, sequence(a, b+1)...)
		case okA && !isRange:
			set = append(set, a)
		case t.Switch(name) != nil:
			for i, ports := range t.HostPorts() {
				if slices.ContainsFunc(ports, func(p int) bool { return t.Hosts[p].Switch == name }) {
					set = append(set, i)
				}
			}
		default:
			return nil, fmt.Errorf("there is no host %q in %s, nor a leaf or range h1..h%d", name, t.Name, t.NICs())
		}
	}
	return lists.Set(set), nil
}

// receiverSet is hostSet, except that it also accepts services. Their indices
// follow the hosts'.
func receiverSet(t *fabric.Topology, names []string) ([]int, error) {
	var set []int
	var rest []string
	for _, name := range names {
		if i := slices.IndexFunc(t.Services, func(s fabric.Service) bool { return s.Name == name }); i >= 0 && t.Host(name) == nil && t.Switch(name) == nil {
			set = append(set, len(t.Hosts)+i)
		} else {
			rest = append(rest, name)
		}
	}
	if len(rest) == 0 && len(set) > 0 {
		return lists.Set(set), nil
	}
	hosts, err := hostSet(t, rest)
	if err != nil && len(t.Services) > 0 {
		err = fmt.Errorf("%w, nor a service such as %s", err, t.Services[0].Name)
	}
	return append(hosts, lists.Set(set)...), err
}

// serve completes traffic to services: a service belongs to no leaf, and a host
// does not send to a service that it serves.
func (d *flowMaker) serve() error {
	for _, s := range d.t.Services {
		d.leaf = append(d.leaf, -1)
		d.pool = append(d.pool, lists.Map(s.Servers, func(name string) int {
			return slices.IndexFunc(d.t.Hosts, func(h fabric.Host) bool { return h.Name == name })
		}))
	}
	for _, dst := range d.to {
		if dst >= len(d.t.Hosts) && !slices.ContainsFunc(d.from, func(src int) bool { return !d.serves(src, dst) }) {
			return fmt.Errorf("to: all senders are servers of %s: want from: with another host", d.t.Services[dst-len(d.t.Hosts)].Name)
		}
	}
	return nil
}

// serves reports whether receiver is a service and host one of its servers.
func (d *flowMaker) serves(host, receiver int) bool {
	n := len(d.t.Hosts)
	return receiver >= n && slices.Contains(d.pool[receiver-n], host)
}

func hostPairs(t *fabric.Topology, names []string) ([][2]int, error) {
	var pairs [][2]int
	for _, name := range names {
		a, b, ok := strings.Cut(name, "-")
		if !ok {
			return nil, fmt.Errorf("%q: want two hosts, as in h1-h17", name)
		}
		src, err := hostSet(t, []string{a})
		if err != nil {
			return nil, err
		}
		dst, err := receiverSet(t, []string{b})
		if err != nil {
			return nil, err
		}
		if len(src) != len(dst) {
			return nil, fmt.Errorf("%q: %d hosts on one side and %d on the other", name, len(src), len(dst))
		}
		for i := range src {
			pairs = append(pairs, [2]int{src[i], dst[i]})
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("none are given")
	}
	return pairs, nil
}

func sequence(from, to int) []int {
	list := make([]int, 0, max(0, to-from))
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// NewRandom returns a source of random numbers for one consumer.
func NewRandom(seed, consumer uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, consumer)) }

// Describe describes the traffic in a line.
func (tr *Traffic) Describe() string {
	what := tr.Workload
	switch {
	case tr.File != "":
		what = tr.File
	case tr.Collective != "":
		return fmt.Sprintf("%s of %v, %s", tr.Collective, tr.Size, tr.Algorithm)
	case tr.Size > 0 && tr.MinSize > 0:
		what = fmt.Sprintf("%v to %v", tr.MinSize, tr.Size)
	case tr.Size > 0:
		what = tr.Size.String()
	}
	if tr.Cut > 0 {
		what += fmt.Sprintf(" (at most %v)", tr.Cut)
	}
	return what + ", " + tr.Pattern
}

// Distribution returns the distribution of flow sizes, or nil if sizes are fixed.
func (tr *Traffic) Distribution() *CDF { return tr.cdf }

// Listed returns the flows of a list, or nil if flows are generated.
func (tr *Traffic) Listed() []Flow { return tr.flows }
