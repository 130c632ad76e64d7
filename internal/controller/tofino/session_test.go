package tofino_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/codegen"
	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/pipeline"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/primary"
	"github.com/p4lb/p4lb/internal/controller/registers"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/scheme"
)

// chipPlan is a plan of a scheme for Tofino in a fabric of two leaves and two spines.
func chipPlan(t *testing.T, name string) *plan.Plan {
	t.Helper()
	top, err := fabric.LeafSpine{Name: "x", Leaves: 2, Spines: 2, Hosts: 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	name, arch, _ := strings.Cut(name, "@")
	top = plan.DevicePorts(top, arch)
	row, err := codegen.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	paths, port := plan.Sizes(top)
	all := map[fabric.Role]*plan.Pipeline{}
	for _, role := range []fabric.Role{fabric.Leaf, fabric.Spine} {
		g, err := scheme.Of(row).Build(codegen.Params{Arch: arch, Ports: paths, MaxPort: port, Role: string(role)})
		if err != nil {
			t.Fatal(err)
		}
		p, err := pipeline.Compiled(g)
		if err != nil {
			t.Fatal(err)
		}
		a, err := tofino.Embedded(p)
		if err != nil {
			t.Fatal(err)
		}
		all[role] = &plan.Pipeline{Manifest: p.Manifest, P4Info: p.P4Info, Schema: p.Schema}
		if all[role].Config, err = a.Encode(); err != nil {
			t.Fatal(err)
		}
	}
	p, err := plan.New(top, all, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A rig is a deployed switch, a session to it and a client of BfRt beside it.
type rig struct {
	t       *testing.T
	target  *embedded.Target
	plan    *plan.Plan
	conn    *interposed
	session target.Endpoint
	client  p4v1.P4RuntimeClient
	other   wire.Client
	program string
	schema  *bfrt.Schema
}

// An interposed connection lets a test answer calls instead of the switch. args is nil for
// streams.
type interposed struct {
	grpc.ClientConnInterface
	fails func(method string, args any) error
}

func (c *interposed) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if c.fails != nil {
		if err := c.fails(method, args); err != nil {
			return err
		}
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

func (c *interposed) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if c.fails != nil {
		if err := c.fails(method, nil); err != nil {
			return nil, err
		}
	}
	return c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
}

func newRig(t *testing.T, scheme string) *rig {
	t.Helper()
	return rigOf(t, chipPlan(t, scheme))
}

func rigOf(t *testing.T, p *plan.Plan) *rig {
	t.Helper()
	r := &rig{t: t, plan: p, target: embedded.New(embedded.Options{Memory: true, Still: true, BfRt: true})}
	t.Cleanup(func() { r.target.Close() })
	if _, err := controller.Deploy(t.Context(), r.plan, r.target, controller.DeployOptions{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.session, err = r.target.Endpoint("l1"); err != nil {
		t.Fatal(err)
	}
	conn, err := primary.Dial(r.session, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r.conn = &interposed{ClientConnInterface: conn}
	r.client = r.session.Open(r.conn)
	r.other = wire.Client{Conn: conn}
	m, err := r.other.GetForwardingPipelineConfig(t.Context(), &wire.GetForwardingPipelineConfigRequest{ClientId: 77})
	if err != nil {
		t.Fatal(err)
	}
	r.program = m.GetConfig()[0].GetP4Name()
	if r.schema, err = bfrt.Decode(m.GetConfig()[0].GetBfruntimeInfo()); err != nil {
		t.Fatal(err)
	}
	chip, err := bfrt.Decode(m.GetNonP4Config().GetBfruntimeInfo())
	if err != nil {
		t.Fatal(err)
	}
	r.schema.Tables = append(r.schema.Tables, chip.Tables...)
	return r
}

// write writes an entry to a pipe as another client: the numbers of its key, and names and
// numbers of its data.
func (r *rig) write(pipe uint32, table string, key []uint64, list ...any) {
	r.t.Helper()
	for _, t := range r.schema.Tables {
		if !strings.HasSuffix(t.Name, table) {
			continue
		}
		e := &wire.TableEntry{TableId: t.ID, Data: &wire.TableData{}}
		k := &wire.TableKey{}
		for i, v := range key {
			k.Fields = append(k.Fields, &wire.KeyField{FieldId: t.Key[i].ID, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: bytesOf(v, t.Key[i].Bits())}}})
		}
		e.Value = &wire.TableEntry_Key{Key: k}
		for i := 0; i < len(list); i += 2 {
			for _, d := range t.Data {
				for _, f := range d.Fields() {
					if f.Name != list[i] && !strings.HasSuffix(f.Name, "."+list[i].(string)) {
						continue
					}
					x := &wire.DataField{FieldId: f.ID}
					switch v := list[i+1].(type) {
					case int:
						x.Value = &wire.DataField_Stream{Stream: bytesOf(uint64(v), f.Bits())}
					case bool:
						x.Value = &wire.DataField_BoolVal{BoolVal: v}
					case string:
						x.Value = &wire.DataField_StrVal{StrVal: v}
					case float32:
						x.Value = &wire.DataField_FloatVal{FloatVal: v}
					}
					e.Data.Fields = append(e.Data.Fields, x)
				}
			}
		}
		_, err := r.other.Write(r.t.Context(), &wire.WriteRequest{
			Target: &wire.TargetDevice{PipeId: pipe, Direction: wire.AllDirections, PrsrId: wire.AllParsers}, ClientId: 77, P4Name: r.program,
			Updates: []*wire.Update{{Type: wire.Update_MODIFY, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}}}},
		})
		if err != nil {
			r.t.Fatal(table, err)
		}
		return
	}
	r.t.Fatalf("there is no table %s", table)
}

func bytesOf(v uint64, width int) []byte {
	b := make([]byte, (width+7)/8)
	for i := len(b) - 1; i >= 0; i, v = i-1, v>>8 {
		b[i] = byte(v)
	}
	return b
}

// Registers are read from the first pipe that the plan uses, cell by cell or as a whole, and
// written in all pipes.
func TestRegisters(t *testing.T) {
	r := newRig(t, "letflow@tna")
	ctx := t.Context()
	at := r.plan.Switch("l1")
	for i := range at.Queues { // as if the links were at the second pipe
		at.Queues[i].Port += 128
	}
	for _, reg := range at.Pipeline.Manifest.Registers {
		cell := fmt.Sprintf("%s of %d bits", reg.Name, reg.Width)
		most := uint64(1)<<reg.Width - 1
		last := min(reg.Size, 200)
		if last < 2 {
			continue
		}
		if err := r.session.Registers.Write(ctx, reg.Name, 0, last, 5&most); err != nil {
			t.Fatal(cell, err)
		}
		if err := r.session.Registers.Write(ctx, reg.Name, last-1, last, most); err != nil {
			t.Fatal(cell, err)
		}
		for _, span := range [][2]int{{0, last}, {last - 2, last}, {0, min(64, last)}, {0, min(65, last)}, {1, 1}} {
			got, err := r.session.Registers.Read(ctx, reg.Name, span[0], span[1], []uint64{99})
			want := []uint64{99}
			for i := span[0]; i < span[1]; i++ {
				want = append(want, map[bool]uint64{false: 5 & most, true: most}[i == last-1])
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: cells %d to %d: %d, %v", cell, span[0], span[1], got, err)
			}
		}
	}
	name := at.Pipeline.Manifest.Registers[0].Name
	table := r.schema.Table("pipe." + name)
	part := table.Data[0].Singleton.Name
	for pipe := range uint32(2) {
		r.write(pipe, name, []uint64{3}, part, int(pipe)+1)
	}
	if got, err := r.session.Registers.Read(ctx, name, 3, 4, nil); err != nil || !slices.Equal(got, []uint64{2}) {
		t.Errorf("of two pipes the cell is %d, %v; want the value in pipe 1", got, err)
	}
	for i := range at.Queues {
		at.Queues[i].Port -= 128
	}
	if got, err := r.session.Registers.Read(ctx, name, 3, 4, nil); err != nil || !slices.Equal(got, []uint64{1}) {
		t.Errorf("of two pipes the cell is %d, %v; want the value in pipe 0", got, err)
	}
	// Without a plan, the pipes in use are unknown.
	watch := tofino.Watch(0)(r.conn)
	for first, want := range []uint64{2, 1} {
		r.write(0, name, []uint64{3}, part, first)
		if got, err := watch.Registers.Read(ctx, name, 3, 4, nil); err != nil || !slices.Equal(got, []uint64{want}) {
			t.Errorf("of pipes with %d and 2 the cell is %d, %v; want the first that is not 0", first, got, err)
		}
	}
	for _, span := range [][2]int{{-1, 1}, {2, 1}, {0, 1 << 30}} {
		if got, err := r.session.Registers.Read(ctx, name, span[0], span[1], nil); err == nil || !strings.Contains(err.Error(), "are outside 0..") {
			t.Errorf("cells %v: %d, %v", span, got, err)
		}
	}
	for _, bad := range []string{"none", "LbIngress.ipv4_route"} {
		if err := r.session.Registers.Write(ctx, bad, 0, 1, 1); err == nil || !strings.Contains(err.Error(), "writing register "+bad+": the program has no register "+bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Errors of the switch become the controller's: the reason, with the name of the register.
func TestRegisterFaults(t *testing.T) {
	l := newRig(t, "letflow@tna")
	p := l.plan.Switch("l1").Pipeline.Manifest.Registers[0].Name
	for code, want := range map[codes.Code]error{
		codes.Unimplemented: errors.ErrUnsupported, codes.Unavailable: target.ErrUnreachable, codes.DeadlineExceeded: target.ErrUnreachable, codes.Canceled: target.ErrUnreachable,
		codes.PermissionDenied: target.ErrNotPrimary, codes.InvalidArgument: target.ErrRefused, codes.Internal: target.ErrRefused,
	} {
		l.conn.fails = func(method string, args any) error {
			if _, ok := args.(*wire.WriteRequest); ok {
				return status.Error(code, "because")
			}
			return nil
		}
		if err := l.session.Registers.Write(t.Context(), p, 0, 1, 1); !errors.Is(err, want) || !strings.Contains(err.Error(), "writing register "+p) {
			t.Errorf("writing, %v: %v", code, err)
		}
		if _, err := l.session.Registers.Read(t.Context(), p, 0, 65, nil); !errors.Is(err, want) || !strings.Contains(err.Error(), "reading register "+p) {
			t.Errorf("reading, %v: %v", code, err)
		}
	}
	l.conn.fails = nil
	if err := l.session.Registers.Write(t.Context(), p, 0, 1, 1); err != nil {
		t.Error(err)
	}
}

// Whichever call of an access fails, the access returns its error. The next session works.
func TestEveryCallCanFail(t *testing.T) {
	r := newRig(t, "conga@tna")
	ctx := t.Context()
	at := r.plan.Switch("l1")
	register, port := at.Pipeline.Manifest.Registers[0].Name, r.plan.Topology.Ports("l1")[0].Number
	filters, err := r.session.Filters.List(ctx)
	if err != nil || len(filters) == 0 {
		t.Fatal("no filters", err)
	}
	read := func(s target.Session, e *p4v1.Entity) error {
		stream, err := s.Client.Read(ctx, &p4v1.ReadRequest{Entities: []*p4v1.Entity{e}})
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
	replication := func(e *p4v1.PacketReplicationEngineEntry) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}}
	}
	replicas := func(ports ...byte) (list []*p4v1.Replica) {
		for i, p := range ports {
			list = append(list, &p4v1.Replica{PortKind: &p4v1.Replica_Port{Port: []byte{p}}, Instance: uint32(i + 1)})
		}
		return list
	}
	clone := replication(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: &p4v1.CloneSessionEntry{SessionId: 900, Replicas: replicas(1)}}})
	group := func(ports ...byte) *p4v1.Entity {
		return replication(&p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: &p4v1.MulticastGroupEntry{MulticastGroupId: 900, Replicas: replicas(ports...)}}})
	}
	write := func(s target.Session, kind p4v1.Update_Type, e *p4v1.Entity) error {
		_, err := s.Client.Write(ctx, &p4v1.WriteRequest{Updates: []*p4v1.Update{{Type: kind, Entity: e}}})
		for _, d := range status.Convert(err).Details() {
			err = errors.New(d.(*p4v1.Error).GetMessage())
		}
		return err
	}
	for _, op := range []struct {
		name string
		do   func(s target.Session) error
		undo func(s target.Session) error // restores the state before do, which may have failed
	}{
		{"program", func(s target.Session) error {
			_, err := s.Client.GetForwardingPipelineConfig(ctx, &p4v1.GetForwardingPipelineConfigRequest{})
			return err
		}, nil},
		{"tables", func(s target.Session) error {
			return read(s, &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{}}})
		}, nil},
		{"sessions", func(s target.Session) error { return read(s, clone) }, nil},
		{"groups", func(s target.Session) error { return read(s, group()) }, nil},
		{"insert session", func(s target.Session) error { return write(s, p4v1.Update_INSERT, clone) }, func(s target.Session) error { return write(s, p4v1.Update_DELETE, clone) }},
		{"delete session", func(s target.Session) error {
			if err := write(s, p4v1.Update_INSERT, clone); err != nil {
				return err
			}
			return write(s, p4v1.Update_DELETE, clone)
		}, func(s target.Session) error { return write(s, p4v1.Update_DELETE, clone) }},
		{"few cells", func(s target.Session) error { _, err := s.Registers.Read(ctx, register, 0, 2, nil); return err }, nil},
		{"many cells", func(s target.Session) error { _, err := s.Registers.Read(ctx, register, 0, 65, nil); return err }, nil},
		{"write cells", func(s target.Session) error { return s.Registers.Write(ctx, register, 0, 2, 0) }, nil},
		{"counts of ports", func(s target.Session) error { _, err := s.Registers.(registers.Meter).PortCounts(ctx); return err }, nil},
		{"queue", func(s target.Session) error { _, _, err := s.Queues.Queue(ctx, port); return err }, nil},
		{"set queue", func(s target.Session) error {
			return s.Queues.SetQueue(ctx, plan.Queue{Port: port, Rate: 5000, Depth: 8})
		}, nil},
		{"set signal", func(s target.Session) error {
			return s.Queues.SetQueue(ctx, plan.Queue{Port: port, Rate: 5000, Depth: 8, Signal: fabric.Signal{FEC: "fc"}})
		}, func(s target.Session) error {
			return s.Queues.SetQueue(ctx, plan.Queue{Port: port, Rate: 5000, Depth: 8, Signal: fabric.Signal{FEC: "rs"}})
		}},
		{"filters", func(s target.Session) error { _, err := s.Filters.List(ctx); return err }, nil},
		{"set filter", func(s target.Session) error { return s.Filters.SetFilter(ctx, filters[0]) }, nil},
		{"claim", func(s target.Session) error {
			ctx, end := context.WithCancel(ctx)
			defer end()
			stream, err := s.Client.StreamChannel(ctx)
			if err != nil {
				return err
			}
			if err := stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{Arbitration: &p4v1.MasterArbitrationUpdate{ElectionId: &p4v1.Uint128{Low: 1}}}}); err != nil {
				return err
			}
			m, err := stream.Recv()
			if err == nil && m.GetArbitration().GetStatus().GetCode() != int32(codes.OK) {
				err = fmt.Errorf("answer %v", m)
			}
			return err
		}, nil},
	} {
		for n := 1; ; n++ {
			calls := 0
			r.conn.fails = func(string, any) error {
				if calls++; calls == n {
					return status.Error(codes.Internal, "broken")
				}
				return nil
			}
			err := op.do(r.session.Speak(r.conn))
			r.conn.fails = nil
			if calls < n {
				if err != nil || n < 2 {
					t.Errorf("%s, after %d calls: %v", op.name, calls, err)
				}
				break
			}
			if err == nil || !strings.Contains(err.Error(), "broken") {
				t.Errorf("%s, call %d fails: %v", op.name, n, err)
			}
			if op.undo != nil {
				op.undo(r.session.Speak(r.conn))
			}
		}
	}
	// A group changes by its nodes, which a session reads first.
	session := func() target.Session {
		s := r.session.Speak(r.conn)
		if err := read(s, group()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for n := 1; ; n++ {
		if err := write(session(), p4v1.Update_INSERT, group(1, 2)); err != nil {
			t.Fatal(err)
		}
		s, calls := session(), 0
		r.conn.fails = func(string, any) error {
			if calls++; calls == n {
				return status.Error(codes.Internal, "broken")
			}
			return nil
		}
		err := write(s, p4v1.Update_MODIFY, group(2, 3))
		r.conn.fails = nil
		if want := calls >= n; (err != nil) != want || want && !strings.Contains(err.Error(), "broken") {
			t.Errorf("changing a group, call %d fails: %v", n, err)
		}
		if err := write(session(), p4v1.Update_DELETE, group()); err != nil {
			t.Fatalf("deleting a group after call %d failed: %v", n, err)
		}
		if calls < n {
			break
		}
	}
}

// Packets that ports receive and send are counted by the switch.
func TestPortCounts(t *testing.T) {
	r := newRig(t, "ecmp@tna")
	port := r.plan.Topology.Ports("l1")[0].Number
	r.write(wire.AllPipes, "$PORT_STAT", []uint64{uint64(port)}, "$FramesReceivedAll", 11, "$OctetsReceived", 12, "$FramesTransmittedAll", 13, "$OctetsTransmittedTotal", 14)
	list, err := r.session.Registers.(registers.Meter).PortCounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(c bmv2.PortCounts) bool { return c.Port == port })
	if i < 0 {
		t.Fatalf("port %d is not counted", port)
	}
	if c := list[i]; c.InPackets != 11 || c.InBytes != 12 || c.OutPackets != 13 || c.OutBytes != 14 {
		t.Errorf("counts %+v", c)
	}
	if len(list) != len(r.plan.Topology.Ports("l1")) {
		t.Errorf("%d ports are counted", len(list))
	}
}

