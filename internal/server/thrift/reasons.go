package thrift

import (
	"fmt"
	"strings"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// meanings describe the codes of exceptions, by the beginning of the method's name.
var meanings = []struct {
	prefix string
	texts  map[exception]string
}{
	{"bm_mt_", map[exception]string{
		tableFull: "the table is full", invalidHandle: "there is no such entry", expiredHandle: "the entry has been deleted",
		countersDisabled: "the table has no counters", metersDisabled: "the table has no meters", ageingDisabled: "the table has no timeouts",
		invalidTableName: "there is no such table", invalidActionName: "there is no such action", wrongTableType: "the table has another kind of actions",
		invalidMember: "there is no such member", memberStillUsed: "the member is in use", memberInGroup: "the member is in the group already",
		memberNotInGroup: "the member is not in the group", invalidGroup: "there is no such group", groupStillUsed: "the group is in use",
		emptyGroup: "the group is empty", duplicateEntry: "the entry exists", badMatchKey: "the match fields do not fit the table",
		defaultActionConst: "the default action is constant", defaultEntryConst: "the default entry is constant",
		invalidProfileName: "there is no such action profile", noProfileSelection: "the action profile has no selector",
		immutableTableEntries: "the entries are constant", badActionData: "the parameters do not fit the action", noTableKey: "the table has no key",
	}},
	{"bm_register_", arrayMeanings},
	{"bm_counter_", arrayMeanings},
	{"bm_meter_", map[exception]string{badName: "there is no such meter", badIndex: "the meter has no such cell", badRates: "the number of rates is wrong", badRate: "a rate or burst is invalid"}},
	{"bm_mc_", map[exception]string{multicastFull: "there is no room for another node", invalidMgid: "the group number is invalid", invalidMgrp: "there is no such group", invalidNode: "there is no such node"}},
	{"bm_parse_vset_", map[exception]string{noValueSet: "there is no such value set"}},
	{"bm_learning_", map[exception]string{noList: "there is no such learn list"}},
	{"mirroring_", map[exception]string{noSession: "there is no such session"}},
	{"bm_load_new_config", swapMeanings},
	{"bm_swap_configs", swapMeanings},
}

var (
	arrayMeanings = map[exception]string{badName: "there is no such array", badIndex: "the array has no such cell"}
	swapMeanings  = map[exception]string{swapDisabled: "swaps are not enabled", ongoingSwap: "a loaded program waits for swap_configs already", noOngoingSwap: "no program is loaded"}
)

// reasonOf describes the exception of a call, with the name of the table or array.
func reasonOf(method string, args record, exc exception) error {
	text := fmt.Sprintf("exception with code %d", exc)
	for _, m := range meanings {
		if words := m.texts[exc]; words != "" && strings.HasPrefix(method, m.prefix) {
			text = words
		}
	}
	if name := args.textAt(2); name != "" {
		text = plain.Printable(name, "", 100) + ": " + text
	}
	return fmt.Errorf("%s", text)
}
