package tofino

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/p4"
)

const requestFile = "../../../testdata/oracle/bfrt-requests.jsonl"

// facts returns the requests of the SDE's client by purpose.
func facts(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	f, err := os.Open(requestFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]json.RawMessage{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			What    string
			Request json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.What != "" {
			all[line.What] = line.Request
		}
	}
	return all
}

// A recorder is a connection to a switch that runs a program. It records writes, and
// reads return the rows that a test sets.
type recorder struct {
	program, chip []byte
	rows          map[uint32]*wire.TableEntry
	writes        []*wire.WriteRequest
	reads         []*wire.ReadRequest
}

func (r *recorder) Invoke(_ context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	switch m := args.(type) {
	case *wire.WriteRequest:
		r.writes = append(r.writes, m)
	case *wire.GetForwardingPipelineConfigRequest:
		out := reply.(*wire.GetForwardingPipelineConfigResponse)
		out.Config = []*wire.ForwardingPipelineConfig{{P4Name: "conga", BfruntimeInfo: r.program}}
		out.NonP4Config = &wire.NonP4Config{BfruntimeInfo: r.chip}
	}
	return nil
}

func (r *recorder) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return &recorded{r: r}, nil
}

type recorded struct {
	grpc.ClientStream
	r    *recorder
	list []*wire.Entity
}

func (s *recorded) SendMsg(m any) error {
	req := m.(*wire.ReadRequest)
	s.r.reads = append(s.r.reads, req)
	for _, e := range req.GetEntities() {
		if row := s.r.rows[e.GetTableEntry().GetTableId()]; row != nil {
			s.list = append(s.list, &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: row}})
		}
	}
	return nil
}

func (s *recorded) CloseSend() error { return nil }

func (s *recorded) RecvMsg(m any) error {
	if s.list == nil {
		return io.EOF
	}
	m.(*wire.ReadResponse).Entities, s.list = s.list, nil
	return nil
}

// sorted puts the fields of keys and data into an order, of which BfRt has none.
func sorted(list ...*wire.TableEntry) {
	for _, e := range list {
		if k := e.GetKey(); k != nil {
			slices.SortFunc(k.Fields, func(a, b *wire.KeyField) int { return int(a.GetFieldId()) - int(b.GetFieldId()) })
		}
		if e.GetData() != nil {
			slices.SortFunc(e.Data.Fields, func(a, b *wire.DataField) int { return int(a.GetFieldId()) - int(b.GetFieldId()) })
		}
	}
}

// split makes a request of each update and each entity, as the SDE's client was
// asked for them.
func split(writes []*wire.WriteRequest, reads []*wire.ReadRequest) (list []proto.Message) {
	for _, w := range writes {
		for _, u := range w.GetUpdates() {
			sorted(u.GetEntity().GetTableEntry())
			list = append(list, &wire.WriteRequest{Target: w.GetTarget(), Atomicity: w.GetAtomicity(), Updates: []*wire.Update{u}})
		}
	}
	for _, r := range reads {
		for _, e := range r.GetEntities() {
			sorted(e.GetTableEntry())
			list = append(list, &wire.ReadRequest{Target: r.GetTarget(), Entities: []*wire.Entity{e}})
		}
	}
	return list
}

