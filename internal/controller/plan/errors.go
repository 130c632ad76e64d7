package plan

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// An Error is an error with a hint for correcting it.
type Error struct {
	Switch string // "": not about a switch
	Err    error
	Hint   string
}

// Error returns the message with the name of the switch.
func (e *Error) Error() string {
	if e.Switch == "" {
		return e.Err.Error()
	}
	return e.Switch + ": " + e.Err.Error()
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// A widthError reports a number that does not fit in a field or an argument. One
// widthError stands for all such entries of a plan in the same place.
type widthError struct {
	table, name string
	value       uint64
	width       int
	more        int // number of further entries
}

func (e *widthError) Error() string {
	text := fmt.Sprintf("table %s: %s is %d, which %d bits cannot hold", e.table, e.name, e.value, e.width)
	switch e.more {
	case 0:
		return text
	case 1:
		return text + "; 1 more entry has such a number"
	}
	return fmt.Sprintf("%s; %d more entries have such numbers", text, e.more)
}

// Errors are all errors of a plan or of a deployment.
type Errors []*Error

// Error returns a line for each error.
func (list Errors) Error() string {
	return strings.Join(lists.Map(list, (*Error).Error), "\n")
}

// Unwrap returns the errors one by one.
func (list Errors) Unwrap() []error {
	return lists.Map(list, func(e *Error) error { return e })
}
