package dataplane

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// A pipeProgram is a small program for Tofino, written in the test: both halves
// parse a header of four bytes {a, b, c}, and the test gives the actions and
// deparsers.
type pipeProgram struct {
	arch                    string
	ingress, egress         []*bmv2.Primitive
	inDeparser, outDeparser []*bmv2.Primitive
	inState, outState       []*bmv2.ParserOp // after the intrinsic metadata
	inTransitions           []bmv2.Transition
	inKey                   []*bmv2.Expr
	more                    []*bmv2.ParseState
	inOrder, outOrder       []string
	readsError              bool
	registers               []*bmv2.RegisterArray
	filters                 []*bmv2.FilterArray
	calculations            []*bmv2.Calculation
	learn                   []*bmv2.FieldList
	tables                  []*bmv2.Table
	actions                 []*bmv2.Action
	first                   string
	meters                  []*bmv2.MeterArray
}

func fields(list string) []bmv2.HeaderField {
	var out []bmv2.HeaderField
	for i, f := range strings.Fields(list) {
		name, width, _ := strings.Cut(f, ":")
		if name == "_" {
			name = fmt.Sprint("_pad", i)
		}
		fd := bmv2.HeaderField{Name: name}
		fmt.Sscan(width, &fd.Width)
		out = append(out, fd)
	}
	return out
}

// The intrinsic metadata as in tna.p4 and t2na.p4.
var intrinsics = map[string][2]string{
	bmv2.TNA: {
		"resubmit_flag:1 _:1 packet_version:2 _:3 ingress_port:9 ingress_mac_tstamp:48",
		"_:7 egress_port:9 _:5 enq_qdepth:19 _:6 enq_congest_stat:2 _:14 enq_tstamp:18 _:5 deq_qdepth:19 _:6 deq_congest_stat:2 " +
			"app_pool_congest_stat:8 _:14 deq_timedelta:18 egress_rid:16 _:7 egress_rid_first:1 _:3 egress_qid:5 _:5 egress_cos:3 _:7 deflection_flag:1 pkt_length:16",
	},
	bmv2.T2NA: {
		"resubmit_flag:1 _:1 packet_version:2 _:3 ingress_port:9 ingress_mac_tstamp:48",
		"_:7 egress_port:9 _:5 enq_qdepth:19 _:6 enq_congest_stat:2 enq_tstamp:32 _:5 deq_qdepth:19 _:6 deq_congest_stat:2 " +
			"app_pool_congest_stat:8 deq_timedelta:32 egress_rid:16 _:7 egress_rid_first:1 _:1 egress_qid:7 _:5 egress_cos:3 _:7 deflection_flag:1 pkt_length:16 _:8",
	},
}

