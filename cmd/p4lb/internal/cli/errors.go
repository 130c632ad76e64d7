package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// The exit codes, the same for every verb.
const (
	ExitDone        = 0
	ExitInput       = 1 // the input or the request is wrong
	ExitUsage       = 2 // the command line is wrong
	ExitRefused     = 3 // a switch or the network refused or vanished
	ExitInterrupted = 4 // stopped from outside; what was finished is kept
)

// A Failure is an error that knows its exit code and a way out. One without
// Err has been reported already.
type Failure struct {
	Code int
	Err  error
	Hint string
}

// Error is the message, which has been shown where there is none.
func (f *Failure) Error() string {
	if f.Err == nil {
		return "reported"
	}
	return f.Err.Error()
}

// Unwrap returns what went wrong.
func (f *Failure) Unwrap() error { return f.Err }

// ErrReported ends a verb whose errors have been printed.
var ErrReported = &Failure{Code: ExitInput}

// Hinted adds a way out to an error about the input.
func Hinted(err error, format string, args ...any) error {
	return &Failure{Code: ExitInput, Err: err, Hint: fmt.Sprintf(format, args...)}
}

// UsageError is a mistake in the command line of cmd.
func UsageError(cmd *cobra.Command, format string, args ...any) *Failure {
	return &Failure{
		Code: ExitUsage,
		Err:  fmt.Errorf(format, args...),
		Hint: fmt.Sprintf("%s --help says more", cmd.CommandPath()),
	}
}

// Wants refuses flags that are given where nothing is there for them to act upon.
func Wants(cmd *cobra.Command, there bool, what string, flags ...string) error {
	for _, name := range flags {
		if !there && cmd.Flags().Changed(name) {
			return UsageError(cmd, "--%s wants %s", name, what)
		}
	}
	return nil
}

// WantArgs accepts between min and max arguments, as many as there are where
// max is negative; what names them in the message.
func WantArgs(min, max int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < min:
			return UsageError(cmd, "%s wants %s", cmd.Name(), what)
		case max >= 0 && len(args) > max:
			return UsageError(cmd, "%s wants %s, got %q as well", cmd.Name(), what, args[max])
		}
		return nil
	}
}

// WantVerb is what a verb with verbs below it does by itself: it says that one is
// missing, or that there is none of that name and which there are.
func WantVerb(missing, others string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return UsageError(cmd, "%s", missing)
		}
		return UsageError(cmd, "%s has no verb %q%s", cmd.Name(), args[0], others)
	}
}

// Report prints what is still to be said of err and returns the exit code.
func (c *Console) Report(err error) int {
	if err == nil {
		return ExitDone
	}
	c.SetUp() // the command line may not have got that far
	f := &Failure{Code: ExitInput, Err: err}
	errors.As(err, &f)
	hint := cmp.Or(f.Hint, knownHint(err))
	switch {
	case f.Err == nil:
	case c.LogJSON:
		c.Log.Error(err.Error(), "hint", hint)
	default:
		fmt.Fprintf(c.Err, "%s %s\n", c.Paint.red("error:"), tame(err.Error()))
		if hint != "" {
			fmt.Fprintf(c.Err, "%s %s\n", c.Paint.Bold("hint:"), tame(hint))
		}
	}
	return f.Code
}

// maxSaid is how much is said of one error: a file may be one word of megabytes.
const maxSaid = 16 << 10

// tame makes an error fit for a terminal: names in it come from files and from
// the network.
func tame(text string) string { return plain.Printable(text, "\n\t", maxSaid) }

// knownHint is the way out that an error knows itself, such as one of the
// catalogue about a name that is not there.
func knownHint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// Refused is an address or an interface that cannot be had.
func Refused(what string, err error) error {
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		err = errors.New("want HOST:PORT with a port up to 65535, such as 127.0.0.1:9559")
	} else if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return &Failure{Code: ExitRefused, Err: fmt.Errorf("%s: %w", what, err)}
}
