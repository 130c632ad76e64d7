package controller

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
)

// A contents is the current or planned state of a switch: objects by key, in a
// canonical form for comparison.
type contents struct {
	objects map[string]object                  // entries, sessions, groups
	members map[uint32]map[uint32]*p4v1.Action // members of profiles without a selector, by profile and id
	foreign []*p4v1.Entity                     // members and groups of another controller: see foreign.go
	whole   bool                               // a rollback needs the contents: foreign is complete
	common  *common                            // shared entries, in addition to objects
	held    []bool                             // for each entry of common, whether the switch has it
	cells   []plan.Cells                       // register cells, one by one
	queues  []plan.Queue
	filters []plan.Filter
}

// An object is an object that P4Runtime can write.
type object struct {
	entity *p4v1.Entity
	value  string // the part that a modification changes
	rank   int    // position in the order of writing: see apply.go
	preset bool   // cannot be inserted or deleted: a default action
	alias  bool   // an entry that refers to one of several members with the same action
}

// The ranks in which objects are written: an object comes after the objects that it refers to.
// Objects are deleted in reverse order.
const (
	rankReplication = iota
	rankMember
	rankGroup
	rankEntry
	rankRoute // entries that lead packets to other entries
	ranks
)

// desired returns the contents of a plan.
func desired(s *plan.Switch, shared *commons) (*contents, error) {
	x, err := s.Pipeline.Index()
	if err != nil {
		return nil, err
	}
	c := &contents{objects: map[string]object{}, common: shared.of(s, x), queues: s.Queues, filters: s.Filters}
	for _, e := range s.Entries {
		if !shares(x, e) {
			c.addEntry(encodeEntry(x, e, pool{}), x)
		}
	}
	for _, t := range x.Tables {
		// If the plan has no default action for a table, the program's is restored.
		if !t.Presets() {
			continue
		}
		e := &p4v1.TableEntry{TableId: t.ID, IsDefaultAction: true}
		if key := entryKey(e); c.objects[key].entity == nil {
			c.objects[key] = object{entity: tableEntity(e), value: noAction, rank: rankEntry, preset: true}
		}
	}
	for _, session := range s.Sessions {
		c.addSession(&p4v1.CloneSessionEntry{
			SessionId: uint32(session.ID), Replicas: replicas([]int{session.Port}), PacketLengthBytes: int32(session.Bytes),
		})
	}
	for _, g := range s.Groups {
		c.addGroup(&p4v1.MulticastGroupEntry{MulticastGroupId: uint32(g.ID), Replicas: replicas(g.Ports)})
	}
	for _, r := range s.Registers {
		for i := r.From; i < r.To; i++ {
			c.cells = append(c.cells, plan.Cells{Register: r.Register, From: i, To: i + 1, Value: r.Value})
		}
	}
	slices.SortFunc(c.cells, func(a, b plan.Cells) int {
		return cmp.Or(strings.Compare(a.Register, b.Register), cmp.Compare(a.From, b.From))
	})
	return c, nil
}

// noAction is the value of a default action that is the program's own.
const noAction = ""

// wants reports whether the plan contains an object.
func (c *contents) wants(key string) bool {
	if _, ok := c.objects[key]; ok || c.common == nil {
		return ok
	}
	_, ok := c.common.at[key]
	return ok
}

func (c *contents) addEntry(e *p4v1.TableEntry, x *p4info.Index) {
	c.objects[entryKey(e)] = entryObject(e, x)
}

func entryObject(e *p4v1.TableEntry, x *p4info.Index) object {
	o := object{entity: tableEntity(e), value: actionValue(e), rank: rankEntry, preset: e.GetIsDefaultAction()}
	if t := x.ByID[e.GetTableId()]; t != nil {
		if t.Routes {
			o.rank = rankRoute
		}
		if o.preset && (e.GetAction().GetAction() == nil || actionValue(e) == callValue(initialAction(t))) { // equal to the program's initial default action
			o.value = noAction
		}
	}
	return o
}

func (c *contents) addSession(e *p4v1.CloneSessionEntry) {
	value := replicaValue(e.GetReplicas())
	if n := e.GetPacketLengthBytes(); n > 0 {
		value += fmt.Sprintf(", cut to %d bytes", n)
	}
	c.objects[fmt.Sprintf("session %d", e.GetSessionId())] = object{
		entity: replicationEntity(&p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: e},
		}),
		value: value, rank: rankReplication,
	}
}

func (c *contents) addGroup(e *p4v1.MulticastGroupEntry) {
	c.objects[fmt.Sprintf("group %d", e.GetMulticastGroupId())] = object{
		entity: replicationEntity(&p4v1.PacketReplicationEngineEntry{
			Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: e},
		}),
		value: replicaValue(e.GetReplicas()), rank: rankReplication,
	}
}

func tableEntity(e *p4v1.TableEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}}
}

func replicationEntity(e *p4v1.PacketReplicationEngineEntry) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: e}}
}

func replicas(ports []int) []*p4v1.Replica {
	list := make([]*p4v1.Replica, len(ports))
	for i, p := range ports {
		//lint:ignore SA1019 the form of before version 1.4, which every server knows
		list[i] = &p4v1.Replica{PortKind: &p4v1.Replica_EgressPort{EgressPort: uint32(p)}, Instance: 1}
	}
	return list
}

