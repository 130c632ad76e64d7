package lower

import (
	"fmt"
	"math/big"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// A states cuts code into parse states.
type states struct {
	l     *lowerer
	out   *bmv2.Parser
	names map[string]int
	label map[*label]string
	cur   *bmv2.ParseState
	base  string
}

func (s *states) fresh(base string) string {
	n := s.names[base]
	s.names[base] = n + 1
	if n == 0 {
		return base
	}
	return s.fresh(fmt.Sprintf("%s_%d", base, n))
}

func (s *states) open(name string) {
	s.cur = &bmv2.ParseState{
		Name: name, ID: s.l.nextID("parse_states"),
		ParserOps: []*bmv2.ParserOp{}, Transitions: []bmv2.Transition{}, TransitionKey: []*bmv2.Expr{},
	}
	s.out.ParseStates = append(s.out.ParseStates, s.cur)
}

// close ends the current state with the transitions ts; a transition without a
// target means accept.
func (s *states) close(ts []bmv2.Transition) {
	if s.cur == nil {
		return
	}
	if ts == nil {
		ts = []bmv2.Transition{{Type: "default"}}
	}
	s.cur.Transitions = ts
	s.cur = nil
}

func jumpTo(name string) []bmv2.Transition {
	return []bmv2.Transition{{Type: "default", NextState: name}}
}

func (s *states) add(i *instr) {
	if i.kind == iLabel {
		s.close(jumpTo(s.label[i.label]))
		s.open(s.label[i.label])
		return
	}
	if s.cur == nil {
		return // unreachable
	}
	switch i.kind {
	case iPrim:
		s.cur.ParserOps = append(s.cur.ParserOps, s.l.parserOp(i))
	case iJump:
		s.close(jumpTo(s.label[i.label]))
	case iAccept, iExit:
		s.close(nil)
	case iBranch:
		// The parser selects on a variable that holds the condition.
		t := s.l.temp(boolean)
		s.cur.ParserOps = append(s.cur.ParserOps, s.l.parserOp(&instr{kind: iPrim, prim: "assign", args: []any{t, i.cond}, at: i.at}))
		then := s.fresh(s.cur.Name + "_if")
		s.cur.TransitionKey = []*bmv2.Expr{bmv2.FieldOf(t.header, t.name)}
		s.close([]bmv2.Transition{{Type: "hexstr", Value: "0x00", NextState: s.label[i.label]}, {Type: "default", NextState: then}})
		s.open(then)
	case iSelect:
		key := []*bmv2.Expr{}
		for _, k := range i.keys {
			key = append(key, data(k, false))
		}
		s.cur.TransitionKey = key
		ts := []bmv2.Transition{}
		for _, c := range i.cases {
			ts = append(ts, s.transition(c))
			if ts[len(ts)-1].Type == "default" {
				break // BMv2 would also try a later default
			}
		}
		if len(ts) == 0 {
			ts = nil
		}
		s.close(ts)
	default:
		s.l.unsupported(i.at, "this statement in a parser")
	}
}

func (s *states) transition(c selectCase) bmv2.Transition {
	t := bmv2.Transition{NextState: s.label[c.next]}
	switch {
	case c.vset != "":
		t.Type, t.Value = "parse_vset", c.vset
		return t
	case c.bytes == nil:
		t.Type = "default"
		return t
	}
	value, mask, n, exact, any := new(big.Int), new(big.Int), 0, true, true
	for _, k := range c.bytes {
		w := bytesOf(k.width)
		value.Lsh(value, uint(8*w)).Or(value, k.value.v)
		mask.Lsh(mask, uint(8*w)).Or(mask, k.mask.v)
		exact = exact && k.mask.v.Cmp(maskOf(k.width)) == 0
		any = any && k.mask.v.Sign() == 0
		n += w
	}
	if any {
		t.Type = "default"
		return t
	}
	t.Type, t.Value = "hexstr", bmv2.HexString(value.And(value, mask), n)
	if !exact {
		t.Mask = bmv2.HexString(mask, n)
	}
	return t
}

// parserOp emits one operation of a state.
func (l *lowerer) parserOp(i *instr) *bmv2.ParserOp {
	src := l.source(i.at)
	switch i.prim {
	case "extract":
		return &bmv2.ParserOp{Op: "extract", Parameters: []*bmv2.Expr{i.args[0].(*bmv2.Expr)}, SourceInfo: src}
	case "extract_VL":
		return &bmv2.ParserOp{Op: "extract_VL", Parameters: []*bmv2.Expr{i.args[0].(*bmv2.Expr), bmv2.Wrap(data(i.args[1].(*ex), false))}, SourceInfo: src}
	case "advance":
		return &bmv2.ParserOp{Op: "advance", Parameters: []*bmv2.Expr{param(i.args[0].(*ex))}, SourceInfo: src}
	case "verify":
		return &bmv2.ParserOp{Op: "verify", Parameters: []*bmv2.Expr{condition(i.args[0].(*ex)), data(i.args[1].(*ex), false)}, SourceInfo: src}
	case "assign":
		p := l.primitive(i)
		return &bmv2.ParserOp{Op: "set", Parameters: p.Parameters, SourceInfo: src}
	}
	return &bmv2.ParserOp{Op: "primitive", Primitive: l.primitive(i), SourceInfo: src}
}
