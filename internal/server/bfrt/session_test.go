package server

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// A client that ends its stream while the server handles one of its messages and has
// received the next one leaves: its number and its program are free.
func TestStreamEndsBetweenMessages(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := r.c.StreamChannel(ctx)
	r.must(err)
	send := func() {
		t.Helper()
		r.must(stream.Send(&wire.StreamMessageRequest{ClientId: 5, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{}}}))
	}
	for range heardAtOnce {
		send()
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	paced := func() time.Time {
		r.s.pace.mu.Lock()
		defer r.s.pace.mu.Unlock()
		return r.s.pace.next
	}
	if at := paced(); !at.IsZero() {
		t.Errorf("the first %d messages of a stream count: %v", heardAtOnce, at)
	}
	r.s.clients.mu.Lock() // the server handles no message
	o := r.s.clients.open[5].outbox
	o.mu.Lock()
	o.room = 0 // no answer that could fail
	o.mu.Unlock()
	send()
	until(t, "the first message beyond is received", func() bool { return !paced().IsZero() })
	first := paced()
	send()
	until(t, "the second message beyond is received", func() bool { return paced() != first })
	cancel()
	if _, err := stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("the stream ended with %v", err)
	}
	// The server has noticed the end once it has answered a later call.
	_, err = r.c.GetForwardingPipelineConfig(t.Context(), &wire.GetForwardingPipelineConfigRequest{})
	r.must(err)
	r.s.clients.mu.Unlock()
	until(t, "the client leaves", func() bool {
		_, there := r.s.clients.programOf(5)
		return !there
	})
}

// A client that closes its side of the stream gets the end of the stream without an error.
func TestStreamClosed(t *testing.T) {
	r := newRig(t)
	r.must(r.stream.CloseSend())
	for range r.heard {
	}
	if _, err := r.stream.Recv(); err != io.EOF {
		t.Errorf("the stream ended with %v, want %v", err, io.EOF)
	}
}

// The fields of a hash's input in a schema have 1 to 65536 bits.
func TestWidthOfHashInput(t *testing.T) {
	for bits, want := range map[uint64]string{0: "its field src has 0 bits", 1: "", 1 << 16: "", 1<<16 + 1: "its field src has 65537 bits"} {
		part := func(name string) *datum { return &datum{name: name, width: 32} }
		length := part("length")
		length.preset = length.number(bits)
		input := &datum{name: "src", parts: []*datum{part("order"), part("start_bit"), length}}
		err := hashShape(&recordTable{table: &table{schema: &bfrt.Table{Type: "DynHashConfigure"}, order: []*datum{input}}})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, want) {
			t.Errorf("%d bits: %v, want %q", bits, err, want)
		}
	}
}

// The whole buffer of the packet generator is cleared without a key, in the pipes of the
// target. Other updates need the key of a part.
func TestClearGeneratorBuffer(t *testing.T) {
	r := newProgramRig(t, generating, gate.Limits{})
	const table = "pktgen.pkt_buffer"
	holds := func(n uint32) (sum uint32) {
		list, err := r.read(pipe(n), r.entry(table, r.key(table, 0, 16<<10), nil))
		r.must(err)
		for _, b := range list[0].GetData().GetFields()[0].GetIntArrVal().GetVal() {
			sum += b
		}
		return sum
	}
	bytes := r.data(table, "", "buffer", []uint32{5})
	for _, kind := range []wire.Update_Type{del, wire.Update_RESET} {
		for _, offset := range []uint64{0, 16<<10 - 16} {
			r.set(mod, table, r.key(table, offset, 1), bytes)
		}
		r.must(r.write(pipe(1), update(kind, r.entry(table, nil, nil))))
		if a, b := holds(0), holds(1); a != 10 || b != 0 {
			t.Errorf("after %v in pipe 1, the bytes of pipes 0 and 1 sum up to %d and %d, want 10 and 0", kind, a, b)
		}
		r.must(r.write(pipe(0), update(kind, r.entry(table, r.key(table, 0, 1), nil))))
		if a := holds(0); a != 5 {
			t.Errorf("after %v of a part, the bytes sum up to %d, want 5", kind, a)
		}
	}
	for _, kind := range []wire.Update_Type{ins, mod} {
		r.refused("without a key", update(kind, r.entry(table, nil, bytes)), codes.InvalidArgument, "the key lacks")
	}
}

