package embedded_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// A fault is a proxy between a controller and the real server of a switch. Its fields
// replace calls; nil fields pass them on.
type fault struct {
	p4v1.UnimplementedP4RuntimeServer
	real p4v1.P4RuntimeClient

	getConfig func(*p4v1.GetForwardingPipelineConfigResponse) error
	setConfig func(*p4v1.SetForwardingPipelineConfigRequest) error
	write     func(ctx context.Context, r *p4v1.WriteRequest) error
	read      func(all []*p4v1.Entity) ([]*p4v1.Entity, error)
	stream    func(n int) error // before the nth message to the switch
	answer    func(*p4v1.StreamMessageResponse)
}

func (f *fault) GetForwardingPipelineConfig(ctx context.Context, r *p4v1.GetForwardingPipelineConfigRequest) (*p4v1.GetForwardingPipelineConfigResponse, error) {
	a, err := f.real.GetForwardingPipelineConfig(ctx, r)
	if err == nil && f.getConfig != nil {
		err = f.getConfig(a)
	}
	return a, err
}

func (f *fault) SetForwardingPipelineConfig(ctx context.Context, r *p4v1.SetForwardingPipelineConfigRequest) (*p4v1.SetForwardingPipelineConfigResponse, error) {
	if f.setConfig != nil {
		if err := f.setConfig(r); err != nil {
			return nil, err
		}
	}
	return f.real.SetForwardingPipelineConfig(ctx, r)
}

func (f *fault) Write(ctx context.Context, r *p4v1.WriteRequest) (*p4v1.WriteResponse, error) {
	if f.write != nil {
		if err := f.write(ctx, r); err != nil {
			return nil, err
		}
	}
	return f.real.Write(ctx, r)
}

func (f *fault) Read(r *p4v1.ReadRequest, out p4v1.P4Runtime_ReadServer) error {
	in, err := f.real.Read(out.Context(), r)
	if err != nil {
		return err
	}
	var all []*p4v1.Entity
	for {
		m, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		all = append(all, m.GetEntities()...)
	}
	if f.read != nil {
		if all, err = f.read(all); err != nil {
			out.Send(&p4v1.ReadResponse{Entities: all})
			return err
		}
	}
	return out.Send(&p4v1.ReadResponse{Entities: all})
}

func (f *fault) StreamChannel(up p4v1.P4Runtime_StreamChannelServer) error {
	down, err := f.real.StreamChannel(up.Context())
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() {
		for n := 1; ; n++ {
			m, err := up.Recv()
			if err == nil && f.stream != nil {
				err = f.stream(n)
			}
			if err != nil {
				failed <- err
				return
			}
			down.Send(m)
		}
	}()
	go func() {
		for {
			m, err := down.Recv()
			if err != nil {
				failed <- err
				return
			}
			if f.answer != nil {
				f.answer(m)
			}
			up.Send(m)
		}
	}()
	return <-failed
}

// A faulty target has a fault in front of one of its switches.
type faulty struct {
	*embedded.Target
	t     testing.TB
	name  string
	fault *fault
	front *bufconn.Listener
}

// newFaulty puts a fault in front of a switch.
func newFaulty(t testing.TB, p *plan.Plan, name string, f *fault) *faulty {
	t.Helper()
	target := &faulty{Target: newTarget(t, embedded.Options{Memory: true, Still: true}), t: t, name: name, fault: f}
	if err := target.Start(testContext(t), p); err != nil {
		t.Fatal(err)
	}
	e, err := target.Target.Endpoint(name)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:"+name, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return e.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	f.real = p4v1.NewP4RuntimeClient(conn)
	target.front = bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	p4v1.RegisterP4RuntimeServer(server, f)
	go server.Serve(target.front)
	t.Cleanup(func() {
		server.Stop()
		conn.Close()
	})
	return target
}

// Endpoint leads to the fault, for registers as well.
func (f *faulty) Endpoint(name string) (target.Endpoint, error) {
	e, err := f.Target.Endpoint(name)
	if name == f.name {
		e.Dial = f.front.DialContext
		e.Registers, e.Local = nil, nil
	}
	return e, err
}

// short is the time that a test waits for an event that must not happen. It is long
// enough for expected events on a busy machine.
const short = 2 * time.Second

