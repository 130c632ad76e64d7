package types

import (
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// entries checks the entries in a table's declaration.
func (t *table) entries() {
	es := t.decl.Entries
	if es == nil {
		return
	}
	c := t.c
	c.annotations(es.Annotations)
	if len(t.keys) == 0 {
		if len(es.List) > 0 {
			c.errorf(t.decl.Name.Pos(), "table %s has entries, but no key", t.decl.Name.Value)
		}
		return
	}
	if before(es.Pos(), t.decl.Key.Pos()) {
		c.errorf(es.Pos(), "entries must come after the key")
	}
	for _, e := range es.List {
		t.entry(es, e)
	}
	t.priorities(es)
	t.duplicates(es)
}

func (t *table) entry(es *syntax.TableEntries, e *syntax.Entry) {
	c := t.c
	c.annotations(e.Annotations)
	if e.Priority != nil {
		t.priority(es, e)
	}
	t.entryKeys(e)
	call := t.chosen(e.Action.Pos(), e.Action.Name, e.Action.Args, "the entry")
	if call == nil {
		return
	}
	c.info.ActionRefs[e.Action] = call
	if r := t.refs[call.Callee]; r != nil && r.Annotations.Get("defaultonly") != nil {
		c.errorf(e.Action.Pos(), "%s is @defaultonly and cannot be in an entry", call.Callee.Name)
	}
}

func (t *table) entryKeys(e *syntax.Entry) {
	c := t.c
	if len(e.Keys) == 1 && len(t.keys) != 1 && isDefault(e.Keys[0]) {
		c.record(e.Keys[0], dontCare)
		t.wantAny(e.Keys[0], t.keys)
		return
	}
	if len(e.Keys) != len(t.keys) {
		for _, k := range e.Keys {
			c.expr(k)
		}
		c.errorf(e.Pos(), "the entry has %s, but table %s has %s", count(len(e.Keys), "key"), t.decl.Name.Value, count(len(t.keys), "key"))
		return
	}
	for i, k := range e.Keys {
		tv := c.keyElem(k, t.keys[i].typ, "the key")
		if tv.Type == Invalid {
			continue
		}
		if !tv.known {
			c.errorf(k.Pos(), "the key %s of an entry must be known at compile time", show(k))
			continue
		}
		t.matchKind(k, t.keys[i])
	}
}

// wantAny checks that _ occurs only in match kinds that allow it.
func (t *table) wantAny(e syntax.Expr, keys []keyType) {
	for _, k := range keys {
		if k.match == "exact" {
			t.c.errorf(e.Pos(), "%s matches anything, but the key is matched exactly", show(e))
			return
		}
	}
}

// matchKind checks that the form of an entry's key fits the match kind.
func (t *table) matchKind(e syntax.Expr, k keyType) {
	c := t.c
	switch x := syntax.Unparen(e).(type) {
	case *syntax.RangeExpr:
		if k.match == "exact" || k.match == "ternary" || k.match == "lpm" || k.match == "optional" {
			c.warnf(e.Pos(), "the range %s cannot be matched %s; a range key takes it", show(e), byKind(k.match))
		}
	case *syntax.MaskExpr:
		switch k.match {
		case "exact", "range", "optional":
			c.warnf(e.Pos(), "the mask in %s cannot be matched %s; a ternary or lpm key takes it", show(e), byKind(k.match))
		case "lpm":
			// An lpm mask is a series of ones followed by zeros.
			mask := Number(t.c.info.Types[x.Mask].Value)
			b, ok := Underlying(k.typ).(*Bits)
			if ok && mask != nil && mask.Sign() >= 0 {
				zeros := new(big.Int).Xor(mask, new(big.Int).Sub(pow2(b.Width), one))
				if new(big.Int).And(zeros, new(big.Int).Add(zeros, one)).Sign() != 0 {
					t.c.errorf(x.Pos(), "the mask %s of an lpm key must be a prefix: ones, then zeros", show(x.Mask))
				}
			}
		}
	default:
		if isDefault(x) {
			t.wantAny(e, []keyType{k})
		}
	}
}

func byKind(match string) string {
	switch match {
	case "exact":
		return "exactly"
	case "lpm":
		return "by longest prefix"
	}
	return "by " + match
}

func (t *table) priority(es *syntax.TableEntries, e *syntax.Entry) {
	c := t.c
	if es.Const {
		c.value(e.Priority)
		c.errorf(e.Pos(), "const entries have no priorities: the first one that matches wins")
		return
	}
	if n, ok := c.constInt(e.Priority, "the priority of an entry"); ok && n.Sign() < 0 {
		c.errorf(e.Priority.Pos(), "the priority of an entry cannot be negative, it is %s", n)
	}
}

// maxPriority is the greatest priority that P4Runtime can express.
var maxPriority = new(big.Int).Sub(pow2(31), one)

// priorities checks the priorities of entries that are not const. If any entry has
// a priority, the first one must have one, and entries without one continue from
// the previous one.
func (t *table) priorities(es *syntax.TableEntries) {
	var first *syntax.Entry
	for _, e := range es.List {
		if e.Priority != nil {
			first = e
			break
		}
	}
	if first == nil || es.Const {
		return
	}
	// If all keys are exact or lpm, entries never overlap.
	if !slices.ContainsFunc(t.keys, func(k keyType) bool { return k.match != "exact" && k.match != "lpm" }) {
		t.c.errorf(t.decl.Key.Pos(), "the keys of table %s need no priorities, but entries have some", t.decl.Name.Value)
		return
	}
	if es.List[0].Priority == nil {
		t.c.errorf(es.List[0].Pos(), "the first entry needs a priority, since others have one")
		return
	}
	c := t.c
	largest, delta := t.priorityRule()
	seen := map[string]bool{}
	var p *big.Int
	for _, e := range es.List {
		switch {
		case e.Priority != nil:
			p = Number(c.info.Types[e.Priority].Value)
		case p != nil && largest:
			p = new(big.Int).Sub(p, delta)
		case p != nil:
			p = new(big.Int).Add(p, delta)
		}
		if p == nil {
			return
		}
		if p.Sign() < 0 || p.Cmp(maxPriority) > 0 {
			c.errorf(t.decl.Name.Pos(), "the priority of the entry at %s would be %s, which is out of range", e.Pos(), p)
			return
		}
		if seen[p.String()] {
			c.warnf(e.Pos(), "another entry has the priority %s too", p)
		}
		seen[p.String()] = true
	}
}

// priorityRule evaluates the properties largest_priority_wins and priority_delta.
func (t *table) priorityRule() (largest bool, delta *big.Int) {
	largest, delta = true, one
	for _, p := range t.decl.Props {
		switch v := t.c.info.Types[p.Value].Value.(type) {
		case bool:
			if p.Name.Value == "largest_priority_wins" {
				largest = v
			}
		case *big.Int:
			if p.Name.Value == "priority_delta" {
				delta = v
			}
		}
	}
	return largest, delta
}

// duplicates warns about entries with the same keys, because the later one never
// matches.
func (t *table) duplicates(es *syntax.TableEntries) {
	seen := map[string]*syntax.Entry{}
	for _, e := range es.List {
		key := ""
		for _, k := range e.Keys {
			n := Number(t.c.info.Types[k].Value)
			if n == nil {
				key = ""
				break
			}
			key += n.String() + " "
		}
		if key == "" {
			continue
		}
		if old := seen[key]; old != nil {
			t.c.warnf(e.Pos(), "the entry at %s has the same key", old.Pos())
		}
		seen[key] = e
	}
}
