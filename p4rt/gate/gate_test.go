package gate

import (
	"errors"
	"log/slog"
	"net"
	"runtime"
	"testing"
)

// TestConnectionLimit: for a connection beyond the limit a silent one gives way,
// or there is no room until another goes.
func TestConnectionLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &boundedListener{Listener: inner, most: 2, log: slog.New(slog.DiscardHandler)}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	open := func() (client net.Conn, served *boundedConn) {
		client = dial()
		return client, (<-accepted).(*boundedConn)
	}
	gone := func(c net.Conn) bool {
		_, err := c.Read(make([]byte, 1))
		return err != nil
	}
	_, first := open()
	first.place.Begin()
	silent, _ := open()
	served, second := open() // in place of the silent one
	if !gone(silent) {
		t.Error("a connection without any call is kept where there is no room")
	}
	second.place.Begin()
	if !gone(dial()) {
		t.Error("a third connection is kept beside two with calls in progress")
	}
	second.place.Begin()
	second.place.End()
	second.place.End()
	first.place.Begin()
	_, third := open()
	if !gone(served) {
		t.Error("the connection whose calls are over is kept")
	}
	third.place.Begin()
	first.Close()
	first.Close() // is counted once
	open()
	inner.Close()
	<-accepted
}

// TestWhoHasAskedKeepsHalf: those that have asked before stay where others come and
// go, up to half of the room.
func TestWhoHasAskedKeepsHalf(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	l := &boundedListener{Listener: inner, most: 4, log: slog.New(slog.DiscardHandler)}
	open := func(asks bool) *boundedConn {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		c := &boundedConn{Conn: ours}
		c.place.listener = l
		if !l.add(c) {
			t.Fatal("it is refused")
		}
		if asks {
			c.place.Begin()
			c.place.End()
		}
		return c
	}
	asked, askedToo := open(true), open(true)
	for range 10 {
		open(false)
	}
	if !l.open[asked] || !l.open[askedToo] {
		t.Error("two of four places are not those of who has asked")
	}
	third := open(true)
	open(false)
	if l.open[asked] || !l.open[askedToo] || !l.open[third] {
		t.Error("of three that have asked the first does not give way")
	}
}

// TestWhoWaitsForTheServerStays: a handshake that waits for its turn does not cost
// the place; while there are only such, newcomers wait.
func TestWhoWaitsForTheServerStays(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	l := &boundedListener{Listener: inner, most: 2, log: slog.New(slog.DiscardHandler)}
	turns := make(turns, 1)
	turns <- struct{}{} // somebody has it
	open := func() (*greeted, net.Conn) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		c := &boundedConn{Conn: ours}
		c.place.listener = l
		if !l.add(c) {
			t.Fatal("it is refused")
		}
		return &greeted{Conn: c, turns: turns, place: PlaceOf(c)}, theirs
	}
	read := func(c *greeted, client net.Conn) {
		go c.Read(make([]byte, 1))
		if _, err := client.Write([]byte{1}); err != nil {
			t.Error(err)
		}
		for working := false; !working; runtime.Gosched() {
			l.mu.Lock()
			working = c.place.working
			l.mu.Unlock()
		}
	}
	is := func(c *greeted) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.open[c.Conn.(*boundedConn)]
	}
	first, client := open()
	read(first, client)
	silent, _ := open()
	second, clientToo := open()
	if !is(first) || is(silent) {
		t.Error("it is not the silent one that gives way")
	}
	read(second, clientToo)
	came := make(chan *greeted)
	go func() { c, _ := open(); came <- c }()
	select {
	case <-came:
		t.Fatal("two wait for the server, and one of them gives way")
	default:
	}
	<-turns // to the one that waits for longest
	for has := false; !has; runtime.Gosched() {
		first.mu.Lock()
		has = first.has
		first.mu.Unlock()
	}
	first.end()
	<-came
	if is(first) || !is(second) {
		t.Error("it is not the one that no longer waits for the server that gives way")
	}
	second.Close()
}

// TestClosedInTurn: for who is gone when its turn comes nothing is done.
func TestClosedInTurn(t *testing.T) {
	turns := make(turns, 1)
	turns <- struct{}{}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := &greeted{Conn: ours, turns: turns}
	read := make(chan error)
	go func() { _, err := c.Read(make([]byte, 1)); read <- err }()
	if _, err := theirs.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	<-turns
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it reads on: %v", err)
	}
	if len(turns) != 0 {
		t.Error("the turn is kept")
	}
}

// TestHandshakesTakeTurns: who waits for a client has no turn.
func TestHandshakesTakeTurns(t *testing.T) {
	turns := make(turns, 1)
	handshake := func() (*greeted, net.Conn) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close(); theirs.Close() })
		return &greeted{Conn: ours, turns: turns}, theirs
	}
	one, first := handshake()
	other, second := handshake()
	read := func(c net.Conn) chan error {
		done := make(chan error, 1)
		go func() { _, err := c.Read(make([]byte, 1)); done <- err }()
		return done
	}
	begun, begunToo := read(one), read(other)
	if _, err := first.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-begunToo:
		t.Fatal("there are two turns at a time")
	default:
	}
	next := read(one) // waits for its client
	if err := <-begunToo; err != nil {
		t.Fatal(err)
	}
	other.end()
	first.Close()
	if err := <-next; err == nil {
		t.Error("the end is not told")
	}
	one.rest()
	if len(turns) != 0 {
		t.Errorf("%d turns are left", len(turns))
	}
}
