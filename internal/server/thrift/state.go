package thrift

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// stateVersion is the first line of simple_switch's format for the state of its
// tables. The format has one value per line: the tables with entries and default
// entries, then the action profiles, then the meters.
const stateVersion = "06062016_0"

// serializeState returns the tables, action profiles and meters of the program in
// simple_switch's format. simple_switch --restore-state reads it.
func serializeState(t Target, _ record) (any, exception) {
	sw := t.Control()
	if sw == nil {
		return fmt.Errorf("serializing the state: the switch has no program: want one that is loaded"), 0
	}
	sum, _ := configMD5(t, nil)
	s := stateWriter{sw: sw, actions: map[string]int{}}
	s.line(stateVersion)
	s.line(string(sum.([]byte)))
	if err := s.program(); err != nil {
		return fmt.Errorf("serializing the state: %w", err), 0
	}
	return s.out.Bytes(), 0
}

// A stateWriter writes the state of a switch.
type stateWriter struct {
	sw      *dataplane.Switch
	out     bytes.Buffer
	actions map[string]int // ids
}

func (s *stateWriter) line(values ...any) { fmt.Fprintln(&s.out, values...) }

func (s *stateWriter) program() error {
	c := s.sw.Config()
	for _, a := range c.Actions {
		s.actions[a.Name] = a.ID
	}
	var tables, profiles, meters stateOrder
	tableOf, profileOf, meterOf := map[string]*bmv2.Table{}, map[string]*bmv2.ActionProfile{}, map[string]*bmv2.MeterArray{}
	for _, p := range c.Pipelines {
		for _, t := range p.Tables {
			tableOf[t.Name] = t
			tables.add(t.Name)
		}
		for _, a := range p.ActionProfiles {
			profileOf[a.Name] = a
			profiles.add(a.Name)
		}
	}
	for _, m := range c.MeterArrays {
		meterOf[m.Name] = m
		meters.add(m.Name)
	}
	for _, name := range tables.names {
		if err := s.table(tableOf[name], meterOf); err != nil {
			return err
		}
	}
	for _, name := range profiles.names {
		if err := s.profile(name); err != nil {
			return err
		}
	}
	for _, name := range meters.names {
		if err := s.meters(meterOf[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stateWriter) table(t *bmv2.Table, meters map[string]*bmv2.MeterArray) error {
	key, ordered, err := s.sw.Tables().Key(t.Name)
	if err != nil {
		return err
	}
	entries, err := s.sw.Tables().Entries(t.Name)
	if err != nil {
		return err
	}
	s.line(t.Name)
	s.line(nodeName(next(t, bmv2.NextMiss, t.BaseDefaultNext)))
	s.line(len(entries))
	for _, e := range entries {
		s.line(e.Handle.Slot())
		s.line(uint32(e.Handle) >> 24)
		s.key(key, ordered, e)
		s.target(e.Target, next(t, bmv2.NextHit, next(t, e.Target.Action.Name, "")))
		s.line(e.IdleTimeout.Milliseconds())
	}
	if m := meters[t.DirectMeters]; m != nil {
		if err := s.meters(m); err != nil {
			return err
		}
	}
	return s.defaultEntry(t)
}

func (s *stateWriter) defaultEntry(t *bmv2.Table) error {
	target, ok, err := s.sw.Tables().Default(t.Name)
	switch {
	case err != nil:
		return err
	case t.Type == direct && !ok:
		s.line(-1)
		s.line(nodeName(next(t, bmv2.NextMiss, t.BaseDefaultNext)))
	case t.Type == direct:
		s.target(target, next(t, bmv2.NextMiss, next(t, target.Action.Name, "")))
	case !ok:
		s.line(0)
	default:
		s.line(1)
		s.target(target, "")
	}
	return nil
}

// next returns the node after a label of a table, or instead if the table does not
// have the label.
func next(t *bmv2.Table, label, instead string) string {
	for _, n := range t.NextTables {
		if n.Label == label {
			return n.Next
		}
	}
	return instead
}

// nodeName returns the name of a node; an empty node ends the pipeline.
func nodeName(node string) string {
	if node == "" {
		return "__NULL__"
	}
	return node
}

// keyOrder returns the fields of a key in the order of the format: ranges and exact fields
// come first, then prefixes, then ternary fields.
func keyOrder(fields []dataplane.KeyField) (order []int) {
	for _, kind := range []dataplane.MatchKind{
		dataplane.MatchRange, dataplane.MatchValid, dataplane.MatchExact, dataplane.MatchLPM, dataplane.MatchTernary,
	} {
		for i, f := range fields {
			if f.Kind == kind || f.Kind == dataplane.MatchOptional && kind == dataplane.MatchTernary {
				order = append(order, i)
			}
		}
	}
	return order
}

// key writes the key of an entry. Fields are in whole bytes.
func (s *stateWriter) key(fields []dataplane.KeyField, ordered bool, e dataplane.Entry) {
	var value, mask []byte
	prefix := 0
	for _, i := range keyOrder(fields) {
		v, m, bits := matchBytes(fields[i], e.Match[i])
		value, mask, prefix = append(value, v...), append(mask, m...), prefix+bits
	}
	s.line(hex.EncodeToString(value))
	switch {
	case ordered:
		s.line(hex.EncodeToString(mask))
		s.line(e.Priority)
	case slices.ContainsFunc(fields, func(f dataplane.KeyField) bool { return f.Kind == dataplane.MatchLPM }):
		s.line(prefix)
	}
}

// matchBytes returns a match as value and mask, with the bits that it adds to the
// length of a prefix. The mask of a range is its upper end.
func matchBytes(f dataplane.KeyField, m dataplane.Match) (value, mask []byte, prefix int) {
	value = padded(m.Value, f.Width)
	whole := bytes.Repeat([]byte{0xff}, len(value))
	switch f.Kind {
	case dataplane.MatchLPM:
		// The prefix counts the bits that pad the field.
		return value, whole, 8*len(value) - f.Width + m.PrefixLen
	case dataplane.MatchTernary:
		return value, padded(m.Mask, f.Width), 0
	case dataplane.MatchRange:
		return value, padded(m.High, f.Width), 0
	case dataplane.MatchOptional:
		if m.Value == nil {
			whole = make([]byte, len(value))
		}
	}
	return value, whole, 8 * len(value)
}

// groupIndex marks the index of a group among indices of members.
const groupIndex = 1 << 24

// target writes the action of an entry and the next node, or the member or group.
func (s *stateWriter) target(t dataplane.Target, next string) {
	switch t.Kind {
	case dataplane.TargetMember:
		s.line(uint32(t.Index))
	case dataplane.TargetGroup:
		s.line(groupIndex + uint32(t.Index))
	default:
		s.action(t.Action, next)
	}
}

func (s *stateWriter) action(a dataplane.ActionCall, next string) {
	s.line(s.actions[a.Name])
	s.line(len(a.Params))
	for _, p := range dataOf(a) {
		digits := bytes.TrimLeft([]byte(hex.EncodeToString(p)), "0")
		if len(digits) == 0 {
			digits = []byte("0")
		}
		s.line(string(digits))
	}
	s.line(nodeName(next))
}

func (s *stateWriter) profile(name string) error {
	members, err := s.sw.Profiles().Members(name)
	if err != nil {
		return err
	}
	groups, err := s.sw.Profiles().Groups(name)
	if err != nil {
		return err
	}
	memberUses, groupUses, err := s.sw.Profiles().Uses(name)
	if err != nil {
		return err
	}
	s.line(len(memberUses))
	s.line(len(members))
	for _, m := range members {
		s.line(uint32(m.Handle))
		s.action(m.Action, "")
	}
	for _, uses := range [][]int{memberUses, groupUses} {
		s.line(len(uses))
		for _, n := range uses {
			s.line(n)
		}
	}
	s.line(len(groups))
	for _, g := range groups {
		s.line(uint32(g.Handle))
		s.line(len(g.Members))
		for _, m := range g.Members {
			s.line(uint32(m))
		}
	}
	return nil
}

// meters writes the rates of an array, the highest first.
func (s *stateWriter) meters(m *bmv2.MeterArray) error {
	for i := range m.Size {
		rates, err := s.sw.Meters().Rates(m.Name, i)
		switch {
		case err != nil && !(m.IsDirect && errors.Is(err, dataplane.ErrBadHandle)):
			return err
		case len(rates) == 0: // also a cell without an entry
			s.line(0)
			continue
		}
		s.line(1)
		for _, r := range slices.Backward(rates) {
			s.line(strconv.FormatFloat(r.PerMicrosecond, 'g', 6, 64), r.Burst)
		}
	}
	return nil
}

// A stateOrder lists names in the order of a std::unordered_map of GNU's C++
// library, which simple_switch expects when it reads a state.
type stateOrder struct {
	names   []string
	buckets uint64
}

// bucketCounts are the sizes to which that map grows.
var bucketCounts = []uint64{13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043}

// add inserts a name. If the map grows, it first inserts all others again.
func (o *stateOrder) add(name string) {
	if uint64(len(o.names)) >= o.buckets {
		old := o.names
		o.names = nil
		o.buckets = bucketCounts[slices.IndexFunc(bucketCounts, func(n uint64) bool { return n > o.buckets })]
		for _, x := range old {
			o.put(x)
		}
	}
	o.put(name)
}

// put inserts a name before the names of its bucket, or before all if it is the
// first of its bucket.
func (o *stateOrder) put(name string) {
	at := slices.IndexFunc(o.names, func(x string) bool { return o.bucket(x) == o.bucket(name) })
	o.names = slices.Insert(o.names, max(at, 0), name)
}

func (o *stateOrder) bucket(name string) uint64 { return stringHash(name) % o.buckets }

// stringHash returns std::hash of a string in GNU's C++ library for 64 bits: a
// Murmur hash.
func stringHash(s string) uint64 {
	const mul, seed = 0xc6a4a7935bd1e995, 0xc70f6907
	shift := func(v uint64) uint64 { return v ^ v>>47 }
	h := seed ^ uint64(len(s))*mul
	for ; len(s) >= 8; s = s[8:] {
		h ^= shift(binary.LittleEndian.Uint64([]byte(s[:8]))*mul) * mul
		h *= mul
	}
	if len(s) > 0 {
		var tail uint64
		for i := range len(s) {
			tail |= uint64(s[i]) << (8 * i)
		}
		h = (h ^ tail) * mul
	}
	return shift(shift(h) * mul)
}
