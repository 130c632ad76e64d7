package manifest_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// Limits of all that does not depend on a program, from both sides.
func TestValidate(t *testing.T) {
	const head = "version: 2\nscheme: x\narch: v1model\n"
	register := func(text string) string { return "registers: [{name: a, " + text + "}, {name: b}]" }
	field := func(text string) string { return "registers: [{name: a, width: 32, fields: [{" + text + "}]}]" }
	entry := func(text string) string { return "tables: [{name: t, entries: [{" + text + "}]}]" }
	task := func(text string) string {
		return "registers: [{name: a}, {name: b}, {name: c}]\nheaders: [{name: h, ether_type: 1, fields: [{name: o, width: 8, carries: origin}]}, {name: n, fields: [{name: o, width: 8, carries: origin}]}]\ntasks: [{" + text + "}]"
	}
	for _, test := range []struct{ text, want string }{
		{"paths: 16", ""},
		{"paths: 17", "paths: is 17: want 1 to 16, or 0 where the program has no groups"},
		{"paths: -1", "paths: is -1: want 1 to 16, or 0 where the program has no groups"},
		{"decides: a", `decides: there is no register "a"`},
		{"decides: a\n" + register("index: port"), ""},
		{"weights: {}", "weights.from: is missing: want"},
		{"weights: {from: controller}", ""},
		{"registers: [{size: 1}]", "registers[0].name: is missing"},
		{"registers: [{name: a}, {name: b}, {name: a}]", "registers[2].name: register a is there twice, first as registers[0]"},
		{register("size: -1"), "registers[0].size: is -1: want a number of cells"},
		{register("size: 0, width: 64"), ""},
		{register("width: 65"), "registers[0].width: is 65: want 1 to 64 bits"},
		{register("width: -1"), "registers[0].width: is -1: want 1 to 64 bits"},
		{register("index: memory"), "registers[0].each: register a is by memory: want how many cells a group has"},
		{register("index: memory, each: 1"), ""},
		{register("copy: {of: 1, slot: 0}"), ""},
		{register("copy: {of: 2, slot: 1}"), ""},
		{register("copy: {of: 16, slot: 15}"), ""},
		{register("copy: {of: 2, slot: 2}"), "registers[0].copy: is 2 of 2: want a slot below the number of copies, which is 16 at most"},
		{register("copy: {of: 17, slot: 0}"), "registers[0].copy: is 0 of 17: want a slot"},
		{register("copy: {of: 1, slot: -1}"), "registers[0].copy: is -1 of 1: want a slot"},
		{register("copy: {of: 0, slot: 0}"), "registers[0].copy: is 0 of 0: want a slot"},
		{register("kind: count, fields: [{label: x, width: 1}]"), "registers[0].kind: register a has fields: they have kinds, it has none"},
		{register("kind: moment"), "registers[0].unit: register a is a moment: want a unit of time, ns, us, ms or 1024ns"},
		{register("kind: moment, unit: packets"), "registers[0].unit: register a is a moment: want a unit of time"},
		{register("kind: moment, unit: ns, event: heard"), ""},
		{register("kind: deadline, unit: ms, event: heard"), ""},
		{register("kind: count, event: heard"), "registers[0].event: register a is no moment and no deadline: only they are of an event"},
		{register("scale: -1"), "registers[0].scale: is -1: want a number above 0"},
		{register("scale: 1"), ""},
		{register("valid: 63"), ""},
		{register("valid: 64"), "registers[0].valid: register a has 0 bits, there is no bit 64"},
		{register("valid: -1"), "registers[0].valid: register a has 0 bits, there is no bit -1"},
		{register("width: 16, valid: 15"), ""},
		{register("width: 16, valid: 16"), "registers[0].valid: register a has 16 bits, there is no bit 16"},
		{register("kind: rate, window: 1us"), ""},
		{register("kind: count, window: 1us"), "registers[0].window: register a is no rate: only they fade"},
		{register("of: b"), ""},
		{register("of: c"), `registers[0].of: there is no register "c"`},
		{register("reports: c"), `registers[0].reports: there is no register "c"`},
		{register("per: c"), `registers[0].per: there is no register "c"`},
		{register("cells: [{value: 1}]"), "registers[0].cells[0].at: is missing: want the number of the cell"},
		{register("cells: [{at: 1}]"), "registers[0].cells[0].value: is missing"},
		{register("cells: [{at: 1, value: 2}]"), ""},
		{register("cells: [{at: $port, value: 2}]"), "registers[0].cells[0].at: there is no $port here: it is one of each: port, neighbour, host, route, leaf, group"},
		{register("cells: [{each: port, at: $port, value: $host}]"), ""},
		{register("cells: [{each: leaf, at: $leaf, value: $host}]"), "registers[0].cells[0].value: there is no $host here: it is one of each: port, host"},
		{field("width: 1"), "registers[0].fields[0].label: is missing: want what readers call the field"},
		{field("label: x"), "registers[0].fields[0].width: field x of register a is 0 bits from bit 0 on: want 1 to 64 in all"},
		{field("label: x, width: 32"), ""},
		{field("label: x, width: 32, shift: 1"), "registers[0].fields[0].width: field x of register a ends at bit 32, the cells have 32 bits"},
		{field("label: x, width: 1, shift: 31"), ""},
		{field("label: x, width: 1, shift: 64"), "registers[0].fields[0].width: field x of register a is 1 bits from bit 64 on: want 1 to 64 in all"},
		{field("label: x, width: 1, shift: -1"), "registers[0].fields[0].width: field x of register a is 1 bits from bit -1 on"},
		{"registers: [{name: a, fields: [{label: x, width: 1, shift: 63}]}]", ""},
		{"headers: [{ether_type: 1}]", "headers[0].name: is missing"},
		{"headers: [{name: a}, {name: a}]", "headers[1].name: header a is there twice, first as headers[0]"},
		{"headers: [{name: a, ether_type: 65535}]", ""},
		{"headers: [{name: a, ether_type: 65536}]", "headers[0].ether_type: is 65536: want 16 bits"},
		{"headers: [{name: a, ether_type: -1}]", "headers[0].ether_type: is -1: want 16 bits"},
		{"headers: [{name: a, fields: [{name: f, width: 0}]}]", "headers[0].fields[0].width: is 0: want a number of bits"},
		{"headers: [{name: a, fields: [{name: f, width: 8, value: 255}]}]", ""},
		{"headers: [{name: a, fields: [{name: f, width: 8, value: 256}]}]", "headers[0].fields[0].value: 256 does not fit the 8 bits of a.f"},
		{"clone_sessions: [{session: 0, port: 1}]", ""},
		{"clone_sessions: [{session: -1}]", "clone_sessions[0].session: is -1: want a number from 0"},
		{"clone_sessions: [{each: port}]", "clone_sessions[0].at: the session is for each port: want its number, as in at: 100 + $port"},
		{"clone_sessions: [{each: port, at: 100 + $port, per_port: true}]", "clone_sessions[0].at: the session is for each port"},
		{"clone_sessions: [{each: port, at: 100 + $port, to: $port}]", ""},
		{"clone_sessions: [{each: port, at: 100 + $port, session: 1}]", "clone_sessions[0].at: want either a session or at"},
		{"clone_sessions: [{session: 1, to: 4, port: 1}]", "clone_sessions[0].to: want either a port or to"},
		{"clone_sessions: [{session: 1, to: 4, per_port: true}]", "clone_sessions[0].to: want either a port or to"},
		{"clone_sessions: [{session: 1, port: 4, per_port: true}]", "clone_sessions[0].port: is 4: the session is per_port, which leads to each"},
		{"clone_sessions: [{session: 1, port: 4, bytes: -1}]", "clone_sessions[0].bytes: is -1: want a number of bytes"},
		{"clone_sessions: [{session: 1, port: 4, bytes: 0}]", ""},
		{"clone_sessions: [{session: 1, to: $leaf}]", "clone_sessions[0].to: there is no $leaf here"},
		{"multicast_groups: [{members: up}]", "multicast_groups[0].group: is 0: want a number from 1"},
		{"multicast_groups: [{group: 1, members: up}]", ""},
		{"multicast_groups: [{group: 1}]", "multicast_groups[0].members: is missing: want up"},
		{"multicast_groups: [{group: 1, at: 2, members: up}]", "multicast_groups[0].at: want either a group or at"},
		{"multicast_groups: [{at: 2, members: up}]", ""},
		{"multicast_groups: [{group: 1, each: port, members: up}]", "multicast_groups[0].at: the group is for each port: want its number"},
		{"multicast_groups: [{each: port, at: $port, to: $to-port != $port}]", ""},
		{"multicast_groups: [{each: port, at: $to-port, to: 1}]", "multicast_groups[0].at: there is no $to-port here: it is one of the ports of a multicast group"},
		{"multicast_groups: [{group: 1, to: 1, members: up}]", "multicast_groups[0].to: want either members or to"},
		{"multicast_groups: [{group: 1, members: onward}]", "multicast_groups[0].per_port: the members onward depend on where a packet came in: want per_port: true"},
		{"multicast_groups: [{group: 1, members: onward, per_port: true}]", ""},
		{"multicast_groups: [{group: 1, members: ports}]", "multicast_groups[0].ports: the members are ports: want a list of ports with the members ports alone"},
		{"multicast_groups: [{group: 1, members: up, ports: [1]}]", "multicast_groups[0].ports: the members are up"},
		{"multicast_groups: [{group: 1, members: ports, ports: [1]}]", ""},
		{"virtual_ports: [{port: 1, kind: recirculation}]", ""},
		{"virtual_ports: [{port: 0, kind: recirculation}]", "virtual_ports[0].port: is 0: want a number from 1"},
		{"virtual_addresses: [{address: 10.0.2.100, mac: 02:00:00:00:01:00}, {address: '2001:db8::100'}]", ""},
		{"virtual_addresses: [{address: 10.0.2}]", `virtual_addresses[0].address: "10.0.2": want an address such as`},
		{"virtual_addresses: [{address: 'fe80::1%eth0'}]", `virtual_addresses[0].address: "fe80::1%eth0": want an address such as`},
		{"virtual_addresses: [{address: 10.0.2.100, mac: '02:00'}]", `virtual_addresses[0].mac: "02:00": want a MAC address such as`},
		{"virtual_addresses: [{address: 10.0.2.100, mac: '02:00:00:00:00:00:00:01'}]", "virtual_addresses[0].mac"},
		{"tables: [{purpose: none}]", "tables[0].name: is missing"},
		{"tables: [{name: a}, {name: a}]", "tables[1].name: table a is there twice, first as tables[0]"},
		{"tables: [{name: a, purpose: baked}]", "tables[0].baked: is missing: table a needs precomputed values"},
		{"tables: [{name: a, baked: {action: b}}]", "tables[0].baked: table a is for none: only the purpose baked has it"},
		{"tables: [{name: a, purpose: baked, baked: {action: b}}]", "tables[0].baked.keys: is missing"},
		{"tables: [{name: a, purpose: baked, baked: {action: b, keys: [{name: k, values: 1}]}}]", ""},
		{
			"tables: [{name: a, purpose: member, keys: [{name: k, carries: slot}], actions: [{name: b, params: [{name: p, carries: port}]}]}]",
			"paths: is missing: table a is for members of groups",
		},
		{"tables: [{name: a, purpose: port, keys: [{name: k, carries: port}], actions: [{name: b, params: [{name: p, carries: rate, slot: 15}]}]}]", ""},
		{
			"tables: [{name: a, purpose: port, keys: [{name: k, carries: port}], actions: [{name: b, params: [{name: p, carries: rate, slot: 16}]}]}]",
			"tables[0].actions[0].params[0].slot: is 16: want 0 to 15",
		},
		{
			"tables: [{name: a, purpose: port, keys: [{name: k, carries: port}], actions: [{name: b, params: [{name: p, carries: rate, value: 3}]}]}]",
			"tables[0].actions[0].params[0].value: p carries rate: want that or a value",
		},
		{"tables: [{name: a, purpose: port, keys: [{name: k, carries: port}, {name: l, value: $port}]}]", "tables[0].keys[1].value: want a number: a fact is carried, as in carries: port"},
		{"tables: [{name: a, purpose: port, keys: [{name: k, carries: port}, {name: l, value: x}]}]", `tables[0].keys[1].value: "x": want a number`},
		{entry("match: {k: 1}"), "tables[0].entries[0].action: is missing"},
		{entry("action: a"), "tables[0].entries[0].match: is missing: want the fields of the key, or default: true"},
		{entry("action: a, default: true"), ""},
		{entry("action: a, default: true, match: {k: 1}"), "tables[0].entries[0].match: a default action matches everything: want no match"},
		{entry("action: a, match: {k: 1}, each: prt"), `tables[0].entries[0].each: there is no "prt" to repeat something for`},
		{entry("action: a, match: {k: 1}, each: port port"), `tables[0].entries[0].each: "port" stands there twice`},
		{entry("action: a, match: {k: 1}, each: 0..3 4..5"), `tables[0].entries[0].each: "4..5" stands there twice`},
		{entry("action: a, match: {k: 1}, each: 3..2"), `tables[0].entries[0].each: "3..2": want a range such as 0..7, of 65536 numbers at most`},
		{entry("action: a, match: {k: 1}, each: 0..65536"), `tables[0].entries[0].each: "0..65536": want a range`},
		{entry("action: a, match: {k: $i}, each: 0..65535"), ""},
		{entry("action: a, match: {k: $i}, each: 7..7"), ""},
		{entry("action: a, match: {k: $i}, each: port"), "tables[0].entries[0].match.k: there is no $i here: it is the number of a range, as in each: 0..7"},
		{entry("action: a, match: {k: 1}, each: path"), "tables[0].entries[0].each: a path is one to something: want a host, route, leaf or group before it"},
		{entry("action: a, match: {k: $path}, each: host path"), ""},
		{entry("action: a, match: {k: 1}, each: path host"), "tables[0].entries[0].each: a path is one"},
		{entry("action: a, match: {k: 1}, one_of: path"), "tables[0].entries[0].one_of: a path is one"},
		{entry("action: a, match: {k: $path}, each: host, one_of: path"), ""},
		{entry("action: a, match: {k: 1}, one_of: port, where: $up, args: {p: $port}"), ""},
		{entry("action: a, match: {k: $port}, one_of: port"), "tables[0].entries[0].match.k: there is no $port here"},
		{entry("action: a, match: {k: 1}, one_of: port, priority: $port"), "tables[0].entries[0].priority: there is no $port here"},
		{entry("action: a, match: {k: 1}, where: $host"), "tables[0].entries[0].where: there is no $host here"},
		{entry("action: a, match: {k: 1}, args: {p: $host}"), "tables[0].entries[0].args.p: there is no $host here"},
		{entry("action: a, match: {k: 1/$host}"), "tables[0].entries[0].match.k: there is no $host here"},
		{entry("action: a, match: {k: $host-address(h1)}"), ""},
		{entry("action: a, match: {k: $up(h1)}"), ""},
		{entry("action: a, match: {k: $tier(h1)}"), "tables[0].entries[0].match.k: nothing is known of $tier of a node: want host-address"},
		{entry("action: a, match: {k: $tier + $home + $ports + $hosts + $cpu + $switch}"), ""},
		{task("header: h"), "tasks[0].kind: is missing: want probe"},
		{task("kind: probe, period: 1ms"), "tasks[0].header: is missing: task probe wants the header of its packets"},
		{task("kind: probe, header: x, period: 1ms"), `tasks[0].header: there is no header "x"`},
		{task("kind: probe, header: n, period: 1ms"), "tasks[0].header: header n has no ether_type, by which its packets are known"},
		{task("kind: probe, header: h, period: 1ms"), ""},
		{task("kind: probe, header: h"), "tasks[0].period: task probe wants either a period or theta"},
		{task("kind: probe, header: h, period: 1ms, theta: 1ms"), "tasks[0].period: task probe wants either a period or theta"},
		{task("kind: probe, header: h, period: 1us"), ""},
		{"headers: [{name: h, ether_type: 1, fields: [{name: o, width: 64, value: 18446744073709551615}]}]", ""},
		{"headers: [{name: h, ether_type: 1, fields: [{name: o, width: 63, value: 9223372036854775807}]}]", ""},
		{"headers: [{name: h, ether_type: 1, fields: [{name: o, width: 63, value: 9223372036854775808}]}]", "headers[0].fields[0].value: 9223372036854775808 does not fit the 63 bits of h.o"},
		{"headers: [{name: h, ether_type: 1, fields: [{name: o, width: 1, value: 2}]}]", "headers[0].fields[0].value: 2 does not fit the 1 bits of h.o"},
		{task("kind: probe, header: h, period: 999ns"), "tasks[0].period: 999ns is too short: want at least 1µs"},
		{task("kind: probe, header: h, period: 1ms, where: $port"), "tasks[0].where: there is no $port here"},
		{task("kind: probe, header: h, period: 1ms, frame: ['1:8']"), "tasks[0].frame: task probe sends no frame of yours: want the kind send"},
		{task("kind: send, frame: ['1:8']"), "tasks[0].period: is missing: task send wants it"},
		{task("kind: send, period: 1s"), "tasks[0].frame: is missing: task send wants it"},
		{task("kind: send, period: 1s, frame: ['1:8', '0x812:16', '$port:64']"), "tasks[0].frame[2]: there is no $port here"},
		{task("kind: send, period: 1s, each: port, frame: ['$port:64']"), ""},
		{task("kind: send, period: 1s, frame: ['1:0']"), `tasks[0].frame[0]: "1:0": want a value with its width of 1 to 64 bits`},
		{task("kind: send, period: 1s, frame: ['1:65']"), `tasks[0].frame[0]: "1:65": want a value with its width of 1 to 64 bits`},
		{task("kind: send, period: 1s, frame: ['12']"), `tasks[0].frame[0]: "12": want a value with its width of 1 to 64 bits`},
		{task("kind: rezero, period: 1s"), "tasks[0].registers: task rezero wants a register for "},
		{task("kind: rezero, period: 1s, registers: {queue: a}"), ""},
		{task("kind: rezero, period: 1s, registers: {queue: d}"), `tasks[0].registers.queue: there is no register "d"`},
		{task("kind: rezero, registers: {queue: a}"), "tasks[0].period: is missing: task rezero wants it"},
	} {
		_, err := manifest.Decode("m", []byte(head+test.text))
		got := message(err)
		if i := strings.Index(got, ": "); i >= 0 {
			got = got[i+2:] // without the file and the line
		}
		if (err == nil) != (test.want == "") || !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\ngot  %s\nwant %s", test.text, got, test.want)
		}
	}
}

