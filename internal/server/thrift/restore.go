package thrift

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
)

// RestoreState gives a switch the tables, action profiles and meters of a state that
// serialize_state returned, with the same handles. The switch must run the same program,
// whose BMv2 JSON is program. If the state is wrong, the switch keeps a part of it.
func RestoreState(sw *dataplane.Switch, program, state []byte) error {
	rest, ok := bytes.CutPrefix(state, []byte(stateVersion+"\n"))
	if !ok {
		return fmt.Errorf("the first line is not %s: want a file of serialize_state", stateVersion)
	}
	if len(rest) < md5.Size+1 || rest[md5.Size] != '\n' {
		return errors.New("the digest of the program is missing: want the whole state, in bytes")
	}
	if sum := md5.Sum(program); !bytes.Equal(rest[:md5.Size], sum[:]) {
		return errors.New("the state belongs to another program: want the program that was running when it was saved")
	}
	r := &stateReader{sw: sw, lines: strings.Split(strings.TrimSuffix(string(rest[md5.Size+1:]), "\n"), "\n"), actions: map[int]string{}}
	if err := r.program(); err != nil {
		return fmt.Errorf("line %d: %w", r.n+2, err)
	}
	return nil
}

// A stateReader reads the format that a stateWriter writes. Entries refer to members and
// groups, which come later in the format, so the reader first collects everything. It then
// adds entries, members and groups in the order of their handles: Handles.Claim takes the
// next handle at once, but looks for an earlier one among all free ones.
type stateReader struct {
	sw      *dataplane.Switch
	lines   []string
	n       int // lines read
	actions map[int]string
	apply   [3][]func() error // by order: members and groups, entries, meters
}

// The order in which parts are applied.
const (
	applyProfiles = iota
	applyTables
	applyMeters
)

var errShort = errors.New("the state ends here: want more lines")

func (r *stateReader) line() (string, error) {
	if r.n == len(r.lines) {
		return "", errShort
	}
	r.n++
	return r.lines[r.n-1], nil
}

// number reads a number from least on.
func (r *stateReader) number(least int) (int, error) {
	text, err := r.line()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 1<<32-1 {
		return 0, fmt.Errorf("%q: want a number from %d", text, least)
	}
	return n, nil
}

// count reads the number of the following items, each of at least one line.
func (r *stateReader) count() (int, error) {
	n, err := r.number(0)
	if err == nil && n > len(r.lines)-r.n {
		err = fmt.Errorf("%d items: the state has %d more lines", n, len(r.lines)-r.n)
	}
	return n, err
}

func (r *stateReader) hex() ([]byte, error) {
	text, err := r.line()
	if err != nil {
		return nil, err
	}
	if len(text)%2 == 1 {
		text = "0" + text
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%q: want hexadecimal digits", text)
	}
	return b, nil
}

// each reads n items.
func each(n int, err error, f func() error) error {
	for range n {
		if err == nil {
			err = f()
		}
	}
	return err
}