// config returns the document of the program.
func (g pipeProgram) config() *bmv2.Config {
	if g.arch == "" {
		g.arch = bmv2.TNA
	}
	types := []struct{ name, fields string }{
		{"ingress_intrinsic_metadata_t", intrinsics[g.arch][0]},
		{"egress_intrinsic_metadata_t", intrinsics[g.arch][1]},
		{"h_t", "a:8 b:8 c:16"},
		{"m_t", "kind:8 x:24"},
		{"prsr_t", "global_tstamp:48 global_ver:32 parser_err:16"},
		{"dprsr_t", "drop_ctl:3 digest_type:3 resubmit_type:3 mirror_type:3 mirror_io_select:1"},
		{"tm_t", "ucast_egress_port:9 bypass_egress:1 ingress_cos:3 qid:7 copy_to_cpu:1 mcast_grp_a:16 mcast_grp_b:16"},
		{"meta_t", "x:32 y:48 sum:16 wide:80"},
		{"wide_t", "x:48 y:48 z:32 s:16 t:16"},
	}
	c := &bmv2.Config{Meta: &bmv2.Meta{Version: []int{2, 23}, Architecture: g.arch}}
	for i, t := range types {
		c.HeaderTypes = append(c.HeaderTypes, &bmv2.HeaderType{Name: t.name, ID: i, Fields: fields(t.fields)})
	}
	for i, h := range []struct {
		name, typ string
		metadata  bool
	}{
		{"ig_intr", "ingress_intrinsic_metadata_t", false}, {"eg_intr", "egress_intrinsic_metadata_t", false},
		{"ig_h", "h_t", false}, {"eg_h", "h_t", false}, {"ig_m", "m_t", false}, {"eg_m", "m_t", false},
		{"eg_w", "wide_t", false}, {"ig_data", "m_t", false},
		{"ig_prsr_md", "prsr_t", true}, {"eg_prsr_md", "prsr_t", true}, {"ig_dprsr_md", "dprsr_t", true},
		{"eg_dprsr_md", "dprsr_t", true}, {"ig_tm_md", "tm_t", true}, {"ig_md", "meta_t", true}, {"eg_md", "meta_t", true},
	} {
		c.Headers = append(c.Headers, &bmv2.Header{Name: h.name, ID: i, HeaderType: h.typ, Metadata: h.metadata})
	}
	for i, e := range []string{"NoError", "PacketTooShort", "NoMatch", "StackOutOfBounds", "HeaderTooShort", "ParserTimeout", "ParserInvalidArgument", "CounterRange"} {
		c.Errors = append(c.Errors, bmv2.NamedValue{Name: e, Value: i})
	}
	portData := 64
	if g.arch == bmv2.T2NA {
		portData = 192
	}
	if g.inState == nil {
		g.inState = []*bmv2.ParserOp{advance(portData), extract("ig_h")}
	}
	if g.outState == nil {
		g.outState = []*bmv2.ParserOp{extract("eg_h")}
	}
	c.Parsers = []*bmv2.Parser{
		{Name: "ingress_parser", ID: 0, InitState: "start", ReadsError: g.readsError, ParseStates: append([]*bmv2.ParseState{{
			Name: "start", ID: 0, ParserOps: append([]*bmv2.ParserOp{extract("ig_intr")}, g.inState...), Transitions: g.inTransitions, TransitionKey: g.inKey,
		}}, g.more...)},
		{Name: "egress_parser", ID: 1, InitState: "start", ParseStates: []*bmv2.ParseState{{
			Name: "start", ID: 10, ParserOps: append([]*bmv2.ParserOp{extract("eg_intr")}, g.outState...), Transitions: []bmv2.Transition{{Type: "default"}},
		}}},
	}
	if g.inOrder == nil {
		g.inOrder = []string{"ig_h"}
	}
	if g.outOrder == nil {
		g.outOrder = []string{"eg_h"}
	}
	c.Deparsers = []*bmv2.Deparser{
		{Name: "ingress_deparser", ID: 0, Order: g.inOrder, Primitives: g.inDeparser},
		{Name: "egress_deparser", ID: 1, Order: g.outOrder, Primitives: g.outDeparser},
	}
	c.Actions = append([]*bmv2.Action{{Name: "in", ID: 0, Primitives: g.ingress}, {Name: "out", ID: 1, Primitives: g.egress}}, g.actions...)
	c.Pipelines = []*bmv2.Pipeline{
		{Name: "ingress", ID: 0, InitTable: "run_in", ActionCalls: []*bmv2.ActionCall{{Name: "run_in", ActionID: 0, NextNode: g.first}}, Tables: g.tables},
		{Name: "egress", ID: 1, InitTable: "run_out", ActionCalls: []*bmv2.ActionCall{{Name: "run_out", ID: 1, ActionID: 1}}},
	}
	c.RegisterArrays, c.FilterArrays, c.Calculations, c.LearnLists, c.MeterArrays = g.registers, g.filters, g.calculations, g.learn, g.meters
	return c
}

func extract(header string) *bmv2.ParserOp {
	return &bmv2.ParserOp{Op: "extract", Parameters: []*bmv2.Expr{bmv2.Ref(bmv2.TypeRegular, header)}}
}

