package primary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// A scripted server answers each stream with the function of the test.
type scripted struct {
	p4v1.UnimplementedP4RuntimeServer
	streams  chan *scriptedStream
	config   func(*p4v1.GetForwardingPipelineConfigRequest) error
	listener *bufconn.Listener
}

type scriptedStream struct {
	up  p4v1.P4Runtime_StreamChannelServer
	end chan error
}

func (s *scripted) StreamChannel(up p4v1.P4Runtime_StreamChannelServer) error {
	x := &scriptedStream{up, make(chan error, 1)}
	s.streams <- x
	select {
	case err := <-x.end:
		return err
	case <-up.Context().Done():
		return up.Context().Err()
	}
}

func (s *scripted) GetForwardingPipelineConfig(_ context.Context, r *p4v1.GetForwardingPipelineConfigRequest) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	return &p4v1.GetForwardingPipelineConfigResponse{}, s.config(r)
}

func serve(t *testing.T) *scripted {
	s := &scripted{streams: make(chan *scriptedStream, 64), listener: bufconn.Listen(1 << 16)}
	server := grpc.NewServer()
	p4v1.RegisterP4RuntimeServer(server, s)
	go server.Serve(s.listener)
	t.Cleanup(server.Stop)
	return s
}

const testDevice = 42

// patient is a timeout that answers come within. A connection believes after a tenth of it
// that another controller stays primary.
const patient = 5 * time.Second

// Name, Start and Close complete the interface of a target; Endpoint leads to the server.
func (s *scripted) Name() string                            { return "test" }
func (s *scripted) Start(context.Context, *plan.Plan) error { return nil }
func (s *scripted) Close() error                            { return nil }
func (s *scripted) Endpoint(string) (target.Endpoint, error) {
	return target.Endpoint{Address: "switch:9559", Device: testDevice, Dial: func(ctx context.Context) (net.Conn, error) { return s.listener.DialContext(ctx) }}, nil
}

// A logged handler keeps the messages of a log with their attributes.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

func (l *logged) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool { return strings.Contains(line, text) })
}

// connect opens a connection without a timeout, unless a test sets one.
func connect(t *testing.T, to target.Target, o Options) (*Conn, *logged) {
	log := &logged{}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	c := New(t.Context(), "s1", to, o)
	t.Cleanup(c.Close)
	return c, log
}

// next waits for the next stream.
func (s *scripted) next(t *testing.T) *scriptedStream {
	t.Helper()
	select {
	case x := <-s.streams:
		return x
	case <-time.After(time.Minute):
		t.Fatal("no stream is opened")
		return nil
	}
}

// claim receives an arbitration message and describes its election id.
func (x *scriptedStream) claim(t *testing.T) string {
	t.Helper()
	m, err := x.up.Recv()
	if err != nil {
		t.Fatal(err)
	}
	u := m.GetArbitration()
	if u == nil || u.GetDeviceId() != testDevice {
		t.Fatalf("message %v, want an arbitration for device %d", m, testDevice)
	}
	if u.GetElectionId() == nil {
		return "asks"
	}
	return fmt.Sprint("claims ", electionOf(u.GetElectionId()))
}

// answer sends an arbitration message: the status and the highest election id.
func (x *scriptedStream) answer(t *testing.T, code codes.Code, highest uint64) {
	t.Helper()
	u := &p4v1.MasterArbitrationUpdate{DeviceId: testDevice, Status: &rpc.Status{Code: int32(code)}}
	if highest > 0 {
		u.ElectionId = &p4v1.Uint128{Low: highest}
	}
	if err := x.up.Send(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Arbitration{Arbitration: u}}); err != nil {
		t.Fatal(err)
	}
}

// until waits until a condition about the state is true.
func until(t *testing.T, c *Conn, what string, ok func(State) bool) State {
	t.Helper()
	for late := time.After(time.Minute); ; {
		s := c.State()
		if ok(s) {
			return s
		}
		select {
		case <-s.Changed:
		case <-late:
			t.Fatalf("waiting until %s: %+v", what, s)
		}
	}
}