const kinds = `
#include <core.p4>
#include <v1model.p4>
struct pair { bit<16> x; bit<8> y; }
struct h_t { }
struct m_t { bit<8> a; bit<128> wide; bit<9> p; bit<16> q; }
parser P(packet_in pkt, out h_t hdr, inout m_t meta, inout standard_metadata_t std) { state start { transition accept; } }
control V(inout h_t hdr, inout m_t meta) { apply { } }
control I(inout h_t hdr, inout m_t meta, inout standard_metadata_t std) {
    register<bit<8>>(4) small;
    counter(8, CounterType.packets) hits;
    action go(bit<8> v, bit<9> port) { meta.a = v; std.egress_spec = port; }
    action none() { }
    action count(bit<4> n) { meta.a = (bit<8>) n; }
    table all { key = { meta.a: exact; meta.p: lpm; meta.wide: ternary; meta.q: range; std.ingress_port: optional; } actions = { go; none; } }
    table one { key = { meta.a: exact; } actions = { go; count; none; } }
    table none_at_all { actions = { none; } }
    apply { small.write(0, 1); hits.count(0); all.apply(); one.apply(); none_at_all.apply(); }
}
control E(inout h_t hdr, inout m_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out pkt, in h_t hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
`

// Check compares sizes, widths and kinds of match of a manifest with the program,
// from both sides of each limit.
func TestCheckLimits(t *testing.T) {
	program, err := p4.CompileText("kinds.p4", []byte(kinds), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	register := func(text string) string { return "registers: [{name: I.small, " + text + "}]" }
	one := func(text string) string { return "tables: [{name: I.one, " + text + "}]" }
	entry := func(match, rest string) string {
		return one("entries: [{match: {meta.a: " + match + "}, " + rest + "}]")
	}
	all := func(match string) string {
		return "tables: [{name: I.all, entries: [{match: {" + match + "}, action: none}]}]"
	}
	baked := func(text string) string {
		return one("purpose: baked, keys: [{name: meta.a, carries: baked}], baked: {" + text + "}")
	}
	port := func(keys, params string) string {
		return one("purpose: port, keys: [{name: meta.a, carries: port}" + keys + "], actions: [{name: go, params: [" + params + "]}]")
	}
	for _, test := range []struct{ text, want string }{
		{"counters: [{name: I.hits, size: 8}]", ""},
		{"counters: [{name: I.hits}]", ""},
		{"counters: [{name: I.hits, size: 9}]", "counters[0].size: is 9: counter I.hits of the program has 8 cells"},
		{"counters: [{name: I.hit}]", `counters[0].name: the program has no counter "I.hit"; did you mean I.hits?`},
		{register("size: 4, width: 8"), ""},
		{register("valid: 7"), ""},
		{register("valid: 8"), "registers[0].valid: the cells of register I.small have 8 bits, there is no bit 8"},
		{register("fields: [{label: x, shift: 4, width: 4}]"), ""},
		{register("fields: [{label: x, shift: 4, width: 5}]"), "registers[0].fields[0].width: field x ends at bit 8, the cells of register I.small have 8 bits"},
		{register("cells: [{at: 3, value: 255}]"), ""},
		{register("cells: [{at: 4, value: 1}]"), "registers[0].cells[0].at: is 4: register I.small has 4 cells"},
		{register("cells: [{at: 3, value: 256}]"), "registers[0].cells[0].value: 256 does not fit the 8 bits of register I.small"},
		{register("initial: [{index: -1, value: 255}, {index: 3, value: 0}]"), ""},
		{register("initial: [{index: -2, value: 1}]"), "registers[0].initial[0].index: is -2: register I.small has 4 cells"},
		{register("initial: [{index: 0, value: 1}, {index: 4, value: 1}]"), "registers[0].initial[1].index: is 4: register I.small has 4 cells"},
		{register("initial: [{index: 0, value: 256}]"), "registers[0].initial[0].value: 256 does not fit the 8 bits of register I.small"},
		{one("keys: [{name: meta.a, match: exact, value: 255}]"), ""},
		{one("keys: [{name: meta.a, value: 256}]"), "tables[0].keys[0].value: 256 does not fit the 8 bits of field meta.a"},
		{one("keys: [{name: meta.a, value: '*'}]"), "tables[0].keys[0].value: *: field meta.a of table I.one is matched exactly: want its value, a fact that it carries, or entries"},
		{one("keys: [{name: meta.b}]"), `tables[0].keys[0].name: the key of table I.one has no field "meta.b"`},
		{"tables: [{name: I.none_at_all, keys: [{name: x}]}]", `tables[0].keys[0].name: the key of table I.none_at_all has no field "x": it has none`},
		{port("", "{name: v, value: 255}, {name: port, carries: port}"), ""},
		{port("", "{name: v, value: 256}, {name: port, carries: port}"), "tables[0].actions[0].params[0].value: 256 does not fit the 8 bits of parameter v"},
		{port("", "{name: v, value: 1}"), "tables[0].actions[0].params: parameter port of action go is missing: add it with carries or value"},
		{one("purpose: port, keys: [{name: meta.a, carries: port}], actions: [{name: none}]"), ""},
		{one("actions: [{name: none, params: [{name: x}]}]"), `tables[0].actions[0].params[0].name: action none has no parameter "x": it has none`},
		{
			"paths: 16\n" + one("purpose: group, keys: [{name: meta.a, carries: group}], actions: [{name: count, params: [{name: n, carries: paths}]}]"),
			"tables[0].actions[0].params[0].carries: paths goes up to 16, which the 4 bits of n cannot hold",
		},
		{"paths: 15\n" + one("purpose: group, keys: [{name: meta.a, carries: group}], actions: [{name: count, params: [{name: n, carries: paths}]}]"), ""},
		{
			"paths: 1\n" + one("purpose: group, keys: [{name: meta.a, carries: group}], actions: [{name: count, params: [{name: n, carries: weight-end}]}]"),
			"tables[0].actions[0].params[0].carries: weight-end goes up to 255, which the 4 bits of n cannot hold",
		},
		{entry("255", "action: none"), ""},
		{entry("256", "action: none"), "tables[0].entries[0].match.meta.a: 256 does not fit the 8 bits of field meta.a"},
		{entry("1, x: 2", "action: none"), `tables[0].entries[0].match: the key of table I.one has no field "x"`},
		{entry("'*'", "action: none"), "tables[0].entries[0].match.meta.a: *: field meta.a of table I.one is matched exact"},
		{entry("1", "action: I.none"), ""},
		{entry("1", "action: go"), "tables[0].entries[0].args: parameter v of action go is missing"},
		{entry("1", "action: go, args: {v: 255, port: 511}"), ""},
		{entry("1", "action: go, args: {v: 256, port: 511}"), "tables[0].entries[0].args.v: 256 does not fit the 8 bits of parameter v"},
		{entry("1", "action: go, args: {v: 255, port: 512}"), "tables[0].entries[0].args.port: 512 does not fit the 9 bits of parameter port"},
		{entry("1", "action: none, args: {v: 1}"), `tables[0].entries[0].args: action none has no parameter "v": it has none`},
		{entry("1", "action: nine"), `tables[0].entries[0].action: table I.one has no action "nine"; did you mean none?`},
		{all("meta.a: 1"), ""},
		{all("meta.p: 1"), "tables[0].entries[0].match: field meta.a of table I.all is missing: it is matched exactly"},
		{all("meta.a: 1, meta.p: 1/9, meta.wide: 1&&&3, meta.q: 1..2, std.ingress_port: 3"), ""},
		{all("meta.a: 1, meta.p: '*', meta.wide: '*', meta.q: '*', std.ingress_port: '*'"), ""},
		{all("meta.a: 1, meta.p: 1/10"), "tables[0].entries[0].match.meta.p: 1/10: field meta.p has 9 bits"},
		{all("meta.a: 1, meta.p: 1, meta.q: 1..65536"), "tables[0].entries[0].match.meta.q: 1..65536 does not fit the 16 bits of field meta.q"},
		{all("meta.a: 1, meta.p: 1&&&3"), "tables[0].entries[0].match.meta.p: 1&&&3: field meta.p of table I.all is matched lpm"},
		{all("meta.a: 1, meta.wide: 1/3"), "tables[0].entries[0].match.meta.wide: 1/3: field meta.wide of table I.all is matched ternary"},
		{all("meta.a: 1, meta.q: 1&&&3"), "tables[0].entries[0].match.meta.q: 1&&&3: field meta.q of table I.all is matched range"},
		{all("meta.a: 1, std.ingress_port: 1&&&3"), "tables[0].entries[0].match.std.ingress_port: 1&&&3: field std.ingress_port of table I.all is matched optional"},
		{all("meta.a: 1, meta.wide: '2001:db8::1'"), ""},
		{baked("action: go, keys: [{name: meta.a, values: 256}]"), ""},
		{baked("action: go, keys: [{name: meta.a, values: 257}]"), "tables[0].baked.keys[0].values: is 257: field meta.a has 8 bits"},
		{baked("action: go, keys: [{name: meta.a, values: 0}]"), "tables[0].baked.keys[0].values: is 0: field meta.a has 8 bits"},
		{baked("action: gone, keys: [{name: meta.a, values: 1}]"), `tables[0].baked.action: table I.one has no action "gone"`},
		{baked("action: go, keys: [{name: meta.a, values: 1}, {name: b, values: 1}]"), "tables[0].baked.keys: there are 2: the key of table I.one has 1 fields"},
		{baked("action: go, keys: [{name: meta.a, values: 2}], values: [0, 255]"), ""},
		{baked("action: go, keys: [{name: meta.a, values: 2}], values: [0]"), "tables[0].baked.values: there are 1: the keys are 2"},
		{baked("action: go, keys: [{name: meta.a, values: 2}], values: [0, 256]"), "tables[0].baked.values[1]: 256 does not fit the 8 bits of v"},
		{baked("action: go, keys: [{name: meta.a, values: 2}], values: [-1, 0]"), "tables[0].baked.values[0]: -1 does not fit the 8 bits of v"},
	} {
		text := []byte("version: 2\nscheme: x\narch: v1model\n" + test.text)
		m, err := manifest.Decode("m", text)
		if err == nil {
			err = manifest.CheckFile("m", text, m, program.P4Info)
		}
		got := message(err)
		if i := strings.Index(got, ": "); i >= 0 {
			got = got[i+2:]
		}
		if (err == nil) != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", test.text, got, test.want)
		}
	}
}

