package gate

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
)

// turns are those in which connections do their part of a handshake: a flood of them
// leaves processors to those whose handshake is over.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)/2)) }

// A greeted connection has a turn from when something comes until it waits for
// more. Who waits for a turn, or has one, does not give its place away: it is the
// server that it waits for.
type greeted struct {
	net.Conn
	turns turns
	place *Place // nil: nobody bounds the connections

	mu   sync.Mutex
	has  bool // a turn
	over bool // the handshake
	gone bool // is closed
}

// Read reads what the client sends. After the handshake it is in nobody's way.
func (c *greeted) Read(b []byte) (int, error) {
	if c.rest() {
		return c.Conn.Read(b)
	}
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	c.place.work(true)
	c.turns <- struct{}{}
	c.mu.Lock()
	c.has = true
	gone := c.gone
	c.mu.Unlock()
	if gone { // there is nobody to do it for
		c.rest()
		return 0, net.ErrClosed
	}
	return n, err
}

// rest gives the turn back, if there is one, and says whether the handshake is over.
func (c *greeted) rest() (over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.has {
		<-c.turns
		c.has = false
		c.place.work(false)
	}
	return c.over
}

// end ends the handshake.
func (c *greeted) end() {
	c.rest()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
}

// Close closes the connection. A turn ends with the step that it is for.
func (c *greeted) Close() error {
	c.mu.Lock()
	c.gone = true
	c.mu.Unlock()
	return c.Conn.Close()
}

// InTurn has the connections of a listener do TLS. They shake hands when they are
// read from first, in turns.
func InTurn(l net.Listener, secret *tls.Config) net.Listener {
	return &greeter{Listener: l, secret: secret, turns: newTurns()}
}

type greeter struct {
	net.Listener
	secret *tls.Config
	turns  turns
}

// Accept waits for a connection. It does not wait for a handshake.
func (l *greeter) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	begun := &greeted{Conn: raw, turns: l.turns, place: PlaceOf(raw)}
	return &secured{Conn: tls.Server(begun, l.secret), begun: begun}, nil
}

// A secured connection is one of TLS.
type secured struct {
	*tls.Conn
	begun *greeted
	once  sync.Once
	err   error // of the handshake
}

// Read reads what the client says, after the handshake.
func (c *secured) Read(b []byte) (int, error) {
	c.once.Do(func() {
		c.err = c.Handshake()
		c.begun.end()
		explain(c.err)
	})
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// explain tells a client that speaks HTTP without TLS what is amiss.
func explain(err error) {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil && bytes.ContainsAny(plain.RecordHeader[:1], "GHPO") {
		// It may be gone: then nobody reads it.
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nthis is served with TLS: its address begins with https://\n")
	}
}
