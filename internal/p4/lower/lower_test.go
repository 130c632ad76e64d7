package lower

import (
	"bytes"
	"math/big"
	"regexp"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/p4/p4test"
	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// TestNotSupported checks that valid P4_16 that v1model on BMv2 cannot express is
// refused at its position. The locals begin on line 18 of the program.
func TestNotSupported(t *testing.T) {
	for _, test := range []struct{ name, locals, want string }{
		{"division by a run-time value", `apply { h.h.f = h.h.f / m.x; }`, `^program.p4:18:17: not supported: division`},
		{"clone of the egress in the ingress", `apply { clone(CloneType.E2E, 1); }`, `^program.p4:18:9: not supported: clone\(E2E, …\) outside of the egress`},
		{"recirculate in the ingress", `apply { recirculate_preserving_field_list(0); }`, `not supported: recirculate outside of the egress`},
		{"checksum in the ingress", `apply { update_checksum(true, { h.h.f }, m.x, HashAlgorithm.crc32); }`, `not supported: update_checksum outside`},
		{"register of booleans", `register<bool>(4) r; apply { r.write(0, true); }`, `^program.p4:18:\d+: not supported: a register of bool: want a register of bit<W>, int<W> or a struct of them`},
		{"direct register", `register<bit<8>>(0) r; apply { r.read(h.h.g, 0); }`, `not supported: a direct register`},
		{"hash algorithm at run time", `apply { HashAlgorithm a = HashAlgorithm.crc16; if (m.x == 0) { a = HashAlgorithm.crc32; } hash(m.x, a, 32w0, { h.h.f }, 32w8); }`, `not supported: a hash algorithm that is not a constant`},
		{"two lpm keys", `table t { key = { h.h.f : lpm; m.x : lpm; } actions = { nop; } default_action = nop; } apply { t.apply(); }`, `has 2 lpm keys; BMv2 allows one`},
		{"two tables of one name", `Inner() i1; Inner() i2; apply { i1.apply(); i2.apply(); }`, `another table is called abs`},
		{"one register twice by direct application", `apply { Count.apply(h.h.f); Count.apply(m.x); }`, `^program.p4:16:\d+: another register is called In.Count.r`},
		{"hit here and action there", `table t { key = { h.h.f : exact; } actions = { nop; } default_action = nop; }
			apply { if (t.apply().hit) { m.x = 1; } else { switch (t.apply().action_run) { nop: { m.x = 2; } } } }`, `for hit or miss here and for its action elsewhere`},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, info := p4test.Check(t, p4test.V1Model(test.locals))
			cfg, errs := Lower(file, info, Options{})
			if cfg != nil || errs.Err() == nil {
				t.Fatalf("it was lowered, want an error like %s", test.want)
			}
			if msg := errs.Error(); !regexp.MustCompile(test.want).MatchString(msg) {
				t.Errorf("got %s, want %s", msg, test.want)
			}
		})
	}
}

// TestDeterministic: the same program gives the same bytes, and they load.
func TestDeterministic(t *testing.T) {
	program := p4test.V1Model(`
		action set(bit<8> v, bit<32> w) { h.h.g = v; m.x = w; }
		table t { key = { h.h.f : lpm; h.h.g & 0x0f : ternary; } actions = { set; nop; } default_action = nop; }
		Inner() i; register<bit<8>>(16) r; counter(8, CounterType.bytes) c;
		apply { i.apply(); switch (t.apply().action_run) { set: { r.write(0, h.h.g); } default: { c.count(1); } } }`)
	var first []byte
	for range 5 {
		file, info := p4test.Check(t, program)
		cfg, errs := Lower(file, info, Options{})
		if errs.Err() != nil {
			t.Fatal(errs)
		}
		var b bytes.Buffer
		if err := cfg.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := bmv2.Load(b.Bytes()); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Fatal("two runs differ")
		}
	}
}

// TestPrefixes: the masks of a range match its numbers and no others, and
// there is no shorter list than 2·width - 2.
func TestPrefixes(t *testing.T) {
	const width = 5
	for lo := int64(0); lo < 1<<width; lo++ {
		for hi := lo; hi < 1<<width; hi++ {
			list := prefixes(big.NewInt(lo), big.NewInt(hi), width)
			if len(list) > 2*width-2 && width > 1 {
				t.Fatalf("%d..%d takes %d masks", lo, hi, len(list))
			}
			for v := int64(0); v < 1<<width; v++ {
				n := 0
				for _, p := range list {
					if v&p[1].Int64() == p[0].Int64() {
						n++
					}
				}
				if in := lo <= v && v <= hi; in && n != 1 || !in && n != 0 {
					t.Fatalf("%d..%d matches %d %d times", lo, hi, v, n)
				}
			}
		}
	}
}

