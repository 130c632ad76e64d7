package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// TestPacketsFollowEntries: packets follow the written entries in both pipes, and
// reads return their counts.
func TestPacketsFollowEntries(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 0xa), r.data("In.dmac", "send", "port", 2))
	for _, in := range []uint32{1, 130, 130} {
		r.send(in, frame(0xa, 0xb, 0))
		r.leaves(2)
	}
	d := r.get(everywhere, "In.dmac", r.key("In.dmac", 0xa))
	if got := r.values("In.dmac", d, "$COUNTER_SPEC_PKTS"); !slices.Equal(got, []uint64{3}) {
		t.Errorf("the entry was hit %v times, want 3", got)
	}
	// The register that counts by port has a value in each pipe and starts at the
	// program's initial value.
	d = r.get(everywhere, "In.seen", r.key("In.seen", 2))
	if got := r.values("In.seen", d, "first"); !slices.Equal(got, []uint64{7, 9, 7, 7}) {
		t.Errorf("the register's cell 2 is %v, want 7 9 7 7", got)
	}
	d = r.get(pipe(1), "In.seen", r.key("In.seen", 2))
	if got := r.values("In.seen", d, "second"); !slices.Equal(got, []uint64{9}) {
		t.Errorf("in pipe 1 its other half is %v, want 9", got)
	}
	r.must(r.write(pipe(0), update(mod, r.entry("In.seen", r.key("In.seen", 2), r.data("In.seen", "", "first", 100)))))
	d = r.get(everywhere, "In.seen", r.key("In.seen", 2))
	if got := r.values("In.seen", d, "first"); !slices.Equal(got, []uint64{100, 9, 7, 7}) {
		t.Errorf("after a write into pipe 0 it is %v, want 100 9 7 7", got)
	}
	r.set(del, "In.dmac", r.key("In.dmac", 0xa), nil)
	if n := r.size("In.dmac"); n != 0 {
		t.Errorf("%d entries after the last was deleted", n)
	}
}

// TestScope: with a scope of single pipes, a table has different entries in each
// pipe.
func TestScope(t *testing.T) {
	r := newRig(t)
	scope := func(m *wire.Mode) error {
		return r.write(everywhere, &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
			TableId: r.table("In.dmac").schema.ID, Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: m}},
		}}}})
	}
	r.must(scope(&wire.Mode{Scope: &wire.Mode_UserDefined{UserDefined: 0x0e01}}))
	r.must(r.write(pipe(0), update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2)))))
	r.must(r.write(pipe(1), update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1)))))
	r.send(2, frame(1, 0, 0))
	r.leaves(2)
	r.send(130, frame(1, 0, 0))
	r.leaves(1)
	if err := scope(&wire.Mode{Scope: &wire.Mode_Predef{}}); details(t, err)[0].GetCanonicalCode() != int32(codes.InvalidArgument) {
		t.Errorf("the scope of a table with entries was changed: %v", err)
	}
	r.must(r.write(everywhere, update(del, r.entry("In.dmac", nil, nil))))
	for _, bad := range []uint64{0x0101, 0x0701} { // a pipe twice, or none
		if err := scope(&wire.Mode{Scope: &wire.Mode_UserDefined{UserDefined: bad}}); err == nil {
			t.Errorf("scope %#x was taken", bad)
		}
	}
}

// TestScopeKept: a warm init without a hit keeps the scopes of tables, another one does
// not.
func TestScopeKept(t *testing.T) {
	r := newRig(t)
	id := r.table("In.dmac").schema.ID
	r.must(r.write(everywhere, &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
		TableId: id, Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}}},
	}}}}))
	program, _ := chipProgram()
	for _, c := range []struct {
		mode wire.SetForwardingPipelineConfigRequest_DevInitMode
		want []codes.Code // of the same entry in each of two pipes
	}{
		{wire.SetForwardingPipelineConfigRequest_HITLESS, []codes.Code{codes.OK, codes.OK}},
		{wire.SetForwardingPipelineConfigRequest_FAST_RECONFIG, []codes.Code{codes.OK, codes.AlreadyExists}},
	} {
		_, err := r.c.SetForwardingPipelineConfig(context.Background(), &wire.SetForwardingPipelineConfigRequest{
			ClientId: 1, Action: wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END, DevInitMode: c.mode,
			Config: []*wire.ForwardingPipelineConfig{{P4Name: "chip", BfruntimeInfo: program.Schema, Profiles: []*wire.ForwardingPipelineConfig_Profile{{ProfileName: "pipe", Binary: program.Binary}}}},
		})
		r.must(err)
		for n, want := range c.want {
			err := r.write(pipe(uint32(n)), update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2))))
			got := codes.OK
			if err != nil {
				got = codes.Code(details(t, err)[0].GetCanonicalCode())
			}
			if got != want {
				t.Errorf("after %v, an entry in pipe %d: %v, want %v", c.mode, n, err, want)
			}
		}
	}
}

