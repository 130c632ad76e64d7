package live

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/p4lb/p4lb/internal/text/lists"
)

const (
	gap        = 2  // columns between two columns of the table
	minHistory = 8  // shorter sparklines are not useful
	margin     = 2  // width of the cursor
	maxText    = 40 // longer texts are truncated
)

// table draws the column heads and the visible rows, or the help.
func (s *screen) table() []string {
	if s.help {
		lines := lists.Map(helpText, func(l string) string { return cut(l, s.width) })
		return lines[:min(len(lines), s.tableHeight()+1)]
	}
	if i := s.at(s.view); i >= 0 && s.frame.Switches[i].Err != "" {
		return []string{s.styles.alarm(cut(s.frame.Switches[i].Err, s.width))}
	}
	seen := s.rows[s.top:min(len(s.rows), s.top+s.tableHeight())]
	columns, widths := s.fit()
	lines := []string{s.heads(columns, widths)}
	for i := range seen {
		lines = append(lines, s.line(&seen[i], s.top+i == s.cursor, columns, widths))
	}
	return lines
}

// fit chooses the columns that fit on the screen, and their widths. All rows count,
// not only visible ones, so that widths do not change while scrolling.
func (s *screen) fit() ([]column, []int) {
	columns := slices.Clone(s.columns)
	widths := make([]int, len(columns))
	total := margin
	for i, c := range columns {
		widths[i] = s.widthOf(c)
		total += widths[i] + gap
	}
	total -= gap
	for total > s.width && len(columns) > 1 {
		least := 0
		for i, c := range columns {
			if c.keep < columns[least].keep {
				least = i
			}
		}
		total -= widths[least] + gap
		columns = slices.Delete(columns, least, least+1)
		widths = slices.Delete(widths, least, least+1)
	}
	for i, c := range columns {
		if c.head == historyHead {
			widths[i] += max(0, min(span-widths[i], s.width-total))
		}
	}
	return columns, widths
}

// widthOf returns the width of a column.
func (s *screen) widthOf(c column) int {
	width := utf8.RuneCountInString(c.head)
	if c.text == nil {
		return max(width, minHistory)
	}
	for i := range s.rows {
		if r := &s.rows[i]; r.err == "" || c.head == columnSwitch.head {
			width = max(width, min(maxText, utf8.RuneCountInString(c.text(r))))
		}
	}
	return width
}

func (s *screen) heads(columns []column, widths []int) string {
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = align(c.head, widths[i], c.right)
	}
	line := strings.TrimRight("  "+strings.Join(texts, "  "), " ")
	return s.styles.head(cut(line, s.width))
}

// line draws a row. Only the sparkline is coloured, because truncating a styled
// text would break the style.
func (s *screen) line(r *row, cursor bool, columns []column, widths []int) string {
	mark, style := "  ", func(s string) string { return s }
	if cursor {
		mark, style = "> ", s.styles.cursor
	}
	if r.err != "" {
		return s.styles.alarm(cut(mark+r.sw+"  "+r.err, s.width))
	}
	var b strings.Builder
	b.WriteString(mark)
	for i, c := range columns {
		if c.text != nil {
			b.WriteString(style(cut(align(cut(c.text(r), widths[i]), widths[i], c.right), s.width-margin)))
		} else {
			b.WriteString(s.styles.spark(align(sparkline(r.history, widths[i]), widths[i], false)))
		}
		if i < len(columns)-1 {
			b.WriteString("  ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func align(text string, width int, right bool) string {
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if right {
		return pad + text
	}
	return text + pad
}

// cut truncates a text to the width, and ends it with an ellipsis if it was longer.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}
