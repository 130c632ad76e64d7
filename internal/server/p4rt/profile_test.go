package p4rt

import (
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func memberEntity(t testing.TB, profile string, id uint32, port string) *p4v1.Entity {
	t.Helper()
	return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
		ActionProfileId: idOf(t, profile), MemberId: id, Action: action(t, "AllIngress.forward", port),
	}}}
}

func groupEntity(t testing.TB, id uint32, members ...*p4v1.ActionProfileGroup_Member) *p4v1.Entity {
	t.Helper()
	return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{
		ActionProfileId: idOf(t, "AllIngress.choice"), GroupId: id, Members: members,
	}}}
}

func weighted(id uint32, weight int32) *p4v1.ActionProfileGroup_Member {
	return &p4v1.ActionProfileGroup_Member{MemberId: id, Weight: weight}
}

func update(typ p4v1.Update_Type, e *p4v1.Entity) *p4v1.Update {
	return &p4v1.Update{Type: typ, Entity: e}
}

const (
	ins = p4v1.Update_INSERT
	mod = p4v1.Update_MODIFY
	del = p4v1.Update_DELETE
)

func TestMembersAndGroups(t *testing.T) {
	s := configured(t)
	const choice = "AllIngress.choice"
	entry := exactEntry(t, "AllIngress.groups", "", nil, "\x01")
	entry.Action = groupAction(7)

	s.wantWrite(codes.NotFound, insert(t, entry))
	s.wantWrite(codes.NotFound, update(ins, groupEntity(t, 7, weighted(1, 1))))
	s.wantWrite(codes.OK, update(ins, memberEntity(t, choice, 1, "\x01")))
	s.wantWrite(codes.AlreadyExists, update(ins, memberEntity(t, choice, 1, "\x01")))
	s.wantWrite(codes.OK, update(ins, memberEntity(t, choice, 2, "\x02")))
	s.wantWrite(codes.InvalidArgument, update(ins, memberEntity(t, choice, 0, "\x02")))
	s.wantWrite(codes.InvalidArgument, update(ins, groupEntity(t, 7, weighted(1, 0))))
	s.wantWrite(codes.InvalidArgument, update(ins, groupEntity(t, 7, weighted(1, 1), weighted(1, 1))))
	s.wantWrite(codes.InvalidArgument, update(ins, groupEntity(t, 0)))
	s.wantWrite(codes.OK, update(ins, groupEntity(t, 7, weighted(1, 3), weighted(2, 1))))
	s.wantWrite(codes.AlreadyExists, update(ins, groupEntity(t, 7)))
	s.wantWrite(codes.OK, insert(t, entry))

	got := s.mustRead(1, groupEntity(t, 0))[0]
	if want := groupEntity(t, 7, weighted(1, 3), weighted(2, 1)); !proto.Equal(got, want) {
		t.Errorf("read back %v, want %v", got, want)
	}
	s.mustRead(2, memberEntity(t, choice, 0, "\x00"))
	s.mustRead(1, memberEntity(t, choice, 2, "\x00"))

	s.wantWrite(codes.FailedPrecondition, update(del, memberEntity(t, choice, 1, "\x01")))
	s.wantWrite(codes.FailedPrecondition, update(del, groupEntity(t, 7)))
	s.wantWrite(codes.OK, update(mod, memberEntity(t, choice, 1, "\x09")))
	s.wantWrite(codes.OK, update(mod, groupEntity(t, 7, weighted(2, 2))))
	s.wantWrite(codes.OK, update(del, memberEntity(t, choice, 1, "\x01")))
	s.wantWrite(codes.NotFound, update(del, memberEntity(t, choice, 1, "\x01")))
	s.wantWrite(codes.OK, remove(t, entry))
	s.wantWrite(codes.OK, update(del, groupEntity(t, 7)))
	s.wantWrite(codes.NotFound, update(del, groupEntity(t, 7)))
	s.wantWrite(codes.OK, update(del, memberEntity(t, choice, 2, "\x01")))

	// A profile without selector has only members.
	plain := exactEntry(t, "AllIngress.members", "", nil, "\x01")
	plain.Action = groupAction(1)
	s.wantWrite(codes.InvalidArgument, insert(t, plain))
	plain.Action = memberAction(1)
	s.wantWrite(codes.NotFound, insert(t, plain))
	s.wantWrite(codes.OK, update(ins, memberEntity(t, "AllIngress.plain", 1, "\x01")))
	s.wantWrite(codes.OK, insert(t, plain))
	s.wantWrite(codes.FailedPrecondition, update(del, memberEntity(t, "AllIngress.plain", 1, "\x01")))
	for i := uint32(2); i <= 16; i++ {
		s.wantWrite(codes.OK, update(ins, memberEntity(t, "AllIngress.plain", i, "\x01")))
	}
	s.wantWrite(codes.ResourceExhausted, update(ins, memberEntity(t, "AllIngress.plain", 17, "\x01")))
}

