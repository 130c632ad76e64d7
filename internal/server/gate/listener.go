package gate

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A boundedListener limits the number of open connections. At the limit, a new
// connection replaces one without calls in progress. Connections that have made no
// call are replaced first, unless connections with calls hold more than half of the
// limit. Among these, the address with the most connections loses the connection
// that has been idle longest. If all of them wait for the server's part of a TLS
// handshake, it loses the one that has waited longest. If every connection has a
// call in progress, the listener closes the new one.
//
// If the process runs out of file descriptors, the listener closes a connection
// that has made no call.
type boundedListener struct {
	net.Listener
	limit int
	log   *slog.Logger
	turns *turns // of handshakes; nil: there are none

	mu    sync.Mutex
	open  map[*Slot]bool
	peers map[netip.Prefix]*int // open connections by address
	count uint64                // advances whenever a connection opens or becomes idle
	full  bool                  // the limit has been reported
}

// Bound returns a listener with at most limit open connections. If handshakes is
// set, at most half of the processors work on handshakes at a time, so that a
// flood of handshakes leaves processors to established connections. The caller
// reports the end of a handshake with [Slot.EndHandshake].
func Bound(l net.Listener, limit int, handshakes bool, log *slog.Logger) net.Listener {
	b := &boundedListener{Listener: l, limit: limit, log: log, open: map[*Slot]bool{}, peers: map[netip.Prefix]*int{}}
	if handshakes {
		b.turns = newTurns(max(1, runtime.GOMAXPROCS(0)/2))
	}
	return b
}

// Accept waits for a connection that gets a slot.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		l.mu.Lock()
		if err != nil {
			silent, _ := l.idlest()
			l.mu.Unlock()
			if silent == nil || errors.Is(err, net.ErrClosed) {
				return nil, err
			}
			silent.conn.Close()
			continue
		}
		evicted, ok := l.makeRoom()
		c := &boundedConn{Conn: raw}
		if ok {
			l.enter(c)
		}
		l.mu.Unlock()
		if evicted != nil {
			evicted.Close()
		}
		if ok {
			return c, nil
		}
		raw.Close()
	}
}

// makeRoom frees a slot if all are taken, and reports whether there is a free
// one. The caller holds the lock and closes the evicted connection.
func (l *boundedListener) makeRoom() (evicted net.Conn, ok bool) {
	if len(l.open) < l.limit {
		return nil, true
	}
	if !l.full {
		l.full = true
		l.log.Warn("connection limit reached", "address", l.Addr(), "open", l.limit)
	}
	next, idle := l.idlest()
	if next == nil {
		next = idle
	}
	if next == nil {
		return nil, false
	}
	next.leave()
	return next.conn, true
}

// idlest returns the connection that is replaced next, or nil, among those that
// have made no call and among those without calls in progress. silent is nil if
// connections with calls hold more than half of the limit. The caller holds the
// lock.
func (l *boundedListener) idlest() (silent, idle *Slot) {
	before := func(s, than *Slot) bool {
		switch {
		case than == nil:
			return true
		case *s.peers != *than.peers:
			return *s.peers > *than.peers
		case s.working != than.working:
			return than.working
		}
		return s.since < than.since
	}
	idles := 0
	for s := range l.open {
		switch {
		case s.calls > 0:
		case !s.called:
			if before(s, silent) {
				silent = s
			}
		default:
			if idles++; before(s, idle) {
				idle = s
			}
		}
	}
	if idles > l.limit/2 {
		silent = nil
	}
	return silent, idle
}

