package p4app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/p4lb/p4lb/internal/text/plain"
)

// The runtime files of the tutorials:
//
//	"table_entries": [{
//	  "table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dstAddr": ["10.0.1.1", 32]},
//	  "action_name": "MyIngress.ipv4_forward", "action_params": {"dstAddr": "08:00:00:00:01:11", "port": 1}}],
//	"multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
//	"clone_session_entries": [{"clone_session_id": 5, "replicas": […], "packet_length_bytes": 64}]
//
// The names of the program ("p4info", "bmv2_json") are not needed.

type runtimeEntry struct {
	Table    string                     `json:"table"`
	Match    map[string]json.RawMessage `json:"match"`
	Priority int32                      `json:"priority"`
	Default  bool                       `json:"default_action"`
	Action   string                     `json:"action_name"`
	Params   map[string]json.RawMessage `json:"action_params"`
}

type runtimeReplicas struct {
	Group    uint32 `json:"multicast_group_id"`
	Session  uint32 `json:"clone_session_id"`
	Length   int32  `json:"packet_length_bytes"`
	Replicas []struct {
		Port     uint32 `json:"egress_port"`
		Instance uint32 `json:"instance"`
	} `json:"replicas"`
}

// lineAt returns the line of an offset.
func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte{'\n'})
}

// runtime decodes the JSON element by element, to know the line of each
// element.
func (e *Entries) runtime(n *names, text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	fail := func(err error) error {
		line, why := plain.JSONError(text, err)
		if _, ok := errors.AsType[*json.SyntaxError](err); !ok {
			line = lineAt(text, d.InputOffset()) // the error's offset is relative to an element
		}
		return e.errorf(line, "%v", why)
	}
	if _, err := d.Token(); err != nil {
		return fail(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fail(err)
		}
		switch key {
		case "table_entries":
			err = each(d, text, func(line int, x *runtimeEntry, raw json.RawMessage) error { return e.runtimeEntry(n, line, x, raw) })
		case "multicast_group_entries":
			err = each(d, text, func(line int, x *runtimeReplicas, _ json.RawMessage) error { return e.multicast(line, x) })
		case "clone_session_entries":
			err = each(d, text, func(line int, x *runtimeReplicas, _ json.RawMessage) error { return e.clone(line, x) })
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		var own *lineError
		switch {
		case errors.As(err, &own):
			return err
		case err != nil:
			return fail(err)
		}
	}
	return nil
}

// each decodes the elements of a list and calls do with the line of each.
func each[T any](d *json.Decoder, text []byte, do func(line int, x *T, raw json.RawMessage) error) error {
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(err, fmt.Errorf("%v: want a list", open))
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		var x T
		if err := json.Unmarshal(raw, &x); err != nil {
			return err
		}
		if err := do(lineAt(text, d.InputOffset()-int64(len(raw))), &x, raw); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// lineOf returns the line of a key in an object that begins on a line.
func lineOf(line int, raw json.RawMessage, key string) int {
	return line + bytes.Count(raw[:max(0, bytes.Index(raw, []byte(`"`+key+`"`)))], []byte{'\n'})
}

func (e *Entries) runtimeEntry(n *names, line int, x *runtimeEntry, raw json.RawMessage) error {
	t, err := n.table(x.Table)
	if err != nil {
		return e.errorf(lineOf(line, raw, "table"), "%v", err)
	}
	name := t.GetPreamble().GetName()
	entry := &p4v1.TableEntry{TableId: t.GetPreamble().GetId(), IsDefaultAction: x.Default}
	typ := p4v1.Update_INSERT
	if x.Default {
		typ = p4v1.Update_MODIFY
	} else {
		if entry.Match, err = runtimeMatch(t, x.Match); err != nil {
			return e.errorf(lineOf(line, raw, "match"), "table %s: %v", name, err)
		}
		if entry.Priority = x.Priority; ranked(t) && x.Priority == 0 {
			entry.Priority = 1
		}
	}
	a, err := n.action("table "+name, t.GetActionRefs(), x.Action, x.Default)
	if err != nil {
		return e.errorf(lineOf(line, raw, "action_name"), "%v", err)
	}
	args, err := runtimeArgs(a, x.Params)
	if err != nil {
		return e.errorf(lineOf(line, raw, "action_params"), "table %s: action %s: %v", name, x.Action, err)
	}
	entry.Action = actionOf(call(a, args))
	e.put(line, typ, &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: entry}})
	return nil
}

