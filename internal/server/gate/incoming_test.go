package gate

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// A stuckConn sends left bytes and then blocks.
type stuckConn struct {
	net.Conn
	left   int
	closed chan struct{}
}

func (c *stuckConn) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left < 0 {
		<-c.closed
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// A service rejects all requests.
type service struct {
	p4v1.UnimplementedP4RuntimeServer
}

// Write rejects a request once it has arrived completely.
func (service) Write(context.Context, *p4v1.WriteRequest) (*p4v1.WriteResponse, error) {
	return nil, status.Error(codes.PermissionDenied, "writing is not allowed")
}

// StreamChannel receives messages until the stream ends.
func (service) StreamChannel(s p4v1.P4Runtime_StreamChannelServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		if err := s.Send(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Packet{Packet: &p4v1.PacketIn{Payload: m.GetPacket().GetPayload()[:1]}}}); err != nil {
			return err
		}
	}
}

// A rig is a service behind a gate.
type rig struct {
	t      *testing.T
	gate   *Gate
	listen *bufconn.Listener
}

func newRig(t *testing.T, l Limits) *rig {
	t.Helper()
	if err := l.Complete(); err != nil {
		t.Fatal(err)
	}
	r := &rig{t, New(&l, p4v1.P4Runtime_ServiceDesc.ServiceName, func() bool { return false }, slog.New(slog.DiscardHandler)), bufconn.Listen(1 << 20)}
	s := grpc.NewServer(r.gate.Options(nil, encoding.GetCodecV2("proto"))...)
	p4v1.RegisterP4RuntimeServer(s, service{})
	served := make(chan error, 1)
	go func() { served <- r.gate.Serve(s, r.listen) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return r
}

// patience is the timeout of the tests, long enough for a loaded machine.
const patience = 30 * time.Second

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

// held returns the bytes held by messages, and the number of messages.
func (r *rig) held() (n, messages int) {
	in := r.gate.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.held, len(in.open)
}

// over returns a client of the rig with a connection wrapped by wrap.
func (r *rig) over(wrap func(net.Conn) net.Conn) p4v1.P4RuntimeClient {
	r.t.Helper()
	return p4v1.NewP4RuntimeClient(r.conn(wrap))
}

// conn connects to the rig.
func (r *rig) conn(wrap func(net.Conn) net.Conn) *grpc.ClientConn {
	r.t.Helper()
	conn, err := grpc.NewClient("passthrough:rig",
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			c, err := r.listen.Dial()
			if err != nil {
				return nil, err
			}
			return wrap(c), nil
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

func asItIs(c net.Conn) net.Conn { return c }

func (r *rig) client() p4v1.P4RuntimeClient { return r.over(asItIs) }

// TestHalfMessages: clients that each send half of a large message never hold
// more than the limit together, and do not block a client that sends a whole
// one.
func TestHalfMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("too slow with the race detector: a whole message takes as long as the stall timeout")
	}
	const limit = 8 << 20
	r := newRig(t, Limits{MaxMessage: 4 << 20, MaxIncoming: limit})
	client := r.client()
	large := &p4v1.WriteRequest{Role: strings.Repeat("x", 3_600_000)}
	const half = 2 << 20
	for range 6 {
		go r.over(func(c net.Conn) net.Conn {
			stuck := &stuckConn{c, half, make(chan struct{})}
			t.Cleanup(func() { close(stuck.closed) })
			return stuck
		}).Write(r.context(), large)
	}
	deadline := time.Now().Add(patience)
	for n := 0; n < limit-half; n, _ = r.held() {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes have arrived", n)
		}
		runtime.Gosched()
	}
	for range 5 {
		if _, err := client.Write(r.context(), large); status.Code(err) != codes.PermissionDenied {
			t.Errorf("writing a whole message beside the halves: %v", err)
		}
		if n, _ := r.held(); n > limit {
			t.Errorf("%d bytes are held, want at most %d", n, limit)
		}
	}
}