func notPrimaryNow(s State) bool { return !s.Primary && s.Err != nil }

// Each step is a message from the controller or an answer of the switch: "asks" without an
// election id, "claims 5", "end CODE", or the switch's status with the highest election id.
// The last word is the state that the controller ends in.
func TestElection(t *testing.T) {
	const (
		ok, none, other = codes.OK, codes.NotFound, codes.AlreadyExists
	)
	type step struct {
		want    string // message of the controller; "stream" for a new stream before it
		code    codes.Code
		highest uint64
	}
	for name, test := range map[string]struct {
		o     Options
		steps []step
		end   string // primary N: with epoch N; other: the error
		logs  string
	}{
		"nobody is primary": {Options{Election: ElectionID{Low: 5}}, []step{{"asks", none, 0}, {"claims 5", ok, 5}}, "primary 1", ""},
		"the last primary had a larger id": {Options{Election: ElectionID{Low: 5}},
			[]step{{"asks", none, 5}, {"claims 6", ok, 6}}, "primary 1", ""},
		"the last primary had a smaller id": {Options{Election: ElectionID{Low: 5}},
			[]step{{"asks", none, 3}, {"claims 5", ok, 5}}, "primary 1", ""},
		"a switch that takes a question for a claim": {Options{Election: ElectionID{Low: 5}},
			[]step{{"asks", ok, 0}, {"claims 5", ok, 5}}, "primary 1", ""},
		"another is primary": {Options{Election: ElectionID{Low: 5}, Timeout: patient},
			[]step{{"asks", other, 7}}, "another controller is primary, with election id 7", ""},
		"another without an id is primary": {Options{Election: ElectionID{Low: 5}, Timeout: patient},
			[]step{{"asks", other, 0}}, "another controller is primary", ""},
		"a takeover": {Options{Election: ElectionID{Low: 5}, Takeover: true},
			[]step{{"claims 5", other, 7}, {"claims 8", ok, 8}}, "primary 1", ""},
		"a takeover with the largest id": {Options{Election: ElectionID{Low: 5}, Takeover: true}, []step{{"claims 5", ok, 5}}, "primary 1", ""},
		"a backup waits":                 {Options{Election: ElectionID{Low: 5}, Backup: true}, []step{{"asks", other, 7}}, "waits", "waiting until it disconnects"},
		"a backup leaves a primary that returns its id": {Options{Election: ElectionID{Low: 5}, Backup: true},
			[]step{{"asks", other, 7}, {"", none, 7}, {"claims 7", other, 7}}, "waits", "waiting until it disconnects"},
		"a backup becomes primary": {Options{Election: ElectionID{Low: 5}, Backup: true},
			[]step{{"asks", other, 7}, {"", none, 7}, {"claims 7", none, 7}, {"claims 8", ok, 8}}, "primary 1", "the other controller has disconnected"},
		"a displaced primary stays away": {Options{Election: ElectionID{Low: 5}, Timeout: patient},
			[]step{{"asks", none, 0}, {"claims 5", ok, 5}, {"", other, 9}, {"", none, 9}}, "another controller is primary, with election id 9", "this one leaves it the switch"},
		"a displaced takeover stays away": {Options{Election: ElectionID{Low: 5}, Takeover: true, Timeout: patient},
			[]step{{"claims 5", ok, 5}, {"", other, 9}, {"", none, 9}}, "another controller is primary, with election id 9", "this one leaves it the switch"},
		"being primary twice on a stream is one epoch": {Options{Election: ElectionID{Low: 5}},
			[]step{{"asks", none, 0}, {"claims 5", ok, 5}, {"", ok, 5}}, "primary 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			c, log := connect(t, s, test.o)
			x := s.next(t)
			for i, step := range test.steps {
				if step.want != "" {
					if got := x.claim(t); got != step.want {
						t.Fatalf("message %d: %s, want %s", i+1, got, step.want)
					}
				}
				x.answer(t, step.code, step.highest)
			}
			switch {
			case test.end == "waits":
				until(t, c, "it knows the primary", notPrimaryNow)
			case strings.HasPrefix(test.end, "primary"):
				_, epoch, err := c.Wait(t.Context())
				if got := fmt.Sprint("primary ", epoch); err != nil || got != test.end {
					t.Errorf("%s, %v; want %s", got, err, test.end)
				}
				if last := test.steps[len(test.steps)-1]; electionOf(c.Election()) != (ElectionID{Low: last.highest}) {
					t.Errorf("writes with election id %v, want %d", c.Election(), last.highest)
				}
			default:
				until(t, c, "it knows the primary", notPrimaryNow)
				_, _, err := c.Wait(t.Context())
				var hint *plan.Error
				if !errors.Is(err, target.ErrNotPrimary) || err.Error() != test.end || !errors.As(err, &hint) ||
					!strings.Contains(hint.Hint, "--takeover") || !strings.Contains(hint.Hint, "--backup") {
					t.Errorf("error %v, want %s with a hint", err, test.end)
				}
			}
			if test.logs != "" && !log.has(test.logs) {
				t.Errorf("log %q, want %s", log.lines, test.logs)
			}
		})
	}
}

