package spec

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// TestWidths finds the highest port and the largest group of a network in all its phases.
func TestWidths(t *testing.T) {
	if n := HighestPort(&fabric.Topology{}); n != 0 {
		t.Errorf("a network without switches has port %d", n)
	}
	topo, err := fabric.LeafSpine{Leaves: 2, Spines: 3, Hosts: 4}.Make()
	if err != nil {
		t.Fatal(err)
	}
	if n := HighestPort(topo); n != 7 { // of a leaf: four hosts and three spines
		t.Errorf("the highest port is %d, want 7", n)
	}
	links, err := topo.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	failed := topo.Fail(links...)
	if links, err = topo.FindLinks("l2-s2"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		phases []*fabric.Topology
		want   int
	}{
		{nil, 0}, {[]*fabric.Topology{topo}, 3}, {[]*fabric.Topology{failed}, 2}, {[]*fabric.Topology{failed, topo}, 3}, {[]*fabric.Topology{topo, failed}, 3},
		{[]*fabric.Topology{failed.Fail(links...)}, 0}, // one path left, so that no switch has a group
	} {
		if n := WidestGroup(c.phases, fabric.ByHops); n != c.want {
			t.Errorf("%d phases: the largest group has %d ports, want %d", len(c.phases), n, c.want)
		}
	}
}

// TestWorkloadHeader reads the lists of layers in the header of a SimAI workload.
func TestWorkloadHeader(t *testing.T) {
	for header, want := range map[string]string{
		"checkpoints: 0":   "[] [] 0 1 0",
		"checkpoints: 1 5": "[5] [] 0 1 0",
		"checkpoints: 2 5 7 checkpoint_initiates: 1 6":                     "[5 7] [6] 0 1 0",
		"checkpoint_initiates: 1 6 ep: 4 all_gpus: 16":                     "[] [6] 0 4 16",
		"model_parallel_NPU_group: 8.0 pp: 2 expert_parallel_npu_group: 2": "[] [] 8 2 0",
		"all_gpus: 2147483647":                                             "[] [] 0 1 2147483647",
		"all_gpus: 2147483648":                                             "all_gpus: 2147483648: want a whole number",
		"checkpoints: 1":                                                   "checkpoints 1: want as many layers after it",
		"checkpoints: 3 5 7":                                               "checkpoints 3: want as many layers after it",
		"checkpoints: 1 -1":                                                `checkpoints: layer "-1": want a number from 0`,
		"checkpoints: 1 x":                                                 `checkpoints: layer "x": want a number from 0`,
		"ep: 0":                                                            "ep 0: want 1 or more",
		"ep":                                                               "ep: the number is missing",
	} {
		w := &workloadFile{ep: 1}
		err := w.header(append([]string{"HYBRID_TRANSFORMER"}, strings.Fields(header)...))
		got := fmt.Sprint(w.checkpoint, w.initiate, w.tp, w.ep, w.gpus)
		if err != nil {
			got = strings.Replace(err.Error(), "all_gpus ", "all_gpus: ", 1)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", header, got, want)
		}
	}
}

// TestFirstLine: the kind of a file is decided by the first 4,096 bytes of its first line.
func TestFirstLine(t *testing.T) {
	for _, c := range []struct {
		text string
		want int // length of the last field
	}{
		{"MICRO abc\nx y", 3}, {"MICRO abc", 3}, {"", 0}, {"\nabc", 0},
		{strings.Repeat("x", 4096), 4096}, {strings.Repeat("x", 4097), 4096}, {strings.Repeat("x", 4095) + "\nabc", 4095},
	} {
		f := firstLine([]byte(c.text))
		n := 0
		if len(f) > 0 {
			n = len(f[len(f)-1])
		}
		if n != c.want {
			t.Errorf("%.20q: the last field of the first line has %d bytes, want %d", c.text, n, c.want)
		}
	}
}

// TestOperationsOfFiles: the keys of a traffic apply to the operations of its file that support
// them, and each rank sends at least a byte.
func TestOperationsOfFiles(t *testing.T) {
	tr := &Traffic{Algorithm: "ring", Window: 3, Chunks: 4, Connections: "per-message"}
	for _, c := range []struct {
		op     string
		change func(*Traffic)
		bytes  int64
		ranks  int
		want   string
	}{
		{"all-reduce", nil, 1000, 4, "ring 1000 0 0"},
		{"all-reduce", func(tr *Traffic) { tr.Algorithm = "halving-doubling" }, 1000, 4, "halving-doubling 1000 0 0"},
		{"all-reduce", func(tr *Traffic) { tr.Algorithm = "halving-doubling" }, 1000, 6, "algorithm halving-doubling of 6 ranks: want a power of two"},
		{"all-gather", nil, 3, 4, "ring 4 0 0"},
		{"all-to-all", nil, 1000, 4, "direct 1000 3 0"},
		{"broadcast", nil, 1000, 4, ""},
		{"broadcast", nil, 2, 4, ""},
	} {
		own := *tr
		if c.change != nil {
			c.change(&own)
		}
		one, err := own.as(c.op, c.bytes, c.ranks)
		if err != nil {
			if err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.op, err, c.want)
			}
			continue
		}
		if one.Collective != c.op || one.Connections != "per-message" {
			t.Errorf("%s: collective %s with %s connections", c.op, one.Collective, one.Connections)
		}
		got := fmt.Sprint(one.Algorithm, " ", int64(one.Size), " ", one.Window, " ", one.Chunks)
		if c.op == "broadcast" {
			want := fmt.Sprint(algorithms["broadcast"][0], " ", max(c.bytes, 4), " ", one.Window, " ", one.Chunks)
			if got != want || one.pipelines() && int64(one.Chunks) != min(4, c.bytes) {
				t.Errorf("broadcast of %d bytes: %s, want %s", c.bytes, got, want)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s of %d bytes and %d ranks: %s, want %s", c.op, c.bytes, c.ranks, got, c.want)
		}
	}
	for n, ok := range map[int]bool{0: true, maxMessages: true, maxMessages + 1: false, -1: false} {
		if err := budget(n); (err == nil) != ok || err != nil && err.Error() != "more than 4194304 messages" {
			t.Errorf("%d messages: %v", n, err)
		}
	}
}