// A message that has to wait for its turn does not keep its stream.
func TestStreamEndsInTurn(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.s.pace.next = time.Now().Add(24 * time.Hour)
	ended := make(chan error)
	go func() { ended <- r.s.pace.wait(ctx) }()
	until(t, "the message waits", func() bool {
		r.s.pace.mu.Lock()
		defer r.s.pace.mu.Unlock()
		return r.s.pace.next.After(time.Now().Add(24*time.Hour - time.Minute))
	})
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// A server that stops ends streams with UNAVAILABLE and refuses later calls, and Serve returns.
func TestStop(t *testing.T) {
	r := newRig(t)
	for i := range 2 { // twice is once
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r.s.Stop(ctx)
		if ctx.Err() != nil {
			t.Errorf("stop %d waits for its deadline", i+1)
		}
		cancel()
	}
	for range r.heard {
	}
	if _, err := r.stream.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the switch ends") {
		t.Errorf("the stream ended with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := r.c.GetForwardingPipelineConfig(ctx, &wire.GetForwardingPipelineConfigRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a later call: %v", err)
	}
	before := runtime.NumGoroutine()
	r.s.work.Wait() // the server's own goroutines have ended
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, before %d", after, before)
	}
}

// A read that cannot continue ends: its client is gone, or the server stops.
func TestReadsThatCannotContinue(t *testing.T) {
	r := newRig(t)
	r.s.turn <- struct{}{} // another read
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	a := &answer{s: r.s, stream: &noStream{ctx: gone}, program: r.s.programs[0]}
	if err := a.rest(); err != context.Canceled || a.ended != err || a.locked {
		t.Errorf("a client that is gone: %v, %v, locked: %v", err, a.ended, a.locked)
	}
	close(r.s.stop)
	r.s.stopOnce.Do(func() {})
	b := &answer{s: r.s, stream: &noStream{ctx: t.Context()}, program: r.s.programs[0]}
	if err := b.rest(); codeOfError(err) != codes.Unavailable || b.locked {
		t.Errorf("a server that stops: %v, locked: %v", err, b.locked)
	}
	<-r.s.turn
}

// The deadline of a call is the sum of its seconds and nanoseconds, decimal and below 2^31.
// Flags are set by 1 alone.
func TestCallOptions(t *testing.T) {
	s := &Server{stop: make(chan struct{})}
	for _, c := range []struct {
		md                     []string
		after                  time.Duration // 0: no deadline
		ignores, inTheResponse bool
	}{
		{nil, 0, false, false},
		{[]string{"deadline_sec", "10"}, 10 * time.Second, false, false},
		{[]string{"deadline_sec", "10", "deadline_nsec", "999999999"}, 10*time.Second + 999999999, false, false},
		{[]string{"deadline_sec", "2147483647"}, (1<<31 - 1) * time.Second, false, false},
		{[]string{"deadline_sec", "2147483648"}, 0, false, false},
		{[]string{"deadline_sec", "-1", "deadline_nsec", "0x10"}, 0, false, false},
		{[]string{"ignore_not_found", "1", "error_in_resp", "0"}, 0, true, false},
		{[]string{"ignore_not_found", "true", "error_in_resp", "1"}, 0, false, true},
	} {
		before := time.Now()
		w := s.optionsOf(metadata.NewIncomingContext(t.Context(), metadata.Pairs(c.md...)))
		if w.ignoreNotFound != c.ignores || w.inResponse != c.inTheResponse {
			t.Errorf("%v: %+v", c.md, w)
		}
		if c.after == 0 {
			if !w.until.IsZero() {
				t.Errorf("%v: the deadline is %v", c.md, w.until)
			}
			continue
		}
		if w.until.Before(before.Add(c.after)) || w.until.After(time.Now().Add(c.after)) {
			t.Errorf("%v: the deadline is in %v, want %v", c.md, w.until.Sub(before), c.after)
		}
		if err := w.late(); err != nil {
			t.Errorf("%v: %v", c.md, err)
		}
	}
	late := &callOptions{until: time.Now().Add(-time.Nanosecond)}
	if err := late.late(); codeOfError(err) != codes.DeadlineExceeded {
		t.Errorf("after the deadline: %v", err)
	}
}

