package dataplane

import (
	"slices"
	"testing"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
)

// benchProgram is a program with metadata m {a, b, c: 16 bits, s: signed 8}, a
// stack st of three headers {x: 8, y: 8}, a header h of the same type, a union
// stack us of two unions {p, q} and a register r of four cells of 12 bits. The
// tests give it actions of their own.
func benchProgram() *bmv2.Config {
	c := &bmv2.Config{
		HeaderTypes: []*bmv2.HeaderType{
			{Name: "std", ID: 0, Fields: []bmv2.HeaderField{
				{Name: "ingress_port", Width: 9}, {Name: "packet_length", Width: 32}, {Name: "instance_type", Width: 32},
				{Name: "egress_spec", Width: 9}, {Name: "egress_port", Width: 9}, {Name: "mcast_grp", Width: 16},
				{Name: "parser_error", Width: 32},
			}},
			{Name: "meta", ID: 1, Fields: []bmv2.HeaderField{
				{Name: "a", Width: 16}, {Name: "b", Width: 16}, {Name: "c", Width: 16}, {Name: "s", Width: 8, Signed: true},
			}},
			{Name: "xy", ID: 2, Fields: []bmv2.HeaderField{{Name: "x", Width: 8}, {Name: "y", Width: 8}}},
		},
		Headers: []*bmv2.Header{
			{Name: "standard_metadata", ID: 0, HeaderType: "std", Metadata: true},
			{Name: "m", ID: 1, HeaderType: "meta", Metadata: true},
			{Name: "h", ID: 2, HeaderType: "xy"},
		},
		HeaderUnionTypes: []*bmv2.HeaderUnionType{{Name: "u", Headers: []bmv2.UnionMember{{Name: "p", HeaderType: "xy"}, {Name: "q", HeaderType: "xy"}}}},
		RegisterArrays:   []*bmv2.RegisterArray{{Name: "r", Size: 4, Bitwidth: 12}},
		Deparsers:        []*bmv2.Deparser{{Name: "deparser", Order: []string{"h", "st[0]", "st[1]", "st[2]"}}},
		FieldAliases:     []bmv2.FieldAlias{{Alias: "intrinsic_metadata.mcast_grp", Field: bmv2.FieldRef{Header: "standard_metadata", Field: "mcast_grp"}}},
	}
	id := 3
	header := func(name string) int {
		c.Headers = append(c.Headers, &bmv2.Header{Name: name, ID: id, HeaderType: "xy"})
		id++
		return id - 1
	}
	st := &bmv2.HeaderStack{Name: "st", HeaderType: "xy"}
	for _, name := range []string{"st[0]", "st[1]", "st[2]"} {
		st.HeaderIDs = append(st.HeaderIDs, header(name))
	}
	c.HeaderStacks = []*bmv2.HeaderStack{st}
	us := &bmv2.HeaderUnionStack{Name: "us", UnionType: "u"}
	for i, name := range []string{"us[0]", "us[1]"} {
		c.HeaderUnions = append(c.HeaderUnions, &bmv2.HeaderUnion{Name: name, ID: i, UnionType: "u", HeaderIDs: []int{header(name + ".p"), header(name + ".q")}})
		us.HeaderUnionIDs = append(us.HeaderUnionIDs, i)
	}
	c.HeaderUnionStacks = []*bmv2.HeaderUnionStack{us}
	return c
}

// A lab runs single primitives on a packet.
type lab struct {
	t *testing.T
	s *Switch
	p *Packet
}

func newLab(t *testing.T) *lab {
	s, err := New(benchProgram(), Options{})
	must(t, err)
	return &lab{t, s, s.newPacket(0)}
}

func (l *lab) do(op string, params ...*bmv2.Expr) {
	l.t.Helper()
	do, err := l.s.prog.NewLinker().Primitive(&bmv2.Primitive{Op: op, Parameters: params})
	if err != nil {
		l.t.Fatalf("%s: %v", op, err)
	}
	do(&l.p.st)
}

func (l *lab) word(header, name string) *uint64 {
	l.t.Helper()
	f, err := l.s.prog.Layout.Field(header, name)
	must(l.t, err)
	return &l.p.st.W[f.Off]
}

