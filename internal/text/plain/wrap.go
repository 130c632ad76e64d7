package plain

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks text at spaces into lines of up to width letters. A longer word
// gets its own line.
func Wrap(text string, width int) []string {
	var lines []string
	line, letters := "", 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if line != "" && letters+1+n > width {
			lines = append(lines, line)
			line, letters = "", 0
		}
		if line != "" {
			line, letters = line+" ", letters+1
		}
		line, letters = line+word, letters+n
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
