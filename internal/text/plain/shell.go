package plain

import (
	"strings"
	"unicode"
)

// Shell returns a command line that a shell splits into the given words.
func Shell(words []string) string {
	var list []string
	for _, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool {
			return !strings.ContainsRune("%+,-./:=@_", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		list = append(list, w)
	}
	return strings.Join(list, " ")
}