// TestAtomicity: a batch with one bad update obeys its atomicity, and the details
// name the update.
func TestAtomicity(t *testing.T) {
	for _, c := range []struct {
		mode  wire.WriteRequest_Atomicity
		left  []uint64
		codes []codes.Code
	}{
		{wire.WriteRequest_CONTINUE_ON_ERROR, []uint64{1, 2, 4}, []codes.Code{codes.OK, codes.AlreadyExists, codes.OK}},
		{wire.WriteRequest_ROLLBACK_ON_ERROR, []uint64{1}, []codes.Code{codes.OK, codes.AlreadyExists}},
		{wire.WriteRequest_DATAPLANE_ATOMIC, []uint64{1}, []codes.Code{codes.OK, codes.AlreadyExists}},
	} {
		r := newRig(t)
		add := func(dst uint64) *wire.Update {
			return update(ins, r.entry("In.dmac", r.key("In.dmac", dst), r.data("In.dmac", "send", "port", 1, "$COUNTER_SPEC_PKTS", int(dst))))
		}
		r.must(r.write(everywhere, add(1)))
		_, err := r.c.Write(context.Background(), &wire.WriteRequest{Target: everywhere, ClientId: 1, Atomicity: c.mode, Updates: []*wire.Update{add(2), add(1), add(4)}})
		var got []codes.Code
		for _, e := range details(t, err) {
			got = append(got, codes.Code(e.GetCanonicalCode()))
		}
		if !slices.Equal(got, c.codes) {
			t.Errorf("%v: the outcomes are %v, want %v", c.mode, got, c.codes)
		}
		list, err := r.read(everywhere, r.entry("In.dmac", nil, nil))
		r.must(err)
		var left []uint64
		for _, e := range list {
			left = append(left, uintOf(e.GetKey().GetFields()[0].GetExact().GetValue()))
			if n := r.values("In.dmac", e.GetData(), "$COUNTER_SPEC_PKTS"); n[0] != left[len(left)-1] {
				t.Errorf("%v: entry %d has a count of %d", c.mode, left[len(left)-1], n)
			}
		}
		if slices.Sort(left); !slices.Equal(left, c.left) {
			t.Errorf("%v: the entries are %v, want %v", c.mode, left, c.left)
		}
	}
}

// TestPortsWhilePacketsAreHeld: tables of ports can be written while packets are
// stopped, and their attributes belong to the chip.
func TestPortsWhilePacketsAreHeld(t *testing.T) {
	r := newRig(t)
	_, err := r.c.Write(context.Background(), &wire.WriteRequest{Target: everywhere, ClientId: 1, Atomicity: wire.WriteRequest_DATAPLANE_ATOMIC, Updates: []*wire.Update{
		update(ins, r.entry("$PORT", r.key("$PORT", 5), r.data("$PORT", "", "$SPEED", "BF_SPEED_10G", "$PORT_ENABLE", true))),
		update(mod, r.entry("$PORT_STAT", r.key("$PORT_STAT", 130), r.data("$PORT_STAT", "", "$FramesReceivedOK", 0))),
	}})
	r.must(err)
	if n := r.size("$PORT"); n != 4 {
		t.Errorf("there are %d ports, want 4", n)
	}
	stream, err := r.c.Read(context.Background(), &wire.ReadRequest{Target: everywhere, ClientId: 1, Entities: []*wire.Entity{{Entity: &wire.Entity_TableAttribute{
		TableAttribute: &wire.TableAttribute{TableId: r.table("$PORT").schema.ID, Attribute: &wire.TableAttribute_ByteCountAdj{}},
	}}}})
	r.must(err)
	if _, err = stream.Recv(); codes.Code(details(t, err)[0].GetCanonicalCode()) != codes.Unimplemented {
		t.Errorf("bytes that the meters of ports count besides: %v", err)
	}
}

// TestRollback: if a later update of a batch fails, all tables are as they were
// before it.
func TestRollback(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1, "$COUNTER_SPEC_PKTS", 5))
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	r.set(ins, "In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{true}))
	r.set(mod, "In.seen", r.key("In.seen", 3), r.data("In.seen", "", "first", 1, "second", 2))
	r.set(mod, "In.sums", r.key("In.sums", 3), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 17))
	r.set(mod, "In.rates", r.key("In.rates", 3), r.data("In.rates", "", "$METER_SPEC_CIR_KBPS", 100, "$METER_SPEC_PIR_KBPS", 200))
	r.set(ins, "$mirror.cfg", r.key("$mirror.cfg", 5), r.data("$mirror.cfg", "$normal", "$session_enable", true, "$ucast_egress_port", 2, "$ucast_egress_port_valid", true))
	all := func() (list []string) {
		for _, name := range []string{"In.dmac", "In.members", "In.groups", "In.seen", "In.sums", "In.rates", "$mirror.cfg"} {
			entries, err := r.read(everywhere, r.entry(name, nil, nil))
			r.must(err)
			for _, e := range entries {
				list = append(list, name+string(mustMarshal(e)))
			}
		}
		return list
	}
	before := all()
	_, err := r.c.Write(context.Background(), &wire.WriteRequest{
		Target: everywhere, ClientId: 1, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
			update(mod, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "drop", "$COUNTER_SPEC_PKTS", 9))),
			update(del, r.entry("In.dmac", r.key("In.dmac", 1), nil)),
			update(mod, r.entry("In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 2))),
			update(ins, r.entry("In.members", r.key("In.members", 4), r.data("In.members", "spread_to", "port", 2))),
			update(mod, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{4}, "$ACTION_MEMBER_STATUS", []bool{false}))),
			update(mod, r.entry("In.seen", r.key("In.seen", 3), r.data("In.seen", "", "first", 8))),
			update(del, r.entry("In.seen", nil, nil)),
			update(del, r.entry("In.sums", nil, nil)),
			update(mod, r.entry("In.rates", r.key("In.rates", 3), r.data("In.rates", "", "$METER_SPEC_PIR_KBPS", 300))),
			update(del, r.entry("$mirror.cfg", r.key("$mirror.cfg", 5), nil)),
			update(del, r.entry("In.dmac", r.key("In.dmac", 77), nil)),
		}})
	outcomes := details(t, err)
	if n := len(outcomes); n != 11 || outcomes[n-1].GetCanonicalCode() != int32(codes.NotFound) {
		t.Fatalf("the outcomes are %v", outcomes)
	}
	if after := all(); !slices.Equal(after, before) {
		for i := range min(len(before), len(after)) {
			if before[i] != after[i] {
				t.Errorf("%q was %q", after[i], before[i])
			}
		}
		t.Errorf("%d entries, and there were %d", len(after), len(before))
	}
}

