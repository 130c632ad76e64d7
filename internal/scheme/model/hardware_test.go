package model_test

import (
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/scheme/model"
)

// briefly are parameters that shorten all times, in whole
// tens of ticks.
func briefly(row codegen.Row) map[string]string {
	set := map[string]string{}
	for name, value := range map[string]string{
		"tb": "51us", "gap": "51us", "tfail": "205us", "dt": "41us", "twarn": "410us", "hold": "307us", "tau": "307us",
		"qpfc": "16KiB", "qth": "8000B", "cell": "8KiB", "ageing": "512us", "tprobe": "205us", "timeout": "20480us", "sent": "4KiB", "epoch": "205us", "r": "10%",
	} {
		if slices.ContainsFunc(row.Parameters(), func(p codegen.Param) bool { return p.Name == name }) {
			set[name] = value
		}
	}
	return set
}

// hardwareSchemes lists the rows of an architecture, with times in multiples of ten
// ticks, and rows with special mechanisms in several forms.
func hardwareSchemes(t *testing.T, arch string) []scheme {
	t.Helper()
	var list []scheme
	add := func(name string, p codegen.Params) {
		row, err := codegen.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		set := briefly(row)
		maps.Copy(set, p.Set)
		p.Set, p.Arch = set, arch
		list = append(list, scheme{name, p})
	}
	for _, name := range goldens(t, arch) {
		add(name, codegen.Params{Ports: 4})
	}
	for _, name := range []string{"ecmp", "wcmp", "letflow", "presto", "drill", "pdlb", "qall-pkt", "letflow+rlb", "hula"} {
		add(name, codegen.Params{Ports: 8})
	}
	for _, name := range []string{"wcmp", "drill"} {
		add(name, codegen.Params{Ports: 9})
		add(name, codegen.Params{Ports: codegen.MaxPaths})
	}
	for _, sc := range []scheme{
		{"qall-poly2", codegen.Params{Ports: 2}},
		{"qall-poly10", codegen.Params{Ports: 4, Coeffs: steepPoly(10)}},
		{"hula", codegen.Params{Ports: 4, Role: "agg"}},
		{"dhlb", codegen.Params{Ports: 4, Role: "agg"}},
		{"conga", codegen.Params{Ports: 4, Role: "spine"}},
		{"clove+rlb", codegen.Params{Ports: 4, Role: "spine"}},
		{"pdlb+rlb", codegen.Params{Ports: 4, Role: "spine"}},
		{"ecmp", codegen.Params{Ports: 7, Role: "spine"}},
		{"wcmp", codegen.Params{Ports: 3, Role: "spine"}},
		{"conga", codegen.Params{Ports: 3}},
		{"conga", codegen.Params{Ports: 5}},
		{"letflow+rlb", codegen.Params{Ports: 4, Set: map[string]string{"predict": "threshold"}}},
		{"drill", codegen.Params{Ports: 4, Set: map[string]string{"m": "0"}}},
		{"drill", codegen.Params{Ports: 16, Set: map[string]string{"m": "0"}}},
	} {
		add(sc.name, sc.params)
	}
	if arch == "t2na" { // they need its stages
		add("hermes", codegen.Params{Ports: 5})
		add("letflow+rlb-star", codegen.Params{Ports: 6})
		add("hermes+rlb", codegen.Params{Ports: 4, Role: "spine"})
		add("hermes+rlb-star", codegen.Params{Ports: 4, Role: "spine"})
	}
	if arch == "t2na" { // it has the ghost thread
		add("drill", codegen.Params{Ports: 4, StatePath: "ghost"})
		add("drill", codegen.Params{Ports: 7, StatePath: "ghost"})
		add("drill", codegen.Params{Ports: 16, StatePath: "ghost"})
		add("qdaps", codegen.Params{Ports: 4, StatePath: "ghost"})
	}
	return list
}

