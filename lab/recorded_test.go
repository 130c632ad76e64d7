package lab

import (
	"os"
	"strings"
	"testing"
)

// TestRecorded: the summary that lab paper prints is that of the paper's page, and
// no row of a page is without a verdict that says what it is.
func TestRecorded(t *testing.T) {
	known := []Verdict{Within, Holds, OutOfReach, Decided, Smaller, Contrary, Undecided}
	for _, paper := range Papers() {
		text, err := Recorded(paper)
		if err != nil {
			t.Error(err)
			continue
		}
		page, err := os.ReadFile("../docs/reproduction/" + paper + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/reproduction/%s.md lacks the summary", paper)
		}
		for line := range strings.Lines(string(page)) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if len(cells) != 5 || strings.HasPrefix(line, "| |") || strings.HasPrefix(line, "|-") {
				continue
			}
			found := false
			for _, v := range known {
				found = found || strings.HasPrefix(strings.TrimLeft(cells[4], " *"), string(v))
			}
			if !found {
				t.Errorf("%s: %s", paper, line)
			}
		}
	}
	if _, err := Recorded("none"); err == nil {
		t.Error("something is recorded of no paper")
	}
}
