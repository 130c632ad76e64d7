package live

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/lipgloss"
)

// A styles defines the appearance of the parts of the screen.
type styles struct {
	title, tab, head, cursor, alarm, faint, spark func(string) string
}

// newStyles returns the styles for the terminal of o, without colours if o disables
// them.
func newStyles(o Options) styles {
	plain := func(s string) string { return s }
	if o.NoColor {
		return styles{plain, plain, plain, plain, plain, plain, plain}
	}
	out := o.Out
	if out == nil {
		out = os.Stdout
	}
	r := lipgloss.NewRenderer(out)
	with := func(style lipgloss.Style) func(string) string {
		return func(s string) string { return style.Render(s) }
	}
	colour := func(light, dark string) lipgloss.Style {
		return r.NewStyle().Foreground(lipgloss.AdaptiveColor{Light: light, Dark: dark})
	}
	return styles{
		title:  with(r.NewStyle().Bold(true)),
		tab:    with(r.NewStyle().Bold(true).Reverse(true)),
		head:   with(colour("4", "12").Bold(true)),
		cursor: with(r.NewStyle().Bold(true)),
		alarm:  with(colour("1", "9")),
		faint:  with(r.NewStyle().Faint(true)),
		spark:  with(colour("2", "10")),
	}
}

// otherLines is the number of lines around the table: title, views, heads, state,
// help.
const otherLines = 5

// tableHeight returns the number of rows that fit. On a very small screen, the
// other lines are dropped.
func (s *screen) tableHeight() int {
	if s.height > otherLines+1 {
		return s.height - otherLines
	}
	return max(0, s.height-1)
}

// View draws the screen.
func (s *screen) View() string {
	if s.width <= 0 || s.height <= 0 {
		return ""
	}
	table := s.table()
	if s.height <= otherLines+1 {
		return strings.Join(append(table, s.stateLine())[:min(s.height, len(table)+1)], "\n")
	}
	for len(table) < s.tableHeight()+1 {
		table = append(table, "")
	}
	lines := append([]string{s.titleLine(), s.viewsLine()}, table...)
	return strings.Join(append(lines, s.stateLine(), s.helpLine()), "\n")
}

// titleLine returns the name of the network and the time. It adds as many facts as
// fit, starting with the state of the display.
func (s *screen) titleLine() string {
	facts := []string{"p4lb"}
	if s.ended {
		facts = append(facts, "ended")
	}
	if s.paused {
		facts = append(facts, "paused")
	}
	if f := s.frame; f != nil {
		facts = append(facts, clock(f), named(f), count(len(f.Switches), "switch", "switches"))
	}
	line := facts[0]
	for _, fact := range facts[1:] {
		if utf8.RuneCountInString(line)+2+utf8.RuneCountInString(fact) > s.width {
			break
		}
		line += "  " + fact
	}
	return s.styles.title(cut(line, s.width))
}

func clock(f *Frame) string {
	if f.Virtual {
		return fmt.Sprintf("%v simulated", f.Time.Round(time.Microsecond))
	}
	return f.Time.Round(100 * time.Millisecond).String()
}

func named(f *Frame) string {
	if f.Fabric == "" {
		return f.Scheme
	}
	return f.Scheme + " on " + f.Fabric
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// viewsLine lists the names of the views. It marks the current view and shows as
// many others around it as fit.
func (s *screen) viewsLine() string {
	names := []string{"fabric"}
	if s.frame != nil {
		for _, sw := range s.frame.Switches {
			names = append(names, sw.Name)
		}
	}
	now := s.at(s.view) + 1
	from, to := around(names, now, s.width)
	var b strings.Builder
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(' ')
		}
		switch {
		case i != now:
			b.WriteString(" " + names[i] + " ")
		default:
			b.WriteString(s.styles.tab(cut("["+names[i]+"]", s.width)))
		}
	}
	return b.String()
}

// around returns the widest range of names that includes name i and fits; each name
// takes three columns more than its length.
func around(names []string, i, width int) (from, to int) {
	room := func(k int) int { return utf8.RuneCountInString(names[k]) + 3 }
	from, to = i, i+1
	left := width + 1 - room(i)
	for {
		grown := false
		if to < len(names) && room(to) <= left {
			left -= room(to)
			to++
			grown = true
		}
		if from > 0 && room(from-1) <= left {
			from--
			left -= room(from)
			grown = true
		}
		if !grown {
			return from, to
		}
	}
}

// stateLine returns the description of the table, the current input, or the error.
func (s *screen) stateLine() string {
	switch {
	case s.typing:
		return cut("filter: "+s.filter+"_", s.width)
	case s.complain != "":
		return s.styles.alarm(cut(s.complain, s.width))
	case s.frame == nil:
		return s.styles.faint(cut("waiting for the switches", s.width))
	}
	facts := []string{fmt.Sprintf("%d of %d", len(s.rows), s.of)}
	if s.sort >= 0 || s.reverse {
		sorted := "place"
		if s.sort >= 0 {
			sorted = strings.ToLower(s.columns[s.sort].head)
		}
		if s.reverse {
			sorted += ", reversed"
		}
		facts = append(facts, "by "+sorted)
	}
	if s.filter != "" {
		facts = append(facts, "filter "+s.filter)
	}
	if s.noIdle {
		facts = append(facts, "without idle ones")
	}
	return s.styles.faint(cut(strings.Join(facts, ", "), s.width))
}

// helpLine lists as many keys as fit.
func (s *screen) helpLine() string {
	var line string
	for _, b := range bindings {
		next := line + b.key + " " + b.does
		if utf8.RuneCountInString(next) > s.width {
			break
		}
		line = next + "  "
	}
	return s.styles.faint(strings.TrimRight(line, " "))
}
