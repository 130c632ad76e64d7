package embedded_test

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/p4info"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/target"
	"github.com/p4lb/p4lb/internal/controller/tofino"
	"github.com/p4lb/p4lb/internal/network/embedded"
	"github.com/p4lb/p4lb/internal/network/fabric"
	"github.com/p4lb/p4lb/internal/p4"
	"github.com/p4lb/p4lb/internal/scheme/manifest"
)

// indirectFile returns a file of the program whose routes are groups of an action selector.
func indirectFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../controller/tofino/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// indirectPlan plans the program for BfRt or for P4Runtime.
func indirectPlan(t *testing.T, topology *fabric.Topology, bfrt bool) *plan.Plan {
	t.Helper()
	c, err := p4.CompileText("x.p4", indirectFile(t, "profiles.p4"), p4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DescribeBfRt(); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Decode("m.yaml", indirectFile(t, "profiles.manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Pipeline{Manifest: *m, P4Info: c.P4Info, Config: c.JSON(), Schema: func() ([]byte, error) { return c.Schema.JSON(), nil }}
	if bfrt {
		a, err := tofino.Embedded(p)
		if err != nil {
			t.Fatal(err)
		}
		if p.Config, err = a.Encode(); err != nil {
			t.Fatal(err)
		}
	}
	made, err := plan.New(topology, map[fabric.Role]*plan.Pipeline{fabric.Leaf: p, fabric.Spine: p}, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestIndirect deploys entries whose actions are members and groups of action
// profiles over BfRt and P4Runtime. Packets pass before and after a link fails. The
// controller reads back the entries that it wrote. Deployments leave no members behind: eight of
// them would overflow the profiles.
func TestIndirect(t *testing.T) {
	topology := writtenFabric(t)
	links, err := topology.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	deployments := 8
	if testing.Short() {
		deployments = 2 // enough for the race detector
	}
	for _, bfrt := range []bool{true, false} {
		target := newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: bfrt})
		for i := range deployments {
			top := topology
			if i%2 == 1 {
				top = topology.Fail(links...)
			}
			p := indirectPlan(t, top, bfrt)
			if r := deploy(t, p, target, controller.DeployOptions{}); r.Written() == 0 {
				t.Fatalf("bfrt %v: deployment %d has written nothing", bfrt, i)
			}
			if r := deploy(t, p, target, controller.DeployOptions{}); r.Written() != 0 {
				t.Errorf("bfrt %v: deployment %d is not read back as written: %+v", bfrt, i, r.Switches[0].Changes)
			}
			newNetwork(t, top, target).ping(t, 12)
		}
	}
}

// membersPlan plans a program that keeps its next hops in an action profile with room for
// the given number of members.
func membersPlan(t *testing.T, topology *fabric.Topology, room, args string) (*plan.Plan, error) {
	t.Helper()
	program := "action_profile(" + room + ") hops;" + `
    table routes { key = { h.ip.dst: lpm; } actions = { to; NoAction; } implementation = hops; }
    apply { routes.apply(); }`
	return foreignPlanOf(t, program, topology, `
version: 2
scheme: x
arch: v1model
tables:
- name: I.routes
  entries:
  - {each: host, match: {h.ip.dst: $host-address/32}, action: to, args: `+args+`}
`)
}

// TestMembers: over P4Runtime, entries with the same action share a member of an action
// profile without a selector. Leaf l1 has a host at port 1, a host at port 2, and two
// hosts that it reaches through port 3: three actions. A profile with room for three members
// suffices for every change.
func TestMembers(t *testing.T) {
	topology := writtenFabric(t)
	target := newTarget(t, embedded.Options{Memory: true, Still: true})
	const own, nine = `{port: "$home && !$here ? 3 : $port", mac: "$home && !$here ? 0x60000030001 : $next-mac"}`, `{port: "$home && !$here ? 3 : $port", mac: 9}`
	for _, c := range []struct {
		args string
		want []string // port and MAC address of each member
	}{
		{own, []string{"1 2000a000101", "2 2000a000102", "3 60000030001"}},
		{nine, []string{"1 9", "2 9", "3 9"}},
		{"{port: 2, mac: 9}", []string{"2 9"}},
		{own, []string{"1 2000a000101", "2 2000a000102", "3 60000030001"}},
	} {
		p, err := membersPlan(t, topology, "3", c.args)
		if err != nil {
			t.Fatal(err)
		}
		deploy(t, p, target, controller.DeployOptions{})
		if r := deploy(t, p, target, controller.DeployOptions{}); r.Written() != 0 {
			t.Errorf("%s is not read back as written: %+v", c.args, r.Switches[0].Changes)
		}
		members, err := target.Switch("l1").Profiles().Members("I.hops")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range members {
			got = append(got, fmt.Sprintf("%d %x", new(big.Int).SetBytes(m.Action.Params[0]), new(big.Int).SetBytes(m.Action.Params[1])))
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the members of l1 are %q, want %q", c.args, got, c.want)
		}
	}
	list, err := newNetwork(t, topology, target).send("h1", tcpFrame(topology.Host("h1"), topology.Host("h4"), 1))
	if err != nil || len(list) != 1 || list[0].host != "h4" || fmt.Sprint(list[0].via) != "[l1 s1 l2]" {
		t.Errorf("a packet from h1 to h4: %v, %v", list, err)
	}
	_, err = membersPlan(t, topology, "2", own)
	if want := "action profile I.hops would have 3 members, and has room for 2"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
	_, err = membersPlan(t, topology, "3", nine+", one_of: path")
	if want := "one_of needs a table with an action selector"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// foreignUpdates insert member 5 and group 3 into the profile of the routes.
func foreignUpdates(routes *p4info.Table) []*p4v1.Update {
	send := routes.Actions["send"]
	return []*p4v1.Update{
		{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{
			ActionProfileId: routes.Profile.ID, MemberId: 5, Action: &p4v1.Action{ActionId: send.ID, Params: []*p4v1.Action_Param{
				{ParamId: send.Params[0].ID, Value: []byte{1}}, {ParamId: send.Params[1].ID, Value: []byte{9}},
			}},
		}}}},
		{Type: p4v1.Update_INSERT, Entity: &p4v1.Entity{Entity: &p4v1.Entity_ActionProfileGroup{ActionProfileGroup: &p4v1.ActionProfileGroup{
			ActionProfileId: routes.Profile.ID, GroupId: 3, MaxSize: 4, Members: []*p4v1.ActionProfileGroup_Member{{MemberId: 5, Weight: 1}},
		}}}},
	}
}

// A refusing target refuses all writes to l2 over BfRt.
type refusing struct{ *embedded.Target }

func (r refusing) Endpoint(name string) (target.Endpoint, error) {
	e, err := r.Target.Endpoint(name)
	if name == "l2" && err == nil {
		speak := e.Speak
		e.Speak = func(conn grpc.ClientConnInterface) target.Session {
			s := speak(conn)
			s.Client = refusedWrites{s.Client}
			return s
		}
	}
	return e, err
}

type refusedWrites struct{ p4v1.P4RuntimeClient }

func (refusedWrites) Write(context.Context, *p4v1.WriteRequest, ...grpc.CallOption) (*p4v1.WriteResponse, error) {
	return nil, status.Error(codes.ResourceExhausted, "no room")
}

// TestForeignMembers: another controller has filled the selector of the routes with a member
// and a group. P4Runtime refuses entries with actions in the same table, so the deployment deletes
// the entry of the other controller, its group and its member, and then writes its own entries.
// Over BfRt it deletes the member and the group, which no entry uses. If the deployment fails at
// another switch, --atomic inserts them again.
func TestForeignMembers(t *testing.T) {
	topology := writtenFabric(t)
	links, err := topology.FindLinks("l1-s1")
	if err != nil {
		t.Fatal(err)
	}
	for _, bfrt := range []bool{false, true} {
		p, next := indirectPlan(t, topology, bfrt), indirectPlan(t, topology.Fail(links...), bfrt)
		x, err := p.Switch("l1").Pipeline.Index()
		if err != nil {
			t.Fatal(err)
		}
		routes := x.ByName["I.routes"]
		updates := foreignUpdates(routes)
		want := []string{
			"delete I.hops group 3", "delete I.hops member 5",
			"insert I.routes dst=10.0.1.1/32", "insert I.routes dst=10.0.1.2/32", "insert I.routes dst=10.0.2.1/32", "insert I.routes dst=10.0.2.2/32",
		}
		var at *embedded.Target
		var failing controller.Target
		fails := func(bool) {}
		if bfrt {
			at = newTarget(t, embedded.Options{Memory: true, Still: true, BfRt: true})
			failing = refusing{at}
			deploy(t, p, at, controller.DeployOptions{})
			if _, err := controller.Fill(testContext(t), "l1", at, p.Switch("l1").Pipeline, updates, controller.DeployOptions{}); err != nil {
				t.Fatal(err)
			}
			for port := 1; port <= 4; port++ {
				want = append(want, fmt.Sprintf("insert I.kinds ingress_port=%d", port))
			}
		} else {
			f, refuse := refuser()
			faulty := newFaulty(t, p, "l2", f)
			at, failing, fails = faulty.Target, faulty, refuse.Store
			deploy(t, p, at, controller.DeployOptions{})
			entry := func(kind p4v1.Update_Type, host int, action *p4v1.TableAction) *p4v1.Update {
				address := topology.Host(fmt.Sprintf("h%d", host)).IP.Addr().As4()
				match := &p4v1.FieldMatch{FieldId: routes.Fields[0].ID, FieldMatchType: &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: address[:], PrefixLen: 32}}}
				return &p4v1.Update{Type: kind, Entity: &p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: routes.ID, Match: []*p4v1.FieldMatch{match}, Action: action}}}}
			}
			var all []*p4v1.Update
			for host := range 4 {
				all = append(all, entry(p4v1.Update_DELETE, host+1, nil))
			}
			all = append(append(all, updates...), entry(p4v1.Update_INSERT, 4, &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileGroupId{ActionProfileGroupId: 3}}))
			meddle(t, at, "l1", all...)
			want = append(want, "delete I.routes dst=10.0.2.2/32")
		}
		// The deployment with a failed link changes both leaves, and is undone.
		fails(true)
		r, err := controller.Deploy(testContext(t), next, failing, controller.DeployOptions{Atomic: true, Takeover: !bfrt})
		if err == nil || !r.Switches[0].RolledBack || r.Switches[0].Written == 0 {
			t.Fatalf("bfrt %v: %v, %+v", bfrt, err, r.Switches[0])
		}
		fails(false)
		members, err := at.Switch("l1").Profiles().Members("I.hops")
		if err != nil || len(members) != 1 || members[0].Action.Params[1][5] != 9 {
			t.Errorf("bfrt %v: members %+v after the rollback (%v)", bfrt, members, err)
		}
		r = deploy(t, p, at, controller.DeployOptions{Takeover: !bfrt})
		var rows []string
		for _, c := range r.Switches[0].Changes {
			rows = append(rows, fmt.Sprintf("%s %s", c.Kind, c.Object))
		}
		slices.Sort(rows)
		slices.Sort(want)
		if !slices.Equal(rows, want) {
			t.Errorf("bfrt %v: changes %q\nwant %q", bfrt, rows, want)
		}
		if r := deploy(t, p, at, controller.DeployOptions{Takeover: !bfrt}); r.Written() != 0 {
			t.Errorf("bfrt %v: not read back as written: %+v", bfrt, r.Switches[0].Changes)
		}
		newNetwork(t, topology, at).ping(t, 12)
	}
}

// TestScramble: with a linear CRC, flows whose source addresses and ports change in the same bits
// can all get one path of four. @selector_enable_scramble(1) spreads them.
func TestScramble(t *testing.T) {
	for note, want := range map[string]bool{"": false, "@selector_enable_scramble(0) ": false, "@selector_enable_scramble(1) ": true} {
		c, err := p4.CompileText("x.p4", []byte(strings.Replace(string(indirectFile(t, "profiles.p4")), "table routes", note+"table routes", 1)), p4.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pl := range c.Config.Pipelines {
			for _, a := range pl.ActionProfiles {
				if a.Selector != nil && a.Selector.Scramble != want {
					t.Errorf("%s: scramble is %v, want %v", note, a.Selector.Scramble, want)
				}
			}
		}
	}
}
