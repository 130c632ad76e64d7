package p4app

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/server/p4rt"
)

// A bench is a switch with the program of the Thrift sessions, which has a
// table of each kind.
type bench struct {
	info   *configv1.P4Info
	dev    *p4rt.Device
	server *p4rt.Server
}

func newBench(t testing.TB) *bench {
	t.Helper()
	p, err := p4.Compile(os.DirFS("../../server/thrift/testdata"), "session.p4", p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{info: p.P4Info}
	b.dev, err = p4rt.NewDevice(p4rt.DeviceOptions{Load: func(program []byte, o dataplane.Options) (*dataplane.Switch, error) {
		c, err := bmv2.Load(program)
		if err != nil {
			return nil, err
		}
		return dataplane.New(c, o)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.dev.Close() })
	if b.server, err = p4rt.NewServer(b.dev, p4rt.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.server.Stop(t.Context()) })
	if err := b.server.Load(p.JSON(), p.P4Info); err != nil {
		t.Fatal(err)
	}
	return b
}

// apply parses text and writes it.
func (b *bench) apply(text string) error {
	e, err := ParseEntries("entries", []byte(text), b.info)
	if err != nil {
		return err
	}
	return e.Apply(b.server, b.dev)
}

// holds lists the entries of tables, one per line.
func (b *bench) holds(t *testing.T, tables ...string) string {
	t.Helper()
	var out strings.Builder
	for _, name := range tables {
		list, err := b.dev.Switch().Tables().Entries("SessionIngress." + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			fmt.Fprintf(&out, "%s", name)
			for _, m := range e.Match {
				fmt.Fprintf(&out, " %x/%x/%x/%d", m.Value, m.Mask, m.High, m.PrefixLen)
			}
			if e.Priority < math.MaxInt32 { // P4Runtime's 0 in BMv2
				fmt.Fprintf(&out, " %d", e.Priority)
			}
			if e.Target.Kind == dataplane.TargetAction {
				fmt.Fprintf(&out, " %s %x\n", e.Target.Action.Name, e.Target.Action.Params)
			} else {
				fmt.Fprintf(&out, " %d:%d\n", e.Target.Kind, e.Target.Index)
			}
		}
	}
	return out.String()
}

const session = `# comments, and commands that only print, are passed over
// like these
show_tables
table_add exact_one to 00:00:00:00:00:01 3 => 5
table_add SessionIngress.exact_one rewrite 0x2 4 => 00:00:00:00:00:99 6
table_add lpm_one to 10.0.0.0/44 => 0x1ff
table_add lpm_one NoAction 0/0 =>
table_add ternary_one to 1&&&0xff 0x800 => 5 10
table_add range_one drop 0x10->0x20 0&&&0 => 7
table_modify exact_one to 1 8
table_add mixed_one to 1 0a:00:00:00:00:00/8 => 1
table_delete mixed_one 0
table_set_default keyless_one to 6
table_set_timeout lpm_one 0 1500
act_prof_create_member shared to 4
table_indirect_add profile_one 0x800 => 0
act_prof_create_member ways to 1
act_prof_create_member ways to 2
act_prof_create_group ways
act_prof_add_member_to_group ways 0 0
act_prof_add_member_to_group ways 1 0
table_indirect_add_with_group selector_one 0x801 => 0
mc_mgrp_create 7
mc_node_create 3 1 2
mc_node_create 4 5
mc_node_associate 7 0
mc_node_associate 7 1
mirroring_add 5 9
mirroring_add_mc 6 7
register_write seen 3 99
counter_write packets 2 7 800
counter_reset packets
meter_array_set_rates limits 0.1:1 0.2:2
meter_set_rates limits 1 0.3:3 0.4:4
meter_array_set_rates rates 0.5:5 0.6:6
set_queue_rate 1000 2
set_queue_depth 12
set_crc16_parameters calc 0x1021 0xffff 0 false false
set_crc32_parameters calc_1 0x04c11db7 0 0 true true
pvs_add types 0x800
`

// TestCommands executes commands of simple_switch_CLI and checks the state of
// the switch.
func TestCommands(t *testing.T) {
	b := newBench(t)
	if err := b.apply(session); err != nil {
		t.Fatal(err)
	}
	want := `exact_one 000000000001///0 0003///0 SessionIngress.to [0005]
exact_one 000000000002///0 0004///0 SessionIngress.to [0008]
lpm_one 00000a000000///44 SessionIngress.to [01ff]
lpm_one 000000000000///0 NoAction []
ternary_one 000000000001/0000000000ff//0 0800///0 10 SessionIngress.to [0005]
range_one 0010//0020/0 000000000000/000000000000//0 7 SessionIngress.drop []
profile_one 0800///0 1:0
selector_one 0801///0 2:0
`
	if got := b.holds(t, "exact_one", "lpm_one", "ternary_one", "range_one", "mixed_one", "profile_one", "selector_one"); got != want {
		t.Errorf("the switch holds\n%swant\n%s", got, want)
	}
	sw := b.dev.Switch()
	replicas, err := sw.Replication().Replicas(7)
	if fmt.Sprint(replicas) != "[{3 1} {3 2} {4 5}]" {
		t.Errorf("group 7 has %v, %v", replicas, err)
	}
	if d, _, _ := sw.Tables().Default("SessionIngress.keyless_one"); fmt.Sprint(d.Action) != "{SessionIngress.to [[0 6]]}" {
		t.Errorf("the default action is %v", d.Action)
	}
	if port, _, ok := b.dev.Session(5); port != 9 || !ok {
		t.Errorf("session 5 leads to %d", port)
	}
	if _, group, ok := b.dev.Session(6); group != 7 || !ok {
		t.Errorf("session 6 leads to group %d", group)
	}
	if v, err := b.dev.ReadRegister("SessionIngress.seen", 3, 4); err != nil || v[0] != 99 {
		t.Errorf("the register has %v, %v", v, err)
	}
	if packets, bytes, err := b.dev.ReadCounter("SessionIngress.packets", 2); err != nil || packets != 7 || bytes != 800 {
		t.Errorf("the counter has %d, %d, %v", packets, bytes, err)
	}
	for index, want := range []string{"[{0.1 1} {0.2 2}]", "[{0.3 3} {0.4 4}]"} {
		if r, err := sw.Meters().Rates("SessionIngress.limits", index); fmt.Sprint(r) != want {
			t.Errorf("meter %d has %v, %v, want %s", index, r, err, want)
		}
	}
	if v, err := sw.ValueSets().Get("SessionParser.types"); fmt.Sprint(v) != "[{[8 0] []}]" {
		t.Errorf("the value set has %v, %v", v, err)
	}
}

const runtime = `{
  "target": "bmv2",
  "table_entries": [
    {
      "table": "SessionIngress.exact_one",
      "match": {"hdr.ethernet.dst": "00:00:00:00:00:01", "standard.ingress_port": 3},
      "action_name": "SessionIngress.rewrite",
      "action_params": {"dst": "08:00:00:00:01:11", "port": 1}
    },
    {"table": "lpm_one", "match": {"hdr.ethernet.src": ["10.0.1.1", 40]}, "action_name": "drop", "action_params": {}},
    {"table": "ternary_one", "match": {"hdr.ethernet.type": 2048}, "priority": 5, "action_name": "to", "action_params": {"port": "7"}},
    {"table": "range_one", "match": {"hdr.ethernet.type": [16, 32]}, "action_name": "drop", "action_params": {}},
    {"table": "keyless_one", "default_action": true, "action_name": "drop", "action_params": {}}
  ],
  "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}, {"egress_port": 2, "instance": 1}]}],
  "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 4, "instance": 0}], "packet_length_bytes": 64}]
}`

// TestRuntime does the same with the tutorials' JSON.
func TestRuntime(t *testing.T) {
	b := newBench(t)
	if err := b.apply(runtime); err != nil {
		t.Fatal(err)
	}
	want := `exact_one 000000000001///0 0003///0 SessionIngress.rewrite [080000000111 0001]
lpm_one 00000a000100///40 SessionIngress.drop []
`
	if got := b.holds(t, "exact_one", "lpm_one"); got != want {
		t.Errorf("the switch holds\n%swant\n%s", got, want)
	}
	if got := b.holds(t, "ternary_one", "range_one"); strings.Count(got, "\n") != 2 {
		t.Errorf("the switch holds\n%s", got)
	}
	sw := b.dev.Switch()
	if replicas, err := sw.Replication().Replicas(1); fmt.Sprint(replicas) != "[{1 1} {1 2}]" {
		t.Errorf("group 1 has %v, %v", replicas, err)
	}
	if m, ok := sw.Mirrors().Get(5); !ok || m.Length != 64 {
		t.Errorf("session 5 is %+v", m)
	}
}

// TestMistakes: errors contain the line and what would be right, and nothing is
// written.
func TestMistakes(t *testing.T) {
	line := func(n int, with string) string {
		lines := strings.Split(session, "\n")
		lines[n-1] = with
		return strings.Join(lines, "\n")
	}
	for _, c := range []struct{ text, want string }{
		{line(7, "table_add lpm_on NoAction 0/0 =>"), "entries:7: there is no table lpm_on; did you mean SessionIngress.lpm_one?"},
		{line(7, "table_add lpm_one NoAktion 0/0 =>"), "entries:7: table SessionIngress.lpm_one: there is no action NoAktion; did you mean NoAction?"},
		{line(7, "table_add lpm_one NoAction 0 =>"), "entries:7: table SessionIngress.lpm_one: hdr.ethernet.src: 0: want a prefix such as 10.0.0.0/8"},
		{line(7, "table_add lpm_one NoAction 0/49 =>"), "the prefix length is 49, want at most the 48 bits of the field"},
		{line(7, "table_add lpm_one to 0/0 =>"), "has 1 parameters, but 0 values are given"},
		{line(7, "table_add lpm_one to 0/0 => 512"), "action SessionIngress.to: port: 512 has more than 9 bits"},
		{line(7, "table_add lpm_one to 0/0 => x"), `"x": want a number, an IP address or a MAC`},
		{line(7, "table_add lpm_one to 0/0 5"), "the arrow => is missing"},
		{line(7, "table_add exact_one to 0 => 5"), "the key has 2 fields (hdr.ethernet.dst, standard.ingress_port), but 1 values are given"},
		{line(7, "table_add ternary_one to 0&&&0 0 =>"), "the priority at the end is missing"},
		{line(7, "table_add"), "entries:7: table_add wants TABLE ACTION KEY... => PARAMETER... [PRIORITY]"},
		{line(7, "tabel_add lpm_one"), "entries:7: unknown command tabel_add"},
		{line(7, "table_add exact_one to 00:00:00:00:00:01 3 => 5"), "entries:7: table SessionIngress.exact_one: there is an entry with this match already"},
		{line(7, "table_delete exact_one 5"), "handle 5: no previous command creates such an entry"},
		{line(7, "act_prof_add_member_to_group ways 0 0"), "member 0: no previous command creates it"},
		{line(7, "mc_node_associate 9 0"), "multicast group 9: no previous command creates it"},
		{line(7, "register_write seen 16 1"), "register SessionIngress.seen: index 16: want a number from 0 to 15"},
		{line(7, "meter_array_set_rates limits x"), "x: want RATE:BURST"},
		{line(7, "table_add fixed_one to 5 => 1"), "the entries are fixed by the program"},
		{strings.Replace(runtime, `"lpm_one"`, `"lpm_won"`, 1), "entries:10: there is no table lpm_won; did you mean SessionIngress.lpm_one?"},
		{strings.Replace(runtime, `"SessionIngress.rewrite"`, `"rewrit"`, 1), "entries:7: table SessionIngress.exact_one: there is no action rewrit; did you mean SessionIngress.rewrite?"},
		{strings.Replace(runtime, `"hdr.ethernet.dst"`, `"hdr.ethernet.dest"`, 1), "entries:6: table SessionIngress.exact_one: field hdr.ethernet.dst is missing"},
		{strings.Replace(runtime, `"port": 1}`, `"prot": 1}`, 1), "entries:8: table SessionIngress.exact_one: action SessionIngress.rewrite: parameter port is missing"},
		{strings.Replace(runtime, `"priority": 5`, `"priority": "high"`, 1), "priority: want a whole number, got string"},
		{runtime[:len(runtime)-20], "unexpected EOF"},
		{`{"table_entries": 5}`, "want a list"},
	} {
		b := newBench(t)
		err := b.apply(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
		var e *lineError
		if !errors.As(err, &e) || e.Line == 0 {
			t.Errorf("%v has no line", err)
		}
		if got := b.holds(t, "exact_one", "lpm_one", "ternary_one", "range_one"); got != "" {
			t.Errorf("after %v the switch holds\n%s", err, got)
		}
	}
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRead finds programs and entries in both formats of projects.
func TestRead(t *testing.T) {
	const tutorial = `{"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["route add default gw 10.0.1.10 dev eth0"]}},
	  "switches": {"s1": {"runtime_json": "pod/s1.json", "cpu_port": "510"}, "s2": {"program": "build/wall.json"}},
	  "links": [["h1", "s1-p1"], ["s1-p2", "s2-p2"]]}`
	const utils = `{"p4_src": "src/a.p4", "cli": true, "pcap_dump": true, "exec_scripts": ["x.sh"], "tasks_file": "", "topology": {"assignment_strategy": "l2", "links": [["h1", "s1"], ["h2", "s1"]], "hosts": {"h1": {}, "h2": {}},
	  "switches": {"s1": {"cli_input": "s1-commands.txt", "cpu_port": true, "priority_queues_num": 8}}}}`
	dir := write(t, map[string]string{
		"pod/topology.json": tutorial, "pod/s1.json": "{}", "basic.p4": "", "wall.p4": "",
		"app/p4app.json": utils, "app/src/a.p4": "", "app/s1-commands.txt": "",
	})
	p, err := Read(filepath.Join(dir, "pod/topology.json"), map[string]string{"": "basic.p4", "s2": "mine.p4"}, fabric.Imports{})
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Switches[0]; s.Program != "basic.p4" || s.CPUPort != 510 || len(s.Entries) != 1 || filepath.Base(s.Entries[0]) != "s1.json" {
		t.Errorf("s1 is %+v", s)
	}
	if s := p.Switches[1]; s.Program != "mine.p4" || len(p.Hosts[0].Commands) != 1 {
		t.Errorf("s2 is %+v, h1 is %+v", s, p.Hosts[0])
	}
	if p, err = Read(filepath.Join(dir, "app/p4app.json"), nil, fabric.Imports{}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.Notes, func(n string) bool {
		return strings.HasSuffix(n, "p4app.json: ignored: exec_scripts, pcap_dump")
	}) {
		t.Errorf("the notes are %q", p.Notes)
	}
	if s := p.Switches[0]; filepath.Base(s.Program) != "a.p4" || s.CPUPort != 510 || s.Priority != 8 || filepath.Base(s.Entries[0]) != "s1-commands.txt" {
		t.Errorf("s1 is %+v", s)
	}
	for _, c := range []struct {
		programs map[string]string
		want     string
	}{
		{nil, "switch s1: no program is named, and there are "},
		{map[string]string{"": "basic.p4", "s9": "x.p4"}, "no switch s9 to run x.p4"},
	} {
		if _, err := Read(filepath.Join(dir, "pod/topology.json"), c.programs, fabric.Imports{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	p, err = Read(filepath.Join(dir, "pod/topology.json"), map[string]string{"s1": "basic.p4"}, fabric.Imports{})
	if err != nil || filepath.Base(p.Switches[1].Program) != "wall.p4" {
		t.Errorf("the program for the output of a Makefile is %v, %v", p, err)
	}
}

func TestWithIP(t *testing.T) {
	for from, to := range map[string]string{
		"route add default gw 10.0.1.10 dev eth0":         "ip route replace default via 10.0.1.10 dev eth0",
		"arp -i eth0 -s 10.0.1.10 08:00:00:00:01:00":      "ip neigh replace 10.0.1.10 lladdr 08:00:00:00:01:00 nud permanent dev eth0",
		"ip route add 10.0.0.0/24 dev eth0":               "ip route replace 10.0.0.0/24 dev eth0",
		"sysctl -w net.ipv6.conf.all.disable_ipv6=1 dev ": "sysctl -w net.ipv6.conf.all.disable_ipv6=1 dev ",
	} {
		if got := WithIP(from); got != to {
			t.Errorf("%s becomes %s, want %s", from, got, to)
		}
	}
}

// FuzzEntries: no input panics.
func FuzzEntries(f *testing.F) {
	f.Add(session)
	f.Add(runtime)
	b := newBench(f)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEntries("entries", []byte(text), b.info)
		if (e == nil) == (err == nil) {
			t.Fatalf("%v, %v", e, err)
		}
	})
}
