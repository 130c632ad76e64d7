package own

import (
	"fmt"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// Some programs always select among the same number of values, such as 0 or 1, and look the
// value up in a table that sets the port. The switches of a network have other numbers of
// paths, so several values share a path, or a path has no value. Purposes describe tables with
// an entry per path; here the entries are written out, one for each value.

// mostFixed is the largest number of values for which each value is one path's. A hash with
// a larger range is an index of registers.
const mostFixed = 16

// fixedChoice returns the field in the key of a table that has such a value, and the number of
// values, or 0.
func (g *guess) fixedChoice(fields []string) (field string, n int) {
	for _, f := range fields {
		if n := g.ranges[f]; n > 1 && n <= mostFixed {
			return f, n
		}
	}
	return "", 0
}

// fixedField returns the field of the program's fixed choice, or "": the key of a table whose
// action sets the port.
func (g *guess) fixedField(tables []*configv1.Table, actions map[uint32]*configv1.Action) string {
	for _, t := range tables {
		field, n := g.fixedChoice(g.keys[t.GetPreamble().GetName()])
		if n > 0 && slices.ContainsFunc(t.GetActionRefs(), func(ref *configv1.ActionRef) bool {
			a := actions[ref.GetId()]
			for i := range a.GetParams() {
				if g.roles[paramName(a.GetPreamble().GetName(), i)] == toPort {
					return true
				}
			}
			return false
		}) {
			return field
		}
	}
	return ""
}

// writesOut replaces the guess for a table of a fixed choice, or for the routes that lead to
// it, by entries. It reports whether it did.
func (g *guess) writesOut(out *guessed, fields []string, match []*configv1.MatchField, actions []string) bool {
	if g.fixed == "" {
		return false
	}
	if slices.Contains(fields, g.fixed) {
		return g.pathEntries(out, fields, match)
	}
	return out.purpose == manifest.Route && g.routeEntries(out, actions)
}

// direct returns an action that sets the port and whose parameters are all known, as text.
func (out *guessed) direct() string {
	for _, a := range out.actions {
		call, ok := callText(a)
		if ok && slices.ContainsFunc(a.Params, func(p manifest.Param) bool { return p.Carries == manifest.EgressPort }) {
			return call
		}
	}
	return ""
}

func callText(a manifest.Action) (text string, known bool) {
	known = true
	args := lists.Map(a.Params, func(p manifest.Param) string {
		known = known && p.Carries != ""
		return fmt.Sprintf("%s: $%s", quoted(p.Name), p.Carries)
	})
	return fmt.Sprintf("action: %s, args: {%s}", quoted(a.Name), strings.Join(args, ", ")), known
}

// pathEntries writes an entry for each value: of each host if the table also matches the
// destination, otherwise of the groups of paths, which are then all the same.
func (g *guess) pathEntries(out *guessed, fields []string, match []*configv1.MatchField) bool {
	each, keys := "group", []string(nil)
	for i, f := range match {
		value := ""
		switch {
		case i >= len(fields):
			return false
		case fields[i] == g.fixed:
			value = "$i"
		case out.keys[i].Carries == manifest.Destination:
			each, value = "host", "$host-address"
			if f.GetMatchType() == configv1.MatchField_LPM {
				value += "/32"
			}
		case g.roles[fields[i]] == toMAC:
			each, value = "host", "$host-mac"
		default:
			return false
		}
		keys = append(keys, fmt.Sprintf("%s: %s", quoted(f.GetName()), value))
	}
	call := out.direct()
	if call == "" {
		return false
	}
	n := g.ranges[g.fixed]
	out.lines = []string{fmt.Sprintf(`{each: %s path 0..%d, where: "$i %% $paths == $slot", match: {%s}, %s}`, each, n-1, strings.Join(keys, ", "), call)}
	out.why = fmt.Sprintf("the program always selects one of %d values, so paths share them", n)
	return true
}

// routeEntries writes an entry for each destination: with one path its port, with several the
// action that selects a value. actions are the names of the table's actions in the program.
func (g *guess) routeEntries(out *guessed, actions []string) bool {
	call := out.direct()
	if call == "" || len(out.keys) != 1 {
		return false
	}
	for i, name := range actions {
		a := out.actions[i]
		selects := g.selects[name] == g.fixed
		args := make([]string, len(a.Params))
		for k, p := range a.Params {
			selects = selects || slices.Contains(g.assigned(paramName(name, k)), g.fixed)
			args[k] = quoted(p.Name) + ": 0"
		}
		if !selects || g.roles[paramName(name, 0)] == toPort {
			continue
		}
		key := quoted(out.keys[0].Name)
		out.lines = []string{
			fmt.Sprintf("{each: route, where: $paths == 1, match: {%s: $destination}, %s}", key, call),
			fmt.Sprintf("{each: route, where: $paths > 1, match: {%s: $destination}, action: %s, args: {%s}}", key, quoted(a.Name), strings.Join(args, ", ")),
		}
		out.why = "with several paths, a value is selected for another table"
		return true
	}
	return false
}
