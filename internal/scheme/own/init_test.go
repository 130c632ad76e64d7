package own

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// around completes an ingress control to a program for v1model.
func around(meta, ingress string) string {
	return `#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<32> a; bit<32> b; bit<32> c; bit<32> src; bit<32> dst; }
struct H { ethernet_t ethernet; ipv4_t ipv4; }
struct M { ` + meta + ` }
parser P(packet_in pkt, out H hdr, inout M meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.ethernet); pkt.extract(hdr.ipv4); transition accept; }
}
control V(inout H hdr, inout M meta) { apply {} }
control I(inout H hdr, inout M meta, inout standard_metadata_t std) {
` + ingress + `
}
control E(inout H hdr, inout M meta, inout standard_metadata_t std) { apply {} }
control D(packet_out pkt, in H hdr) { apply { pkt.emit(hdr.ethernet); pkt.emit(hdr.ipv4); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`
}

// init1 returns the first manifest of a program.
func init1(t *testing.T, program string, r InitRequest) string {
	t.Helper()
	r.Files, r.Program = fstest.MapFS{"p/a.p4": {Data: []byte(program)}}, "/p/a.p4"
	if r.Shown == "" {
		r.Shown = "a.p4"
	}
	text, err := Init(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Decode("a.manifest.yaml", text); err != nil {
		t.Errorf("the manifest is not accepted: %v\n%s", err, text)
	}
	return string(text)
}

// wantLines checks that a text contains lines in this order.
func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	rest := text
	for _, l := range lines {
		_, after, ok := strings.Cut(rest, l+"\n")
		if !ok {
			t.Errorf("%q is missing in\n%s", l, text)
			return
		}
		rest = after
	}
}

// A program that forwards by MAC addresses gets an entry for each host.
func TestInitEntriesOfHosts(t *testing.T) {
	text := init1(t, around("bit<8> x;", `
    action send(bit<9> port) { std.egress_spec = port; }
    action flood() { std.mcast_grp = 1; }
    action two(bit<9> port, bit<8> x) { std.egress_spec = port; meta.x = x; }
    table hosts { key = { hdr.ethernet.dst: exact; } actions = { flood; send; two; } size = 256; }
    table types { key = { hdr.ethernet.type: exact; } actions = { send; } }
    table both { key = { hdr.ethernet.dst: exact; hdr.ethernet.type: exact; } actions = { send; } }
    table small { key = { hdr.ethernet.dst: exact; } actions = { send; } size = 255; }
    table sources { key = { hdr.ethernet.src: exact; } actions = { send; } }
    apply { hdr.ethernet.dst = hdr.ethernet.dst; hosts.apply(); types.apply(); both.apply(); small.apply(); sources.apply(); }`), InitRequest{})
	wantLines(t, text,
		"- name: I.hosts",
		"  entries:",
		"  - {each: host, match: {hdr.ethernet.dst: $host-mac}, action: send, args: {port: $port}}  # guess: one entry per host: the program forwards by MAC",
		"- name: I.types",
		"  purpose: none  # no guess: the table stays empty until you give entries",
		"  # - {match: {hdr.ethernet.type: …}, action: send, args: {port: …}}",
		"- name: I.both",
		"  purpose: none  # no guess: the table stays empty until you give entries",
		"- name: I.small",
		"  # The table has room for 255 entries: a network that needs more is refused.",
		"  - {each: host, match: {hdr.ethernet.dst: $host-mac}, action: send, args: {port: $port}}  # guess: one entry per host: the program forwards by MAC",
		"- name: I.sources",
		"  purpose: none  # no guess: the table stays empty until you give entries",
	)
	if strings.Contains(text, "room for 256") || strings.Contains(text, "paths:") || strings.Contains(text, "cpu_port") || strings.Contains(text, "clone_sessions") {
		t.Errorf("too much:\n%s", text)
	}
}

