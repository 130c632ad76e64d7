package dataplane

import (
	"fmt"
	"sync"
	"time"

	"github.com/p4lb/p4lb/bmv2"
	"github.com/p4lb/p4lb/dataplane/cell"
	"github.com/p4lb/p4lb/dataplane/hash"
	"github.com/p4lb/p4lb/dataplane/num"
	"github.com/p4lb/p4lb/dataplane/vector"
)

// A Switch is a program at work: simple_switch without clock, sockets and
// threads. All methods may be called from any goroutine; packets go through it
// one at a time, and a change from the control plane takes effect between two
// of them.
type Switch struct {
	mu   sync.Mutex
	cfg  *bmv2.Config
	opts Options
	lay  *vector.Layout
	ex   vector.Scratch
	bits num.BitWriter // of the deparser
	std  stdFields
	// tofino is set for a program for Tofino, which then runs it.
	tofino *tofino

	compiled *compiled // nil: the closures run
	parser   *parser
	ingress  *pipeline
	egress   *pipeline
	deparser *deparser
	updates  []*checksum
	verifies []*checksum
	headroom int
	passive  bool // what egress does depends on the headers alone

	actions    []*action
	actionByID map[int]*action
	tables     map[string]*table
	profiles   map[string]*profile
	registers  map[string]*cell.Register
	counters   map[string]*cell.Counters
	meters     map[string]*cell.Meters
	filters    map[string]*cell.Filters
	calcs      map[string]*hash.Calculation
	vsets      map[string]*valueSet
	fieldLists [][]listItem
	learnLists []*learnList

	pre     replication
	mirrors mirrors

	made   []byte // by the packet generator
	free   []*Packet
	spare  []storage
	now    time.Duration // of the last packet
	nextID uint64
	ended  uint64 // packets without a round left
}

// A stdField is a field that the switch itself reads or writes.
type stdField struct {
	off  int
	mask uint64
	ok   bool
}

// stdFields are all of them, under the names that simple_switch looks for.
type stdFields struct {
	ingressPort, packetLength, instanceType, egressSpec, egressPort stdField
	parserError, checksumError                                      stdField
	ingressTime, egressTime, mcastGrp, egressRid, priority          stdField
	enqTime, enqDepth, deqDelta, deqDepth, qid                      stdField
	queueing                                                        bool
}

// A linker turns the actions, tables and parsers of a program into closures over
// the vector. It lives only while a Switch is made.
type linker struct {
	*vector.Linker
	sw *Switch
}

// New links a program. The configuration must not change afterwards.
func New(c *bmv2.Config, o Options) (*Switch, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	s := &Switch{
		cfg: c, opts: o, actionByID: map[int]*action{}, tables: map[string]*table{},
		profiles: map[string]*profile{}, registers: map[string]*cell.Register{},
		counters: map[string]*cell.Counters{}, meters: map[string]*cell.Meters{}, filters: map[string]*cell.Filters{},
		calcs: map[string]*hash.Calculation{}, vsets: map[string]*valueSet{},
	}
	var err error
	if s.lay, err = vector.NewLayout(c); err != nil {
		return nil, err
	}
	l := s.linker()
	if c.Architecture() != "" {
		if err := l.linkPipe(c); err != nil {
			return nil, err
		}
		s.compile(l, c)
		return s, nil
	}
	if err := s.std.find(s.lay); err != nil {
		return nil, err
	}
	if err := l.link(c); err != nil {
		return nil, err
	}
	s.headroom = s.deparser.room() + 64
	s.passive = l.passive(c)
	s.compile(l, c)
	return s, nil
}

func (s *Switch) linker() *linker {
	l := &linker{&vector.Linker{Layout: s.lay}, s}
	l.Cells = l
	return l
}

// Config is the program that the switch runs.
func (s *Switch) Config() *bmv2.Config { return s.cfg }

func (l *linker) link(c *bmv2.Config) error {
	return inTurn(c, l.arrays, l.calculations, l.lists, l.allActions, l.parse, l.pipelines, l.deparse,
		func(c *bmv2.Config) error { return l.checksums(c.Checksums) })
}

