package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// TestLimits accepts the smallest and the largest value of each key, and refuses the
// values beyond.
func TestLimits(t *testing.T) {
	const faults = "faults: [{at: 2us, switch: s1, %s}]"
	for _, c := range []struct {
		text string // with %v for the value
		good []any
		bad  []any
	}{
		{"mtu: %v", []any{256, 9216}, []any{255, 9217, -1}},
		{"loads: [%v]", []any{1, 0.001, "100%"}, []any{1.001, 0, "101%", "x"}},
		{"seeds: %v", []any{1, 1000, "[18446744073709551615]", "[7, 5]", "'5-1004'"}, []any{0, 1001, -1, "[0]", "[3, 3]", "[]", "'5-1005'", "'1-1000,2000'", "'0-3'", "x"}},
		{"warmup: %v", []any{0, "0%", "99.9%", "99us"}, []any{"100%", "-1%", "100us", "x%", "5"}},
		{"transport: dctcp\nswitches: {ecn: %v}", []any{0, 1, 1000000000, "none"}, []any{-1, 1000000001, "x"}},
		{"switches: {queue: %v}", []any{0, 1}, []any{-1}},
		{"traffic: [{load: %v}]", []any{0, 0.5, 1}, []any{-0.1, 1.1}},
		{"traffic: [{share: %v}]", []any{0, 0.5, 1}, []any{-0.1, 1.1}},
		{"traffic: [{load-of: %v}]", []any{"hosts", "fabric", "1G"}, []any{"links", 0}},
		{"traffic: [{connections: %v}]", []any{"persistent", "per-message", "queue-pair"}, []any{"tls"}},
		{"traffic: [{transport: udp, udp-rate: 1M, connections: %v}]", nil, []any{"persistent"}},
		{"traffic: [{transport: %v}]", []any{"tcp", "dcqcn"}, []any{"quic"}},
		{"traffic: [{size: 5, file: %v}]", nil, []any{"f.txt"}},
		{"traffic: [{pattern: halves, file: %v}]", nil, []any{"f.txt"}},
		{"traffic: [{pattern: collective, size: 100KB, collective: %v}]", []any{"all-reduce"}, []any{"''"}},
		{"traffic: [{pattern: pairs, pairs: [%v]}]", []any{"h1-h2", "h1..h2-h5..h6", "l1-l2"}, []any{"h1", "h9-h1", "h1-h9", "h1..h3-h5..h6", ""}},
		{"traffic: [{pattern: permutation, from: [%v]}]", []any{"h1, h5", "l1, l2", "h1, h2, h5, h6"}, []any{"h1", "h1, h2, h5", "h1, h2"}},
		{"traffic: [{from: [%v], to: [h1]}]", []any{"h2", "h1, h2", "h1..h2"}, []any{"h1", "h0", "h9", "h2..h1", "h1..h9"}},
		{"traffic: [{to: [%v]}]", []any{"h1", "l2"}, []any{"h0", "x"}},
		{"transport: {kind: tcp, entropy: oblivious, paths: %v}", []any{0, 2, 4}, []any{1, 3, -2}},
		{"transport: {kind: tcp, ports: %v}", []any{"random", "consecutive"}, []any{"even"}},
		{"transport: {kind: dcqcn, rdma: {headers: %v}}", []any{42, 50}, []any{41, 1000000}},
		{"transport: {kind: dcqcn, rdma: {answer: %v}}", []any{42, 50}, []any{41, 1000000}},
		{"transport: {kind: dcqcn, rdma: {bth: true, headers: %v}}", []any{58, 70}, []any{57}},
		{"transport: {kind: dcqcn, rdma: {bth: true, answer: %v}}", []any{62, 70}, []any{61}},
		{"transport: {kind: dcqcn, rdma: {recovery: %v}}", []any{0, 5}, []any{-1}},
		{"transport: {kind: uec, uec: {headers: %v}}", []any{42}, []any{41, 1000000}},
		{"transport: {kind: uec, uec: {answer: %v}}", []any{42}, []any{41, 1000000}},
		{"transport: {kind: uec, uec: {control: rccc, oversubscription: %v}}", []any{0, 1, 1.5}, []any{0.9, -1, 1e9}},
		{"transport: {kind: uec, uec: {oversubscription: %v}}", []any{0}, []any{2}},
		{"transport: {kind: uec, uec: {control: %v}}", []any{"nscc", "rccc"}, []any{"none"}},
		{"transport: {kind: uec, uec: {loss: %v}}", []any{"trim", "timeout", "gap"}, []any{"none"}},
		{"transport: {kind: tcp, uec: {loss: %v}}", nil, []any{"trim"}},
		{"transport: uec\nswitches: {pfc: %v}", []any{false}, []any{true}},
		{fmt.Sprintf(faults, "drop: %v"), []any{0.1, 1}, []any{0, -0.1, 1.1}},
		{fmt.Sprintf(faults, "black-hole: %v"), []any{0.1, 1}, []any{0, -0.1, 1.1}},
		{fmt.Sprintf(faults, "bit-errors: %v"), []any{0.1, 0.99}, []any{0, -0.1, 1}},
		{fmt.Sprintf(faults, "down: true, until: %v"), []any{0, "3us"}, []any{"2us", "1us"}},
		{fmt.Sprintf(faults, "drop: 0.1, until: 5us, every: 4us, times: %v"), []any{2, 10000}, []any{1, 10001, 0, -1}},
		{fmt.Sprintf(faults, "down: true, until: 5us, times: 2, every: %v"), []any{"4us"}, []any{"3us", "0s"}},
		{fmt.Sprintf(faults, "rate: 1G, known: %v"), []any{true, false}, nil},
		{"faults: [{at: 1us, down: true, %v}]", []any{"link: l1-s1", "switch: s1"}, []any{"link: l1-s1, switch: s1", "link: l1-l2", "switch: x", "plane: 9", "at: 1us"}},
		{"faults: [{at: 1us, link: l1-s1, %v}]", []any{"rate: 1G", "bit-errors: 0.1", "down: true"}, []any{"drop: 0.1", "black-hole: 0.1", "rate: 1G, down: true"}},
		{"links: [{link: %v, rate: 1G}]", []any{"l1-s1", "s1"}, []any{"l1-l2", "x"}},
		{"classes: [{name: a, upto: 1KB}, {name: b, upto: %v}, {name: c}]", []any{"2KB"}, []any{"1KB"}},
		{"classes: [{name: a, upto: 1KB}, {name: %v}]", []any{"b"}, []any{"''", "b, upto: 5KB"}},
		{"metrics: [%v]", []any{"fct-mean", "fct-p99", "'fct-p99:short'", "queue-mean"}, []any{"fct", "'fct-mean:tiny'", "x"}},
		{"traffic: [{collective: all-reduce, size: 100KB, groups: %v}]", []any{0, 1, 2, 4}, []any{3, 8, -1}},
		{"traffic: [{collective: all-reduce, size: 100KB, ranks: %v}]", []any{0, 2, 8}, []any{1, 9, -1}},
		{"schemes: [{scheme: drill, candidates: %v}]", nil, []any{"hosts"}},
		{"ceiling: [%v]", []any{"fast-core", "keep-early", "fast-core, oracle"}, []any{"no-pauses", "fast-core, fast-core", "slow"}},
		{"schemes: [ecmp, {scheme: drill, label: oracle}]\nceiling: [%v]", []any{"fast-core"}, []any{"oracle"}},
		{"transport: udp\nceiling: [%v]", nil, []any{"keep-early", "oracle"}},
		{"topology: qall\nceiling: [%v]", []any{"keep-early"}, []any{"fast-core"}},
		{"topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2}}\nceiling: [%v]", []any{"keep-early"}, []any{"fast-core"}},
	} {
		load := func(value any) error {
			text := fmt.Sprintf(c.text, value) + "\n"
			for _, key := range []struct{ name, line string }{
				{"topology", "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}"}, {"schemes", "schemes: [ecmp, drill]"}, {"duration", "duration: 100us"},
			} {
				if !strings.Contains(text, key.name+":") {
					text += key.line + "\n"
				}
			}
			_, err := Load("x.yaml", []byte(text), NoFiles, nil)
			return err
		}
		for _, v := range c.good {
			if err := load(v); err != nil {
				t.Errorf(c.text+": %v", v, err)
			}
		}
		for _, v := range c.bad {
			if err := load(v); err == nil || !strings.HasPrefix(err.Error(), "x.yaml") || strings.Contains(err.Error(), "\n") {
				t.Errorf(c.text+": %v: want an error in one line with its place", v, err)
			}
		}
	}
}

