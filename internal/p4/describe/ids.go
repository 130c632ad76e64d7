package describe

import (
	"sort"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/p4lb/p4lb/internal/p4/syntax"
)

// A symbolKind is the kind of an object: the first byte of its id.
type symbolKind = configv1.P4Ids_Prefix

const (
	actionKind           = configv1.P4Ids_ACTION
	tableKind            = configv1.P4Ids_TABLE
	valueSetKind         = configv1.P4Ids_VALUE_SET
	controllerHeaderKind = configv1.P4Ids_CONTROLLER_HEADER
	profileKind          = configv1.P4Ids_ACTION_PROFILE
	counterKind          = configv1.P4Ids_COUNTER
	directCounterKind    = configv1.P4Ids_DIRECT_COUNTER
	meterKind            = configv1.P4Ids_METER
	directMeterKind      = configv1.P4Ids_DIRECT_METER
	registerKind         = configv1.P4Ids_REGISTER
	digestKind           = configv1.P4Ids_DIGEST
)

const kindShift = 24

// A symbols assigns ids and aliases. An id consists of the object's kind and 24
// bits. These are the value of @id, or else the hash of the name, or else the next
// free number.
type symbols struct {
	ids      map[symbolKind]map[string]uint32 // 0 until assigned
	taken    map[uint32]bool
	names    map[string]bool
	suffixes map[string]int // the number of names that end in this suffix, at component boundaries
	pipe     string         // TNA: part of the hash of every name except an action's
}

func newSymbols() *symbols {
	return &symbols{ids: map[symbolKind]map[string]uint32{}, taken: map[uint32]bool{}, names: map[string]bool{}, suffixes: map[string]int{}}
}

// add records an object. Two calls with the same name mean the same object.
func (s *symbols) add(g *infoGen, kind symbolKind, name string, as syntax.Annotations, at syntax.Node) {
	if s.ids[kind] == nil {
		s.ids[kind] = map[string]uint32{}
	}
	if s.has(kind, name) {
		return
	}
	s.ids[kind][name] = s.wanted(g, kind, as, at)
	if s.names[name] {
		return
	}
	s.names[name] = true
	for _, suffix := range suffixes(name) {
		s.suffixes[suffix]++
	}
}

func (s *symbols) has(kind symbolKind, name string) bool {
	_, ok := s.ids[kind][name]
	return ok
}

// wanted returns the id that @id requests, or 0 if there is no @id.
func (s *symbols) wanted(g *infoGen, kind symbolKind, as syntax.Annotations, at syntax.Node) uint32 {
	id, ok := g.idOf(as)
	if !ok {
		return 0
	}
	prefix := uint32(kind) << kindShift
	if id>>kindShift != 0 && id>>kindShift != uint32(kind) {
		g.errorf(at, "@id(%#x) has the prefix of another kind of object; the prefix of this kind is %#02x", id, uint32(kind))
		return 0
	}
	id |= prefix
	if s.taken[id] {
		g.errorf(at, "@id(%#x) is given to two objects", id)
		return 0
	}
	s.taken[id] = true
	return id
}

// assign gives ids to the objects without one. If two hashes are equal, the object
// with the later name gets another number.
func (s *symbols) assign() {
	for kind, ids := range s.ids {
		var open []string
		for name, id := range ids {
			if id == 0 {
				open = append(open, name)
			}
		}
		sort.Strings(open)
		for _, name := range open {
			hashed := s.pipe + "." + name
			if s.pipe == "" || kind == actionKind {
				hashed = name
			}
			ids[name] = s.probe(kind, hashName(hashed))
		}
	}
}

func (s *symbols) probe(kind symbolKind, hash uint32) uint32 {
	for {
		id := uint32(kind)<<kindShift | hash&(1<<kindShift-1)
		if !s.taken[id] {
			s.taken[id] = true
			return id
		}
		hash++
	}
}

func (s *symbols) id(kind symbolKind, name string) uint32 { return s.ids[kind][name] }

// alias returns the shortest suffix of the name that is unique.
func (s *symbols) alias(name string) string {
	for _, suffix := range suffixes(name) {
		if s.suffixes[suffix] < 2 {
			return suffix
		}
	}
	return name
}

// suffixes lists the endings of a dotted name, shortest first.
func suffixes(name string) []string {
	var list []string
	for i := len(name); i > 0; {
		i = strings.LastIndexByte(name[:i], '.')
		list = append(list, name[i+1:])
	}
	return list
}

// hashName returns Jenkins' one-at-a-time hash, which p4c uses for P4Runtime ids.
func hashName(name string) uint32 {
	var h uint32
	for i := range len(name) {
		h += uint32(name[i])
		h += h << 10
		h ^= h >> 6
	}
	h += h << 3
	h ^= h >> 11
	return h + h<<15
}

// fieldIDs numbers the parts of one object from 1 and skips the numbers that @id
// fixes. As in p4c, a part with an @id also advances the sequence.
func (g *infoGen) fieldIDs(parts []syntax.Annotations, at syntax.Node) []uint32 {
	ids, taken := make([]uint32, len(parts)), map[uint32]bool{}
	for i, as := range parts {
		id, ok := g.idOf(as)
		switch {
		case !ok:
			continue
		case id == 0:
			g.errorf(at, "0 is not a valid @id")
		case taken[id]:
			g.errorf(at, "@id(%d) is used twice", id)
		}
		ids[i], taken[id] = id, true
	}
	next := uint32(1)
	for i := range ids {
		if ids[i] != 0 {
			next++
			continue
		}
		for taken[next] {
			next++
		}
		ids[i], taken[next] = next, true
	}
	return ids
}
