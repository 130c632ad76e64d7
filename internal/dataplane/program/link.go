package program

import (
	"fmt"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// New links a validated program.
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
		if k.TrueEgress {
			a.Late = &s.Late
		}
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
		s.ValueSets[v.Name] = &valueSet{name: v.Name, Width: v.CompressedBitwidth, MaxSize: v.MaxSize}
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

func (l *Linker) parse(c *bmv2.Config) (err error) {
	l.prog.parser, err = l.parser(c, "parser")
	return err
}

func (l *Linker) pipelines(c *bmv2.Config) error {
	for _, p := range c.Pipelines {
		for _, a := range p.ActionProfiles {
			pr, err := l.profile(a)
			if err != nil {
				return fmt.Errorf("pipeline %s: %w", p.Name, fmt.Errorf("action profile %s: %w", a.Name, err))
			}
			l.prog.Profiles[a.Name] = pr
		}
		nodes := map[string]*node{}
		for _, t := range p.Tables {
			tb, err := l.table(t)
			if err != nil {
				return fmt.Errorf("pipeline %s: %w", p.Name, fmt.Errorf("table %s: %w", t.Name, err))
			}
			l.prog.Tables[t.Name] = tb
			nodes[t.Name] = &node{table: tb, name: t.Name}
		}
		if err := l.branches(p, nodes); err != nil {
			return fmt.Errorf("pipeline %s: %w", p.Name, err)
		}
		for _, t := range p.Tables {
			tb := l.prog.Tables[t.Name]
			if err := tb.link(t, nodes); err != nil {
				return fmt.Errorf("pipeline %s: %w", p.Name, fmt.Errorf("table %s: %w", t.Name, err))
			}
			if err := l.prog.fill(tb, t); err != nil {
				return fmt.Errorf("pipeline %s: %w", p.Name, fmt.Errorf("table %s: %w", t.Name, err))
			}
		}
		pl := &Pipeline{name: p.Name, first: nodes[p.InitTable]}
		l.prog.Controls[p.Name] = pl
	}
	l.prog.Ingress, l.prog.Egress = l.prog.Controls["ingress"], l.prog.Controls["egress"]
	return nil
}

func (l *Linker) deparse(c *bmv2.Config) (err error) {
	l.prog.Deparser, err = l.deparser(c, "deparser")
	return err
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
			h.ReadsError = parserNamed(c, h.name+"_parser").ReadsError
			l.prog.Halves = append(l.prog.Halves, h)
		}
	}
	return nil
}
