package source

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// A Tofino holds the parts of a program that exist only for Tofino. The variables
// are the parameters of the same names in ingress (the first three) and egress.
type Tofino struct {
	In, TM, Dprsr  *Var
	Out, OutDprsr  *Var
	EgressParser   *Parser
	EgressDeparser *Block
	DeparserDecls  []Stmt
	EgressDecls    []Stmt
}

// noPort is the initial value of ucast_egress_port.
var noPort = big.NewInt(511)

func zeroFields(names string) *Struct {
	t := &Struct{}
	for _, n := range strings.Fields(names) {
		name, w, _ := strings.Cut(n, ":")
		bits := 0
		fmt.Sscan(w, &bits)
		t.Fields = append(t.Fields, Field{Name: name, Type: Bits{Width: bits}})
	}
	return t
}

// NewTofino returns the variables of the intrinsic metadata.
func NewTofino(arch string) *Tofino {
	mirror, selects := 3, ""
	if arch == T2NA {
		mirror, selects = 4, " mirror_io_select:1"
	}
	return &Tofino{
		In:       &Var{Name: "ig", Type: zeroFields("ingress_port:9 resubmit_flag:1")},
		TM:       &Var{Name: "tm", Type: zeroFields("ucast_egress_port:9 mcast_grp_a:16 rid:16")},
		Dprsr:    &Var{Name: "dprsr", Type: zeroFields(fmt.Sprintf("drop_ctl:3 resubmit_type:3 digest_type:3 mirror_type:%d%s", mirror, selects))},
		Out:      &Var{Name: "eg", Type: zeroFields("egress_port:9 egress_rid:16")},
		OutDprsr: &Var{Name: "eg_dprsr", Type: zeroFields(fmt.Sprintf("drop_ctl:3 mirror_type:%d%s", mirror, selects))},
	}
}

// TofinoStart returns the statements that begin an ingress parser.
func TofinoStart(p *Program) []Stmt {
	return []Stmt{needed("pkt.extract(ig);"), needed("pkt.advance(PORT_METADATA_SIZE);")}
}

// TofinoEgressStart returns the statements that begin an egress parser.
func TofinoEgressStart() []Stmt { return []Stmt{needed("pkt.extract(eg);")} }

// needed returns a statement that the chip needs although it has no effect in the
// evaluator.
func needed(text string) Stmt {
	s := Do(text, func(*Machine) {})
	s.Needed = true
	return s
}

const (
	ingressParams = ", in ingress_intrinsic_metadata_t ig, in ingress_intrinsic_metadata_from_parser_t prsr, " +
		"inout ingress_intrinsic_metadata_for_deparser_t dprsr, inout ingress_intrinsic_metadata_for_tm_t tm)"
	egressParams = ", in egress_intrinsic_metadata_t eg, in egress_intrinsic_metadata_from_parser_t prsr, " +
		"inout egress_intrinsic_metadata_for_deparser_t eg_dprsr, inout egress_intrinsic_metadata_for_output_port_t oport)"
)

func (p *Program) printTofino(w *printer) {
	t, h, m := p.Tofino, p.Hdr.Type, p.Meta.Type
	args := fmt.Sprintf("(inout %s hdr, inout %s meta", h, m)
	p.Ingress.printControl(w, args+ingressParams)
	deparser := func(name, intrinsic string, decls []Stmt, b *Block) {
		w.Open(fmt.Sprintf("control %s(packet_out pkt, inout %s hdr, in %s meta, in %s) {", name, h, m, intrinsic))
		for _, d := range decls {
			d.print(w)
		}
		w.block("apply {", b, "}")
		w.Close("}")
	}
	deparser("Dep", "ingress_intrinsic_metadata_for_deparser_t dprsr", t.DeparserDecls, p.Deparser)
	t.EgressParser.print(w)
	p.Egress.printControl(w, args+egressParams)
	deparser("EgDep", "egress_intrinsic_metadata_for_deparser_t eg_dprsr", t.EgressDecls, t.EgressDeparser)
	w.Line("Pipeline(%s(), %s(), Dep(), %s(), %s(), EgDep()) pipe;", p.Parser.Name, p.Ingress.Name, t.EgressParser.Name, p.Egress.Name)
	w.Line("Switch(pipe) main;")
}

func (t *Tofino) blocks(f func(*Block)) {
	for _, s := range t.EgressParser.States {
		s.Body.visit(f)
	}
	t.EgressDeparser.visit(f)
}

func (v *Var) field(name string) int {
	for i, f := range v.Type.(*Struct).Fields {
		if f.Name == name {
			return i
		}
	}
	panic("no field " + name)
}