func runtimeMatch(t *configv1.Table, match map[string]json.RawMessage) (list []*p4v1.FieldMatch, err error) {
	known := map[string]bool{}
	for _, f := range t.GetMatchFields() {
		known[f.GetName()] = true
		raw, ok := match[f.GetName()]
		if !ok {
			if f.GetMatchType() == configv1.MatchField_EXACT {
				return nil, fmt.Errorf("field %s is missing: an exact match needs a value", f.GetName())
			}
			continue
		}
		first, second, err := runtimeValues(f, raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.GetName(), err)
		}
		m, err := fieldMatch(f, first, second)
		if list, err = addMatch(list, f, m, err); err != nil {
			return nil, err
		}
	}
	for name := range match {
		if !known[name] {
			return nil, fmt.Errorf("the key has no field %s%s", name, nearestField(t, name))
		}
	}
	return list, nil
}

func nearestField(t *configv1.Table, name string) string {
	var all string
	for _, f := range t.GetMatchFields() {
		all += ", " + f.GetName()
	}
	if all == "" {
		return ": it has none"
	}
	return "; it has " + all[2:]
}

// runtimeValues reads a value, or a list of a value and its second part.
func runtimeValues(f *configv1.MatchField, raw json.RawMessage) (first, second *big.Int, err error) {
	width := int(f.GetBitwidth())
	var pair []json.RawMessage
	if json.Unmarshal(raw, &pair) != nil {
		pair = []json.RawMessage{raw}
	}
	if len(pair) < 1 || len(pair) > 2 {
		return nil, nil, fmt.Errorf("%s: want a value, or two in a list", raw)
	}
	if first, err = runtimeNumber(pair[0], width); err != nil {
		return nil, nil, err
	}
	if len(pair) == 1 {
		return first, secondOf(f, first), nil
	}
	if f.GetMatchType() == configv1.MatchField_LPM {
		width = 0 // a prefix length
	}
	second, err = runtimeNumber(pair[1], width)
	return first, second, err
}

func runtimeNumber(raw json.RawMessage, width int) (*big.Int, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		text = string(raw) // a number
	}
	return number(text, width)
}

func runtimeArgs(a *configv1.Action, params map[string]json.RawMessage) (args []*big.Int, err error) {
	known := map[string]bool{}
	for _, p := range a.GetParams() {
		known[p.GetName()] = true
		raw, ok := params[p.GetName()]
		if !ok {
			return nil, fmt.Errorf("parameter %s is missing", p.GetName())
		}
		v, err := runtimeNumber(raw, int(p.GetBitwidth()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.GetName(), err)
		}
		args = append(args, v)
	}
	for name := range params {
		if !known[name] {
			return nil, fmt.Errorf("unknown parameter %s", name)
		}
	}
	return args, nil
}

func (x *runtimeReplicas) replicas() (list []*p4v1.Replica) {
	for _, r := range x.Replicas {
		list = append(list, replica(r.Port, r.Instance))
	}
	return list
}

func replica(port, instance uint32) *p4v1.Replica {
	return &p4v1.Replica{PortKind: &p4v1.Replica_Port{Port: bytesOf(big.NewInt(int64(port)))}, Instance: instance}
}

func (e *Entries) multicast(line int, x *runtimeReplicas) error {
	if x.Group == 0 {
		return e.errorf(line, "multicast group: multicast_group_id is missing: want a number from 1")
	}
	e.putMulticast(line, &p4v1.MulticastGroupEntry{MulticastGroupId: x.Group, Replicas: x.replicas()})
	return nil
}

func (e *Entries) putMulticast(line int, m *p4v1.MulticastGroupEntry) {
	e.put(line, p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
		Type: &p4v1.PacketReplicationEngineEntry_MulticastGroupEntry{MulticastGroupEntry: m},
	}}})
}

func (e *Entries) clone(line int, x *runtimeReplicas) error {
	if x.Session == 0 {
		return e.errorf(line, "clone session: clone_session_id is missing: want a number from 1")
	}
	m := &p4v1.CloneSessionEntry{SessionId: x.Session, Replicas: x.replicas(), PacketLengthBytes: x.Length}
	e.put(line, p4v1.Update_INSERT, &p4v1.Entity{Entity: &p4v1.Entity_PacketReplicationEngineEntry{PacketReplicationEngineEntry: &p4v1.PacketReplicationEngineEntry{
		Type: &p4v1.PacketReplicationEngineEntry_CloneSessionEntry{CloneSessionEntry: m},
	}}})
	return nil
}