// Operators have the precedence of the grammar and the values of 64-bit integers.
func TestOperators(t *testing.T) {
	facts := func(f manifest.Fact, node string) (int64, error) {
		if f == "leaf" {
			return 0, fmt.Errorf("no leaf")
		}
		return 5, nil
	}
	for text, want := range map[string]int64{
		"1 < 2": 1, "2 < 2": 0, "3 < 2": 0, "1 <= 2": 1, "2 <= 2": 1, "3 <= 2": 0, "1 > 2": 0, "2 > 2": 0, "3 > 2": 1, "1 >= 2": 0, "2 >= 2": 1, "3 >= 2": 1,
		"2 == 2": 1, "2 == 3": 0, "2 != 2": 0, "2 != 3": 1, "5 | 2": 7, "5 ^ 1": 4, "5 & 4": 4, "5 + 4": 9, "5 - 7": -2, "5 * 4": 20, "7 % 5": 2,
		"1 << 63": -1 << 63, "1 << 0": 1, "256 >> 8": 1, "256 >> 63": 0, "0 || 0": 0, "0 || 7": 1, "7 || $leaf": 1, "0 && $leaf": 0, "7 && 0": 0, "7 && 3": 1,
		"!0": 1, "!7": 0, "-3": -3, "--3": 3, "!!3": 1, "0 ? $leaf : 4": 4, "2 ? 3 : $leaf": 3, "1 ? 0 ? 1 : 2 : 3": 2, "0 ? 1 : 0 ? 2 : 3": 3,
		"2 + 3 << 1": 8, "2 * 3 % 4": 2, "1 | 2 + 1": 4, "1 < 2 == 1": 1, "1 || 0 && 0": 1, "10 - 3 - 2": 5, "(10 - (3 - 2))": 9,
		"0x10": 16, "0XfF": 255, "0b11": 3, "0B10": 2, "010": 8, "09": 9, "255.255.255.255": 1<<32 - 1, "0.0.0.1": 1, "ff:ff:ff:ff:ff:ff": 1<<48 - 1, "0:0:0:0:1:2": 0x102,
		"0xffffffffffffffff": -1, "9223372036854775807": 1<<63 - 1, "$port": 5, "$port( s1 )": 5, "$up+1": 6,
	} {
		e, err := manifest.ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Eval(facts); got != want || err != nil {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"1 % 0": "the remainder of a division by 0", "1 << 64": "a shift by 64", "1 >> -1": "a shift by -1", "1 >> 64": "a shift by 64", "0 || $leaf": "no leaf", "$leaf + 1": "no leaf", "1 + $leaf": "no leaf",
		"$leaf ? 1 : 2": "no leaf", "2001:db8::1 + 1": "has more than 64 bits: it must be a whole expression",
	} {
		e, err := manifest.ParseExpr(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Eval(facts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %d, %v; want %s", text, got, err, want)
		}
	}
}

// Numbers of up to 128 bits stand alone. An expression has at most 500 parts.
func TestExprLimits(t *testing.T) {
	const most = "340282366920938463463374607431768211455" // 2^128 - 1
	for text, want := range map[string]string{
		most: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "0x10000000000000000": "::1:0:0:0:0", "2001:db8::1": "2001:db8::1", "1:2:3:4:5:6:7:8": "1:2:3:4:5:6:7:8", "18446744073709551616": "::1:0:0:0:0",
	} {
		e, err := manifest.ParseExpr(text)
		if a, ok := e.Address(); err != nil || !ok || a != netip.MustParseAddr(want) {
			t.Errorf("%s is %v, %v, %v; want %s", text, a, ok, err, want)
		}
	}
	for _, text := range []string{"340282366920938463463374607431768211456", "0x1" + strings.Repeat("0", 32), "256.1.1.1"} {
		if e, err := manifest.ParseExpr(text); err == nil {
			t.Errorf("%s is %v", text, e)
		}
	}
	for n, fine := range map[int]bool{499: true, 501: false} {
		if _, err := manifest.ParseExpr("1" + strings.Repeat("+1", n/2)); (err == nil) != fine {
			t.Errorf("%d parts: %v", n, err)
		}
	}
	if _, err := manifest.ParseExpr(strings.Repeat("-", 499) + "1"); err != nil {
		t.Errorf("500 parts: %v", err)
	}
	for text, want := range map[string]any{"7": uint64(7), "2+3": uint64(5), "-1": uint64(1<<64 - 1), "$port": nil, "1 % 0": nil, "2001:db8::1": nil} {
		e, err := manifest.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := e.Number(); ok != (want != nil) || ok && n != want {
			t.Errorf("%s is the number %d, %v; want %v", text, n, ok, want)
		}
	}
	var zero manifest.Expr
	if n, ok := zero.Number(); ok || !zero.IsZero() {
		t.Errorf("no expression is %d", n)
	}
	e, _ := manifest.ParseExpr("$port(s1)")
	if f, node, ok := e.Fact(); f != manifest.EgressPort || node != "s1" || !ok {
		t.Errorf("%s is the fact %s of %q, %v", e, f, node, ok)
	}
	e, _ = manifest.ParseExpr("$port(s1) + 1")
	if _, _, ok := e.Fact(); ok {
		t.Errorf("%s is a fact", e)
	}
}

// A match is written as it is read.
func TestMatches(t *testing.T) {
	for text, want := range map[string]struct {
		kind         manifest.MatchKind
		value, other string
	}{
		"7": {manifest.ValueMatch, "7", ""}, " * ": {manifest.AnyMatch, "", ""}, "10.0.0.0/8": {manifest.PrefixMatch, "10.0.0.0", "8"}, "0x800&&&0xff00": {manifest.MaskMatch, "0x800", "0xff00"},
		"1..9": {manifest.RangeMatch, "1", "9"}, "1 && 1": {manifest.ValueMatch, "1 && 1", ""}, "2001:db8::/32": {manifest.PrefixMatch, "2001:db8::", "32"}, "$host-address/$prefix-length": {manifest.PrefixMatch, "$host-address", "$prefix-length"},
	} {
		var m, again manifest.Match
		if err := m.UnmarshalText([]byte(text)); err != nil || m.Kind != want.kind || m.Value.String() != want.value || m.Other.String() != want.other {
			t.Errorf("%q: %+v, %v; want %+v", text, m, err, want)
		}
		out, _ := m.MarshalText()
		if err := again.UnmarshalText(out); err != nil || again.String() != m.String() {
			t.Errorf("%q is written as %q", text, out)
		}
	}
	for _, text := range []string{"", "/8", "1/", "1..", "&&&1", "**"} {
		var m manifest.Match
		if err := m.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, m)
		}
	}
}

