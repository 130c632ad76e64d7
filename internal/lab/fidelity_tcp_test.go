package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
)

// tcpSetting is the setting of the recorded runs of TCP and DCTCP, with one packet
// queue per port; testdata/oracle/fidelity/tcp.tsv describes it.
const tcpSetting = `
name: fidelity
engine: ENGINE
lines: whole
topology: {leaf-spine: {%s}}
schemes: [%s]
seeds: %d
duration: 2s
warmup: 0
drain: 60s
interval: 1s
switches: {SWITCHES}
transport: {kind: KIND, min-rto: 250ms, CHOICES}
traffic: [{pattern: list, file: flows.txt}]
`

// For htsim these are the choices of the preset. For ns-3 they describe its TCP with
// SACK off, because with SACK ns-3.31 retransmits each lost packet two to three times.
var tcpLike = map[string]struct{ marking, choices string }{
	"htsim": {"dequeue", "waiting: card, recovery: newreno, dctcp-alpha: 0, dctcp-cut: window"},
	"ns-3":  {"enqueue", "waiting: card, recovery: newreno"},
}

// tcpFabrics are the fabrics by the beginning of a case's name, the longest first.
var tcpFabrics = []struct{ name, fabric string }{
	{"qdaps-one", "leaves: 4, spines: 1, hosts: 16, rate: 4G, host-rate: 1G, delay: 12500ns, host-delay: 12500ns, queue: 256"},
	{"qdaps", "leaves: 4, spines: 4, hosts: 16, rate: 1G, host-rate: 1G, delay: 12500ns, host-delay: 12500ns, queue: 256"},
	{"qall-one", "leaves: 2, spines: 1, hosts: 16, rate: 720M, host-rate: 100M, delay: 10us, host-delay: 10us, queue: 64"},
	{"qall", "leaves: 2, spines: 4, hosts: 16, rate: 180M, host-rate: 100M, delay: 10us, host-delay: 10us, queue: 64"},
	{"incast-6-q100", "leaves: 4, spines: 1, hosts: 8, rate: 4G, host-rate: 1G, delay: 10us, host-delay: 10us, queue: 100"},
	{"", "leaves: 4, spines: 1, hosts: 8, rate: 4G, host-rate: 1G, delay: 10us, host-delay: 10us, queue: 256"},
}

func tcpFabric(name string) string {
	i := slices.IndexFunc(tcpFabrics, func(f struct{ name, fabric string }) bool { return strings.HasPrefix(name, f.name) })
	return tcpFabrics[i].fabric
}

// tcpText is the setting of a source's runs of a case, which marks from the number of
// packets that its name ends in, or from 65; engine p4 has CRC32 for a hash, which
// with one path is the same.
func tcpText(source, kind, name, engine string) string {
	like, switches := tcpLike[source], "hash: ns3"
	if engine == spec.EngineP4 {
		switches = "hash: crc32"
	}
	if kind == "dctcp" {
		_, from, ok := strings.Cut(name, "-k")
		if !ok {
			from = "65"
		}
		switches += ", ecn: " + from + ", marking: " + like.marking
	}
	return strings.NewReplacer("ENGINE", engine, "SWITCHES", switches, "KIND", kind, "CHOICES", like.choices).Replace(tcpSetting)
}

// tcpLists are the recorded lists of flows of a case.
func tcpLists(rows []map[string]string, kind, name string) (lists []string) {
	for _, r := range rows {
		if r["transport"] != kind || r["case"] != name {
			continue
		}
		if i, _ := strconv.Atoi(r["list"]); i == len(lists) {
			lists = append(lists, "")
		}
		lists[len(lists)-1] += fmt.Sprintf("%s %s %s %s\n", r["src"], r["dst"], r["bytes"], r["start_s"])
	}
	return lists
}

// tcpRecorded returns the recorded answers of a simulator to each list of a case.
func tcpRecorded(t *testing.T, rows []map[string]string, source, kind, name string) (list []answers) {
	t.Helper()
	for _, r := range rows {
		if r["source"] == source && r["transport"] == kind && r["case"] == name {
			list = append(list, answers{averaged: floatIn(t, r, "mean_us"), tail: floatIn(t, r, "p99_us"), again: int64(floatIn(t, r, "again"))})
		}
	}
	return list
}

