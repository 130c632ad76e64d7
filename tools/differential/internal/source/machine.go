package source

import (
	"fmt"
	"math/big"
)

// A Packet is a packet that leaves.
type Packet struct {
	Port uint32
	Data []byte
}

// A Digest is a digest message: its fields in whole bytes.
type Digest struct{ Data []byte }

// A Machine runs a program.
type Machine struct {
	Prog *Program
	// Wrong makes the machine swap the operands of each subtraction, to test that
	// comparisons detect the error.
	Wrong bool
	// Applied counts the applied tables.
	Applied int

	Out     []Packet
	Digests []Digest

	data   []byte // the packet that the parser reads
	at     int    // its position in bits
	out    []byte // the deparser's output so far
	outLen int    // length of out in bits
	steps  int
	result Value

	// The requests of v1model's ingress and egress.
	clone *cloning
	again int // field list of the requested resubmit or recirculate, or -1
	todo  []job

	// The request of Tofino's deparser, or nil.
	resubmit []byte
	mirror   *mirrored
}

// A mirrored is a mirror that the deparser has requested: the session, and the
// header before the packet.
type mirrored struct {
	session uint32
	header  []byte
}

type cloning struct{ session, list int }

// A job is a packet at the start of ingress or egress.
type job struct {
	egress   bool
	data     []byte
	port     uint32 // ingress or egress port
	instance int64
	rid      uint32
	hdr      Value  // headers, for egress
	meta     Value  // preserved metadata
	payload  []byte // bytes after the parsed headers, for egress
	in       uint32 // the ingress port, for egress
	length   int
}

// maxJobs bounds the copies of one packet.
const maxJobs = 64

// Process runs a packet. It returns an Undefined if the specification leaves the
// result undefined.
func (m *Machine) Process(port uint32, data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			u, ok := r.(undefined)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("undefined: %s", u.Name)
		}
	}()
	m.Out, m.Digests, m.steps = nil, nil, 0
	m.todo = []job{{data: data, port: port, length: len(data)}}
	for n := 0; len(m.todo) > 0; n++ {
		if n == maxJobs {
			panic(undefined{"too many copies"})
		}
		j := m.todo[0]
		m.todo = m.todo[1:]
		switch {
		case m.Prog.Tofino != nil:
			m.tofino(j)
		case j.egress:
			m.egress(j)
		default:
			m.ingress(j)
		}
	}
	return nil
}

// std sets a field of the standard metadata.
func (m *Machine) std(name string, v Value) {
	t := m.Prog.Std.Type.(*Struct)
	for i, f := range t.Fields {
		if f.Name == name {
			m.Prog.Std.cur.(*agg).Elems[i] = v
		}
	}
}

func (m *Machine) stdNum(name string) int64 {
	t := m.Prog.Std.Type.(*Struct)
	for i, f := range t.Fields {
		if f.Name == name {
			return num(m.Prog.Std.cur.(*agg).Elems[i]).Int64()
		}
	}
	panic("no field " + name)
}

// runBlock runs a control. An exit statement ends it.
func (m *Machine) runBlock(f func()) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exits); !ok {
				panic(r)
			}
		}
	}()
	f()
}

func (m *Machine) control(c *Callable) {
	m.runBlock(func() {
		for _, d := range c.Decls {
			d.exec(m)
		}
		c.Body.exec(m)
	})
}

// parse runs the parser over data, with fresh headers. It reports whether the
// parser failed, and the name of the error.
func (m *Machine) parse(p *Parser, data []byte) (failed bool, name string) {
	m.data, m.at = data, 0
	m.Prog.Hdr.cur = fresh(m.Prog.Hdr.Type)
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			failed, name = true, string(e)
		}
	}()
	p.run(m)
	return false, ""
}

// dropPort is the egress_spec of dropped packets.
const dropPort = 511

// Instance types of v1model.
const (
	fromPort     = 0
	ingressClone = 1
	egressClone  = 2
	recirculated = 4
	replicated   = 5
	resubmitted  = 6
)

// start prepares the metadata of v1model.
func (m *Machine) start(j job) {
	m.Prog.Meta.cur = zero(m.Prog.Meta.Type)
	if j.meta != nil {
		m.Prog.Meta.cur = clone(j.meta)
	}
	m.Prog.Std.cur = zero(m.Prog.Std.Type)
	m.std("instance_type", big.NewInt(j.instance))
	m.std("packet_length", big.NewInt(int64(j.length)))
	m.clone, m.again = nil, -1
}

// parsePacket runs the parser and records its error in the standard metadata.
func (m *Machine) parsePacket(data []byte) {
	_, name := m.parse(m.Prog.Parser, data)
	if name == "" {
		name = "NoError"
	}
	for i, member := range m.Prog.errorType().Members {
		if member == name {
			m.std("parser_error", i)
		}
	}
}

func (p *Program) errorType() *Enum {
	for _, f := range p.Std.Type.(*Struct).Fields {
		if f.Name == "parser_error" {
			return f.Type.(*Enum)
		}
	}
	panic("no errors")
}

// rest returns the bytes that are not extracted.
func (m *Machine) rest() []byte { return m.data[(m.at+7)/8:] }

