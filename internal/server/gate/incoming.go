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

// gRPC buffers a message until it is complete. It limits the size of one
// message, not the sum over all connections, so a thousand clients could each
// send half of the largest message. The gate therefore reads the HTTP/2 frames
// of its connections as they arrive. DATA frames hold messages, each preceded
// by its length.
//
// The invariant: bytes buffered for large messages never exceed a limit. A
// message reserves room for its full length before its payload is read, and
// messages get room in order of arrival. If messages got room piece by piece,
// senders that all wait for room for their rest would block each other and
// all others forever. A message that stalls while others wait is dropped.

// incoming limits the memory of requests that are being received or answered,
// over all connections.
type incoming struct {
	limit        int
	stallTimeout time.Duration // how long a message may stall while others wait for room

	mu      sync.Mutex
	held    int
	freed   chan struct{} // closed and replaced whenever room or turns change
	open    map[*message]bool
	waiting []*message // for room, in order of arrival
	log     *slog.Logger
}

// A message is the last large message of a stream. It holds its room until the
// next message of the stream begins or the server ends the stream.
type message struct {
	conn        *countedConn
	began, last time.Time // when it got room, when its last part arrived
	size        int       // room it holds
	reserved    int       // part of size reserved for bytes still to come
	whole       bool      // all of it has arrived
	over        bool      // the client has ended its side of the stream
	answered    bool      // the server has started to respond
}

const (
	// freeMessage is the size up to which messages are not counted: there is
	// room for such a message of every call that MaxCalls allows.
	freeMessage = 32 << 10
	// freeBacklog is the number of bytes of a stream that may arrive uncounted,
	// besides its large message, before the server reads some of them.
	freeBacklog = 96 << 10
	// streamWindow is the HTTP/2 flow-control window of a stream. The server
	// updates the window when a quarter of it has been read. Even in pieces of
	// 20 bytes that stays below freeBacklog.
	streamWindow = 64 << 10
	// slowFactor limits the total time of a message to this many stall timeouts
	// while others wait for room.
	slowFactor = 60
	// pieceSize is the memory needed per buffered piece besides its bytes.
	pieceSize = 64
)

func newIncoming(limit int, log *slog.Logger) *incoming {
	return &incoming{limit: limit, stallTimeout: time.Second, freed: make(chan struct{}), open: map[*message]bool{}, log: log}
}

// grow counts n more received bytes of a message. It blocks until there is room
// for the bytes that were not reserved.
func (in *incoming) grow(m *message, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	covered := min(n, m.reserved)
	m.reserved -= covered
	in.room(m, n-covered)
	m.last = time.Now()
}

// reserve blocks until there is room for the n bytes of a message to come. gRPC
// rejects messages larger than the limit, so they reserve nothing.
func (in *incoming) reserve(m *message, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if n <= in.limit {
		in.room(m, n)
		m.reserved = n
		m.began = time.Now()
		m.last = m.began
	}
}