// A switch ends the stream of a controller that claims with the id of another one.
func TestElectionIDTaken(t *testing.T) {
	taken := status.Error(codes.InvalidArgument, "the election id is in use")
	t.Run("a takeover takes the next one", func(t *testing.T) {
		s := serve(t)
		c, _ := connect(t, s, Options{Election: ElectionID{Low: 5}, Takeover: true})
		for i := range 3 {
			x := s.next(t)
			if got, want := x.claim(t), fmt.Sprint("claims ", 5+i); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
			if i < 2 {
				x.end <- taken
				continue
			}
			x.answer(t, codes.OK, 7)
		}
		if _, epoch, err := c.Wait(t.Context()); err != nil || epoch != 1 {
			t.Errorf("epoch %d, %v", epoch, err)
		}
	})
	t.Run("a backup waits again", func(t *testing.T) {
		s := serve(t)
		connect(t, s, Options{Election: ElectionID{Low: 5}, Backup: true})
		x := s.next(t)
		x.claim(t)
		x.answer(t, codes.NotFound, 7)
		if got := x.claim(t); got != "claims 7" {
			t.Fatal(got)
		}
		x.end <- taken
		if got := s.next(t).claim(t); got != "asks" {
			t.Errorf("after the primary has returned it %s", got)
		}
	})
	t.Run("others leave the switch", func(t *testing.T) {
		s := serve(t)
		c, _ := connect(t, s, Options{Election: ElectionID{Low: 5}, Timeout: patient})
		for range 2 {
			x := s.next(t)
			x.claim(t)
			x.answer(t, codes.NotFound, 0)
			x.claim(t)
			x.end <- taken
		}
		until(t, c, "it has given way", notPrimaryNow)
		if s := c.State(); !errors.Is(s.Err, target.ErrNotPrimary) || !strings.Contains(s.Err.Error(), "election id 5") {
			t.Errorf("error %v", s.Err)
		}
	})
}

// A switch that refuses each election id is left after sixteen of them.
func TestElectionEnds(t *testing.T) {
	s := serve(t)
	c, _ := connect(t, s, Options{Election: ElectionID{Low: 1}, Takeover: true})
	x := s.next(t)
	for i := range uint64(17) {
		if got, want := x.claim(t), fmt.Sprint("claims ", i+1); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		x.answer(t, codes.AlreadyExists, i+1)
	}
	if _, _, err := c.Wait(t.Context()); !errors.Is(err, target.ErrRefused) || !strings.Contains(err.Error(), "not even 18") {
		t.Errorf("error %v", err)
	}
}

