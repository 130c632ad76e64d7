package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

// steadyFlow sends packets at a constant rate for 4 ms over the only spine.
const steadyFlow = `
name: steady
topology: {leaf-spine: {leaves: 2, spines: 1, hosts: 1, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [ecmp]
traffic: [{pattern: pairs, pairs: [h1-h2], size: 50KB, at: [0s], transport: udp, udp-rate: 100Mbps, count: true}]
engine: native
seeds: 1
warmup: 0
duration: 5ms
latency: 3ms
metrics: [recovery, unfinished]
`

// TestFaultsEnd: a fault of any kind loses packets from its start to its end, and none before
// or after.
func TestFaultsEnd(t *testing.T) {
	const from, until = 1100 * time.Microsecond, 2300 * time.Microsecond
	for fault, loses := range map[string]bool{
		"link: l1-s1, down: true": true, "switch: s1, down: true": true, "switch: s1, drop: 1": true, "switch: s1, black-hole: 1": true, "link: l1-s1, bit-errors: 0.1": true, "link: l1-s1, rate: 200M": false,
	} {
		var view *View
		rates, links := "", ""
		look := func() {
			sw := view.Net.Switch("s1")
			rates += fmt.Sprint(int64(sw.Port(1).Rate())/1e6, " ")
			links += fmt.Sprint(view.Net.Links()[2].Down() || view.Net.Links()[3].Down(), " ")
		}
		begin := func(v *View) error {
			view = v
			v.Net.At(from-1, func() {
				if v.Net.LastFaultLoss() != 0 {
					t.Errorf("%s: packets are lost before", fault)
				}
				look()
			})
			v.Net.At(from+10, look)
			v.Net.At(until+10, look)
			return nil
		}
		r := run(t, &Runner{Begin: begin}, load(t, steadyFlow+"faults: [{at: 1100us, until: 2300us, "+fault+"}]\n")).Results[0]
		last := view.Net.LastFaultLoss()
		// A packet of 1,514 bytes is sent every 121 us.
		if (last != 0) != loses || loses && (last < until-150*time.Microsecond || last > until) {
			t.Errorf("%s: the last packet is lost at %v", fault, last)
		}
		if want := max(0, (last-from).Seconds()*1e3); !near(r.Metrics["recovery"], want) {
			t.Errorf("%s: recovery takes %g ms, want %g", fault, r.Metrics["recovery"], want)
		}
		wantRates, wantLinks := "1000 1000 1000 ", "false false false "
		if strings.Contains(fault, "rate:") {
			wantRates = "1000 200 1000 "
		}
		if strings.Contains(fault, "down") {
			wantLinks = "false true false "
		}
		if rates != wantRates || links != wantLinks {
			t.Errorf("%s: rates %s, down %s, want %s, %s", fault, rates, links, wantRates, wantLinks)
		}
	}
}

