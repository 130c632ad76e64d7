package p4rt

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/p4"
)

// tofinoProgram returns testdata/tofino.p4, compiled once.
var tofinoProgram = sync.OnceValues(func() (*p4v1.ForwardingPipelineConfig, error) {
	p, err := p4.Compile(os.DirFS("testdata"), "tofino.p4", p4.Options{Arch: "tna"})
	if err != nil {
		return nil, err
	}
	return &p4v1.ForwardingPipelineConfig{P4Info: p.P4Info, P4DeviceConfig: p.JSON()}, nil
})

// A tofinoRig is a primary of a Tofino program with ports 1 to 4.
type tofinoRig struct {
	*session
	config *p4v1.ForwardingPipelineConfig
	ports  []*testPort
}

// tofinoCPU is the CPU port of the rig.
const tofinoCPU = 192

func newTofinoRig(t *testing.T) *tofinoRig {
	t.Helper()
	c, err := tofinoProgram()
	if err != nil {
		t.Fatal(err)
	}
	r := &tofinoRig{session: newRigOn(t, Options{}, DeviceOptions{CPUPort: tofinoCPU}).primary(), config: c}
	r.must(r.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, c))
	for i := range uint32(5) {
		p := newTestPort()
		r.ports = append(r.ports, p)
		if i > 0 {
			r.must(r.rig.dev.AddPort(i, p, nil))
		}
	}
	return r
}

func (r *tofinoRig) id(name string) uint32 {
	r.t.Helper()
	for _, p := range preambles(r.config.GetP4Info()) {
		if p.GetName() == name {
			return p.GetId()
		}
	}
	r.t.Fatalf("there is no %s in the program", name)
	return 0
}

func (r *tofinoRig) call(action string, params ...string) *p4v1.Action {
	a := &p4v1.Action{ActionId: r.id(action)}
	for i, v := range params {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: uint32(i + 1), Value: []byte(v)})
	}
	return a
}

// dmac inserts an entry for a destination.
func (r *tofinoRig) dmac(dst, action string, params ...string) {
	r.t.Helper()
	r.must(r.write(update(ins, entityOf(&p4v1.TableEntry{
		TableId: r.id("In.dmac"), Match: []*p4v1.FieldMatch{exact(1, dst)}, Action: tableAction(r.call(action, params...)),
	}))))
}

func (r *tofinoRig) cell(index int64, packets, last string) *p4v1.Entity {
	e := &p4v1.RegisterEntry{RegisterId: r.id("In.seen"), Index: &p4v1.Index{Index: index}}
	if packets != "" {
		bits := func(v string) *p4v1.P4Data { return &p4v1.P4Data{Data: &p4v1.P4Data_Bitstring{Bitstring: []byte(v)}} }
		e.Data = &p4v1.P4Data{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{Members: []*p4v1.P4Data{bits(packets), bits(last)}}}}
	}
	return &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: e}}
}

// TestPairRegisters: controllers and packets read and write registers of
// structs, as a whole and cell by cell.
func TestPairRegisters(t *testing.T) {
	r := newTofinoRig(t)
	r.dmac("\x02", "In.set_port", "\x02")
	packet := frame(2, 9, "first")
	r.ports[1].in <- packet
	r.ports[2].wantPacket(t, packet)
	if got, want := r.mustRead(1, r.cell(1, "", ""))[0], r.cell(1, "\x01", "\x09"); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, e := range []*p4v1.Entity{r.cell(1, "\x07", "\xff\xff\xff\xff"), r.cell(2, "\xff\xff\xff\xff", "\x00"), r.cell(511, "\x00", "\x01")} {
		r.wantWrite(codes.OK, update(mod, e))
		if got := r.mustRead(1, r.cell(e.GetRegisterEntry().GetIndex().GetIndex(), "", ""))[0]; !proto.Equal(got, e) {
			t.Errorf("got  %v\nwant %v", got, e)
		}
	}
	r.ports[1].in <- packet
	r.ports[2].wantPacket(t, packet)
	if got, want := r.mustRead(1, r.cell(1, "", ""))[0], r.cell(1, "\x08", "\x09"); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// The data plane stores the first member in the upper half.
	cells, err := r.rig.dev.ReadRegister("In.seen", 1, 3)
	if want := []uint64{8<<32 | 9, 0xffffffff << 32}; err != nil || !slices.Equal(cells, want) {
		t.Errorf("got %x (%v), want %x", cells, err, want)
	}
	whole := r.mustRead(512, &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{RegisterId: r.id("In.seen")}}})
	if !proto.Equal(whole[511], r.cell(511, "\x00", "\x01")) {
		t.Errorf("the last cell is %v", whole[511])
	}
	for _, bad := range []*p4v1.P4Data{
		nil,
		{Data: &p4v1.P4Data_Bitstring{Bitstring: []byte{1}}},
		{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{}}},
		{Data: &p4v1.P4Data_Struct{Struct: &p4v1.P4StructLike{Members: []*p4v1.P4Data{nil, nil}}}},
		r.cell(0, "\x01\x00\x00\x00\x00", "\x01").GetRegisterEntry().GetData(),
	} {
		e := r.cell(0, "", "")
		e.GetRegisterEntry().Data = bad
		if err := r.write(update(mod, e)); err == nil {
			t.Errorf("a cell of %v is taken", bad)
		}
	}
}