// room adds n bytes to a message once it is the message's turn and there is
// room. While it waits, it drops messages that have stalled. The caller holds
// the lock.
func (in *incoming) room(m *message, n int) {
	if n == 0 || !in.open[m] {
		return
	}
	began := time.Now()
	in.waiting = append(in.waiting, m)
	for in.open[m] && (in.waiting[0] != m || in.held+n > in.limit) {
		var late <-chan time.Time
		if in.waiting[0] == m {
			if oldest, at := in.oldest(); oldest != nil {
				if rest := time.Until(at); rest > 0 {
					late = time.After(rest)
				} else {
					in.drop(oldest)
					if !oldest.consumed() {
						in.log.Warn("closing a connection: its request has stalled and others wait for room", "client", oldest.conn.RemoteAddr(), "bytes", oldest.size-oldest.reserved)
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
	if len(in.waiting) > 0 { // the next message has its turn
		in.changed()
	}
	m.conn.work.waited(time.Since(began))
}

// consumed reports whether the server has read a message completely although
// its stream continues. A whole message that the server has started to respond to
// and whose stream is still open has been read, because the server has asked
// for more than fits into the window. A message within the window may still be
// unread; it is not counted.
func (m *message) consumed() bool { return m.whole && m.answered && !m.over }

// oldest returns the message that is dropped next if others need room, and
// when. A message is due once it has stalled for stallTimeout or has taken
// slowFactor times as long in total; a complete request is due once its
// response has taken that long. Messages that wait for room themselves are
// chosen only if there is no other.
func (in *incoming) oldest() (oldest *message, at time.Time) {
	waits := false // whether oldest waits for room
	for m := range in.open {
		if m.size == 0 {
			continue
		}
		until := m.last.Add(in.stallTimeout)
		switch limit := m.began.Add(slowFactor * in.stallTimeout); {
		case m.whole && m.over:
			until = m.last.Add(slowFactor * in.stallTimeout)
		case limit.Before(until):
			until = limit
		}
		also := slices.Contains(in.waiting, m)
		if oldest == nil || waits && !also || waits == also && until.Before(at) {
			oldest, at, waits = m, until, also
		}
	}
	return oldest, at
}

// changed wakes all waiters. The caller holds the lock.
func (in *incoming) changed() {
	close(in.freed)
	in.freed = make(chan struct{})
}

// drop removes a message and frees its room. The caller holds the lock.
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

// counting wraps transport credentials. Its connections count the decrypted
// bytes.
type counting struct {
	credentials.TransportCredentials
	in   *incoming
	pace *pace
}

func (c *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	handshaking := &handshakeConn{Conn: raw, slot: SlotOf(raw)}
	conn, info, err := c.TransportCredentials.ServerHandshake(handshaking)
	handshaking.end()
	if err != nil {
		return nil, nil, err
	}
	counted := &countedConn{Conn: conn, in: c.in, streams: map[uint32]*streamState{}, closed: make(chan struct{})}
	counted.slot, counted.work.pace = handshaking.slot, c.pace
	counted.received = frames{
		skip: len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), onHeaders: counted.streamBegan, onHeaderBytes: counted.headerBytes, onData: counted.dataReceived, onEnd: counted.clientDone, onReset: counted.streamReset,
	}
	counted.sent = frames{onHeaders: counted.responseBegan, onData: counted.responseData, onEnd: counted.serverDone, onReset: counted.serverDone, onWindowUpdate: counted.windowUpdated}
	return counted, workerInfo{info, &counted.work}, nil
}

func (c *counting) Clone() credentials.TransportCredentials {
	return &counting{c.TransportCredentials.Clone(), c.in, c.pace}
}

// A countedConn parses the HTTP/2 frames of a connection in both directions.
type countedConn struct {
	net.Conn
	in             *incoming
	received, sent frames
	slot           *Slot // nil: the listener is not bounded
	once           sync.Once
	closed         chan struct{}
	work           worker
	calls          int  // calls that arrived with the last read
	message        bool // the last read held a part of a message

	mu      sync.Mutex
	streams map[uint32]*streamState
}

// A streamState describes the data received on a stream.
type streamState struct {
	head     [5]byte // message prefix: compression flag and length
	heads    int     // bytes of head received
	left     int     // bytes of the message to come
	large    *message
	answered bool     // the server has started to respond
	dataSent bool     // the server has sent data
	unread   int      // bytes received besides the large message since the server last read
	size     int      // bytes received before the server sent data
	backlog  *message // counts unread bytes once they exceed freeBacklog
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
	c.received.parse(b[:n])
	if err != nil {
		c.work.idle()
	}
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.parse(b[:n])
	return n, err
}

// Close closes the connection and drops its messages.
func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		if c.slot != nil {
			c.slot.charge(c.work.unpaidWork(time.Now()))
		}
		close(c.closed)
		c.work.idle()
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

// dataReceived handles data that the client sent on a stream.
func (c *countedConn) dataReceived(stream uint32, data []byte) {
	s := c.stream(stream)
	if s == nil || len(data) == 0 {
		return
	}
	c.message = true
	c.mu.Lock()
	if !s.dataSent {
		s.size += len(data)
	}
	c.mu.Unlock()
	small := len(data) < smallPiece
	piece := pieceSize
	if s.large == nil {
		c.countSmall(s, len(data)+pieceSize)
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
		c.work.waste += pieceWork
	}
}

// countSmall counts n bytes, one piece, of a stream's small messages.
func (c *countedConn) countSmall(s *streamState, n int) {
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

// windowUpdated is called when the server has read the received data of a
// stream.
func (c *countedConn) windowUpdated(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		c.in.end(s.backlog)
		s.unread, s.backlog = 0, nil
	}
}

// streamBegan is called when the client opens a stream.
func (c *countedConn) streamBegan(id uint32) {
	c.calls++
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams != nil && c.streams[id] == nil {
		c.streams[id] = &streamState{}
		if c.slot != nil {
			c.slot.Begin()
		}
	}
}

// headerBytes charges n bytes of a call's headers.
func (c *countedConn) headerBytes(n int) {
	c.work.waste += time.Duration(max(0, n-freeHead)) * headWork
}

func (c *countedConn) stream(id uint32) *streamState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// begin begins the next message of a stream.
func (c *countedConn) begin(s *streamState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in.end(s.large)
	s.large = nil
	if s.left > freeMessage && c.streams != nil {
		s.large = c.in.begin(c, s.answered)
	}
}

// clientDone is called when the client has ended its side of a stream.
func (c *countedConn) clientDone(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil && s.large != nil {
		c.in.mu.Lock()
		defer c.in.mu.Unlock()
		s.large.over = true
	}
}

// responseBegan is called when the server begins to respond.
func (c *countedConn) responseBegan(stream uint32) {
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

// responseData is called when the server sends a part of a message.
func (c *countedConn) responseData(stream uint32, _ []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		s.dataSent = true
	}
}

// serverDone is called when the server has ended a stream, streamReset when the
// client has.
func (c *countedConn) serverDone(stream uint32)  { c.end(stream, false) }
func (c *countedConn) streamReset(stream uint32) { c.end(stream, true) }

// end removes a stream. The work was wasted if the server has sent no data or
// the client canceled the call; the connection is charged for it.
func (c *countedConn) end(stream uint32, unwanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		switch {
		case !s.dataSent:
			c.work.charged.Add(int64(callWork + time.Duration(s.size)*byteWork))
		case unwanted:
			c.work.charged.Add(int64(callWork))
		}
		c.in.end(s.large)
		c.in.end(s.backlog)
		delete(c.streams, stream)
		if c.slot != nil {
			c.slot.End()
		}
	}
}
