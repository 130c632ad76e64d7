package thrift

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/p4lb/p4lb/internal/bmv2"
	"github.com/p4lb/p4lb/internal/dataplane"
	"github.com/p4lb/p4lb/internal/text/lists"
)

// The codes of exceptions about tables and action profiles.
const (
	tableFull             exception = 1
	invalidHandle         exception = 2
	expiredHandle         exception = 3
	countersDisabled      exception = 4
	metersDisabled        exception = 5
	ageingDisabled        exception = 6
	invalidTableName      exception = 7
	invalidActionName     exception = 8
	wrongTableType        exception = 9
	invalidMember         exception = 10
	memberStillUsed       exception = 11
	memberInGroup         exception = 12
	memberNotInGroup      exception = 13
	invalidGroup          exception = 14
	groupStillUsed        exception = 15
	emptyGroup            exception = 16
	duplicateEntry        exception = 17
	badMatchKey           exception = 18
	defaultActionConst    exception = 20
	defaultEntryConst     exception = 21
	invalidProfileName    exception = 23
	noProfileSelection    exception = 24
	immutableTableEntries exception = 25
	badActionData         exception = 26
	noTableKey            exception = 27
	tableError            exception = 100
)

// reasons maps errors of the data plane to codes.
var reasons = []struct {
	err  error
	code exception
}{
	{dataplane.ErrTableFull, tableFull},
	{dataplane.ErrBadHandle, invalidHandle},
	{dataplane.ErrExpired, expiredHandle},
	{dataplane.ErrBadAction, invalidActionName},
	{dataplane.ErrMemberInGroup, memberInGroup},
	{dataplane.ErrNotInGroup, memberNotInGroup},
	{dataplane.ErrEmptyGroup, emptyGroup},
	{dataplane.ErrDuplicate, duplicateEntry},
	{dataplane.ErrBadMatch, badMatchKey},
	{dataplane.ErrConstAction, defaultActionConst},
	{dataplane.ErrConstDefault, defaultEntryConst},
	{dataplane.ErrImmutable, immutableTableEntries},
	{dataplane.ErrBadParams, badActionData},
	{dataplane.ErrBadTarget, wrongTableType},
}

// code returns the exception for an error of the data plane.
func code(err error) exception {
	if err == nil {
		return 0
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.code
		}
	}
	return tableError
}

// supported is like code, but returns disabled if the table or the action
// profile does not support the operation.
func supported(err error, disabled exception) exception {
	if errors.Is(err, dataplane.ErrNotSupported) {
		return disabled
	}
	return code(err)
}

// A tableCall is a call about an existing table.
type tableCall func(r *request) (any, exception)

// A request is a call about a table or an action profile.
type request struct {
	target  Target
	sw      *dataplane.Switch
	name    string
	table   *bmv2.Table         // nil unless the name is a table's
	profile *bmv2.ActionProfile // nil unless the name is an action profile's
	in      record
}

// about turns f into a call that checks that the table exists and has one of
// the types; no types stand for all.
func about(f tableCall, types ...string) call {
	return func(t Target, in record) (any, exception) {
		r := newRequest(t, in)
		switch {
		case r.table == nil:
			return nil, invalidTableName
		case len(types) > 0 && !slices.Contains(types, r.table.Type):
			return nil, wrongTableType
		}
		return f(r)
	}
}

// listed turns f into a call that returns empty for an unknown name, like
// simple_switch.
func listed(has func(*request) bool, f tableCall, empty any) call {
	return func(t Target, in record) (any, exception) {
		if r := newRequest(t, in); has(r) {
			return f(r)
		}
		return empty, 0
	}
}

func (r *request) hasTable() bool { return r.table != nil }

func (r *request) hasProfile() bool { return r.profile != nil }