// TestTofinoReplication: mirrors, multicast groups and packet-outs reach the
// configured ports.
func TestTofinoReplication(t *testing.T) {
	r := newTofinoRig(t)
	r.must(r.write(
		update(ins, multicastEntity(&p4v1.MulticastGroupEntry{MulticastGroupId: 3, Replicas: []*p4v1.Replica{replica("\x02", 1), replica("\x03", 1)}})),
		update(ins, cloneEntity(&p4v1.CloneSessionEntry{SessionId: 5, Replicas: []*p4v1.Replica{replica("\x04", 1)}, PacketLengthBytes: 16})),
	))
	r.dmac("\x03", "In.flood", "\x03")
	r.dmac("\x04", "In.watch", "\x02", "\x05")
	r.dmac("\x05", "In.set_port", "\xc0")

	packet := frame(3, 1, "for all")
	r.ports[1].in <- packet
	r.ports[2].wantPacket(t, packet)
	r.ports[3].wantPacket(t, packet)

	packet = frame(4, 1, "watched")
	r.ports[1].in <- packet
	r.ports[2].wantPacket(t, packet)
	r.ports[4].wantPacket(t, append([]byte{7}, packet[:15]...))

	packet = frame(5, 1, "for the controller")
	r.ports[1].in <- packet
	if got := r.next().GetPacket(); string(got.GetPayload()) != string(packet) {
		t.Errorf("the packet-in is %v", got)
	}
	packet = frame(3, 1, "from the controller")
	r.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{Payload: packet}}})
	r.ports[2].wantPacket(t, packet)
	r.ports[3].wantPacket(t, packet)
	if cells, err := r.rig.dev.ReadRegister("In.seen", tofinoCPU, tofinoCPU+1); err != nil || cells[0]>>32 != 1 {
		t.Errorf("%d packets came in at the CPU port (%v), want 1", cells[0]>>32, err)
	}
}

// TestTofinoDigest: records packed by the deparser arrive as a digest list.
func TestTofinoDigest(t *testing.T) {
	r := newTofinoRig(t)
	id := r.config.GetP4Info().GetDigests()[0].GetPreamble().GetId()
	r.must(r.write(update(ins, &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{
		DigestId: id, Config: &p4v1.DigestEntry_Config{MaxListSize: 1},
	}}})))
	r.ports[1].in <- frame(77, 9, "")
	list := r.next().GetDigest()
	if list.GetDigestId() != id || len(list.GetData()) != 1 {
		t.Fatalf("got %v", list)
	}
	if m := list.GetData()[0].GetStruct().GetMembers(); len(m) != 2 || string(m[0].GetBitstring()) != "\x09" || string(m[1].GetBitstring()) != "\x05" {
		t.Errorf("the record is %v", m)
	}
}

// TestTofinoSelector: an action selector distributes packets by its hash.
func TestTofinoSelector(t *testing.T) {
	r := newTofinoRig(t)
	profile := r.config.GetP4Info().GetActionProfiles()[0].GetPreamble().GetId()
	for i := range uint32(2) {
		r.must(r.write(update(ins, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
			ActionProfileId: profile, MemberId: i + 1, Action: r.call("In.set_port", string(rune(i+2))),
		}}})))
	}
	r.must(r.write(
		update(ins, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{
			ActionProfileId: profile, GroupId: 1, MaxSize: 4, Members: []*p4v1.ActionProfileGroup_Member{weighted(1, 1), weighted(2, 1)},
		}}}),
		update(ins, entityOf(&p4v1.TableEntry{TableId: r.id("In.fan"), Match: []*p4v1.FieldMatch{exact(1, "\x11\x11")}, Action: groupAction(1)})),
	))
	const packets = 64
	for i := range byte(packets) {
		b := frame(1, i, "")
		b[12], b[13] = 0x11, 0x11
		r.ports[1].in <- b
	}
	got := 0
	for got < packets {
		select {
		case <-r.ports[2].out:
		case <-r.ports[3].out:
		case <-time.After(patience):
			t.Fatalf("%d packets of %d leave", got, packets)
		}
		got++
	}
	for _, c := range r.rig.dev.PortCounts() {
		if (c.Port == 2 || c.Port == 3) && c.OutPackets < packets/4 {
			t.Errorf("%d of %d packets left at port %d", c.OutPackets, packets, c.Port)
		}
	}
}

// TestFilters: SetFilter configures all cells of a filter, and FilterSpec
// returns the settings.
func TestFilters(t *testing.T) {
	r := newTofinoRig(t)
	names, err := r.rig.dev.Filters()
	if err != nil || !slices.Equal(names, []string{"Out.rate"}) {
		t.Fatalf("the filters are %q (%v)", names, err)
	}
	want := dataplane.FilterSpec{Rate: true, Gain: time.Millisecond, Decay: time.Millisecond, Shift: 3}
	r.must(r.rig.dev.SetFilter("Out.rate", want))
	if got, err := r.rig.dev.FilterSpec("Out.rate"); err != nil || got != want {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	r.must(r.rig.dev.Switch().Filters().Set("Out.rate", 7, dataplane.FilterSpec{}))
	if _, err := r.rig.dev.FilterSpec("Out.rate"); err == nil {
		t.Error("cells that are set differently have one setting")
	}
	if err := r.rig.dev.SetFilter("Out.rates", want); err == nil {
		t.Error("there is no such filter")
	}
}

// TestCPUZero: port 0 is the CPU port only if CPUZero is set, as on Tofino 2.
func TestCPUZero(t *testing.T) {
	for _, zero := range []bool{false, true} {
		d, err := NewDevice(DeviceOptions{CPUZero: zero, Load: loadProgram})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.AddPort(0, newTestPort(), nil); (err != nil) != zero {
			t.Errorf("adding port 0: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
