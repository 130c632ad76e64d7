package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
	"github.com/p4lb/p4lb/internal/scheme/own"
)

// foreign is a program whose ingress control is to be filled in.
const foreign = `#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> type; }
header ip_t { bit<64> a; bit<8> ttl; bit<8> proto; bit<16> sum; bit<32> src; bit<32> dst; }
struct h_t { eth_t eth; ip_t ip; }
struct m_t { bit<16> slot; bit<16> n; }
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
    state start { p.extract(h.eth); p.extract(h.ip); transition accept; }
}
control V(inout h_t h, inout m_t m) { apply {} }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    action hop(bit<9> port) { s.egress_spec = port; }
    action to(bit<9> port, bit<48> mac) { s.egress_spec = port; h.eth.dst = mac; }
    action group(bit<16> n) { m.n = n; }
    INGRESS
}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }
control C(inout h_t h, inout m_t m) { apply {} }
control D(packet_out p, in h_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
`

// foreignPlan plans a program with the manifest that Init guesses, after an edit.
func foreignPlan(t *testing.T, ingress string, topology *fabric.Topology, edit ...string) (*manifest.Manifest, *plan.Plan, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.p4")
	if err := os.WriteFile(file, []byte(strings.Replace(foreign, "INGRESS", ingress, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	guess, err := own.Init(own.InitRequest{Program: file, Shown: "x.p4"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(edit...).Replace(string(guess))
	m, err := manifest.Decode("x.manifest.yaml", []byte(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, guess)
	}
	p, err := foreignPlanOf(t, ingress, topology, text)
	return m, p, err
}

// foreignPlanOf plans a program with a manifest.
func foreignPlanOf(t *testing.T, ingress string, topology *fabric.Topology, text string) (*plan.Plan, error) {
	t.Helper()
	m, err := manifest.Decode("x.manifest.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	c, err := p4.CompileText("x.p4", []byte(strings.Replace(foreign, "INGRESS", ingress, 1)), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Check(m, c.P4Info); err != nil {
		return nil, err
	}
	own.Complete(m, c.P4Info)
	p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON()}
	return plan.New(topology, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, plan.Options{})
}

// rowsOf returns the entries of a table on a switch as Rows prints them.
func rowsOf(p *plan.Plan, sw, table string) string {
	var list []string
	for _, r := range p.Rows() {
		if r[0] == sw && strings.HasPrefix(r[1], table+" ") {
			list = append(list, strings.TrimPrefix(r[1], table+" ")+" "+r[2])
		}
	}
	return strings.Join(list, "\n")
}

// TestForeignRoutes: a table for routes gets one entry per prefix, and one per host if
// its field matches whole addresses. Ports of l1: 1 and 2 lead to hosts, 3 and 4 to spines.
func TestForeignRoutes(t *testing.T) {
	const apply = " actions = { hop; NoAction; } } apply { routes.apply(); }"
	for key, want := range map[string]string{
		"h.ip.dst: lpm;": `
dst=10.0.1.1/32 hop(port=1)
dst=10.0.1.2/32 hop(port=2)
dst=10.0.2.0/24 hop(port=3)`,
		"h.ip.dst: exact;": `
dst=10.0.1.1/32 hop(port=1)
dst=10.0.1.2/32 hop(port=2)
dst=10.0.2.1/32 hop(port=3)
dst=10.0.2.2/32 hop(port=3)`,
		"h.ip.dst: optional;": `
dst=10.0.1.1/32 hop(port=1)
dst=10.0.1.2/32 hop(port=2)
dst=10.0.2.1/32 hop(port=3)
dst=10.0.2.2/32 hop(port=3)`,
		"h.ip.dst: range;": `
dst=10.0.1.1..10.0.1.1 hop(port=1)
dst=10.0.1.2..10.0.1.2 hop(port=2)
dst=10.0.2.0..10.0.2.255 hop(port=3)`,
		// A field without a meaning matches any protocol, not protocol 0.
		"h.ip.dst: ternary; h.ip.proto: ternary;": `
dst=10.0.1.1/32 proto=* hop(port=1)
dst=10.0.1.2/32 proto=* hop(port=2)
dst=10.0.2.0/24 proto=* hop(port=3)`,
	} {
		m, p, err := foreignPlan(t, "table routes { key = { "+key+" }"+apply, writtenFabric(t))
		if err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got := rowsOf(p, "l1", "I.routes"); got != strings.TrimPrefix(want, "\n") {
			t.Errorf("%s:\n%s\nwant%s", key, got, want)
		}
		if m.ByMAC() || !p.ByMAC() {
			t.Errorf("%s: no program writes a MAC, so hosts send to each other's", key)
		}
		for _, e := range p.Switches[0].Entries {
			if overlapping := !strings.Contains(key, "lpm") && !strings.Contains(key, "exact"); overlapping != (e.Priority > 0) {
				t.Errorf("%s: priority %d", key, e.Priority)
			}
		}
	}
	_, p, err := foreignPlan(t, "table routes { key = { h.ip.dst: lpm; } actions = { to; } } apply { routes.apply(); }", writtenFabric(t))
	if err != nil || p.ByMAC() {
		t.Errorf("a program that writes the next hop's MAC: %v", err)
	}
}

// TestForeignUnknownExact: Init and Check do not fill an exact field of unknown meaning.
func TestForeignUnknownExact(t *testing.T) {
	const table = "table routes { key = { h.ip.dst: exact; h.ip.proto: exact; } actions = { hop; } } apply { routes.apply(); }"
	m, _, err := foreignPlan(t, table, writtenFabric(t))
	if err != nil || m.Tables[0].Purpose != manifest.None {
		t.Errorf("%v, purpose %s", err, m.Tables[0].Purpose)
	}
	_, _, err = foreignPlan(t, table, writtenFabric(t), "  purpose: none", `  keys:
  - {name: h.ip.dst, carries: destination}
  - {name: h.ip.proto, value: "*"}
  actions: [{name: hop, params: [{name: port, carries: port}]}]
  purpose: route`)
	if want := "tables[0].keys[1].value: *: field h.ip.proto of table I.routes is matched exactly: want its value, a fact that it carries, or entries"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestForeignOneGroup: an action that carries only the number of paths gives the program
// one group per switch, which a table by slot holds. Other groups use one path.
func TestForeignOneGroup(t *testing.T) {
	const ingress = `table routes { key = { h.ip.dst: lpm; } actions = { hop; group; } }
    table members { key = { m.slot: exact; } actions = { hop; } }
    apply {
        switch (routes.apply().action_run) {
            group: { hash(m.slot, HashAlgorithm.crc16, 16w0, { h.ip.src, h.ip.dst }, m.n); members.apply(); }
        }
    }`
	_, p, err := foreignPlan(t, ingress, writtenFabric(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ sw, table, want string }{
		{"l1", "I.routes", "dst=10.0.1.1/32 hop(port=1)\ndst=10.0.1.2/32 hop(port=2)\ndst=10.0.2.0/24 group(n=2)"},
		{"l1", "I.members", "slot=0 hop(port=3)\nslot=1 hop(port=4)"},
		{"s1", "I.routes", "dst=10.0.1.0/24 hop(port=1)\ndst=10.0.2.0/24 hop(port=2)"},
		{"s1", "I.members", ""},
	} {
		if got := rowsOf(p, c.sw, c.table); got != c.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.sw, c.table, got, c.want)
		}
	}
	// Spines of the preset have two links to each leaf: two groups.
	qall := preset(t, "qall")
	if _, p, err = foreignPlan(t, ingress, qall); err != nil {
		t.Fatal(err)
	}
	if got, want := rowsOf(p, "s1", "I.routes"), "dst=10.0.1.0/24 group(n=2)\ndst=10.0.2.0/24 hop(port=4)"; got != want {
		t.Errorf("s1:\n%s\nwant\n%s", got, want)
	}
}

// TestForeignFixedChoice: a program that always selects one of a constant number of values gets
// an entry for each of them, and its routes lead there only if there are several paths.
func TestForeignFixedChoice(t *testing.T) {
	const direct = "dst=10.0.1.1/32 hop(port=1)\ndst=10.0.1.2/32 hop(port=2)\n"
	const four = "slot=0 hop(port=3)\nslot=2 hop(port=3)\nslot=1 hop(port=4)\nslot=3 hop(port=4)"
	for name, c := range map[string]struct{ ingress, routes, members string }{
		"an action that selects": {`action spread() { hash(m.slot, HashAlgorithm.crc16, 16w0, { h.ip.src, h.ip.dst }, 32w4); }
    table routes { key = { h.ip.dst: lpm; } actions = { hop; spread; } }
    table members { key = { m.slot: exact; } actions = { hop; NoAction; } }
    apply { switch (routes.apply().action_run) { spread: { members.apply(); } } }`, direct + "dst=10.0.2.0/24 spread()", four},
		"an action with a first value": {`action first(bit<16> x) { m.slot = x; m.n = 1; }
    table routes { key = { h.ip.dst: lpm; } actions = { to; first; } }
    table members { key = { m.slot: exact; } actions = { hop; } }
    apply { routes.apply(); if (m.n == 1) { random(m.slot, 0, 3); members.apply(); } }`,
			"dst=10.0.1.1/32 to(port=1, mac=02:00:0a:00:01:01)\ndst=10.0.1.2/32 to(port=2, mac=02:00:0a:00:01:02)\ndst=10.0.2.0/24 first(x=0)", four},
		"a table of values and hosts": {`table members { key = { h.ip.dst: exact; m.slot: exact; } actions = { hop; } }
    apply { random(m.slot, 0, 1); members.apply(); }`, "",
			"dst=10.0.1.1/32 slot=0 hop(port=1)\ndst=10.0.1.1/32 slot=1 hop(port=1)\ndst=10.0.1.2/32 slot=0 hop(port=2)\ndst=10.0.1.2/32 slot=1 hop(port=2)\n" +
				"dst=10.0.2.1/32 slot=0 hop(port=3)\ndst=10.0.2.1/32 slot=1 hop(port=4)\ndst=10.0.2.2/32 slot=0 hop(port=3)\ndst=10.0.2.2/32 slot=1 hop(port=4)"},
		"an index of registers": {`register<bit<16>>(1024) seen;
    table members { key = { m.slot: exact; } actions = { hop; } }
    apply { hash(m.slot, HashAlgorithm.crc16, 16w0, { h.ip.src }, 32w1024); seen.write((bit<32>)m.slot, 1); members.apply(); }`, "", ""},
	} {
		_, p, err := foreignPlan(t, c.ingress, writtenFabric(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := rowsOf(p, "l1", "I.routes"); got != c.routes {
			t.Errorf("%s: routes\n%s\nwant\n%s", name, got, c.routes)
		}
		if got := rowsOf(p, "l1", "I.members"); got != c.members {
			t.Errorf("%s: members\n%s\nwant\n%s", name, got, c.members)
		}
	}
}

// TestSelectorCondition: where chooses among the members of a selector.
func TestSelectorCondition(t *testing.T) {
	for where, want := range map[string]string{
		"$port != 3": "dst=10.0.2.1/32 one of send(port=4, mac=06:00:00:04:00:01)",
		"$here":      "",
	} {
		text := strings.Replace(writtenManifest, "one_of: path}", "one_of: path, where: \""+where+"\"}", 1)
		p, err := writtenPlan(t, text, writtenFabric(t))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		got := ""
		for line := range strings.SplitSeq(rowsOf(p, "l1", "I.routes"), "\n") {
			if strings.HasPrefix(line, "dst=10.0.2.1/") {
				got = line
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", where, got, want)
		}
	}
}

// TestTooManyEntries: the error lists the parts of the manifest that need entries, and how many.
func TestTooManyEntries(t *testing.T) {
	_, _, err := foreignPlan(t, "table routes { key = { h.ip.dst: exact; } actions = { hop; } size = 5; } apply { routes.apply(); }", writtenFabric(t),
		"  keys:\n", `  entries:
  - {each: port 0..1, match: {h.ip.dst: $port * 2 + $i}, action: hop, args: {port: $port}}
  keys:
`)
	if want := "table I.routes would have 12 entries, and has room for 5: 4 for its purpose route, 8 for entry 1 (each: port 0..1)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestForeignOffset: Init finds the first member of a group where the program adds it to a
// hash of its own, from a table beside the table of sizes.
func TestForeignOffset(t *testing.T) {
	_, p, err := foreignPlan(t, `bit<16> base = 0;
    action size(bit<16> n) { m.n = n; }
    action offset(bit<16> first) { base = first; }
    table sizes { key = { h.ip.dst: lpm; } actions = { size; } }
    table offsets { key = { h.ip.dst: lpm; } actions = { offset; } }
    table members { key = { m.slot: exact; } actions = { hop; } }
    apply {
        sizes.apply(); offsets.apply();
        bit<16> zero = 0;
        hash(m.slot, HashAlgorithm.crc16, zero, { h.ip.src, h.ip.dst }, m.n);
        m.slot = base + m.slot;
        members.apply();
    }`, writtenFabric(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ table, want string }{
		{"I.sizes", "dst=10.0.1.1/32 size(n=1)\ndst=10.0.1.2/32 size(n=1)\ndst=10.0.2.0/24 size(n=2)"},
		{"I.offsets", "dst=10.0.1.1/32 offset(first=2)\ndst=10.0.1.2/32 offset(first=3)\ndst=10.0.2.0/24 offset(first=0)"},
		{"I.members", "slot=0 hop(port=3)\nslot=1 hop(port=4)\nslot=2 hop(port=1)\nslot=3 hop(port=2)"},
	} {
		if got := rowsOf(p, "l1", c.table); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.table, got, c.want)
		}
	}
}

// TestForeignPortIndex: a number that an action sets beside a port, and that another table
// matches, is the port's, not a group's.
func TestForeignPortIndex(t *testing.T) {
	_, p, err := foreignPlan(t, `action toward(bit<9> port, bit<16> index) { s.egress_spec = port; m.n = index; }
    table routes { key = { h.ip.dst: lpm; } actions = { toward; } }
    table about { key = { m.n: exact; } actions = { NoAction; } }
    apply { routes.apply(); about.apply(); }`, writtenFabric(t))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rowsOf(p, "s1", "I.routes"), "dst=10.0.1.0/24 toward(port=1, index=1)\ndst=10.0.2.0/24 toward(port=2, index=2)"; got != want {
		t.Errorf("s1:\n%s\nwant\n%s", got, want)
	}
}

// TestForeignTinyTable: if a table of paths that rewrite addresses is tiny, the local host
// uses its default action, so that two leaves with a host each fit two entries. 10.0.1.1 is
// 167772417.
func TestForeignTinyTable(t *testing.T) {
	topology, err := fabric.LeafSpine{Name: "tiny", Leaves: 2, Spines: 2, Hosts: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	_, p, err := foreignPlan(t, `action nhop(bit<32> host, bit<9> port) { h.ip.dst = host; s.egress_spec = port; }
    action several(bit<16> first, bit<16> n) { hash(m.slot, HashAlgorithm.crc16, first, { h.ip.src, h.ip.dst }, n); }
    table groups { key = { h.ip.dst: lpm; } actions = { several; } }
    table members { key = { m.slot: exact; } actions = { nhop; } size = 2; }
    apply { groups.apply(); members.apply(); }`, topology)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ sw, want string }{
		{"l1", "slot=1 nhop(host=167772673, port=2)\nslot=2 nhop(host=167772673, port=3)\ndefault nhop(host=167772417, port=1)"},
		{"s1", "slot=0 nhop(host=167772417, port=1)\nslot=1 nhop(host=167772673, port=2)"},
	} {
		if got := rowsOf(p, c.sw, "I.members"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.sw, got, c.want)
		}
	}
}
