package gate

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// A boundedListener has so many connections at a time. For one more, the one
// gives way that has been open for longest without any call, or else without one in
// progress, once it has had a moment for one: a flood of connections keeps out
// nobody who has something to ask. Those that have asked before go first where
// they take more than half of the room. If all have a call in progress, the new one
// is closed. Files may run out all the same; Accept then says so, and gRPC tries
// again later.
type boundedListener struct {
	net.Listener
	most   int
	moment time.Duration // for a handshake and a call
	log    *slog.Logger

	mu    sync.Mutex
	left  chan struct{} // has one if a connection may have become one that gives way
	open  map[*boundedConn]bool
	count uint64 // of connections that were opened or left without a call
	full  bool   // has been reported
}

// moment is what a connection has for a handshake and a call, without what it waits
// for the server itself.
const moment = 200 * time.Millisecond

// Bound lets so many connections of a listener be open at a time.
func Bound(l net.Listener, most int, log *slog.Logger) net.Listener {
	return &boundedListener{Listener: l, most: most, moment: moment, log: log}
}

// Accept waits for a connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b := &boundedConn{Conn: c}
		b.place.listener = l
		if l.add(b) {
			return b, nil
		}
		c.Close()
	}
}

// add counts a connection in if there is room, or makes room. Others wait to be
// accepted meanwhile.
func (l *boundedListener) add(c *boundedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open, l.left = map[*boundedConn]bool{}, make(chan struct{}, 1)
	}
	if len(l.open) < l.most {
		l.full = false
	} else if !l.full {
		l.full = true
		l.log.Warn("there are too many connections", "address", l.Addr(), "open", l.most)
	}
	for len(l.open) >= l.most {
		gone, wait := l.idlest()
		switch {
		case gone == nil && wait == 0: // all have a call in progress
			return false
		case wait > 0:
			left := l.left
			l.mu.Unlock()
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-left: // somebody goes before
			}
			timer.Stop()
			l.mu.Lock()
		default:
			l.mu.Unlock()
			gone.Close()
			l.mu.Lock()
		}
	}
	l.open[c] = true
	c.place.rest()
	return true
}

// idlest is the connection that gives way next, or how long until there may be one.
func (l *boundedListener) idlest() (gone *boundedConn, wait time.Duration) {
	var silent, idle *boundedConn
	idles := 0
	older := func(c, than *boundedConn) bool { return than == nil || c.place.since < than.place.since }
	for c := range l.open {
		switch {
		case c.place.calls > 0:
		case c.place.working:
			wait = moment
		case c.place.called:
			if idles++; older(c, idle) {
				idle = c
			}
		case older(c, silent):
			silent = c
		}
	}
	if gone = silent; gone == nil || idles > l.most/2 {
		gone = idle
	}
	if gone == nil {
		return nil, wait
	}
	return gone, l.moment - time.Since(gone.place.at)
}

type boundedConn struct {
	net.Conn
	place Place
}

// Close closes the connection and makes room for another.
func (c *boundedConn) Close() error {
	l := c.place.listener
	l.mu.Lock()
	delete(l.open, c)
	l.leave()
	l.mu.Unlock()
	return c.Conn.Close()
}

// leave wakes who waits for a place. The caller holds l.mu.
func (l *boundedListener) leave() {
	select {
	case l.left <- struct{}{}:
	default:
	}
}

// A Place is that of a connection at a listener that bounds them. The listener's lock
// guards it.
type Place struct {
	listener *boundedListener
	calls    int // in progress
	called   bool
	working  bool      // the server has to do something for it, and it waits
	since    uint64    // it has had neither, by the listener's count
	at       time.Time // the same by the clock
}

// PlaceOf is the place of a connection; nil where nobody bounds them.
func PlaceOf(c net.Conn) *Place {
	switch c := c.(type) {
	case *boundedConn:
		return &c.place
	case *secured:
		return c.begun.place
	}
	return nil
}

// Begin counts a call that a client has begun. It reports whether more than half of
// the room is taken.
func (p *Place) Begin() (crowded bool) {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	p.calls++
	p.called = true
	return len(p.listener.open) > p.listener.most/2
}

// End counts it out.
func (p *Place) End() {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	if p.calls--; p.calls == 0 {
		p.rest()
		p.listener.leave()
	}
}

// work says whether the server has to do something before the client may go on.
func (p *Place) work(now bool) {
	if p == nil {
		return
	}
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	if p.working = now; !now {
		p.rest()
		p.listener.leave()
	}
}

// rest notes that the client's moment begins.
func (p *Place) rest() {
	p.listener.count++
	p.since, p.at = p.listener.count, time.Now()
}
