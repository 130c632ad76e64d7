package dataplane

import (
	"math/rand/v2"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/lookup"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A table finds the same entries with its list of few entries and with its
// index.
func TestLinearAgainstIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := 0
	for round := range 300 {
		kind := []string{bmv2.MatchExact, bmv2.MatchTernary, bmv2.MatchRange}[round%3]
		tb := &bmv2.Table{Name: "t", MatchType: kind, Type: bmv2.TableSimple, Actions: []string{"in"}, ActionIDs: []int{0}, NextTables: bmv2.NextTables{{Label: "in"}}}
		for _, f := range []string{"x", "y", "sum"} {
			key := &bmv2.TableKey{MatchType: kind, Target: bmv2.FieldRef{Header: "ig_md", Field: f}}
			if kind == bmv2.MatchRange && f != "x" {
				key.MatchType = bmv2.MatchTernary
			}
			tb.Key = append(tb.Key, key)
		}
		s := pipeProgram{tables: []*bmv2.Table{tb}}.start(t, Options{})
		table := s.prog.Tables["t"]
		p := &vector.State{W: make([]uint64, s.prog.Layout.Words), Scratch: &s.prog.Scratch}
		var handles []Handle
		for range 12 {
			if len(handles) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(handles))
				must(t, s.Tables().Delete("t", handles[i]))
				handles[i] = handles[len(handles)-1]
				handles = handles[:len(handles)-1]
			} else if h, err := s.Tables().Add("t", someEntry(r, kind)); err == nil {
				handles = append(handles, h)
			}
			for range 20 {
				for _, f := range table.Key.Fields {
					p.W[f.Off] = r.Uint64N(4)
				}
				want := lookup.None
				if table.Count > 0 {
					table.Key.Build(p.W, table.Scratch)
					want = table.Lookup(table.Scratch)
				}
				if got := table.Find(p); got != want {
					t.Fatalf("%s with %d entries: %d, want %d", kind, table.Count, got, want)
				}
				if table.Linear != nil && want != lookup.None {
					seen++
				}
			}
			if linear := table.Linear != nil; kind != bmv2.MatchRange && linear != (table.Count > 0 && table.Count <= program.MaxLinear) {
				t.Fatalf("%s with %d entries: linear is %v", kind, table.Count, linear)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("only %d entries were found", seen)
	}
}

func someEntry(r *rand.Rand, kind string) Entry {
	e := Entry{Target: act("in"), Priority: r.IntN(3)}
	for i := range 3 {
		m := Match{Value: []byte{byte(r.IntN(4))}}
		switch {
		case kind == bmv2.MatchRange && i == 0:
			m.High = []byte{m.Value[0] + byte(r.IntN(3))}
		case kind != bmv2.MatchExact:
			m.Mask = []byte{byte(r.IntN(4))}
		}
		e.Match = append(e.Match, m)
	}
	return e
}
