package gate

import (
	"encoding/binary"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// A message is kept as far as it has come until it is whole, and a thousand
// clients may send a half of the largest each. gRPC bounds a message and not all
// of them, so the frames of the connections are looked at as they come: DATA
// frames of HTTP/2 hold messages with their length before them.

// incoming bounds the memory of requests that are coming or being answered, of
// all connections. Who begins a large message waits until there is room for the
// whole of it, in turn: were room given part by part, senders that all wait for
// the rest of theirs would keep each other, and everybody else, waiting for ever.
type incoming struct {
	most    int
	patient time.Duration // how long nothing may come of a message that others wait for

	mu      sync.Mutex
	held    int
	freed   chan struct{} // is closed when room or turns change, and made anew
	open    map[*message]bool
	waiting []*message // for room, in their turn
	log     *slog.Logger
}

// A message is the last large one of a stream: it is held until another begins
// or the server ends the stream.
type message struct {
	conn        *countedConn
	began, last time.Time // when it got room, and the last part of it came
	size        int       // of the room that it has
	ahead       int       // of size, for what has not come
	whole       bool      // all of it has come
	over        bool      // and all that the client says
	answered    bool      // the server has begun to answer
}

const (
	// freeMessage is the size of messages that are not counted: all calls that
	// there may be have room for theirs.
	freeMessage = 32 << 10
	// freeBacklog is what else may come of a stream, uncounted, until the server
	// says that it has taken something.
	freeBacklog = 96 << 10
	// streamWindow is what flow control lets come of a stream, without a message
	// that is larger. The server says so when a quarter of it is taken: in pieces
	// of 20 bytes that is no backlog yet.
	streamWindow = 64 << 10
	// slowest is how many times as long as nothing may come of a message it may
	// take as a whole, while others wait for room.
	slowest = 60
	// pieceSize is what keeping a piece takes beyond its bytes.
	pieceSize = 64
)

func newIncoming(most int, log *slog.Logger) *incoming {
	return &incoming{most: most, patient: time.Second, freed: make(chan struct{}), open: map[*message]bool{}, log: log}
}

// grow takes note of n more bytes of a message, for which there is room or is
// waited until there is.
func (in *incoming) grow(m *message, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	covered := min(n, m.ahead)
	m.ahead -= covered
	in.room(m, n-covered)
	m.last = time.Now()
}

// reserve makes room for n bytes of a message that are to come. What is larger
// than all that there may be is refused by gRPC, and takes none.
func (in *incoming) reserve(m *message, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n <= in.most {
		in.room(m, n)
		m.ahead = n
		m.began = time.Now()
		m.last = m.began
	}
}

// room gives a message n bytes more once there are so many, in turn. Meanwhile
// connections give way whose messages do not come. The caller holds the lock.
func (in *incoming) room(m *message, n int) {
	if n == 0 || !in.open[m] {
		return
	}
	began := time.Now()
	in.waiting = append(in.waiting, m)
	for in.open[m] && (in.waiting[0] != m || in.held+n > in.most) {
		var late <-chan time.Time
		if in.waiting[0] == m {
			if oldest, at := in.oldest(); oldest != nil {
				if rest := time.Until(at); rest > 0 {
					late = time.After(rest)
				} else {
					in.drop(oldest)
					if !oldest.taken() {
						in.log.Warn("a request that does not end gives way to others", "client", oldest.conn.RemoteAddr(), "bytes", oldest.size-oldest.ahead)
						go oldest.conn.Close()
					}
					continue
				}
			}
		}
		freed := in.freed
		in.mu.Unlock()
		select {
		case <-freed:
		case <-late:
		case <-m.conn.closed:
		}
		in.mu.Lock()
	}
	in.waiting = slices.DeleteFunc(in.waiting, func(other *message) bool { return other == m })
	if in.open[m] {
		m.size += n
		in.held += n
	}
	if len(in.waiting) > 0 { // it is another's turn
		in.changed()
	}
	m.conn.work.waited(time.Since(began))
}

// taken reports whether the server is done with a message: with a whole one of a stream
// that goes on, and is answered. It has asked for all that is larger than the window;
// what is smaller may wait for it uncounted.
func (m *message) taken() bool { return m.whole && m.answered && !m.over }

// oldest is the message with room that has to give way next, and when: where
// nothing came of it for a while, or it has been coming for much longer, or its
// answer has not ended for as long. One that waits for more room has to only where
// there is no other.
func (in *incoming) oldest() (oldest *message, at time.Time) {
	waits := false // the oldest
	for m := range in.open {
		if m.size == 0 {
			continue
		}
		until := m.last.Add(in.patient)
		switch most := m.began.Add(slowest * in.patient); {
		case m.whole && m.over:
			until = m.last.Add(slowest * in.patient)
		case most.Before(until):
			until = most
		}
		also := slices.Contains(in.waiting, m)
		if oldest == nil || waits && !also || waits == also && until.Before(at) {
			oldest, at, waits = m, until, also
		}
	}
	return oldest, at
}

// changed wakes those who wait. The caller holds the lock.
func (in *incoming) changed() {
	close(in.freed)
	in.freed = make(chan struct{})
}

// drop forgets a message. The caller holds the lock.
func (in *incoming) drop(m *message) {
	if in.open[m] {
		delete(in.open, m)
		in.held -= m.size
		in.changed()
	}
}

func (in *incoming) begin(c *countedConn, answered bool) *message {
	in.mu.Lock()
	defer in.mu.Unlock()
	m := &message{conn: c, began: time.Now(), answered: answered}
	in.open[m] = true
	return m
}

func (in *incoming) end(m *message) {
	if m != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.drop(m)
	}
}

