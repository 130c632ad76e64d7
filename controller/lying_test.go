package controller

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/target"
)

// patience is the time limit for expected events.
const patience = 3 * time.Minute

// A liar is a switch that answers reads as it likes.
type liar struct {
	p4v1.UnimplementedP4RuntimeServer
	read func(send func(*p4v1.ReadResponse) error) error
}

func (l *liar) Read(_ *p4v1.ReadRequest, s p4v1.P4Runtime_ReadServer) error { return l.read(s.Send) }

// lying is the link to a switch that answers reads as it likes.
func lying(t *testing.T, read func(send func(*p4v1.ReadResponse) error) error) *primary.Link {
	t.Helper()
	listen := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	p4v1.RegisterP4RuntimeServer(server, &liar{read: read})
	go server.Serve(listen)
	t.Cleanup(server.Stop)
	e := target.Endpoint{Address: "liar", Dial: func(ctx context.Context) (net.Conn, error) { return listen.DialContext(ctx) }}
	cc, err := primary.Dial(e, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return &primary.Link{Endpoint: e, Client: p4v1.NewP4RuntimeClient(cc)}
}

func TestAnswersOfLyingSwitches(t *testing.T) {
	entry := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: 1}}}
	large := &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{Metadata: make([]byte, 3<<20)}}}
	forever := func(m *p4v1.ReadResponse, pause time.Duration) func(func(*p4v1.ReadResponse) error) error {
		return func(send func(*p4v1.ReadResponse) error) error {
			for {
				if err := send(m); err != nil {
					return err
				}
				<-time.After(pause)
			}
		}
	}
	for name, c := range map[string]struct {
		read func(func(*p4v1.ReadResponse) error) error
		want string
		wait time.Duration
	}{
		"without end":  {forever(&p4v1.ReadResponse{Entities: []*p4v1.Entity{entry, entry}}, 0), "exceeds the program's capacity of 100 entities", patience},
		"too large":    {forever(&p4v1.ReadResponse{Entities: []*p4v1.Entity{large}}, 0), "exceeds the program's capacity of 100 entities", patience},
		"of nothing":   {forever(&p4v1.ReadResponse{}, time.Millisecond), "no answer within 50ms", 50 * time.Millisecond},
		"that trickle": {forever(&p4v1.ReadResponse{Entities: []*p4v1.Entity{entry}}, 20*time.Millisecond), "too slowly", 50 * time.Millisecond},
		"with escapes": {func(func(*p4v1.ReadResponse) error) error {
			return status.Error(codes.Internal, strings.Repeat("\x1b[31mevil\x07\n", 1000))
		}, `\x1b[31mevil\a\n`, patience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := lying(t, c.read)
				_, err := readEntities(t.Context(), l, c.wait, 100, func(err error) error { return err }, entry)
				if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2*len(primary.Clean(strings.Repeat("x", 1<<16))) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if err != nil && strings.ContainsAny(err.Error(), "\x1b\x07\n") {
					t.Errorf("a text for a terminal: %q", err)
				}
			})
		})
	}
}

func TestDetailsOfLyingSwitches(t *testing.T) {
	s, err := status.New(codes.Unknown, "x").WithDetails(&p4v1.Error{CanonicalCode: int32(codes.NotFound), Message: "\x1b]0;evil\x07"})
	if err != nil {
		t.Fatal(err)
	}
	if _, first, _ := updateErrors(s.Err()); first == nil || first.msg != `\x1b]0;evil\a` {
		t.Errorf("got %+v", first)
	}
	if _, err := (&p4Registers{index: &p4info.Index{Registers: map[string]*p4info.Register{"r": {Name: "r", Size: 1<<31 - 1}}}}).Read(t.Context(), "r", 0, 1<<31-1, nil); err == nil {
		t.Error("a register of 2 billion cells is read")
	}
}
