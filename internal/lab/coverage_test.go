package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPapersCovered: every figure and table of a paper, by its number, has rows or a reason
// why not, and no row is of a figure that the paper does not have.
func TestPapersCovered(t *testing.T) {
	ours := []string{"fabric", "paths", "age", "cause"} // rows of experiments that no paper prints
	for _, paper := range Papers() {
		c, err := Covered(paper)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, item := range c.Items {
			if item.What == "" {
				t.Errorf("%s: %v: nothing says what it is", paper, item.Of)
			}
			for _, f := range item.Of {
				if seen[f] {
					t.Errorf("%s: %s twice", paper, f)
				}
				seen[f] = true
				rows, _ := c.verdicts([]string{f})
				switch {
				case item.State == "" && rows == 0:
					t.Errorf("%s: %s has neither rows nor a reason", paper, f)
				case item.State != "" && rows > 0:
					t.Errorf("%s: %s is %s and has %d rows", paper, f, item.State, rows)
				}
			}
			if reasoned := item.State == notComparable || item.State == notAttempted; reasoned != (item.Why != "") || item.State != "" && !reasoned && item.State != illustration {
				t.Errorf("%s: %v: state %q, reason %q", paper, item.Of, item.State, item.Why)
			}
		}
		for i := range c.Figures {
			if f := fmt.Sprintf("fig%d", i+1); !seen[f] {
				t.Errorf("%s: %s is not accounted for", paper, f)
			}
		}
		for i := range c.Tables {
			if f := fmt.Sprintf("table%d", i+1); !seen[f] {
				t.Errorf("%s: %s is not accounted for", paper, f)
			}
		}
		list, err := Paper(paper, "", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			for _, f := range x.Figures {
				if !seen[f] && !slices.Contains(ours, f) {
					t.Errorf("%s: %s is of %s, which the paper does not have", paper, x.Name, f)
				}
			}
		}
		page, err := os.ReadFile("../../docs/reproduction/" + paper + ".md")
		if err != nil || !strings.Contains(string(page), coverageSection(c)) {
			if *update && err == nil {
				err = os.WriteFile("../../docs/reproduction/"+paper+".md", withCoverage(page, c), 0o666)
			} else {
				t.Errorf("docs/reproduction/%s.md lacks the coverage (%v): go test ./internal/lab -run TestPapersCovered -update", paper, err)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if n := len(c.Screen()); n > 35 {
			t.Errorf("%s: %d lines and the summary do not fit a terminal", paper, n)
		}
		if n := len(c.table()); n > 20 {
			t.Errorf("%s: a table of %d lines does not fit a screen", paper, n)
		}
	}
	if got := ranges([]string{"fig1", "fig3", "fig4", "fig5", "table1", "table2", "text"}); got != "fig1 fig3–fig5 table1 table2 text" {
		t.Error(got)
	}
}

const coverageHead = "## Coverage\n"

// coverageSection is the coverage as a section of the paper's page.
func coverageSection(c Coverage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n\n| printed | what | rows and verdicts, or why there are none |\n|---|---|---|\n", coverageHead, c.Summary())
	for _, line := range c.table()[1:] {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
	}
	return b.String() + "\n"
}

// withCoverage inserts the section before the first experiment of a page, or replaces an
// older one.
func withCoverage(page []byte, c Coverage) []byte {
	text := string(page)
	if i := strings.Index(text, coverageHead); i >= 0 {
		j := strings.Index(text[i+1:], "\n## ")
		text = text[:i] + text[i+1+j+1:]
	}
	i := strings.Index(text, "\n## ") + 1
	return []byte(text[:i] + coverageSection(c) + text[i:])
}
