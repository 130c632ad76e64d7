package thrift

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	wire "github.com/apache/thrift/lib/go/thrift"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

const patience = 3 * time.Minute

// A fakeTarget stores the values that it receives.
type fakeTarget struct {
	mu        sync.Mutex
	registers map[string][]uint64
	counters  map[string][][2]uint64 // packets, bytes
	depths    map[[2]int]int
	rates     map[[2]int]uint64
	sessions  map[int][2]int
	ports     []bmv2.PortCounts
}

func newFake() *fakeTarget {
	return &fakeTarget{
		registers: map[string][]uint64{"r": {1, 2, 3, math.MaxUint64}},
		counters:  map[string][][2]uint64{"c": make([][2]uint64, 3)},
		depths:    map[[2]int]int{}, rates: map[[2]int]uint64{}, sessions: map[int][2]int{},
	}
}

var errFake = errors.New("refused")

func (f *fakeTarget) RegisterSize(name string) (int, bool) {
	r, ok := f.registers[name]
	return len(r), ok
}

func (f *fakeTarget) ReadRegister(name string, from, to int) ([]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.registers[name][from:to]), nil
}

func (f *fakeTarget) WriteRegister(name string, from, to int, v uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := from; i < to; i++ {
		f.registers[name][i] = v
	}
	return nil
}

func (f *fakeTarget) PortCounts() []bmv2.PortCounts { return f.ports }

func (f *fakeTarget) CounterSize(name string) (int, bool) {
	c, ok := f.counters[name]
	return len(c), ok
}

func (f *fakeTarget) ReadCounter(name string, i int) (packets, bytes uint64, err error) {
	return f.counters[name][i][0], f.counters[name][i][1], nil
}

func (f *fakeTarget) WriteCounter(name string, from, to int, packets, bytes uint64) error {
	for i := from; i < to; i++ {
		f.counters[name][i] = [2]uint64{packets, bytes}
	}
	return nil
}

func (f *fakeTarget) SetQueueDepth(port, priority, packets int) error {
	if port > 511 {
		return errFake
	}
	f.depths[[2]int{port, priority}] = packets
	return nil
}

func (f *fakeTarget) SetQueueRate(port, priority int, pps uint64) error {
	f.rates[[2]int{port, priority}] = pps
	return nil
}

func (f *fakeTarget) Session(id int) (port, group int, ok bool) {
	s, ok := f.sessions[id]
	return s[0], s[1], ok
}

func (f *fakeTarget) SetSession(id, port, group int) error {
	f.sessions[id] = [2]int{port, group}
	return nil
}

func (f *fakeTarget) DeleteSession(id int) error {
	if _, ok := f.sessions[id]; !ok {
		return errFake
	}
	delete(f.sessions, id)
	return nil
}

func (f *fakeTarget) Switch() *dataplane.Switch { return nil }

func (f *fakeTarget) Control() *dataplane.Switch { return nil }

func (f *fakeTarget) Elapsed() time.Duration { return 1500 * time.Millisecond }

func (f *fakeTarget) Program() []byte { return []byte("{}") }

// serve starts a server for f and returns its address.
func serve(t testing.TB, f Target) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(f, 7)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return l.Addr().String()
}

