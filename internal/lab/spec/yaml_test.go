package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	x, err := Load("x.yaml", []byte(`
name: x
topology: {leaf-spine: {leaves: 2, spines: 3, hosts: 2, rate: 10G}}
links: [{link: s1, rate: 1G}]
schemes: [ecmp, {scheme: drill, label: four, set: {d: 4}}]
traffic:
  - {workload: webserver, pattern: halves}
loads: [0.5, 70%]
seeds: [4, 7]
duration: 200ms
warmup: 20ms
transport: {kind: dctcp, min-rto: 5ms}
cases:
  - {name: a}
  - {name: b, fail: [l1-s2], duration: 1s, warmup: 10%}
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if x.Loads[1] != 0.7 || len(x.Seeds) != 2 || x.Schemes[1].Label != "four" || x.Transport.MinRTO != Time(5*time.Millisecond) {
		t.Errorf("got %+v", x)
	}
	if a, b := &x.Cases[0], &x.Cases[1]; a.WarmupTime() != 20*time.Millisecond || b.WarmupTime() != 100*time.Millisecond || b.Traffic[0].Pattern != Halves {
		t.Errorf("got the cases %+v and %+v", a, b)
	}
	topo, err := x.Cases[1].Network(NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range topo.Ports("s1") {
		if p.Rate != 1e9 {
			t.Errorf("the link %+v has not been changed", p)
		}
	}
	if hops, _ := topo.Routes().NextHops("l1", "l2"); len(hops) != 2 {
		t.Errorf("with a link down there are %d next hops, want 2", len(hops))
	}
}

func TestLoadErrors(t *testing.T) {
	files := func(name string) ([]byte, error) {
		if name == "falls.txt" {
			return []byte("10 0\n5 1\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	for _, c := range []struct{ text, want string }{
		{"schems: [ecmp]", `x.yaml:1: schems: there is no key "schems"; did you mean schemes?`},
		{"schemes: [ecmp]\nvary: {switches.nothing: [1, 2]}", `x.yaml:2: vary.switches.nothing: there is no key "switches.nothing"`},
		{"schemes: [ecmp]\ntraffic:\n - workload: websearch\n   patern: halves", `x.yaml:4: traffic[0].patern: there is no key "patern"; did you mean pattern?`},
		{"name: x", "x.yaml: schemes: there is no scheme to run"},
		{"schemes: [ecmp", "x.yaml:1: "},
		{"schemes: [ecmp]\nloads:\n - 0.5\n - 1.2", "x.yaml:4: loads[1]: load 1.2: want a share"},
		{"schemes: [ecmp]\ntraffic: [{workload: websearch, load: .nan}]", `x.yaml:2: traffic[0].load: ".nan": want a number`},
		{"schemes: [ecmp]\ntraffic: [{workload: websearch, load: -.inf}]", `x.yaml:2: traffic[0].load: "-.inf": want a number`},
		{"schemes: [ecmp]\n---\nschemes: [drill]", "x.yaml:3: a second document begins here"},
		{"schemes: [ecmp]\nloads: [0]", "x.yaml:2: loads[0]: load 0: want a share"},
		{"schemes: [ecmp]\nduration: 3", `x.yaml:2: duration: time "3"`},
		{"schemes: [ecmp]\nseeds: [0]", "x.yaml:2: seeds: want a number of seeds"},
		{"schemes:\n - ecmp\n - foo", `x.yaml:3: schemes[1]: there is no scheme "foo"`},
		{"schemes:\n - ecmp\n - ecmp", "x.yaml:3: schemes[1]: two rows are called ecmp"},
		{"schemes:\n - scheme: drill\n   set:\n     q: 2", "x.yaml:4: schemes[0].set.q: drill has no such parameter"},
		{"schemes: [drill, ecmp]\ncases:\n - set: {q: 2}", `x.yaml:3: cases[0].set.q: no scheme of this experiment has a parameter "q"`},
		{"schemes:\n - {scheme: drill, set: {d: 2000}}", "x.yaml:2: schemes[0]: "},
		{"schemes: [ecmp]\ntopology: nonet", "x.yaml:2: topology: there is no file or preset"},
		{"schemes: [ecmp]\ntopology: rlb-pfc", "x.yaml:2: topology: 40 next hops in rlb-pfc"},
		{"schemes: [ecmp]\nlinks: [{link: l9-s1, rate: 1G}]", "x.yaml:2: links[0]: there is no link"},
		{"schemes: [ecmp]\nfail: [l9-s1]", "x.yaml:2: fail: there is no link"},
		{"schemes: [ecmp]\ntraffic:\n - {workload: falls.txt}", "x.yaml:3: traffic[0]: falls.txt:2: bytes 5 after 10"},
		{"schemes: [ecmp]\ntraffic:\n - {workload: nosuch}", `x.yaml:3: traffic[0]: no workload "nosuch"`},
		{"schemes: [ecmp]\ntraffic:\n - {pattern: x}", `x.yaml:3: traffic[0]: pattern "x"`},
		{"schemes: [ecmp]\ntraffic:\n - {pattern: burst}", "x.yaml:3: traffic[0]: pattern burst: want the times"},
		{"schemes: [ecmp]\ntraffic:\n - {from: [h77]}", `x.yaml:3: traffic[0]: from: there is no host "h77"`},
		{"schemes: [ecmp]\ntransport: quic", `x.yaml:2: transport: transport "quic"`},
		{"schemes: [ecmp]\ntransport: {kind: tcp, rdma: {nack-every: 4us}}", "x.yaml:2: transport: rdma with tcp: its constants are dcqcn's"},
		{"schemes: [ecmp]\ntransport:\n  kind: dcqcn\n  rdma: {nack-evry: 4us}", `x.yaml:4: transport.rdma.nack-evry: there is no key "nack-evry"; did you mean nack-every?`},
		{"schemes: [ecmp]\ntransport:\n  kind: dcqcn\n  rdma: {nack-every: soon}", `x.yaml:4: transport.rdma.nack-every: time "soon"`},
		{"schemes: [ecmp]\nmetrics:\n - fct-mean\n - x", `x.yaml:4: metrics[1]: there is no metric "x"`},
		{"schemes: [ecmp]\nmetrics: ['queue-mean:short']", "x.yaml:2: metrics[0]: metric queue-mean is not measured by class"},
		{"schemes: [ecmp]\nwarmup: 5s", "x.yaml:2: warmup: the warm-up is as long"},
		{"schemes: [ecmp]\nengine: fast", "x.yaml:"},
		{"schemes: [ecmp]\narch: dpdk", `x.yaml:1: schemes[0].arch: arch "dpdk": want one of v1model, tna, t2na`},
		{"schemes: [ecmp@tofino]", `x.yaml:1: schemes[0].arch: arch "tofino"`},
		{"schemes: [ecmp, ecmp@v1model]", "x.yaml:1: schemes[1]: two rows are called ecmp"},
		{"schemes: [drill]\nprobes: host", `x.yaml:2: probes: probes "host": want controller or generator`},
		{"schemes: [ecmp]\nfaults:\n - {at: 1ms, link: l1-s1, drop: 0.1}", "x.yaml:3: faults[0]: drop and black-hole are of a switch"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, until: 1ms, link: l1-s1, down: true}", "x.yaml:3: faults[0]: until 1ms is not after at 2ms"},
		{"schemes: [ecmp]\nduration: 1ms\ndrain: 2ms\nfaults:\n - {at: 4ms, link: l1-s1, down: true}", "x.yaml:5: faults[0]: at 4ms: the run ends after 3ms (duration and drain): want an earlier time"},
		{"schemes: [ecmp]\nfaults:\n - {at: 1ms, link: l1-s1, service: web, down: true}", "x.yaml:3: faults[0]: service: want it beside server"},
		{"schemes: [ecmp]\nfaults:\n - {at: 1ms, server: h1, down: true}", "x.yaml:3: faults[0]: server h1: topology "},
		{"schemes: [ecmp]\nfaults: [" + strings.Repeat("{at: 2ms, link: l1-s1, down: true}, ", 10_001) + "]", "x.yaml:2: faults: 10001 of them: want 10000 at most"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, link: l1-s1}", "x.yaml:3: faults[0]: want one of down, drop, black-hole, rate and bit-errors"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, link: l1-s1, bit-errors: 1}", "x.yaml:3: faults[0]: bit-errors 1: want a share of bits"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, until: 3ms, every: 1ms, times: 3, link: l1-s1, down: true}", "x.yaml:3: faults[0]: every 1ms, times 3: want 2 to"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, every: 1ms, times: 3, link: l1-s1, down: true}", "x.yaml:3: faults[0]: every 1ms, times 3: want 2 to"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, every: 1ms, link: l1-s1, down: true}", "x.yaml:3: faults[0]: every 1ms, times 0: want 2 to"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, until: 3ms, every: 2ms, times: 2000000000, link: l1-s1, down: true}", "x.yaml:3: faults[0]: every 2ms, times 2000000000: want 2 to"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, link: l1-s1, down: true, rate: 1G}", "x.yaml:3: faults[0]: want one of down"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, link: l1-s9, rate: 1G}", "x.yaml:3: faults[0]: there is no link"},
		{"schemes: [ecmp]\nfaults:\n - at: 2ms\n   link: l1-s1\n   rate: fast", "x.yaml:5: faults[0].rate: "},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, switch: s1, drop: 1.1}", "x.yaml:3: faults[0]: want a share from 0 to 1"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, switch: s1, drop: -0.1}", "x.yaml:3: faults[0]: want a share from 0 to 1"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, switch: s1, black-hole: 1.1}", "x.yaml:3: faults[0]: want a share from 0 to 1"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, switch: s1, black-hole: -1}", "x.yaml:3: faults[0]: want a share from 0 to 1"},
		{"schemes: [ecmp]\nfaults:\n - {at: 2ms, link: l1-s1, down: true, known: true}", "x.yaml:3: faults[0]: known: want it beside rate"},
		{"schemes: [ecmp]\ntransport: {kind: tcp, paths: 8}", "x.yaml:2: transport: paths 8: want entropy "},
		{"schemes: [ecmp]\ntransport: {kind: tcp, entropy: oblivious, paths: 3}", "x.yaml:2: transport: paths 3: want a power of two from 2 to "},
		{"schemes: [ecmp]\ntransport: {kind: tcp, entropy: oblivious, paths: 1}", "x.yaml:2: transport: paths 1: want a power of two from 2 to "},
		{"schemes: [ecmp]\ntransport: {kind: tcp, ports: even}", `x.yaml:2: transport: ports "even": want `},
		{"schemes: [ecmp]\ntransport: {kind: udp, entropy: oblivious}", "x.yaml:2: transport: entropy oblivious with udp, which gets no acknowledgments"},
		{"schemes: [{scheme: ecmp, engine: fast}]", `x.yaml:1: schemes[0].engine: engine "fast"`},
		{"schemes: [ecmp, drill]\nmetrics: [fct-mean]\ntargets:\n - {metric: fct-mean, order: [ecmp]}", "x.yaml:4: targets[0]: order: want two rows or more"},
		{"schemes: [ecmp, drill]\nmetrics: [fct-mean]\ntargets:\n - {metric: fct-mean, of: ecmp}", "x.yaml:4: targets[0]: want an order, a printed value, at-most, at-least or below"},
		{"schemes: [ecmp, drill]\nmetrics: [fct-mean]\ntargets:\n - {metric: fct-mean, of: ecmp, below: true}", "x.yaml:4: targets[0]: below compares two rows by percent"},
		{"schemes: [ecmp, drill]\nmetrics: [fct-mean]\ntargets:\n - {metric: fct-mean, of: ecmp, against: drill, below: true, ratio: true}", "x.yaml:4: targets[0]: below compares two rows by percent"},
		{"schemes: [ecmp, drill]\nmetrics: [fct-mean]\ntargets:\n - {metric: fct-mean, of: ecmp, printed: 1, open: a, not-comparable: b}", "x.yaml:4: targets[0]: want open or not-comparable, not both"},
		{"schemes: [ecmp]\ncases:\n - {name: a}\n - {name: b, topology: nonet}", "x.yaml:4: cases[1].topology: there is no file"},
		{"schemes: [ecmp]\ntargets:\n - {metric: fct-mean, of: drill, printed: 1}", `x.yaml:3: targets[0]: there is no row "drill"`},
	} {
		_, err := Load("x.yaml", []byte(c.text), files, nil)
		var place *FileError
		switch {
		case err == nil:
			t.Errorf("%q: no error, want %s", c.text, c.want)
		case !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		case !errors.As(err, &place):
			t.Errorf("%q: %v is no FileError", c.text, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("schemes: [ecmp]\ntopology: qall\nloads: [0.5]\nduration: 10ms"))
	f.Add([]byte("schemes: [{scheme: drill, set: {d: 4}}]\ncases: [{name: a, x: 1}]"))
	f.Add([]byte("schemes: !tag\nloads"))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := Load("f", text, nil, nil)
		if (x == nil) == (err == nil) {
			t.Fatalf("got %v and %v", x, err)
		}
	})
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"1500": 1500, "64KB": 64000, "64KiB": 65536, "1.5MB": 1500000, "9MiB": 9 << 20, "20B": 20} {
		var s Size
		if err := s.Parse(text); err != nil || s != want {
			t.Errorf("%s is %d, want %d (%v)", text, s, want, err)
		}
	}
	for _, text := range []string{"", "KB", "-1KB", "1e300MB", "x"} {
		var s Size
		if err := s.Parse(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
}

// TestTagOfNothing: a tag without a value made the YAML package panic.
func TestTagOfNothing(t *testing.T) {
	_, err := Load("f", []byte("topology: qall\nschemes: !tag\nloads"), nil, nil)
	if err == nil || err.Error() != "f:2: want plain keys and values, without anchors, tags and merges" {
		t.Errorf("got %v", err)
	}
}

// TestSettled: what depends on the network is filled in for each case.
func TestSettled(t *testing.T) {
	const shallow = "{leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, queue: 40}}"
	const deep = "{leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, queue: 400}}"
	for _, c := range []struct {
		text string
		ecn  Threshold
		long Time
		cut  Cut
		of   string
	}{
		{"topology: " + deep, 0, 0, DefaultCut, OfFabric},
		{"topology: " + deep + "\ntransport: dctcp", 65, 0, DefaultCut, OfFabric},
		{"topology: " + shallow + "\ntransport: dctcp", 10, 0, DefaultCut, OfFabric},
		{"topology: " + deep + "\ntransport: dctcp\nswitches: {queue: 48}", 12, 0, DefaultCut, OfFabric},
		{"topology: " + deep + "\ntransport: dctcp\nswitches: {ecn: 0}", never, 0, DefaultCut, OfFabric},
		{"topology: " + deep + "\ntransport: dcqcn\nswitches: {ecn-min: 5KB, ecn-max: 9KB}", 0, 0, DefaultCut, OfFabric},
		{"topology: " + deep + "\nduration: 3ms\ntraffic: [{cut: none}]", 0, 3e6, Uncut, OfFabric},
		{"topology: " + deep + "\ntraffic: [{size: 10KB, rate: 5000}]", 0, 200e6, 0, ""},
		{"topology: " + deep + "\ntraffic: [{size: 10KB, pattern: pairs, pairs: [h1-h5], at: [0ms]}]", 0, fixedDuration, 0, ""},
	} {
		x, err := Load("x.yaml", []byte(c.text+"\nschemes: [ecmp]\n"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &x.Cases[0].Setting
		long := s.Duration
		if c.long == 0 {
			net, err := s.Network(NoFiles)
			if err != nil {
				t.Fatal(err)
			}
			if o, ok := x.Cases[0].Offer(net, DefaultLoad); !ok || o.Flows < DefaultFlows || o.Flows > 1.1*DefaultFlows {
				t.Errorf("%s: %g flows begin", c.text, o.Flows)
			}
			long = 0
		}
		if s.Switches.ECN != c.ecn || long != c.long || s.Traffic[0].Cut != c.cut || s.Traffic[0].LoadOf != c.of || s.Drain != 20*s.Duration {
			t.Errorf("%s: marks from %d packets, %v, cut %v, load of %q, drain %v", c.text, s.Switches.ECN, s.Duration, s.Traffic[0].Cut, s.Traffic[0].LoadOf, s.Drain)
		}
		var form bytes.Buffer
		WriteForm(&form, "", *x)
		again, err := FromForm(form.Bytes())
		if err == nil {
			err = again.Complete("again", nil, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		var second bytes.Buffer
		if WriteForm(&second, "", again.Cases); err != nil {
			t.Fatal(err)
		}
		var first bytes.Buffer
		WriteForm(&first, "", x.Cases)
		if first.String() != second.String() {
			t.Errorf("%s: read again it is\n%s\nand was\n%s", c.text, &second, &first)
		}
	}
}

// TestParseSeeds reads how many seeds and which.
func TestParseSeeds(t *testing.T) {
	for text, want := range map[string]string{"3": "[1 2 3]", "3,5,8-12": "[3 5 8 9 10 11 12]", "7,": "", "0": "", "0-3": "", "5-3": "", "3,3": "", "1-3,2": "", "1-2000": "", "x": "", "": ""} {
		got, err := ParseSeeds(text)
		if want == "" && err == nil || want != "" && fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	x, err := Load("x.yaml", []byte("schemes: [ecmp]\nseeds: 3,5,8-9\n"), nil, nil)
	if err != nil || fmt.Sprint(x.Seeds) != "[3 5 8 9]" {
		t.Errorf("%v, %v", x, err)
	}
}
