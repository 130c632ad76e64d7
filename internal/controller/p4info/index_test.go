package p4info

import (
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// program is the P4Info of a program with two tables and a register.
func program() *configv1.P4Info {
	named := func(id uint32, name string) *configv1.Preamble { return &configv1.Preamble{Id: id, Name: name} }
	return &configv1.P4Info{
		Actions: []*configv1.Action{
			{Preamble: named(1, "In.go"), Params: []*configv1.Action_Param{{Id: 1, Name: "port", Bitwidth: 9}}}, {Preamble: named(2, "NoAction")},
		},
		ActionProfiles: []*configv1.ActionProfile{{Preamble: named(5, "In.hops"), Size: 20}, {Preamble: named(6, "In.choice"), Size: 3000, WithSelector: true}},
		Tables: []*configv1.Table{
			{
				Preamble: named(10, "In.routes"), Size: 64, ImplementationId: 5,
				MatchFields: []*configv1.MatchField{{Id: 3, Name: "dst", Bitwidth: 32, Match: &configv1.MatchField_MatchType_{MatchType: configv1.MatchField_LPM}}},
				ActionRefs:  []*configv1.ActionRef{{Id: 1}, {Id: 99}},
			},
			{Preamble: named(11, "In.rest"), Size: 5000, ConstDefaultActionId: 2, IsConstTable: true, HasInitialEntries: true, ActionRefs: []*configv1.ActionRef{{Id: 2}}},
		},
		Registers: []*configv1.Register{{Preamble: named(20, "In.cells"), Size: 7}},
	}
}

// An index finds the tables of a program by name and id, with their fields, actions and
// profiles.
func TestIndex(t *testing.T) {
	x, err := New(program(), []byte("config"))
	if err != nil {
		t.Fatal(err)
	}
	routes, rest := x.ByName["In.routes"], x.ByID[11]
	if len(x.Tables) != 2 || routes == nil || routes != x.ByID[10] || rest == nil || rest != x.ByName["In.rest"] {
		t.Fatalf("tables %+v", x.Tables)
	}
	if len(routes.Fields) != 1 || routes.Fields[0] != (Field{3, "dst", 32, configv1.MatchField_LPM}) {
		t.Errorf("fields %+v", routes.Fields)
	}
	if a := routes.Actions["go"]; len(routes.Actions) != 1 || a == nil || a != routes.ByAction[1] || a.Name != "go" || len(a.Params) != 1 || a.Params[0].Width != 9 || a.Params[0].ID != 1 || a.Params[0].Name != "port" {
		t.Errorf("actions %+v", routes.Actions)
	}
	if p := routes.Profile; p == nil || p.ID != 5 || p.Name != "In.hops" || p.Size != 20 || p.Selector || !routes.Members() || rest.Members() {
		t.Errorf("profile %+v", routes.Profile)
	}
	if routes.Fixed || routes.Begun || routes.Size != 64 || !rest.Fixed || !rest.Begun || rest.Profile != nil {
		t.Errorf("tables %+v and %+v", routes, rest)
	}
	if r := x.Registers["In.cells"]; r == nil || r.ID != 20 || r.Size != 7 {
		t.Errorf("registers %+v", x.Registers)
	}
	// 65,536 sessions and groups, 1,024 entries at least of each table with a default, the cells,
	// and 1,024 members at least of each profile.
	if got, want := x.Holds(), 65536+1025+5001+7+1024+3000; got != want {
		t.Errorf("it holds %d entities, want %d", got, want)
	}
	if _, err := New(nil, nil); err == nil || err.Error() != "there is no P4Info" {
		t.Errorf("without a P4Info: %v", err)
	}
}

// The cookie identifies a program by its P4Info and its configuration.
func TestCookie(t *testing.T) {
	other := program()
	other.Tables[0].Size++
	seen := map[uint64]bool{}
	for _, p := range []struct {
		info   *configv1.P4Info
		config string
	}{{program(), ""}, {program(), "a"}, {program(), "b"}, {other, "a"}} {
		x, err := New(p.info, []byte(p.config))
		if err != nil {
			t.Fatal(err)
		}
		again, _ := New(p.info, []byte(p.config))
		if seen[x.Cookie] || again.Cookie != x.Cookie {
			t.Errorf("config %q: cookie %d", p.config, x.Cookie)
		}
		seen[x.Cookie] = true
	}
}

// A manifest must match its program. Its purposes mark the tables of routes.
func TestMatchManifest(t *testing.T) {
	x, err := New(program(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &manifest.Manifest{Version: 2, Scheme: "test", Arch: manifest.V1Model, Paths: 4, Tables: []manifest.Table{{Name: "In.routes", Purpose: manifest.Route}}}
	m.Tables[0].Keys = []manifest.Key{{Name: "dst", Carries: manifest.Destination}}
	m.Tables[0].Actions = []manifest.Action{{Name: "go", Params: []manifest.Param{{Name: "port", Carries: manifest.EgressPort}}}}
	if err := x.Match(m, program()); err != nil {
		t.Fatal(err)
	}
	if !x.ByName["In.routes"].Routes || x.ByName["In.rest"].Routes {
		t.Errorf("routes %v and %v", x.ByName["In.routes"].Routes, x.ByName["In.rest"].Routes)
	}
	m.Tables[0].Name = "In.none"
	if err := x.Match(m, program()); err == nil || !strings.HasPrefix(err.Error(), "the manifest of test does not match its program: ") {
		t.Errorf("a table that the program lacks: %v", err)
	}
}

// The default action of a table can be set unless the table or its default action is constant.
func TestPresets(t *testing.T) {
	for _, test := range []struct {
		constant bool
		action   uint32 // constant default action
		want     bool
	}{{false, 0, true}, {false, 2, false}, {true, 0, false}, {true, 2, false}} {
		info := program()
		info.Tables = []*configv1.Table{{Preamble: &configv1.Preamble{Id: 12, Name: "In.other"}, IsConstTable: test.constant, ConstDefaultActionId: test.action}}
		x, err := New(info, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.ByID[12].Presets(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
