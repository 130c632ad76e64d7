package sim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/p4lb/p4lb/internal/dataplane/asm"
)

// A barrier synchronises goroutines repeatedly. The work between two rounds takes less than a
// millisecond. Waking a sleeping thread takes a tenth of that, and more on a virtual machine. The
// goroutines that arrive first therefore spin before they sleep.
type barrier struct {
	parties int
	spins   time.Duration // how long a waiter spins before it sleeps

	here   atomic.Int32 // parties that have arrived
	round  atomic.Uint32
	broken atomic.Bool // a party has failed, so the barrier will never be complete
	asleep atomic.Int32
	mu     sync.Mutex
	wake   *sync.Cond
	failed any // the panic value of the first failure
}

// maxSpin is the time for which a waiter spins before it sleeps. It is longer than most
// differences between two parties.
const maxSpin = 500 * time.Microsecond

// errBroken is the panic value of parties that wait on a broken barrier.
type errBroken struct{}

func newBarrier(parties int) *barrier {
	b := &barrier{parties: parties, spins: maxSpin}
	if parties > runtime.GOMAXPROCS(0) {
		b.spins = 0 // a spinning party would take another party's core
	}
	b.wake = sync.NewCond(&b.mu)
	return b
}

// run runs all parties, the first in the calling goroutine. If one panics, all end and
// run panics with its value.
func (b *barrier) run(party func(i int)) {
	b.here.Store(0)
	b.broken.Store(false)
	b.failed = nil
	var others sync.WaitGroup
	defer func() {
		others.Wait()
		if b.failed != nil {
			panic(b.failed)
		}
	}()
	for i := 1; i < b.parties; i++ {
		others.Go(func() { b.attend(func() { party(i) }) })
	}
	b.attend(func() { party(0) })
}

// attend runs a party and breaks the barrier if it fails.
func (b *barrier) attend(party func()) {
	done := false
	defer func() {
		if done {
			return
		}
		// The party panics, or its goroutine ends as in failed tests.
		what := recover()
		b.mu.Lock()
		if _, broken := what.(errBroken); what != nil && !broken && b.failed == nil {
			b.failed = fmt.Sprintf("%v\n%s", what, debug.Stack())
		}
		b.mu.Unlock()
		b.broken.Store(true)
		b.next()
	}()
	party()
	done = true
}

// wait blocks until all parties have called it.
func (b *barrier) wait() {
	round := b.round.Load()
	if int(b.here.Add(1)) == b.parties {
		b.here.Store(0)
		b.next()
	} else {
		b.await(round)
	}
	if b.broken.Load() {
		panic(errBroken{})
	}
}

func (b *barrier) await(round uint32) {
	// One check takes 50 ns. The garbage collector may need the core, so a waiter yields it about
	// every 5 us.
	for start := time.Now(); time.Since(start) < b.spins; runtime.Gosched() {
		for range 100 {
			if b.round.Load() != round || b.broken.Load() {
				return
			}
			asm.Pause()
		}
	}
	b.mu.Lock()
	b.asleep.Add(1)
	for b.round.Load() == round && !b.broken.Load() {
		b.wake.Wait()
	}
	b.asleep.Add(-1)
	b.mu.Unlock()
}

// next starts the next round and wakes the waiters.
func (b *barrier) next() {
	b.round.Add(1)
	if b.asleep.Load() > 0 {
		b.mu.Lock()
		b.wake.Broadcast()
		b.mu.Unlock()
	}
}
