package gate

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// A faulty service panics as requested, in its methods or in its codec.
type faulty struct {
	healthv1.UnimplementedHealthServer
	encoding.CodecV2
}

const fine, inHandler, inAnswer, inMessage = "fine", "in a handler", "in an answer", "in a message"

func (faulty) fault(service string) *healthv1.HealthCheckResponse {
	if service == inHandler {
		panic(service)
	}
	m := &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}
	if service == inAnswer {
		m.Status = healthv1.HealthCheckResponse_UNKNOWN
	}
	return m
}

func (f faulty) Check(_ context.Context, m *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return f.fault(m.GetService()), nil
}

func (f faulty) Watch(m *healthv1.HealthCheckRequest, stream healthv1.Health_WatchServer) error {
	return stream.Send(f.fault(m.GetService()))
}

func (f faulty) Marshal(v any) (mem.BufferSlice, error) {
	if v.(*healthv1.HealthCheckResponse).GetStatus() == healthv1.HealthCheckResponse_UNKNOWN {
		panic(inAnswer)
	}
	return f.CodecV2.Marshal(v)
}

func (f faulty) Unmarshal(list mem.BufferSlice, v any) error {
	err := f.CodecV2.Unmarshal(list, v)
	if v.(*healthv1.HealthCheckRequest).GetService() == inMessage {
		panic(inMessage)
	}
	return err
}

// TestFaults: a call that panics anywhere is answered with INTERNAL, and one
// line of the log has the stack; the server continues.
func TestFaults(t *testing.T) {
	var said bytes.Buffer
	limits := new(Limits)
	if err := limits.Complete(); err != nil {
		t.Fatal(err)
	}
	g := New(limits, healthv1.Health_ServiceDesc.ServiceName, func() bool { return false }, slog.New(slog.NewTextHandler(&said, nil)))
	f := faulty{CodecV2: encoding.GetCodecV2("proto")}
	s := grpc.NewServer(g.Options(nil, f)...)
	healthv1.RegisterHealthServer(s, f)
	l := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- g.Serve(s, l) }()
	conn, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	c := healthv1.NewHealthClient(conn)
	kinds := map[string]func(*healthv1.HealthCheckRequest) error{
		"call": func(m *healthv1.HealthCheckRequest) error {
			_, err := c.Check(t.Context(), m)
			return err
		},
		"stream": func(m *healthv1.HealthCheckRequest) error {
			stream, err := c.Watch(t.Context(), m)
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	}
	faults := 0
	for kind, ask := range kinds {
		for _, where := range []string{inHandler, fine, inAnswer, fine, inMessage, fine} {
			want := codes.Internal
			if where == fine {
				want = codes.OK
			} else {
				faults++
			}
			if err := ask(&healthv1.HealthCheckRequest{Service: where}); status.Code(err) != want {
				t.Errorf("%s, %s: %v, want %v", kind, where, err, want)
			}
		}
	}
	conn.Close()
	s.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != faults {
		t.Errorf("%d log lines, want %d:\n%s", len(lines), faults, said.String())
	}
	for _, line := range lines {
		if !strings.Contains(line, "panics_test.go") {
			t.Errorf("log line without a stack: %s", line)
		}
	}
}
