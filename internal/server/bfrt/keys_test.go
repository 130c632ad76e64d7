package server

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// match returns a key from matches by field name: "=HEX", "HEX&HEX", "HEX/BITS" or
// "HEX..HEX", each in the bytes that go over the wire.
func (r *rig) match(table string, fields ...string) *wire.TableKey {
	r.t.Helper()
	decode := func(s string) []byte {
		b, err := hex.DecodeString(s)
		r.must(err)
		return b
	}
	k := &wire.TableKey{}
	for i := 0; i < len(fields); i += 2 {
		x := &wire.KeyField{}
		for _, f := range r.table(table).keys {
			if f.name == fields[i] || strings.HasSuffix(f.name, "."+fields[i]) {
				x.FieldId = f.id
			}
		}
		if x.FieldId == 0 {
			r.t.Fatalf("table %s has no key field %s", table, fields[i])
		}
		text := fields[i+1]
		if exact, ok := strings.CutPrefix(text, "="); ok {
			x.MatchType = &wire.KeyField_Exact_{Exact: &wire.KeyField_Exact{Value: decode(exact)}}
		} else if v, mask, ok := strings.Cut(text, "&"); ok {
			x.MatchType = &wire.KeyField_Ternary_{Ternary: &wire.KeyField_Ternary{Value: decode(v), Mask: decode(mask)}}
		} else if low, high, ok := strings.Cut(text, ".."); ok {
			x.MatchType = &wire.KeyField_Range_{Range: &wire.KeyField_Range{Low: decode(low), High: decode(high)}}
		} else {
			v, bits, _ := strings.Cut(text, "/")
			m := &wire.KeyField_LPM{Value: decode(v)}
			fmt.Sscan(bits, &m.PrefixLen)
			x.MatchType = &wire.KeyField_Lpm{Lpm: m}
		}
		k.Fields = append(k.Fields, x)
	}
	return k
}

// described formats a key as match reads it.
func (r *rig) described(table string, k *wire.TableKey) (list []string) {
	for _, x := range k.GetFields() {
		for _, f := range r.table(table).keys {
			if f.id == x.GetFieldId() {
				list = append(list, f.name[strings.LastIndexByte(f.name, '.')+1:])
			}
		}
		switch m := x.GetMatchType().(type) {
		case *wire.KeyField_Exact_:
			list = append(list, fmt.Sprintf("=%x", m.Exact.GetValue()))
		case *wire.KeyField_Ternary_:
			list = append(list, fmt.Sprintf("%x&%x", m.Ternary.GetValue(), m.Ternary.GetMask()))
		case *wire.KeyField_Range_:
			list = append(list, fmt.Sprintf("%x..%x", m.Range.GetLow(), m.Range.GetHigh()))
		case *wire.KeyField_Lpm:
			list = append(list, fmt.Sprintf("%x/%d", m.Lpm.GetValue(), m.Lpm.GetPrefixLen()))
		}
	}
	return list
}

// goes sends a packet to port 2 and returns the port at which it leaves: 2 or 130, or 1 if
// no entry matches.
func (r *rig) goes(b []byte) (port uint32, out []byte) {
	r.t.Helper()
	r.send(2, b)
	select {
	case out = <-r.ports[1].sent:
		return 1, out
	case out = <-r.ports[2].sent:
		return 2, out
	case out = <-r.ports[130].sent:
		return 130, out
	case <-r.t.Context().Done():
		r.t.Fatal("no packet leaves")
	}
	return 0, nil
}