// If a path rewrites the destination address, each host has its own paths. Small tables
// save the entries of local hosts.
func TestInitPerHost(t *testing.T) {
	program := func(size string) string {
		return around("bit<16> group; bit<16> slot;", `
    action groups(bit<16> first, bit<16> count) { hash(meta.slot, HashAlgorithm.crc16, first, { hdr.ipv4.src }, count); }
    action path(bit<9> port, bit<32> host, bit<48> mac) { std.egress_spec = port; hdr.ipv4.dst = host; hdr.ethernet.dst = mac; }
    table routes { key = { hdr.ipv4.dst: lpm; } actions = { groups; NoAction; } size = 1024; }
    table paths { key = { meta.slot: exact; } actions = { NoAction; path; } size = `+size+`; }
    apply { routes.apply(); paths.apply(); }`)
	}
	text := init1(t, program("256"), InitRequest{})
	wantLines(t, text,
		"paths: 16  # guess: the size of the largest group in a table",
		"- name: I.routes",
		"  - {each: host, match: {hdr.ipv4.dst: $host-address/32}, action: groups, args: {first: $first-path, count: $paths}}  # guess: each host has its own paths, because a path rewrites the host's address",
		"- name: I.paths",
		"  entries:",
		"  - {each: host path, match: {meta.slot: $path}, action: path, args: {port: $port, host: $host-address, mac: $next-mac}}  # guess: each host has its own paths, because a path rewrites the host's address",
	)
	if strings.Contains(text, "has room") {
		t.Errorf("a table of 256 is small:\n%s", text)
	}
	text = init1(t, program("9"), InitRequest{})
	wantLines(t, text,
		"  # The table has room for 9 entries: a network that needs more is refused.",
		"  entries:",
		"  - {each: host path, match: {meta.slot: $path}, action: path, args: {port: $port, host: $host-address, mac: $next-mac}}  # guess: each host has its own paths, because a path rewrites the host's address",
	)
	text = init1(t, program("8"), InitRequest{})
	wantLines(t, text,
		"  # The table has room for 8 entries: a network that needs more is refused.",
		"  entries:",
		`  - {each: host path, where: "!$here", match: {meta.slot: $path}, action: path, args: {port: $port, host: $host-address, mac: $next-mac}}  # guess: each host has its own paths, because a path rewrites the host's address`,
		"  - {default: true, each: host, where: $here, action: path, args: {port: $port, host: $host-address, mac: $next-mac}}  # guess: the table has no room for the local host, so it uses the default action",
	)
}

