package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// refused writes an update and checks the code and the message of the refusal.
func (r *rig) refused(what string, u *wire.Update, code codes.Code, says string) {
	r.t.Helper()
	err := r.write(everywhere, u)
	if err == nil {
		r.t.Errorf("%s: accepted", what)
		return
	}
	if e := details(r.t, err); len(e) != 1 || codes.Code(e[0].GetCode()) != code || !strings.Contains(e[0].GetMessage(), says) {
		r.t.Errorf("%s: %v, want %v with %q", what, e, code, says)
	}
}

// fine writes an update, which must succeed.
func (r *rig) fine(u *wire.Update) {
	r.t.Helper()
	if err := r.write(everywhere, u); err != nil {
		r.t.Errorf("%v: %v", u, details(r.t, err))
	}
}

func (r *rig) field(table string, d *wire.TableData, name string) *wire.DataField {
	r.t.Helper()
	id := r.table(table).field(name).id
	for _, f := range d.GetFields() {
		if f.GetFieldId() == id {
			return f
		}
	}
	r.t.Fatalf("%s: no field %s in %v", table, name, d)
	return nil
}

// A register entry has the parts of its cell. Each part can be changed alone, in one pipe
// or in all. Deleting a cell, or clearing the table, restores initial values.
func TestRegisterParts(t *testing.T) {
	r := newRig(t)
	both := func(what string, index uint64, want ...uint64) {
		t.Helper()
		d := r.get(everywhere, "In.seen", r.key("In.seen", index))
		var got []uint64
		first, second := r.values("In.seen", d, "first"), r.values("In.seen", d, "second")
		for i := range first {
			got = append(got, first[i], second[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: cell %d holds %v, want %v", what, index, got, want)
		}
	}
	both("at first", 5, 7, 9, 7, 9, 7, 9, 7, 9)
	r.set(mod, "In.seen", r.key("In.seen", 5), r.data("In.seen", "", "first", 1))
	both("first part", 5, 1, 9, 1, 9, 1, 9, 1, 9)
	r.must(r.write(pipe(2), update(mod, r.entry("In.seen", r.key("In.seen", 5), r.data("In.seen", "", "second", 0xffffffff)))))
	both("second part in pipe 2", 5, 1, 9, 1, 9, 1, 0xffffffff, 1, 9)
	r.set(ins, "In.seen", r.key("In.seen", 63), r.data("In.seen", "", "first", 2, "second", 3))
	both("the last cell", 63, 2, 3, 2, 3, 2, 3, 2, 3)
	both("a cell beside", 62, 7, 9, 7, 9, 7, 9, 7, 9)
	r.must(r.write(pipe(0), update(del, r.entry("In.seen", r.key("In.seen", 5), nil))))
	both("deleted in pipe 0", 5, 7, 9, 1, 9, 1, 0xffffffff, 1, 9)
	both("not deleted", 63, 2, 3, 2, 3, 2, 3, 2, 3)
	r.set(del, "In.seen", nil, nil)
	both("cleared", 5, 7, 9, 7, 9, 7, 9, 7, 9)
	both("cleared", 63, 7, 9, 7, 9, 7, 9, 7, 9)
	if n := r.size("In.seen"); n != 64 {
		t.Errorf("%d cells", n)
	}
	r.refused("cell 64", update(mod, r.entry("In.seen", r.key("In.seen", 64), r.data("In.seen", "", "first", 1))), codes.InvalidArgument, "$REGISTER_INDEX 64 is outside 0..63")
	r.refused("an increment", update(wire.Update_MODIFY_INC, r.entry("In.seen", r.key("In.seen", 1), r.data("In.seen", "", "first", 1))), codes.Unimplemented, "incremented")
	for handle, fine := range map[uint32]bool{63: true, 64: false} {
		e := r.entry("In.seen", nil, nil)
		e.Value = &wire.TableEntry_HandleId{HandleId: handle}
		if list, err := r.read(everywhere, e); (err == nil) != fine || fine && len(list) != 1 {
			t.Errorf("handle %d: %v, %v", handle, list, err)
		}
	}
}

// A batch that fails leaves registers, counters and meters as they were.
func TestCellsRollBack(t *testing.T) {
	r := newRig(t)
	r.set(mod, "In.sums", r.key("In.sums", 3), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 11))
	err := func() error {
		_, err := r.c.Write(t.Context(), &wire.WriteRequest{Target: everywhere, ClientId: 1, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
			update(mod, r.entry("In.seen", r.key("In.seen", 1), r.data("In.seen", "", "second", 4))),
			update(del, r.entry("In.sums", r.key("In.sums", 3), nil)),
			update(mod, r.entry("In.sums", r.key("In.sums", 4), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 5))),
			update(mod, r.entry("In.sums", r.key("In.sums", 64), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 5))),
		}})
		return err
	}()
	if err == nil {
		t.Fatal("a counter outside of the array is written")
	}
	if got := r.values("In.seen", r.get(everywhere, "In.seen", r.key("In.seen", 1)), "second"); !slices.Equal(got, []uint64{9, 9, 9, 9}) {
		t.Errorf("the register holds %v", got)
	}
	for index, want := range map[uint64]uint64{3: 11, 4: 0} {
		if got := r.values("In.sums", r.get(everywhere, "In.sums", r.key("In.sums", index)), "$COUNTER_SPEC_PKTS"); !slices.Equal(got, []uint64{want}) {
			t.Errorf("counter %d holds %v, want %d", index, got, want)
		}
	}
	r.refused("a counter without a key", update(mod, r.entry("In.sums", nil, r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 5))), codes.InvalidArgument, "the key lacks $COUNTER_INDEX")
	r.refused("an increment", update(wire.Update_MODIFY_INC, r.entry("In.sums", r.key("In.sums", 4), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 5))), codes.Unimplemented, "incremented")
	// A read without from_hw returns the counters as of the last sync.
	r.set(mod, "In.sums", r.key("In.sums", 3), r.data("In.sums", "", "$COUNTER_SPEC_PKTS", 12))
	r.must(r.s.pipes[1].Counters().Write("In.sums", 3, dataplane.Count{Packets: 100}))
	known := func() uint64 {
		list, err := r.read(everywhere, r.entry("In.sums", r.key("In.sums", 3), nil))
		r.must(err)
		return r.values("In.sums", list[0].GetData(), "$COUNTER_SPEC_PKTS")[0]
	}
	if n := known(); n != 12 {
		t.Errorf("before the sync the counter is %d, want 12", n)
	}
	r.s.programs[0].tables[r.table("In.sums").schema.ID].(*counterTable).sync()
	if n := known(); n != 112 {
		t.Errorf("after the sync the counter is %d, want 112", n)
	}
}

