package p4lb_test

import (
	"fmt"
	"log"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/p4lb/p4lb"
)

// keyKinds has a table with every kind of key field, a table with an action selector, an entry of
// the program, and a register of 128 bits.
const keyKinds = `
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> a; bit<128> b; bit<16> c; bit<8> d; bit<8> e; }
struct H { h_t h; }
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<128>>(2) wide;
    action send(bit<9> port, bit<128> b) { s.egress_spec = port; h.h.b = b; }
    action drop() { mark_to_drop(s); }
    table kinds {
        key = { h.h.a: lpm; h.h.b: ternary; h.h.c: range; h.h.d: optional; h.h.e: exact; }
        actions = { send; drop; }
        default_action = drop();
    }
    table maybe { key = { h.h.d: optional; h.h.e: exact; } actions = { drop; } }
    table first { key = { h.h.e: exact; } actions = { drop; NoAction; } const entries = { 7: drop(); } const default_action = NoAction(); }
    table ways { key = { h.h.e: exact; h.h.c: selector; } actions = { send; drop; } implementation = action_selector(HashAlgorithm.crc16, 32, 16); }
    apply { wide.write(1, h.h.b); kinds.apply(); maybe.apply(); first.apply(); ways.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

func switchOf(t testing.TB, program string) *p4lb.Switch {
	t.Helper()
	p, err := p4lb.Compile("x.p4", []byte(program))
	if err != nil {
		t.Fatal(err)
	}
	sw, err := p4lb.NewSwitch(p)
	if err != nil {
		t.Fatal(err)
	}
	return sw
}

// TestListedEntries: every entry comes back with its values, in the order of insertion, and another
// switch that gets the entries has the same ones.
func TestListedEntries(t *testing.T) {
	sw, other := switchOf(t, keyKinds), switchOf(t, keyKinds)
	send := func(port string) p4lb.Call {
		return p4lb.Call{Action: "I.send", Args: map[string]string{"port": port, "b": "0xffffffffffffffffffffffffffffffff"}}
	}
	given := []p4lb.Entry{
		{Table: "I.kinds", Priority: 9, Match: map[string]string{"h.h.a": "0xa000000/8", "h.h.b": "0x10000000000000000 &&& 0xf0000000000000000", "h.h.c": "0x1..0x9", "h.h.d": "0x0 &&& 0xff", "h.h.e": "0x1"}, Action: "I.send", Args: send("0x3").Args},
		{Table: "I.kinds", Priority: 2, Match: map[string]string{"h.h.e": "0x2"}, Action: "I.drop", Args: map[string]string{}},
		{Table: "I.ways", Match: map[string]string{"h.h.e": "0x1"}, OneOf: []p4lb.Call{send("0x1"), {Action: "I.drop", Args: map[string]string{}}, send("0x2")}},
		{Table: "I.ways", Match: map[string]string{"h.h.e": "0x2"}, Action: "I.send", Args: send("0x4").Args},
		{Table: "I.maybe", Priority: 5, Match: map[string]string{"h.h.d": "0x0 &&& 0xff", "h.h.e": "0x2"}, Action: "I.drop", Args: map[string]string{}},
		{Table: "I.maybe", Priority: 4, Match: map[string]string{"h.h.e": "0x2"}, Action: "I.drop", Args: map[string]string{}},
	}
	for _, e := range given {
		if err := sw.Insert(e); err != nil {
			t.Fatal(err)
		}
	}
	list := func(sw *p4lb.Switch) (all []p4lb.TableEntry) {
		for _, name := range []string{"kinds", "ways", "maybe"} {
			entries, err := sw.Entries(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, entries...)
		}
		return all
	}
	got := list(sw)
	for i, e := range got {
		if fmt.Sprint(e.Entry) != fmt.Sprint(given[i]) {
			t.Errorf("entry %d: %v\nwant %v", i, e.Entry, given[i])
		}
		if err := other.Insert(e.Entry); err != nil {
			t.Error(err)
		}
	}
	if len(got) != len(given) || fmt.Sprint(list(other)) != fmt.Sprint(got) {
		t.Errorf("a copy has\n%v\nwant\n%v", list(other), got)
	}
	var fields []string
	for _, f := range got[0].Fields {
		fields = append(fields, fmt.Sprintf("%s %s %d %v", f.Name, f.Kind, f.Width, f))
	}
	if want := "h.h.a lpm 32 0xa000000/8, h.h.b ternary 128 0x10000000000000000 &&& 0xf0000000000000000, h.h.c range 16 0x1..0x9, h.h.d ternary 8 0x0 &&& 0xff, h.h.e exact 8 0x1"; strings.Join(fields, ", ") != want {
		t.Errorf("%s\nwant %s", strings.Join(fields, ", "), want)
	}
	if p := got[0].Calls[0].Params[1]; p.Name != "b" || p.Width != 128 || p.Value.BitLen() != 128 {
		t.Errorf("%+v", p)
	}
	if len(got[1].Fields) != 1 || len(got[2].Calls) != 3 || got[2].Calls[2].Params[0].Value.Int64() != 2 {
		t.Errorf("%+v\n%+v", got[1], got[2])
	}
	if list, err := sw.Entries("first"); err != nil || len(list) != 1 || list[0].Match["h.h.e"] != "0x7" || list[0].Action != "I.drop" {
		t.Errorf("entries of the program: %+v, %v", list, err)
	}
	if _, err := sw.Entries("nothing"); err == nil {
		t.Error("there is no such table")
	}
}

// TestDefaultEntry: the default is the program's, then the one that a controller sets.
func TestDefaultEntry(t *testing.T) {
	sw := switchOf(t, keyKinds)
	if e, err := sw.Default("kinds"); err != nil || e.Action != "I.drop" || e.Match != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if err := sw.Insert(p4lb.Entry{Table: "kinds", Action: "send", Args: map[string]string{"port": "5", "b": "1"}}); err != nil {
		t.Fatal(err)
	}
	if e, err := sw.Default("kinds"); err != nil || e.Args["port"] != "0x5" {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := sw.Default("ways"); err != nil || e.Action != "" && e.Action != "NoAction" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := sw.Default("nothing"); err == nil {
		t.Error("there is no such table")
	}
}

// TestBigRegisters: registers of more than 64 bits are read and written as a whole.
func TestBigRegisters(t *testing.T) {
	sw := switchOf(t, keyKinds)
	all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
	if err := sw.SetBigRegister("wide", 0, all); err != nil {
		t.Fatal(err)
	}
	packet := append(make([]byte, 4), "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00"...)
	sw.Send(1, packet)
	cells, err := sw.BigRegisters("wide")
	if err != nil || len(cells) != 2 || cells[0].Cmp(all) != 0 || cells[1].Text(16) != "80000000000000000000000000000001" {
		t.Errorf("%x, %v", cells, err)
	}
	if _, err := sw.Register("wide", 0); err == nil || !strings.Contains(err.Error(), "want BigRegister") {
		t.Errorf("got %v", err)
	}
	for _, v := range []*big.Int{nil, big.NewInt(-1), new(big.Int).Add(all, big.NewInt(1))} {
		if err := sw.SetBigRegister("wide", 0, v); err == nil || !strings.Contains(err.Error(), "does not fit into 128 bits") {
			t.Errorf("%v: %v", v, err)
		}
	}
	for _, err := range []error{sw.SetBigRegister("none", 0, all), sw.SetBigRegister("wide", 2, all)} {
		if err == nil {
			t.Error("a cell that does not exist is set")
		}
	}
	if _, err := sw.BigRegister("wide", 2); err == nil {
		t.Error("there is no cell 2")
	}
}

// List the entries of all tables, and change the port of some.
func ExampleControl_Entries() {
	p, err := p4lb.Compile("forward.p4", []byte(forward))
	if err != nil {
		log.Fatal(err)
	}
	sw, err := p4lb.NewSwitch(p)
	if err != nil {
		log.Fatal(err)
	}
	for i, port := range []string{"1", "3", "3"} {
		err := sw.Insert(p4lb.Entry{
			Table: "bridge", Match: map[string]string{"dst": fmt.Sprintf("02:00:00:00:00:%02x", i)},
			Action: "to", Args: map[string]string{"port": port},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	for _, table := range sw.Tables() {
		entries, err := sw.Entries(table)
		if err != nil {
			log.Fatal(err)
		}
		for _, e := range entries {
			if to := e.Calls[0]; to.Params[0].Value.Int64() == 3 {
				e.Args["port"] = "4"
				if err := sw.Modify(e.Entry); err != nil {
					log.Fatal(err)
				}
			}
		}
	}
	entries, err := sw.Entries("bridge")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.Table, e.Fields[0], e.Action, slices.Collect(maps.Values(e.Args)))
	}
	// Output:
	// I.bridge 0x20000000000 I.to [0x1]
	// I.bridge 0x20000000001 I.to [0x4]
	// I.bridge 0x20000000002 I.to [0x4]
}

// A register of 128 bits holds an IPv6 address.
func ExampleControl_SetBigRegister() {
	p, err := p4lb.Compile("wide.p4", []byte(keyKinds))
	if err != nil {
		log.Fatal(err)
	}
	sw, err := p4lb.NewSwitch(p)
	if err != nil {
		log.Fatal(err)
	}
	address := netip.MustParseAddr("2001:db8::1")
	if err := sw.SetBigRegister("wide", 0, new(big.Int).SetBytes(address.AsSlice())); err != nil {
		log.Fatal(err)
	}
	cell, err := sw.BigRegister("wide", 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%x\n", cell)
	// Output:
	// 20010db8000000000000000000000001
}
