package p4app

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/dataplane"
	"github.com/p4lb/p4lb/dataplane/hash"
)

// A script reads commands of simple_switch_CLI. Handles are those that the
// commands before have been given, beginning with 0 in an empty switch.
type script struct {
	*Entries
	*names
	line int

	entries map[string][]*p4v1.TableEntry         // of tables, by handle
	members map[string]int                        // of profiles, how many
	groups  map[string][]*p4v1.ActionProfileGroup // of profiles, by handle
	nodes   []multicastNode                       // by handle
	trees   map[uint32]*p4v1.MulticastGroupEntry  // by group
}

type multicastNode struct {
	instance uint32
	ports    []uint32
}

// printing are the commands that change nothing.
var printing = []string{"show_", "help", "switch_info", "get_", "EOF", "greet", "table_info", "table_num_entries", "table_dump", "table_show_actions",
	"act_prof_dump", "mc_dump", "counter_read", "register_read", "meter_get_rates", "mirroring_get", "pvs_get", "write_config_to_file", "serialize_state"}

func (e *Entries) commands(n *names, text string) error {
	s := &script{
		Entries: e, names: n, entries: map[string][]*p4v1.TableEntry{}, members: map[string]int{},
		groups: map[string][]*p4v1.ActionProfileGroup{}, trees: map[uint32]*p4v1.MulticastGroupEntry{},
	}
	for line := range strings.Lines(text) {
		s.line++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") || strings.HasPrefix(words[0], "//") ||
			slices.ContainsFunc(printing, func(p string) bool { return strings.HasPrefix(words[0], p) }) {
			continue
		}
		if err := s.command(words[0], words[1:]); err != nil {
			return e.errorf(s.line, "%v", err)
		}
	}
	return nil
}

// A command takes so many words at least.
type command struct {
	least int
	form  string
	do    func(s *script, args []string) error
}

func commandOf(name string) (command, bool) {
	switch name {
	case "table_add":
		return command{2, "TABLE ACTION KEY... => PARAMETER... [PRIORITY]", (*script).tableAdd}, true
	case "table_set_default":
		return command{2, "TABLE ACTION PARAMETER...", (*script).tableDefault}, true
	case "table_modify":
		return command{3, "TABLE ACTION HANDLE PARAMETER...", (*script).tableModify}, true
	case "table_delete":
		return command{2, "TABLE HANDLE", (*script).tableDelete}, true
	case "table_set_timeout":
		return command{3, "TABLE HANDLE MILLISECONDS", (*script).tableTimeout}, true
	case "table_clear", "table_reset_default", "reset_state", "act_prof_delete_group", "act_prof_delete_member", "mc_mgrp_destroy", "mc_node_destroy":
		return command{}, false // a switch begins empty
	case "act_prof_create_member":
		return command{2, "PROFILE ACTION PARAMETER...", (*script).createMember}, true
	case "act_prof_create_group":
		return command{1, "PROFILE", (*script).createGroup}, true
	case "act_prof_add_member_to_group":
		return command{3, "PROFILE MEMBER GROUP", (*script).joinGroup}, true
	case "table_indirect_add":
		return command{3, "TABLE KEY... => MEMBER [PRIORITY]", (*script).indirectAdd}, true
	case "table_indirect_add_with_group":
		return command{3, "TABLE KEY... => GROUP [PRIORITY]", (*script).indirectAddGroup}, true
	case "mc_mgrp_create":
		return command{1, "GROUP", (*script).createTree}, true
	case "mc_node_create":
		return command{1, "INSTANCE PORT...", (*script).createNode}, true
	case "mc_node_associate":
		return command{2, "GROUP NODE", (*script).associate}, true
	case "mirroring_add":
		return command{2, "SESSION PORT", (*script).mirror}, true
	case "mirroring_add_mc":
		return command{2, "SESSION GROUP", (*script).mirrorGroup}, true
	case "register_write":
		return command{3, "REGISTER INDEX VALUE", (*script).registerWrite}, true
	case "register_reset":
		return command{1, "REGISTER", (*script).registerReset}, true
	case "counter_write":
		return command{4, "COUNTER INDEX PACKETS BYTES", (*script).counterWrite}, true
	case "counter_reset":
		return command{1, "COUNTER", func(*script, []string) error { return nil }}, true
	case "meter_array_set_rates":
		return command{2, "METER RATE:BURST...", (*script).meterAll}, true
	case "meter_set_rates":
		return command{3, "METER INDEX RATE:BURST...", (*script).meterOne}, true
	case "set_queue_rate":
		return command{1, "PACKETS_PER_SECOND [PORT [PRIORITY]]", (*script).queueRate}, true
	case "set_queue_depth":
		return command{1, "PACKETS [PORT [PRIORITY]]", (*script).queueDepth}, true
	case "set_crc16_parameters":
		return command{6, crcForm, func(s *script, args []string) error { return s.crc(args, 16) }}, true
	case "set_crc32_parameters":
		return command{6, crcForm, func(s *script, args []string) error { return s.crc(args, 32) }}, true
	case "pvs_add":
		return command{2, "VALUE_SET VALUE", (*script).valueAdd}, true
	}
	return command{}, false
}

