package plain

import "testing"

// TestMeant tests the end of a message about an unknown word.
func TestMeant(t *testing.T) {
	keys := []string{"load", "loads", "name", "seeds"}
	for word, want := range map[string]string{
		"lods":   "; did you mean loads?",
		"Seeds":  "; did you mean seeds?",
		"nmae":   "; did you mean name?",
		"x":      ": want load, loads, name, seeds",
		"nae":    "; did you mean name?",
		"":       ": want load, loads, name, seeds",
		"preset": ": want load, loads, name, seeds",
	} {
		if got := Meant(word, keys); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	if got := Meant("preset", make([]string, 1000)); got != "" {
		t.Errorf("among a thousand: got %q, want nothing", got)
	}
}

// TestDistance compares with the table of the definition.
func TestDistance(t *testing.T) {
	words := []string{"", "a", "qall", "qal", "qlal", "letflow", "letfow", "presto", "hermes+rlb-star", "hermes+rlb"}
	for _, a := range words {
		for _, b := range words {
			if got, want := Distance(a, b), slow(a, b); got != want {
				t.Errorf("%q to %q: %d, want %d", a, b, got, want)
			}
		}
	}
}

func slow(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
