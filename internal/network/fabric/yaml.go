package fabric

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
	"github.com/p4lb/p4lb/internal/text/tree"
)

// Load reads a topology in YAML. file is its name in messages. The error has
// type Errors or *Error.
//
//	name: small
//	defaults:                # for links without these values
//	  switch-links: {rate: 400Mbps, delay: 10us, queue: 64}
//	  host-links: {rate: 100Mbps}
//	switches:
//	  l1: {role: leaf, id: 1, grpc: 127.0.0.1:9559, thrift: 127.0.0.1:9090, buffer: 9MiB}
//	  s1: {role: spine}
//	  l2:
//	hosts:
//	  h1: {ip: 10.0.1.1/24, mac: "02:00:0a:00:01:01"}
//	  h2:
//	  h3: {ip: "2001:db8:1::3/64"}
//	services:
//	  web: {address: 10.0.2.100, port: 80, servers: [h2, h3]}
//	links:
//	  - {ends: [h1, l1]}
//	  - {ends: [h2, l2:7]}   # at port 7
//	  - {ends: [l1, s1], parallel: 2}
//	  - {ends: [l2, s1], rate: 200Mbps, down: true}
//
// Only the names, the ends and the rates are required.
func Load(file string, text []byte) (*Topology, error) {
	v, err := tree.ParseLarge(text)
	if err != nil {
		return nil, located(file, err)
	}
	r := &reader{reporter{file: file}, map[string]Front{}}
	d := &draft{}
	r.object(v, "the topology", "name", "about", "defaults", "switches", "hosts", "services", "links")
	d.name = r.word(v.Get("name"), "name")
	d.about = r.word(v.Get("about"), "about")
	defaults := v.Get("defaults")
	r.object(defaults, "defaults", "switch-links", "host-links", "front-panel")
	front := r.frontOf(defaults.Get("front-panel"), "defaults")
	for _, f := range r.object(v.Get("switches"), "switches") {
		s := r.switchOf(f)
		if s.front == nil {
			s.front = front
		}
		d.switches = append(d.switches, s)
		r.fronts[s.name] = s.front
	}
	isHost := map[string]bool{}
	for _, f := range r.object(v.Get("hosts"), "hosts") {
		what := "host " + f.Key
		r.object(f.Node, what, "ip", "mac", "nic")
		h := draftHost{line: f.Line, name: f.Key}
		parse(r, f.Get("ip"), what+": ip", parseHostIP, &h.ip)
		parse(r, f.Get("mac"), what+": mac", pointer(parseMAC), &h.mac)
		h.nic = r.word(f.Get("nic"), what+": nic")
		d.hosts = append(d.hosts, h)
		isHost[f.Key] = true
	}
	for _, f := range r.object(v.Get("services"), "services") {
		d.services = append(d.services, r.serviceOf(f))
	}
	basis := map[bool]draftLink{
		false: r.defaults(defaults.Get("switch-links"), "defaults of switch-links"),
		true:  r.defaults(defaults.Get("host-links"), "defaults of host-links"),
	}
	for _, item := range r.list(v.Get("links"), "links") {
		if len(d.links) > maxLinks {
			break // finish reports the error
		}
		d.links = append(d.links, r.linksOf(item, func(a, b End) draftLink { return basis[isHost[a.Node] || isHost[b.Node]] })...)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return d.finish(file)
}

// A reader builds a draft from a value.
type reader struct {
	reporter
	fronts map[string]Front // by switch
}

// defaults reads the default properties of links.
func (r *reader) defaults(v tree.Node, what string) (l draftLink) {
	r.object(v, what, "rate", "delay", "queue", "fec", "autoneg", "lanes")
	r.linkData(v, &l, what)
	return l
}

// object returns the fields of v, which may be null. If keys are given, other
// keys are errors.
func (r *reader) object(v tree.Node, what string, keys ...string) []tree.Field {
	if v.Kind != tree.Object && v.Kind != tree.Null {
		r.errorf(v.Line, "%s: want keys with values, not %v", what, v.Kind)
	}
	for _, f := range v.Fields {
		if keys != nil && !slices.Contains(keys, f.Key) {
			r.errorf(f.Line, "%s: there is no key %q%s", what, f.Key, plain.Meant(f.Key, keys))
		}
	}
	return v.Fields
}

func (r *reader) list(v tree.Node, what string) []tree.Node {
	if v.Kind != tree.List && v.Kind != tree.Null {
		r.errorf(v.Line, "%s: want a list, not %v", what, v.Kind)
	}
	return v.Items
}

// word returns the text of a scalar, or "" for null.
func (r *reader) word(v tree.Node, what string) string {
	if v.Kind == tree.List || v.Kind == tree.Object {
		r.errorf(v.Line, "%s: want a word, not %v", what, v.Kind)
	}
	return v.Text
}

// parse parses v with f. If v is null, x stays unchanged.
func parse[T any](r *reader, v tree.Node, what string, f func(string) (T, error), x *T) {
	text := r.word(v, what)
	if v.Kind != tree.Scalar {
		return
	}
	var err error
	if *x, err = f(text); err != nil {
		r.errorf(v.Line, "%s %v", what, err)
	}
}

// pointer adapts f for values that are nil if they are missing.
func pointer[T any](f func(string) (T, error)) func(string) (*T, error) {
	return func(text string) (*T, error) {
		x, err := f(text)
		return &x, err
	}
}

func (r *reader) switchOf(f tree.Field) draftSwitch {
	what := "switch " + f.Key
	r.object(f.Node, what, "role", "id", "grpc", "thrift", "buffer", "front-panel")
	s := draftSwitch{line: f.Line, name: f.Key}
	parse(r, f.Get("role"), what+": role", parseRole, &s.role)
	parse(r, f.Get("id"), what+": id", pointer(parseID), &s.id)
	s.grpc = r.word(f.Get("grpc"), what+": grpc")
	s.thrift = r.word(f.Get("thrift"), what+": thrift")
	parse(r, f.Get("buffer"), what+": buffer", ParseSize, &s.buffer)
	s.front = r.frontOf(f.Get("front-panel"), what)
	return s
}

// serviceOf reads a service.
func (r *reader) serviceOf(f tree.Field) draftService {
	what := "service " + f.Key
	r.object(f.Node, what, "address", "port", "servers", "return", "drained")
	s := draftService{line: f.Line, Service: Service{Name: f.Key}}
	parse(r, f.Get("address"), what+": address", parseAddress, &s.Address)
	parse(r, f.Get("port"), what+": port", within(1, 65535), &s.Port)
	for _, item := range r.list(f.Get("servers"), what+": servers") {
		s.Servers = append(s.Servers, r.word(item, what+": server"))
	}
	for _, item := range r.list(f.Get("drained"), what+": drained") {
		s.Drained = append(s.Drained, r.word(item, what+": drained"))
	}
	parse(r, f.Get("return"), what+": return", func(text string) (bool, error) {
		if text != "direct" {
			return false, fmt.Errorf("%q: want direct, or no return if the program changes the addresses", text)
		}
		return true, nil
	}, &s.Direct)
	return s
}

func parseAddress(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return a, fmt.Errorf("%q: want an IP address, as in 10.0.2.100", text)
	}
	return a.Unmap(), nil
}

