package thrift

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

const (
	// callTime is how long a call may take to come in once it has begun, the
	// first one from the connection on, and an answer to go out.
	callTime = 10 * time.Second
	// idleTime is how long a connection may be silent between calls: people type
	// them.
	idleTime = 10 * time.Minute
	// busyTime is how long it may be so where others want its place: programs call
	// more often.
	busyTime = time.Second
)

// A timedConn gives up a client that has gone, or that was never there: a
// connection costs memory and a file.
type timedConn struct {
	net.Conn
	wait  time.Duration // for the next call
	until time.Time     // the call that is coming in must be there; zero before it
	since time.Time     // it was opened
	spoke atomic.Bool   // there has been a call
	rests atomic.Int64  // when the last call was answered, by the clock; 0 while there is one
	came  int           // bytes, since the last call
}

// errLong ends a connection with a call that does not end.
var errLong = errors.New("a call is too long")

// idle says that a call has been answered.
func (c *timedConn) idle() {
	c.wait, c.until, c.came = idleTime, time.Time{}, 0
	c.rests.Store(time.Now().UnixNano())
}

// busy says that a call is there, as a whole: who begins one is as silent as before.
func (c *timedConn) busy() {
	c.spoke.Store(true)
	c.rests.Store(0)
}

func (c *timedConn) Read(b []byte) (int, error) {
	if c.came > maxMessage+serverBuffer { // of which a part may belong to the next
		return 0, errLong
	}
	until := c.until
	if until.IsZero() {
		until = time.Now().Add(c.wait)
	}
	c.Conn.SetReadDeadline(until)
	n, err := c.Conn.Read(b)
	c.came += n
	if c.until.IsZero() {
		c.until = time.Now().Add(callTime)
	}
	return n, err
}

func (c *timedConn) Write(b []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(callTime))
	return c.Conn.Write(b)
}

// SetDeadline and the like are Thrift's, which has none to set.
func (c *timedConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *timedConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *timedConn) SetWriteDeadline(time.Time) error { return nil }
