package p4lb_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/p4lb/p4lb"
)

// TestEntries sends a packet through the program of a scheme with all its kinds of
// entries, and checks the message for each mistake in an entry.
func TestEntries(t *testing.T) {
	p, err := p4lb.Build("letflow", p4lb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(p.Manifest()), `"fl_port"`) {
		t.Error("the manifest has no fl_port")
	}
	sw, err := p4lb.NewSwitch(p)
	if err != nil {
		t.Fatal(err)
	}
	route := p4lb.Entry{Table: "ipv4_route", Match: map[string]string{"dst": "10.0.0.0/8"}, Action: "set_group", Args: map[string]string{"gid": "1", "n": "2"}}
	entries := []p4lb.Entry{route}
	for slot, port := range []string{"3", "4"} {
		entries = append(entries, p4lb.Entry{
			Table: "LbIngress.member", Match: map[string]string{"gid": "0x1", "meta.slot": string(rune('0' + slot))},
			Action: "forward", Args: map[string]string{"port": port, "dmac": "02:00:00:00:01:00", "smac": "0x020000000002"},
		})
	}
	for _, e := range entries {
		if err := sw.Insert(e); err != nil {
			t.Fatal(err)
		}
	}
	packet := make([]byte, 60)
	copy(packet, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0xb0, 0x0d, 192, 168, 0, 9, 10, 0, 0, 1, 0, 7, 0, 9, 0, 26})
	out := sw.Send(1, packet)
	if len(out) != 1 || out[0].Port != 3 && out[0].Port != 4 || out[0].Data[22] != 63 {
		t.Fatalf("%v", out)
	}
	if again := sw.Send(1, packet); len(again) != 1 || again[0].Port == 0 {
		t.Error(again)
	}

	change := func(f func(e *p4lb.Entry)) p4lb.Entry {
		e := p4lb.Entry{Table: route.Table, Match: map[string]string{"dst": "11.0.0.0/8"}, Action: route.Action, Args: map[string]string{"gid": "1", "n": "2"}}
		f(&e)
		return e
	}
	for want, e := range map[string]p4lb.Entry{
		`there is no table "ipv4_rout": there are `:                                   change(func(e *p4lb.Entry) { e.Table = "ipv4_rout" }),
		`table LbIngress.ipv4_route: there is no action "set_grp": there are`:         change(func(e *p4lb.Entry) { e.Action = "set_grp" }),
		`action LbIngress.set_group: want a value for n`:                              change(func(e *p4lb.Entry) { delete(e.Args, "n") }),
		`action LbIngress.set_group has no parameter m: it has gid, n`:                change(func(e *p4lb.Entry) { e.Args["m"] = "1" }),
		`action LbIngress.set_group, n: 256 does not fit into 8 bits`:                 change(func(e *p4lb.Entry) { e.Args["n"] = "256" }),
		`"many": want a number, an IP address or a MAC address`:                       change(func(e *p4lb.Entry) { e.Args["n"] = "many" }),
		`there is no key field "src": there are hdr.ipv4.dst`:                         change(func(e *p4lb.Entry) { e.Match = map[string]string{"src": "1"} }),
		`key field hdr.ipv4.dst: "10.0.0.0/33": want a length of at most 32`:          change(func(e *p4lb.Entry) { e.Match["dst"] = "10.0.0.0/33" }),
		`table LbIngress.ipv4_route: an entry with the same key is there already`:     route,
		`table LbIngress.member: key field meta.slot: want a value: it is matched ex`: {Table: "member", Match: map[string]string{"gid": "1"}, Action: "drop"},
	} {
		if err := sw.Insert(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if _, err := sw.Register("fl_prot", 0); err == nil {
		t.Error("there is a register fl_prot")
	}
}

func TestBuildBlocks(t *testing.T) {
	blocks := fstest.MapFS{
		"rows.yaml": {Data: []byte("rows:\n- {name: first, title: the first path, source: a test, granularity: packet, choice: first}\n")},
		"v1model/choice-first.tmpl": {Data: []byte("---\nkind: choice\nname: first\nabout: the first path\n---\n" +
			"{{define \"choose\"}}\nmeta.slot = 0;\n{{end}}\n")},
	}
	p, err := p4lb.Build("first", p4lb.Options{Blocks: blocks})
	if err != nil || !strings.Contains(string(p.Text()), "meta.slot = 0;") {
		t.Error(err)
	}
	if _, err := p4lb.Build("first", p4lb.Options{}); err == nil {
		t.Error("the catalogue has first")
	}
	if _, err := p4lb.Run(t.Context(), "blocks: mine\nschemes: [ecmp]\n", nil); err == nil || !strings.Contains(err.Error(), "experiment:1: blocks: ") {
		t.Error(err)
	}
	if _, err := p4lb.Run(t.Context(), "schemes: [ecpm]\n", nil); err == nil || !strings.Contains(err.Error(), "ecpm") {
		t.Error(err)
	}
}
