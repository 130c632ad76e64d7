package spec

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

// eight is a network of eight hosts.
func eight(t testing.TB) *fabric.Topology {
	t.Helper()
	topo, err := fabric.LeafSpine{Leaves: 2, Spines: 2, Hosts: 4}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// TestFormats reads files that the generators of uet-htsim (40ccb05) and LogGOPSim
// (76451de) wrote. Flows and bytes are as many as the files have, and all flows can run.
func TestFormats(t *testing.T) {
	topo := eight(t)
	files, err := filepath.Glob("../../../testdata/oracle/ai/formats/*")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	sizes := regexp.MustCompile(`size (\d+)|send (\d+)b`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		flows, err := parseList(name, text, topo)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want, got, sends, computed int64
		for _, m := range sizes.FindAllStringSubmatch(string(text), -1) {
			n, _ := strconv.ParseInt(m[1]+m[2], 10, 64)
			want += n
			sends++
		}
		for _, f := range flows {
			got += f.Bytes
			if f.Compute {
				computed++
			}
		}
		if got != want || int64(len(flows)) != sends+int64(strings.Count(string(text), "calc")) || computed != int64(strings.Count(string(text), "calc")) {
			t.Errorf("%s: %d flows, %d bytes: want %d flows with %d bytes", name, len(flows), got, sends, want)
		}
		waiting := 0
		for _, f := range flows {
			if f.Waits != nil {
				waiting++
			}
		}
		if strings.HasSuffix(name, ".cm") && waiting != len(regexp.MustCompile(` trigger \d+ size`).FindAllString(string(text), -1)) {
			t.Errorf("%s: %d flows wait", name, waiting)
		}
		again(t, name, flows, topo)
	}
}

// again writes flows in their original format and reads them back.
func again(t *testing.T, name string, flows []Flow, topo *fabric.Topology) {
	t.Helper()
	write := Matrix
	if strings.HasSuffix(name, ".goal") {
		write = Goal
	}
	text, err := write(flows, topo)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	same, err := parseList("x"+filepath.Ext(name), text, topo)
	if err != nil {
		t.Errorf("%s: written again: %v", name, err)
		return
	}
	list, err := parseFlows("x", FlowList(flows, topo), topo)
	if err != nil {
		t.Errorf("%s: as a list: %v", name, err)
	}
	// The order may differ: flows are compared by all that they are and wait for.
	if a, b := described(flows), described(same); !slices.Equal(a, b) {
		t.Errorf("%s: written again:\n%v\nwas\n%v", name, b, a)
	}
	if a, b := described(flows), described(list); !slices.Equal(a, b) {
		t.Errorf("%s: as a list:\n%v\nwas\n%v", name, b, a)
	}
}

// described lists flows with the flows that they wait for, without their order.
func described(flows []Flow) (list []string) {
	one := func(f *Flow) string { return fmt.Sprint(f.Src, ">", f.Dst, f.Bytes, f.Compute, f.Start) }
	for i := range flows {
		f := &flows[i]
		text := one(f)
		if w := f.Waits; w != nil {
			var before []string
			for _, p := range slices.Concat(w.After, w.AfterAck) {
				before = append(before, one(&flows[p]))
			}
			slices.Sort(before)
			text += fmt.Sprint(w.Delay, before)
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// TestGoal follows the requirements of a schedule.
func TestGoal(t *testing.T) {
	flows, err := parseGoal("x.goal", []byte(`num_ranks 3
rank 0 {
a: calc 1000
b: send 10b to 1 tag 4 cpu 0
b requires a
recv 40b from 2
}
rank 1 {
c: recv 10b from 0 tag 4
d: send 20b to 2
d requires c
e: calc 5
e irequires d
send 30b to 2 tag 1
}
rank 2 {
f: recv 20b from 1
g: calc 7
h: recv 30b from 1 tag 1
h requires g
i: send 40b to 0
i requires f
i requires h
}
`), eight(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []Flow{
		{Src: 0, Dst: 0, Compute: true, Start: time.Microsecond},
		{Src: 0, Dst: 1, Bytes: 10, Waits: &Waits{After: []int32{0}}},
		{Src: 1, Dst: 2, Bytes: 20, Waits: &Waits{After: []int32{1}}},
		{Src: 1, Dst: 1, Compute: true, Waits: &Waits{After: []int32{1}, Delay: 5}},
		{Src: 1, Dst: 2, Bytes: 30},
		{Src: 2, Dst: 2, Compute: true, Start: 7},
		{Src: 2, Dst: 0, Bytes: 40, Waits: &Waits{After: []int32{2, 4, 5}}},
	}
	if !reflect.DeepEqual(flows, want) {
		t.Errorf("%+v\nwant\n%+v", flows, want)
	}
}

// TestFormatErrors refuses files with one line that names the place.
func TestFormatErrors(t *testing.T) {
	topo := eight(t)
	for _, c := range []struct{ name, text, want string }{
		{"a.cm", "Nodes 9\n", "a.cm:1: nodes 9: the topology has 8 hosts"},
		{"a.cm", "0->1 start 0 size 1 colour 3\n", `a.cm:1: "colour": want id, start`},
		{"a.cm", "0->8 start 0 size 1\n", `a.cm:1: 0->8: node "8": want 0 to 7`},
		{"a.cm", "1->1 start 0 size 1\n", "a.cm:1: 1->1: a node sends to itself"},
		{"a.cm", "0->1 start 0\n", "a.cm:1: there is no size"},
		{"a.cm", "0->1 start 0 size\n", "a.cm:1: size: the number is missing"},
		{"a.cm", "0->1 size 5\n", "a.cm:1: want either start or trigger"},
		{"a.cm", "0->1 start 0 trigger 1 size 5\n", "a.cm:1: want either start or trigger"},
		{"a.cm", "0->1 start 0 size 5 id 1\n1->2 start 0 size 5 id 1\n", "a.cm:2: id 1: line 1 has it too"},
		{"a.cm", "0->1 id 1 trigger 1 size 5\n", "a.cm:1: trigger 1: there is no such trigger"},
		{"a.cm", "0->1 id 1 start 0 size 5 send_done_trigger 7\n", "a.cm:1: trigger 7: there is no such trigger"},
		{"a.cm", "0->1 id 1 trigger 1 size 5\ntrigger id 1 oneshot\n", "a.cm:1: trigger 1 is never fired: 0 of 1"},
		{"a.cm", "0->1 start 0 size 5 send_done_trigger 1\n0->1 trigger 1 size 5\ntrigger id 1 count 2 barrier\n", "a.cm:2: trigger 1 is never fired: 1 of 2"},
		{"a.cm", "0->1 start 0 size 5 send_done_trigger 1\n0->2 start 0 size 5 send_done_trigger 1\n0->1 trigger 1 size 5\ntrigger id 1 oneshot\n", "a.cm:4: trigger 1: 2 connections activate it: want 1"},
		{"a.cm", "0->1 start 0 size 5 send_done_trigger 1\n0->2 trigger 1 size 5\n0->3 trigger 1 size 5\ntrigger id 1 multishot\n", "a.cm:3: trigger 1 is never fired: 1 of 2"},
		{"a.cm", "0->1 trigger 1 size 5 send_done_trigger 1\ntrigger id 1 oneshot\n", "a.cm:1: connections wait for each other: line 1 after line 1"},
		{"a.cm", "trigger id 1\n", "a.cm:1: trigger 1: want oneshot, multishot or barrier"},
		{"a.cm", "trigger id 1 barrier\n", "a.cm:1: trigger 1: barrier with count 0"},
		{"a.cm", "Connections 2\n0->1 start 0 size 1\n", "a.cm: Connections 2 in the header: the file has 1"},
		{"a.cm", "Triggers 1\n0->1 start 0 size 1\n", "a.cm: Triggers 1 in the header: the file has 0"},
		{"a.cm", "failure switch_type AGG switch_id 1 link_id 0\n", "a.cm:1: failure: want the link among the faults"},
		{"a.cm", "Nodes 4\n", "a.cm: there is no connection"},
		{"a.cm", "Nodes 8\n", "a.cm: there is no connection"},
		{"a.cm", "Nodes 4 5\n", "a.cm:1: Nodes 4 5: want a number"},
		{"a.cm", "0->1 start 0 size 0\n", "a.cm:1: size 0: want a number above 0"},
		{"a.cm", "0->1 start 0 size 5 size 5\n", "a.cm:1: size: there are two"},
		{"a.cm", "0->1 start 0 size 1125899906842624\n0->0\n", "a.cm:2: 0->0: a node sends to itself"},
		{"a.cm", "0->1 start 0 size 1125899906842625\n", "a.cm:1: size: 1125899906842625: want at most 1125899906842624"},
		{"a.cm", "0->1 start -1 size 5\n", `a.cm:1: start: "-1": want a number`},
		{"a.cm", "0->1 start 0 size 5 prio 0 recv_done_trigger 7\n", "a.cm:1: trigger 7: there is no such trigger"},
		{"a.cm", "-1->1 start 0 size 5\n", `a.cm:1: -1->1: node "-1": want 0 to 7`},
		{"a.cm", "trigger oneshot\n", "a.cm:1: trigger: there is no id"},
		{"a.cm", "trigger id 1 count 2 oneshot\n", "a.cm:1: trigger 1: oneshot with count 2: a barrier needs a count above 0, other triggers have none"},
		{"a.cm", "trigger id 0 oneshot\n", "a.cm:1: trigger: 0: want a number above 0"},
		{"a.cm", "trigger id\n", "a.cm:1: trigger: id: the number is missing"},
		{"a.cm", "trigger id 1 twice\n", "a.cm:1: trigger: twice: want id, count, oneshot, multishot or barrier"},
		{"a.cm", "trigger id 1 oneshot\ntrigger id 1 oneshot\n", "a.cm:2: trigger 1: line 1 has it too"},
		{"a.goal", "num_ranks 2\nrank 0\n", "a.goal:2: rank: want rank N {"},
		{"a.goal", "num_ranks 2\nrank 0 (\n", "a.goal:2: rank: want rank N {"},
		{"a.goal", "num_ranks 2\nrank x {\n", "a.goal:2: rank: want rank N {"},
		{"a.goal", "num_ranks 2\nrank 0 {\nrank 1 {\n", "a.goal:3: rank 1 within rank 0: want } first"},
		{"a.goal", "num_ranks 2\nrank 2 {\n", "a.goal:2: rank 2: want 0 to 1, by num_ranks"},
		{"a.goal", "num_ranks 0\n", "a.goal:1: num_ranks: want a number of ranks"},
		{"a.goal", "num_ranks 2 3\n", "a.goal:1: num_ranks: want a number of ranks"},
		{"a.goal", "num_ranks 2\n}\n", `a.goal:2: "}" outside of a rank`},
		{"a.goal", "num_ranks 2\nrank 0 {\nl: send\n", "a.goal:3: want send, recv, calc or requires"},
		{"a.goal", "num_ranks 2\nrank 0 {\nsend 8b to 2\n", "a.goal:3: send to 2: want another rank, 0 to 1"},
		{"a.goal", "num_ranks 2\nrank 0 {\nsend 8b from 1\n", "a.goal:3: send: want send Nb to RANK"},
		{"a.goal", "num_ranks 2\nrank 0 {\nrecv 8b to 1\n", "a.goal:3: recv: want recv Nb from RANK"},
		{"a.goal", "num_ranks 2\nrank 0 {\nsend 8b to\n", "a.goal:3: send: want send Nb to RANK"},
		{"a.goal", "num_ranks 2\nrank 0 {\ncalc 1125899906842625\n", "a.goal:3: calc 1125899906842625: want at most 1125899906842624"},
		{"a.goal", "num_ranks 2\nrank 0 {\ncalc 1125899906842624\ncalc 0 cpu\n", "a.goal:4: cpu: want tag, cpu or nic with a number"},
		{"a.goal", "num_ranks 2\nrank 0 {\n}\n", "a.goal: there is no send"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 3\n}\nrank 1 {\nrecv 8b from 0 tag 4\n}\n", "a.goal:6: recv from 0 tag 4: rank 0 has no such send"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: send 8b to 1\nl2: recv 8b from 1\nl1 requires l2\n}\nrank 1 {\nl1: send 8b to 0\nl2: recv 8b from 0\nl1 requires l2\n}\n", "a.goal:3: operations require each other: line 3 after line 8 after line 3"},
		{"a.cm", "hello\n", `a.cm:1: "hello": want Nodes, Connections`},
		{"a.goal", "rank 0 {\n}\n", "a.goal:1: rank 0: want 0 to -1, by num_ranks"},
		{"a.goal", "num_ranks 9\n", "a.goal:1: num_ranks 9: the topology has 8 hosts"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: send 8b to 1\nl1 requires l2\n}\n", "a.goal:4: l1 requires l2: rank 0 has no operation l2 above"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\n", "a.goal:3: send to 1 tag 0: rank 1 has no such recv"},
		{"a.goal", "num_ranks 2\nrank 1 {\nl1: send 8b to 0 tag 3\n}\nrank 0 {\nl1: recv 8b from 1 tag 3\nl2: send 8b to 1 tag 2\nl3: send 8b to 1 tag 1\n}\n", "a.goal:7: send to 1 tag 2: rank 1 has no such recv"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: recv 8b from 1\n}\n", "a.goal:3: recv from 1 tag 0: rank 1 has no such send"},
		{"a.goal", "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 9b from 0\n}\n", "a.goal:6: recv 9b: its send, on line 3, has 8 bytes"},
		{"a.goal", "num_ranks 2\nrank 0 {\nsend 8b to 0\n}\n", "a.goal:3: send to 0: want another rank"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl: calc 1\nl: calc 2\n}\n", "a.goal:4: label l: line 3 has it too"},
		{"a.goal", "num_ranks 2\nrank 0 {\ncalc x\n}\n", "a.goal:3: calc x: want a number"},
		{"a.goal", "num_ranks 2\nrank 0 {\njump 3\n}\n", `a.goal:3: "jump": want send, recv, calc or requires`},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: send -5b to 1\n}\n", "a.goal:3: send -5b: want a number above 0"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: send 0b to 1\n}\n", "a.goal:3: send 0b: want a number above 0"},
		{"a.goal", "num_ranks 2\nrank 0 {\nl1: calc -1\n}\n", "a.goal:3: calc -1: want a number above 0"},
		{"a.goal", "num_ranks 2\nrank 0 {\ncalc 3 gpu 1\n}\n", "a.goal:3: gpu 1: want tag, cpu or nic"},
		{"a.goal", "num_ranks 2\nrank 0 {\n", "a.goal:2: rank 0 has no end"},
		{"a.goal", "num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n", "a.goal:3: operations require each other"},
		{"a.goal", "calc 3\n", `a.goal:1: "calc" outside of a rank`},
		{"a.goal", "num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n", "a.goal:4: rank 0: line 2 has it too"},
		{"a.goal", "", "a.goal: there is no num_ranks"},
		{"a.txt", "id,src,dst,bytes,after-ack,delay\n1,0,1,5,,\n2,0,-,-,1,10us\n", "a.txt:3: after-ack: a computation"},
	} {
		_, err := parseList(c.name, []byte(c.text), topo)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestFormatLimits expects errors for flows that a format cannot express.
func TestFormatLimits(t *testing.T) {
	topo := eight(t)
	after := func(places ...int32) *Waits { return &Waits{After: places} }
	for _, c := range []struct {
		write func([]Flow, *fabric.Topology) ([]byte, error)
		flows []Flow
		want  string
	}{
		{Matrix, []Flow{{Src: 1, Dst: 1, Compute: true}}, "flow 1: a connection matrix has no computations"},
		{Matrix, []Flow{{Dst: 1, Bytes: 1, Service: 1}}, "flow 1: a connection matrix has no services"},
		{Matrix, []Flow{{Dst: 1, Bytes: 1}, {Src: 2, Dst: 2, Compute: true, Waits: after(0)}}, "flow 2: a connection matrix has no computations"},
		{Goal, []Flow{{Dst: 1, Bytes: 1, Service: 1}}, "flow 1: a schedule has no services"},
		{Matrix, []Flow{{Dst: 1, Bytes: 1, Start: 1500}}, "flow 1: start 1.5µs: a connection matrix has whole microseconds"},
		{Matrix, []Flow{{Dst: 1, Bytes: 1}, {Dst: 1, Bytes: 1, Waits: &Waits{After: []int32{0}, Delay: 1}}}, "flow 2: a connection matrix has no start or delay with a trigger"},
		{Matrix, []Flow{{Dst: 1, Bytes: 1}, {Dst: 2, Bytes: 1}, {Dst: 1, Bytes: 1, Waits: after(0)}, {Dst: 2, Bytes: 1, Waits: after(0, 1)}}, "flow 4: flow 1 starts other flows too: a connection has one trigger"},
		{Goal, []Flow{{Dst: 1, Bytes: 1}, {Src: 2, Dst: 3, Bytes: 1, Waits: after(0)}}, "flow 2: it waits for flow 1 between other hosts: a schedule has requirements within a rank"},
		{Goal, []Flow{{Dst: 1, Bytes: 1}, {Dst: 2, Bytes: 1, Start: 5, Waits: after(0)}}, "flow 2: a schedule cannot combine a start time with requirements"},
	} {
		_, err := c.write(c.flows, topo)
		if err == nil || err.Error() != c.want {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// FuzzFormats reads anything without a panic.
func FuzzFormats(f *testing.F) {
	files, _ := filepath.Glob("../../../testdata/oracle/ai/formats/*")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Ext(name) == ".cm", text)
	}
	topo := eight(f)
	f.Fuzz(func(t *testing.T, matrix bool, text []byte) {
		name, write := "x.goal", Goal
		if matrix {
			name, write = "x.cm", Matrix
		}
		flows, err := parseList(name, text, topo)
		if err != nil {
			return
		}
		if out, err := write(flows, topo); err == nil {
			if _, err := parseList(name, out, topo); err != nil {
				t.Errorf("written again: %v\n%s", err, out)
			}
		}
	})
}