// encodeEntry encodes a validated entry of a plan. It takes common parts from the
// pool. The entry of a table with an action selector contains a set of actions. The
// entry of a table with any other profile contains its action, which diff replaces by
// the id of a member.
func encodeEntry(x *p4info.Index, e plan.Entry, parts pool) *p4v1.TableEntry {
	t := x.ByName[e.Table]
	out := &p4v1.TableEntry{TableId: t.ID, IsDefaultAction: e.Match == nil, Priority: int32(e.Priority)}
	out.Match = make([]*p4v1.FieldMatch, 0, len(e.Match))
	for i, m := range e.Match {
		if f := encodeMatch(t.Fields[i], m, parts); f != nil {
			out.Match = append(out.Match, f)
		}
	}
	calls := e.OneOf
	if len(calls) == 0 {
		calls = []plan.Call{{Action: e.Action, Args: e.Args}}
	}
	if e.Match == nil || t.Profile == nil || t.Members() {
		out.Action = directAction(encodeCall(t, calls[0], parts))
		return out
	}
	set := &p4v1.ActionProfileActionSet{}
	for _, c := range calls {
		set.ActionProfileActions = append(set.ActionProfileActions, &p4v1.ActionProfileAction{Action: encodeCall(t, c, parts), Weight: 1})
	}
	out.Action = &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: set}}
	return out
}

func directAction(a *p4v1.Action) *p4v1.TableAction {
	return &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: a}}
}

// initialAction returns the default action of the program as P4Runtime describes it.
func initialAction(t *p4info.Table) *p4v1.Action {
	a := &p4v1.Action{ActionId: t.Initial.GetActionId()}
	for _, arg := range t.Initial.GetArguments() {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: arg.GetParamId(), Value: arg.GetValue()})
	}
	return a
}

// encodeCall encodes an action of a table with its arguments.
func encodeCall(t *p4info.Table, c plan.Call, parts pool) *p4v1.Action {
	a := t.Actions[c.Action]
	out := &p4v1.Action{ActionId: a.ID, Params: make([]*p4v1.Action_Param, len(c.Args))}
	for i, arg := range c.Args {
		if out.Params[i] = parts.param(a.Params[i].ID, arg.Value); arg.Upper != 0 {
			out.Params[i] = &p4v1.Action_Param{ParamId: a.Params[i].ID, Value: wideNumber(arg.Upper, arg.Value)}
		}
	}
	return out
}

// encodeMatch encodes the match of a field. It returns nil for a match of everything,
// which P4Runtime omits.
func encodeMatch(f p4info.Field, m plan.Match, parts pool) *p4v1.FieldMatch {
	switch {
	case m.Any, f.Kind == configv1.MatchField_LPM && m.Bits == 0:
		return nil
	case f.Kind == configv1.MatchField_EXACT && m.Upper != 0:
		return &p4v1.FieldMatch{FieldId: f.ID, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: wideNumber(m.Upper, m.Value)}}}
	case f.Kind == configv1.MatchField_EXACT:
		return parts.exact(f.ID, m.Value)
	}
	out := &p4v1.FieldMatch{FieldId: f.ID}
	switch f.Kind {
	case configv1.MatchField_LPM:
		out.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: wideNumber(m.Upper, m.Value), PrefixLen: int32(m.Bits)}}
	case configv1.MatchField_TERNARY:
		mask := new(big.Int).Xor(ones(f.Width), ones(f.Width-m.Bits)) // mask of a prefix
		if m.Mask != nil {
			mask = new(big.Int).SetUint64(*m.Mask)
		}
		if mask.Sign() == 0 {
			return nil
		}
		value := new(big.Int).And(mask, new(big.Int).SetBytes(wideNumber(m.Upper, m.Value))) // bits outside of the mask are 0
		out.FieldMatchType = &p4v1.FieldMatch_Ternary_{Ternary: &p4v1.FieldMatch_Ternary{Value: bytesOf(value), Mask: bytesOf(mask)}}
	case configv1.MatchField_RANGE:
		high := m.Value
		if m.High != nil {
			high = *m.High
		}
		if m.Value == 0 && f.Width <= 64 && high == ones(f.Width).Uint64() {
			return nil
		}
		out.FieldMatchType = &p4v1.FieldMatch_Range_{Range: &p4v1.FieldMatch_Range{Low: number(m.Value), High: number(high)}}
	case configv1.MatchField_OPTIONAL:
		out.FieldMatchType = &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: wideNumber(m.Upper, m.Value)}}
	}
	return out
}

// wideNumber returns a value of up to 128 bits in the form of number.
func wideNumber(upper, v uint64) []byte {
	if upper == 0 {
		return number(v)
	}
	return binary.BigEndian.AppendUint64(number(upper), v)
}

// ones returns a number with the given number of bits, all 1.
func ones(width int) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), uint(width))
	return n.Sub(n, big.NewInt(1))
}

