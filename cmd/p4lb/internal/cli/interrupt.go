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

// A signal ends what a verb waits for, and every verb looks at its context
// between the parts of its work. A part may take long still: the compiler's work
// on one program, the drawing of a plot, the making of a million flows. So who
// has not ended a moment after the signal is ended, and what is written beside its
// place removed. What is written appears whole or not at all in any case, for a
// process can be killed.

// grace is how long a verb has to end by itself.
const grace = 500 * time.Millisecond

// tidying is the key of a *atomic.Bool in a context: the verb has more to put
// away than a moment allows.
type tidying struct{}

// UntilSignal is the context of the process, which a first signal ends. A
// second one ends the process at once.
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

// TidiesUp says that the verb ends by itself, however long that takes: it has to
// take back what it has done outside of the process, or to complete a file.
func TidiesUp(ctx context.Context) {
	if tidies, ok := ctx.Value(tidying{}).(*atomic.Bool); ok {
		tidies.Store(true)
	}
}