// A queue reads back as it was set, in packets of the plan's MTU. A queue without a rate, in
// another unit, or of a port that is off or missing, is unknown.
func TestQueues(t *testing.T) {
	r := newRig(t, "ecmp@tna")
	ctx := t.Context()
	port := r.plan.Topology.Ports("l1")[0].Number
	group, first := uint64(port&0x7f/4), uint64(port%4*8)
	q := r.session.Queues
	set := plan.Queue{Port: port, Rate: 1_000_000, Depth: 50, Signal: fabric.Signal{FEC: "rs", AutoNeg: "off"}}
	read := func(what string, want *plan.Queue) {
		t.Helper()
		have, ok, err := q.Queue(ctx, port)
		if err != nil || ok != (want != nil) || want != nil && !have.Has(*want) {
			t.Errorf("%s: %+v, %v, %v; want %+v", what, have, ok, err, want)
		}
	}
	for _, signal := range []fabric.Signal{{FEC: "rs", AutoNeg: "off"}, {FEC: "fc", AutoNeg: "on", Lanes: 2}, {FEC: "none"}} {
		set.Signal = signal
		if err := q.SetQueue(ctx, set); err != nil {
			t.Fatal(err)
		}
		read("set", &set)
	}
	other := set
	other.Depth++
	if have, _, _ := q.Queue(ctx, port); have.Has(other) {
		t.Error("a queue has any depth")
	}
	pipe := uint32(port >> 7)
	r.write(pipe, "tm.queue.sched_cfg", []uint64{group, first}, "max_rate_enable", false)
	read("without a rate", nil)
	if err := q.SetQueue(ctx, set); err != nil {
		t.Fatal(err)
	}
	read("set again", &set)
	r.write(pipe, "tm.queue.sched_shaping", []uint64{group, first}, "unit", "PPS")
	read("in packets", nil)
	if err := q.SetQueue(ctx, set); err != nil {
		t.Fatal(err)
	}
	r.write(wire.AllPipes, "$PORT", []uint64{uint64(port)}, "$PORT_ENABLE", false)
	read("of a port that is off", nil)
	if err := q.SetQueue(ctx, set); err != nil {
		t.Fatal(err)
	}
	read("of a port that is on again", &set)
	if have, ok, err := q.Queue(ctx, 60); ok || err != nil {
		t.Errorf("a port that does not exist: %+v, %v", have, err)
	}
	if err := q.SetQueue(ctx, plan.Queue{Port: 60, Rate: 5000, Depth: 8}); err != nil {
		t.Fatal(err)
	}
	if have, ok, err := q.Queue(ctx, 60); !ok || err != nil || have.Rate != 5000 || have.Depth < 8 {
		t.Errorf("a port that was added: %+v, %v, %v", have, ok, err)
	}
	if err := q.SetQueue(ctx, plan.Queue{Port: 100, Rate: 5000, Depth: 8}); err == nil {
		t.Error("port 100 has a queue")
	}
}

