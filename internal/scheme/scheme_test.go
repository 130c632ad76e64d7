package scheme

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/fitting"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

func TestFind(t *testing.T) {
	var l Library
	for name, want := range map[string]string{
		"ecmp": "ecmp", "drill+rlb": "drill+rlb", "flowlet-queue-grid": "flowlet-queue-grid", "flow-hash": "ecmp",
	} {
		s, err := l.Find(name)
		if err != nil || s.Name() != want {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if s, err := l.Find("emcp"); s != nil || !errors.Is(err, codegen.ErrUnknown) {
		t.Error(s, err)
	}
	if s, err := l.Compose("packet", "queue", "hash", ""); s != nil || err == nil {
		t.Error(s, err)
	}
	if got, want := len(l.All()), len(codegen.Names()); got != want {
		t.Errorf("%d schemes, the catalogue has %d", got, want)
	}
}

// TestSources: sources are asked in order before the catalogue, and an error of a
// source is final.
func TestSources(t *testing.T) {
	mine, err := (&Library{}).Find("rps")
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no manifest")
	var asked []string
	l := Library{Sources: []Source{
		func(name string) (Scheme, error) {
			asked = append(asked, name)
			return nil, nil
		},
		func(name string) (Scheme, error) {
			switch name {
			case "./mine":
				return mine, nil
			case "./broken":
				return nil, refused
			}
			return nil, nil
		},
	}}
	if s, err := l.Find("./mine"); s != mine || err != nil {
		t.Error(s, err)
	}
	if s, err := l.Find("./broken"); s != nil || err != refused {
		t.Error(s, err)
	}
	if s, err := l.Find("ecmp"); err != nil || s.Name() != "ecmp" {
		t.Error(s, err)
	}
	if len(asked) != 3 {
		t.Error(asked)
	}
}

func TestBuild(t *testing.T) {
	for _, arch := range append([]string{""}, codegen.Archs...) {
		row, err := codegen.Lookup("letflow")
		if err != nil {
			t.Fatal(err)
		}
		p, err := Of(row).Build(codegen.Params{Arch: arch, Role: "spine"})
		if err != nil {
			t.Fatal(err)
		}
		if p.Manifest.Scheme != "letflow" || p.Manifest.Role != "spine" || len(p.Digest) != 64 || p.compiled != nil {
			t.Errorf("%s: %+v", arch, p)
		}
		text, err := p.Text()
		if err != nil || !strings.Contains(string(text), "control LbIngress(") {
			t.Errorf("%s: %v\n%s", arch, err, text)
		}
		compiled, err := p.Compiled()
		if err != nil || compiled.Arch != p.Arch || len(compiled.P4Info.GetTables()) == 0 || !bytes.Contains(compiled.JSON(), []byte("letflow.p4")) {
			t.Errorf("%s: %v", arch, err)
		}
		if again, _ := p.Compiled(); again != compiled {
			t.Errorf("%s: compiled twice", arch)
		}
	}
}

// TestBuildAgain: a cached program is only used for the same request. For any
// difference, program and manifest equal those of an uncached scheme.
func TestBuildAgain(t *testing.T) {
	cubic, _ := fitting.Paper(3, false)
	printed, _ := fitting.Paper(3, true)
	given := []codegen.Params{
		{}, {Ports: 5}, {MaxPort: 40}, {Role: "spine"}, {Arch: "tna"}, {StatePath: "shared"}, {Printed: true}, {Runtime: true}, {IPv6: true},
		{Set: map[string]string{"tau": "20ms"}}, {Set: map[string]string{"tau": "30ms"}}, {Coeffs: &cubic}, {Coeffs: &printed},
		{Provenance: &codegen.Provenance{Version: "1"}}, {Provenance: &codegen.Provenance{Version: "2"}},
	}
	if fields := reflect.TypeFor[codegen.Params]().NumField(); fields != 11 {
		t.Errorf("there are %d parameters: want another question for each", fields)
	}
	var l Library
	for _, name := range []string{"qall-poly3", "qall-pkt"} {
		found, err := l.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		row, _ := RowOf(found)
		digests := map[string]bool{}
		for range 2 {
			for _, p := range given {
				want, errWant := Of(row).Build(p)
				got, err := found.Build(p)
				if fmt.Sprint(err) != fmt.Sprint(errWant) {
					t.Errorf("%s, %+v: %v, want %v", name, p, err, errWant)
				}
				if err == nil {
					digests[want.Digest] = true
				}
				if err == nil && (got.Digest != want.Digest || !reflect.DeepEqual(got.Manifest, want.Manifest)) {
					t.Errorf("%s, %+v: differs from a newly generated program", name, p)
				}
			}
		}
		if len(digests) < 8 {
			t.Errorf("%s: the questions have %d answers: too few to tell them apart", name, len(digests))
		}
	}
	for i := range maxBefore + 1 { // and no end of them is kept
		found, _ := l.Find("ecmp")
		if _, err := found.Build(codegen.Params{MaxPort: i}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(before.programs); n > maxBefore {
		t.Errorf("%d programs are kept, want at most %d", n, maxBefore)
	}
}

// TestCompileFails: each call returns the error.
func TestCompileFails(t *testing.T) {
	p := newGenerated(&codegen.Program{Name: "broken", P4: "control C() { apply { x = 1; } }"}, "")
	for range 2 {
		text, err := p.Text()
		compiled, again := p.Compiled()
		if text != nil || compiled != nil || err == nil || err != again || !strings.Contains(err.Error(), "the program of broken does not compile: broken.p4:") {
			t.Error(text, compiled, err, again)
		}
	}
}

// TestConWeave finds the scheme that has no program.
func TestConWeave(t *testing.T) {
	s, err := new(Library).Find("conweave")
	if err != nil || s.Native() != nil || len(s.Archs()) != 0 {
		t.Fatalf("%v, %v: want a scheme that is only a model", s, err)
	}
	for text, p := range map[string]codegen.Params{
		"no P4 program":          {Arch: "tna"},
		`no parameter "gap"`:     {Set: map[string]string{"gap": "1us"}},
		"at most 127":            {Set: map[string]string{"queues": "128"}},
		"no fitted polynomial":   {Runtime: true},
		`inactive="5": want a t`: {Set: map[string]string{"inactive": "5"}},
	} {
		if _, err := s.Build(p); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: want %s", err, text)
		}
	}
	leaf, err := s.Build(codegen.Params{Role: "leaf", Set: map[string]string{"busy": "8us"}})
	if err != nil {
		t.Fatal(err)
	}
	spine, err := s.Build(codegen.Params{Role: "spine"})
	if err != nil || spine.Digest == leaf.Digest {
		t.Errorf("leaf and spine have the same digest, or %v", err)
	}
	if !slices.Contains(leaf.Manifest.Parameters, manifest.Parameter{Name: "busy", Text: "8us", Number: 8000}) {
		t.Errorf("parameters %v: want busy=8us", leaf.Manifest.Parameters)
	}
	if _, err := leaf.Compiled(); err == nil {
		t.Error("the model compiles to a program")
	}
	if _, err := Files(leaf); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("its files: %v", err)
	}
	if _, err := leaf.Tables.Compiled(); err != nil {
		t.Error(err)
	}
}
