package dataplane

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/program"
)

// A packet may go to two groups and a port at once. Each copy has its
// replication id, and the first copy with an id is marked.
func TestPipeMulticast(t *testing.T) {
	p := pipeProgram{
		ingress: prims(set(toPort3, 3), set("ig_tm_md.mcast_grp_a", 10), set("ig_tm_md.mcast_grp_b", 20)),
		egress:  prims(set("eg_h.a", "eg_intr.egress_rid"), set("eg_h.b", "eg_intr.egress_rid_first"), set("eg_h.c", "eg_intr.egress_port")),
	}
	groups := func(s *Switch) {
		must(t, s.Replication().SetGroup(10, []Replica{{0x41, 6}, {0x41, 7}, {0x42, 8}}))
		must(t, s.Replication().SetGroup(20, []Replica{{0x42, 9}}))
	}
	p.check(t, groups, "01020304 aa", "6:41010006aa 7:41000007aa 8:42010008aa 9:42010009aa 3:00000003aa")
	p.ingress = append(p.ingress, set("ig_dprsr_md.drop_ctl", 1))
	p.check(t, groups, "01020304 aa", "")
	p.ingress = prims(set("ig_tm_md.mcast_grp_b", 20))
	p.check(t, groups, "01020304 aa", "9:42010009aa")
	p.ingress = prims(set("ig_tm_md.mcast_grp_b", 30)) // unknown
	p.check(t, groups, "01020304 aa", "")
}

func TestMirrorToGroup(t *testing.T) {
	p := pipeProgram{ingress: prims(set(toPort3, 3)), egress: prims(set("eg_h.a", "eg_intr.egress_rid")), inDeparser: prims(do("mirror_emit", 7))}
	p.check(t, func(s *Switch) {
		must(t, s.Replication().SetGroup(10, []Replica{{0x41, 6}, {0x42, 8}}))
		must(t, s.Mirrors().Set(7, MirrorSession{Group: 10}))
	}, "01020304", "6:41020304 8:42020304 3:00020304")
}

// Each mirror is mirrored again, longer by a header, until the mirror is too
// long.
func TestMirrorsOfMirrors(t *testing.T) {
	s := pipeProgram{
		ingress:     prims(set(toPort3, 3)),
		outDeparser: prims(do("add_header", "eg_m"), do("mirror_emit", 7, "eg_m")),
	}.start(t, Options{})
	must(t, s.Mirrors().Set(7, MirrorSession{Port: 9, HasPort: true}))
	longest := 0
	out := NewEngine(s).Process(5, make([]byte, 1000), time.Second)
	for _, o := range out {
		longest = max(longest, len(o.Data))
	}
	if longest > program.MaxFrame || longest < program.MaxFrame-4 || len(out) != 1+(longest-1000)/4 {
		t.Errorf("%d packets of up to %d bytes", len(out), longest)
	}
}

// A resubmitted packet enters ingress as it was received, with the resubmit header
// in place of the port metadata (P4_16 TNA 7.14). A second resubmit drops it.
func TestResubmit(t *testing.T) {
	again := bmv2.FieldOf("ig_intr", "resubmit_flag")
	once := func(emit *bmv2.Primitive) []*bmv2.Primitive {
		first := bmv2.Op1("b2d", bmv2.Op2("==", again, bmv2.HexInt(0, 0)))
		return prims(do("add_header", "ig_m"), set("ig_m.kind", 0xee), set("ig_m.x", 0x1234), do("_jump_if_zero", first, 5), emit)
	}
	p := pipeProgram{
		inState:    []*bmv2.ParserOp{extract("ig_data"), advance(32), extract("ig_h")},
		ingress:    prims(set(toPort3, 3), set("ig_h.a", "ig_data.kind"), set("ig_h.b", "ig_intr.resubmit_flag"), set("ig_h.c", "ig_data.x")),
		inDeparser: once(do("resubmit_emit", "ig_m")),
	}
	p.check(t, nil, "01020304 aabb", "3:ee011234aabb")
	// The next packet has port metadata again.
	p.check(t, func(s *Switch) { must(t, s.SetPortMetadata(5, []byte{0x11})) }, "01020304 aabb", "3:ee011234aabb")
	dropped := p
	dropped.ingress = append(slices.Clone(p.ingress), set("ig_dprsr_md.drop_ctl", 1))
	dropped.check(t, nil, "01020304 aabb", "")
	p.inDeparser = once(do("resubmit_emit"))
	p.check(t, nil, "01020304 aabb", "3:00010000aabb")
	p.inDeparser = prims(do("resubmit_emit"))
	p.check(t, nil, "01020304 aabb", "")
}

