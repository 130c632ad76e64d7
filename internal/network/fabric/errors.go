package fabric

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// An Error is an error in a topology file.
type Error struct {
	File string
	Line int // 0 if it concerns no single line
	Msg  string
}

// Error returns the message with its position, as in net.yaml:12: there is no
// node l3.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Msg
	case e.Line == 0:
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// located returns an error of the parser with the name of the file.
func located(file string, err error) error {
	e := &Error{File: file, Msg: err.Error()}
	if at, ok := errors.AsType[*tree.Error](err); ok {
		e.Line = at.Line
	}
	return e
}

// maxErrors is the maximum number of errors reported for a file.
const maxErrors = 10

// Errors are all errors in a topology file in the order of their lines.
type Errors []*Error

// Error returns one line per error.
func (list Errors) Error() string {
	return strings.Join(lists.Map(list, (*Error).Error), "\n")
}

// A reporter collects the errors in a file.
type reporter struct {
	file  string
	found Errors
}

// maxMessage is the maximum length of a message, which may contain names from
// the file.
const maxMessage = 4096

// errorf records an error. Unprintable characters in names are replaced.
func (r *reporter) errorf(line int, format string, args ...any) {
	r.found = append(r.found, &Error{r.file, line, plain.Printable(fmt.Sprintf(format, args...), "", maxMessage)})
}

// err returns the collected errors, or nil. Errors without a line come last.
func (r *reporter) err() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b *Error) int {
		if (a.Line == 0) != (b.Line == 0) {
			return b.Line - a.Line
		}
		return a.Line - b.Line
	})
	if more := len(r.found) - maxErrors; more > 0 {
		r.found = append(r.found[:maxErrors], &Error{r.file, 0, fmt.Sprintf("and %d more errors", more)})
	}
	return r.found
}

// errNoPreset is wrapped by the error about a name that is neither a file nor a preset.
var errNoPreset = errors.New("there is no file or preset")
