package gate

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A door is a bounded listener with its clients.
type door struct {
	*testing.T
	*boundedListener
}

func newDoor(t *testing.T, limit int) *door {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t, Bound(inner, limit, false, slog.New(slog.DiscardHandler)).(*boundedListener)}
	t.Cleanup(func() { d.Close() })
	return d
}

// dial connects a client.
func (d *door) dial() net.Conn {
	d.Helper()
	c, err := net.Dial("tcp", d.Addr().String())
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { c.Close() })
	return c
}

// enter connects a client that gets a slot.
func (d *door) enter() (client net.Conn, slot *Slot, served net.Conn) {
	d.Helper()
	client = d.dial()
	served, err := d.Accept()
	if err != nil {
		d.Fatal(err)
	}
	return client, SlotOf(served), served
}

// closed reports whether the other side has closed a connection.
func closed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(patience))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// TestConnectionLimit: at the limit, a new connection replaces one without
// calls, the oldest one first. If all connections have a call in progress, the
// listener closes the new one.
func TestConnectionLimit(t *testing.T) {
	d := newDoor(t, 2)
	_, first, firstConn := d.enter()
	first.Begin()
	idle, _, _ := d.enter()
	served, second, _ := d.enter() // replaces the idle one
	if !closed(idle) {
		t.Error("a connection without calls was kept at the limit")
	}
	second.Begin()
	third := d.dial()
	accepted := make(chan struct{})
	go func() { defer close(accepted); d.Accept() }()
	if !closed(third) {
		t.Error("a third connection was accepted beside two with calls in progress")
	}
	second.Begin()
	second.End()
	second.End()
	d.dial()
	<-accepted
	if !closed(served) {
		t.Error("a connection without calls in progress was kept")
	}
	firstConn.Close()
	firstConn.Close() // is counted only once
	if n := len(d.open); n != 1 {
		t.Errorf("%d connections are counted, want 1", n)
	}
}

// TestCalledKeepHalf: connections that have made a call before keep up to half
// of the slots when others arrive.
func TestCalledKeepHalf(t *testing.T) {
	d := newDoor(t, 4)
	open := func(asks bool) *Slot {
		_, s, _ := d.enter()
		if asks {
			s.Begin()
			s.End()
		}
		return s
	}
	asked, askedToo := open(true), open(true)
	for range 10 {
		open(false)
	}
	if !d.open[asked] || !d.open[askedToo] {
		t.Error("connections that have made calls do not keep two of four slots")
	}
	third := open(true)
	open(false)
	if d.open[asked] || !d.open[askedToo] || !d.open[third] {
		t.Error("the oldest of three connections that have made calls was kept")
	}
}

// TestPeers: the address with the most connections loses one.
func TestPeers(t *testing.T) {
	d := newDoor(t, 100)
	one, other := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
	enter := func(from netip.Prefix) *Slot {
		c := &boundedConn{Conn: remote{netip.AddrPortFrom(from.Addr(), 1)}}
		d.boundedListener.enter(c)
		return &c.slot
	}
	rare := enter(other)
	first := enter(one)
	enter(one)
	if silent, idle := d.idlest(); silent != first || idle != nil {
		t.Errorf("the connection of %v is replaced first", silent.from)
	}
	first.Begin()
	first.End()
	if silent, idle := d.idlest(); silent != rare && silent.from != one || idle != first {
		t.Error("a connection that has made a call counts as silent")
	}
	for s := range d.open {
		s.leave()
		s.leave()
	}
	if len(d.open) != 0 || len(d.peers) != 0 {
		t.Errorf("%d connections of %d addresses are counted", len(d.open), len(d.peers))
	}
}

// A remote is a connection from an address.
type remote struct{ at netip.AddrPort }

func (r remote) RemoteAddr() net.Addr           { return net.TCPAddrFromAddrPort(r.at) }
func (remote) LocalAddr() net.Addr              { return nil }
func (remote) Read([]byte) (int, error)         { return 0, io.EOF }
func (remote) Write([]byte) (int, error)        { return 0, io.EOF }
func (remote) Close() error                     { return nil }
func (remote) SetDeadline(time.Time) error      { return nil }
func (remote) SetReadDeadline(time.Time) error  { return nil }
func (remote) SetWriteDeadline(time.Time) error { return nil }

// A full listener fails like one without file descriptors, until a connection closes.
type full struct {
	net.Listener
	fails int
}

func (f *full) Accept() (net.Conn, error) {
	if f.fails--; f.fails >= 0 {
		return nil, errors.New("too many open files")
	}
	return f.Listener.Accept()
}

// TestNoFiles: without file descriptors the listener closes a connection that
// has made no call, and reports the error if there is none.
func TestNoFiles(t *testing.T) {
	d := newDoor(t, 4)
	_, busy, _ := d.enter()
	busy.Begin()
	silent, _, _ := d.enter()
	d.Listener = &full{d.Listener, 1}
	d.enter()
	if !closed(silent) {
		t.Error("a silent connection was kept without file descriptors")
	}
	d = newDoor(t, 4)
	d.Listener = &full{d.Listener, 1}
	if _, err := d.Accept(); err == nil {
		t.Error("the error is not reported")
	}
}

