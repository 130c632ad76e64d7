package fabric

import (
	"github.com/p4lb/p4lb/internal/text/tree"

	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// containerlab reads the topology object of a containerlab file:
//
//	nodes:
//	  leaf1: {kind: nokia_srlinux, group: leaf}
//	  client1: {kind: linux, exec: ["ip addr add 10.0.1.1/24 dev eth1"]}
//	links:
//	  - endpoints: ["leaf1:e1-1", "client1:eth1"]
//
// A node of kind linux with one link is a host; any other node is a switch. The
// number of a port is the number at the end of its interface's name if all
// interfaces of the switch have different numbers. Otherwise ports are numbered
// from 1 in the order of the links.
func (m *importer) containerlab(v tree.Node) {
	defaults, groups := v.Get("defaults"), v.Get("groups")
	links := m.containerlabLinks(v.Get("links"))
	degree := map[string]int{}
	for _, l := range links {
		degree[l.ends[0].node]++
		degree[l.ends[1].node]++
	}
	known := map[string]bool{}
	for _, f := range m.object(v.Get("nodes"), "nodes") {
		known[f.Key] = true
		get := func(key string) tree.Node {
			for _, from := range []tree.Node{f.Node, groups.Get(f.Get("group").Text), defaults} {
				if x := from.Get(key); x.Kind != tree.Null {
					return x
				}
			}
			return tree.Node{}
		}
		what := "node " + f.Key
		m.object(f.Node, what)
		if m.word(get("kind"), what+": kind") == "linux" && degree[f.Key] == 1 {
			m.hostAt[f.Key] = len(m.draft.hosts)
			m.draft.hosts = append(m.draft.hosts, draftHost{line: f.Line, name: f.Key, ip: m.execAddress(get("exec"), what)})
			continue
		}
		m.switchAt[f.Key] = len(m.draft.switches)
		s := draftSwitch{line: f.Line, name: f.Key}
		if role := Role(f.Get("group").Text); slices.Contains([]Role{Leaf, Spine, roleToR, roleAgg, roleCore}, role) {
			s.role = role
		}
		m.draft.switches = append(m.draft.switches, s)
	}
	numbers := portNumbersOf(links)
	for _, l := range links {
		d := draftLink{line: l.line, rate: m.Rate, delay: m.Delay}
		m.unrated++
		for i, end := range []*End{&d.a, &d.b} {
			end.Node = l.ends[i].node
			if _, host := m.hostAt[end.Node]; !host {
				end.Port = numbers[l.ends[i]]
			}
			if !known[end.Node] {
				m.errorf(l.line, "link: there is no node %q", end.Node)
			}
		}
		m.draft.links = append(m.draft.links, d)
	}
}

// A labEnd is an end of a link: a node with an interface.
type labEnd struct{ node, port string }

type labLink struct {
	line int
	ends [2]labEnd
}

// containerlabLinks reads the links between nodes. It skips links to the
// machine itself or to a management network.
func (m *importer) containerlabLinks(v tree.Node) (links []labLink) {
	for _, item := range m.list(v, "links") {
		m.object(item, "link")
		ends := item.Get("endpoints")
		if ends.Kind == tree.Null || len(ends.Items) != 2 {
			if typ := item.Get("type").Text; typ != "" && typ != "veth" {
				m.notef(item.Line, "link of type %s ignored: it leads out of the topology", typ)
				continue
			}
			m.errorf(item.Line, `link: want two endpoints, as in ["leaf1:e1-1", "client1:eth1"]`)
			continue
		}
		l := labLink{line: item.Line}
		outside := ""
		for i, end := range ends.Items {
			l.ends[i] = m.labEnd(end)
			switch l.ends[i].node {
			case "host", "mgmt-net", "macvlan":
				outside = l.ends[i].node
			}
		}
		if outside != "" {
			m.notef(item.Line, "link to %s ignored: it leads out of the topology", outside)
			continue
		}
		links = append(links, l)
	}
	return links
}

// labEnd parses NODE:INTERFACE, or an object with both.
func (m *importer) labEnd(v tree.Node) labEnd {
	if v.Kind == tree.Object {
		return labEnd{m.word(v.Get("node"), "link: node"), m.word(v.Get("interface"), "link: interface")}
	}
	node, port, ok := strings.Cut(m.word(v, "link: endpoint"), ":")
	if !ok || node == "" || port == "" {
		m.errorf(v.Line, "link: endpoint %q: want NODE:INTERFACE, as in leaf1:e1-1", v.Text)
	}
	return labEnd{node, port}
}

var lastNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d+$`) })

// portNumbersOf returns the port number of each end of a link at a switch.
func portNumbersOf(links []labLink) map[labEnd]int {
	named, taken, order := map[labEnd]int{}, map[string]map[int]bool{}, map[string][]labEnd{}
	unclear := map[string]bool{}
	for _, l := range links {
		for _, e := range l.ends {
			n, err := strconv.Atoi(lastNumber().FindString(e.port))
			if taken[e.node] == nil {
				taken[e.node] = map[int]bool{}
			}
			unclear[e.node] = unclear[e.node] || err != nil || n < 1 || n > MaxPort || taken[e.node][n]
			taken[e.node][n] = true
			named[e] = n
			order[e.node] = append(order[e.node], e)
		}
	}
	for node := range unclear {
		if !unclear[node] {
			continue
		}
		for i, e := range order[node] {
			named[e] = i + 1
		}
	}
	return named
}

var addAddress = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bip\s+(?:-4\s+)?a(?:ddr(?:ess)?)?\s+(?:add|replace)\s+(\d+\.\d+\.\d+\.\d+/\d+)\b`)
})

// execAddress returns the address that a host assigns itself in a command. The
// result is invalid if there is none.
func (m *importer) execAddress(v tree.Node, what string) (ip netip.Prefix) {
	for _, item := range m.list(v, what+": exec") {
		match := addAddress().FindStringSubmatch(item.Text)
		if match == nil {
			continue
		}
		p, err := parseHostIP(match[1])
		if err != nil {
			m.errorf(item.Line, "%s: %s", what, fmt.Sprint(err))
			return ip
		}
		return p
	}
	return ip
}
