package p4rt

import (
	"fmt"
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// kindsOfEntities names the entities of oneOfEach, in its order.
var kindsOfEntities = []string{
	"a member", "an entry with a member", "an entry with a one-shot", "an entry with a prefix", "an entry", "a group", "a session", "a digest",
	"a default entry", "a counter", "a direct counter", "a meter", "a direct meter", "a value set", "a register",
}

// specBatches tests a change of each kind of entity in a batch with a failing
// update, placed before or after it.
func specBatches(t testing.TB) []spec {
	bad := remove(t, macEntry(t, "\x77"))
	var all []spec
	for i, kind := range kindsOfEntities {
		for a, name := range p4v1.WriteRequest_Atomicity_name {
			for _, place := range []string{"before", "behind"} {
				all = append(all, spec{
					name:   fmt.Sprintf("12.2 %s: %s %s an error", name, kind, place),
					before: oneOfEach(t, ins),
					run: func(t *testing.T, s *session) {
						change := oneOfEach(t, mod)[i]
						batch, want := []*p4v1.Update{change, bad}, []codes.Code{codes.Aborted, codes.NotFound}
						if a == int32(p4v1.WriteRequest_CONTINUE_ON_ERROR) {
							want[0] = codes.OK
						}
						if place == "behind" {
							slices.Reverse(batch)
							slices.Reverse(want)
						}
						before := held(t, s)
						err := s.writeAs(p4v1.WriteRequest_Atomicity(a), batch...)
						if got := updateCodes(err); !slices.Equal(got, want) {
							t.Fatalf("got %v, want %v: %s", got, want, describe(err))
						}
						after := held(t, s)
						if a != int32(p4v1.WriteRequest_CONTINUE_ON_ERROR) {
							wantSame(t, before, after)
							return
						}
						if err := s.write(change); err != nil {
							t.Fatal(describe(err))
						}
						wantSame(t, after, held(t, s)) // it was applied already
						// An entry still refers to the same member.
						if i != 1 && slices.EqualFunc(before, after, func(a, b *p4v1.Entity) bool { return proto.Equal(a, b) }) {
							t.Error("nothing has changed")
						}
					},
				})
			}
		}
	}
	return all
}

// specConfigs tests how pushing a program affects each kind of entity.
func specConfigs(t testing.TB) []spec {
	const (
		save   = p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_SAVE
		commit = p4v1.SetForwardingPipelineConfigRequest_COMMIT
		keep   = p4v1.SetForwardingPipelineConfigRequest_RECONCILE_AND_COMMIT
	)
	var all []spec
	for i, kind := range kindsOfEntities {
		for _, c := range []struct {
			name    string
			actions []configAction
			kept    bool
			config  func(testing.TB) *p4v1.ForwardingPipelineConfig
		}{
			{"VERIFY keeps", []configAction{verify}, true, testConfig},
			{"VERIFY_AND_SAVE turns to a program without", []configAction{save}, false, testConfig},
			{"VERIFY_AND_COMMIT clears", []configAction{commitNew}, false, testConfig},
			{"COMMIT clears", []configAction{save, commit}, false, testConfig},
			{"RECONCILE_AND_COMMIT keeps", []configAction{keep}, true, testConfig},
			{"RECONCILE_AND_COMMIT of another version keeps", []configAction{keep}, true, nextConfig},
		} {
			all = append(all, spec{name: "14 " + c.name + " " + kind, run: func(t *testing.T, s *session) {
				fresh := held(t, s)
				var list []*p4v1.Update
				switch there := oneOfEach(t, ins); {
				case i == 1:
					list = there[:2] // the member as well
				case i < len(there):
					list = there[i : i+1]
				default:
					list = []*p4v1.Update{there[3], oneOfEach(t, mod)[i]} // with the route that direct resources belong to
				}
				if err := s.write(list...); err != nil {
					t.Fatal(describe(err))
				}
				want := held(t, s)
				if slices.EqualFunc(fresh, want, func(a, b *p4v1.Entity) bool { return proto.Equal(a, b) }) {
					t.Fatal("nothing has been written")
				}
				if !c.kept {
					want = fresh
				}
				for _, a := range c.actions {
					config := c.config(t)
					if a == commit {
						config = nil
					}
					if err := s.configure(a, config); err != nil {
						t.Fatal(describe(err))
					}
				}
				wantSame(t, want, held(t, s))
			}})
		}
	}
	return all
}

// held reads all entities; of registers only the one in kindsOfEntities.
func held(t *testing.T, s *session) []*p4v1.Entity {
	t.Helper()
	list, err := s.read(append(everything(), registerEntity(t, "AllIngress.sizes", -1, nil))...)
	if err != nil {
		t.Fatal(describe(err))
	}
	return list
}