// Keys and parameters of tables of ports and groups.
func TestInitKeys(t *testing.T) {
	text := init1(t, around("bit<16> next; bit<8> class; bit<16> slot; bit<16> base; bit<16> at; bit<8> u;", `
    action by_port(bit<9> port, bit<16> next) { std.egress_spec = port; meta.next = next; }
    action by_group(bit<9> port, bit<16> next, bit<16> n) { std.egress_spec = port; meta.next = next; hash(meta.slot, HashAlgorithm.crc16, 16w0, { hdr.ipv4.src }, n); }
    action rewrite(bit<48> mac) { hdr.ethernet.dst = mac; }
    action go(bit<9> port) { std.egress_spec = port; }
    action offset(bit<16> base, bit<16> n) { hash(meta.slot, HashAlgorithm.crc16, 16w0, { hdr.ipv4.src }, n); meta.at = meta.slot + base; }
    table routes { key = { hdr.ipv4.dst: lpm; meta.u: ternary; } actions = { by_port; } }
    table grouped { key = { hdr.ipv4.dst: lpm; } actions = { by_group; offset; } }
    table nexts { key = { meta.next: exact; } actions = { rewrite; } }
    table inputs { key = { std.ingress_port: exact; } actions = { rewrite; go; } }
    table exacts { key = { hdr.ipv4.dst: lpm; meta.class: exact; } actions = { go; } }
    table members { key = { meta.at: exact; } actions = { go; } }
    table nothing { actions = { NoAction; } default_action = NoAction; }
    apply { meta.class = (bit<8>) std.packet_length; routes.apply(); grouped.apply(); nexts.apply(); inputs.apply(); exacts.apply(); members.apply(); nothing.apply(); clone_preserving_field_list(CloneType.I2E, 9, 0); }`), InitRequest{})
	wantLines(t, text,
		"- name: I.routes",
		"  purpose: route  # guess: its key is the destination, its actions set the next hop",
		"  - {name: hdr.ipv4.dst, carries: destination}  # guess: is the destination address",
		`  - {name: meta.u, value: "*"}  # guess: unknown, so it matches anything`,
		"  - name: by_port",
		"    - {name: port, carries: port}  # guess: becomes the egress port",
		"    - {name: next, carries: port}  # guess: the key of another table, beside a port, so it may number the port",
		"- name: I.grouped",
		"  - name: by_group",
		"    - {name: port, carries: port}  # guess: becomes the egress port",
		"    - {name: next, carries: group}  # guess: the key of another table",
		"    - {name: n, carries: paths}  # guess: the number of choices",
		"  - name: offset",
		"    - {name: base, carries: first-member}  # guess: the first choice",
		"    - {name: n, carries: paths}  # guess: the number of choices",
		"- name: I.nexts",
		"  purpose: none  # no guess: the table stays empty until you give entries",
		"  # - {match: {meta.next: …}, action: rewrite, args: {mac: …}}",
		"- name: I.inputs",
		"  purpose: none  # no guess: the table stays empty until you give entries",
		"- name: I.exacts",
		"  purpose: none  # no guess: the values of the exact field meta.class are unknown, so give entries",
		"- name: I.members",
		"  purpose: member  # guess: its key is the selected path, its actions set the next hop",
		"  - {name: meta.at, carries: member}  # guess: selected by a hash or a random number, from a first value",
		"- name: I.nothing",
		"  purpose: none  # no guess: the table stays empty until you give entries",
		"clone_sessions:",
		"- {session: 9, port: 1}  # guess: the port is unknown",
	)
	if strings.Contains(text, "virtual_ports") {
		t.Errorf("nothing recirculates:\n%s", text)
	}
}

// A value of a constant range from 0 selects the same number of paths in each network. Ranges
// that begin elsewhere, or are known only to the controller, do not.
func TestInitConstantRange(t *testing.T) {
	for choice, want := range map[string]int{
		"hash(meta.slot, HashAlgorithm.crc16, 16w0, { hdr.ipv4.src }, 16w4)": 4,
		"hash(meta.slot, HashAlgorithm.crc16, 16w1, { hdr.ipv4.src }, 16w4)": 0,
		"hash(meta.slot, HashAlgorithm.crc16, n, { hdr.ipv4.src }, 16w4)":    0,
		"hash(meta.slot, HashAlgorithm.crc16, 16w0, { hdr.ipv4.src }, n)":    0,
		"random(meta.slot, 16w0, 16w3)":                                      4,
		"random(meta.slot, 16w1, 16w3)":                                      0,
		"random(meta.slot, 16w0, n)":                                         0,
	} {
		text := init1(t, around("bit<16> slot;", `
    action choose(bit<16> n) { `+choice+`; }
    action go(bit<9> port) { std.egress_spec = port; }
    table routes { key = { hdr.ipv4.dst: lpm; } actions = { choose; go; } }
    table paths { key = { meta.slot: exact; } actions = { go; } }
    apply { routes.apply(); paths.apply(); }`), InitRequest{})
		if want > 0 {
			const why = "  # guess: with several paths, a value is selected for another table"
			wantLines(t, text,
				"- name: I.routes",
				"  entries:",
				"  - {each: route, where: $paths == 1, match: {hdr.ipv4.dst: $destination}, action: go, args: {port: $port}}"+why,
				"  - {each: route, where: $paths > 1, match: {hdr.ipv4.dst: $destination}, action: choose, args: {n: 0}}"+why,
				"- name: I.paths",
				"  entries:",
				fmt.Sprintf(`  - {each: group path 0..%d, where: "$i %% $paths == $slot", match: {meta.slot: $i}, action: go, args: {port: $port}}  # guess: the program always selects one of %d values, so paths share them`, want-1, want),
			)
		} else if strings.Contains(text, "the program always selects") {
			t.Errorf("%s counts as a constant range:\n%s", choice, text)
		}
	}
}