// A read has at most 2^22 requests, which the server counts before any other check.
func TestMostRequests(t *testing.T) {
	r := newRig(t)
	r.s.reads.Add(1 << 30)
	defer r.s.reads.Add(-1 << 30)
	for n, want := range map[int]string{1 << 22: "reads are in progress", 1<<22 + 1: "the read has 4194305 requests, more than 4194304"} {
		err := r.s.Read(&wire.ReadRequest{Entities: make([]*wire.Entity, n)}, &noStream{ctx: t.Context()})
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), want) {
			t.Errorf("%d requests: %v, want %q", n, err, want)
		}
	}
}

// pages returns the numbers of entities in the responses of a read.
func (r *rig) pages(list ...*wire.TableEntry) (pages []int) {
	r.t.Helper()
	req := &wire.ReadRequest{Target: everywhere, ClientId: r.client}
	for _, e := range list {
		req.Entities = append(req.Entities, &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: e}})
	}
	stream, err := r.c.Read(r.t.Context(), req)
	r.must(err)
	for {
		m, err := stream.Recv()
		if err != nil {
			return pages
		}
		pages = append(pages, len(m.GetEntities()))
	}
}

// A response has at most 256 entities. Entities of several requests share a response.
func TestPages(t *testing.T) {
	r := newRig(t)
	var list []*wire.TableEntry
	for i := range uint64(600) {
		e := r.entry("In.sums", r.key("In.sums", i%64), nil)
		list = append(list, e)
	}
	if got, want := r.pages(list...), []int{256, 256, 88}; !slices.Equal(got, want) {
		t.Errorf("single cells in responses of %v, want %v", got, want)
	}
	if got, want := r.pages(list[:257]...), []int{256, 1}; !slices.Equal(got, want) {
		t.Errorf("257 cells in responses of %v, want %v", got, want)
	}
	all := r.entry("In.sums", nil, nil)
	if got, want := r.pages(all, all, list[0], all, all), []int{256, 1}; !slices.Equal(got, want) {
		t.Errorf("arrays in responses of %v, want %v", got, want)
	}
	keys := r.entry("In.large", nil, nil)
	keys.TableFlags = &wire.TableFlags{KeyOnly: true}
	if got := r.pages(keys); len(got) != 256 || slices.Max(got) != 256 || slices.Min(got) != 256 {
		t.Errorf("%d responses of keys with %v entities", len(got), got)
	}
	// Cells with data are encoded into responses of about 32 KiB.
	cells := r.entry("In.large", nil, nil)
	got := r.pages(cells, list[0])
	one, err := r.read(everywhere, r.entry("In.large", r.key("In.large", 1), nil))
	r.must(err)
	size := len(mustMarshal(&wire.ReadResponse{Entities: []*wire.Entity{{Entity: &wire.Entity_TableEntry{TableEntry: one[0]}}}}))
	if want := 32 << 10 / size; got[0] != want || got[len(got)-1] != 1 {
		t.Errorf("%d cells of %d bytes in the first response, %d in the last, want %d and 1", got[0], size, got[len(got)-1], want)
	}
}