// TestCeilings removes each effect from the settings of each kind of topology, also at
// the paper's size.
func TestCeilings(t *testing.T) {
	for name, text := range map[string]string{
		"rail":       "topology: {rail: {rails: 2, servers: 4, spines: 2, rate: 3G}}\nfull: {topology: {rail: {rails: 4, servers: 4, spines: 2, rate: 5G}}}",
		"fat-tree":   "topology: {fat-tree: {k: 4, rate: 3G}}\nfull: {topology: {fat-tree: {k: 6, rate: 5G}}}",
		"leaf-spine": "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 3G}}\nfull: {topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 5G}}}",
	} {
		for kind, transport := range map[string]string{"tcp": "transport: {kind: tcp, max-dupacks: 9}", "dctcp": "transport: {kind: dctcp, dupacks: 5}", "dcqcn": "transport: {kind: dcqcn, rdma: {nack: selective, repeat: all}}"} {
			x, err := Load("x.yaml", []byte(text+"\n"+transport+"\nswitches: {pfc: true, pfc-threshold: 9KB}\nengine: native\nduration: 1ms\nschemes: [ecmp, drill]\nceiling: [no-pauses, keep-early, fast-core, oracle]\ntraffic: [{}]\n"), nil, nil)
			if err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			for _, full := range []bool{false, true} {
				rate, whole := fabric.Rate(3e9), x
				if full {
					rate, whole = 5e9, x.Whole()
				}
				if len(whole.Cases) != 5 {
					t.Fatalf("%s: %d cases: want the case and 4 ceilings", name, len(whole.Cases))
				}
				for i := range whole.Cases {
					c := &whole.Cases[i]
					topo, err := c.Network(NoFiles)
					if err != nil {
						t.Fatal(err)
					}
					core, buffer := fabric.Rate(0), fabric.Size(0)
					for _, s := range topo.Switches {
						buffer = max(buffer, s.Buffer)
						for _, p := range topo.Ports(s.Name) {
							if p.PeerTier > 0 {
								core = max(core, p.Rate)
							}
						}
					}
					wantCore, wantGrown := rate, 0.0
					if c.Name == FastCore {
						wantCore, wantGrown = 10*rate, 10
					}
					if core != wantCore || c.Traffic[0].Grown != wantGrown {
						t.Errorf("%s %s (full %v): the core has %v and flows have %g times the core: want %v, %g", name, c.Name, full, core, c.Traffic[0].Grown, wantCore, wantGrown)
					}
					if endless := c.Switches.Pause == 1000<<20 && buffer == 2000<<20; endless != (c.Name == NoPauses) {
						t.Errorf("%s %s (full %v): pauses at %d, buffer %d", name, c.Name, full, c.Switches.Pause, buffer)
					}
					if all := c.Switches.Knowledge == everywhere; all != (c.Name == Oracle) {
						t.Errorf("%s %s: knowledge %q", name, c.Name, c.Switches.Knowledge)
					}
					wantTransport := x.Transport
					switch {
					case c.Name != KeepEarly && c.Name != Oracle:
					case kind == "dcqcn":
						wantTransport.RDMA.Nack, wantTransport.RDMA.Repeat = nackNone, ""
					default:
						wantTransport.DupAck, wantTransport.MaxDup = 1<<20, 0
					}
					if got := c.Transport; got.DupAck != wantTransport.DupAck || got.MaxDup != wantTransport.MaxDup || got.RDMA.Nack != wantTransport.RDMA.Nack || got.RDMA.Repeat != wantTransport.RDMA.Repeat {
						t.Errorf("%s %s %s: transport %+v, want %+v", name, kind, c.Name, got, wantTransport)
					}
					want := []string{"ecmp", "drill"}
					if c.Name == Oracle {
						want = []string{OracleRow}
					}
					if !slices.Equal(c.Schemes, want) {
						t.Errorf("%s %s: rows %v, want %v", name, c.Name, c.Schemes, want)
					}
				}
			}
		}
	}
}

