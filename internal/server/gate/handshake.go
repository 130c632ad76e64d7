package gate

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// turns is a semaphore for the server's work in handshakes. Half of the
// processors may work on handshakes at a time, so a flood of handshakes leaves
// processors to established connections. A connection gets its slot together
// with its first turn, in the order of the lobby. Later turns of the same
// handshake go before newcomers, which could otherwise keep it from
// ever finishing. The listener's lock guards the fields.
type turns struct {
	limit int // 0: connections do not shake hands
	taken int
	queue []chan struct{} // handshakes that continue, in order of arrival
}

// free reports whether a newcomer may have a turn.
func (t *turns) free() bool { return t.limit == 0 || t.taken < t.limit && len(t.queue) == 0 }

// start marks a slot as taken. If the listener has handshakes, the connection
// gets a turn. The caller holds the lock.
func (p *Slot) start() {
	if t := &p.listener.turns; t.limit > 0 {
		t.taken++
		p.work()
	} else {
		p.becomeIdle()
	}
}

// nextTurn waits for another turn. It returns false, without a turn, if the
// connection has been closed.
func (p *Slot) nextTurn() bool {
	l := p.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.taken {
		return false
	}
	p.work()
	if l.turns.taken < l.turns.limit {
		l.turns.taken++
		return true
	}
	turn := make(chan struct{})
	l.turns.queue = append(l.turns.queue, turn)
	l.mu.Unlock()
	<-turn
	l.mu.Lock()
	p.work()
	if !p.taken {
		p.pass()
		return false
	}
	return true
}

// stop gives the turn back, if the connection has one.
func (p *Slot) stop() {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	p.pass()
}

// work marks the connection as worked on by the server, or waiting for its
// turn. The caller holds the lock.
func (p *Slot) work() { p.working, p.began = true, time.Now() }

// pass gives the turn, if the connection has one, to the next handshake in the
// queue or to a newcomer. The caller holds the lock.
func (p *Slot) pass() {
	t := &p.listener.turns
	if !p.working {
		return
	}
	p.working = false
	p.charge(time.Since(p.began))
	p.becomeIdle()
	if len(t.queue) > 0 {
		close(t.queue[0])
		t.queue = t.queue[1:]
		return
	}
	t.taken--
	p.listener.admit()
}

// A handshakeConn is a connection in its handshake. It holds a turn while the
// server works, and gives it back while it waits for the client.
type handshakeConn struct {
	net.Conn
	slot    *Slot // nil: the listener is not bounded
	started bool  // has read, using the turn that came with the slot
	over    bool  // the handshake is finished
}

// Read reads from the client. During the handshake it gives the turn back
// before it blocks and takes another one when data arrives.
func (c *handshakeConn) Read(b []byte) (int, error) {
	if c.over || c.slot == nil {
		return c.Conn.Read(b)
	}
	if !c.started {
		c.started = true
		return c.Conn.Read(b)
	}
	c.slot.stop()
	n, err := c.Conn.Read(b)
	if n > 0 && !c.slot.nextTurn() {
		return 0, net.ErrClosed
	}
	return n, err
}

// end marks the handshake as finished.
func (c *handshakeConn) end() {
	c.over = true
	if c.slot != nil {
		c.slot.stop()
	}
}

// WithTLS returns a listener of TLS connections. They do their handshakes in
// the first Read, in the turns of the bounded listener l.
func WithTLS(l net.Listener, secret *tls.Config) net.Listener {
	return &tlsListener{Listener: l, secret: secret}
}

type tlsListener struct {
	net.Listener
	secret *tls.Config
}

// Accept waits for a connection. It does not wait for the handshake.
func (l *tlsListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	handshaking := &handshakeConn{Conn: raw, slot: SlotOf(raw)}
	return &tlsConn{Conn: tls.Server(handshaking, l.secret), handshaking: handshaking}, nil
}

// A tlsConn is a TLS connection that does its handshake in the first Read.
type tlsConn struct {
	*tls.Conn
	handshaking *handshakeConn
	once        sync.Once
	err         error // result of the handshake
}

// Read does the handshake if necessary and reads from the client.
func (c *tlsConn) Read(b []byte) (int, error) {
	c.once.Do(func() {
		c.err = c.Handshake()
		c.handshaking.end()
		explain(c.err)
	})
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// explain answers a client that speaks HTTP without TLS.
func explain(err error) {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil && bytes.ContainsAny(plain.RecordHeader[:1], "GHPO") {
		// The client may be gone; the result does not matter.
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nthis server requires TLS: use an address that begins with https://\n")
	}
}