func (v *Var) set(name string, n int64) { v.cur.(*agg).Elems[v.field(name)] = big.NewInt(n) }

func (v *Var) num(name string) int64 { return num(v.cur.(*agg).Elems[v.field(name)]).Int64() }

// tofino runs ingress or egress of the pipe.
func (m *Machine) tofino(j job) {
	if j.egress {
		m.tofinoEgress(j)
		return
	}
	t := m.Prog.Tofino
	t.In.cur, t.TM.cur, t.Dprsr.cur = zero(t.In.Type), zero(t.TM.Type), zero(t.Dprsr.Type)
	t.In.set("ingress_port", int64(j.port))
	t.TM.set("ucast_egress_port", noPort.Int64())
	again := j.instance == resubmitted
	t.In.set("resubmit_flag", int64(b2i(again)))
	m.resubmit, m.mirror = nil, nil
	m.Prog.Meta.cur = fresh(m.Prog.Meta.Type)
	if _, name := m.parse(m.Prog.Parser, j.data); dropsPacket(name) {
		return
	}
	payload := m.rest()
	m.control(m.Prog.Ingress)
	out := m.deparse(m.Prog.Deparser, payload)
	dropped := t.Dprsr.num("drop_ctl")&1 != 0
	if m.resubmit != nil && !dropped {
		if !again { // TNA 7.14: a second resubmit drops the packet
			m.todo = append(m.todo, job{data: j.data, port: j.port, instance: resubmitted, length: j.length})
		}
		return
	}
	m.sendMirror(t.Dprsr, j.data, out)
	if dropped {
		return
	}
	for _, r := range m.Prog.Groups[uint32(t.TM.num("mcast_grp_a"))] {
		m.todo = append(m.todo, job{egress: true, data: out, port: r.Port, rid: r.RID, length: len(out)})
	}
	if port := t.TM.num("ucast_egress_port"); port != noPort.Int64() {
		m.todo = append(m.todo, job{egress: true, data: out, port: uint32(port), length: len(out)})
	}
}

func (m *Machine) tofinoEgress(j job) {
	t := m.Prog.Tofino
	t.Out.cur, t.OutDprsr.cur = zero(t.Out.Type), zero(t.OutDprsr.Type)
	t.Out.set("egress_port", int64(j.port))
	t.Out.set("egress_rid", int64(j.rid))
	if m.Prog.Arch == T2NA {
		t.OutDprsr.set("mirror_io_select", 1)
	}
	m.resubmit, m.mirror = nil, nil
	m.Prog.Meta.cur = fresh(m.Prog.Meta.Type)
	if _, name := m.parse(t.EgressParser, j.data); dropsPacket(name) {
		// Egress would process the packet, with unpredictable results (TNA 5.2.1).
		panic(undefined{"the headers after an error in an egress parser"})
	}
	payload := m.rest()
	m.control(m.Prog.Egress)
	out := m.deparse(t.EgressDeparser, payload)
	m.sendMirror(t.OutDprsr, j.data, out)
	switch {
	case t.OutDprsr.num("drop_ctl")&1 != 0:
	case j.port == Loopback(m.Prog.Arch):
		m.todo = append(m.todo, job{data: out, port: j.port, length: len(out)})
	default:
		m.Out = append(m.Out, Packet{j.port, out})
	}
}

// sendMirror sends the mirror that the deparser has requested (TNA 7.10). It copies
// the packet as ingress received it, or as egress sends it. On Tofino 2,
// mirror_io_select chooses; 1 means the packet that leaves.
func (m *Machine) sendMirror(dprsr *Var, received, sent []byte) {
	if m.mirror == nil || dprsr.num("drop_ctl")&4 != 0 {
		return
	}
	data := received
	if m.Prog.Arch == T2NA && dprsr.num("mirror_io_select") != 0 || m.Prog.Arch == TNA && dprsr == m.Prog.Tofino.OutDprsr {
		data = sent
	}
	data = slices.Concat(m.mirror.header, data)
	if to, ok := m.Prog.Sessions[m.mirror.session]; ok {
		m.todo = append(m.todo, job{egress: true, data: data, port: to, length: len(data)})
	}
}

// Loopback returns a port whose packets return to ingress.
func Loopback(arch string) uint32 {
	if arch == T2NA {
		return 6
	}
	return 68
}

// dropsPacket reports whether a parser error drops the packet, which happens if the
// program does not read parser_err. Of the errors of core.p4, Tofino knows these
// two; other errors only end the parser.
func dropsPacket(name string) bool { return name == string(errTooShort) || name == string(errNoMatch) }
