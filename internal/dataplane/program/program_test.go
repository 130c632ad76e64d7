package program

import (
	"errors"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/lookup"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
	"github.com/p4lb/p4lb/internal/p4"
)

// frame is a program for v1model with the tables, actions and statements of a
// test.
const frame = `#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; }
struct H { h_t h; }
struct M { bit<8> x; }
parser P(packet_in b, out H hdr, inout M m, inout standard_metadata_t sm) { state start { b.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    action set(bit<8> v) { m.x = v; }
    action nop() { }
    LOCALS
    apply { APPLY }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out b, in H hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

func config(t *testing.T, locals, apply string) *bmv2.Config {
	t.Helper()
	text := strings.NewReplacer("LOCALS", locals, "APPLY", apply).Replace(frame)
	out, err := p4.CompileText("x.p4", []byte(text), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Config
}

func link(t *testing.T, c *bmv2.Config, env Env) *Program {
	t.Helper()
	s, err := New(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// packet is a packet with the fields a and b in a valid header.
func (s *Program) packet(a, b uint64) *vector.State {
	p := &vector.State{W: make([]uint64, s.Layout.Words), Scratch: &s.Scratch, Buf: make([]byte, 256), Start: 128, Head: 128, End: 128}
	h := s.Layout.HeaderNames["h"]
	p.W[h.Valid()] = 1
	for name, v := range map[string]uint64{"a": a, "b": b} {
		f, _ := h.Field(name)
		p.W[f.Off] = v
	}
	return p
}

// x returns the metadata field x.
func (s *Program) x(t *testing.T, p *vector.State) uint64 {
	t.Helper()
	for _, h := range s.Layout.Headers {
		for _, f := range h.Type.Fields {
			if h.Metadata && (f.Name == "x" || strings.HasSuffix(f.Name, ".x")) {
				return p.W[h.Base+f.Off]
			}
		}
	}
	t.Fatal("the program has no field x")
	return 0
}

const oneTable = `table t { key = { hdr.h.a: KIND; } actions = { set; nop; } default_action = nop(); size = 4; }`

// A table finds the entry that its kind of match prefers: the longest prefix,
// or the smallest priority. It refuses a duplicate.
func TestTable(t *testing.T) {
	one := func(v, mask, high byte, prefix, priority int) TableEntry {
		return TableEntry{Priority: priority, Match: []Match{{Value: []byte{v}, Mask: []byte{mask}, High: []byte{high}, PrefixLen: prefix}}}
	}
	for _, c := range []struct {
		kind    string
		entries []TableEntry
		find    map[uint64]int32 // which entry a value finds
	}{
		{"exact", []TableEntry{one(1, 0, 0, 0, 0), one(255, 0, 0, 0, 0)}, map[uint64]int32{0: lookup.None, 1: 0, 255: 1}},
		{"lpm", []TableEntry{one(0x80, 0, 0, 1, 0), one(0xc0, 0, 0, 2, 0), one(0, 0, 0, 0, 0)}, map[uint64]int32{0x7f: 2, 0x80: 0, 0xbf: 0, 0xc0: 1, 0xff: 1}},
		{"ternary", []TableEntry{one(0x10, 0xf0, 0, 0, 2), one(0x11, 0xff, 0, 0, 1), one(0x01, 0x0f, 0, 0, 3)}, map[uint64]int32{0x10: 0, 0x11: 1, 0x21: 2, 0x22: lookup.None}},
		{"range", []TableEntry{one(10, 0, 20, 0, 2), one(15, 0, 15, 0, 1)}, map[uint64]int32{9: lookup.None, 10: 0, 15: 1, 20: 0, 21: lookup.None}},
		{"optional", []TableEntry{one(7, 0, 0, 0, 1), {Priority: 2, Match: []Match{{}}}}, map[uint64]int32{7: 0, 8: 1}},
	} {
		cfg := config(t, strings.ReplaceAll(oneTable, "KIND", c.kind), "t.apply();")
		cfg.Pipelines[0].Tables[0].Key[0].MatchType = c.kind // the compiler writes ternary for optional
		s := link(t, cfg, Env{DropPort: 511})
		tb := s.Tables["I.t"]
		for i, e := range c.entries {
			if c.kind != "range" {
				e.Match[0].High = nil
			}
			if c.kind != "ternary" {
				e.Match[0].Mask = nil
			}
			if h, err := tb.Add(e); err != nil || h.Slot() != i {
				t.Fatalf("%s: entry %d gets handle %d, %v", c.kind, i, h, err)
			}
		}
		for v, want := range c.find {
			if got := tb.Find(s.packet(v, 0)); got != want {
				t.Errorf("%s: %#x finds entry %d, want %d", c.kind, v, got, want)
			}
		}
		if _, err := tb.Add(c.entries[0]); !errors.Is(err, ErrDuplicate) {
			t.Errorf("%s: the same entry again: %v", c.kind, err)
		}
	}
}

// A table holds as many entries as the program declares. A handle is valid
// until its entry is deleted, and stays invalid when another entry takes the
// place.
func TestTableHandles(t *testing.T) {
	s := link(t, config(t, strings.ReplaceAll(oneTable, "KIND", "exact"), "t.apply();"), Env{DropPort: 511})
	tb := s.Tables["I.t"]
	var handles []Handle
	for v := range byte(4) {
		h, err := tb.Add(TableEntry{Match: []Match{{Value: []byte{v}}}})
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if _, err := tb.Add(TableEntry{Match: []Match{{Value: []byte{9}}}}); !errors.Is(err, ErrTableFull) {
		t.Errorf("a fifth entry of four: %v", err)
	}
	tb.Delete(handles[1].Slot())
	if _, err := tb.Entry(handles[1]); !errors.Is(err, ErrBadHandle) {
		t.Errorf("a deleted entry: %v", err)
	}
	h, err := tb.Add(TableEntry{Match: []Match{{Value: []byte{9}}}})
	if err != nil || h.Slot() != handles[1].Slot() || h == handles[1] {
		t.Errorf("the next entry has handle %#x, %v, want the place of %#x under another handle", h, err, handles[1])
	}
	if _, err := tb.Entry(handles[1]); !errors.Is(err, ErrExpired) {
		t.Errorf("the old handle of a place: %v", err)
	}
	if e, err := tb.Entry(h); err != nil || e.Match[0].Value[0] != 9 {
		t.Errorf("the new handle: %v", err)
	}
	tb.Clear(false)
	if tb.Count != 0 || tb.Find(s.packet(9, 0)) != lookup.None {
		t.Errorf("%d entries after Clear", tb.Count)
	}
}

// An entry must fit the key and the action.
func TestTableRefuses(t *testing.T) {
	for _, c := range []struct {
		kind  string
		match []Match
	}{
		{"exact", nil},
		{"exact", []Match{{Value: []byte{1, 0}}}}, // 9 bits
		{"exact", []Match{{Value: []byte{1}}, {Value: []byte{1}}}},
		{"lpm", []Match{{Value: []byte{1}, PrefixLen: 9}}},
		{"lpm", []Match{{Value: []byte{1}, PrefixLen: -1}}},
		{"ternary", []Match{{Value: []byte{1}, Mask: []byte{1, 0}}}},
		{"range", []Match{{Value: []byte{2}, High: []byte{1}}}},
	} {
		s := link(t, config(t, strings.ReplaceAll(oneTable, "KIND", c.kind), "t.apply();"), Env{DropPort: 511})
		if _, err := s.Tables["I.t"].Add(TableEntry{Match: c.match}); !errors.Is(err, ErrBadMatch) {
			t.Errorf("%s: %+v: %v", c.kind, c.match, err)
		}
	}
	s := link(t, config(t, strings.ReplaceAll(oneTable, "KIND", "exact"), "t.apply();"), Env{DropPort: 511})
	for _, c := range []struct {
		target Target
		want   error
	}{
		{Target{Action: ActionCall{Name: "I.set", Params: [][]byte{{7}}}}, nil},
		{Target{Action: ActionCall{Name: "I.none"}}, ErrBadAction},
		{Target{Action: ActionCall{Name: "I.set"}}, ErrBadParams},
		{Target{Action: ActionCall{Name: "I.set", Params: [][]byte{{1, 0}}}}, ErrBadParams},
		{Target{Kind: TargetMember}, ErrBadTarget},
		{Target{Kind: TargetGroup}, ErrBadTarget},
	} {
		call, err := s.Tables["I.t"].Resolve(c.target, true)
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.target, err, c.want)
		}
		if err == nil && call.ToTarget().Action.Name != c.target.Action.Name {
			t.Errorf("%+v comes back as %+v", c.target, call.ToTarget())
		}
	}
}

// A program has machine code unless it is disabled or a trace is on. Its
// control does the same with and without it: an entry's action, the default
// action, and a statement behind a condition that is left to Go.
func TestEngines(t *testing.T) {
	c := config(t, strings.ReplaceAll(oneTable, "KIND", "exact"), "t.apply(); if ((bit<128>)m.x * 3 > 100) { m.x = 1; }")
	for _, e := range []struct {
		name string
		env  Env
		code bool
	}{
		{"machine code", Env{}, asm.Supported},
		{"machine code that leaves all to Go", Env{LeaveToGo: true}, asm.Supported},
		{"closures", Env{Closures: true}, false},
		{"traced", Env{Trace: func(Event) {}}, false},
	} {
		e.env.DropPort = 511
		s := link(t, c, e.env)
		if (s.Compiled != nil) != e.code {
			t.Errorf("%s: compiled %v", e.name, s.Compiled != nil)
		}
		tb := s.Tables["I.t"]
		for v, arg := range map[byte]byte{1: 30, 2: 40} {
			call, err := tb.Resolve(Target{Action: ActionCall{Name: "I.set", Params: [][]byte{{arg}}}}, true)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tb.Add(TableEntry{Match: []Match{{Value: []byte{v}}}, Call: call}); err != nil {
				t.Fatal(err)
			}
		}
		for a, want := range map[uint64]uint64{1: 30, 2: 1, 3: 0} { // 3·30 is not more than 100
			p := s.packet(a, 0)
			if s.Compiled != nil {
				s.Compiled.Run(p, s.Compiled.Ingress)
			} else {
				s.Ingress.Apply(s, p)
			}
			if got := s.x(t, p); got != want {
				t.Errorf("%s: packet %d ends with x = %d, want %d", e.name, a, got, want)
			}
		}
	}
}

// Both engines stop an endless control.
func TestEndlessLoops(t *testing.T) {
	c := config(t, "", "m.x = 1;")
	c.Pipelines[0].ActionCalls = nil
	c.Pipelines[0].Conditionals = []*bmv2.Conditional{{Name: "again", Expression: bmv2.BoolOf(true), TrueNext: "again"}}
	c.Pipelines[0].InitTable = "again"
	for _, closures := range []bool{false, true} {
		s := link(t, c, Env{DropPort: 511, Closures: closures})
		p := s.packet(0, 0)
		if s.Compiled != nil {
			s.Compiled.Run(p, s.Compiled.Ingress)
		} else {
			s.Ingress.Apply(s, p)
		}
		if p.Steps != maxSteps {
			t.Errorf("closures %v: stopped after %d steps, want %d", closures, p.Steps, maxSteps)
		}
	}
}

// New refuses a document that refers to a missing object or gives a primitive
// wrong parameters, and reports the place.
func TestLinkRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(c *bmv2.Config)
		want   string
	}{
		{"a primitive", func(c *bmv2.Config) { c.Actions[0].Primitives = []*bmv2.Primitive{{Op: "launch"}} }, `unknown primitive "launch"`},
		{"its parameters", func(c *bmv2.Config) {
			c.Actions[0].Primitives = []*bmv2.Primitive{{Op: "exit", Parameters: []*bmv2.Expr{bmv2.HexInt(1, 1)}}}
		}, "primitive 0 (exit): 1 parameters, expected 0"},
		{"a jump", func(c *bmv2.Config) {
			c.Actions[0].Primitives = []*bmv2.Primitive{{Op: "_jump", Parameters: []*bmv2.Expr{bmv2.HexInt(7, 1)}}}
		}, "which is not an instruction"},
		{"a primitive of Tofino", func(c *bmv2.Config) {
			c.Actions[0].Primitives = []*bmv2.Primitive{{Op: "register_entry", Parameters: []*bmv2.Expr{bmv2.HexInt(1, 1)}}}
		}, "unknown primitive"},
		{"a header of bits", func(c *bmv2.Config) { c.HeaderTypes[len(c.HeaderTypes)-1].Fields[0].Width++ }, "not whole bytes"},
		{"a register that is too large", func(c *bmv2.Config) {
			c.RegisterArrays = []*bmv2.RegisterArray{{Name: "r", Size: 1 << 27, Bitwidth: 8}}
		}, "register r has more than"},
		{"the standard metadata", func(c *bmv2.Config) {
			for _, h := range c.HeaderTypes {
				if h.Name == "standard_metadata" {
					h.Fields[0].Name = "port"
				}
			}
		}, "lacks the field standard_metadata.ingress_port"},
	} {
		cfg := config(t, "", "m.x = 1;")
		for i, h := range cfg.HeaderTypes { // the packet's header type to the end
			if h.Name == "h_t" {
				last := len(cfg.HeaderTypes) - 1
				cfg.HeaderTypes[i], cfg.HeaderTypes[last] = cfg.HeaderTypes[last], cfg.HeaderTypes[i]
			}
		}
		c.change(cfg)
		if _, err := New(cfg, Env{DropPort: 511}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A name that is not in the list of fallbacks is a mistake in the compiler.
func TestFallbackNames(t *testing.T) {
	if n := len(Fallbacks()); n < len(opcodes()) {
		t.Errorf("%d fallbacks for %d primitives", n, len(opcodes()))
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown name is accepted")
		}
	}()
	fallbackNamed("an unknown name")
}