func inTurn(c *bmv2.Config, steps ...func(*bmv2.Config) error) error {
	for _, step := range steps {
		if err := step(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *linker) arrays(c *bmv2.Config) error {
	s := l.sw
	for _, r := range c.RegisterArrays {
		if r.Size*num.Words(r.Bitwidth) > maxCells {
			return fmt.Errorf("register %s has more than %d words", r.Name, maxCells)
		}
		s.registers[r.Name] = cell.NewRegister(r)
	}
	for _, k := range c.CounterArrays {
		a := &cell.Counters{Name: k.Name}
		if k.IsDirect {
			a.Table = k.Binding
		} else {
			a.Cells = make([]Count, k.Size)
		}
		s.counters[k.Name] = a
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
		s.meters[m.Name] = a
	}
	for _, f := range c.FilterArrays {
		s.filters[f.Name] = cell.NewFilters(f)
	}
	for _, v := range c.ParseVSets {
		s.vsets[v.Name] = newValueSet(v)
	}
	return nil
}

// maxCells bounds the words of one register array.
const maxCells = 1 << 26

func (l *linker) calculations(c *bmv2.Config) error {
	for _, k := range c.Calculations {
		calc, err := hash.NewCalculation(l.Linker, k)
		if err != nil {
			return fmt.Errorf("calculation %s: %w", k.Name, err)
		}
		l.sw.calcs[k.Name] = calc
	}
	return nil
}

func (l *linker) allActions(c *bmv2.Config) error {
	for _, a := range c.Actions {
		act, err := l.action(a)
		if err != nil {
			return err
		}
		l.sw.actions = append(l.sw.actions, act)
		l.sw.actionByID[a.ID] = act
	}
	l.Params = nil
	return nil
}

func (s *Switch) actionByName(name string) *action {
	for _, a := range s.actions {
		if a.name == name {
			return a
		}
	}
	return nil
}

func (l *linker) parse(c *bmv2.Config) (err error) {
	l.sw.parser, err = l.parser(c, "parser")
	return err
}

func (l *linker) deparse(c *bmv2.Config) (err error) {
	l.sw.deparser, err = l.deparser(c, "deparser")
	return err
}

func (l *linker) pipelines(c *bmv2.Config) error {
	for _, p := range c.Pipelines {
		pl, err := l.pipeline(p)
		if err != nil {
			return fmt.Errorf("pipeline %s: %w", p.Name, err)
		}
		switch {
		case l.sw.tofino != nil:
			l.pipeControl(p, pl)
		case p.Name == "ingress":
			l.sw.ingress = pl
		case p.Name == "egress":
			l.sw.egress = pl
		}
	}
	return nil
}

// find looks the fields up. The five that simple_switch insists on must be
// there.
func (f *stdFields) find(l *vector.Layout) error {
	for _, x := range []struct {
		dst          *stdField
		header, name string
		required     bool
	}{
		{&f.ingressPort, "standard_metadata", "ingress_port", true},
		{&f.packetLength, "standard_metadata", "packet_length", true},
		{&f.instanceType, "standard_metadata", "instance_type", true},
		{&f.egressSpec, "standard_metadata", "egress_spec", true},
		{&f.egressPort, "standard_metadata", "egress_port", true},
		{&f.parserError, "standard_metadata", "parser_error", false},
		{&f.checksumError, "standard_metadata", "checksum_error", false},
		{&f.ingressTime, "intrinsic_metadata", "ingress_global_timestamp", false},
		{&f.egressTime, "intrinsic_metadata", "egress_global_timestamp", false},
		{&f.mcastGrp, "intrinsic_metadata", "mcast_grp", false},
		{&f.egressRid, "intrinsic_metadata", "egress_rid", false},
		{&f.priority, "intrinsic_metadata", "priority", false},
		{&f.enqTime, "queueing_metadata", "enq_timestamp", false},
		{&f.enqDepth, "queueing_metadata", "enq_qdepth", false},
		{&f.deqDelta, "queueing_metadata", "deq_timedelta", false},
		{&f.deqDepth, "queueing_metadata", "deq_qdepth", false},
		{&f.qid, "queueing_metadata", "qid", false},
	} {
		fd, ok := l.Target(x.header, x.name)
		if !ok && x.required {
			return fmt.Errorf("the program lacks the field %s.%s", x.header, x.name)
		}
		*x.dst = stdField{off: fd.Off, mask: num.Mask64(min(fd.Width, 64)), ok: ok}
	}
	f.queueing = f.enqTime.ok && f.enqDepth.ok && f.deqDelta.ok && f.deqDepth.ok
	return nil
}
