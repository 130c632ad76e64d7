package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/server/gate"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// patience is the time that a test waits for an expected event.
const patience = 3 * time.Minute

// A testProgram is a program of testdata, compiled once. Its binary is decoded once too,
// because decoding would dominate the tests.
type testProgram struct {
	arch    string
	program func() (Program, error)
	config  func() (*bmv2.Config, error)
}

func newTestProgram(name, arch string) *testProgram {
	p := &testProgram{arch: arch}
	p.program = sync.OnceValues(func() (Program, error) {
		c, err := p4.Compile(os.DirFS("testdata"), name+".p4", p4.Options{Arch: arch})
		if err != nil {
			return Program{}, err
		}
		if err := c.DescribeBfRt(); err != nil {
			return Program{}, err
		}
		return Program{Name: name, Schema: c.Schema.JSON(), Binary: c.JSON()}, nil
	})
	p.config = sync.OnceValues(func() (*bmv2.Config, error) {
		c, err := p.program()
		if err != nil {
			return nil, err
		}
		return bmv2.Load(c.Binary)
	})
	return p
}

// The programs of testdata: with each kind of table, and with each kind of match key and of
// state that belongs to entries.
var (
	chip    = newTestProgram("chip", bmv2.TNA)
	entries = newTestProgram("entries", bmv2.TNA)
)

func chipProgram() (Program, error) { return chip.program() }

// A rig is a switch with ports 1, 2 and, in another pipe, 130, and a client that
// is bound to its program.
type rig struct {
	t      testing.TB
	s      *Server
	dev    *p4rt.Device
	c      wire.Client
	stream wire.StreamClient
	heard  chan *wire.StreamMessageResponse
	ports  map[uint32]*testPort
	client uint32 // by which it reads and writes
	faults *faults
}

// faults are the log of a server under test: an error of the server's own, a panic among
// them, is nothing that every client would see, and fails a test that does not want one.
type faults struct {
	t      testing.TB
	wanted atomic.Int64
}

func (f *faults) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (f *faults) Handle(_ context.Context, r slog.Record) error {
	if f.wanted.Add(-1) >= 0 {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		r.Message += " " + a.String()
		return true
	})
	f.t.Error(r.Message)
	return nil
}

func (f *faults) WithAttrs([]slog.Attr) slog.Handler { return f }

func (f *faults) WithGroup(string) slog.Handler { return f }

// A testPort records sent packets and delivers the packets of a test.
type testPort struct {
	sent    chan []byte
	deliver chan []byte
	closed  chan struct{}
}

func (p *testPort) Receive(deliver func([][]byte)) error {
	for {
		select {
		case b := <-p.deliver:
			deliver([][]byte{b})
		case <-p.closed:
			return nil
		}
	}
}

func (p *testPort) Send(b []byte) { p.sent <- append([]byte(nil), b...) }
func (p *testPort) Flush() error  { return nil }
func (p *testPort) Close() error  { close(p.closed); return nil }

func newRig(t testing.TB) *rig { return newLimitedRig(t, gate.Limits{}) }

func newLimitedRig(t testing.TB, limits gate.Limits) *rig { return newProgramRig(t, chip, limits) }

func newProgramRig(t testing.TB, p *testProgram, limits gate.Limits) *rig {
	t.Helper()
	return newRigIn(t, p, limits, nil)
}