func (l *lab) want(header, name string, want uint64) {
	l.t.Helper()
	if got := *l.word(header, name); got != want {
		l.t.Errorf("%s.%s = %#x, want %#x", header, name, got, want)
	}
}

func (l *lab) valid(want string, headers ...string) {
	l.t.Helper()
	got := ""
	for _, h := range headers {
		got += string("01"[l.p.st.W[l.s.prog.Layout.HeaderNames[h].Base]])
	}
	if got != want {
		l.t.Errorf("validity of %v is %s, want %s", headers, got, want)
	}
}

var (
	fieldA, fieldB, fieldC = bmv2.FieldOf("m", "a"), bmv2.FieldOf("m", "b"), bmv2.FieldOf("m", "c")
	theStack, theHeader    = bmv2.Ref(bmv2.TypeHeaderStack, "st"), bmv2.Ref(bmv2.TypeHeader, "h")
	theUnions              = bmv2.Ref(bmv2.TypeHeaderUnionStack, "us")
)

func hexNum(v int64) *bmv2.Expr { return bmv2.HexInt(v, 0) }

func elem(i *bmv2.Expr) *bmv2.Expr { return bmv2.Op2("dereference_header_stack", theStack, i) }

func TestArithmeticPrimitives(t *testing.T) {
	for _, c := range []struct {
		op     string
		params []*bmv2.Expr
		want   uint64
	}{
		{"add", []*bmv2.Expr{fieldA, fieldB}, 0x1fff},
		{"subtract", []*bmv2.Expr{fieldB, fieldA}, 0xffff},
		{"bit_xor", []*bmv2.Expr{fieldA, hexNum(0x1fff)}, 0x0fff},
		{"bit_or", []*bmv2.Expr{fieldA, fieldB}, 0x1fff},
		{"bit_and", []*bmv2.Expr{fieldA, fieldB}, 0},
		{"modify_field", []*bmv2.Expr{fieldA}, 0x1000},
		{"add_to_field", []*bmv2.Expr{fieldA}, 0x1003},
		{"subtract_from_field", []*bmv2.Expr{fieldA}, 0xf003},
	} {
		l := newLab(t)
		*l.word("m", "a"), *l.word("m", "b"), *l.word("m", "c") = 0x1000, 0x0fff, 3
		l.do(c.op, append([]*bmv2.Expr{fieldC}, c.params...)...)
		l.want("m", "c", c.want)
	}
	l := newLab(t)
	*l.word("m", "a") = 0x8001
	l.do("shift_left", fieldB, fieldA, hexNum(4))
	l.want("m", "b", 0x0010)
	l.do("shift_right", fieldB, fieldA, hexNum(15))
	l.want("m", "b", 1)
	l.do("shift_left", fieldB, fieldA, hexNum(200))
	l.want("m", "b", 0)
}

func TestDrops(t *testing.T) {
	for _, op := range []string{"drop", "mark_to_drop"} {
		l := newLab(t)
		*l.word("standard_metadata", "mcast_grp") = 5
		if op == "drop" {
			l.do(op)
		} else {
			l.do(op, bmv2.Ref(bmv2.TypeHeader, "standard_metadata"))
		}
		l.want("standard_metadata", "egress_spec", 511)
		l.want("standard_metadata", "mcast_grp", 0)
	}
}

func TestHeaderPrimitives(t *testing.T) {
	l := newLab(t)
	*l.word("h", "x") = 7 // stale
	l.do("add_header", theHeader)
	l.want("h", "x", 0)
	if l.p.st.Length != 2 {
		t.Errorf("length %d after add_header, want 2", l.p.st.Length)
	}
	*l.word("h", "x") = 8
	l.do("add_header", theHeader) // valid already
	l.want("h", "x", 8)
	l.do("copy_header", bmv2.Ref(bmv2.TypeHeader, "st[1]"), theHeader)
	l.want("st[1]", "x", 8)
	l.do("remove_header", theHeader)
	l.do("remove_header", theHeader)
	if l.p.st.Length != 0 {
		t.Errorf("length %d after two removals, want 0", l.p.st.Length)
	}
	l.want("h", "x", 8)
	l.do("assign_header", bmv2.Ref(bmv2.TypeHeader, "st[1]"), theHeader)
	l.valid("00", "h", "st[1]")
	l.do("add_header_fast", theHeader)
	l.want("h", "x", 8)
}

