package model_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// packets is the number of packets of a comparison: 20,000, 100,000 if P4LB_LONG
// is set, and fewer with -short.
func packets() int {
	switch {
	case os.Getenv("P4LB_LONG") != "":
		return 100_000
	case testing.Short():
		return 2_000
	}
	return 20_000
}

// paperPoly is the polynomial that the paper prints.
func paperPoly(degree int) *fitting.Poly {
	p, _ := fitting.Paper(degree, false)
	return &p
}

// steepPoly has coefficients of all sizes and both signs.
func steepPoly(degree int) *fitting.Poly {
	p := fitting.Poly{Degree: degree, Scale: 1000, T: fitting.Range{Min: 3, Max: 900}}
	for k := range fitting.Terms(degree) {
		p.Coeff = append(p.Coeff, int64(1+k*k*7)*int64(1-k%3))
	}
	return &p
}

// rlb are parameters with which everything happens in a short time.
func rlb(more ...string) map[string]string {
	set := map[string]string{"dt": "40us", "twarn": "400us", "qpfc": "64KiB", "qth": "8000B", "hold": "300us", "rc": "3"}
	for i := 0; i < len(more); i += 2 {
		set[more[i]] = more[i+1]
	}
	return set
}

// schemes lists the rows on which programs and models are compared: rows with special
// mechanisms, some in several forms, and the rest of the catalogue.
func schemes() []scheme {
	list := []scheme{
		{"ecmp", codegen.Params{Ports: 16}},
		{"wcmp", codegen.Params{Ports: 8}},
		{"rps", codegen.Params{Ports: 5}},
		{"drb", codegen.Params{Ports: 4}},
		{"letflow", codegen.Params{Ports: 4}},
		{"presto", codegen.Params{Ports: 4, Set: map[string]string{"cell": "8KiB"}}},
		{"drill", codegen.Params{Ports: 8}},
		{"drill", codegen.Params{Ports: 16, StatePath: "shared", Set: map[string]string{"d": "4", "m": "3"}}},
		{"qall-pkt", codegen.Params{Ports: 4}},
		{"qall-pkt", codegen.Params{Ports: 16, StatePath: "shared", Set: map[string]string{"tau": "200us"}}},
		{"qall-pkt", codegen.Params{Ports: 3, Set: map[string]string{"tb": "20us", "tau": "300us", "age": "80us"}}},
		{"qall-flowlet", codegen.Params{Ports: 8, Set: map[string]string{"tb": "100us"}}},
		{"qall-linear", codegen.Params{Ports: 4, Set: map[string]string{"tb": "100us"}, Coeffs: paperPoly(1)}},
		{"qall-poly2-flowlet", codegen.Params{Ports: 4, Set: map[string]string{"tb": "100us", "gap": "100us"}}},
		{"qall-poly3", codegen.Params{Ports: 6, Set: map[string]string{"tb": "50us"}, Printed: true}},
		{"qall-poly10", codegen.Params{Ports: 4, Set: map[string]string{"tb": "100us"}, Coeffs: steepPoly(10)}},
		{"qall-poly3", codegen.Params{Ports: 4, Set: map[string]string{"tb": "50us"}, Runtime: true}},
		{"qall-poly4-flowlet", codegen.Params{Ports: 4, StatePath: "shared", Runtime: true}},
		{"qdaps", codegen.Params{Ports: 4, Set: map[string]string{"tb": "10us"}}},
		{"qdaps", codegen.Params{Ports: 16, StatePath: "shared"}},
		{"qdaps", codegen.Params{Ports: 8, Set: map[string]string{"tb": "10us", "d": "2"}}},
		{"qdaps-star", codegen.Params{Ports: 4, Set: map[string]string{"tb": "10us"}}},
		{"pdlb", codegen.Params{Ports: 8}},
		{"hula", codegen.Params{Ports: 4, Role: "tor", Set: map[string]string{"tb": "50us", "gap": "50us", "tfail": "200us"}}},
		{"hula", codegen.Params{Ports: 8, Role: "agg", StatePath: "shared", Set: map[string]string{"gap": "50us"}}},
		{"dhlb", codegen.Params{Ports: 4, Role: "tor", Set: map[string]string{"tb": "50us", "gap": "50us"}}},
		{"dhlb", codegen.Params{Ports: 8, Role: "agg", Set: map[string]string{"tb": "50us", "gap": "50us"}}},
		{"conga", codegen.Params{Ports: 4, Set: map[string]string{"tb": "50us", "gap": "50us"}}},
		{"conga", codegen.Params{Ports: 4, Role: "spine"}},
		{"hermes", codegen.Params{Ports: 6, Set: map[string]string{"timeout": "2ms", "sent": "20000B", "tecn": "30%"}}},
		{"flowbender", codegen.Params{Ports: 4}},
		{"clove", codegen.Params{Ports: 4, Set: map[string]string{"gap": "50us"}}},
		{"drill+rlb", codegen.Params{Ports: 4, Set: rlb()}},
		{"presto+rlb", codegen.Params{Ports: 4, Set: rlb("cell", "8KiB")}},
		{"letflow+rlb", codegen.Params{Ports: 8, StatePath: "shared", Set: rlb("predict", "threshold")}},
		{"hermes+rlb", codegen.Params{Ports: 4, Set: rlb("sent", "20000B", "timeout", "2ms")}},
		{"drill+rlb-star", codegen.Params{Ports: 6, Set: rlb()}},
		{"presto+rlb-star", codegen.Params{Ports: 4, Set: rlb("owd", "true")}},
		{"letflow+rlb", codegen.Params{Ports: 4, Set: rlb("loop", "queue", "rcrate", "20Mbps")}},
		{"drill+rlb-star", codegen.Params{Ports: 4, Set: rlb("loop", "queue", "rcrate", "1Mbps")}},
		{"letflow+rlb", codegen.Params{Ports: 5, Set: rlb("suboptimal", "random")}},
		{"presto+rlb-star", codegen.Params{Ports: 4, Set: rlb("suboptimal", "turn")}},
		{"letflow+rlb", codegen.Params{Ports: 4, Set: rlb("relay", "3")}},
		{"letflow+rlb-star", codegen.Params{Ports: 4, Set: rlb()}},
		{"hermes+rlb-star", codegen.Params{Ports: 4, Set: rlb("sent", "20000B", "timeout", "2ms")}},
		{"qall-pkt+rlb", codegen.Params{Ports: 4, Set: rlb("tb", "50us")}},
		{"conga+rlb-star", codegen.Params{Ports: 4, Set: rlb("tb", "50us")}},
	}
	for i, name := range codegen.Names() {
		if !slices.ContainsFunc(list, func(sc scheme) bool { return sc.name == name }) {
			list = append(list, scheme{name, codegen.Params{Ports: 2 + i%15, Set: map[string]string{"tb": "50us"}}})
		}
	}
	return list
}

