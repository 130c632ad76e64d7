// Package program links BMv2 JSON to what runs: parsers, controls with their
// tables and actions, deparsers, as closures over a vector.State, and on Linux as
// machine code of amd64 or arm64 as well. Package dataplane puts ports, copies and
// queues around it.
package program

import (
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/cell"
	"github.com/p4lb/p4lb/dataplane/hash"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A Program is a linked program: what its parsers, controls and deparsers do to a
// State. It knows neither queues nor ports, and one packet is in it at a time.
type Program struct {
	Config  *bmv2.Config
	opts    Env
	Layout  *vector.Layout
	Scratch vector.Scratch
	bits    num.BitWriter // of the deparsers
	Std     stdFields

	Compiled *compiled // nil: the closures run
	Halves   []*Half   // of the pipes of Tofino
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
	ValueSets  map[string]*valueSet
}

// An Env is what a program is linked to beside itself; see dataplane.Options.
type Env struct {
	DropPort int
	Closures bool
	Random   func(lo, hi uint64) uint64
	Log      func(line string)
	Trace    func(Event)
	// PortData is the bytes of port metadata of Tofino.
	PortData int
}

// A Half is what one half of a pipe of Tofino runs.
type Half struct {
	name       string
	Parser     *Parser
	Control    *Pipeline
	Deparser   *deparser
	ReadsError bool // its control looks at parser_err
}

// New links a program that has been validated.
func New(c *bmv2.Config, env Env) (*Program, error) {
	s := &Program{
		Config: c, opts: env, actionByID: map[int]*action{}, Tables: map[string]*Table{}, Controls: map[string]*Pipeline{},
		Profiles: map[string]*Profile{}, Registers: map[string]*cell.Register{},
		Counters: map[string]*cell.Counters{}, Meters: map[string]*cell.Meters{}, Filters: map[string]*cell.Filters{},
		Calcs: map[string]*hash.Calculation{}, ValueSets: map[string]*valueSet{},
	}
	var err error
	if s.Layout, err = vector.NewLayout(c); err != nil {
		return nil, err
	}
	l := s.NewLinker()
	if s.Tofino() {
		err = inTurn(c, l.arrays, l.calculations, l.allActions, l.pipelines, l.linkHalves)
	} else if err = s.Std.find(s.Layout); err == nil {
		err = inTurn(c, l.arrays, l.calculations, l.allActions, l.parse, l.pipelines, l.deparse, l.checksums)
	}
	if err != nil {
		return nil, err
	}
	s.compile(l, c)
	return s, nil
}

// Tofino reports whether the program is one for Tofino.
func (s *Program) Tofino() bool { return s.Config.Architecture() != "" }

// A Linker turns the actions, tables and parsers of a program into closures over
// the vector. It lives only while a Program is made.
type Linker struct {
	*vector.Linker
	prog *Program
}

// NewLinker makes the linker of a program, for more than New has linked.
func (s *Program) NewLinker() *Linker {
	l := &Linker{&vector.Linker{Layout: s.Layout}, s}
	l.Cells = l
	return l
}

// A StdField is a field that the switch itself reads or writes.
type StdField struct {
	off  int
	Mask uint64
	OK   bool
}

// stdFields are all of them, under the names that simple_switch looks for.
type stdFields struct {
	IngressPort, PacketLength, InstanceType, EgressSpec, EgressPort StdField
	ParserError, ChecksumError                                      StdField
	IngressTime, EgressTime, McastGrp, EgressRid, Priority          StdField
	EnqTime, EnqDepth, DeqDelta, DeqDepth, Qid                      StdField
	Queueing                                                        bool
}

func inTurn(c *bmv2.Config, steps ...func(*bmv2.Config) error) error {
	for _, step := range steps {
		if err := step(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *Linker) arrays(c *bmv2.Config) error {
	s := l.prog
	for _, r := range c.RegisterArrays {
		if r.Size*num.Words(r.Bitwidth) > maxCells {
			return fmt.Errorf("register %s has more than %d words", r.Name, maxCells)
		}
		s.Registers[r.Name] = cell.NewRegister(r)
	}
	for _, k := range c.CounterArrays {
		a := &cell.Counters{Name: k.Name}
		if k.IsDirect {
			a.Table = k.Binding
		} else {
			a.Cells = make([]cell.Count, k.Size)
		}
		s.Counters[k.Name] = a
	}
	for _, m := range c.MeterArrays {
		a, err := cell.NewMeters(m)
		if err != nil {
			return fmt.Errorf("meter %s: %w", m.Name, err)
		}
		if m.ResultTarget != nil {
			if a.Target, err = l.Layout.Field(m.ResultTarget.Header, m.ResultTarget.Field); err != nil {
				return fmt.Errorf("meter %s: %w", m.Name, err)
			}
		}
		s.Meters[m.Name] = a
	}
	for _, f := range c.FilterArrays {
		s.Filters[f.Name] = cell.NewFilters(f)
	}
	for _, v := range c.ParseVSets {
		s.ValueSets[v.Name] = newValueSet(v)
	}
	return nil
}

// maxCells bounds the words of one register array.
const maxCells = 1 << 26

func (l *Linker) calculations(c *bmv2.Config) error {
	for _, k := range c.Calculations {
		calc, err := hash.NewCalculation(l.Linker, k)
		if err != nil {
			return fmt.Errorf("calculation %s: %w", k.Name, err)
		}
		l.prog.Calcs[k.Name] = calc
	}
	return nil
}

func (l *Linker) allActions(c *bmv2.Config) error {
	for _, a := range c.Actions {
		act, err := l.action(a)
		if err != nil {
			return err
		}
		l.prog.actions = append(l.prog.actions, act)
		l.prog.actionByID[a.ID] = act
	}
	l.Params = nil
	return nil
}

// ActionByName is the action of a name, or nil.
func (s *Program) ActionByName(name string) *action {
	for _, a := range s.actions {
		if a.name == name {
			return a
		}
	}
	return nil
}

func (l *Linker) parse(c *bmv2.Config) (err error) {
	l.prog.parser, err = l.parser(c, "parser")
	return err
}

func (l *Linker) deparse(c *bmv2.Config) (err error) {
	l.prog.Deparser, err = l.deparser(c, "deparser")
	return err
}

func (l *Linker) pipelines(c *bmv2.Config) error {
	for _, p := range c.Pipelines {
		pl, err := l.pipeline(p)
		if err != nil {
			return fmt.Errorf("pipeline %s: %w", p.Name, err)
		}
		l.prog.Controls[p.Name] = pl
	}
	l.prog.Ingress, l.prog.Egress = l.prog.Controls["ingress"], l.prog.Controls["egress"]
	return nil
}

// find looks the fields up. The five that simple_switch insists on must be
// there.
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

// linkHalves links the parsers and deparsers of the pipes.
func (l *Linker) linkHalves(c *bmv2.Config) (err error) {
	for k := range c.Programs() {
		for _, gress := range []string{"ingress", "egress"} {
			h := &Half{name: bmv2.PipePrefix(k) + gress}
			h.Control = l.prog.Controls[h.name]
			if h.Parser, err = l.parser(c, h.name+"_parser"); err != nil {
				return fmt.Errorf("%s parser: %w", h.name, err)
			}
			if h.Deparser, err = l.deparser(c, h.name+"_deparser"); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			i := slices.IndexFunc(c.Parsers, func(p *bmv2.Parser) bool { return p.Name == h.name+"_parser" })
			h.ReadsError = c.Parsers[i].ReadsError
			l.prog.Halves = append(l.prog.Halves, h)
		}
	}
	return nil
}

// Put writes a field of the switch's own, if the program has it.
func (f *StdField) Put(w []uint64, v uint64) {
	if f.OK {
		w[f.off] = v & f.Mask
	}
}

// Get reads the field; what the program does not have is 0.
func (f *StdField) Get(w []uint64) uint64 {
	if f.OK {
		return w[f.off]
	}
	return 0
}

// Find looks up a field by the name of its header and its own.
func (f *StdField) Find(l *vector.Layout, header, name string) {
	if fd, err := l.Field(header, name); err == nil {
		*f = StdField{off: fd.Off, Mask: num.Mask64(min(fd.Width, 64)), OK: true}
	}
}
