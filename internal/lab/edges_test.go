package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/sim"
)

// TestPlanReplacesObjects: a switch has exactly the clone sessions, multicast groups, entries and
// default actions of its latest plan. Objects that the plan does not describe are errors.
func TestPlanReplacesObjects(t *testing.T) {
	during(t, fmt.Sprintf(oneRun, "ecmp"), func(v *View) {
		sw := v.Net.Switch("l2").Program()
		c := &configured{sw: sw, tables: map[string]*bmv2.Table{}, entries: map[string]heldEntry{}}
		for _, p := range sw.Config().Pipelines {
			for _, t := range p.Tables {
				c.tables[t.Name] = t
			}
		}
		const table = "LbIngress.ipv4_route"
		entries := func() int {
			list, err := sw.Tables().Entries(table)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		before := entries()
		group := func(id uint32, want ...dataplane.Replica) {
			t.Helper()
			if got, err := sw.Replication().Replicas(id); want == nil && err == nil || want != nil && (err != nil || !slices.Equal(got, want)) {
				t.Errorf("group %d: %v, %v: want %v", id, got, err, want)
			}
		}
		session := func(id uint32, want *dataplane.MirrorSession) {
			t.Helper()
			if got, ok := sw.Mirrors().Get(id); ok != (want != nil) || ok && got != *want {
				t.Errorf("session %d: %v %+v, want %+v", id, ok, got, want)
			}
		}
		address := func(last uint64) []plan.Match {
			return []plan.Match{{Value: 10<<24 | 9<<16 | last, Bits: 32, Width: 32}}
		}
		host := func(last uint64, port uint64) plan.Entry {
			return plan.Entry{Table: table, Match: address(last), Action: "LbIngress.forward", Args: []plan.Arg{{Name: "port", Value: port, Width: 9}, {Name: "dmac", Value: 1, Width: 48}, {Name: "smac", Value: 2, Width: 48}}}
		}
		hold := func(p plan.Switch) {
			t.Helper()
			if err := c.hold(&p); err != nil {
				t.Fatal(err)
			}
		}
		def := func() string {
			target, _, err := sw.Tables().Default(table)
			if err != nil {
				t.Fatal(err)
			}
			return target.Action.Name
		}
		other := host(0, 4)
		other.Match = nil
		hold(plan.Switch{
			Sessions: []plan.Session{{ID: 5, Port: 2, Bytes: 64}, {ID: 6, Port: 3}}, Groups: []plan.Multicast{{ID: 7, Ports: []int{1, 3}}, {ID: 8, Ports: []int{2}}},
			Entries: []plan.Entry{host(1, 3), host(2, 4), other},
		})
		session(5, &dataplane.MirrorSession{Group: firstSession + 5, Length: 64})
		session(6, &dataplane.MirrorSession{Group: firstSession + 6})
		group(firstSession+5, dataplane.Replica{Port: 2, Instance: 1})
		group(7, dataplane.Replica{Port: 1, Instance: 1}, dataplane.Replica{Port: 3, Instance: 1})
		if entries() != before+2 || def() != "LbIngress.forward" {
			t.Errorf("%d entries, was %d; default %s", entries(), before, def())
		}
		// Objects change, and others go.
		hold(plan.Switch{Sessions: []plan.Session{{ID: 5, Port: 4}}, Groups: []plan.Multicast{{ID: 8, Ports: []int{1, 2}}}, Entries: []plan.Entry{host(2, 3)}})
		session(5, &dataplane.MirrorSession{Group: firstSession + 5})
		session(6, nil)
		group(firstSession+5, dataplane.Replica{Port: 4, Instance: 1})
		group(firstSession + 6)
		group(7)
		group(8, dataplane.Replica{Port: 1, Instance: 1}, dataplane.Replica{Port: 2, Instance: 1})
		if entries() != before+1 || def() != "LbIngress.drop" {
			t.Errorf("%d entries, was %d; default %s", entries(), before, def())
		}
		hold(plan.Switch{})
		session(5, nil)
		group(8)
		if entries() != before {
			t.Errorf("%d entries, was %d", entries(), before)
		}
		for want, p := range map[string]plan.Switch{
			"the program has no table none":  {Entries: []plan.Entry{{Table: "none", Action: "a"}}},
			"the program has no filter none": {Filters: []plan.Filter{{Name: "none"}}},
		} {
			if err := c.hold(&p); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		// Another process has deleted a session or a group of the plan.
		hold(plan.Switch{Sessions: []plan.Session{{ID: 9, Port: 1}}})
		if err := sw.Mirrors().Delete(9); err != nil {
			t.Fatal(err)
		}
		if err := c.hold(&plan.Switch{}); err == nil || !strings.Contains(err.Error(), "unknown clone session 9") {
			t.Errorf("a deleted session: %v", err)
		}
	})
}

// TestLoopsAreNamed: if no flow ends, the run names packets that go round between switches, and
// switches that send packets to ports without a link.
func TestLoopsAreNamed(t *testing.T) {
	text := fmt.Sprintf(oneRun, "ecmp") + "drain: 1ms\n"
	forward := func(sw *dataplane.Switch, table string, only byte, port byte) {
		list, err := sw.Tables().Entries(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Target.Action.Name != "LbIngress.forward" || only > 0 && e.Match[0].Value[2] != only {
				continue
			}
			h, err := sw.Tables().Find(table, e.Match, e.Priority)
			if err != nil {
				t.Fatal(err)
			}
			e.Target.Action.Params[0] = []byte{0, port}
			if err := sw.Tables().Modify(table, h, e.Target); err != nil {
				t.Fatal(err)
			}
		}
	}
	for want, do := range map[string]func(v *View){
		"each packet passes [2-6][0-9] switches: it goes round between them": func(v *View) {
			for _, spine := range []string{"s1", "s2"} {
				forward(v.Net.Switch(spine).Program(), "LbIngress.ipv4_route", 2, 1) // back to l1
			}
		},
		"l1 sends [1-9][0-9]* packets to ports without a link": func(v *View) { forward(v.Net.Switch("l1").Program(), "LbIngress.member", 0, 9) },
	} {
		r := during(t, text, do).Rows[0].Runs[0]
		found := slices.ContainsFunc(r.Alerts, regexp.MustCompile("^"+want+"$").MatchString)
		if r.Metrics["unfinished"] != 100 || !found || len(r.Alerts) > 2 {
			t.Errorf("%g %% unfinished, %q: want %s", r.Metrics["unfinished"], r.Alerts, want)
		}
	}
}

// TestWaitingNamed: a stopped run names the first five flows and computations that wait, and up to
// three steps that each waits for.
func TestWaitingNamed(t *testing.T) {
	_, topo := loaded(t, 1000, 1000, "traffic: [{workload: webserver}]\nduration: 1ms\n")
	net, err := sim.New(topo, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	flow := func(src, dst int, waits *spec.Waits) *outcome {
		return &outcome{Flow: spec.Flow{Src: src, Dst: dst, Bytes: 1000, Waits: waits}}
	}
	list := []*outcome{
		flow(0, 1, nil), flow(1, 0, nil), flow(0, 1, nil), flow(1, 0, nil),
		flow(1, 0, &spec.Waits{After: []int32{0, 1, 2, 3}}),
		{Flow: spec.Flow{Src: 1, Dst: 1, Compute: true, Waits: &spec.Waits{After: []int32{4}, Delay: time.Millisecond}}},
		flow(1, 0, &spec.Waits{After: []int32{5, 0}}),
	}
	text := func(flows []*outcome) string {
		d := &dependent{net: net, topo: topo, flows: flows}
		name := func(i int) string { return topo.Hosts[i].Name }
		if err := d.plan(func(i int) sim.FlowSpec {
			return sim.FlowSpec{From: name(flows[i].Src), To: name(flows[i].Dst), Bytes: flows[i].Bytes}
		}, nil); err != nil {
			t.Fatal(err)
		}
		return d.waitingFor()
	}
	const five = "flow 5 (h2 to h1) waits for flow 1 (h1 to h2), flow 2 (h2 to h1), flow 3 (h1 to h2), 1 more"
	const more = "; the computation 6 of h2 waits for flow 5 (h2 to h1); flow 7 (h2 to h1) waits for the computation 6 of h2, flow 1 (h1 to h2)"
	last := func() *outcome { return flow(0, 1, &spec.Waits{After: []int32{0}}) }
	const eight, nine = "; flow 8 (h1 to h2) waits for flow 1 (h1 to h2)", "; flow 9 (h1 to h2) waits for flow 1 (h1 to h2)"
	for _, c := range []struct {
		flows []*outcome
		want  string
	}{
		{list[:4], ""}, {list[:5], five}, {list, five + more}, {append(list[:7:7], last(), last()), five + more + eight + nine}, {append(list[:7:7], last(), last(), last()), five + more + eight + nine + "; and others"},
	} {
		if got := text(c.flows); got != c.want {
			t.Errorf("%d steps: %s\nwant %s", len(c.flows), got, c.want)
		}
	}
}

// TestServersOfFlows: a run names services without flows, services whose packets reach no server,
// and those whose packets arrive with the service's own address. Flows that have not started count
// as flows of their service.
func TestServersOfFlows(t *testing.T) {
	topo := &fabric.Topology{Services: []fabric.Service{{Name: "web", Address: netip.MustParseAddr("10.0.2.100"), Servers: []string{"h6", "h7"}}, {Name: "db", Address: netip.MustParseAddr("10.0.2.101"), Servers: []string{"h8"}}}}
	flow := func(service int) *outcome { return &outcome{Flow: spec.Flow{Service: service, Dst: 3}} }
	const nobody = "service web: no packet to 10.0.2.100 has reached one of its servers h6, h7: the tables of the program need its address and servers"
	const unused = "service db: no flow goes to it: want traffic with to: [db], or a topology without the service"
	const unchanged = "service web: packets reach its servers with the address 10.0.2.100, which they do not have: want a program that changes it, or return: direct in the topology"
	for _, c := range []struct {
		flows []*outcome
		sims  []*sim.Flow
		want  []string
	}{
		{[]*outcome{flow(0), flow(1)}, []*sim.Flow{nil, nil}, []string{nobody, unused}},
		{[]*outcome{flow(0), flow(1)}, []*sim.Flow{{}, {}}, []string{nobody, unused}},
		{[]*outcome{flow(1), flow(1)}, []*sim.Flow{{}, {Unchanged: 1}}, []string{unchanged, unused}},
		{[]*outcome{flow(1), flow(1)}, []*sim.Flow{{Strays: 1}, nil}, []string{nobody, unused}},
		{[]*outcome{flow(0)}, []*sim.Flow{{Unchanged: 1}}, []string{"service web: no flow goes to it: want traffic with to: [web], or a topology without the service", unused}},
	} {
		if got := serversOf(topo, c.flows, c.sims); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
		for i, f := range c.flows {
			if f.Dst != 3 {
				t.Errorf("flow %d without a server ends at %d", i, f.Dst)
			}
		}
	}
}

// TestBlackHolesOfPairs: a black hole at a leaf hits pairs of hosts of different leaves. Flows
// within a leaf end.
func TestBlackHolesOfPairs(t *testing.T) {
	const text = `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [ecmp]
engine: native
traffic: [{pattern: pairs, pairs: [%s], size: 20KB, at: [0s]}]
seeds: 1
warmup: 0
duration: 1ms
drain: 1ms
faults: [{at: 0s, switch: l1, black-hole: 1}]
`
	for pair, want := range map[string]float64{"h1-h2": 0, "h2-h1": 0, "h1-h3": 100, "h3-h1": 100, "h3-h4": 0} {
		c := run(t, &Runner{}, load(t, fmt.Sprintf(text, pair)))
		if got := c.Rows[0].Runs[0].Metrics["unfinished"]; got != want {
			t.Errorf("%s: %g %% unfinished, want %g", pair, got, want)
		}
	}
}

// TestModelsFollowSettings: models follow the settings of a case: CONGA's packets are shorter
// without its header, so that flows end earlier.
func TestModelsFollowSettings(t *testing.T) {
	mean := func(more string) float64 {
		return run(t, &Runner{}, load(t, fmt.Sprintf(oneRun, "conga")+"engine: native\n"+more)).Rows[0].Runs[0].Metrics["fct-mean"]
	}
	carried, absent := mean(""), mean("switches: {overlay: free}\n")
	if !(absent < carried) {
		t.Errorf("with the header flows take %g ms, without it %g ms", carried, absent)
	}
}

// TestServeIsNotRepeated: a run with a user's controller has no store and is not resumed.
func TestServeIsNotRepeated(t *testing.T) {
	x := load(t, fmt.Sprintf(oneRun, "ecmp"))
	for name, r := range map[string]*Runner{"a store": {Store: openStore(t, t.TempDir())}, "resumed": {Dir: t.TempDir(), Resume: true}} {
		r.Serve = &Serve{Address: "127.0.0.1:0", Every: time.Millisecond}
		if _, err := r.Run(t.Context(), x); err == nil || err.Error() != "a run with a controller of the user cannot be repeated: want neither a store nor resume" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIdleCores: runs use otherwise idle cores if there are at least two for each run and the user
// chose no number. Callbacks and real time need one core.
func TestIdleCores(t *testing.T) {
	x := load(t, `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 8, rate: 100G, host-rate: 100G, delay: 10us, host-delay: 10us}}
schemes: [ecmp]
traffic: [{workload: webserver}]
loads: [0.9]
ties: place
seeds: 1
duration: 1ms
`)
	for _, c := range []struct {
		name string
		r    Runner
		want int
	}{
		{"four cores", Runner{Cores: 4}, 4},
		{"the simulator by name", Runner{Cores: 4, World: Sim}, 4},
		{"one core", Runner{Cores: 1}, 0},
		{"one of the user", Runner{Cores: 4, Within: 1}, 1},
		{"two of the user", Runner{Cores: 4, Within: 2}, 2},
		{"callbacks", Runner{Cores: 4, Begin: func(*View) error { return nil }}, 0},
		{"real time", Runner{Cores: 4, World: Embedded}, 0},
	} {
		jobs, err := (&Runner{}).Jobs(x)
		if err != nil {
			t.Fatal(err)
		}
		if most := jobs[0].parts(); most < 4 {
			t.Fatalf("a run can use %d cores", most)
		}
		c.r.chooseWithin(jobs)
		if c.r.Within != c.want {
			t.Errorf("%s: %d cores for each run, want %d", c.name, c.r.Within, c.want)
		}
		if c.want > 2 && jobs[0].cores != c.want || c.want <= 2 && jobs[0].cores != 0 {
			t.Errorf("%s: the run has %d cores", c.name, jobs[0].cores)
		}
		c.r.chooseWithin(nil)
	}
}

// TestCallbacksOnOneCore: a run with callbacks stays on one core, even if the user asks for more.
func TestCallbacksOnOneCore(t *testing.T) {
	cores := -1
	r := &Runner{Cores: 2, Within: 2, Begin: func(v *View) error { cores = v.Job.cores; return nil }}
	run(t, r, load(t, fmt.Sprintf(oneRun, "ecmp")+"ties: place\n"))
	if cores != 1 {
		t.Errorf("the run has %d cores, want 1", cores)
	}
}

// TestCancelledRuns: a cancelled run has no result and no progress, and is no failure. A run that
// exists already counts in spite of it.
func TestCancelledRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := load(t, fmt.Sprintf(oneRun, "ecmp"))
	reports := 0
	r := &Runner{Cores: 1, Progress: func(Progress) { reports++ }, Begin: func(*View) error { cancel(); return nil }}
	c, err := r.Run(ctx, x)
	if !errors.Is(err, context.Canceled) || c == nil || len(c.Rows[0].Runs) != 0 || reports != 0 {
		t.Errorf("cancelled: %v, %d reports, %+v", err, reports, c)
	}
	jobs, err := r.Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	have := &Result{Hops: 7}
	r.known = map[string]*Result{jobs[0].Key(): have}
	w := &work{r: r, jobs: jobs, results: make([]*Result, 1)}
	if w.runJob(ctx, 0); w.results[0] != have || w.done != 1 || w.taken != 1 || len(w.errs) != 0 || reports != 1 {
		t.Errorf("an existing run: %+v, %d reports", w, reports)
	}
}

// TestFailedRunsInAStore: the error of a failed run is the error of the experiment, also with a
// store, which then lacks the run.
func TestFailedRunsInAStore(t *testing.T) {
	dir := t.TempDir()
	wrong := errors.New("refused on purpose")
	r := &Runner{Cores: 1, Store: openStore(t, dir), Begin: func(*View) error { return wrong }}
	if _, err := r.Run(t.Context(), load(t, fmt.Sprintf(oneRun, "ecmp"))); !errors.Is(err, wrong) {
		t.Errorf("%v, want %v", err, wrong)
	}
	if have := storedRuns(t, dir); len(have) != 0 {
		t.Errorf("the store has %d objects of a failed run", len(have))
	}
}

// TestWholeShards: a worker without a shard, or with the only one, waits for runs of others.
func TestWholeShards(t *testing.T) {
	for s, want := range map[Shard]bool{{}: true, {0, 1}: true, {0, 2}: false, {1, 2}: false, {4, 5}: false} {
		if s.whole() != want {
			t.Errorf("%+v is whole: %v", s, s.whole())
		}
	}
}

// TestPortInUse: a run whose page cannot have its port ends with an error that names the port.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, _, _ := serving(&Serve{Address: l.Addr().String(), Every: time.Millisecond, Wait: 1})
	want := "serving the list of switches: listen tcp " + l.Addr().String() + ": bind: address already in use"
	if _, err := r.Run(t.Context(), load(t, fmt.Sprintf(oneRun, "ecmp"))); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestProbingLeaves: for programs that do not record when a probe came back, the lab knows the
// round-trip time of each leaf to the farthest other one.
func TestProbingLeaves(t *testing.T) {
	s := idleSampler(t, "")
	probing := &manifest.Manifest{Tasks: []manifest.Task{{Kind: manifest.PathProbe}}}
	s.r.nodes = []*plan.Node{{Name: "l1", Leaf: 1, Manifest: probing}, {Name: "l2", Leaf: 2, Manifest: &manifest.Manifest{}}, {Name: "s1", Manifest: probing}}
	links := slices.Clone(s.r.topo.Links)
	for i := range links {
		links[i].Delay = time.Microsecond
	}
	var err error
	if s.r.topo, err = s.r.topo.WithLinks(links); err != nil {
		t.Fatal(err)
	}
	s = newSampler(s.r, nil)
	span, ok := s.r.topo.Routes().Span("l1", "l2")
	if !ok || span.RTT <= 0 || len(s.trips) != 1 || s.trips["l1"] != span.RTT || len(s.news) != 0 {
		t.Errorf("%v of %v, %d with news: want %v for l1", s.trips, ok, len(s.news), span.RTT)
	}
}

// TestGranularityByGroup: the size of flowcells is in a register with a cell for each group.
func TestGranularityByGroup(t *testing.T) {
	for _, c := range []struct {
		list []manifest.Register
		want string
	}{
		{nil, ""},
		{[]manifest.Register{{Name: "a", Content: manifest.Content{Kind: manifest.Granularity}, Index: manifest.ByPort}, {Name: "b", Content: manifest.Content{Kind: manifest.Utilisation}, Index: manifest.ByGroup}}, ""},
		{[]manifest.Register{{Name: "a", Content: manifest.Content{Kind: manifest.Granularity}, Index: manifest.ByPort}, {Name: "b", Content: manifest.Content{Kind: manifest.Granularity}, Index: manifest.ByGroup}}, "b"},
	} {
		got := ""
		if r := granularity(&manifest.Manifest{Registers: c.list}); r != nil {
			got = r.Name
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.list, got, c.want)
		}
	}
}

// TestMetricsOfClasses: a metric of a class covers the flows of this class that count, and the
// metric without a class covers the flows of all classes.
func TestMetricsOfClasses(t *testing.T) {
	const ms = time.Millisecond
	flow := func(class int32, counts bool, took time.Duration) *outcome {
		return &outcome{Flow: spec.Flow{Bytes: 1000}, FlowStats: sim.FlowStats{Started: ms, Finished: ms + took}, class: class, counts: counts, ideal: ms}
	}
	m := &measured{
		classes: []spec.Class{{Name: "short", Upto: 10000}, {Name: "long"}},
		flows:   []*outcome{flow(0, true, 2*ms), flow(0, true, 4*ms), flow(0, false, 50*ms), flow(1, true, 9*ms)},
	}
	v := m.values()
	for key, want := range map[string]float64{"fct-mean": 5, "fct-mean:short": 3, "fct-mean:long": 9, "slowdown-mean:short": 3} {
		if !near(v[key], want) {
			t.Errorf("%s is %g, want %g", key, v[key], want)
		}
	}
}

// TestFailedLinksNeedTwoNumbers: the figure of failed links compares cases that differ only in their
// failed links. Cases that have not run, that differ otherwise, or with one number have no point.
func TestFailedLinksNeedTwoNumbers(t *testing.T) {
	topo, err := fabric.LeafSpine{Leaves: 2, Spines: 3, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	links, err := topo.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	c := func(failed, settings string, runs bool) *Comparison {
		c := swept(nil)
		c.Experiment.Schemes = c.Experiment.Schemes[:1]
		c.Experiment.Cases = make([]spec.Case, len(failed))
		for i := range failed {
			k := &c.Experiment.Cases[i]
			k.Name, k.MTU = failed[:i+1], int(settings[i])
			r := &Row{Case: k, Scheme: &c.Experiment.Schemes[0], Load: 0.5, network: topo}
			if failed[i] == '1' {
				r.network = topo.Fail(links...)
			}
			if runs || i < 1 {
				r.Runs = []*Result{{Label: "a", Metrics: map[string]float64{"fct-mean": float64(10 * (i + 1))}}}
			}
			c.Rows = append(c.Rows, r)
		}
		return c
	}
	for _, k := range []struct {
		failed, settings string
		runs             bool
		want             []float64
	}{
		{"01", "aa", true, []float64{0, 1}},
		{"10", "aa", true, []float64{0, 1}},
		{"01", "aa", false, nil},
		{"01", "ab", true, nil},
		{"00", "aa", true, nil},
		{"0", "a", true, nil},
		{"011", "bab", true, []float64{0, 1}},
		{"001", "bba", true, nil},
	} {
		f := c(k.failed, k.settings, k.runs).drawFailed()
		var got []float64
		if f != nil {
			got = f.Series[0].X
		}
		if !slices.Equal(got, k.want) {
			t.Errorf("%s links failed in cases of the kinds %s: points at %v, want %v", k.failed, k.settings, got, k.want)
		}
	}
}

// TestAxisOfLoads: the axis of a figure over the load begins at the smallest load, not at zero.
func TestAxisOfLoads(t *testing.T) {
	c := swept([]string{""}, 0.3, 0.9)
	c.Experiment.Schemes = c.Experiment.Schemes[:1]
	c.Rows = slices.DeleteFunc(c.Rows, func(r *Row) bool { return r.Scheme.Label == "b" })
	f := c.drawMain(c.Rows)
	if f.Name != "load" || f.X.Low != 0.3 || f.X.High != 0.3 || !slices.Equal(f.Series[0].X, []float64{0.3, 0.9}) {
		t.Errorf("%+v", f)
	}
}

// TestFaultsOfRealSwitches: in real time the controller deploys a plan without the failed links, and
// the first plan again when they are back. The error about a plan that cannot be deployed names the
// time of the fault.
func TestFaultsOfRealSwitches(t *testing.T) {
	ctx := t.Context()
	during(t, fmt.Sprintf(oneRun, "ecmp"), func(v *View) {
		r := &running{Job: v.Job, net: v.Net, topo: v.Topology}
		planned, err := r.plan(r.topo)
		if err != nil {
			t.Fatal(err)
		}
		target := embedded.New(embedded.Options{Memory: true, Still: true})
		defer target.Close()
		ctl, err := controller.New(ctx, planned, target, controller.DeployOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := apply(ctx, ctl); err != nil {
			t.Fatal(err)
		}
		entries := func(want int) {
			t.Helper()
			list, err := target.Switch("l1").Tables().Entries("LbIngress.member")
			if err != nil || len(list) != want {
				t.Errorf("l1 has %d paths, %v: want %d", len(list), err, want)
			}
		}
		links, err := r.topo.FindLinks("l1-s1")
		if err != nil {
			t.Fatal(err)
		}
		p := &place{Controller: ctl, target: target, topo: r.topo}
		turns := []spec.Turn{{Links: links, Fail: true}, {At: 1000, Links: links}}
		entries(2)
		if err := r.runFaults(ctx, p, turns[:1]); err != nil {
			t.Error(err)
		}
		entries(0) // one path needs no group
		if err := r.runFaults(ctx, p, turns); err != nil {
			t.Error(err)
		}
		entries(2)
		ctl.Close()
		target.Close()
		if err := r.runFaults(ctx, p, turns[:1]); err == nil || !strings.Contains(err.Error(), " fault at 0s: ") {
			t.Errorf("closed switches: %v", err)
		}
	})
}

// TestClockOfServedSwitches: a controller sees the time of the switch, which is ahead of the
// network's by the offset of its clock. A program that it loads starts on the simulated switch.
func TestClockOfServedSwitches(t *testing.T) {
	during(t, fmt.Sprintf(oneRun, "ecmp")+"switches: {clock-step: 7us}\n", func(v *View) {
		r := &running{Job: v.Job, net: v.Net, topo: v.Topology}
		planned, err := r.plan(r.topo)
		if err != nil {
			t.Fatal(err)
		}
		sw := v.Net.Switch("l2")
		chance := r.newChance()
		program, err := chance.load(planned.Switch("l2").Pipeline.Config, dataplane.Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := &servedNode{served: &served{r: r}, plan: planned.Switch("l2"), sw: sw, chance: chance}
		v.Net.At(time.Microsecond, func() {
			n.now.Store(int64(time.Microsecond))
			n.Run(program)
			if n.Now() != sw.Clock() || n.Now() != 8*time.Microsecond {
				t.Errorf("the controller sees %v, and the switch is at %v", n.Now(), sw.Clock())
			}
			if sw.Program() != program {
				t.Error("the switch runs another program")
			}
		})
	})
}

// TestSharingEnds: a worker that has executed all runs does not wait for the next heartbeat. One that
// is cancelled counts the runs that other workers still hold.
func TestSharingEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	x := loadSweep(t, fmt.Sprintf(twoSeeds, "a", "0.5"))
	c, err := (&Runner{Cores: 1, Store: openStore(t, t.TempDir()), Beat: time.Hour}).Run(ctx, x)
	if err != nil || c.Made != 2 || c.Left != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	r := &Runner{Cores: 1, Store: openStore(t, t.TempDir()), Beat: time.Hour, Begin: func(*View) error { cancel(); return nil }}
	jobs, err := r.Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.Store.NewWorker(ctx, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if _, err := other.Take(ctx, jobs[0].Key()); err != nil {
		t.Fatal(err)
	}
	if c, err = r.Run(ctx, x); !errors.Is(err, context.Canceled) || c.Made != 0 || c.Left != 1 {
		t.Errorf("cancelled: %+v, %v: want one run of the other worker", c, err)
	}
}

// TestServesFirstRow: controllers of the user drive the runs of the first row, which must be of
// programs in virtual time. Other rows run as usual, with any engine.
func TestServesFirstRow(t *testing.T) {
	jobsOf := func(rows string) []*Job {
		jobs, err := (&Runner{}).Jobs(load(t, fmt.Sprintf(oneRun, rows)))
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	o := &Serve{Address: "127.0.0.1:0", Every: time.Millisecond}
	jobs := jobsOf("ecmp, {scheme: drill, engine: native}")
	if err := o.check(jobs); err != nil || jobs[0].serve != o || jobs[0].deploy == nil || jobs[1].serve != nil || jobs[1].deploy != nil {
		t.Errorf("%+v, %+v, %v", jobs[0], jobs[1], err)
	}
	if err := o.check(jobsOf("{scheme: drill, engine: native}, ecmp")); err == nil || err.Error() != "drill: a controller drives programs: want engine p4, not native" {
		t.Errorf("a model: %v", err)
	}
	jobs = jobsOf("ecmp")
	jobs[0].world = Embedded
	if err := o.check(jobs); err == nil || err.Error() != "ecmp: serving is for virtual time: in world embedded use p4lb deploy" {
		t.Errorf("real time: %v", err)
	}
}

// TestPlanesAvoided: hosts with a port in each plane avoid a plane in which the destination's port has
// no link, as soon as the controller knows it, so that no packet is lost.
func TestPlanesAvoided(t *testing.T) {
	for _, fault := range []string{"plane: 2", "link: h3", "link: h3.2"} {
		text := `
topology: {rail: {rails: 2, servers: 2, spines: 2, planes: 2, host-rate: 100G, host-delay: 500ns, delay: 500ns, queue: 100}}
schemes: [ecmp]
engine: native
traffic: [{pattern: pairs, pairs: [h1-h2, h1-h3, h4-h1], size: 80KB, at: [1ms]}]
transport: {kind: uec, ports: consecutive, entropy: oblivious, paths: 64}
duration: 2ms
warmup: 0
seeds: 1
faults: [{at: 10us, ` + fault + `, down: true}]
`
		r := run(t, &Runner{}, load(t, text)).Rows[0].Runs[0]
		if r.Flows != 3 || r.Metrics["unfinished"] != 0 || len(r.Lost) != 0 || r.Metrics["retransmitted"] != 0 {
			t.Errorf("%s: %d flows, %g %% unfinished, lost %v", fault, r.Flows, r.Metrics["unfinished"], r.Lost)
		}
	}
}

// TestClassOfSize: a flow is in the first class whose limit it does not exceed, else in the last.
func TestClassOfSize(t *testing.T) {
	three := []spec.Class{{Name: "short", Upto: 10}, {Name: "medium", Upto: 20}, {Name: "long"}}
	for bytes, want := range map[int64][2]int32{1: {0, 0}, 10: {0, 0}, 11: {1, 1}, 20: {1, 1}, 21: {2, 1}, 1 << 40: {2, 1}} {
		if all, limited := classOf(three, bytes), classOf(three[:2], bytes); all != want[0] || limited != want[1] {
			t.Errorf("%d bytes: classes %d and %d, want %v", bytes, all, limited, want)
		}
	}
}

// TestTails: the plot has the quantiles from 99.1 to 99.9 % if there are 1,000 flows or more.
func TestTails(t *testing.T) {
	times := make([]float64, 1000)
	for i := range times {
		times[i] = float64(i + 1)
	}
	if got := tails(times[:999]); got != nil {
		t.Errorf("999 flows: %v", got)
	}
	got := tails(times)
	if len(got) != 9 || !slices.IsSorted(got) || math.Abs(got[0]-991) > 1 || math.Abs(got[8]-999) > 1 {
		t.Errorf("%v: want 991 to 999", got)
	}
}

// TestUnknownPaper: only papers with recorded rows have a coverage.
func TestUnknownPaper(t *testing.T) {
	if _, err := Covered("none"); err == nil || err.Error() != `coverage.yaml has no paper "none"` {
		t.Error(err)
	}
	if c, err := Covered("qall"); err != nil || c.Paper != "qall" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestCollectDamaged: a collected comparison lacks the runs that the store does not have, and logs
// damaged ones. It runs nothing. A worker then replaces a damaged run.
func TestCollectDamaged(t *testing.T) {
	dir := t.TempDir()
	x := loadSweep(t, fmt.Sprintf(twoSeeds, "a", "0.5"))
	var lines []string
	r := &Runner{Cores: 1, Store: openStore(t, dir), Log: func(line string) { lines = append(lines, line) }}
	collect := func(want ...bool) {
		t.Helper()
		lines = nil
		c, err := r.Collect(t.Context(), x)
		if err != nil || c.World != Sim {
			t.Fatalf("%+v, %v", c, err)
		}
		var got []bool
		for _, res := range c.Results {
			got = append(got, res != nil)
		}
		if !slices.Equal(got, want) {
			t.Errorf("collected %v, want %v", got, want)
		}
	}
	collect(false, false)
	whole := run(t, r, x)
	collect(true, true)
	if len(lines) != 0 {
		t.Errorf("%q about whole runs", lines)
	}
	jobs, err := r.Jobs(x)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "runs", "*", jobs[1].Key()+"*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	write(t, files[0], "damaged")
	collect(true, false)
	if len(lines) != 1 || !strings.Contains(lines[0], jobs[1].Key()) {
		t.Errorf("a damaged run is logged as %q", lines)
	}
	lines = nil
	again := run(t, r, x)
	if again.Made != 1 || again.Taken != 1 || again.Results[1].Hops != whole.Results[1].Hops || !slices.ContainsFunc(lines, func(line string) bool { return strings.HasSuffix(line, ", but made again") }) {
		t.Errorf("%d runs made, %d taken, %q", again.Made, again.Taken, lines)
	}
	collect(true, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Collect(ctx, x); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := r.Plan(ctx, x, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled plan: %v", err)
	}
}

// TestKnownRatesEnd: the controller changes the weights of paths when it knows of a slower link, and
// restores them when the link is as fast as before.
func TestKnownRatesEnd(t *testing.T) {
	weights := func(v *View) string {
		sw, text := v.Net.Switch("l1").Program(), ""
		for _, p := range sw.Config().Pipelines {
			for _, table := range p.Tables {
				entries, err := sw.Tables().Entries(table.Name)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					text += fmt.Sprintf("%s %v %v\n", table.Name, e.Match, e.Target)
				}
			}
		}
		return text
	}
	texts := map[time.Duration]string{}
	during(t, fmt.Sprintf(oneRun, "wcmp")+"faults: [{at: 100us, until: 400us, link: l1-s1, rate: 250Mbps, known: true}]\n", func(v *View) {
		for _, at := range []time.Duration{50, 150, 250, 450, 650} { // the controller knows after 100 us
			v.Net.At(at*time.Microsecond, func() { texts[at] = weights(v) })
		}
	})
	if len(texts) != 5 || texts[150] != texts[50] || texts[250] == texts[50] || texts[450] != texts[250] || texts[650] != texts[50] {
		t.Errorf("the tables were\n%s\nthen\n%s\nand at the end\n%s", texts[50], texts[250], texts[650])
	}
}

// TestWholeIterations: an iteration of a job counts when it has ended at all ranks. Later ones do
// not count before it.
func TestWholeIterations(t *testing.T) {
	_, topo := loaded(t, 1000, 1000, "traffic: [{workload: webserver}]\nduration: 1ms\n")
	const ms = time.Millisecond
	for _, c := range []struct {
		finished [3][2]time.Duration // by iteration and rank
		want     []time.Duration     // ends of the last whole iteration
	}{
		{[3][2]time.Duration{{ms, 2 * ms}, {3 * ms, 4 * ms}, {5 * ms, 6 * ms}}, []time.Duration{4 * ms, 5 * ms}},
		{[3][2]time.Duration{{ms, 2 * ms}, {3 * ms, 4 * ms}, {5 * ms, 0}}, []time.Duration{2 * ms, 3 * ms}},
		{[3][2]time.Duration{{ms, 2 * ms}, {0, 4 * ms}, {5 * ms, 6 * ms}}, []time.Duration{0, ms}},
		{[3][2]time.Duration{{0, 0}, {3 * ms, 4 * ms}, {}}, nil},
	} {
		job := &spec.JobRun{Job: &spec.Job{Name: "j", Iterations: 3, Start: spec.Time(ms)}}
		var flows []*outcome
		for n, list := range c.finished {
			for rank, at := range list {
				flows = append(flows, &outcome{Flow: spec.Flow{Src: rank, Dst: rank, Compute: true, Job: job, Ends: int32(n + 1)}, FlowStats: sim.FlowStats{Finished: at}})
			}
		}
		list := jobTimes(topo, flows)
		if len(list) != 1 || !slices.Equal(list[0].ends, c.want) {
			t.Errorf("%v: %+v, want ends at %v", c.finished, list, c.want)
		}
	}
	if list := jobTimes(topo, []*outcome{{}}); list != nil {
		t.Errorf("without jobs: %+v", list)
	}
}