func newRequest(t Target, in record) *request {
	r := &request{target: t, sw: t.Control(), name: in.textAt(2), in: in}
	if r.sw == nil {
		return r
	}
	c := r.sw.Config()
	for _, p := range c.Pipelines {
		for _, table := range p.Tables {
			if table.Name == r.name {
				r.table = table
			}
		}
		for _, profile := range p.ActionProfiles {
			if profile.Name == r.name {
				r.profile = profile
			}
		}
	}
	return r
}

// The types of tables whose entries have an action, a member, or a member or a
// group.
const (
	direct    = bmv2.TableSimple
	indirect  = bmv2.TableIndirect
	selecting = bmv2.TableIndirectSelect
)

func tableCalls() map[string]call {
	return map[string]call{
		"bm_mt_get_num_entries":     about(countEntries),
		"bm_mt_clear_entries":       about(clearEntries),
		"bm_mt_add_entry":           about(addEntry(actionAt(4)), direct),
		"bm_mt_set_default_action":  about(setDefault(actionAt(3)), direct),
		"bm_mt_reset_default_entry": about(resetDefault, direct),
		"bm_mt_delete_entry":        about(deleteEntry, direct),
		"bm_mt_modify_entry":        about(modifyEntry(actionAt(4)), direct),
		"bm_mt_set_entry_ttl":       about(setTimeout),

		"bm_mt_indirect_add_entry":            about(addEntry(handleAt(4, dataplane.TargetMember)), indirect, selecting),
		"bm_mt_indirect_modify_entry":         about(modifyEntry(handleAt(4, dataplane.TargetMember)), indirect, selecting),
		"bm_mt_indirect_delete_entry":         about(deleteEntry, indirect, selecting),
		"bm_mt_indirect_set_entry_ttl":        about(setTimeout),
		"bm_mt_indirect_set_default_member":   about(setDefault(handleAt(3, dataplane.TargetMember)), indirect, selecting),
		"bm_mt_indirect_reset_default_entry":  about(resetDefault, indirect, selecting),
		"bm_mt_indirect_ws_add_entry":         about(addEntry(handleAt(4, dataplane.TargetGroup)), selecting),
		"bm_mt_indirect_ws_modify_entry":      about(modifyEntry(handleAt(4, dataplane.TargetGroup)), selecting),
		"bm_mt_indirect_ws_set_default_group": about(setDefault(handleAt(3, dataplane.TargetGroup)), selecting),

		"bm_mt_read_counter":    about(readEntryCounter),
		"bm_mt_write_counter":   about(writeEntryCounter),
		"bm_mt_reset_counters":  about(resetEntryCounters),
		"bm_mt_set_meter_rates": about(setEntryRates),
		"bm_mt_get_meter_rates": about(getEntryRates),

		"bm_mt_get_entries":        listed((*request).hasTable, getEntries, []fields{}),
		"bm_mt_get_entry":          listed((*request).hasTable, getEntry, noEntry),
		"bm_mt_get_default_entry":  listed((*request).hasTable, getDefault, noAction),
		"bm_mt_get_entry_from_key": listed((*request).hasTable, getEntryOfKey, noEntry),
	}
}

// handle returns the handle of an entry.
func (r *request) handle() dataplane.Handle { return dataplane.Handle(uint32(r.in.int32At(3))) }

// A targetOf reads the target of an entry.
type targetOf func(r *request) (dataplane.Target, exception)

// actionAt reads the name of an action and its arguments.
func actionAt(id int16) targetOf {
	return func(r *request) (dataplane.Target, exception) {
		name := r.in.textAt(id)
		if !slices.Contains(r.table.Actions, name) {
			return dataplane.Target{}, invalidActionName
		}
		return dataplane.Target{Action: dataplane.ActionCall{Name: name, Params: listAt[[]byte](r.in, id+1)}}, 0
	}
}

// handleAt reads the handle of a member or a group.
func handleAt(id int16, kind dataplane.TargetKind) targetOf {
	return func(r *request) (dataplane.Target, exception) {
		return dataplane.Target{Kind: kind, Index: dataplane.Handle(uint32(r.in.int32At(id)))}, 0
	}
}