// TestDesigns lists the settings of designs that change several choices at once.
func TestDesigns(t *testing.T) {
	level := func(n int) OpenChoice { return OpenChoice{Key: "k", Levels: make([]Level, n)} }
	v := &Vary{Design: Factorial, Open: openChoices{level(2), level(3)}}
	if got, want := fmt.Sprint(v.Together()), "[[0 0] [1 0] [0 2] [1 2] [1 2] [0 2] [1 0] [0 0]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// Each choice has each of its two levels in half of the settings, and each pair of
	// choices has each pair of levels equally often.
	v.Open = openChoices{level(2), level(2), level(3), level(2)}
	list := v.Together()
	if len(list) != 16 {
		t.Fatalf("%d settings of 4 choices: want 16", len(list))
	}
	for a := range v.Open {
		for b := range a {
			count := map[[2]int]int{}
			for _, s := range list {
				count[[2]int{s[a], s[b]}]++
			}
			for _, i := range []int{0, len(v.Open[a].Levels) - 1} {
				for _, j := range []int{0, len(v.Open[b].Levels) - 1} {
					if count[[2]int{i, j}] != 4 {
						t.Errorf("choices %d and %d: levels %d and %d in %d settings, want 4", a, b, i, j, count[[2]int{i, j}])
					}
				}
			}
		}
	}
	// The trajectories of Morris change one choice at a time.
	v.Design = Morris
	list = v.Together()
	if len(list) != Trajectories*5 {
		t.Fatalf("%d settings: want %d trajectories of 5", len(list), Trajectories)
	}
	for i, s := range list {
		changed := 0
		for k, l := range s {
			if l < 0 || l >= len(v.Open[k].Levels) {
				t.Fatalf("setting %d: %v", i, s)
			}
			if i%5 > 0 && list[i-1][k] != l {
				changed++
			}
		}
		if want := min(1, i%5); changed != want {
			t.Errorf("setting %d: %d choices changed, want %d", i, changed, want)
		}
	}
	for k := range v.Open { // each choice once in each trajectory
		if list[0][k] == list[4][k] {
			t.Errorf("choice %d has not changed in a trajectory", k)
		}
	}
	if v.Design = ""; v.Together() != nil {
		t.Error("one choice at a time has settings of several")
	}
	x := &Experiment{Seeds: Seeds{4, 9}}
	v.Seeds = nil
	if got := fmt.Sprint(v.Fresh(x)); got != "[10 11]" {
		t.Errorf("fresh seeds %s: want [10 11]", got)
	}
	v.Confirm = Seeds{70}
	if got := fmt.Sprint(v.Fresh(x)); got != "[70]" {
		t.Errorf("seeds for confirmation: %s: want [70]", got)
	}
}

