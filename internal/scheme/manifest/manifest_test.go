package manifest_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// small is a manifest with most kinds of parts.
const small = `
version: 2
scheme: mine
arch: v1model
paths: 4
cpu_port: 255
registers:
- {name: C.depth, index: port, size: 512, width: 32, kind: queue, unit: packets, quantity: queue, writer: data plane}
- {name: C.seen, index: port, kind: moment, unit: us, event: heard, of: depth}
- {name: C.pair, index: group, width: 32, fields: [{label: least, shift: 16, width: 16, kind: utilisation, scale: 256}, {label: best, shift: 0, width: 16, kind: slot}]}
tables:
- name: C.fib
  purpose: route
  keys: [{name: hdr.ip.dst, match: lpm, carries: destination}]
  actions:
  - {name: out, params: [{name: p, carries: port}, {name: nh, carries: next-mac}]}
  - {name: spread, params: [{name: g, carries: group}, {name: k, carries: paths}]}
- name: C.paths
  purpose: member
  keys: [{name: meta.g, carries: group}, {name: meta.s, carries: slot}]
  actions: [{name: out, params: [{name: p, carries: port}, {name: nh, carries: next-mac}]}]
- name: C.mark
  purpose: none
  entries:
  - {each: port, match: {port: $port}, action: threshold, args: {k: 0x14}}
  - {switches: [s1], match: {port: $port(h1)}, action: threshold, args: {k: 40}}
headers:
- {name: probe, kind: probe, ether_type: 0x88B6, fields: [{name: origin, width: 16, carries: origin}]}
multicast_groups:
- {group: 900, members: up}
tasks:
- {kind: probe, header: probe, period: 1.5ms}
`

func decode(t *testing.T, text string) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Decode("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	m := decode(t, small)
	for _, write := range []func() ([]byte, error){m.JSON, m.YAML} {
		text, err := write()
		if err != nil {
			t.Fatal(err)
		}
		again, err := manifest.Decode("again", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !reflect.DeepEqual(m, again) {
			t.Errorf("%+v\nbecame\n%+v", m, again)
		}
	}
}

// TestDecodeRefuses changes one thing in the small manifest.
func TestDecodeRefuses(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"version: 2", "version: 1", "m.yaml:2: version: is 1: this p4lb reads version 2"},
		{"version: 2", "", "m.yaml:3: version: is missing: want 2"},
		{"scheme: mine", "schem: mine", `m.yaml:3: schem: there is no key "schem"; did you mean scheme?`},
		{"arch: v1model", "arch: v1modle", `m.yaml:4: arch: there is no "v1modle"; did you mean v1model?`},
		{"paths: 4", "paths: 40", "m.yaml:5: paths: is 40: want 1 to 16, or 0 where the program has no groups"},
		{"paths: 4", "paths: four", `m.yaml:5: paths: "four": want a whole number`},
		{"kind: queue", "kind: queu", `m.yaml:8: registers[0].kind: there is no "queu"; did you mean queue?`},
		{"kind: queue", "kind: spaghetti", `m.yaml:8: registers[0].kind: there is no "spaghetti": want opaque, occupancy`},
		{"unit: us,", "", "m.yaml:9: registers[1].unit: register C.seen is a moment: want a unit of time, ns, us, ms or 1024ns"},
		{"of: depth", "of: dept", `m.yaml:9: registers[1].of: there is no register "dept"; did you mean depth?`},
		{"shift: 16", "shift: 24", "m.yaml:10: registers[2].fields[0].width: field least of register C.pair ends at bit 39, the cells have 32 bits"},
		{"purpose: route", "purpose: rout", `m.yaml:13: tables[0].purpose: there is no "rout"; did you mean route?`},
		{", carries: destination", "", "m.yaml:14: tables[0].keys: table C.fib is for route: want a field that carries destination"},
		{"{name: k, carries: paths}", "{name: k, carries: coefficient}", "m.yaml:17: tables[0].actions[1].params[1].carries: nothing is known of coefficient in a table for route: want destination, port, group"},
		{"each: port, match", "match", "m.yaml:25: tables[2].entries[0].match.port: there is no $port here: it is one of each: port"},
		{"$port(h1)", "$prt(h1)", "m.yaml:26: tables[2].entries[1].match.port: there is no fact $prt; did you mean port?"},
		{"port: $port(h1)", "port: ", "m.yaml:26: tables[2].entries[1].match.port: is empty"},
		{"carries: origin", "carries: sequence", "m.yaml:32: tasks[0].header: header probe has no field that carries origin, which task probe sends"},
		{"period: 1.5ms", "period: 1.5", `m.yaml:32: tasks[0].period: "1.5": want a time such as 500us, 1.5ms or 2s`},
		{", period: 1.5ms", "", "m.yaml:32: tasks[0].period: task probe wants either a period or theta, which the period follows from"},
		{"members: up", "members: above", `m.yaml:30: multicast_groups[0].members: there is no "above": want up, onward, neighbours, hosts, all, ports`},
		{"paths: 4", "paths: &x 4", "m.yaml:5: want plain keys and values, without anchors, tags and merges"},
		{"paths: 4", "paths: 4\npaths: 5", `m.yaml:6: there are two keys "paths", the other at line 5: want one`},
	} {
		_, err := manifest.Decode("m.yaml", []byte(strings.Replace(small, test.from, test.to, 1)))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s -> %s: %v\nwant %s", test.from, test.to, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s -> %s: more than a line: %v", test.from, test.to, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(small)
	f.Add(`{"version":2,"scheme":"x","arch":"tna","tables":[{"name":"t","entries":[{"match":{"a":"1..2"},"action":"b"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := manifest.Decode("f", []byte(text))
		if (m == nil) != (err != nil) {
			t.Fatalf("%v, %v", m, err)
		}
		if err != nil {
			return
		}
		out, err := m.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := manifest.Decode("f", out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		second, err := again.JSON()
		if err != nil || string(out) != string(second) {
			t.Fatalf("%s\nbecame\n%s", out, second)
		}
	})
}
