package manifest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// refuses decodes a manifest and returns the message of the error without the file and the
// line, or "".
func refuses(text string) string {
	_, err := manifest.Decode("m", []byte(text))
	got := message(err)
	if i := strings.Index(got, ": "); i >= 0 {
		got = got[i+2:]
	}
	return got
}

// A manifest has a version, a name and an architecture before all.
func TestHead(t *testing.T) {
	for text, want := range map[string]string{
		"version: 2\nscheme: x\narch: v1model":                                         "",
		"scheme: x\narch: v1model":                                                     "version: is missing: want 2",
		"version: 3\nscheme: x":                                                        "version: is 3: this p4lb reads version 2",
		"version: [2]\nscheme: x":                                                      "version: is a list: this p4lb reads version 2",
		"version: 2\narch: v1model":                                                    "scheme: is missing: want a name for the program",
		"version: 2\nscheme: x":                                                        "arch: is missing: want v1model, tna, t2na",
		"version: 2\nscheme: x\narch: v1model\nqueues: 8":                              "",
		"version: 2\nscheme: x\narch: v1model\nqueues: 9":                              "queues: is 9: want 1 to 8",
		"version: 2\nscheme: x\narch: t2na\nqueues: 17":                                "queues: is 17: want 1 to 16",
		"version: 2\nscheme: x\narch: v1model\nqueues: -1":                             "queues: is -1: want 1 to 8",
		"version: 2\nscheme: x\narch: v1model\nweights: {from: register}":              `weights.register: there is no register ""`,
		"version: 2\nscheme: x\narch: v1model\nweights: {from: register, register: a}": `weights.register: there is no register "a"`,
		"[1, 2]": "want keys with values, not a list: the first is version: 2",
		"word":   "want keys with values, not",
		"a: {":   "",
	} {
		got := refuses(text)
		if text == "a: {" {
			if got == "" {
				t.Error("half a text passes")
			}
			continue
		}
		if !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q:\ngot  %s\nwant %s", text, got, want)
		}
	}
	if err := manifest.Check(&manifest.Manifest{}, &configv1.P4Info{}); err == nil || err.Error() != "version: is 0: want 2" {
		t.Errorf("no version: %v", err)
	}
	m := &manifest.Manifest{Version: 2, Scheme: "x"}
	if err := manifest.CheckFile("m", []byte("version: 2\nscheme: x"), m, nil); err == nil || err.Error() != "m:1: arch: is missing: want v1model, tna, t2na" && err.Error() != "m: arch: is missing: want v1model, tna, t2na" {
		t.Errorf("no architecture: %v", err)
	}
	if err := manifest.CheckFile("m", []byte("{"), m, nil); err == nil || !strings.HasPrefix(err.Error(), "m:1: ") {
		t.Errorf("half a text: %v", err)
	}
}

// A value that Unmarshal reads has the words of its type. Texts up to 8 KiB are cached, with
// the same result.
func TestUnmarshal(t *testing.T) {
	for range 2 {
		var r manifest.Register
		var list struct {
			Name []string `json:"name"`
		}
		if err := manifest.Unmarshal("r", []byte("name: a\nkind: count"), &r); err != nil || r.Name != "a" || r.Kind != manifest.Count {
			t.Errorf("%+v, %v", r, err)
		}
		if err := manifest.Unmarshal("r", []byte("name: a\nkind: cuont"), &r); err == nil || err.Error() != `r:2: kind: there is no "cuont"; did you mean count?` {
			t.Errorf("a wrong word: %v", err)
		}
		if err := manifest.Unmarshal("r", []byte("name: a\nsize: x"), &r); err == nil || err.Error() != `r:2: size: "x": want a whole number` {
			t.Errorf("a wrong number: %v", err)
		}
		if err := manifest.Unmarshal("r", []byte("{"), &r); err == nil || !strings.HasPrefix(err.Error(), "r:1: ") {
			t.Errorf("half a text: %v", err)
		}
		if err := manifest.Unmarshal("r", []byte("name: ["+strings.Repeat("a, ", 4000)+"]"), &list); err != nil || len(list.Name) != 4000 {
			t.Errorf("a long text: %d names, %v", len(list.Name), err)
		}
	}
}

