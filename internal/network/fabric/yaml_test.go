package fabric

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/text/plain"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// eachArchive runs f for each archive in a folder of testdata. f returns the
// outputs that the archive must contain.
func eachArchive(t *testing.T, folder string, f func(t *testing.T, a *txtar.Archive) map[string]string) {
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives (%v)", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			compareArchive(t, path, a, f(t, a))
		})
	}
}

// compareArchive compares outputs with the files in an archive, or updates
// them.
func compareArchive(t *testing.T, path string, a *txtar.Archive, got map[string]string) {
	t.Helper()
	for i, file := range a.Files {
		text, ok := got[file.Name]
		if !ok {
			continue
		}
		delete(got, file.Name)
		if *update {
			a.Files[i].Data = []byte(text)
		} else if diff := cmp.Diff(string(file.Data), text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file.Name, diff)
		}
	}
	for name := range got {
		t.Errorf("there is no file %s to compare with", name)
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoad loads each X.yaml of an archive and compares the result with X.full,
// or the errors with X.errors.
func TestLoad(t *testing.T) {
	eachArchive(t, "load", func(t *testing.T, a *txtar.Archive) map[string]string {
		got := map[string]string{}
		for _, file := range a.Files {
			name, ok := strings.CutSuffix(file.Name, ".yaml")
			if !ok {
				continue
			}
			top, err := Load(file.Name, file.Data)
			if err != nil {
				got[name+".errors"] = err.Error() + "\n"
				continue
			}
			got[name+".full"] = string(top.YAML())
		}
		return got
	})
}

// TestRoundTrip: a topology written as YAML is read unchanged.
func TestRoundTrip(t *testing.T) {
	check := func(t *testing.T, top *Topology) {
		text := top.YAML()
		again, err := Load("again.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		top.routes, again.routes = nil, nil // functions cannot be compared
		if diff := cmp.Diff(top, again, samePrefix, cmp.AllowUnexported(Topology{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !bytes.Equal(text, again.YAML()) {
			t.Errorf("written again it is\n%s", again.YAML())
		}
	}
	for _, p := range Presets() {
		check(t, preset(t, p.Name))
	}
	manyTopologies(t, 50, 10, 0.2, check)
}

// TestErrorType: callers can inspect the errors.
func TestErrorType(t *testing.T) {
	var list Errors
	if _, err := Load("x.yaml", []byte("switches: {s1: {rol: leaf}, s2: {rol: leaf}}")); !errors.As(err, &list) || len(list) != 2 || list[0].Line != 1 || list[0].File != "x.yaml" {
		t.Errorf("got %#v", err)
	}
	var one *Error
	if _, err := Load("x.yaml", []byte("\n\n  a: [")); !errors.As(err, &one) || one.Line != 3 {
		t.Errorf("got %#v", err)
	}
}

// TestDeep: input that would keep the parser busy for minutes is rejected.
func TestDeep(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 1e5), strings.Repeat("{a: ", 1e5), strings.Repeat("- ", 1e5),
	} {
		if _, err := Load("deep.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "nested too deeply") {
			t.Errorf("%.9s…: got %v", text, err)
		}
		if _, _, err := (Imports{}).Import("deep.json", []byte(text)); err == nil {
			t.Errorf("%.9s…: imported", text)
		}
	}
	if _, err := Load("large.yaml", make([]byte, plain.MaxBytes+1)); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(randomTopology(f, rand.New(rand.NewPCG(1, 1)), 5, 5, 0.5).YAML())
	f.Add([]byte("switches: {\"\r\rs\": {\"k\": \"leaf\"}}")) // a name with several lines
	paths, err := filepath.Glob("testdata/load/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		top, err := Load("fuzz.yaml", text)
		if (top == nil) != (err != nil) {
			t.Fatalf("got %v and %v", top, err)
		}
		if err != nil {
			checkMessage(t, err)
			return
		}
		checkUse(t, top)
	})
}

// checkMessage checks that each line of an error names the file.
func checkMessage(t *testing.T, err error) {
	t.Helper()
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "fuzz.") {
			t.Fatalf("the message %q does not name the file", err)
		}
	}
}

// checkUse uses all operations of a topology.
func checkUse(t *testing.T, top *Topology) {
	t.Helper()
	text := top.YAML()
	again, err := Load("again.yaml", text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !bytes.Equal(text, again.YAML()) {
		t.Fatalf("written\n%s\nand again\n%s", text, again.YAML())
	}
	if len(top.Switches) > 20 {
		return
	}
	top.SVG()
	r := top.Routes()
	for _, s := range top.Switches {
		r.Table(s.Name, ByHops)
	}
	if len(top.Hosts) > 1 {
		a, b := top.Hosts[0].Name, top.Hosts[1].Name
		_, errPaths := r.Paths(a, b)
		_, errBest := top.KShortest(a, b, 3)
		if errPaths != nil || errBest != nil {
			t.Fatal(errPaths, errBest)
		}
	}
}
