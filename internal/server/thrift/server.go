package thrift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	wire "github.com/apache/thrift/lib/go/thrift"
)

// A Server answers calls about one switch.
type Server struct {
	target Target
	device uint64
	most   int // connections
	log    *slog.Logger

	silence time.Duration // from which a connection gives way to another

	mu     sync.Mutex
	listen net.Listener
	conns  map[*timedConn]bool
	closed bool
	work   sync.WaitGroup

	closing chan struct{} // is closed with the server
}

// MaxConnections is the number of connections that a server has at a time unless
// told otherwise: an answer may be the whole of a register, and is in memory
// until the client has it.
const MaxConnections = 64

// NewServer makes a server for a switch and the id that it goes by.
func NewServer(t Target, device uint64) *Server {
	return &Server{target: t, device: device, most: MaxConnections, log: slog.New(slog.DiscardHandler), silence: busyTime, conns: map[*timedConn]bool{}, closing: make(chan struct{})}
}

// Limit sets the number of connections at a time, before Serve. For one more, the
// one gives way that has not called for longest since it was opened; if all have
// called, the one that has been silent for longest, a second at least; if there is
// none, the new one is closed.
func (s *Server) Limit(connections int) { s.most = connections }

// LogTo has l say which calls have met a fault of the switch.
func (s *Server) LogTo(l *slog.Logger) { s.log = l }

// The limits of what a client can send: calls are short. The protocol bounds each
// part of a call by maxMessage, and the connection all of them together.
const (
	maxMessage   = 1 << 20
	serverBuffer = 1 << 13
)

func configuration() *wire.TConfiguration {
	return &wire.TConfiguration{MaxMessageSize: maxMessage}
}

// Serve answers clients on l until Close.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listen = l
	closed := s.closed
	s.mu.Unlock()
	if closed {
		l.Close()
		return nil
	}
	var pause time.Duration
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			s.add(c)
			pause = 0
			continue
		case errors.Is(err, net.ErrClosed):
			return nil
		case !passes(err):
			return err
		}
		pause = min(max(2*pause, firstPause), lastPause)
		select {
		case <-time.After(pause):
		case <-s.closing:
			return nil
		}
	}
}

// The time between attempts to accept connections doubles from the first to the
// second.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// passes reports whether accepting may work later: files and memory run out, and
// come back when connections are closed.
func passes(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR, syscall.EAGAIN,
	}, func(e error) bool { return errors.Is(err, e) })
}

// add starts to serve a connection, unless the server is closed or has no room.
func (s *Server) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= s.most && !s.makeRoom() {
		conn.Close()
		return
	}
	c := &timedConn{Conn: conn, wait: callTime, since: time.Now()}
	s.conns[c] = true
	s.work.Go(func() {
		defer s.drop(c)
		conf := configuration()
		socket := wire.NewTSocketFromConnConf(c, conf)
		// One buffer each way: a flood of connections costs little more than its files.
		both := wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, serverBuffer), conf)
		ctx := context.Background()
		defer func() { // a fault that one call meets ends no more than its connection
			if p := recover(); p != nil {
				s.log.Error("a request has met a fault of the switch", "client", conn.RemoteAddr(), "fault", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		for s.answer(ctx, both, both, c.busy) == nil {
			c.idle()
		}
	})
}

// makeRoom closes the connection without a call that has been open for longest, or
// else the one that has been silent for longest, if there is any. The caller holds
// s.mu.
func (s *Server) makeRoom() bool {
	var gone, silent *timedConn
	oldest := time.Now().Add(-s.silence).UnixNano()
	for c := range s.conns {
		switch rests := c.rests.Load(); {
		case !c.spoke.Load():
			if gone == nil || c.since.Before(gone.since) {
				gone = c
			}
		case rests > 0 && rests <= oldest:
			silent, oldest = c, rests
		}
	}
	gone = cmp.Or(gone, silent)
	if gone == nil {
		return false
	}
	delete(s.conns, gone)
	gone.Close()
	return true
}

func (s *Server) drop(c *timedConn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close ends Serve and all connections.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		close(s.closing)
	}
	s.closed = true
	var err error
	if s.listen != nil {
		err = s.listen.Close()
	}
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	return err
}

// answer deals with one call, and says when all of it is there. An error ends the
// connection.
func (s *Server) answer(ctx context.Context, in, out wire.TProtocol, there func()) error {
	name, typ, seq, err := in.ReadMessageBegin(ctx)
	if err != nil {
		return err
	}
	args, err := (&reader{in: in, left: callValues}).record(ctx, maxDepth)
	if err != nil {
		return err
	}
	if err := in.ReadMessageEnd(ctx); err != nil {
		return err
	}
	there()
	service, method, ok := strings.Cut(name, ":")
	if !ok {
		service, method = "", name
	}
	do := s.find(service, method)
	switch {
	case typ != wire.CALL && typ != wire.ONEWAY:
		return s.refuse(ctx, out, method, seq, wire.INVALID_MESSAGE_TYPE_EXCEPTION, "a call is expected")
	case do == nil:
		return s.refuse(ctx, out, method, seq, wire.UNKNOWN_METHOD, "there is no "+name)
	}
	value, exc := do(s.target, args)
	if typ == wire.ONEWAY {
		return nil
	}
	var reply fields
	switch {
	case exc == zeroCode:
		reply = fields{{1, fields{{1, int32(0)}}}}
	case exc != 0:
		reply = fields{{1, fields{{1, int32(exc)}}}}
	case value != nil:
		reply = fields{{0, value}}
	}
	if err := out.WriteMessageBegin(ctx, method, wire.REPLY, seq); err != nil {
		return err
	}
	if err := writeFields(ctx, out, "result", reply); err != nil {
		return err
	}
	return finish(ctx, out)
}

// find returns the call of a name. bm_mgmt_get_info is the server's own.
func (s *Server) find(service, method string) call {
	if service == "standard" && method == "bm_mgmt_get_info" {
		return func(Target, record) (any, exception) {
			return fields{{1, int64(s.device)}, {2, s.port()}}, 0
		}
	}
	return services()[service][method]
}

func (s *Server) port() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.listen.Addr().(*net.TCPAddr); ok {
		return int32(a.Port)
	}
	return 0
}

func (s *Server) refuse(ctx context.Context, out wire.TProtocol, method string, seq, code int32, msg string) error {
	if err := out.WriteMessageBegin(ctx, method, wire.EXCEPTION, seq); err != nil {
		return err
	}
	if err := wire.NewTApplicationException(code, msg).Write(ctx, out); err != nil {
		return err
	}
	return finish(ctx, out)
}

func finish(ctx context.Context, out wire.TProtocol) error {
	if err := out.WriteMessageEnd(ctx); err != nil {
		return err
	}
	return out.Flush(ctx)
}
