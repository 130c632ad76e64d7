package gate

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// counting wraps transport credentials with connections that count the decrypted
// bytes.
type counting struct {
	credentials.TransportCredentials
	in   *incoming
	pace *pace
}

// ServerHandshake waits for the first bytes of a connection before it begins: a
// silent connection costs only its goroutine. The first bytes are usually the whole
// TLS hello.
func (h *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	first := make([]byte, 2<<10)
	n, err := raw.Read(first)
	if err != nil {
		return nil, nil, err
	}
	slot := SlotOf(raw)
	crypted, info, err := h.TransportCredentials.ServerHandshake(&unreadConn{raw, first[:n]})
	if slot != nil {
		slot.EndHandshake()
	}
	if err != nil {
		return nil, nil, err
	}
	c := newConn(crypted, h.in, h.pace)
	c.slot = slot
	return c, connInfo{info, c}, nil
}

func (h *counting) Clone() credentials.TransportCredentials {
	clone := *h
	clone.TransportCredentials = h.TransportCredentials.Clone()
	return &clone
}

// An unreadConn is a connection that first returns bytes that were already read.
type unreadConn struct {
	net.Conn
	bytes []byte
}

func (c *unreadConn) Read(b []byte) (int, error) {
	if len(c.bytes) > 0 {
		n := copy(b, c.bytes)
		c.bytes = c.bytes[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// A conn parses the HTTP/2 frames of a connection in both directions. It
// charges the client for them and counts the memory of incoming messages.
type conn struct {
	net.Conn
	in             *incoming
	received, sent frames
	slot           *Slot // nil: the listener is not bounded
	meter          meter
	returned       time.Time     // when Read last returned
	reads          chan struct{} // see ConnSemaphore
	once           sync.Once
	closed         chan struct{}

	mu      sync.Mutex
	streams map[uint32]*stream // nil once the connection is closed
}

func newConn(raw net.Conn, in *incoming, p *pace) *conn {
	c := &conn{Conn: raw, in: in, reads: make(chan struct{}, 1), closed: make(chan struct{}), streams: map[uint32]*stream{}}
	c.meter.pace = p
	c.received = frames{skip: len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), onFrame: c.receivedFrame, onData: c.receivedData}
	c.sent = frames{onFrame: c.sentFrame}
	return c
}

// Read pauses if the client must, and reads from it.
func (c *conn) Read(b []byte) (int, error) {
	if !c.returned.IsZero() { // The server has processed the client's previous data in this time.
		c.meter.work.Add(int64(time.Since(c.returned)))
	}
	if rest := c.meter.pause(); rest > 0 {
		sleep(rest, c.closed)
	}
	began := time.Now()
	n, err := c.Conn.Read(b)
	// A read that fills its buffer did not have to wait.
	if n < len(b) {
		c.meter.waited(time.Since(began))
	}
	c.received.parse(b[:n])
	if err != nil {
		c.meter.idle()
	}
	c.returned = time.Now()
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.parse(b[:n])
	return n, err
}

// Close closes the connection and drops its messages.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		close(c.closed)
		if c.slot != nil {
			c.slot.charge(time.Duration(c.meter.waste.Load()))
		}
		c.meter.idle()
		c.mu.Lock()
		streams := c.streams
		c.streams = nil
		c.mu.Unlock()
		for _, s := range streams {
			c.in.release(s)
		}
	})
	return err
}

func (c *conn) stream(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// receivedFrame handles the header of a frame from the client.
func (c *conn) receivedFrame(kind, flags byte, id uint32, size int) {
	switch kind {
	case headersFrame:
		c.open(id)
		fallthrough
	case continuationFrame:
		c.meter.charge(time.Duration(max(0, size-freeHead)) * headWork)
		if kind == continuationFrame {
			c.meter.charge(frameWork)
		}
	case resetFrame:
		c.end(id, true)
		c.meter.charge(frameWork)
	case dataFrame:
		if size == 0 || flags&padded != 0 || c.stream(id) == nil {
			c.meter.charge(frameWork + time.Duration(size)*byteWork)
		}
	default:
		c.meter.charge(frameWork + time.Duration(size)*byteWork)
	}
	if s := c.stream(id); s != nil && flags&endStream != 0 && (kind == headersFrame || kind == dataFrame) {
		c.in.update(s, func() { s.over = true })
	}
}

// sentFrame handles the header of a frame from the server.
func (c *conn) sentFrame(kind, flags byte, id uint32, size int) {
	s := c.stream(id)
	if s == nil {
		return
	}
	switch kind {
	case headersFrame, dataFrame:
		c.in.update(s, func() {
			s.answered = true
			s.dataSent = s.dataSent || kind == dataFrame
		})
		if flags&endStream != 0 {
			c.end(id, false)
		}
	case resetFrame:
		c.end(id, false)
	case windowFrame: // the server has read data
		c.in.read(s)
	}
}

// open begins a stream.
func (c *conn) open(id uint32) {
	c.meter.work.Add(int64(callWork))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams != nil && c.streams[id] == nil {
		c.streams[id] = &stream{conn: c}
		if c.slot != nil {
			c.slot.Begin()
		}
	}
}

// end removes a stream. The work was wasted if the server has sent no data or
// the client canceled the call; the connection is charged for it.
func (c *conn) end(id uint32, canceled bool) {
	c.mu.Lock()
	s := c.streams[id]
	delete(c.streams, id)
	c.mu.Unlock()
	if s == nil {
		return
	}
	switch received, dataSent := c.in.release(s); {
	case !dataSent:
		c.meter.charge(callWork + time.Duration(received)*byteWork)
	case canceled:
		c.meter.charge(callWork)
	}
	if c.slot != nil {
		c.slot.End()
	}
}

// receivedData handles data from the client. A message consists of a
// compression flag, its length and its bytes.
func (c *conn) receivedData(id uint32, data []byte) {
	s := c.stream(id)
	if s == nil {
		return
	}
	small := len(data) < smallPiece
	c.in.add(s, len(data))
	for len(data) > 0 {
		if s.left == 0 {
			n := copy(s.head[s.heads:], data)
			s.heads += n
			data = data[n:]
			if s.heads == len(s.head) {
				s.heads, s.left = 0, int(binary.BigEndian.Uint32(s.head[1:]))
				c.in.begin(s, s.left, len(data))
			}
			continue
		}
		n := min(s.left, len(data))
		s.left -= n
		data = data[n:]
		if s.left == 0 {
			c.in.update(s, func() { s.whole = true })
		}
	}
	if small && (s.left > 0 || s.heads > 0) {
		c.meter.charge(pieceWork)
	}
}