// TestHandshakesTakeTurns: the server works on one handshake at a time, if that
// is the limit. A handshake that waits for its client holds no turn, nor does a
// closed one.
func TestHandshakesTakeTurns(t *testing.T) {
	d := newDoor(t, 4)
	d.turns = newTurns(1)
	read := func(c net.Conn) chan error {
		done := make(chan error, 1)
		go func() { _, err := c.Read(make([]byte, 10)); done <- err }()
		return done
	}
	say := func(c net.Conn) {
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	client, slot, one := d.enter()
	say(client)
	if err := <-read(one); err != nil {
		t.Fatal(err)
	}
	clientToo, _, other := d.enter()
	say(clientToo)
	second := read(other)
	select {
	case <-second:
		t.Fatal("two handshakes are worked on at once")
	case <-time.After(10 * time.Millisecond):
	}
	next := read(one) // waits for its client
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	say(client)
	other.Close()
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	slot.EndHandshake()
	slot.EndHandshake()
	if d.turns.free != 1 {
		t.Error("the turn is kept after the handshake")
	}
}

// TestClosedHandshake: a connection that its client closes while it waits for a
// turn gets no work.
func TestClosedHandshake(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the server cannot look for the end of a connection without reading")
	}
	d := newDoor(t, 4)
	d.turns = newTurns(1)
	client, slot, served := d.enter()
	d.turns.take(slot.from, false)
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { _, err := served.Read(make([]byte, 10)); read <- err }()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		d.turns.mu.Lock()
		waits := len(d.turns.order) == 1
		d.turns.mu.Unlock()
		if waits {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not wait for a turn")
		}
	}
	client.Close()
	for deadline := time.Now().Add(patience); !hungUp(served.(*boundedConn).Conn); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the end of the connection does not arrive")
		}
	}
	d.turns.give()
	if err := <-read; !errors.Is(err, net.ErrClosed) || d.turns.free != 1 {
		t.Errorf("reading ends with %v, %d turns are free", err, d.turns.free)
	}
}

// TestTurnsOfAddresses: an address with one waiting connection waits for at most
// one of each other address.
func TestTurnsOfAddresses(t *testing.T) {
	turns := newTurns(1)
	one, other := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
	turns.take(one, false)
	synctest.Test(t, func(t *testing.T) {
		had := make(chan netip.Prefix)
		wait := func(from netip.Prefix) {
			go func() { turns.take(from, false); had <- from }()
			synctest.Wait()
		}
		for _, from := range []netip.Prefix{one, one, one, other} {
			wait(from)
		}
		var order []netip.Prefix
		for range 4 {
			turns.give()
			order = append(order, <-had)
		}
		if order[1] != other {
			t.Errorf("the turns go to %v", order)
		}
	})
	turns.give()
	if turns.free != 1 || len(turns.waiting) != 0 || len(turns.order) != 0 {
		t.Errorf("%d turns are free, %d addresses wait", turns.free, len(turns.order))
	}
}

// TestGoesOnFirst: the second part of a handshake waits for none that begins at
// the same address.
func TestGoesOnFirst(t *testing.T) {
	turns := newTurns(1)
	from := netip.MustParsePrefix("10.0.0.1/32")
	turns.take(from, false)
	synctest.Test(t, func(t *testing.T) {
		had := make(chan string, 3)
		for _, name := range []string{"first", "second", "goes on"} {
			go func() { turns.take(from, name == "goes on"); had <- name }()
			synctest.Wait()
		}
		for _, want := range []string{"goes on", "first", "second"} {
			turns.give()
			if got := <-had; got != want {
				t.Errorf("%q has a turn before %q", got, want)
			}
		}
	})
}

// TestWorkingKept: a connection that waits for the server's part of the handshake
// is replaced only if its address has no other. Then the one that has waited
// longest is replaced.
func TestWorkingKept(t *testing.T) {
	d := newDoor(t, 3)
	var slots []*Slot
	for range 3 {
		c := &boundedConn{Conn: remote{netip.MustParseAddrPort("10.0.0.1:1")}}
		d.boundedListener.enter(c)
		slots = append(slots, &c.slot)
	}
	slots[2].setWorking(true)
	slots[0].setWorking(true)
	if silent, _ := d.idlest(); silent != slots[1] {
		t.Error("a connection in a handshake is replaced before a silent one")
	}
	slots[1].setWorking(true)
	if silent, _ := d.idlest(); silent != slots[2] {
		t.Error("the connection that has waited longest for the server is kept")
	}
	slots[0].setWorking(false)
	if silent, _ := d.idlest(); silent != slots[0] {
		t.Error("a connection that waits for its client is kept")
	}
}