// TestIncomingIsFreed: answered requests, canceled calls and closed connections
// release their memory.
func TestIncomingIsFreed(t *testing.T) {
	r := newRig(t, Limits{})
	client := r.client()
	large := make([]byte, 1<<20)
	ctx, cancel := context.WithCancel(r.context())
	stream, err := client.StreamChannel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: large}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if n, messages := r.held(); n < len(large) || messages != 1 {
		t.Errorf("%d bytes of %d messages are held for an open stream", n, messages)
	}
	conn, stop := context.WithCancel(r.context())
	if _, err := client.Write(conn, &p4v1.WriteRequest{Role: strings.Repeat("x", len(large))}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a write: %v", err)
	}
	stop()
	cancel()
	deadline := time.Now().Add(patience)
	for {
		n, open := r.held()
		if n == 0 && open == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of %d messages are still held", n, open)
		}
		runtime.Gosched()
	}
}

// Read returns an empty response.
func (service) Read(*p4v1.ReadRequest, p4v1.P4Runtime_ReadServer) error { return nil }

// TestWholeMessagesGiveWay: complete messages of open streams, and requests
// whose clients never end the stream, release their room when others need it.
func TestWholeMessagesGiveWay(t *testing.T) {
	r := newRig(t, Limits{MaxMessage: 4 << 20, MaxIncoming: 8 << 20})
	r.gate.incoming.stallTimeout = 50 * time.Millisecond
	client, large := r.client(), make([]byte, 3_600_000)
	write := func(beside string) {
		t.Helper()
		if _, err := client.Write(r.context(), &p4v1.WriteRequest{Role: string(large)}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("writing beside %s: %v", beside, err)
		}
	}
	var streams []p4v1.P4Runtime_StreamChannelClient
	say := func(s p4v1.P4Runtime_StreamChannelClient, payload []byte) {
		t.Helper()
		if err := s.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: payload}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		s, err := r.client().StreamChannel(r.context())
		if err != nil {
			t.Fatal(err)
		}
		say(s, large)
		streams = append(streams, s)
	}
	write("messages of streams")
	for _, s := range streams {
		say(s, large[:10]) // the stream is still open
	}
	for range 2 { // two, so that neither of them alone is the one dropped
		s, err := r.conn(asItIs).NewStream(r.context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/p4.v1.P4Runtime/Read")
		if err != nil {
			t.Fatal(err)
		}
		go s.SendMsg(&p4v1.ReadRequest{Role: string(large)})
	}
	deadline := time.Now().Add(patience)
	for n := 0; n < 2*len(large); n, _ = r.held() {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes have arrived", n)
		}
		runtime.Gosched()
	}
	write("calls without an end")
}

// TestFrames: the parser finds frames regardless of how the connection cuts
// them.
func TestFrames(t *testing.T) {
	frame := func(kind, flags byte, stream byte, payload ...byte) []byte {
		return append([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, stream}, payload...)
	}
	text := slices.Concat([]byte("preface"),
		frame(4, 0, 0, 1, 2, 3, 4, 5, 6), frame(headersFrame, 0, 1, 9, 9),
		frame(dataFrame, 0, 1, 'a', 'b', 'c'), frame(dataFrame, padded, 1, 2, 'd', 'e', 0, 0),
		frame(dataFrame, 0, 1), frame(headersFrame, 0, 3, 9), frame(resetFrame, 0, 3, 0, 0, 0, 8),
		frame(dataFrame, endStream|padded, 1, 0, 'f'))
	const want = "40.0:6 10.1:2 00.1:3 abc08.1:5 de00.1:0 10.3:1 30.3:4 09.1:2 f"
	for step := 1; step <= len(text); step++ {
		var got []byte
		f := frames{skip: len("preface"),
			onFrame: func(kind, flags byte, id uint32, size int) {
				got = fmt.Appendf(got, "%d%d.%d:%d ", kind, flags, id, size)
			},
			onData: func(_ uint32, b []byte) { got = append(got, b...) },
		}
		for at := 0; at < len(text); at += step {
			f.parse(text[at:min(at+step, len(text))])
		}
		if string(got) != want {
			t.Fatalf("in steps of %d: %q", step, got)
		}
	}
	for range 1000 { // arbitrary bytes
		b := make([]byte, 200)
		rand.Read(b)
		f := frames{onData: func(uint32, []byte) {}, onFrame: func(byte, byte, uint32, int) {}}
		f.parse(b)
	}
}

