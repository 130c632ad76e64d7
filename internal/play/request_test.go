package play

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
)

// TestComposed runs the experiment that the form writes, and checks that its flags name the same
// experiment.
func TestComposed(t *testing.T) {
	f := experimentForm{Leaves: 2, Spines: 2, Hosts: 2, Rate: "400M", HostRate: "1G", Schemes: []string{"ecmp", "rps"}, Workload: "websearch", Pattern: "halves", Load: 0.5, Transport: "tcp", Seeds: 2, Duration: "15ms",
		Failure: &failureForm{Link: "l1-s1", At: "4ms", Until: "9ms"}}
	c := ask[composed](t, "compose", f)
	r := ask[RunResult](t, "run", RunRequest{YAML: c.YAML})
	if len(r.Table) != 3 || len(r.Loads) != 2 || len(r.Network.Links) != 4 || len(r.Figures) == 0 {
		t.Errorf("%d rows, %d loads, %d links, %d figures", len(r.Table), len(r.Loads), len(r.Network.Links), len(r.Figures))
	}
	for _, l := range r.Loads {
		if len(l.Times) == 0 || len(l.Links) == 0 {
			t.Errorf("%s has no samples", l.Row)
		}
		for name, s := range l.Links {
			if len(s.Use) != len(l.Times) {
				t.Errorf("%s: %s has %d samples of %d", l.Row, name, len(s.Use), len(l.Times))
			}
		}
	}
	f.Failure, f.Collective = nil, &collectiveForm{Kind: "all-reduce", Size: "100KB", Groups: 1, Order: "strided"}
	if r := ask[RunResult](t, "run", RunRequest{YAML: ask[composed](t, "compose", f).YAML}); len(r.Table) != 3 {
		t.Errorf("collective: %v", r.Table)
	}
	f.Collective, f.Topology = nil, "leaf-spine"
	want := "p4lb lab --scheme ecmp --vs rps --topology leaf-spine --workload websearch --pattern halves --load 0.5 --transport tcp --seeds 2 --duration 15ms"
	if got := ask[composed](t, "compose", f).Flags; got != want {
		t.Errorf("flags %s, want %s", got, want)
	}
}

// TestBad: bad requests are answered by one clear error, and quickly.
func TestBad(t *testing.T) {
	huge := `topology: {leaf-spine: {leaves: 1000, spines: 16, hosts: 1000, rate: 1G, host-rate: 1G}}
schemes: [ecmp]
traffic: [{workload: websearch}]
duration: 10ms
`
	long := strings.Replace(strings.Replace(huge, "leaves: 1000", "leaves: 4", 1), "hosts: 1000", "hosts: 16", 1)
	for _, c := range []struct {
		name    string
		request any
		want    string
		line    int
	}{
		{"run", RunRequest{YAML: huge}, "", 0},
		{"run", RunRequest{YAML: strings.Replace(long, "10ms", "10000s", 1)}, "too large", 0},
		{"run", RunRequest{YAML: "schemes: [nothing]\ntraffic: [{workload: websearch}]\n"}, "nothing", 1},
		{"run", RunRequest{YAML: "schemes: [./mine]\ntraffic: [{workload: websearch}]\n"}, "mine", 1},
		{"run", RunRequest{YAML: strings.Repeat("#", maxYAML+1)}, "bytes", 0},
		{"generate", SchemeRequest{Name: "drill", Set: map[string]string{"d": "0"}}, "d=0", 0},
		{"check", Source{Name: "x.p4", Text: strings.Repeat(" ", maxSource+1)}, "bytes", 0},
		{"packets", packetsRequest{Source{Name: "x.p4", Text: ask[Listing](t, "list", struct{}{}).Examples[0].Text}, "packet x 00"}, "port", 1},
		{"capture", captureRequest{Pcap: []byte("not a capture, but long enough")}, "capture", 0},
		{"nothing", struct{}{}, "unknown request", 0},
		{"run", map[string]string{"file": "x"}, "bad request", 0},
	} {
		if e := refused(t, c.name, c.request); !strings.Contains(e.Message, c.want) || c.line != 0 && e.Line != c.line {
			t.Errorf("%s: %q in line %d, want %q in line %d", c.name, e.Message, e.Line, c.want, c.line)
		} else {
			t.Logf("%s: %s", c.name, e.Message)
		}
	}
	if answer := Call(context.Background(), "list", []byte("{"), nil); !json.Valid(answer) || !bytes.Contains(answer, []byte("bad request")) {
		t.Errorf("answer %s", answer)
	}
}

// TestLoop follows a packet that recirculates forever: the walk ends, and it is marked
// as cut.
func TestLoop(t *testing.T) {
	const program = `#include <core.p4>
#include <v1model.p4>
struct H {}
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { apply { s.egress_spec = 1; } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { recirculate_preserving_field_list(0); } }
control C(inout H h, inout M m) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`
	w := ask[walk](t, "packets", packetsRequest{Source{Name: "loop.p4", Text: program}, "packet 1 0011223344556677"})
	if len(w.Messages) > 0 || len(w.Steps) == 0 || len(w.Steps) > maxSteps {
		t.Errorf("%d steps, cut %v, messages %v", len(w.Steps), w.Cut, w.Messages)
	}
}

// TestJobsExample runs the example with training jobs.
func TestJobsExample(t *testing.T) {
	r := ask[RunResult](t, "run", RunRequest{YAML: jobsExperiment})
	if len(r.Table) != 4 || len(r.About) != 5 || !strings.Contains(r.About[0], "only of job dense") {
		t.Errorf("table %v, about %q", r.Table, r.About)
	}
}

// TestCollectiveFigures runs a collective. Its charts over time are as wide as the page,
// so that their letters have the size of the others.
func TestCollectiveFigures(t *testing.T) {
	r := ask[RunResult](t, "run", RunRequest{YAML: `name: ring
topology: {leaf-spine: {leaves: 2, spines: 2, hosts: 2, rate: 10G, host-rate: 10G}}
schemes: [ecmp]
engine: native
traffic: [{collective: all-reduce, size: 100KB}]
transport: dctcp
seeds: 1
`})
	wide := map[string]bool{}
	for _, f := range r.Figures {
		wide[f.Name] = f.Wide
	}
	for name, want := range map[string]bool{"steps-ecmp": true, "links-ecmp": true, "tail": false, "ideal": false} {
		if got, ok := wide[name]; !ok || got != want {
			t.Errorf("%s: wide %v (drawn: %v), want %v", name, got, ok, want)
		}
	}
}
