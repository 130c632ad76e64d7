package codegen_test

import (
	"reflect"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// TestManifests compares the manifest of every program of the catalogue with the program,
// and reads the written manifest again.
func TestManifests(t *testing.T) {
	for _, arch := range codegen.Archs {
		for i, row := range codegen.Standard().Rows() {
			if testing.Short() && i%6 > 0 {
				continue // each has one goroutine: some do for the race detector
			}
			for _, role := range []string{"leaf", "spine"} {
				t.Run(arch+"/"+row.Name+"/"+role, func(t *testing.T) {
					t.Parallel()
					program, err := codegen.Generate(row, codegen.Params{Arch: arch, Role: role})
					if err != nil {
						if arch == "v1model" {
							t.Fatal(err)
						}
						return // no room on the hardware, which other tests are about
					}
					checkContract(t, program, arch)
				})
			}
		}
	}
}

func checkContract(t *testing.T, program *codegen.Program, arch string) {
	m := &program.Manifest
	compiled, err := p4.CompileText(program.Name+".p4", []byte(program.P4), p4.Options{Arch: arch})
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Check(m, compiled.P4Info); err != nil {
		t.Error(err)
	}
	text, err := m.JSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := manifest.Decode("again", text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*m, *again) {
		t.Errorf("%+v\nbecame\n%+v", m, again)
	}
	for _, r := range m.Registers {
		if r.Kind == "" && len(r.Fields) == 0 {
			t.Errorf("register %s has no kind", r.Name)
		}
	}
	for _, table := range m.Tables {
		if table.Purpose == "" {
			t.Errorf("table %s has no purpose", table.Name)
		}
	}
}