// TestFoldAgainstMachine compares folding at 8 and 16 bits with the machine's
// own arithmetic.
func TestFoldAgainstMachine(t *testing.T) {
	u8, i8 := scalar{width: 8}, scalar{width: 8, signed: true}
	num := func(v int64, st scalar) *ex { return intEx(v, st) }
	sat := func(v, lo, hi int) int64 { return int64(max(lo, min(hi, v))) }
	for a := range 256 {
		for b := a % 5; b < 256; b += 5 { // a fifth of the pairs
			x, y, sx, sy := uint8(a), uint8(b), int8(a), int8(b)
			for _, c := range []struct {
				op   syntax.Operator
				st   scalar
				want int64
			}{
				{syntax.Add, u8, int64(x + y)}, {syntax.Sub, u8, int64(x - y)}, {syntax.Mul, u8, int64(x * y)},
				{syntax.And, u8, int64(x & y)}, {syntax.Or, u8, int64(x | y)}, {syntax.Xor, u8, int64(x ^ y)},
				{syntax.SatAdd, u8, sat(a+b, 0, 255)}, {syntax.SatSub, u8, sat(a-b, 0, 255)},
				{syntax.Add, i8, int64(sx + sy)}, {syntax.Sub, i8, int64(sx - sy)}, {syntax.Mul, i8, int64(sx * sy)},
				{syntax.SatAdd, i8, sat(int(sx)+int(sy), -128, 127)}, {syntax.SatSub, i8, sat(int(sx)-int(sy), -128, 127)},
			} {
				l, r := num(int64(x), u8), num(int64(y), u8)
				if c.st.signed {
					l, r = num(int64(sx), i8), num(int64(sy), i8)
				}
				if got := binary(c.op, l, r, c.st); !got.isConst() || got.v.Int64() != c.want {
					t.Fatalf("%d op %d %d (%+v) = %v, want %d", a, c.op, b, c.st, got.v, c.want)
				}
			}
			if y > 0 {
				if got := binary(syntax.Div, num(int64(x), u8), num(int64(y), u8), u8).v.Int64(); got != int64(x/y) {
					t.Fatalf("%d / %d = %d", x, y, got)
				}
			}
			if got := binary(syntax.Concat, num(int64(x), u8), num(int64(sy), i8), scalar{width: 16}).v.Int64(); got != int64(x)<<8|int64(y) {
				t.Fatalf("%d ++ %d = %d", x, sy, got)
			}
		}
	}
}

// TestLeastChange: constants and identities leave nothing to do at run time.
func TestLeastChange(t *testing.T) {
	f := fieldEx(&field{header: "h", name: "f", st: scalar{width: 8}})
	u8 := scalar{width: 8}
	for name, c := range map[string]struct {
		got  *ex
		want opcode
	}{
		"x << 0":           {binary(syntax.Shl, f, intEx(0, u8), u8), opField},
		"x >> 8":           {binary(syntax.Shr, f, intEx(8, u8), u8), opConst},
		"x[7:0]":           {slice(f, 7, 0), opField},
		"!!x":              {not(not(&ex{op: opValid, st: boolean})), opValid},
		"true && x":        {andAlso(boolEx(true), &ex{op: opValid, st: boolean}), opValid},
		"false ? 1 : x":    {cond(boolEx(false), intEx(1, u8), f), opField},
		"0 / x":            {binary(syntax.Div, intEx(0, u8), f, u8), opConst},
		"(bit<8>) x":       {cast(f, u8), opField},
		"x / 4 is a shift": {binary(syntax.Div, f, intEx(4, u8), u8), opBinary},
	} {
		if c.got.op != c.want {
			t.Errorf("%s: opcode %d, want %d", name, c.got.op, c.want)
		}
	}
	if got := binary(syntax.Div, f, intEx(4, u8), u8); got.tok != syntax.Shr {
		t.Errorf("x / 4 is operator %d, want a shift", got.tok)
	}
}

