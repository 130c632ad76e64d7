package p4src_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/p4/format"
	"github.com/p4lb/p4lb/internal/p4/syntax"
	"github.com/p4lb/p4lb/p4src"
)

// library returns the preprocessed text of a program that includes one file of the
// library.
func library(t *testing.T, includes fs.FS, file string, defines ...string) string {
	t.Helper()
	program := fstest.MapFS{"main.p4": {Data: []byte("#include <" + file + ">\n")}}
	parsed, errs := syntax.Parse(program, "main.p4", syntax.Options{Includes: includes, Defines: defines})
	if len(errs) > 0 {
		t.Fatalf("%s with %v:\n%v", file, defines, errs)
	}
	var text bytes.Buffer
	if err := syntax.Print(&text, parsed); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

var versions = []string{"20180101", "20200407", "20200408", "20991231"}

// TestV1ModelVersions checks what V1MODEL_VERSION changes.
func TestV1ModelVersions(t *testing.T) {
	for _, version := range versions {
		text := library(t, p4src.Include(), "v1model.p4", "V1MODEL_VERSION="+version)
		for _, declaration := range []string{"typedef bit<9> PortId_t;", "extern counter<I>", "extern meter<I>", "extern register<T, I>"} {
			want := version >= "20200408"
			if got := bytes.Contains([]byte(text), []byte(declaration)); got != want {
				t.Errorf("version %s: %s declared: %t", version, declaration, got)
			}
		}
	}
	if library(t, p4src.Include(), "v1model.p4") != library(t, p4src.Include(), "v1model.p4", "V1MODEL_VERSION=20180101") {
		t.Error("the default version is not 20180101")
	}
}

// message is the text of an annotation that only people read.
var message = regexp.MustCompile(`@deprecated\(".*"\)`)

// TestSameAsP4c compares the library with the checkout of p4c that P4C_DIR names.
func TestSameAsP4c(t *testing.T) {
	root := os.Getenv("P4C_DIR")
	if root == "" {
		t.Skip("P4C_DIR names no checkout of p4c")
	}
	theirs := os.DirFS(filepath.Join(root, "p4include"))
	for _, version := range versions {
		for _, file := range []string{"core.p4", "v1model.p4"} {
			want := library(t, theirs, file, "V1MODEL_VERSION="+version)
			got := library(t, p4src.Include(), file, "V1MODEL_VERSION="+version)
			if message.ReplaceAllString(want, "") != message.ReplaceAllString(got, "") {
				t.Errorf("%s, version %s: declarations differ", file, version)
			}
		}
	}
}

// TestFormatted checks that the programs of the library are formatted.
func TestFormatted(t *testing.T) {
	names, err := fs.Glob(p4src.Include(), "*.p4")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(p4src.Include(), name)
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Format(text, name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, formatted) {
			t.Errorf("%s is not formatted", name)
		}
	}
}
