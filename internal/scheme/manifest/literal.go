package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/p4lb/p4lb/internal/text/lists"
	"github.com/p4lb/p4lb/internal/text/plain"
)

// The explicit parts of a manifest: entries, cells, sessions, groups and frames. They may contain
// expressions with facts of the network.

// A Repeat determines where and how often something is repeated.
type Repeat struct {
	Each     Each     `json:"each,omitempty"`     // repeat for each of these; "": once
	Where    Expr     `json:"where,omitzero"`     // only if this is not 0
	Switches []string `json:"switches,omitempty"` // names of switches; none: all
	Roles    []string `json:"roles,omitempty"`    // roles of switches; none: all
}

// An Entry is an entry of a table, or a repeated entry.
type Entry struct {
	Repeat
	Match    map[string]Match `json:"match,omitempty"`   // by field; an omitted field matches any value
	Default  bool             `json:"default,omitempty"` // the default action of the table, of which each switch has one
	Priority Expr             `json:"priority,omitzero"` // the highest wins; for ternary, range and optional fields
	Action   string           `json:"action"`
	Args     map[string]Expr  `json:"args,omitempty"`
	// OneOf repeats the action of an entry in a table with an action selector. The
	// switch selects one of the actions for each packet.
	OneOf Each `json:"one_of,omitempty"`
}

// ByMAC reports whether the program forwards by host MAC addresses, because an entry
// matches one.
func (m *Manifest) ByMAC() (yes bool) {
	for i := range m.Tables {
		for _, e := range m.Tables[i].Entries {
			for _, match := range e.Match {
				match.Value.facts(func(f Fact, _ string) { yes = yes || f == HostMAC })
			}
		}
	}
	return yes
}

// writesMAC reports whether an action of the program gets the MAC address of the next hop
// or of a host.
func (m *Manifest) writesMAC() (yes bool) {
	see := func(f Fact, _ string) { yes = yes || f == NextMAC || f == HostMAC }
	for i := range m.Tables {
		t := &m.Tables[i]
		if t.Action(NextMAC, HostMAC) != nil {
			return true
		}
		for _, e := range t.Entries {
			for _, x := range e.Args {
				x.facts(see)
			}
		}
	}
	return yes
}

// OneSegment reports whether the hosts of the network are on one Ethernet segment, and send to
// each other's MAC addresses instead of their switch's. This is so if a program forwards by host
// MAC addresses, or if no program writes MAC addresses.
func OneSegment(programs []*Manifest) bool {
	return slices.ContainsFunc(programs, (*Manifest).ByMAC) || !slices.ContainsFunc(programs, (*Manifest).writesMAC)
}

// A Fill is the initial value of a register cell.
type Fill struct {
	Repeat
	At    Expr `json:"at"`
	Value Expr `json:"value"`
}

// A FrameField is a value with its width in bits, as in "0x812:16".
type FrameField struct {
	Value Expr
	Bits  int
}

// UnmarshalText reads a field.
func (f *FrameField) UnmarshalText(text []byte) error {
	i := strings.LastIndexByte(string(text), ':')
	bits, err := strconv.Atoi(string(text[i+1:]))
	if i < 0 || err != nil || bits < 1 || bits > 64 {
		return fmt.Errorf(`%q: want a value with its width of 1 to 64 bits, as in "0x812:16"`, text)
	}
	f.Bits = bits
	f.Value, err = ParseExpr(string(text[:i]))
	return err
}

// MarshalText writes what UnmarshalText reads.
func (f FrameField) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%s:%d", f.Value, f.Bits), nil
}

// A Match is the match of an entry on a key field. It is a value, a value with a prefix length
// (10.0.0.0/8), a value with a mask (0x800&&&0xff00), a range (1..9), or * for any value.
type Match struct {
	Kind         MatchKind
	Value, Other Expr // Other is the prefix length, the mask or the end of the range
}

// MatchKind is the symbol of a kind of match.
type MatchKind string

// The kinds of match.
const (
	ValueMatch  MatchKind = ""
	PrefixMatch MatchKind = "/"
	MaskMatch   MatchKind = "&&&"
	RangeMatch  MatchKind = ".."
	AnyMatch    MatchKind = "*"
)

// UnmarshalText reads a match.
func (m *Match) UnmarshalText(text []byte) (err error) {
	*m = Match{}
	rest := strings.TrimSpace(string(text))
	if rest == string(AnyMatch) {
		m.Kind = AnyMatch
		return nil
	}
	for _, kind := range []MatchKind{MaskMatch, RangeMatch, PrefixMatch} {
		if value, other, ok := strings.Cut(rest, string(kind)); ok {
			m.Kind, rest = kind, value
			if m.Other, err = ParseExpr(other); err != nil {
				return err
			}
			break
		}
	}
	m.Value, err = ParseExpr(rest)
	return err
}