// A packet that is resubmitted is not mirrored (P4_16 TNA 5.6): session 7 gets the
// mirror of the second pass only.
func TestResubmitWithoutMirror(t *testing.T) {
	first := bmv2.Op1("b2d", bmv2.Op2("==", bmv2.FieldOf("ig_intr", "resubmit_flag"), bmv2.HexInt(0, 0)))
	pipeProgram{
		inState:    []*bmv2.ParserOp{extract("ig_data"), advance(32), extract("ig_h")},
		ingress:    prims(set(toPort3, 3)),
		inDeparser: prims(do("mirror_emit", 7), do("_jump_if_zero", first, 3), do("resubmit_emit")),
	}.check(t, func(s *Switch) { must(t, s.Mirrors().Set(7, MirrorSession{Port: 9, HasPort: true})) }, "01020304", "9:01020304 3:01020304")
}

func TestBypassEgress(t *testing.T) {
	p := pipeProgram{ingress: prims(set(toPort3, 3), set("ig_tm_md.bypass_egress", 1)), egress: prims(set("eg_h.a", 0x99))}
	p.check(t, nil, "01020304", "3:01020304")
	p.ingress = prims(set(toPort3, 3))
	p.check(t, nil, "01020304", "3:99020304")
}

// A packet that leaves by a recirculation port arrives there.
func TestRecirculationPorts(t *testing.T) {
	// A packet enters at port 5, passes the given ports in turn, and leaves at port 3 with
	// its input port in it.
	by := func(ports ...int) []*bmv2.Primitive {
		came, next := bmv2.FieldOf("ig_intr", "ingress_port"), bmv2.HexInt(3, 0)
		way := append([]int{5}, ports...)
		for i := len(ports) - 1; i >= 0; i-- {
			here := bmv2.Op2("==", came, bmv2.HexInt(int64(way[i]), 0))
			next = bmv2.Cond(here, bmv2.HexInt(int64(ports[i]), 0), next)
		}
		return prims(set("ig_h.c", "ig_intr.ingress_port"), set(toPort3, next))
	}
	tna := pipeProgram{ingress: by(68, 71, 0x80|70, 0x180|69)}
	tna.check(t, nil, "01020304 aabb", "3:010201c5aabb")
	pipeProgram{ingress: by(67)}.check(t, nil, "01020304", "67:01020005")
	pipeProgram{arch: bmv2.T2NA, ingress: by(0x86, 6)}.check(t, nil, "01020304", "3:01020006")
	pipeProgram{arch: bmv2.T2NA, ingress: by(68)}.check(t, nil, "01020304", "68:01020005")
	s := tna.start(t, Options{Loopback: []uint32{}})
	if got := sent(t, NewEngine(s), 5, "01020304", time.Second); got != "68:01020005" {
		t.Errorf("without loops: %q", got)
	}
}

// A packet that recirculates endlessly does not block a call.
func TestRecirculationForEver(t *testing.T) {
	e := NewEngine(pipeProgram{ingress: prims(set(toPort3, 68), set("ig_h.a", bmv2.Op2("+", bmv2.FieldOf("ig_h", "a"), bmv2.HexInt(1, 0))))}.start(t, Options{}))
	if got := sent(t, e, 5, "01020304", time.Second); got != "" {
		t.Errorf("out comes %q", got)
	}
}