// Filters read back as they were set. A filter whose cells differ is no filter of a plan.
func TestFilters(t *testing.T) {
	r := newRig(t, "conga@tna")
	ctx := t.Context()
	want := r.plan.Switch("l1").Filters
	list, err := r.session.Filters.List(ctx)
	if err != nil || len(list) != len(want) || len(want) == 0 {
		t.Fatalf("filters %+v, %v; want %+v", list, err, want)
	}
	find := func(list []plan.Filter, name plan.Filter) plan.Filter {
		return list[slices.IndexFunc(list, func(f plan.Filter) bool { return f.Is(name) })]
	}
	for _, w := range want {
		if have := find(list, w); have.Time != w.Time || have.Shift != w.Shift || have.Sample != w.Sample {
			t.Errorf("filter %+v, want %+v", have, w)
		}
	}
	f := find(list, want[0])
	f.Shift, f.Sample, f.Time = f.Shift+1, !f.Sample, 12345*time.Nanosecond
	if err := r.session.Filters.SetFilter(ctx, f); err != nil {
		t.Fatal(err)
	}
	if list, err = r.session.Filters.List(ctx); err != nil || find(list, f) != f {
		t.Errorf("filter %+v, %v; want %+v", find(list, f), err, f)
	}
	r.write(wire.AllPipes, f.Name, []uint64{1}, "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", f.Shift+2)
	if list, _ = r.session.Filters.List(ctx); find(list, f).Time >= 0 {
		t.Errorf("cells of two kinds: %+v", find(list, f))
	}
	if err := r.session.Filters.SetFilter(ctx, f); err != nil {
		t.Fatal(err)
	}
	r.write(wire.AllPipes, f.Name, []uint64{0}, "$LPF_SPEC_DECAY_TIME_CONSTANT_NS", float32(1))
	if list, _ = r.session.Filters.List(ctx); find(list, f).Time >= 0 {
		t.Errorf("a decay of its own: %+v", find(list, f))
	}
	if err := r.session.Filters.SetFilter(ctx, plan.Filter{Name: "LbIngress.ipv4_route"}); err == nil || !strings.Contains(err.Error(), "the program has no filter LbIngress.ipv4_route") {
		t.Errorf("a table: %v", err)
	}
}