// tcpHeld lists the compared cases by the simulator that they are compared with.
var tcpHeld = []struct {
	source, kind, name string
	again              float64 // band in percent
}{
	{"htsim", "tcp", "incast-4", 15}, {"ns-3", "tcp", "incast-4", 15},
	{"htsim", "tcp", "incast-8", 15}, {"ns-3", "tcp", "incast-8", 15},
	{"htsim", "tcp", "pair", 30}, {"ns-3", "tcp", "pair", 15}, // after a timeout htsim sends less again
	{"htsim", "tcp", "qall-one", 15}, {"htsim", "tcp", "qall", 15},
	{"htsim", "dctcp", "pair", 500}, // of 65,000 packets one, here five
	{"htsim", "dctcp", "four", 15}, {"ns-3", "dctcp", "four", 15},
	{"htsim", "dctcp", "incast-8", 15},
	{"htsim", "tcp", "incast-6-q100", 15}, {"ns-3", "tcp", "incast-6-q100", 15},
	{"htsim", "tcp", "incast-12", 15}, {"ns-3", "tcp", "incast-12", 15},
	{"htsim", "tcp", "qall-one-three", 15},
	{"htsim", "dctcp", "pair-k20", 15}, {"ns-3", "dctcp", "pair-k20", 15},
	{"htsim", "dctcp", "incast-8-k20", 15}, {"ns-3", "dctcp", "incast-8-k20", 15},
	{"htsim", "dctcp", "four-k120", 15}, {"ns-3", "dctcp", "four-k120", 100}, // of 16,000 packets none, there one
}

// TestFidelityTCP compares TCP and DCTCP with htsim and ns-3. In some cases with
// drop-tail queues, the order of packets within a microsecond decides which flow
// loses, and one additional timeout of 250 ms among a hundred flows exceeds the band.
// Such cases are in docs/fidelity.md, but not here.
func TestFidelityTCP(t *testing.T) {
	leftToPlainRun(t)
	flows, want := recorded(t, "tcp.txt.gz"), recorded(t, "tcp.tsv")
	for _, c := range tcpHeld {
		t.Run(c.source+"/"+c.kind+"/"+c.name, func(t *testing.T) {
			var got []answers
			for _, list := range tcpLists(flows, c.kind, c.name) {
				got = append(got, labAnswersWith(t, tcpText(c.source, c.kind, c.name, spec.EngineNative), tcpFabric(c.name), "ecmp", 1, list)...)
			}
			ref := tcpRecorded(t, want, c.source, c.kind, c.name)
			if len(got) != len(ref) || len(ref) == 0 {
				t.Fatalf("%d lists of flows, %d of answers", len(got), len(ref))
			}
			within(t, "mean FCT", over(got, (*answers).mean), over(ref, (*answers).mean), 5)
			within(t, "p99 FCT", over(got, (*answers).p99), over(ref, (*answers).p99), 15)
			again := func(a *answers) float64 { return float64(a.again) }
			if n := over(ref, again); n > 0 {
				within(t, "sent again", over(got, again), n, c.again)
			} else if m := over(got, again); m != 0 {
				t.Errorf("%g packets were sent again, in %s none", m, c.source)
			}
		})
	}
}

// TestFidelityTCPPrograms: on a single path the generated program has the same times to
// the nanosecond.
func TestFidelityTCPPrograms(t *testing.T) {
	leftToPlainRun(t)
	flows := recorded(t, "tcp.txt.gz")
	for _, kind := range []string{"tcp", "dctcp"} {
		list := tcpLists(flows, kind, "incast-8")[0]
		native := labAnswersWith(t, tcpText("htsim", kind, "incast-8", spec.EngineNative), tcpFabric("incast-8"), "ecmp", 1, list)
		program := labAnswersWith(t, tcpText("htsim", kind, "incast-8", spec.EngineP4), tcpFabric("incast-8"), "ecmp", 1, list)
		if !slices.Equal(native[0].fct, program[0].fct) {
			t.Errorf("%s: by models %v us, by programs %v", kind, native[0].fct, program[0].fct)
		}
	}
}
