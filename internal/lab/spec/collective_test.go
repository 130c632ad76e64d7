package spec

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// hosts32 is the network of the oracle's inputs.
func hosts32(t *testing.T) *fabric.Topology {
	t.Helper()
	topo, err := fabric.LeafSpine{Leaves: 4, Spines: 8, Hosts: 8, Links: fabric.Links{HostRate: 100 * fabric.Gbps}}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

func generate(t *testing.T, tr Traffic) []Flow {
	t.Helper()
	topo := hosts32(t)
	s := Setting{Traffic: []Traffic{tr}}
	s.defaults()
	if err := s.Traffic[0].resolve(topo, NoFiles); err != nil {
		t.Fatal(err)
	}
	flows, err := Generate(topo, s.Traffic, 0.5, time.Millisecond, 1)
	if err != nil {
		t.Fatal(err)
	}
	return flows
}

// TestCollectivesOfHtsim compares messages, sizes and dependencies with the output of
// uet-htsim's own generators: the same chains in any order.
func TestCollectivesOfHtsim(t *testing.T) {
	for name, tr := range map[string]Traffic{
		"ring32x8_32MB":    {Collective: "all-reduce", Size: 32e6, Groups: 8, Order: "strided"},
		"ring32x1_32MB":    {Collective: "all-reduce", Size: 32e6},
		"a2a32_1000KB_w1":  {Collective: "all-to-all", Size: 32e6, Window: 1},
		"a2a32_1000KB_w4":  {Collective: "all-to-all", Size: 32e6, Window: 4},
		"a2a32_1000KB_w31": {Collective: "all-to-all", Size: 32e6},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]int{}
			flows := generate(t, tr)
			for _, f := range flows {
				before := ""
				if f.Waits != nil {
					for _, p := range append(f.Waits.After, f.Waits.AfterAck...) {
						before = fmt.Sprint(flows[p].Src, ">", flows[p].Dst)
					}
				}
				got[fmt.Sprint(f.Src, ">", f.Dst, " ", f.Bytes, " after ", before)]++
			}
			want := oracleChains(t, name)
			for k, n := range want {
				if got[k] != n {
					t.Fatalf("%s: %d times, want %d", k, got[k], n)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d kinds of messages: want %d", len(got), len(want))
			}
		})
	}
}