// Each kind of task requires its header, registers and fields, as docs/manifest.md lists
// them.
func TestTaskNeeds(t *testing.T) {
	for _, test := range []struct {
		kind      string
		registers string // all of them
		either    string // one that may replace one of registers
		fields    string
		header    string // fields of the header
		filters   bool
	}{
		{kind: "probe", fields: "period", header: "origin"},
		{kind: "path-probe", fields: "period", header: "from-leaf to-leaf path"},
		{kind: "granularity", registers: "delay moment granularity", fields: "period"},
		{kind: "threshold", registers: "threshold"},
		{kind: "rezero", registers: "queue", either: "in", fields: "period"},
		{kind: "recirculation-limit", registers: "recirculation-time limit queue", either: "in", fields: "period limit"},
		{kind: "failure-detection", registers: "recirculations packets port-recirculations limit faulty", fields: "period"},
		{kind: "expire", registers: "moment best", fields: "period"},
		{kind: "ageing", registers: "deadline slot"},
		{kind: "filter", fields: "rate window", filters: true},
		{kind: "marks-filter", fields: "window", filters: true},
		{kind: "send", fields: "period frame"},
	} {
		values := map[string]string{"period": "period: 1ms", "limit": "limit: 3", "rate": "rate: 5", "window": "window: 1us", "frame": "frame: ['1:8']"}
		write := func(registers, fields, header []string, filters bool) string {
			text := "version: 2\nscheme: x\narch: v1model\nregisters: [{name: r}]\nheaders: [{name: h, ether_type: 1, fields: ["
			for _, f := range header {
				text += "{name: f, width: 8, carries: " + f + "},"
			}
			text += "]}]\ntasks: [{kind: " + test.kind
			if test.header != "" {
				text += ", header: h"
			}
			text += ", registers: {"
			for _, r := range registers {
				text += r + ": r,"
			}
			text += "}"
			for _, f := range fields {
				text += ", " + values[f]
			}
			if filters {
				text += ", filters: [f]"
			}
			return text + "}]"
		}
		registers, fields, header := strings.Fields(test.registers), strings.Fields(test.fields), strings.Fields(test.header)
		if got := refuses(write(registers, fields, header, test.filters)); got != "" {
			t.Errorf("%s: %s", test.kind, got)
		}
		without := func(list []string, i int) []string { return slices.Delete(slices.Clone(list), i, i+1) }
		for i, r := range registers {
			got := refuses(write(without(registers, i), fields, header, test.filters))
			if test.either != "" && i == len(registers)-1 {
				if got != "tasks[0].registers: task "+test.kind+" wants a register for "+r+" or "+test.either {
					t.Errorf("%s without %s: %s", test.kind, r, got)
				}
				if got := refuses(write(append(without(registers, i), test.either), fields, header, test.filters)); got != "" {
					t.Errorf("%s with %s for %s: %s", test.kind, test.either, r, got)
				}
			} else if got != "tasks[0].registers: task "+test.kind+" wants a register for "+r {
				t.Errorf("%s without %s: %s", test.kind, r, got)
			}
		}
		for i, f := range fields {
			want := "tasks[0]." + f + ": is missing: task " + test.kind + " wants it"
			if test.kind == "probe" {
				want = "tasks[0].period: task probe wants either a period or theta, which the period follows from"
			}
			if got := refuses(write(registers, without(fields, i), header, test.filters)); got != want {
				t.Errorf("%s without %s: %s", test.kind, f, got)
			}
		}
		for i, f := range header {
			want := "tasks[0].header: header h has no field that carries " + f + ", which task " + test.kind + " sends"
			if got := refuses(write(registers, fields, without(header, i), test.filters)); got != want {
				t.Errorf("%s without %s: %s", test.kind, f, got)
			}
		}
		if test.filters {
			if got := refuses(write(registers, fields, header, false)); got != "tasks[0].filters: task "+test.kind+" wants the filters that it sets" {
				t.Errorf("%s without filters: %s", test.kind, got)
			}
		}
		if test.kind == "send" {
			continue
		}
		for _, f := range []string{"in: 3", "returns: r", "frame: ['1:8']"} {
			name, _, _ := strings.Cut(f, ":")
			text := strings.Replace(write(registers, fields, header, test.filters), "tasks: [{", "tasks: [{"+f+", ", 1)
			if got := refuses(text); got != "tasks[0]."+name+": task "+test.kind+" sends no frame of yours: want the kind send" {
				t.Errorf("%s with %s: %s", test.kind, f, got)
			}
		}
	}
}

