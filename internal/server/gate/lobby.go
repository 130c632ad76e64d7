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

// A silent connection costs a server little; its handshake costs most. New
// connections therefore wait in a lobby until they have sent data and there is
// a slot, and a turn, for them. Silent connections never block others, and a
// connection that leaves the lobby early costs nothing. Addresses take turns,
// so many connections from one address do not delay other addresses.

// maxRead is the number of bytes read ahead of a newcomer, to notice when its
// client disconnects.
const maxRead = 4 << 10

// A lobby holds the newcomers of a listener. The listener's lock guards it.
type lobby struct {
	limit   int
	held    int
	waiting int // newcomers that have sent data
	peers   map[netip.Prefix]*peerQueue
	inTurn  []netip.Prefix // addresses with waiting newcomers; the first one is next
}

// A peerQueue is the list of newcomers from one address. silent is in order of
// arrival, waiting in the order in which they sent data.
type peerQueue struct {
	silent  list.List // of *boundedConn
	waiting []*boundedConn
}

func (c *peerQueue) held() int { return c.silent.Len() + len(c.waiting) }

// enter adds a newcomer. If the lobby is full, another one is evicted.
func (l *lobby) enter(c *boundedConn) (evicted *boundedConn) {
	if l.held >= l.limit {
		evicted = l.evict()
	}
	own := l.peers[c.from]
	if own == nil {
		own = new(peerQueue)
		l.peers[c.from] = own
	}
	c.inLobby = true
	c.silent = own.silent.PushBack(c)
	l.held++
	return evicted
}

// evict drops one connection of the address with the most newcomers: the one
// silent longest, or else the one that came last. It returns nil if the lobby
// is empty.
func (l *lobby) evict() (evicted *boundedConn) {
	var largest *peerQueue
	for _, c := range l.peers {
		if largest == nil || c.held() > largest.held() {
			largest = c
		}
	}
	switch {
	case largest == nil:
		return nil
	case largest.silent.Len() > 0:
		evicted = largest.silent.Front().Value.(*boundedConn)
	default:
		evicted = largest.waiting[len(largest.waiting)-1]
	}
	l.leave(evicted)
	return evicted
}

// wait moves a newcomer that has sent data to the waiting ones.
func (l *lobby) wait(c *boundedConn) {
	own := l.peers[c.from]
	own.silent.Remove(c.silent)
	c.silent = nil
	if len(own.waiting) == 0 {
		l.inTurn = append(l.inTurn, c.from)
	}
	own.waiting = append(own.waiting, c)
	l.waiting++
}

// next removes and returns the newcomer that is admitted next.
func (l *lobby) next() *boundedConn {
	from := l.inTurn[0]
	c := l.peers[from].waiting[0]
	l.inTurn = append(l.inTurn[1:], from)
	l.leave(c)
	return c
}

// leave removes a newcomer from the lobby.
func (l *lobby) leave(c *boundedConn) {
	own := l.peers[c.from]
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
		delete(l.peers, c.from)
	}
	l.held--
	c.inLobby = false
	close(c.leftLobby)
}

// homeOf returns the address that a connection comes from; for IPv6 its /64
// prefix, which belongs to one machine.
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

// attend handles a newcomer until it has a slot or leaves. It keeps reading, so
// it notices when the client disconnects. The first read asks for one byte: a
// silent connection needs no larger buffer.
func (l *boundedListener) attend(c *boundedConn) {
	c.Conn.SetReadDeadline(time.Now().Add(greeting))
	for limit, waits := 1, true; waits; limit = maxRead {
		room := limit - len(c.buf)
		if room == 0 {
			<-c.leftLobby
		}
		at := len(c.buf)
		c.buf = slices.Grow(c.buf, room)[:at+room]
		n, err := c.Conn.Read(c.buf[at:])
		c.buf = c.buf[:at+n]
		waits = l.heard(c, err)
	}
	l.mu.Lock()
	taken := c.slot.taken
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

// heard records the result of a read from a newcomer, and reports whether it is
// still in the lobby.
func (l *boundedListener) heard(c *boundedConn, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.reading = false
	switch {
	case c.inLobby && err != nil: // disconnected, or silent for too long
		l.lobby.leave(c)
		c.Conn.Close()
	case c.silent != nil && len(c.buf) > 1:
		l.lobby.wait(c)
		l.admit()
	case c.slot.taken && err != nil && !errors.Is(err, os.ErrDeadlineExceeded): // disconnected as it was admitted
		c.leave()
		c.slot.pass()
		l.admit()
		c.Conn.Close()
	}
	c.reading = c.inLobby
	return c.reading
}