// MarshalText writes what UnmarshalText reads.
func (m Match) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// String returns the match in the notation of manifests.
func (m Match) String() string { return m.Value.text + string(m.Kind) + m.Other.text }

func (m Match) facts(see func(Fact, string)) {
	m.Value.facts(see)
	m.Other.facts(see)
}

// Each describes the repetitions of an element: words for objects of a network, or a range of
// numbers. Several words are nested from left to right, as in "host path" or "0..7".
type Each string

// UnmarshalText reads words.
func (e *Each) UnmarshalText(text []byte) error {
	*e = Each(text)
	return nil
}

// check checks each word in the context of the words before it.
func (e Each) check() error {
	words := e.Words()
	for i, word := range words {
		if err := checkWord(word, words[:i]); err != nil {
			return err
		}
	}
	return nil
}

// Words returns the words separately.
func (e Each) Words() []string { return strings.Fields(string(e)) }

// maxRange is the maximum number of entries that one entry of a manifest expands to.
const maxRange = 1 << 16

// Range reads a range of numbers, such as 0..7, from a word of an Each.
func Range(word string) (from, to int, ok bool) {
	a, b, ok := strings.Cut(word, "..")
	from, errA := strconv.Atoi(a)
	to, errB := strconv.Atoi(b)
	return from, to, ok && errA == nil && errB == nil && from >= 0 && from <= to && to-from < maxRange
}

// checkWord checks a word of an Each that comes after others.
func checkWord(word string, before []string) error {
	_, _, ranged := Range(word)
	isRange := func(w string) bool { return strings.Contains(w, "..") }
	names := lists.Map(scopes, func(s scope) string { return s.word })
	switch {
	case slices.Contains(before, word) || ranged && slices.ContainsFunc(before, isRange):
		return fmt.Errorf("%q stands there twice", word)
	case isRange(word) && !ranged:
		return fmt.Errorf("%q: want a range such as 0..7, of %d numbers at most", word, maxRange)
	case !ranged && !slices.Contains(names, word):
		return fmt.Errorf("there is no %q to repeat something for%s", word, plain.Meant(word, append(names, "a range such as 0..7")))
	case word == "server" && !slices.Contains(before, "service"):
		return errors.New("a server is one of a service: want service before it, as in service server")
	case word == "server" && slices.Contains(before, "host"):
		return errors.New("a server is a host: want no other host before it")
	case word == "source" && !slices.Contains(before, "leaf"):
		return errors.New("a source is a leaf that sends to another: want leaf before it, as in leaf source")
	case word == "sender" && !slices.Contains(before, "host"):
		return errors.New("a sender is a host that sends to another: want host before it, as in host sender")
	case word == "path" && !slices.ContainsFunc(before, reached):
		return errors.New("a path is one to something: want a host, route, leaf or group before it, as in group path")
	}
	return nil
}

// A scope is an object of repetition, with the facts that are available in it.
type scope struct {
	word  string
	about string
	facts []Fact
}

// linkFacts are available for a port with a link.
var linkFacts = append([]Fact{Neighbouring, FarPort, LinkSpeed, LinkDelay, LinkUp, LeadsAbove, LeadsBelow}, aboutLink...)

// aboutLink are the facts about a link that are also available in tables for ports.
var aboutLink = []Fact{EgressPort, OwnMAC, NextMAC, QueueNumber, ServiceTime, Capacity, Reciprocal, LinkRate}

// wayFacts describe how a destination is reached. If there are several next hops, they give the
// port of one, always the same.
var wayFacts = append([]Fact{GroupID, PathCount, FirstMember, MemberIndex, FirstPath, PathNumber, NextPort, SlotNumber, PathWeight}, linkFacts...)

var scopes = []scope{
	{"port", "each port that has a link", append([]Fact{IngressPort, HostNumber, HostAddress, HostMAC, IPv6, CloneTo, FloodTo}, linkFacts...)},
	{"neighbour", "each port that leads to another switch", append([]Fact{IngressPort, LeafNumber, CloneTo, FloodTo}, linkFacts...)},
	{"host", "each host of the network that there is a way to", append([]Fact{HostNumber, HostPlace, HostAddress, HostMAC, IPv6, LeafNumber, Here}, wayFacts...)},
	{"route", "each destination, as the tables for routes have them", append([]Fact{Destination, PrefixLength, IPv6}, wayFacts...)},
	{"leaf", "each other leaf that there is a way to", append([]Fact{LeafNumber}, wayFacts...)},
	{"source", "each leaf that sends to the preceding leaf: all pairs of leaves", []Fact{SourceLeaf}},
	{"sender", "each host that sends to the preceding host: all pairs of hosts", []Fact{SenderNumber, SenderAddress, SenderLeaf}},
	{"group", "each group of paths", wayFacts},
	{"service", "each service of the topology with a server in its pool", []Fact{ServiceNumber, ServiceAddress, ServicePort, ServerTotal, Serving, IPv6}},
	{"server", "each server in the pool of the preceding service: it is reachable and not drained", append([]Fact{ServerIndex, HostNumber, HostPlace, HostAddress, HostMAC, LeafNumber, Here}, wayFacts...)},
	{"path", "each path to the preceding object", nil},
}

