package syntax

import (
	"bytes"
	"path/filepath"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/p4/token"
)

// seed adds all programs of testdata.
func seed(f *testing.F) {
	paths, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatal("no testdata: ", err)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range programs(a) {
			f.Add(contents(a)[name].Data)
		}
	}
}

// FuzzScan checks that tokens cover the text in order and that scanning ends.
func FuzzScan(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		var errs Errors
		s := newScanner(newSource("fuzz.p4", string(text), Pos{}), errs.add)
		end := 0
		for {
			var tok Token
			s.next(&tok)
			if s.from < end || s.off < s.from || s.off > len(text) {
				t.Fatalf("token %q from %d to %d, behind %d", tok.Text, s.from, s.off, end)
			}
			if tok.Kind == token.EOF {
				return
			}
			if s.off == s.from || tok.Pos.Col() < 1 || tok.Pos.Line() < 1 {
				t.Fatalf("token %q at %s takes no text", tok.Text, tok.Pos)
			}
			end = s.off
		}
	})
}

// FuzzPreprocess checks that the output of the preprocessor contains no macros:
// running it again changes nothing.
func FuzzPreprocess(f *testing.F) {
	seed(f)
	f.Add([]byte("#define STR(x) #x\nSTR(\\)")) // would escape the quote
	f.Add([]byte("#define STR(x) #x\nSTR(n\\\" b\"c)"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var errs Errors
		fsys := fstest.MapFS{"fuzz.p4": {Data: text}}
		toks := newPreproc(fsys, &Options{Defines: []string{"ONE", "TWO=2"}}, &errs).run("fuzz.p4", string(text), nil)
		if errs.Err() != nil {
			return
		}
		if last := toks[len(toks)-1]; last.Kind != token.EOF {
			t.Fatalf("the last token is %s", last.describe())
		}
		spelled := spell(toks[:len(toks)-1])
		if bytes.ContainsAny([]byte(spelled), "#\n") {
			return // would be a directive
		}
		s := newScanner(newSource("again.p4", spelled, Pos{}), errs.add)
		for _, want := range toks {
			var got Token
			s.next(&got)
			if got.Kind != want.Kind || got.Text != want.Text {
				t.Fatalf("%q spells %q where %q was meant", spelled, got.Text, want.Text)
			}
		}
	})
}

// FuzzParse checks that a file is nil if and only if there are errors, and that a
// parsed file prints to text that parses to the same tree.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, errs := Parse(fstest.MapFS{"fuzz.p4": {Data: text}}, "fuzz.p4", Options{})
		if (file == nil) != (errs.Err() != nil) {
			t.Fatalf("file is nil: %t, errors: %v", file == nil, errs)
		}
		var shown bytes.Buffer
		if err := errs.Print(&shown); err != nil {
			t.Fatal(err)
		}
		if file != nil {
			checkPrint(t, "fuzz.p4", file)
		}
	})
}
