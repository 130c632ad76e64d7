package codegen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// A folder of a user: a signal, a part of it and a row. Line 1 of each text is
// the first.
const (
	sentSignal = `---
kind: signal
name: sent
about: bytes that have been sent to each port
parts: [ports, half]
gives: [cost]
by-port: true
parameters:
- name: shift
  unit: number
  default: 4
  min: 0
  max: 16
  meaning: bytes count in units of 2^shift
  source: made up
- name: link
---
{{define "manifest"}}
registers:
- {name: sent, type: bit<32>, index: port, unit: bytes, writer: data plane, meaning: bytes sent}
{{end}}

{{define "egress.apply"}}
bit<32> so;
sent.read(so, (bit<32>)std.egress_port);
sent.write((bit<32>)std.egress_port, so + std.packet_length);
{{end}}

{{define "cost"}}
bit<32> cost;
sent.read(cost, (bit<32>)port);
cost = cost >> {{.Int "shift"}};
{{end}}
`
	halfPart = `---
kind: part
name: half
---
{{define "ingress.start"}}
// halves are counted elsewhere
{{end}}
`
	sentRows = `rows:
- name: least-sent
  title: packets to the path that least has been sent to, by 2^{shift} bytes
  source: made up
  granularity: packet
  signal: sent
  choice: least
  defaults: {shift: 6}
`
)