// Clone sessions and multicast groups read back as they were written, and with their nodes
// changed, until they are deleted.
func TestReplication(t *testing.T) {
	r := newRig(t, "ecmp@tna")
	ctx := t.Context()
	session := func(id uint32, port uint32, bytes int32) *p4v1.PacketReplicationEngineEntry {
		s := &p4v1.CloneSessionEntry{SessionId: id, PacketLengthBytes: bytes}
		if port > 0 {
			s.Replicas = []*p4v1.Replica{{PortKind: &p4v1.Replica_Port{Port: []byte{byte(port >> 8), byte(port)}}, Instance: 1}}
		}
		return &p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: s}}
	}
	group := func(id uint32, at ...uint32) *p4v1.PacketReplicationEngineEntry { // pairs of port and instance
		g := &p4v1.MulticastGroupEntry{MulticastGroupId: id}
		for i := 0; i < len(at); i += 2 {
			g.Replicas = append(g.Replicas, &p4v1.Replica{PortKind: &p4v1.Replica_Port{Port: []byte{byte(at[i] >> 8), byte(at[i])}}, Instance: at[i+1]})
		}
		return &p4v1.PacketReplicationEngineEntry{Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: g}}
	}
	write := func(kind p4v1.Update_Type, e *p4v1.PacketReplicationEngineEntry) error {
		_, err := r.client.Write(ctx, &p4v1.WriteRequest{Updates: []*p4v1.Update{{Type: kind, Entity: &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}}}}})
		return err
	}
	read := func() (list []string) {
		t.Helper()
		for _, e := range []*p4v1.PacketReplicationEngineEntry{session(0, 0, 0), group(0)} {
			stream, err := r.client.Read(ctx, &p4v1.ReadRequest{Entities: []*p4v1.Entity{{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}}}})
			if err != nil {
				t.Fatal(err)
			}
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range m.GetEntities() {
				e := x.GetPacketReplicationEngineEntry()
				s, g := e.GetCloneSessionEntry(), e.GetMulticastGroupEntry()
				text, replicas := "", s.GetReplicas()
				if s != nil {
					text = fmt.Sprintf("session %d of %d bytes:", s.GetSessionId(), s.GetPacketLengthBytes())
				} else {
					text, replicas = fmt.Sprintf("group %d:", g.GetMulticastGroupId()), g.GetReplicas()
				}
				for _, p := range replicas {
					//lint:ignore SA1019 the form that the controller reads
					text += fmt.Sprintf(" %d/%d", p.GetEgressPort(), p.GetInstance())
				}
				list = append(list, text)
			}
		}
		return list
	}
	for _, step := range []struct {
		kind p4v1.Update_Type
		e    *p4v1.PacketReplicationEngineEntry
		want []string
	}{
		{p4v1.Update_INSERT, session(9, 300, 64), []string{"session 9 of 64 bytes: 300/1"}},
		{p4v1.Update_MODIFY, session(9, 5, 0), []string{"session 9 of 0 bytes: 5/1"}},
		{p4v1.Update_MODIFY, session(9, 5, 16383), []string{"session 9 of 0 bytes: 5/1"}},
		{p4v1.Update_MODIFY, session(9, 5, 16382), []string{"session 9 of 16382 bytes: 5/1"}},
		{p4v1.Update_DELETE, session(9, 0, 0), nil},
		{p4v1.Update_INSERT, group(3, 1, 1, 2, 1, 300, 2), []string{"group 3: 1/1 2/1 300/2"}},
		{p4v1.Update_INSERT, group(4, 7, 1), []string{"group 3: 1/1 2/1 300/2", "group 4: 7/1"}},
		{p4v1.Update_MODIFY, group(3, 1, 1, 6, 2), []string{"group 3: 1/1 6/2", "group 4: 7/1"}},
		{p4v1.Update_MODIFY, group(3, 8, 5), []string{"group 3: 8/5", "group 4: 7/1"}},
		{p4v1.Update_MODIFY, group(3, 8, 5, 1, 6, 2, 7), []string{"group 3: 8/5 1/6 2/7", "group 4: 7/1"}},
		{p4v1.Update_DELETE, group(3), []string{"group 4: 7/1"}},
		{p4v1.Update_DELETE, group(4), nil},
	} {
		if err := write(step.kind, step.e); err != nil {
			t.Fatalf("%v %v: %v", step.kind, step.e, err)
		}
		if got := read(); !slices.Equal(got, step.want) {
			t.Errorf("after %v %v: %q, want %q", step.kind, step.e, got, step.want)
		}
	}
	two := session(5, 1, 0)
	two.GetCloneSessionEntry().Replicas = append(two.GetCloneSessionEntry().Replicas, session(0, 2, 0).GetCloneSessionEntry().Replicas...)
	if err := write(p4v1.Update_INSERT, two); err == nil {
		t.Error("a session leads to two ports")
	}
	if got := read(); len(got) > 0 {
		t.Errorf("a refused session: %q", got)
	}
	_, err := r.client.Write(ctx, &p4v1.WriteRequest{Updates: []*p4v1.Update{{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_MeterEntry{}}}}})
	if s := status.Convert(err); s.Code() != codes.Unknown || len(s.Details()) != 1 || s.Details()[0].(*p4v1.Error).GetCanonicalCode() != int32(codes.Unimplemented) {
		t.Errorf("a meter: %v", err)
	}
	if _, err := r.client.Read(ctx, &p4v1.ReadRequest{Entities: []*p4v1.Entity{{Entity: &p4v1.Entity_MeterEntry{}}}}); status.Code(err) != codes.Unimplemented {
		t.Errorf("reading a meter: %v", err)
	}
	if _, err := r.client.Read(ctx, &p4v1.ReadRequest{Entities: []*p4v1.Entity{{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: 5}}}}}); status.Code(err) != codes.NotFound {
		t.Errorf("reading an unknown table: %v", err)
	}
}

