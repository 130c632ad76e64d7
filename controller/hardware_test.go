package controller_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/controller/inspect"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/task"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// ticks is a time as programs for Tofino count it.
func ticks(t time.Duration) uint64 { return uint64(t) >> 10 }

// TestHardwareReadings checks decoded cells of Tofino programs: the same values as on
// software switches, in pairs, in copies, and with another clock.
func TestHardwareReadings(t *testing.T) {
	leftToPlainRun(t)
	const now = time.Second // when virtual networks begin
	for _, c := range []struct {
		scheme          string
		cells           []cell
		quantity, index string
		value           float64
		text            string
		raw             uint64
	}{
		{"qall-pkt", []cell{{"LbIngress.level_0.q_C", 3, 2}}, "congestion", "port 3", 2, "2 level", 2},
		{"qall-pkt", []cell{{"LbIngress.level_1.q_C", 3, 2}}, "congestion", "port 3", 0, "0 level", 0}, // an unused copy
		{"qall-pkt", []cell{{"qe_L", 3, 3<<8 | 1}}, "qe_L", "port 3", 1.0 / 3, "0.33", 3},              // 9 is full
		{"qall-pkt", []cell{{"qe_L", 3, 9<<8 | 1}}, "qe_V", "port 3", 2, "rising", 1},
		{"qall-pkt", []cell{{"qe_L", 3, 9 << 8}}, "qe_V", "port 3", 1, "falling", 0},
		{"qall-pkt", nil, "share", "group 1 path 2", 0.25, "25 %", 0},
		{"drill", []cell{{"LbIngress.queue_0.q_len", 3, 12}}, "queue", "port 3", 12, "12 cells of 80 bytes", 12},
		{"drill", []cell{{"qe_clone", 3, ticks(now - 2*time.Millisecond)}}, "qe_clone", "port 3", 998_000, "2 ms ago", ticks(now - 2*time.Millisecond)},
		{"drill", nil, "qe_clone", "port 3", 0, "never", 0},
		// The 32-bit clock has wrapped in between.
		{"drill", []cell{{"qe_clone", 3, 1<<32 - 1}}, "qe_clone", "port 3", 1, "1 s ago", 1<<32 - 1},
		{"dhlb", []cell{{"LbIngress.degree_1.deg", 2, 3<<32 | ticks(now-time.Millisecond)}}, "degree", "leaf 2 path 2", 3, "3", 3},
		{"dhlb", []cell{{"LbIngress.degree_1.deg", 2, 3<<32 | ticks(now-time.Millisecond)}}, "deg_ts", "leaf 2 path 2", 999_000, "1 ms ago", ticks(now - time.Millisecond)},
		{"dhlb", []cell{{"LbIngress.degree_1.deg", 2, 3 << 32}, {"LbIngress.degree_2.deg", 2, 1 << 32}}, "share", "leaf 2 path 2", 0.75, "75 %", 0},
		{"dhlb", []cell{{"u_in", 3, 128}}, "utilisation", "port 3", 0.5, "50 %", 128},
		{"hula", []cell{{"best", 2, 64<<16 | 2}}, "best path", "leaf 2", 2, "path 3, port 5", 2},
		{"hula", []cell{{"best", 2, 64<<16 | 2}}, "utilisation", "leaf 2", 0.25, "25 %", 64},
		{"hula", nil, "best path", "leaf 2", 65535, "none", 65535},
		{"pdlb", []cell{{"rtt", 2<<4 + 3, 293}}, "delay", "leaf 2 path 4", 300, "300 us", 293},
		{"conga", []cell{{"LbIngress.remote_1.to_leaf", 2, 0x700 << 32}}, "congestion", "leaf 2 path 2", 1, "1.00", 0x700},
		{"letflow+rlb", []cell{{"LbIngress.warning_0.until", 4, ticks(now + 1500*time.Microsecond)}}, "warned", "port 4", 1, "for 1.5 ms", 0},
		{"letflow+rlb", []cell{{"ig_0", 4, 4096<<32 | ticks(now-time.Millisecond)}}, "ig_q0", "port 4", 4096, "4 KB", 4096},
		{"letflow+rlb", []cell{{"ig_0", 4, 4096<<32 | ticks(now-time.Millisecond)}}, "ig_t0", "port 4", 999_000, "1 ms ago", ticks(now - time.Millisecond)},
	} {
		r := readingOf(t, c.scheme+"@tna", c.cells, c.quantity, c.index)
		if math.Abs(r.Value-c.value) > 1e-3*max(1, c.value) || r.Text != c.text || r.Raw != c.raw {
			t.Errorf("%s %v: %s of %s is %v, %q, %#x; want %v, %q, %#x", c.scheme, c.cells, c.quantity, c.index, r.Value, r.Text, r.Raw, c.value, c.text, c.raw)
		}
	}
}

