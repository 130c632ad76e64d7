package live

import (
	tea "github.com/charmbracelet/bubbletea"
)

// A binding describes a key for the help.
type binding struct{ key, does string }

// bindings lists the keys. A narrow help line omits keys from the end.
var bindings = []binding{
	{"q", "quit"},
	{"?", "help"},
	{"←→", "switch"},
	{"p", "pause"},
	{"/", "filter"},
	{"s", "sort"},
	{"r", "reverse"},
	{"z", "idle"},
	{"enter", "open"},
	{"esc", "back"},
}

// helpText is the help screen of the key ?.
var helpText = []string{
	"q, ctrl+c        quit",
	"←→ h l tab       the view before and the next: the fabric, then each switch",
	"↑↓ j k pgup pgdn a row or a page up and down; home, end: the first, the last",
	"enter            from the fabric: the cells of that register on that switch",
	"esc              drop the filter; without one, back to the fabric",
	"s, r             sort by the next column; the other way round",
	"/                filter by words: switch, register, place and meaning;",
	"                 enter keeps it, esc drops it",
	"z                hide or show values that were always zero",
	"p, space         pause; simulated time stands still meanwhile",
	"?                this help, and back",
}

// key handles a key press.
func (s *screen) key(key string) tea.Cmd {
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "?":
		s.help = !s.help
	case "p", " ":
		return s.pause()
	default:
		s.navigate(key)
	}
	return nil
}

func (s *screen) pause() tea.Cmd {
	s.paused = !s.paused
	if f := s.pending; f != nil && !s.paused {
		s.pending = nil
		s.take(f)
	}
	return s.next()
}

func (s *screen) navigate(key string) {
	switch key {
	case "left", "h", "shift+tab":
		s.turn(-1)
	case "right", "l", "tab":
		s.turn(+1)
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(+1)
	case "pgup":
		s.move(-s.tableHeight())
	case "pgdown":
		s.move(s.tableHeight())
	case "home", "g":
		s.move(-len(s.rows))
	case "end", "G":
		s.move(len(s.rows))
	case "enter":
		s.open()
	case "esc":
		s.back()
	default:
		s.choose(key)
	}
}

// choose changes the selection and the order of rows.
func (s *screen) choose(key string) {
	switch key {
	case "s":
		s.sort = s.nextSort()
	case "r":
		s.reverse = !s.reverse
	case "z":
		s.noIdle = !s.noIdle
	case "/":
		s.typing = true
	default:
		return
	}
	s.arrange()
}

// nextSort returns the next column to sort by, or -1 after the last.
func (s *screen) nextSort() int {
	for i := s.sort + 1; i < len(s.columns); i++ {
		if s.columns[i].order != nil {
			return i
		}
	}
	return -1
}

// turn moves on by n views, and continues at the other end.
func (s *screen) turn(n int) {
	if s.frame == nil {
		return
	}
	views := len(s.frame.Switches) + 1
	i := (s.at(s.view) + 1 + n + views) % views
	if i == 0 {
		s.show("")
	} else {
		s.show(s.frame.Switches[i-1].Name)
	}
}

// show changes the view and scrolls to its top.
func (s *screen) show(view string) {
	if (view == "") != (s.view == "") {
		s.sort = -1 // the new view may have other columns
	}
	s.view, s.cursor, s.top = view, 0, 0
	s.rows = nil
	s.arrange()
}

// open shows the cells of the summary under the cursor.
func (s *screen) open() {
	if s.view != "" || s.cursor >= len(s.rows) {
		return
	}
	r := s.rows[s.cursor]
	s.filter = r.value.Register
	s.show(r.sw)
}

func (s *screen) back() {
	switch {
	case s.help:
		s.help = false
	case s.filter != "":
		s.filter = ""
		s.arrange()
	case s.view != "":
		s.show("")
	}
}
