package p4rt

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
)

const testDevice = 7

// patience is the timeout for events that must happen.
const patience = 3 * time.Minute

// program returns testdata/all.p4, compiled once.
var program = sync.OnceValues(func() (*p4v1.ForwardingPipelineConfig, error) {
	p, err := p4.Compile(os.DirFS("testdata"), "all.p4", p4.Options{})
	if err != nil {
		return nil, err
	}
	return &p4v1.ForwardingPipelineConfig{P4Info: p.P4Info, P4DeviceConfig: p.JSON()}, nil
})

// testConfig returns a config with shared parts: clone them before changing
// them.
func testConfig(t testing.TB) *p4v1.ForwardingPipelineConfig {
	t.Helper()
	c, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return &p4v1.ForwardingPipelineConfig{
		P4Info: c.P4Info, P4DeviceConfig: c.P4DeviceConfig,
		Cookie: &p4v1.ForwardingPipelineConfig_Cookie{Cookie: 42},
	}
}

// nextConfig returns the config of a program that differs from testConfig's
// only in its version.
func nextConfig(t testing.TB) *p4v1.ForwardingPipelineConfig {
	c := testConfig(t)
	c.P4Info = proto.Clone(c.P4Info).(*configv1.P4Info)
	c.P4Info.PkgInfo = &configv1.PkgInfo{Version: "next"}
	return c
}

func loadProgram(json []byte, o dataplane.Options) (*dataplane.Switch, error) {
	c, err := bmv2.Load(json)
	if err != nil {
		return nil, err
	}
	return dataplane.New(c, o)
}

// failOnError is a log handler that fails the test on errors, because clients
// do not notice if control plane and data plane disagree.
type failOnError struct{ t testing.TB }

func (f failOnError) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (f failOnError) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + a.String())
		return true
	})
	f.t.Error(b.String())
	return nil
}

func (f failOnError) WithAttrs([]slog.Attr) slog.Handler { return f }

func (f failOnError) WithGroup(string) slog.Handler { return f }

// A rig is a server on an in-memory connection.
type rig struct {
	t      testing.TB
	dev    *Device
	server *Server
	listen *bufconn.Listener
	conn   *grpc.ClientConn
	client p4v1.P4RuntimeClient
}

func newRig(t testing.TB, opts Options) *rig {
	t.Helper()
	return newRigOn(t, opts, DeviceOptions{})
}

// newRigOn is newRig with a custom device.
func newRigOn(t testing.TB, opts Options, device DeviceOptions) *rig {
	t.Helper()
	if device.CPUPort == 0 {
		device.CPUPort = 255
	}
	device.Load = loadProgram
	dev, err := NewDevice(device)
	if err != nil {
		t.Fatal(err)
	}
	opts.DeviceID = testDevice
	if opts.Log == nil {
		opts.Log = slog.New(failOnError{t})
	}
	s, err := NewServer(dev, opts)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dev: dev, server: s, listen: bufconn.Listen(1 << 20)}
	served := make(chan error, 1)
	go func() { served <- s.Serve(r.listen) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Stop(ctx)
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
		if err := dev.Close(); err != nil {
			t.Errorf("closing the device: %v", err)
		}
	})
	r.conn = r.dial()
	r.client = p4v1.NewP4RuntimeClient(r.conn)
	return r
}

func (r *rig) dial() *grpc.ClientConn {
	r.t.Helper()
	conn, err := grpc.NewClient("passthrough:bufnet",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return r.listen.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.t.Cleanup(cancel)
	return ctx
}

// A session is a controller's stream with the messages it has received.
type session struct {
	t      testing.TB
	rig    *rig
	stream p4v1.P4Runtime_StreamChannelClient
	id     *p4v1.Uint128
	role   string
	in     chan *p4v1.StreamMessageResponse
	end    chan error
	cancel func()
}

// open opens a stream without claiming a role. It lasts as long as the test.
func (r *rig) open() *session {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(cancel)
	stream, err := r.client.StreamChannel(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	s := &session{
		t: r.t, rig: r, stream: stream, cancel: cancel,
		in: make(chan *p4v1.StreamMessageResponse, 1<<16), end: make(chan error, 1),
	}
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				s.end <- err
				close(s.in)
				return
			}
			s.in <- m
		}
	}()
	return s
}

func uint128(low uint64) *p4v1.Uint128 { return &p4v1.Uint128{Low: low} }

// claim sends an arbitration message.
func (s *session) claim(u *p4v1.MasterArbitrationUpdate) {
	s.t.Helper()
	s.id, s.role = u.GetElectionId(), u.GetRole().GetName()
	s.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: u}})
}

func (s *session) send(m *p4v1.StreamMessageRequest) {
	s.t.Helper()
	if err := s.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		s.t.Fatal(err)
	}
}

