package plan

import (
	"cmp"
	"fmt"
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// If groups are leaves, a switch has as many groups as there are leaves, most of them with the
// same next hops. A table that matches a prefix of the group id has one entry for all of these
// groups. The number of entries then grows with the ports instead of the leaves.

// groupingAt returns the meaning of group ids at a switch that runs the program of a
// manifest.
func (p *Plan) groupingAt(sw string, m *manifest.Manifest) fabric.Grouping {
	if p.Grouping == fabric.ByLeaf && m.GroupBy == manifest.GroupByHops && (!timesPaths(m) || p.alike(sw)) {
		return fabric.ByHops
	}
	return p.Grouping
}

// timesPaths reports whether the planner computes the round-trip times of paths for a
// program.
func timesPaths(m *manifest.Manifest) bool {
	return slices.ContainsFunc(m.Registers, func(r manifest.Register) bool {
		return r.Writer == manifest.Controller && r.Kind == manifest.Delay
	})
}

// alike reports whether the planner may treat some leaves as one leaf: all leaves that a
// switch reaches through the same several next hops must be at the same distance.
func (p *Plan) alike(sw string) bool {
	times := map[string]string{}
	for _, leaf := range p.Topology.Leaves() {
		hops, _ := p.Routes.NextHops(sw, leaf.Name)
		if len(hops) < 2 {
			continue
		}
		var set, rtts []byte
		for _, h := range hops {
			span, _ := p.Routes.Span(h.Peer, leaf.Name)
			set, rtts = fmt.Append(set, h.Number, " "), fmt.Append(rtts, span.RTT.Nanoseconds(), " ")
		}
		if before, ok := times[string(set)]; ok && before != string(rtts) {
			return false
		}
		times[string(set)] = string(rtts)
	}
	return true
}

// shareByPrefix merges the entries that a filler has added to a table, from an
// index on, if the table matches a prefix of the group's id. The most common action
// becomes an entry for all ids. It also applies to ids without a group, which no
// packet has.
func (b *planner) shareByPrefix(t *manifest.Table, from int) {
	fields := b.x.ByName[t.Name].Fields
	i := slices.IndexFunc(fields, func(f p4info.Field) bool {
		return f.Kind == configv1.MatchField_LPM &&
			slices.ContainsFunc(t.Keys, func(k manifest.Key) bool { return k.Name == f.Name && k.Carries == manifest.GroupID })
	})
	if i < 0 || t.Purpose != manifest.Group && t.Purpose != manifest.Member {
		return
	}
	others := func(e Entry) string {
		e.Match = slices.Delete(slices.Clone(e.Match), i, i+1)
		return e.Key()
	}
	var order []string
	byOthers := map[string][]Entry{}
	for _, e := range b.out.Entries[from:] {
		key := others(e)
		if byOthers[key] == nil {
			order = append(order, key)
		}
		byOthers[key] = append(byOthers[key], e)
	}
	b.out.Entries = b.out.Entries[:from]
	for _, key := range order {
		b.out.Entries = append(b.out.Entries, mergePrefixes(byOthers[key], i)...)
	}
}

// mergePrefixes returns a shorter list with the same effect as a list of entries
// that differ in the value of match i and in their actions. Its first entry has the
// most common action and matches everything. The others override it; where two
// halves of a prefix have the same action, they are merged.
func mergePrefixes(list []Entry, i int) []Entry {
	action := func(e Entry) string { return fmt.Sprint(e.Action, e.Args) }
	count := map[string]int{}
	most := list[0]
	for _, e := range list {
		if count[action(e)]++; count[action(e)] > count[action(most)] {
			most = e
		}
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(e Entry) bool { return action(e) == action(most) })
	slices.SortFunc(rest, func(a, b Entry) int { return cmp.Compare(a.Match[i].Value, b.Match[i].Value) })
	with := func(e Entry, value uint64, bits int) Entry {
		e.Match = slices.Clone(e.Match)
		e.Match[i].Value, e.Match[i].Bits = value, bits
		return e
	}
	merged := []Entry{with(most, 0, 0)}
	for _, e := range rest {
		for n := len(merged) - 1; n > 0; n = len(merged) - 1 {
			last, m := merged[n].Match[i], e.Match[i]
			half := uint64(1) << (m.Width - m.Bits)
			if last.Bits != m.Bits || last.Value&half != 0 || last.Value|half != m.Value || action(merged[n]) != action(e) {
				break
			}
			merged, e = merged[:n], with(e, last.Value, m.Bits-1)
		}
		merged = append(merged, e)
	}
	return merged
}