// TestChoices sends the same packets through the programs and the models.
func TestChoices(t *testing.T) {
	for i, sc := range schemes() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sc, uint64(i))
			newTraffic(r, sc.params.Ports).run(packets())
			r.compareRegisters()
			t.Logf("%d packets, %d tail drops, %d reports, %d probes, %d rounds, %d notices", r.packets, r.drops, r.learnt, r.probed, r.again, r.notices)
		})
	}
}

// composed returns all rows that can be composed.
func composed() (list []codegen.Row) {
	for _, g := range []string{"flow", "flowlet", "flowcell", "adaptive", "packet"} {
		for _, s := range []string{"none", "weights", "queue", "occupancy", "drain", "behaviour", "fitted", "piggyback", "utilisation", "degree", "delay", "one-way", "marks", "classes", "echo"} {
			for _, c := range []string{"hash", "uniform", "round-robin", "sampled", "least", "grid", "best-hop", "ordered", "cautious", "rehash"} {
				for _, guard := range []string{"none", "rlb", "rlb-star"} {
					if row, err := codegen.Compose(g, s, c, guard); err == nil {
						list = append(list, row)
					}
				}
			}
		}
	}
	return list
}

// TestCompositions compares all possible compositions, published or not.
func TestCompositions(t *testing.T) {
	count := 0
	for _, row := range composed() {
		if count++; testing.Short() && count%5 > 0 {
			continue
		}
		set := map[string]string{}
		for name, value := range rlb("tb", "50us", "gap", "50us", "cell", "8KiB", "timeout", "2ms", "sent", "8KiB") {
			if slices.ContainsFunc(row.Parameters(), func(p codegen.Param) bool { return p.Name == name }) {
				set[name] = value
			}
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, scheme{row.Name, codegen.Params{Ports: 4, Set: set}}, 3)
			newTraffic(r, 4).run(packets() / 20)
			r.compareRegisters()
		})
	}
	if count < 100 {
		t.Errorf("only %d compositions", count)
	}
}