// TestBadUpdates: every wrong update gets its code in the details and leaves the
// table unchanged.
func TestBadUpdates(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1))
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	r.set(ins, "In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3}, "$ACTION_MEMBER_STATUS", []bool{true}))
	dmac := func(k *wire.TableKey, d *wire.TableData) *wire.TableEntry { return r.entry("In.dmac", k, d) }
	send := func() *wire.TableData { return r.data("In.dmac", "send", "port", 1) }
	wide := send()
	wide.Fields[0].Value = &wire.DataField_Stream{Stream: be(2, 0x200)}
	long := send()
	long.Fields[0].Value = &wire.DataField_Stream{Stream: be(3, 1)}
	twice := send()
	twice.Fields = append(twice.Fields, twice.Fields[0])
	foreign := send()
	foreign.Fields = append(foreign.Fields, &wire.DataField{FieldId: 4711})
	other := send()
	other.ActionId = 4711
	untyped := send()
	untyped.Fields[0].Value = &wire.DataField_BoolVal{BoolVal: true}
	short := r.key("In.dmac", 2)
	short.Fields[0].MatchType = &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: []byte{1}}}
	lpm := r.key("In.dmac", 2)
	lpm.Fields[0].MatchType = &wire.KeyField_Lpm{Lpm: &wire.KeyField_LPM{Value: be(6, 1), PrefixLen: 8}}
	unknown := r.key("In.dmac", 2)
	unknown.Fields[0].FieldId = 99
	nowhere := dmac(r.key("In.dmac", 2), send())
	nowhere.TableId = 1
	miss := &wire.TableData{ActionId: r.data("In.choose", "").ActionId}
	far := update(ins, dmac(r.key("In.dmac", 2), send()))
	far.Entity.GetTableEntry().EntryTgt = pipe(9)
	elsewhere := update(ins, dmac(r.key("In.dmac", 2), send()))
	elsewhere.Entity.GetTableEntry().EntryTgt = &wire.TargetDevice{DeviceId: 3}
	defaultWithKey := dmac(r.key("In.dmac", 2), send())
	defaultWithKey.IsDefaultEntry = true
	for name, c := range map[string]struct {
		u    *wire.Update
		code codes.Code
		says string
	}{
		"no such table":          {update(ins, nowhere), codes.NotFound, "table 0x1"},
		"no entity":              {&wire.Update{Type: ins}, codes.InvalidArgument, "no entity"},
		"no type":                {update(0, dmac(r.key("In.dmac", 1), send())), codes.InvalidArgument, "UNSPECIFIED"},
		"a type of none":         {update(99, dmac(r.key("In.dmac", 1), send())), codes.InvalidArgument, "99"},
		"a default to insert":    {update(ins, &wire.TableEntry{TableId: r.table("In.acl").schema.ID, IsDefaultEntry: true, Data: r.data("In.acl", "learn")}), codes.Unimplemented, "default"},
		"a default with a key":   {update(mod, defaultWithKey), codes.InvalidArgument, "no key"},
		"there already":          {update(ins, dmac(r.key("In.dmac", 1), send())), codes.AlreadyExists, "In.dmac"},
		"not there, to modify":   {update(mod, dmac(r.key("In.dmac", 2), send())), codes.NotFound, "the entry does not exist"},
		"not there, to delete":   {update(del, dmac(r.key("In.dmac", 2), nil)), codes.NotFound, "the entry does not exist"},
		"a value too wide":       {update(ins, dmac(r.key("In.dmac", 2), wide)), codes.InvalidArgument, "more than 9 bits"},
		"a value too long":       {update(ins, dmac(r.key("In.dmac", 2), long)), codes.InvalidArgument, "3 bytes, want 2"},
		"a value of other type":  {update(ins, dmac(r.key("In.dmac", 2), untyped)), codes.InvalidArgument, "want bytes"},
		"a field twice":          {update(ins, dmac(r.key("In.dmac", 2), twice)), codes.InvalidArgument, "twice"},
		"a field of none":        {update(ins, dmac(r.key("In.dmac", 2), foreign)), codes.NotFound, "4711"},
		"an action of none":      {update(ins, dmac(r.key("In.dmac", 2), other)), codes.NotFound, "4711"},
		"no action":              {update(ins, dmac(r.key("In.dmac", 2), nil)), codes.InvalidArgument, "no action"},
		"a key too short":        {update(ins, dmac(short, send())), codes.InvalidArgument, "1 bytes, want 6"},
		"a key of another kind":  {update(ins, dmac(lpm, send())), codes.InvalidArgument, "Exact"},
		"a key field of none":    {update(ins, dmac(unknown, send())), codes.NotFound, "key field 99"},
		"no key":                 {update(ins, dmac(nil, send())), codes.InvalidArgument, "neither key nor handle"},
		"a pipe of none":         {far, codes.InvalidArgument, "no pipe 9"},
		"a device of none":       {elsewhere, codes.InvalidArgument, "no device 3"},
		"the constant default":   {update(mod, &wire.TableEntry{TableId: r.table("In.dmac").schema.ID, IsDefaultEntry: true, Data: send()}), codes.Unimplemented, "default"},
		"a cell of none":         {update(mod, r.entry("In.seen", r.key("In.seen", 64), r.data("In.seen", "", "first", 1))), codes.InvalidArgument, "outside 0..63"},
		"a counter of none":      {update(mod, r.entry("In.sums", r.key("In.sums", 64), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 1))), codes.InvalidArgument, "outside 0..63"},
		"a meter of none":        {update(mod, r.entry("In.rates", r.key("In.rates", 64), r.data("In.rates", "", "$METER_SPEC_CIR_KBPS", 1))), codes.InvalidArgument, "outside 0..63"},
		"a peak below the rate":  {update(mod, r.entry("In.rates", r.key("In.rates", 1), r.data("In.rates", "", "$METER_SPEC_CIR_KBPS", 9, "$METER_SPEC_PIR_KBPS", 8))), codes.InvalidArgument, "peak"},
		"a member in use":        {update(del, r.entry("In.members", r.key("In.members", 3), nil)), codes.AlreadyExists, "referenced"},
		"a member of none":       {update(ins, r.entry("In.groups", r.key("In.groups", 9), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{5}, "$ACTION_MEMBER_STATUS", []bool{true}))), codes.NotFound, "member 5"},
		"members without states": {update(ins, r.entry("In.groups", r.key("In.groups", 9), r.data("In.groups", "", "$ACTION_MEMBER_ID", []uint32{3}))), codes.InvalidArgument, "differ in length: 1 and 0"},
		"neither member nor":     {update(ins, r.entry("In.choose", r.key("In.choose", 9), miss)), codes.InvalidArgument, "names no member"},
		"a session of none":      {update(ins, r.entry("$mirror.cfg", r.key("$mirror.cfg", 5000), r.data("$mirror.cfg", "$normal"))), codes.InvalidArgument, "outside 0..1023"},
		"a word of none":         {update(ins, r.entry("$PORT", r.key("$PORT", 5), r.data("$PORT", "", "$SPEED", "BF_SPEED_7G"))), codes.InvalidArgument, "BF_SPEED_7G"},
		"a port of none":         {update(ins, r.entry("$PORT", r.key("$PORT", 75), r.data("$PORT", "", "$SPEED", "BF_SPEED_10G"))), codes.InvalidArgument, "no port 75"},
		"what is read only":      {update(ins, r.entry("$PORT", r.key("$PORT", 5), r.data("$PORT", "", "$PORT_UP", true))), codes.InvalidArgument, "read only"},
		"a node of none":         {update(ins, r.entry("$pre.mgid", r.key("$pre.mgid", 5), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", []uint32{8}, "$MULTICAST_NODE_L1_XID_VALID", []bool{false}, "$MULTICAST_NODE_L1_XID", []uint32{0}))), codes.NotFound, "node 8"},
	} {
		e := details(t, r.write(everywhere, c.u))
		if len(e) != 1 || codes.Code(e[0].GetCanonicalCode()) != c.code || !strings.Contains(e[0].GetMessage(), c.says) {
			t.Errorf("%s: %v, want %v with %q", name, e, c.code, c.says)
		}
	}
	if n := r.size("In.dmac"); n != 1 {
		t.Errorf("there are %d entries, want the one from the beginning", n)
	}
}

// TestBadCalls: the code and the message for calls that are invalid as a whole.
func TestBadCalls(t *testing.T) {
	r := newRig(t)
	u := update(ins, r.entry("In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1)))
	want := func(name string, err error, code codes.Code) {
		t.Helper()
		if status.Code(err) != code {
			t.Errorf("%s: %v, want %v", name, err, code)
		}
	}
	write := func(client uint32, name string, a wire.WriteRequest_Atomicity) error {
		_, err := r.c.Write(context.Background(), &wire.WriteRequest{Target: everywhere, ClientId: client, P4Name: name, Atomicity: a, Updates: []*wire.Update{u}})
		return err
	}
	want("a client without stream that names no program", write(9, "", 0), codes.NotFound)
	want("a program of none", write(1, "other", 0), codes.NotFound)
	want("an atomicity of none", write(1, "", 9), codes.InvalidArgument)
	want("an independent client", write(9, "chip", 0), codes.OK)
	want("a wrong name", r.bind(1, "other"), codes.NotFound)
	want("a client without stream", r.bind(9, "chip"), codes.Unavailable)
	want("a client that is bound", r.bind(1, "chip"), codes.AlreadyExists)
	first := r.stream
	r.subscribe(2, nil)
	want("a client that is not bound", write(2, "", 0), codes.Unknown)
	want("a program that is bound", r.bind(2, "chip"), codes.AlreadyExists)
	first.CloseSend()
	ok := false
	for range 1000 { // the first client leaves
		if ok = r.bind(2, "chip") == nil; ok {
			break
		}
	}
	if !ok {
		t.Error("the program is not free once its client has left")
	}
	program, _ := chipProgram()
	send := func(a wire.SetForwardingPipelineConfigRequest_Action, info, binary []byte) error {
		_, err := r.c.SetForwardingPipelineConfig(context.Background(), &wire.SetForwardingPipelineConfigRequest{ClientId: 2, Action: a, Config: []*wire.ForwardingPipelineConfig{{
			P4Name: "chip", BfruntimeInfo: info, Profiles: []*wire.ForwardingPipelineConfig_Profile{{ProfileName: "pipe", Binary: binary}},
		}}})
		return err
	}
	verify := wire.SetForwardingPipelineConfigRequest_VERIFY
	want("a schema that is none", send(verify, []byte("{"), program.Binary), codes.InvalidArgument)
	want("a chip's binary", send(verify, program.Schema, []byte{0, 1, 2}), codes.InvalidArgument)
	other := []byte(strings.ReplaceAll(string(program.Schema), "pipe.In.dmac", "pipe.In.none"))
	err := send(verify, other, program.Binary)
	want("the schema of another program", err, codes.InvalidArgument)
	if !strings.Contains(err.Error(), "In.none") {
		t.Errorf("the schema of another program: %v does not name the table", err)
	}
	want("the end of what has not begun", send(wire.SetForwardingPipelineConfigRequest_WARM_INIT_END, nil, nil), codes.InvalidArgument)
	want("what nobody has", send(wire.SetForwardingPipelineConfigRequest_RECONCILE_AND_WARM_INIT_END, nil, nil), codes.Unimplemented)
	r.client = 2
	if n := r.size("In.dmac"); n != 1 {
		t.Errorf("there are %d entries, want the one of the independent client", n)
	}
}

// TestWarmInit: a client reads a program and sends it back, which replaces the program by
// itself. Until the end of the init, packets use the old instance.
func TestWarmInit(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2))
	got, err := r.c.GetForwardingPipelineConfig(context.Background(), &wire.GetForwardingPipelineConfigRequest{ClientId: 1})
	r.must(err)
	configure := func(a wire.SetForwardingPipelineConfigRequest_Action, list []*wire.ForwardingPipelineConfig) wire.SetForwardingPipelineConfigResponseType {
		t.Helper()
		_, err := r.c.SetForwardingPipelineConfig(context.Background(), &wire.SetForwardingPipelineConfigRequest{ClientId: 1, Action: a, Config: list})
		r.must(err)
		return r.hear().GetSetForwardingPipelineConfigResponse().GetSetForwardingPipelineConfigResponseType()
	}
	if got := configure(wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN, got.GetConfig()); got != wire.SetForwardingPipelineConfigResponseType_WARM_INIT_STARTED {
		t.Errorf("the begin is told as %v", got)
	}
	if n := r.size("In.dmac"); n != 0 {
		t.Errorf("the new program begins with %d entries", n)
	}
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 1))
	r.send(1, frame(1, 0, 0))
	r.leaves(2)
	if got := configure(wire.SetForwardingPipelineConfigRequest_WARM_INIT_END, nil); got != wire.SetForwardingPipelineConfigResponseType_WARM_INIT_FINISHED {
		t.Errorf("the end is told as %v", got)
	}
	r.send(2, frame(1, 0, 0))
	r.leaves(1)
}

