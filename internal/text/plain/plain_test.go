package plain

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml/parser"
)

// TestCheck: texts that would keep the parser busy for minutes or crash it are
// rejected, and normal files pass.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"colons", "a" + strings.Repeat(": ", 50000), "more than 64 keys"},
		{"bare colons", strings.Repeat(":", 50000), "more than 64 keys"},
		{"question marks", strings.Repeat("? ", 50000), "more than 64 keys"},
		{"question marks below one another", strings.Repeat("?\n", 50000), "more than 1000 anchors"},
		{"anchors", strings.Repeat("&a ", 50000), "more than 1000 anchors"},
		{"anchors below one another", strings.Repeat("&a\n", 50000), "more than 1000 anchors"},
		{"tags", strings.Repeat("!a ", 50000), "more than 1000 anchors"},
		{"items", strings.Repeat("- ", 50000), "more than 64 keys"},
		{"a text of nothing", "a: >\n" + strings.Repeat("\n", 500000), "more than 10000 empty lines in a row"},
		{"a list of a million", "a: [" + strings.Repeat("1, ", 1<<20) + "1]", "more than 262144 words and signs"},
		{"a million words", strings.Repeat("x y\n", 1<<20), "more than 262144 words and signs"},
		{"keys below one another", strings.Repeat("k:\n", 10001), "more than 10000 keys at one level"},
		{"keys below one another, farther in", "a:\n" + strings.Repeat("  k: 1\n    # more\n", 10001), "more than 10000 keys at one level"},
		{"keys in items", strings.Repeat("- a: 1\n  b: 2\n", 20000), ""},
		{"empty items", strings.Repeat("-\n", 50000), "more than 10000 items"},
		{"brackets", strings.Repeat("[", 50000), "more than 64 brackets"},
		{"braces in lines", strings.Repeat("{a:\n", 50000), "more than 64 brackets"},
		{"steps", strings.Repeat(" ", 300) + "a:", "indented by 300"},
		{"a long word", strings.Repeat("<", 100000), "a word of more than 1024 bytes"},
		{"a large file", strings.Repeat("a", MaxBytes+1), "larger than 16 MiB"},
		{"a topology", "links:\n  - {ends: [h1, 'l1:2'], rate: \"4:0G\"} # x: y: z\n  - {ends: [h1, l1:2]}\n", ""},
		{"a long list", "pairs: [" + strings.Repeat("[h1, h2], ", 50000) + "]\n", ""},
		{"quotes", "about: \"" + strings.Repeat("[: ", 1000) + "\"\n", ""},
		{"an apostrophe", "about: what's [here]\nname: it's\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Check([]byte(c.text))
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzCheck: a text that passes is parsed without a stack overflow and within
// the fuzzer's time limit.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"a: b\n", "- {a: [b, 'c']}\n", "? a\n: b\n", "&a *b !c <<: d\n", "a: |\n  b\n"} {
		f.Add(s, uint16(1))
		f.Add(s, uint16(999))
	}
	f.Fuzz(func(t *testing.T, text string, times uint16) {
		if len(text)*int(times) > 1<<16 {
			return
		}
		all := []byte(strings.Repeat(text, int(times)))
		if _, err := Check(all); err == nil {
			parser.ParseBytes(all, 0)
		}
	})
}