// TestNamedHardwareRegisters: registers that are asked for by name are shown one
// by one, copies too.
func TestNamedHardwareRegisters(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "drill@tna", nil)
	n.write("l1", "LbIngress.queue_2.q_len", 3, 5)
	s := snapshot(t, n.inspector("l1", inspect.Options{Registers: []string{"LbIngress.queue_2.q_len"}}))
	if r := reading(t, s, "queue", "port 3"); r.Value != 5 {
		t.Errorf("the copy has %v, want 5", r.Value)
	}
	_, err := inspect.New(n.plan.Nodes()[0], n.registers("l1"), inspect.Options{Registers: []string{"q_len"}})
	if err == nil || !strings.Contains(err.Error(), `there is no register "q_len"`) {
		t.Errorf("the error is %v", err)
	}
}

// TestFilters: a link at the program's rate gives 256, and the time constant is
// approximately the requested one.
func TestFilters(t *testing.T) {
	for _, link := range []string{"1Mbps", "100Mbps", "400Mbps", "1Gbps", "40Gbps", "400Gbps"} {
		for _, window := range []string{"4", "10", "24"} {
			set := map[string]string{"link": link, "window": window}
			row, err := codegen.Lookup("hula")
			if err != nil {
				t.Fatal(err)
			}
			p, err := codegen.Generate(row, codegen.Params{Arch: "tna", Set: set})
			if err != nil {
				t.Logf("%s, 2^%s us: %v", link, window, err)
				continue
			}
			list := plan.FiltersOf(&p.Manifest)
			if len(list) != 1 || list[0].Name != "u" || list[0].Sample {
				t.Fatalf("the filters are %v", list)
			}
			var rate, k int64
			for _, v := range p.Manifest.Parameters {
				switch v.Name {
				case "link":
					rate = v.Number
				case "window":
					k = v.Number
				}
			}
			f := list[0]
			if full := float64(rate) / 8 * f.Time.Seconds() / math.Exp2(float64(f.Shift)); math.Abs(full-256) > 0.1 {
				t.Errorf("%s, 2^%s us: a busy link gives %.2f, want 256", link, window, full)
			}
			wanted := float64(int64(1)<<k) / 1e6
			if off := f.Time.Seconds() / wanted; f.Shift > 0 && (off < 1/math.Sqrt2-1e-6 || off > math.Sqrt2+1e-6) {
				t.Errorf("%s, 2^%s us: the time constant is %v, %.2f times too long", link, window, f.Time, off)
			}
		}
	}
}

// TestDevicePorts: ports that the hardware keeps for itself are left out, in the
// order of the topology's.
func TestDevicePorts(t *testing.T) {
	top := leafSpine(t, 0)
	if plan.DevicePorts(top, "") != top || plan.DevicePorts(top, "v1model") != top || plan.DevicePorts(top, "tna") != top {
		t.Error("ports were changed that need not be")
	}
	got := plan.DevicePorts(top, "t2na")
	for _, s := range top.Switches {
		for i, p := range top.Ports(s.Name) {
			if q := got.Ports(s.Name)[i]; q.Number != p.Number+7 || q.Peer != p.Peer {
				t.Errorf("%s: port %d became %d", s.Name, p.Number, q.Number)
			}
		}
	}
	if plan.DevicePorts(got, "t2na") != got {
		t.Error("device ports were taken for front ports")
	}
	wide, err := fabric.LeafSpine{Leaves: 1, Spines: 1, Hosts: 300}.Make()
	if err != nil {
		t.Fatal(err)
	}
	for arch, reserved := range map[string]func(port int) bool{
		"tna":  func(p int) bool { return p&0x7f >= 64 && p&0x7f <= 71 },
		"t2na": func(p int) bool { return p&0x7f < 8 },
	} {
		seen := map[int]bool{}
		for _, p := range plan.DevicePorts(wide, arch).Ports("l1") {
			if reserved(p.Number) || seen[p.Number] || p.Number > fabric.MaxPort {
				t.Errorf("%s: port %d is given away", arch, p.Number)
			}
			seen[p.Number] = true
		}
		if len(seen) != 301 {
			t.Errorf("%s: %d ports, want 301", arch, len(seen))
		}
	}
}

