package gate

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"
)

// A door is a bounded listener with the connections that it has accepted.
type door struct {
	*testing.T
	*boundedListener
	came chan *boundedConn
}

// newDoor opens a door with a grace period of zero, so the tests do not wait.
func newDoor(t *testing.T, limit int, handshakes bool) *door {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t, Bound(inner, limit, handshakes, slog.New(slog.DiscardHandler)).(*boundedListener), make(chan *boundedConn)}
	d.grace = 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := d.Accept()
			if err != nil {
				return
			}
			d.came <- c.(*boundedConn)
		}
	}()
	t.Cleanup(func() {
		d.Close()
		for {
			select {
			case <-d.came:
			case <-ended:
				return
			}
		}
	})
	return d
}

// dial connects a client that sends text.
func (d *door) dial(text string) net.Conn {
	d.Helper()
	c, err := net.Dial("tcp", d.Addr().String())
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		d.Fatal(err)
	}
	return c
}

// enter connects a client that sends a greeting and gets a slot.
func (d *door) enter() (client net.Conn, served *boundedConn) {
	d.Helper()
	return d.dial("hello"), <-d.came
}

// closed reports whether the other side has closed a connection.
func closed(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1))
	return err != nil
}

// until waits until ok returns true; it holds the listener's lock for the call.
func (d *door) until(is func() bool) {
	d.Helper()
	for done, late := false, time.After(patience); !done; {
		select {
		case <-late:
			d.Fatal("it does not happen")
		default:
		}
		d.mu.Lock()
		done = is()
		d.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// TestConnectionLimit: at the limit, a new connection replaces one without
// calls. If all connections have a call in progress, the listener closes the
// new one.
func TestConnectionLimit(t *testing.T) {
	d := newDoor(t, 2, false)
	_, first := d.enter()
	first.slot.Begin()
	idle, _ := d.enter()
	served, second := d.enter() // replaces the idle one
	if !closed(idle) {
		t.Error("a connection without calls was kept at the limit")
	}
	second.slot.Begin()
	if !closed(d.dial("hello")) {
		t.Error("a third connection was accepted beside two with calls in progress")
	}
	second.slot.Begin()
	second.slot.End()
	second.slot.End()
	first.slot.Begin()
	_, third := d.enter()
	if !closed(served) {
		t.Error("a connection without calls in progress was kept")
	}
	third.slot.Begin()
	first.Close()
	first.Close() // is counted only once
	d.enter()
}

// TestNewcomersTakeNoSlot: a silent connection takes no slot. If there are too
// many silent connections, the oldest one of the busiest address is closed.
func TestNewcomersTakeNoSlot(t *testing.T) {
	d := newDoor(t, 2, false)
	_, first := d.enter()
	_, second := d.enter()
	oldest := d.dial("")
	d.until(func() bool { return d.lobby.held == 1 })
	var others []net.Conn
	for range d.lobby.limit {
		others = append(others, d.dial(""))
	}
	if !closed(oldest) {
		t.Error("the oldest silent connection was kept")
	}
	d.mu.Lock()
	if n := len(d.open); n != 2 || !first.slot.taken || !second.slot.taken {
		t.Errorf("%d connections have slots, want 2", n)
	}
	d.mu.Unlock()
	io.WriteString(others[0], "at last")
	<-d.came
}

// TestClosedNewcomer: a connection that its client has closed gets no slot.
func TestClosedNewcomer(t *testing.T) {
	d := newDoor(t, 1, true)
	_, first := d.enter() // has the turn
	d.dial("hello").Close()
	gone := d.dial("hello")
	d.until(func() bool { return d.lobby.waiting == 1 })
	gone.Close()
	d.until(func() bool { return d.lobby.held == 0 })
	first.slot.stop()
	if _, next := d.enter(); !next.slot.taken {
		t.Error("the next connection got no slot")
	}
}

// TestPeers: addresses take turns, and the address with the most newcomers
// loses one when the lobby is full.
func TestPeers(t *testing.T) {
	l := &lobby{limit: 6, peers: map[netip.Prefix]*peerQueue{}}
	one, other := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
	newcomer := func(from netip.Prefix) *boundedConn {
		return &boundedConn{from: from, leftLobby: make(chan struct{})}
	}
	enter := func(from netip.Prefix) *boundedConn {
		c := newcomer(from)
		if gone := l.enter(c); gone != nil {
			t.Fatal("a newcomer was dropped although there was room")
		}
		return c
	}
	first, second, third := enter(one), enter(one), enter(one)
	silent, rare := enter(other), enter(other)
	for _, c := range []*boundedConn{first, second, third, rare} {
		l.wait(c)
	}
	for i, want := range []*boundedConn{first, rare, second, third} {
		if got := l.next(); got != want {
			t.Errorf("wrong newcomer admitted as number %d", i+1)
		}
	}
	if l.waiting != 0 || len(l.inTurn) != 0 || l.held != 1 || !silent.inLobby {
		t.Errorf("%d are waiting, %d addresses have turns, %d are in the lobby", l.waiting, len(l.inTurn), l.held)
	}
	first, second = enter(one), enter(one)
	l.wait(first)
	for range 3 {
		enter(one)
	}
	if gone := l.enter(newcomer(other)); gone != second {
		t.Error("the dropped connection is not the silent one of the busiest address")
	}
	for c := l.evict(); c != nil; c = l.evict() {
	}
	if l.held != 0 || l.waiting != 0 || len(l.peers) != 0 {
		t.Errorf("%d are in the lobby, %d are waiting", l.held, l.waiting)
	}
}

// TestCalledKeepHalf: connections that have made a call before keep up to half
// of the slots when others arrive.
func TestCalledKeepHalf(t *testing.T) {
	d := newDoor(t, 4, false)
	open := func(asks bool) *boundedConn {
		_, c := d.enter()
		if asks {
			c.slot.Begin()
			c.slot.End()
		}
		return c
	}
	is := func(c *boundedConn) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.open[c]
	}
	asked, askedToo := open(true), open(true)
	for range 10 {
		open(false)
	}
	if !is(asked) || !is(askedToo) {
		t.Error("connections that have made calls do not keep two of four slots")
	}
	third := open(true)
	open(false)
	if is(asked) || !is(askedToo) || !is(third) {
		t.Error("the oldest of three connections that have made calls was kept")
	}
}

// step reads the next data of a client as a part of its handshake.
func (d *door) step(c *handshakeConn) chan error {
	read := make(chan error, 1)
	go func() { _, err := c.Read(make([]byte, 10)); read <- err }()
	return read
}

// TestHandshakesTakeTurns: a connection that waits for its client holds no
// turn, and one that continues its handshake goes before newcomers.
func TestHandshakesTakeTurns(t *testing.T) {
	d := newDoor(t, 4, true)
	d.turns.limit = 1
	client, raw := d.enter()
	one := &handshakeConn{Conn: raw, slot: SlotOf(raw)}
	if err := <-d.step(one); err != nil {
		t.Fatal(err)
	}
	clientToo := d.dial("hello")
	d.until(func() bool { return d.lobby.waiting == 1 })
	next := d.step(one) // waits for its client: the turn goes to the other one
	rawToo := <-d.came
	other := &handshakeConn{Conn: rawToo, slot: SlotOf(rawToo)}
	if err := <-d.step(other); err != nil {
		t.Fatal(err)
	}
	d.dial("hello")
	d.until(func() bool { return d.lobby.waiting == 1 })
	io.WriteString(client, "more")
	d.until(func() bool { return len(d.turns.queue) == 1 })
	nextToo := d.step(other)
	if err := <-next; err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.came:
		t.Fatal("a newcomer went before a handshake in progress")
	default:
	}
	one.end()
	<-d.came
	clientToo.Close()
	if err := <-nextToo; err == nil {
		t.Error("the read did not report the end of the connection")
	}
	other.end()
	if _, err := one.Write([]byte("done")); err != nil || d.turns.taken != 1 {
		t.Errorf("%d turns are taken, error %v", d.turns.taken, err)
	}
}