// TestOutcomesInResponse: a client can request the outcomes in the response and the
// deletion of missing entries.
func TestOutcomesInResponse(t *testing.T) {
	r := newRig(t)
	add := func(kind wire.Update_Type, dst uint64) *wire.Update {
		return update(kind, r.entry("In.dmac", r.key("In.dmac", dst), r.data("In.dmac", "send", "port", 1)))
	}
	r.must(r.write(everywhere, add(ins, 1)))
	m, err := r.c.Write(withMetadata("error_in_resp", "1", "ignore_not_found", "1"), &wire.WriteRequest{
		Target: everywhere, ClientId: 1, Updates: []*wire.Update{add(del, 1), add(del, 2), add(wire.Update_INSERT_OR_MODIFY, 3), add(wire.Update_INSERT_OR_MODIFY, 3)},
	})
	r.must(err)
	var got []codes.Code
	for _, e := range m.GetStatus() {
		got = append(got, codes.Code(e.GetCode()))
	}
	if want := []codes.Code{codes.OK, codes.NotFound, codes.OK, codes.AlreadyExists}; !slices.Equal(got, want) {
		t.Errorf("the outcomes are %v, want %v", got, want)
	}
	list, err := r.read(everywhere, r.entry("In.dmac", r.key("In.dmac", 3), nil), r.entry("In.dmac", r.key("In.dmac", 4), nil))
	if e := details(t, err); len(list) != 1 || len(e) != 2 || e[0].GetCanonicalCode() != 0 || codes.Code(e[1].GetCanonicalCode()) != codes.NotFound {
		t.Errorf("a read of two, one of which is there: %d entries and %v", len(list), e)
	}
}