// Missing parameters of a member's action are 0, in all the bytes of their width.
func TestMissingParameters(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to"))
	d := r.get(everywhere, "In.members", r.key("In.members", 3))
	if f := d.GetFields(); len(f) != 1 || !slices.Equal(f[0].GetStream(), []byte{0, 0}) {
		t.Errorf("member 3 is %v, want a port of two bytes 0", d)
	}
}

// A repeated field of a schema has no default: its entries begin with an empty array.
func TestDefaultOfRepeatedField(t *testing.T) {
	f := &bfrt.Field{ID: 3, Name: "list", Repeated: true, Type: &bfrt.Type{Type: "uint32", Default: 5.0}}
	if d := newDatum(f, false); d.preset != nil {
		t.Errorf("the default is %v", d.preset)
	}
	if f.Repeated = false; uintOf(newDatum(f, false).preset.GetStream()) != 5 {
		t.Error("the default of a single field is not 5")
	}
}

// A scope names each pipe of a program once.
func TestPipesOfScope(t *testing.T) {
	r := newRig(t)
	for sets, want := range map[uint64]string{
		0x010102: "scope 0x10102 has pipe 0 twice", 0x0f08: "scope 0xf08 has pipe 3 twice", 0x07: "scope 0x7 leaves pipe 3 out", 0x0e: "scope 0xe leaves pipe 0 out",
	} {
		m := &wire.Mode{Scope: &wire.Mode_UserDefined{UserDefined: sets}}
		r.refused("a scope", r.attribute("In.dmac", &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: m}}}), codes.InvalidArgument, want)
	}
	r.scoped("In.dmac", 0xf00f) // pipes that the chip lacks have no entries
}

// A group has the same size in all pipes in which it was inserted at once.
func TestSizeOfGroupInPipes(t *testing.T) {
	r := newRig(t)
	size := func(target *wire.TargetDevice, kind wire.Update_Type, id uint64, n int) error {
		return r.write(target, update(kind, r.entry("In.groups", r.key("In.groups", id), r.data("In.groups", "", "$MAX_GROUP_SIZE", n))))
	}
	r.must(size(everywhere, ins, 8, 4))
	r.must(size(pipe(1), mod, 8, 4)) // the same
	if err := size(pipe(1), mod, 8, 5); err == nil || !strings.Contains(details(t, err)[0].GetMessage(), "group 8 is in all pipes, and must have the same size in all") {
		t.Errorf("another size in one pipe: %v", err)
	}
	r.must(size(everywhere, mod, 8, 5))
	r.must(size(pipe(1), ins, 9, 4))
	r.must(size(pipe(1), mod, 9, 5))
	d := r.get(pipe(3), "In.groups", r.key("In.groups", 8))
	if got := r.values("In.groups", d, "$MAX_GROUP_SIZE"); !slices.Equal(got, []uint64{5}) {
		t.Errorf("in pipe 3 the group has the size %v", got)
	}
}

// A group reads with its members, their states, its size and its offset, or with those
// that the client asks for.
func TestFieldsOfGroup(t *testing.T) {
	r := newRig(t)
	const table = "In.groups"
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	r.set(ins, table, r.key(table, 8), r.data(table, "", "$ACTION_MEMBER_ID", []uint32{3, 3}, "$ACTION_MEMBER_STATUS", []bool{true, false}))
	d := r.get(everywhere, table, r.key(table, 8))
	if got := r.field(table, d, "$ACTION_MEMBER_ID").GetIntArrVal().GetVal(); !slices.Equal(got, []uint32{3, 3}) {
		t.Errorf("members %d", got)
	}
	if got := r.field(table, d, "$ACTION_MEMBER_STATUS").GetBoolArrVal().GetVal(); !slices.Equal(got, []bool{true, false}) {
		t.Errorf("states %v", got)
	}
	if len(d.GetFields()) < 3 {
		t.Errorf("fields %v", d.GetFields())
	}
	for _, name := range []string{"$ACTION_MEMBER_ID", "$ACTION_MEMBER_STATUS", "$MAX_GROUP_SIZE"} {
		id := r.table(table).field(name).id
		list, err := r.read(everywhere, r.entry(table, r.key(table, 8), &wire.TableData{Fields: []*wire.DataField{{FieldId: id}}}))
		r.must(err)
		if f := list[0].GetData().GetFields(); len(f) != 1 || f[0].GetFieldId() != id {
			t.Errorf("%s alone: %v", name, f)
		}
	}
}

