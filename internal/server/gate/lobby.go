package gate

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"
)

// A connection costs a server little until it has said something, and its handshake
// costs it most. So newcomers wait in a lobby: those that say nothing keep nobody out of
// it, and those that have said something go on one after the other, as turns and places
// become free. Who goes meanwhile costs nothing, and addresses take turns: a crowd at one
// of them makes nobody wait at another.

// maxSaid is how much is read of what a newcomer says, to see whether it goes.
const maxSaid = 4 << 10

// A lobby holds the newcomers of a listener, whose lock guards it.
type lobby struct {
	most    int
	held    int
	waiting int // those that have said something
	crowds  map[netip.Prefix]*crowd
	inTurn  []netip.Prefix // addresses of those that wait
}

// A crowd are the newcomers of one address, in the order in which they came, or said
// something.
type crowd struct {
	silent  list.List // of *boundedConn
	waiting []*boundedConn
}

func (c *crowd) held() int { return c.silent.Len() + len(c.waiting) }

// enter lets a newcomer in. If there is no room, another goes.
func (l *lobby) enter(c *boundedConn) (gone *boundedConn) {
	if l.held >= l.most {
		gone = l.evict()
	}
	own := l.crowds[c.from]
	if own == nil {
		own = new(crowd)
		l.crowds[c.from] = own
	}
	c.here = true
	c.silent = own.silent.PushBack(c)
	l.held++
	return gone
}

// evict has one of the largest crowd go: who has been silent for longest, or else who
// came last. Without newcomers it is nil.
func (l *lobby) evict() (gone *boundedConn) {
	var largest *crowd
	for _, c := range l.crowds {
		if largest == nil || c.held() > largest.held() {
			largest = c
		}
	}
	switch {
	case largest == nil:
		return nil
	case largest.silent.Len() > 0:
		gone = largest.silent.Front().Value.(*boundedConn)
	default:
		gone = largest.waiting[len(largest.waiting)-1]
	}
	l.leave(gone)
	return gone
}

// wait notes that a newcomer has said something.
func (l *lobby) wait(c *boundedConn) {
	own := l.crowds[c.from]
	own.silent.Remove(c.silent)
	c.silent = nil
	if len(own.waiting) == 0 {
		l.inTurn = append(l.inTurn, c.from)
	}
	own.waiting = append(own.waiting, c)
	l.waiting++
}

// next has the newcomer leave that goes on next.
func (l *lobby) next() *boundedConn {
	from := l.inTurn[0]
	c := l.crowds[from].waiting[0]
	l.inTurn = append(l.inTurn[1:], from)
	l.leave(c)
	return c
}

// leave has a newcomer go, wherever to.
func (l *lobby) leave(c *boundedConn) {
	own := l.crowds[c.from]
	if c.silent != nil {
		own.silent.Remove(c.silent)
		c.silent = nil
	} else {
		at := slices.Index(own.waiting, c)
		own.waiting = slices.Delete(own.waiting, at, at+1)
		l.waiting--
		if len(own.waiting) == 0 {
			at := slices.Index(l.inTurn, c.from)
			l.inTurn = slices.Delete(l.inTurn, at, at+1)
		}
	}
	if own.held() == 0 {
		delete(l.crowds, c.from)
	}
	l.held--
	c.here = false
	close(c.left)
}

// homeOf is where a connection comes from: an address, or what IPv6 gives to one
// machine.
func homeOf(c net.Conn) netip.Prefix {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr, bits := tcp.AddrPort().Addr().Unmap(), 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.WithZone("").Prefix(bits)
	return p
}

// attend waits until a newcomer has said something and has a place. It reads on
// meanwhile: for who goes nothing is to be done. First it asks for a byte: who is silent
// costs no more room.
func (l *boundedListener) attend(c *boundedConn) {
	c.Conn.SetReadDeadline(time.Now().Add(greeting))
	for most, waits := 1, true; waits; most = maxSaid {
		room := most - len(c.said)
		if room == 0 {
			<-c.left
		}
		at := len(c.said)
		c.said = slices.Grow(c.said, room)[:at+room]
		n, err := c.Conn.Read(c.said[at:])
		c.said = c.said[:at+n]
		waits = l.heard(c, err)
	}
	l.mu.Lock()
	taken := c.place.taken
	l.mu.Unlock()
	if !taken {
		return
	}
	c.Conn.SetReadDeadline(time.Time{})
	select {
	case l.accepted <- c:
	case <-l.closed:
		c.Close()
	}
}

// heard takes note of what a newcomer has said, or why it says nothing. It reports
// whether it is still one.
func (l *boundedListener) heard(c *boundedConn, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.reads = false
	switch {
	case c.here && err != nil: // it goes, or has been silent for too long
		l.lobby.leave(c)
		c.Conn.Close()
	case c.silent != nil && len(c.said) > 1:
		l.lobby.wait(c)
		l.admit()
	case c.place.taken && err != nil && !errors.Is(err, os.ErrDeadlineExceeded): // it goes as it is admitted
		c.leave()
		c.place.pass()
		l.admit()
		c.Conn.Close()
	}
	c.reads = c.here
	return c.reads
}
