package p4lb_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb"
)

// An experiment from Go values: a program in a folder of your own beside ECMP, with a metric
// that the caller measures, and a condition for it.
func ExampleSetup() {
	setup := p4lb.Setup{
		LeafSpine: &p4lb.LeafSpine{Leaves: 2, Spines: 2, Hosts: 2, Rate: 1e9},
		Schemes:   []p4lb.Scheme{{Name: "./twochoice", Label: "mine"}, {Name: "ecmp"}},
		Traffic:   []p4lb.Traffic{{Workload: "webserver", LoadOf: "hosts"}},
		Loads:     []float64{0.4},
		Seeds:     2,
		Duration:  2 * time.Millisecond,
		Metrics:   []string{"fct-mean", "longest-queue"},
		Expect:    []string{"longest-queue of mine > 1"},
	}
	results, err := p4lb.Experiment{
		Text:    setup.Text(),
		Schemes: "examples/own",
		Metrics: []p4lb.Metric{{Name: "longest-queue", Unit: "KB", Meaning: "the longest queue of a leaf"}},
		Begin: func(n *p4lb.Network) error {
			return n.Every(time.Millisecond, func() error {
				longest := 0
				for _, leaf := range []string{"l1", "l2"} {
					ports, err := n.Ports(leaf)
					if err != nil {
						return err
					}
					for _, p := range ports {
						longest = max(longest, p.LongestQueue)
					}
				}
				return n.Report("longest-queue", float64(longest)/1000)
			})
		},
	}.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Join(results.Table()[0][:3], " | "))
	for _, row := range results.Rows() {
		e, ok := row.Estimate("longest-queue")
		fmt.Println(row.Scheme, row.Load, len(row.Runs), "runs", e.Mean > 1, ok)
	}
	for _, c := range results.Checks() {
		fmt.Println(c.Name, c.Met)
	}
	// Output:
	// SCHEME | fct-mean (ms) | longest-queue (KB)
	// mine 0.4 2 runs true true
	// ecmp 0.4 2 runs true true
	// longest-queue of mine > 1 true
}

// TestSetupText: every kind of value is written as experiment files have it.
func TestSetupText(t *testing.T) {
	got := p4lb.Setup{
		Name: "a: b", FatTree: &p4lb.FatTree{K: 4, Delay: 1500}, Schemes: []p4lb.Scheme{{Name: "drill", Set: map[string]string{"d": "4"}}},
		Traffic: []p4lb.Traffic{{Pattern: "pairs", Pairs: []string{"h1-h9"}, Size: 1e6, Flows: 1}},
		Seeds:   2, Faults: []p4lb.Fault{{At: 90 * time.Second, Link: "l1-s1", Rate: 25e8}, {Server: "h3", Down: true}}, Drain: time.Hour,
	}.Text()
	const want = `name: "a: b"
topology: {"fat-tree":{"delay":"1.5us","k":4}}
schemes: [{"scheme":"drill","set":{"d":"4"}}]
traffic: [{"flows":1,"pairs":["h1-h9"],"pattern":"pairs","size":1000000}]
seeds: 2
drain: "3600s"
faults: [{"at":"90s","link":"l1-s1","rate":"2.5Gbps"},{"down":true,"server":"h3"}]
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if _, err := p4lb.Run(context.Background(), p4lb.Setup{Schemes: []p4lb.Scheme{{Name: "ecmp"}}, Loads: []float64{math.Inf(1)}}.Text(), nil); err == nil || !strings.Contains(err.Error(), "load") {
		t.Error(err)
	}
	if list := p4lb.Metrics(); len(list) < 50 || list[0].Name != "fct-mean" || list[0].Unit != "ms" || !list[0].ByClass {
		t.Error(list)
	}
}

// TestExperimentMisuse: mistakes of a caller are errors that name them.
func TestExperimentMisuse(t *testing.T) {
	for want, begin := range map[string]func(*p4lb.Network) error{
		"at 1ms: the function is nil":           func(n *p4lb.Network) error { n.At(time.Millisecond, nil); return nil },
		"every 1ms: the function is nil":        func(n *p4lb.Network) error { return n.Every(time.Millisecond, nil) },
		"packet: the function is nil":           func(n *p4lb.Network) error { return n.OnPacket(nil) },
		"packets of l1: the function is nil":    func(n *p4lb.Network) error { return n.OnPacketIn("l1", nil) },
		"digests of l1: the function is nil":    func(n *p4lb.Network) error { return n.OnDigest("l1", nil) },
		"metric own: NaN: want a finite number": func(n *p4lb.Network) error { return n.Report("own", math.NaN()) },
		`measures the metric "fct-mean" itself`: func(n *p4lb.Network) error { return n.Report("fct-mean", 1) },
		"at 1ms: 10000 functions of At have called At": func(n *p4lb.Network) error {
			var again func()
			again = func() { n.At(0, again) }
			n.At(time.Millisecond, again)
			return nil
		},
	} {
		_, err := p4lb.Experiment{Text: small("ecmp"), Begin: begin}.Run(context.Background())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	for want, e := range map[string]p4lb.Experiment{
		"set Schemes to the folder":          {Text: small("./mine")},
		"there are two metrics":              {Text: small("ecmp"), Metrics: []p4lb.Metric{{Name: "a"}, {Name: "a"}}},
		"want a name without spaces":         {Text: small("ecmp"), Metrics: []p4lb.Metric{{Name: "a b"}}},
		`there is no metric "own"`:           {Text: small("ecmp") + "metrics: [own]\n"},
		"schemes: there is no scheme to run": {},
	} {
		if _, err := e.Run(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestSwitchErr: a packet that loops and a port that does not exist are reported once, and
// tables of the compiler are not shown.
func TestSwitchErr(t *testing.T) {
	program := strings.NewReplacer("apply {\n        bit<32> n;", "apply {\n        resubmit_preserving_field_list(0);\n        bit<32> n;").Replace(forward)
	p, err := p4lb.Compile("loop.p4", []byte(program))
	must(t, err)
	sw, err := p4lb.NewSwitch(p)
	must(t, err)
	sw.Send(1, frame(1, 2, 3))
	if err := sw.Err(); err == nil || !strings.Contains(err.Error(), "the program loops: a packet of port 1 has no round left") {
		t.Error(err)
	}
	for _, port := range []int{-1, 512} {
		if out := sw.Send(port, frame(1, 2, 3)); out != nil || !strings.Contains(fmt.Sprint(sw.Err()), "want a port from 0 to 511") {
			t.Errorf("port %d: %v", port, out)
		}
	}
	if err := sw.Err(); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(sw.Tables()); got != "[I.bridge]" {
		t.Errorf("tables %s", got)
	}
	if err := sw.Delete(p4lb.Entry{Table: "bridge", Match: map[string]string{"dst": "1"}}); err == nil || err.Error() != "table I.bridge: there is no entry with this match and priority" {
		t.Error(err)
	}
	if _, err := p4lb.NewSwitch(nil); err == nil {
		t.Error("a switch without a program")
	}
}