// TestRefused: a refusal is reported with its object and its reason, and the other
// switches receive their plan.
func TestRefused(t *testing.T) {
	no := status.Error(codes.Internal, "the hardware is on fire")
	for _, test := range []struct {
		name  string
		fault *fault
		want  error
		text  string
	}{
		{"stream", &fault{stream: func(int) error { return status.Error(codes.PermissionDenied, "no controllers on Sundays") }},
			target.ErrRefused, "no controllers on Sundays"},
		{"silence", &fault{stream: func(int) error { <-t.Context().Done(); return nil }},
			target.ErrUnreachable, "within 2s"},
		{"never primary", &fault{answer: func(m *p4v1.StreamMessageResponse) {
			m.GetArbitration().Status.Code = int32(codes.NotFound)
		}}, target.ErrRefused, "no election id makes this controller primary, not even 17"},
		{"reading the config", &fault{getConfig: func(*p4v1.GetForwardingPipelineConfigResponse) error { return no }},
			target.ErrRefused, "reading the program: refused: the hardware is on fire (Internal)"},
		{"the config", &fault{setConfig: func(*p4v1.SetForwardingPipelineConfigRequest) error {
			return status.Error(codes.InvalidArgument, "this is no BMv2 JSON")
		}}, target.ErrRefused, "pushing the program: refused: this is no BMv2 JSON (InvalidArgument)"},
		{"another P4Info", &fault{getConfig: func(r *p4v1.GetForwardingPipelineConfigResponse) error {
			if r.GetConfig().GetP4Info() != nil {
				r.Config.P4Info.Tables = r.Config.P4Info.Tables[1:]
			}
			return nil
		}}, target.ErrOtherProgram, "answers with another P4Info"},
		{"another cookie", &fault{getConfig: func(r *p4v1.GetForwardingPipelineConfigResponse) error {
			if r.GetConfig().GetCookie() != nil {
				r.Config.Cookie.Cookie++
			}
			return nil
		}}, target.ErrOtherProgram, "cookie"},
		{"writing", &fault{write: func(context.Context, *p4v1.WriteRequest) error { return no }},
			target.ErrRefused, "the hardware is on fire (Internal)"},
		{"mastership in passing", &fault{write: func(context.Context, *p4v1.WriteRequest) error {
			return status.Error(codes.PermissionDenied, "you are not primary")
		}}, target.ErrNotPrimary, "you are not primary"},
		{"reading", &fault{read: func([]*p4v1.Entity) ([]*p4v1.Entity, error) { return nil, no }},
			target.ErrRefused, "reading the tables: refused: the hardware is on fire"},
		{"half the answer", &fault{read: func(all []*p4v1.Entity) ([]*p4v1.Entity, error) {
			return all[:len(all)/2], status.Error(codes.Unavailable, "connection reset by peer")
		}}, target.ErrUnreachable, "connection reset by peer"},
		{"forgetting", &fault{read: func(all []*p4v1.Entity) ([]*p4v1.Entity, error) {
			return slices.DeleteFunc(all, func(e *p4v1.Entity) bool { return len(e.GetTableEntry().GetMatch()) == 2 }), nil
		}}, target.ErrRefused, "inserting LbIngress.member gid=1 slot=0"},
		{"forgetting registers", &fault{read: func(all []*p4v1.Entity) ([]*p4v1.Entity, error) {
			return slices.DeleteFunc(all, func(e *p4v1.Entity) bool { return e.GetRegisterEntry() != nil }), nil
		}}, nil, "reading register rtt: 0 of 18 cells came"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := planFor(t, "drill+rlb", preset(t, "qall"))
			target := newFaulty(t, p, "s1", test.fault)
			var o controller.DeployOptions
			if test.name == "silence" {
				o.Timeout = short
			}
			r, err := controller.Deploy(testContext(t), p, target, o)
			var list plan.Errors
			if !errors.As(err, &list) || len(list) != 1 || list[0].Switch != "s1" {
				t.Fatalf("the error is %v, want one about s1", err)
			}
			if test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("the error is %q, want %q", err, test.text)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than a line: %q", err)
			}
			for _, s := range r.Switches {
				if s.Verified != (s.Name != "s1") {
					t.Errorf("%s: verified is %v", s.Name, s.Verified)
				}
			}
		})
	}
}

