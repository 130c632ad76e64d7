package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/p4lb/p4lb/internal/bfrt"
	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// cuts calls f once for each element of each list in v, with that element removed, and
// with members also for each member of each object. where describes the removed part.
// Members that the server does not read stay. In lists other than lists of actions, cuts
// removes members only from the first element.
func cuts(v any, where string, members bool, f func(where string)) {
	fields, _ := v.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		at, x := where+"."+k, fields[k]
		switch k {
		case "annotations", "attributes", "supported_operations", "mandatory", "read_only":
		default:
			if members {
				delete(fields, k)
				f(at)
				fields[k] = x
			}
		}
		list, ok := x.([]any)
		if !ok {
			cuts(x, at, members, f)
			continue
		}
		for i := range list {
			at := fmt.Sprintf("%s[%d]", at, i)
			fields[k] = slices.Delete(slices.Clone(list), i, i+1)
			f(at)
			fields[k] = list
			cuts(list[i], at, members && (i == 0 || k == "action_specs"), f)
		}
	}
}

// TestSchemaThatLacks: a schema without a field, an action or a part of one is refused
// when it is loaded, or its tables work.
func TestSchemaThatLacks(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine does the work: the race detector has nothing to see")
	}
	program, err := chipProgram()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	ctx := context.Background()
	var whole bfrt.Schema
	r.must(json.Unmarshal(program.Schema, &whole))
	seen := map[string]bool{}
	for _, table := range whole.Tables {
		if seen[table.Type] {
			continue
		}
		seen[table.Type] = true
		text, err := json.Marshal(table)
		r.must(err)
		var v any
		r.must(json.Unmarshal(text, &v))
		t.Run(table.Type, func(t *testing.T) {
			cuts(v, table.Name, true, func(where string) {
				defer func() {
					if x := recover(); x != nil {
						t.Errorf("%s: %v\n%s", where, x, debug.Stack())
					}
				}()
				text, err := json.Marshal(v)
				r.must(err)
				less := new(bfrt.Table)
				r.must(json.Unmarshal(text, less))
				schema := whole
				schema.Tables = slices.Clone(whole.Tables)
				schema.Tables[slices.Index(whole.Tables, table)] = less
				text, err = json.Marshal(schema)
				r.must(err)
				if err := r.s.Load(Program{Name: "chip", Schema: text, Binary: program.Binary}); err != nil {
					return
				}
				entity := &wire.Entity{Entity: &wire.Entity_TableEntry{TableEntry: &wire.TableEntry{TableId: table.ID}}}
				_ = r.s.Read(&wire.ReadRequest{Target: everywhere, ClientId: 1, Entities: []*wire.Entity{entity}}, sink{ctx: ctx})
				actions := []uint32{0}
				if less.ActionSpecs != nil {
					for _, a := range *less.ActionSpecs {
						actions = append(actions, a.ID)
					}
				}
				for _, a := range actions {
					for _, kind := range []wire.Update_Type{ins, mod, del} {
						_, _ = r.s.Write(ctx, &wire.WriteRequest{Target: everywhere, ClientId: 1, Updates: []*wire.Update{
							update(kind, &wire.TableEntry{TableId: table.ID, Data: &wire.TableData{ActionId: a}}),
						}})
					}
				}
			})
		})
	}
}
