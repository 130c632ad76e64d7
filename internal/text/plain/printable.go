package plain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Printable makes a text from a file or from the network safe for a terminal:
// unprintable characters, which could be control sequences, are escaped as in
// \x1b unless keep contains them, and the text is truncated after limit bytes,
// with its length added.
func Printable(text, keep string, limit int) string {
	if len(text) <= limit && !strings.ContainsFunc(text, func(r rune) bool { return (r < ' ' || r > '~') && !unicode.IsPrint(r) }) {
		return text // the usual case
	}
	var b strings.Builder
	for _, r := range text {
		if b.Len() >= limit {
			fmt.Fprintf(&b, "… (%d bytes)", len(text))
			break
		}
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
