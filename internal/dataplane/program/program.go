// Package program links BMv2 JSON to parsers, controls with tables and actions,
// and deparsers that run on a vector.State. It links them to closures, and on
// Linux also to machine code for amd64 or arm64. Package dataplane adds ports,
// copies and queues.
package program

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Program is a linked program: its parsers, controls and deparsers, and the
// state of its tables and arrays. It has no queues or ports, and processes one
// packet at a time.
type Program struct {
	Config  *bmv2.Config
	opts    Env
	Layout  *vector.Layout
	Scratch vector.Scratch
	bits    num.BitWriter // writer for the deparsers
	Std     stdFields

	Compiled *compiled // nil: closures run
	Halves   []*Half   // halves of the pipes, for Tofino
	parser   *Parser
	Ingress  *Pipeline
	Egress   *Pipeline
	Deparser *deparser
	Controls map[string]*Pipeline
	updates  []*checksum
	verifies []*checksum
	Asked    requests

	actions    []*action
	actionByID map[int]*action
	Tables     map[string]*Table
	Profiles   map[string]*Profile
	Registers  map[string]*cell.Register
	Counters   map[string]*cell.Counters
	Meters     map[string]*cell.Meters
	Filters    map[string]*cell.Filters
	Calcs      map[string]*hash.Calculation
	Late       cell.Late // counters that count the current packet when it leaves
	ValueSets  map[string]*valueSet
}

// An Env holds the settings of a program; see dataplane.Options.
type Env struct {
	DropPort int
	Closures bool
	// LeaveToGo makes machine code return to Go wherever it can.
	LeaveToGo bool
	Random    func(lo, hi uint64) uint64
	Log       func(line string)
	Trace     func(Event)
	// PortData is the number of bytes of Tofino's port metadata.
	PortData int
}

// A Half is the program of one half of a pipe of Tofino.
type Half struct {
	name       string
	Parser     *Parser
	Control    *Pipeline
	Deparser   *deparser
	ReadsError bool // the control reads parser_err
}

// Tofino reports whether the program is for Tofino.
func (s *Program) Tofino() bool { return s.Config.Architecture() != "" }

// A Linker turns the actions, tables and parsers of a program into closures
// over the vector.
type Linker struct {
	*vector.Linker
	prog *Program
	call *bmv2.Primitive // the call being linked
}

// NewLinker returns the linker of a program.
func (s *Program) NewLinker() *Linker {
	l := &Linker{Linker: &vector.Linker{Layout: s.Layout}, prog: s}
	l.Cells = l
	return l
}

// A StdField is a field that the switch reads or writes.
type StdField struct {
	off  int
	Mask uint64
	OK   bool
}

// stdFields are the standard fields under simple_switch's names.
type stdFields struct {
	IngressPort, PacketLength, InstanceType, EgressSpec, EgressPort StdField
	ParserError, ChecksumError                                      StdField
	IngressTime, EgressTime, McastGrp, EgressRid, Priority          StdField
	EnqTime, EnqDepth, DeqDelta, DeqDepth, Qid                      StdField
	Queueing                                                        bool
}

// ActionByName returns the action called name, or nil.
func (s *Program) ActionByName(name string) *action {
	for _, a := range s.actions {
		if a.name == name {
			return a
		}
	}
	return nil
}

// find looks up the fields. Like simple_switch it requires five of them.
func (f *stdFields) find(l *vector.Layout) error {
	for _, x := range []struct {
		dst          *StdField
		header, name string
		required     bool
	}{
		{&f.IngressPort, "standard_metadata", "ingress_port", true},
		{&f.PacketLength, "standard_metadata", "packet_length", true},
		{&f.InstanceType, "standard_metadata", "instance_type", true},
		{&f.EgressSpec, "standard_metadata", "egress_spec", true},
		{&f.EgressPort, "standard_metadata", "egress_port", true},
		{&f.ParserError, "standard_metadata", "parser_error", false},
		{&f.ChecksumError, "standard_metadata", "checksum_error", false},
		{&f.IngressTime, "intrinsic_metadata", "ingress_global_timestamp", false},
		{&f.EgressTime, "intrinsic_metadata", "egress_global_timestamp", false},
		{&f.McastGrp, "intrinsic_metadata", "mcast_grp", false},
		{&f.EgressRid, "intrinsic_metadata", "egress_rid", false},
		{&f.Priority, "intrinsic_metadata", "priority", false},
		{&f.EnqTime, "queueing_metadata", "enq_timestamp", false},
		{&f.EnqDepth, "queueing_metadata", "enq_qdepth", false},
		{&f.DeqDelta, "queueing_metadata", "deq_timedelta", false},
		{&f.DeqDepth, "queueing_metadata", "deq_qdepth", false},
		{&f.Qid, "queueing_metadata", "qid", false},
	} {
		fd, ok := l.Target(x.header, x.name)
		if !ok && x.required {
			return fmt.Errorf("the program lacks the field %s.%s", x.header, x.name)
		}
		*x.dst = StdField{off: fd.Off, Mask: num.Mask64(min(fd.Width, 64)), OK: ok}
	}
	f.Queueing = f.EnqTime.OK && f.EnqDepth.OK && f.DeqDelta.OK && f.DeqDepth.OK
	return nil
}

