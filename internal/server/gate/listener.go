package gate

import (
	"container/list"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"
)

// A boundedListener has so many places for connections that have said something, and
// a lobby for as many that have not, or wait for a place (lobby.go). For one more connection, the
// one gives its place away that has had it for longest without any call, or else
// without one in progress, once it has had a moment for one: a flood of connections
// keeps out nobody who has something to ask. Those that have asked before go first
// where they take more than half of the places. If all have a call in progress, the new
// one is closed. Files may run out all the same: newcomers go then, and where there are
// none Accept says so, and servers try again later.
type boundedListener struct {
	net.Listener
	most   int
	moment time.Duration // for a handshake and a call
	log    *slog.Logger

	begin, end sync.Once
	accepted   chan *boundedConn
	failed     chan error
	closed     chan struct{}

	mu    sync.Mutex
	lobby lobby
	turns turns
	open  map[*boundedConn]bool
	count uint64 // of connections that got a place or are left without a call
	full  bool   // has been reported
	alarm bool   // goes off when a moment is over
}

// moment is what a connection has for a handshake and a call, without what it waits
// for the server itself.
const moment = 200 * time.Millisecond

// Bound lets so many connections of a listener be open at a time. Where they shake
// hands, they do so in turns.
func Bound(l net.Listener, most int, handshakes bool, log *slog.Logger) net.Listener {
	b := &boundedListener{
		Listener: l, most: most, moment: moment, log: log,
		accepted: make(chan *boundedConn), failed: make(chan error), closed: make(chan struct{}),
		lobby: lobby{most: most, crowds: map[netip.Prefix]*crowd{}}, open: map[*boundedConn]bool{},
	}
	if handshakes {
		b.turns.most = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return b
}

// Accept waits for a connection that has said something and has got a place.
func (l *boundedListener) Accept() (net.Conn, error) {
	l.begin.Do(func() { go l.receive() })
	select {
	case c := <-l.accepted:
		return c, nil
	case err := <-l.failed:
		return nil, err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Newcomers go.
func (l *boundedListener) Close() error {
	err := l.Listener.Close()
	l.end.Do(func() { close(l.closed) })
	for l.evict() {
	}
	return err
}

// receive takes connections as they come.
func (l *boundedListener) receive() {
	for {
		raw, err := l.Listener.Accept()
		switch {
		case err == nil:
			l.greet(raw)
		case l.evict(): // its file may be what is missing
		default:
			select {
			case l.failed <- err:
			case <-l.closed:
				return
			}
		}
	}
}

// greet lets a connection into the lobby.
func (l *boundedListener) greet(raw net.Conn) {
	c := &boundedConn{Conn: raw, from: homeOf(raw), left: make(chan struct{})}
	c.place.listener = l
	l.mu.Lock()
	gone := l.lobby.enter(c)
	l.mu.Unlock()
	if gone != nil {
		gone.Conn.Close()
	}
	go l.attend(c)
}

// evict has a newcomer go, if there is one.
func (l *boundedListener) evict() bool {
	l.mu.Lock()
	c := l.lobby.evict()
	l.mu.Unlock()
	if c == nil {
		return false
	}
	c.Conn.Close()
	return true
}

// admit gives places to newcomers that wait for one, and turns with them. The caller
// holds the lock.
func (l *boundedListener) admit() {
	for l.lobby.waiting > 0 && l.turns.free() {
		if len(l.open) >= l.most {
			gone, wait := l.idlest()
			switch {
			case wait > 0: // whose moment is not over, or who does its part of a handshake
				l.admitIn(wait)
				return
			case gone == nil: // all have a call in progress
				l.lobby.next().Conn.Close()
				continue
			}
			gone.leave()
			gone.Conn.Close()
		}
		c := l.lobby.next()
		l.open[c], c.place.taken = true, true
		c.place.start()
		l.report()
		if c.reads {
			c.Conn.SetReadDeadline(time.Unix(1, 0)) // it need not read on
		}
	}
}

// report says that there is no room left, once each time.
func (l *boundedListener) report() {
	full := len(l.open) >= l.most
	if full && !l.full {
		l.log.Warn("there are too many connections", "address", l.Addr(), "open", l.most)
	}
	l.full = full
}

// admitIn calls admit later, as others do when a place or a turn is left.
func (l *boundedListener) admitIn(wait time.Duration) {
	if l.alarm {
		return
	}
	l.alarm = true
	time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.alarm = false
		l.admit()
	})
}

// idlest is the connection that gives its place away next, or how long until there may
// be one.
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

// A boundedConn is a connection of a boundedListener.
type boundedConn struct {
	net.Conn
	place Place
	from  netip.Prefix

	said   []byte        // and not read yet
	here   bool          // it is a newcomer
	silent *list.Element // of its crowd
	reads  bool          // as such
	left   chan struct{} // is closed when it is one no more
}

// Read reads what has come.
func (c *boundedConn) Read(b []byte) (int, error) {
	if len(c.said) > 0 {
		n := copy(b, c.said)
		c.said = c.said[n:]
		return n, nil
	}
	c.said = nil
	return c.Conn.Read(b)
}

// Close closes the connection and makes room for another.
func (c *boundedConn) Close() error {
	l := c.place.listener
	l.mu.Lock()
	c.leave()
	l.admit()
	l.mu.Unlock()
	return c.Conn.Close()
}

// leave gives the place away. The caller holds the lock.
func (c *boundedConn) leave() {
	c.place.taken = false
	delete(c.place.listener.open, c)
}

// A Place is what a connection takes at a listener that bounds them. The listener's
// lock guards it.
type Place struct {
	listener *boundedListener
	taken    bool
	calls    int // in progress
	called   bool
	working  bool      // the server has to do something for it, and it waits
	began    time.Time // the server did
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

// owe notes work for the connection that newcomers wait for.
func (p *Place) owe(d time.Duration) {
	if l, ok := p.listener.Listener.(*pacedListener); ok {
		l.owed.Add(int64(min(d, maxOwed)))
	}
}

// Begin counts a call that a client has begun.
func (p *Place) Begin() {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	p.calls++
	p.called = true
}

// End counts it out.
func (p *Place) End() {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	if p.calls--; p.calls == 0 {
		p.rest()
		p.listener.admit()
	}
}

// rest notes that the client's moment begins.
func (p *Place) rest() {
	p.listener.count++
	p.since, p.at = p.listener.count, time.Now()
}
