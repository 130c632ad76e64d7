package syntax

import "testing"

// TestLinesOfSource: lines are found in any order, with any line ends, and where #line
// renames the text.
func TestLinesOfSource(t *testing.T) {
	s := newSource("a.p4", "one\r\n\ntwo\nlast", Pos{})
	for _, s := range []*source{s, s.renamed("b.p4", 7)} {
		for _, n := range []uint32{4, 1, 3, 2, 0, 5, 1<<32 - 1} {
			if got, want := s.line(n), map[uint32]string{1: "one", 3: "two", 4: "last"}[n]; got != want {
				t.Errorf("%s: line %d is %q, want %q", s.Name, n, got, want)
			}
		}
	}
	if got := newSource("empty.p4", "", Pos{}).line(1); got != "" {
		t.Errorf("an empty text has a line %q", got)
	}
}