// Queues count cells: 80 bytes each on Tofino 1, 176 on Tofino 2. Packets of
// 100, 80 and 353 bytes report the cells before and behind them.
func TestQueuesInCells(t *testing.T) {
	for arch, want := range map[string]string{bmv2.TNA: "0/6 2/5 3/0", bmv2.T2NA: "0/4 1/3 2/0"} {
		s := pipeProgram{arch: arch, ingress: prims(set(toPort3, 3)), egress: prims(set("eg_h.b", "eg_intr.enq_qdepth"), set("eg_h.c", "eg_intr.deq_qdepth"))}.start(t, Options{})
		e := NewEngine(s)
		e.Queues(func(q *Queues) { q.SetAllRates(1000) })
		e.Process(1, make([]byte, 300), time.Second) // leaves at once
		for _, size := range []int{100, 80, 353} {
			if out := e.Process(1, make([]byte, size), time.Second); len(out) != 0 {
				t.Fatalf("%d bytes leave at once", size)
			}
		}
		var got []string
		for _, o := range e.Run(time.Minute) {
			got = append(got, fmt.Sprintf("%d/%d", o.Data[1], o.Data[3]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", arch, got, want)
		}
	}
}

// Packets of the generator arrive at its port, numbered. The program's header
// takes the first four of the six bytes of the timer header; its c becomes the
// port.
func TestGenerate(t *testing.T) {
	for arch, want := range map[string]string{bmv2.TNA: "3:050000440010cc", bmv2.T2NA: "3:0d0000060010cc"} {
		p := pipeProgram{arch: arch, ingress: prims(set(toPort3, 3), set("ig_h.c", "ig_intr.ingress_port"))}
		e := NewEngine(p.start(t, Options{}))
		var got []string
		for _, o := range e.Generate(Generated{Port: e.sw.GeneratorPort(), App: 0xd, Batch: 0x7777, Number: 0x10, Data: []byte{0xcc}}, time.Second) {
			got = append(got, fmt.Sprintf("%d:%x", o.Port, o.Data))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", arch, got, want)
		}
		p.ingress = prims(set(toPort3, 3))
		e = NewEngine(p.start(t, Options{}))
		if out := e.Generate(Generated{Port: e.sw.GeneratorPort(), App: 1, Batch: 0x7777, Number: 0x10}, time.Second); len(out) != 1 || !bytes.Equal(out[0].Data[2:], []byte{0x77, 0x77, 0, 0x10}) {
			t.Errorf("%s: %v", arch, out)
		}
	}
}

func TestCopyToCPU(t *testing.T) {
	cpu := uint32(0)
	p := pipeProgram{ingress: prims(set(toPort3, 3), set("ig_tm_md.copy_to_cpu", 1))}
	for _, c := range []struct {
		drop int
		cpu  *uint32
		want string
	}{
		{0, nil, "3:01020304"}, {0, &cpu, "0:01020304 3:01020304"}, {1, &cpu, "0:01020304"}, {2, &cpu, "3:01020304"}, {3, &cpu, ""},
	} {
		g := p
		g.ingress = append(slices.Clone(p.ingress), set("ig_dprsr_md.drop_ctl", c.drop))
		if got := sent(t, NewEngine(g.start(t, Options{CPU: c.cpu})), 5, "01020304", time.Second); got != c.want {
			t.Errorf("drop_ctl %d: %q, want %q", c.drop, got, c.want)
		}
	}
}

func TestPipeDigest(t *testing.T) {
	var got []string
	p := pipeProgram{
		ingress:     prims(set(toPort3, 3), set("ig_dprsr_md.drop_ctl", "ig_h.a")),
		learn:       []*bmv2.FieldList{{ID: 1, Name: "ins", Elements: []*bmv2.Expr{bmv2.FieldOf("ig_h", "c")}}, {ID: 2, Name: "outs", Elements: []*bmv2.Expr{bmv2.FieldOf("eg_h", "b")}}},
		inDeparser:  prims(do("generate_digest", 0, 1)),
		outDeparser: prims(do("generate_digest", 0, 2)),
	}
	e := NewEngine(p.start(t, Options{Digest: func(d Digest) { got = append(got, fmt.Sprintf("%s %x", d.List, d.Data)) }}))
	sent(t, e, 5, "00020304", time.Second)
	sent(t, e, 5, "01020305", time.Second) // dropped: the digest is sent
	if want := []string{"ins 0304", "outs 02", "ins 0305"}; !slices.Equal(got, want) {
		t.Errorf("digests %q, want %q", got, want)
	}
}

// pkt_length is the packet's length at its arrival, with the header of a
// mirror.
func TestLengthAtEgress(t *testing.T) {
	p := pipeProgram{
		ingress:    prims(set(toPort3, 3), do("remove_header", "ig_h")),
		inDeparser: prims(do("add_header", "ig_m"), set("ig_m.x", 0x10203), do("mirror_emit", 7, "ig_m")),
		egress:     prims(set("eg_h.c", "eg_intr.pkt_length")),
	}
	p.check(t, mirrorTo(t, 7, MirrorSession{Port: 9, HasPort: true}), "01020304 aabbccdd ee", "9:0001000d01020304aabbccddee 3:aabb0009ee")
	p.check(t, mirrorTo(t, 7, MirrorSession{Port: 9, HasPort: true, Length: 6}), "01020304 aabbccdd ee", "9:000100060102 3:aabb0009ee")
}

// If the caller keeps the payload, all lengths still include it.
func TestPipeHead(t *testing.T) {
	s := pipeProgram{ingress: prims(set(toPort3, 3)), inDeparser: prims(do("mirror_emit", 7)), egress: prims(set("eg_h.c", "eg_intr.pkt_length"))}.start(t, Options{})
	must(t, s.Mirrors().Set(7, MirrorSession{Port: 9, HasPort: true, Length: 20}))
	out := s.Ingress(s.receiveHead(1, unhex(t, "01020304aabb"), 1000, time.Second), time.Second, nil)
	if len(out) != 2 || out[0].Packet.Len() != 20 || out[0].Packet.extraBytes() != 14 || out[1].Packet.Len() != 1006 || out[1].Packet.extraBytes() != 1000 {
		t.Fatalf("%+v", out)
	}
	if n := s.cells(out[1].Packet); n != 13 {
		t.Errorf("1006 bytes are %d cells", n)
	}
	out = s.Egress(out[1].Packet, 0, time.Second, nil)
	if b := out[0].Packet.Bytes(); !bytes.Equal(b, unhex(t, "010203eeaabb")) || out[0].Packet.extraBytes() != 1000 {
		t.Errorf("%x and %d bytes", b, out[0].Packet.extraBytes())
	}
}

func TestPipeTrace(t *testing.T) {
	var got []string
	p := pipeProgram{ingress: prims(set(toPort3, "ig_h.c")), inDeparser: prims(do("mirror_emit", 7))}
	s := p.start(t, Options{Trace: func(e Event) {
		if e.Kind != EventAction {
			got = append(got, fmt.Sprintf("%d %v %s%d", e.Packet, e.Kind, e.Name, e.Value))
		}
	}})
	must(t, s.Mirrors().Set(7, MirrorSession{Port: 9, HasPort: true}))
	e := NewEngine(s)
	sent(t, e, 5, "01020044", time.Second)
	want := []string{
		"1 parse state start0", "1 clone 7", "2 enqueue 9", "1 enqueue 68", "2 parse state start0", "2 transmit 9", "1 parse state start0",
		"1 recirculate 0", "3 parse state start0", "3 clone 7", "4 enqueue 9", "3 enqueue 68",
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("events\n%q, want\n%q", got[:min(len(got), len(want))], want)
	}
}

func TestPipeRegisters(t *testing.T) {
	p := pipeProgram{
		registers: []*bmv2.RegisterArray{{Name: "r", Size: 4, Bitwidth: 16, Initial: "0xbeef"}, {Name: "w", ID: 1, Size: 2, Bitwidth: 80, Initial: "0x1234567890abcdef1122"}},
		ingress: prims(set(toPort3, 3), do("register_read", "ig_h.c", bmv2.Ref(bmv2.TypeRegisterArray, "r"), "ig_h.a"),
			do("register_write", bmv2.Ref(bmv2.TypeRegisterArray, "r"), "ig_h.a", 1)),
	}
	s := p.start(t, Options{})
	e := NewEngine(s)
	for _, want := range []string{"3:0200beef", "3:02000001"} {
		if got := sent(t, e, 5, "02000000", time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	must(t, s.Registers().Reset("r"))
	if v, err := s.Registers().Read("r", 2); err != nil || v.Int64() != 0xbeef {
		t.Errorf("after a reset %v, %v", v, err)
	}
	if v, err := s.Registers().Read("w", 1); err != nil || v.Text(16) != "1234567890abcdef1122" {
		t.Errorf("a wide cell starts with %v, %v", v, err)
	}
	must(t, s.Registers().Write("r", 1, big.NewInt(7)))
}

// register_entry returns the entry that the table has hit.
func TestRegisterEntry(t *testing.T) {
	p := pipeProgram{
		ingress: prims(set(toPort3, 3)), first: "t",
		registers: []*bmv2.RegisterArray{{Name: "r", Size: 4, Bitwidth: 16}},
		actions: []*bmv2.Action{{Name: "count", ID: 2, Primitives: prims(do("register_entry", "ig_md.x"),
			do("register_read", "ig_h.c", bmv2.Ref(bmv2.TypeRegisterArray, "r"), "ig_md.x"),
			do("register_write", bmv2.Ref(bmv2.TypeRegisterArray, "r"), "ig_md.x", bmv2.Op2("+", bmv2.FieldOf("ig_h", "c"), bmv2.HexInt(1, 0))))}},
		tables: []*bmv2.Table{{
			Name: "t", Key: []*bmv2.TableKey{{MatchType: "exact", Target: bmv2.FieldRef{Header: "ig_h", Field: "a"}}}, MatchType: "exact", Type: "simple", MaxSize: 4,
			ActionIDs: []int{2}, Actions: []string{"count"}, NextTables: bmv2.NextTables{{Label: "count"}}, DefaultEntry: &bmv2.DefaultEntry{ActionID: 2},
		}},
	}
	s := p.start(t, Options{})
	for _, a := range []byte{9, 8} {
		_, err := s.Tables().Add("t", Entry{Match: []Match{{Value: []byte{a}}}, Target: act("count")})
		must(t, err)
	}
	e := NewEngine(s)
	for i, c := range [][2]string{{"09000000", "3:09000000"}, {"08000000", "3:08000000"}, {"08000000", "3:08000001"}, {"07000055", "3:07000055"}, {"09000000", "3:09000001"}} {
		if got := sent(t, e, 5, c[0], time.Second); got != c[1] {
			t.Errorf("packet %d: %q, want %q", i, got, c[1])
		}
	}
}

// A parser computes sums in ones' complement (RFC 1071). The header has the words
// f001 and 2001 and an unset c of 0. The words behind it are f002, 1003 and ff00.
// f001 + 2001 = 11002, and the carry makes it 1003.
func TestPipeChecksums(t *testing.T) {
	input := []*bmv2.Expr{bmv2.FieldOf("ig_h", "a"), bmv2.FieldOf("ig_h", "b"), bmv2.FieldOf("ig_h", "c")}
	p := pipeProgram{
		calculations: []*bmv2.Calculation{{Name: "k", Algo: "csum16", Input: input}},
		ingress:      prims(set(toPort3, 3), set("ig_h.c", "ig_md.sum")),
	}
	calc := bmv2.Ref(bmv2.TypeCalculation, "k")
	add, subtract := do("csum_add", "ig_md.sum", calc), do("csum_subtract", "ig_md.sum", calc)
	for _, c := range []struct {
		ops  []*bmv2.Primitive
		want string
	}{
		{prims(add), "1003"},
		{prims(add, add), "2006"},
		{prims(add, subtract), "ffff"},
		{prims(subtract), "effc"},
	} {
		g := p
		g.inState = []*bmv2.ParserOp{advance(64), extract("ig_h")}
		for _, op := range c.ops {
			g.inState = append(g.inState, &bmv2.ParserOp{Op: "primitive", Primitive: op})
		}
		g.check(t, nil, "f0012001 f0021003ff", "3:f001"+c.want+"f0021003ff")
	}
}

// After a swap to another architecture the queues count in its units.
func TestSwapToPipe(t *testing.T) {
	e := reflector(t)
	e.Queues(func(q *Queues) { q.SetAllRates(1) })
	depths := pipeProgram{ingress: prims(set(toPort3, 3)), egress: prims(set("eg_h.b", "eg_intr.enq_qdepth"))}
	e.Swap(depths.start(t, Options{}))
	for range 3 {
		e.Process(1, make([]byte, 200), time.Second)
	}
	var got []byte
	for _, o := range e.Run(time.Hour) {
		got = append(got, o.Data[1])
	}
	if !bytes.Equal(got, []byte{0, 3}) { // the first one leaves at once
		t.Errorf("packets of three cells met %v", got)
	}
	e.Swap(load(t, "reflector", Options{}))
	if out := e.Process(1, udp(60, 1, 2, 3, 4), 2*time.Hour); len(out) != 1 {
		t.Errorf("%d packets leave after the way back", len(out))
	}
}
