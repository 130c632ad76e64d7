package plain

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, nil},
		{"  \n ", 10, nil},
		{"one two three", 7, []string{"one two", "three"}},
		{"one two three", 6, []string{"one", "two", "three"}},
		{"unbreakable a b", 3, []string{"unbreakable", "a b"}},
		{"±10 ±20 ±30", 7, []string{"±10 ±20", "±30"}},
	} {
		if got := Wrap(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q at %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
	text := "a rather long line of words that is broken again and again"
	if got := strings.Join(Wrap(text, 11), " "); got != text {
		t.Errorf("%q", got)
	}
}
