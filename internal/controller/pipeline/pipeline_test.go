package pipeline

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// Each role of a topology gets a program for its switches. Programs for Tofino have a schema of
// BfRt. The first error, or the end of the context, ends the work.
func TestFor(t *testing.T) {
	top, err := fabric.LeafSpine{Name: "x", Leaves: 2, Spines: 3, Hosts: 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	row, err := codegen.Parse("ecmp")
	if err != nil {
		t.Fatal(err)
	}
	s := scheme.Of(row)
	for _, arch := range []string{"v1model", "tna"} {
		all, err := For(t.Context(), s, codegen.Params{Arch: arch}, top)
		if err != nil || len(all) != 2 {
			t.Fatalf("%s: %d pipelines, %v", arch, len(all), err)
		}
		for role, p := range all {
			if p.Manifest.Role != string(role) || string(p.Manifest.Arch) != arch || len(p.Config) == 0 || p.P4Info == nil {
				t.Errorf("%s: the program of a %s is for %s, with %d bytes", arch, role, p.Manifest.Role, len(p.Config))
			}
			if (p.Schema != nil) != (arch == "tna") {
				t.Errorf("%s: schema %v", arch, p.Schema != nil)
			}
			if p.Schema == nil {
				continue
			}
			if text, err := p.Schema(); err != nil || !strings.Contains(string(text), `"tables"`) {
				t.Errorf("%s: schema %.80s, %v", arch, text, err)
			}
		}
		if got := all[fabric.Leaf].Manifest.Paths; got != 3 {
			t.Errorf("%s: the leaf has groups of %d paths, want 3", arch, got)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := For(ended, s, codegen.Params{}, top); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := For(t.Context(), s, codegen.Params{Arch: "none"}, top); err == nil {
		t.Error("an architecture that does not exist")
	}
}
