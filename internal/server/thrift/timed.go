package thrift

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

const (
	// callTime is the maximum time for receiving a call, and for sending a
	// reply. For the first call it starts with the connection.
	callTime = 10 * time.Second
	// idleTime is the maximum time between calls. It is long, because people may
	// type the calls.
	idleTime = 10 * time.Minute
	// busyTime is the idle time after which a connection can be replaced.
	// Programs call more often.
	busyTime = time.Second
)

// A timedConn closes the connection of a client that has disappeared or never
// calls. Each connection costs memory and a file descriptor.
type timedConn struct {
	net.Conn
	wait     time.Duration // for the next call
	until    time.Time     // deadline for the incoming call; zero before it begins
	since    time.Time     // when the connection was opened
	spoke    atomic.Bool   // the client has made a call
	rests    atomic.Int64  // when the last call was answered, in nanoseconds since 1970; 0 during a call
	received int           // bytes received since the last call
	most     int           // maximum size of a call
}

// errLong ends a connection with a call that is too long.
var errLong = errors.New("a call is too long")

// idle marks the call as answered.
func (c *timedConn) idle() {
	c.wait, c.until, c.received = idleTime, time.Time{}, 0
	c.rests.Store(time.Now().UnixNano())
}

// busy marks a call as received. A partial call does not count.
func (c *timedConn) busy() {
	c.spoke.Store(true)
	c.rests.Store(0)
}

func (c *timedConn) Read(b []byte) (int, error) {
	if c.received > c.most+serverBuffer { // a part may belong to the next call
		return 0, errLong
	}
	until := c.until
	if until.IsZero() {
		until = time.Now().Add(c.wait)
	}
	c.Conn.SetReadDeadline(until)
	n, err := c.Conn.Read(b)
	c.received += n
	if c.until.IsZero() {
		c.until = time.Now().Add(callTime)
	}
	return n, err
}

func (c *timedConn) Write(b []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(callTime))
	return c.Conn.Write(b)
}

// SetDeadline does nothing: this type sets all deadlines.
func (c *timedConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *timedConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *timedConn) SetWriteDeadline(time.Time) error { return nil }
