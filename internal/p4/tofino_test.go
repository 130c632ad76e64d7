package p4_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
)

// TestTofinoFeatures compiles a program for each construct of TNA and T2NA and
// sends packets through the embedded switch, which gets the written document.
func TestTofinoFeatures(t *testing.T) { testFeatures(t, tofinoFeatures) }

// tna.p4 compiles for Tofino 2 too. The chip puts 24 bytes of port metadata before a
// packet and counts queues in cells of 176 bytes, as T2NA programs see it.
func TestTNAForTofino2(t *testing.T) {
	frame, err := os.ReadFile(tofinoFeatures + "/frame.p4")
	if err != nil {
		t.Fatal(err)
	}
	archive := featureArchives(t, tofinoFeatures)["checksum_residual"]
	for target, cell := range map[string]int{"1": 80, "2": 176} {
		config := runFeature(t, frame, archive, p4.Options{Defines: []string{"__TARGET_TOFINO__=" + target}})
		sw, err := dataplane.New(config, dataplane.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if sw.CellSize() != cell {
			t.Errorf("target %s: a cell has %d bytes, want %d", target, sw.CellSize(), cell)
		}
	}
	_, err = p4.CompileText("p.p4", []byte("#include <tna.p4>\n"), p4.Options{Defines: []string{"__TARGET_TOFINO__=3"}})
	if err == nil || !strings.Contains(err.Error(), "set __TARGET_TOFINO__ to 1 or 2") {
		t.Errorf("target 3: %v", err)
	}
}

// TestTofinoRows compiles the generated programs for Tofino: each becomes a
// document that loads, in which the control plane finds what P4Info names.
func TestTofinoRows(t *testing.T) {
	for _, arch := range []string{bmv2.TNA, bmv2.T2NA} {
		paths, err := filepath.Glob("../../p4src/" + arch + "/*.p4")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no programs for %s: %v", arch, err)
		}
		for i, path := range paths {
			if testing.Short() && i%4 != 0 {
				continue
			}
			t.Run(arch+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				p := compile(t, os.DirFS("../../p4src/"+arch), filepath.Base(path), p4.Options{Arch: arch})
				config, err := bmv2.Load(p.JSON())
				if err != nil {
					t.Fatalf("the document does not load: %v", err)
				}
				if got := config.Architecture(); got != arch {
					t.Errorf("the document is for %q, want %q", got, arch)
				}
				for kind, names := range documented(config) {
					if want := described(p)[kind]; !slices.Equal(names, want) {
						t.Errorf("%s of the document:\n%v\nof P4Info:\n%v", kind, names, want)
					}
				}
			})
		}
	}
}

// documented lists the names of the document's objects for the control plane, by kind.
// Tables with a key add the names of its fields.
func documented(c *bmv2.Config) map[string][]string {
	sets := map[string]map[string]bool{"actions": {}, "tables": {}, "registers": {}, "counters": {}, "profiles": {}}
	for _, p := range c.Pipelines {
		for _, t := range p.Tables {
			if strings.HasPrefix(t.Name, "tbl_") { // made by the compiler
				continue
			}
			name := t.Name
			for _, k := range t.Key {
				name += " " + k.Name
			}
			sets["tables"][name] = true
			for _, a := range t.Actions {
				sets["actions"][a] = true
			}
		}
		for _, a := range p.ActionProfiles {
			sets["profiles"][a.Name] = true
		}
	}
	for _, r := range c.RegisterArrays {
		sets["registers"][r.Name] = true
	}
	for _, a := range c.CounterArrays {
		if !a.IsDirect {
			sets["counters"][a.Name] = true
		}
	}
	lists := map[string][]string{}
	for kind, set := range sets {
		lists[kind] = slices.Sorted(maps.Keys(set))
	}
	return lists
}

// described lists the same from P4Info. The document does not have actions that no
// table lists: they are inlined.
func described(p *p4.Program) map[string][]string {
	lists := map[string][]string{"actions": nil, "tables": nil, "registers": nil, "counters": nil, "profiles": nil}
	listed := map[uint32]bool{}
	for _, t := range p.P4Info.Tables {
		name := t.Preamble.Name
		for _, f := range t.MatchFields {
			name += " " + f.Name
		}
		lists["tables"] = append(lists["tables"], name)
		for _, a := range t.ActionRefs {
			listed[a.Id] = true
		}
	}
	for _, a := range p.P4Info.Actions {
		if listed[a.Preamble.Id] {
			lists["actions"] = append(lists["actions"], a.Preamble.Name)
		}
	}
	for _, r := range p.P4Info.Registers {
		lists["registers"] = append(lists["registers"], r.Preamble.Name)
	}
	for _, c := range p.P4Info.Counters {
		lists["counters"] = append(lists["counters"], c.Preamble.Name)
	}
	for _, a := range p.P4Info.ActionProfiles {
		lists["profiles"] = append(lists["profiles"], a.Preamble.Name)
	}
	for _, list := range lists {
		slices.Sort(list)
	}
	return lists
}

// FuzzTofino compiles any text as a program within the frame: a document that
// loads or errors, never both or neither.
func FuzzTofino(f *testing.F) {
	frame, err := os.ReadFile(tofinoFeatures + "/frame.p4")
	if err != nil {
		f.Fatal(err)
	}
	for _, archive := range featureArchives(f, tofinoFeatures) {
		f.Add(string(archive.Files[0].Data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		fsys := fstest.MapFS{"frame.p4": {Data: frame}, "program.p4": {Data: []byte(text)}}
		compileAny(t, fsys, "program.p4")
	})
}