// TestMeanSizes: the mean of the sizes follows from the smallest and the largest.
func TestMeanSizes(t *testing.T) {
	topo := small(t)
	for _, c := range []struct {
		tr   Traffic
		want float64
	}{
		{Traffic{Size: 1 << 20, MinSize: 1, Tail: true}, 1.2 / 0.2 * (1 - 1.0/16) / (1 - 1.0/(1<<24))}, {Traffic{Size: 1}, 1}, {Traffic{Size: 2000}, 2000}, {Traffic{Size: 3, MinSize: 1}, 2}, {Traffic{Size: 2000, MinSize: 1}, 1000.5},
	} {
		d, err := traffic(t, topo, c.tr)[0].Maker(topo)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Mean(); !(math.Abs(got-c.want) <= 1e-9) {
			t.Errorf("%+v: mean %g, want %g", c.tr, got, c.want)
		}
	}
}

// TestNamesOfCollectives: a type of Chakra without a name is written as its number.
func TestNamesOfCollectives(t *testing.T) {
	for n, want := range map[int16]string{-1: "-1", 0: "ALL_REDUCE", int16(len(etCollectives)) - 1: etCollectives[len(etCollectives)-1], int16(len(etCollectives)): fmt.Sprint(len(etCollectives))} {
		if got := etName(n); got != want {
			t.Errorf("%d is called %s, want %s", n, got, want)
		}
	}
}

// TestSmallestMessages: a message of a Chakra trace may have a single byte, and its flow has it.
func TestSmallestMessages(t *testing.T) {
	for size, want := range map[int]string{1: "", 0: "comm_size: want a number above 0"} {
		type attr = map[string]any
		tr := Traffic{Pattern: List, File: "t.*.et"}
		flows, err := tr.readList(hosts(t, 8), from(map[string]string{
			"t.0.et": string(newTrace().node(1, etSend, nil, attr{"comm_dst": 1, "comm_size": size, "comm_tag": 3}).b),
			"t.1.et": string(newTrace().node(1, etRecv, nil, attr{"comm_src": 0, "comm_size": size, "comm_tag": 3}).b),
		}))
		if want != "" {
			if err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%d bytes: %v, want %s", size, err, want)
			}
			continue
		}
		if messages, sum, _ := counted(flows); err != nil || messages != 1 || sum != 1 {
			t.Errorf("%d bytes: %d messages of %d bytes, %v", size, messages, sum, err)
		}
	}
}

// ownScheme is a scheme outside of the catalogue without a model.
type ownScheme struct {
	scheme.Scheme
	archs []string
}

func (ownScheme) Name() string      { return "mine" }
func (s ownScheme) Archs() []string { return s.archs }
func (ownScheme) Native() error     { return errors.New("no model") }

// TestOwnRows: a row of a scheme outside of the catalogue has the scheme's name and its first
// architecture, unless the experiment gives others or another row has the name.
func TestOwnRows(t *testing.T) {
	for _, c := range []struct {
		row   Scheme
		archs []string
		rows  []string
		want  string
	}{
		{Scheme{Scheme: "./p", Label: "./p"}, []string{"v1model"}, nil, "mine "},
		{Scheme{Scheme: "./p", Label: "./p"}, []string{"tna", "t2na"}, nil, "mine tna"},
		{Scheme{Scheme: "./p", Label: "./p@t2na", Arch: "t2na"}, []string{"tna", "t2na"}, nil, "mine t2na"},
		{Scheme{Scheme: "./p", Label: "given"}, []string{"tna"}, nil, "given tna"},
		{Scheme{Scheme: "./p", Label: "./p"}, []string{"v1model"}, []string{"mine"}, "./p "},
		{Scheme{Scheme: "./p", Label: "./p"}, []string{"v1model"}, []string{"other"}, "mine "},
	} {
		s := c.row
		s.made = ownScheme{archs: c.archs}
		var rows []Scheme
		for _, label := range c.rows {
			rows = append(rows, Scheme{Label: label})
		}
		if s.settleOwn(rows); s.Label+" "+s.Arch != c.want {
			t.Errorf("%+v: %s %s, want %s", c.row, s.Label, s.Arch, c.want)
		}
	}
}