// TestActionForms: an entry whose action has another form than its table needs is
// INVALID_ARGUMENT (sections 9.1.2 and 9.2). The message names the table, the form in the
// words of the protocol, and the right form.
func TestActionForms(t *testing.T) {
	s := configured(t)
	forward := action(t, "AllIngress.forward", "\x01")
	set := actionSet(t, &p4v1.ActionProfileAction{Action: forward, Weight: 1})
	profile := ": want action_profile_member_id, the id of a member of action profile AllIngress.plain"
	for _, c := range []struct {
		table string
		a     *p4v1.TableAction
		want  string
	}{
		{"members", tableAction(forward), "the entry has action" + profile},
		{"members", groupAction(1), "the entry has action_profile_group_id" + profile},
		{"members", set, "the entry has action_profile_action_set" + profile},
		{"members", &p4v1.TableAction{}, "the entry has nothing" + profile},
		{"groups", tableAction(forward), "the entry has action: want action_profile_action_set, or the id of a member or group of action selector AllIngress.choice"},
		{"sources", memberAction(1), "the entry has action_profile_member_id: want action, because the table has no action profile"},
	} {
		e := exactEntry(t, "AllIngress."+c.table, "", nil, "\x01")
		e.Action = c.a
		s.wantWrite(codes.InvalidArgument, insert(t, e))
		if got, want := describe(s.write(insert(t, e))), "table AllIngress."+c.table+": "+c.want; !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestEmptyGroups: an entry may refer to a group without members.
func TestEmptyGroups(t *testing.T) {
	s := configured(t)
	entry := exactEntry(t, "AllIngress.groups", "", nil, "\x01")
	entry.Action = groupAction(7)
	s.wantWrite(codes.OK, update(ins, groupEntity(t, 7)))
	s.wantWrite(codes.OK, insert(t, entry))
	s.wantWrite(codes.OK, modify(t, entry))
	s.wantWrite(codes.OK, update(ins, memberEntity(t, "AllIngress.choice", 1, "\x01")))
	s.wantWrite(codes.OK, update(mod, groupEntity(t, 7, weighted(1, 1))))
	s.wantWrite(codes.OK, update(mod, groupEntity(t, 7)))
	if list, err := s.rig.server.current.sw.Profiles().Members("AllIngress.choice"); err != nil || len(list) != 1 {
		t.Errorf("members of the data plane: %v, %v", list, err)
	}
}

func actionSet(t testing.TB, actions ...*p4v1.ActionProfileAction) *p4v1.TableAction {
	t.Helper()
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{
		ActionProfileActionSet: &p4v1.ActionProfileActionSet{ActionProfileActions: actions},
	}}
}

func TestOneShot(t *testing.T) {
	s := configured(t)
	forward := func(port string, weight int32) *p4v1.ActionProfileAction {
		return &p4v1.ActionProfileAction{Action: action(t, "AllIngress.forward", port), Weight: weight}
	}
	entry := exactEntry(t, "AllIngress.groups", "", nil, "\x01")
	// Equal actions stay separate, as they were written.
	entry.Action = actionSet(t, forward("\x01", 2), forward("\x01", 2), forward("\x02", 1))
	s.must(s.write(insert(t, entry)))
	if got := s.mustRead(1, entityOf(&p4v1.TableEntry{TableId: entry.TableId}))[0].GetTableEntry(); !proto.Equal(got, entry) {
		t.Errorf("read back %v, want %v", got, entry)
	}
	s.mustRead(0, memberEntity(t, "AllIngress.choice", 0, "\x00"))
	s.mustRead(0, groupEntity(t, 0))

	// One-shots and members exclude each other.
	s.wantWrite(codes.InvalidArgument, update(ins, memberEntity(t, "AllIngress.choice", 1, "\x01")))
	s.wantWrite(codes.InvalidArgument, update(ins, groupEntity(t, 1)))
	bad := exactEntry(t, "AllIngress.groups", "", nil, "\x02")
	for name, a := range map[string]*p4v1.TableAction{
		"no weight":      actionSet(t, forward("\x01", 0)),
		"wide parameter": actionSet(t, forward("\x02\x00", 1)),
		"another action": actionSet(t, &p4v1.ActionProfileAction{Action: action(t, "AllIngress.mark", "\x01"), Weight: 1}),
		"unknown port":   actionSet(t, &p4v1.ActionProfileAction{Action: action(t, "AllIngress.drop"), Weight: 1, WatchKind: &p4v1.ActionProfileAction_WatchPort{WatchPort: []byte{9}}}),
	} {
		bad.Action = a
		if s.wantWrite(codes.InvalidArgument, insert(t, bad)); t.Failed() {
			t.Fatal(name)
		}
	}
	random := actionSet(t, forward("\x01", 1))
	random.GetActionProfileActionSet().ActionSelectionMode = p4v1.ActionProfileActionSet_RANDOM
	bad.Action = random
	s.wantWrite(codes.Unimplemented, insert(t, bad))

	entry.Action = actionSet(t, forward("\x03", 1))
	s.wantWrite(codes.OK, modify(t, entry))
	s.wantWrite(codes.OK, remove(t, entry))
	// Everything is freed.
	sw := s.rig.server.current.sw
	if list, err := sw.Profiles().Members("AllIngress.choice"); err != nil || len(list) > 0 {
		t.Errorf("members of the data plane: %v, %v", list, err)
	}
	if list, err := sw.Profiles().Groups("AllIngress.choice"); err != nil || len(list) > 0 {
		t.Errorf("groups of the data plane: %v, %v", list, err)
	}
	s.wantWrite(codes.OK, update(ins, memberEntity(t, "AllIngress.choice", 1, "\x01")))
	s.wantWrite(codes.InvalidArgument, insert(t, entry))
}

// TestWatchPorts: a member is inactive while its port is down.
func TestWatchPorts(t *testing.T) {
	s := configured(t)
	a, b := newTestPort(), newTestPort()
	s.must(s.rig.dev.AddPort(1, a, nil))
	s.must(s.rig.dev.AddPort(2, b, nil))
	watched := func(port string) *p4v1.ActionProfileAction {
		return &p4v1.ActionProfileAction{
			Action: action(t, "AllIngress.forward", port), Weight: 1,
			WatchKind: &p4v1.ActionProfileAction_WatchPort{WatchPort: []byte(port)},
		}
	}
	entry := exactEntry(t, "AllIngress.groups", "", nil, "\x01")
	entry.Action = actionSet(t, watched("\x01"), watched("\x02"))
	s.must(s.write(insert(t, entry)))
	active := func() int {
		list, err := s.rig.server.current.sw.Profiles().Groups("AllIngress.choice")
		if s.must(err); len(list) != 1 {
			t.Fatalf("groups: %v", list)
		}
		return len(list[0].Members)
	}
	for _, step := range []struct {
		port uint32
		up   bool
		want int
	}{{1, false, 1}, {2, false, 0}, {2, true, 1}, {1, true, 2}} {
		if s.rig.dev.SetPortUp(step.port, step.up); active() != step.want {
			t.Errorf("port %d up: %v: %d members, want %d", step.port, step.up, active(), step.want)
		}
	}
}
