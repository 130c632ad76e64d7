package tofino_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// profilesPlan plans a program with routes to groups of an action selector and marks from
// members of an action profile.
func profilesPlan(t *testing.T, top *fabric.Topology) *plan.Plan {
	t.Helper()
	program, err1 := os.ReadFile("testdata/profiles.p4")
	text, err2 := os.ReadFile("testdata/profiles.manifest.yaml")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	c, err := p4.CompileText("profiles.p4", program, p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DescribeBfRt(); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode("profiles.manifest.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON(), Schema: func() ([]byte, error) { return c.Schema.JSON(), nil }}
	a, err := tofino.Embedded(p)
	if err != nil {
		t.Fatal(err)
	}
	if p.Config, err = a.Encode(); err != nil {
		t.Fatal(err)
	}
	made, err := plan.New(top, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// profiles is a switch with action profiles, and the tables that use them.
type profiles struct {
	*rig
	routes, kinds *p4info.Table
}

func newProfiles(t *testing.T) (*profiles, *fabric.Topology) {
	t.Helper()
	top, err := fabric.LeafSpine{Name: "x", Leaves: 2, Spines: 2, Hosts: 2}.Make()
	if err != nil {
		t.Fatal(err)
	}
	r := &profiles{rig: rigOf(t, profilesPlan(t, top))}
	x, err := r.plan.Switch("l1").Pipeline.Index()
	if err != nil {
		t.Fatal(err)
	}
	r.routes, r.kinds = x.ByName["I.routes"], x.ByName["I.kinds"]
	return r, top
}

// members returns the members and groups of the routes' profile, and the members of the marks',
// in the switch.
func (r *profiles) members() string {
	r.t.Helper()
	sw := r.target.Switch("l1").Profiles()
	hops, err1 := sw.Members("I.hops")
	groups, err2 := sw.Groups("I.hops")
	marks, err3 := sw.Members("I.marks")
	if err := errors.Join(err1, err2, err3); err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%d in %d, %d", len(hops), len(groups), len(marks))
}

// set returns the actions of an entry: pairs of a port and its weight.
func (r *profiles) set(ports ...int32) *p4v1.TableAction {
	set := &p4v1.ActionProfileActionSet{}
	for i := 0; i < len(ports); i += 2 {
		set.ActionProfileActions = append(set.ActionProfileActions, &p4v1.ActionProfileAction{Weight: ports[i+1], Action: r.send(ports[i])})
	}
	return &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: set}}
}

// send returns an action that sends packets to a port.
func (r *profiles) send(port int32) *p4v1.Action {
	a := r.routes.Actions["send"]
	return &p4v1.Action{ActionId: a.ID, Params: []*p4v1.Action_Param{{ParamId: a.Params[0].ID, Value: []byte{byte(port)}}, {ParamId: a.Params[1].ID, Value: []byte{9}}}}
}

// route returns the route to 10.9.9.last.
func (r *profiles) route(last byte, a *p4v1.TableAction) *p4v1.Entity {
	return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: r.routes.ID, Action: a, Match: []*p4v1.FieldMatch{{
		FieldId: r.routes.Fields[0].ID, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: []byte{10, 9, 9, last}, PrefixLen: 32}},
	}}}}}
}

// change writes updates of one kind, and returns the messages of those that fail.
func (r *profiles) change(kind p4v1.Update_Type, list ...*p4v1.Entity) (faults []string) {
	r.t.Helper()
	req := &p4v1.WriteRequest{}
	for _, e := range list {
		req.Updates = append(req.Updates, &p4v1.Update{Type: kind, Entity: e})
	}
	_, err := r.client.Write(r.t.Context(), req)
	if s := status.Convert(err); err != nil {
		for _, d := range s.Details() {
			if m := d.(*p4v1.Error); m.GetCanonicalCode() != int32(codes.OK) {
				faults = append(faults, m.GetMessage())
			}
		}
		if len(faults) == 0 {
			r.t.Fatal(err)
		}
	}
	return faults
}

