package fabric

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// An Error is something wrong in a topology file.
type Error struct {
	File string
	Line int // 0 where it is about no line
	Msg  string
}

// Error is the message with its place, as in net.yaml:12: there is no node l3.
func (e *Error) Error() string {
	switch {
	case e.File == "":
		return e.Msg
	case e.Line == 0:
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// maxErrors is how many errors are told of one file.
const maxErrors = 10

// Errors is all that is wrong in a topology file, in the order of its lines.
type Errors []*Error

// Error is one line for each error.
func (list Errors) Error() string {
	return strings.Join(lists.Map(list, (*Error).Error), "\n")
}

// A reporter collects what is wrong with one file.
type reporter struct {
	file  string
	found Errors
}

// maxMessage is the length at which a message is cut: names of the file's are in it.
const maxMessage = 4096

// errorf notes one line, whatever the names in it are made of.
func (r *reporter) errorf(line int, format string, args ...any) {
	r.found = append(r.found, &Error{r.file, line, plain.Printable(fmt.Sprintf(format, args...), "", maxMessage)})
}

// err is nil if nothing was reported. What no line is to blame for comes last.
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

// errNoPreset is wrapped by the error about a name that no preset has.
var errNoPreset = errors.New("no such preset")
