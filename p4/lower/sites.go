package lower

import (
	"sort"

	"github.com/p4lb/p4lb/p4/syntax"
)

// BMv2 has one node for a table, so a table that is applied in several places
// can lead on to only one. Where the places continue differently, each notes
// its number in a variable, and the code behind the table asks for it.

// mergeSites rewrites the code so that each table is applied in one place.
func (l *lowerer) mergeSites(list []*instr) []*instr {
	sites := map[*table][]int{}
	var order []*table
	for i, in := range list {
		if in.kind == iApply {
			if sites[in.table] == nil {
				order = append(order, in.table)
			}
			sites[in.table] = append(sites[in.table], i)
		}
	}
	for _, t := range order {
		if len(sites[t]) > 1 {
			list = l.mergeTable(t, list)
		}
	}
	return list
}

// mergeTable gathers the applications of t into one behind the rest.
func (l *lowerer) mergeTable(t *table, list []*instr) []*instr {
	which := l.scalars.add(l.unique(t.name+".site"), scalar{width: 8}, true)
	entry := &label{used: true}
	var applies []*instr
	var after []*label
	c := l.inCode(func() {
		for _, in := range list {
			if in.kind != iApply || in.table != t {
				l.code.list = append(l.code.list, in)
				continue
			}
			l.at = in.at
			next := &label{used: true}
			l.set(which, intEx(int64(len(applies)), which.st))
			l.jump(entry)
			l.place(next)
			applies, after = append(applies, in), append(after, next)
		}
		end := &label{used: true}
		l.jump(end)
		l.place(entry)
		l.dispatch(t, which, applies, after)
		l.place(end)
	})
	return c.list
}

// dispatch applies t once and continues where the noted place would.
func (l *lowerer) dispatch(t *table, which *field, applies []*instr, after []*label) {
	l.at = applies[0].at
	one := &instr{kind: iApply, table: t, at: applies[0].at}
	to := func(pick func(i int) *label) *label {
		lb := &label{used: true}
		l.place(lb)
		for i := range applies {
			next := pick(i)
			if next == nil {
				next = after[i]
			}
			if i == len(applies)-1 {
				l.jump(next)
				break
			}
			skip := &label{}
			l.branch(equal(fieldEx(which), intEx(int64(i), which.st)), skip)
			l.jump(next)
			l.place(skip)
		}
		return lb
	}
	actions, outcomes := labelsOf(applies, l)
	l.code.list = append(l.code.list, one)
	if !outcomes {
		one.hit = to(func(i int) *label { return applies[i].hit })
		one.miss = one.hit
		for _, a := range actions {
			if one.runs == nil {
				one.runs = map[string]*label{}
			}
			one.runs[a] = to(func(i int) *label {
				if lb := applies[i].runs[a]; lb != nil {
					return lb
				}
				return applies[i].hit
			})
		}
		return
	}
	one.hit = to(func(i int) *label { return applies[i].hit })
	one.miss = to(func(i int) *label { return applies[i].miss })
}

// labelsOf tells whether the applications ask for actions or for hit and miss.
func labelsOf(applies []*instr, l *lowerer) (actions []string, outcomes bool) {
	seen := map[string]bool{}
	for _, in := range applies {
		outcomes = outcomes || in.runs == nil && in.hit != in.miss
		for a := range in.runs {
			if !seen[a] {
				seen[a] = true
				actions = append(actions, a)
			}
		}
	}
	if outcomes && len(actions) > 0 {
		l.unsupported(at(applies), "applying one table for hit or miss here and for its action elsewhere")
	}
	sort.Strings(actions)
	return actions, outcomes
}

func at(applies []*instr) syntax.Node { return applies[len(applies)-1].at }