// oracleChains reads the flows of an input, each with the hosts of its predecessor.
func oracleChains(t *testing.T, name string) map[string]int {
	t.Helper()
	read := func(suffix string) []string {
		text, err := os.ReadFile("../../../testdata/oracle/ai/flows/" + name + suffix)
		if err != nil {
			if suffix == ".after" {
				return nil
			}
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	lines, after := read(".txt")[1:], read(".after")
	hosts := func(i int) string {
		f := strings.Split(lines[i], ",")
		return f[0] + ">" + f[1]
	}
	chains := map[string]int{}
	for i := range lines {
		before := ""
		if after != nil {
			if p, err := strconv.Atoi(after[i]); err != nil {
				t.Fatal(err)
			} else if p >= 0 {
				before = hosts(p)
			}
		}
		chains[fmt.Sprint(hosts(i), " ", strings.Split(lines[i], ",")[2], " after ", before)]++
	}
	return chains
}

// TestCollectiveBytes compares the messages and bytes that each host sends with the
// closed forms of each algorithm, for 8 ranks with buffers of 8 MB.
func TestCollectiveBytes(t *testing.T) {
	const n, size = 8, 8_000_000
	for _, c := range []struct {
		collective, algorithm string
		messages              int
		bytes, most           int64 // of all ranks, of the rank that sends most
	}{
		{"all-reduce", "ring", 2 * n * (n - 1), 2 * size * (n - 1), 2 * size * (n - 1) / n},
		{"all-reduce", "direct", 2 * n * (n - 1), 2 * size * (n - 1), 2 * size * (n - 1) / n},
		{"all-reduce", "halving-doubling", 2 * n * 3, 2 * size * (n - 1), 2 * size * (n - 1) / n},
		{"all-reduce", "tree", 2 * (n - 1), 2 * size * (n - 1), 3 * size},
		{"all-reduce", "double-tree", 4 * (n - 1), 2 * size * (n - 1), 2 * size},
		{"reduce-scatter", "ring", n * (n - 1), size * (n - 1), size * (n - 1) / n},
		{"reduce-scatter", "halving-doubling", n * 3, size * (n - 1), size * (n - 1) / n},
		{"all-gather", "direct", n * (n - 1), size * (n - 1), size * (n - 1) / n},
		{"all-gather", "halving-doubling", n * 3, size * (n - 1), size * (n - 1) / n},
		{"all-to-all", "direct", n * (n - 1), size * (n - 1), size * (n - 1) / n},
		{"broadcast", "ring", n - 1, size * (n - 1), size},
		{"broadcast", "tree", n - 1, size * (n - 1), 2 * size},
		{"broadcast", "direct", n - 1, size * (n - 1), size * (n - 1)},
		{"send-recv", "direct", n, size * n, size},
	} {
		flows := generate(t, Traffic{Collective: c.collective, Algorithm: c.algorithm, Ranks: n, Size: size})
		sent := map[int]int64{}
		var messages int
		var bytes, most int64
		for _, f := range flows {
			if f.Compute {
				continue
			}
			messages++
			bytes += f.Bytes
			sent[f.Src] += f.Bytes
			most = max(most, sent[f.Src])
		}
		if messages != c.messages || bytes != c.bytes || most != c.most {
			t.Errorf("%s, %s: %d messages, %d bytes, at most %d of a rank: want %d, %d, %d", c.collective, c.algorithm, messages, bytes, most, c.messages, c.bytes, c.most)
		}
	}
}

// TestCollectiveIterations lets each rank begin an iteration when it has received all
// messages of the one before, and has computed.
func TestCollectiveIterations(t *testing.T) {
	flows := generate(t, Traffic{Collective: "all-gather", Ranks: 4, Size: 4000, Repeat: 3, Compute: Time(time.Millisecond), Order: "random"})
	computed := 0
	for i, f := range flows {
		switch {
		case f.Compute:
			computed++
			if f.Waits.Delay != time.Millisecond || len(f.Waits.After) != 3 {
				t.Errorf("computation %d waits for %v: want three messages and 1ms", i, *f.Waits)
			}
		case f.Waits == nil && f.Instance.Iteration > 0:
			t.Errorf("flow %d of iteration %d waits for nothing", i, f.Instance.Iteration)
		}
	}
	if computed != 8 || len(flows) != 3*12+8 {
		t.Errorf("%d flows, %d of them computations: want 44 and 8", len(flows), computed)
	}
}

// TestCollectiveErrors: invalid collectives are refused.
func TestCollectiveErrors(t *testing.T) {
	for want, tr := range map[string]Traffic{
		`collective "gossip": want one of all-reduce,`:                   {Collective: "gossip"},
		`algorithm "tree" of all-to-all: want`:                           {Collective: "all-to-all", Algorithm: "tree", Size: 1e6},
		"groups 5 of 32 hosts: want a divisor, or ranks":                 {Collective: "all-reduce", Groups: 5, Size: 1e6},
		"groups 3 of 12 ranks: there are 32 hosts":                       {Collective: "all-reduce", Groups: 3, Ranks: 12, Size: 1e6},
		"groups 0 of 1 ranks: want 2 ranks":                              {Collective: "all-reduce", Ranks: 1, Size: 1e6},
		"size 31 of 32 ranks: want at least a byte for each rank":        {Collective: "all-reduce", Size: 31},
		"collective all-reduce: want size":                               {Collective: "all-reduce"},
		"algorithm halving-doubling of 12 ranks: want a power":           {Collective: "all-reduce", Algorithm: "halving-doubling", Ranks: 12, Size: 1e6},
		"window 2 with algorithm ring: only direct":                      {Collective: "all-reduce", Window: 2, Size: 1e6},
		"chunks 2: algorithm ring of all-reduce is not pipelined":        {Collective: "all-reduce", Chunks: 2, Size: 1e6},
		`order "snake": want local, strided or random`:                   {Collective: "all-reduce", Order: "snake", Size: 1e6},
		`connections "none": want persistent, per-message or queue-pair`: {Collective: "all-reduce", Connections: "none", Size: 1e6},
		"all-to-all of 32 ranks, 9999 times: more than":                  {Collective: "all-to-all", Repeat: 9999, Size: 1e6},
		"window -1, repeat 0, chunks 0: want 0 or more":                  {Collective: "all-to-all", Window: -1, Size: 1e6},
		"window 0, repeat -1, chunks 0: want 0 or more":                  {Collective: "all-to-all", Repeat: -1, Size: 1e6},
		"window 0, repeat 0, chunks -1: want 0 or more":                  {Collective: "broadcast", Chunks: -1, Size: 1e6},
		"chunks 3 of 2: want at least a byte for each":                   {Collective: "broadcast", Chunks: 3, Size: 2},
		"broadcast of 32 ranks, 1 times: more than 4194304 messages":     {Collective: "broadcast", Algorithm: "ring", Chunks: 4194304/31 + 1, Size: 1e9},
		"algorithm, ranks, groups, order":                                {Algorithm: "ring", Size: 1e6},
	} {
		s := Setting{Traffic: []Traffic{tr}}
		s.defaults()
		if err := s.Traffic[0].resolve(hosts32(t), NoFiles); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
	// Each key of collectives alone is refused without a collective.
	for _, tr := range []Traffic{{Algorithm: "ring"}, {Order: "local"}, {Ranks: 2}, {Groups: 2}, {Window: 2}, {Chunks: 2}, {Repeat: 2}, {Compute: 1}} {
		tr.Size = 1e6
		s := Setting{Traffic: []Traffic{tr}}
		s.defaults()
		if err := s.Traffic[0].resolve(hosts32(t), NoFiles); err == nil || !strings.Contains(err.Error(), "are of collectives: want collective") {
			t.Errorf("%+v: %v", tr, err)
		}
	}
	// The limits themselves are accepted.
	for _, tr := range []Traffic{
		{Collective: "all-reduce", Size: 32},
		{Collective: "broadcast", Chunks: 2, Size: 2},
		{Collective: "broadcast", Algorithm: "ring", Chunks: 4194304 / 31, Size: 1e9},
		{Collective: "send-recv", Ranks: 2, Size: 1},
		{Collective: "all-reduce", Ranks: 16, Groups: 2, Algorithm: "halving-doubling", Size: 1e6},
	} {
		s := Setting{Traffic: []Traffic{tr}}
		s.defaults()
		if err := s.Traffic[0].resolve(hosts32(t), NoFiles); err != nil {
			t.Errorf("%+v: %v", tr, err)
		}
	}
}

// TestFlowListColumns reads dependencies and refuses flows that can never start.
func TestFlowListColumns(t *testing.T) {
	topo := hosts32(t)
	flows, err := parseFlows("f", []byte("id,src,dst,bytes,after,after-ack,delay\na,h1,h2,100,,,\nb,h2,h3,200,a,,5us\nc,h3,h4,300,a; b ,b,\n"), topo)
	if err != nil {
		t.Fatal(err)
	}
	if w := flows[1].Waits; w == nil || w.Delay != 5*time.Microsecond || len(w.After) != 1 || w.After[0] != 0 {
		t.Errorf("b waits for %+v", w)
	}
	if w := flows[2].Waits; w == nil || len(w.After) != 2 || len(w.AfterAck) != 1 || w.AfterAck[0] != 1 {
		t.Errorf("c waits for %+v", w)
	}
	again, err := parseFlows("g", FlowList(flows, topo), topo)
	if err != nil || fmt.Sprint(*again[2].Waits) != fmt.Sprint(*flows[2].Waits) {
		t.Errorf("written and read again, c waits for %+v (%v)", again[2].Waits, err)
	}
	const head = "id src dst bytes after\n"
	for text, want := range map[string]string{
		"src dst bytes start_s prio\n1 2 100 0 0\n": `f:1: column "prio": want one of src,`,
		"src dst bytes bytes\n":                     `f:1: column "bytes": there are two`,
		"src dst start_s\n":                         `f:1: there is no column "bytes"`,
		"src dst bytes after\n":                     "f:1: column after names flows by their id: want a column id",
		head + "1 h1 h2 9 -\n1 h1 h2 9 -\n":         `f:3: id "1": line 2 has it too`,
		head + "1 h1 h2 9 2\n":                      `f:2: after "2": there is no flow with this id`,
		head + "1 h1 h2 9 1\n":                      "f:2: flows wait for each other: 1 after 1",
		head + "1 h1 h2 9 2\n2 h2 h3 9 1\n":         "f:2: flows wait for each other: 1 after 2 after 1",
		head + "1 h1 h2 9 -\n2 h2 h3 9 1;1\n":       `f:3: after "1": listed twice`,
		head + "1 h1 h2 9\n":                        "f:2: want id, src, dst, bytes, after, got",
		"id src dst bytes delay\n1 h1 h2 9 soon\n":  `f:2: delay "soon": want a time such as 10us`,
	} {
		if _, err := parseFlows("f", []byte(text), topo); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v: want %s", text, err, want)
		}
	}
}

// TestConnectionsOfHosts: flows of any traffic between the same hosts share a connection
// if the traffic has the key, and none by default.
func TestConnectionsOfHosts(t *testing.T) {
	topo := hosts32(t)
	for key, want := range map[string]int{"": 0, "per-message": 0, "persistent": 2, "queue-pair": 2} {
		s := Setting{Traffic: []Traffic{{Pattern: pairs, Pairs: []string{"h1-h9", "h2-h10"}, Size: 1000, At: []Time{0, 1000, 2000}, Connections: key}}}
		s.defaults()
		if err := s.Traffic[0].resolve(topo, NoFiles); err != nil {
			t.Fatal(err)
		}
		flows, err := Generate(topo, s.Traffic, 0.5, time.Second, 1)
		if err != nil {
			t.Fatal(err)
		}
		pairs := map[int32]string{}
		for _, f := range flows {
			if pair := fmt.Sprint(f.Src, f.Dst); f.Connection > 0 {
				if pairs[f.Connection] != "" && pairs[f.Connection] != pair {
					t.Errorf("%s: connection %d is of %s and %s", key, f.Connection, pair, pairs[f.Connection])
				}
				pairs[f.Connection] = pair
			}
			if f.QueuePair != (key == "queue-pair") {
				t.Errorf("%s: queue pair %t", key, f.QueuePair)
			}
		}
		if len(flows) != 6 || len(pairs) != want {
			t.Errorf("%s: %d flows on %d connections: want 6 on %d", key, len(flows), len(pairs), want)
		}
	}
	tr := Traffic{Pattern: pairs, Kind: "udp", Size: 1000, Connections: "persistent"}
	if err := tr.resolve(topo, NoFiles); err == nil || !strings.HasPrefix(err.Error(), "connections persistent with transport udp: want") {
		t.Errorf("udp: %v", err)
	}
}

// TestGenerateMovesWaits keeps predecessors when flows of two traffics are sorted.
func TestGenerateMovesWaits(t *testing.T) {
	topo := hosts32(t)
	list := []Traffic{
		{Collective: "send-recv", Ranks: 2, Size: 1000, Repeat: 2, Start: Time(time.Millisecond)},
		{Collective: "send-recv", Ranks: 3, Size: 2000, Repeat: 2},
	}
	s := Setting{Traffic: list}
	s.defaults()
	for i := range s.Traffic {
		if err := s.Traffic[i].resolve(topo, NoFiles); err != nil {
			t.Fatal(err)
		}
	}
	flows, err := Generate(topo, s.Traffic, 0.5, time.Second, 1)
	if err != nil {
		t.Fatal(err)
	}
	connections := map[int32]string{}
	for i, f := range flows {
		if f.Waits != nil {
			for _, p := range f.Waits.After {
				if flows[p].Start != f.Start {
					t.Errorf("flow %d waits for one of another traffic", i)
				}
			}
		}
		pair := fmt.Sprint(f.Src, f.Dst, f.Start)
		if c := f.Connection; c > 0 {
			if connections[c] != "" && connections[c] != pair {
				t.Errorf("connection %d is of %s and %s", c, connections[c], pair)
			}
			connections[c] = pair
		}
	}
	if len(connections) != 5 {
		t.Errorf("%d connections: want 5", len(connections))
	}
}
