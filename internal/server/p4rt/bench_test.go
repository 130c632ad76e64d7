package p4rt

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// loopback returns the primary of a configured server on a TCP socket.
func loopback(b *testing.B) *session {
	b.Helper()
	r := newRig(b, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go r.server.Serve(l)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	r.client = p4v1.NewP4RuntimeClient(conn)
	s := r.open()
	s.claim(arbitration(1))
	s.wantArbitration(codes.OK, uint128(1))
	s.must(s.configure(commitNew, testConfig(b)))
	b.ResetTimer()
	return s
}

// count reads entities and returns their number.
func (s *session) count(e *p4v1.Entity) int {
	stream, err := s.rig.client.Read(context.Background(), &p4v1.ReadRequest{DeviceId: testDevice, Entities: []*p4v1.Entity{e}})
	s.must(err)
	n := 0
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return n
		}
		s.must(err)
		n += len(m.GetEntities())
	}
}

// routes returns inserts of n routes, starting with number first.
func routes(b testing.TB, first, n int) []*p4v1.Update {
	list := make([]*p4v1.Update, n)
	table, act := idOf(b, "AllIngress.routes"), idOf(b, "AllIngress.metered")
	for i := range list {
		at := first + i
		list[i] = update(ins, entityOf(&p4v1.TableEntry{
			TableId: table,
			Match:   []*p4v1.FieldMatch{lpm(1, string([]byte{byte(10 + at>>16), byte(at >> 8), byte(at), 0}), 24)},
			Action: tableAction(&p4v1.Action{ActionId: act, Params: []*p4v1.Action_Param{
				{ParamId: 1, Value: []byte{byte(1 + at%64)}},
			}}),
		}))
	}
	return list
}

// BenchmarkLoadRoutes loads 100,000 LPM routes in batches of 1000.
func BenchmarkLoadRoutes(b *testing.B) {
	const total, batch = 100_000, 1000
	for b.Loop() {
		b.StopTimer()
		s := loopback(b)
		var all [][]*p4v1.Update
		for i := 0; i < total; i += batch {
			all = append(all, routes(b, i, batch))
		}
		b.StartTimer()
		for _, u := range all {
			s.must(s.write(u...))
		}
	}
	b.ReportMetric(total*float64(b.N)/b.Elapsed().Seconds(), "routes/s")
}

// BenchmarkWrites inserts and deletes routes in batches of 100.
func BenchmarkWrites(b *testing.B) {
	s := loopback(b)
	in, out := routes(b, 0, 100), routes(b, 0, 100)
	for _, u := range out {
		u.Type = del
	}
	n := 0
	for b.Loop() {
		s.must(s.write(in...))
		s.must(s.write(out...))
		n += len(in) + len(out)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "writes/s")
}

// BenchmarkSingleWrites sends one update per request.
func BenchmarkSingleWrites(b *testing.B) {
	s := loopback(b)
	in, out := routes(b, 0, 1), routes(b, 0, 1)
	out[0].Type = del
	for b.Loop() {
		s.must(s.write(in...))
		s.must(s.write(out...))
	}
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

func benchmarkRead(b *testing.B, register string, want int) {
	s := loopback(b)
	s.must(s.write(update(mod, registerEntity(b, register, -1, bitstring("\x12\x34")))))
	all := registerEntity(b, register, -1, nil)
	for b.Loop() {
		if n := s.count(all); n != want {
			b.Fatalf("read %d cells, want %d", n, want)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}

func BenchmarkRead512Cells(b *testing.B) { benchmarkRead(b, "AllIngress.sizes", 512) }

func BenchmarkRead65536Cells(b *testing.B) { benchmarkRead(b, "AllIngress.many", 65536) }

// BenchmarkLoadACL loads 10,000 ternary entries in batches of 1000.
func BenchmarkLoadACL(b *testing.B) {
	const total, batch = 10_000, 1000
	for b.Loop() {
		b.StopTimer()
		s := loopback(b)
		var all [][]*p4v1.Update
		for i := 0; i < total; i += batch {
			var list []*p4v1.Update
			for j := i; j < i+batch; j++ {
				list = append(list, insert(b, aclEntry(b, int32(1+j),
					ternary(1, string([]byte{10, byte(j >> 8), byte(j), 0}), "\xff\xff\xff\x00"), exact(4, "\x40"))))
			}
			all = append(all, list)
		}
		b.StartTimer()
		for _, u := range all {
			s.must(s.write(u...))
		}
	}
	b.ReportMetric(total*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
}
