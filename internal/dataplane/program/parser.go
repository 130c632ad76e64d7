package program

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/num"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A Parser is a linked parse graph.
type Parser struct {
	first *parseState
	Codes errorCodes
	entry uintptr // the address in machine code, for Tofino
}

// maxParseStates bounds the states of a parser that loops without reading.
const maxParseStates = 1 << 16

// Parse runs the parser on p. An error stops it; the packet continues, with the
// error in its metadata.
func (s *Program) Parse(p *vector.State) {
	if c := s.Compiled; c != nil {
		p.Next = c.end
		c.Run(p, c.Parse)
		return
	}
	p.ChecksumError = false
	s.parser.Run(s, p)
	if s.verifies != nil {
		// Checksums in invalid headers are not verified.
		for _, k := range s.verifies {
			if k.header.IsValid(p) && (k.cond == nil || k.cond(p)) && k.calc.Output(p) != p.W[k.target.Off] {
				p.ChecksumError = true
				if s.opts.Trace != nil {
					s.Trace(p, Event{Kind: EventChecksumError, Name: k.src.Name})
				}
			}
		}
	}
}

// Run runs the parser on p. An error stops it; the packet continues, with the
// error in its State.
func (ps *Parser) Run(s *Program, p *vector.State) {
	if ps.entry != 0 {
		s.Compiled.Run(p, ps.entry)
		return
	}
	p.ParserError = uint64(ps.Codes.None)
	states := 0
	for st := ps.first; st != nil; states++ {
		if s.opts.Trace != nil {
			s.Trace(p, Event{Kind: EventParseState, Name: st.name})
		}
		code := st.run(p)
		if code == noError && states == maxParseStates {
			code = ps.Codes.timeout
		}
		if code != noError {
			p.ParserError = uint64(code)
			if s.opts.Trace != nil {
				s.Trace(p, Event{Kind: EventParserError, Name: st.name, Value: code})
			}
			break
		}
		st = st.next(p)
	}
}

// parserNamed returns the parser called name, or the first one.
func parserNamed(c *bmv2.Config, name string) *bmv2.Parser {
	return c.Parsers[max(0, slices.IndexFunc(c.Parsers, func(p *bmv2.Parser) bool { return p.Name == name }))]
}

// parser links the parser called name, or the first one.
func (l *Linker) parser(c *bmv2.Config, name string) (*Parser, error) {
	ps := &Parser{Codes: newErrorCodes(c.Errors)}
	if len(c.Parsers) == 0 {
		return ps, nil
	}
	src := parserNamed(c, name)
	states := map[string]*parseState{}
	for _, s := range src.ParseStates {
		states[s.Name] = &parseState{name: s.Name}
	}
	for _, s := range src.ParseStates {
		if err := l.parseState(states[s.Name], s, states, ps.Codes); err != nil {
			return nil, fmt.Errorf("parse state %s: %w", s.Name, err)
		}
	}
	if l.prog.Tofino() {
		// On Tofino a select without a match is an error; v1model accepts. Tofino's
		// compiler treats the state reject, and a full header stack, like accept.
		// They are not errors.
		code := ps.Codes.noMatch
		noMatch := &parseState{name: "no match", ops: []parserOp{func(*vector.State) int64 { return code }}}
		for _, s := range src.ParseStates {
			if st := states[s.Name]; len(st.cases) > 0 && !slices.ContainsFunc(s.Transitions, isDefault) {
				st.others = noMatch
			}
		}
	}
	ps.first = states[src.InitState]
	return ps, nil
}

func (l *Linker) parseState(st *parseState, s *bmv2.ParseState, states map[string]*parseState, codes errorCodes) error {
	for i, op := range s.ParserOps {
		do, err := l.parserOp(op, codes)
		if err != nil {
			return fmt.Errorf("operation %d (%s): %w", i, op.Op, err)
		}
		st.ops = append(st.ops, do)
	}
	var err error
	if st.key, err = l.selectKey(s.TransitionKey); err != nil {
		return err
	}
	for i, t := range s.Transitions {
		next := states[t.NextState]
		if isDefault(t) {
			st.others = next
			continue
		}
		if len(s.TransitionKey) == 0 {
			continue
		}
		c, err := l.parseCase(st, t, next)
		if err != nil {
			return fmt.Errorf("transition %d: %w", i, err)
		}
		st.cases = append(st.cases, c)
	}
	return nil
}

var errParameters = errors.New("wrong number of parameters")

func (l *Linker) parserOp(op *bmv2.ParserOp, codes errorCodes) (parserOp, error) {
	a := op.Parameters
	switch op.Op {
	case "extract", "extract_VL":
		return l.extract(op, codes)
	case "set":
		if len(a) != 2 {
			return nil, errParameters
		}
		// A lookahead beyond the packet is an error.
		dst, src := a[0], a[1]
		if src.Type != bmv2.TypeLookahead {
			do, err := l.Assign(dst, src)
			return succeed(do), err
		}
		pl, err := l.Place(dst)
		if err != nil {
			return nil, err
		}
		v := lookahead(src)
		store, need := pl.Store(v), num.Bytes(src.Width)
		return func(p *vector.State) int64 {
			if p.End-p.Head < need && !p.More(need) {
				return codes.tooShort
			}
			store(p)
			return noError
		}, nil
	case "verify":
		if len(a) != 2 {
			return nil, errParameters
		}
		return l.verify(a[0], a[1])
	case "shift", "advance":
		if len(a) != 1 {
			return nil, errParameters
		}
		return l.advance(op.Op, a[0], codes)
	case "primitive":
		if op.Primitive == nil {
			return nil, errParameters
		}
		do, err := l.Primitive(op.Primitive)
		return succeed(do), err
	}
	return nil, fmt.Errorf("unknown operation %q", op.Op)
}

func succeed(do vector.Step) parserOp {
	return func(p *vector.State) int64 {
		do(p)
		return noError
	}
}

func (l *Linker) verify(cond, code *bmv2.Expr) (parserOp, error) {
	holds, err := l.Boolean(cond)
	if err != nil {
		return nil, err
	}
	v, err := l.Number(code)
	if err != nil {
		return nil, err
	}
	f := v.Low()
	return func(p *vector.State) int64 {
		if holds(p) {
			return noError
		}
		return int64(uint32(f(p)))
	}, nil
}

// advance links advance (bits) and the older shift (bytes).
func (l *Linker) advance(op string, e *bmv2.Expr, codes errorCodes) (parserOp, error) {
	v, err := l.Number(e)
	if err != nil {
		return nil, err
	}
	f := v.Low()
	return func(p *vector.State) int64 {
		n := f(p)
		if op == "advance" {
			if n%8 != 0 {
				return codes.invalid
			}
			n /= 8
		}
		if uint64(p.End-p.Head) < n && (n > MaxFrame || !p.More(int(n))) {
			return codes.tooShort
		}
		p.Head += int(n)
		return noError
	}, nil
}

func isDefault(t bmv2.Transition) bool {
	return t.Type == "default" || t.Type != "parse_vset" && (t.Value == "" || t.Value == "default")
}