// A manifest that is stored elsewhere names its program and include folders from there.
func TestInitPlaces(t *testing.T) {
	program := around("bit<8> x;", "apply { std.egress_spec = 1; }")
	for _, test := range []struct {
		r    InitRequest
		want []string
		not  string
	}{
		{InitRequest{}, nil, "\nprogram:"},
		{InitRequest{Shown: "p/a.p4", File: "p/a.manifest.yaml"}, nil, "\nprogram:"},
		{InitRequest{Shown: "p/a.p4", File: "q/b.manifest.yaml", Includes: []string{"p/inc", "/abs"}}, []string{"program: \"../p/a.p4\"", "includes: [\"../p/inc\", \"/abs\"]"}, "defines"},
		{InitRequest{Shown: "p/a.p4", Includes: []string{"inc"}, Defines: []string{"A=", "B"}}, []string{"includes: [\"../inc\"]", `defines: {A: "", B: "1"}`}, "\nprogram:"},
	} {
		text := init1(t, program, test.r)
		wantLines(t, text, test.want...)
		wantLines(t, text, "scheme: a", "arch: v1model")
		if strings.Contains(text, test.not) {
			t.Errorf("%+v: there is %q in\n%s", test.r, test.not, text)
		}
	}
	const head = "# The meaning of a.p4 for p4lb. Lines marked as a guess were derived from the program:\n" +
		"# check them and remove the mark. docs/manifest.md explains the keys.\n"
	if text := init1(t, program, InitRequest{}); text != head+"version: 2\nscheme: a\narch: v1model\n" {
		t.Errorf("a program without objects:\n%s", text)
	}
	for text, want := range map[string]string{
		"const bit<8> x = 1;": "a.p4 has no main, there is nothing to run",
		"const bit<8> x = y;": "a.p4:1:18: y is not declared",
	} {
		_, err := Init(InitRequest{Files: fstest.MapFS{"p/a.p4": {Data: []byte(text)}}, Program: "/p/a.p4", Shown: "a.p4"})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		_, err = Init(InitRequest{Files: fstest.MapFS{"a.p4": {Data: []byte(text)}}, Program: "/a.p4", Shown: "there/a.p4"})
		if err == nil || err.Error() != "there/"+want {
			t.Errorf("in the root, %s: %v, want there/%s", text, err, want)
		}
	}
}

