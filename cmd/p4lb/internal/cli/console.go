// Package cli contains the parts that the verbs of p4lb share: streams, common
// flags, errors with exit codes and hints, output formats, input and output
// files, and the programs and topologies named on the command line.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Console holds the streams and the common flags of a command line. Results
// go to Out, messages to Err.
type Console struct {
	In  io.Reader
	Out *bufio.Writer
	Err io.Writer

	Quiet   bool
	Verbose bool
	noColor bool
	LogJSON bool
	level   *slog.Level // nil: set by Quiet and Verbose
	timed   atomic.Bool // messages contain the time

	args []string // the command line

	Log   *slog.Logger
	Paint painter // colours Err
}

// New returns the console of one command line.
func New(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) *Console {
	return &Console{In: interruptible{ctx, stdin}, Out: bufio.NewWriter(stdout), Err: stderr, args: args}
}

// Args returns the arguments of the command line.
func (c *Console) Args() []string { return c.args }

// AddFlags adds the flags that all verbs share.
func (c *Console) AddFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.BoolVarP(&c.Quiet, "quiet", "q", false, "print errors only")
	flags.BoolVarP(&c.Verbose, "verbose", "v", false, "also log progress")
	flags.BoolVar(&c.noColor, "no-color", false, "no colours on a terminal")
	flags.Func("log-level", "print log messages from `LEVEL` on: debug, info, warn or error (default info)", c.setLogLevel)
	flags.Func("log-format", "`FORMAT` of the messages on standard error: text or json", c.setLogFormat)
}

// An interruptible reader returns from Read when its context ends, even if the
// underlying read still waits for input.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

// Read starts a read in the background, with a separate buffer, as that read
// may outlive the call.
func (i interruptible) Read(p []byte) (int, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text := make([]byte, len(p))
		n, err := i.r.Read(text)
		done <- result{text[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.text), r.err
	case <-i.ctx.Done():
		return 0, context.Cause(i.ctx)
	}
}

func (c *Console) setLogFormat(form string) error {
	if form != "text" && form != "json" {
		return errors.New("want text or json")
	}
	c.LogJSON = form == "json"
	return nil
}

func (c *Console) setLogLevel(text string) error {
	var level slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, text) || level.UnmarshalText([]byte(text)) != nil {
		return errors.New("want debug, info, warn or error")
	}
	c.level = &level
	return nil
}

// LogTimes adds times to log messages, for a log file.
func (c *Console) LogTimes() { c.timed.Store(true) }

// SetUp creates the logger and the colours as the common flags request.
func (c *Console) SetUp() {
	level := slog.LevelInfo
	switch {
	case c.Quiet:
		level = slog.LevelError
	case c.Verbose:
		level = slog.LevelDebug
	}
	if c.level != nil {
		level = *c.level
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if c.timed.Load() {
			return a
		}
		return dropTime(groups, a)
	}}
	var h slog.Handler = slog.NewTextHandler(c.Err, options)
	if c.LogJSON {
		h = slog.NewJSONHandler(c.Err, options)
	}
	c.Log = slog.New(newRepeats(h))
	c.Paint = painter(!c.noColor && !c.LogJSON && IsTerminal(c.Err) && os.Getenv("NO_COLOR") == "")
}

// dropTime removes the time from log lines, as users read them immediately.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// Say prints a line of progress unless --quiet is set.
func (c *Console) Say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case c.Quiet:
	case c.LogJSON:
		c.Log.Info(text)
	default:
		fmt.Fprintln(c.Err, tame(text))
	}
}

// Warning prints a warning. The verb continues.
func (c *Console) Warning(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	switch {
	case c.Quiet:
	case c.LogJSON:
		c.Log.Warn(text)
	default:
		fmt.Fprintf(c.Err, "%s %s\n", c.Paint.Bold("warning:"), tame(text))
	}
}

// Caution prints an error as a warning, for a part of the work that the verb
// skips.
func (c *Console) Caution(err error) { c.Warning("%v", err) }

// CaptureFailed reports that writing a capture has failed; the packets still
// pass.
func (c *Console) CaptureFailed(err error) {
	c.Log.Warn("the capture ends here; packets still pass", "error", err)
}

// Confirm asks the user for permission. Without an answer it returns an error.
func (c *Console) Confirm(question string) error {
	fmt.Fprintf(c.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(c.In).ReadString('\n')
	switch answer := strings.ToLower(strings.TrimSpace(line)); {
	case answer == "y" || answer == "yes":
		return nil
	case err != nil && answer == "":
		fmt.Fprintln(c.Err)
		return Hinted(errors.New("nothing was written: standard input ended before an answer"), "--yes skips the question")
	}
	return errors.New("nothing was written: the answer was no")
}

// UnknownVerb returns the error for a verb that cmd does not have, with similar
// verbs as a hint.
func UnknownVerb(cmd *cobra.Command, name string) error {
	err := UsageError(cmd, "there is no verb %q", name)
	if cmd.HasParent() {
		err = UsageError(cmd, "%s has no verb %q", cmd.Name(), name)
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		err.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return err
}

// A painter colours text if it is true.
type painter bool

func (p painter) red(s string) string { return p.sgr("31;1", s) }

func (p painter) Bold(s string) string { return p.sgr("1", s) }

func (p painter) sgr(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// IsTerminal reports whether w is a character device, such as a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// FlagError returns the error for a wrong flag. For an unknown flag it suggests
// a similar one, or reports the verb before it if that is unknown too.
func (c *Console) FlagError(cmd *cobra.Command, err error) error {
	f := UsageError(cmd, "%w", err)
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if want := wanted[wrong.GetFlag().Value.Type()]; want != "" {
			f.Err = fmt.Errorf("--%s %q: want %s", wrong.GetFlag().Name, wrong.GetValue(), want)
		}
		return f
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return f
	}
	if !cmd.HasParent() {
		for _, a := range c.args {
			if !strings.HasPrefix(a, "-") {
				return UnknownVerb(cmd, a)
			}
		}
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, f.Name)
		}
	})
	if near := plain.Nearest(unknown.GetSpecifiedName(), flags); near != "" {
		f.Hint = "did you mean --" + near + "?"
	}
	return f
}

// wanted describes the accepted values of Go's own flag types. Other types
// describe theirs in their errors.
var wanted = map[string]string{
	"bool": "true or false", "duration": "a time such as 10ms or 1m30s", "float64": "a number",
	"intSlice": "whole numbers separated by commas",
	"int":      "a whole number", "int32": "a whole number of 32 bits", "int64": "a whole number",
	"uint": "a whole number of at least 0", "uint32": "a whole number from 0 to 4294967295", "uint64": "a whole number of at least 0",
}