func advance(bits int) *bmv2.ParserOp {
	return &bmv2.ParserOp{Op: "advance", Parameters: []*bmv2.Expr{bmv2.HexInt(int64(bits), 0)}}
}

// operand returns the expression of a number, a field "header.field" or an
// expression.
func operand(x any) *bmv2.Expr {
	switch x := x.(type) {
	case int:
		return bmv2.HexInt(int64(x), 0)
	case string:
		if header, field, ok := strings.Cut(x, "."); ok {
			return bmv2.FieldOf(header, field)
		}
		return bmv2.Ref(bmv2.TypeHeader, x)
	}
	return x.(*bmv2.Expr)
}

func do(op string, operands ...any) *bmv2.Primitive {
	p := &bmv2.Primitive{Op: op}
	for _, x := range operands {
		p.Parameters = append(p.Parameters, operand(x))
	}
	return p
}

func set(dst string, src any) *bmv2.Primitive { return do("assign", dst, src) }

func prims(list ...*bmv2.Primitive) []*bmv2.Primitive { return list }

// start returns a switch that runs the program.
func (g pipeProgram) start(t testing.TB, o Options) *Switch {
	t.Helper()
	c := g.config()
	var b bytes.Buffer
	must(t, c.Write(&b))
	loaded, err := bmv2.Load(b.Bytes())
	must(t, err)
	s, err := New(loaded, o)
	must(t, err)
	return s
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	must(t, err)
	return b
}

// sent sends a packet through an engine and returns the packets that leave as
// "port:bytes …".
func sent(t testing.TB, e *Engine, port uint32, packet string, now time.Duration) string {
	t.Helper()
	var list []string
	for _, o := range e.Process(port, unhex(t, packet), now) {
		list = append(list, fmt.Sprintf("%d:%x", o.Port, o.Data))
	}
	return strings.Join(list, " ")
}

// check compares the packets that leave after one packet with the expected
// ones.
func (g pipeProgram) check(t *testing.T, setup func(*Switch), packet, want string) {
	t.Helper()
	s := g.start(t, Options{})
	if setup != nil {
		setup(s)
	}
	if got := sent(t, NewEngine(s), 5, packet, time.Second); got != want {
		t.Errorf("out comes %q, want %q", got, want)
	}
}

const toPort3 = "ig_tm_md.ucast_egress_port"

func TestPipeForwards(t *testing.T) {
	pipeProgram{ingress: prims(set(toPort3, 3), set("ig_h.b", 0x77))}.check(t, nil, "01020304 aabb", "3:01770304aabb")
	pipeProgram{arch: bmv2.T2NA, ingress: prims(set(toPort3, 3)), egress: prims(set("eg_h.a", 9))}.check(t, nil, "01020304 aabb", "3:09020304aabb")
}

// Without a port the packet is dropped; v1model would send it to port 0.
func TestPipeDropsWithoutPort(t *testing.T) {
	pipeProgram{}.check(t, nil, "01020304", "")
	pipeProgram{ingress: prims(set(toPort3, 0x1ff))}.check(t, nil, "01020304", "")
	pipeProgram{ingress: prims(set(toPort3, 0))}.check(t, nil, "01020304", "0:01020304")
	pipeProgram{ingress: prims(set(toPort3, 3), set("ig_dprsr_md.drop_ctl", 1))}.check(t, nil, "01020304", "")
	pipeProgram{ingress: prims(set(toPort3, 3), set("ig_dprsr_md.drop_ctl", 6))}.check(t, nil, "01020304", "3:01020304")
	pipeProgram{ingress: prims(set(toPort3, 3)), egress: prims(set("eg_dprsr_md.drop_ctl", 1))}.check(t, nil, "01020304", "")
}