// Each kind of key has the bytes of its width and matches the specified packets; a read
// returns the same bytes.
func TestKeys(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	type packet struct {
		dst, src, kind uint64
		port           uint32
	}
	for name, test := range map[string]struct {
		table string
		keys  [][]string // of entries that send to ports 2 and 130
		reads []string   // result of reading the first key; nil: the key itself
		sent  []packet
	}{
		"the longest prefix": {"In.routes", [][]string{{"dst", "0a0b00000000/16"}, {"dst", "0a0b0c000000/24"}}, nil, []packet{
			{0x0a0b01000000, 0, 1, 2}, {0x0a0bffffffff, 0, 1, 2}, {0x0a0b0cffffff, 0, 1, 130}, {0x0a0c00000000, 0, 1, 1},
		}},
		"bits beyond the prefix": {"In.routes", [][]string{{"dst", "0a0bffffffff/17"}}, []string{"dst", "0a0b80000000/17"}, []packet{
			{0x0a0b80000000, 0, 1, 2}, {0x0a0b7fffffff, 0, 1, 1},
		}},
		"no prefix": {"In.routes", [][]string{{"dst", "000000000000/0"}, {"dst", "000000000001/48"}}, nil, []packet{
			{5, 0, 1, 2}, {1, 0, 1, 130},
		}},
		"a prefix left out": {"In.routes", [][]string{{}}, []string{"dst", "000000000000/0"}, []packet{{5, 0, 1, 2}}},
		"the smallest priority": {"In.rules", [][]string{
			{"src", "000000000005&0000000000ff", "kind", "0000..ffff", "rank", "=0000", "$MATCH_PRIORITY", "=00000002"},
			{"src", "000000000105&00000000ffff", "kind", "0000..ffff", "rank", "=0000", "$MATCH_PRIORITY", "=00000001"},
		}, nil, []packet{{0, 5, 9, 2}, {0, 0x105, 9, 130}, {0, 0x205, 9, 2}, {0, 6, 9, 1}}},
		"a range": {"In.rules", [][]string{
			{"src", "000000000000&000000000000", "kind", "0010..01ff", "rank", "=0000", "$MATCH_PRIORITY", "=00000000"},
			{"src", "000000000000&000000000000", "kind", "0200..0200", "rank", "=0000", "$MATCH_PRIORITY", "=00000000"},
		}, nil, []packet{{0, 0, 0x0f, 1}, {0, 0, 0x10, 2}, {0, 0, 0x1ff, 2}, {0, 0, 0x200, 130}, {0, 0, 0x201, 1}}},
		"fields left out": {"In.rules", [][]string{{"rank", "=0000"}}, []string{"src", "000000000000&000000000000", "kind", "0000..ffff", "rank", "=0000", "$MATCH_PRIORITY", "=00000000"}, []packet{
			{0, 0, 9, 2}, {7, 1 << 47, 0xffff, 2},
		}},
		"another rank": {"In.rules", [][]string{{"rank", "=01ff"}}, []string{"src", "000000000000&000000000000", "kind", "0000..ffff", "rank", "=01ff", "$MATCH_PRIORITY", "=00000000"}, []packet{
			{0, 0, 9, 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			for i, k := range test.keys {
				r.set(ins, test.table, r.match(test.table, k...), r.data(test.table, "send", "port", []int{2, 130}[i]))
			}
			if r.size(test.table) != len(test.keys) {
				t.Errorf("%d entries", r.size(test.table))
			}
			want := test.reads
			if want == nil {
				want = test.keys[0]
			}
			list, err := r.read(everywhere, r.entry(test.table, r.match(test.table, test.keys[0]...), nil))
			r.must(err)
			if len(list) != 1 {
				t.Fatalf("%d entries have the key", len(list))
			}
			if got := r.described(test.table, list[0].GetKey()); !slices.Equal(got, want) {
				t.Errorf("read %q, want %q", got, want)
			}
			for _, p := range test.sent {
				if port, _ := r.goes(frame(p.dst, p.src, p.kind)); port != p.port {
					t.Errorf("%+v leaves by port %d", p, port)
				}
			}
			for _, k := range test.keys {
				r.set(del, test.table, r.match(test.table, k...), nil)
			}
			if n := r.size(test.table); n != 0 {
				t.Errorf("%d entries are left", n)
			}
		})
	}
	r.t = t
	send := r.data("In.rules", "send", "port", 2)
	for name, test := range map[string]struct {
		table string
		key   []string
		says  string
	}{
		"a prefix too long":          {"In.routes", []string{"dst", "0a0b00000000/49"}, "prefix length 49 is outside 0..48"},
		"a negative prefix":          {"In.routes", []string{"dst", "0a0b00000000/-1"}, "prefix length -1 is outside 0..48"},
		"a byte too few":             {"In.routes", []string{"dst", "0a0b000000/8"}, "has 5 bytes, want 6"},
		"a mask for a prefix":        {"In.routes", []string{"dst", "0a0b00000000&ffffffffffff"}, "wants a match of kind LPM"},
		"a mask too short":           {"In.rules", []string{"src", "000000000000&00", "rank", "=0000"}, "has 1 bytes, want 6"},
		"a masked value too short":   {"In.rules", []string{"src", "00&000000000000", "rank", "=0000"}, "has 1 bytes, want 6"},
		"a prefix for a mask":        {"In.rules", []string{"src", "000000000000/8", "rank", "=0000"}, "wants a match of kind Ternary"},
		"an end too long":            {"In.rules", []string{"kind", "0000..000000", "rank", "=0000"}, "has 3 bytes, want 2"},
		"a begin too long":           {"In.rules", []string{"kind", "000000..0000", "rank", "=0000"}, "has 3 bytes, want 2"},
		"an exact value for a range": {"In.rules", []string{"kind", "=0000", "rank", "=0000"}, "wants a match of kind Range"},
		"a bit too many":             {"In.rules", []string{"rank", "=0200"}, "has more than 9 bits"},
		"an exact field left out":    {"In.rules", []string{"kind", "0000..0000"}, "the key lacks"},
		"a range for an exact value": {"In.rules", []string{"rank", "0000..0001"}, "wants a match of kind Exact"},
		"a priority of two bytes":    {"In.rules", []string{"rank", "=0000", "$MATCH_PRIORITY", "=0001"}, "has 2 bytes, want 4"},
	} {
		r.refused(name, update(ins, r.entry(test.table, r.match(test.table, test.key...), send)), codes.InvalidArgument, test.says)
	}
}

// src returns the low bits of a packet's source address.
func src(b []byte, bits int) uint64 {
	v := uintOf(b[6:12])
	return v & (1<<bits - 1)
}

// Each entry of a table with a meter has its own rates: the rates of its last update, or none.
func TestEntryMeters(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	const green, red = 0, 3
	colour := func(what string, dst, want uint64) {
		t.Helper()
		if _, out := r.goes(frame(dst, 0, 2)); src(out, 8) != want {
			t.Errorf("%s: entry %d colours packets %d, want %d", what, dst, src(out, 8), want)
		}
	}
	slow := []any{"$METER_SPEC_CIR_KBPS", 0, "$METER_SPEC_PIR_KBPS", 0, "$METER_SPEC_CBS_KBITS", 0, "$METER_SPEC_PBS_KBITS", 0}
	r.set(ins, "In.metered", r.key("In.metered", 7), r.data("In.metered", "colour", append([]any{"port", 2}, slow...)...))
	r.set(ins, "In.metered", r.key("In.metered", 8), r.data("In.metered", "colour", "port", 2))
	colour("without rates", 8, green)
	colour("with rates", 7, red)
	r.set(mod, "In.metered", r.key("In.metered", 8), r.data("In.metered", "", slow...))
	colour("with rates set later", 8, red)
	rates := func(dst uint64) (list []uint64) {
		d := r.get(everywhere, "In.metered", r.key("In.metered", dst))
		for _, name := range []string{"$METER_SPEC_CIR_KBPS", "$METER_SPEC_PIR_KBPS", "$METER_SPEC_CBS_KBITS", "$METER_SPEC_PBS_KBITS"} {
			list = append(list, r.values("In.metered", d, name)...)
		}
		return list
	}
	if got := rates(8); !slices.Equal(got, []uint64{0, 0, 0, 0}) {
		t.Errorf("rates %d", got)
	}
	r.set(mod, "In.metered", r.key("In.metered", 8), r.data("In.metered", "", "$METER_SPEC_PIR_KBPS", 50))
	if got := rates(8); !slices.Equal(got, []uint64{0, 50, 0, 0}) {
		t.Errorf("after a change of one rate: %d", got)
	}
	r.refused("a peak below the rate", update(mod, r.entry("In.metered", r.key("In.metered", 8), r.data("In.metered", "", "$METER_SPEC_CIR_KBPS", 51))), codes.InvalidArgument, "peak rate is below")
	if got := rates(8); !slices.Equal(got, []uint64{0, 50, 0, 0}) {
		t.Errorf("after a refused change: %d", got)
	}
	r.set(mod, "In.metered", r.key("In.metered", 8), r.data("In.metered", "colour", "port", 130))
	colour("with another port", 8, red)
	// A new entry has none of the rates of an entry that was deleted.
	r.set(del, "In.metered", r.key("In.metered", 7), nil)
	r.set(ins, "In.metered", r.key("In.metered", 9), r.data("In.metered", "colour", "port", 2))
	colour("after another was deleted", 9, green)
	if got := rates(9); slices.Contains(got, 0) {
		t.Errorf("a new entry has rates %d", got)
	}
}

// Each entry of a table with registers has a cell in each pipe. It starts with the initial
// value, regardless of the previous entry's value.
func TestEntryRegisters(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	counts := func(what string, dst, want uint64) {
		t.Helper()
		if port, out := r.goes(frame(dst, 0, 3)); port != 2 || src(out, 16) != want {
			t.Errorf("%s: entry %d counts %d to port %d, want %d", what, dst, src(out, 16), port, want)
		}
	}
	cells := func(what string, dst uint64, first, second []uint64) {
		t.Helper()
		d := r.get(everywhere, "In.counted", r.key("In.counted", dst))
		if got := r.values("In.counted", d, "first"); !slices.Equal(got, first) {
			t.Errorf("%s: first parts %d, want %d", what, got, first)
		}
		if got := r.values("In.counted", d, "second"); !slices.Equal(got, second) {
			t.Errorf("%s: second parts %d, want %d", what, got, second)
		}
	}
	for dst := range uint64(3) {
		r.set(ins, "In.counted", r.key("In.counted", dst), r.data("In.counted", "tally", "port", 2))
	}
	counts("at first", 1, 8)
	counts("then", 1, 9)
	counts("another", 2, 8)
	pipes := len(r.values("In.counted", r.get(everywhere, "In.counted", r.key("In.counted", 0)), "first"))
	all := func(v, rest uint64) []uint64 {
		return append([]uint64{v}, slices.Repeat([]uint64{rest}, pipes-1)...)
	}
	cells("counted in pipe 0", 1, all(9, 7), all(9, 9))
	r.set(mod, "In.counted", r.key("In.counted", 1), r.data("In.counted", "", "second", 500))
	cells("after a change of one part", 1, all(9, 7), all(500, 500))
	cells("of another entry", 2, all(8, 7), all(9, 9))
	r.set(mod, "In.counted", r.key("In.counted", 1), r.data("In.counted", "tally", "port", 2, "first", 0xfffe))
	counts("after a change of the other part", 1, 0xffff)
	counts("beyond the width", 1, 0)
	cells("beyond the width", 1, all(0, 0xfffe), all(500, 500))
	r.set(del, "In.counted", r.key("In.counted", 1), nil)
	r.set(ins, "In.counted", r.key("In.counted", 9), r.data("In.counted", "tally", "port", 2, "second", 3))
	cells("after another was deleted", 9, all(7, 7), all(3, 3))
	counts("after another was deleted", 9, 8)
	// A batch that fails leaves the cells as they were.
	undone := func(u *wire.Update) {
		t.Helper()
		req := &wire.WriteRequest{Target: everywhere, ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: []*wire.Update{
			u, update(ins, r.entry("In.counted", r.key("In.counted", 2), r.data("In.counted", "tally", "port", 2))),
		}}
		if _, err := r.c.Write(t.Context(), req); err == nil {
			t.Error("a batch with an entry twice is accepted")
		}
	}
	undone(update(mod, r.entry("In.counted", r.key("In.counted", 9), r.data("In.counted", "tally", "port", 130, "first", 77))))
	cells("after a change that was undone", 9, all(8, 7), all(3, 3))
	undone(update(del, r.entry("In.counted", r.key("In.counted", 9), nil)))
	cells("after a deletion that was undone", 9, all(8, 7), all(3, 3))
	counts("after a deletion that was undone", 9, 9)
}

// Entries have their own filters. With a time constant of 0, a filter follows its input and
// early detection decides by the last value alone.
func TestEntryFilters(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	lpf := func(shift int) *wire.TableData {
		d := r.data("In.smoothed", "smooth", "port", 2, "$LPF_SPEC_TYPE", "SAMPLE", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", shift)
		return r.floats("In.smoothed", d, 1, "$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "$LPF_SPEC_DECAY_TIME_CONSTANT_NS")
	}
	smooth := func(what string, entry, in, want uint64) {
		t.Helper()
		if _, out := r.goes(frame(in, entry, 4)); src(out, 32) != want {
			t.Errorf("%s: entry %d makes %d of %d, want %d", what, entry, src(out, 32), in, want)
		}
	}
	r.set(ins, "In.smoothed", r.key("In.smoothed", 1), lpf(0))
	r.set(ins, "In.smoothed", r.key("In.smoothed", 2), lpf(4))
	for _, in := range []uint64{1000, 320} {
		smooth("no shift", 1, in, in)
		smooth("a shift", 2, in, in>>4)
	}
	shift := func(entry uint64) []uint64 {
		return r.values("In.smoothed", r.get(everywhere, "In.smoothed", r.key("In.smoothed", entry)), "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR")
	}
	if a, b := shift(1), shift(2); !slices.Equal(a, []uint64{0}) || !slices.Equal(b, []uint64{4}) {
		t.Errorf("shifts %d and %d", a, b)
	}
	r.set(mod, "In.smoothed", r.key("In.smoothed", 1), r.data("In.smoothed", "", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", 1))
	smooth("another shift", 1, 1000, 500)

	wred := func(least, most int) *wire.TableData {
		d := r.data("In.detected", "detect", "port", 2, "$WRED_SPEC_MIN_THRESH_CELLS", least, "$WRED_SPEC_MAX_THRESH_CELLS", most)
		return r.floats("In.detected", d, 1, "$WRED_SPEC_TIME_CONSTANT_NS", "$WRED_SPEC_MAX_PROBABILITY")
	}
	drops := func(what string, entry, in, want uint64) {
		t.Helper()
		if _, out := r.goes(frame(in, entry, 5)); src(out, 8) != want {
			t.Errorf("%s: entry %d answers %d with %d, want %d", what, entry, in, src(out, 8), want)
		}
	}
	r.set(ins, "In.detected", r.key("In.detected", 1), wred(100, 200))
	r.set(ins, "In.detected", r.key("In.detected", 2), wred(1000, 2000))
	drops("below", 1, 50, 0)
	drops("above", 1, 300, 1)
	drops("below the other's", 2, 300, 0)
	drops("above the other's", 2, 3000, 1)
	r.set(mod, "In.detected", r.key("In.detected", 1), r.data("In.detected", "", "$WRED_SPEC_MIN_THRESH_CELLS", 5000, "$WRED_SPEC_MAX_THRESH_CELLS", 6000))
	drops("after a change", 1, 300, 0)
	r.set(del, "In.detected", r.key("In.detected", 1), nil)
	r.set(ins, "In.detected", r.key("In.detected", 3), r.data("In.detected", "detect", "port", 2))
	drops("after another was deleted", 3, 100000, 0)
	got := r.values("In.detected", r.get(everywhere, "In.detected", r.key("In.detected", 3)), "$WRED_SPEC_MAX_THRESH_CELLS")
	if !slices.Equal(got, []uint64{0xff000000}) {
		t.Errorf("a new entry has the threshold %d", got)
	}
}

// A batch that fails leaves the rates and filters of entries as they were before, in the
// data plane too.
func TestEntryStateUndone(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	wred := func(most int) *wire.TableData {
		d := r.data("In.detected", "", "$WRED_SPEC_MIN_THRESH_CELLS", most-1, "$WRED_SPEC_MAX_THRESH_CELLS", most)
		return r.floats("In.detected", d, 1, "$WRED_SPEC_TIME_CONSTANT_NS", "$WRED_SPEC_MAX_PROBABILITY")
	}
	lpf := func(shift int) *wire.TableData {
		d := r.data("In.smoothed", "", "$LPF_SPEC_TYPE", "SAMPLE", "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", shift)
		return r.floats("In.smoothed", d, 1, "$LPF_SPEC_GAIN_TIME_CONSTANT_NS", "$LPF_SPEC_DECAY_TIME_CONSTANT_NS")
	}
	meter := func(cir int) *wire.TableData {
		return r.data("In.metered", "", "$METER_SPEC_CIR_KBPS", cir, "$METER_SPEC_PIR_KBPS", cir, "$METER_SPEC_CBS_KBITS", cir, "$METER_SPEC_PBS_KBITS", cir)
	}
	for _, test := range []struct {
		table, action string
		frame         []byte
		bits          int
		update, set   *wire.TableData // in the batch that fails; before it
		bare, after   uint64          // result without state; after set
	}{
		{"In.metered", "colour", frame(5, 0, 2), 8, meter(0), meter(4_000_000), 0, 0},
		{"In.metered", "colour", frame(5, 0, 2), 8, meter(4_000_000), meter(0), 0, 3},
		{"In.smoothed", "smooth", frame(1000, 5, 4), 32, lpf(3), lpf(1), 0, 500},
		{"In.detected", "detect", frame(1000, 5, 5), 8, wred(500), wred(5000), 0, 0},
		{"In.detected", "detect", frame(6000, 5, 5), 8, wred(7000), wred(5000), 0, 1},
	} {
		key := r.key(test.table, 5)
		entry := update(ins, r.entry(test.table, key, r.data(test.table, test.action, "port", 2)))
		undone := func(list ...*wire.Update) {
			t.Helper()
			req := &wire.WriteRequest{Target: everywhere, ClientId: r.client, Atomicity: wire.WriteRequest_ROLLBACK_ON_ERROR, Updates: append(list, entry)}
			if _, err := r.c.Write(t.Context(), req); err == nil {
				t.Errorf("%s: a batch with an entry twice is accepted", test.table)
			}
		}
		result := func(what string, want uint64) {
			t.Helper()
			if _, out := r.goes(test.frame); src(out, test.bits) != want {
				t.Errorf("%s %s: %d, want %d", test.table, what, src(out, test.bits), want)
			}
		}
		r.fine(entry)
		result("without state", test.bare)
		undone(update(mod, r.entry(test.table, key, test.update)))
		result("after a first update that was undone", test.bare)
		r.set(mod, test.table, key, test.set)
		result("after an update", test.after)
		undone(update(mod, r.entry(test.table, key, test.update)))
		result("after a second update that was undone", test.after)
		undone(update(del, r.entry(test.table, key, nil)), entry)
		result("after a deletion that was undone", test.after)
		r.set(del, test.table, key, nil)
	}
}

// Packets carry the metadata of their ingress port.
func TestPortMetadata(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	const table = "$PORT_METADATA"
	says := func(what string, class, rank uint64) {
		t.Helper()
		if _, out := r.goes(frame(0, 0, 6)); src(out, 8) != class || src(out, 25)>>16 != rank {
			t.Errorf("%s: class %d, rank %d; want %d, %d", what, src(out, 8), src(out, 25)>>16, class, rank)
		}
	}
	says("at first", 0, 0)
	r.set(ins, table, r.key(table, 2), r.data(table, "", "class", 5, "rank", 0x1a5))
	r.set(ins, table, r.key(table, 1), r.data(table, "", "class", 9, "rank", 1))
	says("set", 5, 0x1a5)
	r.set(mod, table, r.key(table, 2), r.data(table, "", "class", 6))
	says("changed in part", 6, 0x1a5)
	r.set(ins, "In.rules", r.match("In.rules", "rank", "=01a5"), r.data("In.rules", "send", "port", 130))
	if port, _ := r.goes(frame(0, 0, 9)); port != 130 {
		t.Errorf("a packet with the rank leaves by port %d", port)
	}
	if d := r.get(everywhere, table, r.key(table, 1)); !slices.Equal(r.values(table, d, "class"), []uint64{9}) || !slices.Equal(r.values(table, d, "rank"), []uint64{1}) {
		t.Errorf("another port's metadata %v", d)
	}
	r.set(del, table, r.key(table, 2), nil)
	says("deleted", 0, 0)
	// Each of the four pipes has the ports 0 to 71.
	for _, port := range []uint64{71, 128, 3<<7 | 71} {
		r.fine(update(ins, r.entry(table, r.key(table, port), r.data(table, "", "class", 1, "rank", 1))))
	}
	for _, port := range []uint64{72, 127, 128 | 72, 511} {
		r.refused("a port that no pipe has", update(ins, r.entry(table, r.key(table, port), r.data(table, "", "class", 1, "rank", 1))), codes.InvalidArgument, fmt.Sprintf("there is no port %d", port))
	}
}

// A table whose pipes have their own entries returns each entry once, whichever pipes have
// it, and the entries of one action if the client asks for them.
func TestEntriesOfPipes(t *testing.T) {
	r := newRig(t)
	r.must(r.write(everywhere, &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
		TableId: r.table("In.dmac").schema.ID, Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{PipeScope: &wire.Mode{Scope: &wire.Mode_Predef{Predef: wire.Mode_SINGLE}}}},
	}}}}))
	for n, list := range [][]uint64{{1, 2}, {2, 3}} {
		for _, dst := range list {
			r.must(r.write(pipe(uint32(n)), update(ins, r.entry("In.dmac", r.key("In.dmac", dst), r.data("In.dmac", "send", "port", 2)))))
		}
	}
	r.must(r.write(pipe(1), update(ins, r.entry("In.dmac", r.key("In.dmac", 4), r.data("In.dmac", "copies", "group", 2)))))
	list := func(target *wire.TargetDevice, d *wire.TableData) (dsts []uint64) {
		found, err := r.read(target, r.entry("In.dmac", nil, d))
		r.must(err)
		for _, e := range found {
			dsts = append(dsts, uintOf(e.GetKey().GetFields()[0].GetExact().GetValue()))
		}
		slices.Sort(dsts)
		return dsts
	}
	for _, test := range []struct {
		what   string
		target *wire.TargetDevice
		data   *wire.TableData
		want   []uint64
	}{
		{"all pipes", everywhere, nil, []uint64{1, 2, 3, 4}},
		{"pipe 0", pipe(0), nil, []uint64{1, 2}},
		{"pipe 1", pipe(1), nil, []uint64{2, 3, 4}},
		{"one action of all pipes", everywhere, r.data("In.dmac", "send"), []uint64{1, 2, 3}},
		{"another action of all pipes", everywhere, r.data("In.dmac", "copies"), []uint64{4}},
		{"an action of no entry", everywhere, r.data("In.dmac", "drop"), nil},
	} {
		if got := list(test.target, test.data); !slices.Equal(got, test.want) {
			t.Errorf("%s: %d, want %d", test.what, got, test.want)
		}
	}
	if n := r.usage("In.dmac"); n != 5 {
		t.Errorf("the table uses %d places, want one for each entry of each pipe", n)
	}
	r.must(r.write(pipe(0), update(del, r.entry("In.dmac", r.key("In.dmac", 2), nil))))
	if got := list(everywhere, nil); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
		t.Errorf("after pipe 0 has lost an entry that pipe 1 has: %d", got)
	}
	r.must(r.write(pipe(1), update(del, r.entry("In.dmac", nil, nil))))
	if got := list(everywhere, nil); !slices.Equal(got, []uint64{1}) {
		t.Errorf("after pipe 1 has lost all: %d", got)
	}
}