// TestMaskedKeys checks entries under a masked key. P4_16 section 14.2.1.1 matches
// the value of the key expression, which has no bits outside of the mask; p4c's
// documents carry the mask beside the field, and simple_switch applies it to the
// entry as well (bm::MatchUnitExact, apply_big_mask). p4lb stays equal to them and
// warns. Line 18 has the locals.
func TestMaskedKeys(t *testing.T) {
	table := func(key, entries string) string {
		return `table t { key = { ` + key + `: exact @name("k"); } actions = { nop; } default_action = nop; const entries = { ` + entries + ` } } apply { t.apply(); }`
	}
	for _, test := range []struct{ locals, want string }{
		{table("h.h.g & 0x0f", "0x12: nop; 0x03: nop;"), `^program.p4:18:\d+: warning: key k: the entry 0x12 has bits outside of the mask 0x0f, which BMv2 ignores: it matches 0x02$`},
		{table("0x0f & h.h.g", "0x12: nop;"), `warning: key k: the entry 0x12 has bits outside of the mask 0x0f`},
		{table("h.h.g & 0x0f", "0x02: nop; 0x0f: nop;"), `^$`},
		{table("h.h.g & 0x0f", "0x02: nop; 0x12: nop;"), `an earlier entry of table In.t has the same key: remove one`},
		{table("h.h.g", "0x12: nop;"), `^$`},
	} {
		file, info := p4test.Check(t, p4test.V1Model(test.locals))
		_, errs := Lower(file, info, Options{})
		text := ""
		for _, e := range errs {
			text = e.Error()
		}
		if !regexp.MustCompile(test.want).MatchString(text) {
			t.Errorf("%s: got %q, want %q", test.locals, text, test.want)
		}
	}
}

// TestShiftWarning checks that v1model warns of an amount wider than the 32 bits
// that simple_switch uses, and of no other.
func TestShiftWarning(t *testing.T) {
	for _, test := range []struct{ apply, want string }{
		{"h.h.g = h.h.g << 40w3;", ""},
		{"h.h.g = h.h.g << h.h.f;", ""},
		{"h.h.g = h.h.g << ((bit<33>)m.x);", "program.p4:18:17: warning: << by an amount of 33 bits: BMv2 uses its low 32 bits: make the amount bit<32> or narrower"},
		{"h.h.g >>= (bit<64>)m.x;", "program.p4:18:9: warning: >> by an amount of 64 bits: BMv2 uses its low 32 bits: make the amount bit<32> or narrower"},
	} {
		file, info := p4test.Check(t, p4test.V1Model("apply { "+test.apply+" }"))
		_, errs := Lower(file, info, Options{})
		text := ""
		for _, e := range errs {
			text = e.Error()
		}
		if text != test.want {
			t.Errorf("%s: got %q, want %q", test.apply, text, test.want)
		}
	}
}

// TestUnreachedDirectObjects checks that a table which no packet reaches leaves no
// counter or meter behind: a document with one is refused.
func TestUnreachedDirectObjects(t *testing.T) {
	for _, test := range []struct {
		locals           string
		counters, meters int
	}{
		{`direct_counter(CounterType.packets) c; table t { key = { h.h.g: exact; } actions = { nop; } counters = c; }
apply { if (8w1 > 8w2) { t.apply(); } }`, 0, 0},
		{`direct_counter(CounterType.packets) c; table t { key = { h.h.g: exact; } actions = { nop; } counters = c; }
apply { exit; t.apply(); }`, 0, 0},
		{`direct_counter(CounterType.packets) c; table t { key = { h.h.g: exact; } actions = { nop; } counters = c; }
apply { t.apply(); }`, 1, 0},
		{`direct_meter<bit<32>>(MeterType.packets) r; action mark() { r.read(m.x); } table t { key = { h.h.g: exact; } actions = { mark; } meters = r; }
apply { exit; t.apply(); }`, 0, 0},
		{`direct_meter<bit<32>>(MeterType.packets) r; action mark() { r.read(m.x); } table t { key = { h.h.g: exact; } actions = { mark; } meters = r; }
apply { t.apply(); }`, 0, 1},
	} {
		file, info := p4test.Check(t, p4test.V1Model(test.locals))
		config, errs := Lower(file, info, Options{})
		if config == nil {
			t.Errorf("%s: %v", test.locals, errs)
			continue
		}
		if err := config.Validate(); err != nil {
			t.Errorf("%s: %v", test.locals, err)
		}
		if len(config.CounterArrays) != test.counters || len(config.MeterArrays) != test.meters {
			t.Errorf("%s: %d counters and %d meters, want %d and %d", test.locals, len(config.CounterArrays), len(config.MeterArrays), test.counters, test.meters)
		}
	}
}