// An unset meter has the maximum rates of its chip, and an unset filter no time constant.
func TestUnsetRates(t *testing.T) {
	numbers := map[string]uint64{}
	for arch, most := range map[string]uint64{bmv2.TNA: 5195848221, bmv2.T2NA: 4087999890} {
		table := &table{s: &Server{opts: Options{Arch: arch}}}
		for i, name := range []string{"$METER_SPEC_CIR_KBPS", "$METER_SPEC_PIR_KBPS", "$METER_SPEC_CBS_KBITS", "$METER_SPEC_PBS_KBITS"} {
			table.order = append(table.order, &datum{id: uint32(i), name: name, width: 64})
		}
		newMeterSpec(table)
		for _, f := range table.order {
			numbers[f.name] = uintOf(f.preset.GetStream())
		}
		if got := [2]uint64{numbers["$METER_SPEC_CIR_KBPS"], numbers["$METER_SPEC_PIR_KBPS"]}; got != [2]uint64{most, most} {
			t.Errorf("%s: rates %d, want %d", arch, got, most)
		}
		if got := [2]uint64{numbers["$METER_SPEC_CBS_KBITS"], numbers["$METER_SPEC_PBS_KBITS"]}; got != [2]uint64{4380866642, 4380866642} {
			t.Errorf("%s: bursts %d", arch, got)
		}
	}
	r := newProgramRig(t, entries, gate.Limits{})
	for name, fields := range map[string][]string{
		"In.detected": {"$WRED_SPEC_TIME_CONSTANT_NS", "$WRED_SPEC_MAX_PROBABILITY"},
		"In.smoothed": {"$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "$LPF_SPEC_DECAY_TIME_CONSTANT_NS"},
	} {
		action := map[string]string{"In.detected": "detect", "In.smoothed": "smooth"}[name]
		r.set(ins, name, r.key(name, 1), r.data(name, action, "port", 2))
		d := r.get(everywhere, name, r.key(name, 1))
		for _, f := range fields {
			if v, ok := r.field(name, d, f).GetValue().(*wire.DataField_FloatVal); !ok || v.FloatVal != 0 {
				t.Errorf("%s of an entry without filter is %v", f, v)
			}
		}
	}
	d := r.get(everywhere, "In.smoothed", r.key("In.smoothed", 1))
	if got := r.field("In.smoothed", d, "$LPF_SPEC_TYPE").GetStrVal(); got != "SAMPLE" {
		t.Errorf("the type of a filter is %q", got)
	}
	if got := r.values("In.smoothed", d, "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR"); !slices.Equal(got, []uint64{0}) {
		t.Errorf("the shift of a filter is %d", got)
	}
}

// Each entry of a full table has the cell of its own, the last one too.
func TestCellsOfFullTable(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	const table = "In.counted"
	for i := range uint64(64) {
		r.set(ins, table, r.key(table, i), r.data(table, "tally", "port", 2, "first", int(i), "second", int(100+i)))
	}
	list := r.list(table)
	if len(list) != 64 {
		t.Fatalf("%d entries", len(list))
	}
	for _, e := range list {
		key := uintOf(e.GetKey().GetFields()[0].GetExact().GetValue())
		for name, want := range map[string]uint64{"first": key, "second": 100 + key} {
			got := r.values(table, e.GetData(), name)
			if slices.ContainsFunc(got, func(n uint64) bool { return n != want }) || len(got) != 4 {
				t.Errorf("entry %d: %s is %d, want %d in four pipes", key, name, got, want)
			}
		}
	}
}

// The details of a refused batch count about 60 bytes for each outcome and fit into 8 MiB.
func TestDetailsOfLargeBatch(t *testing.T) {
	good := &wire.Error{}
	for n, want := range map[int]int{8 << 20 / 60: 8 << 20 / 60, 8<<20/60 + 1: 0} {
		list := make([]*wire.Error, n)
		for i := range list {
			list[i] = good
		}
		if got := len(status.Convert(refused(list)).Proto().GetDetails()); got != want {
			t.Errorf("%d outcomes: %d details, want %d", n, got, want)
		}
	}
	for room := range 2 { // in bytes, beyond a message that just fits
		bad := &wire.Error{CanonicalCode: 5, Code: 5, Message: strings.Repeat("x", 8<<20-2*60+1-room)}
		x := &wire.Error{}
		err := status.Convert(refused([]*wire.Error{good, bad})).Proto().GetDetails()[1].UnmarshalTo(x)
		if err != nil || x.GetCode() != 5 || (x.GetMessage() == "") != (room == 0) {
			t.Errorf("a message of %d bytes: code %d, %d bytes, %v", len(bad.Message), x.GetCode(), len(x.GetMessage()), err)
		}
	}
}

// The generator pauses after packets as long as they take at its largest rate.
func TestGaps(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 0, 1: 10 * time.Microsecond, 256: 2560 * time.Microsecond} {
		if got := gaps(n); got != want {
			t.Errorf("%d packets take %v, want %v", n, got, want)
		}
	}
}

