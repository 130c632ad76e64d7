package plan

import "strings"

// An Error is what is wrong, and what can be done about it.
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
	lines := make([]string, len(list))
	for i, e := range list {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one.
func (list Errors) Unwrap() []error {
	errs := make([]error, len(list))
	for i, e := range list {
		errs[i] = e
	}
	return errs
}