// next returns the next message and fails without one.
func (s *session) next() *p4v1.StreamMessageResponse {
	s.t.Helper()
	select {
	case m, ok := <-s.in:
		if !ok {
			s.t.Fatalf("the stream has ended: %v", <-s.end)
		}
		return m
	case <-time.After(patience):
		s.t.Fatal("nothing comes")
	}
	return nil
}

// wantArbitration expects an arbitration message with a code and the highest
// election id (nil: none yet).
func (s *session) wantArbitration(code codes.Code, highest *p4v1.Uint128) *p4v1.MasterArbitrationUpdate {
	s.t.Helper()
	u := s.next().GetArbitration()
	if u == nil {
		s.t.Fatal("the next message is no arbitration")
	}
	if codes.Code(u.GetStatus().GetCode()) != code || !proto.Equal(u.GetElectionId(), highest) {
		s.t.Fatalf("got %v with highest election id %v, want %v with %v", codes.Code(u.GetStatus().GetCode()), u.GetElectionId(), code, highest)
	}
	return u
}

// wantEnd expects the stream to end with a code.
func (s *session) wantEnd(code codes.Code) {
	s.t.Helper()
	select {
	case err := <-s.end:
		if status.Code(err) != code {
			s.t.Fatalf("the stream ended with %v, want %v", err, code)
		}
	case <-time.After(patience):
		s.t.Fatalf("the stream does not end, want %v", code)
	}
}

func arbitration(low uint64) *p4v1.MasterArbitrationUpdate {
	return &p4v1.MasterArbitrationUpdate{DeviceId: testDevice, ElectionId: uint128(low)}
}

// primary opens a stream that is primary of the default role.
func (r *rig) primary() *session {
	r.t.Helper()
	s := r.open()
	s.claim(arbitration(1))
	s.wantArbitration(codes.OK, uint128(1))
	return s
}

// configured is a primary with testdata/all.p4 running.
func configured(t testing.TB) *session {
	t.Helper()
	s := newRig(t, Options{}).primary()
	s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, testConfig(t)))
	return s
}

func (s *session) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(describe(err))
	}
}

// describe formats an error with the details of a batch.
func describe(err error) string {
	var b strings.Builder
	b.WriteString(err.Error())
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*p4v1.Error); ok && e.GetCanonicalCode() != 0 {
			b.WriteString("\n\t" + codes.Code(e.GetCanonicalCode()).String() + ": " + e.GetMessage())
		}
	}
	return b.String()
}

func (s *session) configure(action configAction, c *p4v1.ForwardingPipelineConfig) error {
	_, err := s.rig.client.SetForwardingPipelineConfig(s.rig.context(), &p4v1.SetForwardingPipelineConfigRequest{
		DeviceId: testDevice, Role: s.role, ElectionId: s.id, Action: action, Config: c,
	})
	return err
}

func (s *session) write(updates ...*p4v1.Update) error {
	return s.writeAs(p4v1.WriteRequest_CONTINUE_ON_ERROR, updates...)
}

func (s *session) writeAs(a p4v1.WriteRequest_Atomicity, updates ...*p4v1.Update) error {
	_, err := s.rig.client.Write(s.rig.context(), &p4v1.WriteRequest{
		DeviceId: testDevice, Role: s.role, ElectionId: s.id, Updates: updates, Atomicity: a,
	})
	return err
}

// wantWrite writes one update and expects a code.
func (s *session) wantWrite(code codes.Code, u *p4v1.Update) {
	s.t.Helper()
	err := s.write(u)
	got := updateCodes(err)
	if code == codes.OK && err == nil {
		return
	}
	if len(got) != 1 || got[0] != code {
		s.t.Errorf("writing %v: got %v, want %v", u, err, code)
		if err != nil {
			s.t.Log(describe(err))
		}
	}
}

// updateCodes returns the codes of the updates of a failed write.
func updateCodes(err error) []codes.Code {
	var list []codes.Code
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*p4v1.Error); ok {
			list = append(list, codes.Code(e.GetCanonicalCode()))
		}
	}
	return list
}

func (s *session) read(list ...*p4v1.Entity) ([]*p4v1.Entity, error) {
	stream, err := s.rig.client.Read(s.rig.context(), &p4v1.ReadRequest{DeviceId: testDevice, Role: s.role, Entities: list})
	if err != nil {
		return nil, err
	}
	var all []*p4v1.Entity
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m.GetEntities()...)
	}
}

// mustRead reads and expects n entities.
func (s *session) mustRead(n int, e *p4v1.Entity) []*p4v1.Entity {
	s.t.Helper()
	list, err := s.read(e)
	s.must(err)
	if len(list) != n {
		s.t.Fatalf("reading %v: got %d entities, want %d: %v", e, len(list), n, list)
	}
	return list
}
