package fabric

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Preset is the network of an experiment in one of the papers.
type Preset struct {
	Name  string
	About string // description from the paper, with its source

	// Assumed lists values chosen here because the paper omits them.
	Assumed string

	draft func() (*draft, error)
}

const us = time.Microsecond

// Link delays for a given round-trip time of a path, which passes eight equal
// links: 100 us and 1 ms.
const (
	hop100us = 100 * us / 8
	hop1ms   = time.Millisecond / 8

	// The delay of the four links between switches on a path with a round trip
	// of 300 us.
	slow300us = (300*us - 4*hop100us) / 4
)

// presets are the networks of the experiments, paper by paper.
var presets = []Preset{
	{
		Name:    "qall",
		About:   "QALL, Fig. 7: 2 leaves, 2 spines, two links of 400 Mbps between each pair, 16 hosts of 100 Mbps at a leaf",
		Assumed: "delay 10us of a link; queues of 64 packets, as BMv2 has them",
		draft:   qall.draft,
	}, {
		Name:    "qall-asym",
		About:   "QALL, Fig. 11: as qall, with one of the links between S2 and L2 down",
		Assumed: "as qall",
		draft:   vary(qall, between("s2", "l2", func(l *draftLink) { l.down = true })),
	}, {
		Name:    "qdaps-4",
		About:   "QDAPS, Fig. 10: 4 paths of 1 Gbps between two leaves, round trip 100us, queues of 256 packets, 30 flows",
		Assumed: "a host for each end of a flow",
		draft:   qdaps(4, 30).draft,
	}, {
		Name:    "qdaps-8",
		About:   "QDAPS, Fig. 11: as qdaps-4 with 8 paths and 50 flows",
		Assumed: "as qdaps-4",
		draft:   qdaps(8, 50).draft,
	}, {
		Name:    "qdaps-8-asym",
		About:   "QDAPS, Fig. 11: as qdaps-8, with one link between a leaf and a spine at 200 Mbps",
		Assumed: "the link between L1 and S1",
		draft:   vary(qdaps(8, 50), between("s1", "l1", func(l *draftLink) { l.rate = 200 * Mbps })),
	}, {
		Name:  "qdaps-8x8",
		About: "QDAPS, Fig. 12: 8 leaves, 8 spines, 32 hosts at a leaf (4:1), 1 Gbps, round trip 100us, queues of 256 packets",
		draft: LeafSpine{Leaves: 8, Spines: 8, Hosts: 32, Links: Links{
			HostRate: Gbps, Rate: Gbps, HostDelay: hop100us, Delay: hop100us, Queue: 256,
		}}.draft,
	}, {
		Name:    "qdaps-star",
		About:   "QDAPS, Fig. 14: as qdaps-4, with one path of 300us",
		Assumed: "the path through S1",
		draft:   vary(qdaps(4, 30), slowSpine),
	}, {
		Name:    "qdaps-mininet",
		About:   "QDAPS, Fig. 16: 4 paths of 20 Mbps between two leaves, round trip 1ms, queues of 256 packets",
		Assumed: "25 hosts at a leaf, as many as there are flows in Fig. 17",
		draft: LeafSpine{Spines: 4, Hosts: 25, Links: Links{
			HostRate: 20 * Mbps, Rate: 20 * Mbps, HostDelay: hop1ms, Delay: hop1ms, Queue: 256,
		}}.draft,
	}, {
		Name:  "rlb-12x12",
		About: "RLB, Section VI-B: 12 leaves, 12 spines, 24 hosts at a leaf, 40 Gbps, 2us a link, 9 MB of buffer",
		draft: rlb.draft,
	}, {
		Name:    "rlb-12x12-asym",
		About:   "RLB, Fig. 13: as rlb-12x12, with 20 % of the links between leaves and spines at 10 Gbps",
		Assumed: "29 of the 144 links, drawn with seed 1",
		draft:   vary(rlb, slowFifth),
	}, {
		Name:    "rlb-pfc",
		About:   "RLB, Fig. 2 and 3: 40 paths of 40 Gbps between two leaves, 2us a link, 9 MB; H1 to H100 and Hc at S1, R1 to R100, Rc and the senders of bursts at S2",
		Assumed: "40 senders of bursts; h1 to h101 are H and Hc, h102 to h202 R and Rc, h203 to h242 the senders",
		draft: vary(LeafSpine{Spines: 40, Hosts: 101, Links: rlb.Links, Buffer: rlb.Buffer}, func(d *draft) {
			d.addHosts("l2", 40, &Links{HostRate: rlb.HostRate, HostDelay: rlb.HostDelay})
		}),
	}, {
		Name:    "rlb-testbed",
		About:   "RLB, Section VI-A: 8 paths of 40 Gbps between two leaves, 22 MB of buffer",
		Assumed: "8 hosts of 40 Gbps at a leaf; 2us a link",
		draft:   LeafSpine{Spines: 8, Hosts: 8, Links: rlb.Links, Buffer: 22 * MiB}.draft,
	}, {
		Name:    "pdlb",
		About:   "PDLB, Fig. 11: 8 leaves, 8 spines, 256 hosts, 10 Gbps, round trip 100us, one path of 300us, 250 KB of buffer, in Table 4 200 packets",
		Assumed: "the path through S1; the buffer is of each port",
		draft:   vary(pdlb, slowSpine),
	}, {
		Name:    "pdlb-sym",
		About:   "PDLB, as pdlb without the slow path",
		Assumed: "as pdlb",
		draft:   pdlb.draft,
	}, {
		Name:    "pdlb-2x8",
		About:   "PDLB, Fig. 3 to 6: 8 paths of 1 Gbps between two leaves, round trip 100us, one path of 300us, queues of 250 packets, 10 flows",
		Assumed: "the path through S1; a host for each end of a flow",
		draft: vary(LeafSpine{Spines: 8, Hosts: 10, Links: Links{
			HostRate: Gbps, Rate: Gbps, HostDelay: hop100us, Delay: hop100us, Queue: 250,
		}}, slowSpine),
	}, {
		Name:    "pdlb-4",
		About:   "PDLB, Fig. 10: 4 paths of 10 Gbps between two leaves, round trip 200us, queues of 100 packets, 2 TCP flows, a UDP flow on each path",
		Assumed: "6 hosts at a leaf: 2 for TCP, 4 for UDP",
		draft: LeafSpine{Spines: 4, Hosts: 6, Links: Links{
			HostRate: 10 * Gbps, Rate: 10 * Gbps, HostDelay: 2 * hop100us, Delay: 2 * hop100us, Queue: 100,
		}}.draft,
	}, {
		Name:    "dhlb",
		About:   "DHLB, Section 3.1: a fat-tree of 4-port switches, 200 Mbps between switches, 100 Mbps to hosts",
		Assumed: "delay 10us of a link; 2 hosts at each of the 8 tops of rack; queues of 64 packets, as BMv2 has them",
		draft: FatTree{K: 4, Links: Links{
			HostRate: 100 * Mbps, Rate: 200 * Mbps, HostDelay: 10 * us, Delay: 10 * us, Queue: 64,
		}}.draft,
	}, {
		Name:  "leaf-spine",
		About: "no paper's, and what p4lb lab takes: 4 leaves, 4 spines, 16 hosts at a leaf (4:1), 10 Gbps, 5us a link, queues of 256 packets",
		draft: LeafSpine{Leaves: 4, Spines: 4, Hosts: 16, Links: Links{
			HostRate: 10 * Gbps, Rate: 10 * Gbps, HostDelay: 5 * us, Delay: 5 * us, Queue: 256,
		}}.draft,
	},
}

