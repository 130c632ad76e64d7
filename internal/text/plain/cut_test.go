package plain

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestCutKeepsAll: the pieces contain the complete text, with correct line
// numbers.
func TestCutKeepsAll(t *testing.T) {
	var b strings.Builder
	b.WriteString("# of many\nname: x\nabout: |\n  it's: long\n")
	b.WriteString("switches: # of two kinds\n" + strings.Repeat("  s1: {role: spine}\n", 3000))
	b.WriteString("hosts:\n" + strings.Repeat("  h1:\n    ip: 10.0.0.1/24 # its\n    about: \"[\n\n      x\"\n", 3000))
	b.WriteString("links:\n" + strings.Repeat("- {ends: [h1,\n  s1]}\n", 3000) + "last: 1")
	text := b.String()
	pieces, _, err := Cut([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(pieces) < 15 {
		t.Fatalf("%d pieces", len(pieces))
	}
	lines, next := strings.Split(text, "\n"), 2
	for i, p := range pieces {
		list := strings.Split(strings.TrimSuffix(string(p.Text), "\n"), "\n")
		for n, line := range list {
			at := p.Line(n + 1)
			if lines[at-1] != line {
				t.Fatalf("piece %d, line %d is reported as line %d, which is %q, not %q", i, n+1, at, lines[at-1], line)
			}
			if again := n == 0 && i > 0 && p.Section == pieces[i-1].Section; again {
				continue
			}
			if at != next {
				t.Fatalf("line %d follows instead of line %d", at, next)
			}
			next++
		}
	}
	if next != len(lines)+1 {
		t.Errorf("the pieces end before line %d of %d", next, len(lines))
	}
}

// TestCutRefuses: a text that cannot be cut has the limits of a single piece.
func TestCutRefuses(t *testing.T) {
	many := strings.Repeat("  k:\n", 20000)
	for _, c := range []struct{ name, text, want string }{
		{"keys that are not below a bare one", strings.Repeat("k:\n", 20000), ""},
		{"behind a document", "---\na:\n" + many, "10003: more than 10000 keys"},
		{"below an item", "a:\n  -\n" + strings.ReplaceAll(many, "  ", "    "), "10003: more than 10000 keys"},
		{"in the second level", "a:\n b:\n" + many, "10003: more than 10000 keys"},
		{"a million keys", "a:\n" + strings.Repeat("  k:\n", 1<<20), "200002: more than 200000 keys or items below a"},
		{"a million links", "a:\n" + strings.Repeat("- b\n", 1<<20), "200002: more than 200000 keys or items below a"},
		{"words without end", "a:\n" + strings.Repeat("- ["+strings.Repeat("1,", 1000)+"1]\n", 5000), "more than 4194304 words and signs"},
		{"words in one item", "a: b\nc: [" + strings.Repeat("1,\n", 300000) + "1]\n", "more than 262144 words and signs"},
		{"too large", "a:\n" + strings.Repeat(strings.Repeat("x", 500)+"\n", 40000), "larger than 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, line, err := Cut([]byte(c.text))
			if got := fmt.Sprint(line, ": ", err); c.want == "" && err != nil || c.want != "" && !strings.Contains(got, c.want) {
				t.Errorf("%s, want %q", got, c.want)
			}
		})
	}
}

// FuzzCut: the pieces pass Check and contain the complete text.
func FuzzCut(f *testing.F) {
	for _, s := range []string{"a:\n  b: 1\n", "  - {a: [b, 'c']}\n", "hosts:\n  h:\n    ip: 1\n", "a: |\n  b\n", "\"x\n\": 1\n"} {
		f.Add(s, "k:\n", uint16(5000))
	}
	f.Fuzz(func(t *testing.T, text, head string, times uint16) {
		if len(text)*int(times) > 1<<17 {
			return
		}
		all := []byte(head + strings.Repeat(text, int(times)))
		pieces, _, err := Cut(all)
		if err != nil {
			return
		}
		lines, last := bytes.SplitAfter(all, []byte{'\n'}), 0
		for _, p := range pieces {
			if _, err := Check(p.Text); err != nil {
				t.Fatal(err)
			}
			for n, line := range bytes.SplitAfter(p.Text, []byte{'\n'}) {
				if at := p.Line(n + 1); len(line) > 0 && (at > len(lines) || !bytes.Equal(lines[at-1], line)) {
					t.Fatalf("line %d is not %q", at, line)
				} else if len(line) > 0 {
					last = max(last, at)
				}
			}
		}
		for _, line := range lines[last:] {
			if len(bytes.TrimSpace(line)) > 0 {
				t.Fatalf("%q is lost", line)
			}
		}
	})
}
