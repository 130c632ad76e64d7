package thrift

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	wire "github.com/apache/thrift/lib/go/thrift"
)

// A Server answers calls about one switch.
type Server struct {
	target Target
	device uint64

	mu     sync.Mutex
	listen net.Listener
	conns  map[net.Conn]bool
	closed bool
	work   sync.WaitGroup
}

// NewServer makes a server for a switch and the id that it goes by.
func NewServer(t Target, device uint64) *Server {
	return &Server{target: t, device: device, conns: map[net.Conn]bool{}}
}

// The limits of what a client can send: calls are short.
const (
	maxMessage  = 1 << 20
	readBuffer  = 4096
	writeBuffer = 1 << 16
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
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if !s.add(c) {
			c.Close()
			return nil
		}
	}
}

// add starts to serve a connection, unless the server is closed.
func (s *Server) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = true
	s.work.Go(func() {
		defer s.drop(c)
		s.serve(c)
	})
	return true
}

func (s *Server) drop(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Close ends Serve and all connections.
func (s *Server) Close() error {
	s.mu.Lock()
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

func (s *Server) serve(c net.Conn) {
	conf := configuration()
	socket := wire.NewTSocketFromConnConf(c, conf)
	in := wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, readBuffer), conf)
	out := wire.NewTBinaryProtocolConf(wire.NewTBufferedTransport(socket, writeBuffer), conf)
	ctx := context.Background()
	for s.answer(ctx, in, out) == nil {
	}
}

// answer deals with one call. An error ends the connection.
func (s *Server) answer(ctx context.Context, in, out wire.TProtocol) error {
	name, typ, seq, err := in.ReadMessageBegin(ctx)
	if err != nil {
		return err
	}
	args, err := readRecord(ctx, in, maxDepth)
	if err != nil {
		return err
	}
	if err := in.ReadMessageEnd(ctx); err != nil {
		return err
	}
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
	return services[service][method]
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
