package own

import (
	"fmt"
	"slices"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// A table whose key contains a value of a constant range gets an entry for each value. The
// other fields of its key determine whether there is an entry for each host.
func TestPathEntries(t *testing.T) {
	field := func(name string, kind configv1.MatchField_MatchType) *configv1.MatchField {
		return &configv1.MatchField{Name: name, Match: &configv1.MatchField_MatchType_{MatchType: kind}}
	}
	const exact, lpm = configv1.MatchField_EXACT, configv1.MatchField_LPM
	select2 := field("meta.path", exact)
	forward := []manifest.Action{{Name: "forward", Params: []manifest.Param{{Name: "port", Carries: manifest.EgressPort}}}}
	for name, row := range map[string]struct {
		fields  []string
		carries []manifest.Fact
		match   []*configv1.MatchField
		actions []manifest.Action
		want    string // "": no entries
	}{
		"values only": {[]string{"path"}, []manifest.Fact{""}, []*configv1.MatchField{select2}, forward,
			`{each: group path 0..1, where: "$i % $paths == $slot", match: {meta.path: $i}, action: forward, args: {port: $port}}`},
		"exact destination": {[]string{"path", "dst"}, []manifest.Fact{"", manifest.Destination}, []*configv1.MatchField{select2, field("dst", exact)}, forward,
			`{each: host path 0..1, where: "$i % $paths == $slot", match: {meta.path: $i, dst: $host-address}, action: forward, args: {port: $port}}`},
		"prefix": {[]string{"path", "dst"}, []manifest.Fact{"", manifest.Destination}, []*configv1.MatchField{select2, field("dst", lpm)}, forward,
			`{each: host path 0..1, where: "$i % $paths == $slot", match: {meta.path: $i, dst: $host-address/32}, action: forward, args: {port: $port}}`},
		"MAC address": {[]string{"path", "mac"}, []manifest.Fact{"", ""}, []*configv1.MatchField{select2, field("mac", exact)}, forward,
			`{each: host path 0..1, where: "$i % $paths == $slot", match: {meta.path: $i, mac: $host-mac}, action: forward, args: {port: $port}}`},
		"another field":         {[]string{"path", "ttl"}, []manifest.Fact{"", ""}, []*configv1.MatchField{select2, field("ttl", exact)}, forward, ""},
		"a field of no name":    {[]string{"path"}, []manifest.Fact{"", ""}, []*configv1.MatchField{select2, field("ttl", exact)}, forward, ""},
		"no action sets a port": {[]string{"path"}, []manifest.Fact{""}, []*configv1.MatchField{select2}, nil, ""},
	} {
		g := &guess{flow: &flow{ranges: map[string]int{"path": 2}, roles: map[string]role{"mac": toMAC}}, fixed: "path"}
		out := &guessed{actions: row.actions}
		for i, f := range row.carries {
			out.keys = append(out.keys, manifest.Key{Name: row.match[i].GetName(), Carries: f})
		}
		var want []string
		if row.want != "" {
			want = []string{row.want}
		}
		if ok := g.pathEntries(out, row.fields, row.match); ok != (want != nil) || !slices.Equal(out.lines, want) {
			t.Errorf("%s: %v, %q, want %q", name, ok, out.lines, want)
		}
	}
}

// A table with an action that selects a value, by a parameter or by its name, gets an entry
// for each destination with several paths. An action that only sets a port gets none.
func TestRouteEntries(t *testing.T) {
	key := []manifest.Key{{Name: "dst", Carries: manifest.Destination}}
	forward := manifest.Action{Name: "forward", Params: []manifest.Param{{Name: "port", Carries: manifest.EgressPort}}}
	choose := manifest.Action{Name: "choose", Params: []manifest.Param{{Name: "base"}, {Name: "size"}}}
	direct := "{each: route, where: $paths == 1, match: {dst: $destination}, action: forward, args: {port: $port}}"
	selected := "{each: route, where: $paths > 1, match: {dst: $destination}, action: choose, args: {base: 0, size: 0}}"
	for name, row := range map[string]struct {
		f    *flow
		keys []manifest.Key
		want []string
	}{
		"by its first parameter":  {&flow{from: map[string][]string{"path": {"choose(0)"}}}, key, []string{direct, selected}},
		"by its second parameter": {&flow{from: map[string][]string{"other": {"choose(0)"}, "path": {"x", "choose(1)"}}}, key, []string{direct, selected}},
		"by itself":               {&flow{selects: map[string]string{"choose": "path"}}, key, []string{direct, selected}},
		"of another value":        {&flow{selects: map[string]string{"choose": "other"}}, key, nil},
		"into a register":         {&flow{from: map[string][]string{"register path": {"choose(0)"}}}, key, nil},
		"nothing":                 {&flow{}, key, nil},
		"two keys":                {&flow{selects: map[string]string{"choose": "path"}}, append(key, key...), nil},
	} {
		g := &guess{flow: row.f, fixed: "path"}
		out := &guessed{keys: row.keys, actions: []manifest.Action{forward, choose}}
		if ok := g.routeEntries(out, []string{"forward", "choose"}); ok != (row.want != nil) || !slices.Equal(out.lines, row.want) {
			t.Errorf("%s: %v, %q, want %q", name, ok, out.lines, row.want)
		}
	}
}

// The form of an entry is a comment for each action with parameters. An action without any
// is shown only if the table has no other.
func TestShapeOfEntries(t *testing.T) {
	action := func(id uint32, name string, params ...string) *configv1.Action {
		a := &configv1.Action{Preamble: &configv1.Preamble{Id: id, Name: name}}
		for _, p := range params {
			a.Params = append(a.Params, &configv1.Action_Param{Name: p})
		}
		return a
	}
	actions := map[uint32]*configv1.Action{
		1: action(1, "I.forward", "port"), 2: action(2, "I.drop"), 3: action(3, "NoAction"), 4: action(4, "I.rewrite", "mac", "ttl"), 5: action(5, "I.once", "x"),
	}
	const form = "  # - {match: {dst: …}, action: "
	for name, row := range map[string]struct {
		refs []uint32
		want []string
	}{
		"one with a parameter, one without": {[]uint32{1, 2, 3}, []string{form + "forward, args: {port: …}}"}},
		"two with parameters":               {[]uint32{2, 1, 4}, []string{form + "forward, args: {port: …}}", form + "rewrite, args: {mac: …, ttl: …}}"}},
		"none with parameters":              {[]uint32{2, 3}, []string{form + "drop}"}},
		"NoAction alone":                    {[]uint32{3}, []string{form + "NoAction}"}},
		"one that is for the default only":  {[]uint32{1, 5}, []string{form + "forward, args: {port: …}}"}},
	} {
		table := &configv1.Table{MatchFields: []*configv1.MatchField{{Name: "dst"}}}
		for _, id := range row.refs {
			ref := &configv1.ActionRef{Id: id}
			if id == 5 {
				ref.Scope = configv1.ActionRef_DEFAULT_ONLY
			}
			table.ActionRefs = append(table.ActionRefs, ref)
		}
		var got []string
		(&guess{}).writeShape(func(_, format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }, table, actions)
		if want := append([]string{"  # entries:"}, row.want...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		table.IsConstTable, got = true, nil
		(&guess{}).writeShape(func(string, string, ...any) { got = append(got, "") }, table, actions)
		if got != nil {
			t.Errorf("%s: a table of constant entries has a form", name)
		}
	}
}