// Metadata of ingress ends there: egress sees the bytes of the packet only.
func TestPipeStripsMetadata(t *testing.T) {
	p := pipeProgram{
		ingress: prims(set(toPort3, 3), set("ig_md.x", 0x12345678), set("eg_md.x", 0x12345678), do("remove_header", "ig_h")),
		egress:  prims(set("eg_h.c", "ig_md.x"), set("eg_h.b", "eg_md.x")),
	}
	p.check(t, nil, "01020304 05060708", "3:05000000")
}

// The intrinsic metadata of egress, field by field.
func TestEgressIntrinsics(t *testing.T) {
	const enq, deq = 5_000_001_234 * time.Nanosecond, 5_000_901_235 * time.Nanosecond
	for _, c := range []struct {
		arch, field string
		want        int64
	}{
		{bmv2.TNA, "egress_port", 300}, {bmv2.TNA, "enq_qdepth", 70000}, {bmv2.TNA, "deq_qdepth", 3},
		{bmv2.TNA, "enq_tstamp", int64(enq) & (1<<18 - 1)}, {bmv2.TNA, "deq_timedelta", int64(deq-enq) & (1<<18 - 1)},
		{bmv2.TNA, "egress_qid", 9}, {bmv2.TNA, "egress_cos", 5}, {bmv2.TNA, "pkt_length", 9}, {bmv2.TNA, "egress_rid", 0},
		{bmv2.T2NA, "egress_port", 300}, {bmv2.T2NA, "enq_qdepth", 70000}, {bmv2.T2NA, "deq_qdepth", 3},
		{bmv2.T2NA, "enq_tstamp", int64(enq) & (1<<32 - 1)}, {bmv2.T2NA, "deq_timedelta", int64(deq - enq)},
		{bmv2.T2NA, "egress_qid", 9}, {bmv2.T2NA, "egress_cos", 5}, {bmv2.T2NA, "pkt_length", 9},
	} {
		s := pipeProgram{
			arch:    c.arch,
			ingress: prims(set(toPort3, 300), set("ig_tm_md.qid", 9), set("ig_tm_md.ingress_cos", 5), do("remove_header", "ig_h")),
			egress:  prims(do("add_header", "eg_w"), set("eg_w.x", "eg_intr."+c.field)), outOrder: []string{"eg_w"},
		}.start(t, Options{Priorities: 4})
		p := s.Receive(1, unhex(t, "000000000001020304"), time.Second)
		out := s.Ingress(p, time.Second, nil)
		if len(out) != 1 || out[0].Kind != ToQueue || out[0].Port != 300 || out[0].Priority != 3 {
			t.Fatalf("ingress: %+v", out)
		}
		s.Enqueued(out[0].Packet, 70000, enq)
		s.park(out[0].Packet)
		out = s.Egress(out[0].Packet, 3, deq, nil)
		if len(out) != 1 || out[0].Kind != ToPort {
			t.Fatalf("egress: %+v", out)
		}
		if got := out[0].Packet.Bytes()[:6]; !bytes.Equal(got, be(uint64(c.want), 6)) {
			t.Errorf("%s: %s is %x, want %x", c.arch, c.field, got, c.want)
		}
	}
}

// The inputs of ingress: bytes before the packet, and metadata after parsing.
func TestIngressIntrinsics(t *testing.T) {
	const arrived, began = 0x1_0000_0000_0005, 0x1_0000_0000_0009 // beyond 48 bits
	for _, arch := range []string{bmv2.TNA, bmv2.T2NA} {
		for field, want := range map[string]int{"ig_intr.ingress_port": 0x1a5, "ig_intr.ingress_mac_tstamp": 5, "ig_prsr_md.global_tstamp": 9, "ig_intr.resubmit_flag": 0, "ig_prsr_md.parser_err": 0} {
			s := pipeProgram{arch: arch, ingress: prims(set(toPort3, 3), set("ig_h.c", field))}.start(t, Options{})
			out := s.Ingress(s.Receive(0x1a5, unhex(t, "01020304"), arrived), began, nil)
			if len(out) != 1 {
				t.Fatalf("ingress: %+v", out)
			}
			if got := out[0].Packet.Bytes(); !bytes.Equal(got, []byte{1, 2, byte(want >> 8), byte(want)}) {
				t.Errorf("%s: with %s: %x", arch, field, got)
			}
		}
	}
}