func (m *Machine) ingress(j job) {
	m.start(j)
	m.std("ingress_port", big.NewInt(int64(j.port)))
	m.parsePacket(j.data)
	payload := m.rest()
	m.runBlock(func() { m.Prog.Verify.exec(m) })
	m.control(m.Prog.Ingress)
	if c := m.clone; c != nil {
		if to, ok := m.Prog.Sessions[uint32(c.session)]; ok {
			m.ingressClone(job{data: j.data, port: to, meta: m.preserved(c.list), in: j.port, length: j.length})
		}
	}
	if m.again >= 0 {
		// simple_switch preserves the length of a resubmitted packet, but not its
		// port.
		m.todo = append(m.todo, job{data: j.data, instance: resubmitted, meta: m.preserved(m.again), length: j.length})
		return
	}
	e := job{egress: true, hdr: m.Prog.Hdr.cur, meta: m.Prog.Meta.cur, payload: payload, in: uint32(m.stdNum("ingress_port")), length: j.length} // in egress the packet counts as a normal one again
	if g := m.stdNum("mcast_grp"); g != 0 {
		for _, r := range m.Prog.Groups[uint32(g)] {
			c := e
			c.port, c.rid, c.instance = r.Port, r.RID, replicated
			c.hdr, c.meta = clone(e.hdr), clone(e.meta)
			m.todo = append(m.todo, c)
		}
		return
	}
	if e.port = uint32(m.stdNum("egress_spec")); e.port != dropPort {
		m.todo = append(m.todo, e)
	}
}

// ingressClone parses the packet of an ingress clone again, with its ingress port
// and without metadata. The preserved metadata are restored afterwards. The clone
// enters the queue of its port before the original packet.
func (m *Machine) ingressClone(j job) {
	p := m.Prog
	hdr, meta, std, again := p.Hdr.cur, p.Meta.cur, p.Std.cur, m.again
	defer func() { p.Hdr.cur, p.Meta.cur, p.Std.cur, m.again = hdr, meta, std, again }()
	kept := j.meta
	j.meta = nil
	m.start(j)
	m.std("ingress_port", big.NewInt(int64(j.in)))
	m.parsePacket(j.data)
	m.todo = append(m.todo, job{egress: true, port: j.port, instance: ingressClone, hdr: m.Prog.Hdr.cur, meta: kept, payload: m.rest(), in: j.in, length: j.length})
}

// preserved returns fresh metadata in which the fields of a list are preserved.
func (m *Machine) preserved(list int) Value {
	t := m.Prog.Meta.Type.(*Struct)
	kept := zero(t).(*agg)
	note := fmt.Sprintf("@field_list(%d) ", list)
	for i, f := range t.Fields {
		if f.Notes == note {
			kept.Elems[i] = clone(m.Prog.Meta.cur.(*agg).Elems[i])
		}
	}
	return kept
}

func (m *Machine) egress(j job) {
	m.start(j)
	m.Prog.Hdr.cur = j.hdr
	m.std("ingress_port", big.NewInt(int64(j.in)))
	m.std("egress_port", big.NewInt(int64(j.port)))
	m.std("egress_rid", big.NewInt(int64(j.rid)))
	m.control(m.Prog.Egress)
	if c := m.clone; c != nil {
		if to, ok := m.Prog.Sessions[uint32(c.session)]; ok {
			m.todo = append(m.todo, job{egress: true, port: to, instance: egressClone, hdr: clone(m.Prog.Hdr.cur), meta: m.preserved(c.list), payload: j.payload, in: j.in, length: j.length})
		}
	}
	if m.stdNum("egress_spec") == dropPort {
		return
	}
	kept := Value(nil)
	if m.again >= 0 {
		kept = m.preserved(m.again)
	}
	m.Prog.Compute.exec(m)
	data := m.deparse(m.Prog.Deparser, j.payload)
	if m.again >= 0 {
		m.todo = append(m.todo, job{data: data, instance: recirculated, meta: kept, length: len(data)})
		return
	}
	m.Out = append(m.Out, Packet{j.port, data})
}

// deparse runs the deparser and returns its output followed by the payload.
func (m *Machine) deparse(b *Block, payload []byte) []byte {
	m.out, m.outLen = nil, 0
	b.exec(m)
	return append(m.out, payload...)
}

// write appends n bits to the packet.
func (m *Machine) write(n int, v *big.Int) {
	for i := n - 1; i >= 0; i-- {
		if m.outLen%8 == 0 {
			m.out = append(m.out, 0)
		}
		m.out[m.outLen/8] |= byte(v.Bit(i)) << (7 - m.outLen%8)
		m.outLen++
	}
}

// Emit returns pkt.emit(x). It emits a valid header, or the headers in a struct,
// stack or union.
func Emit(x *Expr) Stmt {
	return Do("pkt.emit("+x.Text+");", func(m *Machine) { m.emit(x.Type, x.eval(m)) })
}

func (m *Machine) emit(t Type, v Value) {
	switch t := t.(type) {
	case *Stack:
		for _, e := range v.(*agg).Elems {
			m.emit(t.Elem, e)
		}
	case *Struct:
		a := v.(*agg)
		if t.Kind != HeaderKind {
			for i, f := range t.Fields {
				m.emit(f.Type, a.Elems[i])
			}
			return
		}
		if a.Valid {
			for i, f := range t.Fields {
				m.write(width(f.Type, a.Elems[i]), bitsOf(f.Type, a.Elems[i]))
			}
		}
	}
}

// bitsOf returns the bits of a value as a non-negative number.
func bitsOf(t Type, v Value) *big.Int {
	if v == nil {
		panic(undefined{"a field in a packet"})
	}
	switch v := v.(type) {
	case bool:
		return big.NewInt(int64(b2i(v)))
	case bitstring:
		return v.V
	case *big.Int:
		if t, ok := t.(Bits); ok {
			return unsigned(t, v)
		}
		return v
	case *agg:
		n := new(big.Int)
		for i, f := range t.(*Struct).Fields {
			n.Lsh(n, uint(width(f.Type, v.Elems[i])))
			n.Or(n, bitsOf(f.Type, v.Elems[i]))
		}
		return n
	}
	panic(fmt.Sprintf("no bits of %T", v))
}