// traffic generates random packets with all difficult cases: idle gaps,
// bursts, flows that share a slot, all queues full, a dead port, the wrap of
// the clock.
type traffic struct {
	*rig
	rnd   *rand.Rand
	n     int
	seq   uint16         // of the last probe of DHLB
	flows [][]model.Flow // by group
}

// The ports of paths and of arriving packets. None of them recirculates on hardware.
const firstPort, hostPort = 20, 9

func newTraffic(r *rig, n int) *traffic {
	tr := &traffic{rig: r, rnd: rand.New(rand.NewPCG(uint64(n), 99)), n: n}
	for i := range n {
		r.setPort(firstPort+i, 16+i%3*24, 10)
	}
	for port := hostPort; port < hostPort+8; port++ { // where packets come in
		r.setPort(port, 64, 10)
	}
	for port := range r.queues {
		tr.multicast(port)
	}
	if r.has("LbIngress.self") && r.hw == nil {
		if err := r.sw.Tables().SetDefault("LbIngress.self", dataplane.Target{Action: r.call("LbIngress.sign_probe", map[string]uint64{"id": here})}); err != nil {
			r.t.Fatal(err)
		}
	}
	// Groups of 2 to n paths that share ports, in another order each.
	tr.flows = make([][]model.Flow, r.firstGroup())
	for gid := range 4 {
		size := max(2, n-gid*n/4)
		g := model.Group{}
		for _, i := range tr.rnd.Perm(n)[:size] {
			g.Ports = append(g.Ports, firstPort+i)
			g.Weights = append(g.Weights, uint32(tr.rnd.IntN(4)))
		}
		gid += r.firstGroup()
		r.setGroup(gid, g)
		tr.flows = append(tr.flows, tr.makeFlows(gid, 60))
	}
	return tr
}

// setPattern changes the polynomial at run time.
func (tr *traffic) setPattern(table string) {
	action := strings.TrimSuffix(table, "pattern") + "set_pattern"
	degree := 0
	for _, v := range tr.man.Parameters {
		if v.Name == "degree" {
			degree = int(v.Number)
		}
	}
	args := map[string]uint64{}
	var coeff []int64
	for _, e := range fitting.Terms(degree) {
		c := tr.rnd.Int64N(6001) - 3000
		coeff = append(coeff, c)
		args[fmt.Sprintf("c_%d_%d", e.I, e.J)] = uint64(uint32(c))
	}
	if err := tr.sw.Tables().SetDefault(table, dataplane.Target{Action: tr.call(action, args)}); err != nil {
		tr.t.Fatal(err)
	}
	tr.model.SetPattern(coeff)
}

// multicast sends flooded packets of a port to two other ports.
func (tr *traffic) multicast(port int) {
	group := uint32(1000 + port)
	replicas := []dataplane.Replica{{Port: uint32(firstPort + port%tr.n)}, {Port: hostPort + 1, Instance: 1}}
	if err := tr.sw.Replication().SetGroup(group, replicas); err != nil {
		tr.t.Fatal(err)
	}
}

// makeFlows makes flows to a group, every third of them with the hash of the
// one before.
func (tr *traffic) makeFlows(gid, n int) []model.Flow {
	var list []model.Flow
	for i := range n {
		f := model.Flow{Src: localNet(firstPort + tr.rnd.IntN(tr.n)), Dst: groupNet(gid) + uint32(tr.rnd.IntN(256)), Protocol: []uint8{6, 17, 6, 6, 1}[i%5]}
		if f.Protocol != 1 {
			f.Sport, f.Dport = uint16(tr.rnd.Uint32()), uint16(tr.rnd.Uint32())
			if i%3 == 2 {
				f.Dport ^= dportOfHash()[f.Hash()^list[i-1].Hash()]
			}
		}
		list = append(list, f)
	}
	return list
}