const crcForm = "CALCULATION POLYNOMIAL INITIAL XOR REFLECT_DATA REFLECT_REMAINDER"

func (s *script) command(name string, args []string) error {
	c, ok := commandOf(name)
	switch {
	case !ok:
		return fmt.Errorf("%s is no command of simple_switch_CLI that fills a switch", name)
	case len(args) < c.least:
		return fmt.Errorf("%s wants %s", name, c.form)
	}
	return c.do(s, args)
}

// numberArg reads a small number of the switch's own.
func numberArg(what, text string, most int64) (int, error) {
	v, err := parseNumber(text)
	if err != nil || !v.IsInt64() || v.Int64() > most {
		return 0, fmt.Errorf("%s %s: want a number from 0 to %d", what, text, most)
	}
	return int(v.Int64()), nil
}

// key reads the words of a match.
func key(t *configv1.Table, words []string) (list []*p4v1.FieldMatch, err error) {
	fields := t.GetMatchFields()
	if len(words) != len(fields) {
		return nil, fmt.Errorf("the key has %d fields (%s), and there are %d values", len(fields), strings.TrimPrefix(nearestField(t, ""), "; it has "), len(words))
	}
	for i, f := range fields {
		m, err := keyField(f, words[i])
		if list, err = addMatch(list, f, m, err); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func keyField(f *configv1.MatchField, word string) (*p4v1.FieldMatch, error) {
	width := int(f.GetBitwidth())
	separator, form := "", ""
	switch f.GetMatchType() {
	case configv1.MatchField_LPM:
		separator, form = "/", "a prefix such as 10.0.0.0/8"
	case configv1.MatchField_TERNARY, configv1.MatchField_OPTIONAL:
		separator, form = "&&&", "value&&&mask"
	case configv1.MatchField_RANGE:
		separator, form = "->", "first->last"
	}
	a, b, both := word, "", false
	if separator != "" {
		a, b, both = strings.Cut(word, separator)
	}
	switch word { // valid bits, and what is written like one
	case "true", "True", "valid":
		a = "1"
	case "false", "False", "invalid":
		a = "0"
	}
	first, err := number(a, width)
	if err != nil {
		return nil, err
	}
	if !both {
		if separator != "" && f.GetMatchType() != configv1.MatchField_OPTIONAL {
			return nil, fmt.Errorf("%s: want %s", word, form)
		}
		return fieldMatch(f, first, secondOf(f, first))
	}
	if f.GetMatchType() == configv1.MatchField_LPM {
		width = 0
	}
	second, err := number(b, width)
	if err != nil {
		return nil, err
	}
	return fieldMatch(f, first, second)
}

// args reads the arguments of an action.
func args(a *configv1.Action, words []string) (list []*big.Int, err error) {
	if len(words) != len(a.GetParams()) {
		return nil, fmt.Errorf("action %s has %d parameters, and there are %d values", a.GetPreamble().GetName(), len(a.GetParams()), len(words))
	}
	for i, p := range a.GetParams() {
		v, err := number(words[i], int(p.GetBitwidth()))
		if err != nil {
			return nil, fmt.Errorf("action %s: %s: %w", a.GetPreamble().GetName(), p.GetName(), err)
		}
		list = append(list, v)
	}
	return list, nil
}

// split parts the words at the arrow, which a table without key may lack, and
// takes the priority off the end where entries have one.
func split(t *configv1.Table, words []string) (before, after []string, priority int32, err error) {
	at := slices.Index(words, "=>")
	if at < 0 {
		return nil, nil, 0, fmt.Errorf("table %s: the arrow => is missing between key and parameters", t.GetPreamble().GetName())
	}
	before, after = words[:at], words[at+1:]
	if !ranked(t) {
		return before, after, 0, nil
	}
	if len(after) == 0 {
		return nil, nil, 0, fmt.Errorf("table %s: the priority is missing at the end: the key is ternary, or a range", t.GetPreamble().GetName())
	}
	n, err := numberArg("priority", after[len(after)-1], math.MaxInt32-1)
	// The smallest wins there, the largest in P4Runtime.
	return before, after[:len(after)-1], int32(math.MaxInt32 - n), err
}

func tableEntity(m *p4v1.TableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: m}}
}