// A hitless warm init keeps the sets of pipes of registers.
func TestScopeOfRegisterKept(t *testing.T) {
	r := newRig(t)
	const table = "In.seen"
	r.scoped(table, 0x0c03)
	program, _ := chipProgram()
	for _, c := range []struct {
		mode wire.SetForwardingPipelineConfigRequest_DevInitMode
		want []uint64
	}{
		{wire.SetForwardingPipelineConfigRequest_HITLESS, []uint64{5, 5, 7, 7}},
		{wire.SetForwardingPipelineConfigRequest_FAST_RECONFIG, []uint64{5, 7, 7, 7}},
	} {
		_, err := r.c.SetForwardingPipelineConfig(t.Context(), &wire.SetForwardingPipelineConfigRequest{
			ClientId: 1, Action: wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END, DevInitMode: c.mode,
			Config: []*wire.ForwardingPipelineConfig{{P4Name: "chip", BfruntimeInfo: program.Schema, Profiles: []*wire.ForwardingPipelineConfig_Profile{{ProfileName: "pipe", Binary: program.Binary}}}},
		})
		r.must(err)
		r.must(r.write(pipe(0), update(mod, r.entry(table, r.key(table, 1), r.data(table, "", "first", 5)))))
		if got := r.values(table, r.get(everywhere, table, r.key(table, 1)), "first"); !slices.Equal(got, c.want) {
			t.Errorf("after %v, the pipes hold %v, want %v", c.mode, got, c.want)
		}
	}
}

// A client that reads nothing gets answers to its subscriptions up to 256 unread messages. It
// may subscribe again although the switch has as many clients as it may have.
func TestUnreadAnswers(t *testing.T) {
	r := newLimitedRig(t, gate.Limits{MaxControllers: 2})
	c := &client{outbox: &outbox{ready: make(chan struct{}, 1), room: 1 << 30, all: r.s.gate.Pending()}, gone: make(chan struct{})}
	defer c.outbox.close()
	defer r.s.clients.leave(c)
	again := &wire.StreamMessageRequest{ClientId: 7, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{}}}
	for n := range 300 {
		if err := r.s.hear(c, again, func(err error) { t.Errorf("subscription %d: %v", n, err) }); err != nil {
			t.Fatal(err)
		}
		if got, want := c.outbox.unread(), min(n+1, 256); got != want {
			t.Fatalf("after %d subscriptions, %d answers wait, want %d", n+1, got, want)
		}
	}
	var refused error
	third := &client{outbox: c.outbox, gone: make(chan struct{})}
	if r.s.hear(third, &wire.StreamMessageRequest{ClientId: 8, Update: again.Update}, func(err error) { refused = err }); codeOfError(refused) != codes.ResourceExhausted {
		t.Errorf("a third client: %v", refused)
	}
}