// Tasks can be checked alone.
func TestTasksAlone(t *testing.T) {
	for kind, want := range map[manifest.TaskKind]string{"expier": `tasks[0].kind: there is no "expier"; did you mean expire?`, "": "tasks[0].kind: is missing: want probe, path-probe", "expire": "tasks[0].registers: task expire wants a register for moment"} {
		m := &manifest.Manifest{Tasks: []manifest.Task{{Kind: kind}}}
		if got := message(m.ValidateTasks()); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", kind, got, want)
		}
	}
}

// Words of each nest in an order that makes sense, and facts of a frame stand alone.
func TestRepeats(t *testing.T) {
	const head = "version: 2\nscheme: x\narch: v1model\n"
	entry := func(each, match string) string {
		return head + "tables: [{name: t, entries: [{each: " + each + ", match: {k: " + match + "}, action: a}]}]"
	}
	send := func(text string) string { return head + "tasks: [{kind: send, period: 1s, " + text + "}]" }
	for text, want := range map[string]string{
		entry("server", "1"):                  "tables[0].entries[0].each: a server is one of a service: want service before it, as in service server",
		entry("service", "$service-port"):     "",
		entry("service server", "$server"):    "",
		entry("service host server", "1"):     "tables[0].entries[0].each: a server is a host: want no other host before it",
		entry("source", "1"):                  "tables[0].entries[0].each: a source is a leaf that sends to another: want leaf before it, as in leaf source",
		entry("leaf source", "$source"):       "",
		entry("sender", "1"):                  "tables[0].entries[0].each: a sender is a host that sends to another: want host before it, as in host sender",
		entry("host sender", "$sender-leaf"):  "",
		entry("service server path", "$path"): "",
		entry("leaf path", "$path"):           "",
		entry("route path", "$path"):          "",
		entry("group path", "$path"):          "",
		entry("port path", "1"):               "tables[0].entries[0].each: a path is one to something: want a host, route, leaf or group before it, as in group path",
		entry("port 0..3", "$i + $port"):      "",
		entry("port", "$time"):                "tables[0].entries[0].match.k: there is no $time here: it is one of the frames of a task",
		entry("port", "$sequence"):            "tables[0].entries[0].match.k: there is no $sequence here: it is one of the frames of a task",
		entry("port", "$to-host"):             "tables[0].entries[0].match.k: there is no $to-host here: it is one of the ports of a multicast group",
		head + "registers: [{name: a, fields: [{label: x, width: 8, kind: moment}]}]":               "registers[0].fields[0].unit: field x of register a is a moment: want a unit of time",
		head + "registers: [{name: a, fields: [{label: x, width: 8, valid: 8}]}]":                   "registers[0].fields[0].valid: field x of register a has 8 bits, there is no bit 8",
		head + "registers: [{name: a, fields: [{label: x, width: 8, of: y}]}]":                      `registers[0].fields[0].of: there is no register "y"`,
		head + "registers: [{name: a, fields: [{label: x, width: 8, of: x}]}]":                      "",
		head + "registers: [{name: a}]\ntasks: [{kind: rezero, period: 1s, registers: {queeu: a}}]": `tasks[0].registers: there is no "queeu"; did you mean queue?`,
		entry("port", "1 ? : 2"):                                     "tables[0].entries[0].match.k",
		entry("port", "$coefficient"):                                "tables[0].entries[0].match.k: there is no $coefficient here",
		entry("port", "$up ? $port : $leaf"):                         "tables[0].entries[0].match.k: there is no $leaf here: it is one of each: neighbour, host, leaf, server",
		entry("port", "$leaf ? $port : 1"):                           "tables[0].entries[0].match.k: there is no $leaf here",
		entry("port", "$up ? $leaf : 1"):                             "tables[0].entries[0].match.k: there is no $leaf here",
		send("frame: ['$time:48']"):                                  "",
		send("frame: ['$sequence:16']"):                              "",
		send("frame: ['$sequence + 1:16']"):                          "tasks[0].frame[0]: $sequence + 1: $time and $sequence stand alone, because they are known when the frame is sent",
		send("frame: ['1:8'], in: 3"):                                "",
		send("frame: ['1:8'], in: $port"):                            "tasks[0].in: there is no $port here",
		send("frame: ['1:8'], in: $time"):                            "tasks[0].in: there is no $time here: it is one of the frames of a task",
		send("frame: ['1:8'], each: prot"):                           `tasks[0].each: there is no "prot" to repeat something for; did you mean port?`,
		send("frame: ['1:8'], returns: r"):                           "",
		head + "multicast_groups: [{group: 1, to: $port}]":           "multicast_groups[0].to: there is no $port here",
		head + "multicast_groups: [{each: prt, at: 1, members: up}]": `multicast_groups[0].each: there is no "prt"`,
		head + "clone_sessions: [{each: prt, at: 1}]":                `clone_sessions[0].each: there is no "prt"`,
	} {
		got := refuses(text)
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// Widths of registers come from the types of their cells: bits, signed numbers, bools and
// structs of them. A cell with a part of unknown width has no known width.
func TestCellWidths(t *testing.T) {
	bits := func(n int32) *configv1.P4DataTypeSpec {
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Bitstring{Bitstring: &configv1.P4BitstringLikeTypeSpec{
			TypeSpec: &configv1.P4BitstringLikeTypeSpec_Bit{Bit: &configv1.P4BitTypeSpec{Bitwidth: n}}}}}
	}
	signed := &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Bitstring{Bitstring: &configv1.P4BitstringLikeTypeSpec{
		TypeSpec: &configv1.P4BitstringLikeTypeSpec_Int{Int: &configv1.P4IntTypeSpec{Bitwidth: 12}}}}}
	boolean := &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Bool{Bool: &configv1.P4BoolType{}}}
	tuple := &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Tuple{Tuple: &configv1.P4TupleTypeSpec{}}}
	of := func(name string) *configv1.P4DataTypeSpec {
		return &configv1.P4DataTypeSpec{TypeSpec: &configv1.P4DataTypeSpec_Struct{Struct: &configv1.P4NamedType{Name: name}}}
	}
	member := func(spec *configv1.P4DataTypeSpec) *configv1.P4StructTypeSpec_Member {
		return &configv1.P4StructTypeSpec_Member{TypeSpec: spec}
	}
	info := &configv1.P4Info{TypeInfo: &configv1.P4TypeInfo{Structs: map[string]*configv1.P4StructTypeSpec{
		"pair":    {Members: []*configv1.P4StructTypeSpec_Member{member(bits(16)), member(signed)}},
		"unknown": {Members: []*configv1.P4StructTypeSpec_Member{member(bits(16)), member(tuple)}},
	}}}
	for name, spec := range map[string]*configv1.P4DataTypeSpec{"bits": bits(8), "signed": signed, "bool": boolean, "pair": of("pair"), "unknown": of("unknown"), "tuple": tuple, "wide": bits(64)} {
		info.Registers = append(info.Registers, &configv1.Register{Preamble: &configv1.Preamble{Name: name}, TypeSpec: spec, Size: 4})
	}
	for name, width := range map[string]int{"bits": 8, "signed": 12, "bool": 1, "pair": 28, "unknown": 0, "tuple": 0, "wide": 64} {
		for try, fine := range map[int]bool{width: true, width + 1: width == 0} {
			if try > 64 {
				continue
			}
			m := &manifest.Manifest{Version: 2, Scheme: "x", Arch: manifest.V1Model, Registers: []manifest.Register{{Name: name, Width: try}}}
			if err := manifest.Check(m, info); (err == nil) != fine {
				t.Errorf("%s of %d bits: %v", name, try, err)
			}
		}
		m := &manifest.Manifest{Version: 2, Scheme: "x", Arch: manifest.V1Model, Registers: []manifest.Register{{Name: name, Initial: []manifest.Cell{{Index: 0, Value: 1 << 28}}}}}
		if err := manifest.Check(m, info); (err == nil) != (width == 0 || width > 28) {
			t.Errorf("%s holds 1 << 28: %v", name, err)
		}
	}
}