// TestHandles: an entry is found by its handle, its key alone is read with the
// target.
func TestHandles(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2))
	r.set(ins, "In.dmac", r.key("In.dmac", 2), r.data("In.dmac", "send", "port", 2))
	stream, err := r.c.Read(context.Background(), &wire.ReadRequest{Target: everywhere, ClientId: 1, Entities: []*wire.Entity{{Entity: &wire.Entity_Handle{
		Handle: &wire.HandleId{TableId: r.table("In.dmac").schema.ID, Value: &wire.HandleId_Key{Key: r.key("In.dmac", 2)}},
	}}}})
	r.must(err)
	m, err := stream.Recv()
	r.must(err)
	e := r.entry("In.dmac", nil, nil)
	e.Value = &wire.TableEntry_HandleId{HandleId: m.GetEntities()[0].GetHandle().GetHandleId()}
	e.TableFlags = &wire.TableFlags{KeyOnly: true}
	list, err := r.read(everywhere, e)
	r.must(err)
	if len(list) != 1 || !proto.Equal(list[0].GetKey(), r.key("In.dmac", 2)) || list[0].GetData() != nil || !proto.Equal(list[0].GetEntryTgt(), everywhere) {
		t.Errorf("by its handle the entry is %v", list)
	}
}

// TestNews: the stream reports digests and idle entries.
func TestNews(t *testing.T) {
	r := newRig(t)
	acl := &wire.TableKey{}
	for _, f := range r.table("In.acl").keys {
		switch f.match {
		case "Ternary":
			acl.Fields = append(acl.Fields, &wire.KeyField{FieldId: f.id, MatchType: &wire.KeyField_Ternary_{Ternary: &wire.KeyField_Ternary{Value: be(6, 0), Mask: be(6, 0)}}})
		default:
			acl.Fields = append(acl.Fields, f.value(0))
		}
	}
	r.set(ins, "In.acl", acl, r.data("In.acl", "learn"))
	r.send(1, frame(1, 0xabc, 0))
	d := r.hear().GetDigest()
	if len(d.GetData()) != 1 || uintOf(d.GetData()[0].GetFields()[0].GetStream()) != 0xabc || uintOf(d.GetData()[0].GetFields()[1].GetStream()) != 5 {
		t.Fatalf("the digest is %v", d)
	}
	r.must(r.stream.Send(&wire.StreamMessageRequest{ClientId: 1, Update: &wire.StreamMessageRequest_DigestAck{DigestAck: &wire.DigestListAck{DigestId: d.GetDigestId(), ListId: d.GetListId()}}}))
	r.must(r.write(everywhere, &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
		TableId: r.table("In.dmac").schema.ID, Attribute: &wire.TableAttribute_IdleTable{IdleTable: &wire.IdleTable{
			Enable: true, IdleTableMode: wire.IdleTable_IDLE_TABLE_NOTIFY_MODE, TtlQueryInterval: 100, MinTtl: 100, MaxTtl: 1000,
		}},
	}}}}))
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "send", "port", 2, "$ENTRY_TTL", 100))
	heard := func(want wire.IdleTimeoutNotification_NotificationType) bool {
		t.Helper()
		m := r.hear()
		n := m.GetIdleTimeoutNotification()
		switch {
		case m.GetDigest() != nil: // of a packet that hits the entry
			return false
		case n.GetType() != want || !proto.Equal(n.GetTableEntry().GetKey(), r.key("In.dmac", 1)):
			t.Fatalf("the notification is %v, want %v of entry 1", m, want)
		}
		return true
	}
	if !heard(wire.IdleTimeoutNotification_ENTRY_IDLE) {
		t.Fatal("a digest without a packet")
	}
	// The server reports a hit even if it checks only after the time to live.
	r.s.mu.Lock()
	r.send(130, frame(1, 0xabc, 0))
	r.leaves(2)
	time.Sleep(350 * time.Millisecond) // over three sweeps of 100 ms
	r.s.mu.Unlock()
	for !heard(wire.IdleTimeoutNotification_ENTRY_ACTIVE) {
	}
	for !heard(wire.IdleTimeoutNotification_ENTRY_IDLE) {
	}
}