func dial(t testing.TB, addr string) (*Client, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	c, err := Dial(ctx, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, ctx
}

func TestRegisters(t *testing.T) {
	f := newFake()
	c, ctx := dial(t, serve(t, f))
	all, err := c.RegisterReadAll(ctx, "r")
	if want := []uint64{1, 2, 3, math.MaxInt64}; err != nil || !slices.Equal(all, want) {
		t.Errorf("read %v, %v, want %v: the wire saturates", all, err, want)
	}
	some, err := c.RegisterReadRange(ctx, "r", 1, 4)
	if want := []uint64{2, 3, math.MaxInt64}; err != nil || !slices.Equal(some, want) {
		t.Errorf("cells 1 to 3 are %v, error %v; want %v", some, err, want)
	}
	if some, err = c.RegisterReadRange(ctx, "r", 2, 6); err == nil || some != nil {
		t.Errorf("cells 2 to 5 of 4 are %v, error %v", some, err)
	}
	if v, err := c.RegisterRead(ctx, "r", 0); err != nil || v != 1 {
		t.Errorf("cell 0 is %d, error %v, after a range that was refused", v, err)
	}
	if err := c.RegisterWriteRange(ctx, "r", 1, 3, 9); err != nil {
		t.Error(err)
	}
	if err := c.RegisterWrite(ctx, "r", 3, 1<<40); err != nil {
		t.Error(err)
	}
	if want := []uint64{1, 9, 9, 1 << 40}; !slices.Equal(f.registers["r"], want) {
		t.Errorf("the register has %v, want %v", f.registers["r"], want)
	}
	if v, err := c.RegisterRead(ctx, "r", 3); err != nil || v != 1<<40 {
		t.Errorf("read %d, %v", v, err)
	}
	if err := c.RegisterReset(ctx, "r"); err != nil || slices.Max(f.registers["r"]) != 0 {
		t.Errorf("after a reset: %v, %v", f.registers["r"], err)
	}
}

// TestExceptions: clients receive the errors declared by a call, and the
// connection continues.
func TestExceptions(t *testing.T) {
	c, ctx := dial(t, serve(t, newFake()))
	for name, x := range map[string]struct {
		do   func() error
		code int32
	}{
		"read name":       {func() error { _, err := c.RegisterRead(ctx, "x", 0); return err }, 1},
		"read index":      {func() error { _, err := c.RegisterRead(ctx, "r", 4); return err }, 2},
		"read negative":   {func() error { _, err := c.RegisterRead(ctx, "r", -1); return err }, 2},
		"read last":       {func() error { _, err := c.RegisterRead(ctx, "r", math.MaxInt32); return err }, 2},
		"all name":        {func() error { _, err := c.RegisterReadAll(ctx, "x"); return err }, 1},
		"write name":      {func() error { return c.RegisterWrite(ctx, "x", 0, 1) }, 1},
		"write index":     {func() error { return c.RegisterWrite(ctx, "r", 4, 1) }, 2},
		"range":           {func() error { return c.RegisterWriteRange(ctx, "r", 2, 5, 1) }, 2},
		"range backwards": {func() error { return c.RegisterWriteRange(ctx, "r", 2, 1, 1) }, 2},
		"reset name":      {func() error { return c.RegisterReset(ctx, "x") }, 1},
		"counter name":    {func() error { _, _, err := c.CounterRead(ctx, "x", 0); return err }, 1},
		"counter index":   {func() error { _, _, err := c.CounterRead(ctx, "c", 3); return err }, 2},
		"counter write":   {func() error { return c.CounterWrite(ctx, "c", 3, 1, 1) }, 2},
		"counter reset":   {func() error { return c.CounterReset(ctx, "x") }, 1},
		"session":         {func() error { _, _, err := c.Session(ctx, 5); return err }, 1},
		"session delete":  {func() error { return c.DeleteSession(ctx, 5) }, 1},
		"queue":           {func() error { return c.SetQueueDepth(ctx, 512, -1, 1) }, 1},
		"queue of -2":     {func() error { return c.SetQueueDepth(ctx, -2, -1, 1) }, 1},
	} {
		var e *Error
		if err := x.do(); !errors.As(err, &e) || e.Code != x.code {
			t.Errorf("%s: got %v, want code %d", name, err, x.code)
		}
	}
}

func TestCountersQueuesSessions(t *testing.T) {
	f := newFake()
	c, ctx := dial(t, serve(t, f))
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("counter write", c.CounterWrite(ctx, "c", 1, 5, 600))
	if p, b, err := c.CounterRead(ctx, "c", 1); err != nil || p != 5 || b != 600 {
		t.Errorf("the counter has %d packets, %d bytes, %v", p, b, err)
	}
	check("counter reset", c.CounterReset(ctx, "c"))
	if f.counters["c"][1] != [2]uint64{} {
		t.Errorf("after a reset: %v", f.counters["c"])
	}

	check("depth", c.SetQueueDepth(ctx, 3, -1, 10))
	check("depth of priority", c.SetQueueDepth(ctx, 3, 2, 11))
	check("all depths", c.SetAllQueueDepths(ctx, 12))
	check("rate", c.SetQueueRate(ctx, 3, -1, 1<<40))
	check("rate of priority", c.SetQueueRate(ctx, 3, 2, 7))
	check("all rates", c.SetAllQueueRates(ctx, 8))
	if f.depths[[2]int{3, -1}] != 10 || f.depths[[2]int{3, 2}] != 11 || f.depths[[2]int{-1, -1}] != 12 {
		t.Errorf("depths: %v", f.depths)
	}
	if f.rates[[2]int{3, -1}] != 1<<40 || f.rates[[2]int{3, 2}] != 7 || f.rates[[2]int{-1, -1}] != 8 {
		t.Errorf("rates: %v", f.rates)
	}

	for id, s := range map[int][2]int{1: {4, -1}, 2: {-1, 9}, 3: {0, 5}, 4: {-1, -1}} {
		check("session", c.SetSession(ctx, id, s[0], s[1]))
		if port, group, err := c.Session(ctx, id); err != nil || port != s[0] || group != s[1] {
			t.Errorf("session %d is %d, %d, %v, want %v", id, port, group, err, s)
		}
	}
	check("delete", c.DeleteSession(ctx, 1))

	sum := md5.Sum([]byte("{}"))
	if got, err := c.ConfigMD5(ctx); err != nil || !bytes.Equal(got, sum[:]) {
		t.Errorf("md5 %x, %v", got, err)
	}
	if d, err := c.Elapsed(ctx); err != nil || d != 1500*time.Millisecond {
		t.Errorf("elapsed %v, %v", d, err)
	}
	if id, port, err := c.Info(ctx); err != nil || id != 7 || port == 0 {
		t.Errorf("info %d, %d, %v", id, port, err)
	}
}

// TestUnknownMethod calls unknown methods with the library's own client: it
// gets an exception, and the connection continues.
func TestUnknownMethod(t *testing.T) {
	addr := serve(t, newFake())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	socket := wire.NewTSocketConf(addr, nil)
	if err := socket.Open(); err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	factory := wire.NewTBinaryProtocolFactoryConf(nil)
	buffered := wire.NewTBufferedTransport(socket, 1024)
	base := factory.GetProtocol(buffered)
	for _, x := range []struct{ service, method string }{
		{"standard", "bm_mt_nothing"}, {"simple_switch", "bm_register_read"}, {"nobody", "bm_register_read"}, {"", "bm_register_read"},
	} {
		protocol := base
		if x.service != "" {
			protocol = wire.NewTMultiplexedProtocol(base, x.service)
		}
		client := wire.NewTStandardClient(base, protocol)
		_, err := client.Call(ctx, x.method, tables{}, tables{})
		var e wire.TApplicationException
		if !errors.As(err, &e) || e.TypeId() != wire.UNKNOWN_METHOD {
			t.Errorf("%s:%s: got %v, want an unknown method", x.service, x.method, err)
		}
	}
}

// tables are the arguments of an unknown call, including a list of structs.
type tables struct{}

func (tables) Write(ctx context.Context, p wire.TProtocol) error {
	return writeFields(ctx, p, "args", fields{{1, int32(0)}, {2, "table"}, {3, fields{{1, []uint64{1, 2}}, {2, true}}}})
}

func (tables) Read(ctx context.Context, p wire.TProtocol) error { return p.Skip(ctx, wire.STRUCT) }

// TestBrokenClient: garbage and partial calls end only their connection.
func TestBrokenClient(t *testing.T) {
	addr := serve(t, newFake())
	for _, text := range []string{
		"GET / HTTP/1.1\r\n\r\n", "\x80\x01\x00\x01\x7f\xff\xff\xff", "\x80\x01\x00\x01\x00\x00\x00\x03abc",
		"\x80\x01\x00\x01\x00\x00\x00\x01a\x00\x00\x00\x01" + strings.Repeat("\x0c\x00\x01", 100),
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte(text))
		conn.(*net.TCPConn).CloseWrite()
		conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q keeps the connection open", text)
		}
		conn.Close()
	}
	c, ctx := dial(t, addr)
	if _, err := c.Elapsed(ctx); err != nil {
		t.Error(err)
	}
}

