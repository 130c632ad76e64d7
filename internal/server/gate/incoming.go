package gate

import (
	"log/slog"
	"slices"
	"sync"
	"time"
)

// gRPC buffers a message until it is complete. It limits the size of one
// message, not the sum over all connections, so a thousand clients could each
// send half of the largest message.
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
	log          *slog.Logger

	mu      sync.Mutex
	held    int
	open    map[*stream]bool // streams that hold room
	waiting []*stream        // for room, in order of arrival
	freed   chan struct{}    // closed and replaced whenever room or turns change
}

// A stream describes the data received on a stream of HTTP/2. The lock of
// incoming guards the fields below cost.
type stream struct {
	conn  *conn
	head  [5]byte // message prefix: compression flag and length
	heads int     // bytes of head received
	left  int     // bytes of the message to come

	cost, size  int       // memory of the data not read by the server; bytes received
	room        int       // room that the stream holds
	began, last time.Time // when the large message began, when the last data arrived
	large       bool      // the last message is large; it counts until the next one begins
	whole       bool      // all of it has arrived
	over        bool      // the client has ended its side of the stream
	answered    bool      // the server has started to respond
	dataSent    bool      // the server has sent data
	dropped     bool      // the stream has ended
}

const (
	// freeMessage is the size up to which messages are not counted: there is
	// room for such a message of every call that MaxCalls allows.
	freeMessage = 32 << 10
	// freeBacklog is the memory of unread data of a stream that is not counted.
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
	return &incoming{limit: limit, stallTimeout: time.Second, freed: make(chan struct{}), open: map[*stream]bool{}, log: log}
}

// update changes a stream.
func (in *incoming) update(s *stream, change func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	change()
}

// add counts a piece of n bytes. It blocks until there is room for it.
func (in *incoming) add(s *stream, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.size += n
	s.cost += n + pieceSize
	s.last = time.Now()
	if s.large || s.cost > freeBacklog {
		in.grow(s, s.cost)
	}
}

// begin starts the next message of a stream. The message has n bytes; has of them
// are already counted. For a large message, begin blocks until there is room. gRPC
// rejects messages above the limit, so they reserve nothing.
func (in *incoming) begin(s *stream, n, has int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.large { // the server has read the previous message, because it did not fit into the window
		s.large, s.cost = false, has+pieceSize
		in.give(s)
	}
	if n > freeMessage && n <= in.limit {
		s.large, s.whole, s.began = true, false, time.Now()
		in.grow(s, s.cost+max(0, n-has)+n/(4<<10)*pieceSize) // in pieces of 4 KiB
	}
}

// read records that the server has read the received data of a stream. For a large
// message, this only means that the server has requested all of it.
func (in *incoming) read(s *stream) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !s.large {
		s.cost = 0
		in.give(s)
	}
}

// grow blocks until the stream has the given room, in order of arrival. While it
// waits, it drops streams that have stalled. The caller holds the lock.
func (in *incoming) grow(s *stream, room int) {
	if room <= s.room || s.dropped {
		return
	}
	in.waiting = append(in.waiting, s)
	for !s.dropped && (in.waiting[0] != s || in.held-s.room+room > in.limit) {
		var late <-chan time.Time
		if in.waiting[0] == s {
			if oldest, at := in.oldest(); oldest != nil {
				rest := time.Until(at)
				if rest <= 0 {
					in.evict(oldest)
					continue
				}
				late = time.After(rest)
			}
		}
		freed := in.freed
		in.mu.Unlock()
		select {
		case <-freed:
		case <-late:
		case <-s.conn.closed:
		}
		in.mu.Lock()
	}
	in.waiting = slices.DeleteFunc(in.waiting, func(other *stream) bool { return other == s })
	if !s.dropped {
		in.held += room - s.room
		s.room, s.last = room, time.Now()
		in.open[s] = true
	}
	if len(in.waiting) > 0 { // the next stream has its turn
		in.changed()
	}
}

// oldest returns the stream that is dropped next if others need room, and when.
// A stream is due once it has stalled for stallTimeout or its message has taken
// slowFactor times as long in total; a complete request is due once its
// response has taken that long. Streams that wait for room themselves are
// chosen only if there is no other.
func (in *incoming) oldest() (oldest *stream, at time.Time) {
	waits := false // whether oldest waits for room
	for s := range in.open {
		until := s.last.Add(in.stallTimeout)
		switch limit := s.began.Add(slowFactor * in.stallTimeout); {
		case s.whole && s.over:
			until = s.last.Add(slowFactor * in.stallTimeout)
		case s.large && limit.Before(until):
			until = limit
		}
		also := slices.Contains(in.waiting, s)
		if oldest == nil || waits && !also || waits == also && until.Before(at) {
			oldest, at, waits = s, until, also
		}
	}
	return oldest, at
}

// evict frees the room of a stream. It closes the connection, unless the server
// has read the message completely: a whole message that the server has started
// to respond to and whose stream is still open has been read, because the
// server has asked for more than fits into the window.
func (in *incoming) evict(s *stream) {
	if s.large && s.whole && s.answered && !s.over {
		s.large, s.cost = false, 0
		in.give(s)
		return
	}
	in.log.Warn("closing a connection: its request has stalled and others wait for room", "client", s.conn.RemoteAddr(), "bytes", s.cost)
	s.dropped = true
	in.give(s)
	go s.conn.Close()
}

// give frees the room of a stream. The caller holds the lock.
func (in *incoming) give(s *stream) {
	if in.open[s] {
		delete(in.open, s)
		in.held -= s.room
		s.room = 0
		in.changed()
	}
}

// changed wakes all waiters. The caller holds the lock.
func (in *incoming) changed() {
	close(in.freed)
	in.freed = make(chan struct{})
}

// release ends a stream. It returns the number of bytes received, and whether
// the server has sent data.
func (in *incoming) release(s *stream) (received int, dataSent bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.dropped = true
	in.give(s)
	return s.size, s.dataSent
}
