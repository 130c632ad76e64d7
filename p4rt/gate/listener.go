package gate

import (
	"log/slog"
	"net"
	"runtime"
	"sync"
)

// A boundedListener has so many connections at a time. For one more, the one
// gives way that has been open for longest without any call, or else without one in
// progress, so that a flood of connections keeps out nobody who has something to
// ask; if all have a call in progress, the new one is closed. Files may run out all
// the same; Accept then says so, and gRPC tries again later.
type boundedListener struct {
	net.Listener
	most int
	log  *slog.Logger

	mu    sync.Mutex
	open  map[*boundedConn]bool
	count uint64 // of connections that were opened or left without a call
	full  bool   // has been reported
}

// Accept waits for a connection that there is room for.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		b := &boundedConn{Conn: c, listener: l}
		ok, gone := l.add(b)
		if gone != nil {
			gone.Close()
		}
		if ok {
			return b, nil
		}
		c.Close()
	}
}

// add counts a connection in if there is room, or makes room.
func (l *boundedListener) add(c *boundedConn) (ok bool, gone *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*boundedConn]bool{}
	}
	l.count++
	c.since = l.count
	if len(l.open) < l.most {
		l.open[c], l.full = true, false
		return true, nil
	}
	if !l.full {
		l.full = true
		l.log.Warn("P4Runtime: there are too many connections", "open", l.most)
	}
	for o := range l.open {
		if o.calls == 0 && (gone == nil || gone.called && !o.called || gone.called == o.called && o.since < gone.since) {
			gone = o
		}
	}
	if gone == nil {
		return false, nil
	}
	delete(l.open, gone)
	l.open[c] = true
	return true, gone
}

type boundedConn struct {
	net.Conn
	listener *boundedListener

	// The listener's lock guards these.
	calls  int // in progress
	called bool
	since  uint64 // it has had none, by the listener's count
}

// begin counts a call that a client has begun.
func (c *boundedConn) begin() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.calls++
	c.called = true
}

// end counts it out.
func (c *boundedConn) end() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if c.calls--; c.calls == 0 {
		c.listener.count++
		c.since = c.listener.count
	}
}

// Close closes the connection and makes room for another.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// turns are those in which connections do their part of a handshake: a flood of them
// leaves processors to those whose handshake is over.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)/2)) }

// A greeted connection has a turn from when something comes until it waits for more.
type greeted struct {
	net.Conn
	turns turns
	has   bool
	over  bool // the handshake
}

func (c *greeted) Read(b []byte) (int, error) {
	if c.over {
		return c.Conn.Read(b)
	}
	c.rest()
	n, err := c.Conn.Read(b)
	c.turns <- struct{}{}
	c.has = true
	return n, err
}

func (c *greeted) rest() {
	if c.has {
		<-c.turns
		c.has = false
	}
}
