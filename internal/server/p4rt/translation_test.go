package p4rt

import (
	"os"
	"strconv"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/p4"
)

// namesConfig returns the config of testdata/names.p4.
func namesConfig(t testing.TB) *p4v1.ForwardingPipelineConfig {
	t.Helper()
	p, err := p4.Compile(os.DirFS("testdata"), "names.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &p4v1.ForwardingPipelineConfig{P4Info: p.P4Info, P4DeviceConfig: p.JSON()}
}

// A namesRig is a primary with testdata/names.p4 running.
type namesRig struct {
	*session
	ids    map[string]uint32
	config *p4v1.ForwardingPipelineConfig
}

func newNamesRig(t *testing.T) *namesRig {
	t.Helper()
	c := namesConfig(t)
	r := &namesRig{newRig(t, Options{}).primary(), map[string]uint32{}, c}
	r.must(r.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT, c))
	for _, pre := range preambles(c.GetP4Info()) {
		r.ids[pre.GetName()] = pre.GetId()
	}
	return r
}

func (r *namesRig) vrf(port, vrf string) *p4v1.TableEntry {
	return &p4v1.TableEntry{
		TableId: r.ids["NamesIngress.vrfs"], Match: []*p4v1.FieldMatch{exact(1, port)},
		Action: tableAction(&p4v1.Action{ActionId: r.ids["NamesIngress.set_vrf"], Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte(vrf)}}}),
	}
}

func (r *namesRig) route(vrf, from, to string) *p4v1.TableEntry {
	e := &p4v1.TableEntry{
		TableId: r.ids["NamesIngress.routes"], Match: []*p4v1.FieldMatch{exact(1, vrf)}, Priority: 1,
		Action: tableAction(&p4v1.Action{ActionId: r.ids["NamesIngress.forward"], Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte(to)}}}),
	}
	if from != "" {
		e.Match = append(e.Match, optional(2, from))
	}
	return e
}

// TestStrings sends packets through entries written with strings.
func TestStrings(t *testing.T) {
	r := newNamesRig(t)
	one, uplink := newTestPort(), newTestPort()
	r.must(r.rig.dev.AddPort(1, one, nil))
	r.must(r.rig.dev.AddPort(4, uplink, nil))
	entries := []*p4v1.TableEntry{r.vrf("1", "red"), r.vrf("uplink", "blue"), r.route("red", "1", "uplink"), r.route("blue", "", "cpu")}
	for _, e := range entries {
		before := proto.Clone(e)
		r.must(r.write(insert(t, e)))
		if got := r.mustRead(1, entityOf(keyOf(e)))[0].GetTableEntry(); !proto.Equal(got, before) {
			t.Errorf("read back %v, want %v", got, before)
		}
		r.wantWrite(codes.AlreadyExists, insert(t, e))
	}
	digest := &p4v1.Entity{Entity: &p4v1.Entity_DigestEntry{DigestEntry: &p4v1.DigestEntry{
		DigestId: r.ids["seen_t"], Config: &p4v1.DigestEntry_Config{MaxListSize: 1},
	}}}
	packet := frame(1, 2, "from port 1")
	one.in <- packet
	uplink.wantPacket(t, packet)

	uplink.in <- packet
	in := r.next().GetPacket()
	if len(in.GetMetadata()) != 2 || string(in.GetMetadata()[0].GetValue()) != "uplink" || string(in.GetPayload()) != string(packet) {
		t.Errorf("got %v, want a packet from uplink", in)
	}
	cell := r.mustRead(1, &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: &p4v1.RegisterEntry{
		RegisterId: r.ids["NamesIngress.last"], Index: &p4v1.Index{},
	}}})[0].GetRegisterEntry()
	if got := string(cell.GetData().GetBitstring()); got != "uplink" {
		t.Errorf("the register has %q, want uplink", got)
	}
	cell.Data.Data = &p4v1.P4Data_Bitstring{Bitstring: []byte("cpu")}
	write := &p4v1.Entity{Entity: &p4v1.Entity_RegisterEntry{RegisterEntry: cell}}
	r.must(r.write(update(mod, write)))
	if got := r.mustRead(1, write)[0]; !proto.Equal(got, write) {
		t.Errorf("read back %v, want %v", got, write)
	}
	if v, err := r.rig.dev.ReadRegister("NamesIngress.last", 0, 1); err != nil || v[0] != 255 {
		t.Errorf("the register has %v, %v, want 255", v, err)
	}

	r.must(r.write(update(ins, digest)))
	one.in <- packet
	if m := r.next().GetDigest().GetData()[0].GetStruct().GetMembers(); string(m[0].GetBitstring()) != "1" {
		t.Errorf("got the digest %v, want port 1", m)
	}
	uplink.wantPacket(t, packet)

	out := func(port string) {
		r.send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Packet{Packet: &p4v1.PacketOut{
			Payload: packet, Metadata: []*p4v1.PacketMetadata{{MetadataId: 1, Value: []byte(port)}, {MetadataId: 2, Value: []byte{0}}},
		}}})
	}
	out("uplink")
	uplink.wantPacket(t, packet)
	out("4")
	if e := r.next().GetError(); codes.Code(e.GetCanonicalCode()) != codes.InvalidArgument {
		t.Errorf("a number that has another name: %v", e)
	}
}