// reached reports whether the objects of a word are destinations, to which a switch
// has paths.
func reached(word string) bool {
	return slices.Contains([]string{"host", "route", "leaf", "group", "server"}, word)
}

// switchFacts are available in every switch, about itself.
var switchFacts = []Fact{NodeNumber, Home, Tier, PortTotal, HostTotal, CPU}

// nodeFacts are about a named host or switch, and the way to it.
var nodeFacts = append([]Fact{HostAddress, HostMAC, LeafNumber, NodeNumber, PathCount, GroupID}, linkFacts...)

// toFacts are about a possible port of a multicast group.
var toFacts = []Fact{ToPort, ToHost, ToNeighbour, ToAbove, ToBelow}

// sendFacts are about the moment at which a frame is sent.
var sendFacts = []Fact{SendTime, SendCount}

// known lists the facts available in a repetition.
func (r *Repeat) known() []Fact {
	list := slices.Clone(switchFacts)
	for _, word := range r.Each.Words() {
		if _, _, ok := Range(word); ok {
			list = append(list, RangeNumber)
		}
		for _, s := range scopes {
			if s.word == word {
				list = append(list, s.facts...)
			}
		}
	}
	return list
}

// check checks that the facts in expressions exist.
func (r *Repeat) check(place string, expr Expr, more ...Fact) error {
	known := append(r.known(), more...)
	var err error
	expr.facts(func(f Fact, node string) {
		switch {
		case err != nil:
		case node != "" && !slices.Contains(nodeFacts, f):
			err = at(place, "nothing is known of $%s of a node: want %s", f, orList(nodeFacts))
		case node == "" && !slices.Contains(known, f):
			err = at(place, "there is no $%s here%s", f, whereFact(f))
		}
	})
	return err
}

// whereFact describes where a fact is available.
func whereFact(f Fact) string {
	var list []string
	for _, s := range scopes {
		if slices.Contains(s.facts, f) {
			list = append(list, s.word)
		}
	}
	switch {
	case len(list) > 0:
		return ": it is one of each: " + strings.Join(list, ", ")
	case slices.Contains(toFacts, f):
		return ": it is one of the ports of a multicast group"
	case slices.Contains(sendFacts, f):
		return ": it is one of the frames of a task"
	case f == RangeNumber:
		return ": it is the number of a range, as in each: 0..7"
	}
	return ""
}

func (e *Entry) validate(place string) error {
	switch {
	case e.Action == "":
		return at(place+".action", "is missing")
	case e.Default && len(e.Match) > 0:
		return at(place+".match", "a default action matches everything: want no match")
	case !e.Default && len(e.Match) == 0:
		return at(place+".match", "is missing: want the fields of the key, or default: true")
	}
	if err := e.checkEach(place); err != nil {
		return err
	}
	members := e.Repeat // the expressions where and args can use facts of each member of a selector
	members.Each += " " + e.OneOf
	if err := members.Each.check(); err != nil {
		return at(place+".one_of", "%v", err)
	}
	if err := members.check(place+".where", e.Where); err != nil {
		return err
	}
	if err := e.check(place+".priority", e.Priority); err != nil {
		return err
	}
	for _, name := range sortedKeys(e.Match) {
		m := e.Match[name]
		for _, x := range []Expr{m.Value, m.Other} {
			if err := e.check(place+".match."+name, x); err != nil {
				return err
			}
		}
	}
	for _, name := range sortedKeys(e.Args) {
		if err := members.check(place+".args."+name, e.Args[name]); err != nil {
			return err
		}
	}
	return nil
}

// checkEach checks the words of a repetition.
func (r *Repeat) checkEach(place string) error {
	if err := r.Each.check(); err != nil {
		return at(place+".each", "%v", err)
	}
	return nil
}

// checkAll checks several expressions by their keys.
func (r *Repeat) checkAll(place string, list map[string]Expr) error {
	if err := r.checkEach(place); err != nil {
		return err
	}
	for _, key := range sortedKeys(list) {
		if err := r.check(place+"."+key, list[key]); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fill) validate(place string) error {
	switch {
	case f.At.IsZero():
		return at(place+".at", "is missing: want the number of the cell")
	case f.Value.IsZero():
		return at(place+".value", "is missing")
	}
	return f.checkAll(place, map[string]Expr{"where": f.Where, "at": f.At, "value": f.Value})
}
