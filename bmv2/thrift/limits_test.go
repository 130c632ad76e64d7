package thrift

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// A poorListener cannot accept at first, since there are no files left.
type poorListener struct {
	net.Listener
	fails int
}

func (l *poorListener) Accept() (net.Conn, error) {
	if l.fails--; l.fails >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestNoFilesLeft: a server survives that no connection can be accepted, and
// goes on when one can.
func TestNoFilesLeft(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(newFake(), 7)
	served := make(chan error, 1)
	go func() { served <- s.Serve(&poorListener{inner, 3}) }()
	c, ctx := dial(t, inner.Addr().String())
	if _, err := c.RegisterRead(ctx, "r", 0); err != nil {
		t.Error(err)
	}
	s.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if passes(errors.New("something else")) {
		t.Error("every error passes")
	}
}

// TestCloseWhileNoFilesAreLeft does not wait for the next attempt.
func TestCloseWhileNoFilesAreLeft(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(newFake(), 7)
	served := make(chan error, 1)
	go func() { served <- s.Serve(&poorListener{inner, 1 << 30}) }()
	s.Close()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
}

func TestTooManyConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(newFake(), 7)
	s.Limit(2)
	go s.Serve(l)
	defer s.Close()
	addr := l.Addr().String()
	for range 2 {
		c, ctx := dial(t, addr)
		if _, err := c.RegisterRead(ctx, "r", 0); err != nil {
			t.Fatal(err)
		}
	}
	c, ctx := dial(t, addr)
	if _, err := c.RegisterRead(ctx, "r", 0); err == nil {
		t.Error("a third connection is served")
	}
}

// TestSilentClients: a connection is given up that never calls, that calls too
// slowly, or that does not take its answer.
func TestSilentClients(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	buf := make([]byte, 8)
	c := &timedConn{Conn: b, wait: time.Millisecond}
	if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without a call: %v", err)
	}
	c = &timedConn{Conn: b, wait: time.Minute}
	go a.Write([]byte{1})
	if _, err := c.Read(buf); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(c.until); left <= 0 || left > callTime {
		t.Errorf("a call that has begun has %v left", left)
	}
	c.until = time.Now().Add(-time.Second)
	if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("within a call: %v", err)
	}
	c.idle()
	if c.wait != idleTime || !c.until.IsZero() {
		t.Errorf("between calls a client has %v", c.wait)
	}
}
