package cli

import (
	"strings"
	"testing"
)

// TestTame escapes control characters and truncates long text.
func TestTame(t *testing.T) {
	if got := tame("a\x1b[2J\nb"); got != "a\\x1b[2J\nb" {
		t.Errorf("got %q", got)
	}
	got := tame("no column x, only " + strings.Repeat("é", maxSaid))
	if len(got) > maxSaid+30 || !strings.HasSuffix(got, "… (32786 bytes)") {
		t.Errorf("got %d bytes, ending in %q", len(got), got[len(got)-30:])
	}
}

// TestSaidIsTame escapes control characters in progress lines, warnings and
// tables.
func TestSaidIsTame(t *testing.T) {
	var err, table strings.Builder
	c := &Console{Err: &err}
	c.Say("wrote %s", "a\x1b[2J")
	c.Warning("%s is no note", "b\x1b]0;x\a")
	if want := "wrote a\\x1b[2J\nwarning: b\\x1b]0;x\\a is no note\n"; err.String() != want {
		t.Errorf("said %q, want %q", err.String(), want)
	}
	if e := Show(&table, Table, Grid{{"NAME", "RUNS"}, {"a\tb\n\x1b[2J", "3"}}, nil); e != nil {
		t.Fatal(e)
	}
	if want := "NAME           RUNS\na\\tb\\n\\x1b[2J  3\n"; table.String() != want {
		t.Errorf("shown is %q, want %q", table.String(), want)
	}
}