// What programs do with MAC addresses decides whether their hosts share a segment.
func TestMACs(t *testing.T) {
	const head = "version: 2\nscheme: x\narch: v1model\npaths: 4\n"
	table := func(text string) *manifest.Manifest {
		return decode(t, head+"tables: [{name: t, "+text+"}]")
	}
	plain := table("entries: [{each: host, match: {k: $host-address/32}, action: a, args: {p: $port}}]")
	byMAC := table("entries: [{each: host, match: {k: $host-mac}, action: a, args: {p: $port}}]")
	rewrites := table("entries: [{each: host, match: {k: $host-address/32}, action: a, args: {m: $next-mac}}]")
	carries := table("purpose: member, keys: [{name: k, carries: slot}], actions: [{name: b, params: [{name: p, carries: port}, {name: m, carries: next-mac}]}]")
	own := table("entries: [{each: port, match: {k: $port}, action: a, args: {m: $own-mac}}]")
	for name, m := range map[string]*manifest.Manifest{"plain": plain, "byMAC": byMAC, "rewrites": rewrites, "carries": carries, "own": own} {
		if got, want := m.ByMAC(), name == "byMAC"; got != want {
			t.Errorf("%s forwards by MAC: %v, want %v", name, got, want)
		}
	}
	for _, test := range []struct {
		programs []*manifest.Manifest
		want     bool
	}{
		{nil, true}, {[]*manifest.Manifest{plain}, true}, {[]*manifest.Manifest{own}, true}, {[]*manifest.Manifest{rewrites}, false}, {[]*manifest.Manifest{carries}, false},
		{[]*manifest.Manifest{plain, rewrites}, false}, {[]*manifest.Manifest{rewrites, byMAC}, true}, {[]*manifest.Manifest{carries, own, byMAC}, true},
	} {
		if got := manifest.OneSegment(test.programs); got != test.want {
			t.Errorf("one segment of %d programs: %v, want %v", len(test.programs), got, test.want)
		}
	}
}

