package stf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/dataplane/program"
	"github.com/p4lb/p4lb/internal/p4"
)

func load(t *testing.T, name string) *bmv2.Config {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := bmv2.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The switch sends the packets that simple_switch sent with the programs of
// testdata, compiled by p4c.
func TestOracle(t *testing.T) {
	files, err := filepath.Glob("testdata/*.stf")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d tests, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".stf")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := Run(load(t, name), string(text)); err != nil {
				t.Error(err)
			}
		})
	}
}

const tablesEntry = "add t_exact e:1 h.k.$valid$:1 set_exact(v:0x55)\n"

// tablesPacket is a packet for the program tables with e = 1.
const tablesPacket = "packet 0 01 00000000 0000 0000 00 00000000000000000000000000000000\n"

func TestFailuresSayWhere(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{tablesEntry + tablesPacket + "expect 1 55 00 ff", ""},
		{tablesEntry + tablesPacket + "expect 1 55 ** f*", ""},
		{tablesEntry + tablesPacket + "expect 1", ""},
		{tablesEntry + tablesPacket + "expect 1 55 01", "stf:3: port 1: byte 1 differs\n  expected 5501\n  got      5500FF000000005500\n              ^"},
		{tablesEntry + tablesPacket + "expect 1 5*01", "byte 1 differs"},
		{tablesEntry + tablesPacket + "expect 1 55 00 $", "9 bytes, expected exactly 2"},
		{tablesEntry + tablesPacket + "expect 1 55 00 ff 00 ** ** ** ** ** **", "9 bytes, expected 10"},
		{tablesPacket + "expect 1\nexpect 1", "stf:3: port 1: no packet, expected any"},
		{tablesPacket + "packet 1 00", "stf: port 1: unexpected packet"},
		{tablesPacket, ""}, // no test line expects this packet
		{"packet 0 0", `stf:1: packet data "0": want bytes`},
		{"packet", "stf:1: packet: no port: want packet PORT DATA"},
		{"expect x 00", `port "x" is not a number`},
		{"expect 1 0g", `expected data "0G" has characters`},
		{"frobnicate 1", "stf:1: frobnicate: unknown statement"},
		{"add t_none e:1 set_exact(v:1)", `no table "t_none"`},
		{"add t_exact e:1 set_none(v:1)", `no action of I.t_exact "set_none"`},
		{"add t_exact e:1 set_exact(w:1)", "no value for v"},
		{"add t_exact e:1 set_exact(v:1, w:2)", "has no parameter w"},
		{"add t_exact q:1 set_exact(v:1)", `no key field "q"`},
		{"add t_exact e:1 set_exact v:1", `expected "("`},
		{"add t_exact e:z set_exact(v:1)", `"z" is not a number`},
		{"add t_tern t:12 set_tern(v:1)", "decimal value 12"},
		{tablesEntry + tablesEntry, "stf:2: add: table I.t_exact: an entry with the same key"},
		{"mirroring_add 1", "1 arguments, expected 2"},
		{"mirroring_add 40000 1", "outside 0..32767"},
		{"register_read I.none 0", `unknown register "I.none"`},
		{"mc_node_associate 1 0", "unknown multicast group 1"},
		{"check_counter none(1)", `no counter "none"`},
		{"no_packet\nwait\nremove all # and a comment\n\n", ""},
	} {
		err := Run(load(t, "tables"), c.text)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// toPort is a program that sends a packet to the port in its first byte, or
// drops it for 0.
const toPort = `#include <v1model.p4>
header h_t { bit<8> port; }
struct H { h_t h; }
struct M { }
parser P(packet_in b, out H hdr, inout M m, inout standard_metadata_t sm) { state start { b.extract(hdr.h); transition accept; } }
control V(inout H hdr, inout M m) { apply { } }
control I(inout H hdr, inout M m, inout standard_metadata_t sm) {
    apply { if (hdr.h.port == 0) { mark_to_drop(sm); } else { sm.egress_spec = (bit<9>)hdr.h.port; } }
}
control E(inout H hdr, inout M m, inout standard_metadata_t sm) { apply { } }
control D(packet_out b, in H hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

// no_packet fails if a packet has left, at a port in the test or not. It
// applies to the packet lines since the last expectation.
func TestNoPacket(t *testing.T) {
	out, err := p4.CompileText("x.p4", []byte(toPort), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"packet 1 00\nno_packet", ""},
		{"packet 1 01\nno_packet", "stf:2: no_packet: port 1: a packet left: 01"},
		{"packet 1 07\nno_packet", "stf:2: no_packet: port 7: a packet left: 07"},
		{"packet 1 07\nexpect 7 07\nno_packet", ""},
		{"packet 1 07\nno_packet\nexpect 7 07", "stf:2: no_packet: port 7"},
		{"packet 1 00\npacket 1 07\npacket 1 00\nno_packet", "stf:4: no_packet: port 7"},
		{"packet 1 07\npacket 1 07\nexpect 7\nno_packet\nexpect 7", "stf:4: no_packet: port 7"},
		{"packet 1 07\nexpect 7\npacket 1 07\nno_packet\nexpect 7", "stf:4: no_packet: port 7"},
		{"packet 1 07\npacket 1 08\nexpect 7\nexpect 8\nno_packet", ""},
		{"packet 1 07\nwait\npacket 1 00\nno_packet\nexpect 7", "stf:4: no_packet: port 7"},
		{"packet 1 07\nexpect 7\npacket 1 00\nno_packet\npacket 1 08\nno_packet", "stf:6: no_packet: port 8"},
		{"no_packet\npacket 1 07\nexpect 7", ""},
	} {
		err := Run(out.Config, c.text)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestCheckCounter(t *testing.T) {
	packet := "packet 0 01 0000 0000 000000000000 00000000000000000000000000000000 03\n"
	for _, c := range []struct{ line, want string }{
		{"check_counter packets(3) packets == 2", ""},
		{"check_counter I.packets(3) bytes == 56", ""},
		{"check_counter packets(0x3) packets >= 2", ""},
		{"check_counter packets(4)", ""},
		{"check_counter packets(3)", "I.packets(3) has 2 packets, expected == 0"},
		{"check_counter packets(3) packets != 2", "has 2 packets, expected != 2"},
		{"check_counter packets(3) bytes < 50", "has 56 bytes, expected < 50"},
		{"check_counter packets(3) crumbs == 1", `not "crumbs"`},
		{"check_counter packets(16)", "outside 0..15"},
	} {
		err := Run(load(t, "hashes"), packet+packet+c.line)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.line, err, c.want)
		}
	}
}

func TestMatchValues(t *testing.T) {
	field := func(kind program.MatchKind, width int) dataplane.KeyField {
		return dataplane.KeyField{Kind: kind, Width: width}
	}
	for _, c := range []struct {
		kind        program.MatchKind
		width       int
		text        string
		value, mask string
		prefix      int
	}{
		{program.MatchExact, 16, "0x1f", "\x1f", "", 0},
		{program.MatchExact, 16, "0b101", "\x05", "", 0},
		{program.MatchExact, 16, "258", "\x01\x02", "", 0},
		{program.MatchTernary, 16, "0x12**", "\x12\x00", "\xff\x00", 0},
		{program.MatchTernary, 16, "0x*2", "\x02", "\x0f", 0},
		{program.MatchTernary, 16, "0x12", "\x12", "\xff", 0}, // as many bits as digits
		{program.MatchTernary, 9, "0xffff", "\x01\xff", "\x01\xff", 0},
		{program.MatchTernary, 16, "0b1*0", "\x04", "\x05", 0},
		{program.MatchTernary, 16, "0x12&&&0xf0", "\x12", "\xf0", 0},
		{program.MatchLPM, 32, "0x0a01****", "\x0a\x01\x00\x00", "", 16},
		{program.MatchLPM, 32, "0x0a010000/12", "\x0a\x01\x00\x00", "", 12},
		{program.MatchLPM, 8, "9", "\x09", "", 8},
	} {
		m, err := matchValue(field(c.kind, c.width), c.text)
		if err != nil || string(m.Value) != c.value || string(m.Mask) != c.mask || m.PrefixLen != c.prefix {
			t.Errorf("%v %s: %x &&& %x / %d, %v", c.kind, c.text, m.Value, m.Mask, m.PrefixLen, err)
		}
	}
	if m, err := matchValue(field(program.MatchRange, 16), "0x10->0x20"); err != nil || string(m.Value) != "\x10" || string(m.High) != "\x20" {
		t.Errorf("range: %x..%x, %v", m.Value, m.High, err)
	}
}

func TestKeyNames(t *testing.T) {
	var fields []dataplane.KeyField
	for _, n := range []string{"hdr.a.f", "hdr.b[1].f", "hdr.c.$valid$", "meta.x"} {
		fields = append(fields, dataplane.KeyField{Name: n})
	}
	for name, want := range map[string]int{
		"hdr.a.f": 0, "a.f": 0, "b$1.f": 1, "b[1].f": 1, "c.valid": 2, "c.$valid$": 2, "hdr.c": 2, "x": 3,
	} {
		if i, err := key(fields, name); err != nil || i != want {
			t.Errorf("%s is field %d, %v; want %d", name, i, err, want)
		}
	}
	if _, err := key(fields, "y"); err == nil {
		t.Error("an unknown field was found")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("packet 0 00ff\nexpect 1 *0$\n")
	f.Add(tablesEntry + "add t_tern 10 t:0x12** set_tern(v:1) = $a\ncheck_counter x($a) bytes >= 3")
	f.Add(`meter_set_rates "m" 0 0.001:5 1:2`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("f", text)
		if (s == nil) != (err != nil) {
			t.Fatal("a script and an error, or neither")
		}
	})
}

// A statement may have as many lines as the file. Reading it took hours when
// each line was added to a copy of all lines before.
func TestManyBrokenLines(t *testing.T) {
	const n = 2_000_000
	s, err := Parse("x.stf", strings.Repeat("\\\n", n)+"packet 1 00\nbad 1\\")
	if want := fmt.Sprintf(`x.stf:%d: the last line ends in \`, n+2); err == nil || err.Error() != want {
		t.Errorf("%v, %v, want %s", s, err, want)
	}
}
