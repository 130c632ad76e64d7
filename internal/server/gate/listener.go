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

// A boundedListener limits the number of open connections. Connections get one
// of limit slots once they have sent data. Silent connections and connections that
// wait for a slot stay in the lobby (lobby.go), which also holds limit
// connections.
//
// When all slots are taken, a new connection replaces the idle connection that
// has held its slot longest without any call, or else the longest one without
// calls in progress. A connection keeps its slot for a grace period, so a flood
// of connections does not keep out clients with requests. Connections that have
// made calls before are replaced first while they hold more than half of the
// slots. If every connection has a call in progress, the new one is closed.
//
// If the process runs out of file descriptors, the listener drops newcomers.
// Without newcomers Accept returns the error, and servers retry later.
type boundedListener struct {
	net.Listener
	limit int
	grace time.Duration // for a handshake and a call
	log   *slog.Logger

	begin, end sync.Once
	accepted   chan *boundedConn
	failed     chan error
	closed     chan struct{}

	mu    sync.Mutex
	lobby lobby
	turns turns
	open  map[*boundedConn]bool
	count uint64 // advances whenever a connection gets a slot or becomes idle
	full  bool   // the limit has been reported
	alarm bool   // a timer will call admit
}

// gracePeriod is how long a new connection keeps its slot to shake hands and
// make a call, without the time it waits for the server.
const gracePeriod = 200 * time.Millisecond

// Bound returns a listener with at most limit open connections. If handshakes
// is set, the connections do their handshakes in turns.
func Bound(l net.Listener, limit int, handshakes bool, log *slog.Logger) net.Listener {
	b := &boundedListener{
		Listener: l, limit: limit, grace: gracePeriod, log: log,
		accepted: make(chan *boundedConn), failed: make(chan error), closed: make(chan struct{}),
		lobby: lobby{limit: limit, peers: map[netip.Prefix]*peerQueue{}}, open: map[*boundedConn]bool{},
	}
	if handshakes {
		b.turns.limit = max(1, runtime.GOMAXPROCS(0)/2)
	}
	return b
}

// Accept waits for a connection that has sent data and has a slot.
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

// Close closes the listener and its newcomers.
func (l *boundedListener) Close() error {
	err := l.Listener.Close()
	l.end.Do(func() { close(l.closed) })
	for l.evict() {
	}
	return err
}

// receive accepts connections until the listener is closed.
func (l *boundedListener) receive() {
	for {
		raw, err := l.Listener.Accept()
		switch {
		case err == nil:
			l.greet(raw)
		case l.evict(): // free its file descriptor
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
	c := &boundedConn{Conn: raw, from: homeOf(raw), leftLobby: make(chan struct{})}
	c.slot.listener = l
	l.mu.Lock()
	evicted := l.lobby.enter(c)
	l.mu.Unlock()
	if evicted != nil {
		evicted.Conn.Close()
	}
	go l.attend(c)
}

// evict drops a newcomer and reports whether there was one.
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

// admit gives slots, and turns if there are handshakes, to waiting newcomers.
// The caller holds the lock.
func (l *boundedListener) admit() {
	for l.lobby.waiting > 0 && l.turns.free() {
		if len(l.open) >= l.limit {
			evicted, wait := l.idlest()
			switch {
			case wait > 0: // in the grace period or in a handshake
				l.admitIn(wait)
				return
			case evicted == nil: // all have a call in progress
				l.lobby.next().Conn.Close()
				continue
			}
			evicted.leave()
			evicted.Conn.Close()
		}
		c := l.lobby.next()
		l.open[c], c.slot.taken = true, true
		c.slot.start()
		l.report()
		if c.reading {
			c.Conn.SetReadDeadline(time.Unix(1, 0)) // it need not read any more
		}
	}
}

// report logs each time that the limit is reached.
func (l *boundedListener) report() {
	full := len(l.open) >= l.limit
	if full && !l.full {
		l.log.Warn("connection limit reached", "address", l.Addr(), "open", l.limit)
	}
	l.full = full
}

// admitIn calls admit after wait. Freed slots and turns call it earlier.
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

// idlest returns the connection that loses its slot next, and how long it keeps
// it. If a connection may become idle soon, the result is nil with a positive
// wait.
func (l *boundedListener) idlest() (evicted *boundedConn, wait time.Duration) {
	var silent, idle *boundedConn
	idles := 0
	older := func(c, than *boundedConn) bool { return than == nil || c.slot.since < than.slot.since }
	for c := range l.open {
		switch {
		case c.slot.calls > 0:
		case c.slot.working:
			wait = gracePeriod
		case c.slot.called:
			if idles++; older(c, idle) {
				idle = c
			}
		case older(c, silent):
			silent = c
		}
	}
	if evicted = silent; evicted == nil || idles > l.limit/2 {
		evicted = idle
	}
	if evicted == nil {
		return nil, wait
	}
	return evicted, l.grace - time.Since(evicted.slot.at)
}

// A boundedConn is a connection of a boundedListener.
type boundedConn struct {
	net.Conn
	slot Slot
	from netip.Prefix

	buf       []byte        // received, not read yet
	inLobby   bool          // the connection is in the lobby
	silent    *list.Element // its element in the silent list of its address
	reading   bool          // attend is reading from it
	leftLobby chan struct{} // closed when it leaves the lobby
}

// Read returns the data received in the lobby first.
func (c *boundedConn) Read(b []byte) (int, error) {
	if len(c.buf) > 0 {
		n := copy(b, c.buf)
		c.buf = c.buf[n:]
		return n, nil
	}
	c.buf = nil
	return c.Conn.Read(b)
}

// Close closes the connection and gives its slot to a newcomer.
func (c *boundedConn) Close() error {
	l := c.slot.listener
	l.mu.Lock()
	c.leave()
	l.admit()
	l.mu.Unlock()
	return c.Conn.Close()
}

// leave frees the slot. The caller holds the lock.
func (c *boundedConn) leave() {
	c.slot.taken = false
	delete(c.slot.listener.open, c)
}

// A Slot is the share of a connection in a bounded listener. The listener's
// lock guards it.
type Slot struct {
	listener *boundedListener
	taken    bool
	calls    int // calls in progress
	called   bool
	working  bool      // the server works for the connection, or owes it a turn
	began    time.Time // when the server began to work
	since    uint64    // when it last became idle, by the listener's count
	at       time.Time // when it last became idle
}

// SlotOf returns the slot of a connection, or nil if its listener is not
// bounded.
func SlotOf(c net.Conn) *Slot {
	switch c := c.(type) {
	case *boundedConn:
		return &c.slot
	case *tlsConn:
		return c.handshaking.slot
	}
	return nil
}

// charge adds work to the debt of the listener, which pauses before it accepts
// newcomers.
func (p *Slot) charge(d time.Duration) {
	if l, ok := p.listener.Listener.(*pacedListener); ok {
		l.charged.Add(int64(min(d, maxCharge)))
	}
}

// Begin counts a new call.
func (p *Slot) Begin() {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	p.calls++
	p.called = true
}

// End counts a call that has ended.
func (p *Slot) End() {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	if p.calls--; p.calls == 0 {
		p.becomeIdle()
		p.listener.admit()
	}
}

// becomeIdle starts the grace period.
func (p *Slot) becomeIdle() {
	p.listener.count++
	p.since, p.at = p.listener.count, time.Now()
}
