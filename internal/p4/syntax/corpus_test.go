package syntax

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// The tests here read the programs of a checkout of p4c, which P4C_DIR names;
// without it they are skipped.

func corpus(t testing.TB, dir string) (fs.FS, []string) {
	root := os.Getenv("P4C_DIR")
	if root == "" {
		t.Skip("P4C_DIR names no checkout of p4c")
	}
	fsys := os.DirFS(root)
	var names []string
	err := fs.WalkDir(fsys, dir, func(name string, _ fs.DirEntry, err error) error {
		if path.Ext(name) == ".p4" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fsys, names
}

func corpusOptions(name string) Options {
	dirs := []string{path.Dir(name), "p4include"}
	for _, dir := range []string{"bmv2", "dpdk", "tc"} {
		dirs = append(dirs, "p4include/"+dir)
	}
	return Options{IncludeDirs: dirs}
}

// TestCorpusParses parses p4c's samples, prints each and reads it again.
func TestCorpusParses(t *testing.T) {
	fsys, names := corpus(t, "testdata/p4_16_samples")
	for _, name := range names {
		file, errs := Parse(fsys, name, corpusOptions(name))
		if file == nil {
			t.Errorf("%s", errs)
			continue
		}
		checkPrint(t, name, file)
	}
}

// checkPrint reports where what Print writes does not parse to the same tree.
func checkPrint(t *testing.T, name string, file *File) {
	t.Helper()
	var text bytes.Buffer
	if err := Print(&text, file); err != nil {
		t.Fatal(err)
	}
	again, errs := Parse(fstest.MapFS{name: {Data: text.Bytes()}}, name, Options{})
	if again == nil {
		t.Errorf("%s: printed program does not parse: %v", name, errs)
		return
	}
	if want, got := dump(file), dump(again); want != got {
		t.Errorf("%s: printed program has another tree:\n%s", name, firstDifference(want, got))
	}
	var second bytes.Buffer
	if err := Print(&second, again); err != nil {
		t.Fatal(err)
	}
	if text.String() != second.String() {
		t.Errorf("%s: printing twice differs:\n%s", name, firstDifference(text.String(), second.String()))
	}
}

// firstDifference is the first line in which two texts differ.
func firstDifference(want, got string) string {
	ws, gs := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range ws {
		if i >= len(gs) || ws[i] != gs[i] {
			return ws[i] + "\n" + strings.Join(gs[min(i, len(gs)):min(i+1, len(gs))], "")
		}
	}
	return strings.Join(gs[len(ws):min(len(ws)+1, len(gs))], "")
}

// checkersPart are programs where what p4c calls a syntax error is in the
// body of an annotation, which is not the parser's to judge.
var checkersPart = map[string]bool{"annotation.p4": true, "issue2283_2-bmv2.p4": true}

// TestCorpusErrors holds the first error to be on a line where p4c reports
// one, and programs without a syntax error to parse.
func TestCorpusErrors(t *testing.T) {
	fsys, names := corpus(t, "testdata/p4_16_errors")
	for _, name := range names {
		base := path.Base(name)
		lines, syntax := reported(fsys, base)
		file, errs := Parse(fsys, name, corpusOptions(name))
		switch {
		case file != nil && syntax && !checkersPart[base]:
			t.Errorf("%s: parses, p4c reports a syntax error", base)
		case file == nil && !lines[errs[0].Pos.Line()]:
			t.Errorf("%s: p4c reports nothing on this line\n%s", base, errs)
		}
	}
}

// reported are the lines of a program that p4c's expected output names, and
// whether there is a syntax error among them, which then are the only lines.
func reported(fsys fs.FS, base string) (lines map[int]bool, syntax bool) {
	lines = make(map[int]bool)
	text, err := fs.ReadFile(fsys, "testdata/p4_16_errors_outputs/"+base+"-stderr")
	if err != nil {
		return lines, false
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		rest, ok := strings.CutPrefix(line, base+"(")
		num, msg, found := strings.Cut(rest, ")")
		n, err := strconv.Atoi(num)
		if !ok || !found || err != nil {
			continue
		}
		if strings.HasPrefix(msg, ":syntax error") && !syntax {
			clear(lines)
			syntax = true
		}
		lines[n] = lines[n] || !syntax || strings.HasPrefix(msg, ":syntax error")
	}
	return lines, syntax
}

func BenchmarkCorpus(b *testing.B) {
	fsys, names := corpus(b, "testdata/p4_16_samples")
	b.ReportAllocs()
	for b.Loop() {
		for _, name := range names {
			Parse(fsys, name, corpusOptions(name))
		}
	}
}
