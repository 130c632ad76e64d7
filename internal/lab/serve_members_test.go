package lab

import (
	"context"
	"sync"
	"testing"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestServeMembers: in a network in virtual time, the six ports of a leaf refer to two
// members of an action profile without a selector. A controller over P4Runtime changes the
// member of the ports of hosts, so the packets of these hosts get no route. An entry with
// an action in place of the id of a member is refused in words of the protocol.
func TestServeMembers(t *testing.T) {
	r, pages, _ := serving(&Serve{Every: 5 * time.Millisecond, Wait: 1, Timeout: time.Minute})
	var work sync.WaitGroup
	work.Go(func() {
		page := <-pages
		defer get(t, page+"/done?name=a")
		l1 := dial(t, listOf(t, page)["l1"])
		var kinds uint32
		for _, table := range l1.config().GetP4Info().GetTables() {
			if table.GetPreamble().GetName() == "I.kinds" {
				kinds = table.GetPreamble().GetId()
			}
		}
		entries := l1.read(&p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{TableId: kinds}}})
		members := l1.read(&p4v1.Entity{Entity: &p4v1.Entity_ActionProfileMember{ActionProfileMember: &p4v1.ActionProfileMember{}}})
		if len(entries) != 6 || len(members) != 2 {
			t.Errorf("%d entries and %d members, want 6 and 2", len(entries), len(members))
			return
		}
		var hosts *p4v1.Entity
		for _, m := range members {
			if string(m.GetActionProfileMember().GetAction().GetParams()[0].GetValue()) == "\x01" {
				hosts = m
			}
		}
		e := entries[0].GetTableEntry()
		e.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: hosts.GetActionProfileMember().GetAction()}}
		details := status.Convert(l1.write(&p4v1.Update{Type: p4v1.Update_MODIFY, Entity: entries[0]})).Details()
		const want = "table I.kinds: the entry has action: want action_profile_member_id, the id of a member of action profile I.marks"
		if len(details) != 1 || details[0].(*p4v1.Error).GetMessage() != want || details[0].(*p4v1.Error).GetCanonicalCode() != int32(codes.InvalidArgument) {
			t.Errorf("%v\nwant %s", details, want)
		}
		for range 2 {
			get(t, page+"/next?name=a")
		}
		hosts.GetActionProfileMember().GetAction().GetParams()[0].Value = []byte{9}
		if err := l1.write(&p4v1.Update{Type: p4v1.Update_MODIFY, Entity: hosts}); err != nil {
			t.Error(err)
		}
	})
	c, err := r.Run(context.Background(), selector(t, ""))
	work.Wait()
	if err != nil {
		t.Fatal(err)
	}
	alone := run(t, &Runner{}, selector(t, "")).Rows[0].Runs[0]
	got := c.Rows[0].Runs[0]
	if before, after := alone.Lost["program"], got.Lost["program"]; before != 0 || after == 0 {
		t.Errorf("%d packets without a route, and %d with the changed member: %v", before, after, got.Lost)
	}
}