// aboutTarget returns the code of an error about a new entry. An invalid handle
// is the target's.
func aboutTarget(err error, to dataplane.Target) exception {
	switch {
	case !errors.Is(err, dataplane.ErrBadHandle):
		return code(err)
	case to.Kind == dataplane.TargetMember:
		return invalidMember
	}
	return invalidGroup
}

// refused returns the code of an error about a target of an entry. An invalid
// handle may be the target's or the entry's.
func (r *request) refused(err error, to dataplane.Target) exception {
	if errors.Is(err, dataplane.ErrBadHandle) && to.Kind != dataplane.TargetAction {
		if _, e := r.sw.Tables().Entry(r.name, r.handle()); e == nil || r.in[3] == nil {
			return aboutTarget(err, to)
		}
	}
	return code(err)
}

// addEntry reads a match, a target and options.
func addEntry(to targetOf) tableCall {
	return func(r *request) (any, exception) {
		target, e := to(r)
		if e != 0 {
			return nil, e
		}
		if len(r.table.Key) == 0 {
			return nil, noTableKey
		}
		options := r.in.recordAt(5)
		if target.Kind == dataplane.TargetAction {
			options = r.in.recordAt(6)
		}
		match, ok := r.match(listAt[record](r.in, 3))
		if !ok {
			return nil, badMatchKey
		}
		h, err := r.sw.Tables().Add(r.name, dataplane.Entry{Match: match, Priority: int(options.int32At(1)), Target: target})
		return int32(h), aboutTarget(err, target)
	}
}

// The types of match parameters in the protocol; each uses its own field.
const (
	paramExact   = int32(0)
	paramLPM     = int32(1)
	paramTernary = int32(2)
	paramValid   = int32(3)
	paramRange   = int32(4)
)

// match parses the parameters of a match. Each must have the kind and the
// length of its key field.
func (r *request) match(params []record) (list []dataplane.Match, ok bool) {
	key, _, err := r.sw.Tables().Key(r.name)
	if err != nil || len(params) != len(key) {
		return nil, false
	}
	list = make([]dataplane.Match, len(params))
	for i, p := range params {
		if list[i], ok = matchOf(key[i], p); !ok {
			return nil, false
		}
	}
	return list, true
}

func matchOf(k dataplane.KeyField, p record) (m dataplane.Match, ok bool) {
	typ := p.int32At(1)
	v := p.recordAt(int16(typ) + 2)
	first, second := v.bytesAt(1), v.bytesAt(2)
	whole := func(b []byte) bool { return len(b) == (k.Width+7)/8 }
	switch {
	case k.Kind == dataplane.MatchExact && typ == paramExact:
		return dataplane.Match{Value: first}, whole(first)
	case k.Kind == dataplane.MatchLPM && typ == paramLPM:
		return dataplane.Match{Value: first, PrefixLen: int(v.int32At(2))}, whole(first)
	case k.Kind == dataplane.MatchTernary && typ == paramTernary:
		return dataplane.Match{Value: first, Mask: second}, whole(first) && whole(second)
	case k.Kind == dataplane.MatchOptional && typ == paramTernary:
		if slices.Max(append(second, 0)) == 0 {
			return dataplane.Match{}, whole(first) && whole(second)
		}
		return dataplane.Match{Value: first}, whole(first) && whole(second)
	case k.Kind == dataplane.MatchRange && typ == paramRange:
		return dataplane.Match{Value: first, High: second}, whole(first) && whole(second)
	case k.Kind == dataplane.MatchValid && typ == paramValid:
		if v.boolAt(1) {
			return dataplane.Match{Value: []byte{1}}, true
		}
		return dataplane.Match{Value: []byte{0}}, true
	}
	return m, false
}

