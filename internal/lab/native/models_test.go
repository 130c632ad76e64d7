package native_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/lab/native"
	"github.com/p4lb/p4lb/internal/scheme"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

var update = flag.Bool("update", false, "rewrite the expected models")

// TestModels lists what the models read from manifests of each kind.
func TestModels(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{
		"ecmp v1model leaf", "conga v1model leaf", "hula v1model leaf", "hula v1model spine", "letflow t2na leaf", "drill+rlb v1model leaf", "qall-poly3 v1model leaf", "qall-poly3 tna leaf",
		"ecmp+trim v1model leaf", "pdlb v1model leaf", "qdaps v1model spine", "clove v1model leaf", "clove tna leaf", "hermes t2na leaf",
	} {
		var scheme, arch, role string
		fmt.Sscan(name, &scheme, &arch, &role)
		row, err := codegen.Parse(scheme)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p, err := codegen.Generate(row, codegen.Params{Ports: 4, Arch: arch, Role: role})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		asked := ""
		m, err := native.ModelOf(&p.Manifest, func(degree int, tau int64) *fitting.Poly {
			asked = fmt.Sprintf("degree %d, tau %d us", degree, tau)
			return &fitting.Poly{Degree: degree}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fmt.Fprintf(&b, "%s: %s %s %s %s, %d paths, edge %v, direct %v, ghost %v\n\theaders %d %d %d %d %d, mirrored %d, port %d, sessions %d %d, probes %d %d, mark %d, trim %d %d, extended %v\n\tcells %v, fitted %s\n",
			name, m.Granularity, m.Signal, m.Choice, m.Guard, m.Paths, m.Edge, m.Direct, m.Ghost,
			m.ReportLen, m.OverlayLen, m.NoticeLen, m.BridgeLen, m.AgainLen, m.MirrorLen, m.AgainPort, m.ReportSession, m.NoticeSession, m.ProbesUp, m.ProbesFrom, m.ProbeMark, m.TrimAt, m.TrimLen, m.Extend != nil,
			m.Cells, asked)
		if h := m.Hardware; h != nil {
			fmt.Fprintf(&b, "\thardware: cells of %d bytes, %d flows, index of %d, weights %v, zero %v\n", h.Cell, h.Flows, len(h.Index), h.Weights, h.Zero)
		}
		m.Params.Hardware, m.Params.Poly = nil, nil
		fmt.Fprintf(&b, "\tparameters %+v\n", m.Params)
	}
	file := filepath.Join("testdata", "models.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestConWeaveModel: ConWeave's model is ECMP's with an extension, and its packets carry two times.
// The extension has ConWeave's parameters. A parameter that no model has is an error.
func TestConWeaveModel(t *testing.T) {
	s, err := new(scheme.Library).Find(scheme.ConWeave)
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Build(codegen.Params{Ports: 4, Role: "leaf"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := native.ModelOf(&made.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%s %s %s %s %d %v", m.Granularity, m.Signal, m.Choice, m.Guard, m.OverlayLen, m.Extend != nil), "flow none hash none 4 true"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	made.Manifest.Parameters = append(made.Manifest.Parameters, manifest.Parameter{Name: "odd", Number: 1})
	if _, err := native.ModelOf(&made.Manifest, nil); err == nil || !strings.HasPrefix(err.Error(), "the model of conweave: ") || !strings.Contains(err.Error(), "odd") {
		t.Errorf("a parameter of no model: %v", err)
	}
}

// TestTables copies the entries, sessions and groups of a plan.
func TestTables(t *testing.T) {
	s := &plan.Switch{
		Entries:  []plan.Entry{{Table: "t", Action: "a", Match: []plan.Match{{Value: 10, Bits: 24, Width: 32, Mask: nil}}, Args: []plan.Arg{{Name: "port", Value: 3}, {Name: "n", Value: 4}}}, {Table: "t", Action: "none"}},
		Sessions: []plan.Session{{ID: 7, Port: 2}}, Groups: []plan.Multicast{{ID: 9, Ports: []int{1, 3}}},
	}
	got := native.TablesOf(s)
	if text, want := fmt.Sprintf("%+v", got), "{Entries:[{Table:t Key:[{Value:10 Bits:24 Width:32 Mask:<nil>}] Action:a Args:map[n:4 port:3]} {Table:t Key:[] Action:none Args:map[]}] Sessions:map[7:2] Multicast:map[9:[1 3]]}"; text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}
