package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p4lb/p4lb/plain"
)

// A cli is what every verb works with: the streams, and what the flags that
// all verbs share say about them. Results go to out, messages to err.
type cli struct {
	in  io.Reader
	out *bufio.Writer
	err io.Writer

	quiet   bool
	verbose bool
	noColor bool
	logJSON bool

	args []string // the command line

	log   *slog.Logger
	paint painter // for err
}

// run executes one command line and returns the exit code. A verb that ends well
// although it was interrupted was done, or is one that is ended that way.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{in: interruptible{ctx, stdin}, out: bufio.NewWriter(stdout), err: stderr, args: args}
	root := newRoot(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if e := c.out.Flush(); err == nil && e != nil {
		err = fmt.Errorf("writing to standard output: %w", bareError(e))
	}
	if err != nil && ctx.Err() != nil {
		err = &failure{code: exitInterrupted, err: errors.New("interrupted")}
	}
	return c.report(err)
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

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "p4lb VERB [ARG]...",
		Short: "Generate, run, deploy and measure load balancers in P4_16",
		Long: `p4lb generates, compiles, runs, deploys, measures and inspects in-network load
balancers written in P4_16, in one binary: no p4c, no BMv2, nothing to install.`,
		Example: `  p4lb schemes
  p4lb gen --scheme qall-poly3 -o out
  p4lb lab --scheme qall-poly3 --vs ecmp,letflow,drill --load 0.7
  p4lb deploy --scheme qall-poly3 --topology qall
  p4lb inspect --watch`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,

		DisableFlagsInUseLine: true,
		RunE:                  noVerb,
		PersistentPreRun:      func(*cobra.Command, []string) { c.setUp() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelp())
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return c.flagError(cmd, err) })

	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "print errors only")
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "say what is done")
	flags.BoolVar(&c.noColor, "no-color", false, "no colours, even on a terminal")
	flags.Func("log-format", "`FORM` of the messages on standard error: text or json", c.setLogFormat)

	root.AddCommand(
		newCompile(c), newLint(c), newFmt(c), newTest(c), newSchemes(c), newGen(c), newResources(c), newSwitch(c), newFit(c), newAdvise(c), newTopo(c), newDeploy(c), newHosts(c), newExec(c), newTraffic(c), newDown(c), newLab(c), newResults(c), newBench(c),
		newNew(c), newManifest(c),
		newInspect(c), newRegister(c), newObserve(c), newConformance(c), newDoctor(c), newVersion(c), newCompletion(c), newMan(c),
	)
	for _, verb := range root.Commands() {
		verb.Flags().SortFlags = false
		verb.DisableFlagsInUseLine = true
	}
	return root
}

func (c *cli) setLogFormat(form string) error {
	if form != "text" && form != "json" {
		return errors.New("want text or json")
	}
	c.logJSON = form == "json"
	return nil
}

// setUp makes the logger and the colours from the shared flags.
func (c *cli) setUp() {
	level := slog.LevelInfo
	switch {
	case c.quiet:
		level = slog.LevelError
	case c.verbose:
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: dropTime}
	if c.logJSON {
		c.log = slog.New(slog.NewJSONHandler(c.err, options))
	} else {
		c.log = slog.New(slog.NewTextHandler(c.err, options))
	}
	c.paint = painter(!c.noColor && !c.logJSON && isTerminal(c.err) && os.Getenv("NO_COLOR") == "")
}

// dropTime leaves the time out of log lines: they are read as they appear.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// noVerb is what the root does by itself: it explains what is missing.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		cmd.SetOut(cmd.ErrOrStderr())
		cmd.Help()
		return &failure{code: exitUsage}
	}
	return unknownVerb(cmd, args[0])
}

// unknownVerb says that cmd has no such verb, and which it may have been.
func unknownVerb(cmd *cobra.Command, name string) error {
	err := usageError(cmd, "there is no verb %q", name)
	if cmd.HasParent() {
		err = usageError(cmd, "%s has no verb %q", cmd.Name(), name)
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		err.hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return err
}

// flagError is a mistake in a flag. A flag that there is not may be one that was
// mistyped, or belong to a verb that was.
func (c *cli) flagError(cmd *cobra.Command, err error) error {
	f := usageError(cmd, "%w", err)
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return f
	}
	if !cmd.HasParent() {
		for _, a := range c.args {
			if !strings.HasPrefix(a, "-") {
				return unknownVerb(cmd, a)
			}
		}
	}
	if near := nearestFlag(cmd, unknown.GetSpecifiedName()); near != "" {
		f.hint = "did you mean --" + near + "?"
	}
	return f
}

// nearestFlag is the flag of cmd that is spelt most like name, "" if none is
// within two letters, or within half of a short name.
func nearestFlag(cmd *cobra.Command, name string) string {
	best, near := min(2, len(name)/2)+1, ""
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := plain.Distance(name, f.Name); d < best && !f.Hidden {
			best, near = d, f.Name
		}
	})
	return near
}

// say prints a line about what was done, unless only errors are wanted.
func (c *cli) say(format string, args ...any) {
	switch {
	case c.quiet:
	case c.logJSON:
		c.log.Info(fmt.Sprintf(format, args...))
	default:
		fmt.Fprintf(c.err, format+"\n", args...)
	}
}
