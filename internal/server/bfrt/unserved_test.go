package server

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// TestUnserved: the error of an unsupported part of BfRt names the part.
func TestUnserved(t *testing.T) {
	r := newRig(t)
	refused := func(what string, err error, word string) {
		t.Helper()
		if err == nil {
			t.Errorf("%s is taken", what)
			return
		}
		e := details(t, err)[0]
		if codes.Code(e.GetCanonicalCode()) != codes.Unimplemented || !strings.Contains(e.GetMessage(), word) {
			t.Errorf("%s: %v, want UNIMPLEMENTED with %q", what, e, word)
		}
	}
	on := &wire.TableData{Fields: []*wire.DataField{{FieldId: r.table("snapshot.ingress_trigger").field("enable").id, Value: &wire.DataField_BoolVal{BoolVal: true}}}}
	refused("a trigger", r.write(pipe(0), update(ins, r.entry("snapshot.ingress_trigger", r.key("snapshot.ingress_trigger", 0), on))), "the switch does not support snapshots")
	thread := &wire.TableData{Fields: []*wire.DataField{{FieldId: r.table("snapshot.cfg").field("thread").id, Value: &wire.DataField_StrVal{StrVal: "INGRESS"}}}}
	refused("a configuration", r.write(pipe(0), update(ins, r.entry("snapshot.cfg", r.key("snapshot.cfg", 0, 1), thread))), "the switch does not support snapshots")

	stream, err := r.c.Read(context.Background(), &wire.ReadRequest{Target: everywhere, ClientId: r.client, Entities: []*wire.Entity{{Entity: &wire.Entity_ObjectId{ObjectId: &wire.ObjectId{
		Object: &wire.ObjectId_TableObject_{TableObject: &wire.ObjectId_TableObject{TableName: "tf2.pktgen.port_mask"}},
	}}}}})
	r.must(err)
	_, err = stream.Recv()
	text := status.Convert(err).Message()
	for _, d := range status.Convert(err).Details() {
		text += d.(*wire.Error).GetMessage()
	}
	if !strings.Contains(text, "table tf2.pktgen.port_mask is not served") {
		t.Errorf("the packet generator: %v", err)
	}
	mask := &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{TableId: 0xff030004}}}}
	refused("a port mask of the packet generator", r.write(everywhere, mask), "table 0xff030004 is not served: the packet generator (pktgen) has no port masks and no replay")
}