// dportOfHash is the destination port that alone makes a hash: a CRC that
// starts from 0 is linear, so that flipping those bits changes the hash of any
// flow by as much.
var dportOfHash = sync.OnceValue(func() *[1 << 16]uint16 {
	var t [1 << 16]uint16
	for port := range 1 << 16 {
		t[model.Flow{Dport: uint16(port)}.Hash()] = uint16(port)
	}
	return &t
})

// run sends packets in phases.
func (tr *traffic) run(count int) {
	phases := []struct {
		start   model.Time // 0: go on
		service model.Time
		pause   uint64 // mean
		dead    int    // this slot is dead; -1: none
	}{
		{5, 10, 4, -1},
		{0, 10, 30, -1},
		{0, 200, 2, -1},           // all ports are congested
		{0, 12, 4, 1},             // one port is dead, without notification
		{1 << 40, 10, 3, -1},      // after a long pause
		{1<<48 - 4000, 20, 4, -1}, // the clock wraps
		{0, 25, 6, 0},             // one port is dead, the controller takes it out
	}
	for k, ph := range phases {
		if tr.hw != nil && ph.start > 5 {
			ph.start >>= 16 // the clock has 32 bits
		}
		tr.coarse = k%2 == 1
		tr.runUntil((max(tr.now, ph.start) + 9) / 10 * 10)
		for i := range tr.n {
			q := tr.queues[firstPort+i]
			q.service = ph.service + model.Time(tr.some(int(ph.service)))
			if i == ph.dead {
				q.service = 0
			}
			q.free = tr.now + q.service
		}
		if k == len(phases)-1 {
			tr.without(firstPort + ph.dead)
		}
		for range (count + len(phases) - 1) / len(phases) {
			tr.step(ph.pause)
		}
	}
	tr.runUntil(tr.now + 10_000)
}

// without removes a port from all groups.
func (tr *traffic) without(port int) {
	for len(tr.rounds) > 0 {
		tr.runUntil(tr.now + 10)
	}
	for gid, g := range tr.groups[tr.firstGroup():] {
		gid += tr.firstGroup()
		var left model.Group
		for i, p := range g.Ports {
			if p != port || len(g.Ports) == 2 {
				left.Ports = append(left.Ports, p)
				left.Weights = append(left.Weights, g.Weights[i])
			}
		}
		tr.setGroup(gid, left)
	}
}

// step sends one packet, in a burst, or after a pause.
func (tr *traffic) step(mean uint64) {
	wait := tr.some(int(2 * mean))
	switch tr.rnd.IntN(200) {
	case 0:
		wait = 300 + tr.some(900) // about the flowlet gap
	case 1:
		wait = 9000 + tr.some(2000)
	default:
		if tr.rnd.IntN(3) == 0 {
			wait = 0
		}
	}
	tr.runUntil(tr.now + model.Time(wait))
	tr.news()
	tr.send(tr.packet())
}

// anyGroup returns a random group.
func (tr *traffic) anyGroup() int {
	return tr.firstGroup() + tr.rnd.IntN(len(tr.groups)-tr.firstGroup())
}

// length returns a packet length.
func (tr *traffic) length() int {
	if tr.coarse {
		return 100 * (1 + tr.rnd.IntN(14))
	}
	return 64 + tr.rnd.IntN(1437)
}