// If a program adds an offset, chosen from 0, to a base, the base is the number of the
// first member. A mask that cuts the sum to its field does not hide this.
func TestOffsets(t *testing.T) {
	hash := call("modify_field_with_hash_based_offset", field("m", "slot"), constant("0x0"), nil, param(0))
	at := field("m", "at")
	for name, test := range map[string]struct {
		sum  *bmv2.Expr
		want map[string]role
	}{
		"left":       {op("+", field("m", "slot"), param(1)), map[string]role{"m.at": member, "a(1)": firstOf, "m.slot": chosen, "a(0)": someOf}},
		"right":      {op("+", param(1), field("m", "slot")), map[string]role{"m.at": member, "a(1)": firstOf}},
		"masked":     {op("&", op("+", param(1), field("m", "slot")), constant("0xffff")), map[string]role{"m.at": member, "a(1)": firstOf}},
		"constant":   {op("+", field("m", "slot"), constant("0x1")), map[string]role{"m.at": chosen, "a(1)": noRole}},
		"difference": {op("-", field("m", "slot"), param(1)), map[string]role{"m.at": chosen, "a(1)": noRole}},
		"product":    {op("*", param(1), field("m", "slot")), map[string]role{"m.at": chosen, "a(1)": noRole}},
		"a port":     {op("+", field("m", "slot"), field("standard_metadata", "ingress_port")), map[string]role{"m.at": chosen, "standard_metadata.ingress_port": inAt}},
		"itself":     {op("+", field("m", "slot"), field("m", "slot")), map[string]role{"m.at": chosen}},
		"port":       {op("+", field("m", "slot"), param(1)), map[string]role{"standard_metadata.egress_spec": toPort}},
		"field mask": {op("&", op("+", param(1), field("m", "slot")), field("m", "mask")), map[string]role{"m.at": chosen, "a(1)": noRole}},
	} {
		to := at
		if name == "port" {
			to = field("standard_metadata", "egress_spec")
		}
		f := flowOf(&bmv2.Config{Actions: []*bmv2.Action{{Name: "a", RuntimeData: make([]bmv2.RuntimeParam, 2), Primitives: []*bmv2.Primitive{hash, call("assign", to, test.sum)}}}})
		for value, want := range test.want {
			if f.roles[value] != want {
				t.Errorf("%s: %s has role %d, want %d", name, value, f.roles[value], want)
			}
		}
	}
}

// Programs of the catalogue become a scheme of the user's: it compiles, its tests pass and
// its manifest keeps no parameters.
func TestFromCatalogue(t *testing.T) {
	from, err := (&scheme.Library{}).Find("ecmp")
	if err != nil {
		t.Fatal(err)
	}
	files, err := FromCatalogue(from, "mine", codegen.Params{Ports: 4, MaxPort: 8}, "leaf", "spine")
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	names := map[string]bool{}
	for _, f := range files {
		fsys["dir/"+f.Name] = &fstest.MapFile{Data: f.Text}
		names[f.Name] = true
		if f.About == "" {
			t.Errorf("%s: the description is missing", f.Name)
		}
	}
	for _, want := range []string{"mine-leaf.p4", "mine-leaf.manifest.json", "mine-leaf.stf", "mine-spine.p4", "mine-spine.manifest.json", "experiment.yaml"} {
		if !names[want] {
			t.Errorf("no %s in %v", want, names)
		}
	}
	if names["mine-spine.stf"] {
		t.Error("a packet test for the spine")
	}
	source := string(fsys["dir/mine-leaf.p4"].Data)
	if lines := strings.SplitN(source, "\n", 3); !strings.Contains(lines[0], "SPDX-License-Identifier") || lines[1] != "// mine starts from the program of ecmp that p4lb generates." {
		t.Errorf("the first lines are %q", lines[:2])
	}
	if text := string(fsys["dir/experiment.yaml"].Data); !strings.Contains(text, "- ecmp\n") || strings.Contains(text, "- drill\n") || strings.Contains(text, "parameters: advised") {
		t.Errorf("the experiment is\n%s", text)
	}
	s, err := SourceIn(fsys)("/dir/")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name() != "mine" || strings.Join(s.(*Scheme).Roles(), " ") != "leaf spine" {
		t.Errorf("the scheme is %s for %v", s.Name(), s.(*Scheme).Roles())
	}
	for _, role := range []string{"leaf", "spine", ""} {
		p, err := s.Build(codegen.Params{Role: role})
		if err != nil {
			t.Fatal(err)
		}
		want := role
		if role == "" {
			want = "leaf" // the first program
		}
		if p.Manifest.Role != want || p.Manifest.Scheme != "mine" || len(p.Manifest.Parameters) > 0 {
			t.Errorf("role %q: the manifest is for %s of %s, with parameters %v", role, p.Manifest.Role, p.Manifest.Scheme, p.Manifest.Parameters)
		}
	}
	if _, err := FromCatalogue(from, "1st", codegen.Params{}, "leaf"); err == nil {
		t.Error("a scheme may be called 1st")
	}
	if _, err := FromCatalogue(from, "mine", codegen.Params{Arch: "nosuch"}, "leaf"); err == nil {
		t.Error("an unknown architecture passes")
	}
}