// paramOf is the inverse of matchOf.
func paramOf(k dataplane.KeyField, m dataplane.Match) fields {
	param := func(typ int32, v ...field) fields { return fields{{1, typ}, {int16(typ) + 2, fields(v)}} }
	value := padded(m.Value, k.Width)
	switch k.Kind {
	case dataplane.MatchLPM:
		return param(paramLPM, field{1, value}, field{2, int32(m.PrefixLen)})
	case dataplane.MatchTernary:
		return param(paramTernary, field{1, value}, field{2, padded(m.Mask, k.Width)})
	case dataplane.MatchOptional:
		mask := make([]byte, len(value))
		if m.Value != nil {
			for i := range mask {
				mask[i] = 0xff
			}
		}
		return param(paramTernary, field{1, value}, field{2, mask})
	case dataplane.MatchRange:
		return param(paramRange, field{1, value}, field{2, padded(m.High, k.Width)})
	case dataplane.MatchValid:
		return param(paramValid, field{1, slices.Contains(m.Value, 1)})
	}
	return param(paramExact, field{1, value})
}

// padded returns a number in the number of bytes of a field.
func padded(b []byte, width int) []byte {
	out := make([]byte, (width+7)/8)
	if over := len(b) - len(out); over > 0 {
		b = b[over:]
	}
	copy(out[len(out)-len(b):], b)
	return out
}

func modifyEntry(to targetOf) tableCall {
	return func(r *request) (any, exception) {
		target, e := to(r)
		if e != 0 {
			return nil, e
		}
		return nil, r.refused(r.sw.Tables().Modify(r.name, r.handle(), target), target)
	}
}

func deleteEntry(r *request) (any, exception) {
	return nil, code(r.sw.Tables().Delete(r.name, r.handle()))
}

func setDefault(to targetOf) tableCall {
	return func(r *request) (any, exception) {
		target, e := to(r)
		if e != 0 {
			return nil, e
		}
		return nil, aboutTarget(r.sw.Tables().SetDefault(r.name, target), target)
	}
}

func resetDefault(r *request) (any, exception) { return nil, code(r.sw.Tables().ResetDefault(r.name)) }

func setTimeout(r *request) (any, exception) {
	timeout := time.Duration(uint32(r.in.int32At(4))) * time.Millisecond
	return nil, supported(r.sw.Tables().SetIdleTimeout(r.name, r.handle(), timeout, r.target.Elapsed()), ageingDisabled)
}

func countEntries(r *request) (any, exception) {
	list, err := r.sw.Tables().Entries(r.name)
	return int64(len(list)), code(err)
}

func clearEntries(r *request) (any, exception) {
	return nil, code(r.sw.Tables().Clear(r.name, r.in.boolAt(3)))
}

// simple_switch's reply for an entry of an unknown table: all required fields
// with empty values.
var (
	noAction = fields{{1, int32(0)}}
	noEntry  = fields{{1, []fields{}}, {2, fields{}}, {3, int32(0)}, {4, noAction}}
)

// actionOf encodes the target of an entry.
func actionOf(t dataplane.Target) fields {
	switch t.Kind {
	case dataplane.TargetMember:
		return fields{{1, int32(2)}, {4, int32(t.Index)}}
	case dataplane.TargetGroup:
		return fields{{1, int32(3)}, {5, int32(t.Index)}}
	}
	return fields{{1, int32(1)}, {2, t.Action.Name}, {3, dataOf(t.Action)}}
}

// dataOf returns the arguments of an action without leading zeros.
func dataOf(c dataplane.ActionCall) [][]byte {
	list := [][]byte{}
	for _, p := range c.Params {
		for len(p) > 1 && p[0] == 0 {
			p = p[1:]
		}
		list = append(list, p)
	}
	return list
}