// A controller that loses its stream returns with the same election id, as primary of a new epoch.
func TestStreamLost(t *testing.T) {
	s := serve(t)
	c, log := connect(t, s, Options{Election: ElectionID{Low: 5}})
	if err := c.PacketOut([]byte{1}); !errors.Is(err, target.ErrUnreachable) {
		t.Errorf("a packet before the stream: %v", err)
	}
	for epoch := 1; epoch <= 2; epoch++ {
		x := s.next(t)
		if got := x.claim(t); got != "asks" {
			t.Errorf("stream %d begins with %s", epoch, got)
		}
		x.answer(t, codes.NotFound, 0)
		if got := x.claim(t); got != "claims 5" {
			t.Error(got)
		}
		x.answer(t, codes.OK, 5)
		l, n, err := c.Wait(t.Context())
		if err != nil || n != epoch || l.Endpoint.Device != testDevice || l.Client == nil {
			t.Fatalf("epoch %d, %v, %v; want %d", n, l, err, epoch)
		}
		if err := c.PacketOut([]byte{1, 2, byte(epoch)}); err != nil {
			t.Fatal(err)
		}
		if m, err := x.up.Recv(); err != nil || !slices.Equal(m.GetPacket().GetPayload(), []byte{1, 2, byte(epoch)}) {
			t.Errorf("packet %v, %v", m, err)
		}
		if err := x.up.Send(&p4v1.StreamMessageResponse{Update: &p4v1.StreamMessageResponse_Error{Error: &p4v1.StreamError{
			CanonicalCode: int32(codes.InvalidArgument), Message: "bad\x1b[2J packet",
		}}}); err != nil {
			t.Fatal(err)
		}
		x.end <- status.Error(codes.Unavailable, "the switch restarts")
		gone := until(t, c, "the stream has ended", func(s State) bool { return !s.Primary })
		if gone.Link == nil && (!errors.Is(gone.Err, target.ErrUnreachable) || !strings.Contains(gone.Err.Error(), "at switch:9559: the switch restarts")) {
			t.Errorf("error %v", gone.Err)
		}
	}
	if !log.has("the switch answers") || !log.has("code=InvalidArgument") || !log.has(`bad\\x1b[2J packet`) {
		t.Errorf("log %q", log.lines)
	}
}

// The server's reasons for not opening a stream, and the errors of the controller.
func TestNoStream(t *testing.T) {
	for name, test := range map[string]struct {
		err        error
		kind       error
		says, hint string
	}{
		"another device": {status.Error(codes.NotFound, "no device 42"), target.ErrRefused, "refused as device 42 at switch:9559: no device 42 (NotFound)", "the topology's id"},
		"no permission":  {status.Error(codes.PermissionDenied, "go\x1baway"), target.ErrRefused, "(PermissionDenied)", ""},
		"unavailable":    {status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: dial tcp: connect: connection refused"`), target.ErrUnreachable, "cannot be reached at switch:9559: connection refused", "the key grpc"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			c, _ := connect(t, s, Options{Election: ElectionID{Low: 5}})
			s.next(t).end <- test.err
			state := until(t, c, "it knows the reason", func(s State) bool { return s.Err != nil })
			var hint *plan.Error
			if !errors.Is(state.Err, test.kind) || !strings.Contains(state.Err.Error(), test.says) || strings.Contains(state.Err.Error(), "\x1b") {
				t.Errorf("error %v, want %s", state.Err, test.says)
			}
			if !errors.As(state.Err, &hint) || !strings.Contains(hint.Hint, test.hint) || (hint.Hint == "") != (test.hint == "") {
				t.Errorf("hint of %+v, want %q", state.Err, test.hint)
			}
			if errors.Is(test.kind, target.ErrRefused) { // waiting would not help
				if _, _, err := c.Wait(t.Context()); !errors.Is(err, target.ErrRefused) {
					t.Errorf("waiting: %v", err)
				}
			}
		})
	}
	t.Run("a silent server", func(t *testing.T) {
		s := serve(t)
		c, _ := connect(t, s, Options{Election: ElectionID{Low: 5}, Timeout: 50 * time.Millisecond})
		state := until(t, c, "it gives up", func(s State) bool {
			return s.Err != nil && strings.Contains(s.Err.Error(), "no answer from switch:9559 within 50ms")
		})
		if !errors.Is(state.Err, target.ErrUnreachable) {
			t.Errorf("error %v", state.Err)
		}
	})
	t.Run("no address", func(t *testing.T) {
		c, _ := connect(t, nowhere{serve(t)}, Options{Election: ElectionID{Low: 5}})
		state := until(t, c, "it knows the reason", func(s State) bool { return s.Err != nil })
		if !errors.Is(state.Err, target.ErrUnreachable) || !errors.Is(state.Err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v", state.Err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := c.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled wait: %v", err)
		}
		late, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		if _, _, err := c.Wait(late); !errors.Is(err, target.ErrUnreachable) {
			t.Errorf("a wait without time: %v", err)
		}
	})
}

