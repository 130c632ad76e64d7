package gate

import (
	"log/slog"
	"net"
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
	first.begin()
	silent, _ := open()
	served, second := open() // in place of the silent one
	if !gone(silent) {
		t.Error("a connection without any call is kept where there is no room")
	}
	second.begin()
	if !gone(dial()) {
		t.Error("a third connection is kept beside two with calls in progress")
	}
	second.begin()
	second.end()
	second.end()
	first.begin()
	_, third := open()
	if !gone(served) {
		t.Error("the connection whose calls are over is kept")
	}
	third.begin()
	first.Close()
	first.Close() // is counted once
	open()
	inner.Close()
	<-accepted
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
	other.rest()
	other.over = true
	first.Close()
	if err := <-next; err == nil {
		t.Error("the end is not told")
	}
	one.rest()
	if len(turns) != 0 {
		t.Errorf("%d turns are left", len(turns))
	}
}
