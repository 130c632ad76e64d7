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

// turns are those in which connections do their part of a handshake, as many at a time
// as there are processors for half of them: a flood of them leaves processors to those
// whose handshake is over. A connection comes to its place with the first turn, in the
// order of the lobby; for what follows it goes before newcomers, who could otherwise
// keep it from ever ending. The listener's lock guards them.
type turns struct {
	most  int // 0: there are no handshakes
	taken int
	queue []chan struct{} // of those that go on, the first to come first
}

// free reports whether a newcomer may have one.
func (t *turns) free() bool { return t.most == 0 || t.taken < t.most && len(t.queue) == 0 }

// start begins a connection's time at its place: with a turn, where there are such. The
// caller holds the lock.
func (p *Place) start() {
	if t := &p.listener.turns; t.most > 0 {
		t.taken++
		p.work()
	} else {
		p.rest()
	}
}

// goOn waits for another turn. It reports false, without one, where the connection is
// closed: there is nobody to do anything for.
func (p *Place) goOn() bool {
	l := p.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if !p.taken {
		return false
	}
	p.work()
	if l.turns.taken < l.turns.most {
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

// stop gives the turn back, if there is one.
func (p *Place) stop() {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	p.pass()
}

// work notes that the server does something for the connection from now on, or waits
// for the turn to. The caller holds the lock.
func (p *Place) work() { p.working, p.began = true, time.Now() }

// pass gives the turn back, if there is one, to who waits for it. The caller holds the
// lock.
func (p *Place) pass() {
	t := &p.listener.turns
	if !p.working {
		return
	}
	p.working = false
	p.owe(time.Since(p.began))
	p.rest()
	if len(t.queue) > 0 {
		close(t.queue[0])
		t.queue = t.queue[1:]
		return
	}
	t.taken--
	p.listener.admit()
}

// A greeted connection is one that shakes hands. It has a turn from when something comes
// until it waits for more.
type greeted struct {
	net.Conn
	place *Place // nil: nobody bounds the connections
	begun bool   // something has been read, with the turn that the place came with
	over  bool   // the handshake
}

// Read reads what the client sends. After the handshake it is in nobody's way.
func (c *greeted) Read(b []byte) (int, error) {
	if c.over || c.place == nil {
		return c.Conn.Read(b)
	}
	if !c.begun {
		c.begun = true
		return c.Conn.Read(b)
	}
	c.place.stop()
	n, err := c.Conn.Read(b)
	if n > 0 && !c.place.goOn() {
		return 0, net.ErrClosed
	}
	return n, err
}

// end ends the handshake.
func (c *greeted) end() {
	c.over = true
	if c.place != nil {
		c.place.stop()
	}
}

// InTurn has the connections of a bounded listener do TLS. They shake hands when they
// are read from first.
func InTurn(l net.Listener, secret *tls.Config) net.Listener {
	return &greeter{Listener: l, secret: secret}
}

type greeter struct {
	net.Listener
	secret *tls.Config
}

// Accept waits for a connection. It does not wait for a handshake.
func (l *greeter) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	begun := &greeted{Conn: raw, place: PlaceOf(raw)}
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