// A nowhere is a target that does not know its switch.
type nowhere struct{ *scripted }

func (nowhere) Endpoint(string) (target.Endpoint, error) {
	return target.Endpoint{}, io.ErrUnexpectedEOF
}

// A dry run asks for the program's cookie instead of taking part in the election.
func TestDryRun(t *testing.T) {
	for name, test := range map[string]struct {
		answer error
		want   error
	}{
		"a program":      {nil, nil},
		"no program yet": {status.Error(codes.FailedPrecondition, "no program"), nil},
		"a refusal":      {status.Error(codes.PermissionDenied, "not you"), target.ErrRefused},
		"no such device": {status.Error(codes.NotFound, "not here"), target.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			asked := make(chan *p4v1.GetForwardingPipelineConfigRequest, 64)
			s.config = func(r *p4v1.GetForwardingPipelineConfigRequest) error {
				asked <- r
				return test.answer
			}
			c, _ := connect(t, s, Options{Election: ElectionID{Low: 5}, DryRun: true})
			l, epoch, err := c.Wait(t.Context())
			if !errors.Is(err, test.want) || err == nil && (epoch != 1 || l.Client == nil) {
				t.Errorf("epoch %d, %v; want %v", epoch, err, test.want)
			}
			if r := <-asked; r.GetDeviceId() != testDevice || r.GetResponseType() != p4v1.GetForwardingPipelineConfigRequest_COOKIE_ONLY {
				t.Errorf("request %v", r)
			}
			if len(s.streams) > 0 {
				t.Error("a dry run opens a stream")
			}
		})
	}
}

func TestElectionIDs(t *testing.T) {
	const most = 1<<64 - 1
	for _, test := range []struct {
		id, next ElectionID
		text     string
	}{
		{ElectionID{}, ElectionID{Low: 1}, "0"},
		{ElectionID{Low: 5}, ElectionID{Low: 6}, "5"},
		{ElectionID{Low: most}, ElectionID{High: 1}, "18446744073709551615"},
		{ElectionID{High: 1}, ElectionID{High: 1, Low: 1}, "0x10000000000000000"},
		{ElectionID{High: 2, Low: most}, ElectionID{High: 3}, "0x2ffffffffffffffff"},
	} {
		if got := test.id.Next(); got != test.next || !test.id.Less(got) || got.Less(test.id) || test.id.Less(test.id) {
			t.Errorf("after %v comes %v, want %v", test.id, got, test.next)
		}
		if got := test.id.String(); got != test.text {
			t.Errorf("%+v is %s, want %s", test.id, got, test.text)
		}
		if test.id.IsZero() != (test.text == "0") || electionOf(test.id.proto()) != test.id {
			t.Errorf("%v: zero %v, in a message %v", test.id, test.id.IsZero(), test.id.proto())
		}
	}
	if (ElectionID{High: 1}).Less(ElectionID{Low: 9}) || !(ElectionID{Low: 9}).Less(ElectionID{High: 1}) {
		t.Error("the low half decides although the high halves differ")
	}
}
