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
	same := continuations(list)
	for _, t := range order {
		if len(sites[t]) > 1 && !same(t, sites[t]) {
			list = l.mergeTable(t, list)
		}
	}
	return list
}

// continuations gives a function that reports whether all applications of a
// table go on at the same instructions, whatever the outcome.
func continuations(list []*instr) func(t *table, sites []int) bool {
	pos := map[*label]int{}
	for i, in := range list {
		if in.kind == iLabel {
			pos[in.label] = i
		}
	}
	land := func(i int) int {
		for hops := 0; i < len(list) && hops <= len(list); hops++ {
			switch list[i].kind {
			case iLabel:
				i++
			case iJump:
				i = pos[list[i].label]
			case iExit:
				return len(list)
			default:
				return i
			}
		}
		return i
	}
	next := func(lb *label, i int) int {
		if lb == nil {
			return land(i + 1)
		}
		return land(pos[lb])
	}
	return func(t *table, sites []int) bool {
		first := list[sites[0]]
		for _, i := range sites[1:] {
			in := list[i]
			if next(in.hit, i) != next(first.hit, sites[0]) || next(in.miss, i) != next(first.miss, sites[0]) {
				return false
			}
			for _, a := range t.actions {
				if next(in.after(a.name), i) != next(first.after(a.name), sites[0]) {
					return false
				}
			}
		}
		return true
	}
}

// after is the label behind the action, that of the others where it has none.
func (i *instr) after(action string) *label {
	if lb := i.runs[action]; lb != nil {
		return lb
	}
	return i.hit
}

// mergeTable gathers the applications of t into one behind the rest.
func (l *lowerer) mergeTable(t *table, list []*instr) []*instr {
	l.spend(len(list))
	width := 8
	if len(t.applies) > 1<<width {
		width = 32
	}
	which := l.scalars.add(l.unique(t.name+".site"), scalar{width: width}, true)
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
			one.runs[a] = to(func(i int) *label { return applies[i].after(a) })
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