// TestRequests: the session sends the same requests as the SDE's client for entries,
// sessions, groups, registers, filters, ports and queues.
func TestRequests(t *testing.T) {
	compiled, err := p4.Compile(os.DirFS("../../../p4src/tna"), "conga.p4", p4.Options{Arch: bmv2.TNA})
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.DescribeBfRt(); err != nil {
		t.Fatal(err)
	}
	index, err := p4info.New(compiled.P4Info, nil)
	if err != nil {
		t.Fatal(err)
	}
	chip := bfrt.ChipSchema(false)
	r := &recorder{program: compiled.Schema.JSON(), chip: chip.JSON(), rows: map[uint32]*wire.TableEntry{}}
	sw := &plan.Switch{Name: "l1", Pipeline: &plan.Pipeline{P4Info: compiled.P4Info}}
	session := open(r, func() *place { return &place{plan: sw, index: index, mtu: 1500} })
	ctx := t.Context()

	// The chip returns the queues of port 40, which does not exist yet.
	for name, row := range map[string][]any{
		"tf1.tm.port.cfg":  {[]uint64{40}, "pg_id", uint64(10), "pg_port_nr", uint64(0), "port_queues_count", uint64(8)},
		"tf1.tm.queue.map": {[]uint64{10, 0}, "dev_port", uint64(40), "queue_nr", uint64(0)},
	} {
		e, err := chipTable{chip.Table(name)}.entry(row[0].([]uint64), "", row[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		r.rows[e.TableId] = e
	}

	entry := func(table string, priority int32, match []*p4v1.FieldMatch, action string, params ...uint64) *p4v1.TableEntry {
		x := index.ByName["LbIngress."+table]
		e := &p4v1.TableEntry{TableId: x.ID, Priority: priority, Match: match, IsDefaultAction: match == nil}
		for i, m := range match {
			m.FieldId = x.Fields[i].ID
		}
		if a := x.Actions[action]; a != nil {
			call := &p4v1.Action{ActionId: a.ID}
			for i, v := range params {
				call.Params = append(call.Params, &p4v1.Action_Param{ParamId: a.Params[i].ID, Value: short(sized(v, 64))})
			}
			e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: call}}
		}
		return e
	}
	write := func(kind p4v1.Update_Type, e *p4v1.Entity) func() error {
		return func() error {
			_, err := session.Client.Write(ctx, &p4v1.WriteRequest{Updates: []*p4v1.Update{{Type: kind, Entity: e}}})
			return err
		}
	}
	tableEntry := func(e *p4v1.TableEntry) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}
	}
	read := func(e *p4v1.TableEntry) func() error {
		return func() error {
			_, err := session.Client.Read(ctx, &p4v1.ReadRequest{Entities: []*p4v1.Entity{tableEntry(e)}})
			return err
		}
	}
	exactly := func(v byte) *p4v1.FieldMatch {
		return &p4v1.FieldMatch{FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{v}}}}
	}
	lpm := func() []*p4v1.FieldMatch {
		return []*p4v1.FieldMatch{{FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: []byte{10, 0, 1, 0}, PrefixLen: 24}}}}
	}
	slot := []*p4v1.FieldMatch{{FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{1, 2}}}}, exactly(3)}
	ternary := []*p4v1.FieldMatch{exactly(1), {FieldMatchType: &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: []byte{3}, Mask: []byte{15}}}}}
	span := []*p4v1.FieldMatch{exactly(4), {FieldMatchType: &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: []byte{4, 0}, High: []byte{7, 255}}}}}
	clone := func(bytes int32) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: &p4v1.CloneSessionEntry{SessionId: 9, Replicas: []*p4v1.Replica{replica(68, 1)}, PacketLengthBytes: bytes}},
		}}}
	}
	group := &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
		Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: &p4v1.MulticastGroupEntry{MulticastGroupId: 3, Replicas: []*p4v1.Replica{replica(1, 1), replica(2, 1), replica(5, 1)}}},
	}}}
	const register = "LbIngress.remote_0.to_leaf"
	want := facts(t)
	for _, c := range []struct {
		sends []string
		do    func() error
	}{
		{[]string{"insert lpm"}, write(p4v1.Update_INSERT, tableEntry(entry("ipv4_route", 0, lpm(), "forward", 5, 0x02000a000102, 0x020000000001)))},
		{[]string{"modify lpm"}, write(p4v1.Update_MODIFY, tableEntry(entry("ipv4_route", 0, lpm(), "set_port", 1)))},
		{[]string{"delete lpm"}, write(p4v1.Update_DELETE, tableEntry(entry("ipv4_route", 0, lpm(), "")))},
		{[]string{"read table"}, read(&p4v1.TableEntry{TableId: index.ByName["LbIngress.ipv4_route"].ID})},
		{[]string{"set default"}, write(p4v1.Update_MODIFY, tableEntry(entry("ipv4_route", 0, nil, "set_port", 7)))},
		{[]string{"read default"}, read(&p4v1.TableEntry{TableId: index.ByName["LbIngress.ipv4_route"].ID, IsDefaultAction: true})},
		{[]string{"reset default"}, write(p4v1.Update_MODIFY, tableEntry(entry("ipv4_route", 0, nil, "")))},
		{[]string{"insert exact"}, write(p4v1.Update_INSERT, tableEntry(entry("member", 0, slot, "forward", 300, 0x02000a000102, 1)))},
		{[]string{"insert ternary"}, write(p4v1.Update_INSERT, tableEntry(entry("remote_0.access", 10, ternary, "learn_metric")))},
		{[]string{"insert range"}, write(p4v1.Update_INSERT, tableEntry(entry("ranks", 0, span, "set_ranks", 0, 1, 2, 3)))},
		{[]string{"insert session"}, write(p4v1.Update_INSERT, clone(64))},
		{[]string{"modify session"}, write(p4v1.Update_MODIFY, clone(0))},
		{[]string{"delete session"}, write(p4v1.Update_DELETE, clone(0))},
		{[]string{"insert node", "insert group"}, write(p4v1.Update_INSERT, group)},
		{[]string{"delete group", "delete node"}, write(p4v1.Update_DELETE, group)},
		{[]string{"write register"}, func() error { return session.Registers.Write(ctx, register, 2, 3, 7<<32|9) }},
		{[]string{"read cell"}, func() error { session.Registers.Read(ctx, register, 2, 3, nil); return nil }},                        // which does not come
		{[]string{"sync register", "read register"}, func() error { session.Registers.Read(ctx, register, 0, 100, nil); return nil }}, // neither
		{[]string{"add port", "queue length", "queue rate", "queue rate on"}, func() error {
			return session.Queues.SetQueue(ctx, plan.Queue{Port: 40, Rate: 8333, Depth: 64})
		}},
	} {
		r.writes, r.reads = nil, nil
		if err := c.do(); err != nil {
			t.Errorf("%v: %v", c.sends, err)
			continue
		}
		sent := split(r.writes, r.reads)
		for i, what := range c.sends {
			known := false
			for _, m := range []proto.Message{&wire.WriteRequest{}, &wire.ReadRequest{}} {
				if protojson.Unmarshal(want[what], m) == nil {
					known = true
					w, _ := m.(*wire.WriteRequest)
					q, _ := m.(*wire.ReadRequest)
					if w != nil {
						sorted(w.GetUpdates()[0].GetEntity().GetTableEntry())
					} else {
						sorted(q.GetEntities()[0].GetTableEntry())
					}
					if i >= len(sent) || !proto.Equal(sent[i], m) {
						t.Errorf("%s: sent\n%v, the SDE's client\n%v", what, sent[min(i, len(sent)-1)], m)
					}
				}
			}
			if !known {
				t.Errorf("%s: there is no request of the SDE's client", what)
			}
			delete(want, what)
		}
	}
	r.writes = nil
	set := plan.Filter{Name: "LbEgress.dre", Time: 1310720 * time.Nanosecond, Shift: 8}
	if err := session.Filters.SetFilter(ctx, set); err != nil {
		t.Fatal(err)
	}
	m := &wire.WriteRequest{}
	if err := protojson.Unmarshal(want["set filter"], m); err != nil {
		t.Fatal(err)
	}
	sorted(m.GetUpdates()[0].GetEntity().GetTableEntry())
	if all := split(r.writes, nil); len(all) < 6 || !proto.Equal(all[5], m) {
		t.Errorf("filter: sent\n%v, the SDE's client\n%v", all[5], m)
	}
	delete(want, "set filter")
	for what := range want {
		t.Errorf("nothing is compared with %s", what)
	}
}
