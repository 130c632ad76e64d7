package plain

import (
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for _, c := range []struct {
		text, keep string
		most       int
		want       string
	}{
		{"a\x1b[2J\nb\t", "\n\t", 100, "a\\x1b[2J\nb\t"},
		{"a\x1b[2J\nb", "", 100, `a\x1b[2J\nb`},
		{"é\u202e", "", 100, `é\u202e`},
		{"12345678", "", 8, "12345678"},
		{"123456789", "", 8, "12345678… (9 bytes)"},
	} {
		if got := Printable(c.text, c.keep, c.most); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	// The limit applies to the result, not to the input.
	if got := Printable(strings.Repeat("\x1b", 1000), "", 100); len(got) > 120 {
		t.Errorf("%d bytes of escapes", len(got))
	}
}