// entry encodes an entry.
func (r *request) entry(key []dataplane.KeyField, ordered bool, e dataplane.Entry) fields {
	match := []fields{}
	for i, m := range e.Match {
		match = append(match, paramOf(key[i], m))
	}
	priority := int32(-1)
	if ordered {
		priority = int32(e.Priority)
	}
	out := fields{{1, match}, {2, fields{{1, priority}}}, {3, int32(e.Handle)}, {4, actionOf(e.Target)}}
	if e.IdleTimeout > 0 {
		hit, _ := r.sw.Tables().LastHit(r.name, e.Handle)
		since := r.target.Elapsed() - hit
		out = append(out, field{5, fields{{1, millis(e.IdleTimeout)}, {2, millis(since)}}})
	}
	return out
}

func millis(d time.Duration) int32 { return int32(min(d.Milliseconds(), math.MaxInt32)) }

func getEntries(r *request) (any, exception) {
	key, ordered, err := r.sw.Tables().Key(r.name)
	if err != nil {
		return nil, code(err)
	}
	entries, err := r.sw.Tables().Entries(r.name)
	list := lists.Map(entries, func(e dataplane.Entry) fields { return r.entry(key, ordered, e) })
	return list, code(err)
}

func getEntry(r *request) (any, exception) { return r.readEntry(r.handle()) }

func (r *request) readEntry(h dataplane.Handle) (any, exception) {
	key, ordered, err := r.sw.Tables().Key(r.name)
	if err != nil {
		return nil, code(err)
	}
	e, err := r.sw.Tables().Entry(r.name, h)
	return r.entry(key, ordered, e), code(err)
}

func getDefault(r *request) (any, exception) {
	target, ok, err := r.sw.Tables().Default(r.name)
	if !ok {
		return noAction, code(err)
	}
	return actionOf(target), code(err)
}

// getEntryOfKey returns the default entry if the match is empty.
func getEntryOfKey(r *request) (any, exception) {
	params := listAt[record](r.in, 3)
	if len(params) == 0 {
		action, e := getDefault(r)
		return fields{{1, []fields{}}, {2, fields{}}, {3, int32(0)}, {4, action}}, e
	}
	match, ok := r.match(params)
	if !ok {
		return nil, badMatchKey
	}
	h, err := r.sw.Tables().Find(r.name, match, int(r.in.recordAt(4).int32At(1)))
	if err != nil {
		return nil, badMatchKey
	}
	return r.readEntry(h)
}

func readEntryCounter(r *request) (any, exception) {
	c, err := r.sw.Tables().Counter(r.name, r.handle())
	return fields{{1, saturate(c.Bytes)}, {2, saturate(c.Packets)}}, supported(err, countersDisabled)
}

func writeEntryCounter(r *request) (any, exception) {
	v := r.in.recordAt(4)
	count := dataplane.Count{Packets: uint64(v.int64At(2)), Bytes: uint64(v.int64At(1))}
	return nil, supported(r.sw.Tables().SetCounter(r.name, r.handle(), count), countersDisabled)
}

func resetEntryCounters(r *request) (any, exception) {
	if !r.table.WithCounters {
		return nil, countersDisabled
	}
	list, err := r.sw.Tables().Entries(r.name)
	if err != nil {
		return nil, code(err)
	}
	for _, e := range list {
		// An entry deleted in the meantime has no counter.
		_ = r.sw.Tables().SetCounter(r.name, e.Handle, dataplane.Count{})
	}
	return nil, 0
}

func setEntryRates(r *request) (any, exception) {
	if r.table.DirectMeters == "" {
		return nil, metersDisabled
	}
	if _, err := r.sw.Tables().Entry(r.name, r.handle()); err != nil {
		return nil, invalidHandle
	}
	rates, e := ratesOf(r.in, 4)
	if e != 0 || r.sw.Meters().Set(r.table.DirectMeters, int(r.handle()), rates) != nil {
		return nil, tableError
	}
	return nil, 0
}

func getEntryRates(r *request) (any, exception) {
	if r.table.DirectMeters == "" {
		return nil, metersDisabled
	}
	rates, err := r.sw.Meters().Rates(r.table.DirectMeters, int(r.handle()))
	if err != nil {
		return nil, invalidHandle
	}
	return wireRates(rates), 0
}