// read returns what a query finds, as text.
func (r *profiles) read(e *p4v1.Entity) (list []string, err error) {
	r.t.Helper()
	stream, err := r.client.Read(r.t.Context(), &p4v1.ReadRequest{Entities: []*p4v1.Entity{e}})
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			slices.Sort(list)
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		port := func(a *p4v1.Action) byte { return a.GetParams()[0].GetValue()[0] }
		for _, e := range m.GetEntities() {
			text := ""
			if x := e.GetTableEntry(); x != nil {
				if x.GetAction().GetAction() != nil {
					text = fmt.Sprintf("%x: %d", x.GetMatch()[0].GetExact().GetValue(), port(x.GetAction().GetAction()))
				} else {
					text = fmt.Sprintf("%x:", x.GetMatch()[0].GetLpm().GetValue())
				}
				for _, a := range x.GetAction().GetActionProfileActionSet().GetActionProfileActions() {
					text += fmt.Sprintf(" %d*%d", port(a.GetAction()), a.GetWeight())
				}
			}
			if x := e.GetActionProfileMember(); x != nil {
				text = fmt.Sprintf("member %d: %d", x.GetMemberId(), port(x.GetAction()))
			}
			if x := e.GetActionProfileGroup(); x != nil {
				text = fmt.Sprintf("group %d of at most %d:", x.GetGroupId(), x.GetMaxSize())
				for _, m := range x.GetMembers() {
					text += fmt.Sprintf(" %d*%d", m.GetMemberId(), m.GetWeight())
				}
			}
			list = append(list, text)
		}
	}
}

