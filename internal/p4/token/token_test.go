package token

import "testing"

// TestKeywords holds the hash of the keywords to be perfect.
func TestKeywords(t *testing.T) {
	for k := Abstract; k < Count; k++ {
		if got := Word(k.String()); got != k {
			t.Errorf("%s is taken for %s", k, got)
		}
	}
	for _, name := range []string{"a", "bits", "Bit", "tables", "__", "statex", "actionz"} {
		if Word(name) != Name {
			t.Errorf("%s is taken for a keyword", name)
		}
	}
}
