package lab

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/sim"
)

// tiny is an experiment that runs within a moment.
const tiny = `
name: tiny
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [qall-poly3, ecmp, drill]
traffic: [{workload: webserver, pattern: halves}]
loads: [0.6]
seeds: 2
duration: 10ms
metrics: [fct-mean, fct-p99, reordered, queue-mean, sharing]
`

func load(t testing.TB, text string) *spec.Experiment {
	t.Helper()
	x, err := spec.Load("t.yaml", []byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// leftToPlainRun skips a single-threaded test in short mode, which is used with the
// race detector.
func leftToPlainRun(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one goroutine does the work: the race detector has nothing to see")
	}
}

func run(t testing.TB, r *Runner, x *spec.Experiment) *Comparison {
	t.Helper()
	c, err := r.Run(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tree returns the files below a folder with their contents.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		files[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sameTrees(t *testing.T, a, b map[string]string, but string) {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Errorf("%d files and %d", len(a), len(b))
	}
	for name, text := range a {
		if filepath.Base(name) != but && b[name] != text {
			t.Errorf("%s differs", name)
		}
	}
}

// TestRepeatable: the same seeds give the same files, on any number of cores.
func TestRepeatable(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for dir, cores := range map[string]int{one: 1, two: 4} {
		c := run(t, &Runner{Dir: dir, Cores: cores}, load(t, tiny))
		if _, err := c.Keep(dir, Origin{}); err != nil {
			t.Fatal(err)
		}
	}
	files := tree(t, one)
	sameTrees(t, files, tree(t, two), "")
	for _, name := range []string{
		"manifest.json", "report.html", "table.csv", "plots/cdf.svg", "plots/cdf.pdf",
		"runs/ecmp/load-0.6/seed-1/flows.csv", "runs/ecmp/load-0.6/seed-2/links.csv", "runs/drill/load-0.6/seed-2/result.json",
	} {
		if files[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if strings.Contains(files["report.html"], one) {
		t.Error("the report says where it was made")
	}
}

// TestEnginesAgree: programs and models give the same flows and links, and but
// for its engine the same result.
func TestEnginesAgree(t *testing.T) {
	leftToPlainRun(t)
	p4, native := t.TempDir(), t.TempDir()
	a := run(t, &Runner{Dir: p4}, load(t, tiny))
	b := run(t, &Runner{Dir: native}, load(t, tiny+"engine: native\n"))
	sameTrees(t, tree(t, filepath.Join(p4, "runs")), tree(t, filepath.Join(native, "runs")), resultFile)
	for i := range a.Results {
		for name, v := range a.Results[i].Metrics {
			if w := b.Results[i].Metrics[name]; v != w {
				t.Errorf("%s: %s is %g with programs and %g with models", a.Results[i].Label, name, v, w)
			}
		}
	}
}

// TestEnginesAgreeIPv6: they also agree with IPv6, on software switches and on Tofino.
func TestEnginesAgreeIPv6(t *testing.T) {
	leftToPlainRun(t)
	const text = `
topology: {leaf-spine: {leaves: 2, spines: 2, parallel: 2, hosts: 4, rate: 600M, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 40}}
schemes: [ecmp, letflow, presto, drill, conga, hula, clove, flowbender, hermes, dhlb, pdlb, qdaps, qall-poly3, drill+rlb, letflow+rlb-star, presto@tna, conga@tna, flowbender@tna, letflow+rlb@tna]
traffic: [{workload: websearch, load-of: hosts, cut: 100KB}]
transport: dctcp
loads: [0.6]
duration: 3ms
switches: {ecn: 10}
ipv6: true
`
	p4, native := t.TempDir(), t.TempDir()
	run(t, &Runner{Dir: p4}, load(t, text))
	run(t, &Runner{Dir: native}, load(t, text+"engine: native\n"))
	sameTrees(t, tree(t, filepath.Join(p4, "runs")), tree(t, filepath.Join(native, "runs")), resultFile)
}

// TestShortReports: with recirc-cut, reports are the ten bytes of QALL's Fig. 6, in
// programs and models, and decisions do not change.
func TestShortReports(t *testing.T) {
	const row = "[{scheme: qall-pkt, label: whole}, {scheme: qall-pkt, label: cut, state-path: recirc-cut}]"
	text := strings.Replace(tiny, "[qall-poly3, ecmp, drill]", row, 1)
	a, b := run(t, &Runner{}, load(t, text)), run(t, &Runner{}, load(t, text+"engine: native\n"))
	for _, c := range []*Comparison{a, b} {
		whole, short := c.Row("", "whole", 0.6), c.Row("", "cut", 0.6)
		for _, metric := range []string{"fct-mean", "recirculated", "decision-delay"} {
			if v, w := whole.Estimate(metric).Mean, short.Estimate(metric).Mean; v != w {
				t.Errorf("%s is %g with short copies and %g with whole ones", metric, w, v)
			}
		}
		if v, w := whole.Estimate("copies").Mean, short.Estimate("copies").Mean; !(w > 0 && w < v/8) {
			t.Errorf("copies are %g %% cut and %g %% whole", w, v)
		}
	}
	if v, w := a.Row("", "cut", 0.6).Estimate("copies").Mean, b.Row("", "cut", 0.6).Estimate("copies").Mean; v != w {
		t.Errorf("copies are %g %% with programs and %g %% with models", v, w)
	}
	if _, err := (&Runner{}).Jobs(load(t, strings.Replace(text, "label: cut,", "label: cut, arch: tna,", 1))); err == nil || !strings.Contains(err.Error(), "always cut their copies") {
		t.Errorf("recirc-cut on Tofino: %v", err)
	}
}

// TestEnginesAgreeUnderPressure: models equal programs for schemes whose controller
// reads and writes registers, and for RLB, which recirculates packets.
func TestEnginesAgreeUnderPressure(t *testing.T) {
	leftToPlainRun(t)
	const text = `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, buffer: 1MiB}}
state-path: shared
schemes: [pdlb, hermes, {scheme: drill+rlb, set: {predict: threshold, rc: 200, qpfc: 30KiB, qth: 5KiB, hold: 1ms, tpath: 50us}}]
traffic: [{pattern: incast, degree: 4, size: 500KB, rate: 800}, {workload: webserver, load-of: fabric}]
transport: dcqcn
switches: {pfc: true, pfc-threshold: 30KB, ecn-min: 50KB, ecn-max: 100KB, ecn-p: 0.2}
loads: [0.5]
duration: 5ms
`
	p4, native := t.TempDir(), t.TempDir()
	run(t, &Runner{Dir: p4}, load(t, text))
	c := run(t, &Runner{Dir: native}, load(t, text+"engine: native\n"))
	sameTrees(t, tree(t, filepath.Join(p4, "runs")), tree(t, filepath.Join(native, "runs")), resultFile)
	for label, metric := range map[string]string{"pdlb": "granularity", "hermes": "pauses", "drill+rlb": "recirculated"} {
		if v := c.Row("", label, 0.5).Estimate(metric).Mean; !(v > 0) {
			t.Errorf("%s: %s is %g: there was nothing to agree on", label, metric, v)
		}
	}
	// Recirculated packets cause pauses like others and are not lost.
	if v := c.Row("", "drill+rlb", 0.5).Estimate("dropped").Mean; v > 0 {
		t.Errorf("drill+rlb: %g %% of the packets found no room, with PFC", v)
	}
}

// TestResume: finished runs are not repeated; missing runs and runs of another
// experiment are.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	run(t, &Runner{Dir: dir}, load(t, tiny))
	before := tree(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "runs/ecmp/load-0.6/seed-2")); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "runs/ecmp/load-0.6", tempPrefix+"123")
	if err := os.Mkdir(left, 0o777); err != nil {
		t.Fatal(err)
	}
	var last Progress
	run(t, &Runner{Dir: dir, Resume: true, Progress: func(p Progress) { last = p }}, load(t, tiny))
	if last.Done != 6 || last.Taken != 5 {
		t.Errorf("got %+v, want 5 of 6 runs taken", last)
	}
	sameTrees(t, before, tree(t, dir), "")
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder of a run that was killed is still there")
	}
	run(t, &Runner{Dir: dir, Resume: true, Progress: func(p Progress) { last = p }}, load(t, strings.Replace(tiny, "10ms", "9ms", 1)))
	if last.Taken != 0 {
		t.Errorf("%d runs of another duration count as done", last.Taken)
	}
}

// TestInterrupted: finished runs remain; other runs leave no files.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &Runner{Dir: dir, Cores: 1, Progress: func(p Progress) {
		if p.Done == 2 {
			cancel()
		}
	}}
	c, err := r.Run(ctx, load(t, tiny))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if c.Results[1] == nil || c.Results[2] != nil {
		t.Error("want two results")
	}
	for name := range tree(t, filepath.Join(dir, "runs")) {
		if !strings.HasPrefix(name, "qall-poly3/load-0.6/seed-") {
			t.Errorf("%s is there", name)
		}
	}
}

