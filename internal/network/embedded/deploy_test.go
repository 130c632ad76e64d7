package embedded_test

import (
	"fmt"
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/controller"
	"github.com/p4lb/p4lb/internal/controller/plan"
	"github.com/p4lb/p4lb/internal/controller/report"
	"github.com/p4lb/p4lb/internal/network/embedded"
)

// TestIdempotent: a second deployment writes nothing, in the same process or by
// another controller.
func TestIdempotent(t *testing.T) {
	for _, scheme := range []string{"qall-poly3", "conga", "hula", "wcmp", "drill+rlb-star", "dhlb"} {
		t.Run(scheme, func(t *testing.T) {
			target := newTarget(t, embedded.Options{Memory: true, Still: true})
			p := planFor(t, scheme, preset(t, "qall"))
			first := deploy(t, p, target, controller.DeployOptions{})
			if first.Written() == 0 || !first.Switches[0].Pushed {
				t.Errorf("the first deployment has written %d objects", first.Written())
			}
			second := deploy(t, p, target, controller.DeployOptions{})
			if n := second.Written(); n != 0 {
				t.Errorf("the second deployment has written %d objects: %+v", n, second.Switches[0].Changes)
			}
		})
	}
}

// TestCommonEntries: entries that all switches of a program share are written to each
// switch and repaired on one that lacks them, within the process and over a
// connection.
func TestCommonEntries(t *testing.T) {
	for _, memory := range []bool{true, false} {
		if memory && testing.Short() {
			continue // a connection gives the race detector more to check
		}
		t.Run(fmt.Sprintf("memory=%t", memory), func(t *testing.T) {
			target := newTarget(t, embedded.Options{Memory: memory, AnyPort: true, Still: true})
			p := planFor(t, "qall-pkt@tna", preset(t, "qall"))
			deploy(t, p, target, controller.DeployOptions{})
			var common int
			for _, s := range p.Switches {
				list := entriesOf(t, target, s)
				common = 0
				for _, e := range s.Entries {
					if e.Common {
						common++
					}
				}
				if common == 0 || len(list) < common {
					t.Fatalf("%s holds %d entries, want at least the %d that all hold", s.Name, len(list), common)
				}
			}
			name := p.Switches[0].Name
			list := entriesOf(t, target, p.Switches[0])
			slices.SortFunc(list, func(a, b *p4v1.Entity) int { // of the largest table
				return len(b.GetTableEntry().GetMatch()) - len(a.GetTableEntry().GetMatch())
			})
			other := proto.Clone(list[1]).(*p4v1.Entity)
			param := other.GetTableEntry().GetAction().GetAction().GetParams()[0]
			param.Value = []byte{param.GetValue()[0] ^ 1}
			meddle(t, target, name, &p4v1.Update{Type: p4v1.Update_DELETE, Entity: list[0]}, &p4v1.Update{Type: p4v1.Update_MODIFY, Entity: other})
			r := deploy(t, p, target, controller.DeployOptions{Takeover: true})
			kinds := map[report.Kind]int{}
			for _, c := range r.Switches[0].Changes {
				kinds[c.Kind]++
			}
			if r.Written() != 2 || kinds[report.Insert] != 1 || kinds[report.Modify] != 1 {
				t.Errorf("with an entry deleted and another changed, %d were written: %v", r.Written(), r.ChangeRows())
			}
			if n := len(entriesOf(t, target, p.Switches[0])); n != len(list) {
				t.Errorf("%d entries, want %d", n, len(list))
			}
		})
	}
}

// entriesOf are the entries that a switch holds.
func entriesOf(t testing.TB, target *embedded.Target, s *plan.Switch) []*p4v1.Entity {
	t.Helper()
	list, err := target.Server(s.Name).Local(nil).Entities(&p4v1.ReadRequest{DeviceId: s.Device, Entities: []*p4v1.Entity{
		{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