// bytesOf returns a value of any width in the form of number.
func bytesOf(n *big.Int) []byte {
	if n.Sign() == 0 {
		return []byte{0}
	}
	return n.Bytes()
}

// number returns P4Runtime's canonical form: big-endian without leading zeros.
func number(v uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	return trimmed(b[:])
}

// trimmed returns the canonical form of a number that may have leading zeros.
func trimmed(b []byte) []byte {
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}

// entryKey returns a key that identifies an entry within its switch.
func entryKey(e *p4v1.TableEntry) string { return string(appendKey(nil, e)) }

func appendKey(b []byte, e *p4v1.TableEntry) []byte {
	b = strconv.AppendUint(append(b, "table "...), uint64(e.GetTableId()), 10)
	if e.GetIsDefaultAction() {
		return append(b, " default"...)
	}
	b = strconv.AppendInt(append(b, ' '), int64(e.GetPriority()), 10)
	for _, f := range ordered(e.GetMatch(), (*p4v1.FieldMatch).GetFieldId) {
		b = strconv.AppendUint(append(b, ' '), uint64(f.GetFieldId()), 10)
		b = appendMatch(append(b, '='), f)
	}
	return b
}

// ordered returns a list sorted by id. Usually the list is already sorted.
func ordered[T any](list []T, id func(T) uint32) []T {
	byID := func(a, b T) int { return cmp.Compare(id(a), id(b)) }
	if slices.IsSortedFunc(list, byID) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, byID)
	return list
}

// appendMatch appends an encoding of a match that is unique among all kinds of
// match.
func appendMatch(b []byte, f *p4v1.FieldMatch) []byte {
	switch m := f.GetFieldMatchType().(type) {
	case *p4v1.FieldMatch_Exact_:
		return appendDigits(b, m.Exact.GetValue())
	case *p4v1.FieldMatch_Lpm:
		b = append(appendDigits(b, m.Lpm.GetValue()), '/')
		return strconv.AppendInt(b, int64(m.Lpm.GetPrefixLen()), 10)
	case *p4v1.FieldMatch_Ternary_:
		b = append(appendDigits(b, m.Ternary.GetValue()), '&')
		return appendDigits(b, m.Ternary.GetMask())
	case *p4v1.FieldMatch_Range_:
		b = append(appendDigits(b, m.Range.GetLow()), '-')
		return appendDigits(b, m.Range.GetHigh())
	case *p4v1.FieldMatch_Optional_:
		return appendDigits(append(b, '?'), m.Optional.GetValue())
	}
	return append(b, "other"...)
}

// appendDigits writes a number of any size in decimal digits.
func appendDigits(b, value []byte) []byte {
	if value = trimmed(value); len(value) <= 8 {
		return strconv.AppendUint(b, numberOf(value), 10)
	}
	return new(big.Int).SetBytes(value).Append(b, 10)
}

// actionValue returns the action of an entry as text. An action that refers to a
// member or a group of an action profile differs from every planned action.
func actionValue(e *p4v1.TableEntry) string { return string(appendValue(nil, e)) }

func appendValue(b []byte, e *p4v1.TableEntry) []byte {
	switch a := e.GetAction().GetType().(type) {
	case nil:
		return append(b, noAction...)
	case *p4v1.TableAction_Action:
		return appendCall(b, a.Action)
	case *p4v1.TableAction_ActionProfileActionSet:
		var list []string
		for _, one := range a.ActionProfileActionSet.GetActionProfileActions() {
			list = append(list, fmt.Sprintf("%s *%d", callValue(one.GetAction()), one.GetWeight()))
		}
		slices.Sort(list)
		return append(append(b, "one of "...), strings.Join(list, ", ")...)
	}
	return append(b, "a member or group of an action profile"...)
}

// callValue returns an action as text.
func callValue(a *p4v1.Action) string { return string(appendCall(nil, a)) }

func appendCall(b []byte, a *p4v1.Action) []byte {
	b = strconv.AppendUint(b, uint64(a.GetActionId()), 10)
	for _, p := range ordered(a.GetParams(), (*p4v1.Action_Param).GetParamId) {
		b = strconv.AppendUint(append(b, ' '), uint64(p.GetParamId()), 10)
		b = appendDigits(append(b, '='), p.GetValue())
	}
	return b
}

// replicaValue describes the destinations of copies as text: the ports, and instances other than
// 1. Duplicated copies thus differ.
func replicaValue(list []*p4v1.Replica) string {
	var ports []string
	for _, r := range list {
		text := fmt.Sprintf("%5d", replicaPort(r))
		if r.GetInstance() != 1 {
			text += fmt.Sprintf("#%d", r.GetInstance())
		}
		ports = append(ports, text)
	}
	slices.Sort(ports)
	for i := range ports {
		ports[i] = strings.TrimSpace(ports[i])
	}
	return strings.Join(ports, " ")
}

// replicaPort returns the port of a replica in either form.
func replicaPort(r *p4v1.Replica) uint32 {
	if b := r.GetPort(); len(b) > 0 {
		return uint32(new(big.Int).SetBytes(b).Uint64())
	}
	//lint:ignore SA1019 servers that predate port answer with egress_port
	return r.GetEgressPort()
}