func TestStackPrimitives(t *testing.T) {
	l := newLab(t)
	names := []string{"st[0]", "st[1]", "st[2]"}
	s := l.s.prog.Layout.StackNames["st"]
	fill := func(n int) {
		clear(l.p.st.W)
		for i := range n {
			s.Elements[i].MarkValid(&l.p.st)
			*l.word(names[i], "x") = uint64(i + 1)
		}
		l.p.st.W[s.Next] = uint64(n)
	}
	for _, c := range []struct {
		op     string
		before int
		n      int64
		valid  string
		x      []uint64
		next   uint64
	}{
		{"push", 2, 1, "011", []uint64{0, 1, 2}, 3},
		{"push", 3, 1, "011", []uint64{3, 1, 2}, 3},
		{"push", 3, 2, "001", []uint64{3, 2, 1}, 3},
		{"push", 1, 9, "000", []uint64{1, 0, 0}, 3},
		{"push", 1, 0, "100", []uint64{1, 0, 0}, 1},
		{"pop", 2, 1, "100", []uint64{2, 0, 1}, 1},
		{"pop", 3, 2, "100", []uint64{3, 2, 1}, 1},
		{"pop", 2, 9, "000", []uint64{1, 2, 0}, 0},
		{"pop", 0, 1, "000", []uint64{0, 0, 0}, 0},
	} {
		fill(c.before)
		l.do(c.op, theStack, hexNum(c.n))
		l.valid(c.valid, names...)
		var x []uint64
		for _, n := range names {
			x = append(x, *l.word(n, "x"))
		}
		if !slices.Equal(x, c.x) || l.p.st.W[s.Next] != c.next {
			t.Errorf("%s(%d) of %d: %v, next %d; want %v, %d", c.op, c.n, c.before, x, l.p.st.W[s.Next], c.x, c.next)
		}
	}
	// The last index of an empty stack is -1, cut to the field.
	l.do("assign", fieldA, bmv2.Wrap(bmv2.Op1("last_stack_index", theStack)))
	l.want("m", "a", 0xffff)
	fill(2)
	l.do("assign", fieldA, bmv2.Wrap(bmv2.Op1("size_stack", theStack)))
	l.want("m", "a", 2)
	l.do("assign", fieldB, &bmv2.Expr{Type: bmv2.TypeStackField, Name: "st", Field: "x"})
	l.want("m", "b", 2)
}

// An element outside a stack reads as zero and ignores writes.
func TestRunTimeIndex(t *testing.T) {
	l := newLab(t)
	y := func(i *bmv2.Expr) *bmv2.Expr { return bmv2.Wrap(bmv2.Op2("access_field", elem(i), &bmv2.Expr{Int: 1})) }
	for i := range uint64(5) {
		*l.word("m", "a") = i
		l.do("assign", y(fieldA), hexNum(int64(0x40+i)))
		l.do("assign", fieldB, y(fieldA))
		want := 0x40 + i
		if i > 2 {
			want = 0
		}
		l.want("m", "b", want)
		l.do("add_header", bmv2.Wrap(elem(fieldA)))
		l.do("assign_header", bmv2.Wrap(elem(fieldA)), theHeader)
	}
	l.do("add_header", bmv2.Wrap(elem(hexNum(1))))
	l.valid("010", "st[0]", "st[1]", "st[2]")
	// The field after the last one is the validity.
	l.do("assign", fieldB, bmv2.Wrap(bmv2.Op2("access_field", elem(hexNum(1)), &bmv2.Expr{Int: 2})))
	l.want("m", "b", 1)
}