// A group may contain a member several times. Each occurrence counts: a member at two of
// four places gets half of the group's packets.
func TestRepeatedMembers(t *testing.T) {
	r := newRig(t)
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "copies", "group", 0))
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	r.set(ins, "In.members", r.key("In.members", 4), r.data("In.members", "spread_to", "port", 2))
	r.set(ins, "In.choose", r.key("In.choose", 0x1235), r.data("In.choose", "", "$ACTION_MEMBER_ID", 4))
	group := func(kind wire.Update_Type, members []uint32, active ...bool) {
		t.Helper()
		r.must(r.write(everywhere, update(kind, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", members, "$ACTION_MEMBER_STATUS", active)))))
	}
	group(ins, []uint32{3}, true)
	r.set(ins, "In.choose", r.key("In.choose", 0x1234), r.data("In.choose", "", "$SELECTOR_GROUP_ID", 8))
	share := func() (first int) {
		for s := range uint64(400) {
			r.send(2, frame(7, s*0x9e3779b1, 0x1234))
			select {
			case <-r.ports[1].sent:
				first++
			case <-r.ports[2].sent:
			}
		}
		return first
	}
	for _, test := range []struct {
		members []uint32
		active  []bool
		want    int // of 400, with a fair hash
	}{
		{[]uint32{3}, []bool{true}, 400},
		{[]uint32{3, 4}, []bool{true, true}, 200},
		{[]uint32{3, 3, 3, 4}, []bool{true, true, true, true}, 300},
		{[]uint32{3, 3, 3, 4}, []bool{true, false, false, true}, 200},
		{[]uint32{3, 4, 4, 4}, []bool{true, true, true, true}, 100},
		{[]uint32{4, 4}, []bool{true, true}, 0},
	} {
		group(mod, test.members, test.active...)
		if got := share(); got < test.want-40 || got > test.want+40 || (test.want%400 == 0) != (got%400 == 0) {
			t.Errorf("members %d, %v: %d of 400 packets go to member 3, want about %d", test.members, test.active, got, test.want)
		}
	}
	// A member's action changes at each of its places.
	r.set(mod, "In.members", r.key("In.members", 4), r.data("In.members", "spread_to", "port", 1))
	if got := share(); got != 400 {
		t.Errorf("%d of 400 packets follow the changed member", got)
	}
	b := r.get(everywhere, "In.groups", r.key("In.groups", 8))
	var members []uint32
	for _, f := range b.GetFields() {
		members = append(members, f.GetIntArrVal().GetVal()...)
	}
	if !slices.Equal(members, []uint32{4, 4}) {
		t.Errorf("the group reads %d", members)
	}
	r.set(del, "In.choose", r.key("In.choose", 0x1234), nil)
	r.set(del, "In.groups", r.key("In.groups", 8), nil)
	r.set(del, "In.choose", r.key("In.choose", 0x1235), nil)
	r.set(del, "In.members", r.key("In.members", 4), nil)
	for n := range r.s.pipes { // its copies go too
		if list, err := r.s.pipes[n].Profiles().Members("In.members"); err != nil || len(list) != 3 {
			t.Errorf("pipe %d holds %d members, %v; want member 3 and its two copies", n, len(list), err)
		}
	}
}