// TestChipTables: the tables that every chip has: ports, multicast, mirrors, port
// metadata, value sets.
func TestChipTables(t *testing.T) {
	r := newRig(t)
	r.set(ins, "$pre.node", r.key("$pre.node", 8), r.data("$pre.node", "", "$MULTICAST_RID", 5, "$MULTICAST_LAG_ID", []uint32{}, "$DEV_PORT", []uint32{1, 130}))
	r.set(ins, "$pre.mgid", r.key("$pre.mgid", 3), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", []uint32{8}, "$MULTICAST_NODE_L1_XID_VALID", []bool{false}, "$MULTICAST_NODE_L1_XID", []uint32{0}))
	r.set(ins, "In.dmac", r.key("In.dmac", 1), r.data("In.dmac", "copies", "group", 3))
	r.send(2, frame(1, 0, 0))
	r.leaves(1)
	r.leaves(130)
	if n := r.size("$PORT"); n != 3 {
		t.Errorf("%d ports, want 3", n)
	}
	d := r.get(everywhere, "$PORT_STAT", r.key("$PORT_STAT", 130))
	if got := r.values("$PORT_STAT", d, "$FramesTransmittedOK"); !slices.Equal(got, []uint64{1}) {
		t.Errorf("port 130 has sent %v packets, want 1", got)
	}
	// A port that is taken away is silent.
	r.set(del, "$PORT", r.key("$PORT", 130), nil)
	r.send(2, frame(1, 0, 0))
	r.leaves(1)
	if n := len(r.ports[130].sent); n != 0 {
		t.Errorf("the port that is gone has sent %d packets", n)
	}
	d = r.get(everywhere, "device_configuration", nil)
	if got := r.values("device_configuration", d, "num_pipes"); !slices.Equal(got, []uint64{4}) {
		t.Errorf("the device has %v pipes", got)
	}
}

// TestCellsEncoded: a read of many cells appends the same bytes as protobuf would
// encode.
func TestCellsEncoded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine does the work: the race detector has nothing to see")
	}
	r := newRig(t)
	for _, name := range []string{"In.large", "In.seen"} {
		keys := []uint64{0, 1, 37, 63}
		for i, k := range keys {
			var data []any
			for j, f := range r.table(name).order {
				data = append(data, f.name, (i+1)*(j+3)*41%251)
			}
			r.must(r.write(pipe(uint32(i)), update(mod, r.entry(name, r.key(name, k), r.data(name, "", data...)))))
		}
		for _, target := range []*wire.TargetDevice{everywhere, pipe(1)} {
			e := r.entry(name, nil, nil)
			e.TableFlags = &wire.TableFlags{FromHw: true}
			all, err := r.read(target, e, r.entry("In.dmac", nil, nil), e)
			r.must(err)
			size := int(r.table(name).schema.Size)
			if len(all) != 2*size {
				t.Fatalf("%s: %d cells, want %d twice", name, len(all), size)
			}
			for i, k := range keys {
				one := r.entry(name, r.key(name, k), nil)
				one.TableFlags = e.TableFlags
				list, err := r.read(target, one)
				r.must(err)
				if !proto.Equal(all[k], list[0]) || !proto.Equal(all[size+int(k)], list[0]) {
					t.Errorf("%s[%d], case %d: %v, alone %v", name, k, i, all[k], list[0])
				}
			}
			if n := len(r.values(name, all[0].GetData(), r.table(name).order[0].name)); target == everywhere && n != 4 {
				t.Errorf("%s has %d values, want one of each pipe", name, n)
			}
			only := r.entry(name, nil, &wire.TableData{Fields: []*wire.DataField{{FieldId: r.table(name).order[0].id}}})
			list, err := r.read(target, only)
			r.must(err)
			if n := len(list[1].GetData().GetFields()); n != map[bool]int{true: 4, false: 1}[target == everywhere] {
				t.Errorf("%s: of one field %d values", name, n)
			}
		}
	}
}

