package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/scheme"
)

// hardwareArchs are the architectures of Tofino. Their golden programs are in
// separate folders.
var hardwareArchs = []string{"tna", "t2na"}

// maxHardwareLines bounds the length of a program for a group of 4 paths, so
// that programs stay readable. A copy of a register with its table takes 50
// lines, and RLB* on Hermes has 24 of them.
const maxHardwareLines = 2050

// TestGoldensHardware compares the programs for Tofino with the golden files.
// For rows that an architecture does not support, gen must fail with a reason,
// and no file may exist.
func TestGoldensHardware(t *testing.T) {
	if testing.Short() {
		t.Skip("it has one goroutine: the race detector has nothing to see")
	}
	for _, arch := range hardwareArchs {
		dir := filepath.Join("../../p4src", arch)
		want := map[string]bool{}
		for _, row := range codegen.Rows() {
			g, err := scheme.Make(scheme.Of(row), codegen.Params{Arch: arch, Provenance: &codegen.Provenance{Flags: []string{"--arch", arch}}})
			if err != nil {
				if !strings.Contains(err.Error(), row.Name+" does not fit "+arch+": ") {
					t.Error(err)
				}
				continue
			}
			if n := lineCount(textOf(t, g)); n > maxHardwareLines {
				t.Errorf("%s for %s has %d lines, want at most %d", row.Name, arch, n, maxHardwareLines)
			}
			name := filepath.Join(dir, g.Name+".p4")
			want[name] = true
			compareGolden(t, name, textOf(t, g))
		}
		have, err := filepath.Glob(filepath.Join(dir, "*.p4"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range have {
			if !want[name] {
				t.Errorf("%s is the program of no scheme", name)
			}
		}
	}
}

// compareGolden compares text with a file, or with -update writes the file.
func compareGolden(t *testing.T, name string, text []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(string(golden), string(text)); diff != "" {
		t.Errorf("%s, golden (-) and generated (+):\n%s", name, diff)
	}
}

// TestHardwareSizes generates every row for several group sizes, as leaf and as
// spine, and lints the programs.
func TestHardwareSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("some hundred programs")
	}
	for _, ports := range []int{2, 8, 16} {
		for _, role := range []string{"leaf", "spine"} {
			for _, row := range codegen.Rows() {
				_, err := scheme.Make(scheme.Of(row), codegen.Params{Arch: "tna", Ports: ports, Role: role})
				if err != nil && !refusal(err) {
					t.Errorf("%d paths, %s: %v", ports, role, err)
				}
			}
		}
	}
}

// refusal reports whether an error states that a row cannot exist.
func refusal(err error) bool {
	return strings.Contains(err.Error(), " does not fit tna") || strings.Contains(err.Error(), "want at most")
}
