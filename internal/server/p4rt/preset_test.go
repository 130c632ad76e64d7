package p4rt

import (
	"os"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/p4"
)

// TestPreinitialized contains the facts about initial entries that are not
// const (9.1.5) and about direct resources that only some actions execute
// (9.1.7).
func TestPreinitialized(t *testing.T) {
	p, err := p4.Compile(os.DirFS("testdata"), "preset.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := &p4v1.ForwardingPipelineConfig{P4Info: p.P4Info, P4DeviceConfig: p.JSON()}
	ids := map[string]uint32{}
	for _, x := range preambles(p.P4Info) {
		ids[x.GetName()] = x.GetId()
	}
	call := func(name string, port byte) *p4v1.TableAction {
		return tableAction(&p4v1.Action{ActionId: ids[name], Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte{port}}}})
	}
	preset := func(v, mask string, priority int32, port byte) *p4v1.TableEntry {
		e := &p4v1.TableEntry{TableId: ids["PresetIngress.preset"], Priority: priority}
		if mask != "" {
			e.Match = []*p4v1.FieldMatch{ternary(1, v, mask)}
		}
		if port != 0 {
			e.Action = call("PresetIngress.to", port)
		}
		return e
	}
	r := newRig(t, Options{})
	in, out := newTestPort(), newTestPort()
	for number, port := range map[uint32]*testPort{1: in, 7: out} {
		if err := r.dev.AddPort(number, port, nil); err != nil {
			t.Fatal(err)
		}
	}
	s := r.primary()
	all := entityOf(&p4v1.TableEntry{TableId: ids["PresetIngress.preset"]})
	fixed, free, any := preset("\x10", "\xf0", 3, 0), preset("\x20", "\xf0", 2, 0), preset("", "", 1, 0)
	for _, c := range []struct {
		name   string
		before []*p4v1.Update
		do     *p4v1.Update
		want   codes.Code
		left   int
	}{
		{"INSERT", nil, insert(t, preset("\x30", "\xf0", 9, 4)), ok, 4},
		{"INSERT of an existing entry", nil, insert(t, preset("\x20", "\xf0", 2, 4)), codes.AlreadyExists, 3},
		{"MODIFY", nil, modify(t, preset("\x20", "\xf0", 2, 4)), ok, 3},
		{"DELETE", nil, remove(t, free), ok, 2},
		{"DELETE of what matches all", nil, remove(t, any), ok, 2},
		{"INSERT after DELETE", []*p4v1.Update{remove(t, free)}, insert(t, preset("\x20", "\xf0", 2, 5)), ok, 3},
		{"MODIFY of a const entry", nil, modify(t, preset("\x10", "\xf0", 3, 4)), denied, 3},
		{"MODIFY of a const entry without action", nil, modify(t, fixed), ok, 3},
		{"DELETE of a const entry", nil, remove(t, fixed), denied, 3},
		{"DELETE of a const entry with another priority", nil, remove(t, preset("\x10", "\xf0", 4, 0)), lost, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.must(s.configure(commitNew, config))
			if len(c.before) > 0 {
				s.must(s.write(c.before...))
			}
			s.wantWrite(c.want, c.do)
			for range 2 {
				list := s.mustRead(c.left, all)
				for _, e := range list {
					m := e.GetTableEntry()
					if m.GetIsConst() != proto.Equal(keyOf(m), keyOf(fixed)) {
						t.Errorf("read %v", m)
					}
				}
				// The same after pushing the program again with its state.
				s.must(s.configure(p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, config))
			}
		})
	}
	t.Run("the largest priority wins", func(t *testing.T) {
		s.must(s.configure(commitNew, config))
		s.must(s.write(insert(t, preset("\x24", "\xff", 9, 7))))
		in.in <- []byte{0x24, 0}
		out.wantPacket(t, []byte{0x24, 0})
		s.must(s.write(remove(t, preset("\x24", "\xff", 9, 0)), modify(t, preset("\x20", "\xf0", 2, 7))))
		in.in <- []byte{0x24, 0}
		out.wantPacket(t, []byte{0x24, 0})
	})
	resource := func(b string, a *p4v1.TableAction, change func(*p4v1.TableEntry)) *p4v1.TableEntry {
		e := &p4v1.TableEntry{TableId: ids["PresetIngress.resources"], Match: []*p4v1.FieldMatch{exact(1, b)}, Action: a}
		change(e)
		return e
	}
	count := func(e *p4v1.TableEntry) { e.CounterData = &p4v1.CounterData{PacketCount: 3} }
	meter := func(e *p4v1.TableEntry) { e.MeterConfig = &p4v1.MeterConfig{Cir: 1, Pir: 1, Cburst: 1, Pburst: 1} }
	counted, to := call("PresetIngress.counted", 1), call("PresetIngress.to", 1)
	for _, c := range []struct {
		name string
		do   *p4v1.Update
		want codes.Code
	}{
		{"a count of an action that counts", insert(t, resource("\x09", counted, count)), ok},
		{"a count of one that does not", insert(t, resource("\x09", to, count)), bad},
		{"rates of an action that meters", insert(t, resource("\x09", counted, meter)), ok},
		{"rates of one that does not", insert(t, resource("\x09", to, meter)), bad},
		{"a count of the action that is there", modify(t, resource("\x01", nil, count)), ok},
		{"a count of one that is there and does not", modify(t, resource("\x02", nil, count)), bad},
		{"rates of one that is there and does not", modify(t, resource("\x02", nil, meter)), bad},
		{"rates of another action than is there", modify(t, resource("\x02", counted, meter)), ok},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.must(s.configure(commitNew, config))
			s.wantWrite(c.want, c.do)
		})
	}
}