// newRigIn returns a rig in the virtual time of a simulator, or in real time if it is nil.
func newRigIn(t testing.TB, p *testProgram, limits gate.Limits, sim p4rt.Simulator) *rig {
	t.Helper()
	program, err := p.program()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, ports: map[uint32]*testPort{}, client: 1, faults: &faults{t: t}}
	r.dev, err = p4rt.NewDevice(p4rt.DeviceOptions{Depth: 1 << 12, CPUPort: 64, CPUIsPort: true, Simulator: sim, Load: func(b []byte, o dataplane.Options) (*dataplane.Switch, error) {
		c, err := p.config()
		if !bytes.Equal(b, program.Binary) {
			c, err = bmv2.Load(b)
		}
		if err != nil {
			return nil, err
		}
		return dataplane.New(c, o)
	}})
	r.must(err)
	t.Cleanup(func() { r.dev.Close() })
	r.s, err = New(r.dev, Options{Arch: p.arch, Limits: limits, Log: slog.New(r.faults)})
	r.must(err)
	r.must(r.s.Load(program))
	for _, n := range []uint32{1, 2, 130} {
		r.ports[n] = &testPort{sent: make(chan []byte, 1<<12), deliver: make(chan []byte), closed: make(chan struct{})}
		r.must(r.dev.AddPort(n, r.ports[n], nil))
	}
	l := bufconn.Listen(1 << 20)
	go r.s.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r.s.Stop(ctx)
	})
	conn, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return l.Dial() }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	r.must(err)
	t.Cleanup(func() { conn.Close() })
	r.c = wire.Client{Conn: conn}
	r.subscribe(1, &wire.Subscribe_Notifications{
		EnableLearnNotifications: true, EnableIdletimeoutNotifications: true, EnableEntryActiveNotifications: true, EnablePortStatusChangeNotifications: true,
		EnableSelectorUpdateChangeNotifications: true,
	})
	r.must(r.bind(1, program.Name))
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) subscribe(client uint32, n *wire.Subscribe_Notifications) {
	r.t.Helper()
	var err error
	r.stream, err = r.c.StreamChannel(context.Background())
	r.must(err)
	r.must(r.stream.Send(&wire.StreamMessageRequest{ClientId: client, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{Notifications: n}}}))
	heard := make(chan *wire.StreamMessageResponse, 1<<10)
	stream := r.stream
	go func() {
		defer close(heard)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			heard <- m
		}
	}()
	r.heard = heard
	if m := r.hear(); m.GetSubscribe().GetStatus().GetCode() != 0 {
		r.t.Fatalf("the subscription was answered with %v", m)
	}
}

// hear waits for the next message of the stream.
func (r *rig) hear() *wire.StreamMessageResponse {
	r.t.Helper()
	select {
	case m := <-r.heard:
		return m
	case <-time.After(patience):
		r.t.Fatal("nothing came on the stream")
	}
	return nil
}

func (r *rig) bind(client uint32, name string) error {
	_, err := r.c.SetForwardingPipelineConfig(context.Background(), &wire.SetForwardingPipelineConfigRequest{
		ClientId: client, Config: []*wire.ForwardingPipelineConfig{{P4Name: name}},
	})
	return err
}

// table is a table of the program or of the chip, by the end of its name.
func (r *rig) table(name string) *table {
	r.t.Helper()
	r.s.mu.RLock()
	defer r.s.mu.RUnlock()
	for _, list := range []map[uint32]object{r.s.programs[0].tables, r.s.chip.tables} {
		for _, o := range list {
			if n := o.head().schema.Name; n == name || strings.HasSuffix(n, "."+name) {
				return o.head()
			}
		}
	}
	r.t.Fatalf("there is no table %s", name)
	return nil
}

func be(n, v uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, v)
	return b[8-n:]
}

// key makes a key of exact values, in the order of the table's fields.
func (r *rig) key(table string, values ...uint64) *wire.TableKey {
	r.t.Helper()
	k := &wire.TableKey{}
	keys := r.table(table).keys
	for i, v := range values {
		k.Fields = append(k.Fields, keys[i].value(v))
	}
	return k
}

// data makes data: an action's name ("" for none), then names and values.
func (r *rig) data(table, action string, list ...any) *wire.TableData {
	r.t.Helper()
	t, d := r.table(table), &wire.TableData{}
	fields := append([]*datum(nil), t.order...)
	if action != "" {
		for _, spec := range *t.schema.ActionSpecs {
			if spec.Name == action || strings.HasSuffix(spec.Name, "."+action) {
				d.ActionId = spec.ID
				for _, f := range spec.Data {
					fields = append(fields, newDatum(f, false))
				}
			}
		}
		if d.ActionId == 0 {
			r.t.Fatalf("table %s has no action %s", table, action)
		}
	}
	for i := 0; i < len(list); i += 2 {
		var f *datum
		for _, x := range fields {
			if x.name == list[i] || strings.HasSuffix(x.name, "."+list[i].(string)) {
				f = x
			}
		}
		if f == nil {
			r.t.Fatalf("table %s has no field %v", table, list[i])
		}
		switch v := list[i+1].(type) {
		case int:
			d.Fields = append(d.Fields, f.number(uint64(v)))
		case bool:
			d.Fields = append(d.Fields, f.flag(v))
		case string:
			d.Fields = append(d.Fields, f.text(v))
		case []uint32:
			d.Fields = append(d.Fields, f.numbers(v))
		case []bool:
			d.Fields = append(d.Fields, f.flags(v))
		}
	}
	return d
}

