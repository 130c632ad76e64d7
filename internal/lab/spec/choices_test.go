package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/sim"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// TestChoicesOfModels: each choice of a switch changes one property of the models, and the defaults
// change none.
func TestChoicesOfModels(t *testing.T) {
	plain := sim.Model{OverlayLen: 5}
	of := func(w SwitchSpec) sim.Model {
		m := sim.Model{OverlayLen: 5}
		w.Vary(&m)
		return m
	}
	set := func(change func(m *sim.Model)) sim.Model {
		m := plain
		change(&m)
		return m
	}
	for _, c := range []struct {
		w    SwitchSpec
		want sim.Model
	}{
		{SwitchSpec{}, plain},
		{SwitchSpec{DrillMemory: byHost}, set(func(m *sim.Model) { m.HostMemory = true })},
		{SwitchSpec{DrillTies: remembered}, set(func(m *sim.Model) { m.MemoryFirst = true })},
		{SwitchSpec{FlowKey: keyLikeNS3}, set(func(m *sim.Model) { m.LooseFlows = true })},
		{SwitchSpec{FlowKey: fiveTuple}, plain},
		{SwitchSpec{CongaPaths: fourPaths}, set(func(m *sim.Model) { m.FourPaths = true })},
		{SwitchSpec{CongaPaths: allPaths}, plain},
		{SwitchSpec{CongaRates: inSteps}, set(func(m *sim.Model) { m.Steps = true })},
		{SwitchSpec{CongaRates: fading}, plain},
		{SwitchSpec{CongaNews: asHeard}, set(func(m *sim.Model) { m.HeardNews = true })},
		{SwitchSpec{CongaNews: inTurn}, plain},
		{SwitchSpec{Overlay: notCarried}, sim.Model{}},
		{SwitchSpec{Overlay: carried}, plain},
		{SwitchSpec{Knowledge: atEnqueue}, set(func(m *sim.Model) { m.Ghost = true })},
		{SwitchSpec{Knowledge: atOnce}, set(func(m *sim.Model) { m.AtOnce = true })},
		{SwitchSpec{Knowledge: everywhere}, set(func(m *sim.Model) { m.AtOnce, m.Onward = true, true })},
	} {
		if got := of(c.w); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v, want %+v", c.w, got, c.want)
		}
	}
}

// TestChoicesOfNetworks: each choice of a switch changes one option of the network, and the defaults
// change none.
func TestChoicesOfNetworks(t *testing.T) {
	set := func(change func(o *sim.Options)) sim.Options {
		var o sim.Options
		change(&o)
		return o
	}
	for _, c := range []struct {
		w          SwitchSpec
		base, want sim.Options
	}{
		{SwitchSpec{}, sim.Options{}, sim.Options{}},
		{SwitchSpec{Clock: Time(7 * time.Microsecond)}, sim.Options{}, set(func(o *sim.Options) { o.ClockStep = 7 * time.Microsecond })},
		{SwitchSpec{Marking: atDequeue}, sim.Options{}, set(func(o *sim.Options) { o.ECN.Dequeue = true })},
		{SwitchSpec{Marking: atEnqueue}, sim.Options{}, sim.Options{}},
		{SwitchSpec{Control: hashed}, sim.Options{}, set(func(o *sim.Options) { o.Answers.Hashed = true })},
		{SwitchSpec{Priority: first}, sim.Options{}, set(func(o *sim.Options) { o.Answers.First = true })},
		{SwitchSpec{SlowLinks: scaledLinks}, sim.Options{}, set(func(o *sim.Options) { o.Scaled = true })},
		{SwitchSpec{Hysteresis: 3000}, sim.Options{}, set(func(o *sim.Options) { o.PFC.Resume = 3000 })},
		{SwitchSpec{Promised: promisedQueues}, sim.Options{}, set(func(o *sim.Options) { o.PFC.Promised = true })},
		{SwitchSpec{Hash: hashLikeNS3}, sim.Options{}, set(func(o *sim.Options) { o.Hash = sim.HashNS3 })},
		{SwitchSpec{Draws: drawsLikeNS3}, sim.Options{}, set(func(o *sim.Options) { o.Draws = sim.DrawsNS3 })},
		// A share of the free buffer limits queues, unless another rule limits packets.
		{SwitchSpec{Limit: whatIsFree}, sim.Options{}, set(func(o *sim.Options) { o.Alpha = 1 })},
		{SwitchSpec{Limit: whatIsFree}, sim.Options{Alpha: 4}, sim.Options{Alpha: 4}},
		{SwitchSpec{Limit: whatIsFree, Queue: 1}, sim.Options{}, sim.Options{}},
		{SwitchSpec{Limit: whatIsFree}, set(func(o *sim.Options) { o.PFC.On = true }), set(func(o *sim.Options) { o.PFC.On = true })},
	} {
		got := c.base
		if c.w.Apply(&got); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v, want %+v", c.w, got, c.want)
		}
	}
}

