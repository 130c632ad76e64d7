package plain

import (
	"math/bits"
	"strings"
)

// Meant returns the end of an error message about an unknown word: the nearest
// known word, or all known words if there are few.
func Meant(word string, have []string) string {
	const few = 30
	if near := Nearest(word, have); near != "" {
		return "; did you mean " + near + "?"
	}
	if len(have) == 0 || len(have) > few {
		return ""
	}
	return ": want " + strings.Join(have, ", ")
}

// Nearest returns the known word of which the given word is probably a
// misspelling, or "". Up to a third of the letters may differ, and two of four,
// because transposed letters count as two. Words with more than 64 letters are
// not searched.
func Nearest(word string, have []string) (near string) {
	if len(word) > longestWord {
		return ""
	}
	slips := min(len(word)-1, max(1, len(word)/3))
	if len(word) > 3 {
		slips = max(2, slips)
	}
	word = strings.ToLower(word)
	for _, h := range have {
		if len(h) > len(word)+slips || len(word) > len(h)+slips {
			continue
		}
		if d := Distance(word, strings.ToLower(h)); d <= slips {
			slips, near = d-1, h
		}
	}
	return near
}

// longestWord is the number of letters that Distance compares.
const longestWord = 64

// Distance returns the number of letters to insert, delete or replace to turn
// one word into the other (Levenshtein distance). It uses Myers' bit vectors
// for words of up to 64 letters and ignores further letters of the first word.
func Distance(a, b string) int {
	a = a[:min(len(a), longestWord)]
	if a == "" {
		return len(b)
	}
	var at [256]uint64
	for i := range len(a) {
		at[a[i]] |= 1 << i
	}
	plus, minus, d := ^uint64(0), uint64(0), len(a)
	last := uint64(1) << (len(a) - 1)
	for i := range len(b) {
		eq := at[b[i]]
		sum, _ := bits.Add64(eq&plus, plus, 0)
		diagonal := sum ^ plus | eq | minus
		up, down := minus|^(diagonal|plus), plus&diagonal
		if up&last != 0 {
			d++
		}
		if down&last != 0 {
			d--
		}
		up = up<<1 | 1
		plus, minus = down<<1|^(diagonal|up), up&diagonal
	}
	return d
}
