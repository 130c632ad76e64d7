package spec

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

const aiOracle = "../../../testdata/oracle/ai/"

// hosts is a network of some hosts under two leaves.
func hosts(t testing.TB, n int) *fabric.Topology {
	t.Helper()
	topo, err := fabric.LeafSpine{Leaves: 2, Spines: 2, Hosts: n / 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// from reads files of a map.
func from(files map[string]string) Reader {
	return func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}

// counted returns the messages of flows, their bytes, and how many wait for a message.
func counted(flows []Flow) (messages, sum, dependencies int64) {
	for _, f := range flows {
		if f.Compute {
			continue
		}
		messages++
		sum += f.Bytes
		if f.Waits != nil && slices.ContainsFunc(f.Waits.After, func(i int32) bool { return !flows[i].Compute }) {
			dependencies++
		}
	}
	return messages, sum, dependencies
}

// rows calls do for each row of a table.
func rows(t *testing.T, file string, do func(f []string)) {
	t.Helper()
	text, err := os.ReadFile(aiOracle + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			do(strings.Split(strings.TrimSpace(line), "\t"))
		}
	}
}

// TestSimAICollectives compares messages, bytes and dependencies of single collectives
// with SimAI's flow model, and the groups with its groups.
func TestSimAICollectives(t *testing.T) {
	n := 0
	rows(t, "simai.tsv", func(f []string) {
		n++
		suffix := map[string]string{"ep": "_EP", "dp-ep": "_DP_EP"}[f[3]]
		phase := fmt.Sprintf("%s%s %s", f[4], suffix, f[5])
		layer := "x -1 1 NONE 0 1 NONE 0 1 " + phase + " 1"
		if f[3] == "tp" {
			layer = "x -1 1 " + phase + " 1 NONE 0 1 NONE 0 1"
		}
		text := fmt.Sprintf("HYBRID_TRANSFORMER model_parallel_NPU_group: %s ep: %s pp: 1 all_gpus: %s\n1\n%s\n", f[1], f[2], f[0], layer)
		tr := &Traffic{Pattern: List, File: "x.txt"}
		flows, err := tr.readList(hosts(t, 32), from(map[string]string{"x.txt": text}))
		if err != nil {
			t.Fatalf("%v: %v", f, err)
		}
		messages, sum, dependencies := counted(flows)
		if got := fmt.Sprint(messages, sum, dependencies); got != strings.Join(f[6:9], " ") {
			t.Errorf("%v: messages, bytes and dependencies %s", f[:6], got)
		}
		w := &workloadFile{policy: transformerPolicy, tp: whole(t, f[1]), ep: whole(t, f[2]), ready: make([]int32, whole(t, f[0]))}
		var groups strings.Builder
		for _, g := range w.groups(f[3])[:2] {
			for _, r := range g {
				fmt.Fprintf(&groups, "%d,", r)
			}
			groups.WriteString(";")
		}
		if groups.String() != f[9] {
			t.Errorf("%v: groups %s", f, groups.String())
		}
	})
	if n < 40 {
		t.Errorf("%d rows", n)
	}
}

func whole(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSimAIWorkloads reads workloads of AICB 23eec3c whose messages were counted by SimAI's
// flow model.
func TestSimAIWorkloads(t *testing.T) {
	for _, c := range []struct {
		file                        string
		messages, sum, dependencies int64
	}{
		{"megatron-8.txt", 512, 83591168, 256},
		{"moe-16.txt", 1744, 123019264, 1184},
	} {
		for passes := range 3 {
			tr := &Traffic{Pattern: List, File: c.file, Repeat: passes}
			flows, err := tr.readList(hosts(t, 16), func(name string) ([]byte, error) { return os.ReadFile(aiOracle + "simai/" + name) })
			if err != nil {
				t.Fatal(err)
			}
			messages, sum, dependencies := counted(flows)
			if n := int64(max(1, passes)); messages != n*c.messages || sum != n*c.sum || dependencies != n*c.dependencies {
				t.Errorf("%s, %d passes: %d messages of %d bytes with %d dependencies", c.file, passes, messages, sum, dependencies)
			}
			if _, err := waitCycle(flows, make([]string, len(flows))); err != nil {
				t.Error(err)
			}
			again, err := parseFlows("x", FlowList(flows, hosts(t, 16)), hosts(t, 16))
			if err != nil || !slices.Equal(described(flows), described(again)) {
				t.Errorf("%s as a flow list differs: %v", c.file, err)
			}
		}
	}
}

// schedule lists when flows begin if a message takes 10 µs, by source, destination and
// bytes. A computation is as long as its delay.
func schedule(flows []Flow) []string {
	ends := map[int32]time.Duration{}
	var begin func(i int32) time.Duration
	end := func(i int32) time.Duration {
		if at, ok := ends[i]; ok {
			return at
		}
		at := begin(i)
		if !flows[i].Compute {
			at += 10 * time.Microsecond
		}
		ends[i] = at
		return at
	}
	begin = func(i int32) time.Duration {
		f := &flows[i]
		at := f.Start
		if f.Waits != nil {
			for _, p := range f.Waits.After {
				at = max(at, end(p))
			}
			at += f.Waits.Delay
		}
		return at
	}
	var list []string
	for i, f := range flows {
		if !f.Compute {
			list = append(list, fmt.Sprintf("%v %d>%d %d", begin(int32(i)), f.Src, f.Dst, f.Bytes))
		}
	}
	slices.Sort(list)
	return list
}

// TestSimAISchedule follows computations and collectives: two ranks, tensor parallelism
// of 1, so that only weight gradients are exchanged, and of 2.
func TestSimAISchedule(t *testing.T) {
	const layers = "2\na -1 1000 ALLREDUCE 8192 2000 NONE 0 4000 ALLREDUCE 20000 500\nb -1 8000 NONE 0 16000 ALLGATHER 6000 32000 ALLTOALL 40000 0\n"
	for _, c := range []struct {
		header string
		passes int
		want   []string
	}{
		// The collective of b begins after 1+8+16+32 µs, and the collective of a 2+4 µs later.
		{"HYBRID_TRANSFORMER model_parallel_NPU_group: 1", 1, []string{
			"57µs 0>1 20000", "57µs 1>0 20000",
			"63µs 0>1 10000", "63µs 1>0 10000", "73µs 0>1 10000", "73µs 1>0 10000",
		}},
		// The second pass waits for layer a until 83.5 µs, and for b from 1 µs later on.
		{"DATA", 2, []string{
			"41µs 0>1 20000", "41µs 1>0 20000", // forward 9, gradients of b 32
			"61µs 0>1 10000", "61µs 1>0 10000", "71µs 0>1 10000", "71µs 1>0 10000", // 16 and 4 later
			"122.5µs 0>1 20000", "122.5µs 1>0 20000",
			"142.5µs 0>1 10000", "142.5µs 1>0 10000", "152.5µs 0>1 10000", "152.5µs 1>0 10000",
		}},
		// All operations block: 1, 20 and 0.5, 8+16, 10, 32+2+4.
		{"HYBRID_TRANSFORMER model_parallel_NPU_group: 2", 1, []string{
			"11µs 0>1 4096", "11µs 1>0 4096", "1µs 0>1 4096", "1µs 1>0 4096",
			"45.5µs 0>1 3000", "45.5µs 1>0 3000",
		}},
		{"DISTRIBUTED_INFERENCE", 2, []string{
			"11µs 0>1 4096", "11µs 1>0 4096", "1µs 0>1 4096", "1µs 1>0 4096",
			"30.5µs 0>1 4096", "30.5µs 1>0 4096", "40.5µs 0>1 4096", "40.5µs 1>0 4096",
		}},
		{"MICRO", 1, []string{
			"0s 0>1 10000", "0s 1>0 10000", "10µs 0>1 10000", "10µs 1>0 10000", "20.5µs 0>1 20000", "20.5µs 1>0 20000",
		}},
		// Layer a is computed again before the gradients of b: 11 more.
		{"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 1 0 checkpoint_initiates: 1 1", 1, []string{
			"11µs 0>1 4096", "11µs 1>0 4096", "1µs 0>1 4096", "1µs 1>0 4096",
			"30.5µs 0>1 4096", "30.5µs 1>0 4096", "40.5µs 0>1 4096", "40.5µs 1>0 4096",
			"67µs 0>1 3000", "67µs 1>0 3000",
		}},
		// Small collectives of a forward pass have 4,096 bytes, but only where layers are computed again.
		{"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 0 checkpoint_initiates: 0\n1\na -1 1000 ALLREDUCE 100 2000 NONE 0 4000 NONE 0 500", 1, []string{
			"11µs 0>1 2048", "11µs 1>0 2048", "1µs 0>1 2048", "1µs 1>0 2048",
		}},
		{"HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\na -1 1000 ALLREDUCE 100 2000 NONE 0 4000 NONE 0 500", 1, []string{
			"11µs 0>1 50", "11µs 1>0 50", "1µs 0>1 50", "1µs 1>0 50",
		}},
		// A layer without a collective gets none.
		{"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 0 checkpoint_initiates: 0\n2\na -1 1000 ALLREDUCE 0 2000 NONE 0 4000 NONE 0 500\nb -1 0 NONE 0 0 ALLGATHER 6000 0 NONE 0 0", 1, []string{"1µs 0>1 3000", "1µs 1>0 3000"}},
	} {
		tr := &Traffic{Pattern: List, File: "x", Ranks: 2, Repeat: c.passes}
		text := c.header + "\n" + layers
		if strings.Contains(c.header, "\n") {
			text = c.header + "\n"
		}
		flows, err := tr.readList(hosts(t, 4), from(map[string]string{"x": text}))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(c.want)
		if got := schedule(flows); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.header, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestChakraCounts compares nodes, dependencies and bytes of traces with the counts of
// Chakra's own decoder, and the bytes of flows with arithmetic.
func TestChakraCounts(t *testing.T) {
	nodes := map[string][8]int64{} // of all ranks
	rows(t, "chakra.tsv", func(f []string) {
		sum := nodes[f[0]]
		for i := range sum {
			sum[i] += int64(whole(t, f[2+i]))
		}
		nodes[f[0]] = sum
	})
	delete(nodes, "custom_allreduce")
	if len(nodes) < 5 {
		t.Fatal(nodes)
	}
	const n = 4
	bytes := map[string]int64{
		"ALL_REDUCE": 2 * (n - 1) * 65536,
		"BARRIER":    2 * (n - 1) * n,
		"data":       2 * (2*(n-1)*(40000+80000) + (n-1)*120000),            // two passes
		"hybrid":     n*(n-1)*16000 + 2*(n-1)*32000 + 2*(n-1)*(96000+48000), // the converter writes no input gradients of the first layer
		"pipeline":   2*3*50000 + 2*2*90000,
	}
	for _, base := range slices.Sorted(maps.Keys(nodes)) {
		s := &traceSet{file: base + ".*.et"}
		read := func(name string) ([]byte, error) { return os.ReadFile(aiOracle + "chakra/" + name) }
		if err := s.read(0, 8, nil, read); err != nil {
			t.Fatal(err)
		}
		var got [8]int64
		for _, tr := range s.traces {
			for _, n := range tr.nodes {
				got[0]++
				for i, kind := range []uint8{etComp, etSend, etRecv, etColl} {
					if n.kind == kind {
						got[1+i]++
					}
				}
				got[5] += int64(len(n.deps))
				got[6] += int64(n.micros)
				got[7] += max(0, n.bytes)
			}
		}
		if got != nodes[base] {
			t.Errorf("%s: %v: want %v", base, got, nodes[base])
		}
		tr := &Traffic{Pattern: List, File: base + ".*.et"}
		flows, err := tr.readList(hosts(t, 8), read)
		if err != nil {
			t.Fatal(err)
		}
		if _, sum, _ := counted(flows); sum != bytes[base] {
			t.Errorf("%s: %d bytes: want %d", base, sum, bytes[base])
		}
	}
}

// TestChakraSchedule follows a pipeline of two stages of two ranks: each stage computes
// for 25 µs and sends to the next, and the ranks of a stage reduce their gradients.
func TestChakraSchedule(t *testing.T) {
	tr := &Traffic{Pattern: List, File: "pipeline.*.et"}
	flows, err := tr.readList(hosts(t, 4), func(name string) ([]byte, error) { return os.ReadFile(aiOracle + "chakra/" + name) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"25µs 0>2 50000", "25µs 1>3 50000", "50µs 0>2 50000", "50µs 1>3 50000", "75µs 0>2 50000", "75µs 1>3 50000",
		"75µs 0>1 45000", "75µs 1>0 45000", "85µs 0>1 45000", "85µs 1>0 45000",
		"110µs 2>3 45000", "110µs 3>2 45000", "120µs 2>3 45000", "120µs 3>2 45000",
	}
	for i, f := range flows {
		if f.Waits != nil && f.Start != 0 {
			t.Errorf("flow %d waits for others, but not before %v: want no earliest start", i, f.Start)
		}
	}
	slices.Sort(want)
	if got := schedule(flows); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// An etWriter writes a trace.
type etWriter struct{ b []byte }

func (w *etWriter) message(m []byte) *etWriter {
	w.b = protowire.AppendBytes(w.b, m)
	return w
}

// node adds a node with attributes that are numbers, or a pg_name.
func (w *etWriter) node(id, kind uint64, deps []uint64, attr map[string]any) *etWriter {
	var m []byte
	number := func(f protowire.Number, v uint64) {
		m = protowire.AppendVarint(protowire.AppendTag(m, f, protowire.VarintType), v)
	}
	number(1, id)
	number(3, kind)
	for _, d := range deps {
		number(5, d)
	}
	for _, key := range slices.Sorted(maps.Keys(attr)) {
		a := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
		switch v := attr[key].(type) {
		case int:
			a = protowire.AppendVarint(protowire.AppendTag(a, 9, protowire.VarintType), uint64(int64(v)))
		case string:
			a = protowire.AppendString(protowire.AppendTag(a, 29, protowire.BytesType), v)
		case etNumber:
			a = v.appendTo(a)
		case []byte:
			a = protowire.AppendBytes(protowire.AppendTag(a, 28, protowire.BytesType), v)
		}
		m = protowire.AppendBytes(protowire.AppendTag(m, 10, protowire.BytesType), a)
	}
	return w.message(m)
}

// An etNumber is a number in one of the fields that attributes have for integer types.
type etNumber struct {
	field protowire.Number
	value int64
}

func (n etNumber) appendTo(b []byte) []byte {
	switch n.field {
	case 19, 23: // fixed32, sfixed32
		return protowire.AppendFixed32(protowire.AppendTag(b, n.field, protowire.Fixed32Type), uint32(n.value))
	case 21, 25: // fixed64, sfixed64
		return protowire.AppendFixed64(protowire.AppendTag(b, n.field, protowire.Fixed64Type), uint64(n.value))
	case 15, 17: // sint32, sint64
		return protowire.AppendVarint(protowire.AppendTag(b, n.field, protowire.VarintType), protowire.EncodeZigZag(n.value))
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n.field, protowire.VarintType), uint64(n.value))
}

// field adds computation 1 with one more field.
func (w *etWriter) field(n etNumber) *etWriter {
	m := protowire.AppendVarint(protowire.AppendTag(nil, etID, protowire.VarintType), 1)
	m = protowire.AppendVarint(protowire.AppendTag(m, etKind, protowire.VarintType), etComp)
	return w.message(n.appendTo(m))
}

// dimensions adds an all-reduce with the attribute involved_dim.
func (w *etWriter) dimensions(selected uint64, packed bool) *etWriter {
	list := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), selected)
	if packed {
		list = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{1, byte(selected)})
	}
	return w.node(1, etColl, nil, map[string]any{"comm_type": 0, "comm_size": 100, "involved_dim": list})
}

func newTrace() *etWriter {
	return new(etWriter).message(protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "0.0.4"))
}

// TestLongWait: an error shows up to eight nodes that wait for each other.
func TestLongWait(t *testing.T) {
	for n, want := range map[uint64]string{
		8: "node 7 of rank 0 after node 8 of rank 0 after node 1 of rank 0",
		9: "node 8 of rank 0 after 1 more after node 1 of rank 0",
	} {
		ring := newTrace()
		for i := range n {
			ring.node(i+1, etComp, []uint64{(i+1)%n + 1}, nil)
		}
		sum := map[string]any{"comm_type": 0, "comm_size": 9}
		ring.node(n+1, etColl, nil, sum)
		tr := Traffic{Pattern: List, File: "t.*.et"}
		_, err := tr.readList(hosts(t, 8), from(map[string]string{"t.0.et": string(ring.b), "t.1.et": string(newTrace().node(1, etColl, nil, sum).b)}))
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Count(err.Error(), "node ") != 9 {
			t.Errorf("%d nodes: %v\nwant the end %s", n, err, want)
		}
	}
}

// TestIntegerTypes reads attributes in each type of integers, and groups by number.
func TestIntegerTypes(t *testing.T) {
	read := func(attr map[string]any) string {
		files := map[string]string{"g.json": `{"3": [0, 1]}`}
		for r := range 2 {
			files[fmt.Sprintf("t.%d.et", r)] = string(newTrace().node(1, etColl, nil, attr).b)
		}
		tr := Traffic{Pattern: List, File: "t.*.et", CommGroups: "g.json"}
		flows, err := tr.readList(hosts(t, 2), from(files))
		if err != nil {
			t.Errorf("%v: %v", attr, err)
		}
		return fmt.Sprint(described(flows))
	}
	want := read(map[string]any{"comm_type": 0, "comm_size": 100, "pg_name": "3"})
	for _, f := range []protowire.Number{7, 9, 11, 13, 15, 17, 19, 21, 23, 25} {
		if got := read(map[string]any{"comm_type": etNumber{f, 0}, "comm_size": etNumber{f, 100}, "pg_name": etNumber{f, 3}}); got != want {
			t.Errorf("field %d: %v, want %v", f, got, want)
		}
	}
	if got := read(map[string]any{"comm_type": etNumber{27, 0}, "comm_size": 100, "pg_name": "3", "other": etNumber{27, 1}}); got != want {
		t.Errorf("a boolean: %v, want %v", got, want)
	}
}

// TestImportErrors refuses files with one line that names the place.
func TestImportErrors(t *testing.T) {
	type attr = map[string]any
	send := attr{"comm_dst": 1, "comm_size": 10, "comm_tag": 3}
	recv := attr{"comm_src": 0, "comm_size": 10, "comm_tag": 3}
	sum := attr{"comm_type": 0, "comm_size": 100}
	trace := func(w *etWriter) string { return string(w.b) }
	pair := func(a, b *etWriter) map[string]string {
		return map[string]string{"t.0.et": trace(a), "t.1.et": trace(b)}
	}
	valid := newTrace().node(1, etColl, nil, sum)
	cut := valid.b[:len(valid.b)-3]
	const head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n"
	w := func(text string) map[string]string { return map[string]string{"w.txt": text} }
	for _, c := range []struct {
		tr    Traffic
		files map[string]string
		want  string
	}{
		{Traffic{File: "t.*.et"}, nil, `reading the trace of rank 0, "t.0.et": file does not exist`},
		{Traffic{File: "t.0.et"}, nil, `file "t.0.et": want a name with * for the rank, such as trace.*.et`},
		{Traffic{File: "t.*.et", Ranks: 3}, pair(valid, valid), `reading the trace of rank 2, "t.2.et": file does not exist`},
		{Traffic{File: "t.*.et", Ranks: 9}, nil, "ranks 9: the topology has 8 hosts"},
		{Traffic{File: "t.*.et", Repeat: 2}, nil, "repeat 2: a Chakra trace runs once"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": trace(valid), "t.3.et": trace(valid)}, `there is no trace of rank 1, "t.1.et": there is one of rank 3`},
		{Traffic{File: "t.*.et"}, pair(valid, newTrace().node(1, 99, nil, nil)), "t.1.et: message 1 at byte 8: type 99 of a node: want 0 to 7"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": string(cut)}, "t.0.et: message 1 at byte 8: 34 bytes long, but the file ends after 31"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": string(valid.b) + "\x80"}, "t.0.et: message 2 at byte 43: its length is cut off or invalid"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": ""}, "t.0.et: the file is empty"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": "src dst bytes start_s\n"}, "t.0.et: message 0 at byte 0: 115 bytes long, but the file ends after 21"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": "\x1f\x8bno"}, "t.0.et: unexpected EOF"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": trace(new(etWriter).node(1, 4, nil, nil))}, "t.0.et: message 0 at byte 0: field 1 of wire type 0: want the metadata"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etComp, []uint64{2}, nil), valid), "t.0.et: message 1, node 1: it depends on node 2, which the trace does not have"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etComp, nil, nil).node(1, etComp, nil, nil), valid), "t.0.et: message 2, node 1: message 1 has the same id"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etComp, []uint64{2}, nil).node(2, etSend, []uint64{1}, send), newTrace().node(1, etRecv, nil, recv).node(2, etComp, []uint64{3}, nil).node(3, etComp, []uint64{2}, nil)), "t.*.et: nodes wait for each other: node 1 of rank 0 after node 2 of rank 0 after node 1 of rank 0"},
		{Traffic{File: "t.*.et"}, pair(
			newTrace().node(1, etColl, nil, sum).node(2, etRecv, nil, attr{"comm_src": 1, "comm_size": 5}),
			newTrace().node(1, etSend, []uint64{2}, attr{"comm_dst": 0, "comm_size": 5}).node(2, etColl, nil, sum)), ""},
		{Traffic{File: "t.*.et"}, pair(
			newTrace().node(1, etColl, []uint64{2}, sum).node(2, etRecv, nil, attr{"comm_src": 1, "comm_size": 5}),
			newTrace().node(1, etSend, []uint64{2}, attr{"comm_dst": 0, "comm_size": 5}).node(2, etColl, nil, sum)), "t.*.et: nodes wait for each other: node"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etSend, nil, send), valid), "t.0.et: message 1, node 1: it sends to rank 1 with tag 3, which does not receive it"},
		{Traffic{File: "t.*.et"}, pair(valid, newTrace().node(1, etRecv, nil, recv)), "t.1.et: message 1, node 1: it receives from rank 0 with tag 3, which sends nothing more with it"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etSend, nil, send), newTrace().node(1, etRecv, nil, attr{"comm_src": 0, "comm_size": 11, "comm_tag": 3})), "t.1.et: message 1, node 1: comm_size 11: its send, node 1 of rank 0, has 10"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etSend, nil, attr{"comm_size": 5}), valid), "t.0.et: message 1, node 1: comm_dst is missing"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etSend, nil, attr{"comm_size": 5, "comm_dst": 2}), valid), "t.0.et: message 1, node 1: comm_dst 2: want another rank, 0 to 1"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etSend, nil, attr{"comm_dst": 1}), valid), "t.0.et: message 1, node 1: comm_size: want a number above 0"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etSend, nil, attr{"comm_dst": -1}), valid), "t.0.et: message 1 at byte 8: node 1: attribute comm_dst: want a whole number, 0 to 2147483647"},
		{Traffic{File: "t.*.et"}, pair(valid, newTrace()), "t.1.et: 0 collectives of the 2 ranks: rank 0 has 1"},
		{Traffic{File: "t.*.et"}, pair(valid, newTrace().node(5, etColl, nil, attr{"comm_type": 0, "comm_size": 99})), "t.1.et: message 1, node 5: ALL_REDUCE of 99 bytes: node 1 of rank 0, the same collective of the 2 ranks, is ALL_REDUCE of 100 bytes"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etColl, nil, attr{"comm_type": 1, "comm_size": 9}), newTrace().node(1, etColl, nil, attr{"comm_type": 1, "comm_size": 9})), "t.0.et: message 1, node 1: comm_type REDUCE, which has a root that traces do not state: want ALL_REDUCE"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etColl, nil, attr{"comm_type": 0, "comm_size": 9, "pg_name": "5"}), valid), `t.0.et: message 1, node 1: pg_name "5": neither comm-groups nor the trace has this group`},
		{Traffic{File: "t.*.et", CommGroups: "g.json"}, map[string]string{"t.0.et": trace(newTrace().node(1, etColl, nil, attr{"comm_type": 0, "comm_size": 9, "pg_name": "5"})), "g.json": `{"5": [0, 4]}`}, `t.0.et: message 1, node 1: pg_name "5": rank 4 of the group: want different ranks, 0 to 0`},
		{Traffic{File: "t.*.et", CommGroups: "g.json"}, map[string]string{"t.0.et": trace(newTrace().node(1, etColl, nil, attr{"comm_type": 0, "comm_size": 9, "pg_name": "5"})), "g.json": `{"5": [0, 1]}`}, `t.0.et: message 1, node 1: pg_name "5": rank 1 of the group: want different ranks, 0 to 0`},
		{Traffic{File: "t.*.et", CommGroups: "g.json"}, map[string]string{"t.0.et": trace(valid), "g.json": `[1]`}, "g.json: json: cannot unmarshal array"},
		{Traffic{File: "t.*.et"}, map[string]string{"t.0.et": trace(newTrace().node(1, etComp, nil, nil))}, "t.*.et: the traces of 1 ranks send nothing"},
		{Traffic{File: "t.*.et", Order: "random"}, nil, `groups, order and compute: the file "t.*.et" determines them`},
		{Traffic{File: "t.*.et", Compute: 1}, nil, `groups, order and compute: the file "t.*.et" determines them`},
		{Traffic{File: "t.*.et", Ranks: -1}, nil, "ranks -1, window 0, chunks 0, repeat 0: want 0 or more"},
		{Traffic{File: "t.*.et", Window: -1}, nil, "ranks 0, window -1, chunks 0, repeat 0: want 0 or more"},
		{Traffic{File: "t.*.et", Chunks: -1}, nil, "ranks 0, window 0, chunks -1, repeat 0: want 0 or more"},
		{Traffic{File: "w.txt", Repeat: -1}, w(head + "1\na -1 1 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), "ranks 0, window 0, chunks 0, repeat -1: want 0 or more"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etColl, nil, attr{"comm_type": 32768, "comm_size": 9}), valid), "t.0.et: message 1 at byte 8: node 1: attribute comm_type: want a whole number, 0 to 32767"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etSend, nil, attr{"comm_dst": 1 << 31, "comm_size": 9}), valid), "t.0.et: message 1 at byte 8: node 1: attribute comm_dst: want a whole number, 0 to 2147483647"},
		{Traffic{File: "t.*.et"}, pair(newTrace().node(1, etColl, nil, attr{"comm_type": "SUM", "comm_size": 9}), valid), "t.0.et: message 1 at byte 8: node 1: attribute comm_type: want a whole number, 0 to 32767"},
		{Traffic{File: "t.*.et"}, pair(newTrace().field(etNumber{etDuration, int64(longestNode) + 1}), valid), "t.0.et: message 1 at byte 8: node 1: duration_micros "},
		{Traffic{File: "t.*.et"}, pair(newTrace().field(etNumber{etDuration, int64(longestNode)}), valid), "t.1.et: 1 collectives of the 2 ranks: rank 0 has 0"},
		{Traffic{File: "t.*.et"}, pair(newTrace().field(etNumber{etKind, 8}), valid), "t.0.et: message 1 at byte 8: type 8 of a node: want 0 to 7"},
		{Traffic{File: "t.*.et"}, pair(new(etWriter).message(etNumber{19, 5}.appendTo(nil)), valid), "t.0.et: message 0 at byte 0: field 19 of wire type 5: want the metadata of a Chakra trace"},
		{Traffic{File: "t.*.et"}, pair(newTrace().dimensions(0, true), valid), "t.0.et: message 1 at byte 8: involved_dim selects dimensions of ASTRA-sim's network: want pg_name"},
		{Traffic{File: "t.*.et"}, pair(newTrace().dimensions(0, false), valid), "t.0.et: message 1 at byte 8: involved_dim selects dimensions of ASTRA-sim's network: want pg_name"},
		{Traffic{File: "t.*.et"}, pair(newTrace().dimensions(1, true), newTrace().dimensions(1, false)), ""},
		{Traffic{File: "t.*.et", Algorithm: "star"}, nil, `algorithm "star": want ring`},
		{Traffic{File: "t.*.et", Groups: 2}, nil, `groups, order and compute: the file "t.*.et" determines them`},
		{Traffic{File: "l.txt", Window: 2}, map[string]string{"l.txt": "0 1 10 0\n"}, `file "l.txt": algorithm, ranks, window`},

		{Traffic{File: "w.txt"}, w("HYBRID_DLRM\n1\n"), "w.txt:1: policy HYBRID_DLRM: want MICRO"},
		{Traffic{File: "w.txt"}, w("MICRO x\n"), "w.txt:1: x: the number is missing"},
		{Traffic{File: "w.txt"}, w("MICRO x: 1\n"), `w.txt:1: "x": want model_parallel_NPU_group`},
		{Traffic{File: "w.txt"}, w("MICRO ep: -1\n"), "w.txt:1: ep -1: want a whole number"},
		{Traffic{File: "w.txt"}, w("MICRO\n"), "w.txt:1: 0 layers: the file has 0"},
		{Traffic{File: "w.txt"}, w("MICRO\nx\n"), `w.txt:2: "x": want the number of layers`},
		{Traffic{File: "w.txt"}, w("MICRO\n999999999\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n"), "w.txt:2: 999999999 layers: the file has 1"},
		{Traffic{File: "w.txt"}, w("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"), "w.txt:4: line 2 states 1 layers: the file has more"},
		{Traffic{File: "w.txt"}, w("MICRO\n1\na -1 1 NONE 0 1 NONE 0\n"), "w.txt:3: 8 columns: want 12"},
		{Traffic{File: "w.txt"}, w(head + "1\na -1 1 REDUCE 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:3: collective REDUCE: want NONE"},
		{Traffic{File: "w.txt"}, w(head + "1\na -1 1 ALLREDUCE_PP 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:3: collective ALLREDUCE_PP: want NONE"},
		{Traffic{File: "w.txt"}, w(head + "1\na -1 1 ALLREDUCE -5 1 NONE 0 1 NONE 0 1\n"), `w.txt:3: bytes "-5": want a whole number`},
		{Traffic{File: "w.txt"}, w(head + "1\na -1 1.5 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), `w.txt:3: computation: "1.5": want nanoseconds`},
		{Traffic{File: "w.txt"}, w(head + "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"), "w.txt: no collective has bytes for 8 ranks"},
		{Traffic{File: "w.txt"}, w("HYBRID_TRANSFORMER model_parallel_NPU_group: 3\n1\na -1 1 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:1: model_parallel_NPU_group 3 of 8 ranks: want a divisor"},
		{Traffic{File: "w.txt"}, w("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 3\n1\na -1 1 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:1: ep 3 of 4 data-parallel groups (8 ranks): want a divisor"},
		{Traffic{File: "w.txt"}, w("HYBRID_TRANSFORMER all_gpus: 64\n1\na -1 1 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:1: all_gpus 64: the topology has 8 hosts: want ranks:"},
		{Traffic{File: "w.txt"}, w("HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 1 7\n1\na -1 1 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:1: checkpoint layer 7: want 0 to 0"},
		{Traffic{File: "w.txt", Algorithm: halvingDoubling, Ranks: 6}, w("MODEL\n1\na -1 1 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:3: algorithm halving-doubling of 6 ranks: want a power of two"},
		{Traffic{File: "w.txt", Repeat: 1 << 20}, w("MODEL\n1\na -1 1 ALLREDUCE 5 1 NONE 0 1 NONE 0 1\n"), "w.txt:3: more than 4194304 messages"},
		{Traffic{File: "w.txt", CommGroups: "g"}, w(head), `comm-groups "g": a SimAI workload has its groups in its header`},
	} {
		c.tr.Pattern = List
		_, err := c.tr.readList(hosts(t, 8), from(c.files))
		if err == nil {
			err = fmt.Errorf("")
		}
		if got := err.Error(); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || strings.Contains(got, "\n") {
			t.Errorf("%q: want %q", got, c.want)
		}
	}
}

// TestChakraCompressed reads a trace that is compressed, with groups of its own file.
func TestChakraCompressed(t *testing.T) {
	files := map[string]string{"g.json": `{"3": [2, 0], "4": [1, 3]}`}
	for r := range 4 {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		name := fmt.Sprint(3 + r%2)
		z.Write(newTrace().node(7, etColl, nil, map[string]any{"comm_type": 5, "comm_size": 1000, "pg_name": name}).b)
		z.Close()
		files[fmt.Sprintf("t.%d.et", r)] = b.String()
	}
	tr := &Traffic{Pattern: List, File: "t.*.et", CommGroups: "g.json"}
	flows, err := tr.readList(hosts(t, 4), from(files))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0s 1>3 1000", "0s 2>0 1000"} // the first of a group sends
	if got := schedule(flows); !slices.Equal(got, want) {
		t.Errorf("%v: want %v", got, want)
	}
}

// FuzzTrace parses any bytes without a crash.
func FuzzTrace(f *testing.F) {
	names, err := filepath.Glob(aiOracle + "chakra/*.0.et")
	if err != nil || len(names) == 0 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tr := &Traffic{Pattern: List, File: "t.*.et"}
		read := from(map[string]string{"t.0.et": string(text), "t.1.et": string(text)})
		tr.readList(hosts(t, 4), read)
	})
}

// FuzzWorkload parses any text without a crash.
func FuzzWorkload(f *testing.F) {
	f.Add("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 100 1\n")
	f.Add("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 1 0 checkpoint_initiates: 1 0\n1\na -1 1 ALLREDUCE 5 1 ALLTOALL_EP 4 1 ALLGATHER_DP_EP 8 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		tr := &Traffic{Pattern: List, File: "w"}
		tr.readList(hosts(t, 4), from(map[string]string{"w": text}))
	})
}
