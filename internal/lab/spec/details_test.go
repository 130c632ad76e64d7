package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestPhases lists the failed links after each failure and repair, in order of time.
func TestPhases(t *testing.T) {
	x, err := Load("x.yaml", []byte(`topology: {leaf-spine: {leaves: 2, spines: 3, hosts: 2, rate: 1G}}
schemes: [ecmp]
duration: 10ms
faults:
  - {at: 2ms, until: 6ms, link: l1-s2, down: true}
  - {at: 1ms, until: 3ms, every: 4ms, times: 2, link: l1-s1, down: true}
  - {at: 1ms, link: l1-s1, rate: 100M}
  - {at: 8ms, link: l2-s3, down: true}
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &x.Cases[0]
	topo, err := c.Network(NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Phases(topo)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, phase := range list {
		var down []string
		for _, l := range phase.Links {
			if l.Down {
				down = append(down, l.A.Node+"-"+l.B.Node)
			}
		}
		slices.Sort(down)
		got = append(got, strings.Join(down, " "))
	}
	want := []string{"", "l1-s1", "l1-s1 l1-s2", "l1-s2", "l1-s1 l1-s2", "l1-s1", "", "l2-s3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := len(c.Strikes()); n != 5 {
		t.Errorf("%d faults with their repetitions, want 5", n)
	}
}

// TestNearest names the presets that agree with a setting, and the rows that differ from
// ns-3 most.
func TestNearest(t *testing.T) {
	for text, want := range map[string]string{
		"like: ns3":                     "ns3",
		"like: htsim\ntransport: dctcp": "htsim",
		"like: hardware":                "hardware",
		"transport: tcp":                "",
		"switches: {knowledge: now}\ntransport: tcp": "ns2",
	} {
		if !strings.Contains(text, "transport") {
			text += "\ntransport: dcqcn\nswitches: {pfc: true}"
		}
		x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nduration: 1ms\nengine: native\nschemes: [drill, ecmp, letflow, rps]\n"+text+"\n"), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		c := &x.Cases[0]
		if got := strings.Join(c.Nearest(), " "); got != want {
			t.Errorf("%s: nearest %q, want %q", text, got, want)
		}
		if like := "so they are all like " + want; want != "" && !strings.HasSuffix(c.Otherwise(), like) {
			t.Errorf("%s: %s, want %s", text, c.Otherwise(), like)
		}
	}
	for rdma, want := range map[string]string{
		"{}": "drill, rps: packets overtake each other", "{nack-as: notice}": "", "{nack: selective}": "", "{nack: none}": "", "{nack: irn}": "", "{nack: expected}": "drill, rps: packets overtake each other",
	} {
		x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nduration: 1ms\nengine: native\nschemes: [drill, ecmp, letflow, rps]\ntransport: {kind: dcqcn, rdma: "+rdma+"}\n"), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", rdma, err)
		}
		if got := x.Apart(&x.Cases[0]); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", rdma, got, want)
		}
	}
}

// TestSharedTriggers: flows that wait for the same flows share a trigger, and a flow
// cannot activate two.
func TestSharedTriggers(t *testing.T) {
	topo := eight(t)
	after := func(places ...int32) *Waits { return &Waits{After: places} }
	acked := func(places ...int32) *Waits { return &Waits{AfterAck: places} }
	text, err := Matrix([]Flow{{Dst: 1, Bytes: 5}, {Src: 1, Dst: 2, Bytes: 6, Waits: after(0)}, {Src: 1, Dst: 3, Bytes: 7, Waits: after(0)}, {Src: 2, Dst: 3, Bytes: 8, Waits: &Waits{After: []int32{1}, AfterAck: []int32{0}}}}, topo)
	const want = `Nodes 8
Connections 4
Triggers 2
0->1 id 1 start 0 size 5 send_done_trigger 2 recv_done_trigger 1
1->2 id 2 trigger 1 size 6 recv_done_trigger 2
1->3 id 3 trigger 1 size 7
2->3 id 4 trigger 2 size 8
trigger id 1 oneshot
trigger id 2 count 2 barrier
`
	if err != nil || string(text) != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, text, want)
	}
	if text, err = Matrix([]Flow{{Dst: 1, Bytes: 5}, {Src: 1, Dst: 2, Bytes: 6, Waits: after(0)}}, topo); err != nil || !strings.Contains(string(text), "Connections 2\nTriggers 1\n0->1 ") {
		t.Errorf("one trigger: %v:\n%s", err, text)
	}
	if text, err = Matrix([]Flow{{Dst: 1, Bytes: 5}}, topo); err != nil || strings.Contains(string(text), "rigger") {
		t.Errorf("no trigger: %v:\n%s", err, text)
	}
	for _, c := range []struct {
		waits []*Waits
		want  string
	}{
		{[]*Waits{after(0), after(0, 1)}, "flow 3: flow 1 starts other flows too: a connection has one trigger"},
		{[]*Waits{acked(0), acked(0, 1)}, "flow 3: flow 1 starts other flows too: a connection has one trigger"},
		{[]*Waits{after(0), acked(0)}, ""},
	} {
		flows := []Flow{{Dst: 1, Bytes: 5}}
		for _, w := range c.waits {
			flows = append(flows, Flow{Dst: 1, Bytes: 5, Waits: w})
		}
		_, err := Matrix(flows, topo)
		if got := fmt.Sprint(err); got != c.want && !(c.want == "" && err == nil) {
			t.Errorf("%v: %v, want %s", c.waits, err, c.want)
		}
	}
}

// TestReceivers expands names of hosts, ranges and leaves.
func TestReceivers(t *testing.T) {
	topo := small(t)
	for name, want := range map[string]string{"h1": "[0]", "l2": "[4 5 6 7]", "h2..h4": "[1 2 3]", "l1": "[0 1 2 3]"} {
		set, err := receiverSet(topo, []string{name})
		if err != nil || fmt.Sprint(set) != want {
			t.Errorf("%s: %v, %v, want %s", name, set, err, want)
		}
	}
}

// TestPoolsInFaults: a server leaves the pools of its services, or of one, and returns. Unknown
// servers and services, and pools without a server, are errors.
func TestPoolsInFaults(t *testing.T) {
	const net = `
switches: {l1: {}}
hosts: {h1: , h2: , h3: , h4: }
services: {web: {address: 10.0.9.1, servers: [h2, h3]}, mail: {address: 10.0.9.2, servers: [h3, h4]}}
links: [{ends: [h1, l1], rate: 1G}, {ends: [h2, l1], rate: 1G}, {ends: [h3, l1], rate: 1G}, {ends: [h4, l1], rate: 1G}]
`
	for _, c := range []struct{ faults, want string }{
		{"{at: 1ms, until: 3ms, server: h3, down: true}", "[] []; [h3] [h3]; [] []"},
		{"{at: 1ms, until: 3ms, server: h3, service: web, down: true}", "[] []; [h3] []; [] []"},
		{"{at: 2ms, server: h2, down: true}, {at: 1ms, until: 2ms, server: h3, service: web, down: true}", "x.yaml:5: faults: at 2ms the pool of service web is empty: want at least one of its servers h2, h3 in it"},
		{"{at: 3ms, server: h2, down: true}, {at: 1ms, until: 2ms, server: h3, service: web, down: true}", "[] []; [h3] []; [] []; [h2] []"},
		{"{at: 1ms, server: h9, down: true}", "x.yaml:5: faults[0]: h9 is not a server of a service: want one of h2, h3, h4"},
		{"{at: 1ms, server: h4, service: web, down: true}", "x.yaml:5: faults[0]: h4 is not a server of web: want one of h2, h3"},
		{"{at: 1ms, server: h4, service: ftp, down: true}", `x.yaml:5: faults[0]: there is no service "ftp": want one of web, mail`},
		{"{at: 1ms, server: h4, drop: 0.5}", "x.yaml:5: faults[0]: server h4: want down: true: it leaves the pool; for other faults, want its link"},
		{"{at: 1ms, server: h4, link: h4, down: true}", "x.yaml:5: faults[0]: want one of link, switch, plane and server"},
		{"{at: 3ms, until: 2ms, server: h4, down: true}", "x.yaml:5: faults[0]: until 2ms is not after at 3ms"},
	} {
		read := func(string) ([]byte, error) { return []byte(net), nil }
		x, err := Load("x.yaml", []byte("topology: net.yaml\nschemes: [ecmp]\ntraffic: [{pattern: all-to-all, size: 1KB, load-of: hosts}]\nduration: 5ms\nfaults: ["+c.faults+"]\n"), read, nil)
		if err != nil {
			if err.Error() != c.want {
				t.Errorf("%s: %v\nwant %s", c.faults, err, c.want)
			}
			continue
		}
		topo, err := x.Cases[0].Network(read)
		if err != nil {
			t.Fatal(err)
		}
		phases, err := x.Cases[0].Phases(topo)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range phases {
			got = append(got, fmt.Sprint(p.Services[0].Drained, p.Services[1].Drained))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%s: drained %s\nwant %s", c.faults, text, c.want)
		}
	}
}

// TestNetworkOf: a network is made again only for another setting, even one that was changed
// in place.
func TestNetworkOf(t *testing.T) {
	x, err := Load("x.yaml", []byte(`topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}
schemes: [ecmp]
duration: 10ms
links: [{link: l1-s1, rate: 2G}]
fail: [l1-s2]
`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &x.Cases[0]
	network := func() string {
		t.Helper()
		a, err := x.NetworkOf(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := x.NetworkOf(c, nil); a != b {
			t.Error("the second call made another network")
		}
		return string(a.YAML())
	}
	seen := []string{network()}
	for what, change := range map[string]func(){
		"failed links":  func() { c.Fail[0] = "l2-s1" },
		"changed links": func() { c.Links[0].Rate *= 2 },
		"size":          func() { c.Topology.LeafSpine.Hosts++ },
		"queues":        func() { c.Switches.Queue = 77 },
		"addresses":     func() { c.IPv6 = true },
	} {
		change()
		now := network()
		if slices.Contains(seen, now) {
			t.Errorf("the network is as before a change of its %s", what)
		}
		seen = append(seen, now)
	}
	c.Fail[0] = "s9"
	for range 2 {
		if _, err := x.NetworkOf(c, nil); err == nil || !strings.Contains(err.Error(), "s9") {
			t.Errorf("with an unknown link: %v", err)
		}
	}
}