// TestNackPolicies converts the treatment of early packets.
func TestNackPolicies(t *testing.T) {
	for text, want := range map[string]sim.NackPolicy{
		"": sim.GoBackOnAny, nackAny: sim.GoBackOnAny, nackExpected: sim.GoBackOnExpected, nackSelective: sim.Selective, nackNone: sim.KeepEarly, nackIRN: sim.Patient,
	} {
		if got := (&RDMASpec{Nack: text}).nackPolicy(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestChoiceConflicts refuses choices that exclude each other, at the key of one of them.
func TestChoiceConflicts(t *testing.T) {
	for text, want := range map[string]string{
		"like: ns9": `like: like "ns9": want one of`,
		"switches: {marking: dequeue}\ntransport: dctcp":                              "",
		"switches: {marking: dequeue}":                                                "switches.marking: nothing is marked: want ecn, or ecn-min and ecn-max",
		"switches: {marking: dequeue, ecn: 5}":                                        "",
		"switches: {marking: dequeue, ecn: none}":                                     "switches.marking: nothing is marked",
		"switches: {marking: dequeue, ecn-min: 5KB, ecn-max: 9KB}":                    "",
		"switches: {marking: dequeue}\ntransport: uec":                                "",
		"switches: {marking: late, ecn: 5}":                                           `switches.marking: "late": want enqueue or dequeue`,
		"switches: {pfc-hysteresis: 3KB}":                                             "switches.pfc-hysteresis: without pfc nothing is paused: want pfc: true",
		"switches: {pfc-hysteresis: 3KB, pfc: false}":                                 "switches.pfc-hysteresis: without pfc nothing is paused",
		"switches: {pfc-hysteresis: 3KB, pfc: true}":                                  "",
		"switches: {pfc-hysteresis: 30KB, pfc: true, pfc-threshold: 30KB}":            "",
		"switches: {pfc-hysteresis: 31KB, pfc: true, pfc-threshold: 30KB}":            "switches.pfc-hysteresis: 31KB is more than the threshold of 30KB: a port would not go on",
		"switches: {queue-limit: free, queue: 5}":                                     "switches.queue-limit: free, and queue: 5 packets: want one of them",
		"switches: {queue-limit: free}":                                               "",
		"transport: {kind: tcp, recovery: newreno, max-dupacks: 9}":                   "transport.max-dupacks: recovery newreno cannot distinguish reordering from loss: want recovery: sack, or no max-dupacks",
		"transport: {kind: tcp, recovery: newreno}":                                   "",
		"transport: {kind: dcqcn, rdma: {nack: none, nack-as: notice}}":               "transport.rdma.nack-as: there are no Nacks with nack: none",
		"transport: {kind: dcqcn, rdma: {nack: none, nack-every: 5us}}":               "transport.rdma.nack-every: there are no Nacks with nack: none",
		"transport: {kind: dcqcn, rdma: {nack-every: 5us}}":                           "",
		"transport: {kind: dcqcn, rdma: {reordering: 5us}}":                           "transport.rdma.reordering: reordering and base-rtt are of nack: irn alone",
		"transport: {kind: dcqcn, rdma: {base-rtt: 5us}}":                             "transport.rdma.reordering: reordering and base-rtt are of nack: irn alone",
		"transport: {kind: dcqcn, rdma: {nack: irn, reordering: 5us, base-rtt: 9us}}": "",
		"ties: place\nswitches: {draws: ns3}\nengine: native":                         "ties: place has no order in which switches draw from one sequence, which draws: ns3 asks for: want planned",
		"ties: place\nswitches: {knowledge: everywhere}\nengine: native":              "ties: place cannot read queues of other switches at once, which knowledge: everywhere requires: want planned",
		"switches: {knowledge: now}":                                                  `switches.knowledge: drill runs a generated program, which cannot have "now": want engine native, or`,
		"switches: {knowledge: now}\nengine: native":                                  "",
		"ties: place": "",
	} {
		_, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nschemes: [drill]\nduration: 1ms\n"+text+"\n"), nil, nil)
		got := ""
		if err != nil {
			_, got, _ = strings.Cut(strings.TrimPrefix(err.Error(), "x.yaml:"), ": ")
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestExpectationForm reads expectations about values, rows and multiples of rows, and refuses
// unknown rows and metrics.
func TestExpectationForm(t *testing.T) {
	const head = "topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nduration: 1ms\nschemes: [drill, {scheme: ecmp, label: 'my row'}]\n"
	for text, want := range map[string]Expectation{
		"unfinished == 0":                    {Metric: "unfinished", Op: "==", Value: 0},
		"fct-mean of drill < 0.9 * my row":   {Metric: "fct-mean", Of: "drill", Op: "<", Value: 0.9, Times: "my row"},
		"fct-mean of my row >= drill":        {Metric: "fct-mean", Of: "my row", Op: ">=", Value: 1, Times: "drill"},
		"fct-mean<=1.5e3":                    {Metric: "fct-mean", Op: "<=", Value: 1500},
		"fct-p99:short > drill":              {Metric: "fct-p99:short", Op: ">", Value: 1, Times: "drill"},
		"  fct-mean of drill  <  2*my row  ": {Metric: "fct-mean", Of: "drill", Op: "<", Value: 2, Times: "my row"},
	} {
		x, err := Load("x.yaml", []byte(head+"expect: ['"+text+"']\n"), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want.Text = strings.TrimSpace(text)
		if got := x.Expectations(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"fct-mean":                      `"fct-mean": want METRIC [of ROW] < [NUMBER *] ROW or < NUMBER, such as "fct-mean of a < 0.9 * b"`,
		"fct-mean ! 3":                  `"fct-mean ! 3": want METRIC`,
		"fct-mean < 1.2.3":              `"fct-mean < 1.2.3": "1.2.3" is no number`,
		"fct-average < 3":               `there is no metric "fct-average"`,
		"fct-mean of x < 3":             `there is no row "x": there are drill, my row`,
		"fct-mean of drill < 3 * y":     `there is no row "y": there are drill, my row`,
		"fct-mean of drill < drill":     "the row is compared with itself",
		"fct-mean of drill < 2 * drill": "the row is compared with itself",
	} {
		_, err := Load("x.yaml", []byte(head+"expect: ['unfinished == 0', '"+text+"']\n"), nil, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "x.yaml:4: expect[1]: "+want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestAllMetrics lists each metric once, a metric of classes also for each of several classes, and a
// metric of jobs also for each job.
func TestAllMetrics(t *testing.T) {
	keys := func(classes []Class, jobs ...string) []string {
		return lists.Map(AllMetrics(classes, jobs), func(m Measure) string { return fmt.Sprint(m.Key, " ", m.Class) })
	}
	plain := keys(nil)
	if len(plain) != len(Metrics()) || !slices.Contains(plain, "fct-mean -1") {
		t.Errorf("%d metrics of %d: %q", len(plain), len(Metrics()), plain)
	}
	if got := keys([]Class{{Name: "all"}}); !slices.Equal(got, plain) {
		t.Error("one class has metrics of its own")
	}
	two := keys([]Class{{Name: "short", Upto: 5}, {Name: "long"}}, "a", "b")
	by := 0
	for _, m := range Metrics() {
		if m.ByClass {
			by++
		}
	}
	if want := len(plain) + 2*by + 2*len(jobMetrics); len(two) != want {
		t.Errorf("%d metrics of two classes and two jobs, want %d", len(two), want)
	}
	for _, want := range []string{"fct-mean -1", "fct-mean:short 0", "fct-mean:long 1", "iteration-time:a -1", "iteration-time:b -1"} {
		if !slices.Contains(two, want) {
			t.Errorf("no %s", want)
		}
	}
	if slices.Contains(two, "queue-mean:short 0") || slices.Contains(two, "fct-mean:a -1") {
		t.Error("a metric of the network is measured by class, or a metric of flows by job")
	}
	list := AllMetrics(nil, nil)
	i := slices.IndexFunc(list, func(m Measure) bool { return m.Key == "fct-mean" })
	if got := list[i].Label(); got != "fct-mean (ms)" {
		t.Errorf("label %s", got)
	}
	if i = slices.IndexFunc(list, func(m Measure) bool { return m.Unit == "" }); list[i].Label() != list[i].Key {
		t.Errorf("label %s of a metric without a unit", list[i].Label())
	}
}

// TestMetricsOfJobs: metrics of jobs name a job of the experiment, metrics of the caller have their
// own names, and old names are explained.
func TestMetricsOfJobs(t *testing.T) {
	x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nschemes: [ecmp]\njobs: [{name: a, phases: [{collective: all-reduce, size: 1MB}]}]\n"), nil, nil, Metric{Name: "mine", Unit: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"iteration-time:a": "", "iteration-time": "", "mine": "", "iteration-time:b": `metric iteration-time: there is no job "b" in jobs of `, "mine:a": `there is no metric "mine"`, "overtaken": "overtaken is now called reordered", "queue-mean:short": "metric queue-mean is not measured by class", "fct-mea": `there is no metric "fct-mea"; did you mean fct-mean?`} {
		m, err := x.Metric(name)
		if want == "" && (err != nil || m.Key != name) || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %+v, %v; want %q", name, m, err, want)
		}
	}
}

// TestNeeded keeps the targets of some cases, and the cases and rows that these compare.
func TestNeeded(t *testing.T) {
	const text = `topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}
duration: 1ms
schemes: [drill, ecmp, rps, letflow]
cases: [{name: a}, {name: b}, {name: c}, {name: d}]
targets:
  - {case: a, metric: fct-mean, of: drill, against: ecmp, below: true}
  - {case: a, metric: fct-mean, of: rps, against-case: b, below: true}
  - {case: c, metric: fct-mean, order: [ecmp, letflow]}
  - {case: c, metric: fct-mean, of: rps, against-case: b, against: letflow, below: true}
vary: {open: {duration: [2ms]}%s}
`
	for cases, want := range map[string]string{
		"":             "4 targets: a[drill ecmp rps] b[letflow rps] c[ecmp letflow rps]",
		", cases: [a]": "2 targets: a[drill ecmp rps] b[rps]",
		", cases: [c]": "2 targets: b[letflow] c[ecmp letflow rps]",
	} {
		x, err := Load("x.yaml", []byte(fmt.Sprintf(text, cases)), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := len(x.Targets)
		all := x.Targets
		x.Needed()
		got := fmt.Sprintf("%d targets:", len(x.Targets))
		for _, c := range x.Cases {
			got += fmt.Sprintf(" %s%v", c.Name, c.Schemes)
		}
		if got != want || len(all) != before {
			t.Errorf("%s: %s, want %s", cases, got, want)
		}
	}
}

// TestVaryErrors refuses unusable designs of an explanation.
func TestVaryErrors(t *testing.T) {
	open := func(n int) string {
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprintf("'loads[%d]': [0.5]", i))
		}
		return "open: {" + strings.Join(keys, ", ") + "}"
	}
	loads := "loads: [" + strings.TrimSuffix(strings.Repeat("0.2, ", mostChoices+1), ", ") + "]\n"
	for text, want := range map[string]string{
		"{design: twice, open: {duration: [2ms]}}":          `vary.design: "twice": want one of `,
		"{design: factorial, open: {duration: [2ms]}}":      "vary.open: duration has one value: design factorial wants two",
		"{design: morris, open: {duration: [2ms]}}":         "vary.open: duration has one value: design morris wants two",
		"{design: factorial, open: {duration: [2ms, 3ms]}}": "",
		"{}":                                    "vary: want open: with 1 to 31 keys and the values that they may have",
		"{" + open(mostChoices) + "}":           "",
		"{" + open(mostChoices+1) + "}":         "vary: want open: with 1 to 31 keys",
		"{open: {duration: []}}":                "vary.open: duration: want a list of values",
		"{open: {duration: [2ms]}, cases: [z]}": `vary.cases[0]: there is no target of a case "z"`,
		"{open: {duration: [2ms]}, seeds: [7, 8], confirm: [8]}": "vary.confirm: the seeds for confirmation include one of the screening: want other seeds",
		"{open: {duration: [2ms]}, seeds: [7, 8], confirm: [1]}": "",
		"{open: {duration: [2ms]}, confirm: [1]}":                "vary.confirm: the seeds for confirmation",
	} {
		_, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G}}\nduration: 1ms\nschemes: [drill]\nseeds: 3\n"+loads+"vary: "+text+"\n"), nil, nil)
		got := ""
		if err != nil {
			_, got, _ = strings.Cut(strings.TrimPrefix(err.Error(), "x.yaml:"), ": ")
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	v := &Vary{Open: openChoices{{Key: "a", Levels: []Level{{Text: "1"}, {Text: "2"}}}, {Key: "b", Levels: []Level{{Text: "3"}}}}}
	for want, levels := range map[string][]int{"as the file says": {-1, -1}, "a: 1": {0, -1}, "a: 2, b: 3": {1, 0}, "b: 3": {-1, 0}} {
		if got := v.Describe(levels); got != want {
			t.Errorf("%v: %s, want %s", levels, got, want)
		}
	}
	x := &Experiment{Seeds: Seeds{4, 9}}
	if got := fmt.Sprint(v.Screened(x), (&Vary{Seeds: Seeds{3}}).Screened(x), (&Vary{Seeds: Seeds{30, 20}}).Fresh(x)); got != "[4 9] [3] [31 32]" {
		t.Errorf("seeds %s", got)
	}
}

// TestReceiversWithServices: flows may go to a service, numbered behind the hosts, and to hosts. The
// message about an unknown receiver names a service.
func TestReceiversWithServices(t *testing.T) {
	const net = `
switches: {l1: {}}
hosts: {h1: , h2: , h3: , h4: }
services: {web: {address: 10.0.9.1, servers: [h2, h3]}, mail: {address: 10.0.9.2, servers: [h3, h4]}}
links: [{ends: [h1, l1], rate: 1G}, {ends: [h2, l1], rate: 1G}, {ends: [h3, l1], rate: 1G}, {ends: [h4, l1], rate: 1G}]
`
	topo, err := fabric.Load("net.yaml", []byte(net))
	if err != nil {
		t.Fatal(err)
	}
	topo.Name = "net"
	for names, want := range map[string]string{
		"web": "[4]", "mail web": "[4 5]", "web web": "[4]", "h2": "[1]", "h2 mail": "[1 5]", "": "[0 1 2 3]", "mail h4 h1": "[0 3 5]",
		"ftp": `there is no host "ftp" in net, nor a leaf or range h1..h4, nor a service such as web`, "h3..h2": `there is no host "h3..h2"`, "h1..web": `there is no host "h1..web"`,
	} {
		set, err := receiverSet(topo, strings.Fields(names))
		slices.Sort(set)
		got := fmt.Sprint(set)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", names, got, want)
		}
	}
	load := func(traffic string) error {
		_, err := Load("x.yaml", []byte("topology: net.yaml\nschemes: [ecmp]\nduration: 5ms\ntraffic: ["+traffic+"]\n"), func(string) ([]byte, error) { return []byte(net), nil }, nil)
		return err
	}
	if err := load("{pattern: all-to-all, size: 1KB, load-of: hosts, from: [h2, h3], to: [web]}"); err == nil || err.Error() != "x.yaml:4: traffic[0]: to: all senders are servers of web: want from: with another host" {
		t.Errorf("servers alone: %v", err)
	}
	if err := load("{pattern: all-to-all, size: 1KB, load-of: hosts, from: [h2, h4], to: [web]}"); err != nil {
		t.Errorf("with another host: %v", err)
	}
}

// TestQuantities: parameters are compared if both are positive numbers of one unit.
func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		ratio float64
		ok    bool
	}{
		{"3ms", "1ms", 3, true}, {"3 ms", "1500us", 2, true}, {"30 packets", "10 packets", 3, true}, {"1 packet", "4 packets", 0.25, true}, {"30", "10", 3, true}, {"1.5", "3", 0.5, true},
		{"3ms", "3 packets", 0, false}, {"0", "3", 0, false}, {"3", "0", 0, false}, {"random", "3", 0, false}, {"3", "random", 0, false}, {"1.2.3", "3", 0, false}, {"-3", "3", 0, false}, {"1s", "1", 0, false},
	} {
		if ratio, ok := apart(c.a, c.b); ok != c.ok || ratio != c.ratio {
			t.Errorf("%s and %s: %g, %v; want %g, %v", c.a, c.b, ratio, ok, c.ratio, c.ok)
		}
	}
}

// TestBusFactors: the factors of nccl-tests.
func TestBusFactors(t *testing.T) {
	for kind, want := range map[string]float64{allReduce: 1.5, reduceScatter: 0.75, allGather: 0.75, allToAll: 0.75, broadcast: 1, sendRecv: 1, "": 0} {
		if got := (&Instance{Kind: kind, Ranks: 4}).BusFactor(); got != want {
			t.Errorf("%s: %g, want %g", kind, got, want)
		}
	}
}

// TestExpectedOfJobs: the flows of jobs are messages and computations, and their mean size is over
// both. Flows of the traffic do not count.
func TestExpectedOfJobs(t *testing.T) {
	x, err := jobSetting(t, "  - {ranks: 4, phases: [{compute: 1ms}, {collective: reduce-scatter, size: 4KB}]}\ntraffic: [{size: 9MB, pattern: pairs, pairs: [h1-h9], at: [0s]}]\n")
	if err != nil {
		t.Fatal(err)
	}
	topo, err := x.Cases[0].Network(NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	flows, mean, err := x.Cases[0].ExpectedOfJobs(topo)
	// 4 computations, 3 messages of 1 KB for each rank, and a last step for each.
	if err != nil || flows != 20 || mean != 12*1000/20.0 {
		t.Errorf("%g flows of %g bytes, %v; want 20 of 600", flows, mean, err)
	}
}

// TestSprays: a sender that chooses a port for each packet sprays; schemes that choose the path of
// each packet without a hash ignore ports.
func TestSprays(t *testing.T) {
	for entropy, want := range map[string]bool{"": false, "flow": false, "oblivious": true} {
		if got := (&TransportSpec{Entropy: entropy}).Sprays(); got != want {
			t.Errorf("%q: %v", entropy, got)
		}
	}
	x, err := Load("x.yaml", []byte("topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G}}\nschemes: [ecmp, rps, drill, letflow]\nduration: 1ms\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range x.Schemes {
		if x.Schemes[i].IgnoresPorts() {
			got = append(got, x.Schemes[i].Label)
		}
	}
	if text := strings.Join(got, " "); text != "rps drill" {
		t.Errorf("%s ignore ports, want rps drill", text)
	}
}