// asWord undoes the parser's interpretation of l1:3 as a key with a value
// inside braces and brackets.
func asWord(v tree.Node) tree.Node {
	if len(v.Fields) == 1 && v.Fields[0].Kind == tree.Scalar {
		return tree.Node{Line: v.Line, Kind: tree.Scalar, Text: v.Fields[0].Key + ":" + v.Fields[0].Text}
	}
	return v
}

// maxParallel bounds the number of links in one item.
const maxParallel = 128

// linksOf returns the links of an item. basis returns the defaults for a link
// between two ends.
func (r *reader) linksOf(v tree.Node, basis func(a, b End) draftLink) []draftLink {
	r.object(v, "link", "ends", "rate", "delay", "queue", "parallel", "down", "fec", "autoneg", "lanes")
	ends := v.Get("ends").Items
	if len(ends) != 2 {
		if v.Kind == tree.Object {
			r.errorf(v.Line, "link: want two ends, as in ends: [l1, s1:3]")
		}
		return nil
	}
	var a, b End
	parse(r, asWord(ends[0]), "link: end", r.parseEnd, &a)
	parse(r, asWord(ends[1]), "link: end", r.parseEnd, &b)
	l := basis(a, b)
	l.line, l.a, l.b = v.Line, a, b
	what := fmt.Sprintf("link %v", l)
	r.linkData(v, &l, what)
	parse(r, v.Get("down"), what+": down", parseBool, &l.down)
	n, p := 1, v.Get("parallel")
	parse(r, p, what+": parallel", within(1, maxParallel), &n)
	if n > 1 && (a.Port != 0 || b.Port != 0) {
		r.errorf(p.Line, "%s: parallel links cannot share the port: want one item for each", what)
	}
	return slices.Repeat([]draftLink{l}, n)
}

// linkData reads the properties common to links and defaults; missing ones stay
// unchanged.
func (r *reader) linkData(v tree.Node, l *draftLink, what string) {
	parse(r, v.Get("rate"), what+": rate", ParseRate, &l.rate)
	parse(r, v.Get("delay"), what+": delay", ParseDelay, &l.delay)
	parse(r, v.Get("queue"), what+": queue", within(1, mostQueued), &l.queue)
	parse(r, v.Get("fec"), what+": fec", oneOf("none", "fc", "rs"), &l.FEC)
	parse(r, v.Get("autoneg"), what+": autoneg", oneOf("on", "off"), &l.AutoNeg)
	parse(r, v.Get("lanes"), what+": lanes", func(text string) (int, error) {
		if _, err := oneOf("1", "2", "4", "8")(text); err != nil {
			return 0, err
		}
		return strconv.Atoi(text)
	}, &l.Lanes)
}

// oneOf returns a function that parses one of some words.
func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%q: want %s or %s", text, strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
		}
		return text, nil
	}
}