// An error names the missing file and the command that creates it.
func TestMissing(t *testing.T) {
	fsys := fstest.MapFS{
		"a.p4": {Data: []byte("const bit<8> x = y;")}, "a.manifest.yaml": {Data: []byte("version: 2\nscheme: x\narch: v1model\n")},
		"i/only.p4": {Data: []byte(around("bit<8> x;", "apply { std.egress_spec = 1; }"))}, "i/manifest.yaml": {Data: []byte("version: 2\nscheme: i\narch: v1model\n")},
		"i/sub.manifest.yaml/x": {},
		"d/a.p4":                {}, "e/x.txt": {}, "f/a.p4": {}, "f/b.p4": {}, "f/manifest.yaml": {Data: []byte("version: 2\nscheme: x\narch: v1model\n")},
		"g/manifest.yaml":   {Data: []byte("version: 2\nscheme: x\narch: v1model\nprogram: gone.p4\n")},
		"h/a.p4":            {Data: []byte(around("bit<8> x;", "apply { std.egress_spec = PORT; }"))},
		"h/a.manifest.yaml": {Data: []byte("version: 2\nscheme: h\narch: v1model\ndefines: {PORT: '1', LIMIT: '2'}\n")},
	}
	find := SourceIn(fsys)
	for path, want := range map[string]string{
		"/d/":     "/d/a.p4 has no manifest: want /d/a.manifest.yaml",
		"/d/a.p4": "/d/a.p4 has no manifest: want /d/a.manifest.yaml",
		"/e/":     "/e/ is not a scheme: want a program NAME.p4 with a manifest NAME.manifest.yaml",
		"/gone/":  "no scheme /gone/: no such file or folder",
		"/f/":     "/f/manifest.yaml: there are 2 programs in its folder: name one in the manifest, as in program: mine.p4",
		"/e/x.p4": "no scheme /e/x.p4: no such file or folder",
	} {
		_, err := find(path)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
		if h, ok := err.(interface{ Hint() string }); strings.HasPrefix(path, "/d") && (!ok || h.Hint() != "create one with p4lb manifest init /d/a.p4 -o /d/a.manifest.yaml") {
			t.Errorf("%s: no hint: %v", path, err)
		}
	}
	if _, err := find("/g/"); err == nil || !strings.Contains(err.Error(), "gone.p4") {
		t.Errorf("a program that is not there: %v", err)
	}
	s, err := find("/a.p4")
	if err == nil {
		_, err = s.Build(codegen.Params{})
	}
	if err == nil || err.Error() != "/a.p4:1:18: y is not declared" {
		t.Errorf("a program in the root: %v", err)
	}
	s, err = find("/i/")
	if err == nil {
		_, err = s.Build(codegen.Params{})
	}
	if err != nil || s.Name() != "i" {
		t.Errorf("the only program of a folder: %v", err)
	}
	s, err = find("/h/a.p4")
	if err != nil {
		t.Fatal(err)
	}
	params, err := s.Parameters("v1model")
	if err != nil || len(params) != 2 || params[0].Name != "LIMIT" || params[0].Default != "2" || params[1].Name != "PORT" || params[1].Default != "1" {
		t.Errorf("parameters %+v, %v", params, err)
	}
	if _, err := s.Build(codegen.Params{Set: map[string]string{"O": "1"}}); err == nil || err.Error() != "/h/a.p4 has no parameter O: want a macro that its manifest defines" {
		t.Errorf("an unknown macro: %v", err)
	}
	one, err := s.Build(codegen.Params{})
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.Build(codegen.Params{Set: map[string]string{"PORT": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	if one.Digest == two.Digest {
		t.Error("programs with different macros have one digest")
	}
}
