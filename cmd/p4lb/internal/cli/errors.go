package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// The exit codes of all verbs.
const (
	ExitDone        = 0
	ExitInput       = 1 // the input or the request is wrong
	ExitUsage       = 2 // the command line is wrong
	ExitRefused     = 3 // a switch or the network rejected a request or disappeared
	ExitInterrupted = 4 // stopped by a signal; finished results are kept
)

// A Failure is an error with an exit code and a hint. If Err is nil, the error
// has been printed already.
type Failure struct {
	Code int
	Err  error
	Hint string
}

// Error returns the message of Err.
func (f *Failure) Error() string {
	if f.Err == nil {
		return "reported"
	}
	return f.Err.Error()
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// ErrReported ends a verb that has already printed its errors.
var ErrReported = &Failure{Code: ExitInput}

// Hinted adds a hint to an error in the input.
func Hinted(err error, format string, args ...any) error {
	return &Failure{Code: ExitInput, Err: err, Hint: fmt.Sprintf(format, args...)}
}

// UsageError returns an error in the command line of cmd.
func UsageError(cmd *cobra.Command, format string, args ...any) *Failure {
	return &Failure{
		Code: ExitUsage,
		Err:  fmt.Errorf(format, args...),
		Hint: fmt.Sprintf("see %s --help", cmd.CommandPath()),
	}
}

// Requires rejects flags that have no effect unless condition holds. what
// describes the condition in the message, such as another flag.
func Requires(cmd *cobra.Command, condition bool, what string, flags ...string) error {
	for _, name := range flags {
		if !condition && cmd.Flags().Changed(name) {
			return UsageError(cmd, "--%s requires %s", name, what)
		}
	}
	return nil
}

// WantArgs accepts between min and max arguments, or any number from min if max
// is negative. The messages contain what as the description of the arguments.
func WantArgs(min, max int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < min:
			return UsageError(cmd, "%s requires %s", cmd.Name(), what)
		case max >= 0 && len(args) > max:
			return UsageError(cmd, "unexpected argument %q: want %s", args[max], what)
		}
		return nil
	}
}

// WantVerb returns the action of a verb that only has verbs below it: an error
// for a missing or an unknown one. others follows the message and lists
// alternatives.
func WantVerb(missing, others string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return UsageError(cmd, "%s", missing)
		}
		return UsageError(cmd, "%s has no verb %q%s", cmd.Name(), args[0], others)
	}
}

// Report prints err, unless it has been printed, and returns the exit code.
func (c *Console) Report(err error) int {
	if err == nil {
		return ExitDone
	}
	if c.Log == nil { // the verb has failed before its set-up
		c.SetUp()
	}
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

// maxSaid bounds the printed bytes of one error, as an error may quote a huge
// word of a file.
const maxSaid = 16 << 10

// tame makes text safe for a terminal: it escapes control characters, which may
// come from files or the network, and truncates long text.
func tame(text string) string { return plain.Printable(text, "\n\t", maxSaid) }

// knownHint returns the hint of an error that provides one itself, or "".
func knownHint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// Refused returns the failure for an address or interface that cannot be
// opened.
func Refused(what string, err error) error {
	code := ExitRefused
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		code, err = ExitInput, errors.New("want HOST:PORT with a port up to 65535, such as 127.0.0.1:9559")
	} else if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return &Failure{Code: code, Err: fmt.Errorf("%s: %w", what, err)}
}
