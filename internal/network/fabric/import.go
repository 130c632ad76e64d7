package fabric

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/p4lb/p4lb/internal/text/tree"
	"github.com/p4lb/p4lb/internal/text/units"
)

// Imports are defaults for values missing in other tools' files. The zero value
// is ready to use.
type Imports struct {
	Rate  Rate // rate of links without a rate; zero: 1 Gbps
	Delay time.Duration
}

// Import reads a topology from a file of p4-utils (p4app.json), of the P4
// tutorials (topology.json) or of containerlab (NAME.clab.yml). The notes list
// information that a Topology cannot represent, one line each.
func (o Imports) Import(file string, text []byte) (*Topology, []string, error) {
	parse, isJSON := tree.ParseLarge, bytes.HasPrefix(bytes.TrimSpace(text), []byte{'{'})
	if isJSON {
		parse = tree.ParseJSON
	}
	v, err := parse(text)
	if err != nil {
		return nil, nil, located(file, err)
	}
	o.Rate = cmp.Or(o.Rate, Gbps)
	m := &importer{reader: reader{reporter: reporter{file: file}}, Imports: o, switchAt: map[string]int{}, hostAt: map[string]int{}}
	m.draft.name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	switch topology := v.Get("topology"); {
	case topology.Get("nodes").Kind == tree.Object:
		if name := v.Get("name"); name.Kind == tree.Scalar {
			m.draft.name = name.Text
		}
		m.containerlab(topology)
	case topology.Kind == tree.Object:
		m.p4app(topology)
	case isJSON && v.Get("links").Kind == tree.List:
		m.tutorial(v)
	default:
		return nil, nil, &Error{file, 0, "not a topology: want p4-utils' p4app.json (object topology), the tutorials' topology.json (list links), or a containerlab file (nodes in topology)"}
	}
	if err := m.err(); err != nil {
		return nil, nil, err
	}
	t, err := m.draft.finish(file)
	if err != nil {
		return nil, nil, err
	}
	if m.unrated > 0 {
		m.notef(0, "links without a rate (%d) have %v", m.unrated, o.Rate)
	}
	return t, m.notes, nil
}

// An importer builds a draft from another tool's file.
type importer struct {
	reader
	Imports
	draft draft

	switchAt, hostAt map[string]int // indexes in the draft

	notes   []string
	unrated int // number of links without a rate
}

func (m *importer) notef(line int, format string, args ...any) {
	e := Error{m.file, line, fmt.Sprintf(format, args...)}
	m.notes = append(m.notes, e.Error())
}

// tutorial reads the format of p4lang/tutorials:
//
//	"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"}},
//	"switches": {"s1": {}, "s2": {}},
//	"links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", "5ms", 10]]
//
// The third item of a link is its delay, in ms if it is a number; the fourth is
// its rate in Mbps.
func (m *importer) tutorial(v tree.Node) {
	for _, f := range m.object(v.Get("hosts"), "hosts") {
		m.draft.hosts = append(m.draft.hosts, m.host(f, f.Get("ip"), f.Get("mac")))
	}
	for i, f := range m.object(v.Get("switches"), "switches") {
		// The tutorials start one process per switch; ids count from 0.
		id, grpc := uint64(i), 50051+i
		m.draft.switches = append(m.draft.switches, draftSwitch{
			line: f.Line, name: f.Key, id: &id, grpc: fmt.Sprintf("127.0.0.1:%d", grpc),
		})
	}
	for _, item := range m.list(v.Get("links"), "links") {
		parts := m.list(item, "link")
		if len(parts) < 2 || len(parts) > 4 {
			if item.Kind != tree.List {
				continue
			}
			m.errorf(item.Line, `link: %d items: want two ends, a delay and a rate, as in ["s1-p1", "s2-p1", "5ms", 10]`, len(parts))
			continue
		}
		l := draftLink{line: item.Line, rate: m.Rate, delay: m.Delay}
		parse(&m.reader, parts[0], "link: end", parseTutorialEnd, &l.a)
		parse(&m.reader, parts[1], "link: end", parseTutorialEnd, &l.b)
		parts = append(parts, tree.Node{}, tree.Node{}) // placeholders for missing items
		m.linkTraits(&l, parts[2], parts[3])
		m.draft.links = append(m.draft.links, l)
	}
}

var tutorialEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.+)-p(\d+)$`)
})

// parseTutorialEnd parses h1, s1 or s1-p3.
func parseTutorialEnd(text string) (End, error) {
	match := tutorialEnd().FindStringSubmatch(text)
	if match == nil {
		return End{Node: text}, nil
	}
	n, err := parseInt(match[2], 1, MaxPort)
	if err != nil {
		return End{}, fmt.Errorf("%q: want a port from 1 to %d, as in s1-p3", text, MaxPort)
	}
	return End{match[1], n}, nil
}

// host reads a host. The address "auto" counts as missing.
func (m *importer) host(f tree.Field, ip, mac tree.Node) draftHost {
	what := "host " + f.Key
	m.object(f.Node, what)
	h := draftHost{line: f.Line, name: f.Key}
	if ip.Text != "auto" {
		parse(&m.reader, ip, what+": ip", parseHostIP, &h.ip)
	}
	if mac.Kind == tree.Scalar && mac.Text != "auto" {
		parse(&m.reader, mac, what+": mac", pointer(parseMAC), &h.mac)
	}
	return h
}

// linkTraits reads a delay and a rate in Mininet's format.
func (m *importer) linkTraits(l *draftLink, delay, rate tree.Node) {
	parse(&m.reader, delay, fmt.Sprintf("link %v: delay", l), parseMininetDelay, &l.delay)
	if rate.Kind == tree.Null {
		m.unrated++
		return
	}
	parse(&m.reader, rate, fmt.Sprintf("link %v: rate", l), func(text string) (Rate, error) {
		n, ok := units.Scale{}.With(units.Suffix{Name: "", Times: 1e6}).Parse(text)
		if !ok || n == 0 {
			return 0, fmt.Errorf("%q: want a number of Mbps", text)
		}
		return Rate(n), nil
	}, &l.rate)
}

// mininetTimes are the units of tc; a number without a unit is in ms.
var mininetTimes = units.Times.With([]units.Suffix{
	{Name: "", Times: 1e6}, {Name: "msec", Times: 1e6}, {Name: "msecs", Times: 1e6}, {Name: "usec", Times: 1e3}, {Name: "usecs", Times: 1e3},
	{Name: "sec", Times: 1e9}, {Name: "secs", Times: 1e9},
}...)

// parseMininetDelay parses a delay like tc, or a number of ms.
func parseMininetDelay(text string) (time.Duration, error) {
	n, ok := mininetTimes.Parse(text)
	if d := time.Duration(n); ok && d <= maxDelay {
		return d, nil
	}
	return 0, fmt.Errorf("%q: want a time of up to 10s such as 5ms, or a number of ms", text)
}

// numberIn returns the number in a name such as h12.
func numberIn(name string, letter byte) (int, bool) {
	if name == "" || name[0] != letter {
		return 0, false
	}
	n, err := strconv.Atoi(name[1:])
	return n, err == nil && n > 0
}
