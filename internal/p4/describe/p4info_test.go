package describe

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"golang.org/x/tools/txtar"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/p4/p4test"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// TestP4Info compares with p4c's output for programs of testdata/p4info, byte for
// byte. The files are p4c's output: run p4c before -update.
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
	file, info := p4test.Check(t, a.Files[0].Data)
	for i := range a.Files[1:] {
		f := &a.Files[i+1]
		var got []byte
		var errs syntax.Errors
		switch f.Name {
		case "p4info.txtpb":
			var m *configv1.P4Info
			if m, errs = P4Info(file, info, ""); m != nil {
				got = Text(m)
			}
		case "entries.txtpb":
			var list []Entry
			list, errs = Entries(file, info, "")
			got = EntriesText(list)
		default:
			t.Fatalf("unknown file %s", f.Name)
		}
		if errs.Err() != nil {
			t.Fatal(errs)
		}
		if *update {
			f.Data = got
		} else if !bytes.Equal(got, f.Data) {
			t.Errorf("%s:\n%s", f.Name, p4test.FirstDifference(got, f.Data))
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Reading the expected texts and printing them again must change nothing: the
// printer knows all of p4c's forms.
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
			t.Errorf("%s:\n%s", path, p4test.FirstDifference(got, a.Files[1].Data))
		}
	}
}

// The text must parse to the same message, for any bytes in it.
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
			file, info := p4test.Check(t, p4test.V1Model(test.locals))
			list, errs := Entries(file, info, "")
			if list != nil || errs.Err() == nil {
				t.Fatalf("no error, want one with %q", test.want)
			}
			if msg := errs.Error(); !strings.Contains(msg, test.want) {
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
		"instances": controls.String() + string(p4test.V1Model("C40() c; apply { c.apply(); }")),
		"calls":     functions.String() + string(p4test.V1Model("apply { m.x = (bit<32>)f40(); }")),
	} {
		t.Run(name, func(t *testing.T) {
			file, info := p4test.Check(t, []byte(program))
			if m, errs := P4Info(file, info, ""); m != nil || !strings.Contains(errs.Error(), "not supported") {
				t.Errorf("got %v", errs)
			}
		})
	}
}

// A program without main is a library: nothing in it has an id.
func TestP4InfoOfLibrary(t *testing.T) {
	program, _, _ := strings.Cut(string(p4test.V1Model("apply {}")), "V1Switch(P")
	file, info := p4test.Check(t, []byte(program))
	m, errs := P4Info(file, info, "")
	if errs.Err() != nil || !proto.Equal(m, &configv1.P4Info{}) {
		t.Errorf("got %v, %v", m, errs)
	}
}