func (r *stateReader) later(order int, what string, f func() error) {
	r.apply[order] = append(r.apply[order], func() error {
		if err := f(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	})
}

func (r *stateReader) program() error {
	c := r.sw.Config()
	for _, a := range c.Actions {
		r.actions[a.ID] = a.Name
	}
	tables, profiles, meters := map[string]*bmv2.Table{}, map[string]bool{}, map[string]*bmv2.MeterArray{}
	for _, p := range c.Pipelines {
		for _, t := range p.Tables {
			tables[t.Name] = t
		}
		for _, a := range p.ActionProfiles {
			profiles[a.Name] = true
		}
	}
	var order stateOrder
	for _, m := range c.MeterArrays {
		meters[m.Name] = m
		order.add(m.Name)
	}
	for range tables {
		name, err := r.line()
		if err != nil {
			return err
		}
		t := tables[name]
		if t == nil {
			return fmt.Errorf("%q: want the name of a table", name)
		}
		if err := r.table(t, meters); err != nil {
			return err
		}
	}
	for _, name := range orderOf(c) {
		if err := r.profile(name); err != nil {
			return err
		}
	}
	for _, name := range order.names {
		if err := r.meters(meters[name]); err != nil {
			return err
		}
	}
	if r.n != len(r.lines) {
		return fmt.Errorf("%d lines remain after the state", len(r.lines)-r.n)
	}
	for _, list := range r.apply {
		for _, f := range list {
			if err := f(); err != nil {
				return err
			}
		}
	}
	return nil
}

// orderOf returns the action profiles in the order of the format.
func orderOf(c *bmv2.Config) []string {
	var order stateOrder
	for _, p := range c.Pipelines {
		for _, a := range p.ActionProfiles {
			order.add(a.Name)
		}
	}
	return order.names
}

func (r *stateReader) table(t *bmv2.Table, meters map[string]*bmv2.MeterArray) error {
	key, ordered, err := r.sw.Tables().Key(t.Name)
	if err != nil {
		return err
	}
	r.later(applyTables, "table "+t.Name, func() error {
		// Entries that the program fixes are there already.
		if err := r.sw.Tables().Clear(t.Name, false); !errors.Is(err, dataplane.ErrImmutable) {
			return err
		}
		return nil
	})
	if _, err := r.line(); err != nil { // the node after a miss
		return err
	}
	n, err := r.count()
	entries := []dataplane.Entry(nil)
	err = each(n, err, func() error {
		e, err := r.entry(t, key, ordered)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b dataplane.Entry) int { return cmp.Compare(a.Handle.Slot(), b.Handle.Slot()) })
	for _, e := range entries {
		r.later(applyTables, fmt.Sprintf("table %s, entry %d", t.Name, e.Handle), func() error {
			if err := r.sw.Tables().AddAt(t.Name, e); !errors.Is(err, dataplane.ErrImmutable) {
				return err
			}
			return nil
		})
	}
	if m := meters[t.DirectMeters]; m != nil {
		if err := r.meters(m); err != nil {
			return err
		}
	}
	return r.defaultEntry(t)
}

func (r *stateReader) entry(t *bmv2.Table, key []dataplane.KeyField, ordered bool) (e dataplane.Entry, err error) {
	slot, err := r.number(0)
	if err != nil {
		return e, err
	}
	version, err := r.number(0)
	if err != nil || slot >= 1<<24 || version > 0xff {
		return e, cmp.Or(err, fmt.Errorf("entry %d, version %d: want a slot below %d and a version below 256", slot, version, 1<<24))
	}
	e.Handle = dataplane.Handle(version<<24 | slot)
	if err := r.key(key, ordered, &e); err != nil {
		return e, err
	}
	if e.Target, err = r.target(t); err != nil {
		return e, err
	}
	ms, err := r.number(0)
	e.IdleTimeout = time.Duration(ms) * time.Millisecond
	return e, err
}

// key reads a key in the form that stateWriter.key writes.
func (r *stateReader) key(fields []dataplane.KeyField, ordered bool, e *dataplane.Entry) error {
	value, err := r.hex()
	if err != nil {
		return err
	}
	size, prefixed := 0, false
	for _, f := range fields {
		size += (f.Width + 7) / 8
		prefixed = prefixed || f.Kind == dataplane.MatchLPM
	}
	mask, prefix := []byte(nil), 0
	switch {
	case ordered:
		if mask, err = r.hex(); err == nil {
			e.Priority, err = r.number(0)
		}
	case prefixed:
		prefix, err = r.number(0)
	}
	if err != nil {
		return err
	}
	if len(value) != size || ordered && len(mask) != size {
		return fmt.Errorf("a key of %d bytes: want %d", len(value), size)
	}
	e.Match = make([]dataplane.Match, len(fields))
	at := 0
	for _, i := range keyOrder(fields) {
		n := (fields[i].Width + 7) / 8
		m := dataplane.Match{Value: value[at : at+n]}
		switch fields[i].Kind {
		case dataplane.MatchTernary:
			m.Mask = mask[at : at+n]
		case dataplane.MatchRange:
			m.High = mask[at : at+n]
		case dataplane.MatchOptional:
			if ordered && !slices.ContainsFunc(mask[at:at+n], func(b byte) bool { return b != 0 }) {
				m.Value = nil
			}
		case dataplane.MatchLPM:
			m.PrefixLen = -1
		}
		e.Match[i] = m
		at += n
	}
	if !prefixed {
		return nil
	}
	for i, f := range fields {
		if e.Match[i].PrefixLen < 0 {
			e.Match[i].PrefixLen = prefix - 8*(size-(f.Width+7)/8) - (8*((f.Width+7)/8) - f.Width)
			if n := e.Match[i].PrefixLen; n < 0 || n > f.Width {
				return fmt.Errorf("a prefix of %d bits of the field %s: want 0 to %d", n, f.Name, f.Width)
			}
		}
	}
	return nil
}

// target reads the action of an entry, or its member or group.
func (r *stateReader) target(t *bmv2.Table) (out dataplane.Target, err error) {
	if t.Type == direct {
		out.Action, err = r.action()
		return out, err
	}
	n, err := r.number(0)
	out.Kind, out.Index = dataplane.TargetMember, dataplane.Handle(n)
	if n >= groupIndex {
		out.Kind, out.Index = dataplane.TargetGroup, dataplane.Handle(n-groupIndex)
	}
	return out, err
}

// action reads an action and the node after it.
func (r *stateReader) action() (a dataplane.ActionCall, err error) {
	id, err := r.number(0)
	if err != nil {
		return a, err
	}
	if a.Name = r.actions[id]; a.Name == "" {
		return a, fmt.Errorf("%d: want the number of an action", id)
	}
	n, err := r.count()
	err = each(n, err, func() error {
		b, err := r.hex()
		a.Params = append(a.Params, b)
		return err
	})
	if err == nil {
		_, err = r.line()
	}
	return a, err
}

func (r *stateReader) defaultEntry(t *bmv2.Table) error {
	var target dataplane.Target
	if t.Type == direct {
		if r.n < len(r.lines) && r.lines[r.n] == "-1" { // no default action
			r.n++
			_, err := r.line() // the node after a miss
			return err
		}
		var err error
		if target, err = r.target(t); err != nil {
			return err
		}
	} else {
		has, err := r.number(0)
		if err != nil || has == 0 {
			return err
		}
		if target, err = r.target(t); err != nil {
			return err
		}
	}
	r.later(applyTables, "the default of table "+t.Name, func() error {
		if err := r.sw.Tables().SetDefault(t.Name, target); !errors.Is(err, dataplane.ErrConstDefault) {
			return err
		}
		return nil
	})
	return nil
}

func (r *stateReader) profile(name string) error {
	what := "action profile " + name
	if _, err := r.number(0); err != nil { // the largest handle
		return err
	}
	n, err := r.count()
	members := []dataplane.Member(nil)
	err = each(n, err, func() error {
		h, err := r.number(0)
		if err != nil {
			return err
		}
		a, err := r.action()
		members = append(members, dataplane.Member{Handle: dataplane.Handle(h), Action: a})
		return err
	})
	slices.SortStableFunc(members, func(a, b dataplane.Member) int { return cmp.Compare(a.Handle, b.Handle) })
	for _, m := range members {
		r.later(applyProfiles, what, func() error { return r.sw.Profiles().AddMemberAt(name, m) })
	}
	for range 2 { // how often members and groups are used
		if err != nil {
			return err
		}
		n, err = r.count()
		err = each(n, err, func() error { _, err := r.number(0); return err })
	}
	if err != nil {
		return err
	}
	n, err = r.count()
	groups := []dataplane.Group(nil)
	err = each(n, err, func() error {
		g, err := r.group()
		groups = append(groups, g)
		return err
	})
	slices.SortStableFunc(groups, func(a, b dataplane.Group) int { return cmp.Compare(a.Handle, b.Handle) })
	for _, g := range groups {
		r.later(applyProfiles, what, func() error { return r.sw.Profiles().AddGroupAt(name, g.Handle) })
		for _, m := range g.Members {
			r.later(applyProfiles, what, func() error { return r.sw.Profiles().AddToGroup(name, g.Handle, m) })
		}
	}
	return err
}

func (r *stateReader) group() (g dataplane.Group, err error) {
	h, err := r.number(0)
	if err != nil {
		return g, err
	}
	g.Handle = dataplane.Handle(h)
	n, err := r.count()
	err = each(n, err, func() error {
		m, err := r.number(0)
		g.Members = append(g.Members, dataplane.Handle(m))
		return err
	})
	return g, err
}

// meters reads the rates of an array, the highest first. The cells of a direct meter
// belong to the entries of a table.
func (r *stateReader) meters(m *bmv2.MeterArray) error {
	for i := range m.Size {
		set, err := r.number(0)
		if err != nil {
			return err
		}
		if set == 0 {
			continue
		}
		rates := make([]dataplane.MeterRate, m.RateCount)
		for k := range slices.Backward(rates) {
			text, err := r.line()
			if err != nil {
				return err
			}
			perMicrosecond, burst, _ := strings.Cut(text, " ")
			rate, err1 := strconv.ParseFloat(perMicrosecond, 64)
			size, err2 := strconv.ParseUint(burst, 10, 32)
			if err := errors.Join(err1, err2); err != nil {
				return fmt.Errorf("%q: want a rate and a burst", text)
			}
			rates[k] = dataplane.MeterRate{PerMicrosecond: rate, Burst: size}
		}
		r.later(applyMeters, "meter "+m.Name, func() error { return r.sw.Meters().Set(m.Name, i, rates) })
	}
	return nil
}