// TestReplaced: the server disconnects clients of a removed program, and no others.
func TestReplaced(t *testing.T) {
	r := newRig(t)
	other, err := r.c.StreamChannel(context.Background())
	r.must(err)
	r.must(other.Send(&wire.StreamMessageRequest{ClientId: 7, Update: &wire.StreamMessageRequest_Subscribe{Subscribe: &wire.Subscribe{}}}))
	_, err = other.Recv()
	r.must(err)
	program, _ := chipProgram()
	load := func(name string) {
		t.Helper()
		_, err := r.c.SetForwardingPipelineConfig(context.Background(), &wire.SetForwardingPipelineConfigRequest{
			ClientId: 7, Action: wire.SetForwardingPipelineConfigRequest_VERIFY_AND_WARM_INIT_BEGIN_AND_END,
			Config: []*wire.ForwardingPipelineConfig{{P4Name: name, BfruntimeInfo: program.Schema, Profiles: []*wire.ForwardingPipelineConfig_Profile{{ProfileName: "pipe", Binary: program.Binary}}}},
		})
		r.must(err)
	}
	load("chip")
	if err := r.bind(1, "chip"); status.Code(err) != codes.AlreadyExists {
		t.Errorf("after the same program has been loaded again: %v", err)
	}
	load("chip_1")
	told := 0
	for range r.heard { // until the stream has ended
		told++
	}
	if told != 2 {
		t.Errorf("the client of the program that is replaced has been told of %d configurations, want both", told)
	}
	if _, err := r.stream.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("the stream of the replaced program's client: %v", err)
	}
	r.must(r.bind(7, "chip_1"))
	if m, err := other.Recv(); err != nil {
		t.Errorf("the stream of another client: %v, %v", m, err)
	}
}