// goldens returns the rows with programs for an architecture.
func goldens(t *testing.T, arch string) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../../p4src/" + arch + "/*.p4")
	if err != nil || len(files) < 36 {
		t.Fatalf("%d programs, %v", len(files), err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".p4"))
	}
	return names
}

// hardwarePackets is the number of packets of a comparison.
func hardwarePackets() int {
	if n := packets(); n < 100_000 {
		return n / 5
	}
	return 100_000
}

// TestHardwareChoices sends the same packets through the programs for Tofino
// and the models.
func TestHardwareChoices(t *testing.T) {
	for _, arch := range []string{"tna", "t2na"} {
		for i, sc := range hardwareSchemes(t, arch) {
			t.Run(arch+"/"+sc.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, sc, uint64(i))
				newTraffic(r, sc.params.Ports).run(hardwarePackets())
				r.compareRegisters()
				t.Logf("%d packets, %d tail drops, %d reports, %d probes, %d notices", r.packets, r.drops, r.learnt, r.probed, r.notices)
			})
		}
	}
}

// TestHardwareCompositions does the same with all rows that can be composed.
func TestHardwareCompositions(t *testing.T) {
	for k, arch := range []string{"tna", "t2na"} {
		for i, row := range composed() {
			sc := scheme{row.Name, codegen.Params{Ports: 4, Arch: arch, Set: briefly(row)}}
			if testing.Short() && i%5 != k {
				continue
			}
			if _, err := sc.program(); err != nil {
				if _, err := codegen.Generate(row, codegen.Params{Arch: arch}); err != nil {
					continue // there is no such row; package codegen has why
				}
			}
			t.Run(arch+"/"+row.Name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, sc, 3)
				newTraffic(r, 4).run(packets() / 20)
				r.compareRegisters()
			})
		}
	}
}

// TestHardwareIdlePaths: HULA moves from a failed path to one that is as idle.
func TestHardwareIdlePaths(t *testing.T) {
	r := newRig(t, scheme{"hula", codegen.Params{Arch: "tna", Ports: 4, Role: "tor", Set: map[string]string{"tfail": "205us"}}}, 1)
	g := groupOf(4)
	for _, port := range g.Ports {
		r.setPort(port, 64, 10)
	}
	r.setGroup(1, g)
	r.now = 1000
	r.flood(model.Probe{Origin: 1, Util: 0}, firstPort+2)
	if slot := r.send(tcp(1, 1)); slot != 2 {
		t.Fatalf("the only path that is known of is %d, want 2", slot)
	}
	for range 20 {
		r.now += 100
		r.flood(model.Probe{Origin: 1, Util: 0}, firstPort+3)
	}
	for sport := range uint16(20) {
		if slot := r.send(tcp(1, 100+sport)); slot != 3 {
			t.Errorf("path %d, want that of the probes, 3", slot)
		}
	}
}

// TestHardwareTies: of paths that are as good each gets its share of the flows,
// and a worse one none.
func TestHardwareTies(t *testing.T) {
	for _, sc := range []scheme{
		{"conga", codegen.Params{Arch: "tna", Ports: 4}},
		{"conga", codegen.Params{Arch: "t2na", Ports: 3}},
		{"clove", codegen.Params{Arch: "tna", Ports: 8}},
		{"hermes", codegen.Params{Arch: "t2na", Ports: 4}},
		{"packet-marks-least", codegen.Params{Arch: "tna", Ports: 4}},
	} {
		for n := 2; n <= sc.params.Ports; n++ {
			r := newRig(t, sc, 1)
			r.setGroup(0, groupOf(1)) // what frames without a group look at
			r.setGroup(1, groupOf(n))
			for _, port := range groupOf(n).Ports {
				r.setPort(port, 10_000, 1)
			}
			r.now = 50_000
			worst := -1
			if r.man.Signal == "marks" && n > 2 {
				worst = n - 2
				r.learnPath(model.PathNews{Group: 1, Slot: worst, RTT: 30, Marked: true})
			}
			taken, share := make([]int, n), equal(n)
			for sport := range uint16(300 * n) {
				slot, _ := r.sendRounds(tcp(1, sport))
				taken[slot]++
			}
			if worst >= 0 {
				share[worst] = 0
				share[worst+1] = 2 // ties for the path before it fall to it
			}
			checkShares(t, taken, share)
		}
	}
}

// TestHardwareQueuesAlike: QDAPS stays on a path if the packets of the next path leave
// at the same time.
func TestHardwareQueuesAlike(t *testing.T) {
	r := newRig(t, scheme{"qdaps", codegen.Params{Arch: "t2na", Ports: 4, Set: map[string]string{"tb": "10s"}}}, 1)
	g := groupOf(4)
	for _, port := range g.Ports {
		r.setPort(port, 64, 1)
	}
	r.setGroup(1, g)
	moved := 0
	for sport := range uint16(100) {
		r.runUntil(model.Time(1000 * (1 + int(sport))))
		first := r.send(tcp(1, sport))
		for range 4 {
			if slot := r.send(tcp(1, sport)); slot != first {
				t.Errorf("a packet that leaves with the one before takes path %d, not %d", slot, first)
			}
		}
		r.runUntil(r.now + 100)
		if r.send(tcp(1, sport)) != first {
			moved++
		}
	}
	if moved < 30 {
		t.Errorf("when the queues are empty again %d of 100 flows move", moved)
	}
}

// TestHardwareOwnProbes: a switch sends its own probes unchanged, learns nothing from
// sending them, and receives them back.
func TestHardwareOwnProbes(t *testing.T) {
	for _, name := range []string{"hula", "dhlb", "pdlb", "clove"} {
		for _, arch := range []string{"tna", "t2na"} {
			t.Run(name+"@"+arch, func(t *testing.T) {
				r := newRig(t, scheme{name, codegen.Params{Arch: arch, Ports: 4}}, 1)
				newTraffic(r, 4)
				r.now = 5000
				if name == "pdlb" || name == "clove" {
					r.pathProbe()
					return
				}
				if err := r.sw.Replication().SetGroup(900, []dataplane.Replica{{Port: firstPort}, {Port: firstPort + 1}}); err != nil {
					t.Fatal(err)
				}
				for port := range r.queues { // all links are busy
					r.measureLen(port, 1500)
				}
				probe := r.hardwareProbe(append(make([]byte, 12), 0x88, 0xB6), model.Probe{Origin: here, Degree: 5})
				out := r.sw.Ingress(r.sw.Receive(uint32(r.parameter("cpu")), probe, r.clock()), r.clock(), nil)
				if len(out) != 2 {
					t.Fatalf("a probe of our own becomes %+v", out)
				}
				for _, o := range out {
					r.sw.Enqueued(o.Packet, 0, r.clock())
					e := r.sw.Egress(o.Packet, 0, r.clock(), nil)
					if got := e[0].Packet.Bytes(); string(got) != string(probe) {
						t.Errorf("it leaves as % x, came as % x", got, probe)
					}
				}
				r.compareRegisters()
			})
		}
	}
}

// pathProbe sends a probe along a path, returns a probe of another switch, and receives
// its own probe back.
func (r *rig) pathProbe() {
	r.t.Helper()
	r.add("LbIngress.leaf", exact(here), "LbIngress.at_home", map[string]uint64{"id": here})
	frame := func(src, dst, path, flags byte, tx uint32) []byte {
		b := append(make([]byte, 12), 0x88, 0xB7, 0, src, 0, dst, path, flags)
		return binary.BigEndian.AppendUint32(b, tx)
	}
	met := 0
	pass := func(port uint32, b []byte) dataplane.Outcome {
		out := r.sw.Ingress(r.sw.Receive(port, b, r.clock()), r.clock(), nil)
		if len(out) != 1 {
			r.t.Fatalf("a probe from port %d becomes %+v", port, out)
		}
		r.sw.Enqueued(out[0].Packet, met, r.clock())
		return r.sw.Egress(out[0].Packet, 0, r.clock(), nil)[0]
	}
	o := pass(uint32(r.parameter("cpu")), frame(here, 1, 2, 0, 0))
	if want := frame(here, 1, 2, 0, uint32(r.now)); int(o.Port) != r.groups[1].Ports[2] || string(o.Packet.Bytes()[14:]) != string(want[14:]) {
		r.t.Errorf("a probe of our own leaves port %d as % x, want % x", o.Port, o.Packet.Bytes(), want)
	}
	o = pass(firstPort, frame(1, here, 3, 0, 77))
	if want := frame(here, 1, 3, 1, 77); o.Port != firstPort || string(o.Packet.Bytes()) != string(want) {
		r.t.Errorf("another one turns round at port %d as % x, want % x", o.Port, o.Packet.Bytes(), want)
	}
	if r.man.Signal == "marks" {
		met = 1500 * int(r.parameter("ecnk")) / r.hw.Cell
		for _, flags := range []byte{0, 2} { // at the limit, and beyond it
			if o = pass(uint32(r.parameter("cpu")), frame(here, 1, 2, 0, 0)); o.Packet.Bytes()[19] != flags {
				r.t.Errorf("a probe that has met %d cells has the flags %d, want %d", met, o.Packet.Bytes()[19], flags)
			}
			met++
		}
	}
	r.learnPath(model.PathNews{Group: 1, Slot: 2, RTT: 30})
	r.compareRegisters()
}