// TestSameProgramRefused: a comparison of a program with itself shows nothing.
func TestSameProgramRefused(t *testing.T) {
	x := load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[{scheme: drill, label: a}, {scheme: drill, label: b, set: {d: 2}}]", 1))
	if _, err := (&Runner{}).Run(t.Context(), x); !errors.Is(err, ErrSame) {
		t.Errorf("got %v", err)
	}
	x = load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[{scheme: drill, label: a}, {scheme: drill, label: b, engine: native}]", 1))
	if _, err := (&Runner{}).Run(t.Context(), x); err != nil {
		t.Errorf("programs and models may be compared: %v", err)
	}
}

// TestUnseededRefused: rows that saw other flows cannot be compared.
func TestUnseededRefused(t *testing.T) {
	c := run(t, &Runner{}, load(t, tiny))
	a, b := c.Rows[0], c.Rows[1]
	if _, err := a.against(b, "fct-mean"); err != nil {
		t.Fatal(err)
	}
	b.Runs[1].Seed = 9
	if _, err := a.against(b, "fct-mean"); !errors.Is(err, errUnseeded) {
		t.Errorf("other seeds: got %v", err)
	}
	a.Runs[0].Seed, b.Runs[0].Seed, b.Runs[1].Seed = 0, 0, 2
	if _, err := a.against(b, "fct-mean"); !errors.Is(err, errUnseeded) {
		t.Errorf("no seed: got %v", err)
	}
}