// entry begins an entry of the table that the first word names.
func (s *script) entry(name string, words []string) (t *configv1.Table, m *p4v1.TableEntry, rest []string, err error) {
	if t, err = s.table(name); err != nil {
		return nil, nil, nil, err
	}
	before, rest, priority, err := split(t, words)
	if err != nil {
		return nil, nil, nil, err
	}
	match, err := key(t, before)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err)
	}
	return t, &p4v1.TableEntry{TableId: t.GetPreamble().GetId(), Match: match, Priority: priority}, rest, nil
}

// insert adds an entry, which has the next handle of its table.
func (s *script) insert(t *configv1.Table, m *p4v1.TableEntry) {
	name := t.GetPreamble().GetName()
	s.entries[name] = append(s.entries[name], m)
	s.put(s.line, p4v1.Update_INSERT, tableEntity(m))
}

func (s *script) tableAdd(words []string) error {
	t, err := s.table(words[0])
	if err != nil {
		return err
	}
	a, err := s.action("table "+t.GetPreamble().GetName(), t.GetActionRefs(), words[1], false)
	if err != nil {
		return err
	}
	t, m, rest, err := s.entry(words[0], words[2:])
	if err != nil {
		return err
	}
	list, err := args(a, rest)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err)
	}
	m.Action = actionOf(call(a, list))
	s.insert(t, m)
	return nil
}

func (s *script) tableDefault(words []string) error {
	t, err := s.table(words[0])
	if err != nil {
		return err
	}
	a, err := s.action("table "+t.GetPreamble().GetName(), t.GetActionRefs(), words[1], true)
	if err != nil {
		return err
	}
	rest := words[2:]
	if len(rest) > 0 && rest[0] == "=>" {
		rest = rest[1:]
	}
	list, err := args(a, rest)
	if err != nil {
		return fmt.Errorf("table %s: %w", t.GetPreamble().GetName(), err)
	}
	s.put(s.line, p4v1.Update_MODIFY, tableEntity(&p4v1.TableEntry{
		TableId: t.GetPreamble().GetId(), IsDefaultAction: true, Action: actionOf(call(a, list)),
	}))
	return nil
}

// added is the entry with a handle.
func (s *script) added(table, handle string) (*configv1.Table, *p4v1.TableEntry, error) {
	t, err := s.table(table)
	if err != nil {
		return nil, nil, err
	}
	name := t.GetPreamble().GetName()
	list := s.entries[name]
	h, err := numberArg("handle", handle, math.MaxInt32)
	switch {
	case err != nil:
		return nil, nil, err
	case h >= len(list) || list[h] == nil:
		return nil, nil, fmt.Errorf("table %s: no command above has made an entry with the handle %d", name, h)
	}
	return t, list[h], nil
}

