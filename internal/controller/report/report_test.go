package report

import (
	"errors"
	"fmt"
	"testing"

	"github.com/p4lb/p4lb/internal/controller/plan"
)

// A report sums up each switch in a row, and lists all changes.
func TestReport(t *testing.T) {
	refused := &plan.Error{Switch: "l3", Err: errors.New("refused")}
	r := &Report{Switches: []Switch{
		{Name: "l1", Pushed: true, Verified: true, Written: 3, Changes: []Change{{Kind: Push}, {Kind: Insert, Object: "a", After: "1"}, {Kind: Insert, Object: "b", After: "2"}, {Kind: Modify, Object: "c", Before: "1", After: "2"}}},
		{Name: "l2", RolledBack: true, Err: refused, Changes: []Change{{Kind: Push}, {Kind: Delete, Object: "d", Before: "4"}}},
		{Name: "l3", Err: refused},
		{Name: "l4", Notes: []string{"no queues", "x"}, Written: 4},
		{Name: "l5", Changes: []Change{{Kind: Delete, Object: "e", Before: "5"}}},
		{Name: "l6"},
	}}
	want := [][]string{
		{"SWITCH", "PROGRAM", "INSERTED", "MODIFIED", "DELETED", "WRITTEN", "STATE"},
		{"l1", "pushed", "2", "1", "0", "3", "verified"}, {"l2", "to push", "0", "0", "1", "0", "rolled back"}, {"l3", "kept", "0", "0", "0", "0", "failed"},
		{"l4", "kept", "0", "0", "0", "4", "no queues"}, {"l5", "kept", "0", "0", "1", "0", "differs"}, {"l6", "kept", "0", "0", "0", "0", "as planned"},
	}
	if got := r.Rows(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	r.Links = []Change{{Kind: Modify, Object: "l1-s1", Before: "up", After: "down"}}
	want = [][]string{
		{"SWITCH", "CHANGE", "OBJECT", "BEFORE", "AFTER"},
		{"l1", "push", "", "-", "-"}, {"l1", "insert", "a", "-", "1"}, {"l1", "insert", "b", "-", "2"}, {"l1", "modify", "c", "1", "2"},
		{"l2", "push", "", "-", "-"}, {"l2", "delete", "d", "4", "-"}, {"l5", "delete", "e", "5", "-"}, {"-", "modify", "l1-s1", "up", "down"},
	}
	if got := r.ChangeRows(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := r.Written(); n != 7 {
		t.Errorf("%d written", n)
	}
	var list plan.Errors
	if err := r.Err(); !errors.As(err, &list) || len(list) != 2 {
		t.Errorf("errors %v", err)
	}
	if err := (&Report{Switches: []Switch{{Name: "l1"}}}).Err(); err != nil {
		t.Errorf("no error: %v", err)
	}
}

// A report is verified if each switch is, and each link is as planned.
func TestVerified(t *testing.T) {
	yes, no := Switch{Verified: true}, Switch{}
	for _, test := range []struct {
		r    Report
		want bool
	}{{Report{}, true}, {Report{Switches: []Switch{yes, yes}}, true}, {Report{Switches: []Switch{yes, no}}, false}, {Report{Switches: []Switch{yes}, Links: []Change{{}}}, false}} {
		if got := test.r.Verified(); got != test.want {
			t.Errorf("%+v: %v", test.r, got)
		}
	}
}
