package lab

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/network/fabric"
)

const collectiveTest = `
name: collective
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 4, rate: 100G, host-rate: 100G, delay: 500ns, host-delay: 500ns, queue: 100}}
schemes: [%s]
traffic: [{%s}]
transport: {kind: dcqcn, rdma: {nack: selective}}
mtu: 4160
`

// otherTransport replaces the transport of collectiveTest.
func otherTransport(text, transport string) string {
	return strings.Replace(text, "kind: dcqcn, rdma: {nack: selective}", transport, 1)
}

// TestCollective runs two iterations of an all-reduce with programs and with models.
// One group of a leaf is alone on its links and takes its ideal time.
func TestCollective(t *testing.T) {
	leftToPlainRun(t)
	const traffic = "collective: all-reduce, from: [l1], size: 4MB, repeat: 2, compute: 50us"
	var before map[string]float64
	for _, engine := range []string{"p4", "native"} {
		x := load(t, fmt.Sprintf(collectiveTest, "rps", traffic)+"engine: "+engine+"\n")
		m := run(t, &Runner{}, x).Rows[0].Runs[0].Metrics
		if r := m["cct-ratio"]; r < 1 || r > 1.02 {
			t.Errorf("%s: %.4f of the ideal time: want 1 to 1.02", engine, r)
		}
		if got, want := m["bus-bandwidth"], m["algorithm-bandwidth"]*1.5; !(math.Abs(got-want) <= 1e-9) || got < 95 || got > 100 {
			t.Errorf("%s: bus bandwidth %.2f Gbit/s: want %.2f, nearly 100", engine, got, want)
		}
		if got, want := m["iteration-time"], m["cct"]+0.050; !(math.Abs(got-want) <= 0.01) {
			t.Errorf("%s: an iteration every %.3f ms: want %.3f", engine, got, want)
		}
		for name, v := range before {
			if m[name] != v {
				t.Errorf("%s: %g with models, %g with programs", name, m[name], v)
			}
		}
		before = m
	}
}

// TestDeadlock: a run ends if its flows wait for flows that never end.
func TestDeadlock(t *testing.T) {
	x := load(t, fmt.Sprintf(collectiveTest, "ecmp", "collective: all-reduce, size: 1MB")+"fail: [l1-s1, l1-s2]\nengine: native\n")
	_, err := (&Runner{}).Run(t.Context(), x)
	const want = "deadlock: nothing has arrived for 1s, at 1.00004s: flow 5 (h5 to h6) waits for flow 4 (h4 to h5); flow 6 (h6 to h7) waits for flow 5 (h5 to h6); " +
		"flow 7 (h7 to h8) waits for flow 6 (h6 to h7); flow 8 (h8 to h1) waits for flow 7 (h7 to h8); flow 9 (h1 to h2) waits for flow 8 (h8 to h1); and others"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: want %s", err, want)
	}
}