func (s *script) tableModify(words []string) error {
	t, m, err := s.added(words[0], words[2])
	if err != nil {
		return err
	}
	a, err := s.action("table "+t.GetPreamble().GetName(), t.GetActionRefs(), words[1], false)
	if err != nil {
		return err
	}
	rest := words[3:]
	if len(rest) > 0 && rest[0] == "=>" {
		rest = rest[1:]
	}
	list, err := args(a, rest)
	if err != nil {
		return err
	}
	s.put(s.line, p4v1.Update_MODIFY, tableEntity(&p4v1.TableEntry{TableId: m.TableId, Match: m.Match, Priority: m.Priority, Action: actionOf(call(a, list))}))
	return nil
}

// tableDelete leaves a gap: the handle that simple_switch gives next has another
// version.
func (s *script) tableDelete(words []string) error {
	t, m, err := s.added(words[0], words[1])
	if err != nil {
		return err
	}
	s.put(s.line, p4v1.Update_DELETE, tableEntity(&p4v1.TableEntry{TableId: m.TableId, Match: m.Match, Priority: m.Priority}))
	list := s.entries[t.GetPreamble().GetName()]
	list[slices.Index(list, m)] = nil
	return nil
}

func (s *script) tableTimeout(words []string) error {
	t, m, err := s.added(words[0], words[1])
	if err != nil {
		return err
	}
	n, err := numberArg("timeout", words[2], math.MaxInt32)
	if err != nil {
		return err
	}
	if t.GetIdleTimeoutBehavior() == configv1.Table_NO_TIMEOUT {
		return fmt.Errorf("table %s: the program does not let its entries time out", t.GetPreamble().GetName())
	}
	m.IdleTimeoutNs = int64(n) * 1e6
	return nil
}

func (s *script) profile(name string) (*configv1.ActionProfile, error) {
	return find(s.info.GetActionProfiles(), "action profile", name)
}

func (s *script) createMember(words []string) error {
	p, err := s.profile(words[0])
	if err != nil {
		return err
	}
	name := p.GetPreamble().GetName()
	var refs []*configv1.ActionRef
	for _, t := range s.info.GetTables() {
		if slices.Contains(p.GetTableIds(), t.GetPreamble().GetId()) {
			refs = append(refs, t.GetActionRefs()...)
		}
	}
	a, err := s.action("action profile "+name, refs, words[1], false)
	if err != nil {
		return err
	}
	list, err := args(a, words[2:])
	if err != nil {
		return err
	}
	s.members[name]++ // P4Runtime's ids begin with 1
	s.put(s.line, p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
		ActionProfileId: p.GetPreamble().GetId(), MemberId: uint32(s.members[name]), Action: call(a, list),
	}}})
	return nil
}

func (s *script) createGroup(words []string) error {
	p, err := s.profile(words[0])
	if err != nil {
		return err
	}
	name := p.GetPreamble().GetName()
	g := &p4v1.ActionProfileGroup{ActionProfileId: p.GetPreamble().GetId(), GroupId: uint32(len(s.groups[name]) + 1), MaxSize: p.GetMaxGroupSize()}
	s.groups[name] = append(s.groups[name], g)
	return nil
}

// joinGroup writes the group with its members so far: the first time it is made.
func (s *script) joinGroup(words []string) error {
	p, err := s.profile(words[0])
	if err != nil {
		return err
	}
	name := p.GetPreamble().GetName()
	m, err := numberArg("member", words[1], int64(s.members[name])-1)
	if err != nil {
		return fmt.Errorf("action profile %s: no command above has made the member %s", name, words[1])
	}
	h, err := numberArg("group", words[2], int64(len(s.groups[name]))-1)
	if err != nil {
		return fmt.Errorf("action profile %s: no command above has made the group %s", name, words[2])
	}
	g := s.groups[name][h]
	typ := p4v1.Update_MODIFY
	if len(g.Members) == 0 {
		typ = p4v1.Update_INSERT
	}
	next := &p4v1.ActionProfileGroup{
		ActionProfileId: g.ActionProfileId, GroupId: g.GroupId, MaxSize: g.MaxSize,
		Members: append(slices.Clone(g.Members), &p4v1.ActionProfileGroup_Member{MemberId: uint32(m + 1), Weight: 1}),
	}
	s.groups[name][h] = next
	s.put(s.line, typ, &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: next}})
	return nil
}

