package code

import (
	"testing"
	"unsafe"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane/asm"
	"github.com/p4lb/p4lb/internal/dataplane/cell"
	"github.com/p4lb/p4lb/internal/dataplane/hash"
	"github.com/p4lb/p4lb/internal/dataplane/vector"
)

// A bench compiles steps over the metadata m and runs them.
type bench struct {
	t      *testing.T
	layout *vector.Layout
	writer *Writer
	state  vector.State
	fields map[string]vector.Field
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if !asm.Supported {
		t.Skip("machine code cannot be run here")
	}
	layout, err := vector.NewLayout(&bmv2.Config{
		HeaderTypes: []*bmv2.HeaderType{{Name: "meta", Fields: []bmv2.HeaderField{
			{Name: "b1", Width: 1}, {Name: "b8", Width: 8}, {Name: "b12", Width: 12}, {Name: "b16", Width: 16}, {Name: "b32", Width: 32},
			{Name: "b64", Width: 64}, {Name: "c64", Width: 64}, {Name: "b65", Width: 65}, {Name: "b128", Width: 128},
			{Name: "s8", Width: 8, Signed: true}, {Name: "s64", Width: 64, Signed: true}, {Name: "text", Width: 72},
			{Name: "t1", Width: 8}, {Name: "t2", Width: 16}, {Name: "t3", Width: 48},
		}}, {Name: "pair", ID: 1, Fields: []bmv2.HeaderField{{Name: "x", Width: 8}, {Name: "y", Width: 16}}}},
		Headers: []*bmv2.Header{{Name: "m", HeaderType: "meta", Metadata: true}, {Name: "h", ID: 1, HeaderType: "pair"}, {Name: "g", ID: 2, HeaderType: "pair"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, layout: layout, fields: map[string]vector.Field{}}
	b.state = vector.State{W: make([]uint64, layout.Words), Scratch: &vector.Scratch{}}
	for _, h := range layout.Headers {
		for _, f := range h.Type.Fields {
			b.fields[h.Name+"."+f.Name], _ = h.Field(f.Name)
		}
	}
	b.begin()
	return b
}

// begin discards all steps.
func (b *bench) begin() { b.writer = New(&vector.Linker{Layout: b.layout}) }

func (b *bench) set(name string, v uint64)    { b.state.W[b.fields[name].Off] = v }
func (b *bench) get(name string) uint64       { return b.state.W[b.fields[name].Off] }
func (b *bench) field(name string) *bmv2.Expr { return bmv2.FieldOf("m", name) }

// run ends the code and runs it.
func (b *bench) run() {
	b.t.Helper()
	b.writer.Set(asm.AX, 0)
	b.writer.Return()
	b.again()
}

// again runs the code of the last run once more.
func (b *bench) again() {
	b.t.Helper()
	text, err := b.writer.Finish()
	if err != nil {
		b.t.Fatal(err)
	}
	code, err := asm.Load(text)
	if err != nil {
		b.t.Fatal(err)
	}
	asm.Call(code.Entry(0), unsafe.Pointer(unsafe.SliceData(b.state.W)), unsafe.Pointer(unsafe.SliceData(b.writer.Refs)), unsafe.Pointer(&b.state))
}

func hex(v int64) *bmv2.Expr { return bmv2.HexInt(v, 8) }

// An expression has the value of P4_16 and BMv2: sums of the field's width,
// shifts by the width and more, quotients by zero, signs. The values are worked
// out by hand.
func TestExpressions(t *testing.T) {
	b := newBench(t)
	f := b.field
	op := bmv2.Op2
	cast := func(e *bmv2.Expr, width int64) *bmv2.Expr { return op("&", e, hex(1<<width-1)) }
	for _, c := range []struct {
		name string
		expr *bmv2.Expr
		dst  string
		want uint64
	}{
		{"constant", hex(0x1234), "b16", 0x1234},
		{"a constant is cut to the field", hex(0x12345), "b16", 0x2345},
		{"a field is cut to the field", f("b16"), "b12", 0xbcd},
		{"a field of 1 bit", op("+", f("b16"), hex(0)), "b1", 1},
		{"a sum wraps", cast(op("+", f("b8"), hex(1)), 8), "b16", 0},
		{"a sum that the field cuts", op("+", f("b8"), hex(1)), "b8", 0},
		{"a difference below zero", op("-", hex(3), hex(5)), "b16", 0xfffe},
		{"a product of 64 bits wraps", op("*", f("c64"), f("c64")), "b64", 1},
		{"quotient", op("/", f("b16"), hex(16)), "b16", 0xabc},
		{"remainder", op("%", f("b16"), hex(16)), "b16", 0xd},
		{"quotient by zero", op("/", f("b16"), cast(op("-", f("b8"), f("b8")), 8)), "b16", 0},
		{"and, or, xor", op("^", op("|", op("&", f("b16"), hex(0xff)), hex(0x100)), hex(1)), "b16", 0x1cc},
		{"remainder of a division by zero", op("%", f("b16"), cast(op("-", f("b8"), f("b8")), 8)), "b16", 0},
		{"not", bmv2.Op1("~", f("b16")), "b16", 0x5432},
		{"shift left", op("<<", f("b16"), hex(4)), "b16", 0xbcd0},
		{"shift left by 64", op("<<", f("b64"), hex(64)), "b64", 0},
		{"shift left by a field", op("<<", hex(1), f("b8")), "b64", 0}, // by 255
		{"shift right", op(">>", f("b16"), hex(12)), "b16", 0xa},
		{"shift right by 64", op(">>", f("b64"), hex(64)), "b64", 0},
		{"arithmetic shift", op(">>", f("s8"), hex(1)), "s8", ^uint64(0)},                    // -2 >> 1
		{"arithmetic shift by more than 63", op(">>", f("s64"), hex(99)), "s64", ^uint64(0)}, // -5
		{"sign extension", op("two_comp_mod", hex(0x80), hex(8)), "s8", ^uint64(0x7f)},
		{"a comparison as a number", bmv2.Op1("b2d", op("<", f("b8"), f("b16"))), "b8", 1},
		{"signed comparison", bmv2.Op1("b2d", op("<", f("s8"), hex(1))), "b8", 1},
		{"unsigned comparison of 64 bits", bmv2.Op1("b2d", op(">", f("c64"), f("b64"))), "b8", 1},
		{"choice", bmv2.Cond(op("==", f("b8"), hex(0xff)), f("b16"), f("b32")), "b16", 0xabcd},
		{"choice of the other", bmv2.Cond(op("!=", f("b8"), hex(0xff)), f("b16"), f("b32")), "b16", 0xbeef},
		{"deeper than the registers that one side takes", op("+", op("*", f("b16"), f("b8")), op("*", op("+", f("b8"), f("b8")), op("-", f("b16"), f("b8")))), "b64", 0xabcd*0xff + 0x1fe*(0xabcd-0xff)},
	} {
		b.begin()
		b.set("m.b8", 0xff)
		b.set("m.b16", 0xabcd)
		b.set("m.b32", 0xdeadbeef)
		b.set("m.b64", 0x0123456789abcdef)
		b.set("m.c64", 1<<64-1)
		b.set("m.s8", 1<<64-2)
		b.set("m.s64", 1<<64-5)
		if !b.writer.Assignment(f(c.dst), b.writer.Tree(c.expr)) {
			t.Errorf("%s: not compiled", c.name)
			continue
		}
		b.run()
		if got := b.get("m." + c.dst); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}

// The writer refuses expressions that code cannot compute, and writes nothing
// for them.
func TestRefused(t *testing.T) {
	b := newBench(t)
	f := b.field
	deep := f("b8")
	for range len(Pool) + 1 {
		deep = bmv2.Op2("-", f("b8"), deep)
		deep = bmv2.Op2("-", f("b16"), bmv2.Op2("/", f("b8"), deep))
	}
	for name, try := range map[string]func() bool{
		"a field of 128 bits as target":   func() bool { return b.writer.Assignment(f("b128"), b.writer.Tree(f("b8"))) },
		"an operation that is unknown":    func() bool { return b.writer.Tree(bmv2.Op2("**", f("b8"), f("b8"))) != nil },
		"a field that is unknown":         func() bool { return b.writer.Tree(f("none")) != nil },
		"more registers than there are":   func() bool { return b.writer.Tree(deep) != nil },
		"a comparison of 128 bits":        func() bool { return b.writer.Condition(bmv2.Op2("<", f("b128"), f("b128"))) != nil },
		"a signed with an unsigned of 64": func() bool { return b.writer.Condition(bmv2.Op2("<", f("s64"), f("b64"))) != nil },
	} {
		b.begin()
		if try() || b.writer.Len() > 0 {
			t.Errorf("%s is compiled, or %d bytes are written", name, b.writer.Len())
		}
	}
}

// A condition jumps as requested, in all combinations of and, or and not.
func TestConditions(t *testing.T) {
	b := newBench(t)
	is := func(v int64) *bmv2.Expr { return bmv2.Op2("==", b.field("b8"), hex(v)) }
	less := func(v int64) *bmv2.Expr { return bmv2.Op2("<", b.field("b8"), hex(v)) }
	for name, c := range map[string]struct {
		expr *bmv2.Expr
		want func(v uint64) bool
	}{
		"equal":      {is(3), func(v uint64) bool { return v == 3 }},
		"not":        {bmv2.Op1("not", is(3)), func(v uint64) bool { return v != 3 }},
		"or":         {bmv2.Op2("or", is(3), less(2)), func(v uint64) bool { return v == 3 || v < 2 }},
		"and":        {bmv2.Op2("and", less(5), bmv2.Op1("not", is(2))), func(v uint64) bool { return v < 5 && v != 2 }},
		"not of and": {bmv2.Op1("not", bmv2.Op2("and", less(5), bmv2.Op1("not", less(2)))), func(v uint64) bool { return v >= 5 || v < 2 }},
		"or of ands": {bmv2.Op2("or", bmv2.Op2("and", less(4), bmv2.Op1("not", less(2))), bmv2.Op2("and", is(6), less(9))), func(v uint64) bool { return v == 2 || v == 3 || v == 6 }},
		"true":       {bmv2.BoolOf(true), func(uint64) bool { return true }},
		"false":      {bmv2.BoolOf(false), func(uint64) bool { return false }},
	} {
		for _, wanted := range []bool{false, true} {
			b.begin()
			k := b.writer
			jumped := k.NewLabel()
			k.StoreConst(Word(b.fields["m.b16"].Off), 1)
			k.Branch(k.Condition(c.expr), 0, jumped, wanted)
			k.StoreConst(Word(b.fields["m.b16"].Off), 0)
			k.Bind(jumped)
			// The same code runs for each value.
			for v := range uint64(8) {
				b.set("m.b8", v)
				if v == 0 {
					b.run()
				} else {
					b.again()
				}
				if got := b.get("m.b16") == 1; got != (c.want(v) == wanted) {
					t.Errorf("%s, jump if %v, value %d: jumped %v", name, wanted, v, got)
				}
			}
		}
	}
}

// A hash is base + H % size, cut to the width of its target. The CRC values are
// the check values for the digits 1 to 9.
func TestHashInto(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct {
		algo       string
		base, size *bmv2.Expr
		dst        string
		want       uint64
	}{
		{"crc32", hex(0), hex(1 << 32), "b32", 0xcbf43926},
		{"crc32", hex(0), hex(1 << 32), "b16", 0x3926},
		{"crc32", hex(0), hex(1 << 32), "b12", 0x926},
		{"crc32", hex(0), hex(1 << 32), "b64", 0xcbf43926},
		{"crc32", hex(1), hex(1 << 32), "b64", 0xcbf43927},
		{"crc32", hex(0), hex(1 << 12), "b64", 0x926},
		{"crc32", hex(0x10), hex(1 << 4), "b64", 0x16},
		{"crc32", hex(100), hex(7), "b64", 100 + 0xcbf43926%7},
		{"crc32", hex(5), hex(0), "b64", 5},
		{"crc32", hex(0xfff), hex(1 << 32), "b12", 0x925}, // the sum wraps
		{"crc32", b.field("b8"), b.field("b16"), "b64", 9 + 0xcbf43926%1000},
		{"crc16", hex(0), hex(1 << 16), "b64", 0xbb3d},
		{"crc16", hex(0), hex(1 << 32), "b8", 0x3d},
		{"crc16", hex(0), hex(10), "b64", 0xbb3d % 10},
	} {
		b.begin()
		calc, err := hash.NewCalculation(b.writer.Linker, &bmv2.Calculation{Name: "c", Algo: c.algo, Input: []*bmv2.Expr{b.field("t1"), b.field("t2"), b.field("t3")}})
		if err != nil {
			t.Fatal(err)
		}
		b.set("m.t1", '1')
		b.set("m.t2", 0x3233)
		b.set("m.t3", 0x343536373839)
		b.set("m.b8", 9)
		b.set("m.b16", 1000)
		if !b.writer.HashInto(calc, []*bmv2.Expr{b.field(c.dst), c.base, nil, c.size}, nil) {
			t.Errorf("%s into %s is not compiled", c.algo, c.dst)
			continue
		}
		b.run()
		if got := b.get("m." + c.dst); got != c.want {
			t.Errorf("%s: %v + H %% %v into %s: %#x, want %#x", c.algo, c.base, c.size, c.dst, got, c.want)
		}
	}
}

// A cell is accessed only at an index within the array; the low 32 bits of the
// index count. A value is cut to the width of the cell or the field.
func TestCells(t *testing.T) {
	b := newBench(t)
	r := cell.NewRegister(&bmv2.RegisterArray{Name: "r", Size: 4, Bitwidth: 12})
	for _, c := range []struct {
		index, value uint64
		want         [4]uint64
		read         uint64 // into a field of 8 bits that holds 0x55 before
	}{
		{0, 0x1abc, [4]uint64{0xabc, 2, 3, 4}, 0xbc},
		{3, 7, [4]uint64{1, 2, 3, 7}, 7},
		{4, 7, [4]uint64{1, 2, 3, 4}, 0x55},
		{1 << 31, 7, [4]uint64{1, 2, 3, 4}, 0x55},
		{1<<32 + 1, 7, [4]uint64{1, 7, 3, 4}, 7},
		{1<<64 - 1, 7, [4]uint64{1, 2, 3, 4}, 0x55},
	} {
		b.begin()
		copy(r.Cells, []uint64{1, 2, 3, 4})
		b.set("m.b64", c.index)
		b.set("m.b32", c.value)
		b.set("m.b8", 0x55)
		if !b.writer.WriteCell(r, b.field("b64"), b.field("b32")) || !b.writer.ReadCell(r, b.field("b8"), b.field("b64")) {
			t.Fatal("not compiled")
		}
		b.run()
		if [4]uint64(r.Cells) != c.want || b.get("m.b8") != c.read {
			t.Errorf("index %#x: cells %#x and %#x read, want %#x and %#x", c.index, r.Cells, b.get("m.b8"), c.want, c.read)
		}
	}
}

// A counter counts a packet and its bytes only in a cell within the array.
func TestCountPacket(t *testing.T) {
	b := newBench(t)
	counters := &cell.Counters{Cells: make([]cell.Count, 3)}
	b.state.IngressLength = 100
	for _, index := range []uint64{2, 2, 0, 3, 1 << 32} {
		b.begin()
		b.set("m.b64", index)
		if !b.writer.CountPacket(counters, b.field("b64")) {
			t.Fatal("not compiled")
		}
		b.run()
	}
	if want := [3]cell.Count{{Packets: 2, Bytes: 200}, {}, {Packets: 2, Bytes: 200}}; [3]cell.Count(counters.Cells) != want {
		t.Errorf("%v, want %v", counters.Cells, want)
	}
}

// Headers become valid with fields of zero, become invalid, and are copied with
// their validity; the length of the packet follows.
func TestHeaders(t *testing.T) {
	b := newBench(t)
	h, g := bmv2.Ref(bmv2.TypeHeader, "h"), bmv2.Ref(bmv2.TypeHeader, "g")
	valid := func(name string) uint64 { return b.state.W[b.layout.HeaderNames[name].Valid()] }
	step := func(name string, write func() bool) {
		t.Helper()
		b.begin()
		if !write() {
			t.Fatalf("%s: not compiled", name)
		}
		b.run()
	}
	b.state.Length = 50
	b.set("h.x", 9) // left over from a packet before
	step("add", func() bool { return b.writer.OnFixed(h, b.writer.MakeValid) })
	if valid("h") != 1 || b.get("h.x") != 0 || b.state.Length != 53 {
		t.Errorf("added: valid %d, x %d, length %d", valid("h"), b.get("h.x"), b.state.Length)
	}
	b.set("h.x", 7)
	step("add again", func() bool { return b.writer.OnFixed(h, b.writer.MakeValid) })
	if b.get("h.x") != 7 || b.state.Length != 53 {
		t.Errorf("added again: x %d, length %d", b.get("h.x"), b.state.Length)
	}
	step("copy", func() bool { return b.writer.CopyHeader(g, h) })
	if valid("g") != 1 || b.get("g.x") != 7 {
		t.Errorf("copied: valid %d, x %d", valid("g"), b.get("g.x"))
	}
	step("remove", func() bool { return b.writer.OnFixed(h, b.writer.MakeInvalid) })
	step("remove again", func() bool { return b.writer.OnFixed(h, b.writer.MakeInvalid) })
	if valid("h") != 0 || b.state.Length != 50 {
		t.Errorf("removed: valid %d, length %d", valid("h"), b.state.Length)
	}
	step("copy an invalid header", func() bool { return b.writer.CopyHeader(g, h) })
	if valid("g") != 0 {
		t.Error("the copy of an invalid header is valid")
	}
}
