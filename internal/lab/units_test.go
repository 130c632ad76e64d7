package lab

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// TestFirstDifference names a number in which a repetition differs.
func TestFirstDifference(t *testing.T) {
	metrics := func(a, b, c float64) map[string]float64 { return map[string]float64{"a": a, "b": b, "c": c} }
	for want, c := range map[string][2]*Result{
		"7 hops, kept are 8":   {{Hops: 7, Metrics: metrics(1, 2, 3)}, {Hops: 8, Metrics: metrics(1, 2, 4)}},
		"b is 2, kept is 5":    {{Metrics: metrics(1, 2, 3)}, {Metrics: metrics(1, 5, 4)}},
		"c is 3, kept is 4":    {{Metrics: metrics(1, 2, 3)}, {Metrics: metrics(1, 2, 4)}},
		"a is 1, kept is 0":    {{Metrics: map[string]float64{"a": 1}}, {}},
		"beside the metrics":   {{Metrics: metrics(1, 2, 3)}, {Metrics: metrics(1, 2, 3), Flows: 1}},
		"0 hops, kept are 100": {{}, {Hops: 100}},
	} {
		if got := firstDifference(c[0], c[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSideBySide calls a function for each element, in several goroutines, until one
// call fails.
func TestSideBySide(t *testing.T) {
	for _, width := range []int{1, 2, 9} {
		var mu sync.Mutex
		seen := map[int]int{}
		err := sideBySide(width, []int{3, 1, 4, 5}, func(i int) error {
			mu.Lock()
			defer mu.Unlock()
			seen[i]++
			return nil
		})
		if err != nil || fmt.Sprint(seen) != "map[1:1 3:1 4:1 5:1]" {
			t.Errorf("width %d: %v, %v", width, seen, err)
		}
	}
	var calls atomic.Int32
	failed := errors.New("failed")
	err := sideBySide(1, []int{0, 1, 2, 3}, func(i int) error {
		calls.Add(1)
		if i == 1 {
			return failed
		}
		return nil
	})
	if !errors.Is(err, failed) || calls.Load() != 2 {
		t.Errorf("%d calls, %v: want 2 and the failure of the second", calls.Load(), err)
	}
	// Calls that fail at the same time are all reported.
	var both sync.WaitGroup
	both.Add(2)
	err = sideBySide(2, []int{0, 1}, func(i int) error {
		both.Done()
		both.Wait()
		return fmt.Errorf("failure %d", i)
	})
	if err == nil || !strings.Contains(err.Error(), "failure 0") || !strings.Contains(err.Error(), "failure 1") {
		t.Errorf("two failures: %v", err)
	}
}

// TestRates: the expected time of a run follows from the measured times of its scheme,
// of its engine, and from constants, in this order.
func TestRates(t *testing.T) {
	j := &Job{Scheme: &spec.Scheme{Scheme: "drill", Engine: spec.EngineP4}}
	native := &Job{Scheme: &spec.Scheme{Scheme: "drill", Engine: spec.EngineNative}}
	tofino := &Job{Scheme: &spec.Scheme{Scheme: "drill", Engine: spec.EngineP4, Arch: "tna"}}
	known := rates{}
	seconds := func(want string) {
		t.Helper()
		if got := fmt.Sprintf("%.3f %.3f %.3f", known.seconds(j, 3e6), known.seconds(native, 3e6), known.seconds(tofino, 3e6)); got != want {
			t.Errorf("%s seconds, want %s", got, want)
		}
	}
	seconds("6.020 2.020 6.020")
	known.add(rates{"p4 v1model": {1e6, 4}, "native v1model": nil, "p4 tna": {0, 5}, "p4 tna drill": {5, 0}})
	seconds("12.020 2.020 6.020")
	known.add(rates{"p4 v1model": {1e6, 2}, "p4 v1model drill": {3e6, 1}, "native v1model": {6e6, 1}})
	seconds("1.020 0.520 6.020")
	if s := known["p4 v1model"]; s.Hops != 2e6 || s.Seconds != 6 {
		t.Errorf("%+v: want sums", s)
	}
	if s := known["p4 tna"]; s != nil {
		t.Errorf("a rate without hops is kept: %+v", s)
	}
}

// TestShards: the shards have all jobs, each has its own once, and begin the others' at
// different positions.
func TestShards(t *testing.T) {
	costs := []float64{1, 8, 2, 5, 4, 3, 7}
	if own, others := (Shard{}).divide(costs); fmt.Sprint(own) != "[1 6 3 4 5 2 0]" || others != nil {
		t.Errorf("alone: %v, %v", own, others)
	}
	for i, want := range []string{"[1 2] [6 3 4 5 0]", "[6 5] [3 4 2 0 1]", "[3 4 0] [5 2 1 6]"} {
		own, others := (Shard{i, 3}).divide(costs)
		if got := fmt.Sprint(own, others); got != want {
			t.Errorf("shard %d: %s, want %s", i, got, want)
		}
	}
}

// TestMessages limits the messages of a chart and the hosts in it.
func TestMessages(t *testing.T) {
	const second = time.Second
	one, two := &spec.Instance{}, &spec.Instance{}
	flow := func(x *spec.Instance, src int, from, to time.Duration, after ...int32) *outcome {
		o := &outcome{Flow: spec.Flow{Src: src, Dst: src + 1, Instance: x}}
		o.Started, o.Finished = from, to
		if len(after) > 0 {
			o.Waits = &spec.Waits{After: after}
		}
		return o
	}
	topo := &fabric.Topology{}
	for i := range 100 {
		topo.Hosts = append(topo.Hosts, fabric.Host{Name: fmt.Sprintf("h%d", i+1)})
	}
	flows := []*outcome{
		{Flow: spec.Flow{Src: 9}}, flow(one, 2, 0, second), flow(two, 3, 0, second), flow(one, 0, second, 3*second, 1), flow(one, 2, 3*second, 4*second, 3, 2), flow(one, 5, second, 0),
	}
	flows[4].Compute = true
	s := steps(topo, flows)
	if got, want := fmt.Sprint(s.Hosts, s.Rank, s.Step, s.Start, s.End, s.going), "[h1 h3] [1 0] [0 1] [0 1000] [1000 3000] []"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	order := inOrder(flows)
	if got := fmt.Sprint(depths(flows, order)); got != "[0 0 0 1 2 0]" {
		t.Errorf("depths %s", got)
	}
	flows[5].Sent = 10
	s = messages(topo, flows, order, depths(flows, order), func(x *spec.Instance) bool { return x == one }, 5*second)
	if got, want := fmt.Sprint(s.Hosts, s.Rank, s.End, s.going), "[h1 h3 h6] [1 2 0] [1000 5000 3000] [false true false]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := steps(topo, flows[:1]); got != nil {
		t.Errorf("no collective has messages: %+v", got)
	}
	unfinished := []*outcome{flow(one, 1, second, 0)}
	if got := steps(topo, unfinished); got != nil {
		t.Errorf("no finished message: %+v", got)
	}
	moe := &spec.JobRun{Job: &spec.Job{Name: "moe"}}
	for _, f := range flows[:5] {
		f.Job = moe
	}
	if s := steps(topo, flows[:5]); s.Job != "moe" || len(s.Rank) != 3 {
		t.Errorf("%q has %d messages: want the 3 of both instances of moe", s.Job, len(s.Rank))
	}
	many := func(n, senders int) []*outcome {
		var list []*outcome
		for i := range n {
			list = append(list, flow(one, i%senders, 0, second))
		}
		return list
	}
	if s := steps(topo, many(maxSpans, 1)); s == nil || len(s.Rank) != maxSpans {
		t.Error("the largest chart is missing")
	}
	if s := steps(topo, many(maxSpans+1, 1)); s != nil {
		t.Errorf("a chart of %d messages", len(s.Rank))
	}
	if s := steps(topo, many(99, 99)); len(s.Hosts) != maxSenders || len(s.Rank) != maxSenders {
		t.Errorf("%d hosts with %d messages: want %d", len(s.Hosts), len(s.Rank), maxSenders)
	}
}

// TestCheckWorld gives the reason why a job runs in the simulator alone.
func TestCheckWorld(t *testing.T) {
	const base = "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nduration: 10ms\n"
	for text, want := range map[string]string{
		"schemes: [ecmp]": "",
		"schemes: [ecmp]\ntraffic: [{transport: tcp}]":                        "",
		"schemes: [ecmp]\ntransport: dctcp":                                   "transport dctcp is the simulator's alone: in world bmv2 the kernel sends, by tcp",
		"schemes: [ecmp]\ntraffic: [{}, {transport: udp, udp-rate: 1Mbps}]":   "transport tcp, udp is the simulator's alone: in world bmv2 the kernel sends, by tcp",
		"schemes: [ecmp]\nengine: native":                                     "ecmp: engine native is the simulator's alone: in world bmv2 the programs forward",
		"schemes: [ecmp]\nfaults: [{at: 1ms, link: l1-s1, down: true}]":       "",
		"schemes: [ecmp]\nfaults: [{at: 1ms, link: l1-s1, rate: 100M}]":       "faults other than down are the simulator's alone: in world bmv2 links and switches fail and come back",
		"schemes: [ecmp]\nswitches: {pfc: true}":                              "pfc and ecn are the simulator's alone: the switches of world bmv2 neither pause nor mark",
		"schemes: [ecmp]\nswitches: {pfc: false}":                             "",
		"schemes: [ecmp]\nswitches: {ecn: 5}":                                 "pfc and ecn are the simulator's alone: the switches of world bmv2 neither pause nor mark",
		"schemes: [ecmp]\nswitches: {ecn-min: 5KB, ecn-max: 6KB, ecn-p: 0.1}": "pfc and ecn are the simulator's alone: the switches of world bmv2 neither pause nor mark",
		"schemes: [ecmp]\nmtu: 1500":                                          "mtu is the simulator's alone: the links of world bmv2 have 1500 bytes",
		"schemes: [ecmp]\nobserve: {every: 1ms, test: 0.2}":                   "observe is the simulator's alone; in world bmv2, p4lb observe looks at switches that run",
		"schemes: [ecmp@tna]":                                                 "ecmp@tna: simple_switch runs programs for v1model alone",
		"schemes: [ecmp]\ntopology2: x":                                       "-",
	} {
		x, err := spec.Load("x.yaml", []byte(base+text+"\n"), nil, nil)
		if err != nil {
			if want != "-" {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		j := &Job{x: x, Case: &x.Cases[0], Scheme: &x.Schemes[0]}
		got := ""
		if err := j.checkWorld(BMv2); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if err := j.checkWorld(Sim); err != nil {
			t.Errorf("%s in the simulator: %v", text, err)
		}
		if err := j.checkWorld(Embedded); (err != nil) != (want != "" && !strings.Contains(want, "simple_switch")) {
			t.Errorf("%s in the embedded switches: %v", text, err)
		}
	}
	j := &Job{x: &spec.Experiment{}, Case: &spec.Case{}, Scheme: &spec.Scheme{}, setup: &setup{topo: &fabric.Topology{Hosts: make([]fabric.Host, 2)}}}
	j.Case.Transport.Kind = "tcp"
	if err := j.checkWorld(Embedded); err != nil {
		t.Errorf("hosts with one port: %v", err)
	}
	j.setup.topo.Hosts[1].NIC = "nic1"
	if err := j.checkWorld(Embedded); err == nil || err.Error() != "hosts with several ports are the simulator's alone: in world embedded a host has one" {
		t.Errorf("hosts with two ports: %v", err)
	}
}

// TestServeOptions refuses values out of range before a run begins, and fills in the rest.
func TestServeOptions(t *testing.T) {
	x := load(t, "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nduration: 10ms\nschemes: [ecmp]\n")
	jobs, err := (&Runner{}).Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Serve){
		"": func(o *Serve) {},
		`serving "x": want an address with a port, such as 127.0.0.1:9558`:                                                     func(o *Serve) { o.Address = "x" },
		"serving 10.0.0.1:5: controllers need no password: want an address of this machine alone, such as 127.0.0.1:5":         func(o *Serve) { o.Address = "10.0.0.1:5" },
		"serving name:5: controllers need no password: want an address of this machine alone, such as 127.0.0.1:5":             func(o *Serve) { o.Address = "name:5" },
		`serving 127.0.0.1:x: port "x": want a number up to 65535`:                                                             func(o *Serve) { o.Address = "127.0.0.1:x" },
		"serving 127.0.0.1:65528: the 4 switches have the ports after 65528, for P4Runtime and for Thrift: want at most 65527": func(o *Serve) { o.Address = "127.0.0.1:65528" },
		"serving every 0s: want a time above 0":                                                                                func(o *Serve) { o.Every = 0 },
		"serving every -1ns: want a time above 0":                                                                              func(o *Serve) { o.Every = -1 },
		"serving for -1 controllers: want 1 or more, or 0 for real time":                                                       func(o *Serve) { o.Wait = -1 },
		"serving -1 times slower than real time, with a timeout of 0s: want numbers above 0":                                   func(o *Serve) { o.Slow = -1 },
		"serving 0 times slower than real time, with a timeout of -1ns: want numbers above 0":                                  func(o *Serve) { o.Timeout = -1 },
	} {
		o := &Serve{Address: "127.0.0.1:0", Every: time.Millisecond}
		change(o)
		got := ""
		if err := o.check(jobs); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	o := &Serve{Address: "localhost:65527", Every: 1}
	if err := o.check(jobs); err != nil || o.Address != "127.0.0.1:65527" || o.Slow != 1 || o.Timeout != time.Second || o.Start != time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
	o.Log("nothing")
}

// TestServedNames refuses names of controllers that messages could not quote, and
// controllers beyond the limit.
func TestServedNames(t *testing.T) {
	d := &served{callers: map[string]*caller{}, changed: make(chan struct{})}
	long := strings.Repeat("n", 64)
	for name, want := range map[string]int{long: 200, long + "n": 400, "a%20b": 400, "a%7Fb": 400, "%7E%21": 200, "a": 200} {
		w := httptest.NewRecorder()
		d.done(w, httptest.NewRequest("POST", "/done?name="+name, nil))
		if w.Code != want || want == 400 && strings.TrimSpace(w.Body.String()) != wantName || want == 200 && w.Body.String() != "ok\n" {
			t.Errorf("%s: %d, %s", name, w.Code, w.Body)
		}
		if want == 200 {
			continue
		}
		w = httptest.NewRecorder()
		if d.next(w, httptest.NewRequest("GET", "/next?name="+name, nil)); w.Code != want || strings.TrimSpace(w.Body.String()) != wantName {
			t.Errorf("next of %s: %d, %s", name, w.Code, w.Body)
		}
	}
	if len(d.callers) != 3 {
		t.Fatalf("%d controllers, want 3", len(d.callers))
	}
	d.callers["a"] = &caller{waits: true}
	w := httptest.NewRecorder()
	if d.next(w, httptest.NewRequest("GET", "/next?name=a", nil)); w.Code != 409 || !strings.HasPrefix(w.Body.String(), "controller a waits already: give each controller a name of its own") {
		t.Errorf("a second request of a: %d, %s", w.Code, w.Body)
	}
	for i := len(d.callers); i < 1024; i++ {
		d.callers[fmt.Sprint("c", i)] = &caller{}
	}
	if d.admits("one-more") {
		t.Error("controller 1025 is admitted")
	}
	delete(d.callers, "a")
	if !d.admits("one-more") {
		t.Error("controller 1024 is refused")
	}
}
