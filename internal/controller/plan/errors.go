package plan

import (
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
)

// An Error is an error with a hint how to correct it.
type Error struct {
	Switch string // "" where it is about no switch
	Err    error
	Hint   string
}

// Error is the message, with the name of the switch.
func (e *Error) Error() string {
	if e.Switch == "" {
		return e.Err.Error()
	}
	return e.Switch + ": " + e.Err.Error()
}

// Unwrap returns what went wrong.
func (e *Error) Unwrap() error { return e.Err }

// Errors are all that is wrong with a plan, or with a deployment.
type Errors []*Error

// Error is a line for each.
func (list Errors) Error() string {
	return strings.Join(lists.Map(list, (*Error).Error), "\n")
}

// Unwrap returns the errors one by one.
func (list Errors) Unwrap() []error {
	return lists.Map(list, func(e *Error) error { return e })
}
