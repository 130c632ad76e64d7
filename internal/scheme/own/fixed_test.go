package own

import (
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
