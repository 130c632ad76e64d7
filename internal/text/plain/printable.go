package plain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Printable makes a text that comes from a file or from the network fit for a
// terminal: a character that does not print, which a terminal might obey, is
// written out as in \x1b unless keep has it, and the text is cut behind so many
// bytes, with its length said.
func Printable(text, keep string, most int) string {
	if len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return (r < ' ' || r > '~') && !unicode.IsPrint(r) }) {
		return text // as nearly all are
	}
	var b strings.Builder
	for _, r := range text {
		if b.Len() >= most {
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
