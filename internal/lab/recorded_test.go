package lab

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/lab/spec"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// TestRecorded: the summary and the rows of lab paper equal the paper's page, and
// every row of a page has a known verdict.
func TestRecorded(t *testing.T) {
	rows, all := map[Verdict]int{}, 0
	table := "experiment\tfigure\ttarget\tprinted\tmeasured\tverdict\n"
	for _, paper := range Papers() {
		text, err := Recorded(paper)
		if err != nil {
			t.Error(err)
			continue
		}
		page, err := os.ReadFile("../../docs/reproduction/" + paper + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/reproduction/%s.md lacks the summary", paper)
		}
		section := ""
		for line := range strings.Lines(string(page)) {
			if name, ok := strings.CutPrefix(line, "## "); ok {
				section = strings.TrimSpace(name)
			}
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
			if len(cells) != 5 || strings.HasPrefix(line, "| |") || strings.HasPrefix(line, "|-") {
				continue
			}
			table += section + "\t" + strings.ReplaceAll(strings.Join(cells, "\t"), "**", "") + "\n"
			found := false
			for _, v := range verdicts {
				if strings.HasPrefix(strings.TrimLeft(cells[4], " *"), string(v)) {
					found = true
					rows[v]++
					all++
				}
			}
			if !found {
				t.Errorf("%s: %s", paper, line)
			}
		}
	}
	for file, want := range map[string]string{
		"../../docs/reproduction.md": fmt.Sprintf("The pages have %d rows: %s.", all, strings.Join(lists.Map(verdicts, func(v Verdict) string { return fmt.Sprintf("%d %s", rows[v], v) }), ", ")),
		"../../README.md": fmt.Sprintf("The lab compares %d printed numbers and orderings with its own: %d are within a quarter of the printed number, %d in the printed order, %d have the printed sign and another size, %d depend on details that the paper omits, %d disagree, and %d are undecided, out of reach or not comparable",
			all, rows[Within], rows[Holds], rows[otherSize], rows[decidedByChoice], rows[Level]+rows[contrary], rows[undecided]+rows[outOfReach]+rows[NotComparable]),
	} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: %s does not say: %s", err, file, want)
		}
	}
	if *update {
		if err := os.WriteFile(recordedRowsFile, []byte(table), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(recordedRowsFile); err != nil || string(text) != table {
		t.Errorf("%s differs from the pages (%v): go test ./internal/lab -run TestRecorded -update", recordedRowsFile, err)
	}
	list, err := Paper("rlb", "fig14", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if got := RecordedRows(x.File, "fig14"); len(got) == 0 || got[0].Figure != "fig14" || len(got) > len(RecordedRows(x.File, "")) {
			t.Errorf("of fig14 %s has recorded %d rows", x.File, len(got))
		}
	}
	if _, err := Recorded("none"); err == nil {
		t.Error("something is recorded of no paper")
	}
}

// TestMechanisms: exactly the recorded rows that differ from the paper have an
// explanation, on the page and in --explain.
func TestMechanisms(t *testing.T) {
	leftToPlainRun(t)
	for _, paper := range Papers() {
		list, err := Paper(paper, "", false)
		if err != nil {
			t.Fatal(err)
		}
		known, err := Mechanisms(list, spec.AllFigures)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile("../../docs/reproduction/" + paper + ".md")
		if err != nil {
			t.Fatal(err)
		}
		used, section := make([]bool, len(known)), ""
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "## "); ok {
				section = strings.TrimSpace(name)
			}
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if len(cells) != 5 || cells[4] == "" {
				continue
			}
			verdict := strings.TrimLeft(cells[4], " *")
			otherwise := strings.HasPrefix(verdict, string(contrary)) || strings.HasPrefix(verdict, string(Level))
			covered := false
			for i := range known {
				if known[i].Experiment == section && known[i].covers(strings.TrimSpace(cells[0]), cells[1]) && otherwise {
					covered, used[i] = true, true
				}
			}
			if otherwise && !covered {
				t.Errorf("%s, %s: nothing says why %q is %s", section, cells[0], cells[1], verdict)
			}
		}
		for i := range known {
			if !used[i] {
				t.Errorf("%s, %s: no row begins with %q", known[i].Experiment, known[i].Figure, known[i].Rows)
			}
			if !strings.Contains(string(text), "- "+known[i].String()+"\n") {
				t.Errorf("docs/reproduction/%s.md lacks: - %s", paper, &known[i])
			}
		}
	}
}

// covers reports whether the mechanism explains a row.
func (m *Mechanism) covers(figure, row string) bool {
	return slices.ContainsFunc(m.Rows, func(name string) bool { return m.Figure == figure && strings.HasPrefix(row, name) })
}