func TestUnions(t *testing.T) {
	l := newLab(t)
	all := []string{"us[0].p", "us[0].q", "us[1].p", "us[1].q"}
	union := func(name string) *bmv2.Expr { return bmv2.Ref(bmv2.TypeHeaderUnion, name) }
	header := func(name string) *bmv2.Expr { return bmv2.Ref(bmv2.TypeHeader, name) }
	l.do("add_header", header("us[0].p"))
	l.do("add_header", header("us[0].q")) // one at a time
	l.valid("0100", all...)
	*l.word("us[0].q", "x") = 9
	l.do("assign_union", union("us[1]"), union("us[0]"))
	l.valid("0101", all...)
	l.want("us[1].q", "x", 9)
	same := bmv2.Op1("b2d", bmv2.Op2("==", union("us[0]"), union("us[1]")))
	l.do("assign", fieldA, bmv2.Wrap(same))
	l.want("m", "a", 1)
	*l.word("us[1].q", "x") = 8
	l.do("assign", fieldA, bmv2.Wrap(same))
	l.want("m", "a", 0)
	second := bmv2.Op2("dereference_union_stack", theUnions, hexNum(1))
	l.do("assign", fieldA, bmv2.Wrap(bmv2.Op1("b2d", bmv2.Op1("valid_union", second))))
	l.want("m", "a", 1)
	l.do("remove_header", bmv2.Wrap(bmv2.Op2("access_union_header", second, &bmv2.Expr{Int: 1})))
	l.valid("0100", all...)
	l.do("assign_union_stack", theUnions, theUnions)
	l.do("push", theUnions, hexNum(1))
	l.valid("0001", all...)
	l.do("pop", theUnions, hexNum(1))
	l.valid("0100", all...)
}

func TestRegisterExpressions(t *testing.T) {
	l := newLab(t)
	cell := func(i *bmv2.Expr) *bmv2.Expr { return &bmv2.Expr{Type: bmv2.TypeRegister, Name: "r", Right: i} }
	array := bmv2.Ref(bmv2.TypeRegisterArray, "r")
	l.do("assign", cell(hexNum(2)), hexNum(0x12345))
	l.do("assign", fieldA, cell(hexNum(2)))
	l.want("m", "a", 0x345)
	*l.word("m", "b") = 77
	l.do("register_read", fieldB, array, hexNum(4))
	l.want("m", "b", 77)
	l.do("register_write", array, hexNum(4), hexNum(1))
	l.do("register_read", fieldB, array, bmv2.Op2("+", hexNum(1), hexNum(1)))
	l.want("m", "b", 0x345)
}

// A signed field keeps numbers between its smallest number and its mask.
func TestSignedFields(t *testing.T) {
	l := newLab(t)
	s := bmv2.FieldOf("m", "s")
	for _, c := range []struct{ in, want int64 }{{-128, -128}, {-129, 127}, {200, 200}, {256, 0}, {255, 255}, {-1, -1}} {
		l.do("assign", s, hexNum(c.in))
		l.want("m", "s", uint64(c.want))
	}
	l.do("assign", s, hexNum(-5))
	l.do("assign", fieldA, s)
	l.want("m", "a", 0xfffb)
}

func TestEndlessJumpsEnd(t *testing.T) {
	c := benchProgram()
	jump := func(to int64) *bmv2.Primitive {
		return &bmv2.Primitive{Op: "_jump", Parameters: []*bmv2.Expr{hexNum(to)}}
	}
	c.Actions = []*bmv2.Action{{Name: "spin", Primitives: []*bmv2.Primitive{jump(0)}}}
	c.Pipelines = []*bmv2.Pipeline{{
		Name: "ingress", InitTable: "c",
		Conditionals: []*bmv2.Conditional{{Name: "c", Expression: bmv2.BoolOf(true), TrueNext: "a"}},
		ActionCalls:  []*bmv2.ActionCall{{Name: "a", NextNode: "c"}},
	}}
	c.Parsers = []*bmv2.Parser{{Name: "parser", InitState: "s", ParseStates: []*bmv2.ParseState{
		{Name: "s", Transitions: []bmv2.Transition{{Type: "default", NextState: "s"}}},
	}}}
	c.Errors = []bmv2.NamedValue{{Name: "NoError"}, {Name: "ParserTimeout", Value: 6}}
	s, err := New(c, Options{})
	must(t, err)
	out := s.Ingress(s.Receive(1, []byte{1}, 0), 0, nil)
	if len(out) != 1 || out[0].Packet.st.ParserError != 6 {
		t.Errorf("outcomes %+v", out)
	}
	c.Actions[0].Primitives[0] = jump(2)
	if _, err := New(c, Options{}); err == nil {
		t.Error("a jump out of the action was accepted")
	}
}