// TestHardwareProbes: HULA's probes report a path between the leaves to both, and the
// leaves remove it when the probes stop.
func TestHardwareProbes(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 10*time.Microsecond), "hula@tna", nil)
	tasks := n.tasks(task.Options{})
	n.play(tasks, n.now+ms)
	for leaf, other := range map[string]int{"l1": 2, "l2": 1} {
		if hop := n.cell(leaf, "best", other) & 0xffff; hop > 3 {
			t.Errorf("%s: best hop to leaf %d is %#x, want a slot of 4", leaf, other, hop)
		}
		if at := n.cell(leaf, "upd", other); at == 0 {
			t.Errorf("%s has heard of no probe of leaf %d", leaf, other)
		}
	}
	expire := taskOf(t, tasks, "expire", "l1")
	for _, c := range []struct {
		after time.Duration
		gone  bool
	}{{100 * time.Microsecond, false}, {2 * ms, true}} {
		n.now += c.after
		if _, err := expire.Run(n.now, n); err != nil {
			t.Fatal(err)
		}
		if gone := n.cell("l1", "best", 2) == 0xffffffff; gone != c.gone {
			t.Errorf("%v after the probes: the best path is %#x", c.after, n.cell("l1", "best", 2))
		}
	}
}

// TestHardwarePathProbes: round trips are measured in ticks, and flowcells cut
// by them.
func TestHardwarePathProbes(t *testing.T) {
	const delay = 25 * time.Microsecond
	n := newVirtualNet(t, leafSpine(t, delay), "pdlb@tna", nil)
	n.play(n.tasks(task.Options{}), n.now+1200*time.Microsecond)
	for slot := range 4 {
		if rtt := n.cell("l1", "rtt", 2<<4+slot); rtt < ticks(4*delay) || rtt > ticks(4*delay)+1 {
			t.Errorf("the round trip by path %d takes %d ticks, want %d", slot, rtt, ticks(4*delay))
		}
	}
	if n.cell("l1", "pd_gran", 2) == 0 {
		t.Error("there is no granularity")
	}
	soft := newVirtualNet(t, leafSpine(t, delay), "pdlb", nil)
	soft.play(soft.tasks(task.Options{}), soft.now+1200*time.Microsecond)
	if a, b := n.cell("l1", "pd_gran", 2), soft.cell("l1", "pd_gran", 2); a != b {
		t.Errorf("the granularity is %d, on a software switch %d", a, b)
	}
}

// TestHardwareLoad: the period of DHLB's probes follows the reported load.
func TestHardwareLoad(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "dhlb@tna", map[string]string{"gap": "50us"})
	for _, name := range []string{"l1", "l2"} {
		for port, p := range n.switches[name].ports {
			if p.PeerTier > 0 {
				n.write(name, "u_in", port, 128)
			}
		}
	}
	next, err := taskOf(t, n.tasks(task.Options{}), "probe", "").Run(n.now, quiet{n})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := next-n.now, 360*time.Microsecond; got != want {
		t.Errorf("the next probes are due in %v, want %v", got, want)
	}
}

// TestHardwareRezero: counts of a port are reset while the switch is empty if they are
// not zero.
func TestHardwareRezero(t *testing.T) {
	n := newVirtualNet(t, leafSpine(t, 0), "letflow+rlb@tna", nil)
	task := taskOf(t, n.tasks(task.Options{}), "rezero", "l1")
	run := func(want uint64, why string) {
		t.Helper()
		n.step(task)
		for _, name := range []string{"ig_in", "ig_out", "eg_out"} {
			if got := n.cell("l1", name, 1); got > want {
				t.Errorf("%s: %s is %d, want at most %d", why, name, got, want)
			}
		}
		if got := n.cell("l1", "ig_in", 1); got != want {
			t.Errorf("%s: ig_in is %d, want %d", why, got, want)
		}
	}
	set := func(in, out, gone uint64) {
		n.write("l1", "ig_in", 1, in)
		n.write("l1", "ig_out", 1, out)
		n.write("l1", "eg_out", 1, gone)
	}
	set(4711, 4000, 4500)
	run(0, "the switch says that it is empty")
	set(4711, 4711, 4711)
	run(4711, "nothing is left over")
	n.silent = true
	set(4711, 4000, 4500)
	run(4711, "first look at a switch that does not tell")
	set(4711, 4000, 4600)
	run(4711, "a packet has left")
	run(0, "nothing has moved")
}
