package p4_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/stf"
	"github.com/p4lb/p4lb/internal/p4"
)

// These folders hold an archive for each feature of the language and each extern of
// v1model, or of TNA and T2NA: a description, a program, and packets that show the
// feature. They also hold the frame that the programs include.
const (
	features       = "testdata/features"
	tofinoFeatures = "testdata/tofino"
)

// featureArchives reads the archives of a folder by their names.
func featureArchives(t testing.TB, dir string) map[string]*txtar.Archive {
	t.Helper()
	paths, err := filepath.Glob(dir + "/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no archives in %s: %v", dir, err)
	}
	archives := map[string]*txtar.Archive{}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives[strings.TrimSuffix(filepath.Base(path), ".txtar")] = a
	}
	return archives
}

// TestFeatures compiles each program and sends its packets through the embedded
// switch, which is given the written document, as a real switch would be.
func TestFeatures(t *testing.T) { testFeatures(t, features) }

func testFeatures(t *testing.T, dir string) {
	frame, err := os.ReadFile(dir + "/frame.p4")
	if err != nil {
		t.Fatal(err)
	}
	for name, archive := range featureArchives(t, dir) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runFeature(t, frame, archive, p4.Options{})
		})
	}
}

// runFeature compiles program.p4 of an archive with the frame and checks the packets
// of cases.stf. It returns the compiled program.
func runFeature(t *testing.T, frame []byte, archive *txtar.Archive, opts p4.Options) *bmv2.Config {
	t.Helper()
	fsys := fstest.MapFS{"frame.p4": {Data: frame}}
	for _, f := range archive.Files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	config, err := bmv2.Load(compile(t, fsys, "program.p4", opts).JSON())
	if err != nil {
		t.Fatalf("the document does not load: %v", err)
	}
	cases, err := fs.ReadFile(fsys, "cases.stf")
	if err != nil {
		t.Fatal(err)
	}
	if n := countLines(string(cases), "packet "); n < 2 {
		t.Errorf("%d packets prove little", n)
	}
	if err := stf.Run(config, string(cases)); err != nil {
		t.Error(err)
	}
	return config
}

func countLines(text, prefix string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// TestFeaturesOracle compares the archives with the record of their runs on
// simple_switch. The record has a row for each archive, in which p4lb's document
// passes on both switches. If p4c's does not, it fails on both, and the archive
// explains why.
func TestFeaturesOracle(t *testing.T) {
	archives := featureArchives(t, features)
	rows := oracle(t, "../../testdata/oracle/features.tsv")
	for _, name := range slices.Sorted(maps.Keys(archives)) {
		if rows[name] == nil {
			t.Errorf("%s is not in the record", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		archive := archives[name]
		if archive == nil {
			t.Errorf("the record knows %s, which is no archive", name)
			continue
		}
		p4cBMv2, oursBMv2, p4cEmbedded, oursEmbedded := rows[name][0], rows[name][1], rows[name][2], rows[name][3]
		if oursBMv2 != "pass" || oursEmbedded != "pass" {
			t.Errorf("%s: ours is %s on simple_switch and %s on the embedded switch", name, oursBMv2, oursEmbedded)
		}
		if p4cBMv2 != p4cEmbedded && p4cBMv2 != "unloadable" {
			t.Errorf("%s: p4c's is %s on simple_switch and %s on the embedded switch", name, p4cBMv2, p4cEmbedded)
		}
		if !slices.Contains([]string{"pass", "wrong", "refused", "unloadable"}, p4cBMv2) {
			t.Errorf("%s: no such outcome: %s", name, p4cBMv2)
		}
		if p4cBMv2 != "pass" && !strings.Contains(string(archive.Comment), "p4c") {
			t.Errorf("%s: the archive does not say why p4c's is %s", name, p4cBMv2)
		}
	}
}

// oracle reads a record: rows of a name and outcomes, separated by tabs, under
// a row of titles; # begins a comment.
func oracle(t *testing.T, name string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	columns := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if columns == 0 {
			columns = len(fields)
			continue
		}
		if len(fields) != columns || rows[fields[0]] != nil {
			t.Fatalf("%s: a row with other columns, or a second one: %q", name, line)
		}
		rows[fields[0]] = fields[1:]
	}
	if columns != 5 {
		t.Fatalf("%s has %d columns, expected a name and four outcomes", name, columns)
	}
	return rows
}