// packet returns a random packet.
func (tr *traffic) packet() model.Packet {
	gid := tr.anyGroup()
	flows := tr.flows[gid]
	flow := flows[tr.rnd.IntN(len(flows))]
	if tr.rnd.IntN(2) == 0 {
		flow = flows[tr.rnd.IntN(4)] // an elephant
	}
	p := model.Packet{Flow: flow, Len: tr.length(), In: hostPort + tr.rnd.IntN(8), Group: gid, From: -1}
	if tr.rnd.IntN(10) == 0 { // to a host of ours, or back
		p.Group, p.Flow.Dst = -1, localNet(firstPort+tr.rnd.IntN(tr.n))
	}
	if p.Flow.Protocol == 6 {
		p.Ack, p.Echo = tr.rnd.IntN(2) == 0, tr.rnd.IntN(10) == 0
		if p.Ack && tr.rnd.IntN(3) > 0 && p.Group >= 0 { // of a flow that we have seen
			p.Flow.Src, p.Flow.Dst, p.Flow.Sport, p.Flow.Dport = p.Flow.Dst, p.Flow.Src, p.Flow.Dport, p.Flow.Sport
			p.Group = -1
		}
	}
	if s := tr.man.Signal; (s == "piggyback" || s == "one-way") && tr.rnd.IntN(3) == 0 {
		from := tr.anyGroup()
		p.From, p.Flow.Src = from, groupNet(from)+7
		p.Overlay = model.Overlay{
			Valid: true, Tag: uint8(tr.rnd.IntN(tr.n)), FbTag: uint8(tr.rnd.IntN(tr.n)),
		}
		if s == "piggyback" {
			p.Overlay.CE, p.Overlay.FbMetric = uint8(tr.rnd.IntN(8)), uint8(tr.rnd.IntN(8))
		} else {
			// The clock of each leaf is ahead by another offset.
			ahead := model.Time(1+from) << 40
			p.Overlay.Sent = tr.wrapped().After(ahead - tr.units(50+tr.some(300)))
			if tr.rnd.IntN(6) > 0 { // else that leaf has not measured our path
				p.Overlay.FbDelay = ahead.After(tr.units(50+tr.some(300))) | tr.units(1)
			}
		}
	}
	return p
}

// news sometimes delivers an event other than a packet.
func (tr *traffic) news() {
	gid := tr.anyGroup()
	ports := tr.groups[gid].Ports
	slot := tr.rnd.IntN(len(ports))
	for _, reg := range tr.man.Registers {
		if tr.rnd.IntN(100) > 0 {
			continue
		}
		switch reg.Name {
		case "qd_S":
			tr.write("qd_S", 0, tr.rnd.Uint64N(20))
		case "pd_gran":
			tr.write("pd_gran", gid, tr.rnd.Uint64N(45))
		case "nrc":
			tr.write("nrc", 0, tr.rnd.Uint64N(4))
		case "faulty":
			tr.write("faulty", ports[slot], tr.rnd.Uint64N(8)/7)
		}
	}
	if tr.hw != nil && tr.man.Guard != "none" && tr.rnd.IntN(300) == 0 {
		tr.rezero()
	}
	if tr.hw != nil && tr.man.Guard == "rlb-star" && tr.rnd.IntN(100) == 0 {
		tr.close(ports[slot], tr.rnd.IntN(8) == 0)
	}
	for _, table := range []string{"LbIngress.pattern", "LbEgress.pattern"} {
		if tr.has(table) && tr.rnd.IntN(500) == 0 {
			tr.setPattern(table)
		}
	}
	if tr.has("LbIngress.arrival") && tr.rnd.IntN(20) == 0 {
		port := ports[slot]
		if tr.rnd.IntN(10) == 0 {
			port = 300 // nothing of the group
		}
		tr.seq += uint16(tr.rnd.IntN(3))
		tr.flood(model.Probe{Origin: gid, Seq: tr.seq, Util: tr.someUtil(), Degree: []uint8{5, 3, 2, 1, 0}[tr.rnd.IntN(5)], Hop: 2}, port)
	}
	switch {
	case !tr.has("LbIngress.leaf") || tr.rnd.IntN(10) > 0:
	case tr.man.Role == "spine":
		tr.passProbe(hostPort+tr.rnd.IntN(8), ports[slot])
	default:
		tr.learnPath(model.PathNews{Group: gid, Slot: slot, RTT: uint32(20 + tr.some(400)), Marked: (tr.man.Signal == "classes" || tr.man.Signal == "marks") && tr.rnd.IntN(2) == 0})
	}
	if tr.man.Guard != "none" && tr.rnd.IntN(20) == 0 {
		n := model.Warn
		if tr.rnd.IntN(4) == 0 && tr.hw == nil {
			n = model.Clear
		}
		tr.heed(ports[slot], n, model.Time(tr.some(500)))
	}
}