// enter gives a slot to a connection. The caller holds the lock.
func (l *boundedListener) enter(c *boundedConn) {
	c.slot.listener, c.slot.conn, c.slot.from = l, c.Conn, homeOf(c.Conn)
	c.slot.becomeIdle()
	l.open[&c.slot] = true
	if l.peers[c.slot.from] == nil {
		l.peers[c.slot.from] = new(int)
	}
	c.slot.peers = l.peers[c.slot.from]
	*c.slot.peers++
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

// A boundedConn is a connection of a boundedListener.
type boundedConn struct {
	net.Conn
	slot Slot
}

// Read reads from the client. During a handshake it gives the turn back before
// it blocks and takes another one when data arrives.
func (c *boundedConn) Read(b []byte) (int, error) {
	s := &c.slot
	if s.listener.turns == nil || s.established.Load() {
		return c.Conn.Read(b)
	}
	s.giveTurn()
	n, err := c.Conn.Read(b)
	if n > 0 {
		s.setWorking(true)
		s.listener.turns.take(s.from, s.begun)
		s.begun = true
		s.turn.Store(time.Now().UnixNano())
		if hungUp(c.Conn) { // while it waited
			s.giveTurn()
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// Close closes the connection and frees its slot.
func (c *boundedConn) Close() error {
	c.slot.EndHandshake()
	c.slot.listener.mu.Lock()
	c.slot.leave()
	c.slot.listener.mu.Unlock()
	return c.Conn.Close()
}

// A Slot is the share of a connection in a bounded listener. The listener's
// lock guards it.
type Slot struct {
	listener *boundedListener
	conn     net.Conn
	from     netip.Prefix
	peers    *int // open connections of this address
	calls    int  // calls in progress
	called   bool
	begun    bool   // it has had a turn; only the goroutine that reads uses this
	working  bool   // the client has done its part of the handshake, and the server has not
	since    uint64 // when it last became idle, or working, by the listener's count

	established atomic.Bool  // the handshake is over
	turn        atomic.Int64 // when it got its turn, or 0
}

// EndHandshake marks the handshake as finished.
func (s *Slot) EndHandshake() {
	s.established.Store(true)
	s.giveTurn()
}

// giveTurn gives the turn back, if the connection has one.
func (s *Slot) giveTurn() {
	if began := s.turn.Swap(0); began != 0 {
		s.listener.turns.give()
		if l, ok := s.listener.Listener.(*pacedListener); ok {
			l.chargeHandshake(time.Duration(time.Now().UnixNano() - began))
		}
		s.setWorking(false)
	}
}

// setWorking records whether the client waits for the server's part of the handshake.
func (s *Slot) setWorking(working bool) {
	s.listener.mu.Lock()
	defer s.listener.mu.Unlock()
	s.working = working
	s.becomeIdle()
}

// charge adds work to the debt of the listener, which pauses before it accepts
// other connections.
func (s *Slot) charge(d time.Duration) {
	if l, ok := s.listener.Listener.(*pacedListener); ok {
		l.charge(d)
	}
}

// SlotOf returns the slot of a connection, or nil if its listener is not
// bounded.
func SlotOf(c net.Conn) *Slot {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if c, ok := c.(*boundedConn); ok {
		return &c.slot
	}
	return nil
}

// leave frees the slot. The caller holds the lock.
func (s *Slot) leave() {
	l := s.listener
	if !l.open[s] {
		return
	}
	delete(l.open, s)
	if *s.peers--; *s.peers == 0 {
		delete(l.peers, s.from)
	}
	l.full = false
}

// becomeIdle sets the time from which the connection is idle.
func (s *Slot) becomeIdle() {
	s.listener.count++
	s.since = s.listener.count
}

// Begin counts a new call.
func (s *Slot) Begin() {
	s.listener.mu.Lock()
	defer s.listener.mu.Unlock()
	s.calls++
	s.called = true
}

// End counts a call that has ended.
func (s *Slot) End() {
	s.listener.mu.Lock()
	defer s.listener.mu.Unlock()
	if s.calls--; s.calls == 0 {
		s.becomeIdle()
	}
}

// turns is a semaphore. Addresses that wait for it take turns, so many
// connections from one address do not delay others.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[netip.Prefix][]chan struct{}
	order   []netip.Prefix // of waiting addresses; the first one is next
}

func newTurns(n int) *turns { return &turns{free: n, waiting: map[netip.Prefix][]chan struct{}{}} }

// take waits for a turn. A connection in the middle of a handshake comes before
// connections of its address that begin one: otherwise a flood of new connections
// could keep any handshake from ending.
func (t *turns) take(from netip.Prefix, goesOn bool) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	if t.waiting[from] == nil {
		t.order = append(t.order, from)
	}
	if goesOn {
		t.waiting[from] = slices.Insert(t.waiting[from], 0, turn)
	} else {
		t.waiting[from] = append(t.waiting[from], turn)
	}
	t.mu.Unlock()
	<-turn
}

// give passes a turn on.
func (t *turns) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.free++
		return
	}
	from := t.order[0]
	list := t.waiting[from]
	close(list[0])
	if t.order = t.order[1:]; len(list) == 1 {
		delete(t.waiting, from)
		return
	}
	t.waiting[from] = list[1:]
	t.order = append(t.order, from)
}