// counting are credentials whose connections are counted, above what encrypts
// them.
type counting struct {
	credentials.TransportCredentials
	in   *incoming
	pace *pace
}

func (c *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	begun := &greeted{Conn: raw, place: PlaceOf(raw)}
	conn, info, err := c.TransportCredentials.ServerHandshake(begun)
	begun.end()
	if err != nil {
		return nil, nil, err
	}
	counted := &countedConn{Conn: conn, in: c.in, streams: map[uint32]*body{}, closed: make(chan struct{})}
	counted.place, counted.work.pace = begun.place, c.pace
	counted.received = frames{
		skip: len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), began: counted.began, heads: counted.headed, data: counted.came, ended: counted.over, reset: counted.givenUp,
	}
	counted.sent = frames{began: counted.answers, data: counted.says, ended: counted.done, reset: counted.done, grant: counted.took}
	return counted, known{info, &counted.work}, nil
}

func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.in, c.pace}
}

// A countedConn looks at the frames of a connection in both directions.
type countedConn struct {
	net.Conn
	in             *incoming
	received, sent frames
	place          *Place // that it takes, where there is a listener
	once           sync.Once
	closed         chan struct{}
	work           worker
	calls          int  // in what is worked on
	message        bool // so is a part of one

	mu      sync.Mutex
	streams map[uint32]*body
}

// A body is what has come of a stream's messages.
type body struct {
	head     [5]byte // of the message: flags and length
	heads    int     // bytes of it that have come
	left     int     // of the message
	large    *message
	answered bool     // the server has begun to
	said     bool     // and said something
	unread   int      // has come besides, since the server took something
	size     int      // of what has come before that
	backlog  *message // counts it, once it is much
}

func (c *countedConn) Read(b []byte) (int, error) {
	began := time.Now()
	if rest := c.work.worked(began, c.calls, c.calls == 0 && !c.message); rest > 0 {
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-c.closed:
		}
		timer.Stop()
		began = time.Now()
	}
	n, err := c.Conn.Read(b)
	c.work.got(began, time.Now(), n == len(b))
	c.calls, c.message = 0, false
	c.received.look(b[:n])
	if err != nil {
		c.work.gone()
	}
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.look(b[:n])
	return n, err
}

// Close closes the connection and forgets its messages.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		if c.place != nil {
			c.place.owe(c.work.left(time.Now()))
		}
		close(c.closed)
		c.work.gone()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.streams {
			c.in.end(s.large)
			c.in.end(s.backlog)
		}
		c.streams = nil
	})
	return err
}

