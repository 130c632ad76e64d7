package sim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A meeting is of some goroutines that wait for each other, again and again. Who
// comes first looks for a while before he sleeps, since windows are short.
type meeting struct {
	parties int
	looks   int // before who waits sleeps

	here   atomic.Int32 // who has come
	round  atomic.Uint32
	over   atomic.Bool // somebody has failed and will not come
	asleep atomic.Int32
	mu     sync.Mutex
	wake   *sync.Cond
	failed any // what he panicked with
}

// looks is how often somebody looks before he sleeps: for some 20 us.
const looks = 20_000

// inVain is what those panic with who wait for somebody who has failed.
type inVain struct{}

func newMeeting(parties int) *meeting {
	m := &meeting{parties: parties, looks: looks}
	if parties > runtime.GOMAXPROCS(0) {
		m.looks = 1 // who looks would have the core of somebody who is awaited
	}
	m.wake = sync.NewCond(&m.mu)
	return m
}

// hold runs all parties, the first in this goroutine. Where one panics, all end,
// and hold panics with the same.
func (m *meeting) hold(party func(i int)) {
	m.here.Store(0)
	m.over.Store(false)
	m.failed = nil
	var others sync.WaitGroup
	defer func() {
		others.Wait()
		if m.failed != nil {
			panic(m.failed)
		}
	}()
	for i := 1; i < m.parties; i++ {
		others.Go(func() { m.attend(func() { party(i) }) })
	}
	m.attend(func() { party(0) })
}

// attend runs a party.
func (m *meeting) attend(party func()) {
	done := false
	defer func() {
		if done {
			return
		}
		// It panics, or its goroutine ends as those of tests do.
		what := recover()
		m.mu.Lock()
		if _, vain := what.(inVain); what != nil && !vain && m.failed == nil {
			m.failed = fmt.Sprintf("%v\n%s", what, debug.Stack())
		}
		m.mu.Unlock()
		m.over.Store(true)
		m.next()
	}()
	party()
	done = true
}

// wait returns when all have called it.
func (m *meeting) wait() {
	round := m.round.Load()
	if int(m.here.Add(1)) == m.parties {
		m.here.Store(0)
		m.next()
	} else {
		m.await(round)
	}
	if m.over.Load() {
		panic(inVain{})
	}
}

func (m *meeting) await(round uint32) {
	for range m.looks {
		if m.round.Load() != round || m.over.Load() {
			return
		}
	}
	m.mu.Lock()
	m.asleep.Add(1)
	for m.round.Load() == round && !m.over.Load() {
		m.wake.Wait()
	}
	m.asleep.Add(-1)
	m.mu.Unlock()
}

// next ends the round.
func (m *meeting) next() {
	m.round.Add(1)
	if m.asleep.Load() > 0 {
		m.mu.Lock()
		m.wake.Broadcast()
		m.mu.Unlock()
	}
}
