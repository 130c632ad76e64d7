package own

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/stf"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// folder creates an example scheme called mine.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files, err := Scaffold("mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(dir, f.Name), string(f.Text))
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func open(t *testing.T, dir, path string) *Scheme {
	t.Helper()
	s, err := Open(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// runTests sends the packets of a scheme's tests through its programs.
func runTests(t *testing.T, dir, path string) {
	t.Helper()
	s := open(t, dir, path)
	tests, err := s.Tests(dir)
	if err != nil || len(tests) != len(s.sources) {
		t.Fatalf("%s: tests of %d programs, %v", path, len(tests), err)
	}
	for _, one := range tests {
		p, err := s.Build(codegen.Params{Role: one.Role})
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := p.Compiled()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range one.Files {
			script, err := stf.Parse(f, read(t, f))
			if err != nil {
				t.Fatal(err)
			}
			sw, err := dataplane.New(compiled.Config, dataplane.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := script.Run(sw); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestScaffold(t *testing.T) {
	dir := folder(t)
	runTests(t, dir, ".")
	for _, bad := range []string{"", "1st", "a b", "../x"} {
		if _, err := Scaffold(bad); err == nil {
			t.Errorf("a scheme may be called %q", bad)
		}
	}
}

const examples = "../../../examples/own"

// TestExamples runs the packet tests of the examples.
func TestExamples(t *testing.T) {
	list, err := os.ReadDir(examples)
	if err != nil || len(list) < 3 {
		t.Fatalf("%d examples, %v", len(list), err)
	}
	for _, e := range list {
		runTests(t, examples, e.Name())
	}
}

// TestNames opens one scheme by its folder, its program and its manifest.
func TestNames(t *testing.T) {
	dir := folder(t)
	find := Source(dir)
	for _, name := range []string{".", "./mine.p4", "mine.p4", "mine.manifest.yaml", dir, dir + "/mine.p4"} {
		s, err := find(name)
		if err != nil || s == nil || s.Name() != "mine" || s.Native() == nil || !slices.Equal(s.Archs(), []string{"v1model"}) {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	for _, name := range []string{"ecmp", "drill+rlb", "drill@tna"} {
		if s, err := find(name); s != nil || err != nil {
			t.Errorf("%s is taken for a path: %v, %v", name, s, err)
		}
	}
}

// TestElsewhere uses a manifest in another folder than its program, with include files and
// macros.
func TestElsewhere(t *testing.T) {
	dir := folder(t)
	for _, sub := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Replace(read(t, filepath.Join(dir, "mine.p4")), "register<bit<32>>(16)", "#include \"size.h\"\n    register<bit<32>>(SLOTS)", 1)
	write(t, filepath.Join(dir, "a/mine.p4"), text)
	write(t, filepath.Join(dir, "b/size.h"), "#ifndef SLOTS\n#define SLOTS 8\n#endif\n")
	manifest := "program: ../a/mine.p4\nincludes: [.]\ndefines: {SLOTS: 64}\n" + read(t, filepath.Join(dir, "mine.manifest.yaml"))
	write(t, filepath.Join(dir, "b/theirs.manifest.yaml"), manifest)
	s := open(t, dir, "b/theirs.manifest.yaml")
	for set, want := range map[string]int{"": 64, "128": 128} {
		p := codegen.Params{Role: "leaf"}
		if set != "" {
			p.Set = map[string]string{"SLOTS": set}
		}
		made, err := s.Build(p)
		if err != nil {
			t.Fatal(err)
		}
		if r := made.Manifest.Register("Forward.taken"); r == nil || r.Size != want || r.Width != 32 {
			t.Errorf("SLOTS=%s: %+v", set, r)
		}
		if list := made.Manifest.Parameters; len(list) != 1 || list[0].Name != "SLOTS" || list[0].Text != strconv.Itoa(want) {
			t.Errorf("SLOTS=%s: the manifest has the parameters %+v", set, list)
		}
	}
	if _, err := s.Build(codegen.Params{Set: map[string]string{"SLOT": "1"}}); err == nil || !strings.Contains(err.Error(), "has no parameter SLOT") {
		t.Error(err)
	}
	if list, err := s.Parameters(""); err != nil || len(list) != 1 || list[0].Name != "SLOTS" || list[0].Default != "64" {
		t.Error(list, err)
	}
}

// TestRoles: a role uses its own program, or the program for all roles.
func TestRoles(t *testing.T) {
	s := open(t, examples, "twochoice")
	leaf, err := s.Build(codegen.Params{Role: "leaf"})
	if err != nil {
		t.Fatal(err)
	}
	spine, err := s.Build(codegen.Params{Role: "spine"})
	if err != nil {
		t.Fatal(err)
	}
	if leaf.Digest == spine.Digest || leaf.Manifest.Role != "leaf" || spine.Manifest.Role != "spine" {
		t.Error(leaf.Manifest.Role, spine.Manifest.Role)
	}
	if again, _ := s.Build(codegen.Params{Role: "leaf"}); again != leaf {
		t.Error("compiled twice")
	}
	if _, err := s.Build(codegen.Params{Role: "core"}); err == nil || err.Error() != "twochoice has no program for the role core: want leaf and spine" {
		t.Error(err)
	}
}

// TestComplete: missing parts of a manifest are added.
func TestComplete(t *testing.T) {
	dir := folder(t)
	write(t, filepath.Join(dir, "mine.manifest.yaml"), "version: 2\nscheme: bare\narch: v1model\n")
	p, err := open(t, dir, ".").Build(codegen.Params{})
	if err != nil {
		t.Fatal(err)
	}
	m := &p.Manifest
	if r := m.Register("Forward.taken"); r == nil || r.Kind != manifest.Opaque || r.Size != 16 || r.Width != 32 {
		t.Errorf("%+v", r)
	}
	if len(m.Tables) != 2 || m.Tables[0].Name != "Forward.routes" || m.Tables[0].Purpose != manifest.None ||
		len(m.Tables[0].Keys) != 1 || m.Tables[0].Keys[0].Match != "lpm" || len(m.Tables[0].Actions) != 3 {
		t.Errorf("%+v", m.Tables)
	}
}

// TestRefuses: an error is one line with its file and position.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"name: Forward.taken", "name: Forward.token", `mine.manifest.yaml:9: registers[0].name: the program has no register "Forward.token"; did you mean Forward.taken?`},
		{"carries: destination", "carries: port", "mine.manifest.yaml:16: tables[0].keys: table Forward.routes is for route: want a field that carries destination"},
		{"    - {name: port, carries: port}\n    - {name: dmac, carries: next-mac}", "    - {name: dmac, carries: next-mac}", "mine.manifest.yaml:20: tables[0].actions[0].params: parameter port of action forward is missing: add it with carries or value"},
		{"purpose: member", "purpose: membre", `mine.manifest.yaml:29: tables[1].purpose: there is no "membre"; did you mean member?`},
		{"paths: 16 ", "paths: 17 ", "mine.manifest.yaml:6: paths: is 17: want 1 to 16, or 0 where the program has no groups"},
		{"arch: v1model", "arch: tna", "mine.p4:160:1: this is a program for v1model; tna wants #include <tna.p4>"},
		{"version: 2", "version: 3", "mine.manifest.yaml:2: version: is 3: this p4lb reads version 2"},
		{"- name: Forward.paths\n  purpose: member", "- name: Forward.paths\n  entries:\n  - {match: {meta.group: 65536, meta.slot: 0}, action: drop}\n  purpose: member",
			"mine.manifest.yaml:30: tables[1].entries[0].match.meta.group: 65536 does not fit the 16 bits of field meta.group"},
		{"- name: Forward.paths\n  purpose: member", "- name: Forward.paths\n  entries:\n  - {match: {meta.group: $host, meta.slot: 0}, action: drop}\n  purpose: member",
			"mine.manifest.yaml:30: tables[1].entries[0].match.meta.group: there is no $host here: it is one of each: port, host, server"},
		{"kind: count,", "kind: count, cells: [{at: 16, value: 1}],", "mine.manifest.yaml:9: registers[0].cells[0].at: is 16: register Forward.taken has 16 cells"},
		{"kind: count,", "kind: cout,", `mine.manifest.yaml:9: registers[0].kind: there is no "cout"; did you mean count?`},
		{"scheme: mine", "scheme: mine\nprogram: none.p4", "mine.manifest.yaml: program: none.p4: no such file or directory"},
	} {
		dir := folder(t)
		file := filepath.Join(dir, "mine.manifest.yaml")
		text := read(t, file)
		if !strings.Contains(text, c.from) {
			t.Fatalf("the scaffold's manifest has no %q", c.from)
		}
		write(t, file, strings.Replace(text, c.from, c.to, 1))
		s, err := Open(dir, ".")
		if err == nil {
			_, err = s.Build(codegen.Params{})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s -> %s:\n%v\nwant\n%s", c.from, c.to, err, c.want)
		}
	}
}

// TestFolders rejects paths that are not schemes.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	check := func(path, want string) {
		t.Helper()
		if s, err := Open(dir, path); s != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	check("none", "no scheme none: no such file or folder")
	check(".", ". is not a scheme: want a program NAME.p4 with a manifest NAME.manifest.yaml")
	write(t, filepath.Join(dir, "a.p4"), "")
	check(".", "a.p4 has no manifest: want a.manifest.yaml")
	check("a.p4", "a.p4 has no manifest: want a.manifest.yaml")
	write(t, filepath.Join(dir, "b.p4"), "")
	write(t, filepath.Join(dir, "manifest.yaml"), "{version: 2, scheme: x, arch: v1model}")
	check(".", "manifest.yaml: there are 2 programs in its folder: name one in the manifest, as in program: mine.p4")
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name+".manifest.yaml"), "{version: 2, scheme: x, arch: v1model}")
	}
	os.Remove(filepath.Join(dir, "manifest.yaml"))
	check(".", "b.manifest.yaml: a.manifest.yaml is also for all roles: want one program per role")
	write(t, filepath.Join(dir, "b.manifest.yaml"), "{version: 2, scheme: y, arch: v1model, role: leaf}")
	check(".", "b.manifest.yaml: the scheme is y, but in a.manifest.yaml it is x: want one name")
	write(t, filepath.Join(dir, "b.manifest.yaml"), "{version: 2, scheme: x, arch: tna, role: leaf}")
	check(".", "b.manifest.yaml: the program is for tna, but a.manifest.yaml is for v1model: want one architecture")
}

// TestInit compares the guesses about the examples with their manifests.
func TestInit(t *testing.T) {
	for name, sure := range map[string]bool{"diffflow/diffflow": true, "twochoice/leaf": true, "twochoice/spine": true, "tinyflow/tinyflow": false} {
		program := filepath.Join(examples, name+".p4")
		text, err := Init(InitRequest{Program: program, Shown: program})
		if err != nil {
			t.Fatal(err)
		}
		guess, err := manifest.Decode(name, text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		said, err := manifest.Decode(name, []byte(read(t, filepath.Join(examples, name+".manifest.yaml"))))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range said.Tables {
			i := slices.IndexFunc(guess.Tables, func(g manifest.Table) bool { return g.Name == want.Name })
			switch {
			case i < 0:
				t.Errorf("%s: no table %s", name, want.Name)
			case sure && want.Purpose != "" && !sameTable(&guess.Tables[i], &want):
				t.Errorf("%s: table %s is guessed as\n%+v\nbut is\n%+v", name, want.Name, guess.Tables[i], want)
			}
		}
		if !strings.Contains(string(text), "# guess: ") {
			t.Errorf("%s: no guess is marked", name)
		}
	}
}

// TestInitByMAC: a program that forwards by destination MAC gets an entry for
// each host; a program that learns or rewrites MACs does not.
func TestInitByMAC(t *testing.T) {
	const text = `#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct H { ethernet_t ethernet; }
struct M { bit<8> m; }
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) { state start { pkt.extract(hdr.ethernet); transition accept; } }
control V(inout H hdr, inout M meta) { apply {} }
control I(inout H hdr, inout M meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action forward(bit<9> port) { std.egress_spec = port; }
    table known { key = { hdr.ethernet.src: exact; } actions = { NoAction; } }
    table dmac { key = { hdr.ethernet.dst: exact; } actions = { drop; flood; forward; } default_action = drop(); }
    apply { known.apply(); dmac.apply(); }
}
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { apply {} }
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`
	program := filepath.Join(t.TempDir(), "l2.p4")
	write(t, program, text)
	made, err := Init(InitRequest{Program: program, Shown: "l2.p4"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode("l2", made)
	if err != nil {
		t.Fatalf("%v\n%s", err, made)
	}
	if !m.ByMAC() || !strings.Contains(string(made), "{each: host, match: {hdr.ethernet.dst: $host-mac}, action: forward, args: {port: $port}}  # guess: ") {
		t.Errorf("%s", made)
	}
	if m.Tables[slices.IndexFunc(m.Tables, func(t manifest.Table) bool { return t.Name == "I.known" })].Entries != nil {
		t.Errorf("entries for the source's MAC:\n%s", made)
	}
}

// TestInitIsTheSameEachTime: the guess for a value with two possible roles is
// deterministic.
func TestInitIsTheSameEachTime(t *testing.T) {
	const text = `#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct H { ethernet_t ethernet; }
struct M { bit<8> m; }
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) { state start { pkt.extract(hdr.ethernet); transition accept; } }
control V(inout H hdr, inout M meta) { apply {} }
control I(inout H hdr, inout M meta, inout standard_metadata_t std) {
    action both(bit<48> mac) { hdr.ethernet.src = mac; hdr.ethernet.dst = mac; }
    table t { key = { std.egress_spec: exact; } actions = { both; } }
    apply { t.apply(); }
}
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { apply {} }
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.ethernet); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`
	program := filepath.Join(t.TempDir(), "both.p4")
	write(t, program, text)
	first, err := Init(InitRequest{Program: program, Shown: "both.p4"})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if made, err := Init(InitRequest{Program: program, Shown: "both.p4"}); err != nil || string(made) != string(first) {
			t.Fatalf("%v: got\n%s\nbefore it was\n%s", err, made, first)
		}
	}
}

func sameTable(a, b *manifest.Table) bool {
	params := func(t *manifest.Table) (list []manifest.Param) {
		for _, a := range t.Actions {
			list = append(list, a.Params...)
		}
		return list
	}
	return a.Purpose == b.Purpose && slices.Equal(a.Keys, b.Keys) && slices.Equal(params(a), params(b))
}

// TestInitElsewhere: a manifest in another folder names the program.
func TestInitElsewhere(t *testing.T) {
	dir := folder(t)
	text, err := Init(InitRequest{Program: filepath.Join(dir, "mine.p4"), Shown: "mine.p4", File: "there/mine.manifest.yaml"})
	if err != nil || !strings.Contains(string(text), "\nprogram: \"../mine.p4\"\n") {
		t.Errorf("%v\n%s", err, text)
	}
}
