package p4app

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
)

// A script executes commands of simple_switch_CLI. Handles are numbers of
// objects created by previous commands, from 0, as in a switch that was empty
// at the beginning.
type script struct {
	*Entries
	*names
	line int

	entries map[string][]*p4v1.TableEntry         // entries of each table, by handle
	members map[string]int                        // number of members by profile
	groups  map[string][]*p4v1.ActionProfileGroup // groups of each profile, by handle
	nodes   []multicastNode                       // multicast nodes by handle
	trees   map[uint32]*p4v1.MulticastGroupEntry  // multicast trees by group
}

// printing lists the prefixes of commands without side effects.
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
		name, args := words[0], words[1:]
		c, ok := commandOf(name)
		switch {
		case !ok:
			return e.errorf(s.line, "unknown command %s: want a command of simple_switch_CLI that writes entries or settings", name)
		case len(args) < c.least:
			return e.errorf(s.line, "%s wants %s", name, c.form)
		}
		if err := c.do(s, args); err != nil {
			return e.errorf(s.line, "%v", err)
		}
	}
	return nil
}

// A command is a supported command with its minimum number of arguments.
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
		return command{}, false // a switch is empty at the beginning
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

// numberArg parses a small number such as a port or an index.
func numberArg(what, text string, most int64) (int, error) {
	v, err := parseNumber(text)
	if err != nil || !v.IsInt64() || v.Int64() > most {
		return 0, fmt.Errorf("%s %s: want a number from 0 to %d", what, text, most)
	}
	return int(v.Int64()), nil
}

// key parses the words of a match.
func key(t *configv1.Table, words []string) (list []*p4v1.FieldMatch, err error) {
	fields := t.GetMatchFields()
	if len(words) != len(fields) {
		return nil, fmt.Errorf("the key has %d fields (%s), but %d values are given", len(fields), strings.TrimPrefix(nearestField(t, ""), "; it has "), len(words))
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
	switch word { // valid bits and similar fields
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

// args parses the arguments of an action.
func args(a *configv1.Action, words []string) (list []*big.Int, err error) {
	if len(words) != len(a.GetParams()) {
		return nil, fmt.Errorf("action %s has %d parameters, but %d values are given", a.GetPreamble().GetName(), len(a.GetParams()), len(words))
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

// split splits the words at the arrow, and removes the priority at the end if
// entries of the table have one.
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
		return nil, nil, 0, fmt.Errorf("table %s: the priority at the end is missing: entries with ternary or range keys need one", t.GetPreamble().GetName())
	}
	n, err := numberArg("priority", after[len(after)-1], math.MaxInt32-1)
	// The smallest priority wins in BMv2, the largest in P4Runtime.
	return before, after[:len(after)-1], int32(math.MaxInt32 - n), err
}
