package thrift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	wire "github.com/apache/thrift/lib/go/thrift"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// A Server answers calls about one switch.
type Server struct {
	target Target
	device uint64
	most   int // maximum number of connections
	swaps  bool
	sim    Simulator // nil: calls are processed at once
	log    *slog.Logger

	silence time.Duration // idle time after which a connection can be replaced

	mu     sync.Mutex
	listen net.Listener
	conns  map[*timedConn]bool
	closed bool
	work   sync.WaitGroup

	faults  atomic.Int64  // malformed messages
	closing chan struct{} // closed with the server
}

// MaxConnections is the default maximum number of connections. A reply may
// contain a complete register, and is in memory until the client has received
// it.
const MaxConnections = 64

// NewServer creates a server for a switch with a device id.
func NewServer(t Target, device uint64) *Server {
	return &Server{target: t, device: device, most: MaxConnections, log: slog.New(slog.DiscardHandler), silence: busyTime, conns: map[*timedConn]bool{}, closing: make(chan struct{})}
}

// Limit sets the maximum number of connections. It must be called before Serve.
// At the limit, a new connection replaces the oldest one that has never made a
// call, or else the one that has been idle longest, for at least a second. If
// there is none, the new connection is closed.
func (s *Server) Limit(connections int) { s.most = connections }

// AllowSwap lets clients replace the program of a target that is a swapper, like
// --enable-swap of simple_switch. It must be called before Serve.
func (s *Server) AllowSwap() { s.swaps = true }

// A Simulator runs a target in virtual time.
type Simulator interface {
	// Turn blocks until the server may process a call, and returns the function that
	// receives its result.
	Turn(ctx context.Context, client, method string) (done func(error), err error)
	// Session is called when a client connects and, with false, when it has gone.
	Session(client string, open bool)
}

// Simulate makes the server process calls in turns. It must be called before Serve.
func (s *Server) Simulate(sim Simulator) { s.sim = sim }

// LogTo sets the logger for malformed messages and for panics in calls.
func (s *Server) LogTo(l *slog.Logger) { s.log = l }

// The limits of calls, which are short except for programs. The protocol limits
// each part of a call to the size; timedConn limits their sum.
const (
	maxMessage   = 1 << 20
	maxProgram   = 16 << 20 // of a server that allows swaps
	serverBuffer = 1 << 13
)

// message returns the maximum size of a call.
func (s *Server) message() int {
	if s.swaps {
		return maxProgram
	}
	return maxMessage
}

func configuration(size int) *wire.TConfiguration {
	return &wire.TConfiguration{MaxMessageSize: int32(size)}
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

// The pause between attempts to accept doubles from firstPause to lastPause.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// passes reports whether accepting may succeed later: files and memory become
// available when connections are closed.
func passes(err error) bool {
	return slices.ContainsFunc([]error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.ECONNRESET, syscall.EINTR, syscall.EAGAIN,
	}, func(e error) bool { return errors.Is(err, e) })
}

// add starts serving a connection, unless the server is closed or full.
func (s *Server) add(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.conns) >= s.most && !s.makeRoom() {
		conn.Close()
		return
	}
	c := &timedConn{Conn: conn, wait: callTime, since: time.Now(), most: s.message()}
	s.conns[c] = true
	s.work.Go(func() {
		defer s.drop(c)
		client := conn.RemoteAddr().String()
		if s.sim != nil {
			s.sim.Session(client, true)
			defer s.sim.Session(client, false)
		}
		conf := configuration(s.message())
		socket := wire.NewTSocketFromConnConf(c, conf)
		// One buffer per direction limits the memory of a flood of connections.
		both := wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, serverBuffer), conf)
		ctx := context.Background()
		defer func() { // a panic in a call ends only its connection
			if p := recover(); p != nil {
				s.log.Error("panic while handling a call", "client", conn.RemoteAddr(), "fault", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		var err error
		for err == nil {
			if err = s.answer(ctx, client, both, both, c.busy); err == nil {
				c.idle()
			}
		}
		s.report(client, err)
	})
}

// report logs that a connection has been closed because of a malformed message. After
// the first ten, it logs only the hundredth, the thousandth and so on.
func (s *Server) report(client string, err error) {
	if !malformed(err) {
		return
	}
	times := s.faults.Add(1)
	step := int64(1)
	for 10*step <= times {
		step *= 10
	}
	if times < 10 || times == step {
		s.log.Warn("malformed Thrift call: closed the connection", "client", client, "reason", plain.Printable(err.Error(), "", 200), "times", times)
	}
}

// malformed reports whether an error is about the content of a call, and not about the
// connection.
func malformed(err error) bool {
	if errors.Is(err, errLong) {
		return true
	}
	_, transport := errors.AsType[wire.TTransportException](err)
	_, network := errors.AsType[net.Error](err)
	return !transport && !network && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, context.Canceled)
}

// makeRoom closes the oldest connection without a call, or else the one that
// has been idle longest, and reports whether there was one. The caller holds
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

// answer handles one call. It calls there when the call has been received
// completely. An error ends the connection.
func (s *Server) answer(ctx context.Context, client string, in, out wire.TProtocol, there func()) error {
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
		return s.refuse(ctx, out, method, seq, wire.INVALID_MESSAGE_TYPE_EXCEPTION, "want a call")
	case do == nil:
		return s.refuse(ctx, out, method, seq, wire.UNKNOWN_METHOD, "unknown method "+plain.Printable(name, "", 100))
	}
	value, exc, err := s.process(ctx, client, method, do, args)
	if err != nil {
		return err
	}
	if typ == wire.ONEWAY {
		return nil
	}
	if err, ok := value.(error); ok {
		return s.refuse(ctx, out, method, seq, wire.INTERNAL_ERROR, err.Error())
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

// process executes a call, in its turn if there is a simulator.
func (s *Server) process(ctx context.Context, client, method string, do call, args record) (value any, exc exception, err error) {
	if s.sim == nil {
		value, exc = do(s.target, args)
		return value, exc, nil
	}
	done, err := s.sim.Turn(ctx, client, method)
	if err != nil {
		return nil, 0, err
	}
	value, exc = do(s.target, args)
	failed, _ := value.(error)
	if exc != 0 {
		failed = reasonOf(method, args, exc)
	}
	done(failed)
	return value, exc, nil
}

// find returns the call with a name. The server itself implements
// bm_mgmt_get_info.
func (s *Server) find(service, method string) call {
	if service == "standard" && method == "bm_mgmt_get_info" {
		return func(Target, record) (any, exception) {
			return fields{{1, int64(s.device)}, {2, s.port()}}, 0
		}
	}
	if _, can := s.target.(swapper); can && s.swaps && service == "standard" && swapCalls[method] != nil {
		return swapCalls[method]
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