// folder is the user's folder, with some files replaced.
func folderOf(files map[string]string) fstest.MapFS {
	dir := fstest.MapFS{}
	for _, list := range []map[string]string{
		{"v1model/signal-sent.tmpl": sentSignal, "v1model/part-half.tmpl": halfPart, "rows.yaml": sentRows}, files,
	} {
		for name, text := range list {
			dir[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return dir
}

func TestOutside(t *testing.T) {
	c, err := Standard().With("mine", folderOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	row, err := c.Parse("least-sent+rlb")
	if err != nil {
		t.Fatal(err)
	}
	if want := "packets to the path that least has been sent to, by 2^6 bytes, avoiding paths"; !strings.HasPrefix(row.Title, want) {
		t.Error(row.Title)
	}
	if got := row.Outside(); !slices.Equal(got, []string{"signal sent"}) {
		t.Error(got)
	}
	p, err := Generate(row, Params{Set: map[string]string{"shift": "9"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"register<bit<32>>(PORTS) sent; // bytes sent", "cost = cost >> 9;", "// halves are counted elsewhere", "least has been sent to, by 2^9"} {
		if !strings.Contains(strings.Join(strings.Fields(p.P4), " "), strings.Join(strings.Fields(strings.ReplaceAll(want, "\n", " ")), " ")) {
			t.Errorf("the program has no %q:\n%s", want, p.P4)
		}
	}
	if _, err := Generate(row, Params{Arch: "tna"}); err == nil || !strings.Contains(err.Error(), "signal sent: it is only in mine/v1model/signal-sent.tmpl; add a file for tna") {
		t.Error(err)
	}

	// The other rows do not change, and p4lb's own catalogue does not contain the row.
	names := c.Names()
	if want := append(Standard().schemeNames(), "least-sent"); !slices.Equal(names[:len(want)], want) {
		t.Error(names)
	}
	if _, err := Parse("least-sent"); err == nil {
		t.Error("p4lb's own catalogue has least-sent")
	}
	if composed, err := c.Compose("flowlet", "sent", "sampled", "rlb"); err != nil || composed.Name != "flowlet-sent-sampled+rlb" {
		t.Error(composed, err)
	}
	mine, err := c.Lookup("letflow")
	if err != nil {
		t.Fatal(err)
	}
	own, err := Lookup("letflow")
	if err != nil {
		t.Fatal(err)
	}
	a, err := Generate(mine, Params{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Generate(own, Params{})
	if err != nil || a.P4 != b.P4 || len(mine.Outside()) != 0 {
		t.Error(err, mine.Outside())
	}
}

// TestOutsideWrong: each mistake is reported with file, line and a remedy.
func TestOutsideWrong(t *testing.T) {
	const block, part, rows = "v1model/signal-sent.tmpl", "v1model/part-half.tmpl", "rows.yaml"
	for _, c := range []struct{ file, old, new, want string }{
		{block, "---\nkind", "kind", "mine/v1model/signal-sent.tmpl:1: want the head of a block first, between two lines ---"},
		{block, "---\n{{", "{{", "mine/v1model/signal-sent.tmpl:1: the head does not end"},
		{block, sentSignal, "---\n---\n", `mine/v1model/signal-sent.tmpl:1: there is no kind ""`},
		{block, sentSignal, "---\na" + strings.Repeat(": ", 1000) + "\n---\n", `mine/v1model/signal-sent.tmpl:2: nested too deeply`},
		{block, "parts: [ports, half]", "parts: &a [ports, half]", `mine/v1model/signal-sent.tmpl:5: want plain keys and values, without anchors`},
		{block, "kind: signal", "kind: singal", `mine/v1model/signal-sent.tmpl:2: there is no kind "singal"; did you mean signal?`},
		{block, "kind: signal", "kind: skeleton", "mine/v1model/signal-sent.tmpl:2: kind skeleton is reserved for p4lb: want one of part,"},
		{block, "name: sent", "name: Sent", `mine/v1model/signal-sent.tmpl:3: name "Sent": want small letters`},
		{block, "name: sent", "name: queue", "mine/v1model/signal-sent.tmpl:3: signal queue exists already, in templates/v1model/signal-queue.tmpl"},
		{block, "about: ", "aboot: ", `mine/v1model/signal-sent.tmpl:4: there is no key "aboot"; did you mean about?`},
		{block, "about: bytes that have been sent to each port\n", "", "mine/v1model/signal-sent.tmpl:2: want about: what signal sent does, in one line"},
		{block, "parts: [ports, half]", "parts: [ports, hafl]", `mine/v1model/signal-sent.tmpl:5: there is no part "hafl"; did you mean half?`},
		{block, "parts: [ports, half]", "parts: [ports]", "mine/v1model/part-half.tmpl:3: no block is built on part half: name it under parts of one that is, or remove it"},
		{block, "gives: [cost]", "gives: [costs]", `mine/v1model/signal-sent.tmpl:6: there is no thing "costs"; did you mean cost?; what it is stands in rows.yaml under things`},
		{block, "gives: [cost]", "gives: [cost, weight]", `mine/v1model/signal-sent.tmpl:2: want {{define "weight"}} behind the head of signal sent`},
		{block, "gives: [cost]", "reads: cost", "mine/v1model/signal-sent.tmpl:6: reads is a key of a granularity or a choice, not of a signal"},
		{block, "by-port: true", "by-port: port", "mine/v1model/signal-sent.tmpl:7: "},
		{block, "by-port: true", "check: lood", `mine/v1model/signal-sent.tmpl:7: there is no check "lood"; did you mean load?`},
		{block, "by-port: true", "sees-to-flows: true", "mine/v1model/signal-sent.tmpl:7: sees-to-flows is a key of a choice, not of a signal"},
		{block, "by-port: true", "transit: [half]", "mine/v1model/signal-sent.tmpl:7: transit is for a signal between the edges: want edge: true beside it"},
		{block, "by-port: true", "attributes:\n- {name: size, type: bit<8>}", "mine/v1model/signal-sent.tmpl:8: want name, type and meaning of an attribute"},
		{block, "unit: number", "unit: nubmer", `mine/v1model/signal-sent.tmpl:10: parameter shift: there is no unit "nubmer"; did you mean number?`},
		{block, "default: 4", "default: 4us", `mine/v1model/signal-sent.tmpl:11: parameter shift: shift="4us": want a number`},
		{block, "default: 4", "default: 17", `mine/v1model/signal-sent.tmpl:11: parameter shift: shift=17: want at most 16`},
		{block, "min: 0", "min: none", `mine/v1model/signal-sent.tmpl:12: parameter shift: "none": want a number`},
		{block, "min: 0", "constant: shift", `mine/v1model/signal-sent.tmpl:12: parameter shift: want a name of capitals, and the type of the constant beside it`},
		{block, "min: 0", "constant: T_B\n  type: bit<8>", `mine/v1model/signal-sent.tmpl:12: parameter shift: T_B is parameter tb already`},
		{block, "  source: made up\n", "", "parameter shift: want its default, its meaning and its source"},
		{block, "- name: shift", "- name: gap", "parameter gap: it is declared already: want its name alone, which stands for what the other block declares"},
		{block, "- name: link", "- name: lnik", "mine/v1model/signal-sent.tmpl:16: parameter lnik: no block declares it: want its unit, default, meaning and source; there are "},
		{block, "- name: link", "- name: link\n  default: 40G", "parameter link: another block declares it: want its name alone, or a unit and a name of its own"},
		{block, `{{define "cost"}}`, `{{define "cost"}`, "mine/v1model/signal-sent.tmpl:29: unexpected"},
		{block, `{{define "cost"}}`, `{{define "coast"}}`, `mine/v1model/signal-sent.tmpl:2: want {{define "cost"}} behind the head of signal sent`},
		{part, "name: half\n", "name: half\nparts: [half]\n", "mine/v1model/part-half.tmpl:4: a circle of parts: half needs half"},
		{part, "name: half\n", "name: half\ngives: [cost]\n", "mine/v1model/part-half.tmpl:4: gives is a key of a signal, not of a part"},
		{rows, "choice: least", "choise: least", `mine/rows.yaml:7: there is no key "choise"; did you mean choice?`},
		{rows, "choice: least", "choice: leest", `mine/rows.yaml:7: row least-sent: there is no choice "leest"; did you mean least?`},
		{rows, "choice: least", "choice: ordered", "row least-sent: no scheme packet-sent-ordered: choice ordered reads the queueing delay of each path, which signal sent does not give; queue, one-way would"},
		{rows, "choice: least", "choice: uniform", "signal sent is not used: choice uniform looks at nothing"},
		{block, "name: sent", "name: sent\nlike: queues", `mine/v1model/signal-sent.tmpl:4: there is no signal of p4lb "queues"; did you mean queue?`},
		{rows, "name: least-sent", "name: ecmp", "mine/rows.yaml:2: there is a scheme ecmp already"},
		{rows, "title: packets to the path that least has been sent to, by 2^{shift} bytes\n", "\n", "mine/rows.yaml:2: row least-sent: want a title and a source"},
		{rows, "shift: 6", "shfit: 6", `mine/rows.yaml:8: row least-sent: there is no parameter "shfit"`},
		{rows, "2^{shift}", "2^{shfit}", `mine/rows.yaml:3: row least-sent: there is no parameter "shfit"; did you mean shift?`},
		{rows, "shift: 6", "shift: 66", "mine/rows.yaml:8: row least-sent: shift=66: want at most 16"},
		{rows, "choice: least", "choice: least\n  guard: rlb", "row least-sent: a row has no guard of its own: its name with +rlb stands for it with that"},
		{rows, "rows:", "guarded: {rows: [least-set]}\nrows:", `mine/rows.yaml:1: there is no scheme "least-set"; did you mean least-sent?`},
		{rows, "rows:", "rooms: {tofino: {}}\nrows:", `mine/rows.yaml:1: there is no architecture "tofino"`},
	} {
		text := map[string]string{block: sentSignal, part: halfPart, rows: sentRows}[c.file]
		if !strings.Contains(text, c.old) {
			t.Fatalf("%s has no %q", c.file, c.old)
		}
		_, err := Standard().With("mine", folderOf(map[string]string{c.file: strings.Replace(text, c.old, c.new, 1)}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q instead of %q: %v\nwant %s", c.new, c.old, err, c.want)
		}
	}
}

// TestOutsideFolder checks other files in the folder, and several block files.
func TestOutsideFolder(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"circle of three": {map[string]string{
			"v1model/part-half.tmpl": strings.Replace(halfPart, "name: half\n", "name: half\nparts: [third]\n", 1),
			"v1model/part-a.tmpl":    "---\nkind: part\nname: third\nparts: [fourth]\n---\n",
			"v1model/part-b.tmpl":    "---\nkind: part\nname: fourth\nparts: [half]\n---\n",
		}, "mine/v1model/part-a.tmpl:4: a circle of parts: third needs fourth needs half needs third"},
		"a thing for nobody": {map[string]string{
			"rows.yaml":                "things: {age: how old the path is}\n" + sentRows,
			"v1model/signal-sent.tmpl": strings.Replace(sentSignal, "gives: [cost]", "gives: [cost, age]", 1),
		}, "mine/v1model/signal-sent.tmpl:6: signal sent gives age (how old the path is), which no granularity and no choice reads"},
		"a thing from nobody": {map[string]string{
			"rows.yaml":                  "things: {age: how old the path is}\n" + sentRows,
			"v1model/choice-oldest.tmpl": "---\nkind: choice\nname: oldest\nabout: the oldest\nreads: age\n---\n{{define \"choose\"}}meta.slot = 0;{{end}}\n",
		}, "mine/v1model/choice-oldest.tmpl:5: choice oldest reads age, which no signal gives"},
		"for Tofino alone": {map[string]string{
			"tna/signal-late.tmpl": "---\nkind: signal\nname: late\n---\n",
		}, "mine/tna/signal-late.tmpl:3: signal late also needs a file in the folder v1model, with its complete header"},
		"twice": {map[string]string{
			"v1model/signal-twice.tmpl": sentSignal,
		}, "mine/v1model/signal-twice.tmpl:3: signal sent exists already, in mine/v1model/signal-sent.tmpl"},
		"another folder": {map[string]string{
			"v1mode/signal-twice.tmpl": sentSignal,
		}, "mine/v1mode: want the blocks in folders v1model and tna, and rows.yaml beside them"},
	} {
		if _, err := Standard().With("mine", folderOf(c.files)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	if _, err := Standard().With("mine", fstest.MapFS{"readme": {}}); err == nil || !strings.Contains(err.Error(), "mine: want the blocks in folders v1model and tna") {
		t.Error(err)
	}
}

// TestOutsideText checks mistakes that appear when a program is generated.
func TestOutsideText(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"{{.Int \"shift\"}}", "{{.Int \"shfit\"}}", `least-sent has no parameter "shfit"`},
		{"by-port: true", "by-port: true\ncheck: load", "mine/v1model/signal-sent.tmpl:8: check load is about the parameter window: name it under parameters"},
		{"{{.Int \"shift\"}}", "{{.Itn \"shift\"}}", `mine/v1model/signal-sent.tmpl:32:`},
		{"{{.Int \"shift\"}}", "{{.Use \"quarter\" \"x\"}}", `there is no part "quarter"`},
		{"{{.Int \"shift\"}}", "{{.Use \"half\" \"x\"}}", `mine/v1model/part-half.tmpl: part half has no {{define "x"}}`},
		{"{{.Int \"shift\"}}", "{{.Signal \"cost\"}}", `mine/v1model/signal-sent.tmpl: cost uses itself: `},
		{"so + std.packet_length", "so + ;", "least-sent.p4:"},
		{"so + std.packet_length", "so + ;", "sent.write((bit<32>)std.egress_port, so + ;);"},
		{"so + std.packet_length", "so + \"", "least-sent.p4:"},
		{"unit: bytes, writer", "unit: bytes, writes", `mine/v1model/signal-sent.tmpl: what signal sent says of itself: manifest:3: `},
	} {
		if err := generatedWith(t, strings.Replace(sentSignal, c.old, c.new, 1), Params{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.new, err, c.want)
		}
	}
}

// TestOutsideIPv6: a user's block that reads IPv4 headers has no form for IPv6.
func TestOutsideIPv6(t *testing.T) {
	reads := strings.Replace(sentSignal, "so + std.packet_length", "so + (bit<32>)hdr.ipv4.total_len", 1)
	for block, want := range map[string]string{sentSignal: "", reads: "generating least-sent: ipv6: signal sent reads hdr.ipv4, which IPv6 packets do not have: use .Source"} {
		if err := generatedWith(t, block, Params{IPv6: true}); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// generatedWith generates a row with a block as its signal and returns the error.
func generatedWith(t *testing.T, block string, p Params) error {
	t.Helper()
	all, err := Standard().With("mine", folderOf(map[string]string{"v1model/signal-sent.tmpl": block}))
	if err != nil {
		t.Fatal(err)
	}
	row, err := all.Parse("least-sent")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Generate(row, p)
	return err
}

// TestTemplateBombs: a block with endless templates or endless output is refused by a
// documented limit.
func TestTemplateBombs(t *testing.T) {
	doubling := ""
	for i := range 60 {
		doubling += fmt.Sprintf(`{{define "a%d"}}{{template "a%d" .}}{{template "a%[2]d" .}}{{end}}`, i, i+1)
	}
	for _, c := range []struct{ name, apply, more, want string }{
		{"templates that use the next one twice", `{{template "a0" .}}`, doubling + `{{define "a60"}}{{end}}`, "v1model/signal-sent.tmpl: egress.apply: its templates take more than 1048576 steps"},
		{"loops of nothing", "{{range 2000}}{{range 2000}}{{end}}{{end}}", "", "its templates take more than 1048576 steps"},
		{"a loop that is skipped", "{{range 1000000000}}{{continue}}{{end}}", "", "its templates take more than 1048576 steps"},
		{"a long text", `{{range 100000}}` + strings.Repeat("x", 1000) + `{{end}}`, "", "it writes more than 8 MiB"},
		{"a text that doubles", `{{$x := "xx"}}{{range 60}}{{$x = printf "%s%s" $x $x}}{{end}}`, "", "a text of 2097152 bytes, more than 1048576"},
		{"quotes that double", `{{$x := "'"}}{{range 60}}{{$x = js $x}}{{end}}`, "", "a text of 2097152 bytes, more than 1048576"},
		{"itself", `{{template "a" .}}`, `{{define "a"}}{{template "a" .}}{{end}}`, "exceeded maximum template depth"},
	} {
		block := strings.Replace(sentSignal, "bit<32> so;", c.apply, 1) + c.more
		if err := generatedWith(t, block, Params{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzOutside: any two user files are read or refused, and accepted files generate a
// program or an error.
func FuzzOutside(f *testing.F) {
	f.Add(sentSignal, sentRows)
	f.Add("---\nkind: choice\nname: sent\nabout: x\n---\n{{define \"choose\"}}{{.Place \"metadata\"}}{{end}}", "rows: [{name: a, title: b, source: c, granularity: flow, choice: sent}]")
	f.Add("---\nkind: part\nname: half\nparts: [half]\n---\n", "things: {}\nguarded: {rows: [ecmp]}\nrooms: {tna: {ecmp: {paths: 2}}}")
	f.Fuzz(func(t *testing.T, block, rows string) {
		c, err := Standard().With("mine", fstest.MapFS{"v1model/x.tmpl": {Data: []byte(block)}, "rows.yaml": {Data: []byte(rows)}})
		if err != nil {
			return
		}
		for _, row := range c.rows[len(Standard().rows):] {
			for _, arch := range Archs {
				if _, err := Generate(row, Params{Arch: arch}); err != nil && !strings.HasPrefix(err.Error(), "generating "+row.Name+": ") {
					t.Error(err)
				}
			}
		}
	})
}