// Meters have rates in kilobits per second and bursts in kilobits: 8 Mbit/s are one byte
// per microsecond. Packet meters count packets. The largest value means no limit, and the
// peak rate is at least the committed rate.
func TestMeterRates(t *testing.T) {
	r := newRig(t)
	m := newMeterSpec(r.table("In.rates"))
	of := func(m *meterSpec, cir, pir, cbs, pbs uint64) spec {
		return spec{m.cir.id: m.cir.number(cir), m.pir.id: m.pir.number(pir), m.cbs.id: m.cbs.number(cbs), m.pbs.id: m.pbs.number(pbs)}
	}
	want := func(what string, m *meterSpec, s spec, want ...dataplane.MeterRate) {
		t.Helper()
		got, err := m.rates(s)
		if (err == nil) != (want != nil) || !slices.EqualFunc(got, want, func(a, b dataplane.MeterRate) bool {
			return math.Abs(a.PerMicrosecond-b.PerMicrosecond) < 1e-9*math.Max(1, b.PerMicrosecond) && a.Burst == b.Burst
		}) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	want("kilobits", m, of(m, 8000, 16000, 8, 80), dataplane.MeterRate{PerMicrosecond: 1, Burst: 1000}, dataplane.MeterRate{PerMicrosecond: 2, Burst: 10000})
	want("equal rates", m, of(m, 8000, 8000, 8, 8), dataplane.MeterRate{PerMicrosecond: 1, Burst: 1000}, dataplane.MeterRate{PerMicrosecond: 1, Burst: 1000})
	want("a peak below", m, of(m, 8000, 7999, 8, 8))
	most := dataplane.MeterRate{PerMicrosecond: 5195848221 * 1e3 / 8 / 1e6, Burst: 547608330250}
	want("presets", m, spec{}, most, most)
	packets := &meterSpec{packets: true, cir: m.cir, pir: m.pir, cbs: m.cbs, pbs: m.pbs}
	want("packets", packets, of(m, 1_000_000, 3_000_000, 5, 6), dataplane.MeterRate{PerMicrosecond: 1, Burst: 5}, dataplane.MeterRate{PerMicrosecond: 3, Burst: 6})
	want("no limit", packets, of(m, math.MaxUint64, math.MaxUint64, 5, 6), dataplane.MeterRate{PerMicrosecond: unlimited * 1e-6, Burst: 5}, dataplane.MeterRate{PerMicrosecond: unlimited * 1e-6, Burst: 6})
	for _, f := range []*datum{m.cir, m.pir, m.cbs, m.pbs} {
		if !m.fields.has(f) {
			t.Errorf("%s is no field of the meter", f.name)
		}
	}
	if m.fields.has(nil) || m.fields.has(&datum{}) {
		t.Error("another field is one of the meter")
	}
	// A meter reads the values of its client, and its presets after a reset.
	if got := r.values("In.rates", r.get(everywhere, "In.rates", r.key("In.rates", 3)), "$METER_SPEC_CIR_KBPS"); !slices.Equal(got, []uint64{5195848221}) {
		t.Errorf("an unset meter has the rate %v", got)
	}
	r.set(mod, "In.rates", r.key("In.rates", 3), r.data("In.rates", "", "$METER_SPEC_CIR_KBPS", 5))
	if got := r.values("In.rates", r.get(everywhere, "In.rates", r.key("In.rates", 3)), "$METER_SPEC_CIR_KBPS"); !slices.Equal(got, []uint64{5}) {
		t.Errorf("a meter has the rate %v", got)
	}
	r.refused("a peak below the rate", update(mod, r.entry("In.rates", r.key("In.rates", 3), r.data("In.rates", "", "$METER_SPEC_PIR_KBPS", 4))), codes.InvalidArgument, "the peak rate is below the committed rate")
	r.refused("meter 64", update(mod, r.entry("In.rates", r.key("In.rates", 64), r.data("In.rates", "", "$METER_SPEC_CIR_KBPS", 4))), codes.InvalidArgument, "outside 0..63")
	r.set(del, "In.rates", r.key("In.rates", 3), nil)
	if got := r.values("In.rates", r.get(everywhere, "In.rates", r.key("In.rates", 3)), "$METER_SPEC_CIR_KBPS"); !slices.Equal(got, []uint64{5195848221}) {
		t.Errorf("a meter that is reset has the rate %v", got)
	}
}

// The parameters of a Tofino 1 with four pipes: 12 stages; 72 ports per pipe, 64 of them
// on the front panel; groups of four ports with 32 queues, eight per port.
func TestChipFacts(t *testing.T) {
	r := newRig(t)
	d := r.get(everywhere, "device_configuration", nil)
	for name, want := range map[string]uint64{"num_pipes": 4, "num_stages": 12, "num_max_ports": 288, "num_front_ports": 256, "pcie_cpu_port": 320} {
		if got := r.values("device_configuration", d, name); !slices.Equal(got, []uint64{want}) {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
	list := func(name string) []uint32 { return r.field("device_configuration", d, name).GetIntArrVal().GetVal() }
	if got := list("eth_cpu_port_list"); !slices.Equal(got, []uint32{64, 65, 66, 67}) {
		t.Errorf("CPU ports %v", got)
	}
	if got := list("recirc_port_list"); !slices.Contains(got, 68) || !slices.Contains(got, 68+3*128) || slices.ContainsFunc(got, func(p uint32) bool { return p>>7 > 3 }) {
		t.Errorf("recirculation ports %v", got)
	}
	if got := list("external_port_list"); len(got) != 256 || got[0] != 0 || got[63] != 63 || got[64] != 128 || got[255] != 3*128+63 {
		t.Errorf("external ports %v", got)
	}
	if len(list("internal_port_list")) != 0 || !r.field("device_configuration", d, "intr_based_link_monitoring").GetBoolVal() || r.field("device_configuration", d, "sku").GetStrVal() != "UNKNOWN" {
		t.Errorf("%v", d)
	}
	for port, want := range map[uint64][3]uint64{0: {0, 0, 8}, 6: {1, 2, 8}, 71: {17, 3, 8}, 130: {0, 2, 8}, 3*128 + 71: {17, 3, 8}} {
		d := r.get(everywhere, "tm.port.cfg", r.key("tm.port.cfg", port))
		got := [3]uint64{r.values("tm.port.cfg", d, "pg_id")[0], r.values("tm.port.cfg", d, "pg_port_nr")[0], r.values("tm.port.cfg", d, "port_queues_count")[0]}
		if got != want {
			t.Errorf("port %d: group, place and queues %v, want %v", port, got, want)
		}
		if q := r.field("tm.port.cfg", d, "ingress_qid_map").GetIntArrVal().GetVal(); !slices.Equal(q, []uint32{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("port %d has queues %v", port, q)
		}
	}
	r.refused("the ports' properties", update(mod, r.entry("tm.port.cfg", r.key("tm.port.cfg", 1), r.data("tm.port.cfg", "", "pg_id", 1))), codes.InvalidArgument, "field pg_id is read only")
	for _, x := range []struct {
		target            *wire.TargetDevice
		group, queue      uint64
		port, queueOfPort uint64
	}{{everywhere, 0, 0, 0, 0}, {everywhere, 0, 7, 0, 7}, {everywhere, 0, 8, 1, 0}, {pipe(0), 17, 31, 71, 7}, {pipe(1), 1, 17, 134, 1}} {
		d := r.get(x.target, "tm.queue.map", r.key("tm.queue.map", x.group, x.queue))
		if port, q := r.values("tm.queue.map", d, "dev_port"), r.values("tm.queue.map", d, "queue_nr"); !slices.Equal(port, []uint64{x.port}) || !slices.Equal(q, []uint64{x.queueOfPort}) {
			t.Errorf("queue %d of group %d is queue %v of port %v, want %d of %d", x.queue, x.group, q, port, x.queueOfPort, x.port)
		}
	}
	shaped := func(table string, key *wire.TableKey) *wire.Update {
		return update(mod, r.entry(table, key, r.data(table, "", "max_rate_enable", true)))
	}
	for _, x := range []struct {
		group, queue uint64
		fine         bool
	}{{17, 31, true}, {18, 0, false}, {0, 32, false}} {
		u := shaped("tm.queue.sched_cfg", r.key("tm.queue.sched_cfg", x.group, x.queue))
		if x.fine {
			r.fine(u)
		} else {
			r.refused("a queue", u, codes.InvalidArgument, fmt.Sprintf("there is no queue %d of port group %d", x.queue, x.group))
		}
	}
	for port, fine := range map[uint64]bool{71: true, 72: false, 127: false, 128: true, 3*128 + 71: true, 512: false} {
		u := shaped("tm.port.sched_cfg", r.key("tm.port.sched_cfg", port))
		if fine {
			r.fine(u)
		} else if err := r.write(everywhere, u); err == nil {
			t.Errorf("port %d has a rate", port)
		}
	}
	second := &Server{opts: Options{Arch: bmv2.T2NA}}
	for s, want := range map[*Server]manager{r.s: {4, 32}, second: {8, 128}} {
		if m := s.manager(); m != want || m.perPort() != want.queues/want.group {
			t.Errorf("%v: %+v, want %+v", s.opts.Arch, m, want)
		}
	}
}

// Each port has a name and a connector. Clients can set its counters, which then count on
// from these values.
func TestPortTables(t *testing.T) {
	r := newRig(t)
	d := r.get(everywhere, "$PORT", r.key("$PORT", 130))
	if name := r.field("$PORT", d, "$PORT_NAME").GetStrVal(); name != "33/2" {
		t.Errorf("port 130 is called %s", name)
	}
	if c, ch := r.values("$PORT", d, "$CONN_ID"), r.values("$PORT", d, "$CHNL_ID"); !slices.Equal(c, []uint64{33}) || !slices.Equal(ch, []uint64{2}) {
		t.Errorf("port 130 has connector %v channel %v", c, ch)
	}
	if !r.field("$PORT", d, "$PORT_UP").GetBoolVal() || !r.field("$PORT", d, "$PORT_ENABLE").GetBoolVal() || r.field("$PORT", d, "$SPEED").GetStrVal() != "BF_SPEED_100G" {
		t.Errorf("%v", d)
	}
	if got := r.values("$PORT_HDL_INFO", r.get(everywhere, "$PORT_HDL_INFO", r.key("$PORT_HDL_INFO", 33, 2)), "$DEV_PORT"); !slices.Equal(got, []uint64{130}) {
		t.Errorf("connector 33, channel 2 is port %v", got)
	}
	for name, want := range map[string][]uint64{"33/2": {130}, "1/0": {0}, "128/3": {511}, "129/0": nil, "x": nil} {
		key := &wire.TableKey{Fields: []*wire.KeyField{{FieldId: r.table("$PORT_STR_INFO").keys[0].id, MatchType: &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: []byte(name)}}}}}
		if got := r.values("$PORT_STR_INFO", r.get(everywhere, "$PORT_STR_INFO", key), "$DEV_PORT"); !slices.Equal(got, want) {
			t.Errorf("%s is port %v, want %v", name, got, want)
		}
	}
	// The tables list the ports that exist: 64 per pipe with connectors, three of the
	// switch, and 72 per pipe in the traffic manager.
	for table, want := range map[string]int{"$PORT_STR_INFO": 256, "$PORT_HDL_INFO": 256, "$PORT_STAT": 3, "tm.port.cfg": 288, "tm.port.sched_shaping": 288} {
		if n := r.size(table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
	ports := map[string][]uint64{}
	for _, table := range []string{"$PORT_STR_INFO", "$PORT_HDL_INFO"} {
		list, err := r.read(everywhere, r.entry(table, nil, nil))
		r.must(err)
		for _, e := range list {
			ports[table] = append(ports[table], r.values(table, e.GetData(), "$DEV_PORT")...)
		}
		slices.Sort(ports[table])
	}
	if names, handles := ports["$PORT_STR_INFO"], ports["$PORT_HDL_INFO"]; names[0] != 0 || names[255] != 3*128+63 || !slices.Equal(names, handles) {
		t.Errorf("names of ports %v, connectors and channels of ports %v", names, handles)
	}
	if got := r.values("$PORT_STAT", r.get(everywhere, "$PORT_STAT", r.key("$PORT_STAT", 3*128+1)), "$FramesReceivedOK"); !slices.Equal(got, []uint64{0}) {
		t.Errorf("an unused port received %v packets", got)
	}
	r.refused("counters of no port", update(mod, r.entry("$PORT_STAT", r.key("$PORT_STAT", 512), r.data("$PORT_STAT", "", "$FramesReceivedOK", 1))), codes.InvalidArgument, "there is no port 512")
	r.set(mod, "$PORT", r.key("$PORT", 130), r.data("$PORT", "", "$PORT_ENABLE", false))
	if r.field("$PORT", r.get(everywhere, "$PORT", r.key("$PORT", 130)), "$PORT_UP").GetBoolVal() {
		t.Error("a port that is disabled is up")
	}
	for port, fine := range map[uint64]bool{0: true, 71: true, 72: false, 127: false, 3*128 + 71: true, 512: false} {
		u := update(ins, r.entry("$PORT", r.key("$PORT", port), r.data("$PORT", "", "$SPEED", "BF_SPEED_100G", "$FEC", "BF_FEC_TYP_NONE")))
		if fine {
			r.fine(u)
		} else {
			r.refused("a port", u, codes.InvalidArgument, fmt.Sprintf("there is no port %d", port))
		}
	}
	if n := r.size("$PORT"); n != 6 {
		t.Errorf("%d ports, want 6", n)
	}
	r.set(del, "$PORT", r.key("$PORT", 71), nil)
	r.set(del, "$PORT", r.key("$PORT", 71), nil) // ports may be deleted twice
	if n := r.size("$PORT"); n != 5 {
		t.Errorf("%d ports, want 5", n)
	}
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "send", "port", 2))
	stat := func(name string, want uint64) {
		t.Helper()
		if got := r.values("$PORT_STAT", r.get(everywhere, "$PORT_STAT", r.key("$PORT_STAT", 2)), name); !slices.Equal(got, []uint64{want}) {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
	r.send(1, frame(7, 1, 5))
	r.leaves(2)
	stat("$FramesTransmittedOK", 1)
	stat("$OctetsTransmittedTotal", 64)
	r.set(mod, "$PORT_STAT", r.key("$PORT_STAT", 2), r.data("$PORT_STAT", "", "$FramesTransmittedOK", 100, "$OctetsTransmittedTotal", 0))
	stat("$FramesTransmittedOK", 100)
	r.send(1, frame(7, 1, 5))
	r.leaves(2)
	stat("$FramesTransmittedOK", 101)
	stat("$OctetsTransmittedTotal", 64)
	stat("$FramesReceivedOK", 0)
	if got := r.values("$PORT_STAT", r.get(everywhere, "$PORT_STAT", r.key("$PORT_STAT", 1)), "$FramesReceivedOK"); !slices.Equal(got, []uint64{2}) {
		t.Errorf("port 1 received %v packets, want 2", got)
	}
}

// Mirror sessions have numbers from 0 to 1023, ports of 9 bits and the action $normal.
func TestMirrorLimits(t *testing.T) {
	r := newRig(t)
	session := func(id uint64, action string, list ...any) *wire.Update {
		return update(ins, r.entry("$mirror.cfg", r.key("$mirror.cfg", id), r.data("$mirror.cfg", action, list...)))
	}
	r.must(r.write(everywhere, session(1023, "$normal", "$session_enable", true, "$ucast_egress_port", 511, "$ucast_egress_port_valid", true)))
	r.refused("session 1024", session(1024, "$normal"), codes.InvalidArgument, "session 1024 is outside 0..1023")
	r.refused("port 512", session(1, "$normal", "$ucast_egress_port", 512, "$ucast_egress_port_valid", true), codes.InvalidArgument, "there is no port 512")
	r.must(r.write(everywhere, session(2, "$normal", "$ucast_egress_port", 511, "$ucast_egress_port_valid", false)))
	r.refused("a session that coalesces", session(3, "$coalescing"), codes.Unimplemented, "a session that coalesces packets")
	if n := r.size("$mirror.cfg"); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}

// Rows of a chip table are inserted once, modified and deleted if they exist, and lists
// take increments and decrements. A row keeps its handle until it is deleted.
func TestRecords(t *testing.T) {
	r := newRig(t)
	node := func(kind wire.Update_Type, id uint64, ports ...uint32) *wire.Update {
		return update(kind, r.entry("$pre.node", r.key("$pre.node", id), r.data("$pre.node", "", "$MULTICAST_RID", 5, "$MULTICAST_LAG_ID", []uint32{}, "$DEV_PORT", ports)))
	}
	ports := func() []uint32 {
		return r.field("$pre.node", r.get(everywhere, "$pre.node", r.key("$pre.node", 8)), "$DEV_PORT").GetIntArrVal().GetVal()
	}
	r.refused("a modification", node(mod, 8, 1), codes.NotFound, "the entry does not exist")
	r.refused("a deletion", update(del, r.entry("$pre.node", r.key("$pre.node", 8), nil)), codes.NotFound, "the entry does not exist")
	r.must(r.write(everywhere, node(ins, 8, 1, 2)))
	r.refused("a second insertion", node(ins, 8, 1), codes.AlreadyExists, "the entry already exists")
	r.must(r.write(everywhere, node(mod, 8, 1, 2, 130)))
	change := func(remove bool, list ...uint32) {
		t.Helper()
		e := r.entry("$pre.node", r.key("$pre.node", 8), r.data("$pre.node", "", "$DEV_PORT", list))
		e.TableFlags = &wire.TableFlags{ModDel: remove}
		r.must(r.write(everywhere, update(wire.Update_MODIFY_INC, e)))
	}
	change(false, 7, 9)
	if got := ports(); !slices.Equal(got, []uint32{1, 2, 130, 7, 9}) {
		t.Errorf("after the increment: %v", got)
	}
	change(true, 2, 9, 55)
	if got := ports(); !slices.Equal(got, []uint32{1, 130, 7}) {
		t.Errorf("after the decrement: %v", got)
	}
	r.refused("port 512", node(mod, 8, 511, 512), codes.InvalidArgument, "there is no port 512")
	r.refused("an increment of a number", update(wire.Update_MODIFY_INC, r.entry("$pre.node", r.key("$pre.node", 8), r.data("$pre.node", "", "$MULTICAST_RID", 1))), codes.Unimplemented, "cannot be incremented")
	r.refused("an increment of no entry", update(wire.Update_MODIFY_INC, r.entry("$pre.node", r.key("$pre.node", 9), r.data("$pre.node", "", "$DEV_PORT", []uint32{1}))), codes.NotFound, "the entry does not exist")
	r.refused("no key", update(mod, r.entry("$pre.node", nil, r.data("$pre.node", "", "$DEV_PORT", []uint32{1}))), codes.InvalidArgument, "the entry has neither key nor handle")
	if got := ports(); !slices.Equal(got, []uint32{1, 130, 7}) {
		t.Errorf("after refusals: %v", got)
	}
	handle := func(id uint64) uint32 {
		t.Helper()
		h, err := r.s.chip.tables[r.table("$pre.node").schema.ID].(*recordTable).handle(nil, r.key("$pre.node", id))
		r.must(err)
		return h
	}
	r.must(r.write(everywhere, node(ins, 9, 1)))
	first, second := handle(8), handle(9)
	if first == second || handle(8) != first {
		t.Errorf("handles %d and %d", first, second)
	}
	byHandle := func(h uint32) ([]*wire.TableEntry, error) {
		e := r.entry("$pre.node", nil, nil)
		e.Value = &wire.TableEntry_HandleId{HandleId: h}
		return r.read(everywhere, e)
	}
	if list, err := byHandle(second); err != nil || len(list) != 1 || uintOf(list[0].GetKey().GetFields()[0].GetExact().GetValue()) != 9 {
		t.Errorf("by handle %d: %v, %v", second, list, err)
	}
	r.set(del, "$pre.node", r.key("$pre.node", 9), nil)
	if list, err := byHandle(second); err == nil {
		t.Errorf("a handle that is gone: %v", list)
	}
	// A node that is deleted leaves its groups, with its exclusion.
	r.must(r.write(everywhere, node(ins, 9, 2)))
	r.must(r.write(everywhere, node(ins, 10, 130)))
	r.set(ins, "$pre.mgid", r.key("$pre.mgid", 3), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", []uint32{8, 9, 10}, "$MULTICAST_NODE_L1_XID_VALID", []bool{false, true, false}, "$MULTICAST_NODE_L1_XID", []uint32{1, 2, 3}))
	r.set(del, "$pre.node", r.key("$pre.node", 8), nil)
	g := r.get(everywhere, "$pre.mgid", r.key("$pre.mgid", 3))
	if ids, xids, valid := r.field("$pre.mgid", g, "$MULTICAST_NODE_ID").GetIntArrVal().GetVal(), r.field("$pre.mgid", g, "$MULTICAST_NODE_L1_XID").GetIntArrVal().GetVal(), r.field("$pre.mgid", g, "$MULTICAST_NODE_L1_XID_VALID").GetBoolArrVal().GetVal(); !slices.Equal(ids, []uint32{9, 10}) || !slices.Equal(xids, []uint32{2, 3}) || !slices.Equal(valid, []bool{true, false}) {
		t.Errorf("the group has nodes %v with exclusions %v %v", ids, xids, valid)
	}
	group := func(id uint64, nodes []uint32, valid []bool, xids []uint32) *wire.Update {
		return update(ins, r.entry("$pre.mgid", r.key("$pre.mgid", id), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", nodes, "$MULTICAST_NODE_L1_XID_VALID", valid, "$MULTICAST_NODE_L1_XID", xids)))
	}
	r.refused("group 0", group(0, []uint32{9}, []bool{true}, []uint32{1}), codes.InvalidArgument, "group 0 is reserved: it means no group")
	r.refused("a flag is missing", group(4, []uint32{9}, nil, []uint32{1}), codes.InvalidArgument, "the lists of nodes and of exclusion flags differ in length: 1 and 0")
	r.refused("an exclusion is missing", group(4, []uint32{9}, []bool{true}, nil), codes.InvalidArgument, "the lists of nodes and of exclusions differ in length: 1 and 0")
	r.refused("a node is missing", group(4, []uint32{77}, []bool{true}, []uint32{1}), codes.NotFound, "there is no node 77")
	r.set(del, "$pre.mgid", nil, nil)
	r.set(del, "$pre.node", nil, nil)
	if n := r.size("$pre.node") + r.size("$pre.mgid"); n != 0 {
		t.Errorf("%d rows after clearing", n)
	}
}

// A set of nodes has up to 32 nodes. A packet to a group is sent to one node of a set.
func TestSetsOfNodes(t *testing.T) {
	r := newRig(t)
	var ids []uint32
	for id := range uint32(33) {
		r.set(ins, "$pre.node", r.key("$pre.node", uint64(id)), r.data("$pre.node", "", "$MULTICAST_RID", 5, "$MULTICAST_LAG_ID", []uint32{}, "$DEV_PORT", []uint32{[]uint32{1, 130}[id%2]}))
		ids = append(ids, id)
	}
	set := func(id uint64, nodes []uint32) *wire.Update {
		return update(ins, r.entry("$pre.ecmp", r.key("$pre.ecmp", id), r.data("$pre.ecmp", "", "$MULTICAST_NODE_ID", nodes)))
	}
	r.refused("33 nodes", set(1, ids), codes.ResourceExhausted, "a set has 32 nodes at most")
	r.must(r.write(everywhere, set(1, ids[:32])))
	group := func(set uint32) *wire.Update {
		return update(ins, r.entry("$pre.mgid", r.key("$pre.mgid", 3), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", []uint32{}, "$MULTICAST_NODE_L1_XID_VALID", []bool{}, "$MULTICAST_NODE_L1_XID", []uint32{},
			"$MULTICAST_ECMP_ID", []uint32{set}, "$MULTICAST_ECMP_L1_XID_VALID", []bool{false}, "$MULTICAST_ECMP_L1_XID", []uint32{0})))
	}
	r.refused("a set that is missing", group(2), codes.NotFound, "there is no set of nodes 2")
	// Without exclusions a set is in the group too.
	bare := r.entry("$pre.mgid", r.key("$pre.mgid", 4), r.data("$pre.mgid", "", "$MULTICAST_NODE_ID", []uint32{}, "$MULTICAST_NODE_L1_XID_VALID", []bool{}, "$MULTICAST_NODE_L1_XID", []uint32{}, "$MULTICAST_ECMP_ID", []uint32{1}))
	r.must(r.write(everywhere, update(ins, bare)))
	r.must(r.write(everywhere, group(1)))
	for dst, group := range map[uint64]int{7: 3, 8: 4} {
		r.set(ins, "In.dmac", r.key("In.dmac", dst), r.data("In.dmac", "copies", "group", group))
		r.send(2, frame(dst, 1, 5))
		select {
		case <-r.ports[1].sent:
		case <-r.ports[130].sent:
		}
		if n := len(r.ports[1].sent) + len(r.ports[130].sent); n != 0 {
			t.Errorf("group %d: %d further copies", group, n)
		}
	}
	// A set leaves a group alone or with its exclusion.
	for _, group := range []uint64{3, 4} {
		without := r.entry("$pre.mgid", r.key("$pre.mgid", group), r.data("$pre.mgid", "", "$MULTICAST_ECMP_ID", []uint32{1}))
		without.TableFlags = &wire.TableFlags{ModDel: true}
		r.fine(update(wire.Update_MODIFY_INC, without))
		d := r.get(everywhere, "$pre.mgid", r.key("$pre.mgid", group))
		for _, name := range []string{"$MULTICAST_ECMP_ID", "$MULTICAST_ECMP_L1_XID"} {
			if got := r.field("$pre.mgid", d, name).GetIntArrVal().GetVal(); len(got) != 0 {
				t.Errorf("group %d: %s is %d, want none", group, name, got)
			}
		}
		if got := r.field("$pre.mgid", d, "$MULTICAST_ECMP_L1_XID_VALID").GetBoolArrVal().GetVal(); len(got) != 0 {
			t.Errorf("group %d: the exclusions are %v, want none", group, got)
		}
	}
}

// Members are inserted once, modified and deleted if they exist, up to the profile's
// size. A read by another action is refused.
func TestMembers(t *testing.T) {
	r := newRig(t)
	member := func(kind wire.Update_Type, id uint64, port int) *wire.Update {
		return update(kind, r.entry("In.members", r.key("In.members", id), r.data("In.members", "spread_to", "port", port)))
	}
	r.refused("a modification", member(mod, 3, 1), codes.NotFound, "there is no member 3")
	r.refused("a deletion", update(del, r.entry("In.members", r.key("In.members", 3), nil)), codes.NotFound, "there is no member 3")
	r.must(r.write(everywhere, member(ins, 3, 1)))
	r.refused("a second insertion", member(ins, 3, 2), codes.AlreadyExists, "member 3 already exists")
	r.refused("no action", update(ins, r.entry("In.members", r.key("In.members", 4), nil)), codes.InvalidArgument, "the data names no action")
	r.must(r.write(everywhere, member(mod, 3, 2)))
	list, err := r.read(everywhere, r.entry("In.members", r.key("In.members", 3), nil))
	r.must(err)
	if d := list[0].GetData(); len(d.GetFields()) != 1 || uintOf(d.GetFields()[0].GetStream()) != 2 {
		t.Errorf("member 3 is %v", d)
	}
	if list, err := r.read(everywhere, r.entry("In.members", r.key("In.members", 3), r.data("In.members", "NoAction"))); err == nil {
		t.Errorf("by another action: %v", list)
	}
	r.must(r.write(everywhere, member(wire.Update_INSERT_OR_MODIFY, 4, 1)))
	for id := uint64(5); r.size("In.members") < 64; id++ {
		r.must(r.write(everywhere, member(ins, id, 1)))
	}
	r.refused("too many", member(ins, 1000, 1), codes.ResourceExhausted, "it has 64 members")
	r.set(del, "In.members", nil, nil)
	if n := r.size("In.members"); n != 0 {
		t.Errorf("%d members after clearing", n)
	}
}

// TestPipesOfTarget: a request for a pipe that the switch lacks is refused, the first one too.
func TestPipesOfTarget(t *testing.T) {
	r := newRig(t)
	pipes := uint32(len(r.s.pipes))
	for n, want := range map[uint32]string{pipes - 1: "", pipes: fmt.Sprintf("there is no pipe %d", pipes), 9999: "there is no pipe 9999"} {
		_, err := r.read(pipe(n), r.entry("In.seen", r.key("In.seen", 5), nil))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(fmt.Sprint(details(t, err)), want)) {
			t.Errorf("pipe %d: %v, want %q", n, err, want)
		}
	}
}
