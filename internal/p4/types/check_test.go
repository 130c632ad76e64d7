package types

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// TestPrograms checks the programs of testdata. A comment /* ERROR "rx" */ or
// /* WARNING "rx" */ stands on the line of the diagnostic that it asks for;
// one that is missing fails the test and so does one too many.
func TestPrograms(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in testdata: %v", err)
	}
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		feature := strings.TrimSuffix(filepath.Base(path), ".txtar")
		for _, f := range a.Files {
			t.Run(feature+"/"+f.Name, func(t *testing.T) { checkProgram(t, f) })
		}
	}
}

func checkProgram(t *testing.T, f txtar.File) {
	wants := expectations(t, f)
	_, errs := check(t, f.Name, f.Data)
	for _, e := range errs {
		if !take(wants, e) {
			t.Errorf("surplus: %v", e)
		}
	}
	for line, ws := range wants {
		for _, w := range ws {
			t.Errorf("%s:%d: missing %s %q", f.Name, line, w.kind, w.rx)
		}
	}
}

type want struct {
	kind string
	rx   *regexp.Regexp
}

var comment = regexp.MustCompile(`/\* (ERROR|WARNING) ("(?:[^"\\]|\\.)*") \*/`)

func expectations(t *testing.T, f txtar.File) map[int][]want {
	t.Helper()
	wants := map[int][]want{}
	for i, line := range strings.Split(string(f.Data), "\n") {
		for _, m := range comment.FindAllStringSubmatch(line, -1) {
			s, err := strconv.Unquote(m[2])
			if err != nil {
				t.Fatalf("%s:%d: %v", f.Name, i+1, err)
			}
			wants[i+1] = append(wants[i+1], want{m[1], regexp.MustCompile(s)})
		}
	}
	return wants
}

// take removes the expectation that e meets from wants.
func take(wants map[int][]want, e *syntax.Error) bool {
	kind := "ERROR"
	if e.Warning {
		kind = "WARNING"
	}
	line := e.Pos.Line()
	for i, w := range wants[line] {
		if w.kind == kind && w.rx.MatchString(e.Msg) {
			wants[line] = append(wants[line][:i:i], wants[line][i+1:]...)
			return true
		}
	}
	return false
}

// check parses and checks one program, which may include "core.p4", the small
// core library of testdata.
func check(t testing.TB, name string, text []byte) (*Info, syntax.Errors) {
	t.Helper()
	core, err := os.ReadFile("testdata/core.p4")
	if err != nil {
		t.Fatal(err)
	}
	file, errs := parseFiles(map[string]string{name: string(text), "core.p4": string(core)}, name)
	if file == nil {
		t.Fatalf("parsing: %v", errs)
	}
	return Check(file)
}

func parse(t testing.TB, files map[string]string) *syntax.File {
	t.Helper()
	file, errs := parseFiles(files, "test.p4")
	if file == nil {
		t.Fatalf("parsing: %v", errs)
	}
	return file
}

func parseFiles(files map[string]string, name string) (*syntax.File, syntax.Errors) {
	fsys := fstest.MapFS{}
	for n, text := range files {
		fsys[n] = &fstest.MapFile{Data: []byte(text)}
	}
	return syntax.Parse(fsys, name, syntax.Options{})
}
