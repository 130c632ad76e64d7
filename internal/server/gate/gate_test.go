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

// A door is a bounded listener and what it has accepted.
type door struct {
	*testing.T
	*boundedListener
	came chan *boundedConn
}

// newDoor opens one. Moments are no matter of the clock: they are over at once.
func newDoor(t *testing.T, most int, handshakes bool) *door {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t, Bound(inner, most, handshakes, slog.New(slog.DiscardHandler)).(*boundedListener), make(chan *boundedConn)}
	d.moment = 0
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

// dial is a client that says something.
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

// enter is a client that says something and gets a place.
func (d *door) enter() (client net.Conn, served *boundedConn) {
	d.Helper()
	return d.dial("hello"), <-d.came
}

// gone reports whether the other side has closed a connection.
func gone(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1))
	return err != nil
}

// until waits for something of the listener's.
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

// TestConnectionLimit: for a connection beyond the limit one without a call gives way,
// or it is closed where all have one in progress.
func TestConnectionLimit(t *testing.T) {
	d := newDoor(t, 2, false)
	_, first := d.enter()
	first.place.Begin()
	idle, _ := d.enter()
	served, second := d.enter() // in place of the idle one
	if !gone(idle) {
		t.Error("a connection without any call is kept where there is no room")
	}
	second.place.Begin()
	if !gone(d.dial("hello")) {
		t.Error("a third connection is kept beside two with calls in progress")
	}
	second.place.Begin()
	second.place.End()
	second.place.End()
	first.place.Begin()
	_, third := d.enter()
	if !gone(served) {
		t.Error("the connection whose calls are over is kept")
	}
	third.place.Begin()
	first.Close()
	first.Close() // is counted once
	d.enter()
}

// TestNewcomersTakeNoPlace: who says nothing takes none, and goes where there is no room
// for more such: the first to come of the same address.
func TestNewcomersTakeNoPlace(t *testing.T) {
	d := newDoor(t, 2, false)
	_, first := d.enter()
	_, second := d.enter()
	oldest := d.dial("")
	d.until(func() bool { return d.lobby.held == 1 })
	var others []net.Conn
	for range d.lobby.most {
		others = append(others, d.dial(""))
	}
	if !gone(oldest) {
		t.Error("the one goes on waiting that came first")
	}
	d.mu.Lock()
	if n := len(d.open); n != 2 || !first.place.taken || !second.place.taken {
		t.Errorf("%d have places", n)
	}
	d.mu.Unlock()
	io.WriteString(others[0], "at last")
	<-d.came
}

// TestWhoGoesWaitsForNothing: who is gone does not come to a place.
func TestWhoGoesWaitsForNothing(t *testing.T) {
	d := newDoor(t, 1, true)
	_, first := d.enter() // has the turn
	d.dial("hello").Close()
	gone := d.dial("hello")
	d.until(func() bool { return d.lobby.waiting == 1 })
	gone.Close()
	d.until(func() bool { return d.lobby.held == 0 })
	first.place.stop()
	if _, next := d.enter(); !next.place.taken {
		t.Error("there is no place for who comes next")
	}
}

// TestCrowds: of those that wait addresses take turns, and the largest crowd gives way.
func TestCrowds(t *testing.T) {
	l := &lobby{most: 6, crowds: map[netip.Prefix]*crowd{}}
	one, other := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")
	newcomer := func(from netip.Prefix) *boundedConn {
		return &boundedConn{from: from, left: make(chan struct{})}
	}
	enter := func(from netip.Prefix) *boundedConn {
		c := newcomer(from)
		if gone := l.enter(c); gone != nil {
			t.Fatal("there is room, and somebody goes")
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
			t.Errorf("it is not the right one that goes on as number %d", i+1)
		}
	}
	if l.waiting != 0 || len(l.inTurn) != 0 || l.held != 1 || !silent.here {
		t.Errorf("%d wait, %d addresses have turns, %d are left", l.waiting, len(l.inTurn), l.held)
	}
	first, second = enter(one), enter(one)
	l.wait(first)
	for range 3 {
		enter(one)
	}
	if gone := l.enter(newcomer(other)); gone != second {
		t.Error("it is not the silent one of the crowd that goes")
	}
	for c := l.evict(); c != nil; c = l.evict() {
	}
	if l.held != 0 || l.waiting != 0 || len(l.crowds) != 0 {
		t.Errorf("%d are left, %d wait", l.held, l.waiting)
	}
}

// TestWhoHasAskedKeepsHalf: those that have asked before stay where others come and
// go, up to half of the room.
func TestWhoHasAskedKeepsHalf(t *testing.T) {
	d := newDoor(t, 4, false)
	open := func(asks bool) *boundedConn {
		_, c := d.enter()
		if asks {
			c.place.Begin()
			c.place.End()
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
		t.Error("two of four places are not those of who has asked")
	}
	third := open(true)
	open(false)
	if is(asked) || !is(askedToo) || !is(third) {
		t.Error("of three that have asked the first does not give way")
	}
}

// A step has a served connection read what its client says next, as a part of its
// handshake.
func (d *door) step(c *greeted) chan error {
	read := make(chan error, 1)
	go func() { _, err := c.Read(make([]byte, 10)); read <- err }()
	return read
}

// TestHandshakesTakeTurns: who waits for a client has no turn, and who goes on with a
// handshake has one before newcomers.
func TestHandshakesTakeTurns(t *testing.T) {
	d := newDoor(t, 4, true)
	d.turns.most = 1
	client, raw := d.enter()
	one := &greeted{Conn: raw, place: PlaceOf(raw)}
	if err := <-d.step(one); err != nil {
		t.Fatal(err)
	}
	clientToo := d.dial("hello")
	d.until(func() bool { return d.lobby.waiting == 1 })
	next := d.step(one) // waits for its client: the turn goes to the other
	rawToo := <-d.came
	other := &greeted{Conn: rawToo, place: PlaceOf(rawToo)}
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
		t.Fatal("a newcomer goes before who has begun")
	default:
	}
	one.end()
	<-d.came
	clientToo.Close()
	if err := <-nextToo; err == nil {
		t.Error("the end is not told")
	}
	other.end()
	if _, err := one.Write([]byte("done")); err != nil || d.turns.taken != 1 {
		t.Errorf("%d turns are taken, %v", d.turns.taken, err)
	}
}

// TestClosedInTurn: for who is gone when its turn comes nothing is done.
func TestClosedInTurn(t *testing.T) {
	d := newDoor(t, 4, true)
	d.turns.most = 1
	client, raw := d.enter()
	one := &greeted{Conn: raw, place: PlaceOf(raw)}
	<-d.step(one)
	next := d.step(one)
	d.until(func() bool { return d.turns.taken == 0 })
	_, other := d.enter() // has the turn
	io.WriteString(client, "more")
	d.until(func() bool { return len(d.turns.queue) == 1 })
	one.Close()
	other.place.stop()
	if err := <-next; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it reads on: %v", err)
	}
	if d.turns.taken != 0 {
		t.Error("the turn is kept")
	}
}

// TestWhoWaitsForTheServerStays: a place is not taken from who does its part of a
// handshake, and newcomers wait.
func TestWhoWaitsForTheServerStays(t *testing.T) {
	d := newDoor(t, 1, true)
	d.turns.most = 2
	_, raw := d.enter()
	d.dial("hello")
	d.until(func() bool { return d.lobby.waiting == 1 && d.alarm })
	if !raw.place.taken {
		t.Error("it gives its place away while the server works for it")
	}
	raw.place.stop()
	<-d.came
	d.until(func() bool { return !raw.place.taken })
}