// The idle timeout of a table has a least and a greatest time to live when it notifies. In
// poll mode, the other settings are dropped.
func TestIdleSettings(t *testing.T) {
	r := newRig(t)
	const table = "In.dmac"
	const notify, poll = wire.IdleTable_IDLE_TABLE_NOTIFY_MODE, wire.IdleTable_IDLE_TABLE_POLL_MODE
	for _, test := range []struct {
		set, want *wire.IdleTable
	}{
		{&wire.IdleTable{Enable: true, IdleTableMode: notify, TtlQueryInterval: 500, MinTtl: 200, MaxTtl: 200}, nil},
		{&wire.IdleTable{Enable: true, IdleTableMode: notify, MinTtl: 200}, nil},
		{&wire.IdleTable{IdleTableMode: notify, MinTtl: 300, MaxTtl: 200}, nil},
		{&wire.IdleTable{Enable: true, IdleTableMode: poll, TtlQueryInterval: 500, MinTtl: 300, MaxTtl: 200}, &wire.IdleTable{Enable: true, IdleTableMode: poll}},
		{&wire.IdleTable{IdleTableMode: poll, MinTtl: 1}, &wire.IdleTable{IdleTableMode: poll}},
	} {
		if test.want == nil {
			test.want = test.set
		}
		r.must(r.write(everywhere, r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: test.set}})))
		ask := &wire.TableAttribute{TableId: r.table(table).schema.ID, Attribute: &wire.TableAttribute_IdleTable{}}
		e, code := r.ask(everywhere, &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: ask}})
		if got := e.GetTableAttribute().GetIdleTable(); code != codes.OK || !proto.Equal(got, test.want) {
			t.Errorf("after %v the table has %v, want %v: %v", test.set, got, test.want, code)
		}
	}
	bad := &wire.IdleTable{Enable: true, IdleTableMode: notify, MinTtl: 201, MaxTtl: 200}
	r.refused("a least time above the greatest", r.attribute(table, &wire.TableAttribute{Attribute: &wire.TableAttribute_IdleTable{IdleTable: bad}}),
		codes.InvalidArgument, "the least time to live, 201 ms, is above the greatest, 200 ms")
}

// A periodic application that is late makes at most 256 packets at once. If it is later than
// 100 ms, it starts again from now.
func TestLateGenerator(t *testing.T) {
	const period, begin = 10 * time.Microsecond, 10 * time.Microsecond
	start := func() *generator {
		g := &generator{wake: make(chan struct{}, 1), pipes: newPipes(1, 1)}
		g.portOn(68, true)
		g.configure(0, 0, appConfig{on: true, trigger: periodic, period: period, length: 1, batches: 1, perOne: 1, gap: generatorGap, port: 68})
		g.due(0)
		return g
	}
	for _, test := range []struct {
		now  time.Duration
		n    int
		next time.Duration
	}{
		{begin - 1, 0, begin},
		{begin, 1, begin + period},
		{begin + 254*period, 255, begin + 255*period},
		{begin + 300*period, 256, begin + 256*period},
		{begin + period + latest, 256, begin + 256*period},
		{begin + period + latest + 1, 2, begin + 2*period + latest + 1},
	} {
		list, next, more := start().due(test.now)
		if len(list) != test.n || next != test.next || !more {
			t.Errorf("at %v: %d packets, the next at %v, more: %v; want %d and %v", test.now, len(list), next, more, test.n, test.next)
		}
	}
}