// TestClosedInTurn: a connection that is closed when its turn comes does no
// work.
func TestClosedInTurn(t *testing.T) {
	d := newDoor(t, 4, true)
	d.turns.limit = 1
	client, raw := d.enter()
	one := &handshakeConn{Conn: raw, slot: SlotOf(raw)}
	<-d.step(one)
	next := d.step(one)
	d.until(func() bool { return d.turns.taken == 0 })
	_, other := d.enter() // has the turn
	io.WriteString(client, "more")
	d.until(func() bool { return len(d.turns.queue) == 1 })
	one.Close()
	other.slot.stop()
	if err := <-next; !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading continued: %v", err)
	}
	if d.turns.taken != 0 {
		t.Error("the turn was kept")
	}
}

// TestWorkingKeepsSlot: a connection that the server is working for keeps its
// slot, and newcomers wait.
func TestWorkingKeepsSlot(t *testing.T) {
	d := newDoor(t, 1, true)
	d.turns.limit = 2
	_, raw := d.enter()
	d.dial("hello")
	d.until(func() bool { return d.lobby.waiting == 1 && d.alarm })
	if !raw.slot.taken {
		t.Error("it lost its slot while the server worked for it")
	}
	raw.slot.stop()
	<-d.came
	d.until(func() bool { return !raw.slot.taken })
}