// TestRefusedEntry: the error names the entry for which a switch has no room.
func TestRefusedEntry(t *testing.T) {
	p := planFor(t, "ecmp", preset(t, "qall"))
	target := newFaulty(t, p, "l1", &fault{write: func(_ context.Context, r *p4v1.WriteRequest) error {
		s := status.New(codes.Unknown, "1 update failed")
		s, _ = s.WithDetails(&p4v1.Error{}, &p4v1.Error{CanonicalCode: int32(codes.ResourceExhausted), Message: "the table is full"})
		return s.Err()
	}})
	_, err := controller.Deploy(testContext(t), p, target, controller.DeployOptions{})
	const want = "l1: inserting LbIngress.member gid=1 slot=1: refused: the table is full (ResourceExhausted)"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestPassing: transient errors are retried.
func TestPassing(t *testing.T) {
	once := func() func() bool {
		var n atomic.Int32
		return func() bool { return n.Add(1) == 1 }
	}
	reset := status.Error(codes.Unavailable, "connection reset by peer")
	for name, f := range map[string]func(first func() bool) *fault{
		"a write that is lost": func(first func() bool) *fault {
			return &fault{write: func(context.Context, *p4v1.WriteRequest) error {
				if first() {
					return reset
				}
				return nil
			}}
		},
		"a write that is done but not answered": func(first func() bool) *fault {
			f := &fault{}
			f.write = func(ctx context.Context, r *p4v1.WriteRequest) error {
				if first() {
					f.real.Write(ctx, r)
					return reset
				}
				return nil
			}
			return f
		},
		"a write that takes too long": func(first func() bool) *fault {
			return &fault{write: func(ctx context.Context, _ *p4v1.WriteRequest) error {
				if first() {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}}
		},
		"half a write": func(first func() bool) *fault {
			f := &fault{}
			f.write = func(ctx context.Context, r *p4v1.WriteRequest) error {
				if first() {
					r.Updates = r.Updates[:len(r.Updates)/2]
				}
				return nil
			}
			return f
		},
		"a read that is cut": func(first func() bool) *fault {
			return &fault{read: func(all []*p4v1.Entity) ([]*p4v1.Entity, error) {
				if first() {
					return all[:len(all)/2], reset
				}
				return all, nil
			}}
		},
		"a config that is lost": func(first func() bool) *fault {
			return &fault{setConfig: func(*p4v1.SetForwardingPipelineConfigRequest) error {
				if first() {
					return reset
				}
				return nil
			}}
		},
		"a stream that breaks": func(first func() bool) *fault {
			return &fault{stream: func(int) error {
				if first() {
					return reset
				}
				return nil
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := planFor(t, "drill+rlb", preset(t, "qall"))
			target := newFaulty(t, p, "l1", f(once()))
			deploy(t, p, target, controller.DeployOptions{Timeout: short})
			settled(t, p, target)
		})
	}
}

// meddle writes to a switch as another controller, which then ends.
func meddle(t testing.TB, target *embedded.Target, name string, updates ...*p4v1.Update) {
	t.Helper()
	e, err := target.Endpoint(name)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:"+name, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return e.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := p4v1.NewP4RuntimeClient(conn)
	stream, err := client.StreamChannel(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	id := &p4v1.Uint128{Low: 9}
	stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: e.Device, ElectionId: id},
	}})
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write(testContext(t), &p4v1.WriteRequest{DeviceId: e.Device, ElectionId: id, Updates: updates}); err != nil {
		t.Fatal(err, status.Convert(err).Details())
	}
	stream.CloseSend()
}

// TestDoubled: duplicate replicas are removed.
func TestDoubled(t *testing.T) {
	p := planFor(t, "hula", preset(t, "qall"))
	target := newTarget(t, embedded.Options{Memory: true, Still: true})
	deploy(t, p, target, controller.DeployOptions{})
	g := p.Switch("s1").Groups[0]
	var twice []*p4v1.Replica
	for instance := range 2 {
		for _, port := range g.Ports {
			//lint:ignore SA1019 the form that the controller sends
			twice = append(twice, &p4v1.Replica{PortKind: &p4v1.Replica_EgressPort{EgressPort: uint32(port)}, Instance: uint32(instance + 1)})
		}
	}
	meddle(t, target, "s1", &p4v1.Update{
		Type: p4v1.Update_MODIFY,
		Entity: &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: &p4v1.MulticastGroupEntry{MulticastGroupId: uint32(g.ID), Replicas: twice}},
		}}},
	})
	r := deploy(t, p, target, controller.DeployOptions{Takeover: true})
	if r.Written() != 1 {
		t.Errorf("%d changes, want the one group: %v", r.Written(), r.ChangeRows())
	}
}
