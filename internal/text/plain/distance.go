package plain

import (
	"math/bits"
	"strings"
)

// Meant ends a message about a word that is not among those there are: with the one that
// a slip of the hand made it of, or else with all of them, if these are few.
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

// Nearest is the word that a slip of the hand made another of, "" if there is none: a
// third of the letters may be wrong, and two where there are four, as when they change
// places. Words of more than 64 letters are left alone.
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

// longestWord is how many letters Distance compares.
const longestWord = 64

// Distance is how many letters of one word have to be inserted, deleted or
// replaced to make the other of it: what a slip of the hand is measured by. It is
// computed by bit vectors (Myers), for words of up to 64 letters; of longer ones
// only these count.
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