// TestFolderOfOthers: p4lb does not clear a folder with other files.
func TestFolderOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "runs/mine"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Runner{Dir: dir}).Run(t.Context(), load(t, tiny)); err == nil || !strings.Contains(err.Error(), "want another folder") {
		t.Errorf("got %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	err := fileError("writing", "results/flows.csv", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if !errors.Is(err, ErrDiskFull) || err.Error() != "writing results/flows.csv: the disk is full" {
		t.Errorf("got %v", err)
	}
	if err := fileError("writing", "a", os.ErrPermission); errors.Is(err, ErrDiskFull) {
		t.Errorf("got %v", err)
	}
}

// TestDiskFullInLinks: the first write that fails ends the run.
func TestDiskFullInLinks(t *testing.T) {
	jobs, err := (&Runner{}).Jobs(load(t, tiny))
	if err != nil {
		t.Fatal(err)
	}
	_, err = jobs[0].run(t.Context(), nil, full{}, nil)
	if err := diskError(err); !errors.Is(err, ErrDiskFull) {
		t.Errorf("got %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "links.csv", Err: syscall.ENOSPC}
}

// TestFaults: schemes avoid a failed link once the controller knows it, and a switch that
// loses packets causes retransmissions.
func TestFaults(t *testing.T) {
	for _, engine := range []string{spec.EngineP4, spec.EngineNative} {
		x := load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[rps]", 1)+"engine: "+engine+`
cases:
  - {name: whole}
  - {name: cut, faults: [{at: 2ms, until: 5ms, link: l1-s1, down: true}]}
  - {name: lossy, faults: [{at: 0s, switch: s1, drop: 0.05}]}
  - {name: hole, faults: [{at: 0s, until: 3ms, switch: s2, black-hole: 0.5}]}
`)
		c := run(t, &Runner{}, x)
		lost := func(name string) map[string]int64 { return c.Row(name, "rps", 0.6).Runs[0].Lost }
		if got := lost("whole"); got[sim.LinkDown.String()]+got[sim.Silent.String()]+got[sim.BlackHole.String()] > 0 {
			t.Errorf("%s: without faults %v", engine, got)
		}
		for name, why := range map[string]sim.Reason{"cut": sim.LinkDown, "lossy": sim.Silent, "hole": sim.BlackHole} {
			if got := lost(name); got[why.String()] == 0 {
				t.Errorf("%s, %s: lost %v, want some by %v", engine, name, got, why)
			}
			if v := c.Row(name, "rps", 0.6).Estimate("unfinished").Mean; v > 0 {
				t.Errorf("%s, %s: %g %% of the flows have not ended", engine, name, v)
			}
		}
		// 3 ms of a 1 Gbps link are 250 packets. At most the packets in flight are
		// lost in the 100 us before the notification.
		if got := lost("cut")[sim.LinkDown.String()]; got > 60 {
			t.Errorf("%s: %d packets were lost to a link that the controller knows to be down", engine, got)
		}
	}
}

// TestFaultsInFatTree: a way around a failed link begins with more ports than any way
// did before, at a core switch as at one above the hosts, and programs are made for it.
func TestFaultsInFatTree(t *testing.T) {
	leftToPlainRun(t)
	for _, engine := range []string{spec.EngineP4, spec.EngineNative} {
		for _, link := range []string{"a1-c1", "t1-a1"} {
			x := load(t, `
name: tree
topology: {fat-tree: {k: 4, host-rate: 100M, rate: 100M, delay: 1us, host-delay: 1us}}
faults: [{at: 2ms, until: 10ms, link: `+link+`, down: true}]
schemes: [ecmp, letflow]
duration: 5ms
drain: 500ms
traffic: [{pattern: all-to-all, workload: websearch, cut: 30KB, rate: 10000}]
engine: `+engine)
			for _, r := range run(t, &Runner{}, x).Rows {
				if v := r.Estimate("unfinished").Mean; v > 0 {
					t.Errorf("%s, %s, %s: %g %% of the flows have not ended", engine, link, r.Scheme.Label, v)
				}
			}
		}
	}
}

// TestSlowerLink: flows take longer while links are slow, and not afterwards.
func TestSlowerLink(t *testing.T) {
	x := load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[ecmp]", 1)+`
engine: native
cases:
  - {name: whole}
  - {name: slow, faults: [{at: 0s, link: l1-s1, rate: 50Mbps}]}
  - {name: switch, faults: [{at: 0s, switch: s1, rate: 50Mbps}]}
  - {name: over, faults: [{at: 100us, until: 200us, link: l1-s1, rate: 50Mbps}]}
`)
	c := run(t, &Runner{}, x)
	mean := func(name string) float64 { return c.Row(name, "ecmp", 0.6).Estimate("fct-mean").Mean }
	if a, b := mean("whole"), mean("slow"); !(b > 2*a) {
		t.Errorf("%g ms with a slow link, %g without", b, a)
	}
	if a, b := mean("slow"), mean("switch"); !(b >= a) {
		t.Errorf("%g ms with all links of a switch slow, %g with one", b, a)
	}
	if a, b := mean("whole"), mean("over"); !(math.Abs(b-a) <= 0.2*a) {
		t.Errorf("%g ms after a link was slow, %g without", b, a)
	}
}

// TestMetrics checks metrics with runs that certainly have, or do not have, the
// measured property.
func TestMetrics(t *testing.T) {
	leftToPlainRun(t)
	c := run(t, &Runner{}, load(t, strings.Replace(tiny, "[qall-poly3, ecmp, drill]", "[rps, ecmp, qall-pkt, hula]", 1)))
	at := func(label, metric string) float64 { return c.Row("", label, 0.6).Estimate(metric).Mean }
	for _, m := range []string{"out-of-order", "reordered", "dupacks"} {
		if v := at("rps", m); !(v > 0) {
			t.Errorf("rps: %s is %g", m, v)
		}
		if v := at("ecmp", m); m != "dupacks" && m != "out-of-order" && v != 0 {
			t.Errorf("ecmp: %s is %g", m, v)
		}
	}
	if v := at("ecmp", "sharing"); !(v > at("rps", "sharing")) {
		t.Errorf("ecmp shares as well as rps: %g", v)
	}
	if v := at("qall-pkt", "decision-delay"); !(v > 0.1 && v < 5) {
		t.Errorf("qall-pkt: what it decides on is %g ms old, with reports every ms", v)
	}
	if v := at("ecmp", "copies"); v != 0 {
		t.Errorf("ecmp copies %g %%", v)
	}
	if v := at("hula", "probe-load"); !(v > 0 && v < 5) {
		t.Errorf("hula's probes are %g %% of the links", v)
	}
	for _, label := range []string{"rps", "ecmp"} {
		if v := at(label, "slowdown-mean"); !(v >= 1) {
			t.Errorf("%s: a slowdown of %g", label, v)
		}
		if v := at(label, "utilisation"); !(v > 30 && v < 100) {
			t.Errorf("%s: a utilisation of %g %% at a load of 60 %%", label, v)
		}
		if a, b := at(label, "fct-p50"), at(label, "fct-p99"); !(a <= b) {
			t.Errorf("%s: a median of %g above the 99th percentile of %g", label, a, b)
		}
	}
}

// TestUDP: UDP flows end with their last packet, whether it arrives or is lost. Next
// to other transports UDP is background traffic unless the experiment counts it.
func TestUDP(t *testing.T) {
	leftToPlainRun(t)
	const flows = 2 // of UDP
	pairs := func(more string) string {
		return "[{pattern: pairs, pairs: [h1-h3, h2-h3], size: 1MB, at: [1ms]" + more + "}]"
	}
	for name, test := range map[string]struct {
		traffic, transport string
		counted            int
	}{
		"all of it":           {pairs(""), "udp", flows},
		"said to count":       {pairs(", transport: udp, count: true"), "tcp", flows},
		"beside other flows":  {pairs(", transport: udp}, {pattern: pairs, pairs: [h1-h4], size: 1MB, at: [1ms]"), "tcp", 1},
		"said not to be much": {pairs(", count: false}, {pattern: pairs, pairs: [h1-h4], size: 1MB, at: [1ms]"), "udp", 1},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(tiny, "[{workload: webserver, pattern: halves}]", test.traffic+"\ntransport: "+test.transport, 1)
			text = strings.Replace(text, "metrics: [fct-mean, fct-p99, reordered, queue-mean, sharing]\n", "", 1)
			c := run(t, &Runner{}, load(t, text))
			for _, r := range c.Results {
				if r.Flows != test.counted || r.Metrics["unfinished"] != 0 {
					t.Errorf("%s: %d flows count, want %d; %g %% have not ended", r.Label, r.Flows, test.counted, r.Metrics["unfinished"])
				}
				if v := r.Metrics["fct-mean"]; test.transport == "udp" && test.counted == flows && !(v > 8 && v < 10) {
					t.Errorf("%s: 1 MB at 1 Gbps took %g ms", r.Label, v)
				}
			}
			if v := c.Row("", "ecmp", 0.6).Estimate("dropped").Mean; !(v > 5) {
				t.Errorf("two senders at the rate of the one receiver: the switches drop %g %%", v)
			}
		})
	}
}

// TestQueueShare: queue-mean is the share of the queue's capacity, so the same packets fill half
// as much of a queue of twice the size.
func TestQueueShare(t *testing.T) {
	share := func(queue string) float64 {
		c := run(t, &Runner{}, load(t, `
topology: {leaf-spine: {leaves: 2, spines: 1, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: `+queue+`}}
schemes: [ecmp]
traffic: [{pattern: pairs, pairs: [h1-h3, h2-h4], size: 100KB, at: [0s]}]
transport: udp
seeds: 1
duration: 2ms
warmup: 0
interval: 20us
`))
		return c.Results[0].Metrics["queue-mean"]
	}
	small, large := share("200"), share("400")
	if !(large > 1) || !(math.Abs(small/large-2) <= 1e-9) {
		t.Errorf("%g %% of 200 packets and %g %% of 400, want half", small, large)
	}
}

// TestLinkMetrics: the metrics of links count the uplinks of leaves that send, without failed
// links. The flow takes 0.82 of 2 ms at the rate of a link.
func TestLinkMetrics(t *testing.T) {
	for _, c := range []struct {
		scheme, fail           string
		all, idlest, pathsUsed float64
	}{
		{"ecmp", "", 20.6, 0, 50},
		{"rps", "", 20.6, 18.2, 100}, // by chance not half
		{"ecmp", "l1-s2", 41.1, 41.1, math.NaN()},
		{"rps", "l2-s2", 20.6, 0, 50}, // l1's link to s2 is up and leads nowhere
	} {
		r := run(t, &Runner{}, load(t, `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 200}}
schemes: [`+c.scheme+`]
fail: [`+c.fail+`]
traffic: [{pattern: pairs, pairs: [h1-h3], size: 100KB, at: [0s]}]
transport: udp
seeds: 1
duration: 2ms
warmup: 0
`)).Results[0]
		for name, want := range map[string]float64{"utilisation": c.all, "utilisation-min": c.idlest, "paths-used": c.pathsUsed} {
			if v, ok := r.Metrics[name]; ok == math.IsNaN(want) || ok && !(math.Abs(v-want) <= 1) {
				t.Errorf("%s, failed %q: %s is %v, want %v", c.scheme, c.fail, name, v, want)
			}
		}
	}
}

// TestReportOfOne: the report of a single flow has figures.
func TestReportOfOne(t *testing.T) {
	one := strings.Replace(tiny, "[{workload: webserver, pattern: halves}]", "[{pattern: pairs, pairs: [h1-h3], size: 20KB, at: [1ms]}]", 1)
	dir := t.TempDir()
	c := run(t, &Runner{Dir: dir}, load(t, one))
	if _, err := c.Keep(dir, Origin{}); err != nil {
		t.Fatal(err)
	}
}

// TestSlowdownOfOne: a flow alone in the network takes its ideal time.
func TestSlowdownOfOne(t *testing.T) {
	leftToPlainRun(t)
	c := run(t, &Runner{}, load(t, `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [ecmp]
traffic: [{pattern: pairs, pairs: [h1-h3], size: 10MB, at: [0s]}]
transport: {kind: tcp, max-window: 60KB}
warmup: 0
duration: 10ms
`))
	if v := c.Rows[0].Estimate("slowdown-mean").Mean; v < 1 || v > 1.01 {
		t.Errorf("the slowdown is %g, want 1", v)
	}
}

func TestRequests(t *testing.T) {
	c := run(t, &Runner{}, load(t, `
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 1G, host-rate: 1G, delay: 2us, host-delay: 1us, queue: 64}}
schemes: [ecmp]
traffic: [{pattern: incast, degree: 4, size: 100KB, rate: 500}]
warmup: 0
duration: 10ms
`))
	mean, flows := c.Rows[0].Estimate("request-mean").Mean, c.Rows[0].Estimate("fct-mean").Mean
	if !(mean > flows && mean > 0.8) {
		t.Errorf("requests of 100 KB take %g ms, their flows %g", mean, flows)
	}
}

// TestManifest: the manifest contains everything to repeat the runs, but no time and
// place.
func TestManifest(t *testing.T) {
	leftToPlainRun(t)
	dir := t.TempDir()
	run(t, &Runner{Dir: dir}, load(t, tiny))
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	var m record
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Rows) != 3 || len(m.Runs) != 6 || len(m.Rows[0].Programs) != 2 || m.Rows[0].Parameters["tb"] != "155us" || m.Workloads["webserver"] == "" {
		t.Errorf("got %+v", m)
	}
	if strings.Contains(string(text), dir) || strings.Contains(string(text), time.Now().Format("2006-01-02")) {
		t.Error("it says where and when")
	}
}

func TestParquet(t *testing.T) {
	dir := t.TempDir()
	run(t, &Runner{Dir: dir, Parquet: true}, load(t, tiny))
	for _, name := range []string{"flows.parquet", "links.parquet"} {
		text, err := os.ReadFile(filepath.Join(dir, "runs/ecmp/load-0.6/seed-1", name))
		if err != nil || !strings.HasPrefix(string(text), "PAR1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLostRun: a run that fails or panics does not affect other runs.
func TestLostRun(t *testing.T) {
	x := load(t, tiny)
	w := &work{r: &Runner{Dir: t.TempDir()}}
	var err error
	if w.jobs, err = w.r.Jobs(x); err != nil {
		t.Fatal(err)
	}
	w.results = make([]*Result, len(w.jobs))
	w.jobs[1].setup = nil // its use is a panic
	err = w.all(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "qall-poly3/load-0.6/seed-2: the run failed: ") {
		t.Errorf("got %v", err)
	}
	for i, r := range w.results {
		if (r == nil) != (i == 1) {
			t.Errorf("run %d: %v", i, r)
		}
	}
	if _, err := os.Stat(filepath.Join(w.r.Dir, "runs/qall-poly3/load-0.6/seed-2")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the run that failed has left a folder")
	}
}