// An entry owns the members and the group with its actions. They are read back as it was
// written, and go with it. A refused entry leaves none.
func TestProfiles(t *testing.T) {
	r, top := newProfiles(t)
	links, err := top.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	// l1 reaches two hosts directly, and two over two spines, of which one is lost.
	const whole, less = "6 in 4, 4", "4 in 4, 4"
	for i, want := range []string{whole, less, whole, less, whole} {
		now := top
		if i%2 == 1 {
			now = top.Fail(links...)
		}
		p := profilesPlan(t, now)
		for again := range 2 {
			report, err := controller.Deploy(t.Context(), p, r.target, controller.DeployOptions{})
			if err != nil || (report.Written() == 0) != (again == 1 || i == 0) {
				t.Fatalf("deployment %d has written %d changes, again %d: %v", i, report.Written(), again, err)
			}
		}
		if got := r.members(); got != want {
			t.Errorf("deployment %d: members %s, want %s", i, got, want)
		}
	}
	table := func(id uint32) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: id}}}
	}
	if got, err := r.read(table(r.kinds.ID)); err != nil || fmt.Sprint(got) != "[01: 1 02: 1 03: 2 04: 2]" {
		t.Errorf("marks %q, %v", got, err)
	}
	const routes = "0a000101: 1*1 0a000102: 2*1 0a000201: 3*1 4*1 0a000202: 3*1 4*1"
	for _, step := range []struct {
		kind    p4v1.Update_Type
		list    []*p4v1.Entity
		routes  string // besides the plan's
		members string
		fails   []string
	}{
		{p4v1.Update_INSERT, []*p4v1.Entity{r.route(1, r.set(1, 1, 2, 3))}, " 0a090901: 1*1 2*3", "10 in 5, 4", nil},
		{p4v1.Update_MODIFY, []*p4v1.Entity{r.route(1, r.set(7, 2))}, " 0a090901: 7*2", "8 in 5, 4", nil},
		{p4v1.Update_INSERT, []*p4v1.Entity{r.route(2, r.set(1, 1)), r.route(3, r.set(2, 2))}, " 0a090901: 7*2 0a090902: 1*1 0a090903: 2*2", "11 in 7, 4", nil},
		{p4v1.Update_DELETE, []*p4v1.Entity{r.route(1, nil), r.route(3, nil)}, " 0a090902: 1*1", "7 in 5, 4", nil},
		{p4v1.Update_INSERT, []*p4v1.Entity{r.route(2, r.set(5, 1))}, " 0a090902: 1*1", "7 in 5, 4", []string{"exist"}},
		{p4v1.Update_INSERT, []*p4v1.Entity{r.route(4, r.set(5, 0)), r.route(5, r.set(5, 1))}, " 0a090902: 1*1 0a090905: 5*1", "8 in 6, 4", []string{"table I.routes: the weight 0 of an action is outside 1..4096"}},
		{p4v1.Update_INSERT, []*p4v1.Entity{r.route(4, r.set(5, 4097))}, " 0a090902: 1*1 0a090905: 5*1", "8 in 6, 4", []string{"the weight 4097 of an action is outside 1..4096"}},
		{p4v1.Update_INSERT, []*p4v1.Entity{r.route(4, r.set())}, " 0a090902: 1*1 0a090905: 5*1", "8 in 6, 4", []string{"table I.routes: an entry has 0 actions, want at least one"}},
		{p4v1.Update_INSERT, []*p4v1.Entity{r.route(4, &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: 1}})}, " 0a090902: 1*1 0a090905: 5*1", "8 in 6, 4",
			[]string{"table I.routes: over BfRt an entry states its actions, not the number of a member or group"}},
		{p4v1.Update_DELETE, []*p4v1.Entity{r.route(2, nil), r.route(5, nil)}, "", whole, nil},
		{p4v1.Update_DELETE, []*p4v1.Entity{r.route(2, nil)}, "", whole, []string{"no"}},
	} {
		faults := r.change(step.kind, step.list...)
		if len(faults) != len(step.fails) {
			t.Errorf("%v %v: %q, want %q", step.kind, step.list, faults, step.fails)
			continue
		}
		for i, want := range step.fails {
			if !strings.Contains(faults[i], want) {
				t.Errorf("%v %v: %q, want %q", step.kind, step.list, faults[i], want)
			}
		}
		got, err := r.read(table(r.routes.ID))
		if text := strings.Join(got, " "); err != nil || text != routes+step.routes || r.members() != step.members {
			t.Errorf("after %v %v: %s with members %s, %v; want%s with %s", step.kind, step.list, text, r.members(), err, step.routes, step.members)
		}
	}
	two := table(r.kinds.ID)
	mark := r.kinds.Actions["mark"]
	two.GetTableEntry().Match = []*p4v1.FieldMatch{{FieldId: r.kinds.Fields[0].ID, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{9}}}}}
	two.GetTableEntry().Action = r.set()
	for range 2 {
		set := two.GetTableEntry().Action.GetActionProfileActionSet()
		set.ActionProfileActions = append(set.ActionProfileActions, &p4v1.ActionProfileAction{Weight: 1, Action: &p4v1.Action{ActionId: mark.ID, Params: []*p4v1.Action_Param{{ParamId: mark.Params[0].ID, Value: []byte{1}}}}})
	}
	if got := r.change(p4v1.Update_INSERT, two); len(got) != 1 || got[0] != "table I.kinds: an entry has 2 actions, want one: its action profile has no selector" {
		t.Errorf("two marks: %q", got)
	}
}