// Every accepted connection costs the server something. While packets wait for a
// processor, the listener pauses in proportion to that work: a flood of new
// connections uses a fraction of one processor. Other newcomers wait in the
// kernel's queue, and established connections are not delayed. A closed connection
// adds the work for which it has not yet paused; otherwise a client could escape
// its pauses by reconnecting. TLS handshakes count too. They cost the most, so the
// listener pauses for them even if no packets wait.

const (
	// arrivalWork is the assumed cost of accepting and closing a connection.
	arrivalWork = 80 * time.Microsecond
	// arrivalPauseFactor is the ratio of the listener's pause to its work.
	arrivalPauseFactor = 8
	// handshakePauseFactor is the ratio of the pause to the work of handshakes while
	// no packets wait: calls of established connections need processors too.
	handshakePauseFactor = 4
	// maxCharge bounds the work that one connection charges to the listener.
	maxCharge = time.Millisecond
)

// Paced returns a listener that limits the rate of accepted connections. It does so
// if packetsWaiting returns true or handshakes take long, and more than a few
// connections arrive at once.
func Paced(l net.Listener, packetsWaiting func() bool) net.Listener {
	return &pacedListener{Listener: l, packetsWaiting: packetsWaiting, closed: make(chan struct{})}
}

type pacedListener struct {
	net.Listener
	packetsWaiting func() bool
	debt           atomic.Int64 // work since the last pause
	handshakes     atomic.Int64 // the part of debt for handshakes
	end            sync.Once
	closed         chan struct{}
}

// Accept waits for a connection, after a pause if necessary.
func (l *pacedListener) Accept() (net.Conn, error) {
	pause := rest(&l.handshakes, handshakePauseFactor)
	if l.packetsWaiting() {
		pause = max(pause, rest(&l.debt, arrivalPauseFactor))
	} else {
		l.debt.Store(0)
	}
	if pause > 0 {
		sleep(pause, l.closed)
	}
	began := time.Now()
	c, err := l.Listener.Accept()
	if err == nil {
		l.charge(arrivalWork)
	}
	waited := time.Since(began)
	pay(&l.debt, waited/arrivalPauseFactor)
	pay(&l.handshakes, waited/handshakePauseFactor)
	return c, err
}

// rest returns the pause for a debt, and reduces the debt by it.
func rest(debt *atomic.Int64, factor time.Duration) time.Duration {
	owed := time.Duration(debt.Load())
	if owed < busyFrom {
		return 0
	}
	pause := min(owed*factor, maxPause)
	debt.Add(-int64(pause / factor))
	return pause
}

// charge adds work to the listener's debt.
func (l *pacedListener) charge(d time.Duration) { l.debt.Add(int64(min(d, maxCharge))) }

// chargeHandshake adds the work of a handshake to the listener's debts.
func (l *pacedListener) chargeHandshake(d time.Duration) {
	l.charge(d)
	l.handshakes.Add(int64(min(d, maxCharge)))
}

// Close closes the listener and ends its pause.
func (l *pacedListener) Close() error {
	l.end.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
