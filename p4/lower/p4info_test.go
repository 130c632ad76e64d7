package lower

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/p4/syntax"
	"github.com/p4lb/p4lb/p4/types"
	"github.com/p4lb/p4lb/p4src"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// parseAndCheck reads a program that must be without errors.
func parseAndCheck(t *testing.T, program []byte) (*syntax.File, *types.Info) {
	t.Helper()
	fsys := fstest.MapFS{"program.p4": {Data: program}}
	file, perrs := syntax.Parse(fsys, "program.p4", syntax.Options{Includes: p4src.Include()})
	if file == nil {
		t.Fatal(perrs)
	}
	info, errs := types.Check(file)
	if failed(errs) {
		t.Fatal(syntax.Errors(errs))
	}
	return file, info
}

// TestP4Info compares with p4c's output for programs of testdata/p4info, byte
// for byte. Before -update, ask p4c: the files are what it writes.
func TestP4Info(t *testing.T) {
	paths, err := filepath.Glob("testdata/p4info/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives in testdata/p4info: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { checkArchive(t, path) })
	}
}

func checkArchive(t *testing.T, path string) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, info := parseAndCheck(t, a.Files[0].Data)
	for i := range a.Files[1:] {
		f := &a.Files[i+1]
		var got []byte
		var errs []*syntax.Error
		switch f.Name {
		case "p4info.txtpb":
			var m *configv1.P4Info
			if m, errs = P4Info(file, info, Options{}); m != nil {
				got = Text(m)
			}
		case "entries.txtpb":
			var list []Entry
			list, errs = Entries(file, info, Options{})
			got = EntriesText(list)
		default:
			t.Fatalf("unknown file %s", f.Name)
		}
		if failed(errs) {
			t.Fatal(syntax.Errors(errs))
		}
		if *update {
			f.Data = got
		} else if !bytes.Equal(got, f.Data) {
			t.Errorf("%s:\n%s", f.Name, firstDifference(got, f.Data))
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// firstDifference shows where two texts part, with the lines before.
func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	i := 0
	for i < len(g) && i < len(w) && g[i] == w[i] {
		i++
	}
	show := func(lines []string) string {
		return strings.Join(lines[max(0, min(i, len(lines))-6):min(i+3, len(lines))], "\n")
	}
	return "got\n" + show(g) + "\nwant\n" + show(w)
}

// Reading the expected texts and printing them again must change nothing: the
// printer knows all of p4c's forms, and the texts are what their messages say.
func TestTextIsStable(t *testing.T) {
	paths, _ := filepath.Glob("testdata/p4info/*.txtar")
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := &configv1.P4Info{}
		if err := prototext.Unmarshal(a.Files[1].Data, m); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got := Text(m); !bytes.Equal(got, a.Files[1].Data) {
			t.Errorf("%s:\n%s", path, firstDifference(got, a.Files[1].Data))
		}
	}
}

// The text must say what the message says, whatever bytes are in it.
func FuzzText(f *testing.F) {
	f.Add("a.b", []byte("\x00\xff\"'\\\n\r\t\x7f é"), uint32(7))
	f.Fuzz(func(t *testing.T, name string, value []byte, id uint32) {
		name = strings.ToValidUTF8(name, "?")
		in := &configv1.P4Info{
			PkgInfo: &configv1.PkgInfo{Name: name},
			Tables: []*configv1.Table{{InitialDefaultAction: &configv1.TableActionCall{
				Arguments: []*configv1.TableActionCall_Argument{{ParamId: id, Value: value}},
			}}},
			TypeInfo: &configv1.P4TypeInfo{Enums: map[string]*configv1.P4EnumTypeSpec{name: {}, name + "x": {}}},
		}
		out := &configv1.P4Info{}
		if err := prototext.Unmarshal(Text(in), out); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(in, out) {
			t.Errorf("%v became %v", in, out)
		}
	})
}

func TestHashName(t *testing.T) {
	// NoAction's id is in every P4Info that p4c writes.
	if got := hashName("NoAction") & 0xffffff; got != 21257015&0xffffff {
		t.Errorf("the hash of NoAction is %#x", got)
	}
}

func TestAlias(t *testing.T) {
	s := newSymbols()
	for _, name := range []string{"d.a.c", "e.b.c", "x.y", "y", "one"} {
		s.add(nil, tableKind, name, nil, nil)
	}
	for name, want := range map[string]string{"d.a.c": "a.c", "e.b.c": "b.c", "x.y": "x.y", "y": "y", "one": "one"} {
		if got := s.alias(name); got != want {
			t.Errorf("the alias of %s is %s, want %s", name, got, want)
		}
	}
}

