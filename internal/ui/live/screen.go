package live

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
)

// Options configure Watch. The zero value works.
type Options struct {
	In      io.Reader // the keyboard; nil: standard input
	Out     io.Writer // the terminal; nil: standard output
	NoColor bool
	Switch  string // the initial view; "" is the whole fabric
	Filter  string
}

// Watch displays the source until the user quits, ctx ends or the source fails. It
// needs a terminal.
func Watch(ctx context.Context, source Source, o Options) error {
	options := []tea.ProgramOption{tea.WithAltScreen(), tea.WithoutSignalHandler()}
	if o.In != nil {
		options = append(options, tea.WithInput(o.In))
	}
	if o.Out != nil {
		options = append(options, tea.WithOutput(o.Out))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a call of Next that is still in progress
	s := newScreen(ctx, source, o)
	program := tea.NewProgram(s, options...)
	// Quit makes Run wait until its input reader has stopped before the terminal is
	// restored. Cancelling the program's context would not.
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	_, err := program.Run()
	if e := ctx.Err(); e != nil {
		return e
	}
	return errors.Join(err, s.err)
}

// A screen is the state of the display: bubbletea's model.
type screen struct {
	ctx    context.Context
	source Source
	styles styles

	width, height int

	frame   *Frame
	memory  memory
	waiting bool   // a call of Next is in progress
	pending *Frame // a frame that arrived while paused
	paused  bool
	ended   bool  // there are no more frames
	err     error // the error that ended the source

	view     string // a switch, or "" for the whole fabric
	sort     int    // index in columns, or -1 for the order of the frame
	reverse  bool
	filter   string
	typing   bool // the filter is being typed
	noIdle   bool
	help     bool
	cursor   int // index in rows
	top      int // the first visible row
	columns  []column
	rows     []row // sorted and filtered
	of       int   // number of rows before filtering
	complain string
}

func newScreen(ctx context.Context, source Source, o Options) *screen {
	s := &screen{
		ctx: ctx, source: source, styles: newStyles(o),
		width: 80, height: 24,
		view: o.Switch, filter: o.Filter, sort: -1,
	}
	s.arrange()
	return s
}

// A frameMsg is the result of Next.
type frameMsg struct {
	frame *Frame
	err   error
}

// Init requests the first frame.
func (s *screen) Init() tea.Cmd { return s.next() }

// next requests a frame, unless a request is in progress or the screen is paused.
func (s *screen) next() tea.Cmd {
	if s.waiting || s.paused || s.ended {
		return nil
	}
	s.waiting = true
	return func() tea.Msg {
		f, err := s.source.Next(s.ctx)
		return frameMsg{f, err}
	}
}

// Update handles a message.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
		s.move(0)
	case frameMsg:
		return s, s.receive(msg)
	case tea.KeyMsg:
		s.complain = ""
		if s.typing {
			return s, s.typed(msg)
		}
		return s, s.key(msg.String())
	}
	return s, nil
}

func (s *screen) receive(msg frameMsg) tea.Cmd {
	s.waiting = false
	switch {
	case errors.Is(msg.err, io.EOF):
		s.ended = true
		return nil
	case msg.err != nil:
		s.err = msg.err
		return tea.Quit
	case s.paused:
		s.pending = msg.frame
		return nil
	}
	s.take(msg.frame)
	return s.next()
}

// take shows a frame.
func (s *screen) take(f *Frame) {
	s.frame = f
	s.memory.add(f)
	if s.view != "" && s.at(s.view) < 0 {
		s.complain = "there is no switch " + s.view
		s.view = ""
	}
	s.arrange()
}

// at returns the index of a switch in the frame, or -1 if it is missing.
func (s *screen) at(name string) int {
	if s.frame == nil {
		return -1
	}
	return slices.IndexFunc(s.frame.Switches, func(sw Switch) bool { return sw.Name == name })
}

// arrange rebuilds the rows and keeps the cursor on its row.
func (s *screen) arrange() {
	var on row
	if s.cursor < len(s.rows) {
		on = s.rows[s.cursor]
	}
	rows := s.all()
	s.of = len(rows)
	words := strings.Fields(strings.ToLower(s.filter))
	s.rows = slices.DeleteFunc(rows, func(r row) bool {
		return !r.matches(words) || s.noIdle && r.idle()
	})
	// Rows with equal values keep the order of the frame.
	if s.sort >= 0 {
		by := s.columns[s.sort].order
		slices.SortStableFunc(s.rows, func(a, b row) int { return by(&a, &b) })
	}
	if s.reverse {
		slices.Reverse(s.rows)
	}
	same := func(r row) bool {
		return r.sw == on.sw && r.value.Register == on.value.Register && (s.view == "" || r.value.Index == on.value.Index)
	}
	if i := slices.IndexFunc(s.rows, same); i >= 0 && s.cursor > 0 {
		s.cursor = i
	}
	s.move(0)
}

// all returns the rows of the view before filtering.
func (s *screen) all() []row {
	s.columns = cellColumns
	if s.view == "" {
		s.columns = summaryColumns
	}
	if s.frame == nil {
		return nil
	}
	if i := s.at(s.view); i >= 0 {
		return cells(&s.frame.Switches[i], &s.memory)
	}
	var rows []row
	for i := range s.frame.Switches {
		rows = append(rows, summaries(&s.frame.Switches[i])...)
	}
	for i := range rows {
		rows[i].history = s.memory.of(wholeOf(rows[i].sw, rows[i].value))
	}
	return rows
}

// move moves the cursor by n rows and keeps it on the screen.
func (s *screen) move(n int) {
	s.cursor = max(0, min(s.cursor+n, len(s.rows)-1))
	room := max(1, s.tableHeight())
	s.top = max(0, min(s.top, s.cursor, len(s.rows)-room))
	s.top = max(s.top, s.cursor-room+1)
}

// typed handles a key press in the filter's line.
func (s *screen) typed(msg tea.KeyMsg) tea.Cmd {
	switch msg.Type {
	case tea.KeyCtrlC:
		return tea.Quit
	case tea.KeyEnter:
		s.typing = false
	case tea.KeyEsc:
		s.typing, s.filter = false, ""
	case tea.KeyBackspace:
		if r := []rune(s.filter); len(r) > 0 {
			s.filter = string(r[:len(r)-1])
		}
	case tea.KeySpace, tea.KeyRunes:
		for _, r := range msg.Runes {
			if unicode.IsPrint(r) {
				s.filter += string(r)
			}
		}
	}
	s.arrange()
	return nil
}