func parseRole(text string) (Role, error) {
	if !slices.Contains(roles, Role(text)) {
		names := lists.Map(roles, func(r Role) string { return string(r) })
		return "", fmt.Errorf("%q%s", text, plain.Meant(text, names))
	}
	return Role(text), nil
}

func parseID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: want a number from 0", text)
	}
	return id, nil
}

func parseInt(text string, low, high int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q: want a number from %d to %d", text, low, high)
	}
	return n, nil
}

// within returns a function that parses a number in a range.
func within(low, high int) func(string) (int, error) {
	return func(text string) (int, error) { return parseInt(text, low, high) }
}

func parseBool(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("%q: want true or false", text)
	}
	return text == "true", nil
}

// parseEnd parses a node with or without a port: l1, l1:3, l1:1/0.
func (r *reader) parseEnd(text string) (End, error) {
	node, port, ok := strings.Cut(text, ":")
	if !ok {
		return End{Node: node}, nil
	}
	if strings.Contains(port, "/") {
		n, err := r.fronts[node].port(node, port)
		if err != nil {
			return End{}, fmt.Errorf("%q: %w", text, err)
		}
		return End{node, n}, nil
	}
	n, err := parseInt(port, 1, MaxPort)
	if err != nil {
		return End{}, fmt.Errorf("%q: want a node and a port from 1 to %d, as in l1:3", text, MaxPort)
	}
	return End{node, n}, nil
}

// YAML writes the complete topology in the form that Load reads. Since it
// contains all numbers, a link added later changes none of them.
func (t *Topology) YAML() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\n", quoted(t.Name))
	if t.About != "" {
		fmt.Fprintf(&b, "about: %s\n", quoted(t.About))
	}
	b.WriteString("\nswitches:\n")
	for _, s := range t.Switches {
		fmt.Fprintf(&b, "  %s: {role: %s, id: %d, grpc: %s, thrift: %s", quoted(s.Name), s.Role, s.ID, quoted(s.GRPC), quoted(s.Thrift))
		if s.Buffer > 0 {
			fmt.Fprintf(&b, ", buffer: %v", s.Buffer)
		}
		if s.Front != nil {
			fmt.Fprintf(&b, ", front-panel: %s", s.Front)
		}
		b.WriteString("}\n")
	}
	b.WriteString("\nhosts:\n")
	for _, h := range t.Hosts {
		// Quoted, because older YAML parsers read some of them as base-60
		// numbers.
		nic := ""
		if h.NIC != "" {
			nic = ", nic: " + quoted(h.NIC)
		}
		fmt.Fprintf(&b, "  %s: {ip: %v, mac: \"%v\"%s}\n", quoted(h.Name), h.IP, h.MAC, nic)
	}
	if len(t.Services) > 0 {
		b.WriteString("\nservices:\n")
	}
	for _, s := range t.Services {
		fmt.Fprintf(&b, "  %s: {address: \"%v\"", quoted(s.Name), s.Address)
		if s.Port > 0 {
			fmt.Fprintf(&b, ", port: %d", s.Port)
		}
		fmt.Fprintf(&b, ", servers: [%s]", strings.Join(lists.Map(s.Servers, quoted), ", "))
		if s.Direct {
			b.WriteString(", return: direct")
		}
		if len(s.Drained) > 0 {
			fmt.Fprintf(&b, ", drained: [%s]", strings.Join(lists.Map(s.Drained, quoted), ", "))
		}
		b.WriteString("}\n")
	}
	b.WriteString("\nlinks:\n")
	for _, l := range t.Links {
		fmt.Fprintf(&b, "  - {ends: [%s, %s], rate: %v, delay: %s", quoted(l.A.String()), quoted(l.B.String()), l.Rate, FormatDelay(l.Delay))
		if l.Queue > 0 {
			fmt.Fprintf(&b, ", queue: %d", l.Queue)
		}
		if l.Down {
			b.WriteString(", down: true")
		}
		if l.FEC != "" {
			b.WriteString(", fec: " + l.FEC)
		}
		if l.AutoNeg != "" {
			fmt.Fprintf(&b, ", autoneg: %q", l.AutoNeg)
		}
		if l.Lanes > 0 {
			fmt.Fprintf(&b, ", lanes: %d", l.Lanes)
		}
		b.WriteString("}\n")
	}
	return []byte(b.String())
}

// notWords are words that some YAML parsers do not read as strings.
var notWords = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"}

// quoted writes a word, with quotes if a parser could read it as something
// else.
func quoted(word string) string {
	for _, c := range word {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == ':'
		if !plain {
			return quoteYAML(word)
		}
	}
	first := word[:min(1, len(word))]
	if strings.Trim(first, "0123456789") != "" && first != "-" && first != "." && first != ":" && !strings.HasSuffix(word, ":") &&
		!slices.Contains(notWords, strings.ToLower(word)) || checkAddress(word) == nil {
		return word
	}
	return quoteYAML(word)
}

// quoteYAML writes a text in double quotes. Go's escapes are valid in YAML,
// except for invalid UTF-8.
func quoteYAML(text string) string { return strconv.Quote(strings.ToValidUTF8(text, "\uFFFD")) }
