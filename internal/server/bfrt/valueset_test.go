package server

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/p4lb/p4lb/internal/bfrt/wire"
)

// The target of a value set's entry must match the set's scopes. The cases come from
// open-p4studio's tna_pvs (a bare except hides its failures) and from the verify functions
// in Intel's pipe_mgr_p4parser.c.
func TestValueSetScope(t *testing.T) {
	const table, all = "InPrs.kinds", wire.AllPipes
	predef := func(m wire.Mode_PredefinedMode) *wire.Mode { return &wire.Mode{Scope: &wire.Mode_Predef{Predef: m}} }
	single, every := predef(wire.Mode_SINGLE), predef(wire.Mode_ALL)
	groups := &wire.Mode{Scope: &wire.Mode_UserDefined{UserDefined: 0x0a05}} // pipes 0 and 2, 1 and 3
	ingress, both, anyParser := uint32(0), uint32(wire.AllDirections), uint32(wire.AllParsers)
	for _, c := range []struct {
		name                  string
		gress, pipes, parsers *wire.Mode
		pipe, dir, parser     uint32
		want                  codes.Code
	}{
		{"all of all", every, every, every, all, both, anyParser, codes.OK},
		{"one gress of all", every, every, every, all, ingress, anyParser, codes.InvalidArgument},
		{"one pipe of all", every, every, every, 0, both, anyParser, codes.InvalidArgument},
		{"one parser of all", every, every, every, all, both, 0, codes.InvalidArgument},
		{"single", single, single, single, 1, ingress, 0, codes.OK},
		{"every gress of single", single, single, single, 0, both, 0, codes.InvalidArgument},
		{"every pipe of single", single, single, single, all, ingress, 0, codes.InvalidArgument},
		{"every parser of single", single, single, single, 1, ingress, anyParser, codes.InvalidArgument},
		{"lowest pipe of group 0", every, groups, single, 0, both, 0, codes.OK},
		{"lowest pipe of group 1", every, groups, single, 1, both, 0, codes.OK},
		{"another pipe of group 0", every, groups, single, 2, both, 0, codes.InvalidArgument},
		{"another pipe of group 1", every, groups, single, 3, both, 0, codes.InvalidArgument},
		{"every pipe of groups", every, groups, single, all, both, 0, codes.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.must(r.write(everywhere, &wire.Update{Type: ins, Entity: &wire.Entity{Entity: &wire.Entity_TableAttribute{TableAttribute: &wire.TableAttribute{
				TableId: r.table(table).schema.ID, Attribute: &wire.TableAttribute_EntryScope{EntryScope: &wire.EntryScope{GressScope: c.gress, PipeScope: c.pipes, PrsrScope: c.parsers}},
			}}}}))
			target := &wire.TargetDevice{PipeId: c.pipe, Direction: c.dir, PrsrId: c.parser}
			entry := r.entry(table, r.key(table, 0x1234), nil)
			err := r.write(target, update(ins, entry))
			if c.want == codes.OK {
				r.must(err)
				r.must(r.write(target, update(del, entry)))
				return
			}
			if err == nil || codes.Code(details(t, err)[0].GetCanonicalCode()) != c.want {
				t.Errorf("insert: %v, want %v", err, c.want)
			}
			if n := len(r.list(table)); n != 0 {
				t.Errorf("the refused insert left %d entries", n)
			}
		})
	}
}

// A member of a value set has a mask. It is another member than the same value under another
// mask, and without a field it matches any value.
func TestMaskedMembers(t *testing.T) {
	r := newRig(t)
	const table = "InPrs.kinds"
	r.set(ins, "In.acl", r.match("In.acl", "port_class", "=01"), r.data("In.acl", "learn"))
	r.set(ins, "In.dmac", r.key("In.dmac", 7), r.data("In.dmac", "send", "port", 2))
	learned := func(when string, kinds ...uint64) {
		t.Helper()
		for _, kind := range []uint64{0x1234, 0x1277, 0x1334, 0x8000} {
			r.send(1, frame(7, kind, kind))
			r.leaves(2)
			if slices.Contains(kinds, kind) {
				if d := r.hear().GetDigest(); len(d.GetData()) != 1 || uintOf(d.GetData()[0].GetFields()[0].GetStream()) != kind {
					t.Errorf("%s: the digest is %v, want one of kind %#x", when, d, kind)
				}
			}
		}
	}
	masked, whole, anything := r.match(table, "f1", "1200&ff00"), r.match(table, "f1", "1200&ffff"), &wire.TableKey{}
	learned("without members")
	r.set(ins, table, masked, nil)
	learned("with a mask", 0x1234, 0x1277)
	r.set(ins, table, whole, nil)
	r.refused("a member twice", update(ins, r.entry(table, r.match(table, "f1", "12ff&ff00"), nil)), codes.AlreadyExists, "")
	if list := r.list(table); len(list) != 2 || !proto.Equal(list[0].GetKey(), masked) || !proto.Equal(list[1].GetKey(), whole) {
		t.Errorf("members %v", list)
	}
	r.set(del, table, masked, nil)
	learned("with another mask")
	r.set(ins, table, anything, nil)
	learned("with any value", 0x1234, 0x1277, 0x1334, 0x8000)
	r.refused("a short mask", update(ins, r.entry(table, r.match(table, "f1", "1200&ff"), nil)), codes.InvalidArgument, "has 1 bytes, want 2")
	r.refused("a range", update(ins, r.entry(table, r.match(table, "f1", "1200..12ff"), nil)), codes.InvalidArgument, "wants a value and a mask")
}

// A deletion without key deletes all members, in the pipes of its target. An insertion
// needs a key.
func TestAllMembersDeleted(t *testing.T) {
	r := newRig(t)
	const table = "InPrs.kinds"
	r.scoped(table, 0)
	for n := range uint32(4) {
		for _, kind := range []uint64{1, 2} {
			r.must(r.write(pipe(n), update(ins, r.entry(table, r.key(table, kind), nil))))
		}
	}
	members := func(want ...int) {
		t.Helper()
		for n, want := range want {
			list, err := r.read(pipe(uint32(n)), r.entry(table, nil, nil))
			r.must(err)
			if len(list) != want {
				t.Errorf("pipe %d has %d members, want %d", n, len(list), want)
			}
		}
	}
	r.refused("a member without key", update(ins, r.entry(table, nil, nil)), codes.InvalidArgument, "the entry has neither key nor handle")
	members(2, 2, 2, 2)
	r.must(r.write(pipe(1), update(del, r.entry(table, nil, nil))))
	members(2, 0, 2, 2)
	r.set(del, table, nil, nil)
	members(0, 0, 0, 0)
}

// list reads all entries of a table.
func (r *rig) list(table string) []*wire.TableEntry {
	r.t.Helper()
	list, err := r.read(everywhere, r.entry(table, nil, nil))
	r.must(err)
	return list
}