func TestPortMetadata(t *testing.T) {
	p := pipeProgram{inState: []*bmv2.ParserOp{extract("ig_m"), advance(32), extract("ig_h")}, ingress: prims(set(toPort3, 3), set("ig_h.a", "ig_m.kind"))}
	p.check(t, func(s *Switch) {
		must(t, s.SetPortMetadata(5, []byte{0x5a}))
		if s.SetPortMetadata(512, nil) == nil || s.SetPortMetadata(1, make([]byte, 9)) == nil {
			t.Error("port 512 or nine bytes are accepted")
		}
	}, "01020304", "3:5a020304")
}

// A parser error drops the packet in ingress, unless the program reads
// parser_err.
func TestParserErrors(t *testing.T) {
	p := pipeProgram{ingress: prims(set(toPort3, 3), do("add_header", "ig_h"), set("ig_h.c", "ig_prsr_md.parser_err"))}
	p.inState = []*bmv2.ParserOp{advance(64), advance(64), extract("ig_h")}
	p.check(t, nil, "0102", "")
	p.readsError = true
	p.check(t, nil, "0102", "3:000000220102")
	p.inState = nil

	// In v1model a select without a match accepts. Here it drops the packet
	// even if the program reads parser_err.
	p.inKey = []*bmv2.Expr{bmv2.FieldOf("ig_h", "a")}
	p.inTransitions = []bmv2.Transition{{Type: "hexstr", Value: "0x07"}}
	p.check(t, nil, "07020304", "3:07020000")
	p.check(t, nil, "08020304", "")

	p.inTransitions = append(p.inTransitions, bmv2.Transition{Type: "default", NextState: "reject"})
	p.more = []*bmv2.ParseState{{Name: "reject", ID: 1}}
	p.check(t, nil, "07020304", "3:07020000")
	p.check(t, nil, "08020304", "3:08020000")
}

// Egress continues after a parser error.
func TestEgressParserError(t *testing.T) {
	p := pipeProgram{
		ingress: prims(set(toPort3, 3), do("remove_header", "ig_h")),
		egress:  prims(do("add_header", "eg_m"), set("eg_m.x", "eg_prsr_md.parser_err")), outOrder: []string{"eg_m"},
		outState: []*bmv2.ParserOp{advance(64), extract("eg_h")},
	}
	p.check(t, nil, "01020304 aabb", "3:00000022aabb")
}

func mirrorTo(t testing.TB, id uint32, m MirrorSession) func(*Switch) {
	return func(s *Switch) { must(t, s.Mirrors().Set(id, m)) }
}

// A mirror of ingress contains its header and the packet as received, even if the
// packet is dropped.
func TestIngressMirror(t *testing.T) {
	p := pipeProgram{
		ingress:    prims(set(toPort3, 3), set("ig_h.a", 0x99)),
		inDeparser: prims(do("add_header", "ig_m"), set("ig_m.kind", 0xee), set("ig_m.x", 0xabcdef), do("mirror_emit", 7, "ig_m")),
	}
	setup := mirrorTo(t, 7, MirrorSession{Port: 9, HasPort: true})
	// Both packets pass the same egress parser: the header of the mirror is its
	// h.
	p.check(t, setup, "01020304 aabb", "9:eeabcdef01020304aabb 3:99020304aabb")
	p.check(t, nil, "01020304 aabb", "3:99020304aabb") // no session

	dropped := p
	dropped.ingress = append(slices.Clone(p.ingress), set("ig_dprsr_md.drop_ctl", 1))
	dropped.check(t, setup, "01020304 aabb", "9:eeabcdef01020304aabb")
	dropped.ingress = append(slices.Clone(p.ingress), set("ig_dprsr_md.drop_ctl", 4))
	dropped.check(t, setup, "01020304 aabb", "3:99020304aabb")

	bare := p
	bare.inDeparser = prims(do("mirror_emit", 7))
	bare.check(t, setup, "01020304 aabb", "9:01020304aabb 3:99020304aabb")
	bare.check(t, mirrorTo(t, 7, MirrorSession{Port: 9, HasPort: true, Length: 5}), "01020304 aabb", "9:01020304aa 3:99020304aabb")
	p.check(t, mirrorTo(t, 7, MirrorSession{Port: 9, HasPort: true, Length: 5}), "01020304 aabb", "9:eeabcdef01 3:99020304aabb")
}