// Put writes the field if the program has it.
func (f *StdField) Put(w []uint64, v uint64) {
	if f.OK {
		w[f.off] = v & f.Mask
	}
}

// Get returns the value of the field, or 0 if the program does not have it.
func (f *StdField) Get(w []uint64) uint64 {
	if f.OK {
		return w[f.off]
	}
	return 0
}

// Find looks up a field by the name of its header and its own name.
func (f *StdField) Find(l *vector.Layout, header, name string) {
	if fd, err := l.Field(header, name); err == nil {
		*f = StdField{off: fd.Off, Mask: num.Mask64(min(fd.Width, 64)), OK: true}
	}
}

// A requests holds the requests of a deparser. If it makes several, the last one
// counts.
type requests struct {
	Mirror, Resubmit bool
	Session          uint16
	Mirrored, Again  []byte // the headers of mirror and resubmit
}

// Clear removes the requests of the last packet.
func (r *requests) Clear() { *r = requests{Mirrored: r.Mirrored[:0], Again: r.Again[:0]} }

// Passive reports whether the bytes of a packet do not depend on its time in
// the queue: the program has no egress control, and its deparser reads only
// headers.
func (s *Program) Passive() bool {
	c, l := s.Config, s.NewLinker()
	if s.Tofino() || s.opts.Trace != nil || s.Egress != nil && s.Egress.first != nil || s.Deparser.before.code != nil {
		return false
	}
	for _, sum := range s.updates {
		i := slices.IndexFunc(c.Calculations, func(k *bmv2.Calculation) bool { return k.Name == sum.src.Calculation })
		if i < 0 || !l.headersOnly(sum.src.IfCond) || slices.ContainsFunc(c.Calculations[i].Input, func(e *bmv2.Expr) bool { return !l.headersOnly(e) }) {
			return false
		}
	}
	return true
}

// headersOnly reports whether an expression reads only headers and their
// fields.
func (l *Linker) headersOnly(e *bmv2.Expr) bool {
	if e = e.Unwrap(); e == nil {
		return true
	}
	switch e.Type {
	case bmv2.TypeHexstr, bmv2.TypeBool:
		return true
	case bmv2.TypeField, bmv2.TypeHeader:
		h := l.Layout.HeaderNames[e.Name]
		return h != nil && !h.Metadata
	case bmv2.TypeExpression:
		return l.headersOnly(e.Left) && l.headersOnly(e.Right) && l.headersOnly(e.Cond)
	}
	return false
}

// Trace reports an event. Callers check first that there is a receiver.
func (s *Program) Trace(p *vector.State, e Event) {
	e.Packet, e.state = p.ID, p
	s.opts.Trace(e)
}

// Read returns the headers and metadata of the packet of an event. It may be called
// only within Trace.
func (s *Program) Read(e Event) []Reading {
	var list []Reading
	for _, h := range s.Layout.Headers {
		if !h.IsValid(e.state) {
			continue
		}
		for _, f := range h.Type.Fields {
			at := h.Base + f.Off
			width := f.Width
			if f.VarLen {
				width = int(e.state.W[at-1])
			}
			v := new(big.Int)
			for i := f.Words() - 1; i >= 0; i-- {
				v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(e.state.W[at+i]))
			}
			if v.BitLen() > width { // sign-extend a negative number to full words
				v.And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(width)), big.NewInt(1)))
			}
			list = append(list, Reading{h.Name, f.Name, width, v})
		}
	}
	return list
}