// head and tail of the programs below; %s between them are the locals and the
// body of the ingress control.
const (
	programHead = `#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> f; bit<8> g; }
struct headers { h_t h; }
struct meta_t { bit<32> x; }
parser P(packet_in pkt, out headers h, inout meta_t m, inout standard_metadata_t s) { state start { pkt.extract(h.h); transition accept; } }
control Verify(inout headers h, inout meta_t m) { apply {} }
control Update(inout headers h, inout meta_t m) { apply {} }
control Deparse(packet_out pkt, in headers h) { apply { pkt.emit(h.h); } }
control Out(inout headers h, inout meta_t m, inout standard_metadata_t s) { apply {} }
action nop() {}
control Inner() {
    @name(".abs") table t { actions = { nop; } default_action = nop; }
    apply { t.apply(); }
}
control Count(in bit<32> x) { register<bit<32>>(1) r; apply { r.write(0, x); } }
control In(inout headers h, inout meta_t m, inout standard_metadata_t s) {
`
	programTail = `
}
V1Switch(P(), Verify(), In(), Out(), Update(), Deparse()) main;
`
)

func TestP4InfoErrors(t *testing.T) {
	for _, test := range []struct{ name, locals, want string }{
		{"one absolute name for two tables", `Inner() i1; Inner() i2; apply { i1.apply(); i2.apply(); }`, "another table is called abs"},
		{"an id twice", `@id(3) table a { actions = { nop; } default_action = nop; } @id(0x02000003) table b { actions = { nop; } default_action = nop; }
			apply { a.apply(); b.apply(); }`, "is given to two objects"},
		{"an id of another kind", `@id(0x01000003) table a { actions = { nop; } default_action = nop; } apply { a.apply(); }`, "prefix of another kind"},
		{"an id that is no number", `@id("x") table a { actions = { nop; } default_action = nop; } apply { a.apply(); }`, "unsigned 32-bit number"},
		{"a key's id twice", `table a { key = { m.x : exact @id(2); h.h.g : exact @id(2); } actions = { nop; } default_action = nop; } apply { a.apply(); }`, "@id(2) is used twice"},
		{"a struct as parameter", `action b(h_t p) { h.h = p; } table a { actions = { b; nop; } default_action = nop; } apply { a.apply(); }`, "cannot send"},
		{"both scopes", `table a { actions = { @tableonly @defaultonly nop; } } apply { a.apply(); }`, "both @tableonly and @defaultonly"},
		{"selector semantics", `@selector_size_semantics("neither") action_selector(HashAlgorithm.crc16, 8, 8) sel;
			table a { key = { m.x : selector; h.h.g : exact; } actions = { nop; } implementation = sel; } apply { a.apply(); }`, "sum_of_weights"},
		{"a number too large", `@a[0x1_0000_0000_0000_0000] table a { actions = { nop; } default_action = nop; } apply { a.apply(); }`, "must fit in 64 bits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, info := parseAndCheck(t, []byte(programHead+test.locals+programTail))
			list, errs := Entries(file, info, Options{})
			if list != nil || !failed(errs) {
				t.Fatalf("no error, want one with %q", test.want)
			}
			if msg := syntax.Errors(errs).Error(); !strings.Contains(msg, test.want) {
				t.Errorf("got %s, want %q", msg, test.want)
			}
		})
	}
}

// Few lines can ask for any number of instances or inlined calls.
func TestP4InfoIsBounded(t *testing.T) {
	var controls, functions strings.Builder
	controls.WriteString("control C0() { apply {} }\n")
	functions.WriteString("bit<8> f0() { return 1; }\n")
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&controls, "control C%d() { C%[2]d() a; C%[2]d() b; apply { a.apply(); b.apply(); } }\n", i, i-1)
		fmt.Fprintf(&functions, "bit<8> f%d() { return f%[2]d() + f%[2]d(); }\n", i, i-1)
	}
	for name, program := range map[string]string{
		"instances": controls.String() + programHead + "C40() c; apply { c.apply(); }" + programTail,
		"calls":     functions.String() + programHead + "apply { m.x = (bit<32>)f40(); }" + programTail,
	} {
		t.Run(name, func(t *testing.T) {
			file, info := parseAndCheck(t, []byte(program))
			if m, errs := P4Info(file, info, Options{}); m != nil || !strings.Contains(syntax.Errors(errs).Error(), "not supported") {
				t.Errorf("got %v", syntax.Errors(errs))
			}
		})
	}
}

// A program without main is a library: nothing in it has an id.
func TestP4InfoOfLibrary(t *testing.T) {
	program, _, _ := strings.Cut(programHead+"apply {}"+programTail, "V1Switch(P")
	file, info := parseAndCheck(t, []byte(program))
	m, errs := P4Info(file, info, Options{})
	if failed(errs) || !proto.Equal(m, &configv1.P4Info{}) {
		t.Errorf("got %v, %v", m, syntax.Errors(errs))
	}
}