// Each update of a batch has its own result.
func TestResults(t *testing.T) {
	r := newRig(t, "ecmp@tna")
	index, err := r.plan.Switch("l1").Pipeline.Index()
	if err != nil {
		t.Fatal(err)
	}
	route := index.ByName["LbIngress.ipv4_route"]
	entry := func(kind p4v1.Update_Type, last byte) *p4v1.Update {
		e := &p4v1.TableEntry{TableId: route.ID, Match: []*p4v1.FieldMatch{{FieldId: route.Fields[0].ID, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: []byte{192, 0, 2, last}, PrefixLen: 32}}}}}
		if kind != p4v1.Update_DELETE {
			a := route.Actions["set_group"]
			if a == nil {
				t.Fatal("no action set_group", route.Actions)
			}
			call := &p4v1.Action{ActionId: a.ID}
			for _, p := range a.Params {
				call.Params = append(call.Params, &p4v1.Action_Param{ParamId: p.ID, Value: []byte{1}})
			}
			e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: call}}
		}
		return &p4v1.Update{Type: kind, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}}
	}
	unknown := entry(p4v1.Update_INSERT, 9)
	unknown.GetEntity().GetTableEntry().TableId = 5
	_, err = r.client.Write(t.Context(), &p4v1.WriteRequest{Updates: []*p4v1.Update{
		entry(p4v1.Update_INSERT, 1), entry(p4v1.Update_INSERT, 1), unknown, entry(p4v1.Update_DELETE, 2), entry(p4v1.Update_INSERT, 3),
	}})
	var got []codes.Code
	for _, d := range status.Convert(err).Details() {
		got = append(got, codes.Code(d.(*p4v1.Error).GetCanonicalCode()))
	}
	if want := []codes.Code{codes.OK, codes.AlreadyExists, codes.NotFound, codes.NotFound, codes.OK}; !slices.Equal(got, want) {
		t.Errorf("results %v, %v; want %v", got, err, want)
	}
	if _, err := r.client.Write(t.Context(), &p4v1.WriteRequest{Updates: []*p4v1.Update{entry(p4v1.Update_DELETE, 1), entry(p4v1.Update_DELETE, 3)}}); err != nil {
		t.Errorf("the entries of the batch: %v", err)
	}
	if _, err := r.client.Write(t.Context(), &p4v1.WriteRequest{}); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	c, err := r.client.GetForwardingPipelineConfig(t.Context(), &p4v1.GetForwardingPipelineConfigRequest{})
	if err != nil || c.GetConfig().GetCookie().GetCookie() != index.Cookie || len(c.GetConfig().GetP4DeviceConfig()) == 0 {
		t.Errorf("the program: cookie %v, %v", c.GetConfig().GetCookie(), err)
	}
	if c, err := r.client.Capabilities(t.Context(), &p4v1.CapabilitiesRequest{}); err != nil || c.GetP4RuntimeApiVersion() == "" {
		t.Errorf("capabilities %v, %v", c, err)
	}
}

