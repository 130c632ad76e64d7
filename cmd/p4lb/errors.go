package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes, the same for every verb.
const (
	exitDone        = 0
	exitInput       = 1 // the input or the request is wrong
	exitUsage       = 2 // the command line is wrong
	exitInterrupted = 4 // stopped from outside; what was finished is kept
)

// A failure is an error that knows its exit code and a way out. One without
// err has been reported already.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string {
	if f.err == nil {
		return "reported"
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// errReported ends a verb whose errors have been printed.
var errReported = &failure{code: exitInput}

// hinted adds a way out to an error about the input.
func hinted(err error, format string, args ...any) error {
	return &failure{code: exitInput, err: err, hint: fmt.Sprintf(format, args...)}
}

// usageError is a mistake in the command line of cmd.
func usageError(cmd *cobra.Command, format string, args ...any) *failure {
	return &failure{
		code: exitUsage,
		err:  fmt.Errorf(format, args...),
		hint: fmt.Sprintf("%s --help says more", cmd.CommandPath()),
	}
}

// wantArgs accepts between min and max arguments, as many as there are where
// max is negative; what names them in the message.
func wantArgs(min, max int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < min:
			return usageError(cmd, "%s wants %s", cmd.Name(), what)
		case max >= 0 && len(args) > max:
			return usageError(cmd, "%s wants %s, got %q as well", cmd.Name(), what, args[max])
		}
		return nil
	}
}

// report prints what is still to be said of err and returns the exit code.
func (c *cli) report(err error) int {
	if err == nil {
		return exitDone
	}
	c.setUp() // the command line may not have got that far
	f := &failure{code: exitInput, err: err}
	errors.As(err, &f)
	hint := cmp.Or(f.hint, knownHint(err))
	switch {
	case f.err == nil:
	case c.logJSON:
		c.log.Error(err.Error(), "hint", hint)
	default:
		fmt.Fprintf(c.err, "%s %v\n", c.paint.red("error:"), err)
		if hint != "" {
			fmt.Fprintf(c.err, "%s %s\n", c.paint.bold("hint:"), hint)
		}
	}
	return f.code
}

// knownHint is the way out that an error knows itself, such as one of the
// catalogue about a name that is not there.
func knownHint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// bareError strips the operation and path off an error of package os, for a
// message that names the path itself.
func bareError(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