// The shares of paths by their levels are cumulative, for all but the last path. Without
// weights, the paths of level Zero have equal shares; without such paths, all paths have.
func TestEnds(t *testing.T) {
	for _, test := range []struct {
		baked  manifest.Baked
		levels []int
		want   string
	}{
		{manifest.Baked{Weights: []int{0, 1, 3}, Total: 256}, []int{1, 2}, "[63]"},         // 1 of 4: cells 0..63
		{manifest.Baked{Weights: []int{0, 1, 3}, Total: 256}, []int{2, 1, 1}, "[152 203]"}, // 3/5 and 4/5 of 256: 153, 204
		{manifest.Baked{Weights: []int{0, 1, 3}, Total: 256}, []int{0, 2}, "[0]"},          // a path without weight ends at cell 0
		{manifest.Baked{Weights: []int{0, 0}, Total: 8, Zero: []int{1}}, []int{0, 1, 1, 0}, "[0 3 7]"},
		{manifest.Baked{Weights: []int{0, 0}, Total: 8}, []int{0, 0}, "[3]"},
		{manifest.Baked{Weights: []int{5}, Total: 8}, []int{0}, "[]"},
	} {
		if got := fmt.Sprint(test.baked.Ends(test.levels)); got != test.want {
			t.Errorf("%+v at %v: %s, want %s", test.baked, test.levels, got, test.want)
		}
	}
}

// Durations are written in ASCII, and read in Go's notation if they are not negative.
func TestDurations(t *testing.T) {
	for text, want := range map[string]string{"1500ns": "1.5us", "1.5µs": "1.5us", "500us": "500us", "2s": "2s", "0": "0s", "0s": "0s", "-1ns": "", "x": "", "5": "", "": ""} {
		d := manifest.Duration(7)
		err := d.UnmarshalText([]byte(text))
		if want == "" {
			if message := fmt.Sprintf("%q: want a time such as 500us, 1.5ms or 2s", text); err == nil || err.Error() != message || d != 7 {
				t.Errorf("%q: %v, %v", text, d, err)
			}
			continue
		}
		if got, _ := d.MarshalText(); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
}
