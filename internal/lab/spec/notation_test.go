package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestDefaultsAsFile: the choices that p4lb writes for a preset are a part of an experiment file, and
// the experiment then agrees with the preset. The file names each choice once, with its meaning,
// possible values and reason. Defaults that are not possible values are comments.
func TestDefaultsAsFile(t *testing.T) {
	for _, preset := range append([]string{""}, Presets...) {
		text, err := Defaults(preset)
		if err != nil {
			t.Fatal(err)
		}
		whole := "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nduration: 1ms\nschemes: [ecmp]\nengine: native\n" + strings.Replace(string(text), "switches:\n", "switches:\n  pfc: true\n", 1)
		x, err := Load("x.yaml", []byte(whole), nil, nil)
		if err != nil {
			t.Errorf("preset %q: %v", preset, err)
			continue
		}
		s := &x.Cases[0].Setting
		for i := range choices {
			c := &choices[i]
			if c.concerns(s) && c.Of(s) != c.Like(preset) {
				t.Errorf("preset %q: %s is %s, want %s", preset, c.Key, c.Of(s), c.Like(preset))
			}
			name := c.Key[strings.LastIndexByte(c.Key, '.')+1:]
			line := name + ": " + c.Like(preset)
			switch {
			case len(c.Values) > 0:
				line += " # " + orList(c.Values)
			case c.Like(preset) == c.Default: // no possible value
				line = "# " + line
			}
			why := "# default, because " + c.Why
			if c.Like(preset) != c.Default {
				why = "# default " + c.Default
			}
			for _, want := range []string{strings.Repeat("  ", strings.Count(c.Key, ".")) + line, why, "# " + c.About} {
				if !strings.Contains(string(text), want+"\n") {
					t.Errorf("preset %q lacks %q for %s", preset, want, c.Key)
				}
			}
		}
		if got := strings.HasPrefix(string(text), "# the same as like: "+preset+"\n"); got != (preset != "") {
			t.Errorf("preset %q begins with %.40q", preset, text)
		}
		reasons := 0
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "# default") {
				reasons++
			}
		}
		if reasons != len(choices) {
			t.Errorf("preset %q: %d reasons for %d choices", preset, reasons, len(choices))
		}
	}
	text, _ := Defaults("")
	for _, want := range []string{"\nswitches:\n", "\ntransport:\n  kind: dcqcn\n", "\n  marking: enqueue # enqueue or dequeue\n", "\n    nack: any # ", "# default, because "} {
		if n := strings.Count(string(text), want); n == 0 || n > 1 && want[0] == '\n' {
			t.Errorf("%d times %q in\n%s", n, want, text)
		}
	}
	if text, err := Defaults("ns4"); text != nil || err == nil || err.Error() != `like "ns4": want one of ns3, ns2, htsim, hardware` {
		t.Errorf("%s, %v", text, err)
	}
}

// TestClearDefaults: settings that mean the same become equal, however a file writes them, and other
// values stay.
func TestClearDefaults(t *testing.T) {
	var s Setting
	for i := range choices {
		if c := &choices[i]; len(c.Values) > 0 {
			c.set(&s, c.Default)
		}
	}
	s.Like, s.Transport.Ports = "ns3", consecutivePorts
	if s.ClearDefaults(); !reflect.DeepEqual(s, Setting{}) {
		t.Errorf("the defaults leave %+v", s)
	}
	s = Setting{Transport: TransportSpec{Ports: "random"}, Switches: SwitchSpec{Marking: atDequeue, Hysteresis: 5}}
	want := s
	s.Switches.Control = (&choices[0]).Default[:0]
	if s.ClearDefaults(); !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want %+v", s, want)
	}
	s.Transport.Kind = "dcqcn"
	if got := s.Otherwise(); !strings.Contains(got, "switches.marking: dequeue (default enqueue)") || strings.Count(got, "(default ") != len(s.Chosen()) {
		t.Errorf("%s", got)
	}
}

