package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Coverage lists all results that a paper prints, and which of them have been measured.
type Coverage struct {
	Paper   string         `yaml:"paper"`
	Figures int            `yaml:"figures"` // number of figures in the paper, numbered from 1
	Tables  int            `yaml:"tables"`
	Items   []CoverageItem `yaml:"items"`
}

// A CoverageItem is a figure, a table or a headline number, or several of the same kind.
type CoverageItem struct {
	Of    []string `yaml:"of"` // names such as fig9, table2, abstract or text
	What  string   `yaml:"what"`
	State string   `yaml:"state"` // reason for having no rows; "" if there are rows
	Why   string   `yaml:"why"`
}

// The states of an item without rows.
const (
	illustration  = "illustration"
	notComparable = "not comparable"
	notAttempted  = "not attempted"
)

// Covered returns the coverage of a paper.
func Covered(paper string) (Coverage, error) {
	text, err := paperFiles.ReadFile("papers/recorded/coverage.yaml")
	if err != nil {
		panic(err) // embedded files are always readable
	}
	var all []Coverage
	if err := yaml.UnmarshalWithOptions(text, &all, yaml.Strict()); err != nil {
		return Coverage{}, fmt.Errorf("coverage.yaml: %w", err)
	}
	i := slices.IndexFunc(all, func(c Coverage) bool { return c.Paper == paper })
	if i < 0 {
		return Coverage{}, fmt.Errorf("coverage.yaml has no paper %q", paper)
	}
	return all[i], nil
}

// verdicts counts the recorded rows of figures by verdict, in the order of their
// first row.
func (c Coverage) verdicts(figures []string) (rows int, counts string) {
	n := map[string]int{}
	var order []string
	for _, name := range paperNames() {
		if name != c.Paper && !strings.HasPrefix(name, c.Paper+"-") {
			continue
		}
		for _, r := range RecordedRows(name, "") {
			if slices.Contains(figures, r.Figure) {
				verdict, _, _ := strings.Cut(r.Verdict, " (")
				order = lists.Add(order, verdict)
				n[verdict]++
				rows++
			}
		}
	}
	return rows, strings.Join(lists.Map(order, func(v string) string { return fmt.Sprintf("%d %s", n[v], v) }), ", ")
}

// table returns the coverage as a table, a line for each item.
func (c Coverage) table() [][]string {
	table := [][]string{{"PRINTED", "WHAT", "ROWS AND VERDICTS"}}
	for _, item := range c.Items {
		state := item.State
		if item.Why != "" {
			state += ": " + item.Why
		}
		if item.State == "" {
			rows, counts := c.verdicts(item.Of)
			state = fmt.Sprintf("%d: %s", rows, counts)
		}
		table = append(table, []string{ranges(item.Of), item.What, state})
	}
	return table
}

// Screen returns the coverage as a table that fits a terminal. It omits reasons and puts
// illustrations into one line.
func (c Coverage) Screen() [][]string {
	table := [][]string{{"PRINTED", "WHAT", "RECORDED"}}
	var drawn []string
	for i, line := range c.table()[1:] {
		item := c.Items[i]
		if item.State == illustration {
			drawn = append(drawn, item.Of...)
			continue
		}
		if item.State != "" {
			line[2] = item.State
		}
		what, _, _ := strings.Cut(line[1], ";")
		what, _, _ = strings.Cut(what, ":")
		for k, recorded := range plain.Wrap(line[2], 36) {
			if k > 0 {
				line[0], what = "", ""
			}
			table = append(table, []string{line[0], shorten(what, 28), recorded})
		}
	}
	if len(drawn) > 0 {
		slices.SortStableFunc(drawn, byNumber)
		table = append(table, []string{fmt.Sprintf("%d others", len(drawn)), shorten(ranges(drawn), 28), illustration})
	}
	return table
}

// byNumber compares names such as fig2 and fig10 by their number.
func byNumber(a, b string) int {
	return cmp.Or(strings.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func shorten(text string, letters int) string {
	if r := []rune(text); len(r) > letters {
		return string(r[:letters-1]) + "…"
	}
	return text
}

// Summary returns a sentence with the numbers of printed items that have rows and that have none.
func (c Coverage) Summary() string {
	n := map[string]int{}
	for _, item := range c.Items {
		n[item.State] += len(item.Of)
	}
	return fmt.Sprintf("%d figures and tables, and %d statements of the text: %d have rows, %d are illustrations, %d not comparable, %d not attempted.",
		c.Figures+c.Tables, n[""]+n[illustration]+n[notComparable]+n[notAttempted]-c.Figures-c.Tables, n[""], n[illustration], n[notComparable], n[notAttempted])
}

// ranges abbreviates numbered names, as in fig9–fig12.
func ranges(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		j := i
		for j+1 < len(names) && follows(names[j], names[j+1]) {
			j++
		}
		switch {
		case j > i+1:
			parts = append(parts, names[i]+"–"+names[j])
		default:
			parts = append(parts, names[i:j+1]...)
		}
		i = j + 1
	}
	return strings.Join(parts, " ")
}

// follows reports whether a numbered name comes right after another.
func follows(a, b string) bool {
	var n, m int
	kind := strings.TrimRight(a, "0123456789")
	if _, err := fmt.Sscanf(a, kind+"%d", &n); err != nil {
		return false
	}
	_, err := fmt.Sscanf(b, kind+"%d", &m)
	return err == nil && m == n+1
}