// came takes what a client has sent of a stream's messages.
func (c *countedConn) came(stream uint32, data []byte) {
	s := c.stream(stream)
	if s == nil || len(data) == 0 {
		return
	}
	c.message = true
	c.mu.Lock()
	if !s.said {
		s.size += len(data)
	}
	c.mu.Unlock()
	small := len(data) < smallPiece
	piece := pieceSize
	if s.large == nil {
		c.keep(s, len(data)+pieceSize)
		piece = 0
	}
	for len(data) > 0 {
		if s.left == 0 {
			n := copy(s.head[s.heads:], data)
			s.heads += n
			data = data[n:]
			if s.heads == len(s.head) {
				s.heads, s.left = 0, int(binary.BigEndian.Uint32(s.head[1:]))
				if c.begin(s); s.large != nil {
					c.in.reserve(s.large, s.left+s.left/(4<<10)*pieceSize) // in pieces of 4 KiB
				}
			}
			continue
		}
		n := min(s.left, len(data))
		if s.large != nil {
			c.in.grow(s.large, n+piece)
			piece = 0
		}
		s.left -= n
		data = data[n:]
		if s.left == 0 && s.large != nil {
			c.in.mu.Lock()
			s.large.whole = true
			c.in.mu.Unlock()
		}
	}
	if small && (s.left > 0 || s.heads > 0) {
		c.work.idle += pieceWork
	}
}

// keep counts what has come of small messages, in one piece.
func (c *countedConn) keep(s *body, n int) {
	c.mu.Lock()
	if s.unread += n; s.unread > freeBacklog && s.backlog == nil && c.streams != nil {
		s.backlog, n = c.in.begin(c, s.answered), s.unread
	}
	backlog := s.backlog
	c.mu.Unlock()
	if backlog != nil {
		c.in.grow(backlog, n)
	}
}

// took is called when the server has taken what had come of a stream.
func (c *countedConn) took(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		c.in.end(s.backlog)
		s.unread, s.backlog = 0, nil
	}
}

// began notes that a client has begun a stream.
func (c *countedConn) began(id uint32) {
	c.calls++
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams != nil && c.streams[id] == nil {
		c.streams[id] = &body{}
		if c.place != nil {
			c.place.Begin()
		}
	}
}

// headed notes that the head of a call has n bytes more.
func (c *countedConn) headed(n int) {
	c.work.idle += time.Duration(max(0, n-freeHead)) * headWork
}

func (c *countedConn) stream(id uint32) *body {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// begin begins the next message of a stream.
func (c *countedConn) begin(s *body) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in.end(s.large)
	s.large = nil
	if s.left > freeMessage && c.streams != nil {
		s.large = c.in.begin(c, s.answered)
	}
}

// over is called when a client says no more on a stream.
func (c *countedConn) over(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil && s.large != nil {
		c.in.mu.Lock()
		defer c.in.mu.Unlock()
		s.large.over = true
	}
}

// answers is called when the server begins to answer.
func (c *countedConn) answers(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		s.answered = true
		if s.large != nil {
			c.in.mu.Lock()
			defer c.in.mu.Unlock()
			s.large.answered = true
		}
	}
}

// says is called when the server sends a part of a message.
func (c *countedConn) says(stream uint32, _ []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		s.said = true
	}
}

// done is called when the server has ended a stream, givenUp when its client has.
func (c *countedConn) done(stream uint32)    { c.end(stream, false) }
func (c *countedConn) givenUp(stream uint32) { c.end(stream, true) }

// end forgets a stream. What the server has said nothing to, and what a client does not
// want any more, was for nothing.
func (c *countedConn) end(stream uint32, unwanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		switch {
		case !s.said:
			c.work.owed.Add(int64(callWork + time.Duration(s.size)*byteWork))
		case unwanted:
			c.work.owed.Add(int64(callWork))
		}
		c.in.end(s.large)
		c.in.end(s.backlog)
		delete(c.streams, stream)
		if c.place != nil {
			c.place.End()
		}
	}
}
