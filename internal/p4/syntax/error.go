package syntax

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// An Error is one diagnostic of the scanner, preprocessor, parser, checker or
// lowering. A warning does not stop the compilation.
type Error struct {
	Pos     Pos
	Msg     string
	Warning bool
	Class   Class

	more int // how many omitted warnings this one stands for
}

// A Class classifies errors for programs that handle them.
type Class string

// The classes. The zero value is an error in the program.
const (
	Wrong       Class = ""
	Unsupported Class = "unsupported" // valid P4_16 that cannot be expressed or exceeds a limit
	NoMain      Class = "no-main"     // a library: correct, but without a main
)

func (e *Error) Error() string {
	msg := e.Msg
	if e.Warning {
		msg = "warning: " + msg
	}
	if !e.Pos.IsKnown() {
		return msg
	}
	return e.Pos.String() + ": " + msg
}

const (
	// maxErrors bounds the errors of one list. Later errors are often consequences
	// of earlier ones.
	maxErrors = 20
	// maxWarnings bounds the warnings of one list.
	maxWarnings = 200
	// maxMessage bounds a message, which may contain text of the program.
	maxMessage = 4000
)

// Errors is the list of a run's diagnostics.
type Errors []*Error

// add appends an error.
func (es *Errors) add(pos Pos, format string, args ...any) {
	*es = append(*es, &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// warn appends a warning.
func (es *Errors) warn(pos Pos, format string, args ...any) {
	*es = append(*es, &Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Warning: true})
}

// Clean returns the list as shown to users. It sorts by position, keeps the first
// error of each line, and drops warnings on lines with an error. It keeps at most
// maxErrors errors and maxWarnings warnings, and shortens messages to maxMessage
// bytes.
func (es Errors) Clean() Errors {
	sorted := slices.Clone(es)
	slices.SortStableFunc(sorted, func(a, b *Error) int {
		if a.Pos.IsKnown() && sameLine(a.Pos, b.Pos) {
			if d := btoi(a.Warning) - btoi(b.Warning); d != 0 || !a.Warning {
				return d
			}
		}
		return a.Pos.compare(b.Pos)
	})
	var clean Errors
	errors, warnings, more := 0, 0, 0
	for _, e := range sorted {
		if e.more > 0 {
			more += e.more
			continue
		}
		if last := len(clean) - 1; last >= 0 && follows(clean[last], e) {
			continue
		}
		if !e.Warning {
			if errors++; errors > maxErrors {
				return append(clean, &Error{Pos: e.Pos, Msg: "too many errors"})
			}
		} else if warnings++; warnings > maxWarnings {
			more++
			continue
		}
		clean = append(clean, e.brief())
	}
	if more > 0 {
		clean = append(clean, &Error{Msg: fmt.Sprintf("%d more, left out", more), Warning: true, more: more})
	}
	return clean
}

// NewError returns a diagnostic. It shortens the message to maxMessage bytes.
func NewError(pos Pos, warning bool, message string) *Error {
	return (&Error{Pos: pos, Msg: message, Warning: warning}).brief()
}

// brief returns e with its message shortened to maxMessage bytes.
func (e *Error) brief() *Error {
	if len(e.Msg) <= maxMessage {
		return e
	}
	short := *e
	short.Msg = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(e.Msg[:maxMessage], ""), len(e.Msg))
	return &short
}

// follows reports whether e adds nothing to prev, the diagnostic before it.
func follows(prev, e *Error) bool {
	if !sameLine(prev.Pos, e.Pos) || !prev.Pos.IsKnown() {
		return prev.Msg == e.Msg && prev.Pos == e.Pos
	}
	return !prev.Warning || prev.Msg == e.Msg
}

func sameLine(p, q Pos) bool { return p.src == q.src && p.line == q.line }

// Err returns the list as an error, or nil if it contains only warnings.
func (es Errors) Err() error {
	for _, e := range es {
		if !e.Warning {
			return es
		}
	}
	return nil
}

// Error returns one line for each diagnostic.
func (es Errors) Error() string {
	var b strings.Builder
	for i, e := range es {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Print writes each diagnostic with its source line and a caret under the position.
func (es Errors) Print(w io.Writer) error {
	var b strings.Builder
	for _, e := range es {
		b.WriteString(e.Error())
		b.WriteByte('\n')
		line, col := e.Pos.sourceLine(), int(e.Pos.col)-1
		if line != "" && col <= len(line) {
			if cut := col - maxShown/2; len(line) > maxShown && cut > 0 {
				line, col = line[cut:], col-cut
			}
			if len(line) > maxShown {
				line = line[:maxShown]
			}
			b.WriteString("    " + strings.ToValidUTF8(line, "?") + "\n    ")
			for i := range col {
				switch c := line[i]; {
				case c == '\t':
					b.WriteByte('\t')
				case c&0xc0 != 0x80: // a caret under "é" must move one column, not two
					b.WriteByte(' ')
				}
			}
			b.WriteString("^\n")
		}
		for from := e.Pos.includedFrom(); from.IsKnown(); from = from.includedFrom() {
			fmt.Fprintf(&b, "    included from %s:%d\n", from.File(), from.Line())
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// maxShown bounds how much of a line is shown around a position.
const maxShown = 160
