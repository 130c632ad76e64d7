package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
)

// TestRefusedSettings: an experiment names the line and the key of a setting that it cannot have,
// with its value and the possible ones. Values at a limit are accepted.
func TestRefusedSettings(t *testing.T) {
	read := func(name string) ([]byte, error) {
		switch name {
		case "bad.json":
			return []byte("{"), nil
		case "secret.txt":
			return nil, errors.New("not today")
		}
		return nil, fs.ErrNotExist
	}
	many := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ") }
	const limit = ": want a name and a limit above the one before; none for the last class"
	for _, c := range []struct{ text, want string }{
		{"schemes: [" + many(1001, "ecmp") + "]", "1: schemes: 1001 rows: want at most 1000"},
		{"schemes: [" + many(1000, "ecmp") + "]", "1: schemes[1]: two rows are called ecmp: give one a label"},
		{"schemes: [ecmp]\ncases: [" + many(1001, "{name: a}") + "]", "2: cases: 1001 cases: want at most 1000"},
		{"schemes: [ecmp]\ncases: [" + many(1000, "{name: a}") + "]", `2: cases[1].name: two cases are called "a"`},
		{"schemes: [ecmp]\nseeds: 1000\ncases: [{loads: [" + many(101, "0.5") + "]}]", "3: cases: its cases, loads, rows and seeds are 101000 runs together: want at most 100000"},
		{"schemes: [ecmp]\nparameters: best", `2: parameters: parameters "best": want advised or default`},
		{"schemes: [ecmp]\nblocks: nosuch", "2: blocks: reading the folder nosuch: no such file or directory"},
		{"schemes: [{scheme: ecmp, errata: x}]", `1: schemes[0].errata: errata "x": want printed`},
		{"schemes: [{scheme: ecmp, candidates: x}]", `1: schemes[0].candidates: candidates "x": want ports or paths`},
		{"schemes:\n - {scheme: ecmp, state-path: x}", `2: schemes[0].state-path: state path "x": want one of recirc, recirc-cut, shared, ghost`},
		{"schemes: [ecmp]\nstate-path: x", `2: state-path: state path "x": want one of recirc, recirc-cut, shared, ghost`},
		{"schemes: [{scheme: conweave, engine: p4}]", "1: schemes[0].engine: conweave has no P4 program: want native"},
		{"schemes: [conweave]\nengine: p4", ""},
		{"schemes: [{scheme: ecmp, label: a b}, {scheme: drill, label: a_b}]", `1: schemes[1]: the rows "a b" and "a_b" would both be kept in the folder a_b: want names that differ in letters and digits`},
		{"schemes: [{scheme: qall-poly3, coeffs: none.json}]", "1: schemes[0].coeffs: reading none.json: file does not exist"},
		{"schemes: [{scheme: qall-poly3, coeffs: bad.json}]", "1: schemes[0].coeffs: reading bad.json: line 1: unexpected end"},
		{"schemes: [{scheme: qall-poly3, coeffs: ' {'}]", "1: schemes[0].coeffs: reading coeffs: line 1: unexpected end"},
		{"schemes: [ecmp]\nclasses: [{name: a, upto: 10KB}]", "2: classes[0]" + limit},
		{"schemes: [ecmp]\nclasses: [{name: a, upto: 10KB}, {upto: 20KB}, {name: c}]", "2: classes[1]" + limit},
		{"schemes: [ecmp]\nclasses: [{name: a, upto: 10KB}, {name: b, upto: 10KB}, {name: c}]", "2: classes[1]" + limit},
		{"schemes: [ecmp]\nclasses: [{name: a}, {name: c}]", "2: classes[0]" + limit},
		{"schemes: [ecmp]\nclasses: [{name: a, upto: 10KB}, {name: b, upto: 20KB}, {name: c}]", ""},
		{"schemes: [ecmp]\nobserve: {every: 0s, test: 0.5}", "2: observe: every 0s: want a time above 0"},
		{"schemes: [ecmp]\nobserve: {every: 1ms, test: 1}", "2: observe: test 1: want a share of the rows above 0 and below 1"},
		{"schemes: [ecmp]\nobserve: {every: 1ms, test: 0}", "2: observe: test 0: want a share of the rows above 0 and below 1"},
		{"schemes: [ecmp]\nobserve: {every: 1ms, test: 0.5, outliers: most}", `2: observe: no rule "most" for outliers: want none, iqr, mad or sigma`},
		{"schemes: [ecmp]\nobserve: {every: 1ns, test: 0.001}", ""},
		{"schemes: [ecmp]\nmtu: 255", "2: mtu: mtu 255: want 256 to 9216 bytes"},
		{"schemes: [ecmp]\nmtu: 256", ""},
		{"schemes: [ecmp]\nmtu: 9216", ""},
		{"schemes: [ecmp]\nmtu: 9217", "2: mtu: mtu 9217: want 256 to 9216 bytes"},
		{"schemes: [ecmp]\narch: tna\nmtu: 1500", ""},
		{"schemes: [ecmp]\narch: tna\nmtu: 1501", "3: mtu: mtu 1501: ecmp@tna for tna counts queues in packets of 1500 bytes at most"},
		{"schemes: [ecmp]\nswitches: {ecn: -2}", `2: switches.ecn: threshold "-2": want a number of packets, or none`},
		{"schemes: [ecmp]\nswitches: {queue: -1}", "2: switches: queue -1: want a number of packets"},
		{"schemes: [ecmp]\nswitches: {queue: 1048577}", "2: switches.queue: link h1-l1:1: queue 1048577: want a number from 1 to 1048576"},
		{"schemes: [ecmp]\nswitches: {queue: 1048576}", ""},
		{"schemes: [ecmp]\ncases: [{name: a b}, {name: a_b}]", `2: cases[1].name: the cases "a b" and "a_b" would both be kept in the folder a_b: want names that differ in letters and digits`},
		{"schemes: [ecmp]\ncases: [{schemes: [drill]}]", `2: cases[0].schemes: there is no row "drill"`},
		{"schemes: [ecmp]\ntransport: {kind: uec}\nswitches: {pfc: true}\nengine: native", "2: transport: uec: loss trim with pfc: with PFC, queues have no limit, so no packet is trimmed: want loss timeout or gap, or pfc: false"},
		{"schemes: [ecmp]\narch: tna\ntransport: {kind: uec}", "3: transport: uec: loss trim with ecmp@tna: the traffic manager of Tofino drops whole packets: want loss timeout or gap"},
		{"schemes: [ecmp]\nswitches: {flow-key: ns3}", `2: switches.flow-key: ecmp runs a generated program, which cannot have "ns3": want engine native, or 5-tuple`},
		{"schemes: [ecmp]\nengine: native\nswitches: {flow-key: ns3}", ""},
		{"schemes: [ecmp]\ntraffic: [{workload: secret.txt}]", "2: traffic[0]: reading workload secret.txt: not today"},
		{"schemes: [ecmp]\nfaults: [{at: 1ms, plane: 2, down: true}]", "2: faults[0]: plane 2: the hosts of leaf-spine have 1 ports"},
		{"schemes: [ecmp]\nfaults: [{at: 1ms, switch: s9, down: true}]", `2: faults[0]: there is no switch "s9"`},
		{"schemes: [ecmp]\nfaults: [{at: 1ms, switch: s9, drop: 0.5}]", `2: faults[0]: there is no switch "s9"`},
	} {
		_, err := Load("x.yaml", []byte(c.text), read, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != "x.yaml:"+c.want) {
			t.Errorf("%.100q:\ngot  %v\nwant x.yaml:%s", c.text, err, c.want)
		}
	}
	// Settings that no file states have no line.
	for text, want := range map[string]string{
		"schemes: [ecmp+trim]": "x.yaml: transport: ecmp+trim trims packets of uec with loss trim: want transport: {kind: uec}, or a scheme without +trim",
		"schemes: [ecmp]\ntraffic: [{workload: websearch, load: 0.00000000001}]": "x.yaml: duration: 1000 flows would take 1.78e+06 hours to begin: want a duration",
	} {
		if _, err := Load("x.yaml", []byte(text), read, nil); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestFrames: a frame is an IP packet of the MTU, 1,500 bytes by default, with an Ethernet header.
func TestFrames(t *testing.T) {
	for mtu, want := range map[int]int{0: 1514, 256: 270, 1500: 1514, 9216: 9230} {
		if got := (&Setting{MTU: mtu}).Frame(); got != want {
			t.Errorf("mtu %d: frames of %d bytes, want %d", mtu, got, want)
		}
	}
}

// TestAdjust: options of the command line replace the engine of all rows that have a program, and
// the seeds of all cases. Schemes without a model, and too many runs, are refused.
func TestAdjust(t *testing.T) {
	text := "schemes: [ecmp, conweave, {scheme: drill, engine: native}]\nloads: [0.5]\nseeds: 2\ncases: [{name: a}, {name: b, seeds: 3}]\n"
	state := func(x *Experiment) string {
		s := ""
		for _, r := range x.Schemes {
			s += r.Engine + " "
		}
		for _, c := range x.Cases {
			s += fmt.Sprint(len(c.Seeds), " ")
		}
		return s
	}
	for _, c := range []struct {
		engine string
		seeds  Seeds
		want   string
	}{
		{"", nil, "p4 native native 2 3 "},
		{EngineNative, nil, "native native native 2 3 "},
		{EngineP4, Seeds{7}, "p4 native p4 1 1 "},
	} {
		x, err := Load("x.yaml", []byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Adjust(c.engine, c.seeds); err != nil || state(x) != c.want {
			t.Errorf("%s, %d seeds: %s, %v: want %s", c.engine, len(c.seeds), state(x), err, c.want)
		}
	}
	x, err := Load("x.yaml", []byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Adjust("fast", nil); err == nil || err.Error() != `engine "fast": want p4 or native` {
		t.Error(err)
	}
	if err := x.Adjust("", make(Seeds, 20_000)); err == nil || err.Error() != "its cases, loads, rows and seeds are 120000 runs together: want at most 100000" {
		t.Error(err)
	}
	x.Schemes[0].made = ownScheme{archs: codegen.Archs}
	if err := x.Adjust(EngineNative, nil); err == nil || err.Error() != "no model" {
		t.Errorf("a scheme without a model: %v", err)
	}
	if x.Schemes[0].Grouping() == (&Scheme{Candidates: ByPaths}).Grouping() {
		t.Error("candidates by paths have the groups of candidates by ports")
	}
}
