package p4rt

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
)

// A stuckConn sends so many bytes, and then no more.
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

// over is a client of the rig whose connection is what wrap makes of it.
func (r *rig) over(wrap func(net.Conn) net.Conn) p4v1.P4RuntimeClient {
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
	return p4v1.NewP4RuntimeClient(conn)
}

// TestHalfMessages: clients that send a half of a large message each hold no
// more than the limit together, and keep nobody from sending a whole one.
func TestHalfMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("with the race detector a whole message takes as long as a half one that is given up")
	}
	const limit = 8 << 20
	r := newRig(t, Options{Limits: Limits{MaxMessage: 4 << 20, MaxIncoming: limit}})
	in := r.server.gate.incoming
	in.patient = 500 * time.Millisecond
	s := r.primary()
	s.must(s.configure(commitNew, testConfig(t)))
	large := &p4v1.WriteRequest{DeviceId: testDevice, ElectionId: s.id}
	entry := macEntry(t, "\x01")
	entry.Metadata = make([]byte, 600_000)
	for range 6 {
		large.Updates = append(large.Updates, insert(t, entry))
	}
	held := func() (n, messages int) {
		in.mu.Lock()
		defer in.mu.Unlock()
		return in.held, len(in.open)
	}
	const half = 2 << 20
	for range 10 {
		go r.over(func(c net.Conn) net.Conn {
			stuck := &stuckConn{c, half, make(chan struct{})}
			t.Cleanup(func() { close(stuck.closed) })
			return stuck
		}).Write(r.context(), large)
	}
	deadline := time.Now().Add(patience)
	for n := 0; n < limit-half; n, _ = held() {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes have come", n)
		}
		runtime.Gosched()
	}
	for range 5 {
		_, err := r.client.Write(r.context(), large)
		for range 10 { // where all that have come wait for room, any of them may have to give way
			if codeOfRPC(err) != codes.Unavailable {
				break
			}
			_, err = r.client.Write(r.context(), large)
		}
		if code := codeOfRPC(err); code == codes.Unavailable || code == codes.OK {
			t.Errorf("a whole message beside the halves: %v", err)
		}
		if n, _ := held(); n > limit {
			t.Errorf("%d bytes are held, want %d at most", n, limit)
		}
	}
}

// TestIncomingIsFreed: nothing stays counted of requests that are answered, of
// calls that are cancelled and of connections that go.
func TestIncomingIsFreed(t *testing.T) {
	r := newRig(t, Options{})
	s := r.primary()
	s.must(s.configure(commitNew, testConfig(t)))
	s.routes(t, 5000)
	large := make([]byte, 1<<20)
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: large}}})
	conn, stop := context.WithCancel(r.context())
	if _, err := r.client.Write(conn, &p4v1.WriteRequest{DeviceId: testDevice, Updates: []*p4v1.Update{{Entity: entityOf(&p4v1.TableEntry{Metadata: large})}}}); err == nil {
		t.Error("a write without an election id succeeds")
	}
	stop()
	s.cancel()
	deadline := time.Now().Add(patience)
	for {
		r.server.gate.incoming.mu.Lock()
		n, open := r.server.gate.incoming.held, len(r.server.gate.incoming.open)
		r.server.gate.incoming.mu.Unlock()
		if n == 0 && open == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of %d messages are still held", n, open)
		}
		runtime.Gosched()
	}
}

// TestFrames: frames are found wherever the connection cuts them.
func TestFrames(t *testing.T) {
	frame := func(kind, flags byte, stream byte, payload ...byte) []byte {
		return append([]byte{0, 0, byte(len(payload)), kind, flags, 0, 0, 0, stream}, payload...)
	}
	text := slices.Concat([]byte("preface"),
		frame(4, 0, 0, 1, 2, 3, 4, 5, 6), frame(headersFrame, 0, 1, 9, 9),
		frame(dataFrame, 0, 1, 'a', 'b', 'c'), frame(dataFrame, padded, 1, 2, 'd', 'e', 0, 0),
		frame(dataFrame, 0, 1), frame(headersFrame, 0, 3, 9), frame(resetFrame, 0, 3, 0, 0, 0, 8),
		frame(dataFrame, endStream|padded, 1, 0, 'f'))
	for step := 1; step <= len(text); step++ {
		var got []byte
		f := frames{skip: len("preface"),
			began: func(id uint32) { got = append(got, '0'+byte(id)) },
			data:  func(_ uint32, b []byte) { got = append(got, b...) },
			ended: func(id uint32) { got = append(got, '.') },
			reset: func(id uint32) { got = append(got, '!') },
		}
		for at := 0; at < len(text); at += step {
			f.look(text[at:min(at+step, len(text))])
		}
		if string(got) != "1abcde3!f." {
			t.Fatalf("in steps of %d: %q", step, got)
		}
	}
	for range 1000 { // anything may come
		b := make([]byte, 200)
		rand.Read(b)
		f := frames{data: func(uint32, []byte) {}, began: func(uint32) {}, ended: func(uint32) {}, reset: func(uint32) {}}
		f.look(b)
	}
}

// TestConfigAnswers: what clients are told of the config is what has been set,
// and the program is not copied for each of them.
func TestConfigAnswers(t *testing.T) {
	c := newCodec()
	config := testConfig(t)
	for _, m := range []*p4v1.ForwardingPipelineConfig{
		nil, {}, config, {Cookie: config.Cookie}, {P4Info: config.P4Info}, {P4DeviceConfig: config.P4DeviceConfig, Cookie: config.Cookie},
	} {
		want := &p4v1.GetForwardingPipelineConfigResponse{Config: m}
		list, err := c.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := new(p4v1.GetForwardingPipelineConfigResponse)
		if err := proto.Unmarshal(list.Materialize(), got); err != nil || !proto.Equal(got, want) {
			t.Errorf("%v: got %v, %v", want, got, err)
		}
	}
	answer := &p4v1.GetForwardingPipelineConfigResponse{Config: config}
	size := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := c.Marshal(answer); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if size > 2000 {
		t.Errorf("an answer takes %d bytes", size)
	}
}

// TestTinyFrames: what comes a byte at a time counts for what keeping it takes,
// within a message and behind one, until the server has taken it.
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
		in.patient = 0
		held := func() int {
			in.mu.Lock()
			defer in.mu.Unlock()
			return in.held
		}
		conn, _, err := (&counting{insecure.NewCredentials(), in}).ServerHandshake(raw)
		if err != nil {
			t.Fatal(err)
		}
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
		send(frame(dataFrame)) // the others have been looked at
		if n := held(); n < pieces*pieceSize || n > 2*pieces*pieceSize {
			t.Errorf("%s: %d bytes are held for %d pieces", c.name, n, pieces)
		}
		if c.head == nil || c.head[2] == 0 {
			go client.Read(make([]byte, 100))
			conn.Write(frame(windowFrame, 0, 0, 0x10, 0))
			if n := held(); n != 0 {
				t.Errorf("%s: %d bytes are held of what the server has taken", c.name, n)
			}
		}
		for n := 0; send(frame(dataFrame, 0)); n++ {
			if n > 2*limit/pieceSize {
				t.Fatalf("%s: the connection stays, with %d bytes held", c.name, held())
			}
		}
		<-gone
		conn.Close()
		if n := held(); n != 0 {
			t.Errorf("%s: %d bytes are held of a connection that has gone", c.name, n)
		}
	}
}