// A switch that loads other programs ends the streams of the clients of the former ones.
func TestLoadEndsClients(t *testing.T) {
	r := newRig(t)
	old, heard := r.stream, r.heard
	r.subscribe(2, &wire.Subscribe_Notifications{}) // not bound
	program, err := entries.program()
	r.must(err)
	r.must(r.s.Load(program))
	for ended := false; !ended; {
		select {
		case _, more := <-heard:
			ended = !more
		case <-time.After(patience):
			t.Fatal("the stream of the former program's client goes on")
		}
	}
	if _, err := old.Recv(); status.Code(err) != codes.Canceled || !strings.Contains(err.Error(), "program chip has been replaced") {
		t.Errorf("the stream ended with %v", err)
	}
	r.must(r.bind(2, program.Name))
	r.client = 2
	if n := r.size("In.routes"); n != 0 {
		t.Errorf("%d routes in the new program", n)
	}
}

// The meters of a table's entries add bytes to packets too, and a refused batch restores the
// previous number.
func TestAdjustedEntryMeters(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	adjust := func(n int32) *wire.Update {
		return r.attribute("In.metered", &wire.TableAttribute{Attribute: &wire.TableAttribute_ByteCountAdj{ByteCountAdj: &wire.ByteCountAdj{ByteCountAdjust: n}}})
	}
	r.set(ins, "In.metered", r.key("In.metered", 7), r.data("In.metered", "colour", "port", 2,
		"$METER_SPEC_CIR_KBPS", 1, "$METER_SPEC_PIR_KBPS", 1, "$METER_SPEC_CBS_KBITS", 8, "$METER_SPEC_PBS_KBITS", 8))
	colour := func(what string, want uint64) {
		t.Helper()
		if _, out := r.goes(frame(7, 0, 2)); src(out, 8) != want {
			t.Errorf("%s: colour %d, want %d", what, src(out, 8), want)
		}
	}
	colour("a packet below the burst of 1,000 bytes", 0)
	r.must(r.write(everywhere, adjust(2000)))
	colour("with 2,000 bytes more", 3)
	_, err := r.c.Write(t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR,
		Updates: []*wire.Update{adjust(0), update(del, r.entry("In.metered", r.key("In.metered", 999), nil))}})
	if n := len(details(t, err)); n != 2 {
		t.Errorf("%d outcomes, want 2", n)
	}
	colour("after a refused batch", 3)
	r.must(r.write(everywhere, adjust(0)))
	colour("without additional bytes", 0)
}

// TestAdjustedMeters: a meter that adds bytes to packets marks packets that it did
// not mark before. Setting the attribute in one pipe does not affect the others.
func TestAdjustedMeters(t *testing.T) {
	r := newRig(t)
	rates := r.table("In.rates").schema.ID
	set := func(pipe *wire.TargetDevice, n int32) error {
		return r.write(pipe, &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
			TableId: rates, Attribute: &wire.TableAttribute_ByteCountAdj{ByteCountAdj: &wire.ByteCountAdj{ByteCountAdjust: n}},
		}}}})
	}
	r.set(mod, "In.rates", r.key("In.rates", 3), r.data("In.rates", "", "$METER_SPEC_CIR_KBPS", 1, "$METER_SPEC_PIR_KBPS", 1, "$METER_SPEC_CBS_KBITS", 1, "$METER_SPEC_PBS_KBITS", 1))
	r.set(ins, "In.tallies", r.key("In.tallies", 1), r.data("In.tallies", "tally", "index", 3))
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "send", "port", 2))
	marked := func() (red uint64) {
		t.Helper()
		r.send(1, frame(7, 0, 0))
		r.leaves(2)
		counts, err := r.s.pipes[0].Meters().Counts("In.rates", 3)
		r.must(err)
		return counts[2].Packets
	}
	if n := marked(); n != 0 {
		t.Errorf("%d packets are above a burst that is longer", n)
	}
	r.must(set(pipe(1), 5000))
	r.must(set(pipe(0), 4000))
	if n := marked(); n != 1 {
		t.Errorf("%d packets are above a burst that is shorter, want 1", n)
	}
	for n, want := range []int32{4000, 5000, 0} {
		out, err := r.s.attribute(&request{s: r.s, target: pipe(uint32(n))}, r.s.programs[0].tables[rates], &wire.TableAttribute{TableId: rates, Attribute: &wire.TableAttribute_ByteCountAdj{}})
		if err != nil || out.GetByteCountAdj().GetByteCountAdjust() != want {
			t.Errorf("pipe %d: %v, %v, want %d", n, out, err, want)
		}
	}
}