// TestNothingCounts: a run without a flow in the statistics is refused with the reason.
func TestNothingCounts(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{", count: true", "", "all traffic is background load, which no metric counts: want count: true for some of it"},
		{"warmup: 0", "warmup: 1ms", "all flows that count begin in the warm-up of 1ms: want a longer duration, or warmup: 0"},
	} {
		x := load(t, strings.Replace(steadyFlow, c.old, c.new, 1))
		if _, err := (&Runner{}).Run(t.Context(), x); err == nil || err.Error() != "ecmp/load-0.7/seed-1: "+c.want {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
}

// The rates of some links change in a copy of the topology.
func TestTopologyWithRates(t *testing.T) {
	_, top := loaded(t, 1000, 1000, "")
	if got, err := withRates(top, nil); got != top || err != nil {
		t.Errorf("without changes: %v", err)
	}
	last := len(top.Links) - 1
	got, err := withRates(top, map[int]fabric.Rate{last: 5e6})
	if err != nil || got.Links[last].Rate != 5e6 || got.Links[last-1].Rate != 1e9 || top.Links[last].Rate != 1e9 {
		t.Errorf("%v: %v, before %v", err, got.Links[last].Rate, top.Links[last].Rate)
	}
}

// The log for controllers of the user names the pools that a server leaves or returns to.
func TestWordsAboutServers(t *testing.T) {
	f := &spec.Fault{Server: "h6"}
	pools := []fabric.Member{{Service: "web"}, {Service: "db"}}
	for on, want := range map[bool]string{
		true: "at 1ms server h6 leaves the pool of web and of db: your controllers change the tables", false: "at 1ms server h6 returns to the pool of web and of db: your controllers change the tables",
	} {
		if got := atFault(time.Millisecond, f, pools, on); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// In real time, the packets through all switches are limited: a packet for each 1,448 bytes,
// half as many acknowledgments, on each switch of the path.
func TestPacketsInRealTime(t *testing.T) {
	s := idleSampler(t, "")
	r := s.r
	r.world, r.Scheme, r.Load = BMv2, &spec.Scheme{Label: "ecmp"}, 0.5
	flow := func(src, dst int, bytes int64) *outcome {
		return &outcome{Flow: spec.Flow{Src: src, Dst: dst, Bytes: bytes}}
	}
	// Over three switches and one, in 3 ms.
	r.flows = []*outcome{flow(0, 2, 2*1448+1), flow(0, 1, 1448)}
	if got := r.packetRate(); !near(got, (1.5*3*3+1.5)/3e-3) {
		t.Errorf("%g packets a second", got)
	}
	r.flows = []*outcome{flow(0, 1, 16*1448)} // 24 packets: 8,000 a second
	if err := r.checkLoad(RealOptions{}); err != nil {
		t.Errorf("exactly the limit: %v", err)
	}
	r.flows[0].Bytes++
	if err := r.checkLoad(RealOptions{Cores: 1}); !errors.Is(err, errOverload) || !strings.HasSuffix(err.Error(), ": 8500 packets a second through switches, of 8000; want load 0.47, slower links or --overload") {
		t.Errorf("%v", err)
	}
	for _, o := range []RealOptions{{Cores: 2}, {Overload: true}} {
		if err := r.checkLoad(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	s.r.topo = s.r.topo.Fail(0) // the link of the first host
	if got := r.packetRate(); got != 0 {
		t.Errorf("to an unreachable host: %g packets a second", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.runFaults(ctx, nil, []spec.Turn{{At: spec.Time(time.Hour), Fail: true}}); err != nil {
		t.Errorf("flows that end before a fault: %v", err)
	}
}

// Executions of collectives last from their first sent message to their last, or until now.
func TestAttempts(t *testing.T) {
	const ms = time.Millisecond
	one, two, three := &spec.Instance{Kind: "all-reduce"}, &spec.Instance{}, &spec.Instance{}
	flow := func(x *spec.Instance, sent int64, from, to time.Duration) *outcome {
		o := &outcome{Flow: spec.Flow{Instance: x}, counts: true}
		o.Sent, o.Started, o.Finished = sent, from, to
		return o
	}
	flows := []*outcome{
		flow(nil, 1, 0, ms), flow(one, 1, 2*ms, 3*ms), flow(two, 1, 4*ms, 6*ms), flow(one, 1, ms, 5*ms), flow(two, 1, 5*ms, 0), flow(two, 0, 0, 0), flow(three, 0, 0, 0), flow(one, 1, 0, 9*ms),
	}
	flows[7].Compute = true
	list := attempts(flows, 10*ms)
	var got []string
	for _, a := range list {
		got = append(got, fmt.Sprintf("%v-%v %d/%d/%d", a.begin, a.end, a.finished, a.begun, a.all))
	}
	if all := strings.Join(got, ", "); all != "1ms-5ms 2/2/2, 4ms-10ms 1/2/3, 10ms-10ms 0/0/1" || list[0].Instance != one {
		t.Errorf("%s", all)
	}
	v := &collectiveView{ideals: map[*spec.Instance]time.Duration{one: 3 * ms, two: 2 * ms}}
	f := v.drawAttempts(list[:2])
	text := ""
	for _, s := range f.Series {
		text += fmt.Sprintln(s.Label, s.X, s.Y)
	}
	if want := "ended [0] [4]\nunder way [1] [6]\nideal [0 1] [3 2]\n"; text != want || strings.Join(f.X.Names, ",") != "all-reduce 1,flow list 2" {
		t.Errorf("%s of %q, want %s", text, f.X.Names, want)
	}
	var many []*attempt
	for range 14 {
		many = append(many, list[0])
	}
	if f := v.drawAttempts(many); len(f.X.Names) != 12 || f.X.Names[0] != "all-reduce 3" || f.X.Names[11] != "all-reduce 14" || len(f.Series) != 2 || f.Series[0].X[11] != 11 {
		t.Errorf("%+v", f)
	}

	// The latest executions are drawn, as many as have room.
	topo := &fabric.Topology{Hosts: []fabric.Host{{Name: "h1"}, {Name: "h2"}}}
	v.r, v.order = &running{topo: topo, flows: flows}, inOrder(flows)
	v.depth = depths(flows, v.order)
	for begun, want := range map[int]int{maxSpans - 2: 4, maxSpans - 1: 2} {
		list[1].begun = begun
		if s := v.messages(list[:2], 10*ms); len(s.Rank) != want {
			t.Errorf("%d messages of the latest: %d messages, want %d", begun, len(s.Rank), want)
		}
	}
	flows[3].counts = false
	fct, tail := v.quantiles()
	if len(fct) != 101 || tail != nil || fct[50] != 1 || fct[51] != 2 || fct[75] != 2 || fct[76] != 9 || fct[100] != 9 {
		t.Errorf("quantiles %v, tail %v", fct, tail)
	}
	for _, f := range flows {
		f.Finished = 0
	}
	if fct, tail := v.quantiles(); fct != nil || tail != nil {
		t.Errorf("nothing has arrived: %v, %v", fct, tail)
	}
}