// TestVariants sets keys of sections, list items and parameters, which the file has in
// full, in short form, or not at all.
func TestVariants(t *testing.T) {
	const base = "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}\nduration: 1ms\n"
	for _, c := range []struct {
		text, vary string
		got        func(*Experiment) any
		want       string
	}{
		{"schemes: [drill]\ntransport: dcqcn", "open: {transport.rdma.window: [7KB]}", func(x *Experiment) any { return x.Transport.RDMA.Window }, "7KB"},
		{"schemes: [drill]\ntransport: {kind: dcqcn}", "open: {transport.rdma.window: [7KB]}", func(x *Experiment) any { return x.Transport.Kind }, "dcqcn"},
		{"schemes: [drill]\ntraffic: [{}, {share: 0.5}]", "open: {'traffic[1].share': [0.25]}", func(x *Experiment) any { return fmt.Sprint(x.Traffic[0].Share, x.Traffic[1].Share) }, "0 0.25"},
		{"schemes: [drill]\nloads: [0.2, 0.3]", "open: {'loads[1]': [0.5]}", func(x *Experiment) any { return x.Loads }, "[0.2 0.5]"},
		{"schemes: [{scheme: drill, set: {d: 2}}]", "open: {set.d: [3]}", func(x *Experiment) any { return fmt.Sprint(x.Schemes[0].Set, x.Cases[0].Set) }, "map[d:3] map[d:3]"},
		{"schemes: [drill]\ncases: [{name: a}, {name: b, set: {d: 2, m: 1}}]", "open: {set.d: [3]}", func(x *Experiment) any { return fmt.Sprint(x.Cases[0].Set, x.Cases[1].Set) }, "map[d:3] map[d:3 m:1]"},
		{"schemes: [drill]\ncases: [{name: a}, {name: b, switches: {queue: 5}}]", "open: {switches.queue: [9]}", func(x *Experiment) any { return fmt.Sprint(x.Cases[0].Switches.Queue, x.Cases[1].Switches.Queue) }, "9 9"},
		{"schemes: [drill]\ncases: [{name: a, switches: {queue: 4}}, {name: b, switches: {queue: 5}}]\ntargets: [{case: b, metric: fct-mean, of: drill, at-least: 1}]", "open: {switches.queue: [9]}, cases: [b]", func(x *Experiment) any { return fmt.Sprint(x.Cases[0].Switches.Queue, x.Cases[1].Switches.Queue) }, "4 9"},
		{"schemes: [drill]\ncases: [{name: a, traffic: [{share: 0.1}]}]", "open: {'traffic[0].share': [0.25]}", func(x *Experiment) any { return fmt.Sprint(x.Cases[0].Traffic[0].Share) }, "0.25"},
	} {
		x, err := Load("x.yaml", []byte(base+c.text+"\nvary: {"+c.vary+"}\n"), NoFiles, nil)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if y, err := x.Variant([]int{0}); err != nil || fmt.Sprint(c.got(y)) != c.want {
			t.Errorf("%s with %s: %v (%v), want %s", c.text, c.vary, c.got(y), err, c.want)
		}
		if y, err := x.Variant([]int{-1}); err != nil || fmt.Sprint(c.got(y)) != fmt.Sprint(c.got(x)) {
			t.Errorf("%s: unchanged it is %v (%v), was %v", c.text, c.got(y), err, c.got(x))
		}
	}
	for text, want := range map[string]string{
		"open: {'loads[1]': [0.5]}":        "there is no loads[1]",
		"open: {'loads[x]': [0.5]}":        "there is no loads[x]",
		"open: {'loads[-1]': [0.5]}":       "there is no loads[-1]",
		"open: {'loads[0].x': [0.5]}":      "loads[0] has no keys",
		"open: {duration.x: [0.5]}":        "duration",
		"open: [duration]":                 "want keys, each with a list of values",
		"open: {duration: [1ms, 1s, bad]}": `duration: time "bad"`,
	} {
		_, err := Load("x.yaml", []byte(base+"schemes: [drill]\nloads: [0.2]\nvary: {"+text+"}\n"), NoFiles, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestTargetErrors refuses targets of unknown rows, cases and metrics.
func TestTargetErrors(t *testing.T) {
	const base = "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}\nduration: 1ms\nschemes: [drill, ecmp]\ncases: [{name: a}, {name: b}]\ntargets:\n - "
	for text, want := range map[string]string{
		"{case: a, metric: fct-mean, of: drill, at-least: 1}":                                              "",
		"{case: a, metric: fct-mean, of: drill, at-most: 1}":                                               "",
		"{case: a, metric: fct-mean, of: drill, against: ecmp, below: true}":                               "",
		"{case: a, metric: fct-mean, of: drill, against-case: b, below: true}":                             "",
		"{case: a, metric: fct-mean, of: drill, against: ecmp, ratio: true, printed: 2}":                   "",
		"{case: c, metric: fct-mean, of: drill, at-least: 1}":                                              `there is no case "c"`,
		"{case: a, against-case: c, metric: fct-mean, of: drill, at-least: 1}":                             `there is no case "c"`,
		"{case: a, metric: fct-average, of: drill, at-least: 1}":                                           `there is no metric "fct-average"`,
		"{case: a, metric: fct-mean, of: conga, at-least: 1}":                                              `there is no row "conga"`,
		"{case: a, metric: fct-mean, of: drill, against: conga, at-least: 1}":                              `there is no row "conga"`,
		"{case: a, metric: fct-mean, order: [drill, conga]}":                                               `there is no row "conga"`,
		"{case: a, metric: fct-mean, of: drill, at-least: 1, open: why, not-comparable: why}":              "want open or not-comparable, not both",
		"{case: a, metric: fct-mean, of: drill, against-case: b, below: true, ratio: true, at-least: 1.5}": "below compares two rows by percent",
	} {
		_, err := Load("x.yaml", []byte(base+text+"\n"), NoFiles, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "x.yaml:6: targets[0]: "+want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestFigures keeps the cases that the targets of a figure need, with their ceilings.
func TestFigures(t *testing.T) {
	x, err := Load("x.yaml", []byte(`name: x
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}
duration: 1ms
schemes: [drill, ecmp]
ceiling: [fast-core]
cases: [{name: a}, {name: b}, {name: c}]
targets:
  - {figure: fig1, case: a, metric: fct-mean, of: drill, against-case: b, below: true}
  - {figure: fig2, case: c, metric: fct-mean, order: [ecmp, drill]}
`), NoFiles, nil)
	if err != nil {
		t.Fatal(err)
	}
	for figure, want := range map[string]string{
		"fig1": "x-fig1 fig1 1 [a b a fast-core b fast-core]", "fig2": "x-fig2 fig2 1 [c c fast-core]", AllFigures: "x  2 [a b c a fast-core b fast-core c fast-core]",
	} {
		y, err := x.Only(figure)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(y.Name, " ", y.Figure(), " ", len(y.Targets), " ", lists.Map(y.Cases, func(c Case) string { return c.Name })); got != want {
			t.Errorf("figure %s: %s, want %s", figure, got, want)
		}
	}
	if _, err := x.Only("fig3"); err == nil || err.Error() != `x has no target of a figure "fig3": want one of fig1, fig2, all` {
		t.Errorf("figure fig3: %v", err)
	}
	if y := x.OnlyFigure(""); y != x {
		t.Error("without a figure, the experiment has changed")
	}
}

// TestArrivals computes the rate of flows from loads, shares and rates.
func TestArrivals(t *testing.T) {
	topo := small(t)
	for _, c := range []struct {
		tr   Traffic
		want float64
	}{
		{Traffic{Size: 1000, LoadOf: OfHosts}, 0.5 * 8e9 / 8000},
		{Traffic{Size: 1000, LoadOf: OfHosts, Load: 0.2, Share: 0.5}, 0.2 * 8e9 / 8000},
		{Traffic{Size: 1000, LoadOf: OfHosts, Share: 0.5}, 0.25 * 8e9 / 8000},
		{Traffic{Size: 1000, LoadOf: OfHosts, Share: 0.5, Rate: 7}, 7},
		{Traffic{Size: 1000, MinSize: 500, LoadOf: "2G"}, 0.5 * 2e9 / 6000},
		{Traffic{Size: 1000, LoadOf: OfFabric}, 0.5 * 4e9 * 7 / 4 / 8000},
		{Traffic{Size: 1000, LoadOf: OfFabric, Grown: 10}, 0.5 * 4e9 * 7 / 4 / 10 / 8000},
		{Traffic{Size: 1000, LoadOf: OfFabric, Pattern: Halves}, 0.5 * 2e9 / 8000},
		{Traffic{Size: 1000, LoadOf: OfFabric, Pattern: permutation}, 0.5 * 4e9 / 8000},
		{Traffic{Size: 1000, LoadOf: OfFabric, Pattern: pairs, Pairs: []string{"h1-h2", "h1-h5"}}, 0.5 * 2e9 * 2 / 8000},
		{Traffic{Size: 1000, LoadOf: OfHosts, From: []string{"h1", "h1"}}, 0.5 * 1e9 / 8000},
	} {
		list := traffic(t, topo, c.tr)
		d, err := list[0].Maker(topo)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.rate(0.5); err != nil || !(math.Abs(got/c.want-1) <= 1e-9) {
			t.Errorf("%+v: %g flows a second (%v), want %g", c.tr, got, err, c.want)
		}
	}
	// A bounded Pareto distribution has the mean of its quantiles.
	tail := Traffic{Size: 1 << 20, MinSize: 1000, Tail: true}
	d, err := traffic(t, topo, tail)[0].Maker(topo)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	const n = 20000
	for i := range n {
		sum += boundedPareto(1000, 1<<20, (float64(i)+0.5)/n) / n
	}
	if !(math.Abs(sum/d.Mean()-1) <= 0.01) {
		t.Errorf("the mean is %g, of the quantiles %g", d.Mean(), sum)
	}
}

// TestDescriptions describes traffic and jobs in a line.
func TestDescriptions(t *testing.T) {
	for want, tr := range map[string]Traffic{
		"f.txt, list":                           {File: "f.txt", Pattern: List},
		"all-reduce of 1MB, ring":               {Collective: "all-reduce", Size: 1e6, Algorithm: "ring"},
		"1KB to 5KB, halves":                    {Size: 5000, MinSize: 1000, Pattern: Halves},
		"5KB, pairs":                            {Size: 5000, Pattern: pairs},
		"websearch (at most 2MB), all-to-all":   {Workload: "websearch", Cut: 2e6, Pattern: AllToAll},
		"websearch, all-to-all":                 {Workload: "websearch", Cut: Uncut, Pattern: AllToAll},
		"datamining (at most 30KB), all-to-all": {Workload: "datamining", Cut: 3e4, Pattern: AllToAll},
	} {
		if got := tr.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, j := range map[string]Job{
		"a: data 2, tensor 4, 1 iterations, packed":          {Name: "a", Data: 2, Tensor: 4},
		"a: ranks 4, 3 iterations, on h1, h2, h3, h4":        {Name: "a", Ranks: 4, Iterations: 3, Placement: Placement{"h1", "h2", "h3", "h4"}},
		"a: 1 iterations, on h1, h2, h3, h4 and 2 more":      {Name: "a", Placement: Placement{"h1", "h2", "h3", "h4", "h5", "h6"}},
		"a: pipeline 2, expert 3, 1 iterations, spread":      {Name: "a", Pipeline: 2, Expert: 3, Placement: Placement{"spread"}},
		"a: ranks 1, data 1, tensor 1, 1 iterations, random": {Name: "a", Ranks: 1, Data: 1, Tensor: 1, Placement: Placement{"random"}},
	} {
		if got := j.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	busy := Job{Start: Time(time.Second), Iterations: 3, Microbatches: 2, Pipeline: 4, Phases: []Phase{{Compute: 5}, {Phases: []Phase{{Compute: 7}}, Backward: []Phase{{Compute: 11}}}}}
	if got, want := busy.computing(), time.Second+3*(5+18*(2+4)); got != want {
		t.Errorf("computing %v at most, want %v", got, want)
	}
	if got, want := busy.computed(), time.Duration(5+2*18); got != want {
		t.Errorf("computing %v in an iteration, want %v", got, want)
	}
	endless := Job{Start: Time(maxTime), Phases: []Phase{{Compute: Time(maxTime)}}}
	if got := endless.computing(); got != maxTime {
		t.Errorf("computing %v at most: want the longest time", got)
	}
}