// TestMTU sends packets as large as the experiment allows, and refuses sizes that hosts
// or programs do not support.
func TestMTU(t *testing.T) {
	packets := func(mtu string) float64 {
		x := load(t, strings.Replace(fmt.Sprintf(collectiveTest, "ecmp", "collective: send-recv, size: 1MB"), "4160", mtu, 1)+"engine: native\n")
		return float64(run(t, &Runner{}, x).Rows[0].Runs[0].Hops)
	}
	if small, large := packets("1500"), packets("9000"); !(math.Abs(small/large-6) <= 0.4) {
		t.Errorf("%g packets of 1500 bytes, %g of 9000: want six times as many", small, large)
	}
	for text, want := range map[string]string{
		fmt.Sprintf(collectiveTest, "ecmp", "collective: send-recv, size: 1MB"):     "mtu 10000: want 256 to 9216 bytes",
		fmt.Sprintf(collectiveTest, "ecmp@tna", "collective: send-recv, size: 1MB"): "counts queues in packets of 1500 bytes",
	} {
		mtu := "10000"
		if strings.Contains(text, "tna") {
			mtu = "9000"
		}
		_, err := spec.Load("t.yaml", []byte(strings.Replace(text, "4160", mtu, 1)), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}

// TestEntropy balances a permutation over ECMP with a port for each packet, and
// cautions of a scheme that ignores ports.
func TestEntropy(t *testing.T) {
	const text = "name: e\ntopology: {leaf-spine: {leaves: 2, spines: 8, hosts: 8, rate: 100G, host-rate: 100G, delay: 500ns, host-delay: 500ns, queue: 200}}\n" +
		"schemes: [ecmp, rps]\ntraffic: [{collective: send-recv, order: strided, groups: 8, size: 1MB}]\n" +
		"transport: {kind: dctcp, max-dupacks: 300, min-rto: 1ms%s}\nengine: native\nseeds: [3]\n"
	hashed := run(t, &Runner{}, load(t, fmt.Sprintf(text, "")))
	sprayed := run(t, &Runner{}, load(t, fmt.Sprintf(text, ", entropy: reps, paths: 64")))
	cct := func(c *Comparison) float64 { return c.Rows[0].Runs[0].Metrics["cct"] }
	if cct(sprayed) > cct(hashed)*0.8 {
		t.Errorf("cct %.4f ms with reps, %.4f without: want a fifth less", cct(sprayed), cct(hashed))
	}
	if lines := strings.Join(sprayed.cautions(), "\n"); !strings.Contains(lines, "Source ports have no effect with rps:") {
		t.Errorf("cautions %q: want one of rps", lines)
	}
	if lines := strings.Join(hashed.cautions(), "\n"); strings.Contains(lines, "Source ports") {
		t.Errorf("cautions %q without entropy", lines)
	}
	for entropy, want := range map[string]string{
		"entropy: magic":            `entropy "magic": want flow, oblivious, reps, bitmap or mixed`,
		"entropy: reps, paths: 100": "paths 100: want a power of two from 2 to 4096",
		"paths: 4":                  "paths 4: want entropy oblivious, reps, bitmap or mixed",
	} {
		if _, err := spec.Load("t.yaml", []byte(fmt.Sprintf(text, ", "+entropy)), nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: want %s", entropy, err, want)
		}
	}
}

// TestHtsim compares a permutation under oblivious spraying with uet-htsim, which ran
// the same flows with DCTCP and an acknowledgment for each packet.
func TestHtsim(t *testing.T) {
	leftToPlainRun(t)
	text, err := os.ReadFile("../../testdata/oracle/ai/perm32-dctcp.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var cct, mean float64 // us
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); f[0] == "ls32_100g.perm32_4MB.spray.dctcp.sack1" {
			cct, _ = strconv.ParseFloat(f[3], 64)
			mean, _ = strconv.ParseFloat(f[4], 64)
		}
	}
	x, err := spec.Load("t.yaml", []byte(`
name: permutation
topology: {leaf-spine: {leaves: 4, spines: 8, hosts: 8, host-rate: 100G, rate: 100G, host-delay: 500ns, delay: 500ns, queue: 285}}
schemes: [ecmp]
traffic: [{file: ../../testdata/oracle/ai/flows/perm32_4MB.txt}]
transport: {kind: dctcp, mss: 1436, min-rto: 1ms, max-dupacks: 300, entropy: oblivious}
switches: {pfc: false, ecn: 20}
duration: 1ms
warmup: 0%
drain: 500ms
seeds: 1
engine: native
`), os.ReadFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := run(t, &Runner{}, x).Rows[0].Runs[0].Metrics
	if got := m["cct"] * 1e3; !(math.Abs(got/cct-1) <= 0.05) {
		t.Errorf("collective completion time %.1f us: want %.1f within 5 %%", got, cct)
	}
	if got := m["fct-mean"] * 1e3; !(math.Abs(got/mean-1) <= 0.03) {
		t.Errorf("mean completion time %.1f us: want %.1f within 3 %%", got, mean)
	}
}

// htsimSums are the sums of some runs of uet-htsim, in µs and packets.
type htsimSums struct{ runs, cct, fct, trims float64 }

// htsimRuns reads a table of runs of uet-htsim by workload, sender and spines.
func htsimRuns(t *testing.T, file string) map[string]*htsimSums {
	t.Helper()
	text, err := os.ReadFile("../../testdata/oracle/ai/" + file)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]*htsimSums{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(f[0], "#") || f[0] == "workload" {
			continue
		}
		name := strings.Join(f[:3], "-")
		if there[name] == nil {
			there[name] = new(htsimSums)
		}
		for i, to := range map[int]*float64{4: &there[name].cct, 5: &there[name].fct, 8: &there[name].trims} {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			*to += v
		}
		there[name].runs++
	}
	return there
}

// htsimList returns a recorded list of flows. Each flow starts with the last acknowledgment
// of another flow.
func htsimList(t *testing.T, name string) []byte {
	t.Helper()
	var columns [2][]string
	for i, ext := range []string{".txt", ".after"} {
		text, err := os.ReadFile("../../testdata/oracle/ai/flows/" + name + ext)
		if err != nil {
			t.Fatal(err)
		}
		columns[i] = strings.Fields(string(text))
	}
	list := "id," + columns[0][0] + ",after-ack\n"
	for i, flow := range columns[0][1:] {
		list += fmt.Sprintf("%d,%s,%s\n", i, flow, strings.TrimPrefix(columns[1][i], "-1"))
	}
	return []byte(list)
}

// htsimPermutation is the experiment with the network and the permutation of uet-htsim's
// runs, keys of its own and cases.
func htsimPermutation(t *testing.T, own, cases string) *spec.Experiment {
	t.Helper()
	x, err := spec.Load("t.yaml", []byte(`
name: permutation
topology: {leaf-spine: {leaves: 4, spines: 8, hosts: 8, host-rate: 100G, rate: 100G, host-delay: 500ns, delay: 500ns, queue: 17}}
traffic: [{file: ../../testdata/oracle/ai/flows/perm32_4MB.txt}]
mtu: 4146
switches: {marking: dequeue, slow-links: scaled}
duration: 1ms
warmup: 0%
drain: 500ms
engine: native
`+own+"cases:\n"+cases), os.ReadFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestHtsimUEC compares a permutation under NSCC with five runs of uet-htsim: with all
// spines equal, and with the first one at a quarter of its rate. Collective completion
// times agree within 10 %, with a slow spine 15 %, mean completion times within 5 %, and
// trimmed packets within 20 % where there are many, except for adaptive routing whose grades
// ignore the rates of ports.
func TestHtsimUEC(t *testing.T) {
	leftToPlainRun(t)
	there := htsimRuns(t, "nscc.tsv")
	cases := ""
	for _, sender := range []string{"oblivious", "reps", "bitmap", "mixed", "ar"} {
		for _, spine := range []string{"equal", "slow"} {
			scheme, entropy := "ecmp", sender
			if sender == "ar" { // adaptive routing in the switches
				scheme, entropy = "ar", "flow"
				if spine == "slow" {
					scheme = "ar, packet-drain-least"
				}
			}
			cases += fmt.Sprintf("  - {name: perm32-%s-%s, schemes: [%s], transport: {kind: uec, mss: 4096, entropy: %s, ports: random}", sender, spine, scheme, entropy)
			if spine == "slow" {
				cases += ", links: [{link: s1, rate: 25G}]"
			}
			cases += "}\n"
		}
	}
	x := htsimPermutation(t, "schemes: [ecmp, ar, packet-drain-least]\nseeds: 3\n", cases)
	for _, row := range run(t, &Runner{}, x).Rows {
		want := there[row.Case.Name]
		if want == nil || want.runs != 5 {
			t.Fatalf("%s: no five runs of uet-htsim", row.Case.Name)
		}
		var here htsimSums
		for _, r := range row.Runs {
			here.runs++
			here.cct += r.Metrics["cct"] * 1e3
			here.fct += r.Metrics["fct-mean"] * 1e3
			here.trims += r.Metrics["trimmed"] / (1 - r.Metrics["retransmitted"]/100) / 100 * 32 * 977
		}
		ratio := func(a, b float64) float64 { return a / here.runs / (b / want.runs) }
		band := 0.10
		if strings.HasSuffix(row.Case.Name, "slow") {
			band = 0.15
		}
		if r := ratio(here.cct, want.cct); !(math.Abs(r-1) <= band) {
			t.Errorf("%s: collective completion time %.3f of uet-htsim's: want within %.0f %%", row.Case.Name, r, 100*band)
		}
		if r := ratio(here.fct, want.fct); !(math.Abs(r-1) <= 0.05) {
			t.Errorf("%s: mean completion time %.3f of uet-htsim's: want within 5 %%", row.Case.Name, r)
		}
		band = 0.2
		if row.Case.Name == "perm32-ar-slow" && row.Scheme.Label == "ar" { // its grades ignore that the port is slow
			band = 0.3
		}
		if r := ratio(here.trims, want.trims); want.trims/want.runs > 100 && !(math.Abs(r-1) <= band) {
			t.Errorf("%s: %.3f of uet-htsim's trimmed packets: want within %.0f %%", row.Case.Name, r, 100*band)
		}
		t.Logf("%s, %s: cct %.3f, fct %.3f, trims %.3f of uet-htsim's", row.Case.Name, row.Scheme.Label, ratio(here.cct, want.cct), ratio(here.fct, want.fct), ratio(here.trims, want.trims))
	}
}

// TestHtsimRCCC compares permutations and incasts under credit of receivers with five runs
// of uet-htsim: completion times of collectives agree within 10 %, mean completion times
// within 5 %.
func TestHtsimRCCC(t *testing.T) {
	leftToPlainRun(t)
	there := htsimRuns(t, "rccc.tsv")
	cases := ""
	for _, name := range []string{"perm32-oblivious-equal", "perm32-oblivious-slow", "perm32-reps-equal", "perm32-reps-slow", "incast16-flow-equal", "incast16-oblivious-equal", "incast16-reps-equal"} {
		part := strings.Split(name, "-")
		cases += fmt.Sprintf("  - {name: %s, transport: {kind: uec, mss: 4096, entropy: %s, ports: random, uec: {control: rccc}}", name, part[1])
		if part[0] == "incast16" {
			cases += ", traffic: [{file: ../../testdata/oracle/ai/flows/incast32_16to1_1000KB.txt}]"
		}
		if part[2] == "slow" {
			cases += ", links: [{link: s1, rate: 25G}]"
		}
		cases += "}\n"
	}
	x := htsimPermutation(t, "schemes: [ecmp]\nseeds: 2\nmetrics: [cct, fct-mean, fct-max]\n", cases)
	for _, row := range run(t, &Runner{}, x).Rows {
		want := there[row.Case.Name]
		if want == nil || want.runs != 5 {
			t.Fatalf("%s: no five runs of uet-htsim", row.Case.Name)
		}
		for _, r := range row.Runs {
			cct, fct := r.Metrics["fct-max"]*1e3/(want.cct/want.runs), r.Metrics["fct-mean"]*1e3/(want.fct/want.runs)
			if !(math.Abs(cct-1) <= 0.1) || !(math.Abs(fct-1) <= 0.05) || r.Metrics["unfinished"] > 0 {
				t.Errorf("%s: cct %.3f, fct %.3f of uet-htsim's, %g %% unfinished: want within 10 and 5 %%", row.Case.Name, cct, fct, r.Metrics["unfinished"])
			}
		}
	}
}

// TestHtsimFatTree compares a permutation under credit in a fat tree of 128 hosts with the means of
// 20 runs of uet-htsim. Links carry 97 to 98 % of their rate, so a receiver that grants 1 % more
// doubles the trimmed packets.
func TestHtsimFatTree(t *testing.T) {
	leftToPlainRun(t)
	there := htsimRuns(t, "means.tsv")
	const hosts = 128
	flows := "src,dst,bytes,start_s\n"
	for i := range hosts {
		flows += fmt.Sprintf("%d,%d,4000000,0\n", i, (5*i+67)%hosts)
	}
	list := filepath.Join(t.TempDir(), "permutation.txt")
	if err := os.WriteFile(list, []byte(flows), 0o666); err != nil {
		t.Fatal(err)
	}
	x, err := spec.Load("t.yaml", []byte(`
name: permutation
topology: {fat-tree: {k: 8, host-rate: 100G, rate: 100G, host-delay: 1us, delay: 1us, queue: 43}}
traffic: [{file: `+list+`}]
mtu: 4146
switches: {marking: dequeue}
duration: 1ms
warmup: 0%
drain: 500ms
engine: native
schemes: [ecmp]
seeds: 2
metrics: [fct-acked-mean, trimmed]
cases:
  - {name: perm128rccc-reps-equal, transport: {kind: uec, mss: 4096, entropy: reps, ports: random, uec: {control: rccc}}}
`), os.ReadFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range run(t, &Runner{}, x).Rows {
		want := there[row.Case.Name]
		if want == nil {
			t.Fatalf("%s: no runs of uet-htsim", row.Case.Name)
		}
		trims, fct := 0.0, 0.0
		for _, r := range row.Runs {
			trims += r.Metrics["trimmed"] / (1 - r.Metrics["retransmitted"]/100) / 100 * hosts * 977 / float64(len(row.Runs))
			fct += r.Metrics["fct-acked-mean"] * 1e3 / float64(len(row.Runs))
		}
		t.Logf("%s: fct %.1f of %.1f us, %.0f of %.0f trimmed packets", row.Case.Name, fct, want.fct, trims, want.trims)
		if !(math.Abs(fct/want.fct-1) <= 0.02) || !(math.Abs(trims/want.trims-1) <= 0.3) {
			t.Errorf("%s: fct %.1f us, %.0f trimmed packets; uet-htsim %.1f us, %.0f: want within 2 and 30 %%", row.Case.Name, fct, trims, want.fct, want.trims)
		}
	}
}

// TestHtsimNetworks compares 96 flows with the means of 20 runs of uet-htsim, where packets are
// short, links fast, or the fabric oversubscribed: mean completion times agree within 2 %, and
// trimmed packets within 20 %.
func TestHtsimNetworks(t *testing.T) {
	leftToPlainRun(t)
	there := htsimRuns(t, "means.tsv")
	flows := "src,dst,bytes,start_s\n"
	for i := range 96 {
		src := i % 32
		dst := (5*src + 11 + i/32*9) % 32
		if dst == src {
			dst = (dst + 1) % 32
		}
		flows += fmt.Sprintf("%d,%d,400000,%de-6\n", src, dst, i*7%20)
	}
	network := func(spines int, rate string, queue, mtu int, transport string) string {
		return fmt.Sprintf(`topology: {leaf-spine: {leaves: 4, spines: %d, hosts: 8, host-rate: %s, rate: %[2]s, host-delay: 500ns, delay: 500ns, queue: %d}}
mtu: %d
transport: {kind: uec, mss: %d, ports: random, %s}
`, spines, rate, queue, mtu-14, mtu-64, transport)
	}
	for _, c := range []struct {
		name, network string
		packets       float64 // of a flow
	}{
		{"mix1500nscc-ar-equal", network(8, "100G", 38, 1500, "entropy: flow"), 279},
		{"mix1500rccc-reps-equal", network(8, "100G", 38, 1500, "entropy: reps, uec: {control: rccc}"), 279},
		{"mix800nscc-reps-equal", network(8, "800G", 101, 4160, "entropy: reps"), 98},
		{"mix800rccc-ar-equal", network(8, "800G", 101, 4160, "entropy: flow, uec: {control: rccc}"), 98},
		{"mixoverrccc-reps-equal", network(4, "100G", 17, 4160, "entropy: reps, uec: {control: rccc, oversubscription: 2}"), 98},
		{"mixoverrccc-ar-equal", network(4, "100G", 17, 4160, "entropy: flow, uec: {control: rccc, oversubscription: 2}"), 98},
	} {
		scheme := "ecmp"
		if strings.Contains(c.name, "-ar-") {
			scheme = "ar"
		}
		x, err := spec.Load("t.yaml", []byte("name: mix\n"+c.network+"schemes: ["+scheme+`]
traffic: [{file: mix.txt}]
switches: {marking: dequeue}
duration: 1ms
warmup: 0%
drain: 500ms
engine: native
seeds: 2
metrics: [fct-acked-mean, trimmed]
`), func(string) ([]byte, error) { return []byte(flows), nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := there[c.name]
		if want == nil {
			t.Fatalf("%s: no runs of uet-htsim", c.name)
		}
		trims, fct := 0.0, 0.0
		for _, r := range run(t, &Runner{}, x).Rows[0].Runs {
			trims += r.Metrics["trimmed"] / (1 - r.Metrics["retransmitted"]/100) / 100 * 96 * c.packets / 2
			fct += r.Metrics["fct-acked-mean"] * 1e3 / 2
		}
		t.Logf("%s: fct %.3f, trims %.3f of uet-htsim's", c.name, fct/want.fct, trims/want.trims)
		if !(math.Abs(fct/want.fct-1) <= 0.02) || !(math.Abs(trims/want.trims-1) <= 0.2) {
			t.Errorf("%s: fct %.1f us, %.0f trimmed packets; uet-htsim %.1f us, %.0f: want within 2 and 20 %%", c.name, fct, trims, want.fct, want.trims)
		}
	}
}

// TestHtsimRing compares rings of eight groups under NSCC with five runs of uet-htsim. One packet
// in 400 to 800 is trimmed, so that a queue with room for one packet more shows.
func TestHtsimRing(t *testing.T) {
	leftToPlainRun(t)
	there := htsimRuns(t, "nscc.tsv")
	ring := filepath.Join(t.TempDir(), "ring.txt")
	if err := os.WriteFile(ring, htsimList(t, "ring32x8_32MB"), 0o666); err != nil {
		t.Fatal(err)
	}
	cases := ""
	for _, sender := range []string{"oblivious", "reps", "bitmap", "mixed"} {
		cases += fmt.Sprintf("  - {name: ring8x4-%s-equal, traffic: [{file: %s}], transport: {kind: uec, mss: 4096, entropy: %[1]s, ports: random}}\n", sender, ring)
	}
	x := htsimPermutation(t, "schemes: [ecmp]\nseeds: 1\n", cases)
	for _, row := range run(t, &Runner{}, x).Rows {
		want, m := there[row.Case.Name], row.Runs[0].Metrics
		trims := m["trimmed"] / (1 - m["retransmitted"]/100) / 100 * 375168
		cct, fct := m["cct"]*1e3/(want.cct/want.runs), m["fct-mean"]*1e3/(want.fct/want.runs)
		trims /= want.trims / want.runs
		if !(math.Abs(cct-1) <= 0.1) || !(math.Abs(fct-1) <= 0.05) || !(math.Abs(trims-1) <= 0.2) {
			t.Errorf("%s: cct %.3f, fct %.3f, trims %.3f of uet-htsim's: want within 10, 5 and 20 %%", row.Case.Name, cct, fct, trims)
		}
	}
}

// TestTrimUnfair sends two flows at the rate of the line through a link of a quarter. Both lose
// the same share of packets, so that both end at about the same time, as in uet-htsim (2.79 ms on
// average, the last after 2.90 ms). If a full queue trims only arriving packets, one flow ends
// after 1.5 ms.
func TestTrimUnfair(t *testing.T) {
	x, err := spec.Load("t.yaml", []byte(`
name: pair
topology: {leaf-spine: {leaves: 2, spines: 1, hosts: 2, host-rate: 100G, rate: 25G, host-delay: 500ns, delay: 500ns, queue: 17}}
schemes: [ecmp]
traffic: [{file: pair.txt}]
transport: {kind: uec, mss: 4096, uec: {control: rccc}}
mtu: 4146
switches: {marking: dequeue}
duration: 1ms
warmup: 0%
drain: 500ms
seeds: 3
engine: native
`), func(string) ([]byte, error) {
		return []byte("src,dst,bytes,start_s\n0,2,4000000,0\n1,3,4000000,0\n"), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range run(t, &Runner{}, x).Rows[0].Runs {
		if mean, last := r.Metrics["fct-mean"], r.Metrics["fct-max"]; mean < 0.95*last || !(math.Abs(last/2.9-1) <= 0.05) {
			t.Errorf("the flows take %.2f ms on average, the last %.2f: want about 2.9 each", mean, last)
		}
	}
}

// TestCreditLost loses grants and requests for credit: every flow continues.
func TestCreditLost(t *testing.T) {
	x := load(t, otherTransport(fmt.Sprintf(collectiveTest, "ecmp", "collective: all-to-all, size: 2MB"), "kind: uec, uec: {control: rccc}")+`engine: native
switches: {pfc: false}
faults:
  - {at: 0s, link: l1-s1, bit-errors: 1e-5}
  - {at: 20us, until: 120us, link: l2-s2, down: true}
`)
	r := run(t, &Runner{}, x).Rows[0].Runs[0]
	if r.Metrics["unfinished"] != 0 || r.Lost["bit error"] == 0 || r.Lost["link down"] == 0 {
		t.Errorf("%v lost, %g %% unfinished: want losses for both reasons, and no flow unfinished", r.Lost, r.Metrics["unfinished"])
	}
}

// TestRandomPorts runs a collective under ECMP with ports from the seed: programs and models
// agree, and seeds differ. With consecutive ports all seeds are the same.
func TestRandomPorts(t *testing.T) {
	for _, c := range []struct {
		transport string
		differ    bool
	}{
		{"kind: dctcp", true},
		{"kind: dctcp, entropy: reps, paths: 16", true},
		{"kind: uec, uec: {control: rccc}", true},
		{"kind: dctcp, ports: consecutive", false},
	} {
		x := load(t, otherTransport(fmt.Sprintf(collectiveTest, "ecmp, {scheme: ecmp, label: model, engine: native}", "collective: all-to-all, size: 1MB"), c.transport)+"seeds: 3\nengine: p4\nswitches: {pfc: false}\n")
		rows := run(t, &Runner{}, x).Rows
		if len(rows) != 2 {
			t.Fatal(len(rows), "rows")
		}
		times := map[float64]bool{}
		for i, r := range rows[0].Runs {
			times[r.Metrics["cct"]] = true
			if model := rows[1].Runs[i].Metrics; !maps.Equal(r.Metrics, model) {
				t.Errorf("%s, seed %d: the program has %v, its model %v", c.transport, i+1, r.Metrics, model)
			}
		}
		if (len(times) > 1) != c.differ {
			t.Errorf("%s: %d different times of three seeds", c.transport, len(times))
		}
	}
}

// TestTrim: with +trim the program cuts packets, its model agrees for every flow, and the
// time is about as long as with trimming ports. Queues that hold less than trimat drop.
func TestTrim(t *testing.T) {
	leftToPlainRun(t)
	text := otherTransport(fmt.Sprintf(collectiveTest, "ecmp, ecmp+trim, {scheme: ecmp+trim, label: model, engine: native}, "+
		"qall-pkt+trim, {scheme: qall-pkt+trim, label: qall, engine: native}, {scheme: ecmp+trim, label: late, set: {trimat: 100 packets}}",
		"collective: all-to-all, size: 2MB"), "kind: uec")
	x := load(t, text+"engine: p4\nswitches: {pfc: false, queue: 10}\nlinks: [{link: s1, rate: 25G}]\n")
	rows := run(t, &Runner{}, x).Rows
	m := map[string]map[string]float64{}
	for _, r := range rows {
		m[r.Scheme.Label] = r.Runs[0].Metrics
	}
	for _, pair := range [][2]string{{"ecmp+trim", "model"}, {"qall-pkt+trim", "qall"}} {
		if program, model := m[pair[0]], m[pair[1]]; !maps.Equal(program, model) || program["trimmed"] == 0 || program["dropped"] > 0 {
			t.Errorf("the program has %v, its model %v: want the same, with trimmed packets and none dropped", program, model)
		}
	}
	for _, name := range []string{"cct", "fct-mean", "trimmed"} {
		if got, want := m["ecmp+trim"][name], m["ecmp"][name]; !(math.Abs(got/want-1) <= 0.2) {
			t.Errorf("%s: %g, with trimming ports %g", name, got, want)
		}
	}
	if late := m["late"]; late["trimmed"] > 0 || late["dropped"] == 0 {
		t.Errorf("trimat above the queue's capacity: %v: want dropped packets and none trimmed", late)
	}
}

// TestFlapping: a collective continues although one link fails three times and another
// one corrupts bits.
func TestFlapping(t *testing.T) {
	leftToPlainRun(t)
	x := load(t, fmt.Sprintf(collectiveTest, "ecmp", "collective: all-reduce, size: 8MB, order: strided, groups: 2")+`engine: native
switches: {pfc: false, ecn: none}
faults:
  - {at: 100us, until: 150us, every: 200us, times: 3, link: l1-s1, down: true}
  - {at: 0s, link: l2-s2, bit-errors: 1e-7}
`)
	turns, err := x.Cases[0].Turns(network(t, x))
	if err != nil || len(turns) != 6 || turns[4].At != spec.Time(500*time.Microsecond) || turns[5].At != spec.Time(550*time.Microsecond) {
		t.Fatalf("%v, %v: want the third failure at 500 to 550 µs", turns, err)
	}
	r := run(t, &Runner{}, x).Rows[0].Runs[0]
	if r.Metrics["unfinished"] != 0 || r.Lost["link down"] == 0 || r.Lost["bit error"] == 0 {
		t.Errorf("%v lost, %g %% unfinished: want losses for both reasons, and no flow unfinished", r.Lost, r.Metrics["unfinished"])
	}
}

// network is the topology of the first case.
func network(t *testing.T, x *spec.Experiment) *fabric.Topology {
	t.Helper()
	topo, err := x.Cases[0].Network(spec.NoFiles)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}
