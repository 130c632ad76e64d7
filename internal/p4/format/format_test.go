package format

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/p4/p4test"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

var update = flag.Bool("update", false, "write the golden parts of testdata anew")

// archives are the archives that a pattern stands for, by their names.
func archives(t testing.TB, pattern string) map[string]*txtar.Archive {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives at %s: %v", pattern, err)
	}
	list := map[string]*txtar.Archive{}
	for _, name := range names {
		if list[name], err = txtar.ParseFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// programs are the files of an archive that are programs.
func programs(a *txtar.Archive) []txtar.File {
	var list []txtar.File
	for _, f := range a.Files {
		if path.Ext(f.Name) == ".p4" && !strings.Contains(f.Name, "/") {
			list = append(list, f)
		}
	}
	return list
}

// TestFormat compares the output of Format with the expected programs.
func TestFormat(t *testing.T) {
	for name, a := range archives(t, "testdata/format/*.txtar") {
		for _, f := range programs(a) {
			got := string(checkFormat(t, f.Name, f.Data))
			i := slices.IndexFunc(a.Files, func(g txtar.File) bool { return g.Name == strings.TrimSuffix(f.Name, ".p4")+".formatted" })
			switch {
			case i < 0:
				t.Errorf("%s: %s has no formatted form", name, f.Name)
			case *update:
				a.Files[i].Data = []byte(got)
			case string(a.Files[i].Data) != got:
				t.Errorf("%s: %s differs:\n%s", name, a.Files[i].Name, p4test.FirstDifference([]byte(got), a.Files[i].Data))
			}
		}
		if *update {
			if err := os.WriteFile(name, txtar.Format(a), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestFormatParsed formats the programs that the parser's tests parse.
func TestFormatParsed(t *testing.T) {
	for _, a := range archives(t, "../syntax/testdata/parse/*.txtar") {
		for _, f := range programs(a) {
			checkFormat(t, f.Name, f.Data)
		}
	}
}

// TestFormatRefuses checks that Format returns nothing where it cannot be sure.
func TestFormatRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"const int a = \"x":         "string not terminated",
		"a /* b":                    "comment not terminated",
		strings.Repeat("{\n", 1001): "in.p4:1001: nests more than 1000 deep",
		"{ #\n}":                    "would change line 1", // the # would begin a line
	} {
		out, err := Format([]byte(text), "in.p4")
		if err == nil || out != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", text, out, err)
		}
	}
}

// TestFormatBackslashAtTheEnd: a backslash at the end of the text continues no directive.
// The formatter adds a line end, after which it would.
func TestFormatBackslashAtTheEnd(t *testing.T) {
	for _, text := range []string{"#a\n#R(a, b)\\ ", "#R(a, b)\\\n", "#define R(a, b)\\", "#define A \"R(a, b)\\", "#R(a, b)\\"} {
		if out := checkFormat(t, "in.p4", []byte(text)); !bytes.HasSuffix(out, []byte("R(a, b)\n")) {
			t.Errorf("%q becomes %q", text, out)
		}
	}
}

// TestFormatLoneQuotationMark checks text in conditionals that are left out, which
// need not be valid.
func TestFormatLoneQuotationMark(t *testing.T) {
	for text, want := range map[string]string{
		"#if 0\n5\" wide\n#endif\nconst  bit<8> a=1;":                      "const bit<8> a = 1;\n",
		"#if 0\n5\" wide\n  it is\n#endif\n@name(\"b\")const  bit<8> a=1;": "const bit<8> a = 1;\n",
		"#if 1\n@name(\"a\n b\")const  bit<8> a=1;\n#endif":                "const bit<8> a = 1;\n#endif\n",
	} {
		if out := checkFormat(t, "in.p4", []byte(text)); !strings.HasSuffix(string(out), want) {
			t.Errorf("%q becomes %q", text, out)
		}
	}
}

// TestFormatManyComments checks that formatting does not search for the beginning of
// each line again. With a million comments that would take minutes.
func TestFormatManyComments(t *testing.T) {
	text := []byte(strings.Repeat("// a\n", 300_000))
	if out, err := Format(text, "in.p4"); err != nil || !bytes.Equal(out, text) {
		t.Errorf("%d bytes become %d: %v", len(text), len(out), err)
	}
}

// TestCorpusFormats formats the samples of the p4c checkout that P4C_DIR names, and
// formats the result again. The result must parse to the same tree.
func TestCorpusFormats(t *testing.T) {
	root := os.Getenv("P4C_DIR")
	if root == "" {
		t.Skip("P4C_DIR names no checkout of p4c")
	}
	fsys := os.DirFS(root)
	names, err := fs.Glob(fsys, "testdata/p4_16_samples/*.p4")
	if err != nil || len(names) == 0 {
		t.Fatal("no samples: ", err)
	}
	opts := syntax.Options{IncludeDirs: []string{"testdata/p4_16_samples", "p4include", "p4include/bmv2", "p4include/dpdk", "p4include/tc"}}
	for _, name := range names {
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		text := checkFormat(t, name, src)
		file, _ := syntax.Parse(fsys, name, opts)
		if file == nil {
			continue
		}
		again, errs := syntax.Parse(overlay{fsys, name, text}, name, opts)
		if again == nil {
			t.Errorf("%s: formatted program does not parse: %v", name, errs)
			continue
		}
		if want, got := printed(t, file), printed(t, again); want != got {
			t.Errorf("%s: formatted program has another tree:\n%s", name, p4test.FirstDifference([]byte(got), []byte(want)))
		}
	}
}

// printed is a tree as text: two trees are the same where their texts are.
func printed(t *testing.T, f *syntax.File) string {
	t.Helper()
	var b strings.Builder
	if err := syntax.Print(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An overlay is a file system in which one file has another text.
type overlay struct {
	fs.FS
	name string
	text []byte
}

func (o overlay) ReadFile(name string) ([]byte, error) {
	if name == o.name {
		return o.text, nil
	}
	return fs.ReadFile(o.FS, name)
}

// checkFormat formats a program and reports where a second time changes it.
func checkFormat(t *testing.T, name string, src []byte) []byte {
	t.Helper()
	once, err := Format(src, name)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return nil
	}
	twice, err := Format(once, name)
	if err != nil {
		t.Errorf("%s, formatted: %v", name, err)
		return nil
	}
	if !bytes.Equal(once, twice) {
		t.Errorf("%s: formatting twice differs:\n%s", name, p4test.FirstDifference(twice, once))
	}
	return once
}

// FuzzFormat checks that programs can be formatted and that formatting twice changes
// nothing more. Format itself checks that it keeps the tokens. It may refuse texts
// that are no programs, even in conditionals that are left out.
func FuzzFormat(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.txtar", "../syntax/testdata/*/*.txtar"} {
		for _, a := range archives(f, pattern) {
			for _, p := range programs(a) {
				f.Add(p.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, _ := syntax.Parse(fstest.MapFS{"fuzz.p4": {Data: text}}, "fuzz.p4", syntax.Options{})
		if _, err := Format(text, "fuzz.p4"); err == nil || file != nil && utf8.Valid(text) {
			checkFormat(t, "fuzz.p4", text)
		}
	})
}