// TestNotations: each value is written as a file writes it, and reads back as itself.
func TestNotations(t *testing.T) {
	var s Size
	for text, want := range map[string]string{
		"1": "1", "999": "999", "1000": "1KB", "1100": "1.1KB", "1150": "1150", "64KB": "64KB", "999900": "999.9KB", "1MB": "1MB", "1.1MB": "1.1MB", "1050000": "1050KB", "1MiB": "1048576", "999999999999": "999999999999",
	} {
		if err := s.Parse(text); err != nil || s.String() != want {
			t.Errorf("size %s: %s, %v; want %s", text, s, err, want)
			continue
		}
		before := s
		if err := s.Parse(s.String()); err != nil || s != before {
			t.Errorf("size %s reads back as %s, %v", text, s, err)
		}
	}
	for _, text := range []string{"0", "-1", "1000000000000", "1TB", "x", "", "0.5"} {
		if err := s.Parse(text); err == nil || err.Error() != fmt.Sprintf("size %q: want bytes such as 1500, 64KB, 1MB or 9MiB", text) {
			t.Errorf("size %q: %v", text, err)
		}
	}
	var at Time
	for text, want := range map[string]string{"0s": "", "1000h": "", "1000h0m0.000000001s": `time "1000h0m0.000000001s": want 1000 hours at most`, "-1ns": `time "-1ns": want a time such as 500us, 1.5ms or 2s`, "5": `time "5": want a time`} {
		if err := at.parse(text); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("time %s: %v, want %q", text, err, want)
		}
	}
	var c Cut
	for text, want := range map[string]string{"none": "none", "0": "none", "2MB": "2MB", "1": "1"} {
		if err := c.Parse(text); err != nil || c.String() != want || (c == Uncut) != (want == "none") {
			t.Errorf("cut %s: %s, %v; want %s", text, c, err, want)
		}
		if b, err := c.MarshalText(); err != nil || string(b) != want {
			t.Errorf("cut %s: %s, %v", text, b, err)
		}
	}
	var q Threshold
	for text, want := range map[string]Threshold{"none": never, "0": never, "1": 1, "1000000000": 1e9} {
		if err := q.Parse(text); err != nil || q != want {
			t.Errorf("threshold %s: %d, %v; want %d", text, q, err, want)
		}
	}
	for _, text := range []string{"-1", "1000000001", "1.5", "None"} {
		if err := q.Parse(text); err == nil || err.Error() != fmt.Sprintf("threshold %q: want a number of packets, or none", text) {
			t.Errorf("threshold %s: %v", text, err)
		}
	}
	for text, want := range map[string]struct {
		share float64
		at    Time
		text  string
	}{
		"0": {0, 0, "0%"}, "5%": {0.05, 0, "5%"}, "0%": {0, 0, "0%"}, "2ms": {0, Time(2 * time.Millisecond), "2ms"}, "99.5%": {0.995, 0, "99.5%"},
	} {
		var w Warmup
		if err := w.parse(text); err != nil || w.Share != want.share || w.Time != want.at || !w.given {
			t.Errorf("warm-up %s: %+v, %v", text, w, err)
		}
		if b, err := w.MarshalText(); err != nil || string(b) != want.text {
			t.Errorf("warm-up %s: %s, %v", text, b, err)
		}
	}
	for _, text := range []string{"100%", "-1%", "x%", "NaN%"} {
		if err := new(Warmup).parse(text); err == nil || err.Error() != fmt.Sprintf("warm-up %q: want a time, or a share below 100%%", text) {
			t.Errorf("warm-up %s: %v", text, err)
		}
	}
}

// TestOffers computes the number of flows of a case, and their share of the links of hosts and
// leaves, by hand. Eight hosts of 1 Gbit/s send, and two leaves have two uplinks of 1 Gbit/s each.
func TestOffers(t *testing.T) {
	for _, c := range []struct {
		traffic string
		want    Offer
		ok      bool
	}{
		// 50 % of 8 Gbit/s for 10 ms, of which 4 of 7 flows leave their leaf.
		{"{pattern: all-to-all, size: 5KB, load-of: hosts}", Offer{1000, 0.5, 0.5 * 8 / 4 * 4 / 7}, true},
		{"{pattern: all-to-all, size: 5KB, load-of: fabric}", Offer{0.5 * 4e9 * 7 / 4 / 40000 / 100, 0.5 * 4 * 7 / 4 / 8, 0.5}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts}", Offer{500, 0.5, 1}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts, load: 0.25}", Offer{250, 0.25, 0.5}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts, share: 0.5}", Offer{250, 0.25, 0.5}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts, start: 5ms}", Offer{250, 0.25, 0.5}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts, stop: 5ms}", Offer{250, 0.25, 0.5}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts, start: 4ms, stop: 5ms}", Offer{50, 0.05, 0.1}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts, stop: 50ms}", Offer{500, 0.5, 1}, true},
		{"{pattern: halves, size: 5KB, load-of: hosts, flows: 100}", Offer{100, 0.1, 0.2}, true},
		{"{pattern: halves, size: 5KB, rate: 10000}", Offer{100, 0.1, 0.2}, true},
		{"{pattern: incast, size: 20KB, degree: 4, rate: 1000}", Offer{40, 0.02, 0.04}, true}, // 10 requests of four answers
		{"{pattern: incast, size: 20KB, degree: 40, rate: 1000}", Offer{80, 0.02, 0.04}, true},
		{"{pattern: halves, size: 5KB, rate: 10000}, {pattern: halves, size: 10KB, rate: 10000}", Offer{200, 0.3, 0.6}, true},
		{"{pattern: halves, size: 5KB, rate: 10000}, {pattern: pairs, pairs: [h1-h5], size: 5KB, at: [0s]}", Offer{}, false},
		{"{pattern: burst, size: 5KB, at: [0s]}", Offer{}, false},
		{"{collective: all-reduce, size: 1MB}", Offer{}, false},
		{"{pattern: halves, size: 5KB, rate: 10000, start: 10ms}", Offer{}, false},
	} {
		x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, host-rate: 1G}}\nschemes: [ecmp]\nduration: 10ms\nwarmup: 0\ntraffic: ["+c.traffic+"]\n"), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", c.traffic, err)
			continue
		}
		topo, err := x.Cases[0].Network(NoFiles)
		if err != nil {
			t.Fatal(err)
		}
		near := func(a, b float64) bool { return a-b < 1e-9*(1+b) && b-a < 1e-9*(1+b) }
		o, ok := x.Cases[0].Offer(topo, 0.5)
		if ok != c.ok || ok && !(near(o.Flows, c.want.Flows) && near(o.Hosts, c.want.Hosts) && near(o.Fabric, c.want.Fabric)) {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.traffic, o, ok, c.want, c.ok)
		}
	}
}

