package lint_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/p4/lint"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/internal/p4/types"
	"github.com/p4lb/p4lb/p4src"
)

// load reads and checks a program, which must be valid P4.
func load(t *testing.T, fsys fs.FS, name string) (*syntax.File, *types.Info) {
	t.Helper()
	file, errs := syntax.Parse(fsys, name, syntax.Options{Includes: p4src.Include()})
	if file == nil {
		t.Fatal(errs)
	}
	info, more := types.Check(file)
	if err := append(errs, more...).Clean().Err(); err != nil {
		t.Fatal(err)
	}
	return file, info
}

// TestBroken checks programs that break one rule each. A comment /* ERROR "rx" */ or
// /* WARNING "rx" */ stands on the line of each expected message. Missing and
// additional messages fail the test.
func TestBroken(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/broken.txtar")
	if err != nil {
		t.Fatal(err)
	}
	fsys, err := txtar.FS(archive)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == "before.p4" || f.Name == "after.p4" {
			continue
		}
		t.Run(strings.TrimSuffix(f.Name, ".p4"), func(t *testing.T) {
			wants := expectations(t, string(f.Data))
			if len(wants) == 0 {
				t.Fatal("the program does not say what is wrong with it")
			}
			file, info := load(t, fsys, f.Name)
			for _, e := range lint.Check(file, info, lint.Tofino1) {
				want := wants[e.Pos.Line()]
				if path.Base(e.Pos.File()) != f.Name || want.rx == nil || !want.rx.MatchString(e.Msg) || want.warning != e.Warning {
					t.Errorf("surplus: %v", e)
				}
				delete(wants, e.Pos.Line())
			}
			for line, want := range wants {
				t.Errorf("%s:%d: missing %q", f.Name, line, want.rx)
			}
		})
	}
}

var comment = regexp.MustCompile(`/\* (ERROR|WARNING) ("(?:[^"\\]|\\.)*") \*/`)

// An expectation is the message that a line of a program must cause.
type expectation struct {
	rx      *regexp.Regexp
	warning bool
}

func expectations(t *testing.T, text string) map[int]expectation {
	t.Helper()
	wants := map[int]expectation{}
	for i, line := range strings.Split(text, "\n") {
		if m := comment.FindStringSubmatch(line); m != nil {
			s, err := strconv.Unquote(m[2])
			if err != nil {
				t.Fatal(err)
			}
			wants[i+1] = expectation{regexp.MustCompile(s), m[1] == "WARNING"}
		}
	}
	return wants
}

// TestRows finds nothing in the programs of the catalogue, which compile.
func TestRows(t *testing.T) {
	for dir, target := range map[string]lint.Target{"tna": lint.Tofino1, "t2na": lint.Tofino2} {
		names, err := filepath.Glob("../../../p4src/" + dir + "/*.p4")
		if err != nil || len(names) == 0 {
			t.Fatalf("no programs for %s: %v", dir, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, info := load(t, fstest.MapFS{"row.p4": {Data: text}}, "row.p4")
			for _, e := range lint.Check(file, info, target) {
				t.Errorf("%s: %v", name, e)
			}
		}
	}
}