// indirect adds an entry that refers to a member or a group.
func (s *script) indirect(words []string, to func(id uint32) *p4v1.TableAction) error {
	t, m, rest, err := s.entry(words[0], words[1:])
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return fmt.Errorf("table %s: want one handle behind the arrow", t.GetPreamble().GetName())
	}
	h, err := numberArg("handle", rest[0], math.MaxInt32-1)
	if err != nil {
		return err
	}
	m.Action = to(uint32(h + 1))
	s.insert(t, m)
	return nil
}

func (s *script) indirectAdd(words []string) error {
	return s.indirect(words, func(id uint32) *p4v1.TableAction {
		return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileMemberId{ActionProfileMemberId: id}}
	})
}

func (s *script) indirectAddGroup(words []string) error {
	return s.indirect(words, func(id uint32) *p4v1.TableAction {
		return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: id}}
	})
}

func (s *script) createTree(words []string) error {
	id, err := numberArg("multicast group", words[0], math.MaxUint16)
	if err != nil {
		return err
	}
	m := &p4v1.MulticastGroupEntry{MulticastGroupId: uint32(id)}
	s.trees[uint32(id)] = m
	s.putMulticast(s.line, m)
	return nil
}

func (s *script) createNode(words []string) error {
	instance, err := numberArg("instance", words[0], math.MaxUint16)
	if err != nil {
		return err
	}
	n := multicastNode{instance: uint32(instance)}
	for _, word := range words[1:] {
		if word == "|" {
			return errors.New("nodes with link aggregation groups are for simple_switch_CLI itself")
		}
		port, err := numberArg("port", word, 511)
		if err != nil {
			return err
		}
		n.ports = append(n.ports, uint32(port))
	}
	s.nodes = append(s.nodes, n)
	return nil
}

func (s *script) associate(words []string) error {
	id, err := numberArg("multicast group", words[0], math.MaxUint16)
	if err != nil || s.trees[uint32(id)] == nil {
		return fmt.Errorf("no command above has made the multicast group %s", words[0])
	}
	h, err := numberArg("node", words[1], int64(len(s.nodes))-1)
	if err != nil {
		return fmt.Errorf("no command above has made the node %s", words[1])
	}
	m := s.trees[uint32(id)]
	for _, port := range s.nodes[h].ports {
		m.Replicas = append(m.Replicas, replica(port, s.nodes[h].instance))
	}
	return nil
}

func (s *script) mirror(words []string) error {
	id, err := numberArg("mirroring session", words[0], math.MaxInt16)
	if err != nil {
		return err
	}
	port, err := numberArg("port", words[1], 511)
	s.set(s.line, func(sw Settings) error { return sw.SetSession(id, port, -1) })
	return err
}

func (s *script) mirrorGroup(words []string) error {
	id, err := numberArg("mirroring session", words[0], math.MaxInt16)
	if err != nil {
		return err
	}
	group, err := numberArg("multicast group", words[1], math.MaxUint16)
	s.set(s.line, func(sw Settings) error { return sw.SetSession(id, -1, group) })
	return err
}

func (s *script) register(name string) (*configv1.Register, error) {
	return find(s.info.GetRegisters(), "register", name)
}

func (s *script) registerWrite(words []string) error {
	r, err := s.register(words[0])
	if err != nil {
		return err
	}
	name := r.GetPreamble().GetName()
	index, err := numberArg("register "+name+": index", words[1], int64(r.GetSize())-1)
	if err != nil {
		return err
	}
	v, err := number(words[2], 64)
	if err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	s.set(s.line, func(sw Settings) error { return sw.WriteRegister(name, index, index+1, v.Uint64()) })
	return nil
}

func (s *script) registerReset(words []string) error {
	r, err := s.register(words[0])
	if err != nil {
		return err
	}
	s.set(s.line, func(sw Settings) error { return sw.WriteRegister(r.GetPreamble().GetName(), 0, int(r.GetSize()), 0) })
	return nil
}

func (s *script) counterWrite(words []string) error {
	c, err := find(s.info.GetCounters(), "counter", words[0])
	if err != nil {
		return err
	}
	name := c.GetPreamble().GetName()
	index, err := numberArg("counter "+name+": index", words[1], c.GetSize()-1)
	if err != nil {
		return err
	}
	packets, err1 := number(words[2], 63)
	bytes, err2 := number(words[3], 63)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("counter %s: %w", name, err)
	}
	s.set(s.line, func(sw Settings) error {
		return sw.WriteCounter(name, index, index+1, packets.Uint64(), bytes.Uint64())
	})
	return nil
}