// Members and groups that no entry uses belong to other controllers. They are read and
// written by their numbers, and a deployment deletes them.
func TestForeignProfiles(t *testing.T) {
	r, _ := newProfiles(t)
	hops, marks := r.routes.Profile.ID, r.kinds.Profile.ID
	member := func(profile, id uint32, a *p4v1.Action) *p4v1.Entity {
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{ActionProfileId: profile, MemberId: id, Action: a}}}
	}
	group := func(profile, id uint32, most int32, members ...uint32) *p4v1.Entity {
		g := &p4v1.ActionProfileGroup{ActionProfileId: profile, GroupId: id, MaxSize: most}
		for _, m := range members {
			g.Members = append(g.Members, &p4v1.ActionProfileGroup_Member{MemberId: m, Weight: 1})
		}
		return &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: g}}
	}
	mark := r.kinds.Actions["mark"]
	marked := &p4v1.Action{ActionId: mark.ID, Params: []*p4v1.Action_Param{{ParamId: mark.Params[0].ID, Value: []byte{6}}}}
	for _, step := range []struct {
		kind p4v1.Update_Type
		e    *p4v1.Entity
		want string // members and groups of the routes, members of the marks
		fail string
	}{
		{p4v1.Update_INSERT, member(hops, 15, r.send(1)), "[member 15: 1] [] []", ""},
		{p4v1.Update_INSERT, member(hops, 16, r.send(2)), "[member 15: 1 member 16: 2] [] []", ""},
		{p4v1.Update_MODIFY, member(hops, 16, r.send(3)), "[member 15: 1 member 16: 3] [] []", ""},
		{p4v1.Update_INSERT, group(hops, 7, 5, 15, 16), "[member 15: 1 member 16: 3] [group 7 of at most 5: 15*1 16*1] []", ""},
		{p4v1.Update_MODIFY, group(hops, 7, 0, 16), "[member 15: 1 member 16: 3] [group 7 of at most 1: 16*1] []", ""},
		{p4v1.Update_INSERT, member(marks, 15, marked), "[member 15: 1 member 16: 3] [group 7 of at most 1: 16*1] [member 15: 6]", ""},
		{p4v1.Update_INSERT, group(marks, 7, 5, 15), "[member 15: 1 member 16: 3] [group 7 of at most 1: 16*1] [member 15: 6]", "the action profile of table I.kinds has no selector"},
		{p4v1.Update_INSERT, member(99, 7, marked), "[member 15: 1 member 16: 3] [group 7 of at most 1: 16*1] [member 15: 6]", "no table has the action profile 99"},
		{p4v1.Update_INSERT, group(99, 7, 5, 15), "[member 15: 1 member 16: 3] [group 7 of at most 1: 16*1] [member 15: 6]", "no table has the action profile 99"},
		{p4v1.Update_INSERT, member(hops, 17, marked), "[member 15: 1 member 16: 3] [group 7 of at most 1: 16*1] [member 15: 6]", "table I.routes has no action "},
		{p4v1.Update_DELETE, group(hops, 7, 0), "[member 15: 1 member 16: 3] [] [member 15: 6]", ""},
		{p4v1.Update_DELETE, member(hops, 15, nil), "[member 16: 3] [] [member 15: 6]", ""},
		{p4v1.Update_INSERT, group(hops, 8, 2, 16), "[member 16: 3] [group 8 of at most 2: 16*1] [member 15: 6]", ""},
	} {
		faults := r.change(step.kind, step.e)
		if (len(faults) > 0) != (step.fail != "") || len(faults) > 0 && !strings.Contains(faults[0], step.fail) {
			t.Errorf("%v %v: %q, want %q", step.kind, step.e, faults, step.fail)
		}
		a, err1 := r.read(member(hops, 0, nil))
		b, err2 := r.read(group(hops, 0, 0))
		c, err3 := r.read(member(marks, 0, nil))
		if got := fmt.Sprint(a, b, c); got != step.want || errors.Join(err1, err2, err3) != nil {
			t.Errorf("after %v %v: %s, %v; want %s", step.kind, step.e, got, errors.Join(err1, err2, err3), step.want)
		}
	}
	for _, e := range []*p4v1.Entity{member(99, 0, nil), group(99, 0, 0)} {
		if _, err := r.read(e); status.Code(err) != codes.NotFound {
			t.Errorf("reading an unknown profile: %v", err)
		}
	}
	report, err := controller.Deploy(t.Context(), r.plan, r.target, controller.DeployOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, c := range report.Switches[0].Changes {
		changes = append(changes, fmt.Sprintf("%s %s", c.Kind, c.Object))
	}
	if got := strings.Join(changes, ", "); got != "delete I.hops group 8, delete I.hops member 16, delete I.marks member 15" {
		t.Errorf("the deployment: %s", got)
	}
	if got := r.members(); got != "6 in 4, 4" {
		t.Errorf("members %s", got)
	}
}
