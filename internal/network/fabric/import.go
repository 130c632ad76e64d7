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

	"github.com/p4lb/p4lb/internal/text/units"
)

// Imports fills in what other tools' files leave out. Its zero value works.
type Imports struct {
	Rate  Rate // of links that state none; zero: 1 Gbps
	Delay time.Duration
}

// Import reads the topology out of a file of p4-utils (p4app.json), of the P4
// tutorials (topology.json) or of containerlab (NAME.clab.yml). The notes are about what the file says and a
// Topology cannot: a line each, as errors are.
func (o Imports) Import(file string, text []byte) (*Topology, []string, error) {
	tree, isJSON := parseYAML, bytes.HasPrefix(bytes.TrimSpace(text), []byte{'{'})
	if isJSON {
		tree = parseJSON
	}
	v, err := tree(file, text)
	if err != nil {
		return nil, nil, err
	}
	o.Rate = cmp.Or(o.Rate, Gbps)
	m := &importer{reader: reader{reporter{file: file}}, Imports: o, switchAt: map[string]int{}, hostAt: map[string]int{}}
	m.draft.name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	switch topology := v.get("topology"); {
	case topology.get("nodes").kind == object:
		if name := v.get("name"); name.kind == scalar {
			m.draft.name = name.text
		}
		m.containerlab(topology)
	case topology.kind == object:
		m.p4app(topology)
	case isJSON && v.get("links").kind == list:
		m.tutorial(v)
	default:
		return nil, nil, &Error{file, 0, "not a topology: want p4-utils' p4app.json, with an object topology, the tutorials' topology.json, with a list links, or a containerlab file, with nodes in topology"}
	}
	if err := m.err(); err != nil {
		return nil, nil, err
	}
	t, err := m.draft.finish(file)
	if err != nil {
		return nil, nil, err
	}
	if m.unrated > 0 {
		m.notef(0, "links that state no rate (%d) have %v", m.unrated, o.Rate)
	}
	return t, m.notes, nil
}

// An importer makes a draft from another tool's file.
type importer struct {
	reader
	Imports
	draft draft

	switchAt, hostAt map[string]int // places in the draft

	notes   []string
	unrated int // links
}

func (m *importer) notef(line int, format string, args ...any) {
	e := Error{m.file, line, fmt.Sprintf(format, args...)}
	m.notes = append(m.notes, e.Error())
}

// tutorial reads the form of p4lang/tutorials:
//
//	"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"}},
//	"switches": {"s1": {}, "s2": {}},
//	"links": [["h1", "s1-p1"], ["s1-p2", "s2-p1", "5ms", 10]]
//
// A link's third item is its delay, in ms if it is a number, the fourth its
// rate in Mbps.
func (m *importer) tutorial(v value) {
	for _, f := range m.object(v.get("hosts"), "hosts") {
		m.draft.hosts = append(m.draft.hosts, m.host(f, f.get("ip"), f.get("mac")))
	}
	for i, f := range m.object(v.get("switches"), "switches") {
		// The tutorials start one process per switch; ids count from 0.
		id, grpc := uint64(i), 50051+i
		m.draft.switches = append(m.draft.switches, draftSwitch{
			line: f.line, name: f.key, id: &id, grpc: fmt.Sprintf("127.0.0.1:%d", grpc),
		})
	}
	for _, item := range m.list(v.get("links"), "links") {
		parts := m.list(item, "link")
		if len(parts) < 2 || len(parts) > 4 {
			if item.kind != list {
				continue
			}
			m.errorf(item.line, `link: %d items: want two ends, a delay and a rate, as in ["s1-p1", "s2-p1", "5ms", 10]`, len(parts))
			continue
		}
		l := draftLink{line: item.line, rate: m.Rate, delay: m.Delay}
		parse(&m.reader, parts[0], "link: end", parseTutorialEnd, &l.a)
		parse(&m.reader, parts[1], "link: end", parseTutorialEnd, &l.b)
		parts = append(parts, value{}, value{}) // for what is left out
		m.linkTraits(&l, parts[2], parts[3])
		m.draft.links = append(m.draft.links, l)
	}
}

var tutorialEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.+)-p(\d+)$`)
})

// parseTutorialEnd reads h1, s1 or s1-p3.
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

// host makes a host; an address that is auto is left to us.
func (m *importer) host(f field, ip, mac value) draftHost {
	what := "host " + f.key
	m.object(f.value, what)
	h := draftHost{line: f.line, name: f.key}
	if ip.text != "auto" {
		parse(&m.reader, ip, what+": ip", parseHostIP, &h.ip)
	}
	if mac.kind == scalar && mac.text != "auto" {
		parse(&m.reader, mac, what+": mac", pointer(parseMAC), &h.mac)
	}
	return h
}

// linkTraits reads a delay and a rate as Mininet takes them.
func (m *importer) linkTraits(l *draftLink, delay, rate value) {
	parse(&m.reader, delay, fmt.Sprintf("link %v: delay", l), parseMininetDelay, &l.delay)
	if rate.kind == null {
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

// mininetTimes are the times of tc; a number alone is one of ms.
var mininetTimes = units.Times.With([]units.Suffix{
	{Name: "", Times: 1e6}, {Name: "msec", Times: 1e6}, {Name: "msecs", Times: 1e6}, {Name: "usec", Times: 1e3}, {Name: "usecs", Times: 1e3},
	{Name: "sec", Times: 1e9}, {Name: "secs", Times: 1e9},
}...)

// parseMininetDelay reads a delay as tc does, or a number of ms.
func parseMininetDelay(text string) (time.Duration, error) {
	n, ok := mininetTimes.Parse(text)
	if d := time.Duration(n); ok && d <= maxDelay {
		return d, nil
	}
	return 0, fmt.Errorf("%q: want a time of up to 10s such as 5ms, or a number of ms", text)
}

// numberIn is the number in a name such as h12.
func numberIn(name string, letter byte) (int, bool) {
	if name == "" || name[0] != letter {
		return 0, false
	}
	n, err := strconv.Atoi(name[1:])
	return n, err == nil && n > 0
}