var everywhere = &wire.TargetDevice{PipeId: wire.AllPipes, Direction: wire.AllDirections, PrsrId: wire.AllParsers}

func pipe(n uint32) *wire.TargetDevice {
	return &wire.TargetDevice{PipeId: n, Direction: wire.AllDirections, PrsrId: wire.AllParsers}
}

func (r *rig) entry(table string, k *wire.TableKey, d *wire.TableData) *wire.TableEntry {
	e := &wire.TableEntry{TableId: r.table(table).schema.ID, Data: d}
	if k != nil {
		e.Value = &wire.TableEntry_Key{Key: k}
	}
	return e
}

func update(kind wire.Update_Type, e *wire.TableEntry) *wire.Update {
	return &wire.Update{Type: kind, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}}}
}

const (
	ins = wire.Update_INSERT
	mod = wire.Update_MODIFY
	del = wire.Update_DELETE
)

func (r *rig) write(target *wire.TargetDevice, list ...*wire.Update) error {
	_, err := r.c.Write(context.Background(), &wire.WriteRequest{Target: target, ClientId: r.client, Updates: list})
	return err
}

func (r *rig) set(kind wire.Update_Type, table string, k *wire.TableKey, d *wire.TableData) {
	r.t.Helper()
	r.must(r.write(everywhere, update(kind, r.entry(table, k, d))))
}

func (r *rig) read(target *wire.TargetDevice, list ...*wire.TableEntry) (out []*wire.TableEntry, err error) {
	req := &wire.ReadRequest{Target: target, ClientId: r.client}
	for _, e := range list {
		req.Entities = append(req.Entities, &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}})
	}
	stream, err := r.c.Read(context.Background(), req)
	r.must(err)
	for {
		m, err := stream.Recv()
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return out, err
		}
		for _, e := range m.GetEntities() {
			out = append(out, e.GetTableEntry())
		}
	}
}

// get reads one entry.
func (r *rig) get(target *wire.TargetDevice, table string, k *wire.TableKey) *wire.TableData {
	r.t.Helper()
	e := r.entry(table, k, nil)
	e.TableFlags = &wire.TableFlags{FromHw: true}
	list, err := r.read(target, e)
	r.must(err)
	if len(list) != 1 {
		r.t.Fatalf("%d entries of %s, want 1", len(list), table)
	}
	return list[0].GetData()
}

// values returns the numbers in a field: for registers one per pipe.
func (r *rig) values(table string, d *wire.TableData, name string) (list []uint64) {
	r.t.Helper()
	t := r.table(table)
	for _, f := range t.order {
		if f.name != name && !strings.HasSuffix(f.name, "."+name) {
			continue
		}
		for _, x := range d.GetFields() {
			if x.GetFieldId() == f.id {
				list = append(list, uintOf(x.GetStream()))
			}
		}
	}
	return list
}

// size is the number of entries of a table.
func (r *rig) size(table string) int {
	r.t.Helper()
	list, err := r.read(everywhere, r.entry(table, nil, nil))
	r.must(err)
	return len(list)
}

// details are the outcomes of a batch that was refused.
func details(t testing.TB, err error) (list []*wire.Error) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != codes.Unknown {
		t.Fatalf("the batch ended with %v, want UNKNOWN", err)
	}
	for _, d := range s.Details() {
		e, ok := d.(*wire.Error)
		if !ok {
			t.Fatalf("a detail is %T", d)
		}
		list = append(list, e)
	}
	return list
}

func withMetadata(kv ...string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), kv...)
}

// frame is a packet of Ethernet.
func frame(dst, src, kind uint64) []byte {
	b := append(be(6, dst), be(6, src)...)
	return append(append(b, be(2, kind)...), make([]byte, 50)...)
}

func (r *rig) send(port uint32, b []byte) { r.ports[port].deliver <- b }

// leaves waits for a packet at a port.
func (r *rig) leaves(port uint32) []byte {
	r.t.Helper()
	select {
	case b := <-r.ports[port].sent:
		return b
	case <-time.After(patience):
		r.t.Fatalf("no packet left by port %d", port)
	}
	return nil
}