// TestBadStrings: a rejected request does not change the mapping of strings.
func TestBadStrings(t *testing.T) {
	r := newNamesRig(t)
	if d := r.mustRead(1, entityOf(&p4v1.TableEntry{TableId: r.ids["NamesIngress.vrfs"], IsDefaultAction: true}))[0].GetTableEntry(); string(d.GetAction().GetAction().GetParams()[0].GetValue()) != "0" {
		t.Errorf("the default entry is %v, want vrf 0", d)
	}
	for name, e := range map[string]*p4v1.TableEntry{
		"empty":         r.vrf("", "red"),
		"too large":     r.vrf("512", "red"),
		"far too large": r.vrf("1", "4"),
		"other name":    r.vrf("255", "red"),
	} {
		if r.wantWrite(codes.InvalidArgument, insert(t, e)); t.Failed() {
			t.Fatal(name)
		}
	}
	// 0 is used by the program; three values of a bit<2> are free.
	for i := range 3 {
		r.must(r.write(insert(t, r.vrf(strconv.Itoa(i), "vrf-"+strconv.Itoa(i)))))
	}
	r.wantWrite(codes.ResourceExhausted, insert(t, r.vrf("7", "vrf-3")))
	r.must(r.write(insert(t, r.vrf("7", "vrf-2"))))

	c := proto.Clone(r.config).(*p4v1.ForwardingPipelineConfig)
	c.P4Info.TypeInfo.NewTypes["vrf_t"].Annotations = []string{`@p4runtime_translation_mappings({{"red", 4}})`}
	if err := r.configure(p4v1.SetForwardingPipelineConfigRequest_VERIFY, c); codeOfRPC(err) != codes.InvalidArgument {
		t.Errorf("a mapping that does not fit its type: %v", err)
	}
}

// TestReconcileKeepsStrings: the mapping of strings survives a change of
// program.
func TestReconcileKeepsStrings(t *testing.T) {
	r := newNamesRig(t)
	one, uplink := newTestPort(), newTestPort()
	r.must(r.rig.dev.AddPort(1, one, nil))
	r.must(r.rig.dev.AddPort(4, uplink, nil))
	r.must(r.write(insert(t, r.vrf("5", "a")), insert(t, r.vrf("1", "b")), insert(t, r.route("b", "", "uplink"))))
	before := r.rig.server.current.info.translations["vrf_t"].numbers["b"]
	next := proto.Clone(r.config).(*p4v1.ForwardingPipelineConfig)
	next.P4Info.PkgInfo = &configv1.PkgInfo{Version: "next"}
	r.must(r.configure(p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT, next))
	if got := r.rig.server.current.info.translations["vrf_t"].numbers["b"]; got != before || got == 0 {
		t.Errorf("b has the number %d, had %d", got, before)
	}
	packet := frame(1, 2, "")
	one.in <- packet
	uplink.wantPacket(t, packet)
}