// Lookups return the first element of their kind and values for readers.
func TestLookups(t *testing.T) {
	m := &manifest.Manifest{
		Guard: manifest.TrimGuard, Parameters: []manifest.Parameter{{Name: "other", Number: 3}, {Name: "trimmable", Number: 26}},
		Tasks:        []manifest.Task{{Kind: manifest.Rezero, Limit: 1}, {Kind: manifest.SendFrame, Limit: 2}, {Kind: manifest.SendFrame, Limit: 3}},
		Headers:      []manifest.Header{{Name: "a", Kind: manifest.ProbeHeader, Fields: []manifest.HeaderField{{Width: 16}, {Width: 12}, {Width: 4}}}, {Name: "b", Kind: manifest.OverlayHeader}},
		VirtualPorts: []manifest.VirtualPort{{Port: 7}, {Port: 9}},
		Registers:    []manifest.Register{{Name: "C.x", Label: "depth"}, {Name: "C.y"}},
		Tables:       []manifest.Table{{Keys: []manifest.Key{{Name: "p", Carries: manifest.EgressPort}, {Name: "q", Carries: manifest.GroupID}}}},
	}
	if got := m.TrimmableDSCP(); got != 26 {
		t.Errorf("packets with DSCP %d are trimmed", got)
	}
	for _, other := range []*manifest.Manifest{{Guard: "rlb", Parameters: m.Parameters}, {Guard: manifest.TrimGuard}, {Guard: manifest.TrimGuard, Parameters: m.Parameters[:1]}} {
		if got := other.TrimmableDSCP(); got != 0 {
			t.Errorf("%+v trims DSCP %d", other, got)
		}
	}
	if task := m.Task(manifest.SendFrame); task == nil || task.Limit != 2 || m.Task(manifest.Expire) != nil {
		t.Errorf("the task is %+v", task)
	}
	if h := m.Header(manifest.OverlayHeader); h == nil || h.Name != "b" || m.Header(manifest.PauseHeader) != nil || m.HeaderNamed("a").Bytes() != 4 || h.Bytes() != 0 {
		t.Errorf("the header is %+v", h)
	}
	if got := m.VirtualNumbers(); !slices.Equal(got, []int{7, 9}) {
		t.Errorf("virtual ports %v", got)
	}
	if a, b := m.Registers[0].Called(), m.Registers[1].Called(); a != "depth" || b != "y" {
		t.Errorf("registers are called %s and %s", a, b)
	}
	if k := m.Tables[0].Key(manifest.GroupID); k == nil || k.Name != "q" || m.Tables[0].Key(manifest.LeafNumber) != nil {
		t.Errorf("the key is %+v", k)
	}
	for arch, want := range map[manifest.Arch]bool{manifest.V1Model: false, manifest.TNA: true, manifest.T2NA: true} {
		if arch.Hardware() != want {
			t.Errorf("%s is one of Tofino's: %v", arch, !want)
		}
	}
	for unit, want := range map[manifest.Unit]int64{manifest.Nanoseconds: 1, manifest.Microseconds: 1000, manifest.Milliseconds: 1000000, manifest.Ticks: 1024, manifest.Packets: 0, "": 0} {
		if got := unit.Nanoseconds(); got != want {
			t.Errorf("%q has %d ns, want %d", unit, got, want)
		}
	}
	p := manifest.MadeBy("1.2", "gen", []string{"--scheme", "a b"})
	if p.String() != "p4lb 1.2: p4lb gen --scheme 'a b'" || manifest.MadeBy("", "gen", nil).String() != "p4lb: p4lb gen" {
		t.Errorf("made by %s", p)
	}
	a, _ := manifest.ParseExpr("$port + 1")
	b, _ := manifest.ParseExpr(" $port + 1 ")
	c, _ := manifest.ParseExpr("$port+1")
	if !a.Equal(b) || a.Equal(c) || a.Equal(manifest.Expr{}) {
		t.Error("expressions are compared wrongly")
	}
	if v, err := (manifest.Expr{}).Eval(nil); v != 0 || err != nil {
		t.Errorf("no expression is %d, %v", v, err)
	}
	var f manifest.FrameField
	for _, text := range []string{"1:1", "0x812:16", "$port:64", "08:00:00:00:01:11:48"} {
		out := ""
		err := json.Unmarshal([]byte(`"`+text+`"`), &f)
		if err == nil {
			var raw []byte
			if raw, err = json.Marshal(f); err == nil {
				err = json.Unmarshal(raw, &out)
			}
		}
		if err != nil || out != text {
			t.Errorf("the field %s is written as %s: %v", text, out, err)
		}
	}
}