// The names of a switch's front-panel ports, read from its address.
func TestFrontPanel(t *testing.T) {
	r := newRig(t, "ecmp@tna")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go r.target.Serve("l1", l)
	front, err := tofino.FrontPanel(t.Context(), l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, port := range map[string]int{"1/0": 0, "1/3": 3, "2/0": 4, "33/2": 130} {
		if front[name] != port {
			t.Errorf("%s is port %d, want %d", name, front[name], port)
		}
	}
	// Over TLS, with a certificate that the client trusts.
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	secret := web.TLS.Clone()
	secret.NextProtos = []string{"h2"}
	trust := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	trust.RootCAs.AddCert(web.Certificate())
	safe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go r.target.Serve("l2", tls.NewListener(safe, secret))
	if front, err := tofino.FrontPanel(t.Context(), safe.Addr().String(), trust); err != nil || front["33/2"] != 130 {
		t.Errorf("over TLS: %v, %v", front["33/2"], err)
	}
	if _, err := tofino.FrontPanel(t.Context(), safe.Addr().String(), nil); err == nil {
		t.Error("a server with TLS answers without it")
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	if front, err := tofino.FrontPanel(t.Context(), gone.Addr().String(), nil); err == nil || strings.Contains(err.Error(), "rpc error") {
		t.Errorf("no server: %d ports, %v", len(front), err)
	}
}

// Switches at addresses of the topology are single devices of Intel's servers.
func TestTarget(t *testing.T) {
	p := chipPlan(t, "ecmp@tna")
	to := tofino.New(target.ServersOptions{})
	if _, err := to.Endpoint("l1"); err == nil {
		t.Error("a switch is found before the start")
	}
	if err := to.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	e, err := to.Endpoint("l1")
	if err != nil || e.Device != 0 || e.Speak == nil || e.Address != p.Topology.Switch("l1").GRPC {
		t.Errorf("endpoint %+v, %v", e, err)
	}
	p.Switches[0].Pipeline.Config = []byte("no program")
	p.Switches[0].Pipeline = &plan.Pipeline{Config: []byte("no program")}
	var hint *plan.Error
	for _, err := range []error{tofino.NewSpeaker().Plan(p), to.Start(t.Context(), p)} {
		if !errors.As(err, &hint) || hint.Switch != p.Switches[0].Name || !strings.Contains(err.Error(), "not a program for BfRt") {
			t.Errorf("another configuration: %v", err)
		}
	}
	s := tofino.Watch(0)(nil)
	if s.Client == nil || s.Registers == nil {
		t.Errorf("a session that watches: %+v", s)
	}
}

// The program of an embedded switch runs in all four pipes. Its name has no characters
// that names of programs lack.
func TestEmbeddedArtifact(t *testing.T) {
	p := chipPlan(t, "ecmp@tna").Switches[0].Pipeline
	p = &plan.Pipeline{Manifest: p.Manifest, Schema: p.Schema, Config: []byte("json")}
	p.Manifest.Scheme = "drill+rlb-x"
	a, err := tofino.Embedded(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Profiles) != 1 || a.Name != "drill_rlb_x" || a.Profiles[0].Name != "pipe" || string(a.Profiles[0].Binary) != "json" || !slices.Equal(a.Profiles[0].Pipes, []int{0, 1, 2, 3}) {
		t.Errorf("%s with %+v", a.Name, a.Profiles)
	}
	p.Schema = nil
	if _, err := tofino.Embedded(p); err == nil || !strings.Contains(err.Error(), "BfRt for programs for Tofino") {
		t.Errorf("a program for v1model: %v", err)
	}
}