// A mirror of egress contains the packet as it leaves, even if the packet is dropped.
func TestEgressMirror(t *testing.T) {
	p := pipeProgram{
		ingress:     prims(set(toPort3, "ig_h.b")),
		egress:      prims(set("eg_h.a", 0x99)),
		outDeparser: prims(do("_jump_if_zero", bmv2.Op1("b2d", bmv2.Op2("==", bmv2.FieldOf("eg_intr", "egress_port"), bmv2.HexInt(3, 0))), 4), do("add_header", "eg_m"), set("eg_m.kind", 0xee), do("mirror_emit", 7, "eg_m")),
	}
	setup := mirrorTo(t, 7, MirrorSession{Port: 9, HasPort: true})
	p.check(t, setup, "01030304 aabb", "3:99030304aabb 9:9900000099030304aabb")
	p.check(t, setup, "01040304 aabb", "4:99040304aabb") // the jump leads past the mirror

	dropped := p
	dropped.egress = append(slices.Clone(p.egress), set("eg_dprsr_md.drop_ctl", 1))
	dropped.check(t, setup, "01030304 aabb", "")
	dropped.egress = append(slices.Clone(p.egress), set("eg_dprsr_md.drop_ctl", bmv2.Op1("b2d", bmv2.Op2("==", bmv2.FieldOf("eg_intr", "egress_port"), bmv2.HexInt(3, 0)))))
	dropped.check(t, setup, "01030304 aabb", "9:9900000099030304aabb")
	dropped.egress = append(slices.Clone(p.egress), set("eg_dprsr_md.drop_ctl", 4))
	dropped.check(t, setup, "01030304 aabb", "3:99030304aabb")
}

// On Tofino 2 a program may mirror the packet in the other form.
func TestMirrorIOSelect(t *testing.T) {
	setup := mirrorTo(t, 7, MirrorSession{Port: 9, HasPort: true})
	in := pipeProgram{arch: bmv2.T2NA, ingress: prims(set(toPort3, 3), set("ig_h.a", 0x99)), inDeparser: prims(do("mirror_emit", 7))}
	in.check(t, setup, "01020304 aabb", "9:01020304aabb 3:99020304aabb")
	in.ingress = append(in.ingress, set("ig_dprsr_md.mirror_io_select", 1))
	in.check(t, setup, "01020304 aabb", "9:99020304aabb 3:99020304aabb")
	in.ingress = append(in.ingress, set("ig_dprsr_md.drop_ctl", 1))
	in.check(t, setup, "01020304 aabb", "9:99020304aabb")
	only3 := bmv2.Op1("b2d", bmv2.Op2("==", bmv2.FieldOf("eg_intr", "egress_port"), bmv2.HexInt(3, 0)))
	out := pipeProgram{arch: bmv2.T2NA, ingress: prims(set(toPort3, 3)), egress: prims(set("eg_h.a", 0x99)), outDeparser: prims(do("_jump_if_zero", only3, 2), do("mirror_emit", 7))}
	out.check(t, setup, "01020304 aabb", "3:99020304aabb 9:99020304aabb")
	out.egress = prims(set("eg_h.b", 0x99), set("eg_dprsr_md.mirror_io_select", 0))
	out.check(t, setup, "01020304 aabb", "3:01990304aabb 9:01990304aabb")
}