// TestWastedCalls: a call that the server sends no data to, or that its client
// cancels, is charged as wasted work; an answered one is not.
func TestWastedCalls(t *testing.T) {
	const client, server = true, false
	type frame struct {
		from        bool
		kind, flags byte
	}
	for name, c := range map[string]struct {
		frames  []frame
		charged time.Duration
	}{
		"answered":  {[]frame{{client, headersFrame, endStream}, {server, headersFrame, 0}, {server, dataFrame, 0}, {server, headersFrame, endStream}}, 0},
		"refused":   {[]frame{{client, headersFrame, endStream}, {server, headersFrame, endStream}}, callWork},
		"reset":     {[]frame{{client, headersFrame, 0}, {server, resetFrame, 0}}, callWork},
		"cancelled": {[]frame{{client, headersFrame, 0}, {client, resetFrame, 0}}, callWork + frameWork},
		"given up":  {[]frame{{client, headersFrame, 0}, {server, headersFrame, 0}, {server, dataFrame, 0}, {client, resetFrame, 0}, {server, resetFrame, 0}}, callWork + frameWork},
		"goes on":   {[]frame{{client, headersFrame, 0}}, 0},
	} {
		raw, other := net.Pipe()
		counted := newConn(raw, newIncoming(1<<20, slog.New(slog.DiscardHandler)), &pace{})
		counted.received.skip = 0
		for _, f := range c.frames {
			to := &counted.received
			if f.from == server {
				to = &counted.sent
			}
			to.parse([]byte{0, 0, 1, f.kind, f.flags, 0, 0, 0, 1, 0})
		}
		if got := time.Duration(counted.meter.waste.Load()); got != c.charged {
			t.Errorf("%s: charged %v, want %v", name, got, c.charged)
		}
		counted.Close()
		other.Close()
	}
}

// TestTinyFrames: data sent byte by byte counts with the memory needed per
// piece, within a message and after one, until the server has read it.
func TestTinyFrames(t *testing.T) {
	const limit = 1 << 20
	frame := func(kind byte, payload ...byte) []byte {
		return append([]byte{0, 0, byte(len(payload)), kind, 0, 0, 0, 0, 1}, payload...)
	}
	for _, c := range []struct {
		name string
		head []byte // of the first message
	}{
		{"of a large message", []byte{0, 0, 1, 0, 0}},
		{"of a small message", []byte{0, 0, 0, 0x40, 0}},
		{"empty messages behind it", nil},
	} {
		client, raw := net.Pipe()
		in := newIncoming(limit, slog.New(slog.DiscardHandler))
		in.stallTimeout = 0
		held := func() int {
			in.mu.Lock()
			defer in.mu.Unlock()
			return in.held
		}
		conn := newConn(raw, in, &pace{packetsWaiting: func() bool { return false }})
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for b := make([]byte, 100); ; {
				if _, err := conn.Read(b); err != nil {
					return
				}
			}
		}()
		send := func(b []byte) bool {
			_, err := client.Write(b)
			return err == nil
		}
		send([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		send(frame(headersFrame))
		send(frame(dataFrame, c.head...))
		const pieces = 4000
		for range pieces {
			send(frame(dataFrame, 0))
		}
		send(frame(dataFrame)) // the parser has seen the previous ones
		if n := held(); n < pieces*pieceSize || n > 2*pieces*pieceSize {
			t.Errorf("%s: %d bytes are held for %d pieces", c.name, n, pieces)
		}
		if c.head == nil || c.head[2] == 0 {
			go client.Read(make([]byte, 100))
			conn.Write(frame(windowFrame, 0, 0, 0x10, 0))
			if n := held(); n != 0 {
				t.Errorf("%s: %d bytes are held after the server has read them", c.name, n)
			}
		}
		for n := 0; send(frame(dataFrame, 0)); n++ {
			if n > 2*limit/pieceSize {
				t.Fatalf("%s: the connection stays open, with %d bytes held", c.name, held())
			}
		}
		<-gone
		conn.Close()
		if n := held(); n != 0 {
			t.Errorf("%s: %d bytes are held for a closed connection", c.name, n)
		}
	}
}
