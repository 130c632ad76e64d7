package syntax

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden parts of testdata anew")

// archives runs a test for each archive of a folder of testdata. With -update it
// rewrites the archives that the test has changed.
func archives(t *testing.T, dir string, test func(t *testing.T, a *txtar.Archive)) {
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives in testdata/%s: %v", dir, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			test(t, a)
			if *update {
				if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// golden compares got with a file of the archive, or makes it that file.
func golden(t *testing.T, a *txtar.Archive, name, got string) {
	t.Helper()
	if got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	for i := range a.Files {
		if f := &a.Files[i]; f.Name == name {
			if *update {
				f.Data = []byte(got)
			} else if string(f.Data) != got {
				t.Errorf("%s differs:\n%s", name, firstDifference(string(f.Data), got))
			}
			return
		}
	}
	if !*update {
		t.Errorf("%s is missing from the archive", name)
		return
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(got)})
}

// contents are the files of an archive.
func contents(a *txtar.Archive) fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, f := range a.Files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return fsys
}

// programs are the names of the programs in an archive.
func programs(a *txtar.Archive) []string {
	var names []string
	for _, f := range a.Files {
		if filepath.Ext(f.Name) == ".p4" && !strings.Contains(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	return names
}

// TestParse compares the output of Print with the expected programs.
func TestParse(t *testing.T) {
	archives(t, "parse", func(t *testing.T, a *txtar.Archive) {
		fsys := contents(a)
		for _, name := range programs(a) {
			file, errs := Parse(fsys, name, Options{})
			if len(errs) > 0 {
				t.Errorf("%v", errs)
				continue
			}
			checkPrint(t, name, file)
			golden(t, a, strings.TrimSuffix(name, ".p4")+".print", printed(t, file))
		}
	})
}

func printed(t *testing.T, file *File) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b, file); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPreprocess compares main.p4 of each archive with its tokens after
// preprocessing, line by line as their positions have it.
func TestPreprocess(t *testing.T) {
	archives(t, "preprocess", func(t *testing.T, a *txtar.Archive) {
		fsys := contents(a)
		var errs Errors
		opts := Options{IncludeDirs: []string{"first", "second"}, Includes: sub(t, fsys, "builtin"), Defines: []string{"ONE", "TWO=2", "NONE="}}
		text, err := readFile(fsys, "main.p4")
		if err != nil {
			t.Fatal(err)
		}
		toks := newPreproc(fsys, &opts, &errs).run("main.p4", text, nil)
		if len(errs) > 0 {
			t.Errorf("%v", errs)
		}
		golden(t, a, "tokens", tokenLines(toks[:len(toks)-1]))
	})
}

func sub(t *testing.T, fsys fs.FS, dir string) fs.FS {
	s, err := fs.Sub(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tokenLines(toks []Token) string {
	var b strings.Builder
	for i := 0; i < len(toks); {
		n := i + 1
		for n < len(toks) && sameLine(toks[i].Pos, toks[n].Pos) {
			n++
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", toks[i].Pos.File(), toks[i].Pos.Line(), spell(toks[i:n]))
		i = n
	}
	return b.String()
}

// A want is one expected diagnostic, from /* ERROR "regexp" */ or
// /* WARNING "regexp" */ on its line.
type want struct {
	kind string
	rx   *regexp.Regexp
}

var wantComment = regexp.MustCompile(`(ERROR|WARNING) ("(?:[^"\\]|\\.)*")`)

func expectations(t *testing.T, name string, text []byte) map[string][]want {
	t.Helper()
	wants := make(map[string][]want)
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range wantComment.FindAllStringSubmatch(line, -1) {
			s, err := strconv.Unquote(m[2])
			if err != nil {
				t.Fatalf("%s:%d: %v", name, i+1, err)
			}
			at := fmt.Sprintf("%s:%d", name, i+1)
			wants[at] = append(wants[at], want{m[1], regexp.MustCompile(s)})
		}
	}
	return wants
}

// TestErrors compares the diagnostics of programs with the comments in them.
func TestErrors(t *testing.T) {
	archives(t, "errors", func(t *testing.T, a *txtar.Archive) {
		fsys := contents(a)
		for _, name := range programs(a) {
			t.Run(name, func(t *testing.T) { checkErrors(t, fsys, name) })
		}
	})
}

func checkErrors(t *testing.T, fsys fstest.MapFS, name string) {
	wants := expectations(t, name, fsys[name].Data)
	for included, f := range fsys {
		if strings.HasPrefix(included, "include/") {
			for at, w := range expectations(t, included, f.Data) {
				if strings.Contains(string(fsys[name].Data), filepath.Base(included)) {
					wants[at] = w
				}
			}
		}
	}
	file, errs := Parse(fsys, name, Options{IncludeDirs: []string{"include"}})
	if (file == nil) != (errs.Err() != nil) {
		t.Errorf("file is nil: %t, with %v", file == nil, errs)
	}
	for _, e := range errs {
		at := fmt.Sprintf("%s:%d", e.Pos.File(), e.Pos.Line())
		kind := []string{"ERROR", "WARNING"}[btoi(e.Warning)]
		if w := wants[at]; len(w) == 0 || w[0].kind != kind || !w[0].rx.MatchString(e.Msg) {
			t.Errorf("unexpected %s", e)
			continue
		}
		wants[at] = wants[at][1:]
	}
	for at, left := range wants {
		for _, w := range left {
			t.Errorf("%s: no %s that matches %q", at, strings.ToLower(w.kind), w.rx)
		}
	}
}

// TestWideTree prints a tree of the greatest depth that the parser allows.
func TestWideTree(t *testing.T) {
	text := "const int a = 1" + strings.Repeat(" + 1", maxChain) + ";\n" +
		"void f() { " + strings.Repeat("if (x) {} else ", maxChain) + "{} }\n" +
		"const int b = " + strings.Repeat("(", maxDepth-1) + "1" + strings.Repeat(")", maxDepth-1) + ";\n"
	file := mustParse(t, text)
	nodes := 0
	for _, d := range file.Decls {
		Inspect(d, func(Node) bool { nodes++; return true })
	}
	if nodes < 4*maxChain {
		t.Errorf("%d nodes", nodes)
	}
	checkPrint(t, "main.p4", file)
}
