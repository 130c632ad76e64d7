package stf

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/p4"
)

// Programs for Tofino with the packets of a pipe. The expected packets follow
// from the specification of the architecture, because there is no other switch
// to compare with. The name of a test is the architecture, or any for both, and
// optionally a macro for the compiler.
func TestTofino(t *testing.T) {
	files, err := filepath.Glob("testdata/tofino/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d archives, %v", len(files), err)
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		program := string(archive.Files[0].Data)
		for _, f := range archive.Files[1:] {
			arch, define, _ := strings.Cut(strings.TrimSuffix(f.Name, ".stf"), "-")
			archs := []string{arch}
			if arch == "any" {
				archs = []string{"tna", "t2na"}
			}
			for _, arch := range archs {
				t.Run(filepath.Base(name)+"/"+arch+define, func(t *testing.T) {
					source := strings.Replace(program, "<tna.p4>", "<"+arch+".p4>", 1)
					if define != "" {
						source = "#define " + define + "\n" + source
					}
					p, err := p4.CompileText("program.p4", []byte(source), p4.Options{Arch: arch})
					if err != nil {
						t.Fatal(err)
					}
					if err := Run(p.Config, string(f.Data)); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}
