package thrift

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	wire "github.com/apache/thrift/lib/go/thrift"
)

// A poorListener first fails to accept because there are no file descriptors
// left.
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

// TestNoFilesLeft: a server survives a lack of file descriptors and continues
// afterwards.
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
		t.Error("every error counts as temporary")
	}
}

// TestCloseWhileNoFilesAreLeft: Close does not wait for the next attempt to
// accept.
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

// A faultyTarget panics when a register is read.
type faultyTarget struct{ *fakeTarget }

func (faultyTarget) ReadRegister(string, int, int) ([]uint64, error) { panic("cannot read") }

// TestFault: a call that panics ends its connection and logs the stack in one
// line; other calls are answered.
func TestFault(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	s := NewServer(faultyTarget{newFake()}, 7)
	s.LogTo(slog.New(slog.NewTextHandler(&said, nil)))
	go s.Serve(l)
	other, ctx := dial(t, l.Addr().String())
	faulty, _ := dial(t, l.Addr().String())
	if _, err := faulty.RegisterRead(ctx, "r", 0); err == nil {
		t.Error("there is an answer")
	}
	if _, err := other.Elapsed(ctx); err != nil {
		t.Errorf("another client: %v", err)
	}
	s.Close()
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "cannot read") || !strings.Contains(got, "limits_test.go") {
		t.Errorf("got %q, want a line with the stack", got)
	}
}

func TestTooManyConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(newFake(), 7)
	s.Limit(2)
	s.silence = time.Hour // so no connection counts as idle
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

// TestSilentClientsGiveWay: connections that have called once can be replaced,
// the longest idle one first.
func TestSilentClientsGiveWay(t *testing.T) {
	s := NewServer(newFake(), 7)
	s.Limit(3)
	var list []*timedConn
	for i := range 3 {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := &timedConn{Conn: ours, since: time.Now()}
		c.spoke.Store(true)
		c.rests.Store(time.Now().Add(time.Duration(i-10) * time.Minute).UnixNano())
		s.conns[c] = true
		list = append(list, c)
	}
	list[0].rests.Store(0) // it is in a call
	for i, want := range []bool{true, true, false} {
		if got := s.makeRoom(); got != want {
			t.Fatalf("room for one more, the %d. time: %v", i+1, got)
		}
	}
	if !s.conns[list[0]] || len(s.conns) != 1 {
		t.Error("the remaining connection is not the one with a call in progress")
	}
	calling := &timedConn{}
	calling.spoke.Store(true)
	calling.idle()
	s.conns = map[*timedConn]bool{calling: true}
	if s.silence = time.Hour; s.makeRoom() {
		t.Error("a connection that has just called was replaced")
	}
}

// TestSilentClients: a connection is closed if it never calls, calls too
// slowly, or does not read its reply.
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
	if _, err := c.Read(buf); c.spoke.Load() {
		t.Error("a partial call counts as a call")
	} else if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(c.until); left <= 0 || left > callTime {
		t.Errorf("a partial call has %v left", left)
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

// TestMessagesWithoutEnd: the size of a call or a reply is limited even if each
// of its parts is small, and so are values without content.
func TestMessagesWithoutEnd(t *testing.T) {
	begin := "\x80\x01\x00\x01\x00\x00\x00\x01x\x00\x00\x00\x01" // a call of x
	answer := "\x80\x01\x00\x02\x00\x00\x00\x01x\x00\x00\x00\x01"
	megabyte := "\x0b\x00\x01\x00\x0f\x00\x00" + strings.Repeat("x", 0xf0000) // a text in field 1
	structs := "\x0f\x00\x01\x0c\x00\x0f\x00\x00" + strings.Repeat("\x00", 0xf0000)
	addr := serve(t, newFake())
	for name, text := range map[string]string{"texts": strings.Repeat(megabyte, 64), "structs": structs} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go io.WriteString(c, begin+text+"\x00")
		if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("a call of %s is answered", name)
		}
	}
	for name, text := range map[string]string{"larger than": strings.Repeat(megabyte, 80), "too many values": strings.Repeat(structs, 10)} {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		conn := &answerConn{Conn: ours}
		conf := &wire.TConfiguration{MaxMessageSize: maxReply}
		c := &Client{conn: conn, in: wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(wire.NewTSocketFromConnConf(conn, conf), clientBuffer), conf)}
		go io.WriteString(theirs, answer+text+"\x00")
		if _, err := c.reply(t.Context(), "x", 1); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
		ours.Close()
	}
}

// TestMalformedCallsAreLogged: a call with impossible content is logged in one line, a
// connection that ends within a call is not, nor is each of many faults.
func TestMalformedCallsAreLogged(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	s := NewServer(newFake(), 7)
	s.LogTo(slog.New(slog.NewTextHandler(&said, nil)))
	go s.Serve(l)
	begin := "\x80\x01\x00\x01\x00\x00\x00\x01x\x00\x00\x00\x01"
	for _, text := range []string{begin + "\x0f\x00\x01\x0c\xff\xff\xff\xff", begin + "\x0b\x00"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	s.Close()
	for range 998 {
		s.report("c", errLong)
	}
	got := said.String()
	if !strings.Contains(got, "negative size: -1") {
		t.Errorf("got %q, want the length of the list", got)
	}
	if n := strings.Count(got, "\n"); n != 11 || !strings.Contains(got, "times=100\n") {
		t.Errorf("%d lines, want the first ten and the hundredth:\n%s", n, got)
	}
}

// TestReasonsOfExceptions: exceptions are described by the kind of call, with the object.
func TestReasonsOfExceptions(t *testing.T) {
	for _, c := range []struct {
		method string
		exc    exception
		want   string
	}{
		{"bm_mt_add_entry", badMatchKey, "I.t: the match fields do not fit the table"},
		{"bm_register_read", badIndex, "I.t: the array has no such cell"},
		{"bm_mt_add_entry", tableError, "I.t: exception with code 100"},
	} {
		if got := reasonOf(c.method, record{2: []byte("I.t")}, c.exc).Error(); got != c.want {
			t.Errorf("%s: %q, want %q", c.method, got, c.want)
		}
	}
	if got := reasonOf("mirroring_session_get", record{1: int32(5), 2: []byte("\x1b")}, noSession).Error(); got != "\\x1b: there is no such session" {
		t.Errorf("got %q, want no control characters", got)
	}
}
