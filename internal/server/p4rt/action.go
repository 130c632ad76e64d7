package p4rt

import (
	"slices"

	configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"

	"github.com/p4lb/p4lb/internal/dataplane"
)

// parseAction checks an action and its arguments. It replaces the arguments in
// the message by their canonical form.
func (in *info) parseAction(a *p4v1.Action) (dataplane.ActionCall, error) {
	act := in.actions[a.GetActionId()]
	if act == nil {
		return dataplane.ActionCall{}, failf(codes.InvalidArgument, "there is no action %#x", a.GetActionId())
	}
	call := dataplane.ActionCall{Name: act.name}
	if len(act.params) > 0 {
		call.Params = make([][]byte, len(act.params))
	}
	for i := range act.params {
		p := findParam(a.GetParams(), act.params[i].id, i)
		if p == nil {
			return call, failf(codes.InvalidArgument, "action %s: parameter %s is missing", act.name, act.params[i].name)
		}
		var err error
		if call.Params[i], err = parseValue(&p.Value, act.params[i].width, act.params[i].names); err != nil {
			return call, asInvalid(prefixed(err, "action %s: parameter %s", act.name, act.params[i].name))
		}
	}
	// Every parameter is present, so a surplus argument is unknown or repeated.
	if len(a.GetParams()) != len(act.params) {
		return call, failf(codes.InvalidArgument, "action %s has %d parameters, not %d", act.name, len(act.params), len(a.GetParams()))
	}
	return call, nil
}

// findParam returns the argument with the given id. It looks at the expected
// position first.
func findParam(list []*p4v1.Action_Param, id uint32, guess int) *p4v1.Action_Param {
	if guess < len(list) && list[guess].GetParamId() == id {
		return list[guess]
	}
	for _, p := range list {
		if p.GetParamId() == id {
			return p
		}
	}
	return nil
}

// A sharedCall is a checked call. It is valid for any action with the same name
// and parameters.
type sharedCall struct {
	dataplane.ActionCall
	params []paramInfo
}

// call returns the checked form of an action and caches it in k.
func (k *Keys) call(in *info, a *p4v1.Action) (dataplane.ActionCall, error) {
	act := in.actions[a.GetActionId()]
	if k == nil || act == nil {
		return in.parseAction(a)
	}
	k.mu.RLock()
	have, ok := k.calls[a]
	k.mu.RUnlock()
	if ok && have.Name == act.name && slices.Equal(have.params, act.params) {
		return have.ActionCall, nil
	}
	made, err := in.parseAction(a)
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.calls == nil {
			k.calls = map[*p4v1.Action]sharedCall{}
		}
		k.calls[a] = sharedCall{made, act.params}
	}
	return made, err
}

// entryAction checks the action of an entry of a table, or of its default
// entry.
func (p *pipeline) entryAction(t *tableInfo, a *p4v1.Action, isDefault bool) (dataplane.ActionCall, error) {
	scope, ok := t.actions[a.GetActionId()]
	switch {
	case !ok:
		return dataplane.ActionCall{}, failf(codes.InvalidArgument, "table %s has no action %#x", t.name, a.GetActionId())
	case isDefault && scope == configv1.ActionRef_TABLE_ONLY:
		return dataplane.ActionCall{}, failf(codes.PermissionDenied, "table %s: the action is for entries only", t.name)
	case !isDefault && scope == configv1.ActionRef_DEFAULT_ONLY:
		return dataplane.ActionCall{}, failf(codes.PermissionDenied, "table %s: the action is for the default entry only", t.name)
	}
	return p.keys.call(p.info, a)
}

// actionMessage returns the message for an action of the data plane, or nil if
// P4Info does not contain it.
func (in *info) actionMessage(ids map[string]*actionInfo, call dataplane.ActionCall) *p4v1.Action {
	act := ids[call.Name]
	if act == nil || len(call.Params) != len(act.params) {
		return nil
	}
	a := &p4v1.Action{ActionId: act.id}
	for i, p := range act.params {
		a.Params = append(a.Params, &p4v1.Action_Param{ParamId: p.id, Value: showValue(canonical(call.Params[i]), p.names)})
	}
	return a
}