func (s *script) meter(name string) (*configv1.Meter, error) {
	return find(s.info.GetMeters(), "meter", name)
}

// rates reads rates in units per microsecond, with their bursts.
func rates(words []string) (list []dataplane.MeterRate, err error) {
	for _, w := range words {
		rate, burst, ok := strings.Cut(w, ":")
		r, err1 := strconv.ParseFloat(rate, 64)
		b, err2 := strconv.ParseUint(burst, 10, 31)
		if !ok || err1 != nil || err2 != nil || !(r >= 0) || math.IsInf(r, 0) {
			return nil, fmt.Errorf("%s: want RATE:BURST, as in 0.5:100", w)
		}
		list = append(list, dataplane.MeterRate{PerMicrosecond: r, Burst: b})
	}
	return list, nil
}

func (s *script) meterAll(words []string) error {
	var m described
	m, err := find(s.info.GetDirectMeters(), "meter", words[0])
	if err != nil {
		m, err = s.meter(words[0])
	}
	if err != nil {
		return err
	}
	list, err := rates(words[1:])
	s.set(s.line, func(sw Settings) error { return sw.SetMeter(m.GetPreamble().GetName(), -1, list) })
	return err
}

func (s *script) meterOne(words []string) error {
	m, err := s.meter(words[0])
	if err != nil {
		return err
	}
	name := m.GetPreamble().GetName()
	index, err := numberArg("meter "+name+": index", words[1], m.GetSize()-1)
	if err != nil {
		return err
	}
	list, err := rates(words[2:])
	s.set(s.line, func(sw Settings) error { return sw.SetMeter(name, index, list) })
	return err
}

// queue reads which queues are meant; -1 stands for all.
func queue(words []string) (port, priority int, err error) {
	port, priority = -1, -1
	if len(words) > 0 {
		if port, err = numberArg("port", words[0], 511); err != nil {
			return 0, 0, err
		}
	}
	if len(words) > 1 {
		priority, err = numberArg("priority", words[1], 7)
	}
	return port, priority, err
}

func (s *script) queueRate(words []string) error {
	n, err := numberArg("rate", words[0], math.MaxInt64)
	if err != nil {
		return err
	}
	port, priority, err := queue(words[1:])
	s.set(s.line, func(sw Settings) error { return sw.SetQueueRate(port, priority, uint64(n)) })
	return err
}

func (s *script) queueDepth(words []string) error {
	n, err := numberArg("depth", words[0], math.MaxInt32)
	if err != nil {
		return err
	}
	port, priority, err := queue(words[1:])
	s.set(s.line, func(sw Settings) error { return sw.SetQueueDepth(port, priority, n) })
	return err
}

func (s *script) crc(words []string, width int) error {
	var n [3]uint64
	for i := range n {
		v, err := number(words[1+i], width)
		if err != nil {
			return fmt.Errorf("calculation %s: %w", words[0], err)
		}
		n[i] = v.Uint64()
	}
	var reflect [2]bool
	for i := range reflect {
		v, err := strconv.ParseBool(strings.ToLower(words[4+i]))
		if err != nil {
			return fmt.Errorf("calculation %s: %s: want true or false", words[0], words[4+i])
		}
		reflect[i] = v
	}
	s.set(s.line, func(sw Settings) error {
		return sw.SetCRC(words[0], hash.CRC{Width: width, Poly: n[0], Init: n[1], XorOut: n[2], ReflectIn: reflect[0], ReflectOut: reflect[1]})
	})
	return nil
}

func (s *script) valueAdd(words []string) error {
	v, err := find(s.info.GetValueSets(), "value set", words[0])
	if err != nil {
		return err
	}
	value, err := parseNumber(words[1])
	if err != nil {
		return err
	}
	s.set(s.line, func(sw Settings) error { return sw.AddValue(v.GetPreamble().GetName(), bytesOf(value)) })
	return nil
}
