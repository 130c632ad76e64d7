package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A row is a line of the table. It is a cell, or it summarises a register of one
// switch; then value is the greatest cell.
type row struct {
	sw      string
	value   Value
	history []float64

	used, cells int     // number of non-zero cells, and of all cells
	mean        float64 // of all cells

	err string // error of the switch, shown instead of the values
}

// A column is a column of the table.
type column struct {
	head  string
	right bool
	keep  int // priority: on a narrow screen, the columns with the least are dropped
	text  func(r *row) string
	order func(a, b *row) int // nil if the column cannot be sorted
}

// historyHead is the head of the column that fills the remaining width.
const historyHead = "HISTORY"

var (
	columnSwitch   = column{head: "SWITCH", keep: 5, text: func(r *row) string { return r.sw }}
	columnRegister = column{head: "REGISTER", keep: 6, text: func(r *row) string { return r.value.Register }, order: byRegister}
	columnHistory  = column{head: historyHead, keep: 3}
)

// cellColumns are the columns of the view of one switch.
var cellColumns = []column{
	columnRegister,
	{head: "WHERE", keep: 7, text: func(r *row) string { return r.value.Index }},
	{head: "VALUE", keep: 8, right: true, text: func(r *row) string { return r.value.text() }, order: byNumber},
	{head: "CHANGE", keep: 4, right: true, text: func(r *row) string { return signed(r.value.Change) }, order: byChange},
	{head: "PER SECOND", keep: 2, right: true, text: func(r *row) string { return signed(r.value.Rate) }, order: byRate},
	columnHistory,
	{head: "MEANING", keep: 1, text: func(r *row) string { return r.value.Meaning }},
}

// summaryColumns are the columns of the view of the whole fabric.
var summaryColumns = []column{
	columnSwitch,
	columnRegister,
	{head: "USED", keep: 2, right: true, text: func(r *row) string { return fmt.Sprintf("%d/%d", r.used, r.cells) }, order: byUse},
	{head: "GREATEST", keep: 8, right: true, text: func(r *row) string { return r.value.text() }, order: byNumber},
	{head: "AT", keep: 4, text: func(r *row) string { return r.value.Index }},
	{head: "MEAN", keep: 2, right: true, text: func(r *row) string { return number(r.mean) }, order: byMean},
	columnHistory,
	{head: "MEANING", keep: 1, text: func(r *row) string { return r.value.Meaning }},
}

func byRegister(a, b *row) int { return cmp.Compare(a.value.Register, b.value.Register) }
func byNumber(a, b *row) int   { return cmp.Compare(b.value.Number, a.value.Number) }
func byRate(a, b *row) int     { return cmp.Compare(size(b.value.Rate), size(a.value.Rate)) }
func byChange(a, b *row) int   { return cmp.Compare(size(b.value.Change), size(a.value.Change)) }
func byMean(a, b *row) int     { return cmp.Compare(b.mean, a.mean) }
func byUse(a, b *row) int {
	return cmp.Compare(b.used*max(a.cells, 1), a.used*max(b.cells, 1))
}

func size(x float64) float64 { return max(x, -x) }

// cells returns one row for each value of a switch.
func cells(sw *Switch, m *memory) []row {
	rows := make([]row, len(sw.Values))
	for i, v := range sw.Values {
		rows[i] = row{sw: sw.Name, value: v, history: m.of(cellOf(sw.Name, v))}
	}
	return rows
}

// summaries returns one row for each register of a switch, in their order.
func summaries(sw *Switch) []row {
	if sw.Err != "" {
		return []row{{sw: sw.Name, err: sw.Err}}
	}
	var rows []row
	place := map[string]int{}
	for _, v := range sw.Values {
		i, ok := place[v.Register]
		if !ok {
			i = len(rows)
			place[v.Register] = i
			rows = append(rows, row{sw: sw.Name, value: v})
		}
		rows[i].add(v)
	}
	for i := range rows {
		rows[i].mean /= float64(rows[i].cells)
	}
	return rows
}

// add adds a cell to the summary. mean holds the sum until all cells are added.
func (r *row) add(v Value) {
	r.cells++
	r.mean += v.Number
	if v.Number != 0 {
		r.used++
	}
	if v.Number > r.value.Number {
		r.value = v
	}
}

// idle reports whether the row is zero now and was zero before.
func (r *row) idle() bool {
	if r.err != "" || r.value.Number != 0 || r.used > 0 {
		return false
	}
	return !slices.ContainsFunc(r.history, func(x float64) bool { return x != 0 })
}

// matches reports whether each word of the filter, in lower case, occurs in the row's
// labels.
func (r *row) matches(words []string) bool {
	text := strings.ToLower(r.sw + " " + r.value.Register + " " + r.value.Index + " " + r.value.Meaning)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