// A parameter must hold the largest slot, and a group needs a parameter for each path.
func TestSlots(t *testing.T) {
	info := &configv1.P4Info{
		Actions: []*configv1.Action{{Preamble: &configv1.Preamble{Id: 1, Name: "C.a"}, Params: []*configv1.Action_Param{
			{Name: "s", Bitwidth: 2}, {Name: "e0", Bitwidth: 8}, {Name: "e1", Bitwidth: 8}, {Name: "e2", Bitwidth: 8}, {Name: "n", Bitwidth: 3},
		}}},
		Tables: []*configv1.Table{{Preamble: &configv1.Preamble{Id: 2, Name: "C.t"}, MatchFields: []*configv1.MatchField{{Name: "k", Bitwidth: 8, Match: &configv1.MatchField_MatchType_{MatchType: configv1.MatchField_EXACT}}}, ActionRefs: []*configv1.ActionRef{{Id: 1}}}},
	}
	group := func(paths int, params ...manifest.Param) error {
		all := append(params, manifest.Param{Name: "n", Carries: manifest.PathCount})
		for _, name := range []string{"s", "e0", "e1", "e2"} {
			if !slices.ContainsFunc(all, func(p manifest.Param) bool { return p.Name == name }) {
				all = append(all, manifest.Param{Name: name, Value: "0"})
			}
		}
		return manifest.Check(&manifest.Manifest{Version: 2, Scheme: "x", Arch: manifest.V1Model, Paths: paths, Tables: []manifest.Table{{
			Name: "C.t", Purpose: manifest.Group, Keys: []manifest.Key{{Name: "k", Carries: manifest.GroupID}}, Actions: []manifest.Action{{Name: "a", Params: all}},
		}}}, info)
	}
	end := func(name string, slot int) manifest.Param {
		return manifest.Param{Name: name, Carries: manifest.WeightEnd, Slot: slot}
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{group(4), ""},
		{group(7), ""},
		{group(8), "tables[0].actions[0].params[0].carries: paths goes up to 8, which the 3 bits of n cannot hold"},
		{group(4, end("e0", 0), end("e1", 1), end("e2", 2)), ""},
		{group(3, end("e0", 0), end("e1", 1)), ""},
		{group(4, end("e0", 0), end("e1", 1)), "paths: is 4: action a of table C.t carries weight-end for 2 paths (tables[0].actions[0])"},
	} {
		if got := message(test.err); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	for paths, want := range map[int]string{4: "", 5: "tables[0].actions[0].params[0].carries: slot goes up to 4, which the 2 bits of s cannot hold", 0: ""} {
		err := manifest.Check(&manifest.Manifest{Version: 2, Scheme: "x", Arch: manifest.V1Model, Paths: paths, Tables: []manifest.Table{{
			Name: "C.t", Actions: []manifest.Action{{Name: "a", Params: []manifest.Param{{Name: "s", Carries: manifest.SlotNumber}}}},
		}}}, info)
		if got := message(err); got != want {
			t.Errorf("%d paths: %s, want %s", paths, got, want)
		}
	}
	for value, want := range map[string]string{"255": "", "*": "tables[0].keys[0].value: *: field k of table C.t is matched exactly: want its value, a fact that it carries, or entries", "1 2": `tables[0].keys[0].value: "1 2": "2" is not expected there`} {
		err := manifest.Check(&manifest.Manifest{Version: 2, Scheme: "x", Arch: manifest.V1Model, Tables: []manifest.Table{{Name: "C.t", Keys: []manifest.Key{{Name: "k", Value: value}}}}}, info)
		if got := message(err); got != want {
			t.Errorf("the key %s: %s, want %s", value, got, want)
		}
	}
}

// A table of each purpose needs key fields and a parameter with facts of the purpose.
func TestPurposes(t *testing.T) {
	for _, test := range []struct{ purpose, keys, params, wantKeys, wantParams string }{
		{"route", "destination", "port", "destination", "port, group, first-member or paths"},
		{"route", "destination", "paths", "destination", ""},
		{"member", "slot", "port", "slot or member", "port or queue"},
		{"member", "member", "queue", "slot or member", ""},
		{"group", "group", "weight", "group", "port, weight, weight-end, queue, service-time, paths, first-member, capacity, capacity-reciprocal or rate"},
		{"port", "port", "", "port or ingress-port", ""},
		{"port", "ingress-port", "own-mac", "", ""},
		{"neighbour", "ingress-port", "session", "port or ingress-port", ""},
		{"leaf", "leaf", "port", "leaf", "port"},
		{"leaf-of", "destination", "leaf", "destination", "leaf"},
		{"arrival", "leaf ingress-port", "slot", "leaf", "slot or multicast-group"},
		{"arrival", "leaf ingress-port", "multicast-group", "", ""},
		{"identity", "", "switch", "", "switch or leaf"},
		{"upstream", "port", "session", "ingress-port or port", "session"},
		{"polynomial", "", "coefficient", "", "coefficient"},
	} {
		table := func(keys, params []string) string {
			text := "version: 2\nscheme: x\narch: v1model\npaths: 4\ntables: [{name: t, purpose: " + test.purpose + ", keys: ["
			for i, k := range keys {
				text += "{name: k" + string(rune('0'+i)) + ", carries: " + k + "},"
			}
			text += "], actions: [{name: a, params: ["
			for i, p := range params {
				text += "{name: p" + string(rune('0'+i)) + ", carries: " + p + "},"
			}
			return text + "]}]}]"
		}
		keys, params := strings.Fields(test.keys), strings.Fields(test.params)
		if got := refuses(table(keys, params)); got != "" {
			t.Errorf("%s: %s", test.purpose, got)
		}
		if test.wantKeys != "" {
			if got, want := refuses(table(keys[1:], params)), "tables[0].keys: table t is for "+test.purpose+": want a field that carries "+test.wantKeys; got != want {
				t.Errorf("%s without a key: %s, want %s", test.purpose, got, want)
			}
		}
		if test.wantParams != "" {
			if got, want := refuses(table(keys, nil)), "tables[0].actions: table t is for "+test.purpose+": want an action with a parameter that carries "+test.wantParams; got != want {
				t.Errorf("%s without a parameter: %s, want %s", test.purpose, got, want)
			}
		}
		if got := refuses(table(keys, append(params, "host-place"))); !strings.HasPrefix(got, "tables[0].actions[0].params["+string(rune('0'+len(params)))+"].carries: nothing is known of host-place in a table for "+test.purpose) {
			t.Errorf("%s with host-place: %s", test.purpose, got)
		}
	}
}