var (
	qall = LeafSpine{Parallel: 2, Hosts: 16, Links: Links{
		HostRate: 100 * Mbps, Rate: 400 * Mbps, HostDelay: 10 * us, Delay: 10 * us, Queue: 64,
	}}
	rlb = LeafSpine{Leaves: 12, Spines: 12, Hosts: 24, Buffer: 9 * MiB, Links: Links{
		HostRate: 40 * Gbps, Rate: 40 * Gbps, HostDelay: 2 * us, Delay: 2 * us,
	}}
	pdlb = LeafSpine{Leaves: 8, Spines: 8, Hosts: 32, Links: Links{
		HostRate: 10 * Gbps, Rate: 10 * Gbps, HostDelay: hop100us, Delay: hop100us, Queue: 200,
	}}
)

// qdaps returns two leaves with paths between them and hosts at each.
func qdaps(paths, hosts int) LeafSpine {
	return LeafSpine{Spines: paths, Hosts: hosts, Links: Links{
		HostRate: Gbps, Rate: Gbps, HostDelay: hop100us, Delay: hop100us, Queue: 256,
	}}
}

// vary generates a network and modifies it.
func vary(o LeafSpine, change func(*draft)) func() (*draft, error) {
	return func() (*draft, error) {
		d, err := o.draft()
		if err == nil {
			change(d)
		}
		return d, err
	}
}

// between modifies the first link between a spine and a leaf.
func between(spine, leaf string, change func(*draftLink)) func(*draft) {
	return func(d *draft) {
		i := slices.IndexFunc(d.links, func(l draftLink) bool { return l.a.Node == leaf && l.b.Node == spine })
		change(&d.links[i])
	}
}

// slowSpine sets the round-trip time through s1 to 300 us.
func slowSpine(d *draft) {
	for i := range d.links {
		if d.links[i].b.Node == "s1" {
			d.links[i].delay = slow300us
		}
	}
}

// slowFifth slows a fifth of the links between switches to 10 Gbps.
func slowFifth(d *draft) {
	var fabric []int
	for i, l := range d.links {
		if strings.HasPrefix(l.b.Node, "s") {
			fabric = append(fabric, i)
		}
	}
	order := rand.New(rand.NewPCG(1, 0)).Perm(len(fabric))
	for _, k := range order[:(len(fabric)+4)/5] {
		d.links[fabric[k]].rate = 10 * Gbps
	}
}

// Presets returns the presets, paper by paper.
func Presets() []Preset { return append([]Preset(nil), presets...) }

// Make generates the network of the preset.
func (p Preset) Make() (*Topology, error) {
	d, err := p.draft()
	if err != nil {
		return nil, err
	}
	d.name, d.about = p.Name, p.About
	if p.Assumed != "" {
		d.about += "; assumed: " + p.Assumed
	}
	return d.finish("")
}

// PresetNamed returns the preset with a name.
func PresetNamed(name string) (Preset, error) {
	var names []string
	for _, p := range presets {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	err := fmt.Errorf("%w %q", errNoPreset, name)
	if near := plain.Nearest(name, names); near != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return Preset{}, err
}
