package fabric

import (
	"github.com/p4lb/p4lb/internal/text/tree"

	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// p4app reads the topology object of p4-utils' files:
//
//	"assignment_strategy": "mixed",
//	"default": {"bw": 10},
//	"links": [["h1", "s1", {"bw": 5, "delay": "1ms", "port2": 3}], ["s1", "s2"]],
//	"hosts": {"h1": {}},
//	"switches": {"s1": {"thrift_port": 9090}, "s2": {}}
func (m *importer) p4app(v tree.Node) {
	for _, f := range m.object(v.Get("switches"), "switches") {
		m.switchAt[f.Key] = len(m.draft.switches)
		m.draft.switches = append(m.draft.switches, m.p4appSwitch(f))
	}
	for _, f := range m.object(v.Get("hosts"), "hosts") {
		m.hostAt[f.Key] = len(m.draft.hosts)
		m.draft.hosts = append(m.draft.hosts, m.host(f, f.Get("ip"), f.Get("mac")))
	}
	if r := v.Get("routers"); len(r.Fields) > 0 {
		m.errorf(r.Fields[0].Line, "router %s: routers are not supported: want switches and hosts", r.Fields[0].Key)
	}
	for _, item := range m.list(v.Get("links"), "links") {
		m.p4appLink(item, v.Get("default"))
	}
	if len(m.found) == 0 {
		m.numberPorts()
		m.strategy(v.Get("assignment_strategy"))
	}
}

// numberPorts numbers ports without a number as p4-utils does, because its
// commands use these numbers: link by link in the order of the nodes' names,
// regardless of their order in the file, each port gets the lowest free number.
func (m *importer) numberPorts() {
	taken := map[End]bool{}
	order := make([]int, len(m.draft.links))
	for i := range order {
		order[i] = i
		taken[m.draft.links[i].a], taken[m.draft.links[i].b] = true, true
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := &m.draft.links[i], &m.draft.links[j]
		return cmp.Or(natural(x.a.Node, y.a.Node), natural(x.b.Node, y.b.Node))
	})
	for _, i := range order {
		l := &m.draft.links[i]
		for _, end := range []*End{&l.a, &l.b} {
			if _, host := m.hostAt[end.Node]; host || end.Port != 0 {
				continue
			}
			for end.Port = 1; taken[*end]; end.Port++ {
			}
			taken[*end] = true
		}
	}
}