// TestListsWithServices: a listed flow goes to a host or to a service, whose first server stands for
// it. A server of the service cannot send to it.
func TestListsWithServices(t *testing.T) {
	const net = `
switches: {l1: {}}
hosts: {h1: , h2: , h3: , h4: }
services: {web: {address: 10.0.9.1, servers: [h3, h2]}}
links: [{ends: [h1, l1], rate: 1G}, {ends: [h2, l1], rate: 1G}, {ends: [h3, l1], rate: 1G}, {ends: [h4, l1], rate: 1G}]
`
	for list, want := range map[string]string{
		"h1 web 10 0\nh4 h1 20 0\n": "h1>web 2 1, h4>h1 0 0, ", "h2 web 10 0\n": "x.yaml:4: traffic[0]: l.txt:1: h2 is a server of web: want a flow from another host",
		"h1 h3 10 0\nh3 web 10 0\n": "x.yaml:4: traffic[0]: l.txt:2: h3 is a server of web", "h1 ftp 10 0\n": `x.yaml:4: traffic[0]: l.txt:1: dst: there is no host or service "ftp"`, "web h1 10 0\n": `x.yaml:4: traffic[0]: l.txt:1: src: there is no host "web"`,
		"h1 h1 10 0\n": "x.yaml:4: traffic[0]: l.txt:1: dst: h1 sends to itself",
	} {
		x, err := Load("x.yaml", []byte("topology: net.yaml\nschemes: [ecmp]\nduration: 5ms\ntraffic: [{file: l.txt}]\n"), from(map[string]string{"net.yaml": net, "l.txt": list}), nil)
		got := ""
		if err == nil {
			topo, err := x.Cases[0].Network(from(map[string]string{"net.yaml": net}))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range x.Cases[0].Traffic[0].Listed() {
				got += fmt.Sprintf("%s>%s %d %d, ", topo.Hosts[f.Src].Name, f.To(topo), f.Dst*f.Service, f.Service)
			}
		} else {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
}

// TestShortestLength: the time in which flows start has two digits, rounded up, and is a nanosecond
// or more. It is as long again for twice the flows.
func TestShortestLength(t *testing.T) {
	x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nschemes: [ecmp]\nloads: [0.5]\ntraffic: [{size: 10KB}]\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &x.Cases[0]
	topo, err := c.Network(nil)
	if err != nil {
		t.Fatal(err)
	}
	second := *c
	second.Duration = Time(time.Second)
	o, ok := second.Offer(topo, 0.5)
	if !ok || !(o.Flows > 1) {
		t.Fatalf("%+v, %v", o, ok)
	}
	for _, k := range []struct {
		seconds float64 // in which so many flows start
		want    Time
	}{{1e-12, 1}, {1e-9, 1}, {1.05e-6, 1100}, {3e-6, 3000}, {0.0123, Time(13 * time.Millisecond)}, {2, Time(2 * time.Second)}} {
		if got, err := c.lengthFor(k.seconds*o.Flows*(1-1e-9), topo); got != k.want || err != nil {
			t.Errorf("flows of %g s start in %v, %v: want %v", k.seconds, got, err, k.want)
		}
	}
}

// TestSortedByStart: flows are sorted by start. Flows of one start keep their order, and waits name
// the same flows as before.
func TestSortedByStart(t *testing.T) {
	flows := []Flow{{Src: 0, Start: 5}, {Src: 1, Start: 3, Waits: &Waits{After: []int32{0, 3}}}, {Src: 2, Start: 5, Waits: &Waits{AfterAck: []int32{1}}}, {Src: 3, Start: 1}}
	got := ""
	for _, f := range byStart(flows) {
		got += fmt.Sprint(f.Src, "@", int64(f.Start))
		if f.Waits != nil {
			got += fmt.Sprint(f.Waits.After, f.Waits.AfterAck)
		}
		got += " "
	}
	if want := "3@1 1@3[2 0] [] 0@5 2@5[] [1] "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	sorted := []Flow{{Start: 1}, {Start: 1}, {Start: 2}}
	if got := byStart(sorted); &got[0] != &sorted[0] {
		t.Error("a sorted list is copied")
	}
}
