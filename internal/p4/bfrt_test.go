package p4_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/p4"
)

var p4Programs = os.DirFS("../../p4src")

var updateBfRt = flag.Bool("update-bfrt", false, "write the schemas of testdata/bfrt anew")

func schemaOf(t testing.TB, fsys fs.FS, name string) *bfrt.Schema {
	t.Helper()
	p, err := p4.Check(fsys, name, p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DescribeBfRt(); err != nil {
		t.Fatal(err)
	}
	return p.Schema
}

// The numbers are from p4c's Tofino backend, for objects of these names: they are in
// the bf-rt.json of p4lang/open-p4studio at 1f97778 (tna_exact_match,
// tna_action_profile, tna_action_selector).
func TestBfRtNumbers(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/bfrt/numbers.txtar")
	if err != nil {
		t.Fatal(err)
	}
	s := schemaOf(t, fstest.MapFS{"program.p4": {Data: archive.Files[0].Data}}, "program.p4")
	for name, want := range map[string]bfrt.Table{
		"pipe.SwitchIngress.forward":                            {ID: 37882547, Type: "MatchAction_Direct", Size: 1024},
		"pipe.SwitchIngress.ipRoute":                            {ID: 34746517, Type: "MatchAction_Direct", Size: 512},
		"pipe.SwitchIngress.fib":                                {ID: 0x204f15d, Type: "MatchAction_Indirect", Size: 8192},
		"pipe.SwitchIngress.set_dest":                           {ID: 0x2a7eea6, Type: "MatchAction_Indirect_Selector", Size: 4096},
		"pipe.SwitchIngress.action_profile":                     {ID: 0x81ee1a5d, Type: "Action", Size: 1024},
		"pipe.SwitchIngress.example_action_selector_ap":         {ID: 2174840330, Type: "Action", Size: 2048},
		"pipe.SwitchIngress.example_action_selector":            {ID: 2192681240, Type: "Selector", Size: 100},
		"pipe.SwitchIngress.example_action_selector_get_member": {ID: 2595334424, Type: "SelectorGetMember", Size: 1},
		"pipe.SwitchIngressParser.$PORT_METADATA":               {ID: 2426108248, Type: "PortMetadata", Size: 288},
		"tbl_dbg_counter":                                       {ID: 2566914048, Type: "TblDbgCnt", Size: 192},
	} {
		got := s.Table(name)
		if got == nil || got.ID != want.ID || got.Type != want.Type || got.Size != want.Size {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	actions := map[string]uint32{"SwitchIngress.hit": 32848556, "SwitchIngress.miss": 17988458, "NoAction": 21257015}
	for _, a := range append(*s.Table("pipe.SwitchIngress.forward").ActionSpecs, *s.Table("pipe.SwitchIngress.ipRoute").ActionSpecs...) {
		if a.ID != actions[a.Name] {
			t.Errorf("action %s is %d, want %d", a.Name, a.ID, actions[a.Name])
		}
	}
	if got := s.Table("pipe.SwitchIngress.set_dest").DependsOn; len(got) != 2 || got[0] != 2192681240 || got[1] != 2174840330 {
		t.Errorf("set_dest depends on %d", got)
	}
}

// A program with one object of each kind, and its schema as it was read once.
func TestBfRtKinds(t *testing.T) {
	const file = "testdata/bfrt/kinds.txtar"
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte // a line for each table
	s := schemaOf(t, fstest.MapFS{"program.p4": {Data: archive.Files[0].Data}}, "program.p4")
	for _, table := range s.Tables {
		got = append(append(got, compact(t, table)...), '\n')
	}
	got = append(append(got, compact(t, s.LearnFilters)...), '\n')
	if *updateBfRt {
		archive.Files = append(archive.Files[:1], txtar.File{Name: "tables.jsonl", Data: got})
		if err := os.WriteFile(file, txtar.Format(archive), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, archive.Files[1].Data) {
		t.Errorf("the schema is not that of %s: go test ./internal/p4 -run TestBfRtKinds -update-bfrt, and read the difference", file)
	}
}

func compact(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Every generated program has a schema in which no two tables, and no two fields
// of a table, have the same name or number.
func TestBfRtGenerated(t *testing.T) {
	for _, arch := range []string{"tna", "t2na"} {
		names, err := fs.Glob(p4Programs, arch+"/*.p4")
		if err != nil || len(names) < 10 {
			t.Fatalf("%d programs for %s, %v", len(names), arch, err)
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := schemaOf(t, p4Programs, name)
				ids, names := map[uint32]bool{}, map[string]bool{}
				for _, table := range s.Tables {
					if ids[table.ID] || names[table.Name] {
						t.Errorf("two tables are %s or %d", table.Name, table.ID)
					}
					ids[table.ID], names[table.Name] = true, true
					checkFields(t, table)
				}
				var again bfrt.Schema
				if err := json.Unmarshal(s.JSON(), &again); err != nil || len(again.Tables) != len(s.Tables) {
					t.Errorf("%d tables of %d are read again, %v", len(again.Tables), len(s.Tables), err)
				}
			})
		}
	}
}

func checkFields(t *testing.T, table *bfrt.Table) {
	t.Helper()
	for what, list := range map[string][]*bfrt.Field{"key": table.Key, "data": dataFields(table)} {
		ids, names := map[uint32]bool{}, map[string]bool{}
		for _, f := range list {
			if ids[f.ID] || names[f.Name] || f.ID == 0 || f.Name == "" {
				t.Errorf("%s: two fields of the %s are %q or %d", table.Name, what, f.Name, f.ID)
			}
			ids[f.ID], names[f.Name] = true, true
		}
	}
}

func dataFields(table *bfrt.Table) []*bfrt.Field {
	var list []*bfrt.Field
	for _, d := range table.Data {
		if d.Singleton != nil {
			list = append(list, d.Singleton)
		}
		list = append(list, d.OneOf...)
	}
	return list
}

func TestBfRtOfV1model(t *testing.T) {
	p, err := p4.Check(p4Programs, "v1model/ecmp.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.DescribeBfRt(); err == nil || !strings.Contains(err.Error(), "BfRt is for Tofino: this program is for v1model") {
		t.Errorf("got %v", err)
	}
}

// TestBfRtRecord compares the schemas of all programs for Tofino with the record of
// the schemas that were compared with p4c's.
func TestBfRtRecord(t *testing.T) {
	text, err := os.ReadFile("../../testdata/oracle/bfrt.tsv")
	if err != nil {
		t.Fatal(err)
	}
	record := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, digest, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(name, "#") {
			record[name] = digest
		}
	}
	for _, arch := range []string{"tna", "t2na"} {
		names, err := fs.Glob(p4Programs, arch+"/*.p4")
		if err != nil || len(names) == 0 {
			t.Fatalf("programs for %s: %v, %v", arch, names, err)
		}
		for _, name := range names {
			digest := fmt.Sprintf("%x", sha256.Sum256(schemaOf(t, p4Programs, name).JSON()))
			if old, stale := strings.CutPrefix(record[name], "stale "); stale {
				// The program has changed since its schema was compared.
				if old == digest {
					t.Errorf("%s: the record says stale, but the schema is the one that was compared", name)
				}
				t.Logf("%s: compare its schema with p4c's again", name)
			} else if record[name] != digest {
				t.Errorf("%s: nobody has compared a schema with digest %s with p4c's; the record has %q", name, digest, record[name])
			}
			delete(record, name)
		}
	}
	for name := range record {
		t.Errorf("%s is in the record, but no program", name)
	}
}