// natural compares names in natural order: s2 comes before s10.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingNumber(a), leadingNumber(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		v, w := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if c := cmp.Or(cmp.Compare(len(v), len(w)), strings.Compare(v, w)); c != 0 {
			return c
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// leadingNumber returns the number of digits at the beginning of a text.
func leadingNumber(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

func (m *importer) p4appSwitch(f tree.Field) draftSwitch {
	what := "switch " + f.Key
	m.object(f.Node, what)
	s := draftSwitch{line: f.Line, name: f.Key}
	parse(&m.reader, f.Get("device_id"), what+": device_id", pointer(parseID), &s.id)
	port := func(key string) string {
		v := f.Get(key)
		if v.Kind == tree.Null {
			return ""
		}
		n := 0
		parse(&m.reader, v, what+": "+key, within(1, 65535), &n)
		return fmt.Sprintf("127.0.0.1:%d", n)
	}
	s.grpc, s.thrift = port("grpc_port"), port("thrift_port")
	return s
}

// p4appLink reads a link: two nodes and an optional object. Properties of the
// object take precedence over the defaults of all links.
func (m *importer) p4appLink(item, common tree.Node) {
	parts := m.list(item, "link")
	if len(parts) < 2 || len(parts) > 3 {
		if item.Kind != tree.List {
			return
		}
		m.errorf(item.Line, `link: %d items: want two nodes and an object, as in ["s1", "s2", {"bw": 10}]`, len(parts))
		return
	}
	var own tree.Node
	if len(parts) == 3 {
		own = parts[2]
		m.object(own, "link")
	}
	get := func(keys ...string) tree.Node {
		for _, from := range []tree.Node{own, common} {
			for _, key := range keys {
				if v := from.Get(key); v.Kind != tree.Null {
					return v
				}
			}
		}
		return tree.Node{}
	}
	l := draftLink{line: item.Line, rate: m.Rate, delay: m.Delay}
	l.a.Node, l.b.Node = m.word(parts[0], "link: end"), m.word(parts[1], "link: end")
	m.linkTraits(&l, get("delay"), get("bw"))
	what := fmt.Sprintf("link %v", l)
	parse(&m.reader, get("max_queue_size", "queue_length"), what+": queue", within(1, mostQueued), &l.queue)
	for i, end := range []*End{&l.a, &l.b} {
		n := fmt.Sprint(i + 1)
		m.linkEnd(end, what, own.Get("port"+n), own.Get("addr"+n), own.Get("params"+n).Get("ip"))
	}
	if loss := get("loss"); loss.Kind != tree.Null && loss.Text != "0" {
		m.notef(loss.Line, "%s: loss of %s %% ignored", what, loss.Text)
	}
	if weight := get("weight"); weight.Kind != tree.Null && weight.Text != "1" {
		m.notef(weight.Line, "%s: weight %s ignored: paths minimize the number of links", what, weight.Text)
	}
	m.draft.links = append(m.draft.links, l)
}

// linkEnd reads the properties of an end: the port of a switch, the addresses
// of a host.
func (m *importer) linkEnd(end *End, what string, port, mac, ip tree.Node) {
	i, ok := m.hostAt[end.Node]
	if !ok {
		parse(&m.reader, port, what+": port", within(1, MaxPort), &end.Port)
		return
	}
	h := &m.draft.hosts[i]
	parse(&m.reader, ip, what+": ip", parseHostIP, &h.ip)
	parse(&m.reader, mac, what+": addr", pointer(parseMAC), &h.mac)
}

// strategy gives hosts without an address the one that p4-utils would assign,
// so that scripts written for p4-utils keep working.
func (m *importer) strategy(v tree.Node) {
	name := strings.ToLower(m.word(v, "assignment_strategy"))
	if name == "" {
		name = "l2" // its documented default
	}
	if name == "manual" {
		return
	}
	if name != "l2" && name != "l3" && name != "mixed" {
		m.errorf(v.Line, "assignment_strategy %q: want l2, l3, mixed or manual", v.Text)
		return
	}
	used := map[netip.Addr]bool{}
	for _, h := range m.draft.hosts {
		used[h.ip.Addr()] = true
	}
	for _, l := range m.draft.links {
		host, at := m.hostEnd(l)
		if host == nil || host.ip.IsValid() {
			continue
		}
		ip, ok := strategyIP(name, host.name, at)
		if !ok || used[ip.Addr()] {
			continue // p4-utils has no number for its name; finish assigns an address
		}
		used[ip.Addr()] = true
		host.ip = ip
		if host.mac == nil {
			mac := hostMAC(ip.Addr())
			mac[0] = 0 // as p4-utils derives it
			host.mac = &mac
		}
	}
}

// hostEnd returns the host at one end of the link, if any, and the number of
// the switch at the other end.
func (m *importer) hostEnd(l draftLink) (host *draftHost, at int) {
	for _, ends := range [][2]string{{l.a.Node, l.b.Node}, {l.b.Node, l.a.Node}} {
		if i, ok := m.hostAt[ends[0]]; ok {
			return &m.draft.hosts[i], m.switchNumber(ends[1])
		}
	}
	return nil, 0
}

// switchNumber returns p4-utils' number of a switch: its id, the number in its
// name, or its position.
func (m *importer) switchNumber(name string) int {
	i, ok := m.switchAt[name]
	if !ok {
		return 0
	}
	if id := m.draft.switches[i].id; id != nil {
		return int(*id & 0xffff)
	}
	if n, ok := numberIn(name, 's'); ok {
		return n
	}
	return i + 1
}

// strategyIP returns the address of a host by its number and its switch's
// number.
func strategyIP(strategy, host string, at int) (netip.Prefix, bool) {
	n, ok := numberIn(host, 'h')
	a, bits := [4]byte{10, 0, byte(n >> 8), byte(n)}, 16
	switch strategy {
	case "mixed":
		a, bits = [4]byte{10, byte(at >> 8), byte(at), byte(n)}, 24
		ok = ok && n < 254 && at < 1<<16
	case "l3":
		a, bits = [4]byte{10, byte(at), byte(n), 2}, 24
		ok = ok && n < 256 && at < 256
	default:
		ok = ok && n < 65535
	}
	return netip.PrefixFrom(netip.AddrFrom4(a), bits), ok
}