// TestNegativeListLength: a list of -1 elements is rejected.
func TestNegativeListLength(t *testing.T) {
	for _, elements := range []string{"\x0c", "\x0a", "\x0b"} { // structs, 64-bit integers, strings
		var in, out wire.TMemoryBuffer
		in.Buffer, out.Buffer = bytes.NewBufferString("\x80\x01\x00\x01\x00\x00\x00\x01a\x00\x00\x00\x01\x0f\x00\x01"+elements+"\xff\xff\xff\xff\x00"), &bytes.Buffer{}
		conf := configuration(maxMessage)
		err := NewServer(newFake(), 1).answer(context.Background(), "", wire.NewTBinaryProtocolConf(&in, conf), wire.NewTBinaryProtocolConf(&out, conf), func() {})
		if err == nil {
			t.Errorf("a list of -1 elements of type %q is accepted", elements)
		}
	}
}

// TestCancelledCall: a canceled call returns the reason, and so do later calls.
func TestCancelledCall(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, _ := dial(t, l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 2 {
		if _, err := c.Elapsed(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want it cancelled", err)
		}
	}
}

// FuzzServer sends arbitrary bytes: the server must neither panic nor hang.
func FuzzServer(f *testing.F) {
	call := func(name string, args fields) []byte {
		var buf wire.TMemoryBuffer
		buf.Buffer = &bytes.Buffer{}
		p := wire.NewTBinaryProtocolConf(&buf, nil)
		ctx := context.Background()
		p.WriteMessageBegin(ctx, name, wire.CALL, 1)
		writeFields(ctx, p, "args", args)
		p.WriteMessageEnd(ctx)
		return buf.Bytes()
	}
	f.Add(call("standard:bm_register_read", named("r", field{3, int32(1)})))
	f.Add(call("standard:bm_register_write_range", named("r", field{3, int32(1)}, field{4, int32(2)}, field{5, int64(3)})))
	f.Add(call("standard:bm_counter_write", named("c", field{3, int32(1)}, field{4, fields{{1, int64(2)}}})))
	f.Add(call("simple_switch:mirroring_session_add", fields{{1, int32(1)}, {2, fields{{1, int32(2)}}}}))
	for _, r := range oracle(f, "thrift") {
		if r.Call == "" {
			continue
		}
		var buf wire.TMemoryBuffer
		buf.Buffer = &bytes.Buffer{}
		p := wire.NewTBinaryProtocolConf(&buf, nil)
		p.WriteMessageBegin(f.Context(), r.Call, wire.CALL, 1)
		if err := writeObject(f.Context(), p, decode(f, r.In)); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	dev := newDevice(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewServer(dev, 1)
		var in, out wire.TMemoryBuffer
		in.Buffer, out.Buffer = bytes.NewBuffer(data), &bytes.Buffer{}
		conf := configuration(maxMessage)
		pin, pout := wire.NewTBinaryProtocolConf(&in, conf), wire.NewTBinaryProtocolConf(&out, conf)
		for s.answer(context.Background(), "", pin, pout, func() {}) == nil {
		}
	})
}

// TestPortCounts decodes counts, including those of a later version with
// unknown reasons.
func TestPortCounts(t *testing.T) {
	f := newFake()
	f.ports = []bmv2.PortCounts{
		{Port: 1, InPackets: 3, InBytes: 300, OutPackets: 2, OutBytes: 1 << 40, Queued: 7, Room: 64},
		{Port: 511, Down: true, Drops: [bmv2.DropReasons]uint64{bmv2.DropQueue: 5, bmv2.DropAssertion: 1}},
	}
	addr := serve(t, f)
	c, ctx := dial(t, addr)
	got, err := c.PortCounts(ctx)
	if err != nil || !slices.Equal(got, f.ports) {
		t.Errorf("%+v, %v, want %+v", got, err, f.ports)
	}
	numbers := bmv2.EncodePorts(f.ports[1:])
	longer := append([]uint64{numbers[0] + 1}, append(numbers[1:], 9)...)
	if got, ok := bmv2.DecodePorts(longer); !ok || !slices.Equal(got, f.ports[1:]) {
		t.Errorf("of a later version: %+v, %v", got, ok)
	}
	for _, wrong := range [][]uint64{nil, {0}, {7}, {19, 1}, numbers[:5]} {
		if got, ok := bmv2.DecodePorts(wrong); ok && len(got) > 0 {
			t.Errorf("%v is taken for %+v", wrong, got)
		}
	}
}