// P4_14 defines the length of a header of variable length by an expression over
// its fields, and an older parser skips bytes with shift.
func TestLengthExpressionAndShift(t *testing.T) {
	c := benchProgram()
	c.HeaderTypes = append(c.HeaderTypes, &bmv2.HeaderType{
		Name: "opt", ID: 9, MaxLength: 6, LengthExp: bmv2.Op2("*", bmv2.Local(0), hexNum(8)),
		Fields: []bmv2.HeaderField{{Name: "n", Width: 8}, {Name: "data", VarLen: true}, {Name: "end", Width: 8}},
	})
	c.Headers = append(c.Headers, &bmv2.Header{Name: "o", ID: 90, HeaderType: "opt"})
	c.Deparsers[0].Order = []string{"o"}
	c.Parsers = []*bmv2.Parser{{Name: "parser", InitState: "s", ParseStates: []*bmv2.ParseState{{
		Name: "s", ParserOps: []*bmv2.ParserOp{
			{Op: "shift", Parameters: []*bmv2.Expr{{Int: 2}}},
			{Op: "extract", Parameters: []*bmv2.Expr{bmv2.Ref(bmv2.TypeRegular, "o")}},
		},
	}}}}
	c.Errors = []bmv2.NamedValue{{Name: "NoError"}, {Name: "PacketTooShort", Value: 1}, {Name: "HeaderTooShort", Value: 4}}
	s, err := New(c, Options{})
	must(t, err)
	e := NewEngine(s)
	for _, c := range []struct{ in, out []byte }{
		{[]byte{9, 9, 2, 1, 2, 7, 5}, []byte{2, 1, 2, 7, 5}},
		{[]byte{9, 9, 0, 7}, []byte{0, 7}},
		{[]byte{9, 9, 4, 1, 2, 3, 4, 7}, []byte{4, 1, 2, 3, 4, 7}},
		{[]byte{9, 9, 5, 1, 2, 3, 4, 5, 7}, []byte{5, 1, 2, 3, 4, 5, 7}}, // too long: not extracted
		{[]byte{9, 9, 3, 1, 2}, []byte{3, 1, 2}},
		{[]byte{9}, []byte{9}},
	} {
		out := e.Process(1, c.in, time.Second)
		if len(out) != 1 || !slices.Equal(out[0].Data, c.out) {
			t.Errorf("%x came out as %x, want %x", c.in, out, c.out)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	bad := func(op string, params ...*bmv2.Expr) func(*bmv2.Config) {
		return func(c *bmv2.Config) {
			c.Actions = []*bmv2.Action{{Name: "a", Primitives: []*bmv2.Primitive{{Op: op, Parameters: params}}}}
		}
	}
	for what, change := range map[string]func(*bmv2.Config){
		"an unknown primitive":         bad("fly"),
		"too few parameters":           bad("assign", fieldA),
		"assignment to a number":       bad("assign", hexNum(1), hexNum(2)),
		"a header for a number":        bad("assign", fieldA, theHeader),
		"a parameter that is not":      bad("assign", fieldA, bmv2.RuntimeData(0)),
		"headers of different types":   bad("assign_header", theHeader, bmv2.Ref(bmv2.TypeHeader, "m")),
		"a push to a header":           bad("push", theHeader, hexNum(1)),
		"a comparison of kinds":        bad("assign", fieldA, bmv2.Op1("b2d", bmv2.Op2("==", theHeader, hexNum(1)))),
		"missing standard metadata":    func(c *bmv2.Config) { c.Headers[0].Name = "other_metadata"; c.FieldAliases = nil },
		"an unknown hash":              func(c *bmv2.Config) { c.Calculations = []*bmv2.Calculation{{Name: "k", Algo: "random"}} },
		"an access beyond the fields":  bad("assign", fieldA, bmv2.Op2("access_field", theHeader, &bmv2.Expr{Int: 3})),
		"a message with too many args": bad("log_msg", bmv2.Ref(bmv2.TypeString, "{}"), bmv2.Vector(hexNum(1), hexNum(2))),
	} {
		c := benchProgram()
		change(c)
		if s, err := New(c, Options{}); err == nil || s != nil {
			t.Errorf("%s was accepted", what)
		}
	}
	if _, err := New(benchProgram(), Options{DropPort: -1}); err == nil {
		t.Error("a negative drop port was accepted")
	}
}
