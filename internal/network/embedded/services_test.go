package embedded_test

import (
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/network/fabric"
)

const balancer = `action pool(bit<16> id, bit<16> n) { m.slot = id; m.n = n; }
    action server(bit<32> ip) { h.ip.dst = ip; }
    table services { key = { h.ip.dst: exact; } actions = { pool; } }
    table servers { key = { m.slot: exact; m.n: exact; } actions = { server; } }
    table routes { key = { h.ip.dst: lpm; } actions = { hop; } }
    apply { services.apply(); servers.apply(); routes.apply(); }`

// balanced are entries for a pool of servers and a lookup table with four buckets.
const balanced = `tables:
- name: I.services
  entries:
  - {each: service, match: {h.ip.dst: $service-address}, action: pool, args: {id: $service, n: $servers}}
- name: I.servers
  entries:
  - {each: service server 0..3, where: $i % $servers == $server, match: {m.slot: $service, m.n: $i}, action: server, args: {ip: $host-address + $service-port - 80}}
- name: I.routes
  entries:
  - {each: service server path, switches: [l1], where: "!$here && $slot == 0", match: {h.ip.dst: $host-address/32}, action: hop, args: {port: $port}}`

// TestPairs: entries repeat for pairs of leaves, on every switch.
func TestPairs(t *testing.T) {
	const program = `action pick(bit<9> port) { s.egress_spec = port; }
    table pairs { key = { m.slot: exact; m.n: exact; } actions = { pick; } }
    table routes { key = { h.ip.dst: lpm; } actions = { hop; } }
    apply { pairs.apply(); routes.apply(); }`
	const entries = "version: 2\nscheme: x\narch: v1model\ntables:\n- name: I.pairs\n  entries:\n" +
		"  - {each: leaf source, match: {m.slot: $source, m.n: $leaf}, action: pick, args: {port: $port}}\n"
	p, err := foreignPlanOf(t, program, writtenFabric(t), entries)
	if err != nil {
		t.Fatal(err)
	}
	for sw, want := range map[string]int{"s1": 2, "l1": 1} {
		if got := strings.Count(rowsOf(p, sw, "I.pairs"), "pick("); got != want {
			t.Errorf("%s: %d entries, want %d: %s", sw, got, want, rowsOf(p, sw, "I.pairs"))
		}
	}
	_, err = foreignPlanOf(t, program, writtenFabric(t), strings.Replace(entries, "leaf source", "source", 1))
	if want := "a source is a leaf that sends to another: want leaf before it, as in leaf source"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestServices: entries repeat for the services of the topology and for their servers.
func TestServices(t *testing.T) {
	const text = "\nservices: {web: {address: 10.0.2.100, port: 80, servers: [h3, h1]}}\n"
	topology, err := fabric.Load("t.yaml", append(writtenFabric(t).YAML(), text...))
	if err != nil {
		t.Fatal(err)
	}
	const entries = "version: 2\nscheme: x\narch: v1model\n" + balanced
	p, err := foreignPlanOf(t, balancer, topology, entries)
	if err != nil {
		t.Fatal(err)
	}
	// h3 has the address 10.0.2.1, h1 10.0.1.1. Servers keep the order of the topology.
	for table, want := range map[string]string{
		"I.services": "dst=10.0.2.100/32 pool(id=1, n=2)",
		"I.servers":  "slot=1 n=1 server(ip=167772417)\nslot=1 n=3 server(ip=167772417)\nslot=1 n=0 server(ip=167772673)\nslot=1 n=2 server(ip=167772673)",
		"I.routes":   "dst=10.0.2.1/32 hop(port=3)",
	} {
		if got := rowsOf(p, "l1", table); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", table, got, want)
		}
	}
	if v := p.VirtualAddresses(); len(v) != 1 {
		t.Error(v)
	}
	_, err = foreignPlanOf(t, balancer, writtenFabric(t), entries)
	if want := "table I.services, entry 1 of the manifest: each service: topology w has no services"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
	for _, c := range []struct{ from, to, want string }{
		{"each: service, match", "each: host, match", "there is no $service-address here: it is one of each: service"},
		{"service server 0..3", "server 0..3", "a server is one of a service: want service before it, as in service server"},
		{"service server 0..3", "service host server 0..3", "a server is a host: want no other host before it"},
	} {
		if _, err := foreignPlanOf(t, balancer, topology, strings.Replace(entries, c.from, c.to, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
