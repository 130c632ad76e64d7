package cli

import (
	"strings"
	"testing"
)

// TestTame: an error is printable, and no longer than somebody reads.
func TestTame(t *testing.T) {
	if got := tame("a\x1b[2J\nb"); got != "a\\x1b[2J\nb" {
		t.Errorf("got %q", got)
	}
	got := tame("no column x, only " + strings.Repeat("é", maxSaid))
	if len(got) > maxSaid+30 || !strings.HasSuffix(got, "… (32786 bytes)") {
		t.Errorf("got %d bytes, ending in %q", len(got), got[len(got)-30:])
	}
}
