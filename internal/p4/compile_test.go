package p4_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/p4lb/p4lb/examples"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// TestCompileExamples compiles the examples: no warning, a document that
// loads, P4Info that reads back, and the same bytes a second time.
func TestCompileExamples(t *testing.T) {
	for _, name := range programs(t) {
		t.Run(name, func(t *testing.T) {
			p := compile(t, examples.FS, name, p4.Options{})
			if len(p.Warnings) > 0 {
				t.Errorf("warnings:\n%v", p.Warnings)
			}
			if _, err := bmv2.Load(p.JSON()); err != nil {
				t.Errorf("the document does not load: %v", err)
			}
			var info configv1.P4Info
			if err := prototext.Unmarshal(p.P4InfoText(), &info); err != nil {
				t.Errorf("the P4Info does not read back: %v", err)
			}
			if diff := cmp.Diff(p.P4Info, &info, protocmp.Transform()); diff != "" {
				t.Errorf("the P4Info reads back as something else (-made +read):\n%s", diff)
			}
			again := compile(t, examples.FS, name, p4.Options{})
			if !bytes.Equal(p.JSON(), again.JSON()) || !bytes.Equal(p.P4InfoText(), again.P4InfoText()) {
				t.Error("a second compilation gives other bytes")
			}
		})
	}
}

// programs lists the P4 programs among the examples.
func programs(t testing.TB) []string {
	t.Helper()
	names, err := fs.Glob(examples.FS, "*.p4")
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	return names
}

func compile(t *testing.T, fsys fs.FS, name string, opts p4.Options) *p4.Program {
	t.Helper()
	p, err := p4.Compile(fsys, name, opts)
	if err != nil {
		t.Fatalf("%s does not compile:\n%v", name, err)
	}
	return p
}

// TestCheckOptions gives a program its includes and macros by options alone.
func TestCheckOptions(t *testing.T) {
	fsys := fstest.MapFS{
		"src/main.p4": {Data: []byte("#include <core.p4>\n#include <width.p4>\nconst bit<WIDTH> x = VALUE;\n")},
		"a/width.p4":  {Data: []byte("#define WIDTH 8\n")},
		"b/width.p4":  {Data: []byte("#define WIDTH 4\n")},
	}
	for _, c := range []struct {
		dirs    []string
		defines []string
		err     string
	}{
		{[]string{"a"}, []string{"VALUE=200"}, ""},
		{[]string{"a", "b"}, []string{"VALUE=200"}, ""},
		{[]string{"b", "a"}, []string{"VALUE"}, ""},
		{nil, []string{"VALUE=1"}, "SRC/MAIN.P4:2:"},
		{[]string{"a"}, nil, "SRC/MAIN.P4:3:"},
	} {
		opts := p4.Options{IncludeDirs: c.dirs, Defines: c.defines, Show: strings.ToUpper}
		p, err := p4.Check(fsys, "src/main.p4", opts)
		if c.err == "" && (err != nil || p.Main() != "") {
			t.Errorf("-I %v -D %v: %v", c.dirs, c.defines, err)
		}
		if c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)) {
			t.Errorf("-I %v -D %v: got %v, want an error at %s", c.dirs, c.defines, err, c.err)
		}
	}
}

// TestErrorType: the errors of each stage are lists with positions.
func TestErrorType(t *testing.T) {
	const package1 = "#include <core.p4>\nparser P();\npackage One(P p);\nparser Q() { state start { transition accept; } }\nOne(Q()) main;\n"
	for _, c := range []struct{ name, text, want string }{
		{"scan", "const bit x = `;", "f.p4:1:15: "},
		{"parse", "const bit x = ;", "f.p4:1:15: "},
		{"check", "const bit x = y;", "f.p4:1:15: "},
		{"lower", package1, "f.p4:5:1: not supported: "},
		{"no main", "const bit x = 1;", "f.p4 has no main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := p4.CompileText("f.p4", []byte(c.text), p4.Options{})
			var list syntax.Errors
			if p != nil || !errors.As(err, &list) {
				t.Fatalf("got program %v and error %v (%T), want a syntax.Errors", p, err, err)
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want it at %s", err, c.want)
			}
		})
	}
}

// FuzzCompile compiles any text. The result must be a program or errors, never both
// or neither, and a program must be well formed.
func FuzzCompile(f *testing.F) {
	for _, name := range programs(f) {
		text, err := examples.FS.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		compileAny(t, fstest.MapFS{"f.p4": {Data: []byte(text)}}, "f.p4")
	})
}

// compileAny compiles text that may be no program, and checks that the result is
// well formed.
func compileAny(t *testing.T, fsys fs.FS, name string) {
	t.Helper()
	p, err := p4.Compile(fsys, name, p4.Options{})
	if (p == nil) != (err != nil) {
		t.Fatalf("program %v, error %v", p, err)
	}
	if err != nil {
		return
	}
	if _, err := bmv2.Load(p.JSON()); err != nil {
		t.Errorf("the document does not load: %v", err)
	}
	if err := prototext.Unmarshal(p.P4InfoText(), new(configv1.P4Info)); err != nil {
		t.Errorf("the P4Info does not read back: %v", err)
	}
}
