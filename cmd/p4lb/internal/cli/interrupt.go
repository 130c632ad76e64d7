package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A first signal cancels the context of the verb, and every verb checks its
// context between the steps of its work. A step may still take long: compiling
// one program, drawing a plot, generating a million flows. Unless the verb has
// called TidiesUp, the process therefore exits a moment after the signal and
// removes its temporary files. Output files stay consistent: each is moved into
// place when complete, since a process can also be killed.

// grace is the time for a verb to end by itself after a signal.
const grace = 500 * time.Millisecond

// tidying is the context key of an *atomic.Bool. It is true if the verb needs
// more than grace to clean up.
type tidying struct{}

// UntilSignal returns the context of the process, which the first signal
// cancels. A second signal ends the process immediately.
func UntilSignal() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	tidies := new(atomic.Bool)
	context.AfterFunc(ctx, func() {
		stop()
		time.Sleep(grace)
		if !tidies.Load() {
			plain.RemoveTemps()
			fmt.Fprintln(os.Stderr, "error: interrupted")
			os.Exit(ExitInterrupted)
		}
	})
	return context.WithValue(ctx, tidying{}, tidies)
}

// TidiesUp declares that the verb ends by itself after a signal, regardless of
// the time: it has to undo changes outside the process, or to complete a file.
func TidiesUp(ctx context.Context) {
	if tidies, ok := ctx.Value(tidying{}).(*atomic.Bool); ok {
		tidies.Store(true)
	}
}
