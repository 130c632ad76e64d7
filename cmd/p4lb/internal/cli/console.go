// Package cli is what the verbs of p4lb share: the streams and the flags that
// all have, errors with exit codes and ways out, forms of results, files that
// users name, and the programs and networks that they ask for.
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

// A Console is what every verb works with: the streams, and what the flags that
// all verbs share say about them. Results go to Out, messages to Err.
type Console struct {
	In  io.Reader
	Out *bufio.Writer
	Err io.Writer

	Quiet   bool
	Verbose bool
	noColor bool
	LogJSON bool
	level   *slog.Level // nil: as Quiet and Verbose say
	timed   atomic.Bool // messages have their time

	args []string // the command line

	Log   *slog.Logger
	Paint painter // for Err
}

// New returns the console of one command line.
func New(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) *Console {
	return &Console{In: interruptible{ctx, stdin}, Out: bufio.NewWriter(stdout), Err: stderr, args: args}
}

// Args returns the command line.
func (c *Console) Args() []string { return c.args }

// AddFlags adds the flags that all verbs share.
func (c *Console) AddFlags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.BoolVarP(&c.Quiet, "quiet", "q", false, "print errors only")
	flags.BoolVarP(&c.Verbose, "verbose", "v", false, "say what is done")
	flags.BoolVar(&c.noColor, "no-color", false, "no colours, even on a terminal")
	flags.Func("log-level", "print log messages from `LEVEL` on: debug, info, warn or error (default info)", c.setLogLevel)
	flags.Func("log-format", "`FORM` of the messages on standard error: text or json", c.setLogFormat)
}

// An interruptible reader does not keep a verb waiting for input that nobody
// wants any more.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

// Read reads in the background, into memory of its own: it may outlive the call.
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

// LogTimes adds the time to log messages from now on: they go to a file.
func (c *Console) LogTimes() { c.timed.Store(true) }

// SetUp makes the logger and the colours from the shared flags.
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

// dropTime leaves the time out of log lines: they are read as they appear.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// Say prints a line about what was done, unless only errors are wanted.
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

// Warning prints what the user should know though the verb goes on.
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

// Caution is a warning that is an error of something left out.
func (c *Console) Caution(err error) { c.Warning("%v", err) }

// CaptureFailed tells of a capture that goes no further.
func (c *Console) CaptureFailed(err error) { c.Log.Warn("packets go on", "error", err) }

// Confirm asks the user, who must be there to answer.
func (c *Console) Confirm(question string) error {
	fmt.Fprintf(c.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(c.In).ReadString('\n')
	switch answer := strings.ToLower(strings.TrimSpace(line)); {
	case answer == "y" || answer == "yes":
		return nil
	case err != nil && answer == "":
		fmt.Fprintln(c.Err)
		return Hinted(errors.New("nothing was written: there is nobody to ask"), "--yes answers")
	}
	return errors.New("nothing was written")
}

// UnknownVerb says that cmd has no such verb, and which it may have been.
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

// A painter colours text where it is true.
type painter bool

func (p painter) red(s string) string { return p.sgr("31;1", s) }

func (p painter) Bold(s string) string { return p.sgr("1", s) }

func (p painter) sgr(code, s string) string {
	if !p {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// IsTerminal reports whether w is a character device, which a person may be
// watching.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// FlagError is a mistake in a flag. A flag that there is not may be one that was
// mistyped, or belong to a verb that was.
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

// wanted says what flags of Go's own types take. The others say so themselves.
var wanted = map[string]string{
	"bool": "true or false", "duration": "a time such as 10ms or 1m30s", "float64": "a number",
	"intSlice": "whole numbers with commas between",
	"int":      "a whole number", "int32": "a whole number of 32 bits", "int64": "a whole number",
	"uint": "a whole number from 0 on", "uint32": "a whole number from 0 to 4294967295", "uint64": "a whole number from 0 on",
}
