package server

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
	"github.com/p4lb/p4lb/internal/server/gate"
)

// An update that one pipe refuses changes no other pipe, without a rollback of the batch.
func TestRefusedInAnotherPipe(t *testing.T) {
	r := newRig(t)
	at := func(n uint32, u *wire.Update) {
		t.Helper()
		r.must(r.write(pipe(n), u))
	}
	member := func(kind wire.Update_Type, id uint64, port int) *wire.Update {
		return update(kind, r.entry("In.members", r.key("In.members", id), r.data("In.members", "spread_to", "port", port)))
	}
	group := func(kind wire.Update_Type, members ...uint32) *wire.Update {
		return update(kind, r.entry("In.groups", r.key("In.groups", 8), r.data("In.groups", "", "$ACTION_MEMBER_ID", members, "$ACTION_MEMBER_STATUS", make([]bool, len(members)))))
	}
	all := func() (list []string) {
		for n := range uint32(4) {
			for _, name := range []string{"In.members", "In.groups", "In.choose", "InPrs.kinds"} {
				found, err := r.read(pipe(n), r.entry(name, nil, nil))
				r.must(err)
				for _, e := range found {
					list = append(list, name+string(mustMarshal(e)))
				}
			}
		}
		return list
	}
	for n := range uint32(2) {
		at(n, member(ins, 3, 1))
	}
	at(0, member(ins, 4, 1))
	at(1, group(ins, 3))
	r.scoped("InPrs.kinds", 0)
	kinds := r.entry("InPrs.kinds", r.key("InPrs.kinds", 0x11), nil)
	single := &wire.TargetDevice{PipeId: 1, Direction: wire.AllDirections, PrsrId: wire.AllParsers}
	r.must(r.write(single, update(ins, kinds)))
	r.must(r.write(everywhere, r.attribute("InPrs.kinds", &wire.TableAttribute{Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{}}})))
	choose := func(kind wire.Update_Type, id int) *wire.Update {
		return update(kind, r.entry("In.choose", r.key("In.choose", 1), r.data("In.choose", "", "$ACTION_MEMBER_ID", id)))
	}
	r.scoped("In.choose", 0x0c03)
	at(0, choose(ins, 3))
	before := all()
	r.refused("a member that pipe 2 lacks", member(mod, 3, 2), codes.NotFound, "there is no member 3")
	r.refused("a member that entries use", update(del, r.entry("In.members", r.key("In.members", 3), nil)), codes.AlreadyExists, "")
	r.refused("a group that pipe 1 has", group(ins), codes.AlreadyExists, "group 8 already exists")
	r.refused("a group that pipe 1 has, or a change", group(wire.Update_INSERT_OR_MODIFY), codes.AlreadyExists, "group 8 already exists")
	r.refused("a member of a value set that pipe 1 has", update(ins, kinds), codes.AlreadyExists, "the member already exists")
	err := r.write(pipe(0), choose(mod, 4))
	if e := details(t, err)[0]; codes.Code(e.GetCode()) != codes.NotFound || !strings.Contains(e.GetMessage(), "there is no member 4 in pipe 1") {
		t.Errorf("a member that one pipe of the part lacks: %v", e)
	}
	if after := all(); !slices.Equal(after, before) {
		t.Errorf("after refusals %q, before %q", after, before)
	}
}

// An update with an impossible field changes nothing, neither the action of an entry nor the
// default entry.
func TestRefusedInOneField(t *testing.T) {
	r := newProgramRig(t, entries, gate.Limits{})
	r.set(ins, "In.metered", r.key("In.metered", 5), r.data("In.metered", "colour", "port", 2))
	impossible := r.data("In.metered", "colour", "port", 130, "$METER_SPEC_CIR_KBPS", 100, "$METER_SPEC_PIR_KBPS", 50)
	r.refused("a peak below the committed rate", update(mod, r.entry("In.metered", r.key("In.metered", 5), impossible)), codes.InvalidArgument, "the peak rate is below the committed rate")
	if port, _ := r.goes(frame(5, 0, 2)); port != 2 {
		t.Errorf("the packet leaves by port %d, want 2", port)
	}
	byDefault := r.entry("In.smoothed", nil, r.data("In.smoothed", "smooth", "port", 130, "$LPF_SPEC_TYPE", "RATE"))
	byDefault.IsDefaultEntry = true
	r.refused("a filter of the default entry", update(mod, byDefault), codes.Unimplemented, "the default entry has no filter")
	if port, _ := r.goes(frame(5, 0, 4)); port != 1 {
		t.Errorf("the packet leaves by port %d, want 1: no entry", port)
	}
	cells := r.entry("In.counted", nil, r.data("In.counted", "tally", "port", 130, "first", 3))
	cells.IsDefaultEntry = true
	r.refused("a cell of the default entry", update(mod, cells), codes.Unimplemented, "the default entry has no register cell")
	if port, _ := r.goes(frame(5, 0, 3)); port != 1 {
		t.Errorf("the packet leaves by port %d, want 1: no entry", port)
	}
}

// A group with more places than the chip has members is refused, and the name is free.
func TestGroupBeyondMembers(t *testing.T) {
	r := newRig(t)
	g := r.s.programs[0].tables[r.table("In.groups").schema.ID].(*selector)
	g.most = 0
	r.set(ins, "In.members", r.key("In.members", 3), r.data("In.members", "spread_to", "port", 1))
	places := func(n int) *wire.TableData {
		active := make([]bool, n)
		for i := range active {
			active[i] = true
		}
		return r.data("In.groups", "", "$MAX_GROUP_SIZE", n, "$ACTION_MEMBER_ID", slices.Repeat([]uint32{3}, n), "$ACTION_MEMBER_STATUS", active)
	}
	const tooMany = 1<<16 + 1
	add := func(kind wire.Update_Type, n int) error {
		return r.write(pipe(0), update(kind, r.entry("In.groups", r.key("In.groups", 8), places(n))))
	}
	if code := r.codeOf(add(ins, tooMany)); code != codes.ResourceExhausted {
		t.Errorf("a group of %d places: %v", tooMany, code)
	}
	if n := r.usage("In.groups"); n != 0 {
		t.Errorf("%d groups after a refusal", n)
	}
	r.must(add(ins, 2))
	if code := r.codeOf(add(mod, tooMany)); code != codes.ResourceExhausted {
		t.Errorf("a change to %d places: %v", tooMany, code)
	}
	list, err := r.read(pipe(0), r.entry("In.groups", r.key("In.groups", 8), nil))
	r.must(err)
	if got, want := list[0].GetData(), places(2); !proto.Equal(r.field("In.groups", got, "$ACTION_MEMBER_ID"), r.field("In.groups", want, "$ACTION_MEMBER_ID")) {
		t.Error("a refused change of a group remains")
	}
	groups, err := r.s.pipes[0].Profiles().Groups("In.members")
	if err != nil || len(groups) != 1 || len(groups[0].Members) != 2 {
		t.Errorf("the data plane has the groups %v, %v; want one of two places", groups, err)
	}
}
